"""The `startup` scenario: CPU seconds of a whole small attack, from the command to its summary.

    python bench/run.py --scenario startup [--against OTHER/src]

Every command runs from nothing, with one thread, and its CPU seconds are those of all its processes: what
other programs do to the clock does not count. `--against` takes turns with the source of another version.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import environment as env
from bench_data import ROOT

ROUNDS = 5
ROWS = 30
GOAL = 0.5  # of what the version before took
# Family of the model, options, and rows where these are not `ROWS`. Five rounds of both versions take about
# six minutes of CPU time.
COMMANDS: dict[str, tuple[str, list[str], int | None]] = {
    "deepwordbug": ("svm", ["--attack", "deepwordbug"], None),
    "textfooler": ("svm", ["--attack", "textfooler"], None),
    "textfooler, one row": ("svm", ["--attack", "textfooler"], 1),
}


def run_startup(args: argparse.Namespace) -> dict[str, Any]:
    rounds = 1 if args.quick else args.blocks or ROUNDS
    sides = {"now": ROOT / "src"} | ({"before": args.against.resolve()} if args.against else {})
    seconds: dict[str, dict[str, list[float]]] = {}
    for name, (family, options, fewer) in COMMANDS.items():
        rows = fewer or args.examples or ROWS
        model = _model(family)
        seconds[name] = {side: [] for side in sides}
        for number in range(rounds):
            for side in list(sides) if number % 2 == 0 else list(sides)[::-1]:
                took = cpu_seconds(sides[side], attack(model, options, rows))
                seconds[name][side].append(took)
                print(f"startup: {name}, {side}: {took:.2f} CPU s", flush=True)
    return {
        "scenario": "startup",
        "rows": args.examples or ROWS,
        "seconds": seconds,
        "medians": {
            name: {side: median(found) for side, found in sides.items()} for name, sides in seconds.items()
        },
        "goal": GOAL,
    }


def cpu_seconds(source: Path, command: list[str]) -> float:
    """User and system seconds of the command and of all processes that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        command,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=env.clean_env() | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"},
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def attack(model: Path, options: list[str], rows: int) -> list[str]:
    out = env.HOME / "runs" / "startup"
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-m", "unfooled", "attack", "--model", str(model)]
    command += ["--data", str(env.sentences("mr", rows))]
    return [*command, *options, "--limit", str(rows), "--out", str(out), "--json"]


def _model(family: str) -> Path:
    folder = env.HOME / "victims" / f"startup-{family}"
    if not (folder / "training.json").is_file():
        command = [sys.executable, "-m", "unfooled", "train", "--model", family, "--data", "mr"]
        subprocess.run(
            [*command, "--out", str(folder), "--json"],
            check=True,
            stdout=subprocess.DEVNULL,
            env=dict(os.environ),
        )
    return folder
