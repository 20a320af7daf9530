"""Claims are judged as computed by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stored_runs import on_text
from unfooled.core.result import REFERENCE, Result
from unfooled.papers.claims import (
    All,
    AtLeast,
    Claim,
    ClaimRule,
    EachAtMost,
    Judgement,
    More,
    Near,
    NearPublished,
    Unmeasured,
    with_holm,
)
from unfooled.papers.findings import (
    Findings,
    IntervalEstimate,
    PairedDifference,
    Quantity,
    interval_of_enough,
    shown,
    value_of,
)
from unfooled.papers.plans import NAMES, find_paper
from unfooled.papers.runner import Done
from unfooled.papers.stages import (
    AttackStage,
    Model,
    Rows,
)
from unfooled.text import Edit


class Known(Findings):
    """Findings whose numbers are given."""

    def __init__(self, **values: dict[int, float] | list[float]) -> None:
        super().__init__({})
        self.known = {
            name: dict(enumerate(value)) if isinstance(value, list) else value
            for name, value in values.items()
        }

    def has(self, *quantities: Quantity) -> bool:
        return all(quantity.stage in self.known for quantity in quantities)

    def values(self, quantity: Quantity) -> dict[int, float]:
        return self.known[quantity.stage]


A, B = Quantity("a"), Quantity("b")


def yes(ones: int, zeros: int) -> list[float]:
    return [1.0] * ones + [0.0] * zeros


def status(rule: ClaimRule, **values: dict[int, float] | list[float]) -> str:
    return rule.judge(Known(**values)).status


def test_more_is_decided_by_the_paired_interval_and_mcnemar() -> None:
    judged = More(A, B, names=("new", "old")).judge(Known(a=yes(9, 1), b=yes(1, 9)))
    # Eight rows only the first gets right, none only the second: p = 2 / 2^8.
    assert judged.status == "holds"
    assert "p = 0.0078" in judged.measured
    assert "difference 80.0 %" in judged.measured
    assert judged.short == "new 90.0 % against old 10.0 %"
    assert status(More(B, A), a=yes(9, 1), b=yes(1, 9)) == "does not hold"
    assert status(More(A, B), a=yes(6, 4), b=yes(5, 5)) == "not decided"


def test_five_rows_do_not_decide_whatever_the_interval_says() -> None:
    # 4 to 0 gives p = 0.125, though the interval of so large a difference excludes 0.
    assert status(More(A, B), a=yes(4, 0), b=yes(0, 4)) == "not decided"
    # Nor where no exact test is made: against a multiple, with ties allowed, against a bound.
    assert status(More(A, B, times=2.0), a=yes(5, 0), b=yes(0, 5)) == "not decided"
    assert status(More(A, B, by=-0.03), a=yes(5, 0), b=yes(0, 5)) == "not decided"
    assert status(AtLeast(A, 0.1), a=yes(5, 0)) == "not decided"


def test_more_than_a_share_of_the_other() -> None:
    same = yes(800, 200)
    assert status(More(A, B, times=0.97), a=same, b=same) == "holds"  # 0.80 against 0.776
    assert status(More(A, B), a=same, b=same) == "not decided"
    assert status(More(A, B, by=-0.01), a=same, b=same) == "holds"  # ties of a point allowed
    assert status(More(A, B, times=0.98), a=yes(700, 300), b=yes(800, 200)) == "does not hold"


def test_rows_that_only_one_side_has_are_left_out() -> None:
    first = dict.fromkeys(range(10), 1.0) | dict.fromkeys(range(10, 1000), 0.0)
    second = dict.fromkeys(range(10), 0.0)
    judged = More(A, B, paired=True).judge(Known(a=first, b=second))
    assert judged.status == "holds"
    assert "n = 10" in judged.measured


def test_at_least_and_at_most() -> None:
    # Wilson: 40 of 50 is 0.670 to 0.888, 25 of 50 is 0.366 to 0.634.
    assert status(AtLeast(A, 0.66), a=yes(40, 10)) == "holds"
    assert status(AtLeast(A, 0.68), a=yes(40, 10)) == "not decided"
    assert status(AtLeast(A, 0.89), a=yes(40, 10)) == "does not hold"
    assert status(AtLeast(A, 0.89, most=True), a=yes(40, 10)) == "holds"
    assert status(AtLeast(A, 0.66, most=True), a=yes(40, 10)) == "does not hold"
    assert status(AtLeast(A, 0.5), a=[]) == "not decided"


def test_a_handful_of_rows_does_not_decide_about_a_mean() -> None:
    """A bootstrap of two equal differences is a point, which is no certainty."""
    fewer = More(Quantity("a", "words"), Quantity("b", "words"))
    assert status(fewer, a=[3.0, 3.0], b=[1.0, 1.0]) == "not decided"
    assert status(AtLeast(Quantity("a", "words"), 1.5), a=[2.0] * 5) == "not decided"
    assert (
        status(Near(Quantity("a", "words"), Quantity("b", "words"), 1.0), a=[2.0], b=[2.0]) == "not decided"
    )
    assert status(fewer, a=[3.0] * 6, b=[1.0] * 6) == "holds"
    assert "(too few rows for an interval)" in fewer.judge(Known(a=[3.0], b=[1.0])).measured


def test_the_interval_of_a_mean_is_as_wide_as_students() -> None:
    sample = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    low, high = interval_of_enough(sample)
    half = 2.365 * 2.449 / math.sqrt(8)  # t of 7 degrees of freedom, standard deviation of the sample
    assert (high - low) / 2 == pytest.approx(half, rel=0.05)
    assert interval_of_enough([1.0, 3.0]) == (-math.inf, math.inf)


def test_two_bounds_of_one_figure_are_said_once() -> None:
    judged = All((AtLeast(A, 0.1, name="lost"), AtLeast(A, 0.9, most=True, name="lost"))).judge(
        Known(a=yes(25, 25))
    )
    assert (judged.status, judged.short, len(judged.parts)) == ("holds", "lost 50.0 %", 2)


def test_near_is_an_equivalence() -> None:
    same = yes(100, 100)
    assert status(Near(A, B, 0.05), a=same, b=same) == "holds"
    assert status(Near(A, B, 0.05), a=yes(3, 3), b=yes(3, 3)) == "not decided"
    assert status(Near(A, B, 0.05), a=yes(100, 0), b=yes(10, 90)) == "does not hold"


def test_a_published_rate_is_a_sample_too() -> None:
    rule = NearPublished(A, 24, 37, 0.2, name="ours")
    assert status(rule, a=yes(260, 140)) == "holds"
    assert status(rule, a=yes(40, 360)) == "does not hold"
    assert status(rule, a=yes(200, 200)) == "not decided"  # 0.15 apart, and 37 rows leave 0.16
    assert "the paper (24 of 37) 64.9 % (48.8–78.2)" in rule.judge(Known(a=yes(260, 140))).measured
    # A handful of rows decides nothing, on either side.
    assert status(NearPublished(A, 3, 5, 0.9), a=yes(260, 140)) == "not decided"


def test_all_needs_every_part() -> None:
    good, bad, open_ = AtLeast(A, 0.1), AtLeast(A, 0.9), AtLeast(A, 0.5)
    values = {"a": yes(25, 25)}
    assert status(All((good, good)), **values) == "holds"
    assert status(All((good, open_)), **values) == "not decided"
    assert status(All((good, open_, bad)), **values) == "does not hold"


def test_each_at_most_counts_single_numbers() -> None:
    assert status(EachAtMost(A, 1.0), a=[0.2, 1.0]) == "holds"
    assert status(EachAtMost(A, 1.0), a=[0.2, 1.01]) == "does not hold"
    assert status(EachAtMost(A, 1.0), a=[]) == "not decided"


def test_what_no_stage_measured_is_said() -> None:
    claim = Claim("x", "It is so.", "–", "how", AtLeast(Quantity("elsewhere"), 0.5), needs="a moon")
    assert claim.judge(Known()).status == "not measured"
    assert claim.judge(Known()).measured == "needs a moon"
    assert Claim("y", "It is so.", "–", "how", Unmeasured()).judge(Known()).status == "not measured"


def test_a_stand_in_that_decides_makes_figures_not_comparable() -> None:
    claim = Claim("x", "It is so.", "–", "how", AtLeast(A, 0.66), decided_by=("small model",))
    judged = claim.judge(Known(a=yes(40, 10)), {"small model"})
    assert (judged.status, judged.rule) == ("not comparable", "holds")
    assert claim.judge(Known(a=yes(40, 10)), {"other data"}).status == "holds"


def test_the_p_value_is_the_level_at_which_a_rule_is_just_decided() -> None:
    exact = Claim("x", "s", "–", "how", More(A, B)).judge(Known(a=yes(9, 1), b=yes(1, 9)))
    assert exact.p == pytest.approx(2 / 2**8, abs=1e-6)  # McNemar's, eight to none
    # 60 of 100 against one half: two standard errors of the score test.
    assert Claim("x", "s", "–", "how", AtLeast(A, 0.5)).judge(Known(a=yes(60, 40))).p == pytest.approx(
        0.0455, abs=1e-4
    )
    few = Claim("x", "s", "–", "how", AtLeast(A, 0.5)).judge(Known(a=yes(5, 0)))
    assert few.p == 1.0
    parts = All((AtLeast(A, 0.5, most=True), AtLeast(A, 0.1)))
    assert Claim("x", "s", "–", "how", parts).judge(Known(a=yes(60, 40))).p == pytest.approx(0.091, abs=1e-3)


def test_holm_stops_at_the_first_that_fails() -> None:
    claim = Claim("x", "s", "–", "how", Unmeasured())
    given = [
        Judgement("holds", p=0.04),
        Judgement("does not hold", p=0.001),
        Judgement("holds", p=0.03),
        Judgement("not comparable", p=0.0001, rule="holds"),
        Judgement("not measured"),
    ]
    after = [one.holm for _, one in with_holm([(claim, one) for one in given])]
    assert after == ["not decided", "does not hold", "not decided", None, None]  # 3 · .001, then 2 · .03


EXTREMES = (yes(400, 0), yes(0, 400), [1000.0] * 400, [0.5] * 400)


@pytest.mark.parametrize("name", NAMES)
def test_every_rule_can_hold_and_can_fail(name: str) -> None:
    """Fed with extreme figures: no claim is decided before anything is measured."""
    for claim in find_paper(name).claims:
        quantities = list(dict.fromkeys(claim.rule.quantities()))
        if not quantities:
            assert claim.needs
            continue
        middles = [[value] * 400 for value in (0.02, 0.1, 0.3, 1.0, 2.0, 5.0)]
        shapes = [*EXTREMES, yes(40, 360), yes(100, 300), yes(260, 140), *middles]
        firsts = {part.first for part in _parts(claim.rule) if isinstance(part, More | Near)}
        seen = {
            claim.rule.judge(Fed({one: high if one in firsts else low for one in quantities})).status
            for high in shapes
            for low in shapes
        }
        # Where one quantity is the first of a part and the second of another, a falling chain is needed.
        chain = {
            one: yes(400 - 400 * at // len(quantities), 400 * at // len(quantities))
            for at, one in enumerate(quantities)
        }
        seen.add(claim.rule.judge(Fed(chain)).status)
        assert {"holds", "does not hold"} <= seen, claim.name


THE_PAPERS_OWN = {"nb-falls", "plane", "theorem"}  # data and model are what they were there


@pytest.mark.parametrize("name", NAMES)
def test_every_claim_names_what_it_stands_on(name: str) -> None:
    paper = find_paper(name)
    known = {substitution for substitution, _ in paper.plan("small").substitutions}
    used: set[str] = set()
    for claim in paper.claims:
        stands_on = {*claim.substitutions, *claim.decided_by}
        assert stands_on <= known, claim.name
        assert stands_on or claim.needs or claim.name in THE_PAPERS_OWN, claim.name
        used |= stands_on
    assert used == known  # what no claim stands on stands in for nothing


def _parts(rule: ClaimRule) -> list[ClaimRule]:
    return [part for one in rule.rules for part in _parts(one)] if isinstance(rule, All) else [rule]


class Fed(Findings):
    """Findings whose numbers are given for each quantity."""

    def __init__(self, fed: dict[Quantity, list[float]]) -> None:
        super().__init__({})
        self.fed = fed

    def values(self, quantity: Quantity) -> dict[int, float]:
        return dict(enumerate(self.fed[quantity]))


def test_independent_samples_add_their_distances() -> None:
    first, second = IntervalEstimate(0.5, 0.4, 0.6, 90, "%"), IntervalEstimate(0.3, 0.2, 0.4, 80, "%")
    found = PairedDifference.apart(first, second).estimate
    assert found.value == pytest.approx(0.2)
    assert found.low == pytest.approx(0.2 - math.sqrt(0.02))
    assert found.high == pytest.approx(0.2 + math.sqrt(0.02))
    assert found.n == 80


def test_numbers_are_shown_with_their_interval() -> None:
    assert shown(IntervalEstimate(0.58, 0.4821, 0.6719, 100, "%")) == "58.0 % (48.2–67.2)"
    assert shown(IntervalEstimate(-0.01, -0.08, 0.098, 20, "%")) == "-1.0 % (-8.0 to 9.8)"
    assert shown(IntervalEstimate(1.5, 1.25, 1.75, 20)) == "1.50 (1.25–1.75)"
    assert shown(IntervalEstimate(math.nan, math.nan, math.nan, 0, "%")) == "–"


def result(outcome: Any = "success", **changes: Any) -> Result:
    edits = (Edit("replace", 1, "good", "dull", 2), Edit("replace", 3, "fun", "sad", 11))
    made = on_text(
        "a good and fun one",
        "a dull and sad one",
        probs=(0.9, 0.1),
        perturbed_probs=(0.2, 0.8),
        outcome=outcome,
        edits=edits,
        words=5,
        queries=7,
        facts=(("draws", 8.0), ("draws_won", 2.0)),
    )
    return replace(made, **changes)


def test_values_of_a_result() -> None:
    won = result()
    expected = {
        "before": 1.0, "after": 0.0, "lost": 1.0, "success": 1.0, "queries": 7.0, "words": 2.0, "share": 0.4,
        "few:2": 1.0, "few:1": 0.0, "upto:0.4": 0.0, "upto:0.3": 1.0, "sample": 0.0, "draws": 0.25,
    }  # fmt: skip
    assert {what: value_of(won, what) for what in expected} == expected
    lost = result("failure", perturbed="a good and fun one", edits=(), perturbed_probs=(0.6, 0.4))
    assert value_of(lost, "success") == 0.0
    assert value_of(lost, "queries") == lost.queries
    assert value_of(replace(lost, queries_known=False), "queries") is None  # another tool did not tell
    assert value_of(lost, "words") is None
    assert value_of(lost, "sample") is None
    skipped = result("skipped", probs=(0.1, 0.9))
    assert value_of(skipped, "before") == 0.0
    assert value_of(skipped, "lost") == 0.0
    assert value_of(skipped, "queries") is None
    with pytest.raises(ValueError, match="no 'colour'"):
        value_of(won, "colour")


def test_bleu_of_a_translation() -> None:
    pytest.importorskip("sacrebleu")
    reference = "ein Hund schläft auf dem Sofa"
    won = result(
        fields=(("text", "a dog sleeps on the sofa"), (REFERENCE, reference)),
        output=reference,
        perturbed_output="eine Katze",
    )
    assert value_of(won, "bleu") == pytest.approx(100)
    after = value_of(won, "bleu-after")
    assert after is not None
    assert after < 20
    assert value_of(won, "bleu-lost") == pytest.approx(100 - after)
    assert Quantity("x", "bleu-lost").unit == ""


class Ran(Findings):
    """Findings of runs whose results are given."""

    def __init__(self, **results: list[Result]) -> None:
        model, rows = Model(spec="m"), Rows(source="d")
        stages = {name: AttackStage(name=name, model=model, data=rows, attack="x") for name in results}
        super().__init__({name: Done(stage, Path(), "", 0.0) for name, stage in stages.items()})
        self._results = results


def test_an_error_in_another_run_is_neither_robust_nor_needed() -> None:
    stood = {"outcome": "failure", "perturbed_probs": (0.9, 0.1)}
    first = [result(key=1, **stood), result(key=2, **stood), result(key=3)]
    again = [result(key=1, **stood), result("error", key=2)]  # the third fell before and is not tried again
    found = Ran(first=first, again=again)
    assert found.values(Quantity("first", also=("again",))) == {1: 1.0, 3: 0.0}
    found = Ran(both=[result(key=1), result(key=2)], one=[result("failure", key=1), result("error", key=2)])
    assert found.values(Quantity("both", "success", without=("one",))) == {1: 1.0}
