"""What there is to choose from, with every setting: families of models and methods of hardening."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from unfooled.defenses.methods import TRAINING, Method, all_methods
from unfooled.training.families import Family, all_families


def families_as_json() -> list[dict[str, Any]]:
    return [_described(family, family.defaults) for family in all_families()]


def methods_as_json() -> list[dict[str, Any]]:
    return [
        _described(method, {**method.defaults, **(TRAINING if method.kind == "train" else {})})
        | {"kind": method.kind}
        for method in all_methods().values()
    ]


def print_families(console: Console) -> None:
    for family in all_families():
        rows = [
            (name, value, _drawn("sweep", family, name), family.option(name).help)
            for name, value in family.defaults.items()
        ]
        _print(console, _heading(family), rows)


def print_methods(console: Console) -> None:
    for method in all_methods().values():
        rows = [(name, value, _drawn("search", method, name)) for name, value in method.defaults.items()]
        _print(console, _heading(method), rows)
    _print(console, "[bold]every method that trains[/]", TRAINING.items())


def _described(chosen: Family | Method, defaults: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": chosen.name,
        "summary": chosen.summary,
        "paper": chosen.paper,
        "defaults": dict(defaults),
        "ranges": {name: str(drawn) for name, drawn in chosen.ranges.items()},
    }


def _heading(chosen: Family | Method) -> str:
    return f"[bold]{chosen.name}[/]: {chosen.summary} [dim]({chosen.paper})[/]"


def _drawn(by: str, chosen: Family | Method, name: str) -> str:
    return f"{by}: {chosen.ranges[name]}" if name in chosen.ranges else ""


def _print(console: Console, heading: str, rows: Iterable[tuple[Any, ...]]) -> None:
    console.print(heading, highlight=False)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 2), show_header=False)
    for name, value, *told in rows:
        table.add_row(name, escape(str(value)) or "–", *(f"[dim]{escape(line)}[/]" for line in told))
    console.print(table)
