"""Texts of several lengths in one pass: the bits of the ordinary passes, and only where these are sure."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from tiny_models import PIECES, tiny, victim_of  # noqa: E402
from unfooled.victims.torch import huggingface, packed  # noqa: E402
from unfooled.victims.torch.packed import is_packable, packs_exactly  # noqa: E402

here = pytest.mark.skipif(
    platform.machine().lower() not in ("x86_64", "amd64") or not torch.backends.mkldnn.is_available(),
    reason="torch has oneDNN for x86-64 only",
)
WORDS = [piece for piece in PIECES if piece.isalpha()]


def apart(victim: Any, texts: list[Any]) -> Any:
    """Each text in a pass of its own, by the model itself."""
    return np.vstack([victim.raw_logits([text], victim._run_here) for text in texts])


@here
@settings(deadline=None)
@given(st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=25), min_size=1, max_size=12))
def test_the_answers_are_those_of_passes_of_their_own(words: list[list[str]]) -> None:
    victim = victim_of("bert")
    texts = [" ".join(text) for text in words]
    assert np.array_equal(victim.raw_logits(texts), apart(victim, texts))


@here
def test_pairs_as_well() -> None:
    victim = tiny("bert")
    texts = [(" ".join(WORDS[:count]), " ".join(WORDS[count : 2 * count])) for count in range(1, 5)]
    assert np.array_equal(victim.raw_logits(texts), apart(victim, texts))
    assert victim.meter.calls == 1 + len(texts)


@here
def test_different_lengths_are_one_pass_without_padding_and_long_texts_another() -> None:
    victim = tiny("bert", positions=200)
    texts = [" ".join([WORDS[0]] * count) for count in (1, 2, 3, 100)]
    found = victim.raw_logits(texts)
    assert victim.meter.calls == 2
    assert victim.meter.tokens == 1 + 2 + 3 + 100 + 2 * len(texts)
    assert np.array_equal(found, apart(victim, texts))


@here
def test_a_pass_holds_no_more_tokens_than_it_may() -> None:
    victim = tiny("bert")
    victim.max_tokens = 12
    texts = [" ".join([WORDS[0]] * count) for count in (1, 2, 3, 4, 5, 6)]
    found = victim.raw_logits(texts)
    assert victim.meter.largest <= 12
    assert np.array_equal(found, apart(victim, texts))


@here
def test_a_full_memory_halves_the_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    victim = tiny("bert")
    texts = [" ".join([WORDS[0]] * count) for count in (1, 2, 3, 4, 5, 6)]
    expected = victim.raw_logits(texts)

    def little_memory(model: Any, given: Any) -> Any:
        if len(given) > 3:
            raise torch.OutOfMemoryError("out of memory")
        return packed.packed_logits(model, given)

    monkeypatch.setattr(huggingface, "packed_logits", little_memory)
    assert np.array_equal(victim.raw_logits(texts), expected)
    assert victim.meter.out_of_memory == 1


@here
def test_who_listens_to_a_module_gets_its_ordinary_inputs() -> None:
    victim = tiny("bert")
    seen: list[Any] = []
    handle = victim.model.bert.encoder.layer[0].register_forward_hook(
        lambda _module, inputs, _output: seen.append(inputs[0].shape[:2])
    )
    victim.raw_logits([WORDS[0], f"{WORDS[0]} {WORDS[1]}"])
    handle.remove()
    assert sorted(map(tuple, seen)) == [(1, 3), (1, 4)]
    assert is_packable(victim.model)
    victim.model.bert.forward = victim.model.bert.forward
    assert not is_packable(victim.model)


@pytest.mark.parametrize("kind", ["roberta", "distilbert", "lstm"])
def test_other_families_are_not_packed(kind: str) -> None:
    assert not is_packable(victim_of(kind).model)


@here
def test_a_model_is_tried_out_before_it_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny("bert").model
    assert packs_exactly(model)
    exact = packed.packed_logits
    monkeypatch.setattr(packed, "packed_logits", lambda *given: exact(*given) + 1e-6)
    assert not packs_exactly(model)
    model.train()
    assert not is_packable(model)
