"""Mend a filter with the best cure, and attack it anew: the attacker asks the mended filter, so whatever the
cure misses is found."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unfooled.checks.cures import Cure
from unfooled.checks.guard import FilterTest, by_class, guard, with_cure
from unfooled.checks.paying import purse_for
from unfooled.core.session import Settings
from unfooled.data.dataset import Dataset
from unfooled.runs.row_choice import take
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
    """After the test `before`, with its options; None where no cure helps at the price.

    Rows that a cure may have learned from are not attacked, and none takes their place: a row that was not
    measured before may be among those that the model was trained on.
    """
    if before.best is None:
        return None
    cured = with_cure(victim, before.best, out)
    if before.learned:
        data = _measured(data, before, **options)
    caps, workers = options.get("caps"), options.get("workers", 1)
    purse = options.get("purse") or purse_for(caps, Path(out), workers)
    again = {**options, "cures": False, "train": None, "purse": purse}
    result = guard(cured, data, out=Path(out) / FOLDER, **again)
    return Mended(before.best, result)


def _measured(
    data: Dataset,
    before: FilterTest,
    *,
    limit: int | None = None,
    first: bool = False,
    settings: Settings | None = None,
    **_: Any,
) -> Dataset:
    """The rows of the test before that nothing was learned from, and the honest ones."""
    bad, honest = by_class(data)
    seed = (settings or Settings()).seed
    taken = take(bad, limit, seed=seed, first=first) if limit else bad
    bad_keys = {example.key for example in taken} - set(before.learned)
    return data.only(sorted(bad_keys | {example.key for example in honest}))
