"""`unfooled evaluate` and `unfooled replay`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from unfooled.checks.evaluate import Evaluation, evaluate
from unfooled.checks.illusions.attacking import Watcher, read_results
from unfooled.checks.illusions.checks import check_names
from unfooled.checks.illusions.diagnosis import look
from unfooled.checks.illusions.wrappers import Votes
from unfooled.checks.naming import load_models
from unfooled.checks.replay import read_samples, replay
from unfooled.cli.app import Exit
from unfooled.cli.live import LiveObserver
from unfooled.cli.values import listed, pairs, slug, thresholds
from unfooled.core.recipe import Recipe, load_recipe, with_everywhere, with_setting
from unfooled.core.session import Settings
from unfooled.core.victim import Victim
from unfooled.data.loading import load_data
from unfooled.errors import UserError
from unfooled.metrics.summary import Rate, decided
from unfooled.report.diffs import visible
from unfooled.report.evaluation import HEADINGS, legend, rate, table_rows, verdict_lines, write_files
from unfooled.runs.attack import Observer
from unfooled.victims.preflight import Preflight


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions:
    models: tuple[str, ...]
    data: str
    attack: str
    out: Path | None
    limit: int
    sample: int | None
    clean_limit: int
    base: str | None
    control: str | None
    checks: str
    averages: str
    draws: int
    workers: int
    seed: int
    budget: int | None
    max_words: int
    text_column: str | None
    label_column: str | None
    edit: str | None
    split: str
    encoding: str
    label_map: str | None
    thresholds: tuple[str, ...]
    encoder: str | None
    neighbours: str | None
    settings: tuple[str, ...]
    any_language: bool
    trust_pickle: bool
    restart: bool
    json: bool


@dataclass(frozen=True, kw_only=True)
class ReplayOptions:
    samples: Path
    models: tuple[str, ...]
    out: Path | None
    label_map: str | None
    thresholds: tuple[str, ...]
    draws: int
    trust_pickle: bool
    restart: bool
    json: bool


class LiveWatcher(Watcher):
    """A bar per stage, on standard error; a model's checks are shown once, at its first attack."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._met: set[str] = set()

    def stage(self, title: str) -> AbstractContextManager[Observer]:
        return self._stage(title)

    @contextmanager
    def _stage(self, title: str) -> Iterator[Observer]:
        model = title.partition(":")[0]
        observer = _StageObserver(self._console, title=title)
        observer.quiet = model in self._met
        with observer:
            yield observer
        if observer.total:
            self._met.add(model)

    @contextmanager
    def wait(self, title: str) -> Iterator[None]:
        with self._console.status(escape(title)):
            yield


class _StageObserver(LiveObserver):
    quiet = False

    def checked(self, report: Preflight) -> None:
        if not self.quiet:
            super().checked(report)


def run_evaluate(options: EvaluateOptions) -> int:
    named = _named(options.models)
    out = options.out or Path("runs") / f"evaluate-{slug(options.attack, options.data)}"
    recipe = _recipe(options)
    victims = _loaded(named, options)
    columns = listed(options.text_column)
    data = load_data(
        options.data,
        text=columns[0] if columns and len(columns) == 1 else columns,
        label=options.label_column,
        edit=options.edit,
        split=options.split,
        encoding=options.encoding,
        sample=options.sample,
        seed=options.seed,
    )
    console = Console(stderr=True, quiet=options.json)
    checks = () if options.checks == "none" else tuple(listed(options.checks) or check_names())
    try:
        evaluation = evaluate(
            victims,
            data,
            recipe,
            out=out,
            limit=options.limit,
            clean_limit=options.clean_limit,
            base=options.base,
            control=options.control,
            checks=checks,
            averages=_numbers(options.averages, "--averages"),
            draws=options.draws,
            workers=options.workers,
            settings=Settings(
                seed=options.seed,
                budget=options.budget,
                max_words=options.max_words,
                any_language=options.any_language,
            ),
            label_map=pairs(listed(options.label_map) or (), "--label-map") or None,
            watcher=LiveWatcher(console),
            restart=options.restart,
        )
    except KeyboardInterrupt:
        typer.echo(
            f"interrupted: what is finished is saved in {out}\n  → repeat the command to go on", err=True
        )
        return Exit.INTERRUPTED
    files = write_files(evaluation)
    if options.json:
        typer.echo(json.dumps(evaluation.to_dict(), indent=2, ensure_ascii=False))
    else:
        show(evaluation)
        typer.echo("\nwritten: " + ", ".join(map(str, files)))
    return Exit.SOME_ERRORS if evaluation.errors else Exit.DONE


def show(evaluation: Evaluation) -> None:
    console = Console()
    console.width = max(console.width, 150)  # a table that is folded cannot be read
    title = f"{evaluation.attack} on {evaluation.data}, {evaluation.n} examples"
    console.print(_table(title, HEADINGS, table_rows(evaluation)))
    for line in legend(evaluation):
        typer.echo(line)
    for name, (first, *rest) in verdict_lines(evaluation):
        typer.echo(f"\n{visible(name)}: {visible(first)}")
        for line in rest:
            typer.echo(f"  - {visible(line)}")
    for note in evaluation.notes if not evaluation.verdicts else ():
        typer.echo(f"\nnote: {note}")


def run_replay(options: ReplayOptions) -> int:
    named = _named(options.models)
    out = options.out or Path("runs") / f"replay-{slug(str(options.samples))}"
    samples = [one for one in read_samples(options.samples) if one.fooled]
    if not samples:
        raise UserError(
            f"{options.samples}: holds no sample that fooled its model",
            "give a run with successes, or its export as .jsonl",
        )
    victims = _loaded(named, options)
    watcher = LiveWatcher(Console(stderr=True, quiet=options.json))
    rows: list[dict[str, Any]] = []
    for name, model in victims.items():
        with watcher.wait(f"{name}: a look at the model"):
            looks = look(model, [one.value(edited=True) for one in samples[:32]])
        victim: Victim = Votes(model, draws=options.draws) if looks.random else model
        with watcher.stage(f"{name}: {len(samples)} samples") as observer:
            run = replay(
                samples,
                victim,
                out=out / name,
                label_map=pairs(listed(options.label_map) or (), "--label-map") or None,
                name=str(options.samples),
                observer=observer,
                restart=options.restart,
            )
        keys = {one.key for one in samples}
        judged = [one for one in read_results(run.path) if one.key in keys and one.outcome != "error"]
        before = Rate.of(sum(decided(one.probs) == one.label for one in judged), len(judged))
        after = Rate.of(sum(decided(one.perturbed_probs) == one.label for one in judged), len(judged))
        rows.append(
            {
                "name": name,
                "before": before,
                "after": after,
                "errors": len(samples) - len(judged),
                "random": looks.random,
                "run": str(run.path),
            }
        )
    if options.json:
        shown = [row | {key: row[key].to_dict() for key in ("before", "after")} for row in rows]
        typer.echo(json.dumps(shown, indent=2))
    else:
        cells = [
            (row["name"] + "*" * row["random"], rate(row["before"]), rate(row["after"]), str(row["errors"]))
            for row in rows
        ]
        headings = ("model", "accuracy on the originals", "accuracy on the samples", "errors")
        Console(width=120).print(_table(f"{len(samples)} samples of {options.samples}", headings, cells))
        typer.echo("In brackets: 95 % intervals. Errors are in no rate.")
        if any(row["random"] for row in rows):
            typer.echo(f"* decides with the help of chance: the majority of {options.draws} draws counts.")
    return Exit.SOME_ERRORS if any(row["errors"] for row in rows) else Exit.DONE


def _table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(title=visible(title), title_justify="left", box=None, pad_edge=False)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if place else "left", no_wrap=True)
    for row in rows:
        table.add_row(*map(visible, row))
    return table


def _loaded(named: dict[str, str], options: EvaluateOptions | ReplayOptions) -> dict[str, Victim]:
    """Every model; thresholds are those of all of them."""
    return load_models(named, trust_pickle=options.trust_pickle, thresholds=thresholds(options.thresholds))


def _recipe(options: EvaluateOptions) -> Recipe:
    recipe = load_recipe(options.attack)
    if options.encoder:
        recipe = with_everywhere(recipe, "encoder", options.encoder)
    if options.neighbours:
        recipe = with_everywhere(recipe, "table", options.neighbours)
    for one in options.settings:
        name, equals, value = one.partition("=")
        if not equals:
            raise UserError(f"--set {one!r} has no '='", "write --set path=value")
        recipe = with_setting(recipe, name.strip(), value.strip())
    return recipe


def _named(models: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in models:
        name, equals, spec = one.partition("=")
        if not equals or not name or not spec:
            raise UserError(f"{one!r} names no model", "write NAME=MODEL, such as base=models/bert")
        if name in found:
            raise UserError(f"two models are called {name!r}", "give each a name of its own")
        found[name] = spec
    return found


def _numbers(given: str, option: str) -> list[int]:
    try:
        return [int(one) for one in given.split(",") if one.strip()]
    except ValueError:
        raise UserError(f"{option} {given!r} is no list of numbers", f"write {option} 4,16") from None
