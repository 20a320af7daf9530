"""Are the results of all recipes what they were? The same rows attacked by two checkouts, row by row.

    python bench/equal.py run CHECKOUT --out DIR --data mr.jsonl --victim model.skops --inside bilstm-dir
    python bench/equal.py compare DIR DIR

A checkout is a folder with its own `.venv`. `--victim` is attacked by recipes that look only at the output,
`--inside` by those that need attention, gradients or embeddings, `--translator` (with `--sentences`) by those on
translations. Give the same files to both. The rows are cut off once, by whoever calls, so that no sampling of either
checkout matters. Exported results that are there already are kept: a stopped command goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

INSIDE = {"attention", "gradients", "embeddings"}
COMPARED = ("outcome", "perturbed", "queries")


def command(checkout: Path, *parts: object) -> subprocess.CompletedProcess[str]:
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    return subprocess.run(
        [str(checkout / ".venv" / "bin" / "unfooled"), *map(str, parts)],
        capture_output=True,
        text=True,
        env=os.environ | threads,
        check=False,
    )


def recipes(checkout: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(command(checkout, "attacks", "--json").stdout)
    return found


def target(recipe: dict[str, Any], args: argparse.Namespace) -> list[object]:
    """Whom the recipe attacks, with which rows; empty if that was not given."""
    needs = set(recipe["needs"])
    if "translations" in needs:
        keyword = ["--target", args.keyword] if recipe["name"].startswith("targeted") else []
        return ["--model", args.translator, "--data", args.sentences, *keyword] if args.translator else []
    victim = args.inside if needs & INSIDE else args.victim
    return ["--model", victim, "--data", args.data] if victim else []


def export(checkout: Path, run: Path, out: Path) -> str:
    """The table of a run; `--out` became an option at some time."""
    done = command(checkout, "export", run, "--out", out)
    if done.returncode:
        done = command(checkout, "export", run, out)
    return "" if done.returncode == 0 else done.stderr


def run(args: argparse.Namespace) -> None:
    args.out.mkdir(parents=True, exist_ok=True)
    for recipe in recipes(args.checkout):
        name = recipe["name"]
        out = args.out / f"{name}.jsonl"
        if out.exists() or (args.only and name not in args.only) or not (whom := target(recipe, args)):
            continue
        started = time.perf_counter()
        folder = args.out / "runs" / name
        options = [part for word in args.option for part in word.split()]
        options += ["--masked-lm", args.masked_lm] if name.startswith("bae") else []
        options += ["--set", f"search.words={args.words}"] if name.startswith(("strongest", "tack-on")) else []
        done = command(args.checkout, "attack", "--attack", name, *whom, *options, "--out", folder, "--json")
        problem = export(args.checkout, folder, out) if done.returncode in (0, 3) else done.stderr
        print(f"{name}: {time.perf_counter() - started:.0f} s {problem[-400:]}", flush=True)


def read(file: Path) -> dict[Any, dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        return {row["key"]: row for row in map(json.loads, lines)}


def compare(first: Path, second: Path) -> int:
    """Print one line per recipe and every row that differs; how many do."""
    total = 0
    for file in sorted(first.glob("*.jsonl")):
        other = second / file.name
        if not other.exists():
            print(f"{file.stem}: only in {first}")
            continue
        before, after = read(file), read(other)
        keys = sorted(before.keys() & after.keys())
        unlike = [key for key in keys if any(before[key][part] != after[key][part] for part in COMPARED)]
        total += len(unlike) + len(before.keys() ^ after.keys())
        outcomes = dict(Counter(row["outcome"] for row in before.values()))
        print(f"{file.stem}: {len(keys) - len(unlike)} of {max(len(before), len(after))} rows equal {outcomes}")
        for key in unlike:
            changed = {part: (before[key][part], after[key][part]) for part in COMPARED}
            print(f"  row {key}: " + ", ".join(f"{part} {a!r} / {b!r}" for part, (a, b) in changed.items() if a != b))
    return total


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    actions = parser.add_subparsers(required=True, dest="action")
    one_side = actions.add_parser("run")
    one_side.add_argument("checkout", type=Path)
    one_side.add_argument("--out", type=Path, required=True)
    one_side.add_argument("--data", help="labelled rows, all of which are attacked")
    one_side.add_argument("--victim", help="model that is asked for probabilities only")
    one_side.add_argument("--inside", help="model with attention and gradients")
    one_side.add_argument("--translator")
    one_side.add_argument("--sentences", help="data of the translator")
    one_side.add_argument("--keyword", default="frau", help="word to be made appear in translations")
    one_side.add_argument("--masked-lm", default="trigram")
    one_side.add_argument("--words", help="file of `unfooled words`, for the attacks that read one")
    one_side.add_argument("--only", nargs="*", default=[], help="names of recipes; else all")
    one_side.add_argument("--option", action="append", default=[], help="more options of `unfooled attack`")
    both = actions.add_parser("compare")
    both.add_argument("first", type=Path)
    both.add_argument("second", type=Path)
    return parser.parse_args(arguments)


def main() -> None:
    args = parse()
    if args.action == "run":
        run(args)
    else:
        sys.exit(1 if compare(args.first, args.second) else 0)


if __name__ == "__main__":
    main()
