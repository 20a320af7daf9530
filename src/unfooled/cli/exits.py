"""How a command ends: what its exit code says, and what happens when nobody reads its output any more."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any, TextIO

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


# -- output whose reader may go away: `unfooled … | head` ends quietly, whatever library was writing --


class _Pipe(io.FileIO):
    """Ends the command on the first write that nobody can read.

    The exception is no OSError, which the libraries that print would each turn into an ending of their own:
    a failure, or a message. What is written on the way out goes nowhere.
    """

    def __init__(self, descriptor: int, code: int) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self._code = code

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            raise SystemExit(self._code) from None


@contextmanager
def ending_with_the_reader(code: int) -> Iterator[None]:
    """Standard output and error end the process with `code` when their reader is gone."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (_watched(stream, code) for stream in before)
    try:
        yield
    finally:
        try:
            # What is still held back would meet the closed pipe when the interpreter ends.
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            sys.stdout, sys.stderr = before


def _watched(stream: TextIO, code: int) -> TextIO:
    if type(stream) is not io.TextIOWrapper:
        return stream  # a test or a notebook has put something of its own there
    stream.flush()
    pipe: Any = _Pipe(stream.fileno(), code)
    held_back = isinstance(stream.buffer, io.BufferedWriter)  # not so where the user wants every byte at once
    return io.TextIOWrapper(
        io.BufferedWriter(pipe) if held_back else pipe,
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
