"""Attacking a model in many guises, and judging what came out by the model itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from unfooled.checks.illusions.diagnosis import Gradients, Looks
from unfooled.checks.illusions.survivors import CheckResult, Flags, Survival
from unfooled.checks.illusions.wrappers import Averaged, Votes
from unfooled.checks.replay import Sample, answers, replay
from unfooled.core.recipe import Recipe
from unfooled.core.result import Result, decided
from unfooled.core.session import Settings
from unfooled.core.victim import TextValue, Victim
from unfooled.data.dataset import Dataset
from unfooled.runs.attack import Observer, attack
from unfooled.runs.file import RunFile
from unfooled.runs.row_choice import take

if TYPE_CHECKING:
    from unfooled.runs.workers.where import Workers


class EvaluationObserver:
    """Told which stage begins; gives the observer that sees its examples. The default says nothing."""

    def stage(self, title: str) -> AbstractContextManager[Observer]:
        return nullcontext(Observer())

    def wait(self, title: str) -> AbstractContextManager[None]:
        """Something short begins that has no examples to count."""
        return nullcontext()


@dataclass(slots=True)
class EvaluatedModel:
    """One model under evaluation."""

    name: str
    victim: Victim
    data: Dataset  # with labels in the model's order
    folder: Path
    looks: Looks
    gradients: Gradients | None = None
    survival: Survival = field(default_factory=lambda: Survival({}))
    checks: list[CheckResult] = field(default_factory=list)
    defended: bool = True  # and neither the base nor the control, which others are compared with
    untouched: bytes | None = None  # a copy made before the first question; see `fresh_process.py`
    never_published: Dataset | None = None  # rows that nobody can have learned by heart

    @property
    def attack_run(self) -> Path:
        return self.folder / "attack"

    @property
    def facing(self) -> Victim:
        """What an attacker meets who asks once. A model that is random by nature is heard once per text."""
        if self.looks.chance in ("by nature", "by batch"):
            return Averaged(self.victim)
        return self.victim

    def results(self) -> list[Result]:
        return read_results(self.attack_run)


@dataclass(frozen=True, kw_only=True)
class EvaluationSetup:
    """What all attacks of an evaluation share."""

    recipe: Recipe
    settings: Settings
    rows: int  # that are read; see `row_choice.py`
    first: bool = False  # the first rows, not a sample
    workers: int | Workers = 1
    averages: tuple[int, ...] = (4, 16)
    draws: int = 15
    watcher: EvaluationObserver = field(default_factory=EvaluationObserver)
    restart: bool = False

    def taken(self, data: Dataset, count: int) -> Dataset:
        """So many rows, chosen as for the attacks: more of them hold all of fewer."""
        return take(data, count, seed=self.settings.seed, first=self.first)

    def attack(
        self,
        subject: EvaluatedModel,
        victim: Victim,
        folder: Path,
        *,
        title: str,
        recipe: Recipe | None = None,
        keys: Collection[int] | None = None,
    ) -> Flags:
        """Attack `victim`, a guise of the subject; say which examples the subject still gets right."""
        with self.watcher.stage(f"{subject.name}: {title}") as observer:
            attack(
                victim,
                subject.data,
                recipe or self.recipe,
                out=folder,
                rows=self.rows,
                first=self.first,
                keys=keys,
                workers=self.workers,
                settings=self.settings,
                observer=observer,
                restart=self.restart,
            )
        return self.judged(subject, folder, keys=keys, same=victim is subject.facing)

    def judged(
        self,
        subject: EvaluatedModel,
        folder: Path,
        *,
        keys: Collection[int] | None = None,
        same: bool = False,
    ) -> Flags:
        """Which examples the subject gets right, as the final texts of a run read.

        A random model is asked in fresh draws, and most of them decide; so its attacker's luck counts for
        nothing. Any other is asked itself, unless the run asked it already (`same`).
        """
        results = [result for result in read_results(folder) if keys is None or result.key in keys]
        if subject.looks.random:
            return self.fresh(subject, results, folder)
        flags: Flags = {
            result.key: None if result.outcome == "error" else decided(result.perturbed_probs) == result.label
            for result in results
        }
        if not same:
            wrong = [result for result in results if flags[result.key] is False]
            said = answers(subject.victim, [value_of(result, result.perturbed) for result in wrong])
            for result in wrong:
                row = said[value_of(result, result.perturbed)]
                flags[result.key] = None if isinstance(row, Exception) else decided(row) == result.label
        return flags

    def fresh(self, subject: EvaluatedModel, results: list[Result], folder: Path) -> Flags:
        """The same texts in fresh draws; kept beside the run."""
        labels = subject.victim.labels
        samples = [
            Sample(
                result.key, labels[result.label], result.fields, result.field, result.perturbed, result.edits
            )
            for result in results
            if result.outcome != "error"
        ]
        flags: Flags = {result.key: None for result in results}
        return flags | self.shown(
            subject, samples, folder.with_name(f"{folder.name}-fresh"), title=f"{self.draws} fresh draws"
        )

    def shown(self, subject: EvaluatedModel, samples: list[Sample], folder: Path, *, title: str) -> Flags:
        """Show finished texts to the subject (to fresh draws of it, if it is random)."""
        if not samples:
            return {}
        victim: Victim = subject.victim
        if subject.looks.random:
            victim = Votes(victim, draws=self.draws)
        with self.watcher.stage(f"{subject.name}: {title}") as observer:
            replay(samples, victim, out=folder, name=title, observer=observer, restart=self.restart)
        keys = {sample.key for sample in samples}
        return {
            result.key: None if result.outcome == "error" else decided(result.perturbed_probs) == result.label
            for result in read_results(folder)
            if result.key in keys
        }


def read_results(folder: Path) -> list[Result]:
    with closing(RunFile.read(folder)) as file:
        return list(file.results())


def counts(found: Mapping[int, bool | None]) -> int:
    return sum(right is None for right in found.values())


def value_of(result: Result, edited: str) -> TextValue:
    """The row as a victim reads it, with this content in the field that attacks edit."""
    texts = [content for _, content in result.fields]
    texts[result.field] = edited
    return texts[0] if len(texts) == 1 else tuple(texts)
