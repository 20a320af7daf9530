"""A filter as it is deployed: what gets through a toy one whose every answer is known, and what mends it."""

from __future__ import annotations

import json
import socket
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from command_line import unfooled as typed
from unfooled.attacks.parts.disguise import DISGUISES
from unfooled.checks.cures import ALL, NONE, WITH_WORDS, CureTexts, best_cure, tried_cures
from unfooled.checks.false_alarms import CachedFilter, recall_at_price
from unfooled.checks.guard import fitting_ladder, guard, read_guard, with_cure
from unfooled.checks.mending import mend
from unfooled.checks.payload import Payload, payload_of, skeleton
from unfooled.checks.suites import Suite, SuiteAttack, load_suite
from unfooled.checks.techniques import technique_of
from unfooled.checks.worst_case import read_stress
from unfooled.core.session import Settings
from unfooled.data.dataset import Dataset
from unfooled.data.filtered import relabelled
from unfooled.errors import RunFileError, UserError
from unfooled.report.guard import cure_rows, headline, number_rows, remarks, rung_rows, write_page
from unfooled.report.sarif import sarif
from unfooled.victims.filtering import Filter
from unfooled.victims.function import FunctionVictim
from unfooled.victims.http.permission import require_allowed
from unfooled.victims.thresholds import Thresholded

TEXT = "you are vile, and that is all there is to say"


def score(text: str) -> float:
    """`vile` and `scum` are bad; `rude` is so a little; an exclamation mark is held against anybody."""
    low = text.lower()
    return min(0.95, 0.1 + 0.6 * ("vile" in low) + 0.6 * ("scum" in low) + 0.45 * ("rude" in low))


def answer(texts: Sequence[str]) -> list[list[float]]:
    return [[1 - score(text), score(text)] for text in texts]


LABELS = ("fine", "abuse")
ROWS = [
    ("you are vile", "abuse"),
    ("what a vile scum", "abuse"),
    ("you scum", "abuse"),
    ("I dislike you", "abuse"),  # missed
    ("a nice day", "fine"),
    ("the vile weather", "fine"),  # flagged
    ("how are you", "fine"),
    ("see you soon", "fine"),
]
QUICK = Suite(
    name="toy",
    version="1",
    summary="",
    attacks=(
        SuiteAttack("smuggle-zero-width@space"),
        SuiteAttack("leetspeak@plain"),
        SuiteAttack("typos@random"),
    ),
)


def toy(threshold: float | None = None) -> Filter:
    model: Any = FunctionVictim(answer, labels=LABELS)
    return Filter(Thresholded(model, {"abuse": threshold}) if threshold else model, ["abuse"])


def rows(victim: Filter, given: Sequence[tuple[str, str]] = ROWS) -> Dataset:
    return relabelled(Dataset.from_pairs(given, labels=LABELS), victim)


# -- payloads --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted(DISGUISES))
def test_every_disguise_can_be_undone_and_only_hidden_text_is_not_seen(kind: str) -> None:
    after = " ".join(DISGUISES[kind](word) for word in TEXT.split(" "))
    found = payload_of(TEXT, after, "smuggle-width@full-width")
    assert found.recoverable
    assert found.readable == (kind not in ("tags", "selectors"))
    assert found.chance("program") == 1.0
    assert found.chance("person") == (1.0 if found.readable else 0.0)


def test_other_words_are_for_a_judge_and_typos_for_a_reader() -> None:
    typo, synonym = TEXT.replace("vile", "vlie"), TEXT.replace("vile", "awful")
    assert payload_of(TEXT, typo, "typos@random").chance("person") == 1.0
    assert payload_of(TEXT, synonym, "textfooler@textattack").chance("person") is None
    assert payload_of(TEXT, synonym, "textfooler@textattack", 0.2).chance("program") == 0.2
    assert payload_of("vile", "xxxx", "typos@random").chance("person") is None  # nothing is left of it
    assert skeleton("V1l€") != skeleton("nice")
    assert Payload(recoverable=True, readable=False, seen=False, meant=0.9).chance("person") == 0.0


# -- honest texts ----------------------------------------------------------------------------------------


def test_the_threshold_at_a_price_is_chosen_on_other_texts() -> None:
    honest = [n / 1000 for n in range(1000)]
    found = recall_at_price([0.5, 0.995, 1.0, None], honest)
    assert found is not None
    assert (found.chosen_on, found.allowed) == (500, 5)
    assert found.honest.n == 500
    assert 0.0 < found.honest.value < 0.03
    assert found.recall.n == 3
    assert 0.97 < found.threshold < 1.0
    few = recall_at_price([0.5, 0.9], [0.1, 0.2, 0.3, 0.4])
    assert few is not None
    assert (few.allowed, few.chosen_on) == (0, 2)  # at most 0 of 2
    assert recall_at_price([0.5], [0.1]) is None
    assert recall_at_price([None], [0.1, 0.2]) is None


def test_a_text_is_asked_about_once_and_a_failure_is_no_verdict() -> None:
    heard: list[str] = []

    def listen(texts: Sequence[str]) -> list[list[float]]:
        if "boom" in texts:
            raise ValueError("too loud")
        heard.extend(texts)
        return answer(texts)

    asked = CachedFilter(Filter(FunctionVictim(listen, labels=LABELS), ["abuse"]))
    heard.clear()
    assert asked.blocks(["vile", "nice", "vile", "boom"]) == [True, False, True, None]
    assert asked.blocks(["VILE"], change=lambda text: str(text).lower()) == [True]
    assert sorted(heard) == ["nice", "vile"]


# -- cures -----------------------------------------------------------------------------------------------


def test_each_step_is_tried_alone_and_together() -> None:
    texts = CureTexts(
        passed=["v\u200bile", "v1le", "v\u200b1le"],
        bad=["vile", "scum"],
        honest=["a nice day", "the vile weather", "how are you", "see you"],
        look_alikes=["vile weather"],
    )
    cures = {cure.name: cure for cure in tried_cures(CachedFilter(toy()), texts)}
    assert cures[NONE].closes.value == 0.0
    assert cures["invisible"].closes.value == pytest.approx(1 / 3)
    assert cures["leet"].closes.value == pytest.approx(1 / 3)
    assert cures[ALL].closes.value == 1.0
    assert "bidi" not in cures  # it changes none of these
    assert cures[ALL].recall.value == 1.0
    assert cures[ALL].honest.value == 0.25
    assert cures[ALL].look_alikes is not None


def test_a_step_that_costs_too_much_is_left_out() -> None:
    honest = ["flight v1le to Rome", "nice", "good", "fine"]  # a number that leetspeak would make abuse of
    texts = CureTexts(passed=["v\u200bile", "v1le"], bad=["vile"], honest=honest)
    dear = best_cure(CachedFilter(toy()), texts, price=0.01)
    assert dear is not None
    assert "leet" not in dear.steps.split(",")
    assert dear.closes.value == 0.5
    assert dear.honest.value == 0.0
    cheap = best_cure(CachedFilter(toy()), texts, price=0.5)
    assert cheap is not None
    assert cheap.name in (ALL, WITH_WORDS)
    assert best_cure(CachedFilter(toy()), CureTexts(passed=["nothing helps"], bad=[], honest=honest)) is None


# -- the ladder ------------------------------------------------------------------------------------------


def test_a_toy_filter_from_first_to_last(tmp_path: Path) -> None:
    victim = toy()
    result = guard(
        victim, rows(victim), out=tmp_path, suite=QUICK, look_alikes=["a rude gesture", "a nice day"]
    )
    assert (result.recall.value, result.recall.n) == (0.75, 4)
    assert (result.honest.value, result.honest.n) == (0.25, 4)
    assert result.look_alikes is not None
    assert result.look_alikes.value == 0.5
    assert result.caught == 3
    assert result.passed.value == 1.0
    assert set(result.fell_at.values()) == {"smuggle-zero-width@space"}  # the cheapest trick will do
    assert [rung.tried for rung in result.rungs] == [3, 0, 0]
    assert result.rungs[0].queries == 6
    assert result.best is not None
    assert result.best.closes.value == 1.0
    again = read_guard(tmp_path)
    assert again.to_dict() == result.to_dict()
    assert read_stress(tmp_path / "ladder").worst.value == 0.0  # what `unfooled gate` reads
    mended = mend(victim, rows(victim), result, out=tmp_path, suite=QUICK)
    assert mended is not None
    tried = {rung.attack: (rung.tried, rung.works) for rung in mended.result.rungs}
    assert tried["smuggle-zero-width@space"] == (3, 0)
    assert tried["leetspeak@plain"] == (3, 0)
    assert mended.result.recall.value == 0.75
    assert mended.result.queries > result.queries  # it costs more now


def test_the_deployed_threshold_decides(tmp_path: Path) -> None:
    given = [("how rude", "abuse"), ("you vile scum", "abuse"), ("a nice day", "fine"), ("so rude", "fine")]
    strict, lax = toy(0.5), toy(0.8)
    first = guard(strict, rows(strict, given), out=tmp_path / "a", suite=QUICK)
    second = guard(lax, rows(lax, given), out=tmp_path / "b", suite=QUICK)
    assert (first.recall.value, first.honest.value, first.caught) == (1.0, 0.5, 2)
    assert (second.recall.value, second.honest.value, second.caught) == (0.5, 0.0, 1)
    assert first.at_price is not None
    assert second.at_price is not None
    assert first.at_price.threshold == second.at_price.threshold  # of the scores, whatever is deployed


def test_what_passes_and_no_longer_works_does_not_count(tmp_path: Path) -> None:
    """Hidden text passes the filter, and no person reads it; a program does."""
    hidden = Suite(name="toy", version="2", summary="", attacks=(SuiteAttack("smuggle-tags@decoded"),))
    victim = toy()
    person = guard(victim, rows(victim), out=tmp_path / "p", suite=hidden, reader="person")
    program = guard(victim, rows(victim), out=tmp_path / "q", suite=hidden, reader="program")
    assert person.evaded.value == program.evaded.value == 1.0
    assert person.passed.value == 0.0
    assert program.passed.value == 1.0
    assert person.rungs[0].recoverable == 3
    assert person.rungs[0].readable == 0


def test_a_text_that_no_longer_works_goes_on_to_the_next_attack(tmp_path: Path) -> None:
    both = Suite(
        name="toy",
        version="3",
        summary="",
        attacks=(SuiteAttack("smuggle-tags@decoded"), SuiteAttack("smuggle-zero-width@space")),
    )
    victim = toy()
    result = guard(victim, rows(victim), out=tmp_path, suite=both)
    assert set(result.fell_at.values()) == {"smuggle-zero-width@space"}
    assert result.passed.value == 1.0


def test_what_nobody_judged_is_told_apart(tmp_path: Path) -> None:
    """`vile` is spelt with a digit, which can be undone; of what is misspelt all over, nobody can tell."""

    def answers(texts: Sequence[str]) -> list[list[float]]:
        return [[0.1, 0.9] if "vile" in text or "drunk" in text else [0.9, 0.1] for text in texts]

    victim = Filter(FunctionVictim(answers, labels=LABELS), ["abuse"])
    both = Suite(
        name="toy",
        version="5",
        summary="",
        attacks=(SuiteAttack("leetspeak@plain"), SuiteAttack("typos@blind")),
    )
    given = [("you vile", "abuse"), ("you drunk", "abuse"), ("a nice day", "fine")]
    result = guard(victim, rows(victim, given), out=tmp_path, suite=both)
    blind = result.rungs[1]
    assert (result.passed.value, blind.tried, blind.unjudged) == (
        1.0,
        1,
        1,
    )  # no digit looks like a letter of drunk
    assert result.sure is not None
    assert (result.sure.value, result.sure.n) == (0.5, 2)
    assert any("without them at least 50.0" in line for line in remarks(result))
    assert read_guard(tmp_path).sure == result.sure


def test_an_error_is_neither_caught_nor_through(tmp_path: Path) -> None:
    def fails(texts: Sequence[str]) -> list[list[float]]:
        if any("\u200b" in text for text in texts):
            raise ValueError("cannot read this")
        return answer(texts)

    victim = Filter(FunctionVictim(fails, labels=LABELS), ["abuse"])
    only = Suite(name="toy", version="4", summary="", attacks=(SuiteAttack("smuggle-zero-width@space"),))
    result = guard(victim, rows(victim), out=tmp_path, suite=only)
    assert result.undecided == 3
    assert result.rungs[0].errors == 3
    assert result.passed.n == 0
    assert any("undecided" in line for line in remarks(result))


def test_going_on_asks_nothing_twice_and_gives_the_same(tmp_path: Path) -> None:
    victim = toy()
    first = guard(victim, rows(victim), out=tmp_path, suite=QUICK)
    second = guard(victim, rows(victim), out=tmp_path, suite=QUICK)
    plain = [{**found.to_dict(), "rungs": None, "cures": None, "best": None} for found in (first, second)]
    assert plain[0] == plain[1]
    for broken in ("{", "[" * 100_000, '{"format": 1}', '{"format": 9}', "[]"):
        (tmp_path / "guard.json").write_text(broken, encoding="utf-8")
        with pytest.raises(RunFileError, match="cannot be read"):
            read_guard(tmp_path)


def test_ladders_fit_the_filter_and_the_reader() -> None:
    hard = Filter(FunctionVictim(lambda texts: ["abuse"] * len(texts), labels=LABELS), ["abuse"])
    names = {
        fitting_ladder(victim, reader).full_name
        for victim in (toy(), hard)
        for reader in ("person", "program")
    }
    assert names == {"ladder@2", "ladder@decisions-2", "ladder@program-2", "ladder@program-decisions-2"}
    old = {"ladder@1", "ladder@decisions", "ladder@program", "ladder@program-decisions"}
    assert not any(load_suite(name).wave for name in old)
    assert all(load_suite(name).wave for name in names)
    for name in names | old:
        for attack in load_suite(name).attacks:
            attack.recipe()
            assert technique_of(attack.attack).atlas[0] == "AML.T0015"
    for name in ("ladder@1", "ladder@2"):
        assert "smuggle-tags@decoded" not in [attack.attack for attack in load_suite(name).attacks]
    for name in (name for name in names | old if "decisions" in name):  # the dearest last
        assert load_suite(name).attacks[-1].attack == "decision-learner@quick"


def test_a_filter_that_only_decides_is_climbed_too(tmp_path: Path) -> None:
    decides = FunctionVictim(lambda texts: [LABELS[score(text) > 0.5] for text in texts], labels=LABELS)
    victim = Filter(decides, ["abuse"])
    result = guard(
        victim,
        rows(victim),
        out=tmp_path,
        without=["decision-learner@quick", "smuggle-homoglyph@confusables"],
    )
    assert result.suite.startswith("ladder@decisions-2")
    assert result.passed.value == 1.0
    assert result.at_price is None


MANY = [(f"you are {bad} today, number {n}", "abuse") for n in range(30) for bad in ("vile", "scum")]
IN_WAVES = Suite(
    name="toy",
    version="5",
    summary="",
    attacks=(
        SuiteAttack("smuggle-accents@acute"),
        SuiteAttack("smuggle-zero-width@space"),
        SuiteAttack("typos@blind"),
    ),
    wave=8,
)


def half_deaf(texts: Sequence[str]) -> list[list[float]]:
    """Reads through accents; through invisible characters only where it knows the word `scum`."""
    plain = [unicodedata.normalize("NFD", text).replace("\u0301", "") for text in texts]
    return answer([text.replace("s\u200bc\u200bu\u200bm", "scum") for text in plain])


def test_an_attack_is_left_after_a_wave_of_which_nothing_falls(tmp_path: Path) -> None:
    heard: list[str] = []

    def listen(texts: Sequence[str]) -> list[list[float]]:
        heard.extend(texts)
        return half_deaf(texts)

    victim = Filter(FunctionVictim(listen, labels=LABELS), ["abuse"])
    data = rows(victim, [*MANY, *ROWS[4:]])
    heard.clear()
    result = guard(victim, data, out=tmp_path / "a", suite=IN_WAVES, cures=False)
    first, second, third = result.rungs
    assert (first.tried, first.left, first.works) == (8, 52, 0)
    assert first.queries == 16  # a row's unedited text, and its disguise
    assert second.tried == 60
    assert 0 < second.works < 60
    assert second.queries == 60 + 52  # the unedited text of eight rows is known
    assert third.tried == 60 - second.works
    began = next(place for place, text in enumerate(heard) if "\u00e9" in unicodedata.normalize("NFC", text))
    asked = [text for text in heard[began:] if text in dict(MANY)]
    assert sorted(asked) == sorted(dict(MANY))  # for the recall alone: no attack asks about them
    told = "left where none of a wave fell: smuggle-accents@acute (after 8 of 60)"
    assert any(told in note for note in result.notes)
    assert rung_rows(result)[0][2] == "8 of 60"
    again = guard(victim, data, out=tmp_path / "a", suite=IN_WAVES, cures=False)
    elsewhere = guard(
        Filter(FunctionVictim(half_deaf, labels=LABELS), ["abuse"]),
        data,
        out=tmp_path / "b",
        suite=IN_WAVES,
        cures=False,
        settings=Settings(window=1, cache_size=0),
    )
    for other in (again, elsewhere):
        assert other.fell_at == result.fell_at
        assert [(rung.tried, rung.left, rung.queries) for rung in other.rungs] == [
            (rung.tried, rung.left, rung.queries) for rung in result.rungs
        ]
    every = guard(victim, data, out=tmp_path / "c", suite=IN_WAVES, cures=False, every=True)
    assert [(rung.tried, rung.left) for rung in every.rungs] == [(60, 0)] * 3
    assert every.passed.value == result.passed.value


def test_a_wave_of_errors_ends_no_attack(tmp_path: Path) -> None:
    failed: list[str] = []

    def falters(texts: Sequence[str]) -> list[list[float]]:
        """It reads no invisible characters, and fails on the first eight rows that have any."""
        for text in texts:
            if "\u200b" in text and len(set(failed) - {text[-2:]}) < 8:
                failed.append(text[-2:])
                raise ValueError("cannot read this")
        return answer(texts)

    victim = Filter(FunctionVictim(falters, labels=LABELS), ["abuse"])
    data = rows(victim, [(f"you are vile today, number {n}", "abuse") for n in range(10, 50)] + ROWS[4:])
    only = Suite(
        name="toy", version="6", summary="", attacks=(SuiteAttack("smuggle-zero-width@space"),), wave=8
    )
    result = guard(victim, data, out=tmp_path, suite=only, cures=False)
    (rung,) = result.rungs
    assert rung.errors > 0
    assert rung.left == 0
    assert rung.works == 40 - rung.errors


def test_a_ladder_in_waves_is_of_a_fixed_number_of_rows(tmp_path: Path) -> None:
    victim = toy()
    guard(victim, rows(victim, MANY), out=tmp_path, suite=IN_WAVES, cures=False, limit=20)
    with pytest.raises(RunFileError, match="limit"):
        guard(victim, rows(victim, MANY), out=tmp_path, suite=IN_WAVES, cures=False, limit=30)


def test_a_cured_filter_decides_at_the_same_threshold() -> None:
    texts = CureTexts(passed=["v\u200bile"], bad=["vile"], honest=["nice"])
    for threshold in (None, 0.8):
        victim = toy(threshold)
        cure = best_cure(CachedFilter(toy()), texts)
        assert cure is not None
        cured = with_cure(victim, cure)
        blocked = cured.predict(["v\u200bile", "v\u200bile scum", "nice"])[:, 1] > 0.5
        assert blocked.tolist() == ([True, True, False] if threshold is None else [False, True, False])


# -- what people read and type ---------------------------------------------------------------------------


def test_tables_page_and_sarif(tmp_path: Path) -> None:
    victim = toy()
    vile = [("you are vile<script>", "abuse"), *ROWS]
    result = guard(victim, rows(victim, vile), out=tmp_path, suite=QUICK)
    assert "gets through and still works" in headline(result)
    assert "honest texts" in headline(result)  # never without it
    assert rung_rows(result)[-1][0] == "in all"
    assert rung_rows(result)[1][2] == "not tried"  # no zero: it was not withstood
    assert [row[-1] for row in number_rows(result)] == ["4 of 4", "not tried", "not tried"]
    assert any("← best" in row[0] for row in cure_rows(result))
    mended = mend(victim, rows(victim, vile), result, out=tmp_path, suite=QUICK)
    page = write_page(result, tmp_path / "guard.html", mended=mended).read_text(encoding="utf-8")
    assert "vile" not in page
    shown = write_page(result, tmp_path / "shown.html", examples=5).read_text(encoding="utf-8")
    assert "\\u200b" in shown
    assert "\u200b" not in shown
    assert "<script>" not in shown.replace("<script nonce", "")
    for number in ("AML.T0068", "NISTAML.022", "2024/1689", "no statement of compliance"):
        assert number in page
    found = sarif(result, model="filter.skops", most=0.1)
    assert found["version"] == "2.1.0"
    (run,) = found["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["UNF-GUARD-zero-width", "UNF-GUARD-leet", "UNF-GUARD-typo"]
    assert [rule["properties"]["security-severity"] for rule in rules] == ["10.0", "0.0", "0.0"]
    first, second, _ = run["results"]
    assert (first["ruleIndex"], first["level"], first["kind"]) == (0, "error", "fail")
    assert (second["level"], second["kind"]) == ("none", "notApplicable")
    assert first["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "filter.skops"
    known = {(tax["name"], entry["id"]) for tax in run["taxonomies"] for entry in tax["taxa"]}
    for one in run["results"]:
        assert {(taxon["toolComponent"]["name"], taxon["id"]) for taxon in one["taxa"]} <= known
        assert set(one["partialFingerprints"]) == {"filterAndTechnique/v1"}
    assert sarif(read_guard(tmp_path), model="filter.skops", most=0.1)["runs"][0]["results"] == run["results"]


def test_hosts_of_others_are_tested_with_leave_alone() -> None:
    for mine in (
        "fake",
        "model.skops",
        "http://127.0.0.1:8/x",
        "openai:m@http://localhost:1/v1",
        "http://10.0.0.3/x",
    ):
        require_allowed(mine, allowed=False)
    for theirs in (
        "https://example.org/x",
        "openai:m@https://api.openai.com/v1",
        "normalise:http://8.8.8.8/x",
    ):
        with pytest.raises(UserError, match="neither this machine"):
            require_allowed(theirs, allowed=False)
        require_allowed(theirs, allowed=True)


def test_the_command_writes_all_its_files_and_a_filter_that_loads(tmp_path: Path) -> None:
    data = tmp_path / "reviews.csv"
    texts = ["a superb film", "a wonderful film", "a dull film", "an awful film", "so bad"]
    lines = [f"{text},{'positive' if n < 2 else 'negative'}" for n, text in enumerate(texts)]
    data.write_text("\n".join(["text,label", *lines]), encoding="utf-8")
    (tmp_path / "alike.txt").write_text("a superb mess\n\nfine\n", encoding="utf-8")
    command = ["guard", "--model", "fake", "--data", str(data), "--flag", "positive", "--threshold", "0.55"]
    command += [
        "--without",
        "textfooler@textattack",
        "--without",
        "bae-r@textattack",
        "--look-alikes",
        "alike.txt",
    ]
    command += ["--out", "run", "--fix", "safe", "--sarif", "x.sarif", "--eval-results", "worst.yaml"]
    command += ["--eval-dataset", "me/reviews"]
    done = typed(*command, "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert found["passed"]["value"] == 1.0
    assert found["victim"] == "fake (positive ≥ 0.55): positive"
    assert found["look_alikes"]["n"] == 2
    assert found["mended"]["cure"]["closes"]["value"] == 1.0
    assert json.loads((tmp_path / "x.sarif").read_text())["version"] == "2.1.0"
    assert (tmp_path / "run" / "guard.html").is_file()
    assert "dataset:" in (tmp_path / "worst.yaml").read_text()
    assert json.loads((tmp_path / "safe" / "defense.json").read_text())["method"] == "normalise"
    again = typed(*command, cwd=tmp_path)  # goes on: everything is there
    assert "gets through" in again.stdout
    gate = ["gate", "run/ladder", "--min-recall", "blocked=0.9", "--junit", "gate.xml"]
    assert "undecided" in typed(*gate, code=4, cwd=tmp_path).stdout  # two rows decide nothing
    assert "<testsuite" in (tmp_path / "gate.xml").read_text()
    wrong = typed(*command[:5], "--flag", "spam", code=2, cwd=tmp_path)
    assert "no class 'spam'" in wrong.stderr


def test_a_function_is_mended_and_named_again_with_its_classes(tmp_path: Path) -> None:
    (tmp_path / "words.py").write_text(
        "def classify(texts):\n    return [[0.1, 0.9] if 'vile' in text else [0.9, 0.1] for text in texts]\n"
    )
    lines = ["text,label", *(f"{text},{label}" for text, label in ROWS)]
    (tmp_path / "rows.csv").write_text("\n".join(lines), encoding="utf-8")
    command = ["guard", "--model", "words.py:classify", "--labels", "fine,abuse", "--data", "rows.csv"]
    command += ["--flag", "abuse", "--out", "run", "--fix", "safe"]
    left = [word for attack in ("textfooler", "bae-r") for word in ("--without", f"{attack}@textattack")]
    done = typed(*command, *left, cwd=tmp_path)
    named = done.stdout.partition("name its model each time: ")[2].partition(")")[0].split()
    assert named == ["--victim-option", "model=words.py:classify", "--labels", "fine,abuse"]
    attack = ["attack", "--model", "safe", "--data", "rows.csv", "--goal", "evade:abuse", "--out", "again"]
    typed(*attack, "--attack", "leetspeak@plain", *named, cwd=tmp_path)
    unnamed = typed(*attack, "--attack", "leetspeak@plain", *named[:2], code=2, cwd=tmp_path)
    assert "--labels" in unnamed.stderr


def test_a_model_behind_that_does_not_answer_is_refused_before_any_attack(tmp_path: Path) -> None:
    (tmp_path / "reviews.csv").write_text("text,label\na superb film,positive\nso bad,negative\n")
    command = ["guard", "--model", "fake", "--data", "reviews.csv", "--flag", "positive", "--out", "run"]
    misspelt = typed(*command, "--behind", "openai:m", code=2, cwd=tmp_path)
    assert "names no language model" in misspelt.stderr
    with socket.socket() as held:  # a port that is taken, with nobody who listens
        held.bind(("127.0.0.1", 0))
        nobody = f"openai:m@http://127.0.0.1:{held.getsockname()[1]}/v1"
        silent = typed(*command, "--behind", nobody, code=2, cwd=tmp_path)
    assert "is the server running?" in silent.stderr
    assert not (tmp_path / "run").exists()


def test_a_place_that_is_taken_is_refused_before_any_attack(tmp_path: Path) -> None:
    (tmp_path / "reviews.csv").write_text("text,label\na superb film,positive\nso bad,negative\n")
    for taken in ("safe", "other-retrained", "run/retrained"):
        (tmp_path / taken).mkdir(parents=True)
        (tmp_path / taken / "mine").write_text("")
    command = ["guard", "--model", "fake", "--data", "reviews.csv", "--flag", "positive", "--out", "run"]
    learns = ["--train-data", "reviews.csv"]
    for more, told in (
        (["--fix", "safe"], "safe is not empty (mine)\n  → name another folder with --fix"),
        (["--fix", "reviews.csv"], "reviews.csv is a file\n  → name another folder with --fix"),
        (["--fix", "reviews.csv/safe"], "reviews.csv is a file\n  → name another folder with --fix"),
        (["--fix", "run"], "--fix would replace run\n  → name another folder with --fix"),
        (learns, "is not empty (mine)\n  → move it away, or name another --out"),
        ([*learns, "--out", "new", "--fix", "other"], "other-retrained is not empty (mine)"),
    ):
        assert told in typed(*command, *more, code=2, cwd=tmp_path).stderr
    assert not (tmp_path / "new").exists()
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["retrained"]
    assert (tmp_path / "run" / "retrained" / "mine").is_file()
