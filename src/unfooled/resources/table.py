"""A user's own table of replacements, from a JSON, CSV or plain text file.

    item    word                the word as it stands in the text
    answer  tuple[str, ...]     its replacements in the file's order; none for a word that is not listed

JSON: `{"word": ["replacement", …], …}`. CSV or TSV: the word, then one replacement per further column; a word
may have several lines. A first line `word,replacement` is a heading. A .txt file has the word and its
replacements with spaces between, as lists of misspellings are published. Words are found as written, else in
lower case.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from unfooled.errors import ResourceError
from unfooled.files import read_named

_FORMS = (
    'write JSON {"word": ["replacement", …]}, CSV lines: word,replacement, or .txt lines: word replacement'
)
_HEADINGS = {"replacement", "replacements", "synonym", "synonyms", "candidate", "candidates"}


class TableOracle:
    batch_size = 1 << 16

    def __init__(self, lists: Mapping[str, Sequence[str]]) -> None:
        self._lists = {word: tuple(dict.fromkeys(others)) for word, others in lists.items()}

    def __call__(self, items: Sequence[str], /) -> list[tuple[str, ...]]:
        lists = self._lists
        return [lists[word] if word in lists else lists.get(word.lower(), ()) for word in items]


def open_table(variant: str) -> TableOracle:
    return TableOracle(read_table(Path(variant).expanduser()))


def fingerprint(variant: str) -> str:
    """Of the content; a table that cannot be used is found out before a run begins."""
    lists = read_table(Path(variant).expanduser())
    return hashlib.sha256(json.dumps(lists, sort_keys=True).encode()).hexdigest()


def read_table(path: Path) -> dict[str, list[str]]:
    text = read_named(path, "the table", ResourceError, "check the path behind table:")
    lists = _from_json(path, text) if path.suffix.lower() == ".json" else _from_lines(path, text)
    if not any(lists.values()):
        raise ResourceError(f"the table {path} holds no replacements", _FORMS)
    return lists


def _from_json(path: Path, text: str) -> dict[str, list[str]]:
    try:
        content = json.loads(text)
    except ValueError as error:
        raise ResourceError(f"the table {path} is not JSON: {error}", _FORMS) from error
    if not isinstance(content, dict):
        raise ResourceError(f"the table {path} is no JSON object", _FORMS)
    lists: dict[str, list[str]] = {}
    for word, others in content.items():
        if isinstance(others, str):
            others = [others]
        if not isinstance(others, list) or not all(isinstance(near, str) and near.strip() for near in others):
            raise ResourceError(
                f"the table {path}: the replacements of {word!r} are no list of words", _FORMS
            )
        lists[word] = [near.strip() for near in others]
    return lists


def _from_lines(path: Path, text: str) -> dict[str, list[str]]:
    lists: dict[str, list[str]] = {}
    delimiter = {".tsv": "\t", ".txt": " "}.get(path.suffix.lower(), ",")
    lines = [" ".join(line.split()) for line in text.splitlines()] if delimiter == " " else text.splitlines()
    # Quotation marks in a plain list are part of a word.
    reader = csv.reader(
        lines, delimiter=delimiter, quoting=csv.QUOTE_NONE if delimiter == " " else csv.QUOTE_MINIMAL
    )
    try:
        for cells in reader:
            word, *others = [cell.strip() for cell in cells] or [""]
            others = [near for near in others if near]
            if not any(cells) or (
                reader.line_num == 1 and word.lower() == "word" and {*map(str.lower, others)} & _HEADINGS
            ):
                continue
            if not word or not others:
                raise ResourceError(
                    f"the table {path}, line {reader.line_num}: "
                    f"{'no word' if not word else f'no replacement for {word!r}'}",
                    _FORMS,
                )
            lists.setdefault(word, []).extend(others)
    except csv.Error as error:
        raise ResourceError(f"the table {path}, line {reader.line_num}: {error}", _FORMS) from error
    return lists
