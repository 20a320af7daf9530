"""Mend a filter with the best normalisers, and attack it anew: the attacker asks the mended filter, so
whatever the normalisers miss is found."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unfooled.checks.cures import Cure
from unfooled.checks.guard import FilterTest, guard, with_cure
from unfooled.checks.paying import purse_for
from unfooled.data.dataset import Dataset
from unfooled.victims.filtering import Filter

FOLDER = "mended"


@dataclass(frozen=True, slots=True)
class Mended:
    """A cure, and what got through it when it was attacked itself."""

    cure: Cure
    result: FilterTest


def mend(
    victim: Filter, data: Dataset, before: FilterTest, *, out: str | Path, **options: Any
) -> Mended | None:
    """After the test `before`, with its options; None where no normaliser helps at the price."""
    if before.best is None:
        return None
    cured = with_cure(victim, before.best)
    caps, workers = options.get("caps"), options.get("workers", 1)
    again = {**options, "cures": False, "purse": options.get("purse") or purse_for(caps, Path(out), workers)}
    result = guard(cured, data, out=Path(out) / FOLDER, **again)
    return Mended(before.best, result)
