"""Token rows and the batches they are trained in: like lengths together, in an order fixed by the seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from unfooled.training.course import Extra
from unfooled.training.preparation import LabelledTexts

_POOL = 50  # batches whose rows are sorted by length together


def features_of(tokenizer: Any, rows: LabelledTexts) -> list[dict[str, Any]]:
    """Token ids, segment ids where the tokenizer has them, and the label of each row."""
    if not len(rows):
        return []
    pairs = not isinstance(rows.texts[0], str)
    first = [text[0] for text in rows.texts] if pairs else list(rows.texts)
    second = [text[1] for text in rows.texts] if pairs else None
    encoded = tokenizer(
        first, second, truncation=True, max_length=tokenizer.model_max_length, return_attention_mask=False
    )
    names = [name for name in ("input_ids", "token_type_ids") if name in encoded]
    columns = [encoded[name] for name in names]
    return [
        {**dict(zip(names, cells, strict=True)), "labels": int(label)}
        for *cells, label in zip(*columns, rows.labels, strict=True)
    ]


def add_extras(rows: Sequence[dict[str, Any]], extras: Mapping[int, Sequence[Extra]], tokenizer: Any) -> None:
    """Give each row the texts that join it, in place of those it had before."""
    numbers = sorted(extras)
    flat = [(n, extra) for n in numbers for extra in extras[n]]
    labels = np.array([rows[n]["labels"] for n, _ in flat], dtype=np.int64)
    features = features_of(tokenizer, LabelledTexts([extra.text for _, extra in flat], labels))
    for row in rows:
        row["extras"] = []
    for (n, extra), feature in zip(flat, features, strict=True):
        rows[n]["extras"].append({**feature, "weight": extra.weight})


def pad(rows: Sequence[dict[str, Any]], padding: int) -> dict[str, Any]:
    """One tensor per column, as long as the longest row; texts that joined a row stand behind it."""
    import torch

    weighted = any("extras" in row for row in rows)
    if weighted:
        rows = [part for row in rows for part in ({**row, "weight": 1.0}, *row["extras"])]
        weights = torch.tensor([row["weight"] for row in rows])
        rows = [{name: row[name] for name in row if name not in ("extras", "weight")} for row in rows]
    lengths = [len(row["input_ids"]) for row in rows]
    longest = max(1, *lengths)
    batch: dict[str, Any] = {"labels": torch.tensor([row["labels"] for row in rows])}
    for name in rows[0]:
        if name != "labels":
            fill = padding if name == "input_ids" else 0
            batch[name] = torch.tensor([row[name] + [fill] * (longest - len(row[name])) for row in rows])
    batch["attention_mask"] = torch.tensor([[1] * size + [0] * (longest - size) for size in lengths])
    if weighted:
        batch["weights"] = weights
    return batch


def ordered_batches(lengths: Sequence[int], size: int, seed: int, epoch: int) -> list[list[int]]:
    """Row indices of each batch. The same seed and epoch give the same order, whatever happened before."""
    rng = np.random.default_rng([seed, epoch])
    sizes = np.asarray(lengths)
    order = rng.permutation(len(sizes))
    batches: list[list[int]] = []
    for start in range(0, len(order), _POOL * size):
        pool = order[start : start + _POOL * size]
        pool = pool[np.argsort(sizes[pool], kind="stable")]
        batches += [pool[at : at + size].tolist() for at in range(0, len(pool), size)]
    return [batches[i] for i in rng.permutation(len(batches))]


def loader_of(
    rows: Sequence[dict[str, Any]],
    size: int,
    seed: int,
    collate: Callable[[list[dict[str, Any]]], Any],
    refresh: Callable[[int], None] = lambda epoch: None,
) -> Any:
    """A torch data loader whose order follows `set_epoch`, which the Trainer calls.

    `refresh` may change what the rows hold before an epoch begins.
    """
    import torch

    lengths = [len(row["input_ids"]) for row in rows]

    class Batches(torch.utils.data.Sampler[list[int]]):
        epoch = 0

        def __iter__(self) -> Iterator[list[int]]:
            return iter(ordered_batches(lengths, size, seed, self.epoch))

        def __len__(self) -> int:
            return -(-len(lengths) // size)

    class Loader(torch.utils.data.DataLoader[Any]):
        def set_epoch(self, epoch: int) -> None:
            refresh(epoch)
            sampler.epoch = epoch

    sampler = Batches()
    # A generator of its own: the loader must not move the random numbers that dropout uses.
    return Loader(list(rows), batch_sampler=sampler, collate_fn=collate, generator=torch.Generator())  # type: ignore[arg-type]
