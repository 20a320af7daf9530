"""`unfooled evaluate`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import typer

from unfooled.cli.command import argument, option
from unfooled.cli.exits import Exit, interrupted
from unfooled.cli.options import Data, LabelMap, RowOptions, Thresholds, TrustOptions
from unfooled.cli.values import listed, pairs, slug
from unfooled.errors import UserError

if TYPE_CHECKING:
    from unfooled.core.recipe import Recipe
    from unfooled.core.victim import Victim


@dataclass(frozen=True, kw_only=True)
class NamedModels(LabelMap, Thresholds, TrustOptions):
    """Commands that compare models by names that the user gives them."""

    models: tuple[str, ...] = argument(
        ..., "NAME=MODEL, each model as for `attack --model`.", metavar="NAME=MODEL..."
    )
    named: bool = option(False, "May stand before the models, for the eye.", "--models", show_default=False)
    draws: int = option(15, "Fresh draws that judge a random model; odd.", min=1)
    restart: bool = option(False, "Discard earlier runs in the folder.")

    def names(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for model in self.models:
            name, equals, spec = model.partition("=")
            if not equals or not name or not spec:
                raise UserError(f"{model!r} names no model", "write NAME=MODEL, such as base=models/bert")
            if name in found:
                raise UserError(f"two models are called {name!r}", "give each a name of its own")
            found[name] = spec
        return found

    def load_models(self, named: dict[str, str]) -> dict[str, Victim]:
        """Every model; thresholds are those of all of them."""
        from unfooled.checks.naming import load_models

        return load_models(named, trust_pickle=self.trust_pickle, thresholds=self.thresholds())


@dataclass(frozen=True, kw_only=True)
class Evaluate(Data, RowOptions, NamedModels):
    EPILOG: ClassVar[str] = """\b
Examples:
  unfooled evaluate --models base=m/bert retuned=m/retuned fact=m/fact five=five:fact --data mr --limit 500
  unfooled evaluate --models base=a.skops mine=my_module:classify --data reviews.csv --attack deepwordbug
  unfooled evaluate --models base=m/bert fact=m/fact --data nli.csv --text-column premise,hypothesis
\b
A name may stand for an earlier model inside a wrapper, as in five=five:fact. The model called base is the
one that others are compared with; retuned is the control: the base trained again without any defence.
Repeat the command to go on after a stop. `unfooled summary OUT/NAME/attack` shows any single run.
"""

    models: tuple[str, ...] = argument(
        (),
        "NAME=MODEL, each model as for `attack --model`.",
        metavar="NAME=MODEL...",
        show_default=False,
    )
    data: str | None = option(None, "Labelled texts that none was trained on.", "-d")
    attack: str = option("textfooler", "A name from `unfooled attacks`.", "-a")
    out: Path | None = option(None, "Folder of all runs. [default: runs/evaluate-…]", "-o")
    limit: int | None = option(None, "Attack N rows, a seeded sample by classes. [default: 500]", "-n", min=1)
    sample: int | None = option(None, "Use N rows drawn at random (seeded).", min=1)
    clean_limit: int = option(2000, "Clean accuracy on up to N rows; they are cheap.", min=1)
    base: str | None = option(None, "Model to compare with. [default: base]")
    control: str | None = option(None, "The retuned control. [default: retuned]")
    checks: str = option("all", "Illusion checks, comma-separated; see --list. `none` skips them.")
    fresh: str | None = option(None, "Rows of the same kind that were never published, as for --data.")
    judge: bool = option(False, "Also judge what was found: accuracy under attack by valid texts.")
    averages: str = option("4,16", "Draws per query when a random model is attacked.")
    workers: int = option(1, "Processes; one per core.", "-w", min=1)
    seed: int = option(0, "Same seed, same results.", min=0)
    budget: int | None = option(None, "Most queries per example.", min=1)
    max_words: int = option(5000, "Longer rows end as errors.", min=1)
    edit: str | None = option(None, "Column of a pair to edit. [default: the last]")
    encoder: str | None = option(None, "Sentence encoder for constraints.")
    neighbours: str | None = option(None, "Neighbour table: name or file.")
    set_: tuple[str, ...] = option((), "Change a setting of the attack: path=value.", "--set")
    any_language: bool = option(False, "Also texts in letters that the attack's words do not know.")
    list_: bool = option(False, "Show the illusion checks in their order.", "--list")
    json: bool = option(False, "Print everything as JSON and nothing else.")

    def run(self) -> int:
        from rich.console import Console

        from unfooled.checks.evaluate import evaluate
        from unfooled.checks.illusions.checks import all_checks, check_names, help_table
        from unfooled.core.session import Settings
        from unfooled.report.evaluation import print_evaluation, write_files
        from unfooled.report.live_checks import LiveWatcher

        if self.list_:
            listed_checks = [{"name": check.name, "summary": check.summary} for check in all_checks()]
            typer.echo(json.dumps(listed_checks, indent=2) if self.json else help_table())
            return Exit.DONE
        if not self.models or self.data is None:
            missing = "--data" if self.models else "NAME=MODEL"
            raise UserError(f"{missing} is missing", "see unfooled evaluate --help; --list shows the checks")
        self.check_rows()
        named = self.names()
        out = self.out or Path("runs") / f"evaluate-{slug(self.attack, self.data)}"
        recipe = _recipe(self)
        victims = self.load_models(named)
        data = self.load(self.data, edit=self.edit, sample=self.sample, seed=self.seed)
        console = Console(stderr=True, quiet=self.json)
        chosen = {"none": (), "all": check_names()}
        checks = chosen[self.checks] if self.checks in chosen else tuple(listed(self.checks) or ())
        fresh = self.load(self.fresh, edit=self.edit) if self.fresh else None
        try:
            evaluation = evaluate(
                victims,
                data,
                recipe,
                out=out,
                limit=self.first or self.limit or 500,
                first=self.first is not None,
                clean_limit=self.clean_limit,
                base=self.base,
                control=self.control,
                checks=checks,
                fresh=fresh,
                averages=_numbers(self.averages, "--averages"),
                draws=self.draws,
                workers=self.workers,
                settings=Settings(
                    seed=self.seed,
                    budget=self.budget,
                    max_words=self.max_words,
                    any_language=self.any_language,
                ),
                label_map=self.mapped_labels(),
                watcher=LiveWatcher(console),
                restart=self.restart,
                judged=self.judge,
            )
        except KeyboardInterrupt:
            return interrupted(f"what is finished is saved in {out}")
        files = write_files(evaluation)
        if self.json:
            typer.echo(json.dumps(evaluation.to_dict(), indent=2, ensure_ascii=False))
        else:
            print_evaluation(Console(), evaluation)
            typer.echo("\nwritten: " + ", ".join(map(str, files)))
        return Exit.SOME_ERRORS if evaluation.errors else Exit.DONE


def _recipe(options: Evaluate) -> Recipe:
    from unfooled.core.recipe import load_recipe, with_everywhere, with_setting

    recipe = load_recipe(options.attack)
    if options.encoder:
        recipe = with_everywhere(recipe, "encoder", options.encoder)
    if options.neighbours:
        recipe = with_everywhere(recipe, "table", options.neighbours)
    for name, value in pairs(options.set_, "--set").items():
        recipe = with_setting(recipe, name, value)
    return recipe


def _numbers(given: str, option: str) -> list[int]:
    try:
        return [int(number) for number in given.split(",") if number.strip()]
    except ValueError:
        raise UserError(f"{option} {given!r} is no list of numbers", f"write {option} 4,16") from None
