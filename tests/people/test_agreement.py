"""Agreement figures against examples that are worked out in the literature."""

from __future__ import annotations

import math

import pytest

from unfooled.people.study.agreement import agreement, fleiss_kappa, krippendorff_alpha

pytest.importorskip("nltk", reason="the extra `web` is not installed")

# Krippendorff (2011), Computing Krippendorff's Alpha-Reliability, part C and D: four observers, twelve units.
UNITS = """
    1 1 . 1 | 2 2 3 2 | 3 3 3 3 | 3 3 3 3 | 2 2 2 2 | 1 2 3 4
    | 4 4 4 4 | 1 1 2 1 | 2 2 2 2 | . 5 5 5 | . . 1 1 | . 3 . .
"""
FOUR = {
    unit: {rater: int(value) for rater, value in enumerate(cells.split()) if value != "."}
    for unit, cells in enumerate(UNITS.split("|"))
}

# Fleiss (1971), Measuring Nominal Scale Agreement Among Many Raters, table 1: thirty patients, six
# psychiatrists; how many chose depression, personality disorder, schizophrenia, neurosis, other.
FLEISS = """
    00060 03003 01401 00006 03030 20400 00402 20310 20040 00006
    10050 11040 03300 10050 02031 00501 30012 51000 02040 10203
    00006 01050 02013 20040 10041 05010 40002 02040 10500 00006
"""


def test_krippendorffs_own_example() -> None:
    assert krippendorff_alpha(FOUR, "nominal") == pytest.approx(0.743, abs=5e-4)
    assert krippendorff_alpha(FOUR, "ordinal") == pytest.approx(0.815, abs=5e-4)


def test_two_observers_by_hand() -> None:
    """Krippendorff (2011), part A: ten units, two observers, 0 or 1; alpha is 0.095."""
    answers, other = "0100000010", "1110010000"
    votes = {unit: {0: int(a), 1: int(b)} for unit, (a, b) in enumerate(zip(answers, other, strict=True))}
    assert krippendorff_alpha(votes, "nominal") == pytest.approx(0.095, abs=5e-4)


def test_fleiss_own_table() -> None:
    rows = [[int(cell) for cell in row] for row in FLEISS.split()]
    assert [sum(column) for column in zip(*rows, strict=True)] == [26, 26, 30, 55, 43]
    votes = {
        patient: dict(enumerate(value for value, count in enumerate(row) for _ in range(count)))
        for patient, row in enumerate(rows)
    }
    assert fleiss_kappa(votes) == pytest.approx(0.430, abs=5e-4)


def test_kappa_by_hand() -> None:
    """Two items, three people: agreement (1 + 1/3) / 2, by chance (4/6)^2 + (2/6)^2."""
    votes = {0: {1: 0, 2: 0, 3: 0}, 1: {1: 0, 2: 1, 3: 1}}
    observed, chance = (1 + 1 / 3) / 2, (4 / 6) ** 2 + (2 / 6) ** 2
    assert fleiss_kappa(votes) == pytest.approx((observed - chance) / (1 - chance))


def test_who_answered_does_not_matter_to_kappa() -> None:
    assert fleiss_kappa({0: {1: 0, 2: 1}, 1: {7: 1, 8: 1}}) == pytest.approx(
        fleiss_kappa({0: {1: 0, 2: 1}, 1: {1: 1, 2: 1}})
    )


def test_what_is_not_defined_is_nan_and_not_one() -> None:
    assert math.isnan(krippendorff_alpha({0: {1: 2, 2: 2}}, "nominal"))
    assert math.isnan(krippendorff_alpha({0: {1: 2}, 1: {2: 3}}, "ordinal"))
    assert math.isnan(fleiss_kappa({0: {1: 2, 2: 2}, 1: {1: 2}}))
    assert math.isnan(fleiss_kappa({}))


def test_incomplete_items_count_for_alpha_and_not_for_kappa() -> None:
    found = agreement("label", FOUR, "nominal")
    assert (found.items, found.complete, found.annotators) == (11, 8, 4)
    assert found.alpha == pytest.approx(0.743, abs=5e-4)
    complete = {unit: given for unit, given in FOUR.items() if len(given) == 4}
    assert found.kappa == pytest.approx(fleiss_kappa(complete))
