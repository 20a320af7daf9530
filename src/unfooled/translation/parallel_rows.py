"""Parallel text as rows to learn from: split, tokenised, put into batches; and its words counted."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unfooled.errors import DataError, UserError
from unfooled.text import WORD
from unfooled.translation.parallel import ParallelText

IGNORED = -100  # a label that counts for nothing
_WORDS_KEPT = 20_000


@dataclass(frozen=True)
class Pairs:
    """Sentences and their translations, in the order of the file."""

    sources: list[str]
    targets: list[str]

    def __len__(self) -> int:
        return len(self.sources)


def split_pairs(data: ParallelText, valid: ParallelText | float, seed: int) -> tuple[Pairs, Pairs, int]:
    rows, skipped = _read(data)
    if isinstance(valid, ParallelText):
        held_out, bad = _read(valid)
        return rows, held_out, skipped + bad
    if not 0 < valid < 1:
        raise DataError(
            f"the validation share is {valid}", "give a number between 0 and 1, such as 0.1, or a file"
        )
    taken = set(np.random.default_rng(seed).permutation(len(rows))[: math.ceil(valid * len(rows))].tolist())
    if len(taken) == len(rows):
        raise DataError(f"{data.name}: {len(rows)} pairs are too few to keep some out", "give more")
    parts = [[i for i in range(len(rows)) if (i in taken) == held] for held in (False, True)]
    kept, held_out = (Pairs([rows.sources[i] for i in p], [rows.targets[i] for i in p]) for p in parts)
    return kept, held_out, skipped


def _read(data: ParallelText) -> tuple[Pairs, int]:
    if not data.target:
        raise DataError(f"{data.name} has no translations to learn from", "give SOURCE_FILE,TARGET_FILE")
    usable = [example for example in data if not example.problem and example.reference]
    if not usable:
        raise DataError(f"{data.name}: no pair of sentences can be used", "check the files")
    pairs = Pairs([example.content[0][1] for example in usable], [example.reference for example in usable])
    return pairs, len(data) - len(usable)


def collate_pairs(rows: Sequence[Mapping[str, Any]], padding: int, start: int) -> dict[str, Any]:
    """Sources with their mask; targets as labels, and shifted by one as what the decoder reads."""
    import torch

    wide = max(len(row["input_ids"]) for row in rows)
    long = max(len(row["labels"]) for row in rows)
    sources = [row["input_ids"] + [padding] * (wide - len(row["input_ids"])) for row in rows]
    labels = [row["labels"] + [IGNORED] * (long - len(row["labels"])) for row in rows]
    shifted = [[start, *row["labels"][:-1]] + [padding] * (long - len(row["labels"])) for row in rows]
    mask = [[1] * len(row["input_ids"]) + [0] * (wide - len(row["input_ids"])) for row in rows]
    return {
        "input_ids": torch.tensor(sources),
        "attention_mask": torch.tensor(mask),
        "decoder_input_ids": torch.tensor(shifted),
        "labels": torch.tensor(labels),
    }


def features_of_pairs(tokenizer: Any, pairs: Pairs) -> list[dict[str, Any]]:
    settings = {"truncation": True, "max_length": tokenizer.model_max_length, "return_attention_mask": False}
    sources = tokenizer(pairs.sources, **settings)["input_ids"]
    targets = tokenizer(pairs.targets, **settings)["input_ids"]
    return [{"input_ids": s, "labels": t} for s, t in zip(sources, targets, strict=True)]


def count_words(texts: Iterable[str]) -> list[tuple[str, int]]:
    """Words in their most frequent spelling, the most frequent first; ties in lexicographic order."""
    spellings: Counter[str] = Counter()
    for text in texts:
        spellings.update(WORD.findall(text))
    counts: dict[str, list[Any]] = {}
    for spelling, count in sorted(spellings.items(), key=lambda item: (-item[1], item[0])):
        counts.setdefault(spelling.lower(), [spelling, 0])[1] += count
    found = [(str(spelling), int(count)) for spelling, count in counts.values()]
    return sorted(found, key=lambda item: (-item[1], item[0]))[:_WORDS_KEPT]


def write_words(path: Path, pairs: Pairs) -> None:
    content = {"source": count_words(pairs.sources), "target": count_words(pairs.targets)}
    try:
        path.write_text(json.dumps(content, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror})", "choose another --out") from error
