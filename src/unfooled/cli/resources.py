"""`unfooled resources`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import typer

from unfooled.cli.command import argument, option
from unfooled.cli.options import Output, print_json
from unfooled.errors import UserError


@dataclass(frozen=True, kw_only=True)
class Resources(Output):
    EPILOG: ClassVar[str] = """\b
Examples:
  unfooled resources                 what is here and what is not
  unfooled resources get minilm      fetch one from the package registry
  unfooled resources get all         fetch and build everything that takes no training
  unfooled resources build masked-lm --minutes 40      train the masked language model, or go on with it
  unfooled resources build counter-fitted --again      build it anew
"""

    action: str = argument("list", "`list`, `get` or `build`, the last two followed by names.")
    names: tuple[str, ...] = argument((), "Names, or `all`.")
    minutes: float | None = option(None, "build: minutes of training in all, earlier ones included.")
    again: bool = option(False, "Replace what is here, from the start.")

    def run(self) -> None:
        from rich.console import Console

        from unfooled.report.resources import build, built_told, fetch, fetch_all, print_resources
        from unfooled.resources import store

        if self.action == "list":
            entries = store.status()
            print_json([entry.to_dict() for entry in entries]) if self.json else print_resources(entries)
            return
        if self.action not in ("get", "build"):
            raise UserError(
                f"resources cannot {self.action!r}",
                "use `unfooled resources`, `unfooled resources get NAME` or `unfooled resources build NAME`",
            )
        if self.action == "get" and self.minutes is not None:
            raise UserError("--minutes is for builds", "use `unfooled resources build NAME`")
        if not self.names:
            raise UserError("which resource?", "`unfooled resources` lists them; `get all` fetches every one")
        console = Console(stderr=True)
        if self.action == "build":
            records = build(self.names, console, minutes=self.minutes, again=self.again)
            print_json(records) if self.json else typer.echo("\n".join(built_told(records)))
        elif self.names == ("all",):
            fetch_all(console, again=self.again)
        else:
            fetch(self.names, console, again=self.again)
