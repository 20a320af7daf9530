"""`unfooled playground`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice

import typer
from rich.console import Console

from unfooled.cli.values import columns, listed, literal, pairs
from unfooled.core.recipe import load_recipe
from unfooled.core.victim import Victim
from unfooled.data.loading import load_data
from unfooled.errors import UserError
from unfooled.people.web.playground_app import Playground, PlaygroundApp
from unfooled.people.web.repeating import ModelArguments
from unfooled.people.web.serving import checked_token, serve
from unfooled.trust import granted
from unfooled.victims.loading import load_victim


@dataclass(frozen=True, kw_only=True)
class PlaygroundOptions:
    model: str
    against: str | None
    data: str | None
    attack: str
    host: str
    port: int
    allow_remote: bool
    token: str | None
    limit: int
    text_column: str | None
    label_column: str | None
    split: str
    labels: str | None
    label_map: str | None
    victim_options: tuple[str, ...]
    trust_pickle: bool


def run_playground(options: PlaygroundOptions) -> None:
    token = checked_token(options.host, allow_remote=options.allow_remote, token=options.token)
    load_recipe(options.attack)  # a wrong name is said before a model is loaded
    with Console(stderr=True).status("Loading …"):
        app = PlaygroundApp(_playground(options))

    def announce(address: str) -> None:
        typer.echo(f"playground of {options.model}: open {address}\nCtrl-C stops it.")

    serve(app, host=options.host, port=options.port, token=token, announce=announce, stop=app.close)


def _playground(options: PlaygroundOptions) -> Playground:
    specs = [options.model, *([options.against] if options.against else [])]
    victims = tuple(_victim(spec, options) for spec in specs)
    if len({victim.labels for victim in victims}) > 1:
        told = "; ".join(f"{victim.name}: {', '.join(victim.labels)}" for victim in victims)
        raise UserError(f"the two models have different classes: {told}", "name them alike with --labels")
    shown = Playground(
        victims=victims,
        models=tuple(
            ModelArguments(spec, options.labels, granted(), options.victim_options) for spec in specs
        ),
        names=_names(victims),
        attack=options.attack,
    )
    return _with_data(shown, options)


def _victim(spec: str, options: PlaygroundOptions) -> Victim:
    given = pairs(options.victim_options, "--victim-option")
    victim = load_victim(
        spec,
        labels=listed(options.labels),
        trust_pickle=options.trust_pickle,
        **{name: literal(value) for name, value in given.items()},
    )
    if not victim.labels:
        raise UserError(f"{victim.name} writes text, and the playground is for classifiers", "name another")
    return victim


def _names(victims: tuple[Victim, ...]) -> tuple[str, ...]:
    names = [victim.name for victim in victims]
    return tuple(names) if len(set(names)) == len(names) else (names[0], f"{names[1]} (against)")


def _with_data(shown: Playground, options: PlaygroundOptions) -> Playground:
    if options.data is None:
        fields = tuple(listed(options.text_column) or shown.fields)
        return replace(shown, fields=fields, edit=fields[-1])
    dataset = load_data(
        options.data, text=columns(options.text_column), label=options.label_column, split=options.split
    ).aligned(
        shown.victims[0].labels,
        pairs(options.label_map.split(","), "--label-map") if options.label_map else None,
    )
    usable = (one for one in dataset if not one.problem)
    return replace(
        shown,
        fields=dataset.fields,
        edit=dataset.edit,
        examples=tuple(islice(usable, options.limit)),
        data=dataset.name,
    )
