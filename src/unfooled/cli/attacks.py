"""`unfooled attacks` and `unfooled show`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import typer

from unfooled.cli.command import argument, option
from unfooled.cli.options import Output, print_json
from unfooled.plugins import registry


@dataclass(frozen=True, kw_only=True)
class Attacks(Output):
    EPILOG: ClassVar[str] = "\b\nExample:\n  unfooled attacks --need decisions --level characters\n"

    need: str = option("", "Only those that need this of a victim: decisions, probabilities, gradients, …")
    level: str = option("", "Only those that edit characters, words or sentences.")
    search: str = option("", "Only those whose name, summary or paper holds this text.")

    def run(self) -> None:
        from unfooled.core.attack_list import as_text, list_attacks
        from unfooled.core.recipe import all_recipes
        from unfooled.report.recipes import brief

        found = list_attacks(need=self.need, level=self.level, search=self.search)
        if self.json:
            names = {attack.name for attack in found}
            print_json([brief(recipe) for recipe in all_recipes() if recipe.name in names])
            return
        typer.echo(as_text(found))
        if found:
            many = "1 attack" if len(found) == 1 else f"{len(found)} attacks"
            typer.echo(
                f"\n{many}. The first version is what the name alone means. `unfooled show NAME` tells the"
            )
            typer.echo("rest; --need, --level and --search make the list shorter.")


@dataclass(frozen=True, kw_only=True)
class Show(Output):
    EPILOG: ClassVar[str] = "\b\nExample:\n  unfooled show textfooler@paper\n"

    name: str = argument(..., "An attack, such as textfooler or textfooler@paper.")

    def run(self) -> None:
        from unfooled.core.recipe import load_recipe
        from unfooled.report.recipes import account, brief, settings_of

        recipe = load_recipe(self.name)
        if self.json:
            print_json(brief(recipe) | {"settings": recipe.to_json(whole=True)})
            return
        versions = registry.load("attack", recipe.name)
        typer.echo(account(recipe))
        typer.echo(f"\nVersions: {', '.join(f'{recipe.name}@{version}' for version in versions)}")
        typer.echo(f"Needs of the victim: {', '.join(recipe.requires()) or 'nothing but decisions'}")
        typer.echo(f"Reads: {', '.join(recipe.oracles()) or 'nothing else'}")
        typer.echo(f"Settings of {recipe.full_name} (change one with --set path=value):")
        for path, value in settings_of(recipe.to_json(whole=True)):
            typer.echo(f"  {path} = {value}")
