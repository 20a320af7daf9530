"""`unfooled study create`, `serve` and `report`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import typer
from rich.console import Console

from unfooled.errors import RunFileError
from unfooled.people.study.file import StudyFile, spaced_code
from unfooled.people.study.protocols import load_protocol
from unfooled.people.study.sampling import draw
from unfooled.report.diffs import visible


def run_create(
    runs: Sequence[Path],
    out: Path,
    *,
    protocol: str,
    n: int,
    annotators: int,
    originals: int | None,
    checks: int | None,
    primer: int | None,
    seed: int,
    as_json: bool,
) -> None:
    if out.exists():
        raise RunFileError(f"{out}: there is a file already", "choose another -o; answers are never replaced")
    with Console(stderr=True, quiet=as_json).status("Reading the runs …"):
        content = draw(
            runs,
            load_protocol(protocol),
            n=n,
            annotators=annotators,
            originals=originals,
            checks=checks,
            primer=primer,
            seed=seed,
        )
        with StudyFile.create(out, content) as study:
            codes = {number: spaced_code(code) for number, code in study.codes.items()}
    counts = Counter(item.kind for item in content.items)
    if as_json:
        told = {"study": str(out), "items": len(content.items), "kinds": dict(counts), "codes": codes}
        typer.echo(json.dumps(told | {"notices": content.notices}, indent=2))
        return
    for notice in content.notices:
        typer.echo(f"! {visible(notice)}", err=True)
    kinds = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    typer.echo(f"{out}: {len(content.items)} items for each of {annotators} annotators ({kinds})")
    if content.primer:
        typer.echo(f"  {len(content.primer)} other originals are read first")
    typer.echo("codes, one for each person:")
    for number, code in codes.items():
        typer.echo(f"  {number}  {code}")
    typer.echo(f"next: unfooled study serve {out}")


def run_serve(path: Path, *, host: str, port: int, allow_remote: bool, token: str | None) -> None:
    from unfooled.people.web.serving import checked_token, serve
    from unfooled.people.web.study_app import study_app

    wanted = checked_token(host, allow_remote=allow_remote, token=token)
    with StudyFile.open(path) as study:
        app = study_app(study)

        def announce(address: str) -> None:
            typer.echo(f"{path}: open {address}")
            for number, code in study.codes.items():
                progress = study.progress(number)
                typer.echo(f"  {number}  {spaced_code(code)}  {progress.done} of {progress.total} answered")
            typer.echo(f"a link can carry a code: {address}#code=CODE")
            typer.echo("Ctrl-C stops the page; answers are in the file.")

        serve(app, host=host, port=port, token=wanted, announce=announce)
    typer.echo("stopped; every answer is in the file")


def run_study_report(
    path: Path, *, only_attentive: bool, disagreements: int, answers: Path | None, as_json: bool
) -> None:
    from unfooled.cli.study_tables import show_figures
    from unfooled.people.study.export import write_answers
    from unfooled.people.study.figures import read_figures

    with StudyFile.open(path, reading=True) as study:
        figures = read_figures(study, only_attentive=only_attentive, disputed=disagreements)
        written = None if answers is None else write_answers(study, answers)
    if as_json:
        typer.echo(json.dumps(figures.to_dict(), indent=2, ensure_ascii=False))
    else:
        show_figures(figures)
        if written is not None:
            typer.echo(f"\n{written} answers written to {answers}")
