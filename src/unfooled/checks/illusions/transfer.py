"""Transfer: texts that fooled the undefended and the retuned model, shown to this one."""

from __future__ import annotations

from collections.abc import Sequence

from unfooled.checks.illusions.attacking import Bench, Subject
from unfooled.checks.illusions.checks import IllusionCheck, note, unneeded
from unfooled.checks.replay import Sample


def run_transfer(bench: Bench, subject: Subject, others: Sequence[Subject]) -> None:
    """Texts that fooled the undefended and the retuned model, shown to this one."""
    for other in others:
        words = f"samples made on {other.name}"
        name = f"transfer from {other.name}"
        made = {one.key: one for one in other.results() if one.outcome == "success"}
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
            if example.key in made and subject.standing.active.get(example.key)
        ]
        folder = subject.folder / "checks" / f"transfer-{other.name}"
        found = bench.shown(subject, samples, folder, title=name)
        if found:
            note(subject, name, words, found)
        else:
            unneeded(subject, name, words, "no sample of it belongs to an example that survived")


CHECK = IllusionCheck(
    name="transfer",
    summary="shows survivors the texts that fooled the other models",
    place=40,
    run=run_transfer,
)
