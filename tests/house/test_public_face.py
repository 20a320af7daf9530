"""Objects and names are taken alike by every function of `import unfooled`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import unfooled
from doc_pages import DOCS, blocks
from unfooled.plugins import registry

ROWS = [("a superb film", "positive"), ("an awful film", "negative"), ("a great story", "positive")]


def keyword(texts: list[str]) -> list[list[float]]:
    return [[0.1, 0.9] if "superb" in text or "great" in text else [0.8, 0.2] for text in texts]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def texts(run: unfooled.Run) -> list[tuple[str, str]]:
    return [(result.outcome, result.perturbed) for result in run.results()]


def victims() -> list[Any]:
    return ["fake", unfooled.load_victim("fake"), unfooled.load_victim("fake").predict]


@pytest.fixture
def shorter(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The defence of the how-to page, which fits any victim."""
    (code,) = [
        block.code for block in blocks(DOCS / "how-to" / "extend.md", "python") if block.title == "shorter.py"
    ]
    (here / "shorter.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(str(here))
    unfooled.registry.register("defense", "shorter", "shorter:METHOD")
    yield "shorter"
    unfooled.registry.unregister("defense", "shorter")
    sys.modules.pop("shorter", None)


def test_a_defence_is_put_around_any_victim(shorter: str) -> None:
    answers = []
    for victim in victims():
        hardened = unfooled.harden(victim, method=shorter)
        assert hardened.path is None
        answers.append(hardened.victim().predict(["a superb film"]).tolist())
    assert answers[0] == answers[1] == answers[2]
    saved = unfooled.harden(unfooled.load_victim("fake"), method=shorter, out="saved")
    assert saved.victim().predict(["a superb film"]).tolist() == answers[0]
    assert unfooled.load_victim("saved").predict(["a superb film"]).tolist() == answers[0]


def test_a_folder_cannot_name_what_was_made_here(here: Path, shorter: str) -> None:
    with pytest.raises(unfooled.UserError, match="made in this process"):
        unfooled.harden(keyword, method=shorter, out="saved")
    assert not (here / "saved").exists()


def test_options_of_a_victim_are_given_again(shorter: str) -> None:
    named = unfooled.load_victim("fake", labels="positive,negative")
    hardened = unfooled.harden(named, method=shorter, out="saved")
    assert not hardened.alone
    again = unfooled.load_victim("saved", labels="positive,negative")
    assert hardened.victim().labels == again.labels == ("positive", "negative")


def test_training_takes_an_object_and_rows_in_memory() -> None:
    pytest.importorskip("accelerate")
    sizes = {"epochs": 1, "hidden": 8, "embedding": 8, "vectors": "none", "min_count": 1}
    trained = unfooled.train("lstm", ROWS * 6, "base", valid=0.0, options=sizes)
    options = {"epochs": 1}
    by_object, by_name = (
        unfooled.harden(base, ROWS * 6, method="retune", out=out, valid=0.0, options=options)
        for base, out in ((unfooled.load_victim(trained.path), "one"), ("base", "two"))
    )
    assert by_object.victim().fingerprint() == by_name.victim().fingerprint()
    with pytest.raises(unfooled.UserError, match="needs a folder"):
        unfooled.harden("base", ROWS, method="retune")


def test_runs_in_memory_are_measured_and_keep_it(here: Path) -> None:
    held = unfooled.attack("fake", ROWS, "deepwordbug")
    found = unfooled.measure(held, "edit-distance")
    kept = unfooled.attack("fake", ROWS, "deepwordbug", out="kept")
    assert found == unfooled.measure(kept, "edit-distance") != {"edit-distance": {}}
    saved = held.save("saved")
    with_values = unfooled.export(saved, "saved.csv"), (here / "saved.csv").read_text(encoding="utf-8")
    unfooled.export(kept, "kept.csv")
    assert with_values == (3, (here / "kept.csv").read_text(encoding="utf-8"))


def test_a_run_in_memory_is_exported_and_reported_as_one_on_disk(here: Path) -> None:
    held, kept = (unfooled.attack("fake", ROWS, "deepwordbug", out=out) for out in (None, "kept"))
    assert unfooled.export(held, "held.jsonl") == unfooled.export(kept, "kept.jsonl") == 3
    assert (here / "held.jsonl").read_bytes() == (here / "kept.jsonl").read_bytes()
    page = unfooled.report(held, "held.html").read_text(encoding="utf-8")
    assert "unfooled measure &#39;run 1&#39;" in page  # no scratch folder
    assert unfooled.report(held, "again.html").read_text(encoding="utf-8") == page
    both = unfooled.report([held, kept], "both.html").read_text(encoding="utf-8")
    assert "2 runs compared" in both


def test_texts_of_a_run_in_memory_go_to_another_model(here: Path) -> None:
    held = unfooled.attack("fake", ROWS, "deepwordbug")
    by_name, by_object, by_function = (unfooled.transfer(held, victim) for victim in victims())
    assert by_name.examples == by_object.examples != ()
    assert by_name.rate == by_function.rate
    assert by_name.run == ":memory:"
    assert list(here.iterdir()) == []
    runs = [unfooled.replay(held, victim, out=f"again-{n}") for n, victim in enumerate(victims())]
    assert texts(runs[0]) == texts(runs[1]) == texts(runs[2]) != []


def test_models_are_evaluated_and_compared_by_name_and_as_objects() -> None:
    models: dict[str, Any] = {"base": "fake", "object": unfooled.load_victim("fake"), "function": keyword}
    found = unfooled.evaluate(models, ROWS, "deepwordbug", out="all", checks=[])
    assert [model.name for model in found.models] == ["base", "object", "function"]
    assert found.models[0].clean == found.models[1].clean
    assert len(unfooled.compare(models.values(), ROWS)) == 3


def test_an_analysis_is_that_of_the_command(here: Path) -> None:
    pytest.importorskip("matplotlib")
    held = unfooled.attack("fake", ROWS, "deepwordbug")
    kept = held.save("kept")
    parts = ["confusion", "words"]
    by_name, by_object = (
        unfooled.analyse(run, victim=v, only=parts)
        for run, v in zip((held, kept), victims()[:2], strict=True)
    )
    assert by_name.confusion is not None
    assert by_object.confusion is not None
    assert (by_name.confusion.after == by_object.confusion.after).all()
    folder = by_name.save("analysis")
    assert (folder / "index.md").is_file()
    assert {path.suffix for path in folder.iterdir()} >= {".csv", ".svg", ".png", ".json"}


@pytest.mark.parametrize("kind", ["importance", "candidates", "constraint"])
def test_parts_that_commands_name_are_there_for_python_too(kind: str) -> None:
    parts = [registry.load(kind, name) for name in registry.names(kind)]
    ours = {part.__name__ for part in parts if part.__module__.startswith("unfooled.attacks.")}
    assert ours - set(unfooled.attacks.__all__) == set()
