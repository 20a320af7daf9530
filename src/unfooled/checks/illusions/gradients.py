"""White box against black box: gradients that break less than blind queries are masked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from unfooled.checks.illusions.attacking import EvaluatedModel, EvaluationSetup, read_results
from unfooled.checks.illusions.checks import BUDGETS, IllusionCheck, note, unneeded
from unfooled.checks.illusions.other_order import needs_gradients, with_other_order
from unfooled.checks.illusions.survivors import Flags
from unfooled.core.result import ATTACKED, Result
from unfooled.rates import mcnemar

Results: TypeAlias = Mapping[int, Result]  # by key

COMPARED = 100  # examples on which white box and black box are compared
_CLEAR = 0.01  # p-value below which a white box is called misled


def run_gradients(bench: EvaluationSetup, subject: EvaluatedModel, others: Sequence[EvaluatedModel]) -> None:
    """White box against black box on the same examples, and what the gradients themselves look like."""
    white = needs_gradients(bench.recipe)
    name = "black-box order" if white else "white-box order"
    words = "the same attack in black-box order" if white else "the same attack in the order of gradients"
    findings = subject.gradients.findings() if subject.gradients else []
    other = with_other_order(bench.recipe)
    if subject.gradients is None and not white:
        unneeded(subject, name, words, "it shows no gradients")
        return
    if other is None:
        unneeded(subject, name, words, "this attack has no order of words to change", *findings)
        return
    attacked = [result.key for result in subject.results() if result.outcome in ATTACKED]
    few = [key for key in attacked if key in subject.survival.active][:COMPARED]
    keys = sorted({*few, *subject.survival.survivors()})
    if not keys:
        unneeded(subject, name, words, "it was right on no example", *findings)
        return
    folder = subject.folder / "checks" / name.replace(" ", "-")
    found = bench.attack(subject, subject.facing, folder, title=name, recipe=other, keys=keys)
    # Survivors alone would favour the check: the two are compared on examples that were not chosen by either.
    fair = {key: found[key] for key in few if key in found}
    here = {result.key: result for result in read_results(folder) if result.key in fair}
    given = {result.key: result for result in subject.results() if result.key in fair}
    blind, seeing = (here, given) if white else (given, here)
    if subject.gradients:
        findings = subject.gradients.findings(useful=_points_right(blind, seeing))
    findings += _weaker(subject, fair, white)
    cause = "masked gradients" if white and findings else ""
    note(subject, name, words, found, _compared(blind, seeing), *findings, cause=cause)


def _points_right(blind: Results, seeing: Results) -> bool:
    """Where both succeed, the white box changes no more words: its order is as good."""
    both = [
        (len(blind[key].edits), len(result.edits))
        for key, result in seeing.items()
        if key in blind and result.outcome == blind[key].outcome == "success"
    ]
    return bool(both) and sum(there for _, there in both) <= sum(here for here, _ in both)


def _compared(blind: Results, seeing: Results) -> str:
    """Success within budgets, read from the queries that each success took."""
    parts = []
    for budget in (*BUDGETS, None):
        first, second = (
            sum(
                result.outcome == "success" and (budget is None or result.queries <= budget)
                for result in table.values()
            )
            / max(1, len(blind))
            for table in (blind, seeing)
        )
        limit = f"{budget} queries" if budget else "any number"
        parts.append(f"{limit}: black box {first:.0%}, white box {second:.0%}")
    return f"flipped of {len(blind)} with " + "; ".join(parts)


def _weaker(subject: EvaluatedModel, found: Flags, white: bool) -> list[str]:
    """A white box that breaks clearly less than a black box has been misled."""
    pairs = [
        (bool(subject.survival.active[key]), right)
        for key, right in found.items()
        if right is not None and subject.survival.active[key] is not None
    ]
    lost = sum(given and not here for given, here in pairs)
    gained = sum(here and not given for given, here in pairs)
    blind, seeing = (lost, gained) if white else (gained, lost)
    if blind > seeing and mcnemar(blind, seeing) < _CLEAR:
        return [
            f"its gradients mislead: the black box breaks {blind} examples that the white box does not, "
            f"the white box {seeing} that the black box does not"
        ]
    return []


CHECK = IllusionCheck(
    name="gradients",
    summary="the same attack in the order of gradients, or without them",
    place=30,
    run=run_gradients,
)
