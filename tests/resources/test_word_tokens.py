"""What word models read with: the vocabulary made from texts, and the vectors that come from elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unfooled.errors import DataError, ResourceError
from unfooled.resources import store
from unfooled.resources.vectors import load_word_vectors, read_strings
from unfooled.text import Text
from unfooled.victims.torch.word_models.vocabulary import build_word_tokenizer
from word_texts import CORPUS, PAIRS, TEXTS

transformers = pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return build_word_tokenizer(CORPUS, min_count=1)


# -- vocabulary ----------------------------------------------------------------------------------------


def tokens(tokenizer: Any, *texts: str) -> list[str]:
    found: list[str] = tokenizer.convert_ids_to_tokens(tokenizer(*texts)["input_ids"])
    return found


def in_order(tokenizer: Any) -> list[str]:
    ids: dict[str, int] = tokenizer.get_vocab()
    return sorted(ids, key=lambda word: ids[word])


def test_the_order_is_count_then_alphabet() -> None:
    made = build_word_tokenizer(["b a c", "C b", "d e"], min_count=1)
    words = in_order(made)
    assert words == ["[PAD]", "[UNK]", "[SEP]", "b", "c", "a", "d", "e"]
    assert sorted(build_word_tokenizer(["b a c", "C b", "d e"]).get_vocab()) == sorted(
        ["[PAD]", "[UNK]", "[SEP]", "b", "c"]
    )
    few = build_word_tokenizer(["b a c", "C b", "d e"], min_count=1, max_words=3)
    assert words[:6] == in_order(few)
    again = build_word_tokenizer(iter(["d e", "C b", "b a c"]), min_count=1)
    assert again.get_vocab() == made.get_vocab()
    with pytest.raises(DataError, match="no word that occurs 2 times"):
        build_word_tokenizer(["one text of single words"])


def test_words_contractions_and_punctuation(tokenizer: Any) -> None:
    assert tokens(tokenizer, "It’s FUN, isn't it?") == ["it", "'s", "fun", "is", "n't", "it"]
    odd = build_word_tokenizer(["ca n't wo n't i'm o'brien's rock'n'roll don'ts it't n't 'tis"], min_count=1)
    words = ["ca", "n't", "wo", "n't", "i", "'m", "o", "brien", "'s", "rock", "n", "roll"]
    assert tokens(odd, "Can't won’t I'm O'Brien's rock'n'roll") == words
    assert tokens(odd, "don'ts it't n't 'tis") == ["don", "ts", "it", "t", "n't", "tis"]
    assert tokens(tokenizer, "the film", "is good") == ["the", "film", "[SEP]", "is", "good"]
    assert tokens(tokenizer, "a [SEP] zebra [PAD]") == ["a", "[UNK]", "zebra", "[UNK]"]
    assert tokens(tokenizer, " ?! ") == []
    assert (tokenizer.pad_token_id, tokenizer.unk_token_id, tokenizer.sep_token_id) == (0, 1, 2)
    kept = build_word_tokenizer(["good , well-made !", "good 😀 😀❤️"], min_count=1, remove_punctuation=False)
    assert tokens(kept, "good,😀well-made!") == ["good", ",", "😀", "well", "-", "made", "!"]
    assert tokens(build_word_tokenizer(["good 😀 😀❤️"], min_count=1), "😀, ❤️!") == ["😀", "❤"]


def test_a_bert_reads_marks_and_segments(tmp_path: Path) -> None:
    made = build_word_tokenizer(CORPUS, min_count=1, bert=True)
    assert tokens(made, "the film") == ["[CLS]", "the", "film", "[SEP]"]
    both = made("the film", "good")
    assert made.convert_ids_to_tokens(both["input_ids"]) == ["[CLS]", "the", "film", "[SEP]", "good", "[SEP]"]
    assert both["token_type_ids"] == [0, 0, 0, 0, 1, 1]
    assert [made.convert_tokens_to_ids(name) for name in ("[PAD]", "[UNK]", "[SEP]", "[CLS]")] == [0, 1, 2, 3]


def test_long_texts_are_cut() -> None:
    made = build_word_tokenizer(CORPUS, min_count=1, max_length=4)
    assert made.model_max_length == 4
    assert len(made("the film was good and fun", truncation=True)["input_ids"]) == 4
    assert tokens(made, "the film") == ["the", "film"]
    assert made(["the film was good"], ["it is great"], truncation=True)["input_ids"][0].count(2) == 1


@settings(max_examples=200, deadline=None)
@given(
    st.text(
        st.sampled_from("aZéİ½ßn'’ts-_*@ \t.,!?😀❤️中x9\u0301[]") | st.characters(codec="utf-8"), max_size=25
    )
)
def test_offsets_point_at_the_words_of_the_text(text: str) -> None:
    made = _ANY_TOKENIZER
    found = made(text, return_offsets_mapping=True)["offset_mapping"]
    ends = [0, *(end for _, end in found)]
    for (start, end), before in zip(found, ends, strict=False):
        assert before <= start < end <= len(text)
        assert not text[start:end].isspace()
    read = {at for start, end in found for at in range(start, end)}
    for start, word in zip(Text(text).starts, Text(text).words, strict=True):
        if word.isascii():
            assert any(at in read for at in range(start, start + len(word))), word


_ANY_TOKENIZER = build_word_tokenizer(["a a"])


def test_a_saved_tokenizer_reads_the_same(tokenizer: Any, tmp_path: Path) -> None:
    for name, made in {"plain": tokenizer, "bert": build_word_tokenizer(CORPUS, bert=True)}.items():
        folder = tmp_path / name
        made.save_pretrained(folder)
        kind = "unfooled-words" if name == "plain" else "bert"
        (folder / "config.json").write_text(json.dumps({"model_type": kind}), encoding="utf-8")
        from unfooled.victims.torch.word_models import register

        register()
        again = transformers.AutoTokenizer.from_pretrained(folder)
        odd = [*TEXTS, "[SEP] don’t [CLS]", "[PAD] x_y"]
        for options in ({}, {"padding": True, "truncation": True}):
            assert again(odd, **options).data == made(odd, **options).data
        pairs = ([a for a, _ in PAIRS], [b for _, b in PAIRS])
        assert again(*pairs).data == made(*pairs).data
        assert again.model_max_length == 250


# -- word vectors --------------------------------------------------------------------------------------


def test_vectors_from_a_file_and_from_nowhere(tmp_path: Path) -> None:
    path = tmp_path / "tiny.txt"
    path.write_text("good 1 2\nbad 3 4\n", encoding="utf-8")
    words, matrix = load_word_vectors(path)
    assert (words, matrix.tolist()) == (["good", "bad"], [[1, 2], [3, 4]])
    with pytest.raises(ResourceError, match="no word vectors called 'word2vec'"):
        load_word_vectors("word2vec")


def test_vectors_that_are_not_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNFOOLED_CACHE", str(tmp_path))
    with pytest.raises(ResourceError, match="unfooled resources get glove-6b-50d"):
        load_word_vectors("glove-6b-50d")


@pytest.mark.skipif(not store.has("glove-6b-50d"), reason="needs: unfooled resources get glove-6b-50d")
def test_glove() -> None:
    words, matrix = load_word_vectors("glove-6b-50d")
    assert (len(words), matrix.shape, str(matrix.dtype)) == (400_000, (400_000, 50), "float32")
    assert (words[:5], words[-1]) == (["the", ",", ".", "of", "to"], "sandberger")
    assert len(set(words)) == len(words)
    row = {word: matrix[words.index(word)] for word in ("good", "great", "tuesday")}
    near, far = row["good"] @ row["great"], row["good"] @ row["tuesday"]
    assert near > 1.3 * far
    assert {"n't", "'s"} <= set(words)


@pytest.mark.parametrize(
    "options", [{}, {"compression": "none"}, {"use_dictionary": False}, {"row_group_size": 77}]
)
def test_strings_from_parquet(tmp_path: Path, options: dict[str, Any]) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    rng = np.random.default_rng(0)
    words = ["", "é", "x" * 300, *(f"word{number}" for number in rng.integers(0, 900, 3000)), *["same"] * 500]
    path = tmp_path / "words.parquet"
    parquet.write_table(pyarrow.table({"index": words}), path, **options)
    assert read_strings(path) == words
    content = path.read_bytes()
    for broken in (content[:-9], content[: len(content) // 2], b"PAR1PAR1", b"PAR1" + bytes(40) + b"PAR1"):
        path.write_bytes(broken)
        with pytest.raises(ResourceError, match="cannot be read as a Parquet file"):
            read_strings(path)
    for table in ({"a": words, "b": words}, {"a": [1, 2]}, {"a": ["x", None]}):
        parquet.write_table(pyarrow.table(table), path)
        with pytest.raises(ResourceError, match="cannot be read as a Parquet file"):
            read_strings(path)


def test_a_damaged_parquet_file_is_refused_in_words(tmp_path: Path) -> None:
    """Any byte may be wrong, also those that promise how much there is: no other error, bounded memory."""
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    path = tmp_path / "words.parquet"
    parquet.write_table(pyarrow.table({"index": [f"word{number % 7}" for number in range(50)]}), path)
    content = path.read_bytes()
    refused = 0
    for at in range(4, len(content) - 4):
        for new in (0x00, 0x7F, 0x97, 0xFF):
            path.write_bytes(content[:at] + bytes([new]) + content[at + 1 :])
            try:
                assert all(isinstance(word, str) for word in read_strings(path))
            except ResourceError as error:
                assert error.remedy  # noqa: PT017
                refused += 1
    assert refused > 100
