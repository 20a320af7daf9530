"""What the smoke scale works with, made from nothing: small texts, a table of synonyms, a language model.

It shows that the machinery runs from end to end. Its numbers mean nothing.
"""

from __future__ import annotations

import gzip
import importlib
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

from unfooled.attacks.parts.candidates import Neighbours
from unfooled.core.recipe import Recipe, load_recipe
from unfooled.papers.stages import FixtureStage, Settings, settings

# Small, and large enough to learn these texts within seconds.
ATTENTION: Settings = settings(
    epochs=6, hidden=16, layers=1, heads=2, batch=8, max_length=32, lr=0.005, min_count=1, warmup=0.0
)
WORDS: Settings = settings(vectors="none", epochs=2, embedding=8, min_count=1, lr=0.03)

FILES = {
    "reviews": "reviews",
    "pairs": "pairs",
    "tweets": "tweets",
    "table": "table.json",
    "masked-lm": "lm",
    "vectors": "vectors.txt",
}

_GOOD = ("superb", "great", "delightful", "charming", "funny", "moving")
_BAD = ("awful", "dull", "terrible", "lame", "tedious", "boring")
_PLAIN = ("plain", "usual", "average", "normal", "common", "ordinary")
_THINGS = ("film", "story", "cast", "scene", "flight", "director")
_LABELS = {
    "reviews": ("negative", "positive"),
    "pairs": ("entailment", "neutral", "contradiction"),
    "tweets": ("negative", "neutral", "positive"),
}


def fixtures(*names: str) -> tuple[FixtureStage, ...]:
    return tuple(FixtureStage(name=name, what=name) for name in names)


def make(what: str, folder: Path) -> None:
    if what == "table":
        groups = (_GOOD, _BAD, _PLAIN, _THINGS)
        # A near word of the other side is among the neighbours, so that attacks have something to find.
        odd = dict(zip(_GOOD + _BAD, _BAD + _GOOD, strict=True))
        near = {
            word: [*(near for near in group if near != word), *([odd[word]] if word in odd else [])]
            for group in groups
            for word in group
        }
        (folder / FILES[what]).write_text(json.dumps(near), encoding="utf-8")
    elif what == "vectors":
        groups = (_GOOD, _BAD, _PLAIN, _THINGS)  # a direction for each, and one that tells words apart
        lines = [
            " ".join([word, *(str(float(at == number)) for at in range(len(groups))), str(place / 10)])
            for number, group in enumerate(groups)
            for place, word in enumerate(group)
        ]
        (folder / FILES[what]).write_text("\n".join(lines) + "\n", encoding="utf-8")
    elif what == "masked-lm":
        _language_model(folder / FILES[what])
    else:
        _texts(what, folder / FILES[what])


def light(name: str) -> Recipe:
    """The attack without a tagger and an encoder; synonyms come from the neighbour table."""
    recipe = load_recipe(name)
    search: Any = recipe.search
    if hasattr(search, "constraints"):
        search = replace(search, constraints=())
    if recipe.name == "breaking-bert":
        search = replace(search, candidates=Neighbours())
    return replace(recipe, search=search, version=f"{recipe.version}+changed")


def _texts(what: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    labels = _LABELS[what]
    (folder / "labels.json").write_text(json.dumps(labels), encoding="utf-8")
    for split, n, seed in (("train", 90, 0), ("test", 40, 1)):
        rng = random.Random(seed)
        rows = [json.dumps(_row(what, rng, number)) for number in range(n)]
        # No time stamp: the same texts are the same file.
        packed = gzip.compress("".join(f"{row}\n" for row in rows).encode(), mtime=0)
        (folder / f"{split}.jsonl.gz").write_bytes(packed)


def _row(what: str, rng: random.Random, number: int) -> dict[str, Any]:
    label = number % len(_LABELS[what])
    sides = (_BAD, _GOOD) if what == "reviews" else (_BAD, _PLAIN, _GOOD)
    words, thing = sides[label], rng.choice(_THINGS)
    text = f"the {thing} was {rng.choice(words)} and {rng.choice(words)} , number {number}"
    if what == "pairs":
        return {"premise": f"a {thing} was seen", "hypothesis": text, "label": label}
    return {"text": text, "label": label}


def _language_model(folder: Path) -> None:
    """A masked language model of two tiny layers that was never trained."""
    import torch

    transformers: Any = importlib.import_module("transformers")
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = ["the", "a", "was", "and", "number", ",", "seen", *_GOOD, *_BAD, *_PLAIN, *_THINGS]
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join([*special, *words]) + "\n", encoding="utf-8")
    tokenizer = transformers.BertTokenizerFast(str(vocabulary))
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    transformers.BertForMaskedLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
