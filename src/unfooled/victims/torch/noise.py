"""Reading a text several times with Gaussian noise on the embeddings of some of its words (torch models)."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from unfooled.batching import like_length
from unfooled.core.questions import Marked, Numbers, Of, WordVectors
from unfooled.passes import Pass, Passes, answering, to_device, to_host
from unfooled.victims.torch.classifier_states import TokenizedText, TorchWhiteBox, word_vectors
from unfooled.victims.torch.tokens import tensors

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

    def noisy_logits(
        self, items: Sequence[NoisyText], *, sigma: float, copies: int, plain: bool = False
    ) -> Logits:
        readings = self._read([item.text for item in items])
        found = np.empty((len(items), copies + plain, len(self.labels)))
        for batch, make in self._noisy_groups(readings, items, sigma, copies, plain):
            with batch as group:
                began = time.perf_counter()
                inputs, noise = make()
                ids = inputs["input_ids"]
                with answering(self.model), _added(self.model, ids, noise):
                    logits = to_host(self.model(**inputs).logits).double().numpy()
                found[group] = logits.reshape(len(group), copies + plain, -1)
                self.meter.add(len(ids), ids.numel(), 0, time.perf_counter() - began)
        return found if self._order is None else found[:, :, self._order]

    def noisy_gradients(
        self, items: Sequence[NoisyText], labels: Sequence[int | None], *, sigma: float, copies: int, of: Of
    ) -> list[WordVectors]:
        """The mean over the copies of each text: the gradient that an attacker who averages would see."""
        columns = self._columns(labels, len(items))
        readings = self._read([item.text for item in items])
        found: dict[int, WordVectors] = {}
        for batch, make in self._noisy_groups(readings, items, sigma, copies):
            with batch as group:
                inputs, noise = make()
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
        for batch, make in self._groups(readings, gradients=True):
            with batch as group:
                began = time.perf_counter()
                seen: list[NDArray[Any]] = []
                (slopes,) = self._slopes(make(), [[None] * len(group)], of, seen)
                logits[group] = seen[0]
                for i, slope in zip(group, slopes, strict=True):
                    found[i] = word_vectors(readings[i], slope)
                tokens = len(group) * batch.width
                self.meter.add(len(group), tokens, 0, time.perf_counter() - began)
        order = self._order
        return [found[i] for i in range(len(texts))], logits if order is None else logits[:, order]

    def embedding_norm(self) -> float:
        weight = self.model.get_input_embeddings().weight
        return float(to_host(weight).float().norm(dim=1).mean())

    def _noisy_groups(
        self,
        readings: Sequence[TokenizedText],
        items: Sequence[NoisyText],
        sigma: float,
        copies: int,
        plain: bool = False,
    ) -> Iterator[tuple[Pass, Callable[[], tuple[dict[str, Any], tuple[Any, Any, Any]]]]]:
        """Texts of one length, and what makes the inputs, a row for each copy, and the noise: its rows,
        tokens and values."""
        import torch

        per_text = copies + plain
        size = self.model.get_input_embeddings().weight.shape[1]
        lengths = [len(reading.ids) for reading in readings]
        known: dict[int, Numbers] = {}  # a pass that comes again in halves has the same noise

        def inputs(group: list[int]) -> tuple[dict[str, Any], tuple[Any, Any, Any]]:
            rows: list[NDArray[Any]] = []
            tokens: list[NDArray[Any]] = []
            values: list[Numbers] = []
            for at, i in enumerate(group):
                where = _tokens_of(readings[i], items[i].words)
                if i not in known:
                    known[i] = items[i].rng.standard_normal((copies, len(where), size), dtype=np.float32)
                rows.append(np.repeat(np.arange(at * per_text + plain, (at + 1) * per_text), len(where)))
                tokens.append(np.tile(where, copies))
                values.append(known[i].reshape(-1, size) * np.float32(sigma))
            with torch.inference_mode(False):
                made = tensors([(readings[i].ids, readings[i].kinds) for i in group], lengths[group[0]])
                made = {name: tensor.repeat_interleave(per_text, dim=0) for name, tensor in made.items()}
                noise = (torch.from_numpy(np.concatenate(arrays)) for arrays in (rows, tokens, values))
                where_rows, where_tokens, what = (to_device(tensor, self.model) for tensor in noise)
                return to_device(made, self.model), (where_rows, where_tokens, what)

        for batch in Passes(self, like_length(lengths, max(1, self.max_tokens // per_text), most=0)):
            yield batch, partial(inputs, batch.group)
            if batch.done:
                for i in batch.group:
                    del known[i]


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
