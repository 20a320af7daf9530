"""A run as a flat table: CSV, JSON lines, Parquet or a folder of the `datasets` library."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from unfooled.core.result import Result
from unfooled.data.delimited import NEUTRALISED
from unfooled.errors import RunFileError
from unfooled.extras import libraries_of
from unfooled.files import FORMULA, put_in_place, scratch_folder
from unfooled.runs.attack import Run, run_folder
from unfooled.runs.file import RunFile
from unfooled.runs.rows import encodable

_BATCH = 1000

Record: TypeAlias = dict[str, Any]

# Name and kind of each column, in order; the fields of a pair come between `label_name` and `text`, and what
# `unfooled measure` found comes last, under its own names.
_KINDS = {
    "key": "int", "outcome": "str", "label": "int", "label_name": "str", "text": "str",
    "perturbed_text": "str",
    "predicted_before": "str", "predicted_after": "str", "p_true_before": "float", "p_true_after": "float",
    "words": "int", "changed_words": "int", "perturbed_share": "float", "queries": "int", "asked": "int",
    "similarity": "float", "edits": "str", "note": "str", "facts": "str",
}  # fmt: skip


def export(run: Run | str | Path, out_path: str | Path, *, force: bool = False, raw: bool = False) -> int:
    """Write every result of a run to `out_path`; the suffix chooses the format, no suffix means a folder.

    Returns the number of rows. The output appears only when it is complete. What exists already is replaced
    only with `force`, and a folder only where the `datasets` library wrote it.

    In CSV a text that a spreadsheet would run as a formula gets an apostrophe before it, and the column
    `neutralised` names the cells that got one: `load_data` takes them away again. `raw` leaves both out.

    Example:

        >>> unfooled.export("runs/x", "results.csv")
        6
    """
    out = Path(out_path).expanduser()
    write = _writer(out)
    if raw and out.suffix.lower() != ".csv":
        raise RunFileError(
            f"{out}: only CSV has formulas to keep", "leave --raw out, or end the name with .csv"
        )
    if raw:
        write = _write_raw_csv
    empty = out.is_dir() and not any(out.iterdir())
    if os.path.lexists(out) and not empty and not force:
        raise RunFileError(f"{out}: exists already", "choose another path, or replace it with --force")
    with run_folder(run) as folder, RunFile.read(folder) as file:
        total = sum(file.count().values())
        columns = _columns(file)
        try:
            with scratch_folder(out.parent, "export") as scratch:
                part = scratch / "part"
                write(part, columns, records(file))
                put_in_place(part, out)
        except OSError as error:
            raise RunFileError(
                f"{out}: cannot be written ({error.strerror or error})",
                "free some space or choose another path",
            ) from error
    return total


def records(run: RunFile) -> Iterator[Record]:
    """One flat record per result, in the order of their keys."""
    names, cleaned = run.labels, _is_cleaned(run)
    measured = {name: run.measured(name) for name in run.measures()}
    for result in run.results():
        record = _record(result, names, cleaned)
        record.update({name: values.get(result.key) for name, values in measured.items()})
        yield {name: encodable(value) if isinstance(value, str) else value for name, value in record.items()}


def _record(result: Result, names: Sequence[str], cleaned: bool) -> Record:
    return {
        "key": result.key,
        "outcome": result.outcome,
        "label": result.label,
        "label_name": _name(result.label, names),
        **_fields(result),
        **_uncleaned(result, cleaned),
        "text": result.original,
        "perturbed_text": result.perturbed,
        "output_before": result.output,
        "output_after": result.perturbed_output,
        "predicted_before": _predicted(result.probs, names),
        "predicted_after": _predicted(result.perturbed_probs, names),
        "p_true_before": _p_true(result.probs, result.label),
        "p_true_after": _p_true(result.perturbed_probs, result.label),
        "words": result.words,
        "changed_words": len(result.edits),
        "perturbed_share": result.share,
        "queries": result.queries if result.queries_known else None,
        "asked": result.asked if result.queries_known else None,
        "similarity": result.similarity,
        "edits": json.dumps([edit._asdict() for edit in result.edits], ensure_ascii=False),
        "note": result.note,
        "facts": json.dumps(dict(result.facts)),
    }


def _fields(result: Result) -> dict[str, str]:
    """Every field before the attack; a single one is `text` already."""
    if len(result.fields) == 1:
        return {}
    return {f"field_{name}" if name in _KINDS else name: content for name, content in result.fields}


def _uncleaned(result: Result, cleaned: bool) -> dict[str, str]:
    """The edited field as it came, in runs on cleaned data."""
    if not cleaned:
        return {}
    fields = result.uncleaned or result.fields
    return {"text_before_cleaning": fields[result.field][1]}


def _is_cleaned(run: RunFile) -> bool:
    return bool((run.header.get("environment") or {}).get("cleaning"))


def _columns(run: RunFile) -> dict[str, str]:
    first = next(run.results(), None)
    columns = dict(list(_KINDS.items())[:4])
    columns.update(dict.fromkeys(_fields(first) if first else (), "str"))
    columns.update(dict.fromkeys(_uncleaned(first, _is_cleaned(run)) if first else (), "str"))
    if run.writes:
        columns |= {"text": "str", "perturbed_text": "str", "output_before": "str", "output_after": "str"}
    return {**columns, **_KINDS, **dict.fromkeys(run.measures(), "float")}


def _name(label: int, names: Sequence[str]) -> str:
    if label < 0:
        return ""
    return names[label] if label < len(names) else str(label)


def _predicted(probs: Sequence[float], names: Sequence[str]) -> str:
    return _name(max(range(len(probs)), key=probs.__getitem__), names) if probs else ""


def _p_true(probs: Sequence[float], label: int) -> float | None:
    return probs[label] if 0 <= label < len(probs) else None


# -- formats -----------------------------------------------------------------------------------------------


Writer: TypeAlias = Callable[[Path, dict[str, str], Iterator[Record]], None]


def _writer(out: Path) -> Writer:
    known: dict[str, Writer] = {
        ".csv": _write_csv, ".jsonl": _write_jsonl, ".parquet": _write_parquet, "": _write_folder,
    }  # fmt: skip
    suffix = out.suffix.lower()
    if suffix not in known:
        raise RunFileError(
            f"{out}: cannot export to {suffix!r}",
            "end the name with .csv, .jsonl or .parquet, or give a folder for the datasets library",
        )
    if not suffix and (out.is_file() or (out.is_dir() and any(out.iterdir()) and not _is_export(out))):
        raise RunFileError(f"{out}: exists and is no exported folder", "choose another path")
    if suffix and out.is_dir():
        raise RunFileError(f"{out}: is a folder", "choose another path")
    return known[suffix]


def _is_export(folder: Path) -> bool:
    return (folder / "state.json").is_file() and (folder / "dataset_info.json").is_file()


def _write_csv(path: Path, columns: dict[str, str], rows: Iterator[Record]) -> None:
    """Nothing in it begins like a formula; see `unfooled.data.delimited` for how it is read back."""
    names = {name: f"'{name}" if FORMULA.match(name.lstrip("'")) else name for name in columns}
    safe = ({names.get(name, name): cell for name, cell in _neutral(row).items()} for row in rows)
    _write_raw_csv(path, dict.fromkeys([*names.values(), NEUTRALISED], ""), safe)


def _neutral(row: Record) -> Record:
    found = [name for name, cell in row.items() if isinstance(cell, str) and FORMULA.match(cell)]
    marked = {name: f"'{row[name]}" for name in found}
    return row | marked | {NEUTRALISED: json.dumps(found, ensure_ascii=False) if found else ""}


def _write_raw_csv(path: Path, columns: dict[str, str], rows: Iterator[Record]) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        # Every text in quotation marks: a carriage return outside of them would begin a new row.
        writer = csv.DictWriter(
            file,
            list(columns),
            restval="",
            extrasaction="ignore",
            lineterminator="\n",
            quoting=csv.QUOTE_NONNUMERIC,
        )
        writer.writeheader()
        writer.writerows(rows)


def _write_jsonl(path: Path, columns: dict[str, str], rows: Iterator[Record]) -> None:
    # Half a surrogate pair inside an edit becomes the escape that JSON has for it.
    with open(path, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
        for row in rows:
            row |= {name: json.loads(row[name]) for name in ("edits", "facts")}
            file.write(json.dumps({name: row.get(name) for name in columns}, ensure_ascii=False) + "\n")


def _write_parquet(path: Path, columns: dict[str, str], rows: Iterator[Record]) -> None:
    with libraries_of("data", "pyarrow", needed_for="exporting Parquet"):
        import pyarrow.parquet
    schema = _schema(columns)
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        for batch in _batches(schema, rows):
            writer.write_batch(batch)


def _write_folder(path: Path, columns: dict[str, str], rows: Iterator[Record]) -> None:
    with libraries_of("data", "datasets", "pyarrow", needed_for="exporting a folder of the datasets library"):
        import datasets
        import pyarrow
    schema = _schema(columns)
    stream = path.with_name("rows.arrow")
    with pyarrow.OSFile(str(stream), "wb") as file, pyarrow.ipc.new_stream(file, schema) as writer:
        for batch in _batches(schema, rows):
            writer.write_batch(batch)
    shown = datasets.is_progress_bar_enabled()
    datasets.disable_progress_bars()
    try:
        datasets.Dataset.from_file(str(stream)).save_to_disk(path)
    finally:
        if shown:
            datasets.enable_progress_bars()


def _schema(columns: dict[str, str]) -> Any:
    import pyarrow

    kinds = {"int": pyarrow.int64(), "float": pyarrow.float64(), "str": pyarrow.string()}
    return pyarrow.schema([(name, kinds[kind]) for name, kind in columns.items()])


def _batches(schema: Any, rows: Iterator[Record]) -> Iterator[Any]:
    import pyarrow

    while batch := list(islice(rows, _BATCH)):
        yield pyarrow.RecordBatch.from_pylist(batch, schema=schema)
