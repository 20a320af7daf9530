"""What an adaptive attacker looks through, what a look at a model finds, and how flags become a verdict."""

from __future__ import annotations

import math
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import planted
from unfooled.attacks.parts.gradient_importance import Gradient
from unfooled.attacks.parts.importance import Deletion
from unfooled.attacks.parts.search import GreedySwap
from unfooled.checks.illusions.diagnosis import look, look_at_gradients, spearman
from unfooled.checks.illusions.other_order import needs_gradients, with_other_order
from unfooled.checks.illusions.survivors import AGAIN, CheckResult, Flags, Survival, counted
from unfooled.checks.illusions.verdict import Gap, Rival, Verdict, judge
from unfooled.checks.illusions.wrappers import Averaged, Guided, Tempered, Votes, Wrapped
from unfooled.core.recipe import load_recipe
from unfooled.core.victim import Probabilities, TextValue, Victim, one_hot
from unfooled.runs.workers.portable import portable
from unfooled.victims.checks import check_victim
from unfooled.victims.fake import FakeVictim
from unfooled.victims.function import FunctionVictim
from unfooled.victims.impostors import Masked, Noisy, Overconfident, Rounded
from unfooled.victims.loading import load_victim
from unfooled.victims.randomness import has_logits, is_redrawable, logits_of

TEXTS = [text for text, _ in planted.rows(20)]


class Drawing(FakeVictim):
    """Redrawable: draw n answers positive with certainty if n is one of `positive`, else negative."""

    name = "drawing"

    def __init__(self, positive: Sequence[int] = (), draw: int = 0) -> None:
        super().__init__()
        self.positive = set(positive)
        self.draw = draw
        self.asked: list[int] = []

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        self.asked.append(self.draw)
        return one_hot([int(self.draw in self.positive)] * len(texts), 2)

    def redrawn(self, draw: int) -> Drawing:
        other = Drawing(tuple(self.positive), draw)
        other.asked = self.asked
        return other


# -- guises ----------------------------------------------------------------------------------------------


def test_re_scaling_brings_back_what_overconfidence_hid() -> None:
    fake = FakeVictim()
    hot = Overconfident(fake, factor=50)
    assert np.round(hot.predict(TEXTS), 6).max(axis=1).tolist() == [1.0] * len(TEXTS)
    again = Tempered(hot, 50.0)
    assert np.allclose(again.predict(TEXTS), fake.predict(TEXTS), atol=1e-9)
    for degree in (0.1, 7.0):
        decided = Tempered(hot, degree).predict(TEXTS).argmax(axis=1)
        assert decided.tolist() == fake.predict(TEXTS).argmax(axis=1).tolist()


def test_real_logits_count_where_there_are_any() -> None:
    class Deep(FakeVictim):
        def raw_logits(self, texts: Sequence[TextValue], /) -> Probabilities:
            return np.tile([3000.0, -3000.0], (len(texts), 1))

    assert has_logits(Deep())
    assert not has_logits(FunctionVictim(lambda texts: texts))  # its `logits` is a switch
    assert Tempered(Deep(), 3000.0).predict(["a"])[0].tolist() == pytest.approx([0.8808, 0.1192], abs=1e-4)
    # Without them a probability of zero has a logarithm all the same.
    zero = FunctionVictim(lambda texts: np.tile([1.0, 0.0], (len(texts), 1)), labels=("a", "b"))
    assert np.isfinite(logits_of(zero, ["x"])).all()


def test_averaging_hears_each_draw_once_and_more_of_them_when_it_is_close() -> None:
    victim = Drawing(positive=[0])
    assert Averaged(victim, draws=1).predict(["a"]).tolist() == [[0.0, 1.0]]
    averaged = Averaged(victim, draws=4)
    victim.asked.clear()
    assert (
        averaged.predict(["a", "b", "a"]).tolist() == [[0.75, 0.25]] * 3
    )  # a lead of 0.5, as good as 1/sqrt(4)
    assert victim.asked == [0, 1, 2, 3]
    averaged.predict(["b"])
    assert victim.asked == [0, 1, 2, 3]  # remembered
    close = Averaged(Drawing(positive=[0, 1, 5]), draws=4)
    assert close.predict(["a"]).tolist() == [[13 / 16, 3 / 16]]  # 2 of 4, so 12 draws more


def test_fresh_draws_are_others_than_the_attack_saw_and_a_close_vote_is_repeated() -> None:
    victim = Drawing(positive=[*range(1000), 1001])
    votes = Votes(victim, draws=15)
    assert votes.predict(["a"]).tolist() == [[14 / 15, 1 / 15]]
    assert victim.asked == list(range(1000, 1015))
    agreed = Drawing(positive=range(1000, 1005))
    assert Votes(agreed, draws=15).predict(["a"]).tolist() == [[0.0, 1.0]]
    assert agreed.asked == list(range(1000, 1005))  # the first five agree
    tight = Drawing(positive=range(1000, 1015, 2))  # 8 of 15, and none of the next 45
    assert Votes(tight, draws=15).predict(["a"])[0].tolist() == pytest.approx([52 / 60, 8 / 60])
    assert tight.asked == list(range(1000, 1060))
    assert Votes(victim, draws=3).predict([]).shape == (0, 2)
    assert Votes(Drawing(positive=[1000]), draws=1).predict(["a"]).tolist() == [[0.0, 1.0]]


def test_a_guided_search_follows_the_guide_and_ends_with_the_victim() -> None:
    guide = FakeVictim()
    stubborn = FunctionVictim(lambda texts: np.tile([0.0, 1.0], (len(texts), 1)), labels=planted.LABELS)
    guided = Guided(stubborn, guide, [0, 1])
    scores = guided.predict(["superb film", "film", "awful film"])
    assert scores.argmax(axis=1).tolist() == [1, 1, 1]
    assert scores[0, 1] > scores[1, 1] > scores[2, 1] >= 0.51
    assert scores.sum(axis=1).tolist() == pytest.approx([1, 1, 1])
    swapped = Guided(stubborn, FakeVictim(labels=("positive", "negative")), [1, 0])
    assert np.allclose(swapped.predict(["superb film"]), guided.predict(["superb film"]))


def test_guises_are_victims_with_fingerprints_of_their_own() -> None:
    fake = FakeVictim()
    guises = [Tempered(fake, 2.0), Tempered(fake, 3.0), Averaged(fake), Averaged(fake, draws=4)]
    guises += [Votes(fake, draws=3), Guided(fake, Tempered(fake, 2.0), [0, 1])]
    for guise in guises:
        check_victim(guise, TEXTS[:4])
        assert isinstance(guise, Victim)
    assert len({guise.fingerprint() for guise in guises} | {fake.fingerprint()}) == len(guises) + 1


def test_a_guise_travels_as_what_it_wraps_and_hides_the_rest() -> None:
    inner = load_victim("overconfident:fake")
    guise = Guided(Tempered(inner, 50.0), FakeVictim(), [0, 1])
    copy = pickle.loads(pickle.dumps(portable(guise)))
    assert np.allclose(copy.predict(TEXTS), guise.predict(TEXTS))
    assert copy.fingerprint() == guise.fingerprint()
    assert guise.spec == ""  # or a worker would load the bare model
    for name in ("answer", "redrawn", "nothing"):
        assert not hasattr(Wrapped(Drawing()), name)
    assert Wrapped(planted.Seeing()).gradients(["superb film"])[0].words == ("superb", "film")
    with pytest.raises(NotImplementedError):
        Wrapped(inner).predict(["a"])


# -- impostors -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", ["overconfident:fake", "rounded:fake"])
def test_impostors_load_by_name_and_decide_as_the_model(spec: str) -> None:
    victim = load_victim(spec)
    check_victim(victim, TEXTS[:4])
    assert (
        victim.predict(TEXTS).argmax(axis=1).tolist() == FakeVictim().predict(TEXTS).argmax(axis=1).tolist()
    )
    assert load_victim(spec).fingerprint() == victim.fingerprint() != FakeVictim().fingerprint()


def test_rounding_keeps_rows_summing_to_one() -> None:
    three = FunctionVictim(
        lambda texts: np.tile([0.44, 0.35, 0.21], (len(texts), 1)), labels=("a", "b", "c"), name="three"
    )
    assert Rounded(three).predict(["x"])[0].tolist() == pytest.approx([0.5, 0.3, 0.2])  # not a tie of 0.4
    other = FunctionVictim(
        lambda texts: np.tile([0.55, 0.225, 0.225], (len(texts), 1)), labels=("a", "b", "c")
    )
    assert Rounded(other).predict(["x"])[0].sum() == pytest.approx(1.0)


def test_noise_is_drawn_from_the_models_own_scores_where_it_is_unsure() -> None:
    sure, unsure = "superb great brilliant", "good film"
    noisy = Noisy(FakeVictim(), confidence=0.95)
    assert np.allclose(noisy.predict([sure]), FakeVictim().predict([sure]))
    drawn = noisy.predict([unsure] * 4000)
    assert set(np.round(drawn[:, 1], 2)) == {0.01, 0.99}
    expected = FakeVictim().predict([unsure])[0, 1]
    assert (drawn.argmax(axis=1) == 1).mean() == pytest.approx(expected, abs=0.03)


def test_masking_needs_gradients_and_hides_them() -> None:
    masked = Masked(planted.Seeing())
    assert "gradients" in masked.capabilities
    assert not masked.gradients(["superb film"])[0].vectors.any()
    assert not masked.jacobian(["superb film"])[0].any()
    assert masked.pieces(["superb film"])[0].tolist() == [1, 1]
    with pytest.raises(Exception, match="no gradients to mask"):
        Masked(FakeVictim())
    with pytest.raises(AttributeError):
        masked.nothing  # noqa: B018


# -- looks -----------------------------------------------------------------------------------------------


def test_a_plain_model_looks_plain() -> None:
    looks = look(FakeVictim(), TEXTS)
    assert (looks.chance, looks.decimals, looks.random) == ("none", None, False)
    assert looks.saturated == 0.0
    assert looks.findings() == []
    margins = np.abs(np.diff(np.log(Tempered(FakeVictim(), looks.temperature).predict(TEXTS)), axis=1))
    assert 1.0 < float(np.median(margins)) < 4.5


def test_randomness_shows_only_where_the_model_is_unsure() -> None:
    sure = ["superb great brilliant perfect film"]
    noisy = Noisy(FakeVictim(), confidence=0.95)
    assert look(Noisy(FakeVictim(), confidence=0.6), sure).chance == "none"
    assert look(noisy, sure, ["good film", "bad film", "film"]).chance == "by nature"
    found = look(noisy, TEXTS)
    assert found.chance == "by nature"
    assert "answers at random" in found.findings()[0]


def test_seeded_draws_and_batch_dependence_are_told_apart() -> None:
    assert is_redrawable(Drawing())
    assert look(Drawing(positive=[1]), TEXTS).chance == "seeded"
    assert look(Drawing(), TEXTS).chance == "none"

    class Contagious(FakeVictim):
        """The published bug: what a text gets depends on the texts beside it."""

        def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
            scores = super().predict(texts)
            return (scores + scores[:1]) / 2 if len(texts) else scores

    found = look(Contagious(), TEXTS)
    assert found.chance == "by batch"
    assert "other texts of the batch" in found.findings()[0]


def test_rounding_and_saturation_are_told_apart() -> None:
    assert look(Rounded(FakeVictim(), decimals=2), TEXTS).decimals == 2
    assert look(Rounded(FakeVictim()), TEXTS).findings() == [
        "its probabilities are rounded to 1 decimal, so that a search sees no way"
    ]
    hot = look(Overconfident(FakeVictim()), TEXTS)
    assert (hot.decimals, hot.saturated) == (None, 1.0)
    assert "saturated: 100%" in hot.findings()[0]
    assert look(Overconfident(FakeVictim(), factor=1e6), TEXTS).decimals == 0
    assert (look(FakeVictim(), TEXTS).temperature, hot.temperature) == (2.0, 128.0)  # powers of two


def test_texts_that_choke_the_model_do_not_stop_the_look() -> None:
    assert look(FakeVictim(poison="film"), TEXTS).texts > 0
    with pytest.raises(Exception, match="answers none"):
        look(FakeVictim(poison="film"), ["film film", "film"])


def test_gradients_that_are_dead_or_saturated_are_found() -> None:
    seeing = look_at_gradients(planted.Seeing(), TEXTS)
    assert seeing is not None
    assert (seeing.dead_loss, seeing.dead_logit) == (0.0, 0.0)
    assert seeing.agreement > 0.8
    assert seeing.findings() == []
    masked = look_at_gradients(Masked(planted.Seeing()), TEXTS)
    assert masked is not None
    assert masked.findings() == ["its gradients are masked: zero on 100% of the texts"]
    assert masked.to_dict()["agreement"] is None
    assert look_at_gradients(FakeVictim(), TEXTS) is None

    misled = look_at_gradients(planted.Misleading(), TEXTS)
    assert misled is not None
    assert "look masked" in misled.findings()[0]
    assert misled.findings(useful=True) == []  # an attack in their order says more than their ranks
    few = look_at_gradients(planted.Misleading(), TEXTS[:7])
    assert few is not None
    assert few.findings() == []  # a handful of texts does not tell

    class Vanishing(planted.Seeing):
        def gradients(self, texts: Any, labels: Any = None, *, of: Any = "loss") -> Any:
            found = super().gradients(texts, labels, of="logit")
            for slope in found:
                slope.vectors[:] *= of == "logit"
            return found

    vanished = look_at_gradients(Vanishing(), TEXTS)
    assert vanished is not None
    assert "because the scores are saturated" in vanished.findings()[0]


def test_rank_correlation_by_hand() -> None:
    assert spearman(np.array([1, 2, 3]), np.array([5, 7, 8])) == pytest.approx(1.0)
    assert spearman(np.array([3, 2, 1]), np.array([5, 7, 8])) == pytest.approx(-1.0)
    # Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4.
    assert spearman(np.array([1, 2, 2, 3]), np.array([1, 2, 3, 4])) == pytest.approx(4.5 / math.sqrt(22.5))
    assert spearman(np.array([1, 1, 1]), np.array([1, 2, 3])) is None


def test_the_counterpart_of_an_attack_changes_the_order_only(tmp_path: Path) -> None:
    textfooler = load_recipe("textfooler")
    white = with_other_order(textfooler)
    assert white is not None
    assert isinstance(white.search, GreedySwap)
    assert isinstance(textfooler.search, GreedySwap)
    assert white.search.importance == Gradient("logit")
    assert white.search.candidates == textfooler.search.candidates
    assert needs_gradients(white)
    assert not needs_gradients(textfooler)
    assert white.full_name == "textfooler@textattack+white-box-order"
    black = with_other_order(white)
    assert black is not None
    assert isinstance(black.search, GreedySwap)
    assert black.search.importance == Deletion()
    assert "gradients" not in black.needs
    assert with_other_order(planted.recipe(tmp_path, planted.Unordered())) is None


# -- flags and verdicts ----------------------------------------------------------------------------------


def flags(right: int, n: int = 100, *, unknown: int = 0) -> Flags:
    """The first `right` of `n` examples are right; the last `unknown` are not known."""
    return {key: None if key >= n - unknown else key < right for key in range(n)}


def check(words: str, broken: int, cause: str = "") -> CheckResult:
    return CheckResult(name=words, words=words, tried=100, broken=broken, cause=cause)


def verdict(
    active: int,
    worst: int,
    *,
    base: int = 10,
    base_worst: int | None = None,
    control: tuple[int, int] | None = None,
    n: int = 100,
    checked: bool = True,
    clean: tuple[int, int] = (90, 90),
    findings: Sequence[str] = (),
    cause: str = "saturated scores",
    again: int = 0,
) -> Verdict:
    """`again`: so many of those that fall do so when the attack is tried again."""

    def survival(left: int, rescaled: int) -> Survival:
        made = Survival(flags(left, n))
        made.record(AGAIN, flags(left - min(again, left - rescaled), n))
        made.record("re-scaled scores", flags(rescaled, n))
        return made

    rival = Rival(
        "base", survival(base, base if base_worst is None else base_worst), flags(clean[1]), flags(0)
    )
    retuned = Rival("retuned", survival(*control), flags(clean[1]), flags(30)) if control else None
    return judge(
        "mine",
        survival(active, worst),
        clean=flags(clean[0]),
        premade=flags(50),
        checks=[check("re-scaled scores", active - worst, cause)] if checked else [],
        findings=findings,
        base=rival,
        control=retuned,
    )


def test_an_example_is_robust_only_if_it_survives_everything() -> None:
    survival = Survival({0: True, 1: True, 2: True, 3: False, 4: None, 5: True})
    assert survival.survivors() == [0, 1, 2, 5]
    assert survival.record("a", {0: True, 1: False, 3: True, 4: True}) == 1
    assert survival.record("b", {1: False, 2: False, 5: None}) == 1  # 1 was gone already
    assert survival.survivors() == [0]
    assert survival.worst == {0: True, 1: False, 2: False, 3: False, 4: None, 5: None}
    assert counted(survival.active) == (4, 5)
    assert counted(survival.worst) == (1, 4)


def test_an_error_in_a_later_check_does_not_hide_what_an_earlier_one_broke() -> None:
    survival = Survival({0: True})
    survival.record("a", {0: False})
    survival.record("b", {0: None})
    assert survival.worst == {0: False}


def test_a_gain_that_survives_holds() -> None:
    found = verdict(60, 58)
    assert found.status == "holds"
    assert found.sentence.startswith("holds: 48.0 of 50.0 points remain under the worst of 1 check (")
    assert "n = 100" in found.sentence
    assert found.gain.value == pytest.approx(0.5)
    assert found.vanished.value == pytest.approx(0.02)
    assert found.gain.p < 1e-9


def test_a_gain_that_vanishes_is_an_illusion() -> None:
    found = verdict(60, 12)
    assert found.status == "illusion"
    assert found.sentence.startswith(
        "an illusion: 48.0 of 50.0 points vanish under re-scaled scores (48 examples); 2.0 remain"
    )
    partly = verdict(60, 35)
    assert partly.sentence.startswith("partly an illusion: 25.0 of 50.0 points vanish under re-scaled scores")
    assert partly.remaining.low > 0
    assert found.causes == ("saturated scores",)
    assert "; cause: saturated scores" in found.sentence


def test_a_loss_without_a_cause_is_no_illusion() -> None:
    shrunk = verdict(60, 12, cause="")
    assert shrunk.status == "shrinks"
    assert shrunk.causes == ()
    assert shrunk.sentence.startswith(
        "shrinks, by no cause that a check has identified: 48.0 of 50.0 points vanish under re-scaled scores"
    )
    assert "illusion" not in shrunk.sentence
    assert verdict(60, 50, base=0, cause="").status == "holds"  # 10 of 60 fell, as to any other attack


def test_what_falls_to_the_attack_tried_again_is_nobodys_deceit() -> None:
    assert verdict(60, 30, base=0).status == "illusion"
    assert verdict(60, 30, base=0, again=5).status == "illusion"
    assert verdict(60, 30, base=0, again=15).status != "illusion"  # as many fell to no insight at all


def test_a_check_may_expose_without_breaking_anything() -> None:
    rival = Rival("base", Survival(flags(0)), flags(90), flags(0))
    fresh = CheckResult(name="fresh", words="w", looked=9, cause="memorised", exposure="+0 on fresh rows")
    found = judge(
        "mine",
        Survival(flags(60)),
        clean={},
        premade={},
        checks=[check("x", 0), fresh],
        findings=[],
        base=rival,
        control=None,
    )
    assert (found.status, found.causes) == ("illusion", ("memorised",))
    assert found.sentence.startswith("an illusion: +0 on fresh rows; ")
    assert found.sentence.endswith("; cause: memorised")


def test_what_falls_below_the_base_is_not_called_remaining() -> None:
    found = verdict(60, 2, base=10)
    assert "50.0 of 50.0 points vanish" in found.sentence
    assert "it ends 8.0 points below base" in found.sentence


def test_the_base_goes_through_the_checks_too() -> None:
    found = verdict(60, 50, base=20, base_worst=10)
    assert found.status == "holds"
    assert found.vanished.value == pytest.approx(0.0)


def test_few_examples_decide_nothing() -> None:
    found = verdict(3, 3, base=1, n=8)
    assert found.status == "not decided"
    assert found.sentence.startswith("not decided at n = 8: the gain over base is +25.0 points")
    assert "examples would decide" in found.sentence
    wide = verdict(14, 10, base=2, n=20)
    assert wide.status == "not decided"
    assert "too wide to tell" in wide.sentence
    # An interval of five pairs may exclude zero; the exact test does not call that certain.
    for n in range(1, 6):
        for worst in range(n + 1):
            tiny = verdict(n, worst, base=0, n=n)
            assert tiny.status == "not decided", (n, worst)
    assert "from too few pairs to tell (McNemar p = 0.062)" in tiny.sentence
    assert verdict(8, 8, base=0, n=8).status == "holds"
    assert verdict(8, 0, base=0, n=8).status == "illusion"
    assert verdict(60, 60, checked=False).sentence.startswith("not decided at n = 100: no check was run")


def test_no_gain_is_said_plainly() -> None:
    assert verdict(10, 10).status == "no gain"
    worse = verdict(10, 10, base=60)
    assert worse.sentence.startswith("no gain: accuracy under attack differs from base by -50.0 points")


def test_what_retuning_gives_as_well_is_no_merit_of_the_defence() -> None:
    found = verdict(60, 60, control=(55, 55))
    assert found.status == "shrinks"
    assert "comparison with retuned" in found.sentence
    assert found.remaining.value == pytest.approx(0.05)
    assert verdict(60, 60, control=(12, 12)).status == "holds"


def test_the_verdict_says_that_the_control_is_missing_and_how_to_make_it() -> None:
    assert any("unfooled harden --method retune" in note for note in verdict(60, 60).notes)
    assert not any("missing" in note for note in verdict(60, 60, control=(12, 12)).notes)


def test_the_price_and_what_was_found_belong_to_the_verdict() -> None:
    found = verdict(
        60, 60, clean=(70, 90), findings=["its gradients are masked: zero", "its gradients are masked: zero"]
    )
    assert found.sentence.endswith("Its gradients are masked: zero")
    assert "It costs 20.0 points of clean accuracy against base (" in found.sentence
    assert "costs" not in verdict(60, 60, clean=(89, 90)).sentence
    (price,) = [note for note in found.notes if note.startswith("clean accuracy")]
    assert "-20.0 points" in price
    assert "McNemar p = 1.9e-06" in price
    assert found.clean is not None
    assert found.clean.value == pytest.approx(-0.2)
    assert found.to_dict()["status"] == "holds"


def test_unknown_examples_are_in_no_comparison() -> None:
    gap = Gap.of(flags(60, unknown=20), flags(10))
    assert gap.n == 80
    assert gap.value == pytest.approx(50 / 80)
    survival = Survival(flags(60, unknown=20))
    survival.record("x", flags(60, unknown=20))
    rival = Rival("base", Survival(flags(10)), flags(90), flags(0))
    found = judge(
        "mine", survival, clean={}, premade={}, checks=[check("x", 0)], findings=[], base=rival, control=None
    )
    assert found.n == 80
    assert any("20 examples ended in an error" in note for note in found.notes)
    assert found.clean is None
