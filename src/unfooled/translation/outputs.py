"""What an attack did to the outputs of a victim that writes: BLEU and chrF, and where its attention went."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from unfooled.core.result import Result
from unfooled.core.victim import Victim
from unfooled.runs.file import RunFile
from unfooled.runs.remarks import write_remark
from unfooled.translation.attempt import REFERENCE
from unfooled.translation.bleu import METRICS, Compared, compare

ATTENTION = "attention"  # the remark that holds maps of a few examples
MAPPED = 6  # examples whose attention is kept for the report
_LONGEST = 40  # words of an example that still makes a readable picture


class Outputs(NamedTuple):
    """One example's output before and after, and what a person wrote."""

    before: str
    after: str
    reference: str

    @classmethod
    def of(cls, result: Result) -> Outputs:
        return cls(result.output, result.perturbed_output, dict(result.fields).get(REFERENCE, ""))


def compare_outputs(found: Iterable[Outputs]) -> tuple[Compared, ...]:
    """BLEU and chrF of all outputs that have a reference, with paired bootstrap; none where no one has."""
    rows = [one for one in found if one.reference]
    if not rows:
        return ()
    before, after, references = zip(*rows, strict=True)
    return tuple(compare(before, after, references, metric) for metric in METRICS)


def keep_attention(run: Path, victim: Victim) -> None:
    """Write attention maps of a few examples into the run, successes first, for its report."""
    look: Any = getattr(victim, "attention", None)
    if look is None or "attention" not in victim.capabilities:
        return
    with closing(RunFile.read(run)) as file:
        results = chain(file.results(outcome="success"), file.results(outcome="failure"))
        short = (one for one in results if one.edits and one.words <= _LONGEST and one.perturbed_output)
        chosen = list(islice(short, MAPPED))
    kept = []
    for one in chosen:
        maps = look([(one.original, one.output), (one.perturbed, one.perturbed_output)])
        kept.append({"key": one.key, "before": _plain(maps[0]), "after": _plain(maps[1])})
    if kept:
        write_remark(run, ATTENTION, kept)


def _plain(found: Any) -> dict[str, Any]:
    weights = [[round(float(value), 3) for value in row] for row in found.weights]
    return {"read": list(found.read), "written": list(found.written), "weights": weights}
