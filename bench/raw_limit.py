"""How fast a transformer can go at all on this machine: one thread, no padding, the best batch size.

    python bench/raw_limit.py --victim DIR --sentences FILE

Forward passes alone, on token ids that are ready, of texts as an attack makes them (a sentence with one word
left out). For a few lengths that stand for the whole distribution each batch size is timed; the best one per
length counts, weighted by how many texts have about that length. Twice: with torch as it is installed, and
with the linear layers of oneDNN that Unfooled computes with. In seconds of the processor.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench_data import read_jsonl
from protocol import one_thread

BATCHES = (4, 8, 16, 32, 64, 128)


def perturbed_like(texts: Sequence[str], most: int = 2000, seed: int = 0) -> list[str]:
    """Each text with each of its words left out, a seeded sample."""
    made = []
    for text in texts:
        words = text.split()
        made += [" ".join(words[:at] + words[at + 1 :]) for at in range(len(words))]
    random.Random(seed).shuffle(made)
    return made[:most]


def raw_limit(
    folder: Path,
    texts: Sequence[str],
    *,
    batches: Sequence[int] = BATCHES,
    lengths: int = 5,
    repeats: int = 3,
    max_tokens: int = 4096,
) -> dict[str, Any]:
    """Best texts/s and tokens/s of the victim's forward pass over texts with these lengths."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    from unfooled.linear import fast_linear

    torch.set_num_threads(1)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokens = sorted(tokenizer(list(texts), truncation=True)["input_ids"], key=len)
    ways = {"torch": nullcontext, "onednn": fast_linear}
    sweeps: dict[str, dict[int, dict[int, float]]] = {way: {} for way in ways}
    weight: Counter[int] = Counter()
    with torch.inference_mode():
        for part in _parts(tokens, lengths):
            row = part[len(part) // 2]
            weight[len(row)] += 1
            if len(row) in sweeps["torch"]:
                continue
            for way in ways:
                sweeps[way][len(row)] = {}
            for size in batches:
                if size > min(batches) and size * len(row) > max_tokens:
                    continue
                # Rows of equal length: which words they hold does not change the work.
                ids = torch.tensor([(ids * 2)[: len(row)] for ids in _fill(part, size)])
                mask = torch.ones_like(ids)
                took: dict[str, list[float]] = {way: [] for way in ways}
                for repeat in range(repeats + 1):
                    for way, mode in ways.items():
                        with mode():
                            started = time.process_time()
                            model(input_ids=ids, attention_mask=mask)
                        if repeat:
                            took[way].append(time.process_time() - started)
                for way, seconds in took.items():
                    sweeps[way][len(row)][size] = min(seconds) / size
    found = {way: _limit(sweep, weight) for way, sweep in sweeps.items()}
    return {**found["torch"], "onednn": found["onednn"]}


def _limit(sweep: dict[int, dict[int, float]], weight: Counter[int]) -> dict[str, Any]:
    per_text = sum(min(sweep[length].values()) * n for length, n in weight.items()) / weight.total()
    mean_length = sum(length * n for length, n in weight.items()) / weight.total()
    return {
        "texts_per_second": 1 / per_text,
        "tokens_per_second": mean_length / per_text,
        "best_batch": {length: min(times, key=times.__getitem__) for length, times in sweep.items()},
        "tokens_per_second_by_length_and_batch": {
            length: {size: round(length / seconds) for size, seconds in times.items()}
            for length, times in sweep.items()
        },
    }


def _parts(tokens: list[list[int]], count: int) -> list[list[list[int]]]:
    """The sorted rows in `count` parts of equal number: each part weighs the same."""
    edges = [round(at * len(tokens) / count) for at in range(count + 1)]
    return [tokens[a:b] for a, b in pairwise(edges) if b > a]


def _fill(rows: list[list[int]], size: int) -> list[list[int]]:
    longest = [row for row in rows if len(row) >= len(rows[len(rows) // 2])]
    return [longest[at % len(longest)] for at in range(size)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--victim", type=Path, required=True)
    parser.add_argument("--sentences", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=200)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    one_thread()
    texts = perturbed_like([row.text for row in read_jsonl(args.sentences)[: args.limit]])
    options: dict[str, Any] = {"lengths": 3, "repeats": 2, "batches": (16, 64)} if args.quick else {}
    print(json.dumps(raw_limit(args.victim, texts, **options)))


if __name__ == "__main__":
    main()
