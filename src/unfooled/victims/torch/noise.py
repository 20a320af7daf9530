"""Reading a text several times with Gaussian noise on the embeddings of some of its words (torch models)."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from unfooled.batching import Meter, same_length
from unfooled.core.questions import Marked, Numbers, Of, WordVectors
from unfooled.victims.torch.classifier_states import TokenizedText, TorchWhiteBox, word_vectors

Logits = NDArray[np.float64]


class NoisyText(NamedTuple):
    """A text and its noise. The numbers belong to the text, so no batch changes them."""

    text: Marked
    words: tuple[int, ...]  # that get noise on each of their pieces
    rng: np.random.Generator


@runtime_checkable
class NoiseReader(Protocol):
    """A victim that can read a text with noise on the embeddings of its words."""

    def noisy_logits(
        self, items: Sequence[NoisyText], *, sigma: float, copies: int, plain: bool = False
    ) -> Logits:
        """[texts, copies, classes]. Up to a constant per copy; softmax gives the probabilities.

        With `plain` one more copy, the first, has no noise: it shares the passes of the others.
        """
        ...

    def embedding_norm(self) -> float:
        """Mean length of the vectors in the embedding table, to compare noise with."""
        ...


class TorchNoise(TorchWhiteBox):
    """The methods of `NoiseReader`, beside those of `WhiteBoxVictim`."""

    meter: Meter

    def noisy_logits(
        self, items: Sequence[NoisyText], *, sigma: float, copies: int, plain: bool = False
    ) -> Logits:
        import torch

        readings = self._read([item.text for item in items])
        found = np.empty((len(items), copies + plain, len(self.labels)))
        for group, inputs, noise in self._noisy_groups(readings, items, sigma, copies, plain):
            began = time.perf_counter()
            with torch.inference_mode(), _added(self.model, inputs["input_ids"], noise):
                logits = self.model(**inputs).logits.double().numpy()
            found[group] = logits.reshape(len(group), copies + plain, -1)
            ids = inputs["input_ids"]
            self.meter.add(len(ids), ids.numel(), 0, time.perf_counter() - began)
        return found if self._order is None else found[:, :, self._order]

    def noisy_gradients(
        self, items: Sequence[NoisyText], labels: Sequence[int | None], *, sigma: float, copies: int, of: Of
    ) -> list[WordVectors]:
        """The mean over the copies of each text: the gradient that an attacker who averages would see."""
        columns = self._columns(labels, len(items))
        readings = self._read([item.text for item in items])
        found: dict[int, WordVectors] = {}
        for group, inputs, noise in self._noisy_groups(readings, items, sigma, copies):
            wanted = [columns[i] for i in group for _ in range(copies)]
            with _added(self.model, inputs["input_ids"], noise):
                (slopes,) = self._slopes(inputs, [wanted], of)
            means = slopes.reshape(len(group), copies, *slopes.shape[1:]).mean(axis=1)
            for i, slope in zip(group, means, strict=True):
                found[i] = word_vectors(readings[i], slope)
        return [found[i] for i in range(len(items))]

    def gradients_and_logits(
        self, texts: Sequence[Marked], *, of: Of = "loss"
    ) -> tuple[list[WordVectors], Logits]:
        """Gradients for the predicted class, and the logits [texts, classes] of the same pass."""
        readings = self._read(texts)
        found: dict[int, WordVectors] = {}
        logits = np.empty((len(texts), len(self.labels)))
        for group, inputs in self._groups(readings):
            began = time.perf_counter()
            seen: list[NDArray[Any]] = []
            (slopes,) = self._slopes(inputs, [[None] * len(group)], of, seen)
            logits[group] = seen[0]
            for i, slope in zip(group, slopes, strict=True):
                found[i] = word_vectors(readings[i], slope)
            ids = inputs["input_ids"]
            self.meter.add(len(ids), ids.numel(), 0, time.perf_counter() - began)
        order = self._order
        return [found[i] for i in range(len(texts))], logits if order is None else logits[:, order]

    def embedding_norm(self) -> float:
        weight = self.model.get_input_embeddings().weight
        return float(weight.detach().float().norm(dim=1).mean())

    def _noisy_groups(
        self,
        readings: Sequence[TokenizedText],
        items: Sequence[NoisyText],
        sigma: float,
        copies: int,
        plain: bool = False,
    ) -> Iterator[tuple[list[int], dict[str, Any], tuple[Any, Any, Any]]]:
        """Texts of one length, a row for each copy; and rows, tokens and values of the noise."""
        import torch

        per_text = copies + plain
        width = self.model.get_input_embeddings().weight.shape[1]
        lengths = [len(reading.ids) for reading in readings]
        for group in same_length(lengths, max(1, self.max_tokens // per_text)):
            rows: list[NDArray[Any]] = []
            tokens: list[NDArray[Any]] = []
            values: list[Numbers] = []
            for at, i in enumerate(group):
                where = _tokens_of(readings[i], items[i].words)
                drawn = items[i].rng.standard_normal((copies, len(where), width), dtype=np.float32)
                rows.append(np.repeat(np.arange(at * per_text + plain, (at + 1) * per_text), len(where)))
                tokens.append(np.tile(where, copies))
                values.append(drawn.reshape(-1, width) * np.float32(sigma))
            with torch.inference_mode(False):
                inputs = {"input_ids": torch.tensor([readings[i].ids for i in group], dtype=torch.long)}
                if readings[group[0]].kinds:
                    inputs["token_type_ids"] = torch.tensor([readings[i].kinds for i in group])
                inputs = {name: tensor.repeat_interleave(per_text, dim=0) for name, tensor in inputs.items()}
                noise = tuple(torch.from_numpy(np.concatenate(arrays)) for arrays in (rows, tokens, values))
            yield group, inputs, noise  # type: ignore[misc]


def _tokens_of(reading: TokenizedText, words: Sequence[int]) -> NDArray[np.intp]:
    """The tokens that stand for any of the words, each once."""
    return np.unique(reading.alignment.tokens[np.isin(reading.alignment.words, words)])


@contextlib.contextmanager
def _added(model: Any, ids: Any, noise: tuple[Any, Any, Any]) -> Iterator[None]:
    """While open, `noise` is added to what the embedding table says of `ids`."""
    import torch

    rows, tokens, values = noise

    def add(_module: Any, args: Any, output: Any) -> Any:
        if not len(values) or not torch.equal(args[0], ids):
            return output
        output = output.clone()
        output[rows, tokens] += values.to(output.dtype)
        return output

    handle = model.get_input_embeddings().register_forward_hook(add)
    try:
        yield
    finally:
        handle.remove()
