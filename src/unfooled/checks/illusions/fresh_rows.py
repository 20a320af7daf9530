"""Rows that were never published: nobody can have learned them by heart, so a real gain is there as well."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from unfooled.checks.illusions.attacking import EvaluatedModel, EvaluationSetup, read_results
from unfooled.checks.illusions.checks import IllusionCheck, is_compared, note, unneeded
from unfooled.checks.illusions.memory import CAUSE
from unfooled.checks.illusions.survivors import Flags
from unfooled.checks.illusions.verdict import ILLUSION_SHARE, Gap
from unfooled.core.result import decided

_NAME, _WORDS = "fresh-rows", "rows that were never published"
_MOST = 200  # rows that are attacked
_WIDER = 2.576 / 1.96  # from 95 to 99 %: two comparisons are made of every model


def run_fresh_rows(bench: EvaluationSetup, subject: EvaluatedModel, others: Sequence[EvaluatedModel]) -> None:
    """The gain over the base, clean and under attack, on the given rows and on these."""
    if subject.never_published is None:
        unneeded(subject, _NAME, _WORDS, "none were given; see --fresh")
        return
    if not is_compared(subject, _NAME, _WORDS):
        return
    base = others[0]
    here, there = _gains(subject, base)
    fresh_here, fresh_there = _fresh_gains(bench, subject, base)
    queries = sum(result.queries for result in read_results(_folder(subject) / "attack"))
    remark = (
        f"gain over {base.name}: clean {here.points()} on the given rows, {fresh_here.points()} on fresh "
        f"ones; under attack {there.points()} and {fresh_there.points()}; n = {fresh_there.n}, "
        f"{queries} queries"
    )
    findings = []
    if here.certain and _less(here, fresh_here, 0.0) > 0:
        findings.append(_told("clean accuracy", base, here, fresh_here))
    exposure = ""
    if there.certain and _less(there, fresh_there, ILLUSION_SHARE) > 0:
        exposure = _told("accuracy under attack", base, there, fresh_there)
    note(
        subject,
        _NAME,
        _WORDS,
        fresh_there.n,
        remark,
        *findings,
        cause=CAUSE if findings or exposure else "",
        exposure=exposure,
    )


def _told(what: str, base: EvaluatedModel, given: Gap, fresh: Gap) -> str:
    return (
        f"its gain in {what} over {base.name} is {given.points()} on the given rows and {fresh.points()} "
        "on rows that were never published"
    )


def _gains(subject: EvaluatedModel, base: EvaluatedModel) -> tuple[Gap, Gap]:
    clean = [_clean(model.folder / "premade") for model in (subject, base)]
    return Gap.of(*clean), Gap.of(subject.survival.active, base.survival.active)


def _fresh_gains(bench: EvaluationSetup, subject: EvaluatedModel, base: EvaluatedModel) -> tuple[Gap, Gap]:
    attacked = [_attacked(bench, model) for model in (subject, base)]
    clean = [_clean(_folder(model) / "attack") for model in (subject, base)]
    return Gap.of(*clean), Gap.of(*attacked)


def _attacked(bench: EvaluationSetup, model: EvaluatedModel) -> Flags:
    """Attacked once: the base's run is there already when the next model is compared with it."""
    assert model.never_published is not None
    rows = sum(1 for _ in islice(model.never_published, _MOST))
    aside = dataclasses.replace(model, data=model.never_published, folder=_folder(model))
    return dataclasses.replace(bench, rows=rows).attack(
        aside, aside.facing, aside.attack_run, title="attack on rows that were never published"
    )


def _folder(model: EvaluatedModel) -> Path:
    return model.folder / "fresh-rows"


def _clean(folder: Path) -> Flags:
    return {
        result.key: None if result.outcome == "error" else decided(result.probs) == result.label
        for result in read_results(folder)
    }


def _less(given: Gap, fresh: Gap, share: float) -> float:
    """Lower end of the 99 % interval of what is missing on fresh rows, beyond this share of the gain.

    The two samples are independent: each end's distance from its middle adds up in squares.
    """
    middle = (1 - share) * given.value - fresh.value
    return middle - _WIDER * math.hypot((1 - share) * (given.value - given.low), fresh.high - fresh.value)


CHECK = IllusionCheck(
    name=_NAME,
    summary="compares the gain with that on rows that were never published (--fresh)",
    place=80,
    run=run_fresh_rows,
)
