"""`unfooled attack`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from unfooled.attacks.parts.goals import only_class
from unfooled.cli.app import Exit
from unfooled.cli.live import LiveObserver
from unfooled.cli.render import show_run
from unfooled.cli.values import listed, literal, pairs, slug, thresholds
from unfooled.core.recipe import (
    Recipe,
    load_part,
    load_recipe,
    with_constraint,
    with_everywhere,
    with_setting,
)
from unfooled.core.session import Settings
from unfooled.data.dataset import Dataset
from unfooled.data.loading import load_data
from unfooled.errors import UserError
from unfooled.runs.attack import attack
from unfooled.translation.parallel import ParallelText, load_parallel
from unfooled.translation.victim import Translator
from unfooled.victims.loading import load_victim


@dataclass(frozen=True, kw_only=True)
class AttackOptions:
    model: str
    data: str
    attack: str
    out: Path | None
    limit: int | None
    sample: int | None
    workers: int
    seed: int
    budget: int | None
    target: str | None
    max_words: int
    text_column: str | None
    label_column: str | None
    edit: str | None
    split: str
    encoding: str
    labels: str | None
    label_map: str | None
    thresholds: tuple[str, ...]
    encoder: str | None
    neighbours: str | None
    masked_lm: str | None
    importance: str | None
    candidates: str | None
    constraints: tuple[str, ...]
    only: str | None
    any_language: bool
    clean: str | None
    settings: tuple[str, ...]
    victim_options: tuple[str, ...]
    trust_pickle: bool
    window: int
    restart: bool
    json: bool


def run_attack(options: AttackOptions) -> int:
    out = options.out or Path("runs") / slug(options.attack, options.model, options.data)
    recipe = chosen_recipe(options)
    victim = load_victim(
        options.model,
        labels=listed(options.labels),
        trust_pickle=options.trust_pickle,
        thresholds=thresholds(options.thresholds),
        **{name: literal(value) for name, value in pairs(options.victim_options, "--victim-option").items()},
    )
    columns = listed(options.text_column)
    chosen: dict[str, Any] = {
        "split": options.split,
        "encoding": options.encoding,
        "sample": options.sample,
        "seed": options.seed,
    }
    dataset: Dataset | ParallelText
    if isinstance(victim, Translator):
        if options.clean or options.edit or options.label_column:
            raise UserError(
                f"{victim.name} writes text: --clean, --edit and --label-column are for classifiers",
                "leave them out",
            )
        dataset = load_parallel(options.data, columns=columns, **chosen)
    else:
        dataset = load_data(
            options.data,
            text=columns[0] if columns and len(columns) == 1 else columns,
            label=options.label_column,
            edit=options.edit,
            clean=options.clean,
            **chosen,
        )
    label_map = pairs(options.label_map.split(","), "--label-map") if options.label_map else None
    settings = Settings(
        seed=options.seed,
        budget=options.budget,
        max_words=options.max_words,
        window=options.window,
        any_language=options.any_language,
    )
    console = Console(stderr=True, quiet=options.json)
    with LiveObserver(console, title=recipe.full_name) as observer:
        try:
            run = attack(
                victim,
                dataset,
                recipe,
                out=out,
                limit=options.limit,
                workers=options.workers,
                settings=settings,
                target=options.target,
                label_map=label_map,
                observer=observer,
                restart=options.restart,
            )
        except KeyboardInterrupt:
            observer.stop()
            typer.echo(
                f"interrupted: {observer.done} of {observer.total} examples are saved in {out}\n"
                "  → repeat the command to go on",
                err=True,
            )
            return Exit.INTERRUPTED
    summary = show_run(run.path, examples=5, as_json=options.json, told=True)
    if summary.total > observer.total:
        typer.echo(
            f"note: this run holds {summary.total} examples, {observer.total} were asked for", err=True
        )
    return Exit.SOME_ERRORS if summary.errors else Exit.DONE


def chosen_recipe(options: AttackOptions) -> Recipe:
    """The named recipe with the parts that options replace."""
    recipe = load_recipe(options.attack)
    if options.only:
        recipe = only_class(recipe, options.only)
    if options.importance:
        recipe = with_everywhere(recipe, "importance", load_part("importance", options.importance))
    if options.candidates:
        recipe = with_everywhere(recipe, "candidates", load_part("candidates", options.candidates))
    if options.encoder:
        recipe = with_everywhere(recipe, "encoder", options.encoder)
    if options.neighbours:
        recipe = with_everywhere(recipe, "table", options.neighbours)
    if options.masked_lm:
        recipe = with_everywhere(recipe, "masked_lm", options.masked_lm)
    for constraint in options.constraints:
        recipe = with_constraint(recipe, load_part("constraint", constraint))
    for name, value in pairs(options.settings, "--set").items():
        recipe = with_setting(recipe, name, value)
    return recipe
