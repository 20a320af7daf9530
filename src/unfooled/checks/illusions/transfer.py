"""Transfer: texts that fooled the undefended and the retuned model, shown to this one."""

from __future__ import annotations

from collections.abc import Sequence

from unfooled.checks.illusions.attacking import EvaluatedModel, EvaluationSetup
from unfooled.checks.illusions.checks import IllusionCheck, hidden_way, note, unneeded
from unfooled.checks.replay import Sample


def run_transfer(bench: EvaluationSetup, subject: EvaluatedModel, others: Sequence[EvaluatedModel]) -> None:
    """Texts that fooled the undefended and the retuned model, shown to this one."""
    for other in others:
        words = f"samples made on {other.name}"
        name = f"transfer from {other.name}"
        made = {result.key: result for result in other.results() if result.outcome == "success"}
        samples = [
            Sample(
                example.key,
                subject.victim.labels[example.label],
                made[example.key].fields,
                made[example.key].field,
                made[example.key].perturbed,
                made[example.key].edits,
            )
            for example in subject.data
            if example.key in made and subject.survival.active.get(example.key)
        ]
        folder = subject.folder / "checks" / f"transfer-{other.name}"
        found = bench.shown(subject, samples, folder, title=name)
        if found:
            note(subject, name, words, found, cause=hidden_way(subject, found))
        else:
            unneeded(subject, name, words, "no sample of it belongs to an example that survived")


CHECK = IllusionCheck(
    name="transfer",
    summary="shows survivors the texts that fooled the other models",
    place=40,
    run=run_transfer,
)
