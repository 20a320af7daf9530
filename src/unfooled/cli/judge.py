"""`unfooled judge` and `unfooled judge fit`."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import typer

from unfooled.cli.command import Command, argument, option
from unfooled.cli.exits import Exit
from unfooled.errors import DataError, RunFileError

if TYPE_CHECKING:
    from unfooled.metrics.validity.model import Judge


@dataclass(frozen=True, kw_only=True)
class JudgeRun(Command):
    EPILOG: ClassVar[str] = """\b
Examples:
  unfooled judge runs/x
  unfooled judge runs/x --judge mine.json --json
  unfooled judge runs/x --second-judge http://localhost:8000/v1/chat/completions --second-model llama
"""

    folder: Path = argument(..., "Folder of a run.", metavar="RUN")
    judge: str = option("shipped", "A file of `judge fit`, in place of the shipped judge.")
    language_model: bool | None = option(
        None,
        "Measure with the causal language model (resource smollm2), or without. [default: where it is here]",
        "--language-model/--no-language-model",
    )
    second_judge: str | None = option(
        None, "Address of a chat model (OpenAI's form): asked for label and fluency of each success."
    )
    second_model: str = option("default", "Name of the model behind that address.")
    json: bool = option(False, "As JSON.")

    def run(self) -> int:
        from rich.console import Console
        from rich.progress import Progress

        from unfooled.metrics.summary import summarise
        from unfooled.metrics.validity.judging import judge as judge_successes
        from unfooled.metrics.validity.model import FULL
        from unfooled.metrics.validity.second_judge import agreement_of, ask_second_judge
        from unfooled.report.tables import both_numbers
        from unfooled.runs.file import RunFile

        with Progress(console=Console(stderr=True, quiet=self.json), transient=True) as bar:
            task = bar.add_task("judging")
            judge_successes(
                self.folder,
                self.judge,
                language_model=self.language_model,
                progress=lambda now, all_: bar.update(task, completed=now, total=all_),
            )
            agreement = None
            if self.second_judge is not None:
                bar.update(task, description="asking the second judge", completed=0)
                ask_second_judge(
                    self.folder,
                    self.second_judge,
                    self.second_model,
                    progress=lambda now, all_: bar.update(task, completed=now, total=all_),
                )
                agreement = agreement_of(self.folder, self.second_model)
        with closing(RunFile.read(self.folder)) as file:
            summary = summarise(file)
        found = summary.validity
        assert found is not None  # it was judged a moment ago
        if self.json:
            told: dict[str, Any] = {
                "accuracy_under_attack": summary.accuracy_under_attack.to_dict(),
                **found.to_dict(),
                "second_judge": None if agreement is None else agreement.to_dict(),
            }
            typer.echo(json.dumps(told, indent=2))
            return Exit.DONE
        for row in both_numbers(summary):
            typer.echo(f"{row.name}: {row.value} ({row.interval}, n = {row.n})")
        if agreement is not None:
            typer.echo(str(agreement))
        if found.variant != FULL:
            typer.echo(
                "judged without the language model, on fewer measures "
                "(get it with: unfooled resources get smollm2)"
            )
        return Exit.DONE


@dataclass(frozen=True, kw_only=True)
class FitJudge(Command):
    EPILOG: ClassVar[str] = """\b
Examples:
  unfooled judge fit judgements/ -o mine.json --diagram reliability.svg
  unfooled study report study.db --judgements mine.jsonl
  unfooled judge fit mine.jsonl -o mine.json
\b
Of few judgements the shipped judge is recalibrated, by a slope and an offset; what was done is printed.
\b
A line of a file is one JSON object: before, after, fluent, label_kept; or text, before, said_altered,
judgements; or before, after, label_before, label_after; or before, after, answers.
"""

    judgements: tuple[Path, ...] = argument(..., "Files of judgements, or folders of them.")
    out: Path = option(..., "Where to write the judge.", "-o")
    language_model: bool | None = option(
        None,
        "Measure with the causal language model (resource smollm2), or without. [default: where it is here]",
        "--language-model/--no-language-model",
    )
    diagram: Path | None = option(None, "Write the reliability diagram of P(valid) here, as SVG.")
    seed: int = option(0, "Of folds and resamples.")
    json: bool = option(False, "As JSON.")

    def run(self) -> None:
        from rich.console import Console
        from rich.progress import Progress

        from unfooled.files import write_whole
        from unfooled.metrics.validity.features import FEATURES
        from unfooled.metrics.validity.fitting import measure_judgements
        from unfooled.metrics.validity.instruments import language_model_here, open_instruments
        from unfooled.metrics.validity.judgements import read_judgements
        from unfooled.metrics.validity.model import load_judge
        from unfooled.metrics.validity.validation import fit_judge

        given = read_judgements(self.judgements)
        with_model = language_model_here() if self.language_model is None else self.language_model
        with Progress(console=Console(stderr=True, quiet=self.json), transient=True) as bar:
            task = bar.add_task("measuring")
            measured = measure_judgements(
                given,
                open_instruments,
                language_model=with_model,
                progress=lambda now, all_: bar.update(task, completed=now, total=all_),
            )
            judge = fit_judge(
                measured,
                shipped=load_judge(),
                seed=self.seed,
                progress=lambda what: bar.update(task, description=what),
                measures={name: feature.title for name, feature in FEATURES.items()},
            )
        try:
            judge.save(self.out)
            if self.diagram is not None:
                write_whole(self.diagram, _diagram(judge))
        except OSError as error:
            raise RunFileError(
                f"{error.filename or self.out}: cannot be written ({error.strerror})", "choose another path"
            ) from error
        if self.json:
            typer.echo(json.dumps(judge.record["figures"], indent=2))
            return
        for name, figures in judge.record["figures"].items():
            made = ", ".join(
                f"{target.replace('_', ' ')} {how['method']}"
                for target, how in judge.record["made"][name].items()
            )
            typer.echo(f"{name}: {made}; on texts whose original was in no fit and no choice:")
            for what, figure in figures.items():
                typer.echo(f"  {what}: {_told(figure)}")
        typer.echo(f"judge: {self.out}")


def _diagram(judge: Judge) -> str:
    from unfooled.report.reliability import reliability_diagram, standalone

    name = next(iter(judge.variants))
    figure = judge.record["figures"][name].get("valid")
    if figure is None:
        raise DataError(
            "no text was judged for label and fluency both, so there is nothing to draw",
            "leave out --diagram",
        )
    return standalone(reliability_diagram(figure, title="P(valid): predicted and observed"))


def _told(figure: dict[str, Any]) -> str:
    if "auc" in figure:
        return (
            f"AUC {figure['auc']:.3f} ({figure['auc_low']:.3f} – {figure['auc_high']:.3f}), "
            f"calibration error {figure['calibration_error']:.3f} "
            f"(a perfect judge: {figure['calibration_error_by_chance']:.3f}, in one of twenty samples above "
            f"{figure['calibration_error_by_bad_luck']:.3f}), "
            f"{figure['positive']} of {figure['n']} texts, {figure['originals']} originals"
        )
    return (
        f"{figure['called_invalid']:.1%} ({figure['low']:.1%} – {figure['high']:.1%}, n = {figure['n']}) "
        f"called invalid at {figure['threshold']:.2f}, which keeps {figure['valid_kept']} of "
        f"{figure['valid']} valid texts"
    )
