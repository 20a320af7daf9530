"""`unfooled attack`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import typer

from unfooled.cli.command import option
from unfooled.cli.exits import Exit, interrupted
from unfooled.cli.options import Clean, Data, LabelMap, ModelOptions, RowOptions
from unfooled.cli.values import listed, pairs, slug
from unfooled.errors import UserError
from unfooled.plugins import registry

if TYPE_CHECKING:
    from unfooled.core.recipe import Recipe
    from unfooled.core.victim import Victim
    from unfooled.runs.task import Examples


@dataclass(frozen=True, kw_only=True)
class Attack(Data, RowOptions, Clean, LabelMap, ModelOptions):
    EPILOG: ClassVar[str] = """\b
Examples:
  unfooled attack --model model.skops --data reviews.csv --attack textfooler --limit 500 --out runs/x
  unfooled attack --model my_module:classify --data test.jsonl.gz --labels negative,positive
  unfooled attack --model ./bert-dir --data nli.csv --text-column premise,hypothesis --workers 2
  unfooled attack --model http://127.0.0.1:8000/predict --data d.csv --labels ham,spam
  unfooled attack --model ./bert-dir --data mr.csv --attack bae-r-and-i --masked-lm bert-base-uncased
  unfooled attack --model ./bert-dir --data tweets.csv --attack breaking-bert --clean tweets
  unfooled attack --model ./bert-dir --data tweets.csv --attack breaking-bert --importance random
  unfooled attack --model ./bert-dir --data mr.csv --attack bae --constraint fluency:6 --constraint grammar
  unfooled attack --model m.skops --data posts.csv --only offensive --threshold offensive=0.8 --limit 200
  unfooled attack --model ./en-de --data test.en,test.de --attack typo --candidates table:typos.txt
  unfooled attack --model ./en-de --data test.en,test.de --attack targeted-keyword --target Hund
"""

    model: str = option(..., "Path, module:function, hub name, http(s) address, or `fake`.", "-m")
    data: str = option(..., "CSV, TSV, JSONL (.gz), Parquet, datasets folder, set name.", "-d")
    attack: str = option("textfooler", "A name from `unfooled attacks`.", "-a")
    out: Path | None = option(None, "Folder of the run. [default: runs/…]", "-o")
    sample: int | None = option(None, "Attack N rows drawn at random (seeded).", min=1)
    final: bool = option(False, "Fix the number of rows: the run cannot grow, and one look may judge it.")
    workers: int = option(1, "Processes; one per core is best.", "-w", min=1)
    seed: int = option(0, "Same seed, same results.", min=0)
    budget: int | None = option(None, "Most victim queries per example.", min=1)
    target: str | None = option(None, "Class to reach, or a translation's keyword. [default: any]")
    max_words: int = option(5000, "Longer rows end as errors.", min=1)
    edit: str | None = option(None, "Which text column of a pair may be edited. [default: the last]")
    labels: str | None = option(None, "Victim's class names in its order, comma-separated.")
    label_map: str | None = option(None, "Data label=victim label, comma-separated.")
    encoder: str | None = option(None, "Sentence encoder for similarity constraints.")
    neighbours: str | None = option(None, "Neighbour table: name, JSON table or vectors file.")
    masked_lm: str | None = option(None, "Masked language model of BAE: folder, hub name or `trigram`.")
    importance: str | None = option(
        None, "Order of words: gradient, deletion, attention[:LAYER], random, masking."
    )
    candidates: str | None = option(
        None, "Replacements: neighbours, wordnet, datamuse, fill-mask, table:PATH, characters."
    )
    constraint: tuple[str, ...] = option(
        (), "One more thing to respect: fluency:MOST_LOSS, grammar[:MOST_NEW_ERRORS]."
    )
    only: str | None = option(None, "Attack rows of this class only; `any`: every class.")
    any_language: bool = option(False, "Also texts in letters that the attack's words do not know.")
    set_: tuple[str, ...] = option((), "Change a setting shown by `unfooled show`: path=value.", "--set")
    victim_option: tuple[str, ...] = option((), "name=value for the victim's adapter.")
    window: int = option(256, "Examples under attack at once; speed and memory only.", min=1)
    restart: bool = option(False, "Discard an earlier run in the same folder.")
    json: bool = option(False, "Print the summary as JSON and nothing else.")

    def run(self) -> int:
        from rich.console import Console

        from unfooled.core.session import Settings
        from unfooled.report.live import LiveObserver
        from unfooled.report.terminal import show_run
        from unfooled.runs.attack import attack

        self.check_rows()
        out = self.out or Path("runs") / slug(self.attack, self.model, self.data)
        recipe = chosen_recipe(self)
        victim = self.load_model(self.model)
        dataset = _data(self, victim)
        settings = Settings(
            seed=self.seed,
            budget=self.budget,
            max_words=self.max_words,
            window=self.window,
            any_language=self.any_language,
        )
        with LiveObserver(Console(stderr=True, quiet=self.json), title=recipe.full_name) as observer:
            try:
                run = attack(
                    victim,
                    dataset,
                    recipe,
                    out=out,
                    limit=self.first or self.limit,
                    first=self.first is not None,
                    workers=self.workers,
                    settings=settings,
                    target=self.target,
                    label_map=self.mapped_labels(),
                    final=self.final,
                    observer=observer,
                    restart=self.restart,
                )
            except KeyboardInterrupt:
                observer.stop()
                return interrupted(f"{observer.done} of {observer.total} examples are saved in {out}")
        summary = show_run(run.path, examples=5, as_json=self.json, told=True)
        if summary.total > observer.total:
            typer.echo(
                f"note: this run holds {summary.total} examples, {observer.total} were asked for", err=True
            )
        return Exit.SOME_ERRORS if summary.errors else Exit.DONE


def _data(options: Attack, victim: Victim) -> Examples:
    from unfooled.core.victim import CLASSIFICATION, task_of

    rows: dict[str, Any] = {"sample": options.sample, "seed": options.seed}
    task = task_of(victim.capabilities)
    if task == CLASSIFICATION:
        return options.load(options.data, edit=options.edit, clean=options.clean, **rows)
    if options.clean or options.edit or options.label_column:
        raise UserError(
            f"{victim.name} writes text: --clean, --edit and --label-column are for classifiers",
            "leave them out",
        )
    load: Callable[..., Examples] = registry.load("loader", task)
    return load(
        options.data,
        columns=listed(options.text_column),
        split=options.split,
        encoding=options.encoding,
        **rows,
    )


def chosen_recipe(options: Attack) -> Recipe:
    """The named recipe with the parts that options replace."""
    from unfooled.attacks.parts.goals import only_class
    from unfooled.core.recipe import load_part, load_recipe, with_constraint, with_everywhere, with_setting

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
    for constraint in options.constraint:
        recipe = with_constraint(recipe, load_part("constraint", constraint))
    for name, value in pairs(options.set_, "--set").items():
        recipe = with_setting(recipe, name, value)
    return recipe
