"""Little padding, and none that a text's neighbours could change."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tiny_models import PIECES, TRANSFORMERS, WORD_KINDS, tiny
from unfooled.batching import UNPADDED, like_length, padded_length, same_length
from unfooled.victims.torch.huggingface import MAX_TOKENS, MAX_TOKENS_RECURRENT, HuggingFaceVictim

KINDS = TRANSFORMERS + WORD_KINDS
LONGEST = 150


def test_widths_follow_from_the_length_alone() -> None:
    assert [padded_length(n, 512) for n in (0, 1, 63, 64)] == [0, 1, 63, 64]
    assert [padded_length(n, 512) for n in (65, 68, 79, 80, 81, 128, 161, 257, 330, 490)] == [
        68, 68, 80, 80, 88, 128, 176, 272, 352, 512
    ]  # fmt: skip
    assert [padded_length(n, 250) for n in (241, 249, 250)] == [250, 250, 250]
    assert [padded_length(n, 0) for n in (65, 300)] == [65, 300]
    widths = [padded_length(n, 10**6) for n in range(5000)]
    assert widths == sorted(widths)
    waste = [(width - n) / width for n, width in enumerate(widths) if n > UNPADDED]
    assert min(waste) == 0
    assert max(waste) < 0.1
    assert np.mean(waste) < 0.05


def test_groups_hold_every_sequence_once_within_the_limit() -> None:
    lengths = np.random.default_rng(0).integers(0, 250, size=700).tolist()
    seen: list[int] = []
    for group, width in like_length(lengths, 2048, most=250):
        assert len(group) * width <= 2048
        assert len({lengths[i] < width for i in group}) == 1  # padded rows, or rows that need none
        assert {padded_length(lengths[i], 250) for i in group} == {width}
        seen += group
    assert sorted(seen) == list(range(700))
    assert list(like_length([300, 300], 100, most=512)) == [([0], 304), ([1], 304)]
    assert list(same_length([66, 70, 66], 2048)) == [[1], [0, 2]]


@cache
def victim_of(kind: str) -> HuggingFaceVictim:
    pytest.importorskip("torch")
    return tiny(kind, positions=LONGEST)


def long_texts(count: int, least: int, most: int) -> list[str]:
    rng = np.random.default_rng(1)
    return [" ".join(rng.choice(PIECES[:15], rng.integers(least, most))) for _ in range(count)]


@pytest.mark.parametrize("kind", KINDS)
def test_long_texts_have_the_same_bits_in_any_company(kind: str) -> None:
    victim = victim_of(kind)
    texts = long_texts(40, 20, 170)
    before = victim.meter.padding
    together = victim.predict(texts)
    assert victim.meter.padding > before
    for size in (1, 3, 11):
        parts = [victim.predict(texts[at : at + size]) for at in range(0, 40, size)]
        assert np.array_equal(np.concatenate(parts), together)
    assert np.array_equal(victim.predict(texts[::-1])[::-1], together)
    exact = HuggingFaceVictim(victim.model, victim.tokenizer)
    exact._padding_is_hidden = False
    assert np.abs(exact.predict(texts) - together).max() < 1e-5
    assert exact.meter.padding == 0
    assert np.ptp(together[:, 0]) > 1e-3


def test_a_tenth_of_the_tokens_at_most_is_padding() -> None:
    victim = tiny("lstm", positions=250)
    victim.predict(long_texts(200, 5, 300))
    assert 0 < victim.meter.padding < 0.1 * (victim.meter.tokens + victim.meter.padding)


def test_long_pairs_are_padded_too() -> None:
    victim = victim_of("bert")
    first = long_texts(12, 40, 60)
    pairs = [(text, text[:100]) for text in first]
    together = victim.predict(pairs)
    assert np.array_equal(np.concatenate([victim.predict([pair]) for pair in pairs]), together)


def test_a_model_that_feels_its_padding_gets_none() -> None:
    torch = pytest.importorskip("torch")
    victim = tiny("bert", positions=LONGEST)
    model = victim.model

    class Average(torch.nn.Module):  # type: ignore[misc, name-defined]
        """Looks at every token, padding or not."""

        config = model.config

        def __init__(self) -> None:
            super().__init__()
            self.embeddings = model.get_input_embeddings()

        def forward(self, input_ids: Any, **_: Any) -> Any:
            return SimpleNamespace(logits=self.embeddings(input_ids).mean(dim=1)[:, :3])

    for other, tokenizer in ((Average(), victim.tokenizer), (model, _without_padding(victim.tokenizer))):
        proud = HuggingFaceVictim(other, tokenizer)
        proud.predict(long_texts(10, 70, 140))
        assert proud.meter.padding == 0


def _without_padding(tokenizer: Any) -> Any:
    import copy

    other = copy.deepcopy(tokenizer)
    other.pad_token = None
    return other


@pytest.mark.processor_only
def test_recurrent_models_take_more_texts_along() -> None:
    assert victim_of("bert").max_tokens == MAX_TOKENS
    assert victim_of("word-cnn").max_tokens == MAX_TOKENS
    assert victim_of("lstm").max_tokens == MAX_TOKENS_RECURRENT
    assert tiny("lstm", max_tokens=77).max_tokens == 77


@pytest.mark.parametrize("width", [1, 2, 3, 6, 7, 13, 30, 31, 50, 63, 64, 127, 150])
@pytest.mark.parametrize("outputs", [1, 2, 3, 6, 16, 17, 33])
def test_a_linear_layer_repeats_to_the_bit(width: int, outputs: int) -> None:
    """Also where rows are few, or not a multiple of what the processor takes at once."""
    torch = pytest.importorskip("torch")
    from unfooled.victims.torch.hooks import steady_linear

    draw = torch.Generator().manual_seed(width * outputs)
    weight = torch.randn(outputs, width, generator=draw)
    bias = torch.randn(outputs, generator=draw)
    rows = torch.randn(70, width, generator=draw)
    together = steady_linear(rows, weight, bias)
    assert torch.allclose(together, rows @ weight.T + bias, atol=1e-4)
    for part in (slice(0, 1), slice(1, 2), slice(5, 7), slice(11, 19), slice(20, 51), slice(1, 70)):
        assert torch.equal(steady_linear(rows[part].clone(), weight, bias), together[part])
        assert torch.equal(steady_linear(rows[part].clone()[None], weight, bias)[0], together[part])
    assert torch.allclose(steady_linear(rows, weight, None), rows @ weight.T, atol=1e-4)


@pytest.mark.parametrize("hidden", [30, 36])
def test_a_transformer_of_odd_width_answers_the_same_alone(hidden: int) -> None:
    """Where a token's numbers are no multiple of 16 bytes, the library's attention may move the last bit."""
    torch = pytest.importorskip("torch")
    transformers: Any = pytest.importorskip("transformers")
    plain = victim_of("bert")
    config = transformers.BertConfig(
        vocab_size=len(plain.tokenizer), hidden_size=hidden, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=21, max_position_embeddings=LONGEST,
    )  # fmt: skip
    torch.manual_seed(0)
    victim = HuggingFaceVictim(
        transformers.BertForSequenceClassification(config).eval(), plain.tokenizer, labels=("a", "b")
    )
    texts = long_texts(60, 1, 6)
    together, alone = victim.predict(texts), np.concatenate([victim.predict([text]) for text in texts])
    if hidden % 4:
        assert np.abs(together - alone).max() < 1e-7  # programs see six decimals
    else:
        assert np.array_equal(together, alone)


@pytest.mark.parametrize("kind", ["bert", "roberta", "lstm"])
def test_tokens_are_those_of_the_library(kind: str) -> None:
    """With and without the short way that passes the positions over."""
    from unfooled.victims.torch.tokens import tokenise

    victim = victim_of(kind)
    tokenizer = victim.tokenizer
    odd = ["", "the [SEP] film <mask>", "Films, don't!", "a 👍🏽 Café", "x\ty\n", "good " * 400, "a " * 30]
    for first, second in ((odd, None), (odd, odd[::-1])):
        for longest in (6, 30, 10_000):
            found, cut = tokenise(tokenizer, first, second, longest)
            library = tokenizer(first, second, truncation=True, max_length=longest)
            whole = tokenizer(first, second, verbose=False)["input_ids"]
            assert [list(ids) for ids, _ in found] == library["input_ids"]
            if "token_type_ids" in library:
                assert [list(kinds) for _, kinds in found] == library["token_type_ids"]
            else:
                assert {kinds for _, kinds in found} == {()}
            assert cut == sum(len(ids) > longest for ids in whole)
            assert tokenise(Own(tokenizer), first, second, longest) == (found, cut)


class Own:
    """A tokenizer of somebody's own, without a compiled half."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def __call__(self, *texts: Any, **options: Any) -> Any:
        return self._tokenizer(*texts, **options)
