"""Show texts that were made against one model to another: pre-made adversarial samples, scored again.

Samples come from a run, or from its export as JSON lines, which anyone can make, mail and replay. What the
other model says is a run file as well: `success` means that the sample fools it, too; `skipped` that it was
wrong without the edit, or that the row has no sample.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import unfooled
from unfooled.core.result import NO_CLASS, Example, Outcome, Result, decided
from unfooled.core.victim import Probabilities, TextValue, Victim
from unfooled.core.victim_oracle import DECIMALS, validate
from unfooled.data.labels import match_labels
from unfooled.errors import DataError, UserError, VictimError
from unfooled.runs.attack import Observer, Run, run_folder
from unfooled.runs.file import RunFile
from unfooled.runs.workers.portable import SentVictim
from unfooled.runs.workers.portions import DoPortion, PortionJob
from unfooled.runs.workers.where import Workers
from unfooled.text import Edit, Text
from unfooled.victims.loading import GivenVictim, as_victim

_PORTION = 500


@dataclass(frozen=True, slots=True)
class Sample:
    """A text and what became of it. `perturbed` equals the original where there is no sample."""

    key: int
    label: str  # name of the true class
    fields: tuple[tuple[str, str], ...]
    field: int
    perturbed: str
    edits: tuple[Edit, ...] = ()
    fooled: bool = False  # the model that it was made against

    @property
    def made(self) -> bool:
        return self.perturbed != self.fields[self.field][1]

    def value(self, *, edited: bool) -> TextValue:
        texts = [content for _, content in self.fields]
        if edited:
            texts[self.field] = self.perturbed
        return texts[0] if len(texts) == 1 else tuple(texts)

    @classmethod
    def of(cls, example: Example, label: str) -> Sample:
        """The unedited text."""
        text = example.text()
        return cls(example.key, label, text.fields, text.field, text.string)


def read_samples(source: str | Path) -> list[Sample]:
    """Samples of a run's folder, or of a file that `unfooled export` wrote as .jsonl (.gz)."""
    path = Path(source).expanduser()
    if path.name.lower().removesuffix(".gz").endswith((".jsonl", ".ndjson")):
        return list(_from_lines(path))
    with closing(RunFile.read(path)) as file:
        names = file.labels
        return [
            Sample(
                key=result.key,
                label=names[result.label] if result.label < len(names) else str(result.label),
                fields=result.fields,
                field=result.field,
                perturbed=result.perturbed,
                edits=result.edits,
                fooled=result.outcome == "success",
            )
            for result in file.results()
            if result.outcome != "error"
        ]


def fooling_texts(path: Path, labels: tuple[str, ...]) -> list[tuple[TextValue, int]]:
    """Texts that fooled the model they were made on, with their true class in the order of `labels`."""
    found: list[tuple[TextValue, int]] = []
    for sample in read_samples(path):
        if sample.fooled and sample.made:
            if sample.label not in labels:
                raise DataError(
                    f"{path}: the class {sample.label!r} is none of the model's ({', '.join(labels)})",
                    "take samples made on a model with the same classes",
                )
            found.append((sample.value(edited=True), labels.index(sample.label)))
    return found


def replay(
    samples: Run | str | Path | Iterable[Sample],
    victim: GivenVictim,
    *,
    out: str | Path,
    label_map: Mapping[str, str] | None = None,
    name: str = "",
    observer: Observer | None = None,
    restart: bool = False,
    workers: int | Workers = 1,
) -> Run:
    """Let `victim` judge every sample, before and after its edits. The same call again goes on.

    From a run or a file only those count that fooled their model; given as objects, all are scored. A row
    whose text changed since an earlier call is scored anew.

    Example:

        >>> run = unfooled.replay("runs/x", "fake", out="runs/again")
        >>> run.summary().accuracy_under_attack.value
        0.0
    """
    victim = as_victim(victim)
    workers = Workers.of(workers)
    workers.connect()
    if isinstance(samples, Run | str | Path):
        name = name or str(samples.path if isinstance(samples, Run) else samples)
        with run_folder(samples) as source:
            samples = [sample for sample in read_samples(source) if sample.fooled]
        if not samples:
            raise DataError(
                f"{name}: holds no sample that fooled its model", "give a run with successes, or its export"
            )
    chosen = sorted(samples, key=lambda sample: sample.key)
    names = list(dict.fromkeys(sample.label for sample in chosen))
    classes = match_labels(names, victim.labels, label_map=label_map)
    observer = observer or Observer()
    header = {
        "identity": {"replay": 1, "victim": victim.fingerprint(), "labels": list(victim.labels)},
        "environment": {
            "unfooled": unfooled.__version__,
            "attack": f"replay of {name or 'samples'}",
            "victim": victim.name,
            "data": name or "samples",
        },
    }
    with RunFile.open(Path(out), header, restart=restart) as file:
        open_ = [list(_unscored(portion, file)) for portion in _portions(chosen)]
        observer.started(len(chosen), len(chosen) - sum(map(len, open_)))
        for result in _all_scored(open_, classes, victim, workers):
            file.add(result)
            observer.finished(result)
    return Run(Path(out))


def _all_scored(
    portions: Sequence[list[Sample]], classes: Mapping[str, int], victim: Victim, workers: Workers
) -> Iterator[Result]:
    if workers.in_this_process:
        for portion in portions:
            yield from _scored(portion, classes, victim)
        return
    opens = partial(_open, workers.sent(victim), classes)
    job = PortionJob(opens, partial(_lost, classes), window=_PORTION)
    yield from workers.run(job, chain.from_iterable(portions), remaining=sum(map(len, portions)))


def _open(sent: SentVictim, classes: Mapping[str, int]) -> DoPortion:
    return partial(_scored, classes=classes, victim=sent())


def _lost(classes: Mapping[str, int], sample: Sample, cause: str) -> Result:
    return _result(sample, classes[sample.label], VictimError(cause), ())


def answers(victim: Victim, texts: Sequence[TextValue]) -> dict[TextValue, tuple[float, ...] | Exception]:
    """What the victim says of each distinct text; a text that it chokes on has its exception."""
    found: dict[TextValue, tuple[float, ...] | Exception] = {}

    def ask(items: list[TextValue]) -> None:
        try:
            scores = validate(victim.predict(items), len(items), victim.labels, victim.name)
        except Exception as error:
            if getattr(error, "fatal", False) or (
                isinstance(error, UserError) and not isinstance(error, VictimError)
            ):
                raise
            if len(items) == 1:
                found[items[0]] = error
                return
            middle = len(items) // 2
            ask(items[:middle])
            ask(items[middle:])
        else:
            found.update(zip(items, _rows(scores), strict=True))

    distinct = list(dict.fromkeys(texts))
    for start in range(0, len(distinct), max(1, victim.batch_size)):
        ask(distinct[start : start + max(1, victim.batch_size)])
    return found


def _rows(scores: Probabilities) -> list[tuple[float, ...]]:
    return [tuple(row) for row in scores.round(DECIMALS).clip(0.0, 1.0).tolist()]


def _portions(samples: Sequence[Sample]) -> Iterator[list[Sample]]:
    source = iter(samples)
    while portion := list(islice(source, _PORTION)):
        yield portion


def _unscored(portion: list[Sample], file: RunFile) -> Iterator[Sample]:
    """Samples without a result, or whose result is of another text, or an error."""
    span = range(portion[0].key, portion[-1].key + 1)
    done = {
        result.key: (result.fields, result.field, result.perturbed)
        for result in file.results(keys=span)
        if result.outcome != "error"
    }
    return (
        sample
        for sample in portion
        if done.get(sample.key) != (sample.fields, sample.field, sample.perturbed)
    )


def _scored(portion: list[Sample], classes: Mapping[str, int], victim: Victim) -> Iterator[Result]:
    texts = [sample.value(edited=edited) for sample in portion for edited in (False, True)]
    said = answers(victim, texts)
    for sample in portion:
        before, after = said[sample.value(edited=False)], said[sample.value(edited=True)]
        yield _result(sample, classes[sample.label], before, after)


def _result(
    sample: Sample, label: int, before: tuple[float, ...] | Exception, after: tuple[float, ...] | Exception
) -> Result:
    outcome: Outcome
    if isinstance(before, Exception) or isinstance(after, Exception):
        problem = before if isinstance(before, Exception) else after
        outcome, note = "error", f"{type(problem).__name__}: {problem}"
        before = after = ()
    elif decided(before) != label:
        wrong = "abstained" if decided(before) == NO_CLASS else "was wrong"
        outcome, note = "skipped", f"the victim {wrong} before the attack"
    elif not sample.made:
        outcome, note = "skipped", "there is no sample of this row"
    else:
        said = decided(after)
        outcome = "failure" if said == label else "abstained" if said == NO_CLASS else "success"
        note = ""
    fields = dict(sample.fields)
    return Result(
        key=sample.key,
        outcome=outcome,
        label=label,
        fields=sample.fields,
        field=sample.field,
        perturbed=sample.perturbed,
        probs=before,
        perturbed_probs=after,
        edits=sample.edits,
        words=len(Text(fields, edit=sample.fields[sample.field][0]).words),
        queries=2 if sample.made else 1,
        asked=2 if sample.made else 1,
        note=note,
    )


# -- files of others -------------------------------------------------------------------------------------


def _from_lines(path: Path) -> Iterator[Sample]:
    opened: Callable[..., Any] = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    sample = _from_line(line, number, path)
                    if sample is not None:
                        yield sample
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})", "check the path") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not UTF-8 text ({error.reason})", "export the run again") from error


def _from_line(line: str, number: int, path: Path) -> Sample | None:
    try:
        row = json.loads(line)
        if row.get("outcome") == "error":
            return None
        text, perturbed = str(row["text"]), str(row["perturbed_text"])
        label = row.get("label_name")
        label = str(row["label"] if label in (None, "") else label)
        edits = tuple(
            Edit(*(stored[field] for field in Edit._fields)) for stored in row.get("edits") or () if stored
        )
        fields, field = _fields(row, text)
        fooled = row.get("outcome", "success") == "success" and text != perturbed
        return Sample(int(row.get("key", number - 1)), label, fields, field, perturbed, edits, fooled)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        what = f"there is no {error}" if isinstance(error, KeyError) else str(error)
        raise DataError(
            f"{path}, line {number}: this is no sample ({what})",
            'each line has "text", "perturbed_text" and "label_name", as unfooled export writes it',
        ) from None


def _fields(row: Mapping[str, Any], text: str) -> tuple[tuple[tuple[str, str], ...], int]:
    """A pair's fields stand between `label_name` and `text`; the edited one reads like `text`."""
    names = list(row)
    low = names.index("label_name") + 1 if "label_name" in names else len(names)
    between = names[low : names.index("text")] if "text" in names else []
    fields = tuple((name, str(row[name])) for name in between)
    places = [place for place, (_, content) in enumerate(fields) if content == text]
    if not places:
        return (("text", text),), 0
    return tuple((name.removeprefix("field_"), content) for name, content in fields), places[-1]
