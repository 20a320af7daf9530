"""The averaged perceptron's weights: read safely, kept as whole thousandths, summed by feature.

The published file is a pickle of plain dictionaries. It is read once by an unpickler that can create nothing
but a `set`, and rewritten as arrays beside it. Every weight is a multiple of 0.001, so integer sums are
exact in any order; only a tie needs the order in which the original adds its floats (`float_scores`).
"""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unfooled.errors import ResourceError
from unfooled.files import whole_file
from unfooled.resources.checksums import add_checksum

Ints = npt.NDArray[np.int32]

PICKLE = "averaged_perceptron_tagger.pickle"
ARRAYS = "weights.npz"

# The tags "before" the first word: of the position just before it, and of the one before that.
START_TAGS = ("-START-", "-START2-")


class _DataOnly(pickle.Unpickler):
    """Builds dictionaries, tuples, strings, numbers and sets; refuses to look up anything else."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in {("__builtin__", "set"), ("builtins", "set")}:
            return set
        raise pickle.UnpicklingError(f"{module}.{name} is not plain data")


@dataclass(frozen=True, eq=False)
class Weights:
    """`table[rows[feature]]` has one weight per tag, in thousandths; row 0 is all zero."""

    tags: tuple[str, ...]  # in falling order: the first of equal maxima is the tag that sorts last
    rows: Mapping[str, int]
    table: Ints
    tagdict: Mapping[str, int]  # words that have the same tag wherever they stand

    def vector(self, *features: str) -> Ints:
        total: Ints = self.table[[self.rows.get(feature, 0) for feature in features]].sum(
            axis=0, dtype=np.int32
        )
        return total


def from_dicts(
    weights: Mapping[str, Mapping[str, float]], tagdict: Mapping[str, str], classes: Sequence[str]
) -> Weights:
    tags = tuple(sorted(classes, reverse=True))
    column = {tag: i for i, tag in enumerate(tags)}
    table = np.zeros((len(weights) + 1, len(tags)), dtype=np.int32)
    for row, per_tag in enumerate(weights.values(), start=1):
        for tag, weight in per_tag.items():
            table[row, column[tag]] = round(weight * 1000)
    rows = {feature: row for row, feature in enumerate(weights, start=1)}
    return Weights(tags, rows, table, {word: column[tag] for word, tag in tagdict.items()})


def read_pickle(path: Path) -> Weights:
    try:
        weights, tagdict, classes = _DataOnly(io.BytesIO(path.read_bytes())).load()
    except (pickle.UnpicklingError, EOFError, ValueError, TypeError) as error:
        raise ResourceError(
            f"{path} does not hold a perceptron's weights: {error}",
            f"delete the folder {path.parent} and run: unfooled resources get perceptron-tagger",
        ) from error
    return from_dicts(weights, tagdict, sorted(classes))


def load(folder: Path) -> Weights:
    """The weights in a resource folder, converted on first use and again when the pickle has changed."""
    source, arrays = folder / PICKLE, folder / ARRAYS
    if not source.is_file():
        return _read_arrays(arrays)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    try:
        return _read_arrays(arrays, digest)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):  # not there, torn, or of another pickle
        weights = read_pickle(source)
        _save(weights, arrays, digest)
        return weights


def _read_arrays(path: Path, digest: str = "") -> Weights:
    with path.open("rb") as file, np.load(file) as content:  # of a torn file, numpy would leave it open
        names = json.loads(content["names"].tobytes())
        if digest and names.get("source") != digest:
            raise ValueError(f"{path} was made from another file")
        rows = {feature: row for row, feature in enumerate(names["features"], start=1)}
        return Weights(tuple(names["tags"]), rows, content["table"], names["tagdict"])


def _save(weights: Weights, path: Path, digest: str) -> None:
    names = {
        "source": digest,
        "tags": weights.tags,
        "features": list(weights.rows),
        "tagdict": dict(weights.tagdict),
    }
    # In a cache that may only be read the conversion is made in memory every time.
    with suppress(OSError):
        with whole_file(path) as part, part.open("wb") as file:
            np.savez(
                file, table=weights.table, names=np.frombuffer(json.dumps(names).encode(), dtype=np.uint8)
            )
        add_checksum(path.parent, path.name)


def normal(word: str) -> str:
    """The form under which neighbouring words see this one."""
    if "-" in word and word[0] != "-":
        return "!HYPHEN"
    if word[:1].isdigit():
        return "!YEAR" if len(word) == 4 and word.isdigit() else "!DIGITS"
    return word.lower()


def features(word: str, context: Sequence[str], prev: str, prev2: str) -> list[str]:
    """All features of a position in the order of the original. `context`: normal forms from -2 to +2."""
    return [
        "bias",
        f"i suffix {word[-3:]}",
        f"i pref1 {word[:1]}",
        f"i-1 tag {prev}",
        f"i-2 tag {prev2}",
        f"i tag+i-2 tag {prev} {prev2}",
        f"i word {context[2]}",
        f"i-1 tag+i word {prev} {context[2]}",
        f"i-1 word {context[1]}",
        f"i-1 suffix {context[1][-3:]}",
        f"i-2 word {context[0]}",
        f"i+1 word {context[3]}",
        f"i+1 suffix {context[3][-3:]}",
        f"i+2 word {context[4]}",
    ]


def float_best(weights: Weights, names: Sequence[str]) -> int:
    """The best tag when weights are added as floats in the order given, rounding errors included."""
    scores = np.zeros(len(weights.tags))
    for name in names:
        scores += weights.table[weights.rows.get(name, 0)] / 1000
    return int(scores.argmax())
