"""What an attack did to the outputs of a victim that writes: BLEU and chrF before and after."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from unfooled.core.result import REFERENCE, Result
from unfooled.metrics.bleu import METRICS, ScoreChange, compare


class Outputs(NamedTuple):
    """An example's output before and after the attack, and what a person wrote."""

    before: str
    after: str
    reference: str

    @classmethod
    def of(cls, result: Result) -> Outputs:
        return cls(result.output, result.perturbed_output, dict(result.fields).get(REFERENCE, ""))


def compare_outputs(results: Iterable[Result]) -> tuple[ScoreChange, ...]:
    """BLEU and chrF of all outputs that have a reference, with their intervals; none where no one has."""
    outputs = [Outputs.of(result) for result in results if result.outcome != "error"]
    rows = [row for row in outputs if row.reference]
    if not rows:
        return ()
    before, after, references = zip(*rows, strict=True)
    return tuple(compare(before, after, references, metric) for metric in METRICS)
