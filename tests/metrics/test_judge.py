"""The judge of validity: what it reads, measures and learns, and both numbers of a judged run."""

from __future__ import annotations

import gzip
import json
import math
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from typer.testing import CliRunner

from stored_runs import made, stored
from unfooled.checks.gate import Rule, apply_rules
from unfooled.checks.tracking import numbers
from unfooled.cli.app import app
from unfooled.errors import DataError, UserError
from unfooled.metrics.summary import summarise
from unfooled.metrics.validity import fitting, judging, validation
from unfooled.metrics.validity.accuracy import DRAWS, VALID, draws_of, estimate
from unfooled.metrics.validity.features import FEATURES, Pair
from unfooled.metrics.validity.fitting import folds, learners, measure_judgements
from unfooled.metrics.validity.instruments import ALWAYS, open_instruments
from unfooled.metrics.validity.judgements import ReaderJudgement, edited_sentences, read_judgements
from unfooled.metrics.validity.judging import judge
from unfooled.metrics.validity.model import FULL, REDUCED, TARGETS, Judge, Target, Variant, load_judge
from unfooled.metrics.validity.pictures import as_seen, open_pictures, without_invisible
from unfooled.metrics.validity.regression import (
    Regression,
    area_under_curve,
    fit_weights,
    probability,
)
from unfooled.metrics.validity.second_judge import SECOND, agreement, agreement_of, parse_answer
from unfooled.metrics.validity.surprise import OPENING, measure_surprise, texts_to_read
from unfooled.metrics.validity.validation import cross_validate, figure, fit_judge, reliability
from unfooled.report.html import write_html
from unfooled.report.tables import UNDER_VALID, both_numbers, footnotes, summary_rows
from unfooled.resources import store
from unfooled.resources.english import Speller
from unfooled.resources.fluency import Token
from unfooled.runs.export import export
from unfooled.runs.file import RunFile

measuring = pytest.mark.skipif(
    not all(store.has(name) for name in (*ALWAYS, "potion")),
    reason="what the judge measures with is not here",
)
drawing = pytest.mark.skipif(open_pictures() is None, reason="matplotlib, which draws letters, is not here")
WORDS = ("form-per-edit", "meaning-kept", "misspelt", "polarity-moved", "contradictions", "protected")


def flat(bias: float, *, spread: float = 0.0, weight: float = 0.0) -> Regression:
    """On one measure, `edited`; the numbers as sure as `spread`."""
    unit = np.ones(1)
    return Regression(("edited",), 0 * unit, unit, weight * unit, bias, np.diag([0.0, spread**2]))


def judge_of(*, fluent: float = 0.0, kept: float = 30.0, spread: float = 0.0) -> Judge:
    parts: dict[Target, Regression] = {
        "fluent": flat(fluent, spread=spread),
        "label_kept": flat(kept),
        "said_altered": flat(0.0),
    }
    return Judge({name: Variant(name, parts) for name in (FULL, REDUCED)}, {"figures": {}})


# -- numbers ---------------------------------------------------------------------------------------------


def test_the_area_counts_pairs_in_the_right_order_and_ties_as_half() -> None:
    truth = [True, True, False, False]
    assert area_under_curve(truth, np.array([0.9, 0.5, 0.5, 0.1])) == 3.5 / 4
    assert math.isnan(area_under_curve([True], np.array([0.3])))


def test_a_weight_never_gets_the_wrong_sign() -> None:
    table, target = np.array([[-1.0], [1.0]] * 20), np.array([1.0, 0.0] * 20)
    falling = fit_weights(table, target, np.ones(40), signs=[-1], priors=[0.0], strength=1.0)
    barred = fit_weights(table, target, np.ones(40), signs=[1], priors=[0.0], strength=1.0)
    assert falling[0] < -1
    assert barred[0] == 0.0


def test_without_variation_the_prior_stays_and_the_bias_is_the_log_odds() -> None:
    found = fit_weights(
        np.zeros((40, 1)), np.full(40, 0.75), np.ones(40), signs=[1], priors=[3.0], strength=2.0
    )
    assert found == pytest.approx([3.0, math.log(3)], abs=1e-3)


def test_reliability_bins_have_equal_size_and_the_error_is_their_mean_distance() -> None:
    chance = np.array([0.1, 0.1, 0.1, 0.1, 0.9, 0.9, 0.9, 0.9])
    truth = [False, False, False, True, True, True, True, True]
    low, high = reliability(truth, chance, bins=2)
    assert (low.predicted, low.observed, low.n) == (0.1, 0.25, 4)
    assert (high.predicted, high.observed, high.n) == (0.9, 1.0, 4)
    found = figure("made", truth, chance, [str(i) for i in range(8)])
    assert found.auc == pytest.approx((4 * 3 + 3 * 0.5) / 15, abs=1e-4)


def test_texts_of_one_original_are_resampled_together() -> None:
    """Ten copies of each text say no more than one: the interval stays as wide."""
    rng = np.random.default_rng(2)
    chance, truth = rng.random(30), rng.random(30) < 0.5
    names = [str(i) for i in range(30)]
    alone = figure("made", truth, chance, names)
    copied = figure("made", np.repeat(truth, 10), np.repeat(chance, 10), np.repeat(names, 10))
    assert copied.originals == 30
    assert copied.auc == alone.auc
    assert copied.auc_high - copied.auc_low > 0.9 * (alone.auc_high - alone.auc_low)


# -- both numbers ----------------------------------------------------------------------------------------


def test_a_success_counts_with_its_probability_of_being_valid() -> None:
    """4 of 10 rows withstand, 6 fall to texts that are valid with 0.5: 0.4 + 0.6 · 0.5."""
    variant = judge_of().variant(FULL)
    found = estimate(variant, [{"edited": 0.1}] * 6, right=4, n=10)
    value, low, high = found.accuracy
    assert value == pytest.approx(0.7)
    assert low < 0.7 < high
    assert found.share[0] == pytest.approx(0.5)


def test_the_interval_carries_the_judges_own_uncertainty() -> None:
    rows = [{"edited": 0.1}] * 600
    sure = estimate(judge_of().variant(FULL), rows, right=400, n=1000).accuracy
    unsure = estimate(judge_of(spread=1.0).variant(FULL), rows, right=400, n=1000).accuracy
    assert sure[0] == unsure[0]
    assert unsure[2] - unsure[1] > 3 * (sure[2] - sure[1])


def test_the_interval_covers_the_true_share_as_often_as_it_says() -> None:
    """Rows fall with 0.6 and are valid with a probability of 0.2 or 0.7, each known to a perfect judge."""
    rng = np.random.default_rng(5)
    parts: dict[Target, Regression] = {
        "fluent": flat(0.0, weight=1.0),
        "label_kept": flat(30.0),
        "said_altered": flat(0.0),
    }
    variant = Variant(FULL, parts)
    odds = [{"edited": math.log(p / (1 - p))} for p in (0.2, 0.7)]
    true = 1 - 0.6 * 0.45
    covered = 0
    for _ in range(300):
        n = 60
        fell = int(rng.binomial(n, 0.6))
        rows = [odds[i] for i in rng.integers(2, size=fell)]
        _, low, high = estimate(variant, rows, right=n - fell, n=n).accuracy
        covered += low <= true <= high
    assert 0.92 <= covered / 300 <= 0.99


def test_what_was_not_judged_counts_as_valid() -> None:
    found = estimate(judge_of().variant(FULL), [{"edited": 0.1}] * 2, right=4, n=10, unjudged=4)
    assert found.accuracy[0] == pytest.approx(0.5)
    assert found.unjudged == 4


@pytest.fixture
def run(tmp_path: Path) -> Path:
    texts = ["great film", "fine plot", "lovely acting", "superb cast"]
    return stored(tmp_path / "run", [made(key, "success", text) for key, text in enumerate(texts)])


def test_an_unjudged_run_has_one_number(run: Path) -> None:
    with closing(RunFile.read(run)) as file:
        summary = summarise(file)
    assert summary.accuracy_under_valid_attack is None
    assert UNDER_VALID not in [row.name for row in summary_rows(summary)]
    with pytest.raises(UserError, match="was not judged"):
        apply_rules(summary, [Rule("valid-aua", "min", 0.5)])


@measuring
def test_a_judged_run_has_both_numbers_everywhere(run: Path, tmp_path: Path) -> None:
    chances = judge(run, language_model=False)
    with closing(RunFile.read(run)) as file:
        summary = summarise(file)
        assert file.measured(VALID) == chances
    rate = summary.accuracy_under_valid_attack
    assert rate is not None
    assert rate.value == pytest.approx(1 - sum(chances.values()) / 4, abs=1e-6)
    assert summary.accuracy_under_attack.value == 0.0
    assert [row.name for row in both_numbers(summary)][1] == UNDER_VALID
    assert any("without the language model" in line for line in footnotes(summary))
    assert summary.to_dict()["validity"]["accuracy_under_valid_attack"]["n"] == 4
    assert numbers(summary)["accuracy_under_valid_attack"] == rate.value
    (judged,) = apply_rules(summary, [Rule("valid-aua", "min", 0.0)])
    assert judged.judgement == "pass"
    page = write_html([run], tmp_path / "page.html").read_text(encoding="utf-8")
    assert UNDER_VALID in page
    leading = page.partition('aria-label="The numbers that matter"')[2]
    # By any text first, then by valid ones, before anything else.
    assert leading.index("by any text") < leading.index("by valid texts") < leading.index("attacks succeed")
    export(run, tmp_path / "rows.csv")
    assert VALID in (tmp_path / "rows.csv").read_text(encoding="utf-8").splitlines()[0].replace(
        '"', ""
    ).split(",")
    assert "accuracy under attack by valid texts" in summary._repr_html_()


@measuring
def test_a_judged_run_tells_what_else_its_judge_might_have_said(run: Path) -> None:
    chances = judge(run, language_model=False)
    with closing(RunFile.read(run)) as file:
        draws = draws_of(file, [*chances, 99])
    assert set(draws) == set(chances)
    for key, values in draws.items():
        assert values.shape == (DRAWS,)
        assert 0 <= values.min() <= chances[key] <= values.max() <= 1


def test_an_unjudged_run_has_no_draws(run: Path) -> None:
    with closing(RunFile.read(run)) as file:
        assert draws_of(file, [0, 1]) == {}


@measuring
def test_judging_again_measures_nothing_and_another_judge_replaces(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = judge(run, language_model=False)
    shipped = load_judge().variant(REDUCED)
    parts = {target: shipped.parts[target] for target in TARGETS}
    part = parts["fluent"]
    doubtful = Regression(
        part.features, part.centre, part.scale, part.weights, part.bias - 5, part.covariance
    )
    other = Judge({REDUCED: Variant(REDUCED, parts | {"fluent": doubtful})}, {"figures": {}})
    other.save(tmp_path / "other.json")

    def closed(features: object) -> None:
        raise AssertionError("nothing is left to measure")

    monkeypatch.setattr(judging, "open_instruments", closed)
    assert judge(run, language_model=False) == first
    again = judge(run, tmp_path / "other.json", language_model=False)
    assert all(again[key] < first[key] for key in first)


@measuring
def test_a_run_that_went_on_says_what_is_not_judged(run: Path) -> None:
    judge(run, language_model=False)
    with closing(RunFile.read(run)) as file:
        header = {name: file.header[name] for name in ("identity", "environment")}
    with RunFile.open(run, header) as file:
        file.add(made(9, "success", "splendid script"))
    with closing(RunFile.read(run)) as file:
        summary = summarise(file)
    assert summary.validity is not None
    assert summary.validity.unjudged == 1
    assert any("not judged yet" in line for line in footnotes(summary))
    (judged,) = apply_rules(summary, [Rule("valid-aua", "min", 0.0)])
    assert (judged.judgement, "not judged" in judged.reason) == ("undecided", True)


@measuring
def test_the_command_prints_both_numbers(run: Path) -> None:
    told = CliRunner().invoke(app, ["judge", str(run), "--no-language-model"])
    assert told.exit_code == 0, told.output
    assert "accuracy under attack by valid texts:" in told.output
    said = CliRunner().invoke(app, ["judge", str(run), "--no-language-model", "--json"])
    assert json.loads(said.stdout)["variant"] == REDUCED


# -- measures --------------------------------------------------------------------------------------------


@measuring
@pytest.mark.parametrize(
    ("before", "after", "name", "least"),
    [
        ("a fine film .", "a fine films .", "form-per-edit", 1.0),
        ("a good film .", "a unusual film .", "agreement", 1.0),
        ("a wonderful film .", "a w0nderful film .", "misspelt", 1.0),
        ("a wonderful film .", "a wonderfу1 film .", "misspelt", 1.0),
        ("i did like it .", "i didn't like it .", "contradictions", math.log(2) - 1e-6),
        ("i recommend it .", "i do not recommend it .", "contradictions", math.log(2) - 1e-6),
        ("she met Paul at noon .", "she met Peter at noon .", "protected", 1.0),
        ("a good film .", "a bad film .", "polarity-moved", 0.3),
        ("a film .", "a terrible film .", "polarity-moved", 0.3),
    ],
)
def test_a_flaw_is_measured(before: str, after: str, name: str, least: float) -> None:
    instruments = open_instruments(WORDS)
    same, flawed = instruments.measure([Pair(before, before), Pair(before, after)])
    assert same[name] == 0.0
    assert flawed[name] >= least


@measuring
def test_a_synonym_has_no_flaw() -> None:
    (row,) = open_instruments(WORDS).measure([Pair("a movie about war .", "a film about war .")])
    assert row["meaning-kept"] >= 0.5
    assert all(row[name] == 0 for name in ("form-per-edit", "misspelt", "contradictions", "protected"))


@measuring
def test_words_put_in_are_no_proof_of_the_same_meaning() -> None:
    same, more = open_instruments(WORDS).measure(
        [Pair("a film .", "a film ."), Pair("a film .", "a forgettable film .")]
    )
    assert (same["meaning-kept"], more["meaning-kept"]) == (1.0, 0.4)


# -- pictures --------------------------------------------------------------------------------------------


@drawing
@pytest.mark.parametrize(
    ("before", "after", "least", "most"),
    [
        ("wonderful", "wоnderful", 0.0, 0.0),  # Cyrillic о
        ("yes", "уеѕ", 0.0, 0.0),  # all Cyrillic
        ("won\u200bder", "wonder", 0.0, 0.0),
        ("film", "fiIm", 0.0, 0.0),  # a capital I, as tall as the l
        ("wonderful", "wönderful", 0.1, 0.9),
        ("wonderful", "w0nderful", 1.0, 1.0),
        ("wonderful", "wonderfu1", 1.0, 1.0),
        ("film", "ｆilm", 0.1, 0.9),  # wide
        ("wonderful", "wonderfull", 1.0, 1.0),
        ("dull", "dulk", 0.9, 1.0),
    ],
)
def test_how_different_a_word_looks(before: str, after: str, least: float, most: float) -> None:
    unlike = open_pictures()
    assert unlike is not None
    assert least <= unlike(before, after) <= most


@drawing
def test_what_looks_the_same_is_the_same() -> None:
    unlike = open_pictures()
    assert as_seen("a fine film", "a f\u0456ne fi\u200blm", unlike) == "a fine film"
    assert as_seen("a fine film", "a fíne film", unlike) == "a fíne film"
    assert as_seen("naïve café", "naïve café", unlike) == "naïve café"
    assert without_invisible("a\u2060b\U000e0041\tc\n") == "ab\tc\n"


@measuring
@drawing
def test_a_reader_does_not_stumble_over_a_letter_that_looks_the_same() -> None:
    before = "a wonderful film ."
    same, twin, accent, typo = open_instruments(WORDS).measure(
        [
            Pair(before, before),
            Pair(before, "a w\u043enderful fi\u200blm ."),
            Pair(before, "a wönderful film ."),
            Pair(before, "a wonderfkl film ."),
        ]
    )
    assert twin == same
    assert 0 < accent["misspelt"] < typo["misspelt"] == 1.0


# -- surprise --------------------------------------------------------------------------------------------


def test_an_altered_text_is_compared_with_itself_undone() -> None:
    """Spaces and punctuation that a study left out are not part of what an edit cost."""
    read = texts_to_read("a war-torn land , full of people .", "a war ruptured land, full of folks")
    assert read.own == OPENING + "a war torn land, full of people"
    assert read.new == OPENING + "a war ruptured land, full of folks"
    inserted = texts_to_read("i like it .", "i do like it .")
    assert inserted.own == OPENING + "i like it."
    assert texts_to_read("it is not dull .", "it is dull .").own == OPENING + "it is not dull."


def test_surprise_is_counted_behind_the_opening() -> None:
    read = texts_to_read("good film", "bad film")
    speller = Speller({"good": 99, "bad": 99, "film": 99})

    def tokens(string: str, *values: float) -> list[Token]:
        ends = [5, len(OPENING) + string[len(OPENING) :].index(" "), len(string)]
        starts = [0, 5, ends[1]]
        return [Token(*place) for place in zip(starts, ends, values, strict=True)]

    found = measure_surprise(read, tokens(read.own, -9, -2, -1), tokens(read.new, -1, -5, -4), speller)
    assert found["lm-lost-per-word"] == pytest.approx(3.0)  # 6 in all: 3 the word, 3 the word behind it
    assert found["lm-lost-in-context"] == pytest.approx(3.0)
    assert found["lm-behind"] == pytest.approx(math.log1p(3))
    assert found["lm-per-word"] == pytest.approx(4.5)


def test_every_measure_of_the_shipped_judge_has_the_sign_that_makes_sense() -> None:
    for variant in load_judge().variants.values():
        for target, part in variant.parts.items():
            good = -1 if target == "said_altered" else 1
            for name, weight in zip(part.features, part.weights, strict=True):
                assert weight * FEATURES[name].sign * good <= 0, (variant.name, target, name)


def test_the_variant_without_the_language_model_needs_none() -> None:
    shipped = load_judge()
    assert any(FEATURES[name].needs for name in shipped.variant(FULL).features)
    assert not any(FEATURES[name].needs for name in shipped.variant(REDUCED).features)


# -- judges in files -------------------------------------------------------------------------------------


def test_a_judge_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    shipped = load_judge()
    shipped.save(tmp_path / "judge.json")
    assert load_judge(tmp_path / "judge.json").digest == shipped.digest
    assert shipped.record["judgements"]["label_changed"] == 1000


@pytest.mark.parametrize("content", ["", "[]", '{"kind": "unfooled judge", "format": 1}', '{"kind": 3}'])
def test_what_is_no_judge_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "judge.json").write_text(content, encoding="utf-8")
    with pytest.raises(DataError):
        load_judge(tmp_path / "judge.json")


# -- judgements ------------------------------------------------------------------------------------------


def test_each_kind_of_judgement_is_read(tmp_path: Path) -> None:
    lines = [
        {"before": "a b", "after": "a c", "fluent": True, "label_kept": False},
        {"text": "a c", "before": "a b", "said_altered": 6, "judgements": 10},
        {"text": "no original", "said_altered": 6, "judgements": 10},
        {"before": "a b", "after": "a c", "label_before": "x", "label_after": "y"},
        {"before": "a b", "after": "a c", "answers": ["Agree", "Not sure", "Strongly Disagree", "Agree"]},
    ]
    with gzip.open(tmp_path / "mine.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    reader, panel, edited, meaning = read_judgements([tmp_path])
    assert (reader.fluent, reader.label_kept, reader.valid) == (1.0, 0.0, 0.0)
    assert (panel.said_altered, panel.readers, panel.valid) == (0.6, 10, None)
    assert edited.label_kept == 0.0
    assert (meaning.label_kept, meaning.readers) == (0.5, 4)


@pytest.mark.parametrize(
    "line", ["{", "[1]", '{"before": "a", "after": 3, "fluent": true}', '{"before": "a"}']
)
def test_a_line_that_is_no_judgement_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "mine.jsonl").write_text(line + "\n", encoding="utf-8")
    with pytest.raises(DataError, match="line 1"):
        read_judgements([tmp_path / "mine.jsonl"])


def test_edited_sentences_are_cut_out_of_a_review_that_few_of_them_turned() -> None:
    joy, pain = "The acting is a real joy to watch.", "The acting is a real pain to watch."
    before, after = (f"I saw it on a plane. {said} It was late." for said in (joy, pain))
    (cut,) = edited_sentences(ReaderJudgement(before, after, "edited", label_kept=0.0))
    assert (cut.before, cut.after) == (joy, pain)
    assert cut.edited_label
    assert cut.group == ReaderJudgement(before, after, "edited").group
    assert edited_sentences(ReaderJudgement(joy, pain, "one sentence", label_kept=0.0)) == []


def test_an_original_with_other_punctuation_is_not_altered() -> None:
    assert not ReaderJudgement("A fine , fine film .", "a fine, fine film", "x").altered


# -- fitting ---------------------------------------------------------------------------------------------


def invented(n: int) -> list[tuple[ReaderJudgement, dict[str, float]]]:
    """Texts that readers dislike the more, the more of their words changed form."""
    rng = np.random.default_rng(3)
    found = []
    for i in range(n):
        row = {name: 0.0 for name, feature in FEATURES.items() if not feature.needs}
        flaw = float(rng.random())
        row |= {"form-per-edit": flaw, "form": flaw / 10, "meaning-kept": 1 - flaw, "edited": 0.1}
        kept = float(rng.random() < probability(np.array([3 - 5 * flaw]))[0])
        fluent = float(rng.random() < probability(np.array([2 - 6 * flaw]))[0])
        judgement = ReaderJudgement(
            f"text {i}", f"other {i}", "made", fluent=fluent, label_kept=kept, said_altered=flaw
        )
        found.append((judgement, row))
    return found


def test_a_fit_finds_what_readers_mind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "RESAMPLES", 10)
    monkeypatch.setattr(validation, "REPEATS", 1)
    judge = fit_judge(invented(120), data="made")
    assert {how["method"] for how in judge.record["made"][REDUCED].values()} == {"fitted"}
    assert list(judge.variants) == [REDUCED]
    weights = dict(
        zip(
            *(getattr(judge.variant(REDUCED).parts["fluent"], n) for n in ("features", "weights")),
            strict=True,
        )
    )
    assert weights["form-per-edit"] < -0.5
    assert judge.record["figures"][REDUCED]["valid"]["auc"] > 0.75
    assert judge.record["data"] == "made"


def test_rows_of_one_original_are_in_one_fold() -> None:
    groups = ["a", "b", "a", "c", "d", "b"]
    fold = folds(groups, 2, seed=1)
    assert fold[0] == fold[2]
    assert fold[1] == fold[5]
    assert set(fold.tolist()) == {0.0, 1.0}


def test_the_figures_do_not_see_the_texts_they_are_about(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is learned inside a fold, no group of the outside is among what it is learned on."""
    seen: list[tuple[set[str], int]] = []
    learn = fitting.Learner.learn

    def watched(self: fitting.Learner, measured: fitting.Measured, seed: int) -> Regression:
        seen.append(({judgement.group for judgement, _ in measured}, len(measured)))
        return learn(self, measured, seed)

    monkeypatch.setattr(validation, "REPEATS", 1)
    monkeypatch.setattr(fitting.Learner, "learn", watched)
    rows = invented(60)
    cross_validate(rows, learners(rows, REDUCED, None))
    assert len(seen) == validation.FOLDS * len(TARGETS)
    assert all(size == 54 and len(groups) == 54 for groups, size in seen)


def test_few_judgements_recalibrate_the_shipped_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers who accept nearly everything raise every chance; the order of the texts stays."""
    monkeypatch.setattr(validation, "RESAMPLES", 10)
    monkeypatch.setattr(validation, "REPEATS", 1)
    shipped = load_judge()
    rows = [
        (ReaderJudgement(j.before, j.after, "mine", fluent=float(i % 6 > 0)), row)
        for i, (j, row) in enumerate(invented(12))
    ]
    judge = fit_judge(rows, shipped=shipped)
    made = judge.record["made"][REDUCED]
    assert {target: how["method"] for target, how in made.items()} == {
        "fluent": "recalibrated",
        "label_kept": "as shipped",
        "said_altered": "as shipped",
    }
    table = [row for _, row in rows]
    old, new = (each.variant(REDUCED).chance(table, "fluent") for each in (shipped, judge))
    assert new.mean() > old.mean()
    assert np.argsort(new).tolist() == np.argsort(old).tolist()
    own, other = (each.variant(REDUCED).parts["fluent"].covariance for each in (judge, shipped))
    assert np.trace(own) > 0.1 * np.trace(other)
    assert judge.variant(REDUCED).parts["label_kept"] is shipped.variant(REDUCED).parts["label_kept"]


def test_too_few_judgements_are_refused() -> None:
    pairs: list[tuple[ReaderJudgement, dict[str, float]]] = [
        (ReaderJudgement("a", "b", "x", fluent=1.0, label_kept=1.0, said_altered=0.1), {})
    ] * 3
    with pytest.raises(DataError, match="too few for a judge"):
        fit_judge(pairs)
    with pytest.raises(DataError, match="fewer than 5 judgements"):
        fit_judge(pairs, shipped=load_judge())


@measuring
def test_without_the_language_model_it_tells_texts_apart_that_it_never_saw(
    shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shared_data / "human_judgements"
    if not folder.is_dir():
        pytest.skip("the human judgements are not here")
    monkeypatch.setattr(validation, "REPEATS", 1)
    judgements = read_judgements([folder])
    edited = [judgement for judgement in judgements if judgement.source == "label_changed"]
    short = sorted(edited, key=lambda judgement: len(judgement.before))[:60]
    others = [judgement for judgement in judgements if judgement.source != "label_changed"]
    measured = measure_judgements([*others, *short], open_instruments, language_model=False)
    found = cross_validate(measured, learners(measured, REDUCED, None))
    assert found["valid"]["auc"] >= 0.8
    assert found["most readers call a text altered, originals too"]["auc"] >= 0.72
    assert found["label-changing edits"]["called_invalid"] >= 0.9


# -- a second judge --------------------------------------------------------------------------------------


def test_kappa_is_what_remains_beyond_chance() -> None:
    """20 both yes, 5 and 10 apart, 15 both no: raw 0.7, chance 0.5, kappa 0.4."""
    pairs = [(True, True)] * 20 + [(True, False)] * 5 + [(False, True)] * 10 + [(False, False)] * 15
    found = agreement(pairs)
    assert (found.raw, found.n) == (0.7, 50)
    assert found.kappa == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ('{"label": "Positive", "fluent": true}', ("positive", True)),
        ('I think: {"label": "negative", "fluent": false}.', ("negative", False)),
        ('{"label": "neutral", "fluent": true}', None),
        ('{"label": "positive", "fluent": "yes"}', None),
        ("no idea", None),
    ],
)
def test_an_answer_counts_only_in_the_form_that_was_asked_for(said: str, answer: Any) -> None:
    content = json.dumps({"choices": [{"message": {"content": said}}]}).encode()
    assert parse_answer(content, ("negative", "positive")) == answer


class Chat(BaseHTTPRequestHandler):
    """Calls every text positive, and fluent unless it speaks of a plot."""

    asked: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        content = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.asked.append(content)
        fluent = "plot" not in content["messages"][1]["content"]
        said = json.dumps({"label": "positive", "fluent": fluent})
        body = json.dumps({"choices": [{"message": {"content": said}}]}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def chat() -> Iterator[str]:
    Chat.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Chat)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1/chat/completions"
    server.shutdown()
    thread.join()
    server.server_close()


@measuring
def test_a_second_judge_is_asked_once_and_the_agreement_is_told(run: Path, chat: str) -> None:
    given = ["judge", str(run), "--no-language-model", "--second-judge", chat, "--second-model", "tiny"]
    told = CliRunner().invoke(app, given)
    assert told.exit_code == 0, told.output
    assert "second judge: agrees on" in told.output
    assert len(Chat.asked) == 4
    assert Chat.asked[0]["model"] == "tiny"
    assert CliRunner().invoke(app, given).exit_code == 0
    assert len(Chat.asked) == 4
    with closing(RunFile.read(run)) as file:
        assert file.measured(f"{SECOND}:tiny") == {0: 1.0, 1: 0.0, 2: 1.0, 3: 1.0}
    assert agreement_of(run, "tiny").n == 4
    assert CliRunner().invoke(app, [*given[:-1], "other"]).exit_code == 0  # another judge, asked anew
    assert [asked["model"] for asked in Chat.asked[4:]] == ["other"] * 4


@measuring
def test_a_second_judge_that_does_not_answer_is_named(run: Path) -> None:
    told = CliRunner().invoke(
        app, ["judge", str(run), "--no-language-model", "--second-judge", "http://127.0.0.1:9/"]
    )
    assert isinstance(told.exception, UserError)
    assert "does not answer" in str(told.exception)
