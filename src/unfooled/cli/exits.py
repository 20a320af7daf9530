"""What the exit code of a command says."""

from __future__ import annotations

from enum import IntEnum

import typer


class Exit(IntEnum):
    DONE = 0
    GATE_FAILED = 1
    MISTAKE = 2  # the user can mend it; the message says how
    SOME_ERRORS = 3  # finished, but some examples could not be attacked
    GATE_UNDECIDED = 4  # too few examples to tell
    INTERRUPTED = 130
    NOT_READ = 141  # who reads the output stopped, as `head` does


def interrupted(saved: str, remedy: str = "repeat the command to go on") -> Exit:
    """Tell what is kept, and how to go on."""
    typer.echo(f"interrupted: {saved}\n  → {remedy}", err=True)
    return Exit.INTERRUPTED
