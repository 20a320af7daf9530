"""Gradients, attention and embeddings per word, against plain loops over single texts."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from tiny_models import PAIRS, POSITIONS, TRANSFORMERS, WORD_KINDS, tiny, victim_of
from unfooled.core.engine import Engine
from unfooled.core.program import Ask, Program
from unfooled.core.questions import GradientItem, Marked, WordVectors, mark
from unfooled.errors import CapabilityError, VictimError
from unfooled.passes import to_device
from unfooled.text import Text
from unfooled.victims.checks import check_victim, check_whitebox
from unfooled.victims.fake import FakeVictim
from unfooled.victims.torch.huggingface import HuggingFaceVictim
from unfooled.victims.torch.oracles import (
    AttentionOracle,
    EmbeddingOracle,
    GradientOracle,
    SentenceOracle,
    steady,
)
from unfooled.victims.torch.whitebox import is_white_box

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

KINDS = TRANSFORMERS + WORD_KINDS
TEXTS: list[Any] = [
    "the film is good",
    "Films, very badly!",
    "a dull plot and a great cast 👍🏽",
    "don't the Café zebra-ness",
    "the movie was fun",
    "good " * 40,
]


def by_hand(victim: HuggingFaceVictim, value: Any, field: int = 0) -> tuple[dict[str, Any], list[list[int]]]:
    """The inputs of one text, and the tokens of each word, by looking at one character after the other."""
    parts = (value,) if isinstance(value, str) else value
    encoded = victim.tokenizer(
        *parts, truncation=True, max_length=victim.max_length, return_offsets_mapping=True
    )
    inputs = {"input_ids": torch.tensor([encoded["input_ids"]], dtype=torch.long)}
    if "token_type_ids" in encoded:
        inputs["token_type_ids"] = torch.tensor([encoded["token_type_ids"]])
    text, pieces = Text(parts[field]), []
    for start, word in zip(text.starts, text.words, strict=True):
        inside = set(range(start, start + len(word)))
        pieces.append(
            [
                token
                for token, span in enumerate(encoded["offset_mapping"])
                if encoded.sequence_ids()[token] == field and inside & set(range(*span))
            ]
        )
    return to_device(inputs, victim.model), pieces


def per_word(values: Any, pieces: list[list[int]]) -> np.ndarray:
    rows = [values[tokens].mean(axis=0) if tokens else np.zeros(values.shape[1]) for tokens in pieces]
    return np.array(rows)


def close(found: Any, expected: Any, tolerance: float = 1e-5) -> bool:
    found, expected = np.asarray(found), np.asarray(expected)
    scale = max(1e-12, float(np.abs(expected).max(initial=0.0)))
    return (
        found.shape == expected.shape
        and float(np.abs(found - expected).max(initial=0.0)) <= tolerance * scale
    )


# -- gradients -------------------------------------------------------------------------------------


def plain_gradient(victim: HuggingFaceVictim, value: Any, label: int) -> tuple[np.ndarray, list[list[int]]]:
    """Autograd through the model's own entrance for embeddings, one text."""
    inputs, pieces = by_hand(victim, value, 0 if isinstance(value, str) else 1)
    vectors = victim.model.get_input_embeddings()(inputs.pop("input_ids")).detach().requires_grad_()
    logits = victim.model(inputs_embeds=vectors, **inputs).logits
    torch.nn.functional.cross_entropy(logits, to_device(torch.tensor([label]), victim.model)).backward()
    return vectors.grad[0].numpy(), pieces


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_a_plain_loop(kind: str) -> None:
    victim = victim_of(kind)
    for values in (TEXTS, PAIRS):
        if kind == "gpt2" and values is PAIRS:
            continue  # given embeddings, it has no ids to embed the segments with
        labels = [index % 3 for index in range(len(values))]
        for value, label, found in zip(values, labels, victim.gradients(values, labels), strict=True):
            if kind == "gpt2":
                inputs, _ = by_hand(victim, value)
                assert not inputs["token_type_ids"].any()
            slopes, pieces = plain_gradient(victim, value, label)
            assert found.words == mark(value).words
            assert found.pieces.tolist() == [len(tokens) for tokens in pieces]
            assert close(found.vectors, per_word(slopes, pieces))
            assert found.vectors.dtype == np.float32
            assert found.norms.shape == (len(found.words),)
            assert found.norms.any()


@pytest.mark.parametrize("kind", ["bert", "roberta", "bilstm-attention", "word-cnn"])
def test_gradients_agree_with_numerical_differences(kind: str) -> None:
    if kind in WORD_KINDS:
        pytest.importorskip("unfooled.victims.torch.word_models.modeling")
    victim = tiny(kind)
    victim.model.double()
    table = victim.model.get_input_embeddings()
    text, step = "the film is good and great", 1e-5
    inputs, pieces = by_hand(victim, text)
    direction = torch.randn(table.embedding_dim, generator=torch.Generator().manual_seed(3)).double()

    def loss(tokens: list[int], size: float) -> float:
        def push(_module: Any, _args: Any, output: Any) -> Any:
            moved = output.clone()
            moved[0, tokens] += size * direction
            return moved

        handle = table.register_forward_hook(push)
        with torch.no_grad():
            logits = victim.model(**inputs).logits
        handle.remove()
        return float(torch.nn.functional.cross_entropy(logits.cpu(), torch.tensor([1])))

    (found,) = victim.gradients([text], [1])
    for word, tokens in enumerate(pieces):
        rise = (loss(tokens, step) - loss(tokens, -step)) / (2 * step) / len(tokens)
        assert rise == pytest.approx(float(found.vectors[word] @ direction.numpy()), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("kind", ["bert", "lstm"])
def test_the_jacobian_holds_every_other_gradient(kind: str) -> None:
    victim = victim_of(kind)
    scores = victim.predict(TEXTS)
    best = scores.argmax(axis=1).tolist()
    rows = victim.jacobian(TEXTS)
    logit = victim.gradients(TEXTS, [1] * len(TEXTS), of="logit")
    loss = victim.gradients(TEXTS)
    for index, jacobian in enumerate(rows):
        assert jacobian.shape == (3, len(mark(TEXTS[index]).words), loss[index].vectors.shape[1])
        assert close(logit[index].vectors, jacobian[1])
        weights = scores[index] - np.eye(3)[best[index]]
        assert close(loss[index].vectors, np.tensordot(weights, jacobian, 1), 1e-4)
    again = zip(loss, victim.gradients(TEXTS, best), strict=True)
    assert all(np.array_equal(slope.vectors, other.vectors) for slope, other in again)
    assert close(victim.gradients(TEXTS[:1], [None])[0].vectors, loss[0].vectors, 1e-6)


def test_half_the_squared_logits_as_importance() -> None:
    victim = victim_of("bert")
    inputs, pieces = by_hand(victim, TEXTS[0])
    vectors = victim.model.get_input_embeddings()(inputs.pop("input_ids")).detach().requires_grad_()
    (victim.model(inputs_embeds=vectors, **inputs).logits.square().sum() / 2).backward()
    (found,) = victim.gradients(TEXTS[:1], of="squared-logits")
    assert close(found.vectors, per_word(vectors.grad[0].numpy(), pieces))
    with pytest.raises(ValueError, match="of must be one of loss, logit, squared-logits"):
        victim.gradients(TEXTS, of="entropy")  # type: ignore[arg-type]


def test_a_very_sure_model_still_has_a_loss_gradient() -> None:
    victim = tiny("bert", classes=2)
    with torch.no_grad():
        victim.model.classifier.bias[:] = torch.tensor([40.0, -40.0])
    (found,) = victim.gradients(TEXTS[:1], [0])
    (jacobian,) = victim.jacobian(TEXTS[:1])
    assert 0 < found.norms.max() < 1e-20
    assert close(direction(found.vectors), direction(jacobian[1] - jacobian[0]))
    slopes, pieces = plain_gradient(victim, TEXTS[0], 0)  # in float32, 1 - p is zero
    assert not close(direction(per_word(slopes, pieces)), direction(found.vectors), 0.01)


def direction(vectors: np.ndarray) -> np.ndarray:
    wide = vectors.astype(np.float64)
    return np.asarray(wide / np.linalg.norm(wide))


def test_labels_count_in_the_order_that_the_victim_shows() -> None:
    plain = tiny("bert", classes=2)
    plain.model.config.id2label = {0: "bad", 1: "good"}
    turned = HuggingFaceVictim(plain.model, plain.tokenizer, labels=("good", "bad"))
    same = zip(plain.gradients(TEXTS, [0] * 6), turned.gradients(TEXTS, [1] * 6), strict=True)
    assert all(np.array_equal(a.vectors, b.vectors) for a, b in same)
    assert np.array_equal(plain.jacobian(TEXTS)[1], turned.jacobian(TEXTS)[1][::-1])
    with pytest.raises(VictimError, match="there is no class 2"):
        plain.gradients(TEXTS[:1], [2])
    with pytest.raises(ValueError, match="1 labels for 6 texts"):
        plain.gradients(TEXTS, [1])


# -- attention ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert", "gpt2", "bilstm-attention"])
def test_attention_is_the_mean_over_heads_and_queries(kind: str) -> None:
    victim = victim_of(kind)
    for values in (TEXTS, PAIRS):
        for layer in (0, -1):
            received = victim.attention(values, layer=layer)
            for value, found, maps in zip(values, received, victim.attention_maps(values), strict=True):
                inputs, pieces = by_hand(victim, value, 0 if isinstance(value, str) else 1)
                assert len(maps.tokens) == inputs["input_ids"].shape[1]
                for weights in maps.maps:
                    assert weights.shape[-1] == len(maps.tokens)
                    assert weights.sum(axis=-1) == pytest.approx(np.ones(weights.shape[:-1]), abs=1e-5)
                row = maps.maps[layer].mean(axis=(0, 1))
                assert row.sum() == pytest.approx(1.0, abs=1e-5)
                assert found == pytest.approx(np.array([row[tokens].sum() for tokens in pieces]), abs=1e-6)
                assert (found >= 0).all()
                assert found.sum() <= 1.0 + 1e-5
                for word, tokens in enumerate(pieces):
                    assert (maps.word_of[tokens] == word).all()
                assert (maps.word_of >= 0).sum() == sum(map(len, pieces))


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert", "bilstm-attention"])
def test_attention_of_the_first_token_and_to_special_ones(kind: str) -> None:
    victim = victim_of(kind)
    for values in (TEXTS, PAIRS):
        usual, first = victim.attention(values), victim.attention(values, query="cls", special=True)
        mean = victim.attention(values, special=True)
        for n, (value, maps) in enumerate(zip(values, victim.attention_maps(values), strict=True)):
            field = 0 if isinstance(value, str) else 1
            parts = (value,) if isinstance(value, str) else value
            pieces = by_hand(victim, value, field)[1]
            encoded = victim.tokenizer(*parts, truncation=True, max_length=victim.max_length)
            around = [token for token, part in enumerate(encoded.sequence_ids()) if part is None]
            heads = maps.maps[0].mean(axis=0)
            for found, row in ((first[n], heads[0]), (mean[n], heads.mean(axis=0))):
                words = [row[tokens].sum() for tokens in pieces]
                assert found == pytest.approx(np.array([*words, *row[around]]), abs=1e-6)
            assert np.array_equal(mean[n][: len(pieces)], usual[n])
            assert bool(around) is (kind != "bilstm-attention" or field == 1)


def test_a_model_without_cls_says_so() -> None:
    victim = tiny("bert")
    victim.tokenizer.backend_tokenizer.post_processor = None
    victim.attention(["the film"])
    with pytest.raises(CapabilityError, match=r"(?s)reads no \[CLS\] before a text.*query=mean"):
        victim.attention(["the film"], query="cls")
    with pytest.raises(ValueError, match="query must be one of"):
        victim.attention(["the film"], query="sep")  # type: ignore[arg-type]


def test_attention_maps_are_those_of_the_library() -> None:
    victim = victim_of("bert")
    config = transformers.BertConfig.from_dict(victim.model.config.to_dict())
    config._attn_implementation = "eager"
    other = transformers.BertForSequenceClassification(config).eval()
    other.load_state_dict(victim.model.state_dict())
    for text, maps in zip(TEXTS, victim.attention_maps(TEXTS), strict=True):
        with torch.no_grad():
            shown = other(**by_hand(victim, text)[0], output_attentions=True).attentions
        assert len(shown) == len(maps.maps) == 2
        assert all(close(mine, theirs[0].numpy()) for mine, theirs in zip(maps.maps, shown, strict=True))


def test_the_largest_head_may_be_asked_for() -> None:
    victim = victim_of("bert")
    (maps,) = victim.attention_maps(["the film is good"])
    (found,) = victim.attention(["the film is good"], layer=1, reduce="max-heads")
    assert found == pytest.approx(maps.maps[1].mean(axis=1).max(axis=0)[1:-1], abs=1e-6)
    with pytest.raises(CapabilityError, match="has 2 layers of attention, not layer 2"):
        victim.attention(TEXTS, layer=2)
    with pytest.raises(ValueError, match="reduce must be one of"):
        victim.attention(TEXTS, reduce="min")  # type: ignore[arg-type]


@pytest.mark.processor_only
def test_looking_inside_leaves_the_model_as_it_was() -> None:
    victim = tiny("bert")
    before = victim.predict(TEXTS)
    counted = (victim.meter.items, victim.truncated)
    usual = victim.model.config._attn_implementation
    assert usual != "eager"
    victim.attention(TEXTS)
    victim.embeddings(TEXTS)
    victim.gradients(TEXTS)
    victim.sentence_vectors(TEXTS)
    assert victim.capabilities >= {"attention", "embeddings", "gradients"}
    assert (victim.meter.items, victim.truncated) == counted
    assert victim.model.config._attn_implementation == usual
    assert not any(module._forward_hooks for module in victim.model.modules())
    assert all(weight.grad is None for weight in victim.model.parameters())
    assert np.array_equal(victim.predict(TEXTS), before)
    copy = pickle.loads(pickle.dumps(victim))
    assert np.array_equal(copy.jacobian(TEXTS)[0], victim.jacobian(TEXTS)[0])


# -- embeddings ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_embeddings_are_the_hidden_states_of_each_word(kind: str) -> None:
    victim = victim_of(kind)
    table = victim.model.get_input_embeddings().weight.detach().numpy()
    for value, found in zip(TEXTS, victim.embeddings(TEXTS), strict=True):
        inputs, pieces = by_hand(victim, value)
        with torch.no_grad():
            states = victim.model(**inputs, output_hidden_states=True).hidden_states
        assert len(found.layers) == len(states) >= 2
        for mine, theirs in zip(found.layers, states, strict=True):
            assert close(mine, per_word(theirs[0].numpy(), pieces))
        assert close(found.input, per_word(table[inputs["input_ids"][0].cpu()], pieces))
        assert (found.words, found.pieces.tolist()) == (mark(value).words, [len(tokens) for tokens in pieces])


@pytest.mark.parametrize("kind", KINDS)
def test_the_sentence_vector_is_what_the_classifier_reads(kind: str) -> None:
    victim = victim_of(kind)
    model = victim.model
    vectors = victim.sentence_vectors(TEXTS)
    last = model.score if kind == "gpt2" else model.classifier
    last = getattr(last, "out_proj", last)
    with torch.no_grad():
        logits = last(torch.tensor(vectors)).double()
    assert torch.softmax(logits, -1).numpy() == pytest.approx(victim.predict(TEXTS), abs=1e-5)
    assert close(victim.head_weights(), last.weight.detach().numpy())
    mean = victim.sentence_vectors(TEXTS, pool="mean")
    assert mean.shape[0] == len(TEXTS)
    with torch.no_grad():
        states = model(**by_hand(victim, TEXTS[0])[0], output_hidden_states=True).hidden_states[-1]
    assert close(mean[0], states[0].mean(dim=0).numpy())
    assert victim.sentence_vectors([]).shape == (0, vectors.shape[1])


# -- every method --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_capabilities_are_found_by_looking(kind: str) -> None:
    victim = tiny(kind)
    attention = set() if kind in ("lstm", "word-cnn") else {"attention"}
    assert victim.capabilities == {"probabilities", "gradients", "embeddings"} | attention
    assert is_white_box(victim)
    check_victim(victim, TEXTS)
    check_victim(victim, PAIRS)
    if not attention:
        with pytest.raises(CapabilityError, match="shows no attention"):
            victim.attention(TEXTS)


def test_a_model_without_offsets_or_gradients_says_so() -> None:
    victim = tiny("bert")

    class Slow:
        is_fast = False
        model_max_length = POSITIONS

        def __call__(self, *fields: Any, **options: Any) -> Any:
            options.pop("return_offsets_mapping", None)
            return victim.tokenizer(*fields, **options)

    slow = HuggingFaceVictim(victim.model, Slow(), name="slow")
    assert slow.capabilities == {"probabilities"}
    assert slow.predict(["the film"]).shape == (1, 3)
    with pytest.raises(CapabilityError, match="does not say where its tokens are"):
        slow.gradients(["the film"])
    for weight in victim.model.parameters():
        weight.requires_grad_(False)
    assert "gradients" in HuggingFaceVictim(victim.model, victim.tokenizer).capabilities
    victim.model.classifier.forward = lambda inputs: torch.zeros(len(inputs), 3)
    assert "gradients" not in victim.capabilities


@pytest.mark.processor_only
@pytest.mark.parametrize("kind", ["bert", "roberta", "bilstm-attention", "word-cnn"])
def test_numbers_do_not_depend_on_the_batch(kind: str) -> None:
    victim = victim_of(kind)
    words = ["the", "film", "is", "good", "bad", "dull"]
    texts = [f"{a} {b} {c}" for a in words for b in words for c in words[:2]] + TEXTS
    loss, jacobian, vectors = victim.gradients(texts), victim.jacobian(texts), victim.sentence_vectors(texts)
    states = victim.embeddings(texts)
    for index in (0, 7, len(texts) - 1, len(texts) - 2):
        single = texts[index : index + 1]
        assert close(loss[index].vectors, victim.gradients(single)[0].vectors, 1e-6)
        assert close(jacobian[index], victim.jacobian(single)[0], 1e-6)
        assert close(vectors[index], victim.sentence_vectors(single)[0], 1e-6)
        assert close(states[index].layers[-1], victim.embeddings(single)[0].layers[-1], 1e-6)


def test_words_behind_the_cut_are_zero_and_say_so() -> None:
    victim = victim_of("bert")
    text = "good " * 40
    (found,) = victim.gradients([text])
    read = POSITIONS - 2
    assert found.pieces.tolist() == victim.pieces([text])[0].tolist() == [1] * read + [0] * (40 - read)
    assert found.norms[:read].all()
    assert not found.norms[read:].any()
    assert not victim.attention([text])[0][read:].any()
    assert not victim.jacobian([text])[0][:, read:].any()
    assert not victim.embeddings([text])[0].layers[-1][read:].any()


@pytest.mark.parametrize("kind", KINDS)
def test_texts_without_words_or_tokens(kind: str) -> None:
    victim = victim_of(kind)
    texts = ["", "...", "the film"] if kind != "gpt2" else ["...", "the film"]
    assert [len(found.words) for found in victim.gradients(texts)][-2:] == [0, 2]
    assert [array.shape[:2] for array in victim.jacobian(texts)][-2:] == [(3, 0), (3, 2)]
    assert [len(found.words) for found in victim.embeddings(texts)][-2:] == [0, 2]
    assert np.isfinite(victim.sentence_vectors(texts)).all()
    assert np.isfinite(victim.sentence_vectors(texts, pool="mean")).all()
    if "attention" in victim.capabilities:
        assert [len(found) for found in victim.attention(texts)][-2:] == [0, 2]
        assert len(victim.attention_maps(texts)[-1].maps) >= 1
    assert victim.gradients([]) == victim.jacobian([]) == victim.attention([]) == victim.embeddings([]) == []


@pytest.mark.processor_only
def test_either_field_of_a_pair_may_be_asked_about() -> None:
    victim = victim_of("bert")
    pair = {"premise": "the film is dull", "hypothesis": "a good plot"}
    first, second = victim.gradients([Text(pair, edit="premise"), Text(pair)], [0, 0])
    assert (first.words, second.words) == (("the", "film", "is", "dull"), ("a", "good", "plot"))
    slopes, pieces = plain_gradient(victim, tuple(pair.values()), 0)
    assert close(second.vectors, per_word(slopes, pieces))
    assert close(first.vectors, slopes[1:5])
    assert np.array_equal(victim.gradients([tuple(pair.values())], [0])[0].vectors, second.vectors)
    with pytest.raises(VictimError, match="neither all single nor all pairs"):
        victim.gradients(["one", ("two", "three")])


def test_an_edited_text_keeps_its_words() -> None:
    victim = victim_of("bert")
    text = Text("the film is good").replace(1, "f ! m").insert(4, "very bad")
    (found,) = victim.gradients([text])
    assert found.words == text.words
    assert found.pieces.tolist() == [1, 3, 1, 1, 2]
    assert len(victim.gradients([text.value])[0].words) == 7
    assert np.array_equal(victim.gradients([mark(text)])[0].vectors, found.vectors)


def test_gradients_work_where_gradients_are_switched_off() -> None:
    victim = victim_of("bert")
    expected = victim.gradients(TEXTS[:2])
    for switched_off in (torch.no_grad, torch.inference_mode):
        with switched_off():
            found = victim.gradients(TEXTS[:2])
        assert all(np.array_equal(a.vectors, b.vectors) for a, b in zip(found, expected, strict=True))


# -- as oracles ----------------------------------------------------------------------------------------


def looks(text: Text, label: int) -> Program[tuple[Any, ...]]:
    """Asks for everything, then again about the text without its most important word."""
    gradient, attention, states, vector = yield [
        Ask("gradient", [GradientItem(mark(text), label), GradientItem(mark(text))]),
        Ask("attention", [mark(text)]),
        Ask("embedding", [mark(text)]),
        Ask("sentence", [text.value]),
    ]
    shorter = text.delete(int(gradient[0].norms.argmax()))
    (again,) = yield [Ask("gradient", [GradientItem(mark(shorter), label)])]
    return gradient[0], gradient[1], attention[0], states[0], vector[0], again[0]


def ask_all(victim: HuggingFaceVictim, texts: list[Text], **options: Any) -> dict[Any, tuple[Any, ...]]:
    oracles: dict[str, Any] = {
        "gradient": GradientOracle(victim),
        "attention": AttentionOracle(victim, layer=-1),
        "embedding": EmbeddingOracle(victim),
        "sentence": SentenceOracle(victim),
    }
    engine: Engine[tuple[Any, ...]] = Engine(oracles, **options)
    found = {}
    for finished in engine.run([(index, looks(text, 1)) for index, text in enumerate(texts)]):
        assert finished.error is None
        found[finished.key] = finished.value
    return {key: value for key, value in found.items() if value is not None}


def flat(answer: Any) -> np.ndarray:
    return answer.vectors if isinstance(answer, WordVectors) else np.asarray(answer)


def test_programs_ask_through_the_engine() -> None:
    victim = victim_of("bert")
    texts = [Text(text) for text in TEXTS]
    together = ask_all(victim, texts)
    alone = [ask_all(victim, [text], window=1, cache_size=1)[0] for text in texts]
    assert len(together) == len(texts)
    for index, text in enumerate(texts):
        answers = together[index]
        assert all(np.array_equal(flat(a), flat(b)) for a, b in zip(answers, alone[index], strict=True))
        gradient, predicted, attention, states, vector, again = answers
        assert close(gradient.vectors, victim.gradients([text], [1])[0].vectors, 1e-4)
        assert close(predicted.vectors, victim.gradients([text])[0].vectors, 1e-4)
        assert close(attention, victim.attention([text], layer=-1)[0])
        assert close(states.vectors, victim.embeddings([text])[0].layers[-1], 1e-4)
        assert close(vector, victim.sentence_vectors([text])[0], 1e-4)
        assert len(again.words) == len(text.words) - 1


def test_an_oracle_wants_a_victim_that_can() -> None:
    for oracle in (GradientOracle, AttentionOracle, EmbeddingOracle, SentenceOracle):
        with pytest.raises(CapabilityError, match=r"gives no (gradients|attention|embeddings)"):
            oracle(FakeVictim())


def test_a_bad_item_hurts_only_its_owner() -> None:
    victim = victim_of("bert")
    jobs = [("good", looks(Text("the film"), 1)), ("bad", looks(Text("the film"), 99))]
    oracles: dict[str, Any] = {
        "gradient": GradientOracle(victim),
        "attention": AttentionOracle(victim),
        "embedding": EmbeddingOracle(victim),
        "sentence": SentenceOracle(victim),
    }
    ends = {finished.key: finished for finished in Engine[Any](oracles).run(jobs)}
    assert ends["good"].error is None
    assert "there is no class 99" in str(ends["bad"].error)


def test_answers_are_rounded_to_a_grid_of_their_own_size() -> None:
    values = np.array([[1.0, 1e-9], [0.3, -0.7]], dtype=np.float32)
    for size in (1.0, 1e-12, 3e7):
        scaled = (values * size).astype(np.float32)
        noise = np.float32(1) + np.array([[2e-7, 0], [1e-7, -1e-7]], dtype=np.float32)
        assert np.array_equal(steady(scaled), steady(scaled * noise))
        assert close(steady(scaled), scaled, 2**-16)
    assert steady(np.zeros((2, 0), dtype=np.float32)).shape == (2, 0)
    assert not steady(np.zeros((2, 2), dtype=np.float32)).any()


# -- the conformance check ---------------------------------------------------------------------------


def test_the_check_finds_what_is_wrong() -> None:
    victim = tiny("bert")
    check_whitebox(FakeVictim(), ["a", "b", "c"])

    class Claims(FakeVictim):
        capabilities = frozenset({"probabilities", "gradients"})

    with pytest.raises(AssertionError, match="a method of WhiteBoxVictim is missing"):
        check_whitebox(Claims(), ["a", "b", "c"])

    class Neighbourly(HuggingFaceVictim):
        def jacobian(self, texts: Any, /) -> Any:
            return [array * len(texts) for array in super().jacobian(texts)]

    with pytest.raises(AssertionError, match="gradients depend on the other texts"):
        check_whitebox(Neighbourly(victim.model, victim.tokenizer), TEXTS)
    assert Marked("a", 0, ()) in {Marked("a", 0, ())}
