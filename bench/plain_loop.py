"""An attack of ours in turns with a plain loop over single texts, as in `jsma` and `translation`."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

Row = TypeVar("Row")
SIDES = ("loop", "unfooled")
# What the loop gives per text, and what ours gives: the same, and then what it took (words, queries).
Theirs = tuple[str, str]
Ours = tuple[str, str, int]


def in_turns(
    rows: Sequence[Row],
    blocks: int,
    block: int,
    loop: Callable[[Sequence[Row]], list[Theirs]],
    unfooled: Callable[[Sequence[Row], int], list[Ours]],
    *,
    texts: str,
    step: str,
) -> tuple[dict[str, Any], list[Ours]]:
    """The figures of both sides, and our answers; `texts` and `step` name what is counted.

    Rows behind the last block warm both sides up.
    """
    warm = rows[blocks * block :]
    loop(warm)
    unfooled(warm, 10**6)
    seconds: dict[str, list[float]] = {side: [] for side in SIDES}
    cpu: dict[str, list[float]] = {side: [] for side in SIDES}
    answers: dict[str, list[Any]] = {side: [] for side in SIDES}
    for number in range(blocks):
        part = rows[number * block : (number + 1) * block]
        for side in SIDES if number % 2 == 0 else SIDES[::-1]:
            started, cpu_started = time.perf_counter(), time.process_time()
            answers[side] += loop(part) if side == "loop" else unfooled(part, number * block)
            seconds[side].append(time.perf_counter() - started)
            cpu[side].append(time.process_time() - cpu_started)
    total, steps = blocks * block, sum(found[2] for found in answers["unfooled"])
    ratios = [a / b for a, b in zip(seconds["loop"], seconds["unfooled"], strict=True)]
    figures = {
        "blocks": blocks,
        "examples_per_block": block,
        "seconds": {side: sum(values) for side, values in seconds.items()},
        f"{texts}_per_minute": {side: 60 * total / sum(values) for side, values in seconds.items()},
        f"milliseconds_per_{step}": {
            side: 1000 * sum(values) / max(1, steps) for side, values in seconds.items()
        },
        "ratios": ratios,
        "ratio": median(ratios),
        "cpu_ratio": median(a / b for a, b in zip(cpu["loop"], cpu["unfooled"], strict=True)),
        "same": sum(a == b[:2] for a, b in zip(answers["loop"], answers["unfooled"], strict=True)),
        "examples": total,
    }
    return figures, answers["unfooled"]


def read_arguments(about: str | None, rows: str, rows_help: str, *, block: int) -> argparse.Namespace:
    """The model, the file behind the option `rows`, and how much of it."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0] if about else None)
    parser.add_argument("--victim", type=Path, required=True)
    parser.add_argument(rows, dest="rows", required=True, help=rows_help)
    parser.add_argument("--blocks", type=int, default=3)
    parser.add_argument("--block", type=int, default=block)
    return parser.parse_args()
