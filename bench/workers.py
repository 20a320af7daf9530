"""The `workers` scenario: one process against two, through the command line, same results required."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import environment as env

ROUNDS = 3


def run_workers(victim: Path, data: Path, examples: int, quick: bool) -> dict[str, Any]:
    """1 and 2 workers in turns. `machine_ceiling` is what two bare forward-pass loops reach together."""
    seconds: dict[str, list[float]] = {"1": [], "2": []}
    found: dict[str, str] = {}
    identical = True
    print(f"workers: {examples} examples, 1 against 2", flush=True)
    for number in range(1 if quick else ROUNDS):
        for workers in ("1", "2") if number % 2 == 0 else ("2", "1"):
            out = env.HOME / "runs" / f"workers-{workers}"
            shutil.rmtree(out, ignore_errors=True)
            took = attack(victim, data, examples, workers, out)
            seconds[workers].append(took)
            print(f"  {workers} worker(s): {took:.1f} s", flush=True)
            answer = results(out)
            identical &= found.setdefault("first", answer) == answer
    ratios = [alone / together for alone, together in zip(seconds["1"], seconds["2"], strict=True)]
    return {
        "scenario": "workers",
        "examples": examples,
        "seconds": seconds,
        "ratios": ratios,
        "ratio": median(ratios),
        "goal": 1.8,
        "identical": identical,
        "machine_ceiling": machine_ceiling(victim, data),
    }


# ---------------------------------------------------------------------------------------------------
# The two places that know the command line.
def attack(victim: Path, data: Path, examples: int, workers: str, out: Path) -> float:
    """Wall seconds of one run, start-up of every process included."""
    command: list[object] = [sys.executable, "-m", "unfooled", "attack", "--model", f"hf:{victim}"]
    command += ["--data", data, "--attack", "textfooler@textattack", "--limit", examples]
    command += ["--workers", workers, "--out", out, "--json"]
    started = time.perf_counter()
    subprocess.run(
        [str(part) for part in command], check=True, stdout=subprocess.DEVNULL, env=env.clean_env()
    )
    return time.perf_counter() - started


def results(out: Path) -> str:
    """Every result of a run, in the order of the data, as one string to compare."""
    target = out.with_suffix(".jsonl")
    command: list[object] = [sys.executable, "-m", "unfooled", "export", out, "-o", target, "--force"]
    subprocess.run(
        [str(part) for part in command], check=True, stdout=subprocess.DEVNULL, env=env.clean_env()
    )
    return "\n".join(sorted(target.read_text(encoding="utf-8").splitlines()))


# ---------------------------------------------------------------------------------------------------


def machine_ceiling(victim: Path, data: Path) -> float:
    """Texts per second of two raw loops at once, divided by those of one alone."""
    command = [sys.executable, str(env.BENCH / "raw_limit.py"), "--quick"]
    command += ["--victim", str(victim), "--sentences", str(data)]

    def together(count: int) -> float:
        running = [
            subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env.clean_env()
            )
            for _ in range(count)
        ]
        answers = [json.loads(process.communicate()[0].splitlines()[-1]) for process in running]
        return sum(float(answer["texts_per_second"]) for answer in answers)

    alone = together(1)
    return together(2) / alone
