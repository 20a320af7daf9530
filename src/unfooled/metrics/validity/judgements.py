"""What people said of altered texts, from files: what the judge of validity is fitted on.

A file has one JSON object per line (`.jsonl`, `.jsonl.gz`). Its fields tell what was asked:

    before, after, fluent, label_kept      one reader's verdict on a pair
    text, before, said_altered, judgements how many of several readers said "altered by a computer"
    before, after, label_before, label_after
                                           a pair that somebody edited until the label was another
    before, after, answers                 on a scale of agreement: the meaning is kept
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import lru_cache
from pathlib import Path
from typing import Any

from unfooled.errors import DataError

_REMEDY = "see docs/how-to/judge.md for the fields of a line"
_AGREEMENT = {
    "strongly disagree": 0.0,
    "disagree": 0.25,
    "not sure": 0.5,
    "agree": 0.75,
    "strongly agree": 1.0,
}
_SPACES = re.compile(r"\s+")
_BREAK = re.compile(r"<br\s*/?>")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')]*\s+")
_MOST_SENTENCES = 3  # edited in a text whose sentences are looked at one by one
_SHORTEST, _LONGEST = 4, 40  # words of a sentence


@dataclass(frozen=True, slots=True)
class ReaderJudgement:
    """Verdicts on one pair, each a share of the readers between 0 and 1; None where nobody was asked."""

    before: str
    after: str
    source: str  # name of the file
    readers: int = 1
    said_altered: float | None = None
    fluent: float | None = None
    label_kept: float | None = None
    original: str = ""  # of a stretch that was cut out of a longer pair: the whole text before

    @property
    def valid(self) -> float | None:
        """Label kept and fluent, where one reader was asked both."""
        if self.fluent is None or self.label_kept is None:
            return None
        return min(self.fluent, self.label_kept)

    @property
    def altered(self) -> bool:
        """Whether anything differs beyond spaces, punctuation and casing."""
        return _bare(self.before) != _bare(self.after)

    @property
    def group(self) -> str:
        """Pairs of one original stay together, so that nothing is tested on what it was fitted on."""
        return _bare(self.original or self.before)

    @property
    def edited_label(self) -> bool:
        """A pair that somebody edited until its label was another, rather than one that a reader judged."""
        return self.label_kept == 0.0 and self.fluent is None and self.said_altered is None


def edited_sentences(judgement: ReaderJudgement) -> list[ReaderJudgement]:
    """Of a long text that few sentences turned round, these sentences as pairs of their own.

    Attacks on single sentences are to be told from edits of single sentences: next to whole reviews their
    length would be what tells them apart. Not each of two or three sentences need turn the label by itself.
    """
    own, new = (_sentences(text) for text in (judgement.before, judgement.after))
    stretches = [
        place
        for place in SequenceMatcher(None, own, new, autojunk=False).get_opcodes()
        if place[0] != "equal"
    ]
    if any(end - start != other_end - other for _, start, end, other, other_end in stretches):
        return []
    pairs = [
        (own[start + i], new[other + i]) for _, start, end, other, _ in stretches for i in range(end - start)
    ]
    if not 0 < len(pairs) <= _MOST_SENTENCES:
        return []
    return [
        replace(
            judgement,
            before=before,
            after=after,
            source=f"{judgement.source}, sentences",
            original=judgement.before,
        )
        for before, after in pairs
        if all(_SHORTEST <= len(text.split()) <= _LONGEST for text in (before, after)) and len(own) > 1
    ]


def _sentences(text: str) -> list[str]:
    return [part for part in _SENTENCE_END.split(_SPACES.sub(" ", _BREAK.sub(" ", text)).strip()) if part]


def read_judgements(paths: Sequence[Path]) -> list[ReaderJudgement]:
    """Of files, and of all such files in folders; texts whose original is not known are left out."""
    found: list[ReaderJudgement] = []
    for path in paths:
        files = sorted(path.glob("*.jsonl*")) if path.is_dir() else [path]
        if not files:
            raise DataError(f"{path}: there is no .jsonl file in it", _REMEDY)
        for file in files:
            found += _read(file)
    return found


def _read(path: Path) -> Iterator[ReaderJudgement]:
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    judgement = _parse(json.loads(line), path.name.partition(".")[0])
                except (
                    ArithmeticError,
                    ValueError,
                    TypeError,
                    KeyError,
                    AttributeError,
                    RecursionError,
                ) as error:
                    raise DataError(
                        f"{path}, line {number}: this is no judgement ({type(error).__name__}: {error})",
                        _REMEDY,
                    ) from error
                if judgement is not None:
                    yield judgement
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read ({error})", "check the path") from error


def _parse(given: dict[str, Any], source: str) -> ReaderJudgement | None:
    before = given.get("before")
    if before is None:
        return None
    after = given["text"] if "text" in given else given["after"]
    if not isinstance(before, str) or not isinstance(after, str):
        raise TypeError("before and after are texts")
    pair = (before, after, source)
    if "said_altered" in given:
        readers = int(given["judgements"])
        return ReaderJudgement(*pair, readers=readers, said_altered=_share(given["said_altered"] / readers))
    if "fluent" in given or "label_kept" in given:
        return ReaderJudgement(
            *pair,
            readers=int(given.get("readers", 1)),
            fluent=_optional(given, "fluent"),
            label_kept=_optional(given, "label_kept"),
        )
    if "label_after" in given:
        return ReaderJudgement(*pair, label_kept=float(given["label_before"] == given["label_after"]))
    answers = [_AGREEMENT[str(answer).lower()] for answer in given["answers"]]
    # Agreement that the meaning is kept is agreement that the label is.
    kept = sum(answer > 0.5 for answer in answers) / len(answers)
    return ReaderJudgement(*pair, readers=len(answers), label_kept=kept)


def _optional(given: dict[str, Any], name: str) -> float | None:
    return None if given.get(name) is None else _share(float(given[name]))


def _share(value: float) -> float:
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{value} is no share")
    return value


@lru_cache(maxsize=8192)  # asked for the same texts in every fold
def _bare(text: str) -> str:
    words = "".join(char if char.isalnum() or char == "'" else " " for char in text.lower())
    return _SPACES.sub(" ", words).strip()
