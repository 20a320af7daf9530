"""Which question an attack asks first: its constraints, or the victim.

The choice is made once, before a run begins, and is part of its recipe: a run that goes on, on whatever
machine, keeps it, because queries are counted as asked.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

from unfooled.attacks.parts.victim_first import (
    VictimFirst,
    cannot_be,
    cannot_turn,
    split,
    with_victim_first,
)
from unfooled.core.program import AsyncOracle, Oracle
from unfooled.core.recipe import Recipe, part_name
from unfooled.core.victim import require_choice
from unfooled.errors import UnfooledError, UserError
from unfooled.plugins import registry
from unfooled.runs.file import RunFile
from unfooled.text import Text

Order = Literal["constraints-first", "victim-first", "auto"]
# A victim that is asked first gets more questions, and an encoder a third of its own: worth it from here on.
CHEAPER = 0.5
# With a surrogate it is asked about few options that a constraint would refuse, an encoder about a quarter.
CHEAPER_GUIDED = 2.0
_TEXTS = 32
_WORDS = 15  # of a text that an encoder is asked about: TextFooler's window


def require_order(order: str) -> None:
    try:
        require_choice(order, Order, "order")
    except ValueError as error:
        raise UserError(str(error), "--order auto lets the costs decide") from None


def ordered(
    recipe: Recipe,
    order: Order,
    *,
    victim_seconds: float | None,
    texts: Sequence[Text],
    opened: dict[str, Oracle | AsyncOracle],
    before: Any = None,
) -> tuple[Recipe, str]:
    """The recipe in that order, and what to say of it. `before` is how a run that goes on had asked.

    Oracles whose cost is measured are taken from `opened`, or opened into it.
    """
    if order == "constraints-first" or recipe.asking is not None:
        return recipe, ""
    if order == "victim-first":
        return with_victim_first(recipe), _MORE
    if before is not None:
        return (with_victim_first(recipe), _MORE) if before == _NAME else (recipe, "")
    if reason := cannot_turn(recipe):
        return recipe, f"order: constraints first, since {reason}"
    cheap, costs = _is_cheap(recipe, CHEAPER, victim_seconds, texts, opened)
    if not cheap:
        return recipe, f"order: constraints first ({costs})"
    return with_victim_first(recipe), f"order: victim first ({costs}); {_MORE}"


def victim_first_when_guided(
    recipe: Recipe,
    order: Order,
    *,
    victim_seconds: float | None,
    texts: Sequence[Text],
    opened: dict[str, Oracle | AsyncOracle],
    out: str | Path | None,
) -> tuple[bool, str]:
    """Whether a guided attack asks dear constraints after the victim, and what to say of it."""
    if order == "constraints-first":
        return False, ""
    if reason := cannot_turn(recipe):
        if order == "victim-first":
            raise cannot_be(recipe, reason)
        return False, f"order: constraints first, since {reason}"
    if order == "victim-first":
        return True, ""
    if (before := _asking_of(out)) is not None:
        return bool(before.get("victim_first")), ""
    cheap, costs = _is_cheap(recipe, CHEAPER_GUIDED, victim_seconds, texts, opened)
    return cheap, f"order: {'victim' if cheap else 'constraints'} first ({costs})"


def _is_cheap(
    recipe: Recipe,
    factor: float,
    victim_seconds: float | None,
    texts: Sequence[Text],
    opened: dict[str, Oracle | AsyncOracle],
) -> tuple[bool, str]:
    """Whether the victim costs less than so many times the constraints, and what was measured."""
    others = sum(_seconds(name, texts, opened) for name in _dear(recipe))
    return victim_seconds is not None and victim_seconds <= factor * others, _costs(victim_seconds, others)


_MORE = "queries are counted as asked, and are more than with the constraints first; the texts are the same"
_NAME = part_name(VictimFirst)


def asked_before(out: str | Path | None) -> Any:
    """How the run in that folder asks: the name of its part, '' for constraints first, None without a run."""
    asking = _asking_of(out)
    return None if asking is None else asking.get("part", "")


def _asking_of(out: str | Path | None) -> dict[str, Any] | None:
    """The part that asks in the run in that folder, with its settings; None without a run."""
    if out is None:
        return None
    try:
        with closing(RunFile.read(out)) as file:
            return dict(file.header["identity"]["recipe"].get("asking") or {})
    except (UnfooledError, KeyError, TypeError, ValueError, AttributeError):
        return None  # what is wrong with it is said when it is opened to be written


def _dear(recipe: Recipe) -> list[str]:
    _, dear = split(getattr(recipe.search, "constraints", ()))
    return list(dict.fromkeys(name for part in dear for name in getattr(part, "asks", ())))


def _seconds(name: str, texts: Sequence[Text], opened: dict[str, Oracle | AsyncOracle]) -> float:
    """What one text costs an oracle, after a first call that loads it."""
    kind, _, variant = name.partition(":")
    if name not in opened:
        opened[name] = registry.load("oracle", kind)(variant)
    oracle = opened[name]
    items: list[Hashable] = [" ".join(text.words[:_WORDS]) for text in texts[:_TEXTS]]
    if isinstance(oracle, AsyncOracle) or not items:
        return 0.0
    oracle(items[:1])
    began = time.perf_counter()
    for first in range(0, len(items), oracle.batch_size):
        oracle(items[first : first + oracle.batch_size])
    return (time.perf_counter() - began) / len(items)


def _costs(victim: float | None, others: float) -> str:
    known = "unknown" if victim is None else f"{1000 * victim:.3g} ms"
    return f"a text costs the victim {known}, the constraints {1000 * others:.3g} ms"
