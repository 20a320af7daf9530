"""The worst case over a suite: toy attacks of which it is known what each breaks, and what that costs."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unfooled
from planted import data as planted_data
from unfooled.attacks.parts.goals import Untargeted
from unfooled.checks.gate import Rule, apply_rules_to_stress, overall
from unfooled.checks.suites import Suite, SuiteAttack, all_suites, fitting_suite, load_suite
from unfooled.checks.worst_case import (
    FILE,
    AttackedRow,
    AttackShare,
    Stress,
    read_stress,
    valid_rate,
    write_state,
)
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program
from unfooled.core.recipe import Recipe, load_recipe
from unfooled.core.victim import Probabilities, TextValue, join_fields
from unfooled.data.dataset import Dataset
from unfooled.errors import CapabilityError, RunFileError, UnknownNameError, UserError, VictimError
from unfooled.metrics.decision_intervals import ERROR, anytime_interval
from unfooled.metrics.summary import Rate
from unfooled.plugins import registry
from unfooled.report.stress import remarks
from unfooled.runs.file import RunFile
from unfooled.training.class_words import count_class_words
from unfooled.victims.fake import FakeVictim
from unfooled.victims.impostors import Noisy

LABELS = ("negative", "positive")
# The first word is where the toy attacks put theirs; a row falls to an attack that it names with `to`.
ROWS = [
    ("the plain film", "positive"),  # 0: stands
    ("the film toalpha", "positive"),  # 1: alpha
    ("the film toalpha tobeta", "positive"),  # 2: alpha first, beta as well
    ("the film tobeta", "positive"),  # 3: beta alone
    ("the bad film togamma", "negative"),  # 4: gamma alone
    ("the bad film", "positive"),  # 5: wrong at first
    ("the film boombeta", "positive"),  # 6: beta fails, nothing else breaks it
    ("the bad film boombeta togamma", "negative"),  # 7: beta fails, gamma breaks it
    ("the bad dull film", "negative"),  # 8: stands
]
QUERIES = {
    "alpha": 2,
    "beta": 3,
    "gamma": 4,
}  # the original, and the words that are tried one after the other


@dataclass(frozen=True, kw_only=True)
class PutFirst:
    """Each of the words in the place of the first one, until one works."""

    words: tuple[str, ...]

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        best = start
        for word in self.words:
            (scored,) = yield from a.score([start.text.replace(0, word)])
            best = max(best, scored, key=lambda choice: choice.score)
        return best


class ToyVictim:
    """`bad` makes a text negative; an attack's word in front of `to…` makes it say the opposite."""

    name = "toy"
    labels = LABELS
    capabilities = frozenset({"probabilities"})
    batch_size = 100

    def __init__(self, *, failing: bool = True) -> None:
        self.failing = failing
        self.asked = 0

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        self.asked += len(texts)
        return np.array([self._row(join_fields(text).split()) for text in texts]).reshape(-1, 2)

    def _row(self, words: list[str]) -> list[float]:
        first = words[0] if words else ""
        if self.failing and f"boom{first}" in words:
            raise VictimError("it went boom")
        positive = ("bad" in words) == (f"to{first}" in words)
        p = 0.9123456 - 0.001 * len(words)
        return [1 - p, p] if positive else [p, 1 - p]

    def fingerprint(self) -> str:
        return "toy victim"


class RememberingVictim(ToyVictim):
    """Gives a text that shares most of its words with an earlier one the answer of that one."""

    def __init__(self, *, failing: bool = True) -> None:
        super().__init__(failing=failing)
        self.known: list[tuple[frozenset[str], list[float]]] = []

    def _row(self, words: list[str]) -> list[float]:
        own = frozenset(words)
        for other, answer in self.known:
            if 2 * len(own & other) >= len(own | other):
                return answer
        self.known.append((own, super()._row(words)))
        return self.known[-1][1]


@pytest.fixture(autouse=True)
def toy_attacks() -> Iterator[None]:
    words = {"alpha": ("alpha",), "beta": ("beta", "x"), "gamma": ("y", "z", "gamma")}
    for name, tried in words.items():
        recipe = Recipe(
            name=name, version="1", summary="", paper="", goal=Untargeted(), search=PutFirst(words=tried)
        )
        registry.register("attack", name, {"1": recipe})
    yield
    for name in words:
        registry.unregister("attack", name)


def toy_suite(*attacks: str) -> Suite:
    members = tuple(SuiteAttack(f"{name}@1") for name in attacks or ("alpha", "beta", "gamma"))
    return Suite(name="toys", version="1", summary="", attacks=members)


def toy_data(rows: Sequence[tuple[str, str]] = ROWS) -> Dataset:
    return Dataset.from_pairs(rows, labels=LABELS)


def by_attack(result: Stress) -> dict[str, AttackShare]:
    return {share.attack.partition("@")[0]: share for share in result.attacks}


def comparable(result: Stress) -> dict[str, Any]:
    """Everything but the clock."""
    told: dict[str, Any] = result.to_dict()
    told["attacks"] = [{**attack, "seconds": 0} for attack in told["attacks"]]
    return {**told, "seconds": 0}


def test_each_attack_meets_what_still_stands(tmp_path: Path) -> None:
    result = unfooled.stress(ToyVictim(), toy_data(), toy_suite(), out=tmp_path / "s")
    found = by_attack(result)
    # alpha tries the 8 rows that are right, beta the 6 it left, gamma the 5 that beta did not break.
    assert [found[name].tried for name in QUERIES] == [8, 6, 5]
    assert [found[name].broke for name in QUERIES] == [2, 1, 2]
    assert [found[name].first for name in QUERIES] == [2, 1, 2]
    assert [found[name].errors for name in QUERIES] == [0, 2, 0]
    assert found["alpha"].queries == 8 * QUERIES["alpha"]
    assert found["gamma"].queries == 5 * QUERIES["gamma"]
    assert result.queries == sum(share.queries for share in result.attacks)
    # Whether others would have broken the rows of alpha is not known; gamma's had all others before it, but
    # beta failed on one of them.
    assert found["alpha"].alone is None
    assert found["gamma"].alone is None
    assert (result.states["stands"], result.states["broken"], result.states["wrong"]) == (2, 5, 1)
    assert result.clean == Rate.of(8, 9)
    assert result.worst == Rate.of(2, 8)
    assert result.valid is None


def test_every_attack_on_every_row_tells_what_each_breaks_alone(tmp_path: Path) -> None:
    victim = ToyVictim(failing=False)
    result = unfooled.stress(victim, toy_data(), toy_suite(), out=tmp_path / "s", every=True)
    found = by_attack(result)
    assert [found[name].tried for name in QUERIES] == [8, 8, 8]
    assert [found[name].broke for name in QUERIES] == [2, 2, 2]
    assert [found[name].first for name in QUERIES] == [2, 1, 2]
    assert [found[name].alone for name in QUERIES] == [1, 1, 2]
    assert [found[name].queries for name in QUERIES] == [8 * count for count in QUERIES.values()]
    assert result.worst == Rate.of(3, 9)


def test_an_error_is_never_robustness(tmp_path: Path) -> None:
    result = unfooled.stress(ToyVictim(), toy_data(), toy_suite(), out=tmp_path / "s")
    assert result.undecided == (6,)  # row 7 failed as well, but fell to gamma
    assert result.worst.n == 8
    assert result.bounds == (2 / 9, 3 / 9)
    bound = Rule("accuracy", "min", 0.001)
    assert overall(apply_rules_to_stress(result, [bound])) == "pass"
    (errors,) = apply_rules_to_stress(result, [Rule("errors", "max", 0.1)])
    assert errors.judgement == "fail"


def test_a_bound_that_only_errors_keep_is_undecided(tmp_path: Path) -> None:
    standing = [("the plain film", "positive"), ("the bad film", "negative")] * 20
    failing = [("the film boombeta", "positive")] * 20
    result = unfooled.stress(ToyVictim(), toy_data(standing + failing), toy_suite("beta"), out=tmp_path / "s")
    assert result.worst == Rate.of(40, 40)
    (judged,) = apply_rules_to_stress(result, [Rule("accuracy", "min", 0.8)])
    assert judged.judgement == "undecided"
    assert "20 rows stand only because an attack ended in an error" in str(judged)


def test_rows_for_which_there_was_nothing_to_try_are_no_robustness(tmp_path: Path) -> None:
    rows = [("film", "positive"), ("bad", "negative")] * 30  # nothing but the word that is there already
    registry.register(
        "attack", "idle", {"1": replace(load_recipe("alpha"), name="idle", search=PutFirst(words=()))}
    )
    try:
        result = unfooled.stress(ToyVictim(), toy_data(rows), toy_suite("idle"), out=tmp_path / "s")
    finally:
        registry.unregister("attack", "idle")
    assert (result.worst, result.untried) == (Rate.of(60, 60), 60)
    assert read_stress(tmp_path / "s").untried == 60
    (judged,) = apply_rules_to_stress(result, [Rule("accuracy", "min", 0.5)])
    assert judged.judgement == "undecided"
    assert "for 60 of 60 rows that stand no edit could be tried" in str(judged)
    assert "untried: for 60 of the 60 rows" in "\n".join(remarks(result))


def test_classes_have_their_own_accuracy(tmp_path: Path) -> None:
    result = unfooled.stress(ToyVictim(), toy_data(), toy_suite(), out=tmp_path / "s")
    negative, positive = result.classes
    assert (negative.clean, negative.worst) == (Rate.of(3, 3), Rate.of(1, 3))
    assert (positive.clean, positive.worst) == (Rate.of(5, 6), Rate.of(1, 5))


def test_the_same_call_says_the_same_and_a_larger_one_goes_on(tmp_path: Path) -> None:
    small = unfooled.stress(ToyVictim(failing=False), toy_data(), toy_suite(), out=tmp_path / "s", limit=4)
    assert small.n == 4
    grown = unfooled.stress(ToyVictim(failing=False), toy_data(), toy_suite(), out=tmp_path / "s")
    whole = unfooled.stress(ToyVictim(failing=False), toy_data(), toy_suite(), out=tmp_path / "t")
    assert comparable(grown) == comparable(whole)
    again = unfooled.stress(ToyVictim(failing=False), toy_data(), toy_suite(), out=tmp_path / "s")
    assert comparable(again) == comparable(whole)
    assert comparable(read_stress(tmp_path / "s")) == comparable(whole)
    fewer = unfooled.stress(ToyVictim(failing=False), toy_data(), toy_suite(), out=tmp_path / "s", limit=4)
    assert comparable(fewer) == comparable(small)


def test_errors_are_tried_again_by_the_same_call(tmp_path: Path) -> None:
    first = unfooled.stress(ToyVictim(), toy_data(), toy_suite(), out=tmp_path / "s")
    mended = unfooled.stress(ToyVictim(failing=False), toy_data(), toy_suite(), out=tmp_path / "s")
    assert first.undecided == (6,)
    assert mended.undecided == ()
    assert mended.worst == Rate.of(3, 9)


def test_another_suite_does_not_go_on_in_the_folder(tmp_path: Path) -> None:
    unfooled.stress(ToyVictim(), toy_data(), toy_suite("alpha"), out=tmp_path / "s")
    with pytest.raises(RunFileError, match="holds a suite with other settings"):
        unfooled.stress(ToyVictim(), toy_data(), toy_suite("beta"), out=tmp_path / "s")
    fresh = unfooled.stress(ToyVictim(), toy_data(), toy_suite("beta"), out=tmp_path / "s", restart=True)
    assert by_attack(fresh)["beta"].tried == 8
    assert not (tmp_path / "s" / "1-alpha@1").exists()


def test_a_changed_file_is_not_believed(tmp_path: Path) -> None:
    unfooled.stress(ToyVictim(), toy_data(), toy_suite("alpha"), out=tmp_path / "s")
    path = tmp_path / "s" / FILE
    path.write_text(path.read_text().replace('"broken": 2', '"broken": 0'), encoding="utf-8")
    with pytest.raises(RunFileError, match="its seal does not fit"):
        read_stress(tmp_path / "s")


@pytest.mark.parametrize("result", [5, [], {"suite": "x"}, {"clean": None}])
def test_a_sealed_file_without_a_result_is_refused(tmp_path: Path, result: Any) -> None:
    write_state(tmp_path, {"result": result})
    with pytest.raises(RunFileError, match=r"stress\.json"):
        read_stress(tmp_path)


def test_restarting_removes_nothing_outside_the_folder(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    write_state(tmp_path / "s", {"attacks": {"1": {"folder": "../mine"}}, "result": None})
    unfooled.stress(ToyVictim(), toy_data(), toy_suite("alpha"), out=tmp_path / "s", restart=True)
    assert (tmp_path / "mine").is_dir()


def test_texts_that_nobody_finds_valid_do_not_count_as_valid(tmp_path: Path) -> None:
    """alpha's texts are doubtful, so its rows are attacked further; beta's and gamma's are valid."""

    def judged(run: Path) -> Mapping[int, float]:
        with closing(RunFile.read(run)) as file:
            sure = 0.2 if "alpha" in run.name else 0.9
            return {result.key: sure for result in file.results(outcome="success")}

    victim, out = ToyVictim(failing=False), tmp_path / "s"
    result = unfooled.stress(victim, toy_data(), toy_suite(), out=out, validity=judged)
    found = by_attack(result)
    assert [found[name].tried for name in QUERIES] == [8, 8, 6]  # row 1 stays, row 2 falls to beta
    assert [found[name].first for name in QUERIES] == [2, 1, 2]
    assert found["alpha"].valid == pytest.approx(0.4)
    assert result.worst == Rate.of(3, 9)
    # Three stand; row 1 stands by 0.8; rows 2, 3, 4 and 7 by 0.1 each.
    assert result.valid is not None
    assert result.valid.value == pytest.approx((3 + 0.8 + 4 * 0.1) / 9)
    assert result.valid.low < result.valid.value < result.valid.high


def test_the_worst_case_by_valid_texts_carries_the_judges_own_doubt(tmp_path: Path) -> None:
    """Nothing but the interval is wider where the judge might have said something else of every text."""
    rows = [AttackedRow(key, 0, clean=True, found={1: False}, valid={1: 0.5}) for key in range(40)]
    rows += [AttackedRow(key, 0, clean=True, found={1: True}) for key in range(40, 60)]
    sure = valid_rate(rows)
    other = np.linspace(0.05, 0.95, 200)  # the same for all texts: a judge is off for all of them at once
    unsure = valid_rate(rows, {1: dict.fromkeys(range(40), other)})
    assert sure.value == unsure.value == pytest.approx((20 + 40 * 0.5) / 60)
    assert unsure.low < sure.low - 0.1
    assert unsure.high > sure.high + 0.1
    result = unfooled.stress(ToyVictim(failing=False), toy_data(), toy_suite("alpha"), out=tmp_path / "s")
    rule = Rule("valid-accuracy", "min", 0.4)
    (judged,) = apply_rules_to_stress(replace(result, valid=sure), [rule])
    (doubted,) = apply_rules_to_stress(replace(result, valid=unsure), [rule])
    assert doubted.rate.low < unsure.low < judged.rate.low
    # Half of the error is for the judge, half for the choice of rows; either alone would be too narrow.
    assert unsure.doubt is not None
    rows_that_stand = math.floor(unsure.doubt[0] * 60)
    assert doubted.rate.low == anytime_interval(rows_that_stand, 60, ERROR / 2)[0]
    assert sure.doubt is None
    assert judged.rate.low == anytime_interval(40, 60)[0]


def test_rows_that_errors_left_standing_are_judged_with_the_judges_doubt(tmp_path: Path) -> None:
    result = unfooled.stress(ToyVictim(failing=False), toy_data(), toy_suite("alpha"), out=tmp_path / "s")
    sure = Rate.of(450, 500)
    for doubt, verdict in ((None, "pass"), ((0.86, 0.94), "pass"), ((0.8, 0.97), "undecided")):
        doubted = replace(result, valid=replace(sure, doubt=doubt), undecided=tuple(range(20)))
        (judged,) = apply_rules_to_stress(doubted, [Rule("valid-accuracy", "min", 0.75)])
        assert judged.judgement == verdict, doubt


def test_the_judges_doubt_is_kept_in_the_file() -> None:
    rate = Rate(0.5, 0.3, 0.7, 60, (0.4, 0.6))
    assert Rate.from_dict(json.loads(json.dumps(rate.to_dict()))) == rate
    assert "doubt" not in Rate.of(3, 9).to_dict()


def test_rows_that_count_in_part_are_rounded_against_whoever_hopes_for_them(tmp_path: Path) -> None:
    result = unfooled.stress(ToyVictim(failing=False), toy_data(), toy_suite("alpha"), out=tmp_path / "s")
    (judged,) = apply_rules_to_stress(
        replace(result, valid=Rate.of(30.6, 40)), [Rule("valid-accuracy", "min", 0.4)]
    )
    assert judged.rate.low == anytime_interval(30, 40)[0]
    assert judged.rate.high == anytime_interval(31, 40)[1]


def test_a_suite_that_breaks_nothing_was_judged_all_the_same(tmp_path: Path) -> None:
    rows = [("the plain film", "positive"), ("the bad film", "negative")] * 4
    result = unfooled.stress(
        ToyVictim(), toy_data(rows), toy_suite("beta"), out=tmp_path / "s", validity=lambda run: {}
    )
    assert result.worst == result.valid == Rate.of(8, 8)


def test_what_cannot_be_done_is_left_out_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where no words.json lies
    members = tuple(map(SuiteAttack, ("jsma@paper", "tack-on@paper", "nothing@1", "alpha@1")))
    suite = Suite(name="mixed", version="1", summary="", attacks=members)
    result = unfooled.stress(ToyVictim(), toy_data(), suite)
    reasons = dict(result.left_out)
    assert list(reasons) == ["jsma@paper", "tack-on@paper", "nothing@1"]
    assert "needs gradients" in reasons["jsma@paper"]
    assert "words.json" in reasons["tack-on@paper"]
    assert [share.attack for share in result.attacks] == ["alpha@1"]
    with pytest.raises(CapabilityError, match="no attack of mixed@1\\+changed can be done here"):
        unfooled.stress(ToyVictim(), toy_data(), suite, without=["alpha@1"])


def test_without_a_folder_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = unfooled.stress(ToyVictim(), toy_data(), toy_suite("alpha"))
    assert result.out == ""
    assert not list(tmp_path.iterdir())


def test_a_random_model_is_asked_for_averages_and_judged_by_fresh_draws(tmp_path: Path) -> None:
    suite = Suite(name="spelling", version="1", summary="", attacks=(SuiteAttack("deepwordbug@textattack"),))
    result = unfooled.stress(Noisy(FakeVictim()), planted_data(20), suite, out=tmp_path / "s")
    (share,) = result.attacks
    assert share.draws == 4
    assert any("queries are means of 4 draws or more" in note for note in result.notes)
    assert (tmp_path / "s" / "1-deepwordbug@textattack-fresh").is_dir()
    again = unfooled.stress(Noisy(FakeVictim()), planted_data(20), suite, out=tmp_path / "s")
    assert comparable(again) == comparable(result)


def test_a_model_that_changes_its_answers_under_attack_is_caught(tmp_path: Path) -> None:
    class Forgetful(ToyVictim):
        """Deterministic, until it has been asked about edited texts."""

        def _row(self, words: list[str]) -> list[float]:
            p = super()._row(words)[0]
            if words and words[0] in ("alpha", "beta"):
                self.asked += 1
                p += 0.003 * (self.asked % 7)
            return [p, 1 - p]

    result = unfooled.stress(Forgetful(failing=False), toy_data(), toy_suite(), out=tmp_path / "s")
    found = by_attack(result)
    assert (found["alpha"].draws, found["beta"].draws) == (1, 4)
    assert any("alpha@1 heard single draws" in note for note in result.notes)


def test_a_model_that_only_decides_is_not_blamed_for_it(tmp_path: Path) -> None:
    def decide(texts: list[str]) -> list[str]:
        return ["negative" if "bad" in text else "positive" for text in texts]

    victim = unfooled.FunctionVictim(decide, labels=LABELS)
    members = (SuiteAttack("deepwordbug@textattack"), SuiteAttack("strongest-words@5"))
    suite = Suite(name="mixed", version="1", summary="", attacks=members)
    words = tmp_path / "words.json"
    count_class_words(toy_data()).write(words)
    result = unfooled.stress(victim, toy_data(), suite, everywhere={"words": str(words)})
    assert result.suite == "mixed@1+changed"
    assert [attack for attack, _ in result.left_out] == ["deepwordbug@textattack"]
    assert result.notes == ()


def test_the_suite_follows_the_victim() -> None:
    class Deciding(ToyVictim):
        capabilities = frozenset()

    assert fitting_suite(ToyVictim()).full_name == "standard@3"
    assert fitting_suite(Deciding()).full_name == "decisions@3"
    assert load_suite("whitebox@1").needs == ("probabilities", "gradients")
    with pytest.raises(UnknownNameError, match="standard@7"):
        load_suite("standard@7")


def test_a_version_attacks_the_same_way_for_ever() -> None:
    first = ["deepwordbug@textattack", "textfooler@textattack", "deepwordbug@paper", "list@paper"]
    last = ["bae-r@textattack", "bae-r-and-i@cosine"]
    assert [member.attack for member in load_suite("standard@1").attacks] == first + last
    assert [member.attack for member in load_suite("decisions@1").attacks] == ["tack-on@paper", "list@paper"]
    quick = ["tack-on@paper", "smuggle-bidi@words", "smuggle-zero-width@non-joiner", "leetspeak@plain"]
    assert [member.attack for member in load_suite("decisions@2").attacks] == [*quick, "list@paper"]
    assert [member.attack for member in load_suite("decisions@3").attacks] == [
        *quick,
        "decision-learner@quick",
    ]
    second = ["typos@random", "bert-attack@textattack", "bad-reorderings@textattack"]
    second += ["textfooler@textattack", "deepwordbug@paper", *last]
    assert [member.attack for member in load_suite("standard@2").attacks] == second
    third = [*second[:2], "decision-learner@quick", *second[2:]]
    assert [member.attack for member in load_suite("standard@3").attacks] == third
    seeing = [*second[:2], "gbda@neighbours", *second[2:]]
    assert [member.attack for member in load_suite("whitebox@2").attacks] == seeing
    seeing = ["fd@openattack", *third[:3], "gbda@neighbours", *third[3:]]
    assert [member.attack for member in load_suite("whitebox@3").attacks] == seeing


def test_suites_are_made_of_attacks_that_exist_and_need_no_more_than_they_say() -> None:
    names = [suite.full_name for suite in all_suites()]
    ladders = ["ladder@2", "ladder@program-2", "ladder@decisions-2", "ladder@program-decisions-2"]
    ladders += ["ladder@1", "ladder@program", "ladder@decisions", "ladder@program-decisions"]
    tables = ["standard@3", "standard@2", "standard@1", "whitebox@3", "whitebox@2", "whitebox@1"]
    assert names == ["decisions@3", "decisions@2", "decisions@1", *ladders, *tables]
    for suite in all_suites():
        for member in suite.attacks:
            assert "@" in member.attack
            assert set(member.recipe().requires()) <= set(suite.needs), member.attack
            assert load_recipe(member.attack).full_name == member.attack


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="leaves nothing to attack"):
        unfooled.stress(ToyVictim(), toy_data(), toy_suite(), limit=0)
    with pytest.raises(UserError, match="draws=2 makes no sense"):
        unfooled.stress(ToyVictim(), toy_data(), toy_suite(), draws=2)
    with pytest.raises(UnknownNameError, match="alpah"):
        unfooled.stress(ToyVictim(), toy_data(), toy_suite(), without=["alpah@1"])


# Dies without a word after so many texts, if it is told to; what was asked is counted in a file.
KILLED = """
import os, signal, sys
from pathlib import Path
import unfooled
from unfooled.checks.suites import Suite, SuiteAttack

out, count, most = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
asked = 0

class Mortal(type(unfooled.load_victim("fake"))):
    batch_size = 16

    def predict(self, texts):
        global asked
        asked += len(texts)
        count.write_text(str(asked))
        if most and asked > most:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().predict(texts)

words = ["superb", "great", "wonderful", "perfect", "awful", "terrible", "horrible", "dreadful"]
rows = []
for number in range(320):
    label = "positive" if number % 2 else "negative"
    own = words[:4] if label == "positive" else words[4:]
    rows.append((" ".join(own[: 1 + number % 4]) + f" film {number}", label))
members = (SuiteAttack("deepwordbug@textattack"), SuiteAttack("deepwordbug@paper"))
suite = Suite(name="spelling", version="1", summary="", attacks=members)
settings = unfooled.Settings(window=8)
result = unfooled.stress(Mortal(), rows, suite, out=out, settings=settings)
import json
print(json.dumps(result.to_dict()))
"""


def test_a_killed_suite_goes_on_and_loses_nothing(tmp_path: Path) -> None:
    script = tmp_path / "killed.py"
    script.write_text(KILLED, encoding="utf-8")

    def run(out: str, most: int) -> tuple[int, str, int]:
        count = tmp_path / f"{out}.txt"
        command = [sys.executable, str(script), str(tmp_path / out), str(count), str(most)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=dict(os.environ))
        return done.returncode, done.stdout, int(count.read_text())

    code, told, everything = run("whole", 0)
    assert code == 0
    whole = json.loads(told)
    code, told, _ = run("killed", everything * 3 // 4)
    assert (code, told) == (-9, "")
    with pytest.raises(RunFileError, match="not finished"):
        read_stress(tmp_path / "killed")
    with closing(RunFile.read(tmp_path / "killed" / "1-deepwordbug@textattack")) as file:
        assert sum(1 for _ in file.results()) > 100
    code, told, rest = run("killed", 0)
    assert code == 0
    assert rest < everything
    resumed = json.loads(told)
    for content in (whole, resumed):
        content["seconds"] = 0
        content["attacks"] = [{**attack, "seconds": 0} for attack in content["attacks"]]
    assert resumed == whole


def test_a_model_that_answers_texts_alike_as_before_is_found_out_and_fails_the_gate(tmp_path: Path) -> None:
    """Every edited text gets the answer of its original, so nothing falls while it is attacked."""
    out = tmp_path / "s"
    result = unfooled.stress(RememberingVictim(failing=False), toy_data(), toy_suite(), out=out)
    assert "it remembers" in result.remembers
    honest = unfooled.stress(ToyVictim(failing=False), toy_data(), toy_suite(), out=tmp_path / "h")
    assert honest.remembers == ""
    assert result.worst.value < result.clean.value  # what attacks ended at, as a fresh process answers it
    (judged,) = apply_rules_to_stress(read_stress(out), [Rule("accuracy", "min", 0.0)])
    assert judged.judgement == "fail"
    assert "it remembers" in str(judged)
    assert any("it remembers" in line for line in remarks(result))
