"""Tables for the terminal that are of no single run: models, transfers, words of classes."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from unfooled.checks.compare import Measured
from unfooled.checks.transfer import Transfer
from unfooled.metrics.summary import Rate
from unfooled.report.diffs import visible
from unfooled.report.tables import duration
from unfooled.resources.class_words import ClassWords


def models_table(measured: Sequence[Measured], title: str) -> Table:
    table = Table(title=visible(title), title_justify="left", box=None, pad_edge=False)
    table.add_column("model", overflow="fold")
    headings = ["accuracy", "macro F1", "parameters", "MB", "texts/s"]
    bare = any(model.of_bare_loop is not None for model in measured)
    headings += ["of bare loop"] if bare else []
    for heading in (*headings, "padding", "trained in"):
        table.add_column(heading, justify="right", no_wrap=True)
    for model in measured:
        table.add_row(
            visible(model.name),
            _percent(model.accuracy, model.accuracy_low, model.accuracy_high),
            _percent(model.macro_f1, model.macro_f1_low, model.macro_f1_high),
            "–" if model.parameters is None else f"{model.parameters:,}",
            "–" if model.megabytes is None else f"{model.megabytes:.1f}",
            f"{model.texts_per_second:,.0f}",
            *(["–" if model.of_bare_loop is None else f"{model.of_bare_loop:.0%}"] if bare else []),
            "–" if model.padding is None else f"{model.padding:.1%}",
            "–" if model.training_seconds is None else duration(model.training_seconds),
        )
    return table


def _percent(value: float, low: float, high: float) -> str:
    return f"{100 * value:.1f} % ({100 * low:.1f}–{100 * high:.1f})"


def transfers_table(found: Sequence[Transfer]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("attack", overflow="fold")
    table.add_column("found on", overflow="fold")
    table.add_column("scored on", overflow="fold")
    for heading in ("found", "right before", "fooled as well", "95 % interval", "same class"):
        table.add_column(heading, justify="right", no_wrap=True)
    for transfer in sorted(found, key=lambda transfer: (transfer.run, transfer.target)):
        rate = transfer.rate
        table.add_row(
            visible(transfer.attack),
            visible(transfer.source),
            visible(transfer.target),
            f"{transfer.found:,}" + (f" ({transfer.errors} errors)" if transfer.errors else ""),
            f"{rate.n:,}",
            _share(rate),
            f"{rate.low:.1%} – {rate.high:.1%}" if rate.n else "–",
            _share(transfer.same_class),
        )
    return table


def _share(rate: Rate) -> str:
    return f"{rate.value:.1%}" if rate.n else "–"


def class_words_table(words: ClassWords, top: int) -> Table:
    title = "Words that speak most for a class (ratio to the others; count in it/in the others)"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    lists = [words.strongest(number, top) for number in range(len(words.labels))]
    for label in words.labels:
        table.add_column(visible(label), overflow="fold")
    for rank in range(max(map(len, lists))):
        table.add_row(
            *(_cell(words, n, *ranked[rank]) if rank < len(ranked) else "" for n, ranked in enumerate(lists))
        )
    return table


def _cell(words: ClassWords, label: int, word: str, ratio: float) -> str:
    counts = words.counts[words.words.index(word)]
    return f"{visible(word)} ({ratio:.3g}; {counts[label]}/{counts.sum() - counts[label]})"
