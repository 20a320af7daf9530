"""Files that appear whole or not at all, and that are open to whom the user's umask lets read them.

Every file that is made beside its place and then moved there goes through here: a temporary file is private
to its owner, and would stay so under its last name.
"""

from __future__ import annotations

import atexit
import csv
import json
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from unfooled.errors import RunFileError, UserError

_PART = ".part"
FORMULA = re.compile(r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")  # how a cell begins that a spreadsheet may run


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A file beside `path` to write into, moved into its place if the body succeeds and removed if not."""
    part = _beside(path)
    with open(part, "xb") as file:
        mode = os.fstat(file.fileno()).st_mode & 0o777
    try:
        yield part
        # Some libraries put a file of their own here, which nobody else may read.
        if part.stat().st_mode & 0o777 != mode:
            part.chmod(mode)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> None:
    with whole_file(path) as part:
        part.write_text(text, encoding="utf-8")


def write_named(
    path: Path,
    text: str,
    error: type[UserError] = RunFileError,
    remedy: str = "free some space or choose another path",
) -> Path:
    """What a user has named, with the folders above it; what stands in its way is told with a remedy."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")  # a pipe, say: nothing can be moved into its place
        else:
            write_whole(path.resolve(), text)
    except OSError as reason:
        raise error(f"{path}: cannot be written ({reason.strerror or reason})", remedy) from reason
    return path


def read_named(path: Path, what: str, error: type[UserError], remedy: str) -> str:
    """The text of a file that a user has named; `what` it should be is told where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as reason:
        raise error(f"{path}: {what} cannot be read ({reason.strerror})", remedy) from reason
    except UnicodeDecodeError as reason:
        raise error(f"{path}: {what} is not UTF-8 ({reason})", "save it as UTF-8") from reason


def read_object(path: Path, error: type[UserError], other: str, remedy: str) -> dict[str, Any]:
    """The JSON object in a file; `other` is said of a file that holds something else."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as reason:
        raise error(f"{path} is not JSON: {reason}", remedy) from reason
    if not isinstance(content, dict):
        raise error(f"{path} {other}", remedy)
    return content


def write_json(path: Path, content: Any, *, indent: int = 2) -> None:
    write_whole(path, json.dumps(content, indent=indent, ensure_ascii=False) + "\n")


def write_table(path: Path, header: Sequence[str], rows: Iterable[Iterable[Any]]) -> None:
    """A CSV to look at: a text that a spreadsheet would run as a formula gets an apostrophe before it."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows([_not_run(value) for value in row] for row in rows)


def _not_run(value: Any) -> Any:
    if not isinstance(value, str) or not FORMULA.match(value):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value  # a number below zero


@contextmanager
def scratch_folder(parent: Path, name: str) -> Iterator[Path]:
    """A folder in `parent` that is gone afterwards; what is made in it can be moved into its place."""
    parent.mkdir(parents=True, exist_ok=True)
    folder = _beside(parent / name)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def process_folder(name: str) -> Path:
    """A folder that is gone when this process ends."""
    folder = tempfile.mkdtemp(prefix=f"unfooled-{name}-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def put_in_place(made: Path, path: Path) -> None:
    """A file or folder that is complete to where it belongs, in the place of what lies there."""
    if path.is_dir():
        shutil.rmtree(path)
    os.replace(made, path)


def put_first(made: Path, path: Path, proof: Path) -> None:
    """A complete folder to where it belongs, unless another process was first with the same content.

    `proof` is there once `path` is complete.
    """
    try:
        os.rename(made, path)
    except OSError:
        if not proof.exists():
            raise


def follow_umask(folder: Path) -> None:
    """Give every file of a folder that a library wrote the mode that a new file has here."""
    probe = _beside(folder / "mode")
    with open(probe, "xb") as file:
        mode = os.fstat(file.fileno()).st_mode & 0o777
    probe.unlink()
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.chmod(mode)


def move_files(source: Path, target: Path, *, last: Collection[str] = ()) -> None:
    """All files of one folder into another; those in `last`, which make it what it is, at the end."""
    follow_umask(source)
    for path in sorted(source.iterdir(), key=lambda file: file.name in last):
        os.replace(path, target / path.name)
    source.rmdir()


def remove_parts(folder: Path) -> None:
    """What a process that was killed while it wrote has left in a folder."""
    for path in folder.glob(f".*{_PART}"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    # The name's end would make a long name too long for the file system.
    return path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}{_PART}")


def check_free(out: Path, kind: str, what: str, *, force: bool) -> None:
    """A file of this kind may be replaced by a new one; any other file only when asked."""
    if out.is_dir():
        raise UserError(f"{out} is a folder", "name a file, such as words.json")
    if not out.exists() or force:
        return
    with out.open("rb") as file:
        ours = kind.encode() in file.read(200)
    if not ours:
        raise UserError(f"{out} exists and is no {what}", "choose another --out, or replace it with --force")
