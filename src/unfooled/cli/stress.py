"""`unfooled stress`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import typer

from unfooled.cli.command import Exit, interrupted, option
from unfooled.cli.options import Attacking, Clean, ModelOptions, Prices, capped, print_json, slug
from unfooled.errors import CapReachedError


@dataclass(frozen=True, kw_only=True)
class StressCommand(Attacking, Clean, ModelOptions, Prices):
    EPILOG: ClassVar[str] = """\b
Examples:
  unfooled stress --model models/lstm --data mr --limit 200 --out runs/worst
  unfooled stress --model my_module:classify --data reviews.csv --suite standard --masked-lm trigram
  unfooled stress --model models/lstm --data mr --without bae-r-and-i@cosine --eval-results worst.yaml
\b
The suite's attacks run in order, cheapest first, each on what still stands. Attacks that the model or this
machine cannot do are left out and named. Repeat the command to go on after a stop; --limit may grow.
Then: unfooled gate runs/worst --min-aua 0.4 · unfooled leaderboard runs/* -o page.html
"""

    model: str | None = option(None, "As for `attack --model`.", "-m")
    data: str | None = option(None, "Labelled texts that it was not trained on.", "-d")
    suite: str | None = option(None, "Suite of attacks, see --list. [default: as the model allows]")
    out: Path | None = None
    limit: int | None = None
    every: bool = option(False, "Each attack on every row: dearer, tells what each breaks alone.")
    without: tuple[str, ...] = option((), "Leave an attack of the suite out; repeatable.")
    draws: int = option(15, "Fresh draws that judge a random model; odd.", min=1)
    words: str | None = option(None, "Words of classes, from `unfooled words`, for attacks that need them.")
    eval_results: Path | None = option(None, "Also write Hugging Face's evaluation results here (YAML).")
    eval_dataset: str | None = option(None, "Hub id of the data set, for --eval-results.")
    judge: bool = option(False, "Also judge what was found: the worst case by valid texts.")
    list_: bool = option(False, "Show the suites and their attacks.", "--list")

    def run(self) -> int:
        from rich.console import Console

        from unfooled.checks.stress import stress
        from unfooled.checks.suites import all_suites, suites_table
        from unfooled.metrics.validity.judging import judge
        from unfooled.report.eval_results import write_eval_results
        from unfooled.report.live_checks import LiveWatcher
        from unfooled.report.stress import PAGE, print_stress, write_page

        rows = self.rows()
        if self.list_:
            listed = [suite.to_json() | {"summary": suite.summary} for suite in all_suites()]
            print_json(listed) if self.json else typer.echo(suites_table())
            return Exit.DONE
        told = "see unfooled stress --help; --list shows the suites"
        model, source = self.require("model", "data", told=told)
        out = self.out or Path("runs") / f"stress-{slug(model, source)}"
        victim = self.load_model(model)
        data = self.load(source, edit=self.edit, clean=self.clean, sample=self.sample, seed=self.seed)
        try:
            result = stress(
                victim,
                data,
                self.suite,
                out=out,
                every=self.every,
                without=self.without,
                everywhere=self.everywhere() | ({"words": self.words} if self.words else {}),
                workers=self.where(self.workers),
                settings=self.settings(),
                label_map=self.mapped_labels(),
                draws=self.draws,
                validity=judge if self.judge else None,
                watcher=LiveWatcher(self.console()),
                restart=self.restart,
                caps=self.caps(),
                **rows,
            )
        except CapReachedError as reached:
            return capped(reached, f" in {out}")
        except KeyboardInterrupt:
            return interrupted(f"what is finished is saved in {out}")
        page = write_page(result, out / PAGE)
        if self.eval_results:
            write_eval_results(result, self.eval_results, dataset=self.eval_dataset)
        if self.json:
            print_json(result.to_dict(), ensure_ascii=False)
        else:
            print_stress(Console(), result)
            typer.echo(f"\npage: {page}")
        return Exit.SOME_ERRORS if result.failures else Exit.DONE
