"""FuSE and FIVE: votes by hand, copies that belong to their text, and victims like any other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toys import encoder, neighbours, tags
from unfooled.core.questions import WordVectors, mark
from unfooled.core.result import Example
from unfooled.core.victim import Probabilities, TextValue, Victim, digest
from unfooled.core.victim_oracle import validate
from unfooled.defenses.checks import _frame, check_defense, recorded
from unfooled.defenses.ensemble import innermost
from unfooled.defenses.five import Five, FiveVictim
from unfooled.defenses.fuse import Fuse, FuseVictim
from unfooled.defenses.switching import Switcher
from unfooled.defenses.voting import Vote, combine
from unfooled.errors import CapabilityError, UserError, VictimError
from unfooled.victims.fake import FakeVictim
from unfooled.victims.loading import load_victim
from unfooled.victims.torch.noise import NoisyText
from unfooled.victims.torch.oracles import GradientOracle

torch = pytest.importorskip("torch")

from tiny_models import tiny  # noqa: E402

WORDS = ["film", "movie", "good", "great", "bad", "dull", "fun", "plot", "very"]
NEAR = {word: [other for other in WORDS if other != word] for word in WORDS}
TEXTS: list[TextValue] = [
    "The film is good, and the plot was GREAT!",
    "a dull movie",
    "not very good . . . bad",
    "!!!",
    "the fun film was a bad movie and the dull plot is not very good",
]
PAIRS: list[TextValue] = [
    ("the film is good", "a great movie"),
    ("a plot", "the film was bad and dull"),
    ("good", "not very fun"),
]


def fuse(model: Victim, **settings: Any) -> FuseVictim:
    """Real gradients; neighbours, tags and encoder by heart."""
    chosen = Fuse(**({"words": 2, "alternatives": 4, "multiplier": 2} | settings))
    frozen = innermost(model)
    oracles: dict[str, Any] = {
        "neighbours:counter-fitted": neighbours(NEAR),
        "tag:perceptron-tagger": tags({}),
        "encode:minilm": encoder(),
        "gradients:loss": GradientOracle(frozen),
    }
    switcher = Switcher(chosen, frozen, oracles={name: oracles[name] for name in chosen.asks})
    victim = FuseVictim(model, chosen, switcher=switcher)
    victim.spec = "toy"  # oracles made here cannot travel to another process
    return victim


def five(model: Victim, **settings: Any) -> FiveVictim:
    victim = FiveVictim(model, Five(**({"words": 2, "sigma": 0.7, "copies": 4} | settings)))
    victim.spec = getattr(model, "spec", "")
    return victim


# -- votes -----------------------------------------------------------------------------------------

COPIES = np.array([[0.6, 0.3, 0.1], [0.5, 0.4, 0.1], [0.1, 0.8, 0.1]])


def test_mean_of_probabilities_by_hand() -> None:
    np.testing.assert_allclose(combine(COPIES, "mean-probs"), [0.4, 0.5, 0.1])


def test_mean_of_logits_by_hand() -> None:
    # The geometric means are cube roots of .03, .096 and .001, then scaled to one.
    roots = np.cbrt([0.03, 0.096, 0.001])
    np.testing.assert_allclose(combine(COPIES, "mean-logits"), roots / roots.sum())


def test_mean_of_logits_does_not_depend_on_what_the_softmax_forgets() -> None:
    logits = np.array([[1.0, -2.0, 0.5], [300.0, 302.0, 299.0]])
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities = shifted / shifted.sum(axis=1, keepdims=True)
    mean = logits.mean(axis=0)
    expected = np.exp(mean - mean.max()) / np.exp(mean - mean.max()).sum()
    np.testing.assert_allclose(combine(probabilities, "mean-logits"), expected)


def test_majority_by_hand() -> None:
    # Two of three copies decide for the first class, though its mean is the smaller one.
    found = combine(COPIES, "majority")
    np.testing.assert_allclose(found, [2 / 3, 1 / 3, 0], atol=1e-3)
    assert found.sum() == pytest.approx(1.0)
    assert found.argmax() == 0


def test_equal_counts_fall_to_the_higher_mean() -> None:
    tied = np.array([[0.55, 0.45], [0.1, 0.9]])
    assert combine(tied, "majority").argmax() == 1
    np.testing.assert_allclose(combine(tied, "majority"), [0.5, 0.5], atol=1e-3)


def test_votes_of_many_texts_at_once() -> None:
    many = np.stack([COPIES, COPIES[::-1], COPIES * 0 + 1 / 3])
    votes: tuple[Vote, ...] = ("majority", "mean-logits", "mean-probs")
    for vote in votes:
        together = combine(many, vote)
        np.testing.assert_allclose(together, [combine(answers, vote) for answers in many])


def test_impossible_answers_do_not_become_nan() -> None:
    sure = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    assert np.isfinite(combine(sure, "mean-logits")).all()
    assert combine(sure, "mean-logits").argmax() == 1


# -- both ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [fuse, five])
@pytest.mark.parametrize(
    ("kind", "vote"),
    [("bert", "majority"), ("bert", "mean-logits"), ("lstm", "mean-probs"), ("roberta", "mean-probs")],
)
def test_the_conformance_suite(make: Any, kind: str, vote: str) -> None:
    model = tiny(kind)
    check_defense(lambda inner, **more: make(inner, vote=vote, **more), model, TEXTS)


@pytest.mark.parametrize("make", [fuse, five])
def test_the_conformance_suite_with_pairs(make: Any) -> None:
    check_defense(make, tiny("bert"), PAIRS)


class FromOthers(FuseVictim):
    """The published bug: alternatives are looked up by a row number, not made from the text."""

    def _vote(self, texts: Sequence[TextValue], seeds: Sequence[int]) -> Probabilities:
        others = list(texts[1:]) + list(texts[:1]) if len(texts) > 1 else [TEXTS[0]]
        return np.asarray(self.inner.predict(texts) / 2 + self.inner.predict(others) / 2)


class FirstExample(FuseVictim):
    """The same under attack: the neighbours of the first test example vote on every text."""

    def _vote(self, texts: Sequence[TextValue], seeds: Sequence[int]) -> Probabilities:
        first = self.inner.predict([TEXTS[0]] * len(texts))
        return np.asarray(self.inner.predict(texts) / 3 + 2 * first / 3)


@pytest.mark.parametrize("broken", [FromOthers, FirstExample])
def test_the_suite_catches_alternatives_of_other_texts(broken: type[FuseVictim]) -> None:
    with pytest.raises(AssertionError, match=r"belongs to none|depend on|changes another"):
        check_defense(lambda inner, **more: broken(inner, Fuse(**more)), tiny("bert"), TEXTS)


@pytest.mark.parametrize("make", [fuse, five])
def test_under_attack_every_copy_belongs_to_the_text_in_question(make: Any) -> None:
    from unfooled.core.recipe import load_recipe
    from unfooled.core.session import Session

    model = tiny("bert", classes=2)
    victim = make(model)
    ordinary = type(victim)._vote
    seen: list[int] = []

    class Watched(type(victim)):  # type: ignore[misc]
        def _vote(self, texts: Sequence[TextValue], seeds: Sequence[int]) -> Probabilities:
            with recorded(self.inner) as asked:
                answers: Probabilities = ordinary(self, texts, seeds)
            own = {_frame(text) for text in texts}
            assert {_frame(text) for text in asked} <= own
            seen.append(len(asked))
            return answers

    victim.__class__ = Watched
    plain = [text for text in TEXTS if text != "!!!"]
    labels = victim.predict(plain).argmax(axis=1).tolist()
    examples = [
        Example(key, (("text", str(text)),), label, "text")
        for key, (text, label) in enumerate(zip(plain, labels, strict=True))
    ]
    together = {result.key: result for result in Session(victim, load_recipe("deepwordbug")).attack(examples)}
    assert len(seen) > 2
    assert all(result.outcome in ("success", "failure") for result in together.values())
    for example in examples:
        (alone,) = Session(victim, load_recipe("deepwordbug")).attack([example])
        assert alone == together[example.key]


def test_a_correct_fuse_does_not_collapse() -> None:
    """On a model that reads one word, alternatives that keep its meaning keep the answers."""

    class Reader(FakeVictim):
        capabilities = frozenset({"probabilities", "gradients"})

    model = Reader()
    near = {"superb": ["great", "excellent"], "awful": ["terrible", "horrible"], "story": ["plot"]}
    chosen = Fuse(words=3, alternatives=6, multiplier=1, vote="majority")

    def lengths(items: Sequence[Any]) -> list[WordVectors]:
        sizes = [len(item.text.words) for item in items]
        return [
            WordVectors(item.text.words, np.ones(n, np.int64), np.ones((n, 1), np.float32))
            for item, n in zip(items, sizes, strict=True)
        ]

    lengths.batch_size = 100  # type: ignore[attr-defined]
    oracles: dict[str, Any] = {
        "neighbours:counter-fitted": neighbours(near),
        "tag:perceptron-tagger": tags({}),
        "encode:minilm": encoder(),
        "gradients:loss": lengths,
    }
    victim = FuseVictim(model, chosen, switcher=Switcher(chosen, model, oracles=oracles))
    texts = ["a superb story", "an awful story", "superb", "awful"] * 5
    assert victim.predict(texts).argmax(axis=1).tolist() == [1, 0, 1, 0] * 5


def test_fuse_votes_over_the_text_and_its_alternatives() -> None:
    model = tiny("bert")
    victim = fuse(model)
    with recorded(model) as asked:
        (found,) = victim.predict(["a good film"])
    assert asked[0] == "a good film"
    assert 1 < len(asked) <= 5
    np.testing.assert_allclose(found, model.predict(asked).mean(axis=0))
    without = fuse(model, original=False)
    with recorded(model) as others:
        without.predict(["a good film"])
    assert others == asked[1:]


def test_a_text_with_nothing_to_swap_is_classified_as_it_stands() -> None:
    model = tiny("bert")
    for original in (True, False):
        np.testing.assert_allclose(fuse(model, original=original).predict(["!!!"]), model.predict(["!!!"]))


# -- noise -----------------------------------------------------------------------------------------


def test_noise_lies_on_every_chosen_word_and_nowhere_else() -> None:
    model = tiny("bert")
    text = mark("the films is goodly and dull")  # "films" and "goodly" have two pieces each
    item = NoisyText(text, (1, 3), np.random.default_rng(3))
    captured: list[Any] = []
    # The layer behind the sum of word, segment and place sees what the noise did.
    follow = model.model.bert.embeddings.LayerNorm.register_forward_pre_hook(
        lambda _, args: captured.append(args[0].detach().numpy().copy())
    )
    try:
        model.noisy_logits([item], sigma=2.0, copies=3)
        model.predict([text.value])
    finally:
        follow.remove()
    noisy, plain = captured
    moved = np.abs(noisy - plain).max(axis=-1) > 1e-4  # [copies, tokens]
    # [CLS] the film ##s is good ##ly and dull [SEP]
    expected = [False, False, True, True, False, True, True, False, False, False]
    assert moved.tolist() == [expected] * 3
    values = (noisy - plain)[:, np.flatnonzero(expected)]
    drawn = np.random.default_rng(3).standard_normal((3, 4, values.shape[-1]), dtype=np.float32) * 2.0
    np.testing.assert_allclose(values, drawn, atol=1e-4)


def test_without_noise_every_copy_is_the_text() -> None:
    for kind in ("bert", "lstm", "roberta"):
        model = tiny(kind)
        victim = five(model, sigma=0.0)
        np.testing.assert_allclose(victim.predict(TEXTS), model.predict(TEXTS), atol=1e-6)


def test_more_noise_moves_more() -> None:
    model = tiny("bert")
    plain = model.predict(TEXTS)
    gaps = [
        np.abs(five(model, sigma=s, original=False).predict(TEXTS) - plain).mean() for s in (0.01, 0.3, 3)
    ]
    assert gaps == sorted(gaps)


def test_noise_is_on_the_most_important_word() -> None:
    model = tiny("bert")
    text = "the film is good and the plot was dull"
    (slopes,) = model.gradients([text])
    kept = [i for i, word in enumerate(slopes.words) if word in ("film", "good", "plot", "dull")]
    best = max(kept, key=lambda i: slopes.norms[i])
    (item,), logits = five(model, words=1)._noisy([mark(text)], [0])
    assert logits is not None
    np.testing.assert_allclose(logits, model.raw_logits([text]), atol=1e-4)
    assert item.words == (best,)


def test_sigma_is_also_given_relative_to_the_embeddings() -> None:
    model = tiny("bert")
    norms = model.model.get_input_embeddings().weight.detach().norm(dim=1)
    described = five(model, sigma=0.5).describe()
    assert described["mean_embedding_norm"] == pytest.approx(float(norms.mean()), abs=1e-3)
    assert described["relative_sigma"] == pytest.approx(0.5 / float(norms.mean()), rel=1e-2)
    assert described["relative_noise_norm"] == pytest.approx(0.5 * 4 / float(norms.mean()), rel=1e-2)


def test_gradients_are_the_mean_over_copies() -> None:
    model = tiny("bert")
    texts = ["the film is good", "a dull plot"]
    quiet = five(model, sigma=0.0).gradients(texts, [0, 1], of="logit")
    for found, expected in zip(quiet, model.gradients(texts, [0, 1], of="logit"), strict=True):
        np.testing.assert_allclose(found.vectors, expected.vectors, rtol=1e-3, atol=1e-5)
    loud = five(model, sigma=3.0).gradients(texts, [0, 1], of="logit")
    assert np.abs(loud[0].vectors - quiet[0].vectors).max() > 1e-4
    assert [slopes.shape for slopes in five(model).jacobian(texts)] == [
        slopes.shape for slopes in model.jacobian(texts)
    ]


def test_gradients_of_fuse_leave_out_what_was_swapped() -> None:
    model = tiny("bert")
    victim = fuse(model, words=1, alternatives=3)
    (found,) = victim.gradients(["a good film"], [1], of="logit")
    (made,) = victim.switcher.each([_text("a good film")])
    copies = [victim._alternative(_text("a good film"), made, choice) for choice in made.choices]
    total = model.gradients(["a good film"], [1], of="logit")[0].vectors.copy()
    for copy in copies:
        other = model.gradients([copy], [1], of="logit")[0].vectors.copy()
        other[list(made.plan.positions)] = 0
        total += other
    np.testing.assert_allclose(found.vectors, total / (1 + len(copies)), rtol=1e-3, atol=1e-6)


def _text(string: str) -> Any:
    from unfooled.defenses.switch import as_text

    return as_text(string)


# -- one around the other --------------------------------------------------------------------------


def test_they_wrap_each_other() -> None:
    model = tiny("bert")
    outer = fuse(five(model, copies=2), alternatives=2)
    check_defense(lambda inner, **more: fuse(five(inner, copies=2), alternatives=2, **more), model, TEXTS[:3])
    assert outer.name == "fuse(five(tiny-bert))"
    other = five(fuse(model, alternatives=2), copies=2)
    check_defense(lambda inner, **more: five(fuse(inner, alternatives=2), copies=2, **more), model, TEXTS[:3])
    assert other.name == "five(fuse(tiny-bert))"
    assert "gradients" not in other.capabilities
    still = five(fuse(model, alternatives=2), copies=2, sigma=0.0).predict(TEXTS)
    np.testing.assert_allclose(still, fuse(model, alternatives=2).predict(TEXTS), atol=1e-5)


def test_noise_on_the_premise_goes_through_fuse_of_the_hypothesis(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny("bert")
    premise = "the film is good and the plot was great"
    noised: list[NoisyText] = []
    read = model.noisy_logits

    def watched(items: Sequence[NoisyText], **more: Any) -> Any:
        noised.extend(items)
        return read(items, **more)

    monkeypatch.setattr(model, "noisy_logits", watched)
    five(fuse(model, alternatives=2), field=0, copies=2).predict([(premise, "fun")])
    assert len({item.text.value for item in noised}) == len(noised) == 3
    assert {item.text.field for item in noised} == {0}
    assert all(" ".join(item.text.words) == premise for item in noised)


def test_only_a_model_with_embeddings_can_be_noised() -> None:
    with pytest.raises(CapabilityError, match="FIVE adds noise"):
        FiveVictim(FakeVictim())


def test_labels_without_scores_have_no_logits() -> None:
    class Decided(FakeVictim):
        capabilities = frozenset()

        def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
            return np.asarray(super().predict(texts) >= 0.5, dtype=np.float64)

    with pytest.raises(CapabilityError, match="no logits"):
        FuseVictim(Decided(), Fuse(vote="mean-logits"))
    lent = Fuse(vote="majority", switch_model="models/x")
    assert "probabilities" in FuseVictim(Decided(), lent).capabilities


@pytest.mark.parametrize(
    ("kind", "setting", "value"),
    [(Five, "copies", 0), (Five, "sigma", -1.0), (Five, "vote", "loud"), (Fuse, "vote", "loud"),
     (Five, "importance", "luck"), (Fuse, "words", 0), (Five, "stopwords", "x")],
)  # fmt: skip
def test_settings_that_make_no_sense(kind: Any, setting: str, value: Any) -> None:
    with pytest.raises(UserError, match=f"{setting}={value}"):
        kind(**{setting: value})


# -- on disk and by name ---------------------------------------------------------------------------


def saved(folder: Path, **options: Any) -> Path:
    model = tiny("bert", classes=2, **options)
    model.tokenizer.model_max_length = 24
    model.model.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return saved(tmp_path / "base")


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A model of the same texts that looks at other words."""
    return saved(tmp_path / "other", seed=8)


def test_five_by_name_with_options(folder: Path) -> None:
    victim = load_victim(f"five:{folder}", copies="3", sigma="0.5", vote="majority", max_length=12)
    assert isinstance(victim, FiveVictim)
    assert victim.settings == Five(copies=3, sigma=0.5, vote="majority")
    assert victim.inner.max_length == 12  # type: ignore[attr-defined]
    assert victim.name == "five(base)"
    again = load_victim(victim.spec, **victim.options)
    np.testing.assert_array_equal(again.predict(TEXTS), victim.predict(TEXTS))
    assert again.fingerprint() == victim.fingerprint()


def test_a_saved_defence_is_a_model(folder: Path, tmp_path: Path) -> None:
    from unfooled.defenses.harden import harden

    out = tmp_path / "guarded"
    harden(str(folder), method="five", out=out, options={"copies": "3", "sigma": 0.4})
    content = json.loads((out / "defense.json").read_text())
    assert content["model"] == "../base"
    assert content["described"]["relative_sigma"] > 0
    victim = load_victim(str(out))
    assert isinstance(victim, FiveVictim)
    assert victim.name == "guarded"
    assert victim.settings.copies == 3
    assert load_victim(str(out), copies=5).settings.copies == 5  # type: ignore[attr-defined]
    assert load_victim(str(out), fresh=True).stochastic  # type: ignore[attr-defined]
    # A move of both folders together changes nothing.
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for place in (folder, out):
        place.rename(moved / place.name)
    np.testing.assert_array_equal(load_victim(str(moved / "guarded")).predict(TEXTS), victim.predict(TEXTS))


def test_a_defence_around_a_defence_is_saved_too(folder: Path, tmp_path: Path) -> None:
    from unfooled.defenses.harden import harden

    harden(str(folder), method="five", out=tmp_path / "inner", options={"copies": 2})
    harden(str(tmp_path / "inner"), method="fuse", out=tmp_path / "outer", options={"alternatives": 2})
    harden(f"five:{folder}", method="fuse", out=tmp_path / "direct")
    outer = load_victim(str(tmp_path / "outer"))
    assert isinstance(outer, FuseVictim)
    assert isinstance(outer.inner, FiveVictim)
    assert json.loads((tmp_path / "direct" / "defense.json").read_text())["model"] == "five:../base"
    assert isinstance(load_victim(str(tmp_path / "direct")).inner, FiveVictim)  # type: ignore[attr-defined]


def test_a_model_without_gradients_may_borrow_them(folder: Path, tmp_path: Path) -> None:
    from unfooled.defenses.harden import harden

    with pytest.raises(CapabilityError, match="FuSE needs gradients for SWITCH, which fake"):
        harden("fake", method="fuse", out=tmp_path / "lent")
    harden("fake", method="fuse", out=tmp_path / "lent", options={"switch_model": str(folder)})
    content = json.loads((tmp_path / "lent" / "defense.json").read_text())
    assert content["settings"]["switch_model"] == "../base"
    victim = load_victim(str(tmp_path / "lent"))
    assert isinstance(victim, FuseVictim)
    assert victim.frozen.fingerprint() == load_victim(str(folder)).fingerprint()
    assert "gradients" not in victim.capabilities


def noisy_words(victim: Any) -> list[tuple[int, ...]]:
    items, _ = victim._noisy([victim._marked(text) for text in TEXTS], [0] * len(TEXTS))
    return [item.words for item in items]


def test_five_may_take_its_words_from_another_model(folder: Path, other: Path, tmp_path: Path) -> None:
    from unfooled.defenses.harden import harden

    own, others = load_victim(f"five:{folder}", words=2), load_victim(f"five:{other}", words=2)
    assert noisy_words(own) != noisy_words(others)
    harden(str(folder), method="five", out=tmp_path / "lent", options={"words": 2, "switch_model": other})
    content = json.loads((tmp_path / "lent" / "defense.json").read_text())
    assert (content["model"], content["settings"]["switch_model"]) == ("../base", "../other")
    assert content["described"]["mean_embedding_norm"] == own.describe()["mean_embedding_norm"]  # type: ignore[attr-defined]
    lent = load_victim(str(tmp_path / "lent"))
    assert isinstance(lent, FiveVictim)
    assert noisy_words(lent) == noisy_words(others)
    assert noisy_words(lent.redrawn(1)) == noisy_words(others)
    assert lent.redrawn(1).frozen is lent.frozen
    # The answers are those of the model inside: without noise nothing tells whose words they were.
    still = load_victim(str(tmp_path / "lent"), sigma=0.0)
    np.testing.assert_allclose(still.predict(TEXTS), load_victim(str(folder)).predict(TEXTS), atol=1e-6)
    assert np.abs(lent.predict(TEXTS) - own.predict(TEXTS)).max() > 1e-3


def test_the_lending_model_is_in_the_fingerprint(folder: Path, other: Path) -> None:
    def lent() -> str:
        return load_victim(f"five:{folder}", switch_model=str(other)).fingerprint()

    before = lent()
    assert before == lent() != load_victim(f"five:{folder}").fingerprint()
    saved(other, seed=9)
    assert lent() != before


def test_the_fingerprint_of_five_without_another_model_is_what_it_was() -> None:
    victim = five(tiny("bert"))
    settings = {name: value for name, value in asdict(victim.settings).items() if name != "switch_model"}
    earlier = digest("five", json.dumps(settings, sort_keys=True), victim.inner.fingerprint())
    assert victim.fingerprint() == earlier


def test_five_says_which_lending_model_is_wrong(folder: Path, tmp_path: Path) -> None:
    from unfooled.defenses.harden import harden

    for out in (tmp_path / "guarded", None):
        with pytest.raises(VictimError, match="switch_model=models/nowhere/at/all: "):
            harden(str(folder), method="five", out=out, options={"switch_model": "models/nowhere/at/all"})
    assert not (tmp_path / "guarded").exists()
    with pytest.raises(CapabilityError, match="switch_model=fake: fake gives no gradients"):
        load_victim(f"five:{folder}", switch_model="fake")


def test_a_changed_model_is_noticed(folder: Path, tmp_path: Path) -> None:
    from unfooled.defenses.harden import harden

    harden(str(folder), method="five", out=tmp_path / "guarded")
    other = tiny("bert", classes=2, seed=8)
    other.model.save_pretrained(folder)
    with pytest.raises(VictimError, match="not the one that was hardened"):
        load_victim(str(tmp_path / "guarded"))


def test_bad_folders_and_names(folder: Path, tmp_path: Path) -> None:
    from unfooled.defenses.harden import harden

    bad = tmp_path / "bad"
    bad.mkdir()
    (bad / "defense.json").write_text("{")
    with pytest.raises(VictimError, match=r"defense\.json cannot be read"):
        load_victim(str(bad))
    (bad / "defense.json").write_text('{"format": 1, "method": "five"}')
    with pytest.raises(VictimError, match="model is missing"):
        load_victim(str(bad))
    with pytest.raises(VictimError, match="around which model"):
        load_victim("five:")
    with pytest.raises(VictimError, match="no option 'copis'") as caught:
        load_victim(f"five:{folder}", copis=3)
    assert "copies" in caught.value.remedy
    with pytest.raises(VictimError, match="sigma=loud is not a number"):
        load_victim(f"five:{folder}", sigma="loud")
    with pytest.raises(CapabilityError, match="FIVE adds noise"):
        load_victim("five:fake")
    with pytest.raises(UserError, match="is not empty"):
        harden(str(folder), method="five", out=folder)
    harden(str(folder), method="five", out=tmp_path / "guarded")
    with pytest.raises(UserError, match="already holds a defence"):
        harden(str(folder), method="five", out=tmp_path / "guarded")
    harden(str(folder), method="five", out=tmp_path / "guarded", options={"copies": 2}, restart=True)
    assert load_victim(str(tmp_path / "guarded")).settings.copies == 2  # type: ignore[attr-defined]


def test_fresh_draws_repeat_with_the_seed_and_average_out() -> None:
    model = tiny("bert")
    texts = TEXTS[:1] * 3
    first, again = (five(model, fresh=True).predict(texts) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert len({tuple(row) for row in first.tolist()}) == 3  # equal texts, other draws
    victim = five(model, fresh=True, copies=2)
    many = np.stack([victim.predict(texts) for _ in range(60)])
    assert (np.abs(many.std(axis=0)) > 0).any()
    halves = many[:30].mean(axis=(0, 1)), many[30:].mean(axis=(0, 1))
    spread = many.std(axis=(0, 1)) / np.sqrt(90)
    assert (np.abs(halves[0] - halves[1]) < 6 * spread + 1e-9).all()
    validate(first, 3, victim.labels, victim.name)
