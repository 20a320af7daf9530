"""The options of `unfooled report` and `unfooled gate`; what they do is imported when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unfooled.cli.options import AsJson, RunFolder, TrustRemoteCode

REPORT_EPILOG = """\b
Examples:
  unfooled report runs/x -o report.html
  unfooled report runs/base runs/hardened -o comparison.html
  unfooled report runs/x -o report --folder
  unfooled report runs/textfooler runs/bae --study study.db -o report.html
"""

MEASURE_EPILOG = """\b
Examples:
  unfooled measure runs/x
  unfooled measure runs/x --with similarity:use --with perplexity:trigram --with grammar --with same-pos
\b
Measures: similarity[:minilm, use, potion] · perplexity[:trigram, smollm2] · grammar[:harper, link-grammar] ·
edit-distance · same-pos · changed-pos. link-grammar needs the program link-parser (Debian: link-grammar).
"""

GATE_EPILOG = """\b
Examples:
  unfooled gate runs/x --min-aua 0.6 --max-success 0.3
  unfooled gate runs/x --min-recall offensive=0.8
  unfooled gate runs/x --min-aua 0.6 --junit gate.xml --markdown gate.md
\b
A rule passes or fails when its whole 95 % interval lies on one side of the bound; otherwise it is undecided.
So is a rule that would pass although the attack could try nothing on most examples.
Exit codes: 0 passed · 1 failed · 4 undecided (attack more examples, or allow it with --undecided-passes).
"""


def report(
    runs: Annotated[list[Path], typer.Argument(help="Folders of one or more runs.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The page, or with --folder a folder.")] = Path(
        "report.html"
    ),
    folder: Annotated[
        bool, typer.Option("--folder", help="Also summary.md, summary.json and results.csv, for one run.")
    ] = False,
    study: Annotated[
        Path | None, typer.Option(help="Add what people said: a file of `unfooled study create`.")
    ] = None,
    tensorboard: Annotated[Path | None, typer.Option(help="Also log the numbers to this folder.")] = None,
    mlflow: Annotated[
        str | None, typer.Option(help="Also log the numbers to this MLflow address (or folder).")
    ] = None,
) -> None:
    """Write one self-contained HTML page about a run, or several side by side."""
    from unfooled.cli.report import run_report

    run_report(runs, out, folder=folder, study=study, tensorboard=tensorboard, mlflow=mlflow)


def measure(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    what: Annotated[
        list[str] | None,
        typer.Option("--with", help="A measure, repeated for several. [default: similarity, edit-distance]"),
    ] = None,
    trust_remote_code: TrustRemoteCode = False,
    json: AsJson = False,
) -> None:
    """Measure the texts that a run found: similarity, fluency, grammar. Nothing is attacked again."""
    from unfooled.cli.report import run_measure

    run_measure(run, what or ["similarity", "edit-distance"], as_json=json)


def gate(
    run: RunFolder,
    min_aua: Annotated[float | None, typer.Option(help="Least accuracy under attack.")] = None,
    max_success: Annotated[float | None, typer.Option(help="Highest success rate of the attack.")] = None,
    min_recall: Annotated[
        list[str] | None, typer.Option(help="Least recall of a class under attack: offensive=0.8.")
    ] = None,
    min_accuracy: Annotated[float | None, typer.Option(help="Least accuracy before the attack.")] = None,
    max_errors: Annotated[
        float, typer.Option(help="Highest share of examples that may end in an error.")
    ] = 0.05,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML here.")] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Write a short table for a pull request here.")
    ] = None,
    undecided_passes: Annotated[
        bool, typer.Option("--undecided-passes", help="Let an undecided gate pass (exit code 0).")
    ] = False,
    json: AsJson = False,
) -> None:
    """Pass or fail a run by bounds on its rates, as its intervals allow."""
    from unfooled.cli.report import run_gate
    from unfooled.cli.values import shares

    bounds = {"aua": min_aua, "accuracy-before": min_accuracy}, {"success": max_success, "errors": max_errors}
    raise typer.Exit(
        run_gate(
            run,
            *bounds,
            shares(min_recall or (), "--min-recall"),
            junit=junit,
            markdown=markdown,
            undecided_passes=undecided_passes,
            as_json=json,
        )
    )
