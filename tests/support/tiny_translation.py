"""A made-up pair of languages, and small models that translate between them."""

from __future__ import annotations

import functools
import random
from pathlib import Path
from typing import Any

from tiny_models import enlarge
from unfooled.training.families import find_family, settle
from unfooled.translation.families import TranslatorFamily
from unfooled.translation.parallel import ParallelText
from unfooled.translation.parallel_rows import Pairs
from unfooled.translation.training import make_translator
from unfooled.translation.victim import TranslatorVictim

WORDS = {
    "the": "der", "dog": "hund", "cat": "katze", "sees": "sieht", "eats": "frisst", "red": "rote",
    "big": "grosse", "house": "haus", "fish": "fisch", "now": "jetzt", "small": "kleine", "bird": "vogel",
}  # fmt: skip
KINDS = ("seq2seq-lstm", "seq2seq-transformer")
SMALL = {"vocabulary": 90, "hidden": 16, "layers": 1, "max_length": 26, "batch": 16, "dropout": 0.0}


def pairs(count: int, seed: int = 0) -> list[tuple[str, str]]:
    """Sentences and their translations, word by word."""
    rng = random.Random(seed)
    things, looks, deeds = ("dog", "cat", "fish", "bird", "house"), ("red", "big", "small"), ("sees", "eats")
    found = []
    for _ in range(count):
        words = ["the", rng.choice(looks), rng.choice(things), rng.choice(deeds), "the", rng.choice(things)]
        words += ["now"] * rng.randint(0, 1)
        found.append((" ".join(words) + ".", " ".join(WORDS[word] for word in words) + "."))
    return found


def parallel(count: int, seed: int = 0) -> ParallelText:
    return ParallelText.from_pairs(pairs(count, seed))


def write_files(folder: Path, name: str, count: int, seed: int = 0) -> str:
    """Two files, `name.en` and `name.de`, as `--data` takes them."""
    rows = pairs(count, seed)
    for at, language in enumerate(("en", "de")):
        (folder / f"{name}.{language}").write_text(
            "".join(f"{row[at]}\n" for row in rows), encoding="utf-8", newline="\n"
        )
    return f"{folder / f'{name}.en'},{folder / f'{name}.de'}"


@functools.lru_cache(maxsize=4)
def model(kind: str, seed: int = 1) -> tuple[Any, Any]:
    """A model with random weights, and its tokenizer."""
    import torch

    torch.manual_seed(seed)
    rows = pairs(200)
    family = find_family(kind)
    assert isinstance(family, TranslatorFamily)
    options = settle(family, SMALL)
    made, tokenizer = make_translator(family, options, Pairs([s for s, _ in rows], [t for _, t in rows]))
    enlarge(made, 3.0)
    return made.float().eval(), tokenizer


def victim(kind: str, **options: Any) -> TranslatorVictim:
    made, tokenizer = model(kind)
    return TranslatorVictim(made, tokenizer, **options)
