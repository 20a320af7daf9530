"""The page of a paper: claims with their judgement, the paper's tables beside ours, figures, settings."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

from unfooled.papers.carry_out import MODEL, seconds_of
from unfooled.papers.claims import LEVEL, Claim, Judgement, rows_in_words
from unfooled.papers.document import Block, Bullets, Grid, Heading, Image, Paragraph
from unfooled.papers.examples import examples
from unfooled.papers.findings import Findings, shown
from unfooled.papers.paper import Cell, Paper, Plan, Scale, Table
from unfooled.papers.stages import AttackStage, ChosenStage, HardenStage, ShowStage, TrainStage
from unfooled.training.record import read_record

_LEGEND = (
    "A claim holds, or does not hold, where the whole 95 % interval says so; otherwise, and of fewer than "
    "six rows, it is not decided by this sample. Differences are taken row by row where both sides have the "
    "same rows. Intervals are Wilson's for rates, Tango's for paired differences of decisions, and "
    "Student's with Hall's correction for means; p is McNemar's. Where a model was trained with several "
    "seeds, intervals cover the choice of rows and that of seeds (Satterthwaite's degrees of freedom; with "
    "two seeds 89 to 98 of 100 such intervals hold the truth), and p counts the rows that are more often "
    "right with one side; elsewhere they cover the rows alone. Each claim is judged by itself, at 5 %; "
    "beside it "
    "stands what is left when all comparable claims of the paper are tested at once (Holm). A claim is not "
    "comparable where something that stands in for the paper's is known to decide the outcome."
)


def page(
    paper: Paper,
    scale: Scale,
    plan: Plan,
    findings: Findings,
    judged: list[tuple[Claim, Judgement]],
    pictures: list[tuple[str, Path]],
    origin: dict[str, Any],
    looks: int = 1,
) -> list[Block]:
    blocks: list[Block] = [
        Heading(paper.title, 1),
        Paragraph(f"{paper.citation}. Scale: `{scale}`. Made by `unfooled reproduce {paper.name}`."),
        Paragraph(f"**{tally(judged)}** {_LEGEND}{_looked(looks)}"),
        Heading("Claims"),
        Grid(
            ("claim", "paper", "measured", "judgement", "Holm", "stands on"),
            [
                (
                    claim.sentence,
                    claim.paper,
                    judgement.short or judgement.measured,
                    judgement.status,
                    judgement.holm or "–",
                    ", ".join(_stands_on(claim, plan)) or "–",
                )
                for claim, judgement in judged
            ],
        ),
        Heading("How each was measured"),
        Bullets([line for claim, judgement in judged for line in _details(claim, judgement)]),
    ]
    if plan.substitutions:
        blocks += [
            Heading("What stands in for the paper's"),
            Bullets([f"**{name}**: {sentence}" for name, sentence in plan.substitutions]),
        ]
    for table in paper.tables:
        blocks += _table(table, findings)
    if paper.artefacts:
        blocks += [Heading("Artefacts of the paper"), *(Paragraph(artefact) for artefact in paper.artefacts)]
    if pictures:
        blocks += [Heading("Figures"), *(Image(path, title) for title, path in pictures)]
    blocks += examples(paper.examples, findings)
    blocks += [
        Heading("Settings"),
        Bullets(plan.settings),
        Heading("Why numbers differ"),
        Paragraph(plan.differs),
        Heading("What was run"),
        _stages(findings),
        Paragraph(_origin(origin, findings)),
    ]
    return blocks


def tally(judged: list[tuple[Claim, Judgement]]) -> str:
    counted = Counter(judgement.status for _, judgement in judged)
    decided = counted["holds"] + counted["does not hold"]
    return (
        f"{len(judged)} claims: {counted['holds']} hold, {counted['does not hold']} do not hold, "
        f"{counted['not decided']} not decided, {counted['not measured']} not measured, "
        f"{counted['not comparable']} not comparable "
        f"({decided} of {len(judged) - counted['not comparable']} comparable ones decided)."
    )


def _looked(looks: int) -> str:
    if looks == 1:
        return ""
    return (
        f" {looks} plans of different sizes were looked at one after the other: Holm's correction is made at "
        f"{100 * LEVEL / looks:.2g} % for that."
    )


def _stands_on(claim: Claim, plan: Plan) -> list[str]:
    return [name for name, _ in plan.substitutions if name in (*claim.decided_by, *claim.substitutions)]


def _details(claim: Claim, judgement: Judgement) -> list[str]:
    head = f"**{claim.name}** ({judgement.status}). {claim.how[:1].upper()}{claim.how[1:]}."
    if judgement.rule:
        head += f" By itself the rule says: {judgement.rule}."
    if judgement.earlier:
        head += f" Measured earlier (commit {judgement.earlier}); its stages are not in the tables below."
    if claim.artefact:
        head += f" The paper's figure is an artefact: {claim.artefact}."
    if judgement.parts:
        return [head + " " + " · ".join(f"{part.measured}: {part.status}" for part in judgement.parts) + "."]
    return [
        f"{head} {judgement.measured[:1].upper()}{judgement.measured[1:]}." if judgement.measured else head
    ]


def _table(table: Table, findings: Findings) -> list[Block]:
    rows = [(name, *(_pair(cell, findings) for cell in cells)) for name, cells in table.rows]
    blocks: list[Block] = [
        Heading(table.title),
        Paragraph("In each cell: the paper's figure → ours, with its 95 % interval and n."),
        Grid((table.corner, *table.columns), rows),
    ]
    return [*blocks, Paragraph(table.note)] if table.note else blocks


def _pair(cell: Cell, findings: Findings) -> str:
    ours = "–"
    if cell.quantity is not None and findings.has(cell.quantity):
        found = findings.estimate(cell.quantity)
        if found.n and not math.isnan(found.value):
            ours = f"**{shown(found)}**, {rows_in_words(found)}"
    if cell.quantity is None and not cell.paper:
        return "–"
    return f"{cell.paper or '–'} → {ours}"


def _stages(findings: Findings) -> Grid:
    rows = []
    for name, done in findings.done.items():
        errors = findings.errors(name)
        rows.append(
            (
                name,
                _what(done.stage, findings),
                f"`{done.fingerprint[:12]}`",
                f"{seconds_of(done.stage, done.folder) or done.seconds:,.0f}",
                str(errors) if errors else "",
            )
        )
    return Grid(("stage", "what", "fingerprint", "seconds", "errors"), rows)


def _what(stage: Any, findings: Findings) -> str:
    match stage:
        case TrainStage():
            seed = dict(stage.options).get("seed", 0)
            return f"train {stage.family} on {stage.data.source}, seed {seed}{_steps(stage, findings)}"
        case HardenStage():
            return f"{stage.method} of {stage.model} on {stage.data.source}{_steps(stage, findings)}"
        case AttackStage():
            n = len(findings.results(stage.name))
            return f"{stage.attack} on {_model(stage.model)}, {n} rows, seed {stage.seed}"
        case ShowStage():
            return f"texts shown to {_model(stage.model)}, {len(findings.results(stage.name))} rows"
        case ChosenStage():
            return f"{stage.n} of {stage.of} random rows, that all models get right, seed {stage.seed}"
    return str(stage.kind)


def _steps(stage: TrainStage | HardenStage, findings: Findings) -> str:
    """How far a training went."""
    record = read_record(findings.done[stage.name].folder / MODEL) or {}
    steps = record.get("metrics", {}).get("steps")
    return f", {steps:,} steps" if steps else ""


def _model(model: Any) -> str:
    name = model.stage or model.spec
    return f"{model.defence}({name})" if model.defence else name


def _origin(origin: dict[str, Any], findings: Findings) -> str:
    counted = Counter(done.commit or "unknown" for done in findings.done.values())
    ran = ", ".join(f"{commit} ({n} of the stages)" for commit, n in counted.most_common())
    versions = ", ".join(f"{name} {version}" for name, version in origin["versions"].items())
    return (
        f"Page written at commit {origin['commit']}; measured at commit {ran}. {versions}; "
        f"{origin['machine']}. A stage's fingerprint covers its settings, the content of its data, the "
        "resources its attack reads and the stages it builds on. The same command with the same fingerprints "
        "gives the same figures."
    )
