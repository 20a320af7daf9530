"""Several lengths in one pass: the same bits as a pass of each length, or no such pass at all."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from tiny_models import tiny
from unfooled.batching import MIXED, mixed_length
from unfooled.resources import minilm
from unfooled.resources.encoders import Encoder
from unfooled.victims.torch.packed import PackedPasses

torch = pytest.importorskip("torch")

TEXTS = [
    "a film",
    "the film is good and very long and good and long again",
    "bad",
    "a dull plot , bad cast",
    "great great fun",
    "very very good",
    "the film was good",
    "not the film",
    "",
]


@pytest.mark.processor_only
@pytest.mark.parametrize("kind", ["bert", "roberta", "electra"])
def test_a_pass_of_many_lengths_gives_every_text_the_bits_of_its_own_pass(kind: str) -> None:
    together, alone = tiny(kind, positions=40), tiny(kind, positions=40, max_tokens=1)
    found = together.raw_logits(TEXTS)
    assert np.array_equal(found, np.concatenate([alone.raw_logits([text]) for text in TEXTS]))
    assert together.meter.calls < len({len(ids) for ids, _ in together.tokens(TEXTS)[0]})
    assert together.meter.padding == 0


@pytest.mark.parametrize("kind", ["gpt2", "lstm", "modernbert"])
def test_a_model_that_cannot_be_packed_answers_as_before(kind: str) -> None:
    victim = tiny(kind, positions=40)
    (specimen,), _ = victim.tokens([TEXTS[1]])
    assert PackedPasses.of(victim.model, specimen) is None
    alone = tiny(kind, positions=40, max_tokens=1)
    expected = np.concatenate([alone.raw_logits([text]) for text in TEXTS])
    assert np.allclose(victim.raw_logits(TEXTS), expected, atol=1e-6)


@pytest.mark.processor_only
def test_a_model_that_looks_at_the_place_in_the_pass_is_found_out() -> None:
    victim = tiny("bert", positions=400)
    embeddings = victim.model.base_model.embeddings
    ordinary = embeddings.forward

    def counting(*args: Any, **kwargs: Any) -> Any:
        states = ordinary(*args, **kwargs)
        return states + torch.linspace(0, 1, 400)[: states.shape[1], None]

    embeddings.forward = counting
    (specimen,), _ = victim.tokens([TEXTS[1]])
    assert PackedPasses.of(victim.model, specimen) is None


def test_pairs_share_passes_as_well() -> None:
    pairs = list(zip(TEXTS, reversed(TEXTS), strict=True))
    together, alone = tiny("bert", positions=60), tiny("bert", positions=60, max_tokens=1)
    expected = np.concatenate([alone.raw_logits([pair]) for pair in pairs])
    assert np.array_equal(together.raw_logits(pairs), expected)


@pytest.mark.processor_only
def test_a_pass_of_many_lengths_that_does_not_fit_comes_again_in_halves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    victim = tiny("bert", positions=40)
    expected = tiny("bert", positions=40).raw_logits(TEXTS)
    ordinary = PackedPasses.logits
    asked: list[int] = []

    def small(self: PackedPasses, tokenised: Any) -> Any:
        asked.append(len(tokenised))
        if len(tokenised) > 4:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return ordinary(self, tokenised)

    assert victim._packs() is not None
    monkeypatch.setattr(PackedPasses, "logits", small)
    assert np.array_equal(victim.raw_logits(TEXTS), expected)
    assert asked[0] > 4
    assert victim.meter.out_of_memory > 0


def test_groups_share_a_pass_only_where_they_do_not_fill_one() -> None:
    lengths = [5] * 10 + [4, 4, 3, 70]
    groups = list(mixed_length(lengths, 50, most=100, least=25))
    assert sorted(i for members, _ in groups for i in members) == list(range(len(lengths)))
    assert (list(range(10)), 5) in groups
    assert ([10, 11, 12], MIXED) in groups
    assert next(width for members, width in groups if 13 in members) == 72


class Words:
    """One token per letter."""

    def encode_batch_fast(self, texts: list[str]) -> list[Any]:
        encoding = type("Encoding", (), {})
        found = []
        for text in texts:
            found.append(encoding())
            found[-1].ids = [1, *(3 + ord(letter) % 40 for letter in text), 2]
        return found


def small_encoder() -> minilm.MiniLM:
    """Two random layers with the names of MiniLM's weights."""
    made = torch.Generator().manual_seed(3)

    def some(*shape: int) -> Any:
        return torch.randn(*shape, generator=made) / 4

    weights = {
        f"embeddings.{name}_embeddings.weight": some(60, 48) for name in ("word", "position", "token_type")
    }
    norms = ["embeddings.LayerNorm"]
    for layer in range(2):
        prefix = f"encoder.layer.{layer}"
        own = [f"{prefix}.attention.self.{part}" for part in ("query", "key", "value")]
        for name in [*own, f"{prefix}.attention.output.dense"]:
            weights |= {f"{name}.weight": some(48, 48), f"{name}.bias": some(48)}
        weights |= {
            f"{prefix}.intermediate.dense.weight": some(96, 48),
            f"{prefix}.intermediate.dense.bias": some(96),
        }
        weights |= {f"{prefix}.output.dense.weight": some(48, 96), f"{prefix}.output.dense.bias": some(48)}
        norms += [f"{prefix}.attention.output.LayerNorm", f"{prefix}.output.LayerNorm"]
    for name in norms:
        weights |= {f"{name}.weight": some(48) + 1, f"{name}.bias": some(48)}
    config = {"num_attention_heads": 4, "num_hidden_layers": 2, "layer_norm_eps": 1e-12}
    return minilm.MiniLM(weights, config, Words(), 50)


@pytest.mark.processor_only
def test_the_encoder_gives_every_text_the_bits_of_its_own_pass() -> None:
    together, alone = Encoder(small_encoder()), Encoder(small_encoder(), max_tokens=1)
    found = together(TEXTS)
    assert np.array_equal(found, [alone([text])[0] for text in TEXTS])
    assert together.meter.calls == 1


@pytest.mark.processor_only
def test_a_text_may_hold_the_name_of_the_padding() -> None:
    texts = ["the <pad> film <pad> is good", "the film", "a film is very good and dull"]
    together, alone = tiny("roberta", positions=60), tiny("roberta", positions=60, max_tokens=1)
    assert any(together.padding_id in ids for ids, _ in together.tokens(texts)[0])
    expected = np.concatenate([alone.raw_logits([text]) for text in texts])
    assert np.array_equal(together.raw_logits(texts), expected)
    assert together._packs() is not None


@pytest.mark.processor_only
def test_a_model_that_cannot_count_to_the_end_of_a_pass_is_found_out() -> None:
    victim = tiny("bert", positions=400)
    embeddings = victim.model.base_model.embeddings
    short = torch.zeros(400, 1)

    class Counting(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            states = embeddings(*args, **kwargs)
            return states + short[: states.shape[1]].expand(states.shape[1], 1)

    victim.model.base_model.embeddings = Counting()
    texts = [" ".join(["film"] * length) for length in range(40)]
    assert len(victim.raw_logits(texts)) == len(texts)
    assert victim._packs() is None


@pytest.mark.processor_only
def test_whoever_listens_to_a_module_hears_ordinary_passes() -> None:
    victim = tiny("bert", positions=40)
    expected = victim.raw_logits(TEXTS)
    assert victim._packs() is not None
    shapes: list[tuple[int, ...]] = []
    handle = victim.model.base_model.embeddings.register_forward_hook(
        lambda module, args, found: shapes.append(tuple(found.shape))
    )
    assert np.array_equal(victim.raw_logits(TEXTS), expected)
    handle.remove()
    assert sum(texts for texts, _, _ in shapes) == len(victim.tokens(TEXTS)[0])
    assert victim._packs() is not None


@pytest.mark.processor_only
def test_several_threads_may_ask_one_model() -> None:
    victim = tiny("bert", positions=40)
    packed = victim._packs()
    assert packed is not None
    blocks = [
        sorted(victim.tokens(texts)[0], key=lambda tokens: len(tokens[0])) for texts in (TEXTS, TEXTS[:5])
    ]
    expected = [packed.logits(block) for block in blocks]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(packed.logits, blocks * 20))
    assert all(torch.equal(one, other) for one, other in zip(found, expected * 20, strict=True))
