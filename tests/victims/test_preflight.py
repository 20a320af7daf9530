"""What is said about a victim before it is attacked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from unfooled.core.victim import Probabilities, TextValue, Victim
from unfooled.errors import MissingExtraError, VictimError
from unfooled.victims.fake import FakeVictim
from unfooled.victims.function import FunctionVictim
from unfooled.victims.preflight import Check, Preflight, preflight

TEXTS = [f"a {word} film number {i}" for i in range(20) for word in ("great", "dull")]
LABELS = [1, 0] * 20


def found(
    victim: Victim, labels: Sequence[int] = LABELS, texts: Sequence[TextValue] = TEXTS
) -> dict[str, Check]:
    return {check.name: check for check in preflight(victim, texts, labels).checks}


def function(answer: Any, labels: Sequence[str] = ("negative", "positive")) -> FunctionVictim:
    return FunctionVictim(lambda texts: [answer(text) for text in texts], labels=labels)


def test_a_sound_victim() -> None:
    report = preflight(FakeVictim(), TEXTS, LABELS)
    assert [check.verdict for check in report.checks] == ["ok"] * 5
    assert [line.split()[1] for line in report.lines()] == [
        "answers", "deterministic", "label", "capabilities", "speed",
    ]  # fmt: skip
    assert "accuracy 100% on 40 examples, above chance" in report.lines()[2]
    report.raise_for_fail()


def test_swapped_labels_fail_and_name_the_order() -> None:
    report = preflight(FakeVictim(), TEXTS, [1 - label for label in LABELS])
    assert "accuracy 0%" in report.failed[0].message
    with pytest.raises(VictimError, match="positive,negative it would be 100%") as caught:
        report.raise_for_fail()
    assert "--labels positive,negative" in caught.value.remedy


def test_three_classes_turned_round() -> None:
    words = ["zero", "one", "two"]
    victim = function(lambda text: [float(text.startswith(word)) for word in words], words)
    texts = [f"{word} {i}" for i in range(10) for word in words]
    check = found(victim, [1, 2, 0] * 10, texts)["label order"]
    assert check.verdict == "fail"
    assert "--labels one,two,zero" in check.remedy


def test_many_classes_in_another_order() -> None:
    words = [f"w{i}" for i in range(9)]
    victim = function(lambda text: [float(text.split()[0] == word) for word in words], words)
    texts = [f"{word} {i}" for i in range(9) for word in words]
    assert found(victim, list(range(9)) * 9, texts)["label order"].verdict == "ok"
    assert found(victim, [*range(1, 9), 0] * 9, texts)["label order"].verdict == "fail"


def test_guessing_is_a_warning_not_a_failure() -> None:
    labels = [1, 1, 0, 0] * 10
    check = found(FakeVictim(), labels)["label order"]
    assert check.verdict == "warning"
    assert "not above chance" in check.message


def test_one_class_alone_proves_nothing() -> None:
    check = found(FakeVictim(), [1] * 20, TEXTS[1::2])["label order"]
    assert check.verdict == "warning"
    # Three of four are caught: no reason to doubt the model, as guessing is no measure for a single class.
    some = found(FakeVictim(), [1] * 20, [*TEXTS[::2][:15], *TEXTS[1::2][:5]])["label order"]
    assert some.verdict == "ok"
    assert "75% on 20 examples, all of the class positive: that says nothing about chance" in some.message
    assert found(FakeVictim(), [], [])["label order"].verdict == "warning"


def test_a_class_that_the_victim_does_not_have() -> None:
    assert found(FakeVictim(), [2] * 40)["label order"].verdict == "fail"


class Moody(FakeVictim):
    """Adds a little more at each call."""

    def __init__(self, step: float) -> None:
        super().__init__()
        self.step = step
        self.calls = 0

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        self.calls += 1
        scores = super().predict(texts) * 0.9 + 0.05
        shift = np.array([self.step, -self.step]) * self.calls
        return np.asarray(scores + shift)


@pytest.mark.parametrize(("step", "verdict"), [(0.0, "ok"), (1e-5, "warning"), (1e-3, "fail")])
def test_a_victim_that_changes_its_mind(step: float, verdict: str) -> None:
    assert found(Moody(step))["deterministic"].verdict == verdict


def test_kinds_of_answers() -> None:
    hard = found(function(lambda text: int("great" in text)))
    assert (hard["answers"].verdict, hard["capabilities"].message) == ("warning", "labels only")
    rounded = found(function(lambda text: [float("dull" in text), float("great" in text)]))
    assert "every probability is 0 or 1" in rounded["answers"].message
    logits = found(function(lambda text: [-2.0, 3.0]))
    assert logits["answers"].verdict == "fail"
    assert "logits" in logits["answers"].message


def test_one_bad_text_is_a_warning_and_the_rest_is_judged() -> None:
    for victim in (FakeVictim(poison="number 7"), FakeVictim(nan_on="number 7")):
        checks = found(victim)
        assert checks["refused texts"].verdict == "warning"
        assert "2 of 40 texts get no answer" in checks["refused texts"].message
        assert "38 examples" in checks["label order"].message


def test_a_dead_victim_is_given_up_soon() -> None:
    calls = []

    def dead(text: str) -> None:
        calls.append(text)
        raise RuntimeError("out of order")

    report = preflight(function(dead), TEXTS, LABELS)
    assert [check.verdict for check in report.checks] == ["fail"]
    assert len(calls) <= 12
    with pytest.raises(VictimError, match="RuntimeError: out of order"):
        report.raise_for_fail()


def test_bad_texts_at_the_top_do_not_hide_the_good_ones() -> None:
    texts = [f"poison {i}" for i in range(15)] + TEXTS
    checks = found(FakeVictim(poison="poison"), [0] * 15 + LABELS, texts)
    assert "15 of 55 texts get no answer" in checks["refused texts"].message
    assert checks["label order"].verdict == "ok"


class GoneError(VictimError):
    fatal = True


@pytest.mark.parametrize("error", [GoneError("nobody there"), MissingExtraError("it", "http")])
def test_a_victim_that_cannot_be_reached_is_asked_once(error: Exception) -> None:
    calls = []

    def gone(text: str) -> None:
        calls.append(text)
        raise error

    assert preflight(function(gone), TEXTS, LABELS).failed
    assert len(calls) == 1


def test_the_victim_is_named_once() -> None:
    victim = FunctionVictim(lambda texts: [[-2.0, 3.0]] * len(texts), labels=("a", "b"), name="logits")
    with pytest.raises(VictimError, match=r"^logits: scores lie"):
        preflight(victim, TEXTS, LABELS).raise_for_fail()


def test_lines_mark_the_verdicts() -> None:
    report = Preflight("v", (Check("a", "ok", "fine"), Check("bb", "fail", "bad", "mend it")))
    assert report.lines() == ["ok   a   fine", "FAIL bb  bad → mend it"]


def test_a_few_examples_are_too_few_to_tell() -> None:
    found = preflight(FakeVictim(), ["a great film"] * 3, [1, 1, 1])
    (order,) = [check for check in found.checks if check.name == "label order"]
    assert order.verdict == "ok"
    assert "too few" in order.message


# -- numbers that are no probabilities -----------------------------------------------------------------


def polarity(text: str) -> float:
    """A score from -1 to 1; three of four texts are liked, so that most would pass as probabilities."""
    return -0.4 if text.endswith("3") else 0.3 + 0.6 * ("great" in text)


def test_a_score_from_minus_one_to_one_is_refused_as_a_whole() -> None:
    report = preflight(function(polarity), TEXTS, LABELS)
    assert [check.name for check in report.checks] == ["answers"]
    with pytest.raises(
        VictimError, match=r"one number per text, here from -0\.4 to 0\.9: a score on a scale"
    ) as e:
        report.raise_for_fail()
    assert "not supported yet" in e.value.remedy
    assert "logits" not in e.value.remedy


def test_scores_per_class_from_minus_one_to_one_are_refused_as_a_whole() -> None:
    report = preflight(function(lambda text: [-polarity(text), polarity(text)]), TEXTS, LABELS)
    with pytest.raises(VictimError, match="a scale from -1 to 1, not probabilities") as caught:
        report.raise_for_fail()
    assert "not supported yet" in caught.value.remedy


def several_labels(text: str) -> list[float]:
    """Sums to 1 for every other text by accident."""
    return [0.9, 0.8, 0.1] if "great" in text else [0.9, 0.05, 0.05]


def test_labels_that_may_hold_at_once_are_refused_as_a_whole() -> None:
    report = preflight(function(several_labels, ["a", "b", "c"]), TEXTS, LABELS)
    with pytest.raises(VictimError, match=r"rows sum to 1\.8, not to 1, as scores of labels do") as caught:
        report.raise_for_fail()
    assert "several labels at once are not supported yet" in caught.value.remedy
    assert "logits" not in caught.value.remedy


def test_a_softmax_over_probabilities_of_labels_that_may_hold_at_once_is_refused() -> None:
    victim = FunctionVictim(
        lambda texts: [several_labels(text) for text in texts], labels=["a", "b", "c"], logits=True
    )
    report = preflight(victim, TEXTS, LABELS)
    with pytest.raises(VictimError, match="logits=true, but all raw scores lie between 0") as caught:
        report.raise_for_fail()
    assert "several labels at once are not supported yet" in caught.value.remedy
    scale = FunctionVictim(lambda texts: [polarity(text) for text in texts], labels=["a", "b"], logits=True)
    assert found(scale)["answers"].verdict == "warning"


def test_logits_are_still_logits() -> None:
    victim = function(lambda text: [-3.0, 2.0 + ("great" in text)])
    (check,) = preflight(victim, TEXTS, LABELS).failed
    assert "look like logits" in check.message
    assert "--victim-option logits=true" in check.remedy
    soft = FunctionVictim(
        lambda texts: [[0.0, 9.0 if "great" in text else -9.0] for text in texts],
        labels=["n", "p"],
        logits=True,
    )
    assert not preflight(soft, TEXTS, LABELS).failed


def test_rounded_probabilities_are_an_error_of_their_row_alone() -> None:
    victim = function(
        lambda text: [0.49, 0.5] if text == TEXTS[0] else FakeVictim().predict([text])[0].tolist()
    )
    check = found(victim)["refused texts"]
    assert check.message.startswith("1 of 40 texts")


def test_one_bad_answer_at_the_start_does_not_stop_a_run() -> None:
    for bad in ([float("nan")] * 2, None, [-0.5, 1.5], [0.0]):
        for place in range(3):
            calls: list[int] = []

            def answer(
                texts: list[str], bad: Any = bad, place: int = place, calls: list[int] = calls
            ) -> list[Any]:
                calls.append(len(texts))
                rows: list[Any] = FakeVictim().predict(texts).tolist()
                return [bad, *rows[1:]] if len(calls) == place + 1 else rows

            victim = FunctionVictim(answer, labels=["negative", "positive"])
            preflight(victim, TEXTS, LABELS).raise_for_fail()
            assert len(calls) > place
