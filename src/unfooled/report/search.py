"""A search for the settings of a defence, in the terminal."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.table import Table

from unfooled.defenses.search import Found


def print_search(console: Console, found: Found, balance: float) -> None:
    """The best five trials beside the model without the defence; `balance` weighs clean accuracy."""

    def cells(clean: float, premade: float) -> tuple[str, str, str]:
        return f"{clean:.3f}", f"{premade:.3f}", f"{balance * clean + (1 - balance) * premade:.3f}"

    table = Table(box=None, pad_edge=False)
    for name in ("", "clean", "pre-made", "weighed", "settings"):
        table.add_column(name, justify="left" if name in ("", "settings") else "right")
    table.add_row("without", *cells(found.base["clean"], found.base["premade"]), "")
    for trial in sorted(found.trials, key=lambda trial: -trial.value)[:5]:
        table.add_row(
            f"trial {trial.number + 1}", *cells(trial.clean, trial.premade), _listed(trial.settings)
        )
    console.print(table)
    if found.importance:
        console.print("matters most: " + _listed(dict(list(found.importance.items())[:4])), highlight=False)
    console.print(f"best of {len(found.trials)} trials: {found.path}", highlight=False, markup=False)


def _listed(settings: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items())
