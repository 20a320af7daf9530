"""Where a translation model's attention went before and after an attack, kept in the run of the attack."""

from __future__ import annotations

from contextlib import closing
from itertools import chain, islice
from pathlib import Path
from typing import Any

from unfooled.core.result import ATTACKED
from unfooled.core.victim import Victim
from unfooled.runs.file import RunFile
from unfooled.runs.notes import write_remark

ATTENTION = "attention"  # the remark that holds maps of a few examples; the report's charts have this name
MAPPED = 6  # examples whose attention is kept for the report
_LONGEST = 40  # words of an example that still makes a readable picture


def keep_attention(run: Path, victim: Victim) -> None:
    """Write attention maps of a few examples into the run, successes first, for its report."""
    look: Any = getattr(victim, "attention", None)
    if look is None or "attention" not in victim.capabilities:
        return
    with closing(RunFile.read(run)) as file:
        results = chain.from_iterable(file.results(outcome=outcome) for outcome in ATTACKED)
        short = (
            result
            for result in results
            if result.edits and result.words <= _LONGEST and result.perturbed_output
        )
        chosen = list(islice(short, MAPPED))
    kept = []
    for result in chosen:
        maps = look([(result.original, result.output), (result.perturbed, result.perturbed_output)])
        kept.append({"key": result.key, "before": _plain(maps[0]), "after": _plain(maps[1])})
    if kept:
        write_remark(run, ATTENTION, kept)


def _plain(found: Any) -> dict[str, Any]:
    weights = [[round(float(value), 3) for value in row] for row in found.weights]
    return {"read": list(found.read), "written": list(found.written), "weights": weights}
