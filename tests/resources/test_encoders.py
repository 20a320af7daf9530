"""Sentence encoders: the same vector alone and in any company."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unfooled.errors import ResourceError
from unfooled.resources import store
from unfooled.resources.encoders import Encoder, SentenceEncoder, open_encoder

pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")

TEXTS = [
    "a",
    "",
    "good",
    "the film is fine",
    "the film is bad",
    "a gripping story , told well",
    "one of those films where nothing happens and nobody minds , least of all the people in it",
    "word " * 400,
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sentence-transformers model with random weights, saved as a user would have it."""
    from sentence_transformers import SentenceTransformer

    from tiny_models import save_bert
    from unfooled.resources.encoders import quiet

    path = tmp_path_factory.mktemp("encoder")
    words = sorted({word for text in TEXTS for word in text.split()})
    bert = save_bert(path / "bert", words, hidden=64, positions=64, num_attention_heads=4)
    with quiet():
        SentenceTransformer(str(bert), device="cpu").save(str(path / "model"))
    return path / "model"


@pytest.fixture(scope="module")
def encoder(folder: Path) -> Encoder:
    opened = open_encoder(str(folder))
    assert isinstance(opened, Encoder)
    return opened


def test_vectors_are_those_of_sentence_transformers(encoder: Encoder) -> None:
    expected = encoder.model.encode(TEXTS, normalize_embeddings=True, show_progress_bar=False)
    found = encoder(TEXTS)
    assert np.allclose(np.stack(found), expected, atol=1e-5)
    assert {row.dtype for row in found} == {np.dtype(np.float32)}
    assert np.allclose([np.linalg.norm(row) for row in found], 1, atol=1e-5)


def check_company(encoder: SentenceEncoder, texts: list[str]) -> None:
    alone = {text: encoder([text])[0] for text in texts}
    rng = np.random.default_rng(3)
    for size in (2, 5, 17, 60):
        chosen = [texts[i] for i in rng.integers(len(texts), size=size)]
        for text, row in zip(chosen, encoder(chosen), strict=True):
            assert np.array_equal(row, alone[text])


def test_company_does_not_matter(encoder: Encoder) -> None:
    check_company(encoder, TEXTS)


def test_the_meter_counts_what_was_computed(folder: Path) -> None:
    encoder = open_encoder(str(folder))
    encoder(["good", "bad", "the film is fine"])
    assert (encoder.meter.calls, encoder.meter.items, encoder.meter.tokens) == (2, 3, 3 + 3 + 6)
    assert encoder([]) == []


def test_loading_and_running_print_nothing(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from unfooled.resources import encoders

    encoders._load.cache_clear()
    open_encoder(str(folder))(["good"])
    assert capfd.readouterr() == ("", "")


def test_absent_encoders_are_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNFOOLED_CACHE", str(tmp_path))
    with pytest.raises(ResourceError, match="unfooled resources get minilm"):
        open_encoder("")
    with pytest.raises(ResourceError, match="cannot load the sentence encoder"):
        open_encoder(str(tmp_path))


@pytest.mark.skipif(not store.has("minilm"), reason="needs: unfooled resources get minilm")
def test_the_default_encoder() -> None:
    encoder = open_encoder("minilm")
    fine, bad, story = encoder(["the film is fine", "the movie is good", "stocks fell sharply on monday"])
    assert fine.shape == (384,)
    assert fine @ bad > 0.5 > fine @ story
    check_company(encoder, TEXTS[:-1])


@pytest.mark.skipif(not store.has("minilm"), reason="needs: unfooled resources get minilm")
def test_the_default_encoder_is_bit_for_bit_that_of_sentence_transformers() -> None:
    from unfooled.resources import encoders

    folder = str(store.path("minilm"))
    library, own = encoders.Encoder(encoders._load(folder)), encoders.open_encoder("")
    texts = [
        *TEXTS,
        "[SEP] a [MASK]",
        "Ünïcödé ÉCLAIR 中文 \u200b x\x00y",
        "’“” — …  a\tb\nc",
        "👍🏽 ok",
        "x" * 300,
    ]
    assert isinstance(own, encoders.Encoder)
    assert own._tokenize(texts)["input_ids"] == library._tokenize(texts)["input_ids"]
    assert np.array_equal(np.stack(own(texts)), np.stack(library(texts)))


def test_a_damaged_default_encoder_is_explained(tmp_path: Path) -> None:
    from unfooled.resources import minilm

    with pytest.raises(ResourceError, match="cannot be read") as raised:
        minilm.load(tmp_path)
    assert "unfooled resources get minilm" in str(raised.value)
    (tmp_path / "config.json").write_text('{"model_type": "roberta"}', encoding="utf-8")
    with pytest.raises(ResourceError, match="another kind of model"):
        minilm.load(tmp_path)


def test_static_models_work_too(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    from unfooled.resources.encoders import quiet

    with quiet():  # newer versions have moved it, and say so
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.models import StaticEmbedding

    tokenizer: Any = Tokenizer(models.WordLevel({"[UNK]": 0, "good": 1, "film": 2}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    module = StaticEmbedding(tokenizer, embedding_dim=8)
    SentenceTransformer(modules=[module], device="cpu").save(str(tmp_path / "static"))
    encoder = open_encoder(str(tmp_path / "static"))
    first, second = encoder(["good film", "good"])
    assert np.linalg.norm(first) == pytest.approx(1, abs=1e-5)
    assert np.array_equal(encoder(["good"])[0], second)
