"""Every answer of a study as a table, for those who want to compute something else."""

from __future__ import annotations

from pathlib import Path

from unfooled.errors import RunFileError
from unfooled.files import write_table
from unfooled.people.study.figures import source_name
from unfooled.people.study.file import StudyFile
from unfooled.people.study.protocols import NEITHER

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
