"""TextAttack's side of `parity.py`: its recipes, by the rows of `parity_table.py`, on our parts.

Runs in TextAttack's environment only. Random recipes start from the example's number, so that a block can be
repeated; the two sides draw different numbers all the same.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import parity_parts as parts
from bench_data import read_jsonl
from parity_table import WORD_MODEL, Row, row
from protocol import Meter, one_thread, private_stdout, serve_rows
from textattack_quirks import explain
from textattack_side import attack_one, give_encoder, give_masked_lm, give_vectors, isolate, wrap_victim

given: set[str] = set()


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
        if name not in given:
            known[name]()
            given.add(name)


def build(chosen: Row, victim: Any, args: argparse.Namespace, meters: dict[str, Meter]) -> Any:
    from textattack import attack_recipes

    give(chosen.parts, args, meters)
    attack = getattr(attack_recipes, chosen.recipe).build(victim, **dict(chosen.build))
    if chosen.budget:
        attack.goal_function.query_budget = chosen.budget
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
    for name in ("sentences", "nltk-data", "neighbours", "encoder", "masked-lm", "wordnet", "trigram"):
        parser.add_argument(f"--{name}", type=Path)
    args = parser.parse_args()
    one_thread()
    channel = private_stdout()
    isolate(args.nltk_data)
    import torch

    torch.set_num_threads(1)
    meters = {"victim": Meter(), "encoder": Meter()}
    rows = read_jsonl(args.sentences)

    @cache
    def load_victim(path: Path) -> Any:
        if path.name == WORD_MODEL:
            return parts.wrap_word_model(path, meters["victim"])
        return wrap_victim(path, "dynamic", meters["victim"])

    def open_row(name: str, victim: Path) -> tuple[Callable[..., Any], Callable[..., str]]:
        chosen = row(name)
        attack = build(chosen, load_victim(victim), args, meters)
        more = {"lemmas": [parts.our_lemmas(args.wordnet)]} if "wordnet" in chosen.parts else {}

        def attack_row(index: int) -> dict[str, Any]:
            seeded(index)
            if hasattr(attack.goal_function, "target_class"):  # of two classes, the other one
                attack.goal_function.target_class = 1 - rows[index].label
            return attack_one(attack, index, rows[index])

        def why(other: dict[str, Any]) -> str:
            return explain(lambda: attack_row(other["index"]), other, more)

        return lambda indices: [attack_row(index) for index in indices], why

    serve_rows(open_row, meters, channel)


if __name__ == "__main__":
    main()
