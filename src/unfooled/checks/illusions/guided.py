"""A guided attack: another model's scores lead the search, this model's decision ends it."""

from __future__ import annotations

from collections.abc import Sequence

from unfooled.checks.illusions.attacking import EvaluatedModel, EvaluationSetup
from unfooled.checks.illusions.checks import IllusionCheck, hidden_way, note, unneeded
from unfooled.checks.illusions.wrappers import Averaged, Guided, Tempered
from unfooled.core.victim import Victim
from unfooled.data.labels import match_labels
from unfooled.errors import DataError


def run_guided(bench: EvaluationSetup, subject: EvaluatedModel, others: Sequence[EvaluatedModel]) -> None:
    """A search led by another model's scores, won where this model's decision falls."""
    if not others:
        unneeded(subject, "guided", "an attack led by another model", "there is no other model")
        return
    guide = others[0]
    name, words = f"guided by {guide.name}", f"an attack led by the scores of {guide.name}"
    keys = subject.survival.survivors()
    if not keys:
        unneeded(subject, name, words, "nothing survived so far")
        return
    try:
        match = match_labels(subject.victim.labels, guide.victim.labels)
    except DataError:
        unneeded(subject, name, words, "the classes of the two models have different names")
        return
    order = [match[label] for label in subject.victim.labels]
    inner: Victim = subject.facing
    if subject.looks.random:
        inner = Averaged(subject.victim, draws=max(bench.averages, default=1))
    victim = Guided(inner, Tempered(guide.facing, guide.looks.temperature), order)
    folder = subject.folder / "checks" / f"guided-{guide.name}"
    found = bench.attack(subject, victim, folder, title=name, keys=keys)
    note(subject, name, words, found, cause=hidden_way(subject, found))


CHECK = IllusionCheck(
    name="guided", summary="attacks survivors led by another model's scores", place=50, run=run_guided
)
