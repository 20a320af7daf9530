"""`unfooled stress`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import typer

from unfooled.cli.command import option
from unfooled.cli.exits import Exit, interrupted
from unfooled.cli.options import Clean, Data, LabelMap, ModelOptions, RowOptions
from unfooled.cli.values import slug
from unfooled.errors import UserError


@dataclass(frozen=True, kw_only=True)
class StressCommand(Data, RowOptions, Clean, LabelMap, ModelOptions):
    EPILOG: ClassVar[str] = """\b
Examples:
  unfooled stress --model models/lstm --data mr --limit 200 --out runs/worst
  unfooled stress --model my_module:classify --data reviews.csv --suite standard --masked-lm trigram
  unfooled stress --model models/lstm --data mr --without bae-r-or-i@paper --eval-results worst.yaml
\b
The suite's attacks run in order, cheapest first, each on what still stands. Attacks that the model or this
machine cannot do are left out and named. Repeat the command to go on after a stop; --limit may grow.
Then: unfooled gate runs/worst --min-aua 0.4 · unfooled leaderboard runs/* -o page.html
"""

    model: str | None = option(None, "As for `attack --model`.", "-m")
    data: str | None = option(None, "Labelled texts that it was not trained on.", "-d")
    suite: str | None = option(None, "Suite of attacks, see --list. [default: as the model allows]")
    out: Path | None = option(None, "Folder of all runs. [default: runs/stress-…]", "-o")
    sample: int | None = option(None, "Attack N rows drawn at random (seeded).", min=1)
    every: bool = option(False, "Each attack on every row: dearer, tells what each breaks alone.")
    without: tuple[str, ...] = option((), "Leave an attack of the suite out; repeatable.")
    workers: int = option(1, "Processes; one per core is best.", "-w", min=1)
    seed: int = option(0, "Same seed, same results.", min=0)
    budget: int | None = option(None, "Most victim queries per example and attack.", min=1)
    max_words: int = option(5000, "Longer rows end as errors.", min=1)
    edit: str | None = option(None, "Which text column of a pair may be edited. [default: the last]")
    draws: int = option(15, "Fresh draws that judge a random model; odd.", min=1)
    encoder: str | None = option(None, "Sentence encoder of all attacks that have one.")
    neighbours: str | None = option(None, "Neighbour table of all attacks that have one.")
    masked_lm: str | None = option(None, "Masked language model of all attacks that have one.")
    words: str | None = option(None, "Words of classes, from `unfooled words`, for attacks that need them.")
    any_language: bool = option(False, "Also texts in letters that an attack's words do not know.")
    eval_results: Path | None = option(None, "Also write Hugging Face's evaluation results here (YAML).")
    eval_dataset: str | None = option(None, "Hub id of the data set, for --eval-results.")
    judge: bool = option(False, "Also judge what was found: the worst case by valid texts.")
    restart: bool = option(False, "Discard earlier runs in the folder.")
    list_: bool = option(False, "Show the suites and their attacks.", "--list")
    json: bool = option(False, "Print the result as JSON and nothing else.")

    def run(self) -> int:
        from rich.console import Console

        from unfooled.checks.stress import stress
        from unfooled.checks.suites import all_suites, suites_table
        from unfooled.core.session import Settings
        from unfooled.metrics.validity.judging import judge
        from unfooled.report.eval_results import write_eval_results
        from unfooled.report.live_checks import LiveWatcher
        from unfooled.report.stress import PAGE, print_stress, write_page

        self.check_rows()
        if self.list_:
            listed = [suite.to_json() | {"summary": suite.summary} for suite in all_suites()]
            typer.echo(json.dumps(listed, indent=2) if self.json else suites_table())
            return Exit.DONE
        if self.model is None or self.data is None:
            missing = "--model" if self.model is None else "--data"
            raise UserError(f"{missing} is missing", "see unfooled stress --help; --list shows the suites")
        out = self.out or Path("runs") / f"stress-{slug(self.model, self.data)}"
        victim = self.load_model(self.model)
        data = self.load(self.data, edit=self.edit, clean=self.clean, sample=self.sample, seed=self.seed)
        try:
            result = stress(
                victim,
                data,
                self.suite,
                out=out,
                limit=self.first or self.limit,
                first=self.first is not None,
                every=self.every,
                without=self.without,
                everywhere=self._everywhere(),
                workers=self.workers,
                settings=Settings(
                    seed=self.seed,
                    budget=self.budget,
                    max_words=self.max_words,
                    any_language=self.any_language,
                ),
                label_map=self.mapped_labels(),
                draws=self.draws,
                validity=judge if self.judge else None,
                watcher=LiveWatcher(Console(stderr=True, quiet=self.json)),
                restart=self.restart,
            )
        except KeyboardInterrupt:
            return interrupted(f"what is finished is saved in {out}")
        page = write_page(result, out / PAGE)
        if self.eval_results:
            write_eval_results(result, self.eval_results, dataset=self.eval_dataset)
        if self.json:
            typer.echo(json.dumps(result.to_dict(), indent=2, ensure_ascii=False))
        else:
            print_stress(Console(), result)
            typer.echo(f"\npage: {page}")
        return Exit.SOME_ERRORS if result.failures else Exit.DONE

    def _everywhere(self) -> dict[str, str]:
        given = {
            "encoder": self.encoder,
            "table": self.neighbours,
            "masked_lm": self.masked_lm,
            "words": self.words,
        }
        return {name: value for name, value in given.items() if value is not None}
