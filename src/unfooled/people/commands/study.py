"""`unfooled study create`, `serve` and `report`."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import typer

from unfooled.cli.command import Command, argument, option
from unfooled.cli.options import Server
from unfooled.errors import RunFileError


@dataclass(frozen=True, kw_only=True)
class Create(Command):
    EPILOG: ClassVar[str] = """\b
Examples:
  unfooled study create runs/textfooler runs/bae --n 100 --annotators 3 -o study.db
  unfooled study create runs/gs-gr runs/gs-ec --protocol self-attention -o pairs.db
  unfooled study create runs/tweets --protocol breaking-bert --n 100 -o tweets.db
\b
Protocols: bae (class and naturalness 1-5 after a primer), self-attention (class; which of two is more
readable), breaking-bert (fluency and meaning 1-5), or a .toml file of your own.
"""

    runs: tuple[Path, ...] = argument(..., "Folders of runs with successes.")
    out: Path = option(..., "The study file to write.", "-o")
    protocol: str = option("bae", "bae, self-attention, breaking-bert, or a .toml file.")
    n: int = option(100, "Adversarial texts in all, evenly from the runs.", "-n", min=1)
    annotators: int = option(3, "How many people; each gets a code.", min=1)
    originals: int | None = option(None, "Originals among the items. [default: the protocol's]", min=0)
    checks: int | None = option(None, "Attention checks. [default: one in twenty, two at least]", min=0)
    primer: int | None = option(None, "Originals to read first. [default: the protocol's]", min=0)
    seed: int = option(0, "Same seed, same texts and orders.", min=0)
    json: bool = option(False, "Print codes and counts as JSON.")

    def run(self) -> None:
        from rich.console import Console

        from unfooled.people.study.file import StudyFile, spaced_code
        from unfooled.people.study.protocols import load_protocol
        from unfooled.people.study.sampling import draw
        from unfooled.report.diffs import visible

        if self.out.exists():
            raise RunFileError(
                f"{self.out}: there is a file already", "choose another -o; answers are never replaced"
            )
        with Console(stderr=True, quiet=self.json).status("Reading the runs …"):
            content = draw(
                self.runs,
                load_protocol(self.protocol),
                n=self.n,
                annotators=self.annotators,
                originals=self.originals,
                checks=self.checks,
                primer=self.primer,
                seed=self.seed,
            )
            with StudyFile.create(self.out, content) as study:
                codes = {number: spaced_code(code) for number, code in study.codes.items()}
        counts = Counter(item.kind for item in content.items)
        if self.json:
            told = {
                "study": str(self.out),
                "items": len(content.items),
                "kinds": dict(counts),
                "codes": codes,
            }
            typer.echo(json.dumps(told | {"notices": content.notices}, indent=2))
            return
        for notice in content.notices:
            typer.echo(f"! {visible(notice)}", err=True)
        kinds = ", ".join(f"{count} {kind}" for kind, count in counts.items())
        typer.echo(
            f"{self.out}: {len(content.items)} items for each of {self.annotators} annotators ({kinds})"
        )
        if content.primer:
            typer.echo(f"  {len(content.primer)} other originals are read first")
        typer.echo("codes, one for each person:")
        for number, code in codes.items():
            typer.echo(f"  {number}  {code}")
        typer.echo(f"next: unfooled study serve {self.out}")


@dataclass(frozen=True, kw_only=True)
class Serve(Server):
    EPILOG: ClassVar[str] = """\b
Examples:
  unfooled study serve study.db
  unfooled study serve study.db --host 0.0.0.0 --allow-remote --token new
\b
Answers are on disk before the page says so. Stop the server at any time; start it again to go on.
"""

    study: Path = argument(..., "A file of `study create`.")

    def run(self) -> None:
        from unfooled.people.study.file import StudyFile, spaced_code
        from unfooled.people.web.serving import checked_token, serve
        from unfooled.people.web.study_app import study_app

        wanted = checked_token(self.host, allow_remote=self.allow_remote, token=self.token)
        with StudyFile.open(self.study) as study:
            app = study_app(study)

            def announce(address: str) -> None:
                typer.echo(f"{self.study}: open {address}")
                for number, code in study.codes.items():
                    progress = study.progress(number)
                    typer.echo(
                        f"  {number}  {spaced_code(code)}  {progress.done} of {progress.total} answered"
                    )
                typer.echo(f"a link can carry a code: {address}#code=CODE")
                typer.echo("Ctrl-C stops the page; answers are in the file.")

            serve(app, host=self.host, port=self.port, token=wanted, announce=announce)
        typer.echo("stopped; every answer is in the file")


@dataclass(frozen=True, kw_only=True)
class ReportStudy(Command):
    EPILOG: ClassVar[str] = """\b
Examples:
  unfooled study report study.db
  unfooled study report study.db --json --answers answers.csv
  unfooled study report study.db --judgements mine.jsonl && unfooled judge fit mine.jsonl -o mine.json
  unfooled report runs/textfooler runs/bae --study study.db -o report.html
"""

    study: Path = argument(..., "A file of `study create`.")
    only_attentive: bool = option(False, "Leave out annotators who failed most attention checks.")
    disagreements: int = option(5, "How many disputed items to show.", min=0)
    answers: Path | None = option(None, "Also write every answer to this CSV file.")
    judgements: Path | None = option(
        None, "Also write what was said of each attacked text to this .jsonl file, for `unfooled judge fit`."
    )
    json: bool = option(False, "As JSON.")

    def run(self) -> None:
        from unfooled.people.commands.study_tables import show_figures
        from unfooled.people.study.export import write_answers, write_judgements
        from unfooled.people.study.figures import read_figures
        from unfooled.people.study.file import StudyFile

        with StudyFile.open(self.study, reading=True) as study:
            figures = read_figures(study, only_attentive=self.only_attentive, disputed=self.disagreements)
            written = None if self.answers is None else write_answers(study, self.answers)
            judged = None
            if self.judgements is not None:
                judged = write_judgements(study, self.judgements, without=figures.left_out)
        if self.json:
            typer.echo(json.dumps(figures.to_dict(), indent=2, ensure_ascii=False))
        else:
            show_figures(figures)
            if written is not None:
                typer.echo(f"\n{written} answers written to {self.answers}")
            if judged is not None:
                typer.echo(f"\n{judged} judged texts written to {self.judgements}")
                typer.echo(f"next: unfooled judge fit {self.judgements} -o mine.json")
