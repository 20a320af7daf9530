"""Join the parts of a run: the file that comes out is that of a run that was never cut."""

from __future__ import annotations

import contextlib
import heapq
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

from unfooled.errors import RunFileError
from unfooled.files import put_in_place, scratch_folder
from unfooled.runs.attack import Run
from unfooled.runs.file import FILE, REMARK, RunFile
from unfooled.runs.identity import differences
from unfooled.runs.lock import Lock
from unfooled.runs.looks import REMARK as LOOKS


@dataclass(frozen=True)
class Merged:
    """A run made of parts, and a sentence for each part that is not here or not finished."""

    run: Run
    parts: int
    rows: int
    errors: int
    missing: tuple[str, ...]


def merge(parts: Sequence[str | Path], out: str | Path, *, force: bool = False) -> Merged:
    """Join the run files that `attack(..., shard="1/2")` and the like wrote into one in the folder `out`.

    Parts of other runs and parts with the same rows are refused. What is missing is told, not refused: the
    joined run knows that it is not complete, and the parts can be joined again with `force`.

    Example:

        >>> half = unfooled.attack("fake", "reviews.csv", "deepwordbug", out="half-1", shard="1/2")
        >>> half = unfooled.attack("fake", "reviews.csv", "deepwordbug", out="half-2", shard="2/2")
        >>> unfooled.merge(["half-1", "half-2"], "whole").rows
        6
    """
    folder = Path(out).expanduser()
    with ExitStack() as stack:
        files = [stack.enter_context(closing(RunFile.read(part))) for part in parts]
        if not files:
            raise RunFileError("there is nothing to join", "give the folders of the parts")
        headers = [file.header for file in files]
        cut = _require_one_cut(files, headers)
        target = folder / FILE
        if os.path.lexists(target) and any(_is_same(target, file.path) for file in files):
            raise RunFileError(f"{target}: is one of the parts", "choose another --out")
        if os.path.lexists(target) and not force:
            raise RunFileError(
                f"{target}: exists already", "choose another --out, or replace it with --force"
            )
        missing = tuple(_missing(files, headers, cut["parts"]))
        try:
            with scratch_folder(folder.parent, "merge") as scratch:
                with RunFile.open(scratch, _header(headers, cut)) as joined:
                    _copy(files, joined)
                    counts = joined.count()
                folder.mkdir(parents=True, exist_ok=True)
                _put_in_place(scratch / FILE, target)
        except OSError as error:
            raise RunFileError(
                f"{folder}: cannot be written ({error.strerror or error})",
                "free some space or choose another --out",
            ) from error
    return Merged(Run(folder), len(files), sum(counts.values()), counts.get("error", 0), missing)


def _require_one_cut(files: Sequence[RunFile], headers: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How all of them were cut; an error where they are of different runs, or no parts at all."""
    cuts = [_shard(header) for header in headers]
    for file, header, cut in zip(files, headers, cuts, strict=True):
        if cut is None:
            raise RunFileError(
                f"{file.path}: is no part of a run",
                "join what `unfooled attack --shard 1/2` and the like wrote",
            )
        if changed := differences(headers[0].get("identity"), header.get("identity")):
            raise RunFileError(
                f"{file.path}: is of another run than {files[0].path}\n    " + "\n    ".join(changed),
                "join parts of one command, which differ only in --shard and --out",
            )
        first = cuts[0]
        assert first is not None
        if (cut["parts"], cut["rows"]) != (first["parts"], first["rows"]):
            raise RunFileError(
                f"{file.path}: is one of {cut['parts']} parts of {cut['rows']:,} rows, "
                f"{files[0].path} one of {first['parts']} of {first['rows']:,}",
                "join parts that were cut alike",
            )
    assert cuts[0] is not None
    return cuts[0]


def _shard(header: Mapping[str, Any]) -> dict[str, int] | None:
    found = (header.get("environment") or {}).get("shard")
    names = ("part", "parts", "rows")
    if not isinstance(found, dict) or any(type(found.get(name)) is not int for name in names):
        return None
    return {name: found[name] for name in names}


def _missing(files: Sequence[RunFile], headers: Sequence[Mapping[str, Any]], parts: int) -> Iterator[str]:
    here = {(_shard(header) or {})["part"]: file for header, file in zip(headers, files, strict=True)}
    absent = [part for part in range(1, parts + 1) if part not in here]
    if absent:
        listed = ", ".join(map(str, absent[:20])) + (" and more" if len(absent) > 20 else "")
        word = "part" if len(absent) == 1 else "parts"
        yield f"{word} {listed} of {parts} {'is' if len(absent) == 1 else 'are'} not here"
    for part, file in sorted(here.items()):
        if lacks := file.missing():
            yield f"part {part} ({file.path.parent}) lacks {lacks:,} of its rows"


def _header(headers: Sequence[Mapping[str, Any]], cut: Mapping[str, int]) -> dict[str, Any]:
    """That of the first part, as if it had never been cut."""
    first = headers[0]
    environment = {name: value for name, value in first["environment"].items() if name != "shard"}
    available = environment.get("available")
    shortened = available is not None and cut["rows"] < available
    environment |= {"asked": cut["rows"], "shortened": shortened, "merged": len(headers)}
    return {"identity": first.get("identity"), "environment": environment, **_remarks(headers)}


def _remarks(headers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What was found out about the parts: what is said of all of them, and a finding about any of them, such
    as that the model remembers. How often a part was looked at says nothing about the whole."""
    names = {name for header in headers for name in header if name.startswith(REMARK)} - {REMARK + LOOKS}
    kept = {}
    for name in sorted(names):
        said = [header.get(name) for header in headers]
        findings = [value for value in said if isinstance(value, str) and value]
        if all(value == said[0] for value in said) or findings:
            kept[name] = findings[0] if findings else said[0]
    return kept


def _copy(files: Sequence[RunFile], joined: RunFile) -> None:
    """All rows in the order of their keys, which is how a file is filled fastest; then what was counted."""
    last = last_file = None
    numbered = (zip(file.stored(), repeat(number)) for number, file in enumerate(files))
    for row, number in heapq.merge(*numbered, key=lambda pair: pair[0][0]):
        if row[0] == last:
            assert last_file is not None
            raise RunFileError(
                f"{files[number].path}: holds row {row[0]}, and so does {files[last_file].path}",
                "give each part once",
            )
        joined.add_stored(row)
        last, last_file = row[0], number
    joined.flush()
    for file in files:
        joined.add_counters(file.counters())
        for name in file.measures():
            joined.add_measures([(name, key, value) for key, value in file.measured(name).items()])


def _put_in_place(made: Path, target: Path) -> None:
    """Over a finished run, never under the hands of somebody who writes it."""
    lock = Lock.take(target)
    try:
        for suffix in ("-wal", "-shm", "-journal"):  # of a run that was killed: they would be read with ours
            with contextlib.suppress(FileNotFoundError):
                Path(f"{target}{suffix}").unlink()
        put_in_place(made, target)
    finally:
        lock.release()


def _is_same(one: Path, other: Path) -> bool:
    with contextlib.suppress(OSError):
        return os.path.samefile(one, other)
    return False
