"""What people read of a run."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from reviews import sentences, write_csv
from stored_runs import made, stored
from unfooled.core.result import Result
from unfooled.errors import RunFileError
from unfooled.report.diffs import pieces, visible
from unfooled.report.folder import write_report
from unfooled.report.terminal import diff_line
from unfooled.runs.attack import attack
from unfooled.text import Text


def changed(text: Text) -> Result:
    return Result(
        key=0,
        outcome="success",
        label=1,
        fields=text.fields,
        field=text.field,
        perturbed=text.string,
        probs=(0.1, 0.9),
        perturbed_probs=(0.8, 0.2),
        edits=tuple(text.edits()),
        words=len(text.root.words),
    )


def test_pieces_give_the_new_text_and_the_old_words_in_place() -> None:
    text = Text("a fine, funny film at last").replace(1, "poor").delete(2).insert(2, "very")
    found = list(pieces(changed(text)))
    assert "".join(piece.text for piece in found if piece.kind != "gone") == text.string
    assert [piece.text for piece in found if piece.kind == "gone"] == ["fine", "funny"]
    assert [piece.text for piece in found if piece.kind == "new"] == ["poor", "very"]


def test_a_huge_word_does_not_flood_the_terminal_and_brackets_are_closed() -> None:
    huge = changed(Text("an " + "x" * 20_000 + " film").replace(1, "odd"))
    plain = diff_line(huge, ("bad", "good"), coloured=False).plain
    assert plain == "  good → bad: an [" + "x" * 60 + "…→odd] film"
    many = Text(" ".join(["x" * 100] * 20))
    for i in range(20):
        many = many.replace(i, "odd")
    plain = diff_line(changed(many), ("bad", "good"), coloured=False).plain
    assert plain.endswith("→odd]…")
    assert plain.count("[") == plain.count("]")


def test_a_diff_reads_without_colours_too() -> None:
    result = changed(Text("a fine film").replace(1, "poor"))
    assert diff_line(result, ("no", "yes"), coloured=False).plain == "  yes → no: a [fine→poor] film"
    assert diff_line(result, ("no", "yes"), coloured=True).plain == "  yes → no: a fine poor film"


def test_inserted_and_deleted_words_are_told_from_replaced_ones() -> None:
    result = changed(Text("a fine, funny film").insert(2, "very", after=True).delete(4))
    assert (
        diff_line(result, ("no", "yes"), coloured=False).plain == "  yes → no: a fine [+very], funny[film→]"
    )
    result = changed(Text("a film").insert(2, "indeed").insert(0, "what").replace(2, "movie"))
    assert diff_line(result, ("no", "yes"), coloured=False).plain == (
        "  yes → no: [+what] a [film→movie] [+indeed]"
    )


def test_a_long_text_is_shown_around_its_edit() -> None:
    text = Text("word " * 500 + "fine end").replace(500, "poor")
    line = diff_line(changed(text), ("no", "yes"), coloured=False).plain
    assert "[fine→poor]" in line
    assert len(line) < 400


@pytest.mark.parametrize(
    ("text", "shown"), [("a\x1b[0m", "a\\u001b[0m"), ("\u202eevil", "\\u202eevil"), ("z\u200bw", "z\\u200bw")]
)
def test_tricky_characters_are_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_hostile_name_is_text_in_the_folder_too(tmp_path: Path) -> None:
    run = stored(tmp_path / "r", [made(0, "success", "great film")], attack="<script>\u202e*x*")
    text = (write_report(run, tmp_path / "report") / "summary.md").read_text()
    assert text.startswith("# &lt;script&gt;\\\\u202e\\*x\\* on toy\n")


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    run = stored(tmp_path / "r", [made(0, "success", "great film")])
    (tmp_path / "file").write_text("x")
    with pytest.raises(RunFileError, match="no folder can be made here"):
        write_report(run, tmp_path / "file")


def test_the_report_folder_agrees_with_the_run(tmp_path: Path) -> None:
    rows = [*sentences(12), ("a <b>great</b> | film *\x1b*", "positive"), ("", "positive")]
    run = attack("fake", write_csv(tmp_path / "d.csv", rows), "deepwordbug", out=tmp_path / "run")
    folder = write_report(run.path, tmp_path / "report")
    summary = run.summary()
    assert json.loads((folder / "summary.json").read_text()) == json.loads(json.dumps(summary.to_dict()))
    text = (folder / "summary.md").read_text()
    assert f"{summary.success_rate.value:.1%}" in text
    assert "<b>" not in text
    assert "\x1b" not in text
    assert "1 × " in text  # the row without text is named as an error
    with (folder / "results.csv").open(newline="", encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == summary.total == 14
