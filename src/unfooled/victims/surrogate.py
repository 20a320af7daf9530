"""A cheap stand-in for a victim: a linear model on words, fitted on the victim's own answers.

It guesses what the victim would say, so that an attack asks the victim about its best guesses only; what it
says never becomes a result. A ridge regression of the centred log-probabilities on the words of a text, on
pairs of neighbouring words and on beginnings of words. Answers to a text and to its edited copies share an
offset: what counts is what an edit changes. The strength of the ridge is the one that errs least on each
answer when it is left out. Kept as a JSON file, which holds no code.

As an oracle, `surrogate:PATH`: item a text, answer the probabilities. PATH is such a file, or any model that
`load_victim` knows: a smaller copy of the victim, or another model of the same task.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unfooled.core.program import AsyncOracle, Oracle
from unfooled.core.victim import TextValue
from unfooled.core.victim_oracle import oracle_for
from unfooled.errors import ResourceError
from unfooled.files import read_object, write_json
from unfooled.text import WORD

Floats = NDArray[np.float64]
FORMAT = "unfooled-surrogate-1"
LEAST = 1e-6  # the victim's answers are rounded to this
FIT_AGAIN = "remove it, so that it is fitted again, or give another --surrogate"
_BEGINNING = 5  # letters that the words of a family share
_LESS = 0.5  # what a pair or a beginning weighs beside a word
_OFFSET = 4.0  # variance of a text's own offset, where a word's weight has 1
_COMMON_OFFSET = 10.0
_RIDGES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
_DIGITS = 5
_COMMON = 64  # texts from which on a feature is common: few are, and they make up most of the pairs


def log_odds(probs: Floats) -> Floats:
    """Log-probabilities, centred over the classes; a certainty is as certain as six decimals can say."""
    logs = np.log(np.clip(probs, LEAST, 1.0))
    return np.asarray(logs - logs.mean(axis=1, keepdims=True))


def features_of(value: TextValue) -> Iterator[tuple[str, float]]:
    """What the model sees of a text, each with what it weighs."""
    parts = (value,) if isinstance(value, str) else value
    for place, part in enumerate(parts):
        prefix = f"{place}|" if len(parts) > 1 else ""
        words = WORD.findall(part.lower())
        for word in words:
            yield prefix + word, 1.0
            if len(word) > _BEGINNING:
                yield f"{prefix}{word[:_BEGINNING]}*", _LESS
        for first, second in pairwise(words):
            yield f"{prefix}{first} {second}", _LESS


@dataclass(frozen=True)
class LinearSurrogate:
    """`weights` has a row per feature and a column per class; `facts` say what it was fitted on."""

    features: Mapping[str, int]
    weights: Floats
    offset: Floats
    facts: dict[str, Any] = field(default_factory=dict)
    batch_size = 4096

    def __call__(self, items: Sequence[Hashable], /) -> list[Floats]:
        return list(self.predict(items))  # type: ignore[arg-type]

    def predict(self, texts: Sequence[TextValue]) -> Floats:
        rows = np.tile(self.offset, (len(texts), 1))
        for number, text in enumerate(texts):
            known = [(self.features[name], by) for name, by in features_of(text) if name in self.features]
            if known:
                places, by = zip(*known, strict=True)
                rows[number] += np.asarray(by) @ self.weights[list(places)]
        odds = np.exp(rows - rows.max(axis=1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))

    def save(self, path: Path) -> None:
        table = {name: self.weights[row].tolist() for name, row in self.features.items()}
        content = {"format": FORMAT, "facts": self.facts, "offset": self.offset.tolist(), "weights": table}
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, content, indent=0)


def load_surrogate(path: Path) -> LinearSurrogate:
    """Read what `save` wrote."""
    if not path.is_file():
        raise ResourceError(f"{path}: there is no such surrogate", FIT_AGAIN)
    content = read_object(path, ResourceError, "holds no surrogate", FIT_AGAIN)
    try:
        if content.get("format") != FORMAT:
            raise ValueError("its format is another")
        table, offset = dict(content["weights"]), np.array(content["offset"], dtype=np.float64)
        weights = np.array(list(table.values()), dtype=np.float64).reshape(len(table), len(offset))
        if offset.ndim != 1 or len(offset) < 2 or not np.isfinite(weights).all():
            raise ValueError("its numbers are no weights of classes")
        if not np.isfinite(offset).all():
            raise ValueError("its numbers are not finite")
        facts = dict(content.get("facts") or {})
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ResourceError(f"{path}: this is no surrogate ({error})", FIT_AGAIN) from error
    return LinearSurrogate({name: row for row, name in enumerate(table)}, weights, offset, facts)


def fit_surrogate(
    texts: Sequence[TextValue],
    answers: Floats,
    groups: Sequence[int],
    edits: Sequence[int],
    facts: Mapping[str, Any] | None = None,
) -> LinearSurrogate:
    """Fit the victim's answers. Texts of one group are copies of the same text, with so many `edits` each."""
    y, own = log_odds(answers), np.asarray(groups)
    rows: dict[str, dict[int, float]] = {}
    for number, text in enumerate(texts):
        for name, by in features_of(text):
            row = rows.setdefault(name, {})
            row[number] = row.get(number, 0.0) + by
    kernel = _kernel(rows, len(texts)) + _OFFSET * (own[:, None] == own) + _COMMON_OFFSET
    values, vectors = np.linalg.eigh(kernel)
    turned = vectors.T @ y
    found = []
    for ridge in _RIDGES:
        shrunk = vectors / (np.maximum(values, 0.0) + ridge)
        dual = shrunk @ turned
        left_out = dual / np.sum(shrunk * vectors, axis=1)[:, None]
        found.append((float(np.square(left_out).sum()), dual, left_out))
    _, dual, left_out = min(found, key=lambda each: each[0])
    names, table = [], []
    for name, row in rows.items():
        weight = (np.array(list(row.values())) @ dual[list(row)]).round(_DIGITS)
        if weight.any():
            names.append(name)
            table.append(weight)
    weights = np.array(table).reshape(len(names), y.shape[1])
    offset = (_COMMON_OFFSET * dual.sum(axis=0)).round(_DIGITS)
    told = {**(facts or {}), **_quality(y, left_out, own, np.asarray(edits))}
    return LinearSurrogate({name: row for row, name in enumerate(names)}, weights, offset, told)


def _kernel(rows: Mapping[str, Mapping[int, float]], size: int) -> Floats:
    """How much each two texts have in common."""
    common = [row for row in rows.values() if len(row) >= _COMMON]
    dense = np.zeros((size, len(common)))
    for column, row in enumerate(common):
        dense[list(row), column] = list(row.values())
    kernel = dense @ dense.T
    for row in rows.values():
        if 1 < len(row) < _COMMON:
            places, by = list(row), np.array(list(row.values()))
            kernel[np.ix_(places, places)] += np.outer(by, by)
    # What one text alone has: only its own entry.
    alone = np.zeros(size)
    for row in rows.values():
        if len(row) == 1:
            ((place, by_alone),) = row.items()
            alone[place] += by_alone**2
    return np.asarray(kernel + np.diag(alone))


def _quality(y: Floats, left_out: Floats, groups: NDArray[Any], edits: NDArray[Any]) -> dict[str, float]:
    """`explained`: the share of what edits change that it foretells; `spread`: its error for one edit."""
    members: dict[int, list[int]] = {}
    for number, group in enumerate(groups.tolist()):
        members.setdefault(group, []).append(number)
    copies = [number for numbers in members.values() if len(numbers) > 1 for number in numbers]
    if not copies:
        return {"explained": 0.0, "spread": 1.0}
    # Without a model, an answer is guessed from those to the other copies of its text, or from all.
    others = {n: [m for m in members[int(groups[n])] if m != n] for n in copies}
    changed = np.array([y[n] - y[others[n]].mean(axis=0) for n in copies])
    missed = left_out[copies]
    unknown = min(np.square(changed).sum(), np.square(y[copies] - y[copies].mean(axis=0)).sum())
    share = 1.0 - float(np.square(missed).sum()) / max(1e-12, float(unknown))
    classes = y.shape[1]
    # The margin between two classes has twice the variance of one, and centring took a part of that.
    variance = 2 * classes / (classes - 1) * float(np.square(missed).mean(axis=1).sum())
    per_edit = math.sqrt(variance / max(1, int(edits[copies].sum())))
    return {"explained": round(share, 4), "spread": round(min(2.0, max(0.1, per_edit)), 4)}


def open_surrogate(variant: str) -> Oracle | AsyncOracle:
    """The oracle behind `surrogate:PATH`."""
    if _is_file_of_ours(variant):
        return load_surrogate(Path(variant).expanduser())
    from unfooled.victims.loading import load_victim

    return oracle_for(load_victim(variant))


def fingerprint(variant: str) -> str:
    """What the run keeps of it."""
    if _is_file_of_ours(variant):
        try:
            return hashlib.sha256(Path(variant).expanduser().read_bytes()).hexdigest()
        except OSError as error:
            raise ResourceError(f"{variant}: cannot be read ({error.strerror})", FIT_AGAIN) from error
    from unfooled.victims.loading import load_victim

    return load_victim(variant).fingerprint()


def _is_file_of_ours(variant: str) -> bool:
    return variant.endswith(".json")
