"""The figures of a study in the terminal."""

from __future__ import annotations

import math

from rich.console import Console
from rich.table import Table

from unfooled.people.report import headline, judged_words, mean_text
from unfooled.people.study.figures import Figures
from unfooled.report.diffs import visible


def show_figures(figures: Figures) -> None:
    console = Console()

    def say(text: str, style: str = "") -> None:
        console.print(visible(text), style=style, highlight=False, markup=False)

    say(f"protocol {figures.protocol}: {figures.paper}", "bold")
    done = f"{figures.complete} of {len(figures.annotators)} annotators have answered everything"
    say(done + (f"; left out: {', '.join(map(str, figures.left_out))}" if figures.left_out else ""))
    for notice in figures.notices:
        say(f"! {notice}", "yellow")
    if line := headline(figures):
        say(line, "bold")
    console.print(_sources(figures))
    console.print(_agreement(figures))
    if figures.correlations:
        console.print(_correlations(figures))
    console.print(_annotators(figures))
    if figures.disputes:
        say("\nitems on which people differ most", "bold")
        for dispute in figures.disputes:
            say(f"  item {dispute.item}, {dispute.source}, {dispute.question}: {', '.join(dispute.answers)}")
            say(f"    {dispute.text if len(dispute.text) <= 300 else dispute.text[:300] + '…'}", "dim")


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for number, name in enumerate(columns):
        table.add_column(name, justify="right" if number else "left")
    return table


def _sources(figures: Figures) -> Table:
    scales = [question.id for question in figures.questions if question.kind == "scale"]
    labels = any(question.kind == "label" for question in figures.questions)
    pairs = any(source.readability for source in figures.sources)
    names = ["right class", "by majority"] if labels else []
    table = _table(
        "\nwhat people say", "texts of", "items", *names, *scales, *(["readability"] if pairs else [])
    )
    for source in figures.sources:
        cells = [visible(source.name), str(source.items)]
        if labels:
            cells += [mean_text(source.accuracy, "{:.1%}"), _number(source.majority, "{:.1%}")]
        cells += [mean_text(source.scales[name], "{:.2f}") for name in scales]
        if pairs:
            read = source.readability
            cells.append(f"{read.value:.2f} ({read.low:.2f} – {read.high:.2f})" if read else "–")
        table.add_row(*cells)
    return table


def _agreement(figures: Figures) -> Table:
    table = _table(
        "\nagreement: Krippendorff's alpha, Fleiss' kappa",
        "question",
        "alpha",
        "items",
        "kappa",
        "items",
        "in words",
    )
    for agreement in figures.agreement:
        table.add_row(
            agreement.question,
            f"{_number(agreement.alpha, '{:.3f}')} ({agreement.level})",
            str(agreement.items),
            _number(agreement.kappa, "{:.3f}"),
            str(agreement.complete),
            judged_words(agreement.alpha),
        )
    return table


def _correlations(figures: Figures) -> Table:
    table = _table(
        "\npeople and measures (rank correlation)", "measure", "question", "rho", "95 % interval", "n"
    )
    for correlation in figures.correlations:
        interval = (
            f"{correlation.low:+.2f} – {correlation.high:+.2f}" if math.isfinite(correlation.low) else "–"
        )
        table.add_row(
            visible(correlation.measure),
            correlation.question,
            _number(correlation.value, "{:+.2f}"),
            interval,
            str(correlation.n),
        )
    return table


def _annotators(figures: Figures) -> Table:
    table = _table(
        "\nannotators", "number", "answered", "checks", "with most others", "distance", "seconds", "remarks"
    )
    for annotator in figures.annotators:
        remarks = [] if annotator.attentive else ["fails the attention checks"]
        remarks += ["the same answer on every scale"] if annotator.same else []
        table.add_row(
            str(annotator.number),
            f"{annotator.answered} of {annotator.total}",
            f"{annotator.checks_passed} of {annotator.checks}",
            _number(annotator.agrees, "{:.0%}"),
            _number(annotator.distance, "{:.2f}"),
            _number(annotator.seconds, "{:.1f}"),
            "; ".join(remarks),
        )
    return table


def _number(value: float, form: str) -> str:
    return form.format(value) if math.isfinite(value) else "–"
