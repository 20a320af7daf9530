"""TextAttack's side of `parity.py`: any of its recipes, by the row of `parity_table.py`, on our parts.

Runs in TextAttack's environment only. Random recipes start from the example's number, so that a block can be
repeated; the two sides draw different numbers all the same.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import parity_parts as parts
from bench_data import read_jsonl
from parity_table import Row, row
from protocol import Meter, one_thread, private_stdout, serve
from textattack_quirks import explain
from textattack_side import attack_one, give_encoder, give_masked_lm, give_vectors, isolate, wrap_victim


def give(names: Sequence[str], args: argparse.Namespace, meters: dict[str, Meter]) -> None:
    """Put our parts where TextAttack would take its own."""
    known: dict[str, Callable[[], None]] = {
        "vectors": lambda: give_vectors(args.neighbours),
        "encoder": lambda: give_encoder(
            args.encoder, meters["encoder"], ("UniversalSentenceEncoder", "SBERT")
        ),
        "masked-lm": lambda: give_masked_lm(args.masked_lm, "dynamic"),
        "wordnet": lambda: parts.give_wordnet(args.wordnet, args.nltk_data),
        "look-alikes": parts.give_look_alikes,
        "tagger": parts.give_tagger,
        "trigram": lambda: parts.give_trigrams(args.trigram),
        "sisters": lambda: parts.give_sisters(args.wordnet),
    }
    for name in names:
        known[name]()


def build(chosen: Row, args: argparse.Namespace, meters: dict[str, Meter]) -> Any:
    import torch
    from textattack import attack_recipes

    torch.set_num_threads(1)
    give(chosen.parts, args, meters)
    victim = wrap_victim(args.victim, "dynamic", meters["victim"])
    attack = getattr(attack_recipes, chosen.recipe).build(victim, **dict(chosen.build))
    if chosen.without:
        parts.leave_out(attack, chosen.without)
    for name in chosen.mends:
        parts.MENDS[name](attack)
    return attack


def seeded(index: int) -> None:
    import numpy as np
    import torch

    random.seed(index)
    np.random.seed(index)
    torch.manual_seed(index)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--row", required=True, help="TextAttack's name of the recipe")
    files = (
        "victim",
        "sentences",
        "nltk-data",
        "neighbours",
        "encoder",
        "masked-lm",
        "wordnet",
        "trigram",
    )
    for name in files:
        parser.add_argument(f"--{name}", type=Path)
    args = parser.parse_args()
    one_thread()
    channel = private_stdout()
    isolate(args.nltk_data)
    meters = {"victim": Meter(), "encoder": Meter()}
    chosen = row(args.row)
    started = time.perf_counter()
    attack = build(chosen, args, meters)
    rows = read_jsonl(args.sentences)

    more = {"lemmas": [parts.our_lemmas(args.wordnet)]} if "wordnet" in chosen.parts else {}

    def attack_row(index: int) -> dict[str, Any]:
        seeded(index)
        return attack_one(attack, index, rows[index])

    def why(other: dict[str, Any]) -> str:
        return explain(lambda: attack_row(other["index"]), other, more)

    facts = {"startup_seconds": round(time.perf_counter() - started, 2)}
    serve(lambda indices: [attack_row(index) for index in indices], meters, channel, facts, why)


if __name__ == "__main__":
    main()
