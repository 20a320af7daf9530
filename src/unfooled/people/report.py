"""What people said about the texts of runs, for tables and the HTML page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unfooled.errors import RunFileError
from unfooled.metrics.summary import Mean
from unfooled.people.study.agreement import Agreement
from unfooled.people.study.figures import Figures, SourceFigures, read_figures
from unfooled.people.study.file import StudyFile
from unfooled.people.study.measures import Correlation
from unfooled.people.study.sampling import identity_of
from unfooled.runs.file import RunFile


def headline(figures: Figures) -> str:
    """The one sentence to remember."""
    attacked = [source for source in figures.sources if source.attack]
    told = []
    judged = [source for source in attacked if source.accuracy.n]
    if judged:
        told.append(
            "People still give the true class to the texts that fooled the model: "
            + ", ".join(f"{source.accuracy.value:.0%} for {source.name}" for source in judged)
        )
        plain = next((source for source in figures.sources if not source.attack and source.accuracy.n), None)
        if plain:
            told[-1] += f" (originals: {plain.accuracy.value:.0%})"
    for question in figures.questions:
        if question.kind == "scale":
            found = [source for source in figures.sources if source.scales[question.id].n]
            if found:
                told.append(
                    f"{question.id.capitalize()} from 1 to 5: "
                    + ", ".join(
                        f"{source.scales[question.id].value:.1f} for {source.name}" for source in found
                    )
                )
    best = max(
        (source for source in figures.sources if source.readability),
        key=lambda source: source.readability.value if source.readability else 0.0,
        default=None,
    )
    if best:
        told.append(f"Most readable of a pair: {best.name}")
    return "".join(f"{sentence}. " for sentence in told).strip()


def judged_words(alpha: float) -> str:
    """Krippendorff's own reading: reliable from 0.8, tentative conclusions from 0.667."""
    if not math.isfinite(alpha):
        return "not defined"
    if alpha >= 0.8:
        return "reliable"
    return "tentative" if alpha >= 0.667 else "weak"


@dataclass(frozen=True, slots=True)
class People:
    """The section of the page: tables of plain strings."""

    headline: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    agreement: tuple[tuple[str, ...], ...]
    correlations: tuple[tuple[str, ...], ...]
    disputes: tuple[dict[str, Any], ...]
    notices: tuple[str, ...]


def read_people(path: Path, runs: Sequence[Path]) -> People:
    """What the study says, if it is about these runs."""
    with StudyFile.open(path, reading=True) as study:
        known = {source.identity: source.name for source in study.sources}
        for run in runs:
            with closing(RunFile.read(run)) as file:
                if identity_of(file) not in known:
                    raise RunFileError(
                        f"{path}: this study is not about {run}",
                        f"it is about {', '.join(known.values())}; report on those, or leave --study out",
                    )
        return people(read_figures(study))


def people(figures: Figures) -> People:
    scales = [question.id for question in figures.questions if question.kind == "scale"]
    labels = any(question.kind == "label" for question in figures.questions)
    pairs = any(source.readability for source in figures.sources)
    measures = list(dict.fromkeys(name for source in figures.sources for name in source.measures))
    columns = ["texts of", "items", *(["right class"] if labels else []), *scales]
    columns += [*(["readability"] if pairs else []), *measures]
    passed = sum(annotator.checks_passed for annotator in figures.annotators)
    checks = sum(annotator.checks for annotator in figures.annotators)
    return People(
        headline=headline(figures),
        note=(
            f"{len(figures.annotators)} annotators, {figures.complete} finished, attention checks passed: "
            f"{passed} of {checks}. Protocol {figures.protocol} ({figures.paper}). Intervals are "
            "over the items."
        ),
        columns=tuple(columns),
        rows=tuple(_row(source, labels, scales, pairs, measures) for source in figures.sources),
        agreement=tuple(_agreement(agreement) for agreement in figures.agreement),
        correlations=tuple(_correlation(correlation) for correlation in figures.correlations),
        disputes=tuple(
            {
                "source": dispute.source,
                "question": dispute.question,
                "answers": ", ".join(dispute.answers),
                "text": dispute.text,
            }
            for dispute in figures.disputes
        ),
        notices=figures.notices,
    )


def _row(
    source: SourceFigures, labels: bool, scales: Sequence[str], pairs: bool, measures: Sequence[str]
) -> tuple[str, ...]:
    cells = [source.name, str(source.items)]
    cells += [mean_text(source.accuracy, "{:.1%}")] if labels else []
    cells += [mean_text(source.scales[name], "{:.2f}") for name in scales]
    if pairs:
        found = source.readability
        cells.append(f"{found.value:.2f} ({found.low:.2f} – {found.high:.2f})" if found else "–")
    return (
        *cells,
        *(f"{source.measures[name]:.3g}" if name in source.measures else "–" for name in measures),
    )


def _agreement(agreement: Agreement) -> tuple[str, ...]:
    alpha, kappa = (
        f"{value:.3f}" if math.isfinite(value) else "–" for value in (agreement.alpha, agreement.kappa)
    )
    return (
        agreement.question,
        f"{alpha} ({agreement.level})",
        kappa,
        str(agreement.items),
        judged_words(agreement.alpha),
    )


def _correlation(correlation: Correlation) -> tuple[str, ...]:
    if not math.isfinite(correlation.value):
        return (correlation.measure, correlation.question, "–", "does not vary", str(correlation.n))
    return (
        correlation.measure,
        correlation.question,
        f"{correlation.value:+.2f}",
        f"{correlation.low:+.2f} – {correlation.high:+.2f}",
        str(correlation.n),
    )


def mean_text(mean: Mean, form: str) -> str:
    """A mean with its interval."""
    if not mean.n:
        return "–"
    return f"{form.format(mean.value)} ({form.format(mean.low)} – {form.format(mean.high)})"
