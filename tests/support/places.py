"""Where the tests' own modules lie, for processes that the tests start."""

from __future__ import annotations

from pathlib import Path

SUPPORT = Path(__file__).parent
