"""A second pass over a finished run: what the found texts are like, by models that the attack did not use.

Each measure is one number per adversarial text, kept in the run file beside the results, so that a report
can ask how many successes stay similar, fluent and grammatical. Nothing is attacked again; what was measured
before is not measured twice.

    similarity:ENCODER   cosine of the edited field before and after, whole texts
    perplexity:MODEL     perplexity after divided by perplexity before
    grammar:CHECKER      mistakes after minus mistakes before; harper, or link-grammar where it is installed
    edit-distance        character edits, as a share of the original's length
    same-pos:TAGGER      share of the replaced words that keep their part of speech
    changed-pos:TAGGER   how many words were replaced or deleted; and how many of each part of speech, kept
                         as measures of their own, such as changed-pos:TAGGER/NOUN
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from unfooled.attacks.parts.constraints import edit_distance
from unfooled.core.result import Result
from unfooled.errors import ResourceError
from unfooled.metrics.summary import decided
from unfooled.plugins import registry, unknown_name
from unfooled.resources import store
from unfooled.runs import sealed
from unfooled.runs.file import MEASURES, RunFile, _explained
from unfooled.runs.lock import Lock
from unfooled.text import Text

_BATCH = 256
CONTEXT = 4  # words on either side that the tagger sees


@dataclass(frozen=True, slots=True)
class Measure:
    """`better` says which end a reader prefers; `oracle` is what it asks, empty for none."""

    kind: str
    title: str
    better: Literal["high", "low"]
    oracle: str
    default: str = ""


KINDS = {
    one.kind: one
    for one in (
        Measure("similarity", "similarity of the whole texts", "high", "encode", "minilm"),
        Measure("perplexity", "perplexity, times that of the original", "low", "fluency", "trigram"),
        Measure("grammar", "mistakes added", "low", "grammar", "harper"),
        Measure("edit-distance", "characters edited, share", "low", ""),
        Measure(
            "same-pos", "replaced words that keep their part of speech", "high", "tag", "perceptron-tagger"
        ),
        Measure("changed-pos", "words replaced or deleted", "low", "tag", "perceptron-tagger"),
    )
}


def parse_measure(name: str) -> tuple[Measure, str]:
    """`similarity` or `similarity:use` → the measure and its full name."""
    kind, _, variant = name.partition(":")
    if kind not in KINDS:
        raise unknown_name("measure", name, sorted(KINDS))
    measure = KINDS[kind]
    variant = variant or measure.default
    return measure, f"{kind}:{variant}" if measure.oracle else kind


def measure_run(
    run: Path, names: Sequence[str], *, progress: Callable[[int, int], None] = lambda done, total: None
) -> list[str]:
    """Measure what the run has not measured yet; returns the full names."""
    wanted = [parse_measure(name) for name in dict.fromkeys(names)]
    for measure, full in wanted:
        if measure.oracle:
            _require(full.partition(":")[2])
    with closing(RunFile.read(run)) as file:
        path = file.path
        before = {full: set(file.measured(full)) for _, full in wanted}
        total = len(wanted) * sum(1 for _ in _fallen(file))
    lock = Lock.take(path)
    try:
        with _explained(path, reading=False), closing(sqlite3.connect(path, timeout=5.0)) as database:
            sealed.prepare(database)
            done = 0
            for measure, full in wanted:
                oracle = _open(measure, full)
                with closing(RunFile.read(run)) as file:
                    results = _fallen(file)
                    while batch := list(islice(results, _BATCH)):
                        new = [one for one in batch if one.key not in before[full]]
                        rows = _rows(measure, full, oracle, new)
                        with database:
                            database.execute("BEGIN IMMEDIATE")
                            sealed.put(database, MEASURES, rows)
                        done += len(batch)
                        progress(done, total)
    finally:
        lock.release()
    return [full for _, full in wanted]


def _fallen(file: RunFile) -> Iterator[Result]:
    """Texts that the model got right before the attack and wrong after it; of one that writes, successes."""
    if file.writes:
        yield from file.results(outcome="success")
        return
    for one in file.results():
        if one.outcome == "error" or decided(one.probs) != one.label:
            continue
        if decided(one.perturbed_probs) != one.label:
            yield one


def _require(variant: str) -> None:
    known = {one.name: one.present for one in store.status()}
    if not known.get(variant, True):
        raise ResourceError(f"{variant} is not here yet", f"run: unfooled resources get {variant}")


def _open(measure: Measure, full: str) -> Any:
    return registry.load("oracle", measure.oracle)(full.partition(":")[2]) if measure.oracle else None


def _rows(
    measure: Measure, full: str, oracle: Any, results: Sequence[Result]
) -> list[tuple[str, int, float]]:
    if measure.kind != "changed-pos":
        values = _values(measure, oracle, results)
        return [(full, one.key, value) for one, value in zip(results, values, strict=True)]
    rows = []
    for one in results:
        tags = Counter(tag for tag, *_ in _tagged(oracle, one))
        rows.append((full, one.key, float(tags.total())))
        rows += [(f"{full}/{tag}", one.key, float(count)) for tag, count in tags.items()]
    return rows


def _values(measure: Measure, oracle: Any, results: Sequence[Result]) -> list[float]:
    if not results:
        return []
    if measure.kind == "edit-distance":
        return [
            round(sum(edit_distance(e.before, e.after) for e in one.edits) / max(1, len(one.original)), 6)
            for one in results
        ]
    if measure.kind == "same-pos":
        return [_kept_pos(oracle, one) for one in results]
    answers = _ask(oracle, [text for one in results for text in (one.original, one.perturbed)])
    pairs = [(answers[i], answers[i + 1]) for i in range(0, len(answers), 2)]
    if measure.kind == "similarity":
        return [round(float(np.dot(before, after)), 6) for before, after in pairs]
    if measure.kind == "perplexity":
        return [round(after.perplexity / before.perplexity, 6) for before, after in pairs]
    return [float(after - before) for before, after in pairs]


def _ask(oracle: Any, items: Sequence[Any]) -> list[Any]:
    """Answers in order; equal questions are asked once."""
    distinct = list(dict.fromkeys(items))
    answers: dict[Any, Any] = {}
    for start in range(0, len(distinct), oracle.batch_size):
        portion = distinct[start : start + oracle.batch_size]
        answers.update(zip(portion, oracle(portion), strict=True))
    return [answers[item] for item in items]


def _kept_pos(oracle: Any, result: Result) -> float:
    tags = [found for found in _tagged(oracle, result) if len(found) == 2]
    return round(sum(own == new for own, new in tags) / len(tags), 6) if tags else 1.0


def _tagged(oracle: Any, result: Result) -> list[tuple[str, ...]]:
    """Of each word that is gone its tag, and that of the word in its place where there is one."""
    words = Text(result.original).words
    items = []
    for edit in result.edits:
        if edit.kind in ("replace", "delete") and edit.position < len(words):
            first = max(0, edit.position - CONTEXT)
            context = words[first : edit.position + CONTEXT + 1]
            items.append((context, edit.position - first, (edit.after,) if edit.kind == "replace" else ()))
    return [tuple(tags) for tags in _ask(oracle, items)]
