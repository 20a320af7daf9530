"""Attacks on translation models: goals and searches by arithmetic, and whole runs on tiny models."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tiny_translation import WORDS, parallel, victim, write_files
from unfooled.attacks.parts.characters import KEYS, typos_of
from unfooled.attacks.parts.sources import UserTable
from unfooled.cli.app import app
from unfooled.core.attempt import live
from unfooled.core.engine import Engine
from unfooled.core.questions import Asked, Written
from unfooled.core.recipe import Recipe, load_recipe, with_setting
from unfooled.core.result import Example, Result
from unfooled.core.session import Settings
from unfooled.errors import CapabilityError, DataError, UserError
from unfooled.metrics.bleu import compare, corpus_score, sentence_score
from unfooled.report.diffs import output_pieces
from unfooled.report.folder import write_report
from unfooled.report.html import write_html
from unfooled.resources.table import read_table
from unfooled.runs.attack import Run, attack
from unfooled.runs.file import RunFile
from unfooled.text import Text
from unfooled.translation.attacks.keyword_search import KeywordSearch
from unfooled.translation.attacks.output_goals import BleuDrop, Keyword, NonOverlapping, words_of
from unfooled.translation.attacks.typo import KeyboardTypos, OneTypo
from unfooled.translation.attempt import TextGoal
from unfooled.translation.parallel import ParallelText
from unfooled.victims.loading import load_victim

sacrebleu = pytest.importorskip("sacrebleu")


class Answering:
    """An oracle from a function of one item."""

    batch_size = 64

    def __init__(self, answer: Callable[[Any], Any]) -> None:
        self._answer = answer

    def __call__(self, items: Sequence[Any]) -> list[Any]:
        return [self._answer(item) for item in items]


def word_by_word(text: str) -> str:
    return " ".join(WORDS.get(word, "etwas") for word in Text(text).words)


def near(text: str, keyword: str) -> float:
    """Nearer with every word of the source that has a letter of the keyword's translation in it."""
    source = next((english for english, german in WORDS.items() if german == keyword), "")
    return round(-10.0 + sum(word[0] == source[:1] for word in Text(text).words), 4)


def oracles(vocabulary: Sequence[str] = tuple(WORDS)) -> dict[str, Any]:
    return {
        "vocabulary:all:victim": Answering(lambda _: tuple(vocabulary)),
        "vocabulary:1000:victim": Answering(lambda _: tuple(vocabulary)),
        "pulls": Answering(lambda item: tuple(vocabulary)[: item.most]),
        "target-words:50-250": Answering(lambda _: tuple(WORDS.values())),
        "nearness": Answering(lambda item: near(item.text, item.keyword)),
        "sentence-distance:mean": Answering(lambda item: float(abs(len(item[0]) - len(item[1])))),
        "victim": Answering(lambda item: Written(word_by_word(item.text), near(item.text, item.keyword))),
    }


def run_one(recipe: Recipe, text: str, reference: str = "", answers: Any = None, **more: Any) -> Result:
    assert isinstance(recipe.goal, TextGoal)
    shared = {"key": 0, "seed": 0, "budget": more.get("budget")}
    example = Example(0, Text(text).fields, 0, "text", reference=reference)
    program = live(recipe.goal.attempt_on(example, **shared), recipe.search, max_words=more.get("max_words"))
    (finished,) = Engine[Result](answers or oracles()).run([(0, program)])
    assert finished.value is not None, finished.error
    return finished.value


def with_goal(name: str, **settings: str) -> Recipe:
    recipe = load_recipe(name)
    for path, value in settings.items():
        recipe = with_setting(recipe, path.replace("__", "."), value)
    return recipe


def test_the_keyword_appears_by_the_word_that_moves_the_sentence_least() -> None:
    recipe = with_goal("targeted-keyword", goal__keyword="fisch")
    result = run_one(recipe, "the dog sees the cat", "der hund sieht der katze")
    assert result.outcome == "success"
    assert "fisch" in result.perturbed_output.split()
    assert [edit.after for edit in result.edits] == ["fish"]
    assert (result.output, result.perturbed_output.count("fisch")) == ("der hund sieht der katze", 1)
    assert dict(result.fields)["reference"] == "der hund sieht der katze"
    assert dict(result.fields)["keyword"] == "fisch"
    assert dict(result.facts)["distance"] == abs(len(result.original) - len(result.perturbed))


def test_a_word_that_means_the_keyword_is_no_strict_attack() -> None:
    recipe = with_goal("targeted-keyword@strict", goal__keyword="fisch")
    result = run_one(recipe, "the dog sees the cat")
    assert result.outcome == "failure"
    assert "fish" not in result.perturbed

    def slip(item: Asked) -> Written:
        """A victim that takes "red big" for a fish."""
        said = "ein fisch" if "red big" in item.text else word_by_word(item.text)
        return Written(said, near(item.text, item.keyword))

    result = run_one(recipe, "cat big dog", answers=oracles() | {"victim": Answering(slip)})
    assert (result.outcome, result.perturbed) == ("success", "red big dog")


def test_a_keyword_that_is_there_already_is_passed_over() -> None:
    result = run_one(with_goal("targeted-keyword", goal__keyword="Hund"), "the dog sees the cat")
    assert (result.outcome, result.edits) == ("skipped", ())
    assert "already" in result.note


def test_a_drawn_keyword_is_never_in_the_output() -> None:
    for text in ("the dog sees the cat", "the red fish eats now", "small bird"):
        result = run_one(load_recipe("targeted-keyword"), text)
        assert dict(result.fields)["keyword"] not in words_of(result.output)


def test_no_more_words_change_than_allowed() -> None:
    # No word of this vocabulary brings the keyword, but each edit seems to bring it nearer.
    answers = oracles(("from", "fast", "few"))
    recipe = with_goal("targeted-keyword", goal__keyword="fisch")
    result = run_one(recipe, "the dog sees the cat", answers=answers)
    assert (result.outcome, len(result.edits)) == ("failure", 3)
    assert "fisch" not in result.perturbed_output
    paper = with_goal("targeted-keyword@paper", goal__keyword="fisch", search__edits="1")
    assert len(run_one(paper, "the dog sees the cat", answers=answers).edits) == 1


def test_settings_that_make_no_sense_are_refused() -> None:
    for wrong in ({"goal__first": "300"}, {"search__edits": "0"}, {"goal__keyword": "two words"}):
        with pytest.raises(UserError):
            with_goal("targeted-keyword", **wrong)
    with pytest.raises(ValueError):
        BleuDrop(least=1.0)
    with pytest.raises(ValueError):
        NonOverlapping(kept=-0.1)
    with pytest.raises(ValueError):
        OneTypo(pick="best")  # type: ignore[arg-type]


class Told:
    """What goals read of an attempt."""

    def __init__(self, before: str, reference: str = "", keyword: str = "") -> None:
        self.before, self.reference, self.keyword = before, reference, keyword


def judged(goal: Any, told: Told, *outputs: str) -> tuple[list[float], list[bool]]:
    found: tuple[list[float], list[bool]] = goal.judge([Written(output, -1.5) for output in outputs], told)
    return found


def test_goals_by_hand() -> None:
    told = Told("Der Hund sieht der Katze.", keyword="Fisch")
    assert judged(Keyword(), told, "Ein fisch!", "Ein Fischer.") == ([-1.5, -1.5], [True, False])
    scores, won = judged(NonOverlapping(), told, "Der Vogel.", "Ein Vogel.", "der der der")
    assert scores == [0.8, 1.0, 0.6]
    assert won == [False, True, False]
    assert judged(NonOverlapping(kept=0.2), told, "Der Vogel.")[1] == [True]


def test_a_bleu_drop_is_measured_against_the_reference() -> None:
    reference = "Ein Hund sieht eine rote Katze im Haus."
    told = Told(reference, reference)
    worse = "Ein Hund sieht eine rote Katze."
    (drop, none), won = judged(BleuDrop(least=0.2), told, worse, reference)
    assert drop == pytest.approx(100.0 - sentence_score(worse, reference), abs=1e-5)
    assert none == pytest.approx(0.0, abs=1e-6)
    assert won == [True, False]
    assert judged(BleuDrop(least=0.9), told, worse)[1] == [False]
    # Without a reference, the output before the attack is the measure.
    assert judged(BleuDrop(least=0.2), Told(reference), worse)[1] == [True]


def test_typos_are_keys_beside_and_letters_swapped() -> None:
    assert KEYS["q"] == "aw"
    assert KEYS["s"] == "adewxz"
    assert typos_of("at", ("transposition",)) == ["ta"]
    assert typos_of("At", ("transposition",)) == ["Ta"]
    assert typos_of("aa", ("transposition",)) == []
    assert typos_of("q", ("keyboard",)) == ["a", "w"]
    assert "dof" in typos_of("dog")
    assert "dog" not in typos_of("dog")
    assert typos_of("12") == []
    assert len(typos_of("ab" * 2000)) < 1000  # of a text without blanks not all: they would fill the memory


def test_one_word_becomes_a_typo_whatever_comes_of_it() -> None:
    text = "the dog sees the cat"
    result = run_one(load_recipe("typo"), text, word_by_word(text))
    (edit,) = result.edits
    assert edit.after in typos_of(edit.before)
    # An unknown word is translated by "etwas": BLEU falls.
    assert result.outcome == "success"
    assert "etwas" in result.perturbed_output
    assert result.queries == 2
    unharmed = run_one(load_recipe("typo"), "xyz dog", "ganz anderes")
    assert (unharmed.outcome, len(unharmed.edits)) == ("failure", 1)
    short = run_one(load_recipe("typo"), "a an it", "x")
    assert (short.outcome, short.edits, short.note) == ("failure", (), "no word is long enough for a typo")


def test_natural_typos_come_from_a_list_and_made_ones_where_it_has_none(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text('dog  dgo doog\ncat "cta\n', encoding="utf-8")
    assert read_table(path) == {"dog": ["dgo", "doog"], "cat": ['"cta']}
    table = UserTable(str(path))
    answers = oracles() | {f"table:{path}": Answering(lambda word: read_table(path).get(word, ()))}
    search = OneTypo(candidates=table)
    recipe = load_recipe("typo")
    listed = Recipe(**{**vars(recipe), "search": search})
    result = run_one(
        listed,
        "the Dog sees now",
        "x",
        answers | {f"table:{path}": Answering(lambda word: read_table(path).get(word.lower(), ()))},
    )
    assert result.edits[0].after in ("Dgo", "Doog")
    result = run_one(listed, "the bird sees now", "x", answers)
    assert "one was made" in result.note
    assert len(result.edits) == 1


def test_the_most_important_word_gets_the_worst_typo() -> None:
    text = "the dog sees the cat"
    # All words but "sees" are dropped by this victim: only that one matters.
    answers = oracles() | {
        "victim": Answering(
            lambda item: Written(
                "sieht sie gut an" if "sees" in item.text else ("gut" if "esse" in item.text else "sieht gut")
            )
        )
    }
    result = run_one(load_recipe("typo@important"), text, "sieht sie gut an", answers)
    assert result.edits[0].before == "sees"
    assert result.edits[0].after in typos_of("sees")
    assert result.outcome == "success"


def test_untargeted_goals_change_a_few_words() -> None:
    text = "the dog sees the cat"
    result = run_one(load_recipe("bleu-drop"), text, word_by_word(text))
    assert result.outcome == "success"
    assert 1 <= len(result.edits) <= 3
    other = run_one(load_recipe("non-overlapping"), "the dog", word_by_word("the dog"))
    assert (other.outcome, other.perturbed_output) == ("success", "etwas etwas")


def test_a_budget_ends_the_search_and_keeps_what_was_found() -> None:
    result = run_one(load_recipe("bleu-drop"), "the dog sees the cat", "der hund", budget=3)
    assert result.queries <= 3
    assert "budget" in result.note


def test_scores_before_and_after_are_compared_pair_by_pair() -> None:
    references = [f"Ein Hund sieht Katze {i} im Haus am See." for i in range(30)]
    after = [
        reference.replace("Katze", "Kuh") if i % 2 else reference for i, reference in enumerate(references)
    ]
    found = compare(references, after, references)
    assert found.before[0] == pytest.approx(100.0)
    assert found.after[0] == pytest.approx(corpus_score(after, references))
    assert found.change[0] == pytest.approx(found.after[0] - 100.0)
    assert found.change[1] < found.change[0] < found.change[2] < 0
    assert found.p < 0.01
    assert found.signature.startswith("nrefs:1|case:mixed")
    same = compare(references, references, references, "chrf", samples=50)
    assert same.change == (0.0, 0.0, 0.0)
    assert same.p == 1.0


def test_a_few_sentences_prove_nothing() -> None:
    references = [f"Ein Hund sieht Katze {i} im Haus am See." for i in range(30)]
    single = compare(references[:1], ["Kuh"], references[:1])
    assert single.p == 1.0
    assert single.before[1:] == single.after[1:] == (0.0, 100.0)
    assert single.change[1:] == (-100.0, 100.0)
    # Of thirty pairs only those that differ count.
    four = compare(references, ["Kuh"] * 4 + references[4:], references)
    assert four.p >= 1 / 8


def test_a_sentence_without_bleu_is_broken_already() -> None:
    result = run_one(load_recipe("bleu-drop"), "the dog sees the cat", "ganz anderes")
    assert (result.outcome, result.edits) == ("skipped", ())
    assert "BLEU of 0" in result.note
    # An output that is empty and has no reference cannot get worse either.
    silent = oracles() | {"victim": Answering(lambda item: Written(""))}
    assert run_one(load_recipe("bleu-drop"), "the dog", answers=silent).outcome == "skipped"


def attacked(tmp_path: Path, name: str, kind: str = "seq2seq-lstm", **settings: Any) -> Run:
    recipe = load_recipe(name)
    if name == "targeted-keyword":
        recipe = with_goal(name, goal__first="0", goal__last="12", search__size="6", search__tried="3")
    return attack(victim(kind), parallel(3, 3), recipe, out=tmp_path / name, settings=Settings(**settings))


@pytest.mark.parametrize(
    ("kind", "name"), [("seq2seq-lstm", "targeted-keyword"), ("seq2seq-transformer", "typo")]
)
def test_a_run_holds_outputs_and_does_not_depend_on_the_window(kind: str, name: str, tmp_path: Path) -> None:
    narrow = attacked(tmp_path / "a", name, kind, window=1)
    many = attacked(tmp_path / "b", name, kind, window=64)
    results = list(narrow.results())
    assert results == list(many.results())
    assert any(result.output for result in results)
    assert [dict(result.fields)["reference"] for result in results] == [
        example.reference for example in parallel(3, 3)
    ]
    summary = narrow.summary()
    assert summary.writes
    assert [output.metric for output in summary.outputs] == ["bleu", "chrf"]
    assert summary.outputs[0].n == 3
    assert summary.accuracy_before.n == 0


def test_reports_show_source_and_output_and_attention(tmp_path: Path) -> None:
    run = attacked(tmp_path, "typo")
    page = write_html([run.path], tmp_path / "page.html").read_text(encoding="utf-8")
    assert "BLEU under attack" in page
    assert "Attention, example" in page
    assert "nrefs:1" in page
    assert "True class" not in page
    folder = write_report(run.path, tmp_path / "report")
    assert "BLEU under attack" in (folder / "summary.md").read_text(encoding="utf-8")
    with open(folder / "results.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    with RunFile.read(run.path) as stored:
        results = list(stored.results())
    assert [row["output_after"] for row in rows] == [result.perturbed_output for result in results]
    assert [row["reference"] for row in rows] == [dict(result.fields)["reference"] for result in results]


def test_an_output_diff_reads_like_the_texts() -> None:
    result = run_one(load_recipe("typo"), "the dog sees the cat", "x")
    found = list(output_pieces(result))
    kept = "".join(piece.text for piece in found if piece.kind != "gone")
    assert kept.split() == result.perturbed_output.split()
    assert {piece.kind for piece in found} >= {"gone", "new"}


def test_what_does_not_fit_together_is_said(tmp_path: Path) -> None:
    looked, data = victim("seq2seq-lstm"), parallel(3)
    with pytest.raises(CapabilityError, match="classes"):
        attack(looked, data, "deepwordbug", out=tmp_path / "a")
    with pytest.raises(CapabilityError, match="classes"):
        attack(looked, data, "random", out=tmp_path / "a")
    with pytest.raises(CapabilityError, match="translations"):
        attack(load_victim("fake"), [("a good film", "positive")], "typo", out=tmp_path / "a")
    with pytest.raises(DataError, match="makes no word appear"):
        attack(looked, data, "typo", out=tmp_path / "a", target="hund")
    with pytest.raises(DataError, match="one word"):
        attack(looked, data, "targeted-keyword", out=tmp_path / "a", target="zwei worte")
    assert not (tmp_path / "a").exists()


def test_sentences_without_references_can_be_attacked(tmp_path: Path) -> None:
    data = ParallelText.from_pairs(["the dog sees the cat.", "the bird eats."])
    summary = attack(victim("seq2seq-lstm"), data, "typo", out=tmp_path / "run").summary()
    assert summary.outputs == ()
    assert summary.attacked == 2


def test_the_victim_answers_what_programs_ask() -> None:
    (answer,) = victim("seq2seq-lstm").write([Asked("the dog.", "hund")])
    assert answer.nearness < 0


def typed(*arguments: str) -> str:
    """What a command prints."""
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_train_and_attack_from_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data, valid = write_files(tmp_path, "train", 48), write_files(tmp_path, "val", 4, 9)
    small = [f"--set={name}={value}" for name, value in {"vocabulary": 90, "embedding": 16}.items()]
    small += ["--epochs", "1", "--hidden", "16", "--layers", "1"]
    shown = typed("train", "--model", "seq2seq-lstm", "--data", data, "--valid", valid, "--out", "m", *small)
    assert "validation BLEU" in shown
    wanted = ["attack", "--model", "m", "--data", valid, "--attack"]
    found = json.loads(typed(*wanted, "typo", "--out", "run", "--json"))
    assert [output["metric"] for output in found["outputs"]] == ["bleu", "chrf"]
    shown = typed("summary", "run")
    assert "chrF under attack" in shown
    assert "sacrebleu bleu: nrefs:1" in shown
    with pytest.raises(CapabilityError, match="typo@paper"):
        typed(*wanted, "textfooler")
    with pytest.raises(UserError, match="for classifiers"):
        typed(*wanted, "typo", "--clean", "tweets")
    with pytest.raises(UserError, match="is no classifier"):
        typed("train", "--model", "seq2seq-lstm", "--data", data, "--out", "n", "--sweep", "2")


def test_candidates_of_made_typos_can_be_chosen_by_kind() -> None:
    search = KeywordSearch(size=10)
    assert search.asks[0] == "vocabulary:10:victim"
    assert KeyboardTypos(kinds=("keyboard",)).kinds == ("keyboard",)
