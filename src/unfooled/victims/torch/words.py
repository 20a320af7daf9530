"""Whole words inside a torch model: its vocabulary and their vectors, texts with a word's vector at zero."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from unfooled.core.questions import Mixed, Mixture, Numbers, Readable, mark
from unfooled.core.victim import Probabilities, TextValue, softmax
from unfooled.errors import CapabilityError
from unfooled.passes import answering, to_device, to_host
from unfooled.text import WORD
from unfooled.victims.torch.alignment import Alignment
from unfooled.victims.torch.classifier_states import TokenizedText, TorchWhiteBox
from unfooled.victims.torch.hooks import cut_at_embeddings
from unfooled.victims.torch.word_passes import ROWS, PrefixCache, StretchReader, is_word_model, padded

_MOST_OPTIONS = 50_000  # words whose vectors are remembered


@dataclass(frozen=True, slots=True, eq=False)
class Slope:
    """What the victim says of a text, and how a class's pre-softmax output changes with its words."""

    scores: Probabilities  # [classes]
    vectors: Numbers  # [words, dim]; zero for a word that is not read


class BlendedText:
    """The vectors of one text in which some words are mixed with their options."""

    def __init__(
        self, alignment: Alignment, own: Numbers, item: Mixture, known: Mapping[str, Numbers]
    ) -> None:
        self._own = own
        self._places = [alignment.tokens[alignment.words == place] for place in range(len(item.options))]
        self._options = [np.array([known[word] for word in some]) for some in item.options]
        self.vectors = own.copy()
        for tokens, options, weights in zip(self._places, self._options, item.weights, strict=True):
            shares = np.array(weights, dtype=np.float32)
            self.vectors[tokens] = shares[0] * own[tokens]
            if len(options):
                self.vectors[tokens] += shares[1:] @ options

    def slopes(self, slope: Numbers) -> tuple[Numbers, ...]:
        """From the slope for each vector, that for each weight: the word's own, then its options'."""
        found = []
        for tokens, options in zip(self._places, self._options, strict=True):
            first = np.float32((slope[tokens] * self._own[tokens]).sum())
            rest = options @ slope[tokens].sum(axis=0) if len(options) else []
            found.append(np.array([first, *rest], dtype=np.float32))
        return tuple(found)


class WordPass(NamedTuple):
    """Texts that go through the model together, without their first so many tokens each."""

    group: list[int]
    inputs: dict[str, Any]
    skipped: list[int]
    start: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()


class TorchWords(TorchWhiteBox):
    """Further white-box methods, for a class that holds a model and its tokenizer."""

    _known_words: tuple[tuple[str, ...], list[int]] | None = None
    _reader: StretchReader | None = None
    _reader_tried = False
    _beginnings: PrefixCache | None = None

    @cached_property
    def _options_known(self) -> dict[str, Numbers]:
        return {}

    def vocabulary(self) -> tuple[str, ...]:
        """The words that the tokenizer reads as one token, in the order of the tokens' numbers.

        Pieces of words, special tokens and whatever an attack would not see as one word are left out.
        """
        return self._words()[0]

    def vocabulary_vectors(self) -> tuple[tuple[str, ...], Numbers]:
        """The words of `vocabulary` and their input embeddings, [words, dim]."""
        words, ids = self._words()
        table = to_host(self.model.get_input_embeddings().weight).float().numpy()
        return words, table[ids]

    def _words(self) -> tuple[tuple[str, ...], list[int]]:
        if self._known_words is None:
            special = set(self.tokenizer.all_special_ids)
            tokens = sorted((number, token) for token, number in self.tokenizer.get_vocab().items())
            found: dict[str, int] = {}
            for number, token in tokens:
                word = self.tokenizer.convert_tokens_to_string([token]).strip()
                if number not in special and WORD.fullmatch(word):
                    # Of two tokens for one word (with and without a space before) the reading below decides.
                    found.setdefault(word, number)
            words = list(found)
            # As it stands in a text: behind a space.
            read = self.tokenizer(
                [f" {word}" for word in words], add_special_tokens=False, return_attention_mask=False
            )["input_ids"]
            whole = [(word, ids[0]) for word, ids in zip(words, read, strict=True) if len(ids) == 1]
            whole = [(word, number) for word, number in whole if number not in special]
            self._known_words = tuple(word for word, _ in whole), [number for _, number in whole]
        return self._known_words

    def zeroed(self, items: Sequence[tuple[Readable, int]], /) -> Probabilities:
        """Probabilities of each text with the vectors of one of its words, by index, set to zero."""
        texts = list(dict.fromkeys(mark(text) for text, _ in items))
        readings = dict(zip(texts, self._read(texts), strict=True))
        rows = [readings[mark(text)] for text, _ in items]
        logits = np.zeros((len(items), len(self.labels)))
        for batch, make in self._groups(rows):
            with batch as group, answering(self.model):
                inputs = make()
                kept = np.ones((*inputs["input_ids"].shape, 1), dtype=np.float32)
                for at, i in enumerate(group):
                    kept[at, rows[i].alignment.tokens[rows[i].alignment.words == items[i][1]]] = 0.0
                with _scaled_embeddings(self.model, inputs["input_ids"], kept) as calls:
                    logits[group] = to_host(self.model(**inputs).logits).double().numpy()
            if batch.done and not calls:
                raise CapabilityError(
                    f"{self.name} does not embed its tokens where it says", "select words by deletion instead"
                )
        return self._ordered(softmax(logits))

    def slopes(self, texts: Sequence[Readable], labels: Sequence[int], /) -> list[Slope]:
        """Scores, and the gradient of each text's given class for its words: one pass for both.

        Ask for `Marked` values that hold only the words that matter: late words alone are cheaper.
        """
        import torch

        columns = self._columns(list(labels), len(texts))
        readings = self._read(texts)
        found: dict[int, Slope] = {}
        for batch in self._passes(readings):
            ids = batch.inputs["input_ids"]
            with batch.start, torch.inference_mode(False), torch.enable_grad():
                with cut_at_embeddings(self.model, ids) as cut:
                    logits = self.model(**batch.inputs).logits
                if len(cut) != 1:
                    raise CapabilityError(
                        f"{self.name} does not embed each token once", "use an attack without gradients"
                    )
                chosen = logits[range(len(batch.group)), [columns[i] for i in batch.group]]
                (slope,) = torch.autograd.grad(chosen.sum(), cut[0])
                scores = self._ordered(softmax(to_host(logits).double().numpy()))
                for i, skipped, row, vectors in zip(
                    batch.group, batch.skipped, scores, to_host(slope).float().numpy(), strict=False
                ):
                    found[i] = Slope(row, _per_word(readings[i].alignment, vectors, skipped))
        return [found[i] for i in range(len(readings))]

    def mixed(self, items: Sequence[Mixture], /) -> list[Mixed]:
        """The margin of each item's class, read from blends of word vectors, and its slopes.

        A word of several pieces is blended in as their mean, in each piece of the word that it would replace.
        """
        import torch

        columns = self._columns([item.label for item in items], len(items))
        readings = self._read([item.text for item in items])
        known = self._option_vectors(word for item in items for some in item.options for word in some)
        found: dict[int, Mixed] = {}
        for batch, make in self._groups(readings, gradients=True):
            with batch as group:
                inputs = make()
                ids = inputs["input_ids"]
                with torch.no_grad():
                    own = to_host(self.model.get_input_embeddings()(ids)).float().numpy()
                blends = [
                    BlendedText(readings[i].alignment, row, items[i], known)
                    for i, row in zip(group, own, strict=True)
                ]
                vectors = torch.from_numpy(np.stack([blend.vectors for blend in blends]))
                wanted = [columns[i] for i in group]
                margins, slopes = self._margins(inputs, to_device(vectors, self.model), wanted)
                for i, blend, margin, slope in zip(group, blends, margins, slopes, strict=True):
                    found[i] = Mixed(margin, blend.slopes(slope))
        return [found[i] for i in range(len(items))]

    def _margins(
        self, inputs: dict[str, Any], instead: Any, columns: Sequence[int | None]
    ) -> tuple[list[float], Numbers]:
        """The margin of each row that is read as the vectors `instead`, and its slopes for these."""
        import torch

        ids = inputs["input_ids"]
        with (
            torch.inference_mode(False),
            torch.enable_grad(),
            cut_at_embeddings(self.model, ids, instead) as cut,
        ):
            logits = self.model(**inputs).logits
            if len(cut) != 1:
                raise CapabilityError(
                    f"{self.name} does not embed each token once", "use an attack without gradients"
                )
            margins = _margins(logits, columns)
            slopes = torch.zeros_like(cut[0])
            if ids.numel():
                (slopes,) = torch.autograd.grad(margins.sum(), cut[0])
        return to_host(margins).double().tolist(), to_host(slopes).float().numpy()

    def _option_vectors(self, words: Iterable[str]) -> dict[str, Numbers]:
        """The input embedding of each word as it is read behind a space; of several pieces the mean."""
        import torch

        if len(self._options_known) > _MOST_OPTIONS:
            self._options_known.clear()
        new = [word for word in dict.fromkeys(words) if word not in self._options_known]
        if new:
            read = self.tokenizer([f" {word}" for word in new], add_special_tokens=False)["input_ids"]
            embed = self.model.get_input_embeddings()
            with torch.no_grad():
                numbers = torch.tensor([number for ids in read for number in ids], dtype=torch.long)
                flat = to_host(embed(to_device(numbers, self.model)))
            ends = np.cumsum([len(ids) for ids in read])[:-1]
            for word, rows in zip(new, np.split(flat.float().numpy(), ends), strict=True):
                self._options_known[word] = rows.sum(axis=0) / max(1, len(rows))
        return self._options_known

    def _passes(self, readings: Sequence[TokenizedText]) -> Iterator[WordPass]:
        if not is_word_model(self.model):
            for batch, make in self._groups(readings, gradients=True):
                yield WordPass(batch.group, make(), [0] * len(batch.group), batch)
            return
        if self._beginnings is None and PrefixCache.suit(self.model):
            self._beginnings = PrefixCache(self.model)
        cuts = [self._cut(reading) for reading in readings]
        begun = [tuple(reading.ids[:cut]) for reading, cut in zip(readings, cuts, strict=True)]
        if self._beginnings:
            self._beginnings.learn(begun)
        order = sorted(range(len(readings)), key=lambda i: len(readings[i].ids) - cuts[i])
        for first in range(0, len(order), ROWS):
            group = order[first : first + ROWS]
            rows = padded([readings[i].ids[cuts[i] :] for i in group], self.tokenizer.pad_token_id)
            inputs = to_device(rows, self.model)
            skipped = [cuts[i] for i in group]
            if self._beginnings:
                yield WordPass(group, inputs, skipped, self._beginnings.after([begun[i] for i in group]))
            else:
                yield WordPass(group, inputs, skipped)

    def _cut(self, reading: TokenizedText) -> int:
        """What comes before the first word that is asked about need not be read again."""
        tokens = reading.alignment.tokens
        return self._beginnings.cut(int(tokens[0])) if self._beginnings and len(tokens) else 0

    def _read(self, texts: Sequence[Readable]) -> list[TokenizedText]:
        marked = [mark(text) for text in texts]
        reader = self._stretches([text.value for text in marked])
        return reader.read(marked) if reader else super()._read(marked)

    def _stretches(self, texts: Sequence[TextValue]) -> StretchReader | None:
        """A faster way to read single texts for word models, whose texts change by a word at a time."""
        if not self._reader_tried:
            self._reader_tried = True
            if is_word_model(self.model):
                self._reader = StretchReader.of(self.tokenizer, self.max_length)
        if self._reader is None or not all(isinstance(text, str) for text in texts):
            return None
        return self._reader

    def _ordered(self, scores: Probabilities) -> Probabilities:
        return scores if self._order is None else scores[:, self._order]


def _margins(logits: Any, columns: Sequence[int | None]) -> Any:
    """How far each row's class lies above the highest other."""
    import torch

    rows = range(len(logits))
    chosen = torch.zeros_like(logits, dtype=torch.bool)
    chosen[rows, columns] = True
    return logits[rows, columns] - logits.masked_fill(chosen, -torch.inf).max(dim=1).values


def _per_word(alignment: Alignment, vectors: Numbers, skipped: int) -> Numbers:
    """[words, dim], averaged over a word's tokens; zero for a word without any."""
    if len(alignment.pieces) != 1:
        whole = np.zeros((alignment.length, vectors.shape[-1]), dtype=np.float32)
        whole[skipped:] = vectors[: alignment.length - skipped]
        return alignment.mean(whole)
    if not len(alignment.tokens):
        return np.zeros((1, vectors.shape[-1]), dtype=np.float32)
    own = vectors[alignment.tokens - skipped]
    return own if len(own) == 1 else np.asarray(own.mean(axis=0, keepdims=True))


@contextlib.contextmanager
def _scaled_embeddings(model: Any, ids: Any, factors: Numbers) -> Iterator[list[bool]]:
    """While open, the embeddings of `ids` are multiplied by the factors; the list has an entry per use."""
    import torch

    uses: list[bool] = []
    weights = to_device(torch.from_numpy(factors), model)

    def scale(_module: Any, args: Any, output: Any) -> Any:
        if not torch.equal(args[0], ids):
            return output
        uses.append(True)
        return output * weights.to(output.dtype)

    handle = model.get_input_embeddings().register_forward_hook(scale)
    try:
        yield uses
    finally:
        handle.remove()
