"""`unfooled evaluate`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import typer

from unfooled.cli.command import Exit, argument, interrupted, option
from unfooled.cli.options import LabelMap, OneAttack, Output, Thresholds, TrustOptions, print_json, slug
from unfooled.errors import UserError
from unfooled.values import listed, numbers

if TYPE_CHECKING:
    from unfooled.core.victim import Victim


@dataclass(frozen=True, kw_only=True)
class NamedModels(LabelMap, Thresholds, TrustOptions, Output):
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
class Evaluate(OneAttack, NamedModels):
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
    attack: str = "textfooler"
    out: Path | None = None
    limit: int | None = option(None, "Attack N rows, a seeded sample by classes. [default: 500]", "-n", min=1)
    clean_limit: int = option(2000, "Clean accuracy on up to N rows; they are cheap.", min=1)
    base: str | None = option(None, "Model to compare with. [default: base]")
    control: str | None = option(None, "The retuned control. [default: retuned]")
    checks: str = option("all", "Illusion checks, comma-separated; see --list. `none` skips them.")
    fresh: str | None = option(None, "Rows of the same kind that were never published, as for --data.")
    judge: bool = option(False, "Also judge what was found: accuracy under attack by valid texts.")
    averages: str = option("4,16", "Draws per query when a random model is attacked.")
    list_: bool = option(False, "Show the illusion checks in their order.", "--list")

    def run(self) -> int:
        from rich.console import Console

        from unfooled.checks.evaluate import evaluate
        from unfooled.checks.illusions.checks import all_checks, check_names, help_table
        from unfooled.report.evaluation import print_evaluation, write_files
        from unfooled.report.live_checks import LiveWatcher

        if self.list_:
            listed_checks = [{"name": check.name, "summary": check.summary} for check in all_checks()]
            print_json(listed_checks) if self.json else typer.echo(help_table())
            return Exit.DONE
        if not self.models or self.data is None:
            missing = "--data" if self.models else "NAME=MODEL"
            raise UserError(f"{missing} is missing", "see unfooled evaluate --help; --list shows the checks")
        rows = self.rows()
        named = self.names()
        out = self.out or Path("runs") / f"evaluate-{slug(self.attack, self.data)}"
        recipe = self.recipe()
        victims = self.load_models(named)
        data = self.load(self.data, edit=self.edit, sample=self.sample, seed=self.seed)
        chosen = {"none": (), "all": check_names()}
        checks = chosen[self.checks] if self.checks in chosen else tuple(listed(self.checks) or ())
        fresh = self.load(self.fresh, edit=self.edit) if self.fresh else None
        try:
            evaluation = evaluate(
                victims,
                data,
                recipe,
                out=out,
                limit=rows["limit"] or 500,
                first=rows["first"],
                clean_limit=self.clean_limit,
                base=self.base,
                control=self.control,
                checks=checks,
                fresh=fresh,
                averages=numbers(self.averages, "--averages"),
                draws=self.draws,
                workers=self.where(self.workers),
                settings=self.settings(),
                label_map=self.mapped_labels(),
                watcher=LiveWatcher(self.console()),
                restart=self.restart,
                judged=self.judge,
            )
        except KeyboardInterrupt:
            return interrupted(f"what is finished is saved in {out}")
        files = write_files(evaluation)
        if self.json:
            print_json(evaluation.to_dict(), ensure_ascii=False)
        else:
            print_evaluation(Console(), evaluation)
            typer.echo("\nwritten: " + ", ".join(map(str, files)))
        return Exit.SOME_ERRORS if evaluation.errors else Exit.DONE
