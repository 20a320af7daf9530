"""Hugging Face models, made here from nothing: a tiny BERT, RoBERTa and GPT-2 with a WordPiece vocabulary."""

from __future__ import annotations

import json
import logging
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tiny_models import SPECIAL, enlarge, widths, wordpiece
from unfooled.errors import VictimError
from unfooled.victims.checks import check_victim
from unfooled.victims.loading import load_victim
from unfooled.victims.preflight import preflight
from unfooled.victims.torch.huggingface import HuggingFaceVictim, longest_input

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")


WORDS = ["the", "a", "film", "movie", "is", "was", "good", "great", "bad", "dull", "and", "not", "very"]
WORDS += ["fun", "plot", "cast", ".", ",", "!", "##s"]
TEXTS = [
    "the film is good",
    "a dull plot",
    "Films, very bad!",
    "",
    "great great fun",
    "zebra",
    "the film was good",
]


def tokenizer() -> Any:
    return wordpiece(WORDS, mask_token="[MASK]")


def config(kind: str = "bert", **changes: Any) -> Any:
    size: dict[str, Any] = {"vocab_size": len(SPECIAL + WORDS), "pad_token_id": 0, "num_labels": 2}
    if kind == "gpt2":
        made = transformers.GPT2Config(n_embd=32, n_layer=2, n_head=2, n_positions=20, **{**size, **changes})
    else:
        size |= widths(32) | {"max_position_embeddings": 20}
        family = {"bert": transformers.BertConfig, "roberta": transformers.RobertaConfig}[kind]
        made = family(**{**size, **changes})
    return made


def save(folder: Path, kind: str = "bert", **changes: Any) -> Path:
    torch.manual_seed(7)
    model = transformers.AutoModelForSequenceClassification.from_config(config(kind, **changes))
    enlarge(model, 8.0)  # so that texts differ by more than the tolerance
    model.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("models") / "tiny-bert")


def by_hand(folder: Path, text: Any) -> Any:
    """One text at a time, the way the documentation of transformers does it."""
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    names = transformers.AutoTokenizer.from_pretrained(folder)
    parts = (text,) if isinstance(text, str) else text
    with torch.inference_mode():
        return torch.softmax(model(**names(*parts, return_tensors="pt")).logits.double(), -1)[0].numpy()


@pytest.mark.processor_only
@pytest.mark.parametrize("kind", ["bert", "roberta", "gpt2"])
def test_the_numbers_are_those_of_the_library(tmp_path: Path, kind: str) -> None:
    changes = {"type_vocab_size": 2} if kind == "roberta" else {}
    folder = save(tmp_path / kind, kind, **changes)
    victim = load_victim(f"hf:{folder}")
    assert victim.labels == ("LABEL_0", "LABEL_1")
    assert victim.capabilities == {"probabilities", "gradients", "attention", "embeddings"}
    texts = [text for text in TEXTS if kind != "gpt2" or text]
    expected = np.stack([by_hand(folder, text) for text in texts])
    assert np.abs(victim.predict(texts) - expected).max() < 1e-6
    assert np.ptp(expected[:, 0]) > 0.01
    check_victim(victim, texts)


@pytest.mark.processor_only
def test_pairs(bert: Path) -> None:
    victim = load_victim(str(bert))
    pairs = [("the film", "is good"), ("the film is", "good"), ("a", "very dull plot")]
    expected = np.stack([by_hand(bert, pair) for pair in pairs])
    assert np.abs(victim.predict(pairs) - expected).max() < 1e-6
    assert np.abs(expected[0] - expected[1]).max() > 1e-4
    check_victim(victim, pairs)
    with pytest.raises(VictimError, match="neither all single nor all pairs"):
        victim.predict(["one", ("two", "three")])


def test_a_text_scores_the_same_bits_in_any_company(bert: Path) -> None:
    victim = load_victim(str(bert))
    texts = [f"{a} {b} {c}" for a in WORDS[:6] for b in WORDS[:6] for c in WORDS[:3]]
    together = victim.predict(texts)
    for size in (1, 2, 3, 5):
        parts = [victim.predict(texts[start : start + size]) for start in range(0, 30, size)]
        assert np.array_equal(np.concatenate(parts)[:30], together[:30])


def test_nothing_is_padded_and_equal_readings_are_computed_once(bert: Path) -> None:
    victim = load_victim(str(bert))
    assert isinstance(victim, HuggingFaceVictim)
    scores = victim.predict(["the film", "THE film", "zebra", "giraffe", "the film is good"])
    assert (victim.meter.items, victim.meter.tokens, victim.meter.padding) == (3, 4 + 3 + 6, 0)
    assert np.array_equal(scores[0], scores[1])
    assert victim.meter.calls in (1, 3)  # lengths share a pass where that changes no bit


def test_batches_stay_below_the_token_limit(bert: Path) -> None:
    victim = load_victim(str(bert), max_tokens="20")
    assert isinstance(victim, HuggingFaceVictim)
    victim.predict([f"the film is {word}" for word in WORDS[:10]])
    assert victim.meter.calls == 4  # six tokens each, three rows at a time


def test_long_texts_are_cut_and_counted(bert: Path) -> None:
    victim = load_victim(str(bert))
    assert isinstance(victim, HuggingFaceVictim)
    assert victim.max_length == 20
    long = " ".join(["good"] * 30)
    scores = victim.predict([long, long + " bad", "bad"])
    assert victim.truncated == 2
    assert np.array_equal(scores[0], scores[1])
    assert not np.array_equal(scores[0], scores[2])
    assert victim.predict([("good", long)]).shape == (1, 2)
    assert victim.truncated == 3
    report = preflight(victim, [long, "bad", "good"], [0, 1, 1])
    assert "1 of 3 texts are longer" in next(c.message for c in report.checks if c.name == "truncation")


def test_the_roberta_family_counts_positions_from_two() -> None:
    names = tokenizer()
    assert longest_input(config("roberta", max_position_embeddings=514, pad_token_id=1), names) == 512
    assert longest_input(config("bert", max_position_embeddings=512), names) == 512
    assert longest_input(config("gpt2"), names) == 20


def test_a_worker_gets_the_same_victim(bert: Path) -> None:
    victim = load_victim(str(bert), labels=("bad", "good"))
    again = load_victim(victim.spec, **victim.options)  # type: ignore[attr-defined]
    copy = pickle.loads(pickle.dumps(victim))
    assert again.labels == copy.labels == ("bad", "good")
    assert victim.fingerprint() == again.fingerprint() == copy.fingerprint()
    for other in (again, copy):
        assert np.array_equal(other.predict(TEXTS), victim.predict(TEXTS))


@pytest.mark.processor_only
def test_a_model_in_memory(bert: Path) -> None:
    model = transformers.AutoModelForSequenceClassification.from_pretrained(bert).eval()
    victim = HuggingFaceVictim(model, tokenizer(), name="mine")
    check_victim(victim, TEXTS)
    before = victim.fingerprint()
    with torch.no_grad():
        model.classifier.bias.add_(1.0)
    assert HuggingFaceVictim(model, tokenizer()).fingerprint() != before


def test_named_labels_may_be_given_in_another_order(tmp_path: Path) -> None:
    folder = save(
        tmp_path / "named", id2label={0: "NEGATIVE", 1: "POSITIVE"}, label2id={"NEGATIVE": 0, "POSITIVE": 1}
    )
    plain, turned = load_victim(str(folder)), load_victim(str(folder), labels="positive,negative")
    assert plain.labels == ("NEGATIVE", "POSITIVE")
    assert np.array_equal(plain.predict(TEXTS), turned.predict(TEXTS)[:, ::-1])
    with pytest.raises(VictimError, match="are not the model's"):
        load_victim(str(folder), labels="spam,ham")


def test_loading_is_quiet(
    bert: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        load_victim(str(bert)).predict([" ".join(["good"] * 50)])
    out, err = capfd.readouterr()
    assert (out, err, [r.message for r in caplog.records if r.name.startswith("transformers")]) == (
        "",
        "",
        [],
    )


# -- what cannot be loaded -----------------------------------------------------------------------------


def broken_copy(bert: Path, tmp_path: Path, **changes: Any) -> Path:
    folder = tmp_path / "broken"
    shutil.copytree(bert, folder)
    if changes:
        written = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        (folder / "config.json").write_text(json.dumps({**written, **changes}), encoding="utf-8")
    return folder


def assert_refused(folder: Path | str, message: str, **options: Any) -> None:
    with pytest.raises(VictimError, match=message) as caught:
        load_victim(str(folder), **options)
    assert caught.value.remedy
    assert "\n" not in caught.value.cause


def test_truncated_weights(bert: Path, tmp_path: Path) -> None:
    folder = broken_copy(bert, tmp_path)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])
    assert_refused(folder, "damaged or cut short")


def test_missing_weights(bert: Path, tmp_path: Path) -> None:
    folder = broken_copy(bert, tmp_path)
    (folder / "model.safetensors").unlink()
    assert_refused(folder, "lacks a file")


def test_pickled_weights_need_trust(bert: Path, tmp_path: Path) -> None:
    folder = broken_copy(bert, tmp_path)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(bert)
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    assert_refused(folder, "lacks a file")
    victim = load_victim(str(folder), trust_pickle=True)
    assert np.abs(victim.predict(TEXTS) - load_victim(str(bert)).predict(TEXTS)).max() < 1e-9


def test_unknown_architecture(bert: Path, tmp_path: Path) -> None:
    folder = broken_copy(bert, tmp_path, model_type="martian")
    assert_refused(folder, "unknown architecture: model_type 'martian'")
    (folder / "config.json").write_text("{}", encoding="utf-8")
    assert_refused(folder, "unknown architecture: its config.json has no model_type")


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json"])
def test_a_file_that_was_cut_is_named(bert: Path, tmp_path: Path, name: str) -> None:
    path = broken_copy(bert, tmp_path) / name
    path.write_bytes(path.read_bytes()[:100])
    assert_refused(path.parent, f"broken/{name} is damaged or cut short")


def test_weights_of_another_size(bert: Path, tmp_path: Path) -> None:
    assert_refused(broken_copy(bert, tmp_path, vocab_size=9), "other sizes than its config.json says")


def test_a_tokenizer_without_words(bert: Path, tmp_path: Path) -> None:
    """The library makes an empty one where the files are missing; every answer would be of unknown words."""
    folder = broken_copy(bert, tmp_path)
    (folder / "tokenizer.json").unlink()
    assert_refused(folder, "has no tokenizer that can be read")
    settings = json.dumps({"tokenizer_class": "BertTokenizer"})
    (folder / "tokenizer_config.json").write_text(settings, encoding="utf-8")
    assert_refused(folder, "has no vocabulary")


def test_regression_is_no_classifier(tmp_path: Path) -> None:
    assert_refused(save(tmp_path / "regression", num_labels=1), "regression")


def test_several_labels_at_once_are_not_supported(tmp_path: Path) -> None:
    folder = save(tmp_path / "several", problem_type="multi_label_classification")
    assert_refused(folder, "several labels at once")


def test_a_body_without_a_head_is_no_classifier(tmp_path: Path) -> None:
    transformers.BertModel(config()).save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    assert_refused(tmp_path, r"no weights for classifier\.bias, classifier\.weight")


def test_a_hub_name_that_cannot_be_had() -> None:
    assert_refused("nobody-at-all/no-such-model", "the hub did not give it")
