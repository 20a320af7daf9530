"""`unfooled playground`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

import typer

from unfooled.cli.command import option
from unfooled.cli.options import ColumnOptions, LabelMap, ModelOptions, Server
from unfooled.errors import UserError
from unfooled.trust import granted
from unfooled.values import columns, listed

if TYPE_CHECKING:
    from unfooled.core.victim import Victim
    from unfooled.people.web.playground_app import Playground


@dataclass(frozen=True, kw_only=True)
class OpenPlayground(Server, ColumnOptions, LabelMap, ModelOptions):
    EPILOG: ClassVar[str] = """\b
Examples:
  unfooled playground --model fake
  unfooled playground --model models/bert --data mr --attack bae-r
  unfooled playground --model models/bert --against models/bert-fact --data reviews.csv
  unfooled playground --model models/nli --text-column premise,hypothesis
"""

    model: str = option(..., "As for `attack --model`.", "-m")
    against: str | None = option(None, "A second model, such as the hardened one, side by side.")
    data: str | None = option(None, "Texts to pick from: a file or a named set.", "-d")
    attack: str = option("textfooler", "Chosen at first.", "-a")
    port: int = 8766
    limit: int = option(500, "Texts of the data kept at hand.", "-n", min=1)

    def run(self) -> None:
        from rich.console import Console

        from unfooled.core.recipe import load_recipe
        from unfooled.people.web.playground_app import PlaygroundApp
        from unfooled.people.web.serving import checked_token, serve

        token = checked_token(self.host, allow_remote=self.allow_remote, token=self.token)
        load_recipe(self.attack)  # a wrong name is said before a model is loaded
        with Console(stderr=True).status("Loading …"):
            app = PlaygroundApp(_playground(self))

        def announce(address: str) -> None:
            typer.echo(f"playground of {self.model}: open {address}\nCtrl-C stops it.")

        serve(app, host=self.host, port=self.port, token=token, announce=announce, stop=app.close)


def _playground(options: OpenPlayground) -> Playground:
    from unfooled.people.web.playground_app import Playground
    from unfooled.people.web.repeating import ModelArguments

    specs = [options.model, *([options.against] if options.against else [])]
    victims = tuple(_victim(spec, options) for spec in specs)
    if len({victim.labels for victim in victims}) > 1:
        told = "; ".join(f"{victim.name}: {', '.join(victim.labels)}" for victim in victims)
        raise UserError(f"the two models have different classes: {told}", "name them alike with --labels")
    shown = Playground(
        victims=victims,
        models=tuple(
            ModelArguments(spec, options.labels, granted(), options.victim_option, options.threshold)
            for spec in specs
        ),
        names=_names(victims),
        attack=options.attack,
    )
    return _with_data(shown, options)


def _victim(spec: str, options: OpenPlayground) -> Victim:
    victim = options.load_model(spec)
    if not victim.labels:
        raise UserError(f"{victim.name} writes text, and the playground is for classifiers", "name another")
    return victim


def _names(victims: tuple[Victim, ...]) -> tuple[str, ...]:
    names = [victim.name for victim in victims]
    return tuple(names) if len(set(names)) == len(names) else (names[0], f"{names[1]} (against)")


def _with_data(shown: Playground, options: OpenPlayground) -> Playground:
    from unfooled.data.loading import load_data

    if options.data is None:
        fields = tuple(listed(options.text_column) or shown.fields)
        return replace(shown, fields=fields, edit=fields[-1])
    dataset = load_data(
        options.data, text=columns(options.text_column), label=options.label_column, split=options.split
    ).aligned(
        shown.victims[0].labels,
        options.mapped_labels(),
    )
    usable = (example for example in dataset if not example.problem)
    return replace(
        shown,
        fields=dataset.fields,
        edit=dataset.edit,
        examples=tuple(islice(usable, options.limit)),
        data=dataset.name,
    )
