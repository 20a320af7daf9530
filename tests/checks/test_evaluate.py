"""Three evaluations, the checks, and verdicts: planted fakes are caught, robust models are not slandered."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import planted
from command_line import unfooled
from doc_pages import DOCS, blocks
from reviews import write_csv
from unfooled.attacks.parts.gradient_importance import Gradient
from unfooled.checks.evaluate import Evaluation, evaluate
from unfooled.checks.illusions.attacking import EvaluationObserver, read_results
from unfooled.checks.illusions.wrappers import Guided, Tempered
from unfooled.checks.naming import load_models, resolve, roles
from unfooled.cli.app import app
from unfooled.core.result import Result
from unfooled.core.victim import Probabilities, TextValue, Victim
from unfooled.data.dataset import Dataset
from unfooled.errors import UnknownNameError, UserError, VictimError
from unfooled.report.evaluation import check_rows, markdown, table_rows, write_files
from unfooled.runs.attack import Observer, attack
from unfooled.runs.notes import read_remark
from unfooled.victims.fake import FakeVictim
from unfooled.victims.impostors import Masked, Noisy, Overconfident, Rounded

N = 50


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("evaluation")


@pytest.fixture(scope="module")
def planted_fakes(folder: Path) -> Evaluation:
    base = FakeVictim()
    models: dict[str, Victim] = {
        "base": base,
        "hot": Overconfident(base),
        "hidden": Overconfident(base, factor=1e6),
        "noisy": Noisy(base),
        "rounded": Rounded(base),
        "knowing": planted.Knowing(),
        "mostly": planted.Knowing(ignorance=8),
    }
    return evaluate(models, planted.data(N), planted.recipe(folder), out=folder / "all")


@pytest.mark.parametrize(
    ("name", "words", "finding"),
    [
        ("hot", "re-scaled scores", "its scores are saturated"),
        ("hidden", "samples made on base", "only ever 0 or 1"),
        ("noisy", "averaged queries (EOT)", "it answers at random"),
        ("rounded", "samples made on base", "rounded to 1 decimal"),
    ],
)
def test_planted_fakes_are_caught(planted_fakes: Evaluation, name: str, words: str, finding: str) -> None:
    verdict = planted_fakes.verdicts[name]
    assert verdict.status == "illusion"
    assert f"{100 * verdict.gain.value:.1f} points vanish under" in verdict.sentence
    assert words in verdict.sentence
    assert any(finding in told for told in verdict.findings)
    assert finding in verdict.sentence.lower()


@pytest.mark.parametrize("name", ["knowing", "mostly"])
def test_a_truly_robust_model_is_not_called_an_illusion(planted_fakes: Evaluation, name: str) -> None:
    verdict = planted_fakes.verdicts[name]
    assert verdict.status == "holds"
    assert "points remain" in verdict.sentence
    assert verdict.findings == ()


def test_the_table_has_the_three_evaluations(planted_fakes: Evaluation) -> None:
    rows = {row[0]: row for row in table_rows(planted_fakes)}
    assert rows["base"][1].startswith("100.0 (")
    assert rows["base"][3].startswith("0.0 (")  # pre-made samples are those that fooled it
    assert rows["knowing"][3].startswith("100.0 (")
    assert rows["retuned: missing"][1:] == ("–",) * 7
    assert "noisy*" in rows
    base, hot = planted_fakes.models[:2]
    assert base.role == "base"
    assert hot.active.value > base.active.value == hot.worst.value
    assert base.queries.value > 5
    assert base.active.n == N
    text = markdown(planted_fakes)
    assert "unfooled harden --method retune" in text
    assert "most fresh draws" in text
    names = [row[0] for row in check_rows(hot)]
    assert names[:3] == ["budget", "again", "temperature ×1"]
    assert "any number: 0%" in check_rows(hot)[0][2]


def test_files_and_run_files_hold_the_verdict(planted_fakes: Evaluation, folder: Path) -> None:
    write_files(planted_fakes)
    content = json.loads((folder / "all/evaluation.json").read_text(encoding="utf-8"))
    assert content == planted_fakes.to_dict()
    assert content["models"][1]["verdict"]["status"] == "illusion"
    assert read_remark(folder / "all/hot/attack", "verdict") == content["models"][1]["verdict"]
    assert read_remark(folder / "all/base/attack", "verdict") is None
    assert "| hot |" in (folder / "all/evaluation.md").read_text(encoding="utf-8")
    shown = unfooled("summary", str(folder / "all/hot/attack")).stdout
    assert "verdict: an illusion" in shown


def test_the_same_call_again_asks_no_attack_anew(planted_fakes: Evaluation, folder: Path) -> None:
    class Silent(FakeVictim):
        asked = 0

        def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
            Silent.asked += len(texts)
            return super().predict(texts)

    models: dict[str, Victim] = {"base": Silent(), "knowing": planted.Knowing()}
    again = evaluate(models, planted.data(N), planted.recipe(folder), out=folder / "all")
    assert again.verdicts["knowing"].to_dict() == planted_fakes.verdicts["knowing"].to_dict()
    assert Silent.asked < 15 * N  # looks only; an attack alone takes 12 queries for each example


def test_only_a_guided_search_finds_the_way_past_hidden_scores(tmp_path: Path) -> None:
    # The samples that fool the base stop where it falls, one word before the other model does.
    models: dict[str, Victim] = {"base": planted.Strict(), "hidden": Rounded(FakeVictim(), decimals=0)}
    found = evaluate(models, planted.data(N), planted.recipe(tmp_path), out=tmp_path / "out")
    verdict = found.verdicts["hidden"]
    assert verdict.status == "illusion"
    assert "an attack led by the scores of base" in verdict.sentence
    broken = {check.name: check.broken for check in found.models[1].checks}
    assert broken["guided by base"] > 5


def test_a_model_that_answers_everything_alike_pays_for_its_robustness(tmp_path: Path) -> None:
    class Constant(FakeVictim):
        def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
            return super().predict(["superb"] * len(texts))

        def fingerprint(self) -> str:
            return "constant"

    models: dict[str, Victim] = {"base": FakeVictim(), "constant": Constant()}
    found = evaluate(models, planted.data(N), planted.recipe(tmp_path), out=tmp_path / "out")
    assert "points of clean accuracy against base" in found.verdicts["constant"].sentence


# -- masked gradients ------------------------------------------------------------------------------------


def white_box(folder: Path, most: int) -> Any:
    search = planted.FirstWords(
        importance=Gradient("logit"), candidates=planted.neighbours(folder), most=most
    )
    return replace(planted.recipe(folder, search), needs=("probabilities", "gradients"))


def test_masked_gradients_are_an_illusion_under_a_white_box_attack(tmp_path: Path) -> None:
    models: dict[str, Victim] = {"base": planted.Seeing(), "masked": Masked(planted.Seeing())}
    rows = [(f"film story {text}", label) for text, label in planted.rows(N)]
    data = Dataset.from_pairs(rows, labels=planted.LABELS)
    found = evaluate(models, data, white_box(tmp_path, 4), out=tmp_path / "out").verdicts["masked"]
    assert found.status == "illusion"
    assert "the same attack in black-box order" in found.sentence
    assert "Its gradients are masked: zero on 100% of the texts" in found.sentence


def test_masked_gradients_are_told_when_the_attack_needs_none(tmp_path: Path) -> None:
    models: dict[str, Victim] = {"base": planted.Seeing(), "masked": Masked(planted.Seeing())}
    found = evaluate(models, planted.data(2 * N), planted.recipe(tmp_path), out=tmp_path / "out")
    verdict = found.verdicts["masked"]
    assert verdict.status == "no gain"
    assert "Its gradients are masked" in verdict.sentence
    (order,) = [check for check in found.models[0].checks if check.name == "white-box order"]
    assert "50 queries: black box" in order.note


def test_gradients_that_point_nowhere_are_told(tmp_path: Path) -> None:
    models: dict[str, Victim] = {"base": planted.Seeing(), "misleading": planted.Misleading()}
    rows = [(f"great film story {text}", label) for text, label in planted.rows(N) if label == "positive"]
    data = Dataset.from_pairs(rows, labels=planted.LABELS)
    found = evaluate(models, data, planted.recipe(tmp_path), out=tmp_path / "out", checks=("gradients",))
    assert "look masked" in found.verdicts["misleading"].sentence


# -- a network -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def network() -> Victim:
    pytest.importorskip("torch")
    return planted.network(augmented=False)


@pytest.mark.slow
def test_an_adversarially_trained_network_is_not_called_an_illusion(tmp_path: Path, network: Victim) -> None:
    models: dict[str, Victim] = {
        "base": network,
        "retuned": planted.network(augmented=False, seed=1),
        "trained": planted.network(augmented=True),
    }
    found = evaluate(models, planted.data(30), planted.recipe(tmp_path), out=tmp_path / "out")
    verdict = found.verdicts["trained"]
    assert verdict.status == "holds"
    assert not any("missing" in note for note in verdict.notes)
    assert any(note.startswith("under all checks: +") for note in verdict.notes)
    assert [model.role for model in found.models] == ["base", "control", "defended"]
    assert found.notes == ()
    assert any(check.name == "white-box order" and check.ran for check in found.models[2].checks)


# -- going on, errors, options ---------------------------------------------------------------------------


class Impatient(EvaluationObserver):
    """Interrupts as Ctrl-C would, after so many finished examples."""

    def __init__(self, after: int) -> None:
        self.left = after

    def stage(self, title: str) -> AbstractContextManager[Observer]:
        watcher = self

        class Counting(Observer):
            def finished(self, result: Result) -> None:
                watcher.left -= 1
                if not watcher.left:
                    raise KeyboardInterrupt

        @contextmanager
        def watched() -> Iterator[Observer]:
            yield Counting()

        return watched()


def test_an_interrupted_evaluation_goes_on_to_the_same_end(tmp_path: Path) -> None:
    models: dict[str, Victim] = {"base": FakeVictim(), "hot": Overconfident(FakeVictim())}
    whole = evaluate(models, planted.data(12), planted.recipe(tmp_path), out=tmp_path / "whole")
    interrupted = 0
    for after in (5, 9, 14, 30, 10_000):
        try:
            ended = evaluate(
                models,
                planted.data(12),
                planted.recipe(tmp_path),
                out=tmp_path / "parts",
                watcher=Impatient(after),
            )
        except KeyboardInterrupt:
            interrupted += 1
    assert interrupted >= 3
    assert replace(ended, out=whole.out) == whole


def test_a_larger_limit_goes_on_from_the_smaller_one(tmp_path: Path) -> None:
    models: dict[str, Victim] = {"base": FakeVictim(), "hot": Overconfident(FakeVictim())}
    small = evaluate(models, planted.data(30), planted.recipe(tmp_path), out=tmp_path / "out", limit=10)
    large = evaluate(models, planted.data(30), planted.recipe(tmp_path), out=tmp_path / "out", limit=30)
    straight = evaluate(models, planted.data(30), planted.recipe(tmp_path), out=tmp_path / "other", limit=30)
    assert (small.n, large.n) == (10, 30)
    assert small.models[0].clean.n == 30
    assert replace(large, out=straight.out) == straight
    again = evaluate(models, planted.data(30), planted.recipe(tmp_path), out=tmp_path / "out", limit=10)
    assert again == small


def test_an_error_is_never_robustness(tmp_path: Path) -> None:
    rows = planted.rows(20)
    rows[3] = (f"{rows[3][0]} poison", rows[3][1])
    data = Dataset.from_pairs([*rows, ("", "positive")], labels=planted.LABELS)
    models: dict[str, Victim] = {"base": FakeVictim(), "shaky": Overconfident(FakeVictim(poison="poison"))}
    found = evaluate(models, data, planted.recipe(tmp_path), out=tmp_path / "out")
    base, shaky = found.models
    assert base.active.n == 20  # the row without a text
    assert shaky.active.n == 19
    assert shaky.errors == 2
    assert found.verdicts["shaky"].n == 19
    assert any("2 examples ended in an error" in note for note in found.verdicts["shaky"].notes)


def test_guises_are_attacked_by_workers_as_well(tmp_path: Path) -> None:
    hot = load_models({"base": "fake", "hot": "overconfident:base"})["hot"]
    guise = Guided(Tempered(hot, 50.0), FakeVictim(), [0, 1])
    runs = [
        attack(
            guise, planted.data(10), planted.recipe(tmp_path), out=tmp_path / str(workers), workers=workers
        )
        for workers in (1, 2)
    ]
    assert list(runs[0].results()) == list(runs[1].results())
    assert runs[0].summary().counts["success"] > 0


def test_chosen_keys_only_are_attacked_and_others_may_follow(tmp_path: Path) -> None:
    run = attack(FakeVictim(), planted.data(10), planted.recipe(tmp_path), out=tmp_path / "run", keys=[2, 5])
    assert [result.key for result in run.results()] == [2, 5]
    attack(FakeVictim(), planted.data(10), planted.recipe(tmp_path), out=tmp_path / "run", keys=[5, 7])
    assert [result.key for result in run.results()] == [2, 5, 7]


def test_without_checks_nothing_is_decided(tmp_path: Path) -> None:
    models: dict[str, Victim] = {"base": FakeVictim(), "knowing": planted.Knowing()}
    found = evaluate(models, planted.data(40), planted.recipe(tmp_path), out=tmp_path / "out", checks=())
    assert "no check was run" in found.verdicts["knowing"].sentence
    alone = evaluate(
        {"only": FakeVictim()}, planted.data(5), planted.recipe(tmp_path), out=tmp_path / "alone"
    )
    assert alone.verdicts == {}
    assert len(table_rows(alone)) == 1


def test_names_and_roles() -> None:
    assert roles(["a", "b"], None, None) == ("a", None)
    assert roles(["x", "retuned", "base"], None, None) == ("base", "retuned")
    assert roles(["x", "y"], "y", "x") == ("y", "x")
    specs = {"base": "models/bert", "fact": "models/fact", "a": "overconfident:fact", "b": "rounded:a"}
    assert resolve(specs)["b"] == "rounded:overconfident:models/fact"
    assert resolve({"five": "five:fact", "fact": "models/fact"})["five"] == "five:models/fact"
    assert resolve({"a": "rounded:b", "b": "rounded:a"})["a"] == "rounded:rounded:a"  # and not for ever
    assert resolve({"hf": "org/name", "x": "hf:org/name"})["x"] == "hf:org/name"
    for names, base, control in (([], None, None), (["a b"], None, None), (["a"], "a", "a")):
        with pytest.raises(UserError):
            roles(names, base, control)
    with pytest.raises(UnknownNameError, match="there is no model called 'bert'"):
        roles(["base", "bart"], "bert", None)
    with pytest.raises(VictimError):
        load_models({"base": "fake", "other": "overconfident:nothing"})


def test_models_that_write_text_are_told_apart() -> None:
    pytest.importorskip("torch")
    from tiny_translation import victim

    with pytest.raises(VictimError, match="base writes text"):
        load_models({"base": victim("seq2seq-lstm")})


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        ({"checks": ("colour",)}, "there is no check"),
        ({"averages": (1,)}, "at least 2 draws"),
        ({"draws": 4}, "odd number"),
        ({"limit": 0}, "leaves nothing"),
    ],
)
def test_nonsense_is_refused(tmp_path: Path, options: dict[str, Any], cause: str) -> None:
    with pytest.raises(UserError, match=cause):
        evaluate({"base": FakeVictim()}, planted.data(5), "deepwordbug", out=tmp_path, **options)


# -- the command line ------------------------------------------------------------------------------------


def typed(*arguments: str) -> str:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_evaluate_and_replay_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_csv(tmp_path / "d.csv", planted.rows(12))
    monkeypatch.chdir(tmp_path)
    arguments = ["evaluate", "--models", "base=fake", "hot=overconfident:base", "--data", "d.csv"]
    arguments += ["--attack", "deepwordbug", "--out", "out"]
    printed = typed(*arguments)
    assert "all checks" in printed
    assert "retuned: missing" in printed
    assert "\nhot: " in printed
    assert "saturated" in printed
    assert (tmp_path / "out/evaluation.md").is_file()
    assert json.loads(typed(*arguments, "--json"))["n"] == 12
    replayed = typed("replay", "out/premade.jsonl", "--models", "a=fake", "b=rounded:a", "--json")
    first = json.loads(replayed)[0]
    assert first["after"]["value"] == 0.0
    assert first["before"]["value"] == 1.0
    assert "accuracy on the samples" in typed("replay", "out/base/attack", "a=fake")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", "fake", "--data", "d.csv"], "write NAME=MODEL"),
        (["evaluate", "a=fake", "a=fake", "--data", "d.csv"], "two models are called 'a'"),
        (["evaluate", "a=fake", "--data", "d.csv", "--averages", "x"], "no list of numbers"),
        (["evaluate", "a=fake", "--data", "d.csv", "--set", "x"], "has no '='"),
        (["evaluate", "a=fake", "--data", "d.csv", "--label-map", "x"], "has no '='"),
        (["replay", "nothing", "a=fake"], "there is no run"),
    ],
)
def test_mistakes_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    write_csv(tmp_path / "d.csv", planted.rows(4))
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(app, arguments)
    assert isinstance(found.exception, UserError)
    assert message in str(found.exception)


def test_the_example_of_the_documentation_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = DOCS / "how-to" / "harden.md"
    (code,) = [block.code for block in blocks(page, "python") if "unfooled.evaluate(" in block.code]
    write_csv(tmp_path / "reviews.csv", planted.rows(40))
    monkeypatch.chdir(tmp_path)
    shown: list[Any] = []
    exec(compile(code, page.name, "exec"), {"print": lambda *words: shown.append(words)})
    assert shown[0][0] == "hot"
    assert shown[0][1] in ("illusion", "no gain", "not decided")


def test_a_defence_that_draws_is_judged_by_fresh_draws(tmp_path: Path, network: Victim) -> None:
    from unfooled.defenses.five import Five, FiveVictim

    models: dict[str, Victim] = {
        "base": network,
        "five": FiveVictim(network, Five(words=2, sigma=3.0, copies=3)),
    }
    found = evaluate(
        models,
        planted.data(6),
        planted.recipe(tmp_path),
        out=tmp_path / "out",
        checks=("averages",),
        averages=(2,),
        draws=5,
    )
    report = found.models[1]
    assert report.chance == "seeded"
    assert [row[0] for row in table_rows(found)] == ["base", "retuned: missing", "five*"]
    assert "averages 2" in [check.name for check in report.checks if check.ran]
    assert report.verdict is not None
    assert any("guided (left out by --checks)" in note for note in report.verdict.notes)
    assert (tmp_path / "out/five/attack-fresh/run.sqlite").is_file()
    votes = [result.perturbed_probs[0] * 20 for result in read_results(tmp_path / "out/five/attack-fresh")]
    assert all(abs(vote - round(vote)) < 1e-4 for vote in votes)  # shares of 5 draws, or of 20


def test_models_may_order_their_classes_differently(tmp_path: Path) -> None:
    models: dict[str, Victim] = {"base": FakeVictim(), "swapped": FakeVictim(labels=("positive", "negative"))}
    found = evaluate(models, planted.data(12), planted.recipe(tmp_path), out=tmp_path / "out")
    base, swapped = found.models
    assert swapped.clean == base.clean
    assert swapped.active == base.active == swapped.worst
    assert swapped.premade.value == 0.0
    assert found.verdicts["swapped"].gain.value == 0.0


def test_pairs_are_evaluated_by_their_hypothesis(tmp_path: Path) -> None:
    rows = [({"premise": "a film", "hypothesis": text}, label) for text, label in planted.rows(24)]
    data = Dataset.from_pairs(rows, labels=planted.LABELS)
    models: dict[str, Victim] = {"base": FakeVictim(), "hot": Overconfident(FakeVictim())}
    found = evaluate(models, data, planted.recipe(tmp_path), out=tmp_path / "out")
    assert found.verdicts["hot"].status == "illusion"
    assert all(
        result.fields[0] == ("premise", "a film") for result in read_results(tmp_path / "out/hot/attack")
    )
    assert found.models[1].premade.value == 0.0
