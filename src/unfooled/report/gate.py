"""What a gate says of a run or of a suite of attacks: in the terminal, as JSON, JUnit XML and Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from unfooled.checks.gate import (
    Bounds,
    Judged,
    Judgement,
    apply_rules,
    apply_rules_to_stress,
    overall,
    told_interval,
)
from unfooled.checks.illusions.survivors import STATE
from unfooled.checks.worst_case import is_stress, read_stress
from unfooled.errors import UserError
from unfooled.metrics.summary import summarise
from unfooled.report.diffs import in_markdown, visible
from unfooled.report.stress import remarks
from unfooled.runs.file import REMARK, RunFile
from unfooled.runs.looks import record_look, size_was_fixed


@dataclass(frozen=True)
class Gated:
    """What is told of a folder, whatever lies in it."""

    name: str
    judged: Sequence[Judged]
    cautions: Sequence[str]
    warnings: Sequence[str]
    interval: str  # how the intervals were made
    more: Mapping[str, Any]

    @property
    def verdict(self) -> Judgement:
        return overall(self.judged)


def gate_folder(folder: Path, bounds: Bounds) -> Gated:
    """The bounds applied to what lies in the folder; that it was looked at is recorded."""
    return _gate_stress(folder, bounds) if is_stress(folder) else _gate_run(folder, bounds)


def _gate_run(folder: Path, bounds: Bounds) -> Gated:
    rules = bounds.of_run()
    with closing(RunFile.read(folder)) as file:
        if missing := file.missing():
            raise UserError(
                f"{folder}: {missing:,} examples of this run are missing, so nothing is judged",
                "repeat the attack's command: it goes on where it stopped",
            )
        summary = summarise(file)
        environment = file.header["environment"]
        fixed = size_was_fixed(file.header)
        remembers = file.header.get(REMARK + STATE, "")
    sizes = record_look(folder, summary.total)
    return Gated(
        f"{environment['attack']} on {environment['victim']}, data {environment['data']}",
        apply_rules(summary, rules, size_was_fixed=fixed, remembers=remembers),
        [*([str(summary.tries)] if summary.tries.few else []), *summary.cautions],
        summary.cautions,
        told_interval(sizes, fixed),
        {"interval": "exact" if fixed else "anytime", "looks": sizes, "tries": summary.tries.to_dict()},
    )


def _gate_stress(folder: Path, bounds: Bounds) -> Gated:
    rules = bounds.of_stress()
    result = read_stress(folder)
    cautions = remarks(result)
    return Gated(
        f"{result.suite} on {result.victim}, data {result.data}",
        apply_rules_to_stress(result, rules),
        cautions,
        cautions,
        told_interval([], size_was_fixed=False),
        {"interval": "anytime"},
    )


def as_json(gated: Gated) -> dict[str, Any]:
    rules = [
        {
            "rule": str(found.rule),
            "judgement": found.judgement,
            "reason": found.reason,
            **found.rate.to_dict(),
        }
        for found in gated.judged
    ]
    return {"gate": gated.verdict, "rules": rules, "warnings": list(gated.warnings), **gated.more}


def told(gated: Gated) -> list[str]:
    """Lines for the terminal."""
    return [
        *(f"{found.judgement:9}  {visible(str(found))}" for found in gated.judged),
        *(f"warning    {visible(caution)}" for caution in gated.cautions),
        f"interval   {gated.interval}",
        f"gate: {gated.verdict}",
    ]


def junit(gated: Gated) -> str:
    """JUnit XML: undecided rules are errors, so that no dashboard shows them as passed."""
    counts = {
        kind: sum(answer.judgement == kind for answer in gated.judged) for kind in ("fail", "undecided")
    }
    suite = ElementTree.Element(
        "testsuite",
        name=_xml(visible(gated.name)),
        tests=str(len(gated.judged)),
        failures=str(counts["fail"]),
        errors=str(counts["undecided"]),
    )
    for answer in gated.judged:
        case = ElementTree.SubElement(suite, "testcase", classname="unfooled.gate", name=str(answer.rule))
        if answer.judgement == "fail":
            ElementTree.SubElement(case, "failure", message=str(answer))
        elif answer.judgement == "undecided":
            ElementTree.SubElement(case, "error", message=f"undecided: {answer}")
        else:
            ElementTree.SubElement(case, "system-out").text = str(answer)
    if gated.cautions:
        ElementTree.SubElement(suite, "system-err").text = _xml("\n".join(map(visible, gated.cautions)))
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def markdown(gated: Gated) -> str:
    """A few lines for a pull request."""
    marks = {"pass": "✅ pass", "fail": "❌ fail", "undecided": "❔ undecided"}
    lines = [
        f"### Robustness gate: {marks[gated.verdict]}",
        "",
        in_markdown(gated.name),
        "",
        *(f"⚠️ {in_markdown(caution)}\n" for caution in gated.cautions),
        "| rule | measured | |",
        "|---|---|---|",
    ]
    for answer in gated.judged:
        measured = str(answer).removeprefix(f"{answer.rule}: ")
        lines.append(f"| {answer.rule} | {measured} | {marks[answer.judgement]} |")
    lines += ["", gated.interval[0].upper() + gated.interval[1:] + "."]
    if any(answer.judgement == "undecided" and not answer.reason for answer in gated.judged):
        lines += ["", "Undecided: the 95 % interval lies on both sides of the bound. Attack more examples."]
    return "\n".join(lines) + "\n"


def _xml(text: str) -> str:
    """Characters that XML cannot hold, written out."""
    return "".join(
        char
        if char in "\t\n\r"
        or (ord(char) >= 0x20 and not 0xD800 <= ord(char) <= 0xDFFF and char not in "\ufffe\uffff")
        else f"\\x{ord(char):02x}"
        for char in text
    )
