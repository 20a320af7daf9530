"""The `switch` scenario: SWITCH, FuSE, FIVE and FACT against what the models inside them cost anyway.

    python bench/switch.py --model DIR --sentences FILE [--quick]

Sides of a comparison take turns block by block (A B, B A, …) on one core with one thread, so that a slow
minute of the machine hits both; medians of the blocks count.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench_data import Row, read_jsonl
from protocol import one_thread

GOALS = {"forward_share": 0.8, "against_loop": 1.5, "fuse": 0.8, "five": 0.8, "fact": 1.15}
ALTERNATIVES = 4


def clock(work: Callable[[], Any]) -> float:
    """CPU seconds: all of it is computing in one thread, and other programs do not count."""
    began = time.process_time()
    work()
    return time.process_time() - began


def in_turns(sides: dict[str, Callable[[int], Any]], blocks: int) -> dict[str, list[float]]:
    """Seconds of every block of every side."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(blocks):
        for name in list(sides) if number % 2 == 0 else list(sides)[::-1]:
            seconds[name].append(clock(lambda name=name, number=number: sides[name](number)))
    return seconds


def measure_switch(victim: Any, blocks: Sequence[list[str]]) -> dict[str, Any]:
    """All texts of a block at once, against the same program text by text."""
    from unfooled.defenses.switch import Switch
    from unfooled.defenses.switching import Switcher

    settings = Switch(words=9, alternatives=ALTERNATIVES)
    together, alone = Switcher(settings, victim), Switcher(settings, victim)
    for switcher in (together, alone):
        switcher(["a warm, funny, engaging film"])
    before = {name: traffic.seconds for name, traffic in together.engine.traffic.items()}
    wall = 0.0

    def at_once(number: int) -> None:
        nonlocal wall
        began = time.perf_counter()
        together(blocks[number])
        wall += time.perf_counter() - began

    def loop(number: int) -> None:
        for text in blocks[number]:
            alone([text])

    seconds = in_turns({"together": at_once, "alone": loop}, len(blocks))
    spent = {name: traffic.seconds - before[name] for name, traffic in together.engine.traffic.items()}
    models = sum(value for name, value in spent.items() if name.partition(":")[0] in ("gradients", "encode"))
    ratios = [a / b for a, b in zip(seconds["alone"], seconds["together"], strict=True)]
    return {
        "texts": sum(map(len, blocks)),
        "texts_per_second": sum(map(len, blocks)) / sum(seconds["together"]),
        "forward_share": models / wall,
        "shares": {name: value / wall for name, value in spent.items()},
        "against_loop": median(ratios),
        "against_loop_range": [min(ratios), max(ratios)],
    }


def measure_votes(victim: Any, blocks: Sequence[list[str]], method: str) -> dict[str, Any]:
    """Copies classified per second, as a share of what the model's own `predict` does with as many texts."""
    from unfooled.defenses.saving import wrap
    from unfooled.defenses.switch import Switch
    from unfooled.defenses.switching import Switcher

    guarded = wrap(method, victim)
    most = guarded.describe()["alternatives" if method == "fuse" else "copies"]
    # Texts that differ, as many as there are copies: `predict` reads equal ones only once.
    make = Switcher(Switch(words=3, alternatives=most, similarity="none"), victim)
    copies = [[text, *others] for block in blocks for text, others in zip(block, make(block), strict=True)]
    plain: list[list[str]] = []
    at = 0
    for block in blocks:
        plain.append([text for group in copies[at : at + len(block)] for text in group])
        at += len(block)
    guarded.predict(blocks[0][:2])
    seconds = in_turns(
        {
            "guarded": lambda number: guarded.predict(blocks[number]),
            "plain": lambda number: victim.predict(plain[number]),
        },
        len(blocks),
    )
    shares = [a / b for a, b in zip(seconds["plain"], seconds["guarded"], strict=True)]
    return {
        "copies": most + 1,
        "of_raw": median(shares),
        "of_raw_range": [min(shares), max(shares)],
        "texts_per_second": sum(map(len, blocks)) / sum(seconds["guarded"]),
    }


def measure_fact(model: str, rows: Sequence[Row], labels: Sequence[str]) -> dict[str, Any]:
    """The second epoch of FACT against the second epoch of plain retuning: alternatives are made by then."""
    from unfooled.data.dataset import Dataset
    from unfooled.defenses.harden import harden
    from unfooled.training.observer import TrainObserver

    class Watch(TrainObserver):
        def __init__(self) -> None:
            self.began = self.ended = 0.0

        def evaluated(self, epoch: int, metrics: Any) -> None:
            if epoch == 1:
                self.began = time.process_time()

        def step(self, done: int, loss: float | None) -> None:
            self.ended = time.process_time()

    data = Dataset.from_pairs([(row.text, labels[row.label]) for row in rows], labels=labels, name="bench")
    seconds = {}
    for method, more in (("retune", {}), ("fact", {"alternatives": ALTERNATIVES, "similarity": "none"})):
        folder = Path(tempfile.mkdtemp(prefix="unfooled-bench-"))
        watch = Watch()
        try:
            harden(
                model, data, method=method, out=folder / "x", options={"epochs": 2, **more}, observer=watch
            )
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        seconds[method] = watch.ended - watch.began
    ratio = seconds["fact"] / seconds["retune"]
    return {"alternatives": ALTERNATIVES, "seconds": seconds, "per_copy": ratio / (1 + ALTERNATIVES)}


def run_switch(model: Path, sentences: Path, *, quick: bool) -> dict[str, Any]:
    import torch

    from unfooled.victims.loading import load_victim

    torch.set_num_threads(1)
    victim = load_victim(f"hf:{model}")
    rows = read_jsonl(sentences)
    size, count = (40, 2) if quick else (200, 4)
    blocks = [[row.text for row in rows[at * size : (at + 1) * size]] for at in range(count)]
    few = [block[: 20 if quick else 100] for block in blocks]
    measured = {"scenario": "switch", "goals": GOALS, "switch": measure_switch(victim, blocks)}
    for method in ("fuse", "five"):
        measured[method] = measure_votes(victim, few, method)
    measured["fact"] = measure_fact(str(model), rows[: 64 if quick else 640], victim.labels)
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--sentences", type=Path, required=True, help="JSONL with text and label")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    one_thread()
    print(json.dumps(run_switch(args.model, args.sentences, quick=args.quick)))


if __name__ == "__main__":
    main()
