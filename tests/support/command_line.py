"""The command line as people use it: in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def unfooled(*arguments: str, code: int = 0, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "unfooled", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=120)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def attack_fake(data: Path) -> list[str]:
    """How an attack of the fake victim begins, for a process that a test stops."""
    return [sys.executable, "-m", "unfooled", "attack", "--model", "fake", "--data", str(data)]
