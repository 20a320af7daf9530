"""Our recipes beside those of TextAttack 0.3.11, example by example; writes `docs/parity.md`.

    python bench/parity.py                     measure every row that can be, some hours
    python bench/parity.py pwws textbugger     these only; the others keep their figures
    python bench/parity.py --page              only write the page again

What is compared, with which parts, stands in `parity_table.py`; the figures in `parity.json`. Both sides
attack the same sentences of MR with the same victim, block by block in turns, with one thread.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import environment as env
from bench_data import read_jsonl
from compare import compare
from parity_page import RESULTS, read_results, write_page
from parity_table import TEXTATTACK, Row
from protocol import Side

WARM_UP = 2
MOST_SENTENCES = 700
BLOCK = 25
MOST_EXPLAINED = 12  # differences; more than these are a fault of one side
SPEED_VICTIM = "minilm-mr"
BLOCKS = env.HOME / "parity-blocks"  # answers of blocks that are done: a stopped measurement goes on


def start(file: Path, args: argparse.Namespace) -> dict[str, Side]:
    """Both sides, each in its environment; they live as long as there are rows."""
    theirs: list[object] = [args.textattack, env.BENCH / "parity_theirs.py", "--sentences", file]
    theirs += ["--nltk-data", env.nltk_data(), "--neighbours", args.neighbours]
    theirs += ["--encoder", env.resource("minilm"), "--wordnet", env.resource("wordnet")]
    theirs += ["--trigram", env.resource("trigram") / "en-us.lm.bin"]
    ours: list[object] = [sys.executable, env.BENCH / "parity_ours.py", "--sentences", file]
    if args.masked_lm:
        theirs += ["--masked-lm", args.masked_lm]
        ours += ["--masked-lm", args.masked_lm]
    # The order of a Python set, and with it that of equally good candidates, follows from this seed.
    alone = env.clean_env(package=False) | {"PYTHONHASHSEED": "0"}
    log = env.HOME / f"parity-{os.getpid()}"
    return {
        "textattack": Side("textattack", plain(theirs), log.with_suffix(".theirs.log"), alone),
        "unfooled": Side("unfooled", plain(ours), log.with_suffix(".ours.log"), env.clean_env()),
    }


def run_blocks(
    row: Row,
    victim: str,
    examples: int,
    file: Path,
    sides: dict[str, Side],
    *,
    block: int = BLOCK,
    reasons: bool = False,
    resume: bool = False,
) -> dict[str, Any]:
    """Both sides in turns; answers of all blocks, and why examples differ."""
    rows = read_jsonl(file)
    fit = [at for at, (text, _) in enumerate(rows) if not row.longest or len(text.split()) <= row.longest]
    fit = fit[: examples + WARM_UP]
    for side in sides.values():
        side.open_row(row.name, env.HOME / "victims" / victim)
        side.block(fit[-WARM_UP:])
    answers = []
    for number, first in enumerate(range(0, examples, block)):
        indices = fit[first : min(first + block, examples)]
        kept = BLOCKS / f"{row.name}-{victim}-{block}-{first}-{len(indices)}.json"
        if resume and kept.exists():
            answers.append(json.loads(kept.read_text(encoding="utf-8")))
            continue
        order = list(sides) if number % 2 == 0 else list(sides)[::-1]
        answers.append({name: sides[name].block(indices) for name in order})
        BLOCKS.mkdir(exist_ok=True)
        kept.write_text(json.dumps(answers[-1]), encoding="utf-8")
        seconds = {name: round(answer["cpu_seconds"], 1) for name, answer in answers[-1].items()}
        print(
            f"  {row.name} on {victim}: {first + len(indices)} of {examples}, CPU seconds {seconds}",
            flush=True,
        )
    agreement = compare(rows, answers)
    if row.how == "texts" and reasons and agreement["differences"]:
        agreement["differences"] = agreement["differences"][:MOST_EXPLAINED]
        others = [found["unfooled"] | {"index": found["index"]} for found in agreement["differences"]]
        told = sides["textattack"].explain(others)
        for difference, reason in zip(agreement["differences"], told, strict=True):
            difference["reason"] = reason
    return {"answers": answers, "agreement": agreement}


def plain(command: Sequence[object]) -> list[str]:
    return [str(part) for part in command]


def side_figures(blocks: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Success, queries per attacked example with their intervals, and time of one side."""
    from unfooled.rates import wilson

    results = [result for block in blocks for result in block["results"]]
    outcomes = Counter(result["outcome"] for result in results)
    attacked = [result for result in results if result["outcome"] in ("success", "failure")]
    queries = [result["queries"] for result in attacked]
    spread = 1.96 * stdev(queries) / math.sqrt(len(queries)) if len(queries) > 1 else 0.0
    mean = fmean(queries) if queries else 0.0
    low, high = wilson(outcomes["success"], max(1, len(attacked)))
    notes = Counter(result.get("note") for result in results if result["outcome"] == "error")
    return {
        "outcomes": dict(outcomes),
        "success": [round(outcomes["success"] / max(1, len(attacked)), 4), round(low, 4), round(high, 4)],
        "queries": [round(mean, 1), round(mean - spread, 1), round(mean + spread, 1)],
        "seconds": round(sum(block["seconds"] for block in blocks), 2),
        "cpu_seconds": round(sum(block["cpu_seconds"] for block in blocks), 2),
        **{
            what: {
                name: sum(block["meters"].get(name, {}).get(what, 0) for block in blocks) for name in METERS
            }
            for what in ("calls", "texts", "tokens", "padding")
        },
        "errors": dict(notes.most_common(3)),
    }


METERS = ("victim", "encoder")


def measure(row: Row, file: Path, sides: dict[str, Side], args: argparse.Namespace) -> dict[str, Any]:
    examples = args.examples or row.examples
    run = run_blocks(row, row.victim, examples, file, sides, reasons=not args.no_reasons, resume=args.resume)
    agreement = run["agreement"]
    reasons = Counter(difference.get("reason", "") for difference in agreement["differences"])
    made = {
        "ours": row.ours,
        "victim": row.victim,
        "examples": examples,
        "same_text": agreement["same_found"],
        "same_queries": agreement["same_queries"],
        "reasons": dict(reasons) if row.how == "texts" else {},
        "unexplained": [
            difference
            for difference in agreement["differences"]
            if row.how == "texts" and not difference.get("reason")
        ][:MOST_EXPLAINED],
    }
    for side in ("textattack", "unfooled"):
        made[side] = side_figures([answer[side] for answer in run["answers"]])
    return made


def explain_again(row: Row, theirs: Side) -> dict[str, Any]:
    """Tries to explain the differences that no accident known when they were measured could."""
    known = read_results().get(row.name, {})
    left = known.get("unexplained", [])
    if not left:
        return {}
    theirs.open_row(row.name, env.HOME / "victims" / row.victim)
    told = theirs.explain([found["unfooled"] | {"index": found["index"]} for found in left])
    reasons = Counter(known["reasons"])
    reasons.update(told)
    reasons[""] -= len(told)
    kept = [difference for difference, reason in zip(left, told, strict=True) if not reason]
    return {"reasons": {reason: count for reason, count in reasons.items() if count}, "unexplained": kept}


def measure_speed(row: Row, file: Path, sides: dict[str, Side], count: int) -> dict[str, Any]:
    """The same on MiniLM, a few sentences: seconds beside seconds."""
    slow = replace(row, victim=SPEED_VICTIM, how="rates")
    answers = run_blocks(slow, SPEED_VICTIM, count, file, sides, block=-(-count // 2))["answers"]
    figures = {side: side_figures([answer[side] for answer in answers]) for side in sides}
    return {"examples": count, "victim": SPEED_VICTIM, **figures}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("recipes", nargs="*", help="TextAttack's names; else all that can be measured")
    parser.add_argument("--page", action="store_true", help="write the page from the figures that are there")
    parser.add_argument("--examples", type=int, default=0, help="in place of the table's number")
    parser.add_argument("--speed", type=int, default=0, help="also attack MiniLM with so many sentences")
    parser.add_argument("--no-reasons", action="store_true", help="do not run TextAttack again to explain")
    parser.add_argument("--only-speed", action="store_true")
    parser.add_argument("--resume", action="store_true", help="go on with a measurement that was stopped")
    parser.add_argument("--explain", action="store_true", help="only explain differences that are left")
    parser.add_argument("--textattack", type=Path, help="interpreter of TextAttack's environment")
    parser.add_argument("--masked-lm", type=Path, help="folder of a masked language model")
    args = parser.parse_args()
    if not args.page:
        env.HOME.mkdir(exist_ok=True)
        args.textattack = env.textattack_python(args.textattack)
        env.train_missing(env.resource("minilm"), victims_of(args))
        args.neighbours = env.export_neighbours(env.resource("counter-fitted"))
        # A file of its own: `run.py` cuts the other one as it needs.
        file = env.HOME / "parity.jsonl"
        if not file.exists():
            shutil.copyfile(env.sentences("mr", MOST_SENTENCES), file)
        sides = start(file, args)
        for row in TEXTATTACK:
            if row.measured and (not args.recipes or row.name in args.recipes):
                keep(row, file, sides, args)
        for side in sides.values():
            side.close()
    write_page()


def victims_of(args: argparse.Namespace) -> list[str]:
    """Names of all victims that the rows to be measured need."""
    chosen = [row for row in TEXTATTACK if row.measured and (not args.recipes or row.name in args.recipes)]
    names = {row.victim.removesuffix(".skops") for row in chosen}
    return sorted(names | ({SPEED_VICTIM} if args.speed else set()))


def keep(row: Row, file: Path, sides: dict[str, Side], args: argparse.Namespace) -> None:
    """Measure one row; its figures are in the file as soon as they are there."""
    if args.explain:
        figures = explain_again(row, sides["textattack"])
    else:
        figures = {} if args.only_speed else measure(row, file, sides, args)
    if args.speed:
        figures["speed"] = measure_speed(row, file, sides, args.speed)
    results = read_results()
    results[row.name] = results.get(row.name, {}) | figures
    text = json.dumps(results, indent=1, ensure_ascii=False, sort_keys=True)
    RESULTS.write_text(text + "\n", encoding="utf-8")
    write_page()


if __name__ == "__main__":
    main()
