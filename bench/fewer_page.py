"""Write the figures of `bench/fewer.json` into docs/explanation/fewer-questions.md, and draw the curves."""

from __future__ import annotations

import json
import math
from typing import Any

from bench_data import ROOT
from fewer import FITTED_FOR, OUT

PAGE = ROOT / "docs" / "explanation" / "fewer-questions.md"
PICTURE = ROOT / "docs" / "images" / "fewer-questions.svg"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
COLOURS = {"plain": "#777777", "surrogate": "#c0392b", "bisection": "#2471a3", "victim-first": "#117a65"}
COLOURS |= {"surrogate-auto": "#e67e22"}
ROWS = {"mr-fresh": "fresh", "reviews": "reviews"}
RECIPES_OWN = "MiniLM"  # the encoder of the constraints where a case names no other


def main() -> None:
    found: dict[str, Any] = json.loads(OUT.read_text(encoding="utf-8"))
    cases = {name: case for name, case in found.items() if name.count("/") >= 2}
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    figures = table(cases)
    if times := timed(cases):
        figures += f"\n\n{times}"
    PAGE.write_text(f"{before}{BEGIN}\n{figures}\n{END}{after}", encoding="utf-8")
    draw({name: case for name, case in cases.items() if "/textfooler@textattack/" in name})


def table(cases: dict[str, Any]) -> str:
    lines = [
        "| victim, attack | way | rows | encoder | n | success | queries | with the fit | of plain "
        "| words | of plain |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in sorted(cases, key=lambda name: (name.rsplit("/", 1)[0], name.split("/")[2] != "plain")):
        case = cases[name]
        victim, attack, way, *_ = name.split("/")
        plain = cases.get("/".join([victim, attack, "plain", *name.split("/")[3:]]), case)
        total = case["queries"] + case["fitting"] / FITTED_FOR
        low, high = wilson(case["success"], case["n"])
        cells = [
            f"{victim}, {attack.split('@')[0]}",
            way,
            ROWS.get(case.get("data"), "earlier"),
            "none" if attack.startswith("deepwordbug") else case.get("encoder") or RECIPES_OWN,
            str(case["n"]),
            f"{case['success']:.1%} ({low:.1%} – {high:.1%})",
            f"{case['queries']:.1f}",
            f"{total:.1f}",
            f"{total / plain['queries']:.2f}",
            f"{case['words_changed']:.2f}",
            f"{case['words_changed'] / plain['words_changed']:.2f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def timed(cases: dict[str, Any]) -> str:
    """CPU seconds of whole commands, the fit in full, and the texts that models were asked about."""
    lines = [
        "| victim, attack | way | n | CPU seconds | of them the fit | plain / this | victim's texts "
        "| encoder's | queries of the fit | texts, with the share of the fit | plain / this |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    found = {name: case for name, case in cases.items() if case["cpu_seconds"]}
    for name in sorted(found, key=lambda name: (name.rsplit("/", 2)[0], name.split("/")[2] != "plain")):
        victim, attack, way, *rest = name.split("/")
        case, plain = found[name], found.get("/".join([victim, attack, "plain", *rest]))
        if plain is None:
            continue
        texts = passes(case)
        cells = [
            f"{victim}, {attack.split('@')[0]}",
            way,
            str(case["n"]),
            f"{case['cpu_seconds']:.1f}",
            "–" if (fit := case.get("fit_cpu_seconds")) is None else f"{fit:.1f}",
            f"{plain['cpu_seconds'] / case['cpu_seconds']:.2f}",
            f"{case['computed']['victim']:,}",
            f"{encoded(case):,}",
            f"{case['fitting']:,}",
            f"{texts:,.0f}",
            f"{passes(plain) / texts:.2f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) if len(lines) > 2 else ""


def encoded(case: dict[str, Any]) -> int:
    return sum(count for name, count in case["computed"].items() if name.startswith("encode:"))


def passes(case: dict[str, Any]) -> float:
    """Texts that the victim and the encoder computed, with the share of the fit of so many rows."""
    share: float = case["fitting"] * case["rows"] / FITTED_FOR
    return case["computed"]["victim"] + encoded(case) + share


def wilson(share: float, n: int, z: float = 1.96) -> tuple[float, float]:
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return middle - half, middle + half


def draw(cases: dict[str, Any]) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "unfooled"
    import matplotlib.pyplot as plt

    victims = sorted({name.split("/")[0] for name in cases})
    figure, axes = plt.subplots(1, len(victims), figsize=(3.2 * len(victims), 3), sharey=True, squeeze=False)
    for axis, victim in zip(axes[0], victims, strict=True):
        for name, case in sorted(cases.items()):
            if name.split("/")[0] == victim:
                way = name.split("/")[2]
                most, share = zip(*case["curve"], strict=True)
                axis.plot(most, [100 * s for s in share], label=way, color=COLOURS[way])
        axis.set_xscale("log")
        axis.set_title(victim)
        axis.set_xlabel("queries of an example, at most")
    axes[0][0].set_ylabel("success, %")
    axes[0][0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
