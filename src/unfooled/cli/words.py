"""`unfooled words`."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from unfooled.cli.app import Exit
from unfooled.data.loading import load_data
from unfooled.errors import UserError
from unfooled.report.diffs import visible
from unfooled.resources.class_words import KIND, ClassWords
from unfooled.training.class_words import count_class_words


@dataclass(frozen=True, kw_only=True)
class WordsOptions:
    data: str
    out: Path
    top: int
    limit: int | None
    split: str
    text_column: str | None
    label_column: str | None
    edit: str | None
    label_map: str | None
    encoding: str
    force: bool
    json: bool


def run_words(options: WordsOptions) -> int:
    _check_free(options.out, force=options.force)
    columns = [one.strip() for one in options.text_column.split(",")] if options.text_column else None
    data = load_data(
        options.data,
        text=columns[0] if columns and len(columns) == 1 else columns,
        label=options.label_column,
        edit=options.edit,
        split=options.split,
        encoding=options.encoding,
        limit=options.limit,
    )
    console = Console(stderr=True, quiet=options.json)
    examples = track(data, "counting words", total=len(data), console=console, transient=True)
    words = renamed(count_class_words(data, examples), options.label_map)
    words.write(options.out, top=options.top)
    if options.json:
        lists = {label: dict(words.strongest(n, options.top)) for n, label in enumerate(words.labels)}
        typer.echo(json.dumps({"out": str(options.out), "strongest": lists}, indent=2, ensure_ascii=False))
        return Exit.DONE
    Console().print(table_of(words, options.top))
    typer.echo(f"{len(words.words):,} words of {visible(data.name)}, written: {options.out}")
    return Exit.DONE


def renamed(words: ClassWords, label_map: str | None) -> ClassWords:
    """The same counts with other names of the classes."""
    names = list(words.labels)
    for pair in label_map.split(",") if label_map else ():
        old, equals, new = (part.strip() for part in pair.partition("="))
        if not equals or old not in words.labels or not new:
            raise UserError(
                f"--label-map {pair!r} renames no class", f"write old=new; classes: {', '.join(words.labels)}"
            )
        names[words.labels.index(old)] = new
    if len(set(names)) < len(names):
        raise UserError(f"two classes would be called the same: {', '.join(names)}", "check --label-map")
    return dataclasses.replace(words, labels=tuple(names))


def table_of(words: ClassWords, top: int) -> Table:
    title = "Words that speak most for a class (ratio to the others; count in it/in the others)"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    lists = [words.strongest(number, top) for number in range(len(words.labels))]
    for label in words.labels:
        table.add_column(visible(label), overflow="fold")
    for rank in range(max(map(len, lists))):
        table.add_row(
            *(_cell(words, n, *one[rank]) if rank < len(one) else "" for n, one in enumerate(lists))
        )
    return table


def _cell(words: ClassWords, label: int, word: str, ratio: float) -> str:
    counts = words.counts[words.words.index(word)]
    return f"{visible(word)} ({ratio:.3g}; {counts[label]}/{counts.sum() - counts[label]})"


def _check_free(out: Path, *, force: bool) -> None:
    """A word file may be replaced by a new one; any other file only when asked."""
    if out.is_dir():
        raise UserError(f"{out} is a folder", "name a file, such as words.json")
    if not out.exists() or force:
        return
    with out.open("rb") as file:
        ours = KIND.encode() in file.read(200)
    if not ours:
        raise UserError(
            f"{out} exists and is no word file", "choose another --out, or replace it with --force"
        )
