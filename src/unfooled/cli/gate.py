"""`unfooled gate`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import typer

from unfooled.checks import gate
from unfooled.checks.gate import Judged, Rule
from unfooled.checks.worst_case import is_stress, read_stress
from unfooled.cli.command import Command, argument, option
from unfooled.cli.exits import Exit
from unfooled.cli.values import shares
from unfooled.errors import RunFileError, UserError
from unfooled.metrics.summary import summarise
from unfooled.report.diffs import in_markdown, visible
from unfooled.report.stress import remarks
from unfooled.runs.file import RunFile


@dataclass(frozen=True, kw_only=True)
class Gate(Command):
    EPILOG: ClassVar[str] = """\b
Examples:
  unfooled gate runs/x --min-aua 0.6 --max-success 0.3
  unfooled gate runs/x --min-recall offensive=0.8
  unfooled gate runs/x --min-aua 0.6 --junit gate.xml --markdown gate.md
  unfooled gate runs/worst --min-accuracy 0.4
\b
A rule passes or fails when its whole 95 % interval lies on one side of the bound; otherwise it is undecided.
So is a rule that would pass although the attack could try nothing on most examples.
Exit codes: 0 passed · 1 failed · 4 undecided (attack more examples, or allow it with --undecided-passes).
"""

    folder: Path = argument(..., "Folder of a run, or of `unfooled stress`.", metavar="RUN")
    min_aua: float | None = option(None, "Least accuracy under attack; of `stress`, in the worst case.")
    max_success: float | None = option(None, "Highest success rate of the attack.")
    min_recall: tuple[str, ...] = option((), "Least recall of a class under attack: offensive=0.8.")
    min_accuracy: float | None = option(
        None, "Least accuracy before the attack; of `stress`, in the worst case."
    )
    min_valid_accuracy: float | None = option(None, "Of `stress`: the least by valid texts.")
    max_errors: float = option(0.05, "Highest share of examples that may end in an error.")
    junit: Path | None = option(None, "Write JUnit XML here.")
    markdown: Path | None = option(None, "Write a short table for a pull request here.")
    undecided_passes: bool = option(False, "Let an undecided gate pass (exit code 0).")
    json: bool = option(False, "As JSON.")

    def run(self) -> int:
        about = self._of_stress() if is_stress(self.folder) else self._of_run()
        verdict = gate.overall(about.judged)
        self._write_files(about)
        if self.json:
            found = [
                {
                    "rule": str(one.rule),
                    "judgement": one.judgement,
                    "reason": one.reason,
                    **one.rate.to_dict(),
                }
                for one in about.judged
            ]
            answer = {"gate": verdict, "rules": found, "warnings": list(about.warnings), **about.more}
            typer.echo(json.dumps(answer, indent=2, ensure_ascii=False))
        else:
            for one in about.judged:
                typer.echo(f"{one.judgement:9}  {visible(str(one))}")
            for caution in about.cautions:
                typer.echo(f"warning    {visible(caution)}")
            typer.echo(f"gate: {verdict}")
        if verdict == "undecided" and self.undecided_passes:
            return Exit.DONE
        return {"pass": Exit.DONE, "fail": Exit.GATE_FAILED, "undecided": Exit.GATE_UNDECIDED}[verdict]

    def _of_run(self) -> _Gated:
        if self.min_valid_accuracy is not None:
            raise UserError("--min-valid-accuracy is for folders of `unfooled stress`", "leave it out")
        rules = self._rules({"aua": self.min_aua, "accuracy-before": self.min_accuracy})
        with closing(RunFile.read(self.folder)) as file:
            if missing := file.missing():
                raise UserError(
                    f"{self.folder}: {missing:,} examples of this run are missing, so nothing is judged",
                    "repeat the attack's command: it goes on where it stopped",
                )
            summary = summarise(file)
            environment = file.header["environment"]
        return _Gated(
            f"{environment['attack']} on {environment['victim']}, data {environment['data']}",
            gate.apply_rules(summary, rules),
            [*([str(summary.tries)] if summary.tries.few else []), *summary.cautions],
            summary.cautions,
            {"tries": summary.tries.to_dict()},
        )

    def _of_stress(self) -> _Gated:
        """`--min-accuracy` is about the one accuracy that a suite gives: the worst case, as `--min-aua`."""
        if self.max_success is not None:
            raise UserError("--max-success is for a run of one attack", "bound a suite with --min-accuracy")
        bounds = [bound for bound in (self.min_aua, self.min_accuracy) if bound is not None]
        least = {"accuracy": max(bounds, default=None), "valid-accuracy": self.min_valid_accuracy}
        result = read_stress(self.folder)
        cautions = remarks(result)
        return _Gated(
            f"{result.suite} on {result.victim}, data {result.data}",
            gate.apply_rules_to_stress(result, self._rules(least)),
            cautions,
            cautions,
        )

    def _rules(self, least: Mapping[str, float | None]) -> list[Rule]:
        most = {"success": self.max_success, "errors": self.max_errors}
        recalls = shares(self.min_recall, "--min-recall")
        rules = [Rule(name, "min", bound) for name, bound in least.items() if bound is not None]
        rules += [Rule(name, "max", bound) for name, bound in most.items() if bound is not None]
        rules += [Rule("recall", "min", bound, label) for label, bound in recalls.items()]
        if all(rule.measure == "errors" for rule in rules):
            raise UserError("the gate has no rule", "give one, such as --min-aua 0.6 or --max-success 0.3")
        return rules

    def _write_files(self, about: _Gated) -> None:
        if self.junit:
            told = list(map(visible, about.cautions))
            _write(self.junit, gate.junit(about.judged, name=visible(about.name), cautions=told))
        if self.markdown:
            told = list(map(in_markdown, about.cautions))
            _write(self.markdown, gate.markdown(about.judged, name=in_markdown(about.name), cautions=told))


@dataclass(frozen=True)
class _Gated:
    """What is told of a folder, whatever lies in it."""

    name: str
    judged: list[Judged]
    cautions: Sequence[str]
    warnings: Sequence[str]
    more: Mapping[str, Any] = field(default_factory=dict)


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RunFileError(
            f"{path}: cannot be written ({error.strerror or error})", "choose another path"
        ) from error
