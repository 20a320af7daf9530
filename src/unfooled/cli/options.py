"""Options that several commands share: one spelling, one help text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unfooled.trust import trusting


def _grant_pickle(context: typer.Context, value: bool) -> bool:
    context.with_resource(trusting(pickle=value))  # ends with the command
    return value


def _grant_remote_code(context: typer.Context, value: bool) -> bool:
    context.with_resource(trusting(remote_code=value))
    return value


def _grant_types(context: typer.Context, value: list[str] | None) -> list[str] | None:
    context.with_resource(trusting(types=value or ()))
    return value


AllowRemote = Annotated[
    bool, typer.Option("--allow-remote", help="Needed for a --host that other machines can reach.")
]
AnyLanguage = Annotated[
    bool, typer.Option("--any-language", help="Also texts in letters that the attack's words do not know.")
]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]
AttackName = Annotated[str, typer.Option("--attack", "-a", help="A name from `unfooled attacks`.")]
Clean = Annotated[
    str | None, typer.Option(help="Clean texts first: `tweets`, or steps such as links,handles.")
]
Encoding = Annotated[str, typer.Option(help="Encoding of a text file.")]
Host = Annotated[str, typer.Option(help="Address to listen on.")]
JsonOnly = Annotated[bool, typer.Option("--json", help="Print the result as JSON and nothing else.")]
LabelColumn = Annotated[str | None, typer.Option(help="Label column.")]
LabelMap = Annotated[str | None, typer.Option(help="Data label=model label, comma-separated.")]
Labels = Annotated[str | None, typer.Option(help="The models' class names in their order, comma-separated.")]
MaxWords = Annotated[int, typer.Option(min=1, help="Longer rows end as errors.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free one.")]
RunFolder = Annotated[Path, typer.Argument(help="Folder of a run.")]
Seed = Annotated[int, typer.Option(min=0, help="Same seed, same results.")]
Settings = Annotated[list[str] | None, typer.Option("--set", help="Any other setting: name=value.")]
Split = Annotated[str, typer.Option(help="Split of a named set or datasets folder.")]
StudyFile = Annotated[Path, typer.Argument(help="A file of `study create`.")]
TextColumn = Annotated[str | None, typer.Option(help="Text column; two for pairs: premise,hypothesis.")]
Thresholds = Annotated[
    list[str] | None,
    typer.Option("--threshold", help="Decide a class from this score on: offensive=0.8, or several."),
]
Token = Annotated[
    str | None,
    typer.Option(envvar="UNFOOLED_TOKEN", help="What visitors from elsewhere need; `new` makes one."),
]
TrainLimit = Annotated[
    int | None, typer.Option("--limit", "-n", min=1, help="Train on the first N rows only.")
]
TrustPickle = Annotated[
    bool,
    typer.Option("--trust-pickle", callback=_grant_pickle, help="Load a pickle. It may run any code."),
]
TrustRemoteCode = Annotated[
    bool,
    typer.Option(
        "--trust-remote-code",
        callback=_grant_remote_code,
        help="Run the Python code that a model's folder or hub page brings.",
    ),
]
TrustTypes = Annotated[
    list[str] | None,
    typer.Option("--trust", callback=_grant_types, help="A type that a .skops file may hold; repeatable."),
]
Valid = Annotated[
    str | None, typer.Option(help="Validation: share of the rows, file, or split. [default: 0.1]")
]
VictimOptions = Annotated[list[str] | None, typer.Option(help="name=value for the models' adapter.")]
