"""The options of `unfooled study …`; what they do is imported when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unfooled.cli.options import AllowRemote, AsJson, Host, Port, StudyFile, Token

app = typer.Typer(
    name="study",
    help="Let people judge adversarial texts: make a study, serve its page, report what they say.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

CREATE_EPILOG = """\b
Examples:
  unfooled study create runs/textfooler runs/bae --n 100 --annotators 3 -o study.db
  unfooled study create runs/gs-gr runs/gs-ec --protocol self-attention -o pairs.db
  unfooled study create runs/tweets --protocol breaking-bert --n 100 -o tweets.db
\b
Protocols: bae (class and naturalness 1-5 after a primer), self-attention (class; which of two is more
readable), breaking-bert (fluency and meaning 1-5), or a .toml file of your own.
"""

SERVE_EPILOG = """\b
Examples:
  unfooled study serve study.db
  unfooled study serve study.db --host 0.0.0.0 --allow-remote --token new
\b
Answers are on disk before the page says so. Stop the server at any time; start it again to go on.
"""

REPORT_EPILOG = """\b
Examples:
  unfooled study report study.db
  unfooled study report study.db --json --answers answers.csv
  unfooled report runs/textfooler runs/bae --study study.db -o report.html
"""


@app.command(epilog=CREATE_EPILOG)
def create(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs with successes.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The study file to write.")],
    protocol: Annotated[
        str, typer.Option(help="bae, self-attention, breaking-bert, or a .toml file.")
    ] = "bae",
    n: Annotated[
        int, typer.Option("--n", "-n", min=1, help="Adversarial texts in all, evenly from the runs.")
    ] = 100,
    annotators: Annotated[int, typer.Option(min=1, help="How many people; each gets a code.")] = 3,
    originals: Annotated[
        int | None, typer.Option(min=0, help="Originals among the items. [default: the protocol's]")
    ] = None,
    checks: Annotated[
        int | None, typer.Option(min=0, help="Attention checks. [default: one in twenty, two at least]")
    ] = None,
    primer: Annotated[
        int | None, typer.Option(min=0, help="Originals to read first. [default: the protocol's]")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same texts and orders.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print codes and counts as JSON.")] = False,
) -> None:
    """Sample successes of runs, mix in originals and attention checks, and give every annotator a code."""
    from unfooled.cli.study import run_create

    run_create(
        runs,
        out,
        protocol=protocol,
        n=n,
        annotators=annotators,
        originals=originals,
        checks=checks,
        primer=primer,
        seed=seed,
        as_json=json,
    )


@app.command(epilog=SERVE_EPILOG)
def serve(
    study: StudyFile,
    host: Host = "127.0.0.1",
    port: Port = 8765,
    allow_remote: AllowRemote = False,
    token: Token = None,
) -> None:
    """Open the page on which annotators judge, one item at a time."""
    from unfooled.cli.study import run_serve

    run_serve(study, host=host, port=port, allow_remote=allow_remote, token=token)


@app.command(epilog=REPORT_EPILOG)
def report(
    study: StudyFile,
    only_attentive: Annotated[
        bool, typer.Option("--only-attentive", help="Leave out annotators who failed most attention checks.")
    ] = False,
    disagreements: Annotated[int, typer.Option(min=0, help="How many disputed items to show.")] = 5,
    answers: Annotated[Path | None, typer.Option(help="Also write every answer to this CSV file.")] = None,
    json: AsJson = False,
) -> None:
    """Say what people think so far: accuracy, naturalness, readability, agreement, quality, disputes."""
    from unfooled.cli.study import run_study_report

    run_study_report(
        study, only_attentive=only_attentive, disagreements=disagreements, answers=answers, as_json=json
    )
