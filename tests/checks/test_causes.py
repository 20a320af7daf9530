"""Illusions by abstention, state and memory: planted ones are exposed with their cause, honest ones not."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import planted
from command_line import unfooled
from places import SUPPORT
from reviews import write_csv
from unfooled.checks.evaluate import Evaluation, ModelReport, evaluate
from unfooled.checks.illusions.fresh_process import ask_in_fresh_process, packed
from unfooled.checks.illusions.memory import Loss, near_duplicates_remembered, remembered
from unfooled.checks.illusions.rewrites import lightly, padded
from unfooled.checks.illusions.survivors import STATE
from unfooled.cli.app import app
from unfooled.cli.command import Exit
from unfooled.core.victim import Victim
from unfooled.data.dataset import Dataset
from unfooled.errors import VictimError
from unfooled.runs.notes import read_remark
from unfooled.victims.fake import FakeVictim
from unfooled.victims.function import FunctionVictim
from unfooled.victims.impostors import Noisy, Overconfident, Rounded

N = 60


def judged(
    folder: Path,
    models: dict[str, Victim],
    *,
    n: int = N,
    fresh: int = 0,
    checks: tuple[str, ...] | None = None,
) -> Evaluation:
    """Against a base that an attack breaks nearly always."""
    return evaluate(
        {"base": planted.Guessing(), **models},
        planted.data(n),
        planted.recipe(folder),
        out=folder / "out",
        fresh=planted.data(fresh, seed=99) if fresh else None,
        checks=checks,
    )


def report(found: Evaluation, name: str) -> ModelReport:
    return next(model for model in found.models if model.name == name)


def finding(found: Evaluation, name: str, words: str) -> str:
    return next(finding for finding in found.verdicts[name].findings if words in finding)


# -- abstention ------------------------------------------------------------------------------------------


def test_a_model_that_abstains_on_unknown_words_is_exposed(tmp_path: Path) -> None:
    models: dict[str, Victim] = {"tie": planted.Abstaining(), "lean": planted.Abstaining(0.01)}
    found = judged(tmp_path, models, checks=("transfer", "abstention"))
    lean = found.verdicts["lean"]
    assert lean.status == "illusion"
    assert lean.causes == ("abstention",)
    assert "near-ties not counted as decisions" in lean.sentence
    for name in models:
        assert found.verdicts[name].status != "holds"
        assert finding(found, name, "it abstains").endswith("0 of the same texts unedited")


def test_what_the_base_does_as_well_is_no_reason_to_look_better(tmp_path: Path) -> None:
    # The fake knows no word of an edited text and leans to one class; so does the model that knows some.
    models: dict[str, Victim] = {"base": FakeVictim(), "some": planted.Strict(0.0)}
    found = evaluate(
        models,
        planted.data(40),
        planted.recipe(tmp_path),
        out=tmp_path / "out",
        checks=("transfer", "abstention"),
    )
    (check,) = [check for check in found.models[1].checks if check.name == "abstention"]
    assert "as with another model" in check.note
    assert check.looked > 0
    assert not check.cause


# -- state -----------------------------------------------------------------------------------------------


def test_a_model_that_answers_near_duplicates_from_memory_is_exposed_and_passes_no_gate(
    tmp_path: Path,
) -> None:
    models: dict[str, Victim] = {"remembering": planted.Remembering(), "later": planted.Remembering(1500)}
    found = judged(tmp_path, models, checks=("guided", "state"))
    for name in models:
        verdict = found.verdicts[name]
        assert verdict.status == "illusion", verdict.sentence
        assert "answers that depend on earlier questions" in verdict.causes
        assert "in a fresh process" in finding(found, name, "it remembers")
    run = tmp_path / "out" / "remembering" / "attack"
    assert read_remark(run, STATE).startswith("it remembers")
    refused = CliRunner().invoke(app, ["gate", str(run), "--min-aua", "0.1", "--undecided-passes"])
    assert refused.exit_code == Exit.GATE_FAILED
    assert "but it remembers" in refused.stdout
    assert "It remembers" in unfooled("summary", str(run)).stdout


def test_a_model_without_memory_says_the_same_in_a_fresh_process(tmp_path: Path) -> None:
    found = judged(tmp_path, {"knowing": planted.Knowing()}, n=20, checks=("state",))
    (state,) = [check for check in report(found, "knowing").checks if check.name == "state"]
    assert state.note == "no answer depends on earlier questions; 100 queries, 60 of them in a fresh process"
    assert not state.cause
    assert read_remark(tmp_path / "out" / "knowing" / "attack", STATE) is None


def test_a_fresh_process_hears_texts_in_their_order_and_remembers_nothing() -> None:
    victim = planted.Remembering()
    copy = packed(victim)
    assert copy is not None
    text, edited = "superb film", "superbish film"
    original = victim.predict([text])
    assert victim.predict([edited]).tolist() == original.tolist()  # from memory
    before, first, after = ask_in_fresh_process(copy, [[edited], [text], [edited]])
    assert before[edited] != pytest.approx(original[0].tolist())
    assert before == after
    assert first[text] == before[edited]  # now the edited text came first


def test_texts_that_choke_the_model_have_no_answer_in_a_fresh_process() -> None:
    copy = packed(FakeVictim(poison="poison"))
    assert copy is not None
    (said,) = ask_in_fresh_process(copy, [["superb film", "poison"]])
    assert list(said) == ["superb film"]


def test_what_cannot_start_elsewhere_is_told(tmp_path: Path) -> None:
    assert packed(FunctionVictim(lambda texts: texts)) is None
    with pytest.raises(VictimError, match=r"does not start in a process of its own: .*UnpicklingError"):
        ask_in_fresh_process(b"nonsense", [["a"]])
    function = FunctionVictim(lambda texts: FakeVictim().predict(texts), labels=planted.LABELS, name="f")
    found = judged(tmp_path, {"f": function}, n=10, checks=("state",))
    assert any("state (it cannot be sent to another process)" in note for note in found.verdicts["f"].notes)


# -- memory ----------------------------------------------------------------------------------------------


def test_rewritten_texts_are_others_and_say_the_same() -> None:
    assert lightly("It's a superb film.") == "it is a superb film"
    assert lightly("a superb film") == "A superb film ."
    assert "a superb film" in padded("a superb film")
    long = "superb film " * 40
    assert 2 * len(long.split()) <= len(padded(long).split()) < 3 * len(long.split())
    texts = [text for text, _ in planted.rows(20)]
    plain = FakeVictim().predict(texts)
    for reword in (lightly, padded):
        assert FakeVictim().predict([reword(text) for text in texts]).tolist() == plain.tolist()


def test_a_model_that_knows_near_duplicates_of_the_rows_by_heart_is_exposed(tmp_path: Path) -> None:
    fuzzy = planted.Memorising(planted.rows(N), alike=0.4)
    found = judged(tmp_path, {"fuzzy": fuzzy}, checks=("transfer", "memory"))
    verdict = found.verdicts["fuzzy"]
    assert verdict.status == "illusion", verdict.sentence
    assert verdict.causes == ("memorised test texts",)
    assert "edited texts that it gets right and base does not" in finding(found, "fuzzy", "memorised")
    assert any("queries" in check.note for check in report(found, "fuzzy").checks if check.name == "memory")


def test_rows_known_by_heart_word_for_word_are_told_by_their_clean_gain(tmp_path: Path) -> None:
    rows = [(text, planted.LABELS[key % 4 == 0]) for key, (text, _) in enumerate(planted.rows(120))]
    data = Dataset.from_pairs(rows, labels=planted.LABELS)
    models: dict[str, Victim] = {"base": planted.Guessing(), "exact": planted.Memorising(rows)}
    found = evaluate(
        models, data, planted.recipe(tmp_path), out=tmp_path / "out", checks=("transfer", "memory")
    )
    assert found.verdicts["exact"].status != "holds"
    assert "rows that it gets right and base does not" in finding(found, "exact", "memorised")
    assert "never published (--fresh)" in finding(found, "exact", "too good")


def test_a_gain_that_is_not_there_on_fresh_rows_was_learned_by_heart(tmp_path: Path) -> None:
    # The nearest row answers, however far it is: no rewriting leads away from it.
    models: dict[str, Victim] = {
        "nearest": planted.Memorising(planted.rows(N), alike=0.01),
        "knowing": planted.Knowing(),
    }
    found = judged(tmp_path, models, fresh=N, checks=("transfer", "fresh-rows"))
    verdict = found.verdicts["nearest"]
    assert verdict.status == "illusion", verdict.sentence
    assert verdict.causes == ("memorised test texts",)
    assert "on rows that were never published" in verdict.sentence
    assert found.verdicts["knowing"].status == "holds"


def test_fresh_rows_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_csv(tmp_path / "d.csv", planted.rows(12))
    write_csv(tmp_path / "new.csv", planted.rows(12, seed=5))
    monkeypatch.chdir(tmp_path)
    arguments = ["evaluate", "base=fake", "hot=overconfident:base", "--data", "d.csv", "--fresh", "new.csv"]
    arguments += ["--attack", "deepwordbug", "--checks", "fresh-rows", "--out", "out", "--json"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    checks = json.loads(done.stdout)["models"][1]["checks"]
    (fresh,) = [check for check in checks if check["name"] == "fresh-rows"]
    assert "n = 12" in fresh["note"]


# -- all of them -----------------------------------------------------------------------------------------

CAUSES = {
    "hot": "saturated scores",
    "noisy": "chance",
    "rounded": "rounded scores",
    "fuzzy": "memorised test texts",
    "remembering": "answers that depend on earlier questions",
    "lean": "abstention",
}
HONEST = ("knowing", "schooled", "drawn")


def everything(n: int) -> dict[str, Victim]:
    base = planted.Guessing()
    return {
        "hot": Overconfident(base),
        "noisy": Noisy(base),
        "rounded": Rounded(base, decimals=0),
        "fuzzy": planted.Memorising(planted.rows(n), alike=0.4),
        "remembering": planted.Remembering(),
        "lean": planted.Abstaining(0.01),
        "knowing": planted.Knowing(ignorance=8),
        "schooled": planted.Schooled(),
        "drawn": planted.Drawn(),
    }


def test_texts_near_the_border_are_not_taken_for_memory() -> None:
    """As measured on sentences of reviews: an honest model lost 27 of 41, the control about as many."""
    usual, own = Loss(tuple(range(100)), frozenset(range(23))), Loss(tuple(range(41)), frozenset(range(27)))
    control = Loss(tuple(range(45)), frozenset(range(28)))
    assert not remembered(own, [usual], least=0.6)
    assert not remembered(own, [usual, control])
    looked_up = Loss(tuple(range(80)), frozenset(range(70)))
    assert remembered(looked_up, [usual, control], least=0.6)
    assert remembered(looked_up, [usual, Loss((), frozenset())], least=0.6)


def lost(fallen: int, of: int) -> Loss:
    return Loss(tuple(range(of)), frozenset(range(fallen)))


def test_who_knows_edited_texts_by_heart_knows_their_rows_as_well() -> None:
    """As measured with misspellings: an honest model lost 42 of 51 such texts, but 13 of 29 of their rows."""
    usual, attacked = lost(27, 100), lost(42, 51)
    assert remembered(attacked, [usual], least=0.6)
    assert not near_duplicates_remembered(attacked, lost(13, 29), usual, [usual])
    assert near_duplicates_remembered(attacked, lost(28, 29), usual, [usual])
    assert near_duplicates_remembered(attacked, lost(0, 0), usual, [usual])  # no rows to ask


@pytest.mark.slow
def test_every_planted_illusion_is_exposed_and_no_honest_defence_is(tmp_path: Path) -> None:
    found = judged(tmp_path, everything(200), n=200, fresh=200)
    for name, cause in CAUSES.items():
        verdict = found.verdicts[name]
        assert verdict.status == "illusion", verdict.sentence
        assert any(cause in told or told.startswith("scores that are only") for told in verdict.causes)
    for name in HONEST:
        verdict = found.verdicts[name]
        assert verdict.status != "illusion", verdict.sentence
        assert verdict.gain.certain


def simulation() -> Any:
    spec = importlib.util.spec_from_file_location(
        "illusion_rates", SUPPORT.parents[1] / "bench" / "illusion_rates.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look for it there
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("base", [0.0, 0.1])
def test_a_base_that_has_nothing_to_lose_makes_no_illusion_of_an_honest_gain(
    base: float,
) -> None:
    rates = simulation()
    for world in (
        rates.World(base, 0.4, 0.25),
        rates.World(base, 0.4, 0.1, saturated=True),
        rates.World(base, 0.4, 0.25, saturated=True),
    ):
        assert rates.called_illusions(world, 100) <= 0.05, str(world)
    assert rates.called_illusions(rates.World(base, 0.4, 0.05, saturated=True, planted=True), 50) >= 0.95
