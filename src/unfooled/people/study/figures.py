"""What the answers of a study say, with intervals over the items."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from statistics import median
from typing import Any

from unfooled.metrics.summary import Mean
from unfooled.people.study.agreement import Agreement, Votes, agreement
from unfooled.people.study.content import ORIGINAL, Item
from unfooled.people.study.file import Answer, StudyFile
from unfooled.people.study.measures import Correlation, correlate, read_measures
from unfooled.people.study.protocols import NEITHER, STEPS, Question
from unfooled.people.study.readability import Readability, readability

ATTENTIVE = 0.5  # passes at least this share of the attention checks
PAUSE = 600.0  # seconds; a longer gap between two answers is no thinking time


@dataclass(frozen=True, slots=True)
class SourceFigures:
    """One attack, or the originals. Each item counts once: the mean of those who answered it."""

    name: str
    attack: str
    victim: str
    items: int
    accuracy: Mean  # share of people who give the true class
    majority: float  # share of items whose most frequent answer is the true class; a tie is none
    scales: Mapping[str, Mean]
    readability: Readability | None
    measures: Mapping[str, float]  # means of the automatic measures over the same items


@dataclass(frozen=True, slots=True)
class AnnotatorFigures:
    number: int
    answered: int  # items
    total: int
    checks_passed: int
    checks: int  # answered ones
    agrees: float  # share of class answers that equal what most others say
    distance: float  # mean distance of scale answers from the mean of the others
    seconds: float  # median between two items
    changed: int  # answers given anew after going back
    same: bool  # one and the same answer to every scale question
    attentive: bool


@dataclass(frozen=True, slots=True)
class Dispute:
    """An item that people answered differently."""

    item: int
    source: str
    question: str
    text: str
    answers: tuple[str, ...]
    spread: float  # 0 all alike, 1 as far apart as the question allows


@dataclass(frozen=True, slots=True)
class Figures:
    protocol: str
    paper: str
    labels: tuple[str, ...]
    annotators: tuple[AnnotatorFigures, ...]
    left_out: tuple[int, ...]
    sources: tuple[SourceFigures, ...]
    agreement: tuple[Agreement, ...]
    correlations: tuple[Correlation, ...]
    disputes: tuple[Dispute, ...]
    questions: tuple[Question, ...]
    notices: tuple[str, ...] = field(default=())

    @property
    def complete(self) -> int:
        """Annotators who answered everything."""
        return sum(annotator.answered == annotator.total for annotator in self.annotators)

    def to_dict(self) -> dict[str, Any]:
        plain: dict[str, Any] = _plain(asdict(self))
        return plain | {"complete": self.complete}


def read_figures(study: StudyFile, *, only_attentive: bool = False, disputed: int = 5) -> Figures:
    """All figures from the answers given so far."""
    answers = list(study.answers())
    people = tuple(_annotator(study, number, answers) for number in study.codes)
    left_out = tuple(person.number for person in people if not person.attentive) if only_attentive else ()
    votes = _votes(answers, set(left_out))
    judged = [item for item in study.items if item.kind != "check"]
    measured, notices = read_measures(study)
    questions = study.protocol.questions
    readable = readability(study.items, questions, votes)
    return Figures(
        protocol=study.protocol.name,
        paper=study.protocol.paper,
        labels=study.labels,
        annotators=people,
        left_out=left_out,
        sources=tuple(_source(study, number, votes, measured, readable) for number in _numbers(study)),
        agreement=tuple(
            agreement(
                question.id,
                {
                    item.number: votes[question.id][item.number]
                    for item in judged
                    if votes[question.id][item.number]
                },
                "ordinal" if question.kind == "scale" else "nominal",
            )
            for question in questions
        ),
        correlations=tuple(correlate(judged, questions, votes, measured)),
        disputes=tuple(_disputes(study, judged, votes)[:disputed]),
        questions=questions,
        notices=notices,
    )


def _votes(answers: Iterable[Answer], without: set[int]) -> dict[str, dict[int, dict[int, int]]]:
    """Question → item → annotator → answer."""
    found: dict[str, dict[int, dict[int, int]]] = defaultdict(lambda: defaultdict(dict))
    for answer in answers:
        if answer.annotator not in without:
            found[answer.question][answer.item][answer.annotator] = answer.value
    return found


def _numbers(study: StudyFile) -> list[int]:
    used = {number for item in study.items if item.kind != "check" for number in item.sources}
    return [*range(len(study.sources)), *([ORIGINAL] if ORIGINAL in used else [])]


def source_name(study: StudyFile, number: int) -> str:
    return "originals" if number == ORIGINAL else study.sources[number].name


def _source(
    study: StudyFile,
    number: int,
    votes: Mapping[str, Votes],
    measured: Mapping[str, Mapping[int, float]],
    readable: Mapping[int, Readability],
) -> SourceFigures:
    own = [
        item for item in study.items if item.kind in ("adversarial", "original") and item.sources == (number,)
    ]
    right: list[float] = []
    most: list[bool] = []
    scales: dict[str, Mean] = {}
    for question in study.protocol.questions:
        given = [(item, list(votes[question.id].get(item.number, {}).values())) for item in own]
        given = [(item, values) for item, values in given if values]
        if question.kind == "scale":
            scales[question.id] = Mean.of([sum(values) / len(values) for _, values in given], (1.0, STEPS))
        elif question.kind == "label":
            right = [values.count(item.label) / len(values) for item, values in given]
            most = [majority(values) == item.label for item, values in given]
    source = None if number == ORIGINAL else study.sources[number]
    return SourceFigures(
        name=source_name(study, number),
        attack=source.attack if source else "",
        victim=source.victim if source else "",
        items=len(own),
        accuracy=Mean.of(right, (0.0, 1.0)),
        majority=sum(most) / len(most) if most else math.nan,
        scales=scales,
        readability=readable.get(number),
        measures={
            name: sum(found) / len(found)
            for name, values in measured.items()
            if (found := [values[item.number] for item in own if item.number in values])
        },
    )


def majority(values: Sequence[int]) -> int | None:
    """The most frequent answer; None where two are equally frequent."""
    counts = Counter(values).most_common(2)
    return None if not counts or (len(counts) == 2 and counts[0][1] == counts[1][1]) else counts[0][0]


def _annotator(study: StudyFile, number: int, answers: Sequence[Answer]) -> AnnotatorFigures:
    mine = [answer for answer in answers if answer.annotator == number]
    kinds = {question.id: question.kind for question in study.protocol.questions}
    others: dict[tuple[int, str], list[int]] = defaultdict(list)
    for answer in answers:
        if answer.annotator != number:
            others[answer.item, answer.question].append(answer.value)
    agrees, distances, scale_answers = [], [], []
    checks = [item for item in study.items if item.kind == "check"]
    own = {(answer.item, answer.question): answer.value for answer in mine}
    for answer in mine:
        if study.items[answer.item].kind == "check":
            continue
        theirs = others[answer.item, answer.question]
        if kinds[answer.question] == "scale":
            scale_answers.append(answer.value)
            if theirs:
                distances.append(abs(answer.value - sum(theirs) / len(theirs)))
        elif theirs and (most := majority(theirs)) is not None:
            agrees.append(answer.value == most)
    seen = [item for item in checks if all((item.number, name) in own for name in item.expected)]
    passed = sum(
        all(own[item.number, name] == value for name, value in item.expected.items()) for item in seen
    )
    first: dict[int, float] = {}
    for answer in mine:
        first[answer.item] = max(first.get(answer.item, 0.0), answer.first)
    times = sorted(first.values())
    gaps = [b - a for a, b in pairwise(times) if b - a <= PAUSE]
    return AnnotatorFigures(
        number=number,
        answered=study.progress(number).done,
        total=len(study.orders[number]),
        checks_passed=passed,
        checks=len(seen),
        agrees=sum(agrees) / len(agrees) if agrees else math.nan,
        distance=sum(distances) / len(distances) if distances else math.nan,
        seconds=median(gaps) if gaps else math.nan,
        changed=sum(answer.changes > 0 for answer in mine),
        same=len(scale_answers) >= 10 and len(set(scale_answers)) == 1,
        attentive=not seen or passed / len(seen) >= ATTENTIVE,
    )


def _disputes(study: StudyFile, judged: Sequence[Item], votes: Mapping[str, Votes]) -> list[Dispute]:
    """The widest first; items on which all agree are not among them."""
    found = []
    for item in judged:
        for question in study.protocol.part(item.view).questions:
            given = votes[question.id].get(item.number, {})
            values = [given[annotator] for annotator in sorted(given)]
            if len(set(values)) < 2:
                continue
            found.append(
                Dispute(
                    item=item.number,
                    source=" / ".join(source_name(study, number) for number in item.sources),
                    question=question.id,
                    text=" / ".join(content for _, content in item.texts[-1]),
                    answers=tuple(_told(question, item, value, study) for value in values),
                    spread=spread(question, values),
                )
            )
    return sorted(found, key=lambda dispute: (-dispute.spread, dispute.item))


def spread(question: Question, values: Sequence[int]) -> float:
    """Of a scale the range it covers; else the share of pairs that differ, of the most that can."""
    if question.kind == "scale":
        return (max(values) - min(values)) / (STEPS - 1)
    n = len(values)
    same = sum(count * (count - 1) for count in Counter(values).values())
    return 1 - same / (n * (n - 1))


def _told(question: Question, item: Item, value: int, study: StudyFile) -> str:
    if question.kind == "label":
        return study.labels[value]
    if question.kind == "scale":
        return str(value)
    return "no difference" if value == NEITHER else source_name(study, item.sources[value])


def _plain(value: Any) -> Any:
    """Ready for JSON: no nan, no tuples."""
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
