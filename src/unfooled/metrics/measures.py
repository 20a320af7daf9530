"""A second pass over a finished run: what the found texts are like, by models that the attack did not use.

Each measure is one number per adversarial text, kept in the run file beside the results, so that a report
can ask how many successes stay similar, fluent and grammatical. Nothing is attacked again; what was measured
before is not measured twice.

    similarity:ENCODER   cosine of the edited field before and after, whole texts
    perplexity:MODEL     perplexity after divided by perplexity before
    grammar:CHECKER      mistakes after minus mistakes before; harper, or link-grammar where it is installed
    edit-distance        character edits, as a share of the original's length
    picture:FONT         share of pixels that differ when a browser draws both texts
    same-pos:TAGGER      share of the replaced words that keep their part of speech
    changed-pos:TAGGER   how many words were replaced or deleted; and how many of each part of speech, kept
                         as measures of their own, such as changed-pos:TAGGER/NOUN

A measure is one file with a `Measure` in it and one line in the registry (kind `measure`), or an entry point
`unfooled.measure`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn, TypeAlias

from unfooled.core.result import Result, decided
from unfooled.device import computes
from unfooled.errors import ResourceError, UnfooledError
from unfooled.plugins import registry, unknown_name
from unfooled.resources import store
from unfooled.runs import sealed
from unfooled.runs.attack import Run, run_folder
from unfooled.runs.file import MEASURES, RunFile, _explained
from unfooled.runs.lock import Lock
from unfooled.runs.workers.portions import PortionJob
from unfooled.runs.workers.where import Workers

_BATCH = 256

# Answers of the measure's oracle in order; equal questions reach it once.
Ask: TypeAlias = Callable[[Sequence[Any]], list[Any]]
MeasureRow: TypeAlias = tuple[str, int, float]  # name, the example's key, value


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """`better` says which end a reader prefers; `oracle` is what it asks, or empty; `default` its variant.

    `values` gives one number for each result. A mapping is a number for each part of a text: its sum is the
    measure, and each part is kept as a measure of its own, NAME/PART.
    """

    name: str
    title: str
    better: Literal["high", "low"]
    values: Callable[[Ask, Sequence[Result]], Sequence[float | Mapping[str, float]]]
    oracle: str = ""
    default: str = ""


def all_measures() -> list[Measure]:
    return [registry.load("measure", name) for name in registry.names("measure")]


def described_measures() -> list[dict[str, str]]:
    """What each measure declares, for machines."""
    return [
        {
            "name": measure.name,
            "title": measure.title,
            "better": measure.better,
            "oracle": measure.oracle,
            "default": measure.default,
        }
        for measure in all_measures()
    ]


def help_table() -> str:
    """The measures, for `--list`."""
    lines = ["Measures:"]
    for measure in all_measures():
        variant = f":{measure.default}" if measure.default else ""
        lines.append(f"  {measure.name}{variant}: {measure.title} ({measure.better} is better)")
    return "\n".join(lines)


def parse_measure(name: str) -> tuple[Measure, str]:
    """`similarity` or `similarity:use` → the measure and its full name."""
    kind, _, variant = name.partition(":")
    if kind not in registry.names("measure"):
        raise unknown_name("measure", name, registry.names("measure"))
    measure: Measure = registry.load("measure", kind)
    variant = variant or measure.default
    return measure, f"{kind}:{variant}" if measure.oracle else kind


def before_and_after(ask: Ask, results: Sequence[Result]) -> list[tuple[Any, Any]]:
    """What the oracle says of each original and of what became of it."""
    answers = ask([text for result in results for text in (result.original, result.perturbed)])
    return [(answers[i], answers[i + 1]) for i in range(0, len(answers), 2)]


@computes
def measure(run: Run | str | Path, *names: str, device: str | None = None) -> dict[str, dict[int, float]]:
    """Measure what a run found and keep it in the run file; values by name and by the example's key.

    `names` are those that `unfooled measure` takes, such as `edit-distance` or `similarity:minilm`. A run
    in memory keeps the values there. `device` is where its models compute: auto, cpu, cuda, cuda:1, mps.

    Example:

        >>> found = unfooled.measure("runs/x", "edit-distance")
        >>> all(value > 0 for value in found["edit-distance"].values())
        True
    """
    with run_folder(run) as path:
        wanted = measure_run(path, names)
        with closing(RunFile.read(path)) as file:
            values = {name: file.measured(name) for name in file.measures()}
    if isinstance(run, Run) and run.held is not None:
        run.held.add_measures([(name, key, value) for name in values for key, value in values[name].items()])
    return {name: values.get(name, {}) for name in wanted}


def measure_run(
    run: Path,
    names: Sequence[str],
    *,
    progress: Callable[[int, int], None] = lambda done, total: None,
    workers: int | Workers = 1,
) -> list[str]:
    """Measure what the run has not measured yet; returns the full names."""
    workers = Workers.of(workers)
    workers.connect()
    wanted = [parse_measure(name) for name in dict.fromkeys(names)]
    for measure, full in wanted:
        if measure.oracle:
            _require(full.partition(":")[2])
    with closing(RunFile.read(run)) as file:
        path = file.path
        before = {full: set(file.measured(full)) for _, full in wanted}
        total = len(wanted) * sum(1 for _ in fallen(file))
    with writing_measures(path) as put:
        done = 0
        for _, full in wanted:
            with closing(RunFile.read(run)) as file:
                done += len(before[full])
                left = total // len(wanted) - len(before[full])
                new = (result for result in fallen(file) if result.key not in before[full])
                for measured in _measured(full, new, left, workers):
                    put([row for rows in measured for row in rows.rows])
                    done += len(measured)
                    progress(done, total)
    return [full for _, full in wanted]


class _Measured(NamedTuple):
    """What was measured of one text."""

    key: int
    rows: list[MeasureRow]


def _measured(full: str, results: Iterator[Result], left: int, workers: Workers) -> Iterator[list[_Measured]]:
    """Batches of what was measured."""
    if workers.in_this_process:
        measured = _open(full)
        while portion := list(islice(results, _BATCH)):
            yield measured(portion)
        return
    if left:
        job = PortionJob(partial(_open, full), _lost, window=_BATCH)
        found = workers.run(job, results, remaining=left)
        while batch := list(islice(found, _BATCH)):
            yield batch


def _open(full: str) -> Callable[[list[Result]], list[_Measured]]:
    measure, _ = parse_measure(full)
    ask = _opened(measure, full)
    return lambda results: [
        _Measured(result.key, _rows(full, result.key, value))
        for result, value in zip(results, measure.values(ask, results), strict=True)
    ]


def _lost(result: Result, cause: str) -> NoReturn:
    raise ResourceError(f"row {result.key} cannot be measured: {cause}", "leave this measure out")


@contextmanager
def writing_measures(path: Path) -> Iterator[Callable[[Sequence[MeasureRow]], None]]:
    """What puts (name, key, value) beside a run's results, whole batches or nothing; others wait."""
    lock = Lock.take(path)
    try:
        with _explained(path, reading=False), closing(sqlite3.connect(path, timeout=5.0)) as database:
            sealed.prepare(database)

            def put(rows: Sequence[MeasureRow]) -> None:
                with database:
                    database.execute("BEGIN IMMEDIATE")
                    sealed.put(database, MEASURES, rows)

            yield put
    finally:
        lock.release()


def fallen(file: RunFile) -> Iterator[Result]:
    """Texts that the model got right before the attack and wrong after it; of one that writes, successes."""
    if file.writes:
        yield from file.results(outcome="success")
        return
    for result in file.results():
        if result.outcome == "error" or decided(result.probs) != result.label:
            continue
        if decided(result.perturbed_probs) != result.label:
            yield result


def _require(variant: str) -> None:
    known = {resource.name: resource.present for resource in store.status()}
    if not known.get(variant, True):
        raise ResourceError(f"{variant} is not here yet", f"run: unfooled resources get {variant}")


def _opened(measure: Measure, full: str) -> Ask:
    if not measure.oracle:
        return _nobody
    oracle = registry.load("oracle", measure.oracle)(full.partition(":")[2])

    def ask(items: Sequence[Any]) -> list[Any]:
        distinct = list(dict.fromkeys(items))
        answers: dict[Any, Any] = {}
        for start in range(0, len(distinct), oracle.batch_size):
            portion = distinct[start : start + oracle.batch_size]
            answers.update(zip(portion, oracle(portion), strict=True))
        return [answers[item] for item in items]

    return ask


def _nobody(items: Sequence[Any]) -> list[Any]:
    raise UnfooledError("this measure declares no oracle to ask")


def _rows(full: str, key: int, value: float | Mapping[str, float]) -> list[MeasureRow]:
    if not isinstance(value, Mapping):
        return [(full, key, value)]
    parts = [(f"{full}/{part}", key, float(number)) for part, number in value.items()]
    return [(full, key, float(sum(value.values()))), *parts]
