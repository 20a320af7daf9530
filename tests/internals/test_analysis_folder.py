"""Pictures, tables and the command: what people get of an analysis."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from analysis_runs import changed, write_run
from reviews import sentences, write_csv
from unfooled.errors import ResourceError, UserError
from unfooled.internals.analysis import analyse
from unfooled.internals.figures.attention import token_label
from unfooled.internals.figures.heat import window
from unfooled.internals.folder import write_analysis
from unfooled.metrics.outcomes import outcomes
from unfooled.report import figures
from unfooled.text import Text
from unfooled.victims.fake import load as load_fake

pytest.importorskip("matplotlib")

EDITS = [
    Text("the film is good").replace(3, "bad"),
    Text("a dull plot, and a great film!").replace(1, "fun").delete(3).insert(5, "very"),
]


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def words_in(path: Path) -> str:
    """Everything that an SVG says, which also shows that it is well formed."""
    return " ".join(ElementTree.parse(path).getroot().itertext())


@pytest.mark.parametrize(
    ("edited", "width", "expected"),
    [
        ([0, 1, 0], 5, (0, 3)),
        ([0] * 4 + [1] + [0] * 5, 3, (3, 6)),  # in the middle
        ([1] + [0] * 9, 3, (0, 3)),
        ([0] * 9 + [1], 3, (7, 10)),
        ([1] + [0] * 6 + [1, 1, 0], 4, (6, 10)),  # two edits beat one
        ([0] * 10, 4, (3, 7)),
    ],
)
def test_a_long_text_is_shown_around_its_edits(
    edited: list[int], width: int, expected: tuple[int, int]
) -> None:
    assert window([bool(flag) for flag in edited], width) == slice(*expected)


@pytest.mark.parametrize(
    ("token", "label"), [("Ġfilm", "film"), ("▁", "▁"), (None, ""), ("a\x1bb", "a\\u001bb")]
)
def test_labels_of_tokens(token: str | None, label: str) -> None:
    assert token_label(token) == label


def test_words_that_look_like_formulas_or_markup_are_shown_as_they_are(tmp_path: Path) -> None:
    result = changed(Text("a film").replace(1, "x"))
    labels = ("$\\alpha$ & <b>", "日本\x1b[31m")
    confusion, _ = outcomes([result], labels)
    figures.draw_confusion(confusion, "100 $ and $ more", tmp_path / "c")
    text = words_in(tmp_path / "c.svg")
    assert "$\\alpha$ & <b>" in text
    assert "日本\\u001b[31m" in text
    assert "100 $ and $ more" in text
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


def test_many_words_share_bars(tmp_path: Path) -> None:
    long = Text("word " * 200)
    for place in range(150):
        long = long.replace(place, "x")
    _, words = outcomes([changed(EDITS[0]), changed(long, 1)], ("no", "yes"))
    figures.draw_words(words, "t", tmp_path / "w")
    assert "bars of 4" in words_in(tmp_path / "w.svg")


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path, Path]:
    """A tiny model, its folder and a run on it."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tiny_models import tiny
    from unfooled.victims.loading import load_victim

    folder = tmp_path_factory.mktemp("bert")
    made = tiny("bert", classes=2)
    made.model.save_pretrained(folder)
    made.tokenizer.save_pretrained(folder)
    victim = load_victim(str(folder))
    run = tmp_path_factory.mktemp("run")
    return victim, folder, write_run(run, victim, [changed(text, key) for key, text in enumerate(EDITS)])


def test_a_folder_holds_what_its_index_and_summary_say(bert: tuple[Any, Path, Path], tmp_path: Path) -> None:
    victim, _, run = bert
    analysis = analyse(run, victim=victim, keys=[1])
    out = write_analysis(analysis, tmp_path / "out")
    summary = json.loads((out / "summary.json").read_text())
    assert {path.name for path in out.iterdir()} == {*summary["files"], "summary.json", "index.md"}
    index = (out / "index.md").read_text()
    assert all(f"]({name})" in index for name in summary["files"])
    assert "no PCA" in index
    for name in ("attention-1", "attention-1-heads", "attention-1-maps", "embedding-1", "theorem"):
        assert {f"{name}.svg", f"{name}.png"} <= set(summary["files"])
    # Words on both sides, the inserted and the deleted one included.
    text = words_in(out / "attention-1.svg")
    assert all(word in text for word in ("dull", "fun", "and", "very", "[CLS]"))
    assert analysis.embeddings is not None
    assert summary["embeddings"]["sentence_relative"]["value"] == pytest.approx(
        analysis.embeddings.sentence.value, rel=1e-5
    )
    received = rows_of(out / "attention-1.csv")
    for side in ("before", "after"):
        total = sum(
            float(row[side]) for row in received if row[side] and (row["layer"], row["head"]) == ("1", "1")
        )
        assert total == pytest.approx(1.0, abs=1e-4)
    assert {row["before_token"] for row in received if row["after_token"] == "very"} == {""}
    changes = rows_of(out / "embedding-1.csv")
    assert {row["before_word"] for row in changes} == {"a", "dull", "plot", "great", "film"}
    assert len({row["layer"] for row in changes}) == 3
    assert len(rows_of(out / "theorem.csv")) == 7 + 4


def test_the_same_analysis_gives_the_same_bytes(bert: tuple[Any, Path, Path], tmp_path: Path) -> None:
    victim, _, run = bert
    folders = []
    for name in ("a", "b"):
        analysis = analyse(run, victim=victim, keys=[0], only=("embeddings", "confusion"))
        folders.append(write_analysis(analysis, tmp_path / name))
    names = sorted(path.name for path in folders[0].iterdir())
    assert names == sorted(path.name for path in folders[1].iterdir())
    for name in names:
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes(), name


def test_an_earlier_analysis_is_replaced_and_other_files_stay(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", load_fake(""), [changed(EDITS[0])])
    out = tmp_path / "out"
    write_analysis(analyse(run, only=("words", "confusion")), out)
    (out / "mine.csv").write_text("mine")
    (tmp_path / "beside.csv").write_text("mine")
    summary = json.loads((out / "summary.json").read_text())
    (out / "summary.json").write_text(json.dumps(summary | {"files": [*summary["files"], "../beside.csv"]}))
    write_analysis(analyse(run, only=("words",)), out)
    assert {path.name for path in out.iterdir()} == {
        *(f"words-changed.{suffix}" for suffix in ("svg", "png", "csv")),
        "mine.csv",
        "summary.json",
        "index.md",
    }
    assert (tmp_path / "beside.csv").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        write_analysis(analyse(run, only=("words",)), tmp_path / "file")


def test_every_head_and_a_narrow_picture(bert: tuple[Any, Path, Path], tmp_path: Path) -> None:
    victim, _, run = bert
    analysis = analyse(run, victim=victim, keys=[1], only=("attention",))
    out = write_analysis(analysis, tmp_path / "out", width=4, every_head=True)
    assert (out / "attention-1-layer-2.svg").is_file()
    text = words_in(out / "attention-1-layer-1.svg")
    assert "head 2" in text
    assert analysis.attention is not None
    tokens = len(analysis.attention.examples[0].columns)
    assert f"of {tokens}" in text  # the picture is cut, and says so


def test_numbers_that_are_not_there_are_empty_cells(bert: tuple[Any, Path, Path], tmp_path: Path) -> None:
    victim, _, _ = bert
    run = write_run(tmp_path / "run", victim, [changed(Text("the film").insert(0, "very"))])
    out = write_analysis(analyse(run, victim=victim, only=("embeddings",)), tmp_path / "out")
    assert {row["on_edited"] for row in rows_of(out / "embedding-layers.csv")} == {""}
    summary = json.loads((out / "summary.json").read_text())
    assert summary["embeddings"]["layers"][0]["on_edited"]["value"] is None


def test_the_python_of_the_documentation_runs(
    bert: tuple[Any, Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, folder, run = bert
    for name, target in (("models", folder), ("runs", run)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "bert").symlink_to(target)
    page = (Path(__file__).parents[2] / "docs/how-to/analyse.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.S)
    monkeypatch.chdir(tmp_path)
    shown: list[Any] = []
    exec(compile(code, "analysis.md", "exec"), {"print": shown.append})
    assert shown[0].n == 2
    assert Path("analysis/bert/embedding-1.svg").is_file()


# -- the command -----------------------------------------------------------------------------------------


Command = Callable[..., tuple[str, str]]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs `unfooled analyse …`; what it printed, and what it told beside that."""

    def run_command(*arguments: str, code: int = 0) -> tuple[str, str]:
        from unfooled.cli.app import main

        monkeypatch.setattr(sys, "argv", ["unfooled", "analyse", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        assert (left.value.code or 0) == code
        printed = capsys.readouterr()
        return " ".join(printed.out.split()), " ".join(printed.err.split())

    return run_command


def test_the_command_shows_a_table_and_writes_the_folder(
    bert: tuple[Any, Path, Path], tmp_path: Path, command: Command
) -> None:
    pytest.importorskip("sklearn")
    _, folder, run = bert
    data = write_csv(tmp_path / "d.csv", sentences(30))
    out = tmp_path / "out"
    arguments = [str(run), "-m", str(folder), "-d", str(data), "-o", str(out), "--examples", "1"]
    only = [part for name in ("embeddings", "pca", "words") for part in ("--only", name)]
    shown, _ = command(*arguments, *only)
    for part in ("by-hand@test on", "R_e, sentence vector", "nearest class mean", "words changed"):
        assert part in shown
    assert f"{out}/index.md" in shown
    assert len(rows_of(out / "pca.csv")) == 30
    assert (out / "embedding-0.svg").is_file()
    assert not (out / "embedding-1.svg").exists()
    given = [str(run), "-o", str(out), "--only", "words", "--json"]
    shown, told = command(*given)
    assert json.loads(shown)["words"]["counts"] == {"1": 1, "3": 1}
    assert told == ""


def test_the_command_with_the_models_own_vectors(
    bert: tuple[Any, Path, Path], tmp_path: Path, command: Command
) -> None:
    _, folder, run = bert
    data = write_csv(tmp_path / "d.csv", sentences(12))
    arguments = [str(run), "-m", str(folder), "-d", str(data), "-o", str(tmp_path / "out")]
    shown, _ = command(*arguments, "--only", "pca", "--pca", "sentence", "--rows", "8")
    assert "nearest class mean" in shown
    assert len(rows_of(tmp_path / "out/pca.csv")) == 8
    assert "victim's sentence vectors" in words_in(tmp_path / "out/pca.svg")


@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        (["nowhere"], ["there is no run"]),
        (
            ["run", "-m", "fake", "--labels", "positive,negative"],
            ["not the model that was attacked", "--labels"],
        ),
        (["run", "--example", "0"], ["need the model", "--model"]),
        (["run", "-m", "fake", "--example", "5"], ["example 5 was not attacked", "such as 0"]),
        (["run", "--only", "colour"], ["no part 'colour'", "confusion, words"]),
        (["run", "--pca", "colour"], ["no PCA of 'colour'", "tfidf"]),
        (["run", "--only", "pca", "--pca", "sentence", "-d", "d.csv"], ["needs a model"]),
        (["run", "--only", "pca", "-d", "none.csv"], ["no such file"]),
        (["run", "--only", "pca"], ["nothing can be made", "give the data as --data"]),
        (["run", "-m", "fake", "--victim-option", "colour"], ["has no '='"]),
    ],
    ids=lambda value: " ".join(value)[-30:],
)
def test_mistakes_are_answered_in_a_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: Command,
    arguments: list[str],
    messages: list[str],
) -> None:
    write_run(tmp_path / "run", load_fake(""), [changed(EDITS[0])])
    write_csv(tmp_path / "d.csv", sentences(6))
    monkeypatch.chdir(tmp_path)
    _, told = command(*arguments, "-o", "out", code=2)
    assert told.startswith("error: ")
    for message in messages:
        assert message in told
    assert not Path("out").exists()


def test_a_victim_without_an_inside_gets_one_line_for_each_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    def absent(_: str) -> None:
        raise ResourceError("counter-fitted is not here yet", "run: unfooled resources get counter-fitted")

    monkeypatch.setattr("unfooled.internals.analysis.open_neighbours", absent)
    run = write_run(tmp_path / "run", load_fake(""), [changed(EDITS[0])])
    shown, _ = command(str(run), "-m", "fake", "-o", str(tmp_path / "out"))
    for line in (
        "! no neighbours: give a table of nearest words as --neighbours",
        "! no field of embeddings: it needs a torch model as --model",
        "! no attention pictures: fake gives none",
        "! no embeddings pictures: fake gives none",
        "! Theorem 1 on random matrices only: fake has no query and key matrices",
        "! no PCA: give the data as --data",
    ):
        assert line in shown
    assert np.sum([path.suffix == ".svg" for path in (tmp_path / "out").iterdir()]) == 3
