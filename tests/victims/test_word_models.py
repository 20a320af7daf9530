"""The papers' word models: padding, bits, formulas, gradients, saving, training, and as victims."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tiny_models import enlarge
from unfooled.errors import VictimError
from unfooled.victims.checks import check_victim
from unfooled.victims.loading import load_victim
from unfooled.victims.torch.huggingface import HuggingFaceVictim
from unfooled.victims.torch.word_models.vocabulary import build_word_tokenizer
from word_texts import CORPUS, PAIRS, TEXTS

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

KINDS: dict[str, dict[str, Any]] = {
    "lstm": {"kind": "lstm"},
    "lstm-mean": {"kind": "lstm", "pool": "mean"},
    "lstm-deep": {"kind": "lstm", "layers": 3},
    "lstm-both": {"kind": "lstm", "bidirectional": True, "layers": 2},
    "lstm-both-mean": {"kind": "lstm", "bidirectional": True, "pool": "mean"},
    "bilstm-attention": {"kind": "bilstm-attention"},
    "bilstm-attention-deep": {"kind": "bilstm-attention", "layers": 2},
    "word-cnn": {"kind": "word-cnn"},
    "word-cnn-narrow": {"kind": "word-cnn", "widths": [1, 2]},
}
every_kind = pytest.mark.parametrize("name", list(KINDS))


@pytest.fixture
def no_slopes() -> Iterator[None]:
    with torch.no_grad():
        yield


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return build_word_tokenizer(CORPUS, min_count=1)


def make(name: str, *, seed: int = 3, scale: float = 3.0, **changes: Any) -> Any:
    from unfooled.victims.torch.word_models.configuration import WordModelConfig
    from unfooled.victims.torch.word_models.modeling import WordModelForSequenceClassification

    sizes = {"vocab_size": 40, "embedding_size": 10, "hidden_size": 12, "attention_size": 8, "filters": 7}
    torch.manual_seed(seed)
    model: Any = WordModelForSequenceClassification(WordModelConfig(**{**sizes, **KINDS[name], **changes}))
    model.eval()
    enlarge(model, scale)  # so that texts differ by more than a tolerance
    with torch.no_grad():
        model.embeddings.weight[0] = 0.0
    return model


def answers(model: Any, tokenizer: Any, *texts: Any, **options: Any) -> Any:
    with torch.inference_mode():
        return model(**tokenizer(*texts, return_tensors="pt", padding=True, **options)).logits


# -- the models ----------------------------------------------------------------------------------------


@every_kind
def test_padding_cannot_be_felt(name: str, tokenizer: Any) -> None:
    model = make(name)
    together = answers(model, tokenizer, TEXTS)
    wide = answers(model, tokenizer, TEXTS, pad_to_multiple_of=32)
    alone = torch.cat([answers(model, tokenizer, [text]) for text in TEXTS])
    assert (together - alone).abs().max() < 1e-5
    assert (wide - alone).abs().max() < 1e-5
    assert np.ptp(alone[:, 0].numpy()) > 0.1
    with torch.inference_mode():
        plain = torch.cat([model(torch.tensor([tokenizer(text)["input_ids"]])).logits for text in TEXTS])
    assert torch.equal(plain, alone)


@every_kind
def test_padding_leaves_training_alone_too(name: str, tokenizer: Any) -> None:
    """The gradients of the weights are those of the texts one by one."""
    model = make(name, dropout=0.0).train()
    labels = torch.tensor([0, 1, 0, 1, 1, 0, 1])

    def slopes() -> dict[str, Any]:
        found = {key: weight.grad.clone() for key, weight in model.named_parameters()}
        model.zero_grad()
        return found

    model(**tokenizer(TEXTS, return_tensors="pt", padding=True), labels=labels).loss.backward()
    together = slopes()
    for text, label in zip(TEXTS, labels, strict=True):
        ids = torch.tensor([tokenizer(text)["input_ids"]])
        (model(ids, labels=label[None]).loss / len(TEXTS)).backward()
    alone = slopes()
    for key, slope in together.items():
        assert (slope - alone[key]).abs().max() < 1e-4 * max(1.0, float(slope.abs().max())), key
    assert not together["embeddings.weight"][0].any()


@every_kind
@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 9])
def test_a_row_has_the_same_bits_in_any_company(name: str, length: int) -> None:
    model = make(name)
    ids = torch.randint(1, 40, (60, length), generator=torch.Generator().manual_seed(5))
    with torch.inference_mode():
        together = model(ids).logits
        for size in (1, 2, 3, 7, 8, 31):
            assert torch.equal(model(ids[:size]).logits, together[:size])
            assert torch.equal(model(ids[20 : 20 + size]).logits, together[20 : 20 + size])
        assert torch.equal(model(ids.flip(0)).logits.flip(0), together)
        padded = torch.cat([ids, torch.zeros(60, 3, dtype=torch.long)], dim=1)
        mask = torch.cat([torch.ones_like(ids), torch.zeros(60, 3, dtype=torch.long)], dim=1)
        assert (model(padded, attention_mask=mask).logits - together).abs().max() < 1e-5


@every_kind
def test_rows_padded_to_one_length_have_the_same_bits_in_any_company(name: str) -> None:
    model = make(name)
    draw = torch.Generator().manual_seed(6)
    lengths = torch.randint(0, 11, (40, 1), generator=draw)
    mask = (torch.arange(12) < lengths).long()
    ids = torch.randint(1, 40, (40, 12), generator=draw) * mask
    with torch.inference_mode():
        together = model(ids, attention_mask=mask).logits
        for rows in (slice(0, 1), slice(7, 8), slice(3, 9), slice(11, 40), slice(None, None, 3)):
            assert torch.equal(model(ids[rows], attention_mask=mask[rows]).logits, together[rows])


@every_kind
def test_pairs(name: str, tokenizer: Any) -> None:
    model = make(name)
    together = answers(model, tokenizer, [a for a, _ in PAIRS], [b for _, b in PAIRS])
    alone = torch.cat([answers(model, tokenizer, [a], [b]) for a, b in PAIRS])
    assert (together - alone).abs().max() < 1e-5
    assert (alone[0] - alone[1]).abs().max() > 1e-3
    swapped = answers(model, tokenizer, ["is good"], ["the film"])
    assert (alone[0] - swapped[0]).abs().max() > 1e-5 or name == "word-cnn-narrow"


def lstm_by_hand(model: Any, layer: Any, vectors: Any) -> Any:
    """One text through one LSTM, gate by gate."""
    state = cell = torch.zeros(model.config.hidden_size)
    states = []
    for vector in vectors:
        gates = layer.weight_ih_l0 @ vector + layer.bias_ih_l0 + layer.weight_hh_l0 @ state + layer.bias_hh_l0
        put, keep, new, show = gates.chunk(4)
        cell = torch.sigmoid(keep) * cell + torch.sigmoid(put) * torch.tanh(new)
        state = torch.sigmoid(show) * torch.tanh(cell)
        states.append(state)
    return torch.stack(states)


@pytest.mark.parametrize("name", ["lstm", "lstm-mean", "lstm-both", "lstm-both-mean", "bilstm-attention"])
@pytest.mark.usefixtures("no_slopes")
def test_the_recurrent_formulas(name: str, tokenizer: Any) -> None:
    model = make(name, layers=1)
    batch = tokenizer(TEXTS, return_tensors="pt", padding=True)
    output = model(**batch, output_attentions=True)
    row = 3
    vectors = model.embeddings(torch.tensor(tokenizer(TEXTS[row])["input_ids"]))
    layer = model.body.layers[0]
    forwards = lstm_by_hand(model, layer.forwards, vectors)
    if name.startswith("lstm") and "both" not in name:
        expected = forwards.mean(0) if "mean" in name else forwards[-1]
    else:
        backwards = lstm_by_hand(model, layer.backwards, vectors.flip(0)).flip(0)
        both = torch.cat([forwards, backwards], dim=1)
        if name == "lstm-both":
            expected = torch.cat([forwards[-1], backwards[0]])
        elif name == "lstm-both-mean":
            expected = both.mean(0)
        else:
            body = model.body
            weights = torch.softmax(torch.tanh(body.query(both)) @ body.score, dim=0)
            seen = output.attentions[0][row, 0, 0]
            assert (seen[: len(weights)] - weights).abs().max() < 1e-5
            expected = weights @ both
    assert (output.logits[row] - model.classifier(expected)).abs().max() < 1e-4


@pytest.mark.usefixtures("no_slopes")
def test_the_convolutional_formula(tokenizer: Any) -> None:
    model = make("word-cnn")
    for text in (TEXTS[0], "zebra"):  # longer and shorter than the widest window
        vectors = model.embeddings(torch.tensor(tokenizer(text)["input_ids"]))
        strongest = []
        for width, window in zip((3, 4, 5), model.body.windows, strict=True):
            filled = torch.nn.functional.pad(vectors, (0, 0, width - 1, width - 1))
            spots = [filled[at : at + width] for at in range(len(vectors) + width - 1)]
            scores = torch.stack([window.weight @ spot.flatten() + window.bias for spot in spots])
            strongest.append(torch.relu(scores).amax(0))
        expected = model.classifier(torch.cat(strongest))
        assert (answers(model, tokenizer, [text, TEXTS[3]])[0] - expected).abs().max() < 1e-4


@every_kind
@pytest.mark.usefixtures("no_slopes")
def test_hidden_states_and_attention(name: str, tokenizer: Any) -> None:
    model = make(name)
    batch = tokenizer(TEXTS, return_tensors="pt", padding=True)
    output = model(**batch, output_hidden_states=True, output_attentions=True)
    shape = batch["input_ids"].shape
    layers = model.config.layers if "cnn" not in name else 1
    assert len(output.hidden_states) == 1 + layers
    empty = batch["attention_mask"] == 0
    for states in output.hidden_states:
        assert states.shape[:2] == shape
        assert not states[empty].any()
    vectors = model.embeddings(batch["input_ids"])
    assert torch.equal(output.hidden_states[0], vectors)
    row = model(batch["input_ids"][3:4], output_hidden_states=True)
    for single, many in zip(row.hidden_states, output.hidden_states, strict=True):
        assert (single[0] - many[3]).abs().max() < 1e-5
    if name.startswith("bilstm"):
        (scores,) = output.attentions
        assert scores.shape == (len(TEXTS), 1, 1, shape[1])
        assert not scores[:, 0, 0][empty].any()
        words = batch["attention_mask"].sum(1) > 0
        assert torch.allclose(scores.sum((1, 2, 3)), words.float())
    else:
        assert output.attentions is None
    quiet = model(**batch)
    assert (quiet.hidden_states, quiet.attentions, quiet.loss) == (None, None, None)
    assert torch.equal(model(**batch, return_dict=False)[0], quiet.logits)
    none = model(torch.zeros(2, 0), output_hidden_states=True, output_attentions=True)
    assert none.hidden_states[0].shape[:2] == (2, 0)
    assert (none.logits[0] - quiet.logits[2]).abs().max() < 1e-6


@every_kind
def test_gradients_flow_through_word_vectors(name: str, tokenizer: Any) -> None:
    model = make(name).double()
    ids = torch.tensor([tokenizer(TEXTS[3])["input_ids"]])
    vectors = model.get_input_embeddings()(ids).detach().requires_grad_()
    output = model(inputs_embeds=vectors, labels=torch.tensor([1]))
    assert (output.logits - model(ids).logits).abs().max() < 1e-6
    output.logits[0, 0].backward()
    slope = vectors.grad
    assert bool(slope.any(dim=-1).all()) or "cnn" in name
    assert slope.any()
    step = torch.zeros_like(vectors)
    at = divmod(int(slope.abs().argmax()), vectors.shape[-1])
    step[0, at[0], at[1]] = 1e-6
    with torch.no_grad():
        up = model(inputs_embeds=vectors + step).logits[0, 0]
        down = model(inputs_embeds=vectors - step).logits[0, 0]
    measured = float((up - down) / 2e-6)
    assert measured == pytest.approx(float(slope[0, at[0], at[1]]), rel=1e-4)
    nothing = torch.zeros(1, 0, vectors.shape[-1], requires_grad=True, dtype=torch.float64)
    model(inputs_embeds=nothing).logits.sum().backward()
    assert nothing.grad is not None


def test_what_cannot_be_read(tokenizer: Any) -> None:
    model = make("lstm")
    with pytest.raises(ValueError, match="either input_ids or inputs_embeds"):
        model()
    with pytest.raises(ValueError, match="pad on the right"):
        model(torch.tensor([[0, 4]]), attention_mask=torch.tensor([[0, 1]]))
    wrong: list[dict[str, Any]] = [
        {"kind": "gru"},
        {"pool": "max"},
        {"hidden_size": 0},
        {"dropout": 1.0},
        {"widths": []},
    ]
    for changes in wrong:
        with pytest.raises(VictimError) as caught:
            make("lstm", **changes)
        assert caught.value.remedy


# -- starting and saving -------------------------------------------------------------------------------


@every_kind
def test_one_seed_one_model(name: str) -> None:
    first, again, other = make(name).state_dict(), make(name).state_dict(), make(name, seed=4).state_dict()
    assert all(torch.equal(first[key], again[key]) for key in first)
    assert not all(torch.equal(first[key], other[key]) for key in first)
    assert all(weight.isfinite().all() for weight in first.values())
    assert not first["embeddings.weight"][0].any()


@pytest.mark.usefixtures("no_slopes")
def test_forget_gates_start_open() -> None:
    from unfooled.victims.torch.word_models.configuration import WordModelConfig
    from unfooled.victims.torch.word_models.modeling import WordModelForSequenceClassification

    model: Any = WordModelForSequenceClassification(WordModelConfig(hidden_size=6))
    layer = model.body.layers[0].forwards
    assert torch.equal(layer.bias_ih_l0 + layer.bias_hh_l0, torch.tensor([0.0] * 6 + [1.0] * 6 + [0.0] * 12))
    square = layer.weight_hh_l0[:6]
    assert torch.allclose(square @ square.T, torch.eye(6), atol=1e-5)


@every_kind
def test_saved_and_loaded_to_the_bit(name: str, tokenizer: Any, tmp_path: Path) -> None:
    model = make(name, num_labels=3, id2label={0: "no", 1: "maybe", 2: "yes"}, frozen_embeddings=True)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert (tmp_path / "model.safetensors").is_file()
    assert (
        json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))["model_type"] == "unfooled-words"
    )
    for loader in (type(model), transformers.AutoModelForSequenceClassification):
        again, report = loader.from_pretrained(tmp_path, output_loading_info=True)
        assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
        assert type(again) is type(model)
        assert {**again.config.to_dict(), "_name_or_path": ""} == model.config.to_dict()
        state = again.state_dict()
        assert all(torch.equal(weight, state[key]) for key, weight in model.state_dict().items())
        assert not again.embeddings.weight.requires_grad
        assert torch.equal(answers(again.eval(), tokenizer, TEXTS), answers(model, tokenizer, TEXTS))
    again.save_pretrained(tmp_path / "second")
    weights = [(folder / "model.safetensors").read_bytes() for folder in (tmp_path, tmp_path / "second")]
    assert weights[0] == weights[1]
    assert torch.equal(
        answers(pickle.loads(pickle.dumps(model)), tokenizer, TEXTS), answers(model, tokenizer, TEXTS)
    )


@pytest.mark.processor_only
def test_a_fresh_process_loads_it(tokenizer: Any, tmp_path: Path) -> None:
    """The victim loader makes the library know the model; nobody has to import anything."""
    make("bilstm-attention").save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    code = (
        "import sys; from unfooled.victims.loading import load_victim; assert 'torch' not in sys.modules;"
        "print(load_victim(sys.argv[1]).predict(['the film was good']).tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True, timeout=600
    )
    assert json.loads(done.stdout) == load_victim(str(tmp_path)).predict(["the film was good"]).tolist()


@pytest.mark.processor_only
def test_importing_the_package_loads_no_model_library() -> None:
    torch_victims = "unfooled.victims.torch"
    names = (
        f"{torch_victims}.word_models, {torch_victims}.word_models.vocabulary, {torch_victims}.huggingface"
    )
    code = f"import sys, {names}; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600
    )
    assert done.stdout.strip() == "False"


def test_vectors_start_the_embeddings(tokenizer: Any) -> None:
    from unfooled.victims.torch.word_models.modeling import initialise_embeddings

    words = ["GOOD", "film", "unheard", "good", "Zebra", "[UNK]"]
    matrix = np.arange(60, dtype=np.float32).reshape(6, 10) + 1
    model = make("lstm", vocab_size=len(tokenizer))
    assert initialise_embeddings(model, tokenizer, words, matrix, seed=1) == 3
    weight = model.get_input_embeddings().weight.detach().numpy().copy()
    ids = tokenizer.get_vocab()
    for word, row in {"film": 1, "good": 3, "zebra": 4}.items():
        assert np.array_equal(weight[ids[word]], matrix[row])
    assert not weight[0].any()
    rest = np.delete(weight, [0, *(ids[word] for word in ("film", "good", "zebra"))], axis=0)
    assert 0 < np.abs(rest).max() <= 0.1
    assert len(np.unique(rest, axis=0)) == len(rest)
    initialise_embeddings(model, tokenizer, words, matrix, seed=1)
    assert np.array_equal(model.embeddings.weight.detach().numpy(), weight)
    initialise_embeddings(model, tokenizer, words[:1], matrix[:1], seed=1)
    kept = model.embeddings.weight.detach().numpy()
    assert np.array_equal(kept[ids["plot"]], weight[ids["plot"]])
    initialise_embeddings(model, tokenizer, words, matrix, seed=2)
    assert not np.array_equal(model.embeddings.weight.detach().numpy(), weight)
    with pytest.raises(VictimError, match="have 7 numbers each, but the model's embeddings have 10"):
        initialise_embeddings(model, tokenizer, words, matrix[:, :7])


# -- training and attacking ----------------------------------------------------------------------------


def small_bert(tokenizer: Any) -> Any:
    from unfooled.victims.torch.word_models.configuration import bert_scratch_config

    torch.manual_seed(0)
    config = bert_scratch_config(vocab_size=len(tokenizer), hidden_size=32, max_length=20)
    assert (config.num_hidden_layers, config.num_attention_heads) == (3, 4)
    return transformers.BertForSequenceClassification(config)


def test_the_heads_share_the_hidden_units() -> None:
    from unfooled.victims.torch.word_models.configuration import bert_scratch_config

    with pytest.raises(VictimError, match="cannot be shared among 4 heads"):
        bert_scratch_config(vocab_size=10, hidden_size=30)
    assert bert_scratch_config(vocab_size=10, num_labels=6).num_labels == 6


@pytest.mark.parametrize("name", ["lstm", "bilstm-attention", "word-cnn", "bert-scratch"])
def test_the_library_trains_saves_and_we_load(name: str, tmp_path: Path) -> None:
    """A word far from the end decides; texts differ in length, so batches are padded."""
    rng = np.random.default_rng(0)
    fill = ["the", "film", "a", "plot", "cast", "and", "it", "was"]
    rows = []
    for _ in range(240):
        label = int(rng.integers(2))
        words = list(rng.choice(fill, int(rng.integers(1, 9))))
        words.insert(int(rng.integers(len(words) + 1)), ["dull", "great"][label])
        rows.append((" ".join(words), label))
    tokenizer = build_word_tokenizer([text for text, _ in rows], bert=name == "bert-scratch", max_length=20)
    if name == "bert-scratch":
        model = small_bert(tokenizer)
    else:
        model = make(name, vocab_size=len(tokenizer), hidden_size=16, filters=16, scale=1.0)
    data = [{**tokenizer(text, truncation=True), "labels": label} for text, label in rows]
    assert len({len(row["input_ids"]) for row in data}) > 4
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path / "runs"),
        num_train_epochs=5,
        per_device_train_batch_size=8,
        gradient_accumulation_steps=2,
        learning_rate=1e-2 if name != "bert-scratch" else 2e-3,
        report_to="none",
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
        use_cpu=True,
        dataloader_pin_memory=False,
        seed=1,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the library's own
        trainer = transformers.Trainer(
            model=model,
            args=arguments,
            train_dataset=data,
            data_collator=transformers.DataCollatorWithPadding(tokenizer),
        )
        trainer.train()
        trainer.save_model(str(tmp_path / "best"))
    tokenizer.save_pretrained(tmp_path / "best")
    victim = load_victim(str(tmp_path / "best"))
    assert isinstance(victim, HuggingFaceVictim)
    scores = victim.predict([text for text, _ in rows])
    assert (scores.argmax(1) == [label for _, label in rows]).mean() > 0.97
    assert victim.meter.padding == 0
    check_victim(victim, [*TEXTS, rows[0][0]])
    pairs = [("the film", "is dull"), ("the film is", "great"), ("", "great"), ("a", "")]
    check_victim(victim, pairs)


@every_kind
def test_a_victim_in_any_company(name: str, tokenizer: Any, tmp_path: Path) -> None:
    make(name).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    victim = load_victim(str(tmp_path))
    together = victim.predict(CORPUS)
    for text, row in zip(CORPUS, together, strict=True):
        assert np.array_equal(victim.predict([text])[0], row)
    check_victim(victim, CORPUS)
    long = " ".join(["film"] * 260)
    victim.predict([long])
    assert victim.truncated == 1  # type: ignore[attr-defined]


def test_damaged_word_models_are_refused(tokenizer: Any, tmp_path: Path) -> None:
    make("lstm").save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    config = tmp_path / "config.json"
    settings = json.loads(config.read_text(encoding="utf-8"))
    config.write_text(json.dumps({**settings, "kind": "gru"}), encoding="utf-8")
    with pytest.raises(VictimError, match="no kind 'gru'"):
        load_victim(str(tmp_path))
    config.write_text(json.dumps({**settings, "layers": 2}), encoding="utf-8")
    with pytest.raises(VictimError, match="no weights for"):
        load_victim(str(tmp_path))
    config.write_text(json.dumps(settings), encoding="utf-8")
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:900])
    with pytest.raises(VictimError, match="damaged or cut short"):
        load_victim(str(tmp_path))
