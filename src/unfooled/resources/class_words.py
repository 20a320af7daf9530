"""Which words speak for which class: the counts of a naive Bayes model, in a file that people can read.

`unfooled words` writes it from training data; attacks read their word lists from it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unfooled.errors import ResourceError, UserError
from unfooled.files import read_named, write_named
from unfooled.text import WORD

KIND = "unfooled class words"
COMMAND = "unfooled words --data TRAINING_DATA --out {}"


@dataclass(frozen=True, eq=False)
class ClassWords:
    """How often each word occurs in the texts of each class, and what a multinomial naive Bayes makes of it.

    The probability of a word in a class has one added to every count (Laplace): (count + 1) / (tokens of the
    class + distinct words). A word's sway to a class is its probability there divided by the mean of its
    probabilities in the other classes; with two classes that is the plain ratio.
    """

    labels: tuple[str, ...]
    words: tuple[str, ...]  # in lexicographic order
    counts: NDArray[np.int64]  # [words, classes]
    data: str = ""  # name of the data
    fingerprint: str = ""  # of the data

    @classmethod
    def of(
        cls,
        labels: Sequence[str],
        counts: Sequence[Mapping[str, int]],
        *,
        data: str = "",
        fingerprint: str = "",
    ) -> ClassWords:
        """From one mapping of words to counts per class."""
        words = tuple(sorted(set().union(*counts)))
        table = np.array([[count.get(word, 0) for count in counts] for word in words], dtype=np.int64)
        return cls(tuple(labels), words, table.reshape(len(words), len(labels)), data, fingerprint)

    def renamed(self, names: Mapping[str, str]) -> ClassWords:
        """The same counts with other names of the classes: the new by the old."""
        labels = list(self.labels)
        for old, new in names.items():
            if old not in self.labels or not new:
                raise UserError(
                    f"--label-map {f'{old}={new}'!r} renames no class",
                    f"write old=new; classes: {', '.join(self.labels)}",
                )
            labels[self.labels.index(old)] = new
        if len(set(labels)) < len(labels):
            raise UserError(f"two classes would be called the same: {', '.join(labels)}", "check --label-map")
        return replace(self, labels=tuple(labels))

    @cached_property
    def sways(self) -> NDArray[np.float64]:
        """[words + 1, classes]; the last row is that of any word which does not occur."""
        counts = np.vstack([self.counts, np.zeros((1, len(self.labels)), dtype=np.int64)])
        chances = (counts + 1.0) / (self.counts.sum(axis=0) + len(self.words))
        others = (chances.sum(axis=1, keepdims=True) - chances) / max(1, len(self.labels) - 1)
        # Rounded to twelve digits: equal counts are equal, whatever the sum above does to the last bit.
        ratios = chances / others
        scale = 10.0 ** (11 - np.floor(np.log10(ratios)))
        return np.asarray(np.round(ratios * scale) / scale)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {word: place for place, word in enumerate(self.words)}

    def sway(self, word: str, label: int) -> float:
        return float(self.sways[self._places.get(word.lower(), -1), label])

    def strongest(self, label: int, most: int) -> list[tuple[str, float]]:
        """The words with the strongest sway to the class; ties in lexicographic order."""
        column = self.sways[:-1, label]
        order = np.argsort(-column, kind="stable")[:most]
        return [(self.words[place], float(column[place])) for place in order]

    def frequent(self) -> tuple[str, ...]:
        """All words, the most frequent first; ties in lexicographic order."""
        order = np.argsort(-self.counts.sum(axis=1), kind="stable")
        return tuple(self.words[place] for place in order)

    def write(self, path: Path, *, top: int = 5) -> None:
        """One line per word; `top` words of each class stand at the beginning, for people."""
        shown = {
            label: {word: round(ratio, 4) for word, ratio in self.strongest(number, top)}
            for number, label in enumerate(self.labels)
        }
        head = {
            "kind": KIND,
            "labels": list(self.labels),
            "data": self.data,
            "fingerprint": self.fingerprint,
            "tokens": self.counts.sum(axis=0).tolist(),
            "strongest": shown,
        }
        lines = [
            f"{json.dumps(word, ensure_ascii=False)}: {json.dumps(row)}"
            for word, row in zip(self.words, self.counts.tolist(), strict=True)
        ]
        text = json.dumps(head, indent=1, ensure_ascii=False).removesuffix("\n}")
        text += ',\n "counts": {\n  ' + ",\n  ".join(lines) + "\n }\n}\n"
        write_named(path, text, ResourceError, "choose another --out")

    @classmethod
    def read(cls, path: str | Path) -> ClassWords:
        file = Path(path).expanduser().resolve()
        try:
            return _read(file, file.stat().st_mtime_ns)
        except OSError as error:
            raise ResourceError(
                f"{path}: the word file cannot be read ({error.strerror})",
                f"make it: {COMMAND.format(path)}",
            ) from error


@lru_cache(maxsize=4)
def _read(path: Path, _changed: int) -> ClassWords:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise _unusable(path, f"is not JSON ({error})") from error
    if not isinstance(content, dict) or content.get("kind") != KIND:
        raise _unusable(path, "was not written by `unfooled words`")
    labels: Any = content.get("labels")
    counts: Any = content.get("counts")
    if not (_strings(labels) and len(labels) > 1 and isinstance(counts, dict) and counts):
        raise _unusable(path, "names no classes or no words")
    words = sorted(counts)
    for word in words:
        row = counts[word]
        whole = isinstance(row, list) and all(type(count) is int and count >= 0 for count in row)
        if not whole or len(row) != len(labels):
            raise _unusable(path, f"has no {len(labels)} counts for the word {word!r}")
    table = np.array([counts[word] for word in words], dtype=np.int64)
    data, fingerprint = str(content.get("data", "")), str(content.get("fingerprint", ""))
    return ClassWords(tuple(labels), tuple(words), table, data, fingerprint)


def _strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _unusable(path: Path, why: str) -> ResourceError:
    return ResourceError(f"{path} {why}", f"make it again: {COMMAND.format(path)}")


def read_word_list(path: str | Path) -> tuple[str, ...]:
    """The words of a text file, one per line, or of a file of class words (the most frequent first).

    What an attack would not see as one word (phrases, punctuation) is left out; so are repetitions.
    """
    file = Path(path).expanduser()
    if file.suffix == ".json":
        lines: Sequence[str] = ClassWords.read(file).frequent()
    else:
        text = read_named(file, "the word list", ResourceError, "give a file of one word per line")
        lines = text.splitlines()
    words = tuple(dict.fromkeys(line.strip() for line in lines if WORD.fullmatch(line.strip())))
    if not words:
        raise ResourceError(f"{path}: the word list holds no word", "write one word per line")
    return words
