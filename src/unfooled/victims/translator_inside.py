"""What attacks and reports see of a translation model's inside: its words, vectors and attention."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from unfooled.batching import same_length
from unfooled.errors import VictimError
from unfooled.victims.base import TextValue
from unfooled.victims.decoding import Row, Signs
from unfooled.victims.torch_hooks import as_it_was, eager_attention

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
    folder: Path | None
    _known_words: dict[str, tuple[str, ...]] | None = None

    def _sources(self, texts: Sequence[str]) -> list[Row]:
        raise NotImplementedError

    def _target(self, text: str) -> Row:
        raise NotImplementedError

    def sentence_vectors(self, texts: Sequence[TextValue], *, pool: str = "mean") -> NDArray[np.float32]:
        """The mean of what the encoder says of each text's tokens, [texts, dim]; `pool` changes nothing."""
        sources = self._sources([text if isinstance(text, str) else text[0] for text in texts])

        def run(chosen: list[int]) -> list[Any]:
            import torch

            with torch.inference_mode():
                read = self.model.get_encoder()(input_ids=torch.tensor([sources[i] for i in chosen]))
            return list(read[0].mean(dim=1).float().numpy())

        found = in_groups([(len(source),) for source in sources], self.max_tokens, run)
        return np.array(found, dtype=np.float32)

    def attention(self, pairs: Sequence[tuple[str, str]], /) -> list[AttentionMap]:
        """For each text and its output, where the written tokens looked."""
        import torch

        found = []
        with eager_attention(self.model), as_it_was(self.model), torch.inference_mode():
            for (_, output), source in zip(pairs, self._sources([one for one, _ in pairs]), strict=True):
                target = (*self._target(output), self.signs.ends[0])
                out = self.model(
                    input_ids=torch.tensor([source]),
                    decoder_input_ids=torch.tensor([(self.signs.start, *target[:-1])]),
                    output_attentions=True,
                    use_cache=False,
                )
                layers = torch.stack([one[0] for one in out.cross_attentions])
                weights = layers.float().mean(dim=(0, 1)).numpy()
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


def in_groups(lengths: Sequence[Key], max_tokens: int, run: Callable[[list[int]], list[R]]) -> list[R]:
    """Run what has equal lengths together; the answers in the order of the items."""
    found: dict[int, R] = {}
    for chosen in _groups(lengths, max_tokens):
        found.update(zip(chosen, run(chosen), strict=True))
    return [found[i] for i in range(len(lengths))]


def _groups(lengths: Sequence[Key], max_tokens: int) -> Iterator[list[int]]:
    numbers = {key: number for number, key in enumerate(sorted(set(lengths)))}
    members: dict[int, list[int]] = {}
    for i, key in enumerate(lengths):
        members.setdefault(numbers[key], []).append(i)
    for number, chosen in members.items():
        total = sum(next(key for key, n in numbers.items() if n == number))
        for part in same_length([total] * len(chosen), max_tokens):
            yield [chosen[i] for i in part]


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
