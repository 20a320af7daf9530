"""The options of `unfooled playground`; what it does is imported when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

PLAYGROUND_EPILOG = """\b
Examples:
  unfooled playground --model fake
  unfooled playground --model models/bert --data mr --attack bae-r
  unfooled playground --model models/bert --against models/bert-fact --data reviews.csv
  unfooled playground --model models/nli --text-column premise,hypothesis
"""


def playground(
    model: Annotated[str, typer.Option("--model", "-m", help="As for `attack --model`.")],
    against: Annotated[
        str | None, typer.Option(help="A second model, such as the hardened one, side by side.")
    ] = None,
    data: Annotated[
        str | None, typer.Option("--data", "-d", help="Texts to pick from: a file or a named set.")
    ] = None,
    attack: Annotated[str, typer.Option("--attack", "-a", help="Chosen at first.")] = "textfooler",
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free one.")] = 8766,
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Needed for a --host that other machines can reach.")
    ] = False,
    token: Annotated[
        str | None,
        typer.Option(envvar="UNFOOLED_TOKEN", help="What visitors from elsewhere need; `new` makes one."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Texts of the data kept at hand.")] = 500,
    text_column: Annotated[
        str | None, typer.Option(help="Text column; two for pairs: premise,hypothesis.")
    ] = None,
    label_column: Annotated[str | None, typer.Option(help="Label column.")] = None,
    split: Annotated[str, typer.Option(help="Split of a named set or datasets folder.")] = "test",
    labels: Annotated[
        str | None, typer.Option(help="The models' class names in their order, comma-separated.")
    ] = None,
    label_map: Annotated[str | None, typer.Option(help="Data label=model label, comma-separated.")] = None,
    victim_option: Annotated[
        list[str] | None, typer.Option(help="name=value for the models' adapter.")
    ] = None,
    trust_pickle: Annotated[
        bool, typer.Option("--trust-pickle", help="Load a pickle. It may run any code.")
    ] = False,
) -> None:
    """Open a page to type a text, attack it and watch every step, on one model or two side by side."""
    from unfooled.cli.playground import PlaygroundOptions, run_playground

    run_playground(
        PlaygroundOptions(
            model=model,
            against=against,
            data=data,
            attack=attack,
            host=host,
            port=port,
            allow_remote=allow_remote,
            token=token,
            limit=limit,
            text_column=text_column,
            label_column=label_column,
            split=split,
            labels=labels,
            label_map=label_map,
            victim_options=tuple(victim_option or ()),
            trust_pickle=trust_pickle,
        )
    )
