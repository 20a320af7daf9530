"""An attack that finds nothing to try is no robustness: not in a table, a report, a file or a gate."""

from __future__ import annotations

import dataclasses
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from languages import TEXTS
from stored_runs import made, stored
from toys import attack_one, linear, neighbours, toy_recipe
from unfooled.attacks.parts.candidates import CharacterEdits, Neighbours
from unfooled.attacks.parts.goals import OnlyClass
from unfooled.attacks.parts.importance import Deletion
from unfooled.attacks.parts.search import GreedySwap
from unfooled.checks.evaluate import evaluate
from unfooled.cli.app import app
from unfooled.core.recipe import Recipe, load_recipe
from unfooled.core.result import Result
from unfooled.core.session import Settings, fit_recipe
from unfooled.data.dataset import Dataset
from unfooled.data.language import language_of
from unfooled.errors import DataError, UserError
from unfooled.report.html import write_html
from unfooled.report.tables import footnotes, summary_rows
from unfooled.runs.attack import Run, attack
from unfooled.runs.coverage import Coverage
from unfooled.runs.file import RunFile
from unfooled.victims.function import FunctionVictim

CHINESE = [
    ("这部电影非常好看，演员很出色。", "positive"),
    ("服务太慢了，我不喜欢这家店。", "negative"),
    ("房间很干净，早餐也不错。", "positive"),
]


def swaps(table: str) -> Recipe:
    search = GreedySwap(importance=Deletion(), candidates=Neighbours(table=table), constraints=())
    return toy_recipe(search)


def listed(tmp_path: Path, words: dict[str, list[str]]) -> str:
    path = tmp_path / "words.json"
    path.write_text(json.dumps(words), encoding="utf-8")
    return str(path)


def sure(texts: list[str]) -> Any:
    """Right about the Chinese texts as they are, whatever an attack deletes."""
    return [[0.9, 0.1] if "不喜欢" in text or "awful" in text else [0.1, 0.9] for text in texts]


VICTIM = FunctionVictim(sure, labels=("negative", "positive"))


# -- what was tried ----------------------------------------------------------------------------


def test_edits_are_counted_and_probes_are_not() -> None:
    recipe = swaps("t")
    oracles = {
        "victim": linear({"great": 0.3, "film": 0.1}, bias=-0.01),
        "neighbours:t": neighbours({"great": ["grand", "big"], "film": ["movie"]}),
    }
    result = attack_one(recipe, oracles, "great film")
    # Two deletions rank the words; grand and big, then film → movie in the better text, are edits.
    assert (result.outcome, result.tried) == ("success", 3)
    nothing = attack_one(recipe, oracles | {"neighbours:t": neighbours({})}, "great film")
    assert (nothing.outcome, nothing.tried, nothing.queries) == ("failure", 0, 3)
    spent = attack_one(recipe, oracles, "great film", budget=4)
    assert (spent.tried, spent.queries) == (1, 4)


def test_the_run_file_keeps_what_was_tried(tmp_path: Path) -> None:
    rows = [dataclasses.replace(made(0, "failure", "great film"), tried=7), made(1, "failure", "great film")]
    path = stored(tmp_path / "r", rows)
    with closing(RunFile.read(path)) as file:
        assert [(result.tried, result.facts) for result in file.results()] == [(7, ()), (None, ())]


# -- before the run ----------------------------------------------------------------------------


def test_a_script_that_the_words_do_not_know_is_refused(tmp_path: Path) -> None:
    recipe = swaps(listed(tmp_path, {"great": ["grand"], "film": ["movie"]}))
    with pytest.raises(DataError, match="would try nothing: the texts are Chinese") as told:
        attack(VICTIM, CHINESE, recipe, out=tmp_path / "r")
    assert "deepwordbug" in told.value.remedy
    assert "--any-language" in told.value.remedy
    assert not (tmp_path / "r").exists()


def test_told_to_it_attacks_all_the_same_and_says_so_everywhere(tmp_path: Path) -> None:
    recipe = swaps(listed(tmp_path, {"great": ["grand"]}))
    run = attack(VICTIM, CHINESE, recipe, out=tmp_path / "r", settings=Settings(any_language=True))
    summary = run.summary()
    assert summary.accuracy_under_attack.value == 1.0  # what used to stand there alone
    assert (summary.tries.n, summary.tries.few, summary.tries.none) == (3, 3, 3)
    nothing = "the attack could try nothing on 3 of 3 examples"
    shown = CliRunner().invoke(app, ["summary", str(run.path)]).stdout
    assert "withstood fewer than 5 edits" in shown
    assert nothing in " ".join(shown.split())
    assert "only 0% of the words have candidates" in " ".join(shown.split())
    told = json.loads(CliRunner().invoke(app, ["summary", str(run.path), "--json"]).stdout)
    assert told["tries"] == {"n": 3, "fewer_than": 5, "few": 3, "none": 3}
    assert len(told["warnings"]) == 2
    page = write_html([run.path], tmp_path / "r.html").read_text()
    assert "The attack could try next to nothing." in page
    assert "Holds up" not in page
    assert f"The {nothing[4:]}" in page
    with closing(RunFile.read(run.path)) as file:
        kept = file.header["environment"]
    assert kept["coverage"] | {"words": 0} == {
        "language": "Chinese",
        "script": "CJK",
        "source": recipe.search.candidates.table,  # type: ignore[attr-defined]
        "words": 0,
        "share": 0.0,
    }


def test_words_of_that_script_and_spelling_are_allowed(tmp_path: Path) -> None:
    own = swaps(listed(tmp_path, {"房间很干净": ["房间很脏"]}))
    assert attack(VICTIM, CHINESE, own, out=tmp_path / "own").summary().tries.none == 2
    spelled = attack(VICTIM, CHINESE, "deepwordbug", out=tmp_path / "spelled").summary()
    assert (spelled.tries.n, spelled.tries.none, spelled.warnings) == (3, 0, ())


def test_a_low_share_is_a_warning_and_an_english_text_gets_none(tmp_path: Path) -> None:
    words = [f"{first}{second}" for first in "bcdfg" for second in ("all", "ent", "ist", "oom", "urn", "ark")]
    rows = [(" ".join(words), "positive")]
    half, few = ({word: ["thing"] for word in words[::step]} for step in (1, 3))
    assert attack(VICTIM, rows, swaps(listed(tmp_path, half)), out=tmp_path / "a").summary().warnings == ()
    (warning,) = attack(VICTIM, rows, swaps(listed(tmp_path, few)), out=tmp_path / "b").summary().warnings
    assert warning.startswith("only 33% of the words have candidates in ")


def test_english_words_in_french_texts_are_named() -> None:
    french, english = language_of(TEXTS["French"]), language_of(TEXTS["English"])
    (first, second) = Coverage(french, "counter-fitted", "English", 41, 0.41).warnings("textfooler@paper")
    assert first.startswith(
        "the texts look French, and textfooler@paper puts in English words (counter-fitted)"
    )
    assert second.startswith("only 41% of the words have candidates in counter-fitted (41 looked at")
    assert Coverage(english, "counter-fitted", "English", 41, 0.8).warnings("textfooler@paper") == []
    assert Coverage(french).refusal("deepwordbug") is None
    assert Neighbours().language == "English"
    assert Neighbours(table="mine.vec").language == ""
    assert CharacterEdits().spells


# -- the gate ----------------------------------------------------------------------------------


def gate(run: Path, *options: str) -> tuple[int, dict[str, Any]]:
    answer = CliRunner().invoke(app, ["gate", str(run), *options, "--json"])
    return answer.exit_code, json.loads(answer.stdout)


@pytest.mark.parametrize(("tried", "code"), [(0, 4), (9, 0)])
def test_an_attack_without_tries_passes_no_gate(tmp_path: Path, tried: int, code: int) -> None:
    rows = [dataclasses.replace(made(i, "failure", "great film"), tried=tried) for i in range(60)]
    run = stored(tmp_path / "r", [*rows, *(made(60 + i, "failure", "a film") for i in range(5))])
    found, told = gate(run, "--min-aua", "0.6", "--max-success", "0.3", "--min-accuracy", "0.6")
    assert found == code
    reasons = {rule["rule"]: rule["reason"] for rule in told["rules"]}
    nothing = "" if tried else "but the attack could try nothing on 60 of 60 examples"
    assert (
        reasons["accuracy under attack ≥ 60.0%"] == reasons["success rate of the attack ≤ 30.0%"] == nothing
    )
    assert reasons["accuracy before attack ≥ 60.0%"] == ""
    page, xml = tmp_path / "gate.md", tmp_path / "gate.xml"
    shown = CliRunner().invoke(
        app, ["gate", str(run), "--min-aua", "0.6", "--markdown", str(page), "--junit", str(xml)]
    )
    warned = "warning    on 60 of 60 attacked examples fewer than 5 edits could be tried" in shown.stdout
    assert warned == ("⚠️" in page.read_text()) == ("system-err" in xml.read_text()) == (not tried)


def test_what_fails_fails_without_tries_as_well(tmp_path: Path) -> None:
    rows = [dataclasses.replace(made(i, "failure", "great film"), tried=0) for i in range(60)]
    rows += [dataclasses.replace(made(100 + i, "success", "great film"), tried=3) for i in range(50)]
    assert gate(stored(tmp_path / "r", rows), "--max-success", "0.1")[0] == 1


# -- one class ---------------------------------------------------------------------------------

LABELS = ("fine", "offensive")


def posts(n: int) -> Dataset:
    """Every third row is offensive; its word is `idiot`."""
    rows = [("you idiot" if i % 3 == 2 else "good day", LABELS[i % 3 == 2]) for i in range(n)]
    return Dataset.from_pairs([(f"{text} number {i}", label) for i, (text, label) in enumerate(rows)])


def flags(texts: list[str]) -> Any:
    return [[0.2, 0.8] if "idiot" in text else [0.9, 0.1] for text in texts]


def one_class(name: str = "offensive") -> Recipe:
    return dataclasses.replace(load_recipe("deepwordbug"), goal=OnlyClass(name))


def test_limit_counts_rows_of_the_class(tmp_path: Path) -> None:
    victim = FunctionVictim(flags, labels=LABELS)
    run = attack(victim, posts(30), one_class(), out=tmp_path / "r", limit=4, first=True)
    results = list(run.results())
    assert [result.key for result in results if result.label == 1] == [2, 5, 8, 11]
    assert len(results) == 12
    again = attack(victim, posts(30), one_class(), out=tmp_path / "r", limit=6, first=True)  # goes on
    assert len(list(again.results())) == 18
    sampled = attack(victim, posts(30), one_class(), out=tmp_path / "sampled", limit=4)
    assert [result.label for result in sampled.results()].count(1) == 4
    assert len(list(attack(victim, posts(30), one_class(), out=tmp_path / "all", limit=99).results())) == 30
    plain = attack(victim, posts(30), "deepwordbug", out=tmp_path / "plain", limit=4)
    assert len(list(plain.results())) == 4


def test_the_table_leads_with_the_recall_of_the_class(tmp_path: Path) -> None:
    victim = FunctionVictim(flags, labels=LABELS)
    run = attack(victim, posts(30), one_class(), out=tmp_path / "r", limit=5)
    first, second, *rest = summary_rows(run.summary())
    assert (first.name, first.value, first.n) == ("recall of offensive before attack", "100.0%", "5")
    assert (second.name, second.n) == ("recall of offensive under attack", "5")
    assert not any("accuracy" in row.name or "F1" in row.name for row in rest)
    told = run.summary().to_dict()
    assert told["only"] == "offensive"
    assert [recall["class"] for recall in told["recalls"]] == ["fine", "offensive"]
    assert told["recalls"][0]["under_attack"] is None  # its rows were not attacked
    assert (
        "recall of offensive before and under attack"
        in write_html([run.path], tmp_path / "p.html").read_text()
    )
    every = attack(victim, posts(6), "deepwordbug", out=tmp_path / "every").summary()
    assert summary_rows(every)[0].name == "accuracy before attack"
    assert all(recall.attacked for recall in every.recalls)


def test_a_gate_on_recall(tmp_path: Path) -> None:
    rows: list[Result] = [dataclasses.replace(made(i, "failure", "great film"), tried=9) for i in range(60)]
    run = stored(tmp_path / "r", rows)
    label = Run(run).summary().recalls[rows[0].label].name
    assert gate(run, "--min-recall", f"{label}=0.8")[0] == 0
    assert gate(run, "--min-recall", f"{label}=0.99")[0] == 4
    for wrong in ("nosuch=0.8", f"{label}=high", f"{label}=80", label):
        answer = CliRunner().invoke(app, ["gate", str(run), "--min-recall", wrong])
        assert isinstance(answer.exception, UserError), wrong


def test_the_recall_of_a_class_that_was_not_attacked_is_not_decided(tmp_path: Path) -> None:
    victim = FunctionVictim(flags, labels=LABELS)
    run = attack(victim, posts(150), one_class(), out=tmp_path / "r")
    code, told = gate(run.path, "--min-recall", "fine=0.5")
    assert code == 4
    reasons = {rule["rule"]: rule["reason"] for rule in told["rules"]}
    assert reasons["recall of fine under attack ≥ 50.0%"] == (
        "but only rows of the class offensive were attacked"
    )


def test_an_evaluation_counts_rows_of_the_class_and_says_what_was_not_tried(tmp_path: Path) -> None:
    def other(texts: list[str]) -> Any:
        return flags(texts)

    models = {
        "base": FunctionVictim(flags, labels=LABELS, name="base"),
        "mine": FunctionVictim(other, labels=LABELS, name="mine"),
    }
    recipe = swaps(listed(tmp_path, {"nothing": ["something"]}))
    recipe = dataclasses.replace(recipe, goal=OnlyClass("offensive"))
    found = evaluate(models, posts(30), recipe, out=tmp_path / "e", limit=3, checks=())
    assert found.n == 9
    assert [model.tries.none for model in found.models] == [3, 3]
    (verdict,) = found.verdicts.values()
    assert "The attack could try nothing on 3 of 3 examples" in verdict.sentence
    assert found.to_dict()["models"][0]["tries"] == {"n": 3, "fewer_than": 5, "few": 3, "none": 3}


# -- what is printed ---------------------------------------------------------------------------


def test_a_smaller_n_is_explained(tmp_path: Path) -> None:
    rows = [
        dataclasses.replace(made(i, "success", "great film"), similarity=None if i else 0.9) for i in range(4)
    ]
    run = stored(tmp_path / "r", rows)
    (line,) = footnotes(Run(run).summary())
    assert line.startswith("similarity of the last edit: of 4 successes 1 were measured; texts shorter than")
    assert line in write_html([run], tmp_path / "p.html").read_text()
    assert "of 4 successes 1 were measured" in " ".join(
        CliRunner().invoke(app, ["summary", str(run)]).stdout.split()
    )
    same = stored(tmp_path / "same", [dataclasses.replace(row, similarity=0.9) for row in rows])
    assert footnotes(Run(same).summary()) == []


def test_a_notice_is_printed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def noticing(recipe: Recipe, victim: Any) -> tuple[Recipe, list[str]]:
        return fit_recipe(recipe, victim)[0], ["a threshold was chosen for another encoder"]

    monkeypatch.setattr("unfooled.runs.attack.fit_recipe", noticing)
    (tmp_path / "d.csv").write_text("text,label\na great film,positive\nan awful film,negative\n")
    out = str(tmp_path / "r")
    command = ["attack", "-m", "fake", "-d", str(tmp_path / "d.csv"), "-a", "deepwordbug", "-o", out]
    answer = CliRunner().invoke(app, command)
    assert answer.output.count("a threshold was chosen") == 1
    assert CliRunner().invoke(app, ["summary", out]).output.count("a threshold was chosen") == 1
