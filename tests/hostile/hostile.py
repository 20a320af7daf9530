"""What every hostile suite shares: many cases in full, some of them in `make test`.

A suite is a test file in this folder whose tests carry `pytest.mark.hostile("what is attacked")`, one case
per parameter. `make hostile` runs every case and writes the table of docs/explanation/trust.md.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

FULL = "HOSTILE"  # the environment variable that asks for every case


def some(cases: Sequence[T], few: int = 12) -> list[T]:
    """All cases when asked for, else `few` of them spread over the whole list."""
    if os.environ.get(FULL) == "full" or len(cases) <= few:
        return list(cases)
    return [cases[index * len(cases) // few] for index in range(few)]
