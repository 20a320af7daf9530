"""The `one-word` scenario: how near the vocabulary pass of GS-GR and GS-EC comes to the bare forward pass.

    python bench/one_word.py --victim DIR --sentences FILE [--examples N] [--words N]

One example at a time, so that nothing but its own vocabulary pass fills the batches. The bare forward pass
has token ids of the same length ready and takes its best batch size; it is timed before and after the attack.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from statistics import median
from typing import Any

from bench_data import read_jsonl
from protocol import one_thread

GOAL = 0.7
BATCHES = (8, 16, 32, 64, 96, 128)


def bare_seconds(victim: Any, text: str, *, seconds: float = 1.0) -> float:
    """Seconds per text of the model alone, at its best batch size."""
    import torch

    ids = torch.tensor([victim.tokenizer(text)["input_ids"]])
    best = float("inf")
    with torch.inference_mode():
        for size in BATCHES:
            batch = ids.repeat(size, 1)
            victim.model(input_ids=batch)
            until = time.perf_counter() + seconds / len(BATCHES)
            while True:
                started = time.perf_counter()
                victim.model(input_ids=batch)
                ended = time.perf_counter()
                best = min(best, (ended - started) / size)
                if ended > until:
                    break
    return best


def measure(
    victim: Any, texts: list[tuple[str, int]], attack: str, words: int, quick: bool
) -> dict[str, Any]:
    from unfooled.core.recipe import load_recipe, with_setting
    from unfooled.core.result import Example
    from unfooled.core.session import Session, Settings

    recipe = with_setting(load_recipe(attack), "search.replacement.size", str(words))
    shares, rows = [], []
    for key, (text, label) in enumerate(texts):
        bare = bare_seconds(victim, text, seconds=0.3 if quick else 2.0)
        session = Session(victim, recipe, Settings(window=1))
        started = time.perf_counter()
        (result,) = session.attack([Example(key, (("text", text),), label, "text")])
        took = time.perf_counter() - started
        bare = min(bare, bare_seconds(victim, text, seconds=0.3 if quick else 2.0))
        passes = sum(
            traffic.computed
            for name, traffic in session.engine.traffic.items()
            if name.partition(":")[0] in ("victim", "zeroed", "sentence-distance")
        )
        shares.append(passes * bare / took)
        rows.append({"outcome": result.outcome, "texts": passes, "seconds": took, "bare": passes * bare})
    return {
        "attack": recipe.full_name,
        "share": median(shares),
        "shares": shares,
        "examples": rows,
        "texts_per_second": sum(row["texts"] for row in rows) / sum(row["seconds"] for row in rows),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--victim", type=Path, required=True)
    parser.add_argument("--sentences", type=Path, required=True)
    parser.add_argument("--examples", type=int, default=3)
    parser.add_argument("--words", type=int, default=10_000)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    one_thread()
    import torch

    from unfooled.victims.loading import load_victim

    torch.set_num_threads(1)
    victim = load_victim(f"hf:{args.victim}")
    rows = read_jsonl(args.sentences)
    sure = victim.predict([row.text for row in rows])
    # Sentences that the victim is surest of: the search goes through most of the vocabulary.
    right = sorted(
        (i for i, row in enumerate(rows) if sure[i].argmax() == row.label), key=lambda i: -sure[i].max()
    )
    texts = [(rows[i].text, rows[i].label) for i in right[: args.examples]]
    # Found out once per process, not per example.
    words = len(victim.vocabulary()[: args.words])
    assert "embeddings" in victim.capabilities
    measured = {
        attack: measure(victim, texts, attack, args.words, args.quick) for attack in ("gs-gr", "gs-ec")
    }
    print(json.dumps({"scenario": "one-word", "goal": GOAL, "words": words, "attacks": measured}))


if __name__ == "__main__":
    main()
