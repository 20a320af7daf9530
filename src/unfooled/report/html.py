"""One self-contained HTML page about one or several runs: verdict, numbers, charts, every example.

The page asks nobody for anything, carries its own policy against foreign scripts, and sets texts only as
text: hostile examples stay harmless. Examples are packed (gzip, base64) and unpacked by the browser.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

import unfooled
from unfooled.checks.transfer import Transfer, stored_transfers
from unfooled.core.result import OUTCOMES, Result
from unfooled.errors import RunFileError
from unfooled.files import write_named
from unfooled.metrics.columns import Column, ResultColumns
from unfooled.metrics.summary import Summary, only_class, summarise
from unfooled.plugins import registry
from unfooled.report.comparison import comparison_charts, comparisons, tables
from unfooled.report.diffs import output_pieces, pieces, visible
from unfooled.report.interpretation import Chart, Hint, RunVerdict, charts, hints, judge
from unfooled.report.tables import UNDER_VALID, counts_line, footnotes, summary_rows
from unfooled.report.templates import page_environment, page_file
from unfooled.runs.attack import Run, run_folder
from unfooled.runs.file import JUDGE, REMARK, RunFile


@dataclass(frozen=True, slots=True, eq=False)
class RunView:
    """What the page says about one run."""

    number: int
    name: str
    path: Path  # that is read
    told: Path  # that is shown
    attack: str
    victim: str
    data: str
    labels: tuple[str, ...]
    summary: Summary
    ledger: ResultColumns
    verdict: RunVerdict
    preflight: tuple[str, ...]
    settings: str
    data_fingerprint: str
    victim_fingerprint: str
    measures: dict[str, Column]
    transfers: tuple[Transfer, ...]
    judgement: tuple[str, ...]  # what `unfooled evaluate` says of the defence: a sentence, then details
    drawn: dict[str, Any]  # remarks of the run that are shown as charts, by their names

    @property
    def counts(self) -> str:
        return counts_line(self.summary)

    @property
    def substitutions(self) -> list[dict[str, Any]]:
        return [
            {
                "before": visible(substitution.before),
                "after": visible(substitution.after),
                "count": substitution.count,
            }
            for substitution in self.summary.substitutions
        ]

    @property
    def error_notes(self) -> list[dict[str, Any]]:
        return [
            {"message": visible(note.message), "count": note.count, "key": note.key}
            for note in self.summary.error_notes
        ]

    @property
    def numbers(self) -> list[dict[str, str]]:
        rows = {row.name: row for row in summary_rows(self.summary)}
        what = "BLEU" if self.summary.writes else "accuracy"
        if f"recall of {self.summary.only} before attack" in rows:
            what = f"recall of {self.summary.only}"
        success, share = rows["success rate of the attack"], rows["words changed, share"]
        falls = []
        if f"{what} before attack" in rows:
            before, under = rows[f"{what} before attack"], rows[f"{what} under attack"]
            falls.append(
                {
                    "value": f"{before.value} → {under.value}",
                    "name": f"{what} before and under attack",
                    "note": f"under attack {under.interval}, n = {under.n}",
                }
            )
        if UNDER_VALID in rows:
            valid = rows[UNDER_VALID]
            falls.append(
                {
                    "value": valid.value,
                    "name": "accuracy under attack by valid texts",
                    "note": f"{valid.interval}, n = {valid.n}",
                }
            )
        return [
            *falls,
            {
                "value": success.value,
                "name": "of the attacks succeed",
                "note": f"{success.interval}, n = {success.n}"
                if success.interval
                else "nothing was attacked",
            },
            {
                "value": share.value,
                "name": "of the words changed per success",
                "note": f"{rows['words changed (of successes)'].value} words on average"
                if share.interval
                else "no success",
            },
        ]


def report(runs: Run | str | Path | Sequence[Run | str | Path], out: str | Path) -> Path:
    """Write one HTML page about a run, or about several that are compared; returns its path.

    Example:

        >>> unfooled.report("runs/x", "report.html").name
        'report.html'
    """
    several = [runs] if isinstance(runs, Run | str | Path) else runs
    with ExitStack() as folders:
        paths = [folders.enter_context(run_folder(run)) for run in several]
        return write_html(paths, Path(out), told=[*map(_told_path, several, paths, count(1))])


def _told_path(run: Run | str | Path, path: Path, number: int) -> Path:
    """What the page names a run after: the folder of one held in memory is another each time."""
    return Path(f"run {number}") if isinstance(run, Run) and run.held is not None else path


def write_html(
    runs: Sequence[Path], out: Path, *, study: Path | None = None, told: Sequence[Path] | None = None
) -> Path:
    """Write the page about `runs` to `out`; with a study, what people said about their texts as well.

    `told` are paths that the page shows in place of those that are read.
    """
    if not runs:
        raise RunFileError("there is no run to report on", "name at least one run")
    if len({path.resolve() for path in runs}) < len(runs):
        raise RunFileError("the same run is named twice", "name each run once")
    told = told or runs
    views = [
        _view(number, path, told_path, name)
        for number, (path, told_path, name) in enumerate(zip(runs, told, _names(told), strict=True))
    ]
    if len({view.labels for view in views}) > 1:
        raise RunFileError(
            "these runs have different classes: "
            + "; ".join(f"{view.name}: {', '.join(view.labels)}" for view in views),
            "report on them one by one",
        )
    # A page is a function of its runs: no clock, no random numbers.
    data = _packed(views)
    nonce = hashlib.sha256(data.encode()).hexdigest()[:24]
    template = page_environment().get_template("page.html")
    page = template.render(
        title=_title(views),
        runs=views,
        rows=_rows(views),
        footnotes=_footnotes(views),
        comparisons=comparisons(views),
        tables=tables(views),
        hints=_all_hints(views),
        charts=[*comparison_charts(views), *charts(views), *_kept_charts(views)],
        people=None if study is None else registry.load("report-section", "study")(study, runs),
        outcomes=OUTCOMES,
        labels=[visible(label) for label in views[0].labels],
        data=data,
        nonce=nonce,
        css=page_file("page.css"),
        js=page_file("elements.js") + page_file("page.js"),
        version=unfooled.__version__,
    )
    return write_named(out, page)


def _view(number: int, path: Path, told: Path, name: str) -> RunView:
    with closing(RunFile.read(path)) as file:
        header = file.header
        labels = file.labels
        summary = summarise(file)
        ledger = ResultColumns.read(file.results(), only=only_class(file))
        measures = {name: _column(ledger, file.measured(name)) for name in file.measures()}
    environment = header["environment"]
    drawn = {name: header.pop(REMARK + name, None) for name in registry.names("run-charts")}  # no settings
    header.pop(REMARK + JUDGE, None)  # what the judge has learned is told by its numbers
    return RunView(
        number=number,
        name=visible(name),
        path=path,
        told=told,
        attack=visible(str(environment["attack"])),
        victim=visible(str(environment["victim"])),
        data=visible(str(environment["data"])),
        labels=labels,
        summary=summary,
        ledger=ledger,
        verdict=_with_origin(judge(summary), header),
        preflight=tuple(visible(line) for line in environment.get("preflight", ())),
        settings=visible(json.dumps(header, indent=2, ensure_ascii=False)),
        drawn={name: kept for name, kept in drawn.items() if kept},
        data_fingerprint=str(header["identity"]["data"]),
        victim_fingerprint=str(header["identity"]["victim"]),
        measures=measures,
        transfers=tuple(stored_transfers(path)),
        judgement=_judgement(header.get(f"{REMARK}verdict")),
    )


def _with_origin(verdict: RunVerdict, header: Mapping[str, Any]) -> RunVerdict:
    """An imported run says so before anything else."""
    if "imported" not in header["identity"]:
        return verdict
    notices = tuple(visible(str(line)) for line in header["environment"].get("notices") or ())
    return verdict._replace(warnings=(*notices, *verdict.warnings))


def _judgement(verdict: Any) -> tuple[str, ...]:
    if not verdict:
        return ()
    told = (verdict["verdict"], *verdict["findings"], *verdict["notes"])
    return tuple(visible(str(line)) for line in told)


def _kept_charts(views: Sequence[RunView]) -> list[Chart]:
    """Of what the attack left in the run for its page; of several runs with their names."""
    several = len(views) > 1
    return [
        chart
        for view in views
        for name, kept in view.drawn.items()
        for chart in registry.load("run-charts", name)(kept, view.name if several else "")
    ]


def _column(ledger: ResultColumns, values: dict[int, float]) -> Column:
    return np.array([values.get(key, math.nan) for key in ledger.keys.tolist()], dtype=np.float64)


def _names(runs: Sequence[Path]) -> list[str]:
    """Folder names; the whole path where two are equal."""
    whole = [path.resolve() for path in runs]
    short = [path.parent.name if path.suffix == ".sqlite" else path.name for path in whole]
    return [name if short.count(name) == 1 else str(path) for name, path in zip(short, runs, strict=True)]


def _title(views: Sequence[RunView]) -> str:
    if len(views) == 1:
        return f"{views[0].attack} on {views[0].victim}"
    return f"{len(views)} runs compared"


def _rows(views: Sequence[RunView]) -> list[dict[str, Any]]:
    tables = [{row.name: row for row in summary_rows(view.summary)} for view in views]
    names = list(dict.fromkeys(name for table in tables for name in table))
    return [
        {
            "name": name,
            "cells": [
                {"value": table[name].value, "interval": table[name].interval}
                if name in table
                else {"value": "–", "interval": ""}
                for table in tables
            ],
        }
        for name in names
    ]


def _footnotes(views: Sequence[RunView]) -> list[str]:
    """Below the table; of several runs, what belongs to one of them with its name."""
    lines = [footnotes(view.summary) for view in views]
    shared = [line for line in lines[0] if all(line in others for others in lines)]
    own = [
        f"{view.name}: {line}"
        for view, found in zip(views, lines, strict=True)
        for line in found
        if line not in shared
    ]
    return shared + own


def _all_hints(views: Sequence[RunView]) -> list[Hint]:
    """Of several runs each kind of hint once, as the first run has it."""
    found: dict[str, Hint] = {}
    for hint in (hint for view in views for hint in hints(view)):
        found.setdefault(hint.kind, hint)
    return list(found.values())


def _packed(views: Sequence[RunView]) -> str:
    rows: list[list[Any]] = []
    for number, view in enumerate(views):
        with closing(RunFile.read(view.path)) as file:
            rows += [_packed_row(number, at, view.ledger, result) for at, result in enumerate(file.results())]
    document = {
        "rows": rows,
        "labels": [visible(label) for label in views[0].labels],
        "outcomes": OUTCOMES,
        "names": [view.name for view in views],
    }
    text = json.dumps(document, ensure_ascii=True, separators=(",", ":"))
    # A fixed time stamp: the same runs give the same bytes.
    return base64.b64encode(gzip.compress(text.encode("ascii"), 6, mtime=0)).decode("ascii")


def _packed_row(number: int, at: int, ledger: ResultColumns, result: Result) -> list[Any]:
    """In the order that page.js names."""
    changed = {"gone": 0, "new": 1}
    shown = [
        visible(piece.text) if piece.kind == "same" else [changed[piece.kind], visible(piece.text)]
        for piece in pieces(result)
    ]
    others = [
        [visible(name), visible(content)]
        for place, (name, content) in enumerate(result.fields)
        if place != result.field
    ]
    output = [
        visible(piece.text) if piece.kind == "same" else [changed[piece.kind], visible(piece.text)]
        for piece in output_pieces(result)
    ]
    return [
        number,
        result.key,
        OUTCOMES.index(result.outcome),
        result.label,
        int(ledger.before[at]),
        int(ledger.after[at]),
        _number(ledger.p_before[at]),
        _number(ledger.p_after[at]),
        len(result.edits),
        round(result.share, 4),
        result.queries if result.queries_known else None,
        result.similarity,
        shown,
        others,
        visible(result.note),
        output,
    ]


def _number(value: float) -> float | None:
    return None if math.isnan(value) else round(float(value), 5)
