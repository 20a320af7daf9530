from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stored_runs import on_text
from unfooled.core.result import Result
from unfooled.data.loading import load_data
from unfooled.errors import DataError, RunFileError
from unfooled.runs.export import export
from unfooled.runs.file import RunFile
from unfooled.text import Edit

FOUND = on_text(
    '=a "fine",\nlong 😀 film',
    '=a "nice",\nlong 😀 film',
    key=3,
    label=1,
    probs=(0.1, 0.9),
    perturbed_probs=(0.7, 0.3),
    edits=(Edit("replace", 1, "fine", "nice", 4, 1),),
    words=4,
    queries=12,
    asked=15,
    similarity=0.875,
    facts=(("distance", 0.5),),
)
FAILED = Result(
    key=9,
    outcome="error",
    label=-1,
    fields=(("text", "x"),),
    field=0,
    perturbed="x",
    note="line 11 of the file: no label",
)
COLUMNS = [
    "key", "outcome", "label", "label_name", "text", "perturbed_text", "predicted_before", "predicted_after",
    "p_true_before", "p_true_after", "words", "changed_words", "perturbed_share", "queries", "asked",
    "similarity", "edits", "note", "facts",
]  # fmt: skip
EDITS = [{"kind": "replace", "position": 1, "before": "fine", "after": "nice", "at": 4, "step": 1}]
EXPECTED: list[dict[str, Any]] = [
    dict(
        zip(
            COLUMNS,
            [3, "success", 1, "pos", FOUND.original, FOUND.perturbed, "pos", "neg", 0.9, 0.3, 4, 1, 0.25, 12,
             15, 0.875, EDITS, "", {"distance": 0.5}],
            strict=True,
        )
    ),
    dict(
        zip(
            COLUMNS,
            [9, "error", -1, "", "x", "x", "", "", None, None, 0, 0, 0.0, 0, 0, None, [],
             "line 11 of the file: no label", {}],
            strict=True,
        )
    ),
]  # fmt: skip


def run_with(folder: Path, *results: Result) -> Path:
    with RunFile.open(folder, {"identity": {"labels": ["neg", "pos"]}}) as run:
        for result in results:
            run.add(result)
    return folder


def test_jsonl(tmp_path: Path) -> None:
    assert export(run_with(tmp_path / "run", FOUND, FAILED), tmp_path / "deep" / "out.jsonl") == 2
    lines = (tmp_path / "deep" / "out.jsonl").read_text("utf-8").split("\n")
    assert [json.loads(line) for line in lines[:-1]] == EXPECTED
    assert [file.name for file in (tmp_path / "deep").iterdir()] == ["out.jsonl"]


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl", "out.parquet", "out"])
def test_half_a_surrogate_pair_is_written_out(tmp_path: Path, name: str) -> None:
    torn = "a \ud83d film"
    edit = FOUND.edits[0]._replace(after="\udc00")
    run = run_with(tmp_path / "run", replace(FOUND, fields=(("text", torn),), edits=(edit, *FOUND.edits[1:])))
    assert export(run, tmp_path / name) == 1
    if name == "out.csv":
        assert "a \\ud83d film" in (tmp_path / name).read_text("utf-8")


def test_csv_keeps_the_data_exact(tmp_path: Path) -> None:
    export(run_with(tmp_path / "run", FOUND, FAILED), tmp_path / "out.csv", raw=True)
    with open(tmp_path / "out.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == COLUMNS
    for row, expected in zip(rows, EXPECTED, strict=True):
        for name in ("edits", "facts"):
            assert json.loads(row.pop(name)) == expected[name]
        plain = {name: value for name, value in expected.items() if name not in ("edits", "facts")}
        assert row == {name: "" if value is None else str(value) for name, value in plain.items()}


@pytest.mark.parametrize("name", ["out.parquet", "folder"])
def test_arrow_formats(tmp_path: Path, name: str) -> None:
    datasets = pytest.importorskip("datasets")
    parquet = pytest.importorskip("pyarrow.parquet")
    out = tmp_path / name
    run = run_with(tmp_path / "run", FOUND, FAILED)
    export(run, out)
    with pytest.raises(RunFileError, match="exists already"):
        export(run, out)
    export(run, out, force=True)
    rows = parquet.read_table(out).to_pylist() if out.suffix else datasets.load_from_disk(out).to_list()
    written = [{**row, **{name: json.loads(row[name]) for name in ("edits", "facts")}} for row in rows]
    assert written == EXPECTED


def test_pairs_get_a_column_per_field(tmp_path: Path) -> None:
    pair = replace(FOUND, fields=(("premise", "p"), ("note", "n")), field=0, perturbed="q")
    export(run_with(tmp_path / "run", pair), tmp_path / "out.jsonl")
    row = json.loads((tmp_path / "out.jsonl").read_text("utf-8"))
    assert (row["premise"], row["field_note"], row["text"], row["perturbed_text"], row["note"]) == (
        "p",
        "n",
        "p",
        "q",
        "",
    )


def test_an_export_is_data_again(tmp_path: Path) -> None:
    many = [replace(FOUND, key=key, label=key % 2) for key in range(2500)]
    assert export(run_with(tmp_path / "run", *many), tmp_path / "out.csv") == 2500
    data = load_data(tmp_path / "out.csv", text="perturbed_text", label="label_name")
    assert (len(data), data.labels) == (2500, ("neg", "pos"))
    assert next(iter(data)).content == (("perturbed_text", FOUND.perturbed),)


FORMULAS = [
    "=1+1",
    "+cmd",
    "-2",
    "@SUM(A1)",
    "\t=x",
    "\r=x",
    "'=x",
    "''",
    "plain",
    "a\rb",
    "a\r\nb",
    "\n=x",
    "＝1",
]


@pytest.mark.parametrize("raw", [False, True])
def test_formulas_and_carriage_returns_come_back_to_the_byte(tmp_path: Path, raw: bool) -> None:
    texts = [*FORMULAS, *(f"{text}\r" for text in FORMULAS), '"quoted", -1\r"']
    results = [
        replace(FOUND, key=key, label=key % 2, fields=(("=one", text), ("two", "@x")), perturbed=text[::-1])
        for key, text in enumerate(texts)
    ]
    assert export(run_with(tmp_path / "run", *results), tmp_path / "out.csv", raw=raw) == len(texts)
    for column, wanted in (
        ("text", texts), ("=one", texts), ("perturbed_text", [text[::-1] for text in texts]),
        ("two", ["@x"] * len(texts)),
    ):  # fmt: skip
        data = load_data(tmp_path / "out.csv", text=column, label="label_name")
        assert [example.content[0][1] for example in data] == wanted
    with open(tmp_path / "out.csv", encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert len(rows) == len(texts)
    begins = {cell[:1] for row in (header, *rows) for cell in row if not cell.lstrip("-").isdigit()}
    assert bool(begins & set("=+-@\t\r\n＝")) == raw
    assert ("neutralised" in header) != raw


def test_apostrophes_of_other_files_stay(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("text,label\n'=x,a\n'-y,b\n", encoding="utf-8")
    data = load_data(tmp_path / "d.csv")
    assert [example.content[0][1] for example in data] == ["'=x", "'-y"]


@pytest.mark.parametrize("mark", ["[", "7", '["words"]', '["nothing"]', "[1]", "[" * 100_000])
def test_a_wrong_mark_of_a_formula_is_told(tmp_path: Path, mark: str) -> None:
    cells = ["0", "success", "0", "neg", "a fine film", "7", mark.replace('"', '""')]
    header = "key,outcome,label,label_name,text,words,neutralised"
    row = ",".join(f'"{cell}"' for cell in cells)
    (tmp_path / "d.csv").write_text(f"{header}\n{row}\n", encoding="utf-8")
    with pytest.raises(DataError, match="line 2 of the file: the column neutralised"):
        load_data(tmp_path / "d.csv", text="text", label="label_name")


def test_raw_is_for_csv(tmp_path: Path) -> None:
    run = run_with(tmp_path / "run", FOUND)
    with pytest.raises(RunFileError, match="only CSV"):
        export(run, tmp_path / "out.jsonl", raw=True)


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl", "out.parquet", "folder"])
def test_an_empty_run(tmp_path: Path, name: str) -> None:
    pytest.importorskip("datasets")
    assert export(run_with(tmp_path / "run"), tmp_path / name) == 0
    assert (tmp_path / name).exists()


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    run = run_with(tmp_path / "run", FOUND)
    with pytest.raises(RunFileError, match=r"cannot export to '\.xlsx'") as caught:
        export(run, tmp_path / "out.xlsx")
    assert ".parquet" in caught.value.remedy
    with pytest.raises(RunFileError, match="no exported folder"):
        export(run, run)
    with pytest.raises(RunFileError, match="cannot be written"):
        export(run, run / "run.sqlite" / "out.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(RunFileError, match="is a folder"):
        export(run, tmp_path / "folder.csv")
    with pytest.raises(RunFileError, match="there is no run"):
        export(tmp_path / "nothing", tmp_path / "out.csv")
    assert (run / "run.sqlite").exists()


@pytest.mark.parametrize("name", ["data.csv", "data.jsonl", "data.parquet"])
def test_an_existing_file_is_replaced_only_by_force(tmp_path: Path, name: str) -> None:
    pytest.importorskip("pyarrow")
    run = run_with(tmp_path / "run", FOUND)
    (tmp_path / name).write_text("the user's own data")
    with pytest.raises(RunFileError, match="exists already") as caught:
        export(run, tmp_path / name)
    assert "--force" in caught.value.remedy
    assert (tmp_path / name).read_text() == "the user's own data"
    assert export(run, tmp_path / name, force=True) == 1
    assert b"nice" in (tmp_path / name).read_bytes()


def test_force_spares_a_folder_of_other_things(tmp_path: Path) -> None:
    pytest.importorskip("datasets")
    run = run_with(tmp_path / "run", FOUND)
    for force in (False, True):
        with pytest.raises(RunFileError, match="no exported folder"):
            export(run, run, force=force)
    (tmp_path / "empty").mkdir()
    assert export(run, tmp_path / "empty") == 1
    assert (run / "run.sqlite").exists()
