"""Translation models: their tokenizer, how they write, what they say when forced, and their training."""

from __future__ import annotations

import json
import math
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tiny_translation import KINDS, SMALL, model, parallel, victim
from unfooled.core.questions import Asked, Forced, Pulled
from unfooled.errors import DataError, UserError, VictimError
from unfooled.translation.decoding import longest_output, signs_of, write_greedily, write_with_beam
from unfooled.translation.parallel import ParallelText, load_parallel
from unfooled.translation.parallel_rows import collate_pairs, count_words
from unfooled.translation.subwords import build_subword_tokenizer
from unfooled.translation.training import token_loss, train_translator
from unfooled.translation.victim import Translator, TranslatorVictim
from unfooled.victims.loading import load_victim

torch = pytest.importorskip("torch")

TEXTS = ["the red dog sees the cat.", "the big fish eats the bird now.", "the cat now.", "dog."]


def tokens(tokenizer: Any, text: str) -> tuple[int, ...]:
    return tuple(tokenizer(text)["input_ids"])


def step_by_step(made: Any, source: tuple[int, ...], most: int) -> tuple[int, ...]:
    """Greedy writing without a cache and without a batch."""
    signs = signs_of(made)
    written: list[int] = []
    for _ in range(most):
        decoder = torch.tensor([[signs.start, *written]])
        with torch.no_grad():
            scores = made(input_ids=torch.tensor([source]), decoder_input_ids=decoder).logits[0, -1]
        scores[list(signs.never)] = -math.inf
        token = int(scores.argmax())
        if token in signs.ends:
            break
        written.append(token)
    return tuple(written)


def test_the_tokenizer_gives_texts_back_and_ends_them() -> None:
    tokenizer = build_subword_tokenizer(["Two dogs, one cat.", "Zwei Hunde, eine Katze."] * 3, vocabulary=80)
    row = tokenizer("Two cats, one dog.")["input_ids"]
    assert row[-1] == tokenizer.eos_token_id
    assert tokenizer.decode(row, skip_special_tokens=True) == "Two cats, one dog."
    with pytest.raises(DataError, match="next to no text"):
        build_subword_tokenizer(["", ""])


@pytest.mark.parametrize("kind", KINDS)
def test_writing_in_batches_with_a_cache_is_writing_alone_without(kind: str) -> None:
    made, tokenizer = model(kind)
    sources = [tokens(tokenizer, text) for text in TEXTS]
    alone = [step_by_step(made, source, 12) for source in sources]
    assert len(set(alone)) > 1
    signs = signs_of(made)
    for length in {len(source) for source in sources}:
        places = [i for i, source in enumerate(sources) if len(source) == length]
        together = write_greedily(made, signs, [sources[i] for i in places] * 3, 12)
        assert together == [alone[i] for i in places] * 3


def test_greedy_and_beam_agree_with_the_library() -> None:
    made, tokenizer = model("seq2seq-transformer")
    source = tokens(tokenizer, TEXTS[0])
    for beams in (1, 3):
        theirs = made.generate(
            torch.tensor([source]),
            num_beams=beams,
            do_sample=False,
            early_stopping=beams > 1,
            max_new_tokens=15,
            bad_words_ids=[[0]],
        )[0].tolist()
        expected = tuple(token for token in theirs[1:] if token != tokenizer.eos_token_id)
        signs = signs_of(made)
        found = (
            write_greedily(made, signs, [source], 15)
            if beams == 1
            else write_with_beam(made, signs, [source], 15, beams)
        )
        assert found == [expected]


def test_a_beam_goes_on_where_several_signs_may_end_an_output() -> None:
    made, tokenizer = model("seq2seq-transformer")
    source = tokens(tokenizer, TEXTS[0])
    signs = signs_of(made)
    many = signs._replace(ends=(*signs.ends, *range(20, 40)))
    found = write_with_beam(made, many, [source] * 2, 8, 3)
    assert found[0] == found[1]
    assert not set(found[0]) & set(many.ends)


def other_model(kind: str, pieces: int) -> Any:
    transformers: Any = import_module("transformers")
    torch.manual_seed(0)
    ids = {"vocab_size": pieces, "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
    if kind == "t5":
        return transformers.T5ForConditionalGeneration(
            transformers.T5Config(**ids, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2)
        ).eval()
    sides = {
        f"{side}_{name}": size
        for side in ("encoder", "decoder")
        for name, size in (("layers", 1), ("attention_heads", 2), ("ffn_dim", 16))
    }
    config = transformers.BartConfig(
        **ids, **sides, d_model=16, max_position_embeddings=40, bos_token_id=2, forced_eos_token_id=None
    )
    return transformers.BartForConditionalGeneration(config).eval()


@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_other_encoder_decoders_are_victims_too(kind: str, tmp_path: Path) -> None:
    _, tokenizer = model("seq2seq-lstm")
    made = other_model(kind, len(tokenizer))
    made.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    loaded = load_victim(str(tmp_path))
    assert isinstance(loaded, TranslatorVictim)
    assert loaded.capabilities == {"translations", "embeddings", "gradients", "attention"}
    rows = [tokens(tokenizer, text) for text in TEXTS]
    theirs = [
        made.generate(
            torch.tensor([row]),
            num_beams=1,
            do_sample=False,
            max_new_tokens=longest_output(len(row), loaded._longest),
            bad_words_ids=[[0]],
        )[0].tolist()
        for row in rows
    ]
    expected = [tokenizer.decode(row, skip_special_tokens=True).strip() for row in theirs]
    assert loaded.translate(TEXTS) == expected
    assert "the" in loaded.vocabulary()  # from the tokenizer: there is no words.json


@pytest.mark.parametrize("kind", KINDS)
def test_a_beam_of_one_is_greedy_and_a_wider_one_is_no_worse(kind: str) -> None:
    made, tokenizer = model(kind)
    signs = signs_of(made)
    source = tokens(tokenizer, TEXTS[1])
    greedy = write_greedily(made, signs, [source], 14)
    assert write_with_beam(made, signs, [source], 14, 1) == greedy
    wide = write_with_beam(made, signs, [source] * 2, 14, 4, 0.0)
    assert wide[0] == wide[1]
    looked = victim(kind)

    def log_prob(row: tuple[int, ...]) -> float:
        (found,) = looked.token_log_probs([(TEXTS[1], tokenizer.decode(row))])
        return sum(found)

    assert all(len(row) <= 14 for row in (*greedy, *wide))
    if all(len(row) < 14 for row in (greedy[0], wide[0])):
        assert log_prob(wide[0]) >= log_prob(greedy[0]) - 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_padding_is_not_felt(kind: str) -> None:
    made, tokenizer = model(kind)
    row = tokens(tokenizer, TEXTS[2])
    decoder = torch.tensor([[0, 5, 6]])
    with torch.inference_mode():
        plain = made(input_ids=torch.tensor([row]), decoder_input_ids=decoder).logits
        padded = made(
            input_ids=torch.tensor([[*row, 0, 0]]),
            attention_mask=torch.tensor([[1] * len(row) + [0, 0]]),
            decoder_input_ids=decoder,
        ).logits
    assert torch.allclose(plain, padded, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_teacher_forcing_gives_the_log_probabilities_of_tokens_and_keywords(kind: str) -> None:
    looked = victim(kind)
    made, tokenizer = model(kind)
    source, target = tokens(tokenizer, TEXTS[0]), tokens(tokenizer, "der hund.")
    with torch.inference_mode():
        decoder = torch.tensor([[0, *target[:-1]]])
        logs = made(input_ids=torch.tensor([source]), decoder_input_ids=decoder).logits[0].log_softmax(-1)
    (found,) = looked.token_log_probs([(TEXTS[0], "der hund.")])
    assert found == pytest.approx([float(logs[i, t]) for i, t in enumerate(target)], abs=2e-4)
    token = tokenizer.convert_ids_to_tokens(list(tokens(tokenizer, "der")))[0]
    assert token == "▁der"
    piece = tokenizer.convert_tokens_to_ids(token)
    (near,) = looked.nearness([Forced(TEXTS[0], "der hund.", "der")])
    assert near == pytest.approx(float(logs[:, piece].max()), abs=2e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_keyword_of_several_pieces_is_followed_from_the_best_place_of_its_first(kind: str) -> None:
    looked = victim(kind)
    made, tokenizer = model(kind)
    keyword = "derhundkat"
    pieces = tokens(tokenizer, keyword)[:-1]
    assert len(pieces) > 1
    source, along = tokens(tokenizer, TEXTS[0]), tokens(tokenizer, "katze.")[:-1]

    def logs(prefix: tuple[int, ...]) -> Any:
        with torch.inference_mode():
            decoder = torch.tensor([[0, *prefix]])
            return made(input_ids=torch.tensor([source]), decoder_input_ids=decoder).logits[0].log_softmax(-1)

    place = int(logs(along)[:, pieces[0]].argmax())
    forced = logs((*along[:place], *pieces[:-1]))
    expected = sum(float(forced[place + i, piece]) for i, piece in enumerate(pieces))
    (near,) = looked.nearness([Forced(TEXTS[0], "katze.", keyword)])
    assert near == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_points_to_words_that_bring_the_keyword_nearer(kind: str) -> None:
    looked = victim(kind)
    made, tokenizer = model(kind)
    table = made.get_input_embeddings().weight
    words, _ = looked._word_table()
    item = Pulled("the dog.", 0, 3, "der hund.", "katze", len(words))
    (ranked,) = looked.pulls([item])
    assert sorted(ranked) == sorted(words)
    assert looked.pulls([item, item._replace(most=2)]) == [ranked, ranked[:2]]
    # By hand: a tiny step of the word's vector towards each candidate, and what the score makes of it.
    source = tokens(tokenizer, "the dog.")
    (place,) = [i for i, token in enumerate(source) if token == tokenizer.convert_tokens_to_ids("▁the")]
    along, piece = tokens(tokenizer, "der hund.")[:-1], looked._pieces("katze")[0]

    def score(shift: Any) -> float:
        def moved(_module: Any, args: Any, output: Any) -> Any:
            output = output.clone()
            if args[0].tolist() == [list(source)]:
                output[0, place] += shift
            return output

        handle = made.get_input_embeddings().register_forward_hook(moved)
        try:
            with torch.no_grad():
                decoder = torch.tensor([[0, *along]])
                logits = made(input_ids=torch.tensor([source]), decoder_input_ids=decoder).logits[0]
            return float(logits.double().log_softmax(-1)[:, piece].max())
        finally:
            handle.remove()

    best, worst = (table[tokenizer.convert_tokens_to_ids(f"▁{w}")].detach() for w in (ranked[0], ranked[-1]))
    assert score(1e-2 * best) > score(1e-2 * worst)


@pytest.mark.parametrize("kind", KINDS)
def test_answers_do_not_depend_on_the_batch(kind: str) -> None:
    looked = victim(kind)
    asked = [Asked(text, "hund") for text in TEXTS]
    together = looked.write(asked)
    assert together == [looked.write([question])[0] for question in asked]
    assert looked.write(asked[::-1])[::-1] == together
    assert isinstance(looked, Translator)
    assert looked.capabilities == {"translations", "embeddings", "gradients", "attention"}
    vectors = looked.sentence_vectors(TEXTS)
    assert vectors.shape == (len(TEXTS), 16)
    with pytest.raises(VictimError, match="knows no classes"):
        looked.predict(TEXTS)
    with pytest.raises(VictimError, match="cannot write the keyword"):
        looked.write([Asked("the dog.", "水")])


@pytest.mark.parametrize("kind", KINDS)
def test_attention_rows_belong_to_written_tokens_and_sum_to_one(kind: str) -> None:
    (found,) = victim(kind).attention([(TEXTS[0], "der hund.")])
    assert found.weights.shape == (len(found.written), len(found.read))
    assert found.weights.sum(axis=1) == pytest.approx([1.0] * len(found.written), abs=1e-4)
    assert (found.read[0], found.written[0], found.written[-1]) == ("the", "der", "</s>")


@pytest.mark.parametrize("kind", KINDS)
def test_training_writes_a_folder_that_loads_and_translates(kind: str, tmp_path: Path) -> None:
    options = SMALL | {"epochs": 4, "lr": 0.02, "hidden": 32, "smoothing": 0.0}
    trained = train_translator(kind, parallel(320), tmp_path / "m", valid=parallel(8, 5), options=options)
    history = trained.metrics["history"]
    assert history[-1]["loss"] < history[0]["loss"] / 1.3
    assert trained.metrics["valid"]["bleu"] == max(epoch["bleu"] for epoch in history) > 3
    words = json.loads((tmp_path / "m" / "words.json").read_text(encoding="utf-8"))
    assert words["source"][0] == ["the", 640]
    assert words["target"][0] == ["der", 640]
    loaded = load_victim(str(tmp_path / "m"))
    assert isinstance(loaded, TranslatorVictim)
    assert loaded.vocabulary()[0] == "the"
    assert loaded.target_words()[0] == "der"
    assert loaded.fingerprint() == load_victim(str(tmp_path / "m")).fingerprint()
    assert loaded.fingerprint() != load_victim(str(tmp_path / "m"), beams=2).fingerprint()
    output = loaded.translate(["the red dog sees the cat."])[0]
    assert output.startswith("der")
    with pytest.raises(UserError, match="already holds a trained model"):
        train_translator(kind, parallel(320), tmp_path / "m", valid=parallel(8, 5), options=options)
    again = train_translator(
        kind, parallel(320), tmp_path / "m", valid=parallel(8, 5), options=options, resume=True
    )
    assert again.metrics == trained.metrics


def test_minutes_end_a_training_and_leave_a_model(tmp_path: Path) -> None:
    options = SMALL | {"epochs": 1000, "minutes": 0.01}
    trained = train_translator("seq2seq-lstm", parallel(64), tmp_path / "m", options=options)
    assert trained.metrics["epochs"] < 1000
    assert load_victim(str(tmp_path / "m")).name == "m"
    # More minutes are no other training: one that was stopped may get them.
    more = options | {"minutes": 5}
    train_translator("seq2seq-lstm", parallel(64), tmp_path / "m", options=more, resume=True)


@pytest.mark.processor_only
def test_padding_counts_for_nothing_in_the_loss() -> None:
    made, _ = model("seq2seq-lstm")
    rows = [{"input_ids": [5, 6, 1], "labels": [7, 8, 9, 1]}, {"input_ids": [5, 1], "labels": [7, 1]}]
    with torch.inference_mode():
        both = float(token_loss(made, collate_pairs(rows, 0, 0), 0.0))
        single = [float(token_loss(made, collate_pairs([row], 0, 0), 0.0)) for row in rows]
    assert both == pytest.approx((4 * single[0] + 2 * single[1]) / 6, rel=1e-4)


def test_words_are_counted_in_their_usual_spelling() -> None:
    assert count_words(["Der Hund. der Hund", "der Weg weg Weg"]) == [("Weg", 3), ("der", 3), ("Hund", 2)]
    assert longest_output(5, 100) == 20
    assert longest_output(500, 100) == 100


def test_parallel_text_comes_from_files_tables_and_folders(tmp_path: Path) -> None:
    (tmp_path / "train.en").write_text("a b\n\nc\n", encoding="utf-8")
    (tmp_path / "train.de").write_text("x\ny\nz\n", encoding="utf-8")
    data = load_parallel(f"{tmp_path / 'train.en'},{tmp_path / 'train.de'}")
    rows = list(data)
    assert [row.reference for row in rows] == ["x", "", "z"]
    assert rows[0].content == (("en", "a b"),)
    assert "line 2" in rows[1].problem
    folder = load_parallel(tmp_path, columns=["de", "en"], split="train")
    assert next(iter(folder)).content == (("de", "x"),)
    (tmp_path / "t.csv").write_text("src,tgt\nhello,hallo\n", encoding="utf-8")
    assert next(iter(load_parallel(tmp_path / "t.csv", columns=["src", "tgt"]))).reference == "hallo"
    alone = load_parallel(tmp_path / "train.en")
    assert next(iter(alone)).reference == ""
    few = load_parallel(tmp_path, columns=["en", "de"], split="train", sample=2, seed=3)
    assert [row.key for row in few] == [few.nth_key(0), few.nth_key(1)]
    assert few.fingerprint() != folder.fingerprint()
    assert ParallelText.from_pairs(["a", "b"]).aligned(("x",)).labels == ()


def test_what_is_wrong_with_parallel_text_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("a\nb\n", encoding="utf-8")
    (tmp_path / "a.de").write_text("x\n", encoding="utf-8")
    with pytest.raises(DataError, match="ends after 1 lines"):
        load_parallel(f"{tmp_path / 'a.en'},{tmp_path / 'a.de'}")
    with pytest.raises(DataError, match="no such file"):
        load_parallel(tmp_path / "b.en")
    with pytest.raises(DataError, match="from which language"):
        load_parallel(tmp_path, split="a")
    with pytest.raises(DataError, match="no split 'test'"):
        load_parallel(tmp_path, columns=["en", "de"])
    (tmp_path / "t.csv").write_text("one,two,three\n1,2,3\n", encoding="utf-8")
    with pytest.raises(DataError, match="which the target"):
        load_parallel(tmp_path / "t.csv")
    with pytest.raises(DataError, match="no translations"):
        train_translator("seq2seq-lstm", load_parallel(tmp_path / "a.en"), tmp_path / "m")


def test_a_translator_without_some_of_its_weights_gets_the_same_words_as_a_classifier(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.torch")
    made, tokenizer = model("seq2seq-lstm")
    made.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    weights = safetensors.load_file(tmp_path / "model.safetensors")
    gone = next(name for name in weights if "decoder" in name)
    del weights[gone]
    safetensors.save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(VictimError, match="never trained as a translation model") as refused:
        load_victim(f"seq2seq:{tmp_path}")
    assert "fine-tune it first" in str(refused.value)
