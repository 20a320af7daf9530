"""How fast `predict` is beside a bare forward loop, and how much of what it computes is padding.

    python bench/predict_speed.py [--data NAME ...] [--family NAME ...] [--texts N] [--rounds N] [--quick]

The bare loop is the shortest honest one: all texts through the tokenizer at once, sorted by length, batches
of 32 padded to their longest, forward. Both run in turns on the same texts with one thread; CPU seconds are
counted, which other programs disturb less, and the ratio is the median over the rounds. Models have their
default sizes and untrained weights: speed does not depend on what was learned. Needs `UNFOOLED_DATA`, and the
resource `minilm` for the family `bert`.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Sequence
from typing import Any

from protocol import one_thread

DATA = {"mr": 1000, "trec": 500, "snli_dev": 2000, "imdb": 1000}  # test texts
FAMILIES = ("lstm", "bilstm-attention", "word-cnn", "bert-scratch", "bert")
SLOW = 4  # `bert` gets a quarter of the texts
VOCABULARY_ROWS = 3000
GOAL = 0.9
MOST_PADDING = 0.1


def untrained(family: str, data: str) -> Any:
    """A victim with the family's default sizes and the words of the data's training texts."""
    import torch

    from unfooled.data.loading import load_data
    from unfooled.training.families import find_family, settle
    from unfooled.training.observer import TrainObserver
    from unfooled.training.preparation import prepare
    from unfooled.training.torch_families import TorchFamily
    from unfooled.victims.torch.huggingface import HuggingFaceVictim
    from unfooled.victims.torch.quiet import quiet

    chosen = find_family(family)
    assert isinstance(chosen, TorchFamily)
    options = settle(chosen, {"vectors": "none"} if "vectors" in chosen.defaults else {})
    rows = prepare(load_data(data, split="train", limit=VOCABULARY_ROWS), 0.0)
    torch.manual_seed(0)
    with quiet():
        model, tokenizer = chosen.make(options, rows, TrainObserver())
    return HuggingFaceVictim(model.eval(), tokenizer, name=family)


def sample(data: str, count: int) -> list[Any]:
    from unfooled.data.loading import load_data
    from unfooled.training.preparation import read_rows

    texts = read_rows(load_data(data, split="test"))[0].texts
    return random.Random(0).sample(texts, min(count, len(texts)))


def measure(victim: Any, texts: Sequence[Any], rounds: int) -> dict[str, Any]:
    from unfooled.checks.compare import beside_bare_loop

    victim.predict(texts)  # the libraries prepare themselves for each shape of a batch
    tokens, padding = victim.meter.tokens, victim.meter.padding
    speed = beside_bare_loop(victim, texts, rounds, time.process_time)
    return {
        "texts": len(texts),
        "texts_per_second": round(speed.rate, 1),
        "bare_texts_per_second": round(speed.bare_rate, 1),
        "ratio": round(speed.ratio, 3),
        "padding": round(padding / (tokens + padding), 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", nargs="*", choices=list(DATA), default=list(DATA))
    parser.add_argument("--family", nargs="*", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--texts", type=int, default=0, help="texts per data set")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="few texts, two rounds: to see that it works")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON and nothing else")
    args = parser.parse_args()
    one_thread()
    found = []
    for data in args.data:
        for family in args.family:
            count = args.texts or (DATA[data] // 10 if args.quick else DATA[data])
            texts = sample(data, max(1, count // SLOW) if family == "bert" else count)
            figures = measure(untrained(family, data), texts, 2 if args.quick else args.rounds)
            found.append({"data": data, "family": family, **figures})
            if not args.json:
                good = figures["ratio"] >= GOAL and figures["padding"] <= MOST_PADDING
                rate = figures["texts_per_second"]
                print(
                    f"{data:9} {family:17} {figures['texts']:5} texts  {rate:9,.0f}/s  "
                    f"bare {figures['bare_texts_per_second']:9,.0f}/s  ratio {figures['ratio']:.2f}  "
                    f"padding {figures['padding']:5.1%}{'' if good else '  below the goal'}",
                    flush=True,
                )
    if args.json:
        print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
