"""Making sense of what a function or an endpoint answers: scores, probabilities, label names, dictionaries.

One answer per text, in any of these forms:

    [0.1, 0.9]                                            a score per class, in the order of the labels
    0.9                                                   of the second of two classes
    {"negative": 0.1, "positive": 0.9}                    by name
    [{"label": "positive", "score": 0.9}, ...]            by name, in any order
    "positive" or 1                                       a decided label: hard, no scores
"""

from __future__ import annotations

import numbers
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from unfooled.core.victim import Probabilities, one_hot, sigmoid_pair, softmax
from unfooled.core.victim_oracle import ScoreRange, require_one_probability
from unfooled.errors import VictimError
from unfooled.victims.labels import is_numbered

_FORMS = "answer a score per class, a score by label name, or a label, one answer per text"


class Answers(NamedTuple):
    scores: Probabilities
    hard: bool  # decided labels, turned into ones and zeros
    raw: ScoreRange = ScoreRange()  # of what a softmax made probabilities of


def as_rows(raw: Any) -> list[Any]:
    """One entry per text. Arrays and tensors become plain lists; NumPy scalars keep their kind."""
    if hasattr(raw, "detach"):
        raw = raw.detach().cpu().numpy()
    if isinstance(raw, np.ndarray):
        if raw.ndim == 2 and raw.shape[1] == 1:
            raw = raw[:, 0]
        return list(raw.tolist())
    if hasattr(raw, "tolist") and not isinstance(raw, (str, bytes)):
        raw = raw.tolist()
    if isinstance(raw, (str, bytes, Mapping)) or not isinstance(raw, Sequence):
        raise VictimError(f"the answer is a {type(raw).__name__}, not a list with one entry per text", _FORMS)
    return [row.tolist() if hasattr(row, "tolist") else row for row in raw]


def interpret(raw: Any, count: int, labels: Sequence[str], *, logits: bool = False) -> Answers:
    """`raw` as a matrix [count, classes]. `logits` turns scores into probabilities."""
    array = _matrix(raw, count, len(labels))
    if array is not None:
        return _soft(array, logits)
    rows = as_rows(raw)
    if len(rows) != count:
        raise VictimError(f"{count} texts were sent, but {len(rows)} answers came back", _FORMS)
    if not rows:
        return Answers(np.zeros((0, len(labels))), hard=False)
    # All of them: a server may write the probability 1.0 as 1.
    real = all(isinstance(row, numbers.Real) for row in rows)
    decided = all(isinstance(row, (str, numbers.Integral)) for row in rows)
    if decided and not (real and logits and len(labels) == 2):  # a margin may be a whole number, too
        return Answers(one_hot([_class_of(row, labels) for row in rows], len(labels)), hard=True)
    if real:
        return _binary(rows, labels, logits)
    matrix = np.array([_scores_of(row, labels) for row in rows], dtype=np.float64)
    return _soft(matrix, logits)


def _soft(matrix: Probabilities, logits: bool) -> Answers:
    return Answers(softmax(matrix), False, ScoreRange.of(matrix)) if logits else Answers(matrix, hard=False)


def find_labels(raw: Any) -> tuple[str, ...]:
    """The labels that one answer lets us see; numbers where it holds no names."""
    rows = as_rows(raw)
    row = rows[0] if rows else None
    if isinstance(row, (str, numbers.Integral)):
        raise VictimError(
            f"the victim answers decided labels such as {_brief(row)}, so its classes cannot be seen",
            "name them all, such as --labels negative,positive",
        )
    if isinstance(row, numbers.Real):
        return ("0", "1")
    if not isinstance(row, (Mapping, Sequence)) or not row:
        raise _unreadable(row)
    if isinstance(row, Mapping) or isinstance(row[0], Mapping):
        # Sorted: such answers come in the order of their scores, which differs from text to text.
        names = sorted(_by_name(row))
        if any(not name.isprintable() for name in names):
            raise VictimError(f"an answer names classes that cannot be shown: {shown_names(names)}", _FORMS)
        numbered = sorted(names, key=len)
        return tuple(numbered if is_numbered(numbered) else names)
    return tuple(str(index) for index in range(len(row)))


def _matrix(raw: Any, count: int, classes: int) -> Probabilities | None:
    """The common case, without a detour through lists."""
    if isinstance(raw, np.ndarray) and raw.shape == (count, classes) and raw.dtype.kind == "f":
        return np.asarray(raw, dtype=np.float64)
    return None


def _class_of(row: Any, labels: Sequence[str]) -> int:
    if isinstance(row, str):
        if row in labels:
            return list(labels).index(row)
        raise VictimError(
            f"the victim answered the label {row[:80]!r}; the labels are {', '.join(labels)}",
            "name all labels of the victim, such as --labels negative,positive",
        )
    if isinstance(row, numbers.Integral) and 0 <= int(row) < len(labels):
        return int(row)
    raise VictimError(f"{_brief(row)} is not the number of one of the {len(labels)} classes", _FORMS)


def _binary(rows: list[Any], labels: Sequence[str], logits: bool) -> Answers:
    if len(labels) != 2:
        raise VictimError(
            f"the victim answers one number per text, but there are {len(labels)} labels", _FORMS
        )
    second = np.array([_number(row) for row in rows], dtype=np.float64)
    if logits:
        return Answers(sigmoid_pair(second), False, ScoreRange.of(second))
    require_one_probability([number for number in second.tolist() if np.isfinite(number)] or [0.0])
    return Answers(np.stack([1.0 - second, second], axis=1), hard=False)


def _scores_of(row: Any, labels: Sequence[str]) -> list[float]:
    if isinstance(row, Mapping) or (isinstance(row, Sequence) and row and isinstance(row[0], Mapping)):
        by_name = _by_name(row)
        missing = [label for label in labels if label not in by_name]
        if missing:
            raise VictimError(
                f"no score for {', '.join(missing[:10])}: the answer names {shown_names(by_name)}",
                "let the victim answer the scores of all classes, and give its own label names",
            )
        return [by_name[label] for label in labels]
    if isinstance(row, Sequence) and not isinstance(row, str):
        if len(row) != len(labels):
            raise VictimError(
                f"the answer has {len(row)} scores per text, but there are {len(labels)} labels "
                f"({', '.join(labels)})",
                "name one label per score",
            )
        return [_number(score, row) for score in row]
    raise _unreadable(row)


def _by_name(row: Any) -> dict[str, float]:
    try:
        if isinstance(row, Mapping) and set(row) >= {"label", "score"}:
            row = [row]
        pairs = (
            row.items() if isinstance(row, Mapping) else [(entry["label"], entry["score"]) for entry in row]
        )
        found = {str(name): _number(score, row) for name, score in pairs}
    except (KeyError, TypeError, ValueError):
        raise _unreadable(row) from None
    if len(found) != len(pairs):
        raise VictimError(f"an answer names a class twice: {shown_names(found)}", _FORMS)
    return found


def _number(score: Any, row: Any = None) -> float:
    try:
        return float(score)
    except OverflowError:
        return float("inf")  # a whole number of hundreds of digits
    except (TypeError, ValueError):
        raise _unreadable(score if row is None else row) from None


def _unreadable(row: Any) -> VictimError:
    return VictimError(f"an answer reads {(row if isinstance(row, str) else _brief(row))[:80]!r}", _FORMS)


def _brief(row: Any) -> str:
    """The start of a value that may be as large and as deep as whoever sent it likes."""
    return reprlib.repr(row)


def shown_names(names: Iterable[str]) -> str:
    """Some of the names that an answer brought, none long, with nothing in them that a terminal obeys."""
    listed = list(names)
    shown = [repr(str(name)[:40])[1:-1][:60] for name in listed[:10]]
    return ", ".join(shown) + (f" and {len(listed) - 10:,} more" if len(listed) > 10 else "")
