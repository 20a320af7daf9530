"""Studies without their page: protocols, sampling, the file, the figures."""

from __future__ import annotations

import csv
import json
import math
import re
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from study_runs import result, two_runs, write_run
from unfooled.cli.app import app
from unfooled.errors import DataError, RunFileError, UnknownNameError, UserError
from unfooled.people.report import judged_words
from unfooled.people.study.content import ORIGINAL, Item
from unfooled.people.study.figures import majority, read_figures, spread
from unfooled.people.study.file import StudyFile, spaced_code, tidy_code
from unfooled.people.study.protocols import Protocol, Question, load_protocol, names
from unfooled.people.study.readability import readability
from unfooled.people.study.sampling import APART, draw
from unfooled.report.html import write_html
from unfooled.runs import sealed
from unfooled.runs.file import MEASURES


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    return two_runs(tmp_path)


# -- protocols -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", names())
def test_protocols_are_data(name: str) -> None:
    protocol = load_protocol(name)
    assert Protocol.from_json(name, json.loads(json.dumps(protocol.to_json()))) == protocol
    assert protocol.paper


def test_the_three_protocols_ask_what_the_papers_ask() -> None:
    asked = {name: [(q.id, q.kind) for q in load_protocol(name).questions] for name in names()}
    assert asked == {
        "bae": [("label", "label"), ("naturalness", "scale")],
        "self-attention": [("label", "label"), ("readability", "preference")],
        "breaking-bert": [("fluency", "scale"), ("meaning", "scale")],
    }
    assert load_protocol("bae").primer == 50


def test_a_protocol_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        '[mine]\ntitle = "Funny?"\n[[mine.parts]]\nview = "text"\n'
        'questions = [{ id = "funny", kind = "scale", text = "How funny?" }]\n'
    )
    assert load_protocol(str(path)).questions[0].id == "funny"
    path.write_text('[mine]\ntitle = "x"\nparts = [{ view = "text", questions = [] }]\n')
    with pytest.raises(DataError, match="cannot be used"):
        load_protocol(str(path))
    with pytest.raises(UnknownNameError, match="no protocol"):
        load_protocol("bea")
    with pytest.raises(DataError, match="cannot be read"):
        load_protocol(str(tmp_path / "none.toml"))


# -- sampling --------------------------------------------------------------------------------------


def test_bae_mixes_both_runs_originals_and_checks(runs: list[Path]) -> None:
    content = draw(runs, load_protocol("bae"), n=20, annotators=3, checks=4, primer=5)
    kinds = Counter((item.kind, item.sources) for item in content.items)
    assert kinds == {
        ("adversarial", (0,)): 10,
        ("adversarial", (1,)): 10,
        ("original", (ORIGINAL,)): 10,
        ("check", (ORIGINAL,)): 4,
    }
    by_source = [
        {i.example for i in content.items if i.sources == (s,) and i.kind != "check"} for s in (0, 1)
    ]
    assert by_source[0] == by_source[1]  # the same examples, so that the attacks can be compared
    shown = {text for item in content.items if item.kind == "original" for _, text in item.texts[0]}
    assert not {text for fields in content.primer for _, text in fields} & shown
    assert len(content.primer) == 5


def test_every_annotator_sees_everything_once_in_an_order_of_ones_own(runs: list[Path]) -> None:
    content = draw(runs, load_protocol("bae"), n=24, annotators=3)
    orders = [[place.item for place in order] for order in content.orders]
    assert all(sorted(order) == list(range(len(content.items))) for order in orders)
    assert len({tuple(order) for order in orders}) == 3
    for order in orders:
        examples = [content.items[number].example for number in order]
        near = sum(examples[i] in examples[max(0, i - APART) : i] for i in range(len(examples)))
        assert near <= 2  # at the very end there may be nothing left to swap with


def test_the_seed_decides_the_texts_and_not_the_codes(runs: list[Path], tmp_path: Path) -> None:
    protocol = load_protocol("bae")
    first, same, other = (draw(runs, protocol, n=10, annotators=2, seed=seed) for seed in (1, 1, 2))
    assert first == same
    assert first.items != other.items
    with StudyFile.create(tmp_path / "a.db", first) as a, StudyFile.create(tmp_path / "b.db", same) as b:
        assert a.items == b.items == first.items
        assert not set(a.codes.values()) & set(b.codes.values())
        assert a.secret != b.secret


def test_self_attention_compares_pairs_after_the_labels(runs: list[Path]) -> None:
    content = draw(runs, load_protocol("self-attention"), n=12, annotators=2)
    pairs = [item for item in content.items if item.kind == "pair"]
    assert len(pairs) == 6
    assert all(item.sources == (0, 1) and len(item.texts) == 2 for item in pairs)
    for order in content.orders:
        views = [content.items[place.item].view for place in order]
        assert views == sorted(views, key=["text", "pair"].index)
        sides = [place.flipped for place in order if content.items[place.item].kind == "pair"]
        assert 1 <= sum(sides) <= 5
    alone = draw(runs[:1], load_protocol("self-attention"), n=5, annotators=1)
    assert {item.sources for item in alone.items if item.kind == "pair"} == {(ORIGINAL, 0)}


def test_breaking_bert_shows_both_versions(runs: list[Path]) -> None:
    content = draw(runs, load_protocol("breaking-bert"), n=10, annotators=1)
    for item in content.items:
        before, after = item.texts
        assert (before == after) == (item.kind == "original")


def test_checks_say_what_to_answer(runs: list[Path]) -> None:
    content = draw(runs, load_protocol("bae"), n=10, annotators=1, checks=3)
    for item in content.items:
        if item.kind == "check":
            text = item.texts[0][-1][1]
            assert content.labels[item.expected["label"]] in text
            assert f"– {item.expected['naturalness']}" in text


def test_what_cannot_be_a_study_is_said(runs: list[Path], tmp_path: Path) -> None:
    bae = load_protocol("bae")
    with pytest.raises(DataError, match="too few"):
        draw(runs, bae, n=1, annotators=3)
    with pytest.raises(RunFileError, match="named twice"):
        draw([runs[0], runs[0]], bae, n=4, annotators=1)
    safe = write_run(tmp_path / "safe", [result(0, "nothing fell", outcome="failure")])
    with pytest.raises(RunFileError, match="no success"):
        draw([safe], bae, n=4, annotators=1)
    few = draw(runs, bae, n=100, annotators=1)
    assert any("30 successes, 50 were wanted" in notice for notice in few.notices)


# -- the file --------------------------------------------------------------------------------------


def made(runs: list[Path], path: Path, name: str = "bae", **given: Any) -> StudyFile:
    options = {"n": 10, "annotators": 3, "checks": 2, "primer": 3} | given
    return StudyFile.create(path, draw(runs, load_protocol(name), **options))


def test_answers_are_kept_once_whatever_is_sent(runs: list[Path], tmp_path: Path) -> None:
    with made(runs, tmp_path / "s.db") as study:
        for _ in range(3):
            study.save(1, 0, {"label": 1, "naturalness": 4})
        study.save(1, 0, {"naturalness": 2})
        assert study.answers_to(1, 0) == {"label": 1, "naturalness": 2}
        assert study.answers_to(2, 0) == {}
        assert study.progress(1).done == 1
        assert study.progress(1).open == 1
        with pytest.raises(ValueError, match="naturalness=6"):
            study.save(1, 0, {"naturalness": 6})
        with pytest.raises(ValueError, match="fluency"):
            study.save(1, 0, {"fluency": 1})
        assert [answer.changes for answer in study.answers()] == [0, 1]
    with StudyFile.open(tmp_path / "s.db") as again:
        assert again.answers_to(1, 0) == {"label": 1, "naturalness": 2}


def test_the_disk_is_asked_to_keep_every_answer(runs: list[Path], tmp_path: Path) -> None:
    with made(runs, tmp_path / "s.db") as study:
        assert study._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert study._db.execute("PRAGMA synchronous").fetchone() == (2,)  # full


def test_codes_are_long_and_read_in_any_spelling(runs: list[Path], tmp_path: Path) -> None:
    with made(runs, tmp_path / "s.db") as study:
        for number, code in study.codes.items():
            assert len(set(code)) > 4
            assert len(code) == 16
            assert study.annotator(f"  {spaced_code(code).upper()} ") == number
        assert study.annotator("") is None
        assert study.annotator(study.codes[1][:-1]) is None
    assert tidy_code("AB-c d!0") == "abcd"


def test_a_study_is_never_replaced(runs: list[Path], tmp_path: Path) -> None:
    made(runs, tmp_path / "s.db").close()
    with pytest.raises(RunFileError, match="there is a file already"):
        made(runs, tmp_path / "s.db")
    assert sorted(path.name for path in tmp_path.glob("*s.db*")) == ["s.db"]


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match="there is no study"):
        StudyFile.open(tmp_path / "none.db")
    (tmp_path / "text.db").write_text("not a database at all, but long enough to look at")
    with pytest.raises(RunFileError, match="not a study file"):
        StudyFile.open(tmp_path / "text.db")
    sqlite3.connect(tmp_path / "empty.db").close()
    (tmp_path / "empty.db").touch()
    with pytest.raises(RunFileError, match="not a study file"):
        StudyFile.open(tmp_path / "empty.db")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("UPDATE answers SET value = 1 - value WHERE annotator = 1", "row 1 0 [a-z]+ of answers is damaged"),
        ("UPDATE items SET texts = replace(texts, 'a', 'e') WHERE number = 3", "row 3 of items is damaged"),
        ("UPDATE places SET item = item + 1 WHERE place = 0", "row 1 0 of places is damaged"),
        ("UPDATE annotators SET code = upper(code)", "row 1 of annotators is damaged"),
        ("UPDATE study SET value = '[]' WHERE key = 'labels'", "row labels of study is damaged"),
        ("DELETE FROM answers WHERE annotator = 1", "rows of answers were removed"),
        ("DROP TABLE places", "the table places is missing"),
        ("CREATE TRIGGER planted AFTER INSERT ON answers BEGIN DELETE FROM answers; END", "'planted'"),
    ],
)
def test_a_damaged_study_is_refused(runs: list[Path], tmp_path: Path, damage: str, said: str) -> None:
    with made(runs, tmp_path / "s.db") as study:
        item = study.items[0]
        for annotator, order in study.orders.items():
            at = next(at for at, place in enumerate(order) if place.item == 0)
            study.save(annotator, at, {q.id: 1 for q in study.protocol.part(item.view).questions})
    database = sqlite3.connect(tmp_path / "s.db", isolation_level=None)
    database.execute(damage)
    database.close()
    for reading in (False, True):
        with pytest.raises(RunFileError, match=said):
            StudyFile.open(tmp_path / "s.db", reading=reading)


def test_torn_studies(runs: list[Path], tmp_path: Path) -> None:
    made(runs, tmp_path / "s.db").close()
    whole = (tmp_path / "s.db").read_bytes()
    for length in (512, *range(4096, len(whole), 4096)):
        (tmp_path / "torn.db").write_bytes(whole[:length])
        with pytest.raises(RunFileError, match="damaged"):
            StudyFile.open(tmp_path / "torn.db")


# -- figures ---------------------------------------------------------------------------------------


def answer_all(study: StudyFile, answer: Any) -> None:
    """`answer(annotator, item, question)` for everything."""
    for annotator, order in study.orders.items():
        for at, place in enumerate(order):
            item = study.items[place.item]
            study.save(
                annotator,
                at,
                {q.id: answer(annotator, item, q.id) for q in study.protocol.part(item.view).questions},
            )


def test_figures_of_bae_by_hand(runs: list[Path], tmp_path: Path) -> None:
    def answer(annotator: int, item: Item, question: str) -> int:
        if item.kind == "check":
            right = item.expected[question]
            return right if annotator != 3 else (right + 1 if right + 1 in (0, 1) else right - 1)
        if question == "label":  # the third annotator is wrong about the second attack
            return 1 - item.label if annotator == 3 and item.sources == (1,) else item.label
        return {0: 4, 1: 2, ORIGINAL: 5}[item.sources[0]] - (annotator == 1)

    pytest.importorskip("nltk")
    with made(runs, tmp_path / "s.db", checks=2) as study:
        answer_all(study, answer)
        figures = read_figures(study)
        strict = read_figures(study, only_attentive=True)
    first, second, originals = figures.sources
    assert first.accuracy.value == originals.accuracy.value == 1.0
    assert second.accuracy.value == pytest.approx(2 / 3)
    assert second.majority == 1.0
    assert [source.scales["naturalness"].value for source in figures.sources] == pytest.approx(
        [11 / 3, 5 / 3, 14 / 3]
    )
    assert first.scales["naturalness"].n == 5
    assert first.scales["naturalness"].low <= 11 / 3 <= first.scales["naturalness"].high
    assert [annotator.checks_passed for annotator in figures.annotators] == [2, 2, 0]
    assert [annotator.attentive for annotator in figures.annotators] == [True, True, False]
    assert figures.complete == 3
    assert strict.left_out == (3,)
    assert strict.sources[1].accuracy.value == 1.0
    label = next(agreement for agreement in figures.agreement if agreement.question == "label")
    assert label.items == label.complete == 15
    assert label.alpha < 1
    # Only the second attack's labels are disputed, two against one; naturalness differs by one step.
    assert {dispute.question for dispute in figures.disputes} == {"label"}
    assert all(dispute.spread == pytest.approx(2 / 3) for dispute in figures.disputes)
    assert all(dispute.source == "second" for dispute in figures.disputes)
    assert json.loads(json.dumps(figures.to_dict(), allow_nan=False))["complete"] == 3


def test_relative_readability_is_the_papers_example() -> None:
    """100 readers for A and 40 for B give 1 and 0.4."""
    question = Question("readability", "preference", "?")
    item = Item(0, "pair", "pair", ((("t", "a"),), (("t", "b"),)), (0, 1), 0, 0)
    votes = {"readability": {0: {n: int(n >= 100) for n in range(140)} | {999: 2}}}
    found = readability([item], [question], votes)
    assert found[0].value == 1.0
    assert found[1].value == pytest.approx(0.4)
    assert (found[0].wins, found[1].wins, found[0].pairs) == (100, 40, 1)
    assert readability([item], [question], {"readability": {}}) == {}


def test_preferences_count_for_the_text_and_not_for_the_side(runs: list[Path], tmp_path: Path) -> None:
    with made(runs, tmp_path / "s.db", "self-attention", n=12) as study:
        answer_all(study, lambda a, item, q: item.expected.get(q, 1 if q == "readability" else 0))
        pytest.importorskip("nltk")
        figures = read_figures(study)
    assert figures.sources[1].readability is not None
    assert figures.sources[1].readability.value == 1.0
    assert figures.sources[0].readability is not None
    assert figures.sources[0].readability.value == 0.0


def test_measures_stand_beside_people_and_correlate(runs: list[Path], tmp_path: Path) -> None:
    pytest.importorskip("nltk")
    with made(runs, tmp_path / "s.db", n=20) as study:
        values = {item.number: i % 5 + 1 for i, item in enumerate(study.items) if item.kind == "adversarial"}
        answer_all(study, lambda a, item, q: values.get(item.number, 3) if q == "naturalness" else 0)
        for number, source in enumerate(study.sources):
            with sqlite3.connect(source.path) as database:
                rows = [
                    ("perplexity:trigram", item.example, -float(values[item.number]))
                    for item in study.items
                    if item.sources == (number,) and item.kind == "adversarial"
                ]
                sealed.put(database, MEASURES, rows)
            database.close()
        figures = read_figures(study)
        page = write_html(runs, tmp_path / "p.html", study=tmp_path / "s.db").read_text()
    found = {(correlation.question, correlation.measure): correlation for correlation in figures.correlations}
    perplexity = found["naturalness", "perplexity:trigram"]
    assert perplexity.value == pytest.approx(-1.0)
    assert perplexity.n == 20
    assert math.isnan(found["label", "perplexity:trigram"].value) or figures.sources[0].accuracy.n
    assert figures.sources[0].measures["perplexity:trigram"] < 0
    assert "What people say" in page
    assert "perplexity:trigram" in page
    assert "-1.00" in page
    section = page.partition('id="people"')[2].partition("</section>")[0]
    assert "<img" not in section
    assert "<script" not in section
    assert "What people say" not in write_html(runs, tmp_path / "q.html").read_text()


def test_a_study_about_other_runs_is_refused(runs: list[Path], tmp_path: Path) -> None:
    made(runs, tmp_path / "s.db").close()
    other = write_run(tmp_path / "other", [result(0, "a great film")], attack="other@1")
    with pytest.raises(RunFileError, match="not about"):
        write_html([other], tmp_path / "p.html", study=tmp_path / "s.db")


def test_an_unanswered_study_has_no_figures_and_no_error(runs: list[Path], tmp_path: Path) -> None:
    with made(runs, tmp_path / "s.db") as study:
        figures = read_figures(study)
    assert figures.complete == 0
    assert all(math.isnan(agreement.alpha) for agreement in figures.agreement)
    assert not figures.disputes
    assert not figures.correlations
    assert judged_words(figures.agreement[0].alpha) == "not defined"


def test_small_figures() -> None:
    assert majority([1, 1, 2]) == 1
    assert majority([1, 2]) is None
    scale, label = Question("s", "scale", "?"), Question("l", "label", "?")
    assert spread(scale, [1, 5, 3]) == 1.0
    assert spread(label, [0, 0, 1]) == pytest.approx(2 / 3)
    assert [judged_words(value) for value in (0.9, 0.7, 0.1)] == ["reliable", "tentative", "weak"]


# -- the command line ------------------------------------------------------------------------------


def unfooled(*arguments: str | Path) -> str:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_create_and_report_from_the_command_line(runs: list[Path], tmp_path: Path) -> None:
    pytest.importorskip("nltk")
    out = tmp_path / "s.db"
    told = json.loads(unfooled("study", "create", *runs, "--n", "10", "-o", out, "--primer", "0", "--json"))
    assert told["kinds"] == {"adversarial": 10, "original": 5, "check": 2}
    assert len(told["codes"]) == 3
    with pytest.raises(RunFileError, match="already"):
        unfooled("study", "create", *runs, "-o", out)
    with StudyFile.open(out) as study:
        answer_all(study, lambda a, item, q: item.expected.get(q, (item.number + a) % 2 + (q != "label")))
    shown = unfooled("study", "report", out)
    assert "Krippendorff's alpha" in shown
    assert "items on which people differ most" in shown
    assert json.loads(unfooled("study", "report", out, "--json"))["complete"] == 3
    table = tmp_path / "answers.csv"
    assert "102 answers written" in unfooled("study", "report", out, "--answers", table)
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 102  # 3 people, 17 items, 2 questions
    assert {row["source"] for row in rows} == {"first", "second", "originals"}
    assert all(row["meaning"] in ("negative", "positive") for row in rows if row["question"] == "label")
    page = tmp_path / "report.html"
    unfooled("report", *runs, "--study", out, "-o", page)
    assert "What people say" in page.read_text()
    with pytest.raises(UserError, match="other machines"):
        unfooled("study", "serve", out, "--host", "0.0.0.0")
    with pytest.raises(UserError, match="needs a token"):
        unfooled("study", "serve", out, "--host", "0.0.0.0", "--allow-remote")


def test_codes_are_printed_once_for_each_person(runs: list[Path], tmp_path: Path) -> None:
    told = unfooled("study", "create", *runs, "--n", "4", "--annotators", "5", "-o", tmp_path / "s.db")
    assert "there is a file" not in told
    assert len(re.findall(r"^  \d  \w{4}-\w{4}-\w{4}-\w{4}$", told, re.M)) == 5
    assert "unfooled study serve" in told
