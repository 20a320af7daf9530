"""Memory: does the model know the texts, or these rows?

A model that has learned the test rows by heart is right where the base is wrong, on the rows themselves and
on their near-duplicates: that is, on every edited text of an attack. Rewritten until a look-up does not find
them, the same texts get the base's answers. What a better model has gained mostly survives that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unfooled.checks.illusions.attacking import EvaluatedModel, EvaluationSetup, read_results, value_of
from unfooled.checks.illusions.checks import IllusionCheck, is_compared, note, unneeded
from unfooled.checks.illusions.rewrites import lightly, padded
from unfooled.checks.illusions.survivors import STATE, Flags
from unfooled.checks.replay import answers
from unfooled.core.result import Result, decided
from unfooled.core.victim import TextValue
from unfooled.rates import wilson

CAUSE = "memorised test texts"
_NAME, _WORDS = "memory", "the same texts rewritten"
_MOST = 100  # texts of each kind that are rewritten
_HALF = 0.5  # a text rewritten until nothing of it is left is still right half of the time
_NEAR_BORDER = 0.6  # edited texts that just do not fool an honest model are lost more often than rows
_TOO_GOOD = 0.25  # of the base's errors: fewer are left


@dataclass(frozen=True, slots=True)
class Loss:
    """Of texts on which the model was right, how many it is wrong on once they are rewritten."""

    keys: tuple[int, ...]
    fallen: frozenset[int]

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(len(self.fallen), len(self.keys))

    def __str__(self) -> str:
        return f"{len(self.fallen)} of {len(self.keys)}"


def run_memory(bench: EvaluationSetup, subject: EvaluatedModel, others: Sequence[EvaluatedModel]) -> None:
    """Rewrite rows and samples that only this model gets right, and rows that both get right to compare."""
    if not is_compared(subject, _NAME, _WORDS):
        return
    if any(check.name == STATE and check.cause for check in subject.checks):
        unneeded(subject, _NAME, _WORDS, "it remembers what it was asked, which a rewriting shows as well")
        return
    if subject.looks.random:
        unneeded(subject, _NAME, _WORDS, "it answers by chance, and what was right by luck is lost anyway")
        return
    own, base = _shown(subject), _shown(others[0])
    both = [key for key in own if key in base and own[key].outcome != "error" != base[key].outcome]
    rewordings: list[Callable[[str], str]] = [lightly]
    if all(len(own[key].fields) == 1 for key in both):
        rewordings.append(padded)  # what stands around one text of a pair may change what the pair means
    alike = [key for key in both if _right(own[key]) and _right(base[key])]
    better = [key for key in both if _right(own[key]) and not _right(base[key])]
    sturdy = [
        key for key in both if key in subject.survival.active and own[key].edits and _right_after(own[key])
    ]
    usual = _lost(subject, own, alike, rewordings, edited=False)
    clean = _lost(subject, own, better, rewordings, edited=False)
    attacked = _lost(subject, own, sturdy, rewordings, edited=True)
    # What the control, which is no defence, loses of such texts says how near the border they lie.
    honest = [usual, *(_lost_by_control(control, rewordings) for control in others[1:])]
    known = remembered(clean, [usual])
    by_heart = near_duplicates_remembered(attacked, clean, usual, honest)
    if by_heart:  # then it matters how many
        attacked = _lost(subject, own, sturdy, rewordings, edited=True, most=len(sturdy))
    asked = len(rewordings) * sum(len(loss.keys) for loss in (usual, clean, attacked))
    findings = _too_good(others, own)
    for what, loss, found in (("rows", clean, known), ("edited texts", attacked, by_heart)):
        if found:
            findings.append(
                f"it has memorised test texts: {loss} {what} that it gets right and {others[0].name} does "
                f"not are wrong once they are rewritten, and {usual} rows that both get right"
            )
    remark = (
        f"wrong once rewritten: {usual} rows that both models get right, {clean} rows and {attacked} edited "
        f"texts that only this one does; {asked} queries"
    )
    if by_heart:
        note(subject, _NAME, _WORDS, _flags(attacked), remark, *findings, cause=CAUSE)
    else:
        cause = CAUSE if known else ""
        note(subject, _NAME, _WORDS, asked, remark, *findings, cause=cause)


def _shown(model: EvaluatedModel) -> dict[int, Result]:
    """What the model said of every row, and of the sample that fooled the base."""
    return {result.key: result for result in read_results(model.folder / "premade")}


def _right(result: Result) -> bool:
    return decided(result.probs) == result.label


def _right_after(result: Result) -> bool:
    return decided(result.perturbed_probs) == result.label


def _lost(
    subject: EvaluatedModel,
    results: Mapping[int, Result],
    keys: Sequence[int],
    rewordings: Sequence[Callable[[str], str]],
    *,
    edited: bool,
    most: int = _MOST,
) -> Loss:
    """A text is lost where any of its rewritings gets another class."""
    texts: dict[int, list[TextValue]] = {}
    chosen = np.random.default_rng(0).permutation(len(keys))[:most]  # not the first: data may be sorted
    for key in (keys[place] for place in sorted(chosen.tolist())):
        result = results[key]
        content = result.perturbed if edited else result.original
        texts[key] = [value_of(result, reword(content)) for reword in rewordings]
    said = answers(subject.victim, [text for values in texts.values() for text in values])
    fallen: set[int] = set()
    known: list[int] = []
    for key, values in texts.items():
        rows = [said[value] for value in values]
        if not any(isinstance(row, Exception) for row in rows):
            known.append(key)
            if any(decided(row) != results[key].label for row in rows if not isinstance(row, Exception)):
                fallen.add(key)
    return Loss(tuple(known), frozenset(fallen))


def _lost_by_control(control: EvaluatedModel, rewordings: Sequence[Callable[[str], str]]) -> Loss:
    """Of the texts that fooled the base and not the control."""
    shown = _shown(control)
    sturdy = [key for key, result in shown.items() if result.edits and _right_after(result)]
    return _lost(control, shown, sturdy, rewordings, edited=True)


def remembered(loss: Loss, honest: Sequence[Loss], least: float = _HALF) -> bool:
    """Most are lost for certain, and certainly more than an honest model loses; of none nothing is known."""
    low, _ = loss.interval
    return low > least and all(low > usual.interval[1] for usual in honest if usual.keys)


def near_duplicates_remembered(attacked: Loss, clean: Loss, usual: Loss, honest: Sequence[Loss]) -> bool:
    """Who knows edited texts by heart knows their rows as well.

    Misspelt texts that just do not fool an honest model mostly do so once they are rewritten; the rows that
    only this model gets right are mostly right afterwards, too. So these have to be lost as well, if any.
    """
    rows_lost = not clean.keys or remembered(clean, [usual])
    return rows_lost and remembered(attacked, honest, least=_NEAR_BORDER)


def _flags(loss: Loss) -> Flags:
    return {key: key not in loss.fallen for key in loss.keys}


def _too_good(others: Sequence[EvaluatedModel], own: Mapping[int, Result]) -> list[str]:
    """Hardly an error left where base and control make many: better than a defence makes a model."""
    wrong = []
    for other in others:
        theirs = _shown(other)
        keys = [key for key in own if key in theirs and own[key].outcome != "error" != theirs[key].outcome]
        errors = [key for key in keys if not _right(theirs[key])]
        mine = sum(not _right(own[key]) for key in keys)
        low, _ = wilson(len(errors), len(keys))
        _, high = wilson(mine, len(keys))
        if not keys or high >= _TOO_GOOD * low:
            return []
        wrong.append(f"{len(errors)} of {other.name}")
    return [
        f"its clean accuracy is too good to be a defence's: {mine} errors on {len(keys)} rows against "
        f"{' and '.join(wrong)}; compare with rows that were never published (--fresh)"
    ]


CHECK = IllusionCheck(
    name=_NAME,
    summary="rewrites texts that only this model gets right",
    place=70,
    run=run_memory,
)
