"""What machines measured about the texts that people judged, and how far both go together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unfooled.checks.illusions.diagnosis import spearman
from unfooled.errors import RunFileError
from unfooled.people.study.agreement import Votes
from unfooled.people.study.content import Item
from unfooled.people.study.file import StudyFile
from unfooled.people.study.protocols import Question
from unfooled.people.study.sampling import identity_of
from unfooled.rates import correlation_interval
from unfooled.runs.file import RunFile

LEAST = 10  # fewer texts say nothing about a correlation

Measured = dict[str, dict[int, float]]  # measure → item → value


@dataclass(frozen=True, slots=True)
class Correlation:
    """Spearman's rank correlation between people's mean answer and an automatic measure."""

    question: str
    measure: str
    value: float
    low: float
    high: float
    n: int


def read_measures(study: StudyFile) -> tuple[Measured, tuple[str, ...]]:
    """What the attacks wrote down, and what `unfooled measure` added to the runs since."""
    found: Measured = {}
    adversarial = [item for item in study.items if item.kind == "adversarial"]
    for item in adversarial:
        for name, value in item.facts.items():
            found.setdefault(name, {})[item.number] = value
    notices = []
    for number, source in enumerate(study.sources):
        own = [item for item in adversarial if item.sources == (number,)]
        try:
            with closing(RunFile.read(Path(source.path))) as file:
                if identity_of(file) != source.identity:
                    raise RunFileError("it was replaced by another run")
                for name in file.measures():
                    values = file.measured(name)
                    for item in own:
                        if item.example in values:
                            found.setdefault(name, {})[item.number] = values[item.example]
        except RunFileError as error:
            notices.append(
                f"the run {source.name} is not where it was ({error.cause}); its measures are left out"
            )
    return found, tuple(notices)


def correlate(
    items: Sequence[Item], questions: Sequence[Question], votes: Mapping[str, Votes], measured: Measured
) -> Iterator[Correlation]:
    """For every question that has an order: scales, and the share of right classes."""
    labels = {item.number: item.label for item in items}
    for question in questions:
        if question.kind == "preference":
            continue
        for name, values in measured.items():
            pairs = [
                (value, _mean(question, votes[question.id][item], labels[item]))
                for item, value in values.items()
                if item in labels and votes[question.id].get(item)
            ]
            if len(pairs) >= LEAST:
                yield _correlation(question.id, name, np.array(pairs, dtype=np.float64))


def _mean(question: Question, given: Mapping[int, int], label: int) -> float:
    values = list(given.values())
    return (values.count(label) if question.kind == "label" else sum(values)) / len(values)


def _correlation(question: str, measure: str, pairs: np.ndarray) -> Correlation:
    value = spearman(pairs[:, 0], pairs[:, 1])
    if value is None:
        return Correlation(question, measure, math.nan, math.nan, math.nan, len(pairs))
    return Correlation(question, measure, value, *correlation_interval(value, len(pairs)), len(pairs))
