"""How a run puts its questions, settled once before it begins: the order, or a surrogate that chooses.

It is part of the recipe, and so of the run's identity: a run that goes on asks as it began.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from unfooled.core.program import AsyncOracle, Oracle
from unfooled.core.recipe import Recipe, part_name
from unfooled.core.result import Example
from unfooled.core.session import require_resources
from unfooled.core.victim import Victim
from unfooled.errors import RunFileError, UserError
from unfooled.files import process_folder
from unfooled.runs.order import Order, asked_before, ordered, victim_first_when_guided
from unfooled.runs.task import Examples

if TYPE_CHECKING:
    from unfooled.runs.caps import Caps


class Ways(NamedTuple):
    """What the user asked for, and where the run lies."""

    order: Order = "constraints-first"
    surrogate: str | None = None
    queries: int | None = None
    out: str | Path | None = None
    restart: bool = False
    caps: Caps | None = None
    looked: int = 0  # texts that were asked before


@dataclass(frozen=True)
class Settled:
    """What the run does: `kept` is the recipe as its file keeps it."""

    recipe: Recipe
    kept: Recipe
    notices: list[str] = field(default_factory=list)
    resources: dict[str, str] = field(default_factory=dict)
    counters: dict[str, Any] = field(default_factory=dict)


def settle_asking(
    ways: Ways,
    recipe: Recipe,
    victim: Victim,
    data: Examples,
    sample: Sequence[Example],
    *,
    seed: int,
    rows: int,
    victim_seconds: float | None,
    opened: dict[str, Oracle | AsyncOracle],
    tell: Callable[[str], None],
) -> Settled:
    """The recipe with its way to ask, and what to say of it. `sample` are rows that the victim answered."""
    if ways.surrogate in (None, "none"):
        turned, notice = ordered(
            recipe,
            ways.order,
            victim_seconds=victim_seconds,
            texts=[example.text() for example in sample],
            opened=opened,
            before=None if ways.restart else asked_before(ways.out),
        )
        if notice:
            tell(notice)
        return Settled(turned, turned, [notice] if notice else [])
    late, notice = victim_first_when_guided(
        recipe,
        ways.order,
        victim_seconds=victim_seconds,
        texts=[example.text() for example in sample],
        opened=opened,
        out=None if ways.restart else ways.out,
    )
    settled = _guided(ways, recipe, victim, data, sample, seed, rows, opened, tell, late=late)
    if notice:
        settled = replace(settled, notices=[notice, *settled.notices])
    for notice in settled.notices:
        tell(notice)
    return settled


def _guided(
    ways: Ways,
    recipe: Recipe,
    victim: Victim,
    data: Examples,
    sample: Sequence[Example],
    seed: int,
    rows: int,
    opened: dict[str, Oracle | AsyncOracle],
    tell: Callable[[str], None],
    *,
    late: bool,
) -> Settled:
    from unfooled.runs import surrogate
    from unfooled.runs.caps import FITTING, require_affordable

    if ways.surrogate != surrogate.AUTO:
        named = surrogate.in_order(surrogate.guided_by(recipe, str(ways.surrogate)), late)
        return Settled(named, named, resources=require_resources(named))
    if ways.queries is not None and ways.queries < 1:
        raise UserError(f"surrogate_queries={ways.queries} fits nothing", "it is at least 1")
    before = None if ways.restart else asked_before(ways.out)
    guided = surrogate.guided_by(recipe, surrogate.AUTO)
    if before not in (None, part_name(type(guided.asking))):
        raise RunFileError(
            f"{ways.out}: holds a run without a surrogate",
            "write to another --out, or throw the old run away with --restart",
        )
    path = (Path(ways.out) if ways.out is not None else process_folder("surrogate")) / surrogate.FILE
    fitted = surrogate.fitted_for(
        recipe,
        victim,
        data,
        seed=seed,
        queries=ways.queries,
        path=path,
        restart=ways.restart,
        opened=opened,
        tell=tell,
        afford=partial(require_affordable, ways.caps, sample=sample, looked=ways.looked),
    )
    guided = surrogate.in_order(surrogate.guided_by_fitted(recipe, path, fitted), late)
    kept = surrogate.as_kept(guided)
    own = require_resources(guided)[guided.asking.asks[0]]
    asked = int(fitted.facts["queries"])
    return Settled(
        guided,
        kept,
        surrogate.about(fitted, rows),
        {kept.asking.asks[0]: own},
        {FITTING: {"asked": asked, "computed": asked}},
    )
