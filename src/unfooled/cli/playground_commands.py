"""The options of `unfooled playground`; what it does is imported when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from unfooled.cli.options import (
    AllowRemote,
    Host,
    LabelColumn,
    LabelMap,
    Labels,
    Port,
    Split,
    TextColumn,
    Token,
    TrustPickle,
    TrustRemoteCode,
    TrustTypes,
    VictimOptions,
)

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
    host: Host = "127.0.0.1",
    port: Port = 8766,
    allow_remote: AllowRemote = False,
    token: Token = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Texts of the data kept at hand.")] = 500,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    split: Split = "test",
    labels: Labels = None,
    label_map: LabelMap = None,
    victim_option: VictimOptions = None,
    trust_pickle: TrustPickle = False,
    trust_remote_code: TrustRemoteCode = False,
    trust: TrustTypes = None,
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
