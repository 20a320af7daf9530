"""`unfooled import`: what other tools wrote down, as a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Make a run of what another tool wrote down.")

TEXTATTACK_EPILOG = """\b
Examples:
  unfooled import textattack results.csv --out runs/imported
  unfooled import textattack log.txt --labels negative,positive --out runs/imported
  unfooled import textattack results.csv --summary results_summary.json
"""


@app.callback()
def root() -> None:
    """Make a run of what another tool wrote down."""


@app.command(epilog=TEXTATTACK_EPILOG)
def textattack(
    log: Annotated[Path, typer.Argument(help="A file of --log-to-csv or --log-to-txt.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder of the run. [default: runs/import-…]")
    ] = None,
    labels: Annotated[
        str | None, typer.Option(help="Class names in the order of their numbers, comma-separated.")
    ] = None,
    summary: Annotated[
        Path | None, typer.Option(help="The file of --log-summary-to-json, to compare with.")
    ] = None,
    restart: Annotated[bool, typer.Option("--restart", help="Discard an earlier run in the folder.")] = False,
) -> None:
    """A log of TextAttack, for `report`, `measure`, `gate` and `transfer`."""
    from unfooled.cli.render import show_run
    from unfooled.runs.textattack_logs import import_textattack

    folder = out or Path("runs") / f"import-{log.stem}"
    names = tuple(name.strip() for name in labels.split(",")) if labels else ()
    done = import_textattack(log, out=folder, labels=names, summary=summary, restart=restart)
    show_run(folder, examples=5, as_json=False)
    typer.echo("\nas TextAttack counts:")
    for name, value in done.statistics.items():
        typer.echo(f"  {name} {value:g}")
    for difference in done.differences():
        typer.echo(f"! the log itself says otherwise: {difference}")
