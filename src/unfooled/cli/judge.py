"""`unfooled judge` and `unfooled judge fit`."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import typer

from unfooled.cli.command import argument, option
from unfooled.cli.options import Output, print_json
from unfooled.errors import RunFileError


@dataclass(frozen=True, kw_only=True)
class JudgeOptions(Output):
    language_model: bool | None = option(
        None,
        "Measure with the causal language model (resource smollm2), or without. [default: where it is here]",
        "--language-model/--no-language-model",
    )


@dataclass(frozen=True, kw_only=True)
class JudgeRun(JudgeOptions):
    EPILOG: ClassVar[str] = """\b
Examples:
  unfooled judge runs/x
  unfooled judge runs/x --judge mine.json --json
  unfooled judge runs/x --second-judge http://localhost:8000/v1/chat/completions --second-model llama
"""

    folder: Path = argument(..., "Folder of a run.", metavar="RUN")
    judge: str = option("shipped", "A file of `judge fit`, in place of the shipped judge.")
    second_judge: str | None = option(
        None, "Address of a chat model (OpenAI's form): asked for label and fluency of each success."
    )
    second_model: str = option("default", "Name of the model behind that address.")

    def run(self) -> None:
        from unfooled.metrics.summary import summarise
        from unfooled.metrics.validity.judging import judge as judge_successes
        from unfooled.metrics.validity.model import FULL
        from unfooled.metrics.validity.second_judge import agreement_of, ask_second_judge
        from unfooled.report.progress import counting
        from unfooled.report.tables import both_numbers
        from unfooled.runs.file import RunFile

        with counting(self.console(), "judging") as progress:
            judge_successes(self.folder, self.judge, language_model=self.language_model, progress=progress)
        agreement = None
        if self.second_judge is not None:
            with counting(self.console(), "asking the second judge") as progress:
                ask_second_judge(self.folder, self.second_judge, self.second_model, progress=progress)
            agreement = agreement_of(self.folder, self.second_model)
        with closing(RunFile.read(self.folder)) as file:
            summary = summarise(file)
        found = summary.validity
        assert found is not None  # it was judged a moment ago
        if self.json:
            print_json(
                {
                    "accuracy_under_attack": summary.accuracy_under_attack.to_dict(),
                    **found.to_dict(),
                    "second_judge": None if agreement is None else agreement.to_dict(),
                }
            )
            return
        for row in both_numbers(summary):
            typer.echo(f"{row.name}: {row.value} ({row.interval}, n = {row.n})")
        if agreement is not None:
            typer.echo(str(agreement))
        if found.variant != FULL:
            typer.echo(
                "judged without the language model, on fewer measures "
                "(get it with: unfooled resources get smollm2)"
            )


@dataclass(frozen=True, kw_only=True)
class FitJudge(JudgeOptions):
    EPILOG: ClassVar[str] = """\b
Examples:
  unfooled judge fit judgements/ -o mine.json --diagram reliability.svg
  unfooled judge fit judgements/ mine.jsonl -o mine.json
\b
A line of a file is one JSON object: before, after, fluent, label_kept; or text, before, said_altered,
judgements; or before, after, label_before, label_after; or before, after, answers.
"""

    judgements: tuple[Path, ...] = argument(..., "Files of judgements, or folders of them.")
    out: Path = option(..., "Where to write the judge.", "-o")
    diagram: Path | None = option(None, "Write the reliability diagram of P(valid) here, as SVG.")
    seed: int = option(0, "Of folds and resamples.")

    def run(self) -> None:
        from unfooled.files import write_whole
        from unfooled.metrics.validity.features import FEATURES
        from unfooled.metrics.validity.fitting import fit_judge, measure_judgements
        from unfooled.metrics.validity.instruments import language_model_here, open_instruments
        from unfooled.metrics.validity.judgements import read_judgements
        from unfooled.report.progress import counting
        from unfooled.report.reliability import diagram_of, figures_told

        given = read_judgements(self.judgements)
        with_model = language_model_here() if self.language_model is None else self.language_model
        with counting(self.console(), "measuring") as progress:
            measured = measure_judgements(
                given, open_instruments, language_model=with_model, progress=progress
            )
        with self.console().status("fitting") as status:
            judge = fit_judge(
                measured,
                seed=self.seed,
                progress=status.update,
                measures={name: feature.title for name, feature in FEATURES.items()},
            )
        try:
            judge.save(self.out)
            if self.diagram is not None:
                write_whole(self.diagram, diagram_of(judge))
        except OSError as error:
            raise RunFileError(
                f"{error.filename or self.out}: cannot be written ({error.strerror})", "choose another path"
            ) from error
        if self.json:
            print_json(judge.record["figures"])
        else:
            typer.echo("\n".join([*figures_told(judge), f"judge: {self.out}"]))
