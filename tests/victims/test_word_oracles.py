"""Whole words inside real models, against plain loops over single texts; facts in the run file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stored_runs import on_text
from unfooled.core.questions import Mixture, Pull, mark, marked
from unfooled.core.victim import softmax
from unfooled.errors import CapabilityError
from unfooled.passes import to_device
from unfooled.runs.file import RunFile
from unfooled.text import Text
from unfooled.victims.fake import FakeVictim
from unfooled.victims.torch.mixtures import open_flips, open_mixture
from unfooled.victims.torch.word_oracles import (
    open_distance,
    open_projection,
    open_readable,
    open_vocabulary,
    open_zeroed,
)
from word_toys import VectorVictim

torch: Any = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tiny_models import PAIRS, PIECES, tiny, victim_of  # noqa: E402
from unfooled.victims.torch.huggingface import HuggingFaceVictim  # noqa: E402

KINDS = ("lstm", "bilstm-attention", "word-cnn", "bert", "roberta", "gpt2")
TEXTS: list[Any] = [
    "the film is good",
    "Films, very badly!",
    "a dull plot and a great movie 👍🏽",
    "the movie was fun",
    "good " * 40,
]


# -- vocabulary ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["lstm", "bert"])
def test_the_vocabulary_is_the_whole_words(kind: str) -> None:
    words = [piece for piece in PIECES if piece.isalpha()]  # no punctuation, no ##pieces, no special tokens
    assert victim_of(kind).vocabulary() == tuple(words)


def test_of_a_byte_tokenizer_the_words_behind_a_space_count() -> None:
    victim = victim_of("roberta")
    words, vectors = victim.vocabulary_vectors()
    assert "the" in words
    assert len(words) == len(set(words)) == len(vectors)
    table = victim.model.get_input_embeddings().weight.detach().numpy()
    spaced, bare = victim.tokenizer([" the", "the"], add_special_tokens=False)["input_ids"]
    assert spaced != bare
    assert np.array_equal(vectors[words.index("the")], table[spaced[0]])


@pytest.mark.parametrize("kind", KINDS)
def test_each_words_vector_is_what_the_model_reads_in_a_text(kind: str) -> None:
    victim = victim_of(kind)
    words, vectors = victim.vocabulary_vectors()
    assert vectors.dtype == np.float32
    for word, vector in list(zip(words, vectors, strict=True))[::3]:
        (found,) = victim.embeddings([f"the {word} is"])
        assert found.pieces[1] == 1
        assert np.array_equal(found.input[1], vector)


# -- zero vectors ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_zeroed_word_is_a_zero_vector(kind: str) -> None:
    victim = victim_of(kind)
    for value in [*TEXTS[:4], *([] if kind == "gpt2" else PAIRS)]:
        text = mark(value)
        reading = victim._read([text])[0]
        items = [(text, index) for index in range(len(text.words))]
        for (_, index), found in zip(items, victim.zeroed(items), strict=True):
            ids = to_device(torch.tensor([reading.ids]), victim.model)
            vectors = victim.model.get_input_embeddings()(ids).detach().clone()
            own = reading.alignment.tokens[reading.alignment.words == index]
            vectors[0, own] = 0.0
            kinds = {"token_type_ids": torch.tensor([reading.kinds])} if reading.kinds else {}
            kinds = to_device(kinds, victim.model)
            if kind == "gpt2":
                kinds = {}  # its segments are embedded with the same table, from ids that are not there
            with torch.no_grad():
                logits = victim.model(inputs_embeds=vectors, **kinds).logits.numpy()
            if kind != "gpt2" or not any(reading.kinds or ()):
                expected = softmax(logits)[0]
                if kind != "gpt2":
                    assert found == pytest.approx(expected, abs=1e-5)
            assert found.sum() == pytest.approx(1.0)


def test_several_pieces_become_zero_together_and_unread_words_change_nothing() -> None:
    victim = victim_of("bert")
    text = mark("the films")  # film ##s
    effect, other = victim.zeroed([(text, 1), (text, 0)])
    assert not np.allclose(effect, other)
    long = mark("good " * 40)
    assert victim.zeroed([(long, 39)])[0] == pytest.approx(victim.predict([long.value])[0], abs=1e-6)


def test_the_hook_is_gone_afterwards() -> None:
    victim = victim_of("lstm")
    before = victim.predict(TEXTS)
    victim.zeroed([(TEXTS[0], 1)])
    assert not victim.model.get_input_embeddings()._forward_hooks
    assert np.array_equal(victim.predict(TEXTS), before)


# -- slopes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_slopes_are_rows_of_the_jacobian_and_come_with_the_scores(kind: str) -> None:
    victim = victim_of(kind)
    for values in (TEXTS, PAIRS):
        labels = [index % 3 for index in range(len(values))]
        scores, jacobians = victim.predict(values), victim.jacobian(values)
        for at, slope in enumerate(victim.slopes(values, labels)):
            assert slope.scores == pytest.approx(scores[at], abs=1e-5)
            expected = jacobians[at][labels[at]]
            scale = max(1e-9, float(np.abs(expected).max()))
            assert slope.vectors == pytest.approx(expected, abs=1e-4 * scale)


def test_slopes_follow_the_order_of_the_labels() -> None:
    plain = tiny("lstm", classes=2)
    plain.model.config.id2label = {0: "bad", 1: "good"}
    turned = HuggingFaceVictim(plain.model, plain.tokenizer, labels=("good", "bad"))
    for slope, other in zip(plain.slopes(TEXTS, [0] * 5), turned.slopes(TEXTS, [1] * 5), strict=True):
        assert np.array_equal(slope.vectors, other.vectors)
        assert np.array_equal(slope.scores, other.scores[::-1])


@pytest.mark.parametrize("kind", ["lstm", "bilstm-attention", "word-cnn"])
def test_neighbours_are_not_felt(kind: str) -> None:
    victim = victim_of(kind)
    rng = np.random.default_rng(1)
    texts = [Text(" ".join(rng.choice(PIECES[:12], size=size))) for size in rng.integers(2, 20, size=50)]
    asked = [marked(text, sorted(rng.choice(len(text.words), size=2, replace=False))) for text in texts]
    together = victim.slopes(asked, [1] * 50)
    for text, slope in zip(asked, together, strict=True):
        (alone,) = victim.slopes([text], [1])
        scale = float(np.abs(slope.vectors).max())
        assert alone.vectors == pytest.approx(slope.vectors, abs=1e-6 * scale)
        assert alone.scores == pytest.approx(slope.scores, abs=1e-7)


@pytest.mark.parametrize("options", [{}, {"layers": 2}, {"pool": "mean"}, {"bidirectional": True}])
def test_late_words_have_the_gradient_that_they_have_in_the_whole_text(options: dict[str, Any]) -> None:
    """Of an LSTM that decides at the end only what follows a kept state is read again."""
    from unfooled.victims.torch.word_models.configuration import WordModelConfig
    from unfooled.victims.torch.word_models.modeling import WordModelForSequenceClassification

    torch.manual_seed(0)
    tokenizer = victim_of("lstm").tokenizer
    config = WordModelConfig(
        kind="lstm", vocab_size=len(tokenizer), embedding_size=8, hidden_size=8, num_labels=2, **options
    )
    model: Any = WordModelForSequenceClassification(config)
    victim = HuggingFaceVictim(model.eval(), tokenizer, max_length=200)
    rng = np.random.default_rng(2)
    for _ in range(3):
        texts = [Text(" ".join(rng.choice(PIECES[:12], size=size))) for size in (5, 31, 36, 64, 70, 150, 150)]
        late = [(max(0, len(text.words) - 3), len(text.words) - 1) for text in texts]
        found = victim.slopes(
            [marked(text, places) for text, places in zip(texts, late, strict=True)], [1] * 7
        )
        whole, scores = victim.jacobian(texts), victim.predict([text.value for text in texts])
        for slope, all_, row, places in zip(found, whole, scores, late, strict=True):
            scale = float(np.abs(all_[1]).max())
            assert slope.vectors == pytest.approx(all_[1][list(places)], abs=1e-5 * scale)
            assert slope.scores == pytest.approx(row, abs=1e-6)
    assert all(
        "forward" not in vars(module) for module in model.modules() if isinstance(module, torch.nn.LSTM)
    )
    kept = victim._beginnings
    assert (kept is None) == bool(options.keys() & {"pool", "bidirectional"})
    if kept is not None:
        # Where late words begin, down to a multiple of 16; two places before that as well.
        assert {len(beginning) for beginning in kept._known} == {16, 32, 48, 64, 112, 128, 144}


def test_a_state_is_the_same_to_the_bit_whichever_longer_beginning_it_was_met_in() -> None:
    from unfooled.victims.torch.word_passes import PrefixCache

    victim = victim_of("lstm")
    ids = tuple(np.random.default_rng(3).integers(1, 8, size=48).tolist())
    ways = []
    for learned in ([ids], [ids[:16]], [ids[:32], (1,) * 48, ids[:16]]):
        kept = PrefixCache(victim.model)
        kept.learn(learned)
        ways.append(kept._known[ids[:16]])
    assert all(torch.equal(ways[0], other) for other in ways[1:])


@pytest.mark.parametrize("kind", ["lstm", "word-cnn"])
def test_texts_read_by_stretches_are_those_of_the_tokenizer(kind: str) -> None:
    from unfooled.victims.torch.classifier_states import TorchWhiteBox
    from unfooled.victims.torch.tokens import tokenise
    from unfooled.victims.torch.word_models.vocabulary import build_word_tokenizer
    from unfooled.victims.torch.word_passes import StretchReader

    texts = [
        "Don't stop, it's   the café's 1990s–film!!",
        "",
        "..",
        "a\u2003b\tc\nd 👍🏽👍🏽 x",
        "good " * 40,
        "the's",
    ]
    tokenizer = build_word_tokenizer(["do n't stop it 's the café film a b c d good 1990s"], min_count=1)
    plain = victim_of(kind)
    victim = HuggingFaceVictim(plain.model, tokenizer, name="own", max_length=24)
    marked = [mark(text) for text in texts]
    for reading, other in zip(victim._read(marked), TorchWhiteBox._read(victim, marked), strict=True):
        assert reading.ids == other.ids
        assert reading.alignment.pieces.tolist() == other.alignment.pieces.tolist()
        assert reading.alignment.tokens.tolist() == other.alignment.tokens.tolist()
        assert reading.alignment.words.tolist() == other.alignment.words.tolist()
    singly = [text._replace(spans=text.spans[-1:]) for text in marked if text.spans]
    for reading, other in zip(victim._read(singly), TorchWhiteBox._read(victim, singly), strict=True):
        assert reading.alignment.pieces.tolist() == other.alignment.pieces.tolist()
        assert reading.alignment.tokens.tolist() == other.alignment.tokens.tolist()
    assert victim._reader is not None
    assert victim._reader.ids(texts) is not None
    fresh = StretchReader.of(tokenizer, 24)
    assert fresh is not None
    assert fresh.ids([*texts, "quite another text"]) is None  # better read as a whole
    assert victim.tokens(texts) == tokenise(tokenizer, texts, None, 24)
    assert victim.tokens(texts)[1] == 1
    # One that adds tokens around a text is left to itself.
    assert StretchReader.of(victim_of("bert").tokenizer, 24) is None


# -- oracles ---------------------------------------------------------------------------------------


def test_the_vocabulary_oracle_takes_the_first_words() -> None:
    assert open_vocabulary(VectorVictim(), "3:victim")(["words", "words"]) == [("film", "good", "great")] * 2
    assert len(open_vocabulary(VectorVictim(), "all:victim")(["words"])[0]) == 7


def test_readable_words_are_those_with_tokens() -> None:
    victim = victim_of("bert")
    (found,) = open_readable(victim, "")([mark("good " * 40)])
    assert found == tuple(range(22))  # 24 positions, two of them special
    assert open_readable(VectorVictim(reads=1), "")([mark("a b")]) == [(0,)]


def test_distances_are_those_of_the_sentence_vectors() -> None:
    victim = victim_of("lstm")
    oracle = open_distance(victim, "mean")
    items = [(TEXTS[0], TEXTS[1]), (TEXTS[0], TEXTS[0]), (PAIRS[0], PAIRS[1])]
    found = oracle(items[:2]) + oracle(items[2:])
    for (before, after), distance in zip(items, found, strict=True):
        vector, other = (victim.sentence_vectors([text], pool="mean")[0] for text in (before, after))
        assert distance == pytest.approx(np.abs(vector - other).sum(), rel=1e-3, abs=1e-6)
    assert found[1] == 0.0
    with pytest.raises(ValueError, match="the pool must be one of"):
        open_distance(victim, "sum")


def test_a_victim_that_shows_nothing_is_refused() -> None:
    for open_ in (open_zeroed, open_readable, open_distance, open_projection, open_vocabulary):
        with pytest.raises(CapabilityError):
            open_(FakeVictim(), "head" if open_ is open_distance else "all:victim")
    with pytest.raises(CapabilityError, match="gives no gradients"):
        open_projection(VectorVictim(capabilities=("probabilities",)), "all:victim")


# -- facts -----------------------------------------------------------------------------------------

EVEN = (0.5, 0.5)
FACTS = (("distance", 1.5), ("draws", 3))
RESULT = on_text("a", "a", probs=EVEN, perturbed_probs=EVEN, outcome="failure", facts=FACTS)


def test_facts_survive_in_the_run_file(tmp_path: Path) -> None:
    with RunFile.open(tmp_path, {"identity": {}}) as run:
        run.add(RESULT)
        assert list(run.results()) == [RESULT]


# -- blends of words -------------------------------------------------------------------------------


def blend(text: Any, options: Any, weights: Any, label: int = 0) -> Mixture:
    given = Text(text) if isinstance(text, str) else Text(dict(zip("ab", text, strict=True)))
    return Mixture(marked(given, range(len(options))), label, options, weights)


@pytest.mark.parametrize("kind", ["lstm", "bilstm-attention", "word-cnn", "bert"])
def test_with_all_weight_on_a_whole_word_the_victim_reads_that_text(kind: str) -> None:
    victim = victim_of(kind)
    words = ("film", "movie", "plot")
    for number, word in enumerate(words):
        weights = tuple(float(number == at) for at in range(len(words)))
        (told,) = victim.mixed([blend("a film is good", ((), words[1:]), ((1.0,), weights), 1)])
        (scores,) = victim.predict([f"a {word} is good"])
        others = [score for label, score in enumerate(scores) if label != 1]
        assert told.margin == pytest.approx(float(np.log(scores[1] / max(others))), abs=1e-4)


# Not the CNN: its highest window may change within the step.
@pytest.mark.parametrize("kind", ["lstm", "bilstm-attention", "bert", "roberta", "gpt2"])
def test_the_slopes_of_a_blend_are_its_differences(kind: str) -> None:
    victim = victim_of(kind)
    start = np.array([0.6, 0.3, 0.1])
    options = ((), ("movie", "dull"))

    def margin(weights: np.ndarray) -> float:
        (told,) = victim.mixed([blend("a film is good", options, ((1.0,), tuple(weights.tolist())))])
        return float(told.margin)

    (told,) = victim.mixed([blend("a film is good", options, ((1.0,), tuple(start.tolist())))])
    for at in range(3):
        step = 0.02 * np.eye(3)[at]
        change = (margin(start + step) - margin(start - step)) / 0.04
        assert told.slopes[1][at] == pytest.approx(change, abs=2e-3, rel=0.05)


@pytest.mark.parametrize("kind", ["lstm", "bert", "roberta"])
def test_blends_do_not_depend_on_their_company(kind: str) -> None:
    victim = victim_of(kind)
    items = [
        blend("the film is good", (("movie",), ("plot", "movies")), ((0.5, 0.5), (0.2, 0.5, 0.3))),
        blend("films, very badly!", (("movie",),), ((0.0, 1.0),), 1),
        blend("good " * 40, (("bad",),), ((0.5, 0.5),)),
    ]
    pairs = [
        blend(("the film", "is very good"), (("was",), ("not",)), ((0.5, 0.5), (1.0, 0.0))),
        blend(("a plot", "dull films"), (("good",),), ((0.3, 0.7),)),
    ]
    oracle = open_mixture(victim, "")
    together = oracle(items * 3)[: len(items)] + oracle(pairs * 5)[: len(pairs)]
    for number, item in enumerate([*items, *pairs]):
        (alone,) = oracle([item])
        assert alone.margin == together[number].margin
        for mine, theirs in zip(alone.slopes, together[number].slopes, strict=True):
            assert mine.tolist() == theirs.tolist()


@pytest.mark.parametrize("kind", ["lstm", "word-cnn", "bert"])
def test_the_best_flips_are_those_of_a_plain_loop(kind: str) -> None:
    victim = victim_of(kind)
    text = mark("the film is good")
    words, table = victim.vocabulary_vectors()
    gradient = victim.gradients([text], [0])[0].vectors.astype(np.float64)
    own = victim.embeddings([text])[0].input
    gains = {
        (place, word): float(gradient[place] @ (vector.astype(np.float64) - own[place]))
        for place in range(4)
        for word, vector in zip(words, table, strict=True)
        if word != text.words[place]
    }
    best = sorted(gains, key=lambda flip: -gains[flip])[:5]
    (found,) = open_flips(victim, "")([Pull(text, 0, False, 5)])
    assert [tuple(flip) for flip in found] == best
    (each,) = open_flips(victim, "each")([Pull(text, 0, False, 1)])
    firsts = [max((flip for flip in gains if flip[0] == place), key=gains.__getitem__) for place in range(4)]
    assert [tuple(flip) for flip in each] == firsts
