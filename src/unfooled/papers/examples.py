"""Ten texts of a paper's attacks for its page, drawn with a stated seed, with room for what a reader says.

Figures say how often a model is fooled; only the texts say whether a person would be.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

import numpy as np

from unfooled.core.result import Result
from unfooled.papers.document import Block, Bullets, Grid, Heading, Paragraph
from unfooled.papers.findings import Findings

NUMBER, SEED = 10, 24
_BESIDE = 8  # words shown on either side of a change


def examples(runs: Sequence[str], findings: Findings) -> list[Block]:
    """Of the successes of these runs, as many of each as can be; nothing where there is none."""
    found = [name for name in runs if name in findings.done]
    drawn = drawn_texts(found, findings)
    if not drawn:
        return []
    labels = {name: findings.labels(name) for name, _ in drawn}  # a run without a row has none
    rows = []
    for name, result in drawn:
        before, after = (labels[name][int(np.argmax(p))] for p in (result.probs, result.perturbed_probs))
        shown = marked(result.original, result.perturbed)
        rows.append((name, str(result.key), shown, f"{before} → {after}", ""))
    folders = " ".join(
        f"WORK/attack/{findings.done[name].folder.name}/run" for name in dict.fromkeys(n for n, _ in drawn)
    )
    return [
        Heading("Ten texts"),
        Paragraph(
            f"Successes drawn at random (seed {SEED}), none left out for what it says. Changes stand in "
            "brackets. The last column is for a reader: does the text still say what it said, and is it "
            "English?"
        ),
        Grid(("run", "row", "text", "model", "reader"), rows),
        Bullets(
            [f"For several readers: `unfooled study create {folders} -n {NUMBER} --seed {SEED} -o study.db`"]
        ),
    ]


def drawn_texts(runs: Sequence[str], findings: Findings) -> list[tuple[str, Result]]:
    """Round after round one of each run, each run's in a random order."""
    rng = np.random.default_rng(SEED)
    orders = []
    for name in runs:
        won = sorted(
            (result for result in findings.results(name) if result.outcome == "success"),
            key=lambda result: result.key,
        )
        orders.append([(name, won[place]) for place in rng.permutation(len(won))])
    longest = max((len(order) for order in orders), default=0)
    rounds = [order[at] for at in range(longest) for order in orders if at < len(order)]
    return rounds[:NUMBER]


def marked(before: str, after: str) -> str:
    """The new text with `[old → new]` at each change, and `…` for what is far from any."""
    old, new = before.split(), after.split()
    parts: list[str] = []
    changes = SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes()
    for number, (kind, start, end, first, last) in enumerate(changes):
        if kind != "equal":
            parts.append(f"[{' '.join(old[start:end]) or '–'} → {' '.join(new[first:last]) or '–'}]")
            continue
        words = new[first:last]
        left = _BESIDE if number else 0  # next to the change before
        right = _BESIDE if number < len(changes) - 1 else 0
        if len(words) > left + right + 1:
            words = [*words[:left], "…", *words[len(words) - right :]]
        parts.append(" ".join(words))
    return " ".join(parts)
