"""Whether the files of a resource are still those that came in.

`checksums.json` in a resource's folder holds the size, time of change and sha256 of every other file. A file
with the same size and time is taken as the same; only one that differs in these is read and compared. A copy
of the cache has other times: what was found equal is noted in `.checked/` beside the folders, so that it is
read once.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from unfooled.files import write_whole

CHECKSUMS = "checksums.json"
_LATER = ("record.json", CHECKSUMS)  # written after the files that are listed
_NOTED = ".checked"

Listed: TypeAlias = dict[str, tuple[int, int, str]]  # file → size, time of change in nanoseconds, sha256


def write_checksums(folder: Path) -> None:
    _write(folder / CHECKSUMS, {name: _described(path) for name, path in _files(folder)})


def record_once(folder: Path) -> bool:
    """Whether the files, which came in before checksums were written, were listed now, as they are."""
    if (folder / CHECKSUMS).exists():
        return False
    with contextlib.suppress(OSError):  # a cache that cannot be written to: told each time
        write_checksums(folder)
    return True


def add_checksum(folder: Path, name: str) -> None:
    """List one more file, made from the others on first use. Makers at the same time make the same bytes."""
    listed = _read(folder / CHECKSUMS)
    if listed is not None:
        _write(folder / CHECKSUMS, listed | {name: _described(folder / name)})


def changed_file(folder: Path) -> str:
    """The first listed file that is gone or another, and how; empty where all is as it was."""
    listed = _read(folder / CHECKSUMS)
    if listed is None:
        return f"{CHECKSUMS} cannot be read" if (folder / CHECKSUMS).exists() else ""
    found = dict(_files(folder))
    for name in listed.keys() - found.keys():
        return f"{name} is gone"
    note = folder.parent / _NOTED / f"{folder.name}.json"
    noted = _read(note) or {}
    compared = False
    for name, (size, changed, sha256) in listed.items():
        status = found[name].stat()
        now = (status.st_size, status.st_mtime_ns, sha256)
        if now in ((size, changed, sha256), noted.get(name)):
            continue
        if status.st_size != size or _sha256(found[name]) != sha256:
            return f"{name} was changed"
        noted[name] = now
        compared = True
    if compared:
        _remember(note, noted)
    return ""


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name not in _LATER and path.is_file():
            yield name, path


def _read(path: Path) -> Listed | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return {
            str(name): (int(size), int(changed), str(sha256))
            for name, (size, changed, sha256) in content.items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def _remember(note: Path, noted: Listed) -> None:
    """A cache that cannot be written to is read again next time."""
    with contextlib.suppress(OSError):
        note.parent.mkdir(exist_ok=True)
        _write(note, noted)


def _write(path: Path, listed: Listed) -> None:
    write_whole(path, json.dumps(listed, indent=0) + "\n")


def _described(path: Path) -> tuple[int, int, str]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns, _sha256(path)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
