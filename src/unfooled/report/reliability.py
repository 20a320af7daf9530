"""The reliability diagram: how often what a judge calls likely is true."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
