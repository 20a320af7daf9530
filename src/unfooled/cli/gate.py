"""`unfooled gate`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import typer

from unfooled.cli.command import Exit, argument, option
from unfooled.cli.options import Output, print_json
from unfooled.values import shares


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
        from unfooled.checks.gate import Bounds
        from unfooled.files import write_named
        from unfooled.report.gate import as_json, gate_folder, junit, markdown, told

        names = ("min_aua", "min_valid_aua", "min_accuracy", "max_success", "max_errors")
        recalls = shares(self.min_recall, "--min-recall")
        gated = gate_folder(self.folder, Bounds(**self.values(*names), recalls=recalls))
        if self.junit:
            write_named(self.junit, junit(gated))
        if self.markdown:
            write_named(self.markdown, markdown(gated))
        if self.json:
            print_json(as_json(gated), ensure_ascii=False)
        else:
            typer.echo("\n".join(told(gated)))
        if gated.verdict == "undecided" and self.undecided_passes:
            return Exit.DONE
        return {"pass": Exit.DONE, "fail": Exit.GATE_FAILED, "undecided": Exit.GATE_UNDECIDED}[gated.verdict]
