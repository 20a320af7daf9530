"""Fast passes of the papers' word models over texts of mixed lengths, for many small steps.

A recurrent model pays for each position and hardly for each row. So a pass holds texts of mixed lengths,
padded to the longest, and always the same number of rows: measured, a row then has the same bits whatever
stands beside it. Where the gradient is wanted for late words alone, what comes before is read only once.
"""

from __future__ import annotations

import contextlib
import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate, chain, count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unfooled.core.questions import Marked, Span
from unfooled.core.victim import SPECIMEN
from unfooled.passes import device_of, to_device
from unfooled.victims.torch.alignment import Alignment, align_own
from unfooled.victims.torch.classifier_states import TokenizedText

MODEL_TYPE = "unfooled-words"
ROWS = 16  # about the fastest on one core
_STRETCH = re.compile(r"\S+")
_MOST = 200_000  # stretches remembered
_NEW = 0.05  # of all stretches; measured: with more it pays to let the tokenizer read whole texts
STEP = 16  # tokens between the places where a text may be cut in two
_MOST_STATES = 8192  # beginnings remembered
_EARLIER = 3  # of one text, the last so many

Integers = NDArray[np.int64]


def is_word_model(model: Any) -> bool:
    return getattr(model.config, "model_type", "") == MODEL_TYPE


def padded(rows: Sequence[Sequence[int]], padding: int) -> dict[str, Any]:
    """Inputs of exactly `ROWS` rows; copies of the first one fill up."""
    import torch

    width = max(1, *map(len, rows))
    ids = np.full((ROWS, width), padding, dtype=np.int64)
    mask = np.zeros((ROWS, width), dtype=np.int64)
    for at in range(ROWS):
        row = rows[at] if at < len(rows) else rows[0]
        ids[at, : len(row)] = row
        mask[at, : len(row)] = 1
    with torch.inference_mode(False):
        return {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}


class PrefixCache:
    """What an LSTM that reads in one direction and decides at the end remembers of the beginnings of texts.

    A search that changes late words reads the same beginnings again and again: their states are kept, and
    gradients for the words behind them are the same without them.
    """

    def __init__(self, model: Any) -> None:
        import torch

        self._model = model
        self._embed = model.get_input_embeddings()
        self._layers = [module for module in model.modules() if type(module) is torch.nn.LSTM]
        self._known: OrderedDict[tuple[int, ...], Any] = OrderedDict()  # [layers, 2, units] each

    @staticmethod
    def suit(model: Any) -> bool:
        config = model.config
        return (
            is_word_model(model)
            and config.kind == "lstm"
            and config.pool == "last"
            and not config.bidirectional
        )

    @staticmethod
    def cut(first: int) -> int:
        """Where to begin if this token is the first that matters: one of few places, to meet them again."""
        return first // STEP * STEP

    def learn(self, beginnings: Sequence[tuple[int, ...]]) -> None:
        """Read those that are new, each `STEP` tokens at a time, so that a state has one way to come about.

        Shorter ones are kept on the way: a search walks towards the front of the text.
        """
        new = sorted(
            {beginning for beginning in beginnings if beginning and beginning not in self._known}, key=len
        )
        for first in range(0, len(new), ROWS):
            rows = new[first : first + ROWS]
            states = self._states(rows)
            for at, row in enumerate(rows):
                for end in range(len(row), max(0, len(row) - _EARLIER * STEP), -STEP):
                    self._known[row[:end]] = states[end // STEP - 1][:, :, at]
        for beginning in beginnings:
            if beginning:
                self._known.move_to_end(beginning)
        while len(self._known) > max(_MOST_STATES, _EARLIER * len(beginnings)):
            self._known.popitem(last=False)

    def _states(self, rows: Sequence[tuple[int, ...]]) -> list[Any]:
        """After each `STEP` tokens: [layers, 2, rows, units]."""
        import torch

        found: list[Any] = []
        states: list[Any] = [None] * len(self._layers)
        with torch.no_grad():
            vectors = self._embed(to_device(padded(rows, 0), self._model)["input_ids"])
            for first in range(0, vectors.shape[1], STEP):
                part = vectors[:, first : first + STEP]
                for at, layer in enumerate(self._layers):
                    part, states[at] = layer(part, states[at])
                found.append(torch.stack([torch.cat(state) for state in states]))
        return found

    def after(self, beginnings: Sequence[tuple[int, ...]]) -> contextlib.AbstractContextManager[None]:
        """While open, row after row of a pass goes on where these ended."""
        import torch

        units = self._layers[0].hidden_size
        nothing = torch.zeros(len(self._layers), 2, units, device=device_of(self._model))
        rows = [self._known[beginning] if beginning else nothing for beginning in beginnings]
        rows += [rows[0]] * (ROWS - len(rows))
        states = torch.stack(rows, dim=2)  # [layers, 2, rows, units]
        return self._starting(iter(states))

    @contextlib.contextmanager
    def _starting(self, states: Iterator[Any]) -> Iterator[None]:
        for layer in self._layers:
            layer.forward = partial(_start_from, states, layer)  # type: ignore[method-assign]
        try:
            yield
        finally:
            for layer in self._layers:
                del layer.forward


def _start_from(states: Iterator[Any], layer: Any, vectors: Any) -> Any:
    import torch

    hidden, cell = next(states)
    return torch.nn.LSTM.forward(layer, vectors, (hidden[None].contiguous(), cell[None].contiguous()))


class StretchReader:
    """Tokens of a text from those of its stretches between spaces, each of which the tokenizer reads once.

    Only for tokenizers that read single texts stretch by stretch and add nothing around: `of` tries that out.
    """

    def __init__(self, tokenizer: Any, max_length: int) -> None:
        self._tokenizer = tokenizer
        self._max_length = max_length
        self._asked_about_words = False
        self._forget()

    def _forget(self) -> None:
        self._numbers: dict[str, int] = {}
        self._sizes = np.zeros(0, dtype=np.int64)  # tokens of each stretch
        self._lengths = self._sizes  # characters of each
        self._table = np.zeros((0, 3), dtype=np.int64)  # of all stretches: id, first character, end
        self._starts = self._sizes  # where in the table each begins

    @classmethod
    def of(cls, tokenizer: Any, max_length: int) -> StretchReader | None:
        if not hasattr(tokenizer, "backend_tokenizer"):
            return None
        reader = cls(tokenizer, max_length)
        odd = "Don't \t stop— it's\nthe 1990's; “so-called” ’tis naïve İstanbul 👍🏽 x_y (a).b 'S"
        samples = [SPECIMEN, odd, "", " . ", " ".join(list(tokenizer.get_vocab())[:500]), odd * 50]
        whole = tokenizer(
            samples, truncation=True, max_length=max_length, return_offsets_mapping=True, verbose=False
        )
        for at, (ids, spans) in enumerate(reader.tokens(samples)):
            expected = [list(span) for span in whole["offset_mapping"][at]]
            if ids.tolist() != whole["input_ids"][at] or spans.tolist() != expected:
                return None
        return reader

    def read(self, texts: Sequence[Marked]) -> list[TokenizedText]:
        """For single texts, what `TorchWhiteBox._read` gives."""
        self._asked_about_words = True
        found = self.tokens([str(text.value) for text in texts])
        aligned = _aligned([text.spans for text in texts], [spans for _, spans in found])
        return [
            TokenizedText(text, tuple(ids.tolist()), (), alignment)
            for text, (ids, _), alignment in zip(texts, found, aligned, strict=True)
        ]

    def tokens(self, strings: Sequence[str]) -> list[tuple[Integers, Integers]]:
        """Of each string the ids, and the first and end character of each: all strings in a few calls."""
        parts = [string.split() for string in strings]
        which = self._known_as(parts)
        lengths, sizes = self._lengths[which], self._sizes[which]
        at = np.cumsum(lengths + 1) - lengths - 1  # as if single spaces stood between all of them
        rows = self._rows(which, sizes)
        cuts = self._cuts(parts, sizes)
        first = 0
        for string, own in zip(strings, parts, strict=True):
            last = first + len(own)
            if own and int(at[last - 1] - at[first]) + len(own[-1]) == len(string):
                at[first:last] -= at[first]
            else:  # other spaces, or some at the ends
                at[first:last] = [match.start() for match in _STRETCH.finditer(string)]
            first = last
        spans = rows[:, 1:] + np.repeat(at, sizes)[:, None]
        return [(rows[begin:end, 0], spans[begin:end]) for begin, end, _ in cuts]

    def ids(self, strings: Sequence[str]) -> tuple[list[tuple[int, ...]], int] | None:
        """Of each string the ids; how many strings were longer and were cut.

        None where much is new: texts that are met once are read faster as a whole. Where somebody asks about
        their words as well, all of it has to be learned anyway.
        """
        parts = [string.split() for string in strings]
        if not self._asked_about_words:
            new = set(chain.from_iterable(parts)).difference(self._numbers)
            if len(new) > _NEW * sum(map(len, parts)):
                return None
        which = self._known_as(parts)
        sizes = self._sizes[which]
        numbers = self._rows(which, sizes)[:, 0].tolist()
        cuts = self._cuts(parts, sizes)
        return [tuple(numbers[begin:end]) for begin, end, _ in cuts], sum(cut for *_, cut in cuts)

    def _rows(self, which: Integers, sizes: Integers) -> Integers:
        """The tokens of these stretches, one after the other."""
        shift = self._starts[which] - (np.cumsum(sizes) - sizes)
        return np.asarray(self._table[np.arange(sizes.sum()) + np.repeat(shift, sizes)])

    def _cuts(self, parts: Sequence[Sequence[str]], sizes: Integers) -> list[tuple[int, int, bool]]:
        """Of each text its first token, the end of what is read of it, and whether there is more."""
        before = [0, *np.cumsum(sizes).tolist()]  # tokens before each stretch
        ends = [before[last] for last in accumulate(map(len, parts))]
        most = self._max_length
        return [
            (begin, min(end, begin + most), end > begin + most)
            for begin, end in zip([0, *ends], ends, strict=False)
        ]

    def _known_as(self, parts: Sequence[Sequence[str]]) -> Integers:
        flat = list(chain.from_iterable(parts))
        try:
            return self._look_up(flat)
        except KeyError:
            self._learn(flat)
            return self._look_up(flat)

    def _look_up(self, parts: Sequence[str]) -> Integers:
        return np.fromiter(map(self._numbers.__getitem__, parts), dtype=np.int64, count=len(parts))

    def _learn(self, parts: Sequence[str]) -> None:
        """Let the tokenizer read all new stretches in one call."""
        if len(self._numbers) > _MOST:
            self._forget()
        known = self._numbers
        new = sorted({part for part in parts if part not in known})
        # Straight to the compiled tokenizer: wrapping thousands of short answers takes longer than reading.
        backend = self._tokenizer.backend_tokenizer
        backend.no_truncation()
        backend.no_padding()
        backend.encode_special_tokens = self._tokenizer.split_special_tokens
        read = backend.encode_batch(new)
        self._numbers.update(zip(new, count(len(known)), strict=False))
        sizes = [len(encoding.ids) for encoding in read]
        rows = [
            (number, start, end)
            for encoding in read
            for number, (start, end) in zip(encoding.ids, encoding.offsets, strict=True)
        ]
        self._sizes = np.concatenate([self._sizes, np.array(sizes, dtype=np.int64)])
        self._lengths = np.concatenate([self._lengths, np.array([*map(len, new)], dtype=np.int64)])
        self._table = np.concatenate([self._table, np.array(rows, dtype=np.int64).reshape(-1, 3)])
        self._starts = np.cumsum(self._sizes) - self._sizes


def _aligned(marked: Sequence[Sequence[Span]], where: Sequence[Integers]) -> list[Alignment]:
    """As `align`, for texts without other fields."""
    if marked and all(len(spans) == 1 for spans in marked):
        return _aligned_singly([spans[0] for spans in marked], where)
    return [align_own(spans, own) for spans, own in zip(marked, where, strict=True)]


def _aligned_singly(spans: Sequence[Span], where: Sequence[Integers]) -> list[Alignment]:
    """One word of each text, which is what a search asks step by step: all texts at once."""
    lengths = np.array([len(own) for own in where])
    begins = np.cumsum(lengths) - lengths
    tokens = np.concatenate(where)
    edges = np.repeat(np.array(spans), lengths, axis=0)
    some = tokens[:, 1] > tokens[:, 0]
    hits = np.flatnonzero(some & (tokens[:, 1] > edges[:, 0]) & (tokens[:, 0] < edges[:, 1]))
    bounds = np.searchsorted(hits, [*begins, len(tokens)])
    nothing = np.zeros(len(hits), dtype=np.intp)
    return [
        Alignment(length, np.array([last - first]), hits[first:last] - begin, nothing[first:last])
        for length, begin, first, last in zip(
            lengths.tolist(), begins.tolist(), bounds[:-1].tolist(), bounds[1:].tolist(), strict=True
        )
    ]
