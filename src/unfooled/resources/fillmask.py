"""Fill-mask: which whole words fit into a gap of a text?

    item    MaskItem(left, right, k)   the text before the gap, the text after it, and how many words
    answer  tuple[FillIn, ...]         up to k different words, the best first: FillIn(word, score)

    item    WordItem(left, word, right, k)   the same with the word left in: what the model would rather read

Oracle names are `fill:VARIANT`: `masked-lm` (trained here), `trigram` (no training), the folder or hub name
of any masked language model that `transformers` loads, or two of these joined by `+` (see `blend`). The gap
is one whole word; spaces around it are part of `left` and `right`. `score` is the natural log-probability of
the word, rounded to 1e-6; among equal ones the first of the vocabulary wins. Words come as the vocabulary
writes them: the word that stood in the gap may be among them, and casing is left to whoever asks.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from functools import cache, cached_property, partial
from itertools import islice, product
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from unfooled.batching import Meter, like_length
from unfooled.errors import OracleError, ResourceError
from unfooled.passes import OnDevice, Passes, answering, placed, to_device, to_host, tokens_that_fit
from unfooled.resources import pretrained, store
from unfooled.text import WORD

DEFAULT, TRIGRAM = "masked-lm", "trigram"
WINDOW = 128  # tokens that the model sees around the gap: more of a long text costs much and says little
MAX_TOKENS = 2048  # per forward pass
# Below a handful of rows a matrix product takes another path and other last digits: fill up.
MIN_ROWS = 32  # tokens in the body
FEW_ROWS = 16  # gaps in the head
PIECES, PER_PIECE, ALIVE = 12, 4, 24  # of a word; tokens tried for each; combinations kept at a time
_SPARE = 8  # places beyond k that are looked at, so that ties at the end fall to the first word


class MaskItem(NamedTuple):
    """A question: `k` words for the gap between `left` and `right`."""

    left: str
    right: str
    k: int


class WordItem(NamedTuple):
    """A question: words for the place of `word`, which the model sees.

    Of a word that is one token those of the `k` likeliest tokens that are whole words. Of a word in several
    pieces up to `k` that can be put together of likely pieces: by `beam` the likeliest of few for each piece,
    by `product` the first ones in the order of the product of the `k` likeliest for each, the last piece
    changing first.
    """

    left: str
    word: str
    right: str
    k: int
    combine: str = "beam"


class FillIn(NamedTuple):
    """A word and its log-probability."""

    word: str
    score: float


class FillMaskOracle(Protocol):
    """What every variant of the oracle is."""

    @property
    def batch_size(self) -> int: ...

    def __call__(self, items: Sequence[MaskItem | WordItem], /) -> list[tuple[FillIn, ...]]: ...


Reading = tuple[tuple[int, ...], int]  # token ids and the gap's place among them


class MaskedLM(OnDevice):
    """A masked language model, run on groups of equal length: nothing is padded, and an answer does not
    depend on the questions beside it. Only the gap's hidden state goes through the vocabulary head."""

    batch_size = 4096

    def __init__(self, model: Any, tokenizer: Any, *, window: int = WINDOW, max_tokens: int = 0) -> None:
        import torch

        if tokenizer.mask_token_id is None:
            raise ResourceError(
                "the model's tokenizer has no mask token, so it cannot mark a gap",
                "use a masked language model such as BERT, with the tokenizer it was trained with",
            )
        self.model = model = placed(model, given=True)
        self.tokenizer = tokenizer
        self.meter = Meter()
        self._prefix, self._suffix = _frame(tokenizer)
        self.window = min(window, pretrained.longest_input(model.config, tokenizer))
        self.max_tokens = max_tokens or tokens_that_fit(
            model, MAX_TOKENS, self.window, lambda ids: model.base_model(input_ids=ids)
        )
        self.vocabulary = whole_words(tokenizer, int(model.config.vocab_size))
        self._ids = to_device(torch.tensor(self.vocabulary.ids), model)
        self._head = _Head(model)
        self._head.try_out((*self._prefix, tokenizer.mask_token_id, *self._suffix))

    def __call__(self, items: Sequence[MaskItem | WordItem], /) -> list[tuple[FillIn, ...]]:
        gaps = iter(self._fill([item for item in items if isinstance(item, MaskItem)]))
        words = iter(self._instead([item for item in items if isinstance(item, WordItem)]))
        return [next(gaps if isinstance(item, MaskItem) else words) for item in items]

    def _instead(self, items: Sequence[WordItem]) -> list[tuple[FillIn, ...]]:
        """Words in the place of one that stands there."""
        pieces = [self._pieces(item) for item in items]
        readings = [(reading, item.k) for item, own in zip(items, pieces, strict=True) for reading in own]
        best: list[list[tuple[int, float]]] = [[]] * len(readings)
        lengths = [len(ids) for (ids, _), _ in readings]
        for batch in Passes(self, like_length(lengths, self.max_tokens, most=0)):
            with batch as group:
                began = time.perf_counter()
                scores, padding = self._head.scores([readings[number][0] for number in group])
                most = [readings[number][1] for number in group]
                for number, told in zip(group, _likeliest(scores, most), strict=True):
                    best[number] = told
                tokens = len(group) * batch.width
                self.meter.add(len(group), tokens, padding, time.perf_counter() - began)
        each = iter(best)
        return [self._words([next(each) for _ in own], item) for item, own in zip(items, pieces, strict=True)]

    def _pieces(self, item: WordItem) -> list[Reading]:
        """The text as the model reads it, once for each piece of the word."""
        if item.k < 1:
            raise OracleError(f"{item.k} words were asked for a place; ask for at least 1")
        near = _last(item.left, 16 * self.window), item.word, _first(item.right, 16 * self.window)
        left, word, right = (
            self.tokenizer(part, add_special_tokens=False, split_special_tokens=True, verbose=False)[
                "input_ids"
            ]
            for part in near
        )
        word = word[:PIECES]
        room = self.window - len(self._prefix) - len(self._suffix) - len(word)
        if room < 0:
            return []
        before = min(len(left), max(room // 2, room - len(right)))
        ids = (*self._prefix, *left[len(left) - before :], *word, *right[: room - before], *self._suffix)
        return [(ids, len(self._prefix) + before + piece) for piece in range(len(word))]

    def _words(self, best: list[list[tuple[int, float]]], item: WordItem) -> tuple[FillIn, ...]:
        if not best:
            return ()
        if len(best) == 1:
            return tuple(
                FillIn(self._whole[token], score) for token, score in best[0] if token in self._whole
            )
        found: dict[str, float] = {}
        for tokens, score in _product(best) if item.combine == "product" else _beam(best):
            glued = self._glued(tokens)
            if glued:
                found.setdefault(glued, score)
            if len(found) == item.k:
                break
        return tuple(FillIn(glued, score) for glued, score in found.items())

    @cached_property
    def _whole(self) -> dict[int, str]:
        return dict(zip(self.vocabulary.ids, self.vocabulary.words, strict=True))

    def _glued(self, tokens: Sequence[int]) -> str:
        """Pieces as one word, or nothing where they are none."""
        inside = _inner_prefix(self.tokenizer)
        names = self.tokenizer.convert_ids_to_tokens(list(tokens))
        word = "".join(name.removeprefix(inside) if inside else name for name in names)
        if not inside:
            word = _from_bytes(word.lstrip("Ġ")) if "Ġ" in word else word.lstrip("▁")
        return word if WORD.fullmatch(word) else ""

    def _fill(self, items: Sequence[MaskItem]) -> list[tuple[FillIn, ...]]:
        readings, which, most = self._read(items)
        found: list[tuple[FillIn, ...]] = [()] * len(readings)
        lengths = [len(ids) for ids, _ in readings]
        for batch in Passes(self, like_length(lengths, self.max_tokens, most=0)):
            with batch as group:
                began = time.perf_counter()
                scores, padding = self._head.scores([readings[i] for i in group])
                for index, best in zip(group, self._best(scores, [most[i] for i in group]), strict=True):
                    found[index] = best
                tokens = len(group) * batch.width
                self.meter.add(len(group), tokens, padding, time.perf_counter() - began)
        return [found[reading][: item[2]] for item, reading in zip(items, which, strict=True)]

    def _read(self, items: Sequence[MaskItem]) -> tuple[list[Reading], list[int], list[int]]:
        """Distinct readings, which of them each item has, and the largest k asked of each."""
        mask = self.tokenizer.added_tokens_decoder.get(self.tokenizer.mask_token_id)
        # Far more characters than fit into the window, so that a long text is not read whole at each gap.
        most_characters = 16 * self.window
        lefts = [_last(left, most_characters) for left, _, _ in items]
        rights = [_first(right, most_characters) for _, right, _ in items]
        if getattr(mask, "lstrip", False):
            lefts = [left.rstrip() for left in lefts]
        if getattr(mask, "rstrip", False):
            rights = [right.lstrip() for right in rights]
        # Text around a special token is read piece by piece, and so are the two sides of the gap here.
        sides: list[list[int]] = [[] for _ in range(2 * len(items))]
        if items:
            sides = self.tokenizer(
                lefts + rights,
                add_special_tokens=False,
                split_special_tokens=True,  # a text that writes "[MASK]" means these characters
                return_attention_mask=False,
                verbose=False,
            )["input_ids"]
        distinct: dict[Reading, int] = {}
        which: list[int] = []
        most: list[int] = []
        for index, (_, _, k) in enumerate(items):
            if k < 1:
                raise OracleError(f"{k} words were asked for a gap; ask for at least 1")
            at = distinct.setdefault(self._cut(sides[index], sides[len(items) + index]), len(distinct))
            which.append(at)
            if at == len(most):
                most.append(k)
            most[at] = max(most[at], k)
        return list(distinct), which, most

    def _cut(self, left: list[int], right: list[int]) -> Reading:
        """The gap with as many tokens on both sides as the window has room for."""
        room = self.window - len(self._prefix) - len(self._suffix) - 1
        before = min(len(left), max(room // 2, room - len(right)))
        left, right = left[len(left) - before :], right[: room - before]
        mask = self.tokenizer.mask_token_id
        return (*self._prefix, *left, mask, *right, *self._suffix), len(self._prefix) + before

    def _best(self, scores: Any, most: Sequence[int]) -> list[tuple[FillIn, ...]]:
        """Up to k whole words of each row of log-probabilities."""
        wanted = min(max(most) + _SPARE, len(self._ids))
        values, places = scores[:, self._ids].topk(wanted, dim=1)
        answers = []
        told = to_host(values).double().tolist(), to_host(places).tolist()
        for row, at, k in zip(*told, most, strict=True):
            ranked = sorted(zip([-round(value, 6) for value in row], at, strict=True))[:k]
            answers.append(tuple(FillIn(self.vocabulary.words[place], -value) for value, place in ranked))
        return answers


def _likeliest(scores: Any, most: Sequence[int]) -> Iterator[list[tuple[int, float]]]:
    """The k likeliest tokens of each row of log-probabilities, of equal ones those with the lowest number."""
    found: dict[int, tuple[list[list[float]], list[list[int]]]] = {}
    for k in dict.fromkeys(most):  # of ties at the end another k could keep others
        values, tokens = scores.topk(min(k + _SPARE, scores.shape[1]), dim=1)
        found[k] = to_host(values).double().tolist(), to_host(tokens).tolist()
    for row, k in enumerate(most):
        best, places = found[k]
        ranked = sorted(zip([-round(value, 6) for value in best[row]], places[row], strict=True))
        yield [(token, -value) for value, token in ranked[:k]]


def _product(best: Sequence[Sequence[tuple[int, float]]]) -> Iterator[tuple[tuple[int, ...], float]]:
    """Every combination, the last piece changing first; not more than a few hundred are looked at."""
    for chosen in islice(product(*best), 16 * len(best[-1])):
        yield tuple(token for token, _ in chosen), round(sum(score for _, score in chosen), 6)


def _beam(best: Sequence[Sequence[tuple[int, float]]]) -> list[tuple[tuple[int, ...], float]]:
    """The likeliest combinations, from few tokens for each piece and few begun words at a time."""
    alive: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    for place in best:
        longer = [
            ((*tokens, token), round(total + score, 6))
            for tokens, total in alive
            for token, score in place[:PER_PIECE]
        ]
        alive = sorted(longer, key=lambda begun: -begun[1])[:ALIVE]
    return alive


def _first(text: str, most: int) -> str:
    """The beginning of a long text, up to a space."""
    if len(text) <= most:
        return text
    space = text.rfind(" ", most // 2, most)
    return text[: space if space >= 0 else most // 2]


def _last(text: str, most: int) -> str:
    """The end of a long text, from a space on."""
    start = len(text) - most
    if start <= 0:
        return text
    space = text.find(" ", start, start + most // 2)
    return text[space if space >= 0 else start + most // 2 :]


class _Head:
    """The model up to the gap's log-probabilities."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._early = True  # the body's answer is narrowed to the gap before the head sees it

    def scores(self, readings: Sequence[Reading]) -> tuple[Any, int]:
        """Log-probabilities of the vocabulary for readings of one length, and the tokens of padding."""
        import torch

        length = len(readings[0][0])
        members = list(readings)
        while len(members) * length < MIN_ROWS:
            members += readings
        with answering(self._model):
            places = to_device(torch.tensor([place for _, place in members]), self._model)
            asked = to_device(torch.tensor([ids for ids, _ in members]), self._model)
            logits = self._logits(asked, places)[: len(readings)]
            return torch.log_softmax(logits.float(), dim=1), (len(members) - len(readings)) * length

    def try_out(self, ids: tuple[int, ...]) -> None:
        """Ask both ways once: a head that looks at other positions too must see them all."""
        import torch

        probe = to_device(torch.tensor([ids] * 2), self._model)
        places = to_device(torch.tensor([0, len(ids) - 1]), self._model)
        with answering(self._model):
            try:
                early = self._logits(probe, places)
            except Exception:  # whatever a head makes of one position, it is not for us to mend
                early = None
            self._early = False
            late = self._logits(probe, places)
        self._early = (
            early is not None and early.shape == late.shape and torch.allclose(early, late, atol=1e-3)
        )

    def _logits(self, ids: Any, places: Any) -> Any:
        rows = len(ids)
        if not self._early:
            return self._model(input_ids=ids).logits[range(rows), places]
        hook = self._model.base_model.register_forward_hook(partial(_narrow, places))
        try:
            return self._model(input_ids=ids).logits[:rows, 0]
        finally:
            hook.remove()


def _narrow(places: Any, _body: Any, _inputs: Any, output: Any) -> Any:
    """Behind the body: only the gaps' hidden states go on to the head."""
    import torch

    hidden = output[0]
    chosen = hidden[range(len(hidden)), places].unsqueeze(1)
    if len(chosen) < FEW_ROWS:
        chosen = torch.cat([chosen, chosen.new_zeros(FEW_ROWS - len(chosen), 1, chosen.shape[-1])])
    if isinstance(output, tuple):
        return (chosen, *output[1:])
    output["last_hidden_state"] = chosen
    return output


class WholeWords(NamedTuple):
    """The whole words of a tokenizer: ids in order, and how each is written."""

    ids: tuple[int, ...]
    words: tuple[str, ...]


def whole_words(tokenizer: Any, size: int) -> WholeWords:
    """Tokens that are a word by themselves: no pieces of words, no special tokens, no punctuation."""
    tokens = tokenizer.convert_ids_to_tokens(list(range(min(size, len(tokenizer)))))
    special = set(tokenizer.all_special_ids) | set(tokenizer.added_tokens_decoder)
    space = next((mark for mark in "Ġ▁" if sum(str(token).startswith(mark) for token in tokens) > 1), "")
    inside = _inner_prefix(tokenizer)
    words: dict[str, int] = {}
    for index, token in enumerate(tokens):
        if index in special or token is None or (inside and token.startswith(inside)):
            continue
        if space and not token.startswith(space):
            continue  # without the mark of a space it goes on with the word before
        word = _from_bytes(token[1:]) if space == "Ġ" else token[len(space) :]
        if WORD.fullmatch(word):
            words.setdefault(word, index)
    if not words:
        raise ResourceError(
            "the model's vocabulary has no whole words",
            "use a masked language model whose tokens are words or pieces of words",
        )
    return WholeWords(tuple(words.values()), tuple(words))


def _from_bytes(token: str) -> str:
    """A token of a byte-level vocabulary as text."""
    codes = _byte_codes()
    return bytes(codes.get(letter, 63) for letter in token).decode("utf-8", errors="replace")


@cache
def _byte_codes() -> dict[str, int]:
    """Such vocabularies write each byte as a character: those that cannot be seen as one from 256 on."""
    seen = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in seen]
    return {chr(byte): byte for byte in seen} | {chr(256 + i): byte for i, byte in enumerate(hidden)}


def _inner_prefix(tokenizer: Any) -> str:
    """What marks a piece that goes on with a word, such as the ## of BERT."""
    try:
        described = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    except AttributeError:  # a tokenizer written in Python
        return "##"
    return str(described.get("continuing_subword_prefix") or "")


def _frame(tokenizer: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The special tokens that the model expects before and after a text."""
    encoded = tokenizer("a", return_special_tokens_mask=True)
    ids, special = encoded["input_ids"], encoded["special_tokens_mask"]
    inner = [i for i, mark in enumerate(special) if not mark]
    if not inner:
        return tuple(ids), ()
    return tuple(ids[: inner[0]]), tuple(ids[inner[-1] + 1 :])


def open_fill_mask(variant: str = "") -> FillMaskOracle:
    """Variant "" or "masked-lm" is the default, "trigram" needs no training; else a folder or hub name.
    Two of them joined by "+" answer together."""
    if both := _two(variant):
        from unfooled.resources.blend import Blend

        return Blend(*(open_fill_mask(part) for part in both))
    if variant == TRIGRAM:
        from unfooled.resources.cloze import TrigramCloze
        from unfooled.resources.trigram import open_model

        return TrigramCloze(open_model())
    if variant in ("", DEFAULT):
        return MaskedLM(*pretrained.load_pretrained("masked", str(store.path(DEFAULT))))
    return MaskedLM(*pretrained.load_pretrained("masked", variant))


def fingerprint(variant: str) -> str:
    """What the model was when a run began."""
    if both := _two(variant):
        return " + ".join(fingerprint(part) for part in both)
    return pretrained.fingerprint("masked", variant or DEFAULT)


def parts(variant: str) -> tuple[str, ...]:
    """The language models that a variant asks: one, or two that answer together."""
    return _two(variant) or (variant or DEFAULT,)


def choices() -> str:
    """What to do where no masked language model is here, from the quickest to the best."""
    first = "" if store.has(TRIGRAM) else f"unfooled resources get {TRIGRAM}, then "
    return (
        "choose a masked language model:\n"
        f"      now: {first}--masked-lm {TRIGRAM} (counts of three words in a row, no training)\n"
        f"      in 20 minutes: unfooled resources build {DEFAULT} --minutes 20 (trained here on reviews)\n"
        "      from the hub: --masked-lm bert-base-uncased (or another name, or a folder)"
    )


def _two(variant: str) -> tuple[str, str] | None:
    first, plus, second = variant.partition("+")
    return (first, second) if plus and first and second and not Path(variant).expanduser().exists() else None
