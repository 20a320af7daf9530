"""The options of `unfooled reproduce`; what it does is imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

REPRODUCE_EPILOG = """\b
Examples:
  unfooled reproduce lstm-jsma --scale small
  unfooled reproduce all --scale smoke --out smoke --work smoke-work
  unfooled reproduce firebert --scale paper --work /big/disk/work
  unfooled reproduce all --data ../data
  unfooled reproduce self-attentive --workers 4
  unfooled reproduce firebert --so-far
\b
Papers: lstm-jsma, self-attentive, firebert, bae, breaking-bert, or all of them.
Scales: smoke (tiny models, minutes, numbers without meaning), small (two cores and the data sets of
UNFOOLED_DATA, up to 90 minutes per paper), paper (the full protocol with models and data from the hub).
Everything is kept in WORK: repeat the command to go on after a stop.
"""


def reproduce(
    paper: Annotated[str, typer.Argument(help="A paper from the list below, or `all`.", metavar="PAPER")],
    scale: Annotated[str, typer.Option("--scale", "-s", help="smoke, small or paper.")] = "small",
    data: Annotated[
        Path | None, typer.Option("--data", "-d", help="Folder of data sets. [default: $UNFOOLED_DATA]")
    ] = None,
    work: Annotated[
        Path, typer.Option("--work", "-w", help="Folder that keeps models, samples and runs.")
    ] = Path("reproduction-work"),
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the pages.")] = Path("reproduction"),
    so_far: Annotated[
        bool, typer.Option("--so-far", help="Run nothing: judge what is finished, and write its page.")
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(help="Processes that share the stages. [default: 2 at the scale small, else 1]", min=1),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the claims as JSON and nothing else.")] = False,
) -> None:
    """Measure the findings of a paper, judge each claim, and write a page about it."""
    from unfooled.cli.reproduce import ReproduceOptions, run_reproduce

    options = ReproduceOptions(
        paper=paper,
        scale=scale,
        data=data,
        work=work,
        out=out,
        so_far=so_far,
        workers=workers,
        json=json,
    )
    raise typer.Exit(run_reproduce(options))
