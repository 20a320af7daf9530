"""`unfooled attack`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import typer

from unfooled.cli.command import Exit, interrupted, option
from unfooled.cli.options import Clean, ModelOptions, OneAttack, Prices, capped, print_json, slug
from unfooled.errors import CapReachedError, UserError
from unfooled.plugins import registry
from unfooled.values import listed

if TYPE_CHECKING:
    from unfooled.core.recipe import Recipe
    from unfooled.core.victim import Victim
    from unfooled.runs.caps import Caps
    from unfooled.runs.task import Examples


@dataclass(frozen=True, kw_only=True)
class Attack(OneAttack, Clean, ModelOptions, Prices):
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
  unfooled attack --model http://127.0.0.1:8000/predict --data d.csv --labels ham,spam --surrogate auto
  unfooled attack --model m.skops --data posts.csv --goal evade:hate,offensive@0.8 --attack deepwordbug
  unfooled attack --model ./en-de --data test.en,test.de --attack typo --candidates table:typos.txt
  unfooled attack --model ./en-de --data test.en,test.de --attack targeted-keyword --target Hund
"""

    model: str = option(..., "Path, module:function, hub name, http(s) address, or `fake`.", "-m")
    data: str = option(..., "CSV, TSV, JSONL (.gz), Parquet, datasets folder, set name.", "-d")
    attack: str = "textfooler"
    out: Path | None = option(None, "Folder of the run. [default: runs/…]", "-o")
    limit: int | None = None
    first: int | None = None
    sample: int | None = None
    final: bool = option(False, "Fix the number of rows: the run cannot grow, and one look may judge it.")
    shard: str | None = option(None, "Attack part 3 of 16 only: 3/16. `unfooled merge` joins the parts.")
    target: str | None = option(None, "Class to reach, or a translation's keyword. [default: any]")
    importance: str | None = option(
        None, "Order of words: gradient, deletion, bisection, attention[:LAYER], random, masking."
    )
    candidates: str | None = option(
        None, "Replacements: neighbours, wordnet, datamuse, fill-mask, table:PATH, characters."
    )
    constraint: tuple[str, ...] = option(
        (), "One more thing to respect: fluency:MOST_LOSS, grammar[:MOST_NEW_ERRORS]."
    )
    only: str | None = option(
        None, "Attack rows of this class only; `any`: every class.", "--only", "--only-label"
    )
    goal: str | None = option(None, "Pass a filter: evade:LABEL[@THRESHOLD], several separated by commas.")
    labels: str | None = option(None, "Victim's class names in its order, comma-separated.")
    label_map: str | None = option(None, "Data label=victim label, comma-separated.")
    victim_option: tuple[str, ...] = option((), "name=value for the victim's adapter.")
    dry_run: bool = option(False, "Write nothing: tell what it would cost, from a pilot of a few examples.")
    pilot: int = option(8, "Examples of that pilot.", min=2)
    order: str = option(
        "constraints-first", "What is asked first: constraints-first, victim-first, or auto by their costs."
    )
    surrogate: str = option(
        "none", "Fewer queries: auto fits a model of the victim first; PATH: one that is here; none."
    )
    surrogate_queries: int | None = option(
        None,
        "Most queries that `--surrogate auto` fits on. [default: 500 to 2000, by the attack]",
        min=1,
    )
    backend: str = option(
        "torch", "What computes a Hugging Face model: torch, onnx, onnx-8bit, openvino, or auto: the fastest."
    )
    window: int = option(256, "Examples under attack at once; speed and memory only.", min=1)

    def run(self) -> int:
        from unfooled.report.live import LiveObserver
        from unfooled.report.terminal import show_run
        from unfooled.runs.attack import attack

        rows = self.rows()
        part = (f"part-{self.shard.replace('/', '-of-')}",) if self.shard else ()
        out = self.out or Path("runs") / slug(self.attack, self.model, self.data, *part)
        recipe = self.recipe()
        victim = self.load_model(self.model, **self._evasion())
        dataset = _data(self, victim)
        label_map = self.mapped_labels()
        if self.goal:
            from unfooled.data.dataset import Dataset
            from unfooled.data.filtered import relabelled
            from unfooled.victims.filtering import Filter

            assert isinstance(dataset, Dataset)
            assert isinstance(victim, Filter)
            dataset, label_map = relabelled(dataset, victim, label_map), None
        caps = self.caps()
        if self.dry_run:
            return self._tell_cost(victim, dataset, recipe, label_map, out, caps)
        with LiveObserver(self.console(), title=recipe.full_name) as observer:
            try:
                run = attack(
                    victim,
                    dataset,
                    recipe,
                    out=out,
                    shard=self.shard,
                    workers=self.where(self.workers),
                    settings=self.settings(window=self.window),
                    target=self.target,
                    label_map=label_map,
                    final=self.final,
                    observer=observer,
                    restart=self.restart,
                    caps=caps,
                    order=self.order,  # type: ignore[arg-type]
                    surrogate=self.surrogate,
                    surrogate_queries=self.surrogate_queries,
                    backend=self.backend,
                    **rows,
                )
            except CapReachedError as reached:
                observer.stop()
                saved = f": {observer.done} of {observer.total} examples are saved in {out}"
                return capped(reached, saved if observer.total else f"; nothing in {out} was changed")
            except KeyboardInterrupt:
                observer.stop()
                return interrupted(f"{observer.done} of {observer.total} examples are saved in {out}")
        summary = show_run(run.path, examples=5, as_json=self.json, told=True)
        if summary.total > observer.total:
            typer.echo(
                f"note: this run holds {summary.total} examples, {observer.total} were asked for", err=True
            )
        return Exit.SOME_ERRORS if summary.errors else Exit.DONE

    def _tell_cost(
        self, victim: Victim, data: Examples, recipe: Recipe, label_map: Any, out: Path, caps: Caps | None
    ) -> int:
        from unfooled.checks.estimate import estimate
        from unfooled.report.costs import cost_lines
        from unfooled.report.live import LiveObserver
        from unfooled.runs.shard import Shard
        from unfooled.runs.surrogate import AUTO, FILE, QUERIES

        fits = self.surrogate == AUTO and not (out / FILE).exists()
        with LiveObserver(self.console(), title="pilot") as observer:
            found = estimate(
                victim,
                data,
                recipe,
                out=out,
                settings=self.settings(window=self.window),
                caps=caps,
                shard=Shard.parse(self.shard) if self.shard else None,
                workers=self.where(self.workers),
                pilot=self.pilot,
                observer=observer,
                target=self.target,
                label_map=label_map,
                order=self.order,
                backend=self.backend,
                surrogate=None if self.surrogate == AUTO else self.surrogate,
                fitting=(self.surrogate_queries or QUERIES) if fits else 0,
                **self.rows(),
            )
        if self.json:
            print_json(found.to_dict())
        else:
            typer.echo("\n".join(cost_lines(found)))
        return Exit.DONE

    def _evasion(self) -> dict[str, Any]:
        """How the model is loaded where the goal is to pass it."""
        if not self.goal:
            return {}
        from unfooled.victims.filtering import parse_goal

        if self.only or self.target:
            raise UserError(
                "--goal contradicts --only and --target", "leave these out: blocked rows are attacked"
            )
        flag, thresholds = parse_goal(self.goal)
        if thresholds and self.threshold:
            raise UserError("the threshold is given twice", "write it in --goal, or with --threshold")
        return {"flag": flag} | ({"thresholds": thresholds} if thresholds else {})

    def composed(self) -> Recipe:
        """The named recipe with the parts that options replace or add."""
        from unfooled.attacks.parts.goals import only_class
        from unfooled.core.recipe import load_part, with_constraint, with_everywhere

        recipe = super().composed()
        if self.only:
            recipe = only_class(recipe, self.only)
        if self.goal:
            from unfooled.victims.filtering import BLOCKED

            recipe = only_class(recipe, BLOCKED)
        for kind in ("importance", "candidates"):
            if name := getattr(self, kind):
                recipe = with_everywhere(recipe, kind, load_part(kind, name))
        for constraint in self.constraint:
            recipe = with_constraint(recipe, load_part("constraint", constraint))
        return recipe


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
