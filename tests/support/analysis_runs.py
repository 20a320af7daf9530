"""Run files made by hand, for tests of the analysis."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from unfooled.core.result import Outcome, Result
from unfooled.core.victim import Victim
from unfooled.runs.file import RunFile
from unfooled.text import Text


def changed(text: Text, key: int = 0, outcome: Outcome = "success", label: int = 1) -> Result:
    """What an attack that ended with `text` would leave."""
    return Result(
        key=key,
        outcome=outcome,
        label=label,
        fields=text.fields,
        field=text.field,
        perturbed=text.string,
        probs=(0.1, 0.9) if outcome != "skipped" else (0.8, 0.2),
        perturbed_probs=(0.8, 0.2) if outcome != "failure" else (0.4, 0.6),
        edits=tuple(text.edits()),
        words=len(text.root.words),
    )


def write_run(path: Path, victim: Victim, results: Sequence[Result]) -> Path:
    header = {
        "identity": {"victim": victim.fingerprint(), "labels": list(victim.labels)},
        "environment": {"attack": "by-hand@test", "victim": victim.name, "data": "toy"},
    }
    with RunFile.open(path, header) as file:
        for result in results:
            file.add(result)
    return path
