"""Where figures come from: versions, commit, machine."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import unfooled
from unfooled.training import record


def provenance() -> dict[str, Any]:
    return {"versions": record.versions(), "commit": commit(), "machine": record.machine()}


def commit() -> str:
    """Of the checkout that this code runs from; with a mark where files were changed since."""
    home = Path(unfooled.__file__).parent
    try:
        head = _git(home, "rev-parse", "--short=12", "HEAD")
        changed = _git(home, "status", "--porcelain", "--untracked-files=no", "--", str(home))
    except (OSError, subprocess.SubprocessError):
        return "unknown (not a git checkout)"
    return f"{head}, with changes" if changed else head


def _git(home: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(home), *arguments], capture_output=True, text=True, check=True, timeout=10
    )
    return done.stdout.strip()
