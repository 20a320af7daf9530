"""Queries per attacked example: plain, victim first, by bisection and with a surrogate, on the same rows.

    python bench/fewer.py --victim NAME=PATH ... [--sentences 500] [--reviews 100] [--only TEXT ...]
        [--fresh DATA] [--encoder potion] [--work FOLDER] [--out FILE]

A victim named `…-imdb` is attacked with reviews, every other with sentences. With `--fresh` the sentences are
those of `DATA/mr` that are not in the data the victims come from: neither did the victims see them, nor were
the constants of the search chosen on them. `--encoder` puts another encoder into the constraints. A case is
a run file below `--work` (`.bench`): stopped, the same command goes on. Writes `bench/fewer.json`, which
`bench/fewer_page.py` draws.
Queries are counted, so they do not depend on the machine. Sentence vectors are kept from case to case, which
changes no count; with `--time` they are not, and CPU seconds are written down.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import environment as env
from bench_data import ROOT, read_jsonl, write_jsonl
from protocol import one_thread

one_thread()

OUT = ROOT / "bench" / "fewer.json"
FITTED_FOR = 500  # rows that share the queries of the fit
CURVE = (1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200, 300, 500)
WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "surrogate": {"surrogate": "auto"},
    "bisection": {"importance": "bisection"},
    "surrogate-auto": {"surrogate": "auto", "order": "auto"},
    "victim-first": {"order": "victim-first"},
}
CASES = [
    ("textfooler@textattack", way, kind)
    for kind in ("sentences", "reviews")
    for way in ("plain", "surrogate", "bisection")
]
CASES += [("textfooler@textattack", way, "sentences") for way in ("surrogate-auto", "victim-first")]
CASES += [
    (f"{name}@textattack", way, "sentences")
    for name in ("deepwordbug", "bae-r")
    for way in ("plain", "surrogate")
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--victim", nargs="+", required=True, help="NAME=PATH")
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--reviews", type=int, default=100)
    parser.add_argument("--only", nargs="*", default=[], help="cases whose name contains one of these")
    parser.add_argument("--fresh", type=Path, help="folder with mr/train.jsonl.gz and mr/test.jsonl.gz")
    parser.add_argument("--encoder", help="in place of the recipe's own")
    parser.add_argument("--work", type=Path, default=env.HOME, help="where rows and runs are kept")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--time", action="store_true", help="compute everything in each case")
    args = parser.parse_args()
    if not args.time:
        keep_vectors()
    env.HOME = args.work
    sentences = fresh(args.fresh) if args.fresh else env.sentences("mr", 10_000)
    files = {"sentences": sentences, "reviews": env.reviews(1500)}
    rows = {"sentences": args.sentences, "reviews": args.reviews}
    for victim in args.victim:
        name, _, path = victim.partition("=")
        for attack, way, kind in CASES:
            case = f"{name}/{attack}/{way}"
            wanted = not args.only or any(part in case for part in args.only)
            if wanted and (kind == "reviews") == name.endswith("-imdb"):
                measure(
                    case + "/time" * args.time,
                    path,
                    attack,
                    way,
                    files[kind],
                    rows[kind],
                    encoder=args.encoder,
                    to=args.out,
                )


def fresh(folder: Path) -> Path:
    """Sentences of 10 to 40 words of that MR that are not among the embedded ones, in a seeded order."""
    from unfooled.resources.datasets import movie_reviews

    known = {letters(text) for text, _ in movie_reviews("mr")}
    rows = {row for part in ("train", "test") for row in read_jsonl(folder / "mr" / f"{part}.jsonl.gz")}
    new = sorted(row for row in rows if 10 <= len(row.text.split()) <= 40 and letters(row.text) not in known)
    random.Random(env.SEED).shuffle(new)
    out = env.HOME / "mr-fresh.jsonl"
    write_jsonl(out, new)
    return out


def letters(text: str) -> str:
    """What two spellings of the same sentence have in common."""
    return "".join(filter(str.isalnum, text.lower()))


class Kept:
    """An encoder that remembers what it was asked in earlier cases."""

    def __init__(self, oracle: Any) -> None:
        self._oracle, self._known = oracle, {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._oracle, name)

    def __call__(self, items: Any) -> list[Any]:
        if new := [item for item in dict.fromkeys(items) if item not in self._known]:
            self._known.update(zip(new, self._oracle(new), strict=True))
        return [self._known[item] for item in items]


def keep_vectors() -> None:
    from functools import cache

    from unfooled.resources import encoders

    own = encoders.open_encoder
    encoders.open_encoder = cache(lambda variant="": Kept(own(variant)))


@contextmanager
def clocked_fit() -> Iterator[list[float]]:
    """Collects the CPU seconds of the fits made inside."""
    from unfooled.runs import surrogate

    own, spent = surrogate.fitted_for, []

    def fitted_for(*args: Any, **named: Any) -> Any:
        began = time.process_time()
        try:
            return own(*args, **named)
        finally:
            spent.append(time.process_time() - began)

    surrogate.fitted_for = fitted_for
    try:
        yield spent
    finally:
        surrogate.fitted_for = own


def measure(
    case: str,
    victim: str,
    attack: str,
    way: str,
    data: Path,
    rows: int,
    *,
    encoder: str | None,
    to: Path,
) -> None:
    import unfooled
    from unfooled.core.recipe import load_part, load_recipe, with_everywhere
    from unfooled.runs.file import RunFile

    found = json.loads(to.read_text(encoding="utf-8")) if to.exists() else {}
    if found.get(case, {}).get("rows") == rows:
        return
    settings = dict(WAYS[way])
    recipe = load_recipe(attack)
    if attack.startswith("bae"):
        recipe = with_everywhere(recipe, "masked_lm", "trigram")
    if encoder and not attack.startswith("deepwordbug"):
        recipe = with_everywhere(recipe, "encoder", encoder)
    if importance := settings.pop("importance", ""):
        recipe = with_everywhere(recipe, "importance", load_part("importance", importance))
    out = env.HOME / "fewer" / case.replace("/", "-")
    timed = case.endswith("/time") and not out.exists()
    began = time.process_time()
    with clocked_fit() as fits:
        run = unfooled.attack(victim, data, recipe, out=out, limit=rows, **settings)
    cpu = time.process_time() - began
    with closing(RunFile.read(run.path)) as file:
        counters = file.counters()
    told = figures(list(run.results())) | {"rows": rows, "cpu_seconds": round(cpu, 1) if timed else None}
    told["fit_cpu_seconds"] = round(sum(fits), 1) if timed else None
    told["encoder"], told["data"] = encoder, data.stem
    told["fitting"] = counters.get("fitting", {}).get("asked", 0)
    told["explained"] = counters.get("fitting", {}).get("explained")
    counters = {  # the surrogate's name holds the folder of the run
        "surrogate" if name.startswith("surrogate:") else name: counted for name, counted in counters.items()
    }
    told["computed"] = {name: counted["computed"] for name, counted in counters.items()}
    told["seconds"] = {name: round(counted.get("seconds", 0.0), 2) for name, counted in counters.items()}
    found = json.loads(to.read_text(encoding="utf-8")) if to.exists() else {}
    found[case] = told
    to.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(
        case,
        {key: told[key] for key in ("n", "success", "queries", "words_changed", "fitting", "cpu_seconds")},
        flush=True,
    )


def figures(results: list[Any]) -> dict[str, Any]:
    attacked = [result for result in results if result.outcome in ("success", "failure", "abstained")]
    won = [result for result in attacked if result.outcome == "success"]
    queries = sorted(result.queries for result in attacked)
    failed = [result.queries for result in attacked if result.outcome != "success"]
    return {
        "n": len(attacked),
        "success": round(len(won) / len(attacked), 4),
        "queries": round(sum(queries) / len(queries), 2),
        "median": queries[len(queries) // 2],
        "queries_of_failures": round(sum(failed) / len(failed), 1) if failed else None,
        "words_changed": round(sum(len(result.edits) for result in won) / max(1, len(won)), 3),
        "curve": [[most, round(sum(r.queries <= most for r in won) / len(attacked), 4)] for most in CURVE],
    }


if __name__ == "__main__":
    main()
