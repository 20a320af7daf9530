"""The `Victim` protocol: what every classifier looks like to an attack, and what the adapters share."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

TextValue: TypeAlias = str | tuple[str, ...]  # one text, or one string per field of a pair
Probabilities: TypeAlias = NDArray[np.float64]  # [texts, classes], rows sum to 1

# What a victim may be able to do; the last three word by word (see `whitebox.py`).
CAPABILITIES = ("probabilities", "gradients", "attention", "embeddings")

# Sent once to a victim that has to be looked at before anything is known about it.
SPECIMEN = "This is a short text."


CLASSIFICATION, TRANSLATION = "classification", "translation"


def task_of(capabilities: Collection[str]) -> str:
    """What victims with these capabilities do; tasks other than classification are registered by a wing."""
    return TRANSLATION if "translations" in capabilities else CLASSIFICATION


@runtime_checkable
class Victim(Protocol):
    """A classifier under attack.

    `capabilities` are found by looking, never promised: `probabilities` (a score per class; absent where
    only a decided label comes back), `gradients`, `attention`, `embeddings`.

    Example:

        >>> isinstance(unfooled.load_victim("fake"), unfooled.Victim)
        True
    """

    @property
    def name(self) -> str:
        """Short, for tables."""
        ...

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the classes, in the order of the columns of `predict`."""
        ...

    @property
    def capabilities(self) -> frozenset[str]:
        """What an attack may use of it."""
        ...

    @property
    def batch_size(self) -> int:
        """The most texts that one `predict` should get."""
        ...

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        """One row per text, one column per class, float64, rows that sum to 1."""
        ...

    def fingerprint(self) -> str:
        """Changes when the answers may change; written into every run."""
        ...


def gives(victim: object, *names: str) -> bool:
    """Whether a victim has all of these methods, also where it hands them on from the victim inside it.

    From Python 3.12 on, `isinstance` with a protocol looks at the class alone and misses what `__getattr__`
    gives.
    """
    return all(callable(getattr(victim, name, None)) for name in names)


class Reloadable:
    """A victim that another process can load again: `load_victim(victim.spec, **victim.options)`."""

    spec: str = ""  # empty where the victim was built in Python
    options: Mapping[str, Any] = {}


def margins_of(victim: Any) -> str:
    """What a victim's numbers are where they are no probabilities, only squeezed into the same range; also
    of the model inside a defence. Empty where they are probabilities."""
    while victim is not None:
        if said := getattr(victim, "margins", ""):
            return str(said)
        victim = getattr(victim, "inner", None)
    return ""


def join_fields(text: TextValue, separator: str = "\n") -> str:
    """One string for a classifier that knows no pairs."""
    return text if isinstance(text, str) else separator.join(text)


def softmax(logits: NDArray[Any]) -> Probabilities:
    """Row by row, in float64."""
    scores = np.asarray(logits, dtype=np.float64)
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(scores / scores.sum(axis=-1, keepdims=True), dtype=np.float64)


def sigmoid_pair(logits: NDArray[Any]) -> Probabilities:
    """Two columns from one margin per text: the second is the logistic of the margin."""
    margins = np.asarray(logits, dtype=np.float64)
    return softmax(np.stack([np.zeros_like(margins), margins], axis=1))


def one_hot(indices: Sequence[int] | NDArray[Any], classes: int) -> Probabilities:
    return np.eye(classes, dtype=np.float64)[np.asarray(indices, dtype=np.intp)]


def digest(*parts: object) -> str:
    """Sha256 of the parts' text or bytes, each with its length so that they cannot run together."""
    hasher = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        hasher.update(f"{len(data)}:".encode())
        hasher.update(data)
    return hasher.hexdigest()


def digest_files(paths: Iterable[Path]) -> str:
    """Sha256 of the files' names and contents, in the order of the names."""
    parts: list[str] = []
    for path in sorted(paths, key=lambda path: path.name):
        with path.open("rb") as file:
            parts += [path.name, hashlib.file_digest(file, "sha256").hexdigest()]
    return digest(*parts)
