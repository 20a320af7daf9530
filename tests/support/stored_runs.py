"""Results and run files made by hand, for tests of what reads them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from unfooled.core.result import Outcome, Result
from unfooled.runs.file import RunFile
from unfooled.text import Edit, Text

HEADER: dict[str, Any] = {
    "identity": {"recipe": {"name": "toy", "parts": ["a", "b"]}, "seed": 0, "labels": ["neg", "pos"]},
    "environment": {"host": "first"},
}

OUTCOMES: tuple[Outcome, ...] = ("success", "failure", "skipped", "error")


def stored(
    folder: Path,
    results: list[Result],
    labels: tuple[str, ...] = ("negative", "positive"),
    attack: str = "made@1",
) -> Path:
    header = {
        "identity": {"recipe": {"name": "made"}, "data": "d", "victim": "v", "labels": list(labels)},
        "environment": {"attack": attack, "victim": "toy", "data": "rows", "preflight": ["fine"]},
    }
    with RunFile.open(folder, header) as file:
        for result in results:
            file.add(result)
    return folder


def rows_written(path: Path) -> int:
    """How far a run is that another process writes."""
    try:
        with closing(sqlite3.connect(f"file:{path / 'run.sqlite'}?mode=ro", uri=True)) as base:
            return int(base.execute("SELECT count(*) FROM results").fetchone()[0])
    except sqlite3.Error:
        return 0


def made(key: int, outcome: Outcome, content: str, *, note: str = "", words: int = 1) -> Result:
    text = Text(content)
    new = text.replace(0, "awful") if outcome == "success" else text
    return Result(
        key=key,
        outcome=outcome,
        label=1,
        fields=text.fields,
        field=0,
        perturbed=new.string,
        probs=() if outcome == "error" else (0.1, 0.9),
        perturbed_probs=() if outcome == "error" else (0.8, 0.2) if outcome == "success" else (0.3, 0.7),
        edits=tuple(new.edits()),
        words=len(text.words),
        queries=key + 2,
        similarity=0.5 + key / 1000 if outcome == "success" else None,
        note=note,
    )


def made_with_scores(
    key: int,
    outcome: Outcome,
    *,
    label: int = 1,
    before: float = 0.9,
    after: float = 0.9,
    changed: int = 0,
    queries: int = 10,
    similarity: float | None = None,
) -> Result:
    """`before` and `after` are the probabilities of class 1; the text has ten words."""
    return Result(
        key=key,
        outcome=outcome,
        label=label,
        fields=(("text", "a b c d e f g h i j"),),
        field=0,
        perturbed="a b c d e f g h i j",
        probs=() if outcome == "error" else (1 - before, before),
        perturbed_probs=() if outcome == "error" else (1 - after, after),
        edits=tuple(Edit("replace", n, "x", "y", n) for n in range(changed)),
        words=10,
        queries=queries,
        similarity=similarity,
    )


def on_text(
    before: str,
    after: str,
    *,
    probs: tuple[float, ...],
    perturbed_probs: tuple[float, ...],
    outcome: Outcome = "success",
    **more: Any,
) -> Result:
    """Of an example that is one text."""
    given: dict[str, Any] = {"key": 1, "label": 0, "fields": (("text", before),), "field": 0} | more
    return Result(outcome=outcome, perturbed=after, probs=probs, perturbed_probs=perturbed_probs, **given)


def make(key: int, outcome: Outcome | None = None) -> Result:
    return Result(
        key=key,
        outcome=outcome or OUTCOMES[key % 4],
        label=key % 2,
        fields=(("premise", f"p {key}"), ("hypothesis", f"a naïve 😀 film {key}")),
        field=1,
        perturbed=f"a silly 😀 film {key}",
        probs=(0.1 + key / 1e9, 0.9),
        perturbed_probs=(1 / 3, 2 / 3),
        edits=(Edit("replace", 1, "naïve", "silly", 2, 1),),
        words=4,
        queries=key,
        asked=key + 1,
        similarity=0.5 if key % 2 else None,
        note="" if key % 4 != 3 else f"line {key} of the file: broken",
    )


def digest(run: Path) -> str:
    """Of all that a run found."""
    with closing(RunFile.read(run)) as file:
        return file.content_digest()
