"""What people answered, for others to compute with: as a table, and as judgements to fit a judge on."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from unfooled.errors import DataError, RunFileError
from unfooled.files import write_table, write_whole
from unfooled.people.study.content import Fields, Item
from unfooled.people.study.figures import source_name
from unfooled.people.study.file import StudyFile
from unfooled.people.study.protocols import NEITHER, STEPS, Question
from unfooled.people.study.sampling import identity_of
from unfooled.runs.file import RunFile

COLUMNS = ("annotator", "item", "kind", "source", "example", "true_class", "question", "value", "meaning")


def write_answers(study: StudyFile, path: Path) -> int:
    """One row per answer, `value` as it is kept and `meaning` in words; returns how many."""
    kinds = {question.id: question.kind for question in study.protocol.questions}
    rows = []
    for answer in study.answers():
        item = study.items[answer.item]
        names = [source_name(study, number) for number in item.sources]
        meaning = str(answer.value)
        if kinds[answer.question] == "label":
            meaning = study.labels[answer.value]
        elif kinds[answer.question] == "preference":
            meaning = "no difference" if answer.value == NEITHER else (names * 2)[answer.value]
        true = study.labels[item.label] if item.label >= 0 else ""
        rows.append(
            (
                answer.annotator,
                answer.item,
                item.kind,
                " / ".join(names),
                item.example,
                true,
                answer.question,
                answer.value,
                meaning,
            )
        )
    try:
        write_table(path, COLUMNS, rows)
    except OSError as error:
        raise RunFileError(
            f"{path}: cannot be written ({error.strerror or error})", "choose another path"
        ) from error
    return len(rows)


FLUENT, SAME_MEANING = ("fluency", "naturalness"), ("meaning",)  # ids of questions that a judge learns from


def write_judgements(study: StudyFile, path: Path, *, without: Sequence[int] = ()) -> int:
    """One line per attacked text that people judged, in the form of `unfooled judge fit`; returns how many.

    Who answers above the middle of the scale finds it fluent; who gives the true class (or, where none was
    asked, finds the meaning the same) finds its label kept. `without` leaves annotators out.
    """
    answers: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for answer in study.answers():
        if answer.annotator not in without:
            answers[answer.item][answer.question].append(answer.value)
    attacked = [item for item in study.items if item.kind == "adversarial" and item.number in answers]
    originals = _originals(study, attacked)
    lines = []
    for item in attacked:
        verdicts = _verdicts(study.protocol.questions, item, answers[item.number])
        if verdicts and item.number in originals:
            before, after = originals[item.number], _edited(item.texts[-1])
            lines.append(json.dumps({"before": before, "after": after, **verdicts}, ensure_ascii=False))
    if not lines:
        raise DataError(
            "this study holds no answer on class, fluency or meaning of an attacked text",
            "let people answer first; protocols that ask so are bae and breaking-bert",
        )
    try:
        write_whole(path, "".join(line + "\n" for line in lines))
    except OSError as error:
        raise RunFileError(
            f"{path}: cannot be written ({error.strerror or error})", "choose another path"
        ) from error
    return len(lines)


def _verdicts(
    questions: Sequence[Question], item: Item, given: Mapping[str, Sequence[int]]
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for question in questions:
        values = given.get(question.id, ())
        if not values:
            continue
        high = sum(value > (STEPS + 1) // 2 for value in values) / len(values)
        if question.kind == "label":
            found["label_kept"] = sum(value == item.label for value in values) / len(values)
        elif question.kind == "scale" and question.id in FLUENT:
            found["fluent"] = high
        elif question.kind == "scale" and question.id in SAME_MEANING:
            found.setdefault("label_kept", high)
        found["readers"] = len(values)
    return found if {"fluent", "label_kept"} & set(found) else {}


def _originals(study: StudyFile, items: Sequence[Item]) -> dict[int, str]:
    """The text before the attack: beside the attacked one, or in the run."""
    found = {item.number: _edited(item.texts[0]) for item in items if len(item.texts) > 1}
    for number, source in enumerate(study.sources):
        alone = [item for item in items if item.number not in found and item.sources == (number,)]
        if alone:
            found |= dict(_from_run(Path(source.path), source.identity, alone))
    return found


def _from_run(path: Path, identity: str, items: Sequence[Item]) -> Iterator[tuple[int, str]]:
    with closing(RunFile.read(path)) as run:
        if identity_of(run) != identity:
            raise RunFileError(
                f"{path}: another run lies there now, and the originals of this study were in the old one",
                "put the run back where it was",
            )
        before = {result.key: result.original for result in run.results(outcome="success")}
    yield from ((item.number, before[item.example]) for item in items if item.example in before)


def _edited(fields: Fields) -> str:
    """The field that attacks edit: the last."""
    return fields[-1][1]
