"""How good a judge is: its reliability diagram, and its figures in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unfooled.metrics.validity.model import Judge
from unfooled.report.charts import ChartLine, line_chart


def reliability_diagram(figure: Mapping[str, Any], *, title: str) -> str:
    """SVG of the bins of a figure (see `metrics.validity.fitting`), beside the line of a perfect judge."""
    bins = figure["bins"]
    perfect = [b["predicted"] for b in bins]
    lines = [
        ChartLine(
            "observed",
            perfect,
            [b["observed"] for b in bins],
            [b["low"] for b in bins],
            [b["high"] for b in bins],
        ),
        ChartLine("as predicted", perfect, perfect, perfect, perfect, colour=1),
    ]
    return line_chart(lines, title=title, x_name="predicted probability", x_form="{:.2f}")


STYLE = """<style>
text{font:11px sans-serif;fill:#333}.line{fill:none;stroke-width:2}.band{opacity:.18;stroke:none}
.s0{stroke:#33658a;fill:#33658a}.line.s0,.line.s1{fill:none}.s1{stroke:#999;fill:#999}.rule,.axis{stroke:#ddd}
</style>"""


def standalone(svg: str) -> str:
    """With its own colours, for a file that no page styles."""
    head, _, rest = svg.partition(">")
    if "xmlns=" not in head:
        head += ' xmlns="http://www.w3.org/2000/svg"'
    return f"{head}>{STYLE}{rest}\n"


def diagram_of(judge: Judge) -> str:
    """The diagram of P(valid) as a file of its own, with the judge's best variant."""
    figure = judge.record["figures"][next(iter(judge.variants))]["valid"]
    return standalone(reliability_diagram(figure, title="P(valid): predicted and observed"))


def figures_told(judge: Judge) -> list[str]:
    """A line for each figure, measured on texts that the judge was not fitted on."""
    lines = []
    for name, figures in judge.record["figures"].items():
        lines.append(f"{name}, on texts it was not fitted on:")
        lines += [f"  {what}: {_told(figure)}" for what, figure in figures.items()]
    return lines


def _told(figure: Mapping[str, Any]) -> str:
    if not figure:
        return "nothing to count"
    if "auc" in figure:
        return (
            f"AUC {figure['auc']:.3f} ({figure['auc_low']:.3f} – {figure['auc_high']:.3f}), "
            f"calibration error {figure['calibration_error']:.3f} "
            f"(a perfect judge: {figure['calibration_error_by_chance']:.3f}), "
            f"{figure['positive']} of {figure['n']}"
        )
    return (
        f"{figure['called_invalid']:.1%} ({figure['low']:.1%} – {figure['high']:.1%}, n = {figure['n']}) "
        f"called invalid at {figure['threshold']:.2f}, which keeps {figure['valid_kept']} of "
        f"{figure['valid']} valid texts"
    )
