"""What attacks and reports see of a translation model's inside: its words, vectors and attention."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from unfooled.batching import Meter
from unfooled.core.questions import Pulled
from unfooled.core.victim import TextValue
from unfooled.errors import VictimError
from unfooled.passes import Passes, answering, to_device, to_host
from unfooled.translation.decoding import Row, Signs
from unfooled.victims.torch.hooks import as_it_was, cut_at_embeddings, eager_attention
from unfooled.victims.torch.oracles import steady
from unfooled.victims.torch.word_oracles import highest

WORDS = "words.json"  # beside a model that was trained here: the words of both sides by frequency
_SPACES = ("▁", "Ġ")  # how subwords write the space before a word

R = TypeVar("R")
Key: TypeAlias = tuple[int, ...]


class AttentionMap(NamedTuple):
    """How much each written token looked at each token that was read; rows sum to 1."""

    read: tuple[str, ...]
    written: tuple[str, ...]
    weights: NDArray[np.float32]  # [written, read], the mean over layers and heads


class LooksInside:
    """The part of a translator that shows more than what it writes."""

    model: Any
    tokenizer: Any
    signs: Signs
    max_tokens: int
    meter: Meter
    folder: Path | None
    prefix: str
    max_length: int
    _known_words: dict[str, tuple[str, ...]] | None = None
    _table: tuple[tuple[str, ...], NDArray[np.float64]] | None = None

    def _sources(self, texts: Sequence[str]) -> list[Row]:
        raise NotImplementedError

    def _target(self, text: str) -> Row:
        raise NotImplementedError

    def _pieces(self, keyword: str) -> Row:
        raise NotImplementedError

    def sentence_vectors(self, texts: Sequence[TextValue], *, pool: str = "mean") -> NDArray[np.float32]:
        """The mean of what the encoder says of each text's tokens, [texts, dim]; `pool` changes nothing."""
        sources = self._sources([text if isinstance(text, str) else text[0] for text in texts])

        def run(chosen: list[int]) -> list[Any]:
            import torch

            with answering(self.model):
                ids = to_device(torch.tensor([sources[i] for i in chosen]), self.model)
                read = self.model.get_encoder()(input_ids=ids)
                return list(to_host(read[0].mean(dim=1)).float().numpy())

        found = in_groups(self, [(len(source),) for source in sources], run)
        return np.array(found, dtype=np.float32)

    def pulls(self, items: Sequence[Pulled], /) -> list[tuple[str, ...]]:
        """Source words, the best first, by the slope of the keyword's log-probability (first order).

        The slope is taken at the word's vectors, at the keyword's best place of the given output. Only words
        that are one piece have a vector of their own; the others are left out.
        """
        asked = [Pulled(*item) for item in items]
        words, table = self._word_table()
        rows, owners = self._with_offsets([pulled.text for pulled in asked])
        along = [self._target(pulled.along) for pulled in asked]
        keys = [self._pieces(pulled.keyword)[0] for pulled in asked]

        def run(chosen: list[int]) -> list[tuple[str, ...]]:
            slopes = self._slopes(
                [rows[i] for i in chosen], [along[i] for i in chosen], [keys[i] for i in chosen]
            )
            found = []
            for i, slope in zip(chosen, slopes, strict=True):
                pulled = asked[i]
                own = [
                    at
                    for at, (start, end) in enumerate(owners[i])
                    if start < pulled.end and end > pulled.start
                ]
                direction = slope[own].mean(axis=0) if own else np.zeros(table.shape[1])
                values = steady((table @ direction).astype(np.float32))
                found.append(tuple(words[place] for place in highest(values[None], pulled.most)[0]))
            return found

        lengths = [(len(row), len(output) + 1) for row, output in zip(rows, along, strict=True)]
        return in_groups(self, lengths, run)

    def _slopes(self, rows: list[Row], along: list[Row], keys: list[int]) -> NDArray[np.float64]:
        """Of the keyword's best log-probability for each vector that was read, [rows, tokens, dim]."""
        import torch

        ids = to_device(torch.tensor(rows), self.model)
        decoder = to_device(torch.tensor([(self.signs.start, *row) for row in along]), self.model)
        with torch.enable_grad(), cut_at_embeddings(self.model, ids) as leaves:
            logits = self.model(input_ids=ids, decoder_input_ids=decoder, use_cache=False).logits.float()
            wanted = to_device(torch.tensor(keys), self.model)[:, None, None].expand(-1, logits.shape[1], 1)
            logs = logits.gather(-1, wanted).squeeze(-1) - logits.logsumexp(dim=-1)
            (slopes,) = torch.autograd.grad(logs.max(dim=-1).values.sum(), leaves[:1])
        return np.asarray(to_host(slopes).numpy(), dtype=np.float64)

    def _word_table(self) -> tuple[tuple[str, ...], NDArray[np.float64]]:
        """Source words that are one piece, and their vectors."""
        if self._table is None:
            words = self.vocabulary()
            rows = self.tokenizer(list(words), add_special_tokens=False)["input_ids"]
            single = [(word, row[0]) for word, row in zip(words, rows, strict=True) if len(row) == 1]
            weights = to_host(self.model.get_input_embeddings().weight).float().numpy()
            table = np.asarray(weights[[row for _, row in single]], dtype=np.float64)
            self._table = tuple(word for word, _ in single), table
        return self._table

    def _with_offsets(self, texts: list[str]) -> tuple[list[Row], list[list[tuple[int, int]]]]:
        """The tokens of each text, and which characters each stands for."""
        encoded = self.tokenizer([self.prefix + text for text in texts], return_offsets_mapping=True)
        shift = len(self.prefix)
        rows = [tuple(row[: self.max_length]) for row in encoded["input_ids"]]
        spans = [
            [(start - shift, end - shift) for start, end in row[: self.max_length]]
            for row in encoded["offset_mapping"]
        ]
        return rows, spans

    def attention(self, pairs: Sequence[tuple[str, str]], /) -> list[AttentionMap]:
        """For each text and its output, where the written tokens looked."""
        import torch

        found = []
        with eager_attention(self.model), as_it_was(self.model), answering(self.model):
            for (_, output), source in zip(pairs, self._sources([text for text, _ in pairs]), strict=True):
                target = (*self._target(output), self.signs.ends[0])
                out = self.model(
                    **to_device(
                        {
                            "input_ids": torch.tensor([source]),
                            "decoder_input_ids": torch.tensor([(self.signs.start, *target[:-1])]),
                        },
                        self.model,
                    ),
                    output_attentions=True,
                    use_cache=False,
                )
                layers = torch.stack([layer[0] for layer in out.cross_attentions])
                weights = to_host(layers.float().mean(dim=(0, 1))).numpy()
                found.append(AttentionMap(self._shown(source), self._shown(target), weights))
        return found

    def vocabulary(self) -> tuple[str, ...]:
        """Words of the source language, the most frequent of the training first where that is known."""
        return self._words("source")

    def target_words(self) -> tuple[str, ...]:
        """Words of the target language, in the same order."""
        return self._words("target")

    def _words(self, side: str) -> tuple[str, ...]:
        if self._known_words is None:
            self._known_words = read_words(self.folder) or {}
        if side in self._known_words:
            return self._known_words[side]
        # A joint vocabulary cannot tell the languages apart: whole words of either.
        pieces = sorted(self.tokenizer.get_vocab().items(), key=lambda item: item[1])
        found = (piece[1:] for piece, _ in pieces if piece[:1] in _SPACES and piece[1:].isalpha())
        return tuple(dict.fromkeys(found))

    def _shown(self, row: Sequence[int]) -> tuple[str, ...]:
        tokens = self.tokenizer.convert_ids_to_tokens(list(row))
        return tuple(str(token).lstrip("".join(_SPACES)) or " " for token in tokens)


def in_groups(
    victim: LooksInside, lengths: Sequence[Key], run: Callable[[list[int]], list[R]], *, copies: int = 1
) -> list[R]:
    """Run what has equal lengths together; the answers in the order of the items. A pass holds `copies` rows
    of each."""
    found: dict[int, R] = {}
    for batch in Passes(victim, _groups(lengths, max(1, victim.max_tokens // copies))):
        with batch as chosen:
            found.update(zip(chosen, run(chosen), strict=True))
    return [found[i] for i in range(len(lengths))]


def _groups(lengths: Sequence[Key], max_tokens: int) -> Iterator[tuple[list[int], int]]:
    members: dict[Key, list[int]] = {}
    for i, key in enumerate(lengths):
        members.setdefault(key, []).append(i)
    for key, chosen in sorted(members.items()):
        size = max(1, max_tokens // max(1, sum(key)))
        for first in range(0, len(chosen), size):
            yield chosen[first : first + size], sum(key)


def read_words(folder: Path | None) -> dict[str, tuple[str, ...]] | None:
    if folder is None or not (folder / WORDS).is_file():
        return None
    try:
        content = json.loads((folder / WORDS).read_text(encoding="utf-8"))
        return {side: tuple(str(word) for word, _ in content[side]) for side in ("source", "target")}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise VictimError(
            f"{folder / WORDS} cannot be read ({error})", "train the model again, or remove the file"
        ) from error
