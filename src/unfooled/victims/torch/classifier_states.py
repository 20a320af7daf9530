"""Gradients, attention and embeddings of any torch sequence classifier, without padding.

Texts of equal length share a pass, as in `predict`, so the numbers of a text do not depend on its neighbours.
The model is watched through hooks while it reads token ids: it needs no special entrance for embeddings.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unfooled.batching import Meter, like_length
from unfooled.core.questions import (
    Counts,
    Marked,
    Numbers,
    Of,
    Pool,
    Query,
    Readable,
    Reduce,
    WordVectors,
    mark,
)
from unfooled.core.victim import SPECIMEN, TextValue, require_choice, softmax
from unfooled.errors import CapabilityError, VictimError
from unfooled.passes import Pass, Passes, answering, is_apart, to_device, to_host
from unfooled.text import Text
from unfooled.victims.torch.alignment import Alignment, align
from unfooled.victims.torch.hooks import as_it_was, cut_at_embeddings, eager_attention
from unfooled.victims.torch.tokens import tensors
from unfooled.victims.torch.whitebox import AttentionMaps, WordEmbeddings

_GRADIENTS = 4  # times the memory of a pass without them
_REMEDY = "use an attack that only asks for probabilities, or another model"


@dataclass(frozen=True, slots=True, eq=False)
class TokenizedText:
    """A text as the model reads it, and where its words are."""

    text: Marked
    ids: tuple[int, ...]
    kinds: tuple[int, ...]  # empty for models that know no segments
    alignment: Alignment
    special: tuple[int, ...] = ()  # places of the tokens that the tokenizer put around the texts


class TorchWhiteBox:
    """The methods of `WhiteBoxVictim`, for a class that holds a model and its tokenizer.

    Nothing here counts in `truncated`, nor what it computes in `meter`: those are about `predict`.
    """

    model: Any
    tokenizer: Any
    name: str
    labels: tuple[str, ...]
    max_length: int
    max_tokens: int
    meter: Meter
    _order: list[int] | None

    def pieces(self, texts: Sequence[Readable], /) -> list[Counts]:
        return [reading.alignment.pieces for reading in self._read(texts)]

    # -- gradients ---------------------------------------------------------------------------------

    def gradients(
        self, texts: Sequence[Readable], labels: Sequence[int | None] | None = None, *, of: Of = "loss"
    ) -> list[WordVectors]:
        require_choice(of, Of, "of")
        columns = self._columns(labels, len(texts))
        readings = self._read(texts)
        found: dict[int, WordVectors] = {}
        for batch, inputs in self._groups(readings, gradients=True):
            with batch as group:
                (slopes,) = self._slopes(inputs(), [[columns[i] for i in group]], of)
                for i, slope in zip(group, slopes, strict=True):
                    found[i] = word_vectors(readings[i], slope)
        return [found[i] for i in range(len(readings))]

    def jacobian(self, texts: Sequence[Readable], /) -> list[Numbers]:
        readings = self._read(texts)
        columns = self._order or list(range(len(self.labels)))
        found: dict[int, Numbers] = {}
        for batch, inputs in self._groups(readings, gradients=True):
            with batch as group:
                slopes = self._slopes(inputs(), [[column] * len(group) for column in columns], "logit")
                for at, i in enumerate(group):
                    found[i] = readings[i].alignment.mean(np.stack([slope[at] for slope in slopes]))
        return [found[i] for i in range(len(readings))]

    def _slopes(
        self,
        inputs: dict[str, Any],
        wanted: Sequence[Sequence[int | None]],
        of: Of,
        seen: list[NDArray[Any]] | None = None,
    ) -> list[Numbers]:
        """[rows, tokens, dim] for each of `wanted`: one column per row, or None for the best one.

        `seen` collects the logits that were computed on the way.
        """
        import torch

        ids, slopes = inputs["input_ids"], []
        with torch.inference_mode(False), torch.enable_grad(), cut_at_embeddings(self.model, ids) as leaves:
            logits = self.model(**inputs).logits
            if len(leaves) != 1:
                raise CapabilityError(f"{self.name} does not embed each token once", _REMEDY)
            scores = to_host(logits).double().numpy()
            if seen is not None:
                seen.append(scores)
            if not ids.numel():  # texts without any token: nothing to depend on
                return [to_host(leaves[0]).float().numpy()] * len(wanted)
            for left, columns in enumerate(wanted, 1 - len(wanted)):
                weights = to_device(
                    torch.as_tensor(_direction(scores, columns, of), dtype=logits.dtype), self.model
                )
                # Asked for the embeddings alone, autograd skips the weights' gradients.
                (slope,) = torch.autograd.grad(logits, leaves[0], weights, retain_graph=left < 0)
                slopes.append(to_host(slope).float().numpy())
        return slopes

    def _columns(self, labels: Sequence[int | None] | None, count: int) -> list[int | None]:
        """The model's column of each label."""
        if labels is None:
            return [None] * count
        if len(labels) != count:
            raise ValueError(f"{len(labels)} labels for {count} texts")
        order = self._order or range(len(self.labels))
        for label in labels:
            if label is not None and not 0 <= label < len(self.labels):
                raise VictimError(
                    f"there is no class {label}: {self.name} has {len(self.labels)} classes",
                    f"give a number from 0 to {len(self.labels) - 1}",
                )
        return [None if label is None else order[label] for label in labels]

    # -- attention ---------------------------------------------------------------------------------

    def attention(
        self,
        texts: Sequence[Readable],
        *,
        layer: int = 0,
        reduce: Reduce = "mean-heads",
        query: Query = "mean",
        special: bool = False,
    ) -> list[Numbers]:
        require_choice(reduce, Reduce, "reduce")
        require_choice(query, Query, "query")
        readings = self._read(texts)
        found: dict[int, Numbers] = {}
        for batch, inputs in self._groups(readings):
            with batch as group:
                layers = self._attentions(inputs())
                if not -len(layers) <= layer < len(layers):
                    raise CapabilityError(
                        f"{self.name} has {len(layers)} layers of attention, not layer {layer}",
                        f"choose from 0 to {len(layers) - 1}, or -1 for the last",
                    )
                if query == "cls":
                    self._require_cls([readings[i] for i in group], queries=layers[layer].shape[2])
                # Queries become one: [rows, heads, tokens].
                received = layers[layer].mean(axis=2) if query == "mean" else layers[layer][:, :, 0]
                received = received.mean(axis=1) if reduce == "mean-heads" else received.max(axis=1)
                for i, row in zip(group, received, strict=True):
                    found[i] = readings[i].alignment.total(row[:, None])[:, 0]
                    if special:
                        found[i] = np.concatenate([found[i], row[list(readings[i].special)]])
        return [found[i] for i in range(len(readings))]

    def _require_cls(self, readings: Sequence[TokenizedText], queries: int) -> None:
        """Refuse texts that do not begin with [CLS]; a model that pools by attention has its one query."""
        first = self.tokenizer.cls_token_id
        if queries > 1 and any(
            first is None or reading.ids[0] != first or 0 not in reading.special for reading in readings
        ):
            raise CapabilityError(
                f"{self.name} reads no [CLS] before a text", "take the attention of all tokens: query=mean"
            )

    def attention_maps(self, texts: Sequence[Readable], /) -> list[AttentionMaps]:
        readings = self._read(texts)
        found: dict[int, AttentionMaps] = {}
        for batch, inputs in self._groups(readings):
            with batch as group:
                layers = self._attentions(inputs())
                for at, i in enumerate(group):
                    found[i] = self._maps(readings[i], tuple(layer[at].copy() for layer in layers))
        return [found[i] for i in range(len(readings))]

    def _maps(self, reading: TokenizedText, layers: tuple[Numbers, ...]) -> AttentionMaps:
        word_of = np.full(len(reading.ids), -1, dtype=np.intp)
        word_of[reading.alignment.tokens[::-1]] = reading.alignment.words[::-1]  # the first word of several
        names = tuple(self.tokenizer.convert_ids_to_tokens(reading.ids))
        return AttentionMaps(names, reading.text.words, reading.alignment.pieces, word_of, layers)

    def _attentions(self, inputs: dict[str, Any]) -> list[Numbers]:
        """Per layer [rows, heads, queries, tokens]."""
        with answering(self.model), as_it_was(self.model), eager_attention(self.model):
            layers = getattr(self.model(**inputs, output_attentions=True), "attentions", None)
        if not layers or any(layer is None for layer in layers):
            raise CapabilityError(f"{self.name} shows no attention", _REMEDY)
        return [to_host(layer).float().numpy() for layer in layers]

    # -- embeddings --------------------------------------------------------------------------------

    def embeddings(self, texts: Sequence[Readable], /) -> list[WordEmbeddings]:
        readings = self._read(texts)
        found: dict[int, WordEmbeddings] = {}
        for batch, make in self._groups(readings):
            with batch as group, answering(self.model):
                inputs = make()
                table = to_host(self.model.get_input_embeddings()(inputs["input_ids"])).float().numpy()
                states = self._states(inputs)
                for at, i in enumerate(group):
                    mean = readings[i].alignment.mean
                    layers = tuple(mean(state[at]) for state in states)
                    words, pieces = readings[i].text.words, readings[i].alignment.pieces
                    found[i] = WordEmbeddings(words, pieces, mean(table[at]), layers)
        return [found[i] for i in range(len(readings))]

    def sentence_vectors(self, texts: Sequence[Readable], *, pool: Pool = "head") -> Numbers:
        require_choice(pool, Pool, "pool")
        # Words do not matter here. A specimen for no texts: only the model knows how wide its vectors are.
        readings = self._read([_wordless(text) for text in texts or [SPECIMEN]])
        found: dict[int, Numbers] = {}
        for batch, inputs in self._groups(readings):
            with batch as group, answering(self.model):
                mean = pool == "mean"
                rows = _mean(self._states(inputs())[-1]) if mean else self._read_by_head(inputs())
                found.update(zip(group, rows, strict=True))
        return np.stack([found[i] for i in range(len(readings))])[: len(texts)]

    def _states(self, inputs: dict[str, Any]) -> list[Numbers]:
        """Hidden states [rows, tokens, dim], from the first layer's input to the last layer's output."""
        with as_it_was(self.model):
            states = getattr(self.model(**inputs, output_hidden_states=True), "hidden_states", None)
        shape = inputs["input_ids"].shape
        if not states or any(state.shape[:2] != shape for state in states):
            raise CapabilityError(f"{self.name} shows no hidden state for each token", _REMEDY)
        return [to_host(state).float().numpy() for state in states]

    def head_weights(self) -> Numbers:
        """What the last layer multiplies `sentence_vectors` with, [classes, dim], by `labels`."""
        import torch

        ((_, inputs),) = self._groups(self._read([SPECIMEN]))
        with torch.inference_mode():
            head, _ = self._by_head(inputs())
        rows: Numbers = to_host(head.weight.detach()).float().numpy()
        return rows[self._order or list(range(len(self.labels)))]

    def _read_by_head(self, inputs: dict[str, Any]) -> Numbers:
        """What the last linear layer that makes the logits was given."""
        return self._by_head(inputs)[1]

    def _by_head(self, inputs: dict[str, Any]) -> tuple[Any, Numbers]:
        """The last linear layer that makes the logits, and what it was given."""
        import torch

        given: list[tuple[Any, Any]] = []
        heads = [
            module
            for module in self.model.modules()
            if isinstance(module, torch.nn.Linear) and module.out_features == len(self.labels)
        ]
        handles = [
            head.register_forward_hook(lambda own, args, _: given.append((own, args[0]))) for head in heads
        ]
        try:
            self.model(**inputs)
        finally:
            for handle in handles:
                handle.remove()
        if not given:
            raise CapabilityError(f"{self.name} has no linear layer over its classes", 'use pool="mean"')
        last, read = given[-1]
        vectors = to_host(read).float().numpy()
        # Decoders score every position and decide by the last one; without padding that is the last token.
        return last, np.asarray(vectors[:, -1] if vectors.ndim == 3 else vectors)

    # -- shared ------------------------------------------------------------------------------------

    def _fields(self, texts: Sequence[TextValue]) -> tuple[list[str], list[str] | None]:
        raise NotImplementedError

    def _read(self, texts: Sequence[Readable]) -> list[TokenizedText]:
        """Tokens as `predict` sees them, cut where it cuts, with the tokens of every word."""
        marked = [mark(text) for text in texts]
        if not marked:
            return []
        if not self.tokenizer.is_fast:
            raise CapabilityError(f"the tokenizer of {self.name} does not say where its tokens are", _REMEDY)
        first, second = self._fields([text.value for text in marked])
        encoded = self.tokenizer(
            first,
            second,
            truncation=True,
            max_length=self.max_length,
            return_attention_mask=False,
            return_offsets_mapping=True,
        )
        kinds = encoded.get("token_type_ids")
        readings = []
        for row, text in enumerate(marked):
            offsets, fields = encoded["offset_mapping"][row], encoded.sequence_ids(row)
            alignment = align(text.spans, offsets, fields, text.field)
            ids, segments = tuple(encoded["input_ids"][row]), tuple(kinds[row]) if kinds else ()
            special = tuple(token for token, part in enumerate(fields) if part is None)
            readings.append(TokenizedText(text, ids, segments, alignment, special))
        return readings

    def _groups(
        self, readings: Sequence[TokenizedText], *, gradients: bool = False
    ) -> Iterator[tuple[Pass, Callable[[], dict[str, Any]]]]:
        """Passes of texts of one length, and what makes their inputs on the model's device."""
        import torch

        def inputs(batch: Pass) -> dict[str, Any]:
            rows = [(readings[i].ids, readings[i].kinds) for i in batch.group]
            with torch.inference_mode(False):  # a caller may have it on; such tensors know no gradients
                made: dict[str, Any] = to_device(tensors(rows, batch.width), self.model)
            return made

        # A device was measured without gradients, for which everything on the way is kept.
        share = _GRADIENTS if gradients and is_apart(self.model) else 1
        lengths = [len(reading.ids) for reading in readings]
        for batch in Passes(self, like_length(lengths, max(1, self.max_tokens // share), most=0)):
            yield batch, partial(inputs, batch)

    def _probe(self) -> frozenset[str]:
        """Which of the capabilities give finite numbers for a short text; whatever goes wrong means no."""
        tries: dict[str, Callable[[], list[NDArray[Any]]]] = {
            "gradients": lambda: [self.gradients([SPECIMEN], of="logit")[0].vectors],
            "attention": lambda: [self.attention([SPECIMEN])[0]],
            "embeddings": lambda: [
                *self.embeddings([SPECIMEN])[0].layers[-1:],
                self.sentence_vectors([SPECIMEN]),
            ],
        }
        found = set()
        for name, attempt in tries.items():
            with contextlib.suppress(Exception):
                if all(bool(np.isfinite(array).all() and array.any()) for array in attempt()):
                    found.add(name)
        return frozenset(found)


def _wordless(text: Readable) -> Marked:
    return Marked(text.value if isinstance(text, Text | Marked) else text, 0, ())


def word_vectors(reading: TokenizedText, values: Numbers) -> WordVectors:
    return WordVectors(reading.text.words, reading.alignment.pieces, reading.alignment.mean(values))


def _direction(logits: NDArray[Any], columns: Sequence[int | None], of: Of) -> NDArray[Any]:
    """The derivative of what is asked for by the logits, in float64.

    Of a sure model, float32 would lose the class itself (1 - p = 0): the others are summed up instead.
    """
    if of == "squared-logits":
        return logits
    best = logits.argmax(axis=1)
    chosen = [int(best[row]) if column is None else column for row, column in enumerate(columns)]
    rows = np.arange(len(logits))
    weights = np.zeros_like(logits) if of == "logit" else softmax(logits)
    weights[rows, chosen] = 0.0
    weights[rows, chosen] = 1.0 if of == "logit" else -weights.sum(axis=1)
    return weights


def _mean(states: Numbers) -> Numbers:
    """Over tokens; zero where there are none."""
    return np.asarray(states.sum(axis=1) / max(1, states.shape[1]))
