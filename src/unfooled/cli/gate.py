"""`unfooled gate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import typer

from unfooled.cli.command import Exit, argument, option
from unfooled.cli.options import Output, print_json
from unfooled.errors import RunFileError, UserError
from unfooled.values import shares

if TYPE_CHECKING:
    from unfooled.checks.gate import Judged, Rule


@dataclass(frozen=True, kw_only=True)
class Gate(Output):
    EPILOG: ClassVar[str] = """\b
Examples:
  unfooled gate runs/x --min-aua 0.6 --max-success 0.3
  unfooled gate runs/x --min-aua 0.3 --min-valid-aua 0.6
  unfooled gate runs/x --min-recall offensive=0.8
  unfooled gate runs/x --min-aua 0.6 --junit gate.xml --markdown gate.md
  unfooled gate runs/worst --min-accuracy 0.4
\b
A rule passes or fails when its whole 95 % interval lies on one side of the bound; otherwise it is undecided.
The interval holds however often a growing run is looked at; it is narrower where the run's size was fixed
before: a run over all rows of its data, or one made with --final.
So is a rule that would pass although the attack could try nothing on most examples. Where `evaluate` found
that the model's answers depend on what it was asked before, every rule fails.
Exit codes: 0 passed · 1 failed · 4 undecided (attack more examples, or allow it with --undecided-passes).
"""

    folder: Path = argument(..., "Folder of a run, or of `unfooled stress`.", metavar="RUN")
    min_aua: float | None = option(None, "Least accuracy under attack; of `stress`, in the worst case.")
    min_valid_aua: float | None = option(
        None, "Least accuracy under attack by valid texts; needs runs that `unfooled judge` has judged."
    )
    max_success: float | None = option(None, "Highest success rate of the attack.")
    min_recall: tuple[str, ...] = option((), "Least recall of a class under attack: offensive=0.8.")
    min_accuracy: float | None = option(
        None, "Least accuracy before the attack; of `stress`, in the worst case."
    )
    max_errors: float = option(0.05, "Highest share of examples that may end in an error.")
    junit: Path | None = option(None, "Write JUnit XML here.")
    markdown: Path | None = option(None, "Write a short table for a pull request here.")
    undecided_passes: bool = option(False, "Let an undecided gate pass (exit code 0).")

    def run(self) -> int:
        from unfooled.checks import gate
        from unfooled.checks.worst_case import is_stress
        from unfooled.report.diffs import visible

        about = self._of_stress() if is_stress(self.folder) else self._of_run()
        verdict = gate.overall(about.judged)
        self._write_files(about)
        if self.json:
            found = [
                {
                    "rule": str(judged.rule),
                    "judgement": judged.judgement,
                    "reason": judged.reason,
                    **judged.rate.to_dict(),
                }
                for judged in about.judged
            ]
            answer = {"gate": verdict, "rules": found, "warnings": list(about.warnings), **about.more}
            print_json(answer, ensure_ascii=False)
        else:
            for judged in about.judged:
                typer.echo(f"{judged.judgement:9}  {visible(str(judged))}")
            for caution in about.cautions:
                typer.echo(f"warning    {visible(caution)}")
            typer.echo(f"interval   {about.interval}")
            typer.echo(f"gate: {verdict}")
        if verdict == "undecided" and self.undecided_passes:
            return Exit.DONE
        return {"pass": Exit.DONE, "fail": Exit.GATE_FAILED, "undecided": Exit.GATE_UNDECIDED}[verdict]

    def _of_run(self) -> _Gated:
        from unfooled.checks import gate
        from unfooled.checks.illusions.survivors import STATE
        from unfooled.metrics.summary import summarise
        from unfooled.runs.file import REMARK, RunFile
        from unfooled.runs.looks import record_look, size_was_fixed

        least = {"aua": self.min_aua, "valid-aua": self.min_valid_aua, "accuracy-before": self.min_accuracy}
        rules = self._rules(least)
        with closing(RunFile.read(self.folder)) as file:
            if missing := file.missing():
                raise UserError(
                    f"{self.folder}: {missing:,} examples of this run are missing, so nothing is judged",
                    "repeat the attack's command: it goes on where it stopped",
                )
            summary = summarise(file)
            environment = file.header["environment"]
            fixed = size_was_fixed(file.header)
            remembers = file.header.get(REMARK + STATE, "")
        sizes = record_look(self.folder, summary.total)
        return _Gated(
            f"{environment['attack']} on {environment['victim']}, data {environment['data']}",
            gate.apply_rules(summary, rules, size_was_fixed=fixed, remembers=remembers),
            [*([str(summary.tries)] if summary.tries.few else []), *summary.cautions],
            summary.cautions,
            gate.told_interval(sizes, fixed),
            {
                "interval": "exact" if fixed else "anytime",
                "looks": sizes,
                "tries": summary.tries.to_dict(),
            },
        )

    def _of_stress(self) -> _Gated:
        """`--min-accuracy` is about the one accuracy that a suite gives: the worst case, as `--min-aua`."""
        from unfooled.checks import gate
        from unfooled.checks.worst_case import read_stress
        from unfooled.report.stress import remarks

        if self.max_success is not None:
            raise UserError("--max-success is for a run of one attack", "bound a suite with --min-accuracy")
        bounds = [bound for bound in (self.min_aua, self.min_accuracy) if bound is not None]
        least = {"accuracy": max(bounds, default=None), "valid-accuracy": self.min_valid_aua}
        result = read_stress(self.folder)
        cautions = remarks(result)
        return _Gated(
            f"{result.suite} on {result.victim}, data {result.data}",
            gate.apply_rules_to_stress(result, self._rules(least)),
            cautions,
            cautions,
            gate.told_interval([], size_was_fixed=False),
            {"interval": "anytime"},
        )

    def _rules(self, least: Mapping[str, float | None]) -> list[Rule]:
        from unfooled.checks.gate import Rule

        most = {"success": self.max_success, "errors": self.max_errors}
        recalls = shares(self.min_recall, "--min-recall")
        rules = [Rule(name, "min", bound) for name, bound in least.items() if bound is not None]
        rules += [Rule(name, "max", bound) for name, bound in most.items() if bound is not None]
        rules += [Rule("recall", "min", bound, label) for label, bound in recalls.items()]
        if all(rule.measure == "errors" for rule in rules):
            raise UserError("the gate has no rule", "give one, such as --min-aua 0.6 or --max-success 0.3")
        return rules

    def _write_files(self, about: _Gated) -> None:
        from unfooled.checks import gate
        from unfooled.report.diffs import in_markdown, visible

        if self.junit:
            told = list(map(visible, about.cautions))
            _write(self.junit, gate.junit(about.judged, name=visible(about.name), cautions=told))
        if self.markdown:
            told = list(map(in_markdown, about.cautions))
            name = in_markdown(about.name)
            _write(
                self.markdown,
                gate.markdown(about.judged, name=name, interval=about.interval, cautions=told),
            )


@dataclass(frozen=True)
class _Gated:
    """What is told of a folder, whatever lies in it."""

    name: str
    judged: list[Judged]
    cautions: Sequence[str]
    warnings: Sequence[str]
    interval: str  # how the intervals were made
    more: Mapping[str, Any] = field(default_factory=dict)


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RunFileError(
            f"{path}: cannot be written ({error.strerror or error})", "choose another path"
        ) from error
