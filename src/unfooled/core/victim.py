"""The `Victim` protocol: what every classifier looks like to an attack, and what the adapters share."""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from unfooled.errors import VictimError

TextValue: TypeAlias = str | tuple[str, ...]  # one text, or one string per field of a pair
Probabilities: TypeAlias = NDArray[np.float64]  # [texts, classes], rows sum to 1
V = TypeVar("V")

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


# -- the options of adapters: how to name one to the user, their types and their limits ------------


def option(name: str, value: Any) -> str:
    """How to set an adapter's option, on the command line and in Python."""
    typed = value if isinstance(value, str) else json.dumps(value)
    return f"--victim-option {shlex.quote(f'{name}={typed}')} (in Python: {name}={value!r})"


def options_of(
    made: Callable[..., Any], *, without: Sequence[str] = ()
) -> Callable[[Callable[..., V]], Callable[..., V]]:
    """For a loader with `**options`: they are those that `made` takes by name, and are declared only there.

    The loader gets all of them, with the defaults of `made` where nothing else is given.
    """
    theirs = [
        parameter
        for parameter in inspect.signature(made).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.name not in without
    ]

    def declare(load: Callable[..., V]) -> Callable[..., V]:
        own = inspect.signature(load)
        named = [part for part in own.parameters.values() if part.kind is not part.VAR_KEYWORD]
        more = [parameter for parameter in theirs if parameter.name not in own.parameters]

        @wraps(load)
        def complete(*args: Any, **given: Any) -> V:
            return load(*args, **({parameter.name: parameter.default for parameter in more} | given))

        complete.__signature__ = own.replace(parameters=[*named, *more])  # type: ignore[attr-defined]
        return complete

    return declare


def as_type(name: str, value: Any, default: Any) -> Any:
    """`value` in the type of the option's default. The command line gives text, or what JSON makes of it."""
    if isinstance(default, bool):
        return _as_bool(name, value)
    if isinstance(default, (int, float)):
        return _as_number(name, value, default)
    if isinstance(default, str) and not isinstance(value, str):
        return json.dumps(value, default=str)  # a name or a path such as 0, which reads like a number
    return value


def require_positive(**sizes: float) -> None:
    """Sizes of which 0 or less makes no sense."""
    for name, value in sizes.items():
        if not (math.isfinite(value) and value > 0):
            least = "at least 1" if isinstance(value, int) else "above 0"
            raise VictimError(
                f"{name}={value} makes no sense: it must be {least}",
                f"write {option(name, type(value)(1))} or another number, or leave it out",
            )


def require_not_negative(**numbers: float) -> None:
    for name, value in numbers.items():
        if not (math.isfinite(value) and value >= 0):
            raise VictimError(
                f"{name}={value} makes no sense: it must be at least 0",
                f"write {option(name, type(value)(0))} or another number, or leave it out",
            )


def _as_bool(name: str, value: Any) -> bool:
    from unfooled.values import named_truth

    return named_truth(name, value, VictimError, f"write {option(name, True)}")


def _as_number(name: str, value: Any, default: float) -> float:
    from unfooled.values import read_number

    try:
        return read_number(value, whole=isinstance(default, int))
    except (TypeError, ValueError, OverflowError):
        kind = "number" if isinstance(default, float) else "whole number"
        raise VictimError(f"{name}={value} is not a {kind}", f"write {option(name, default)}") from None


def require_choice(choice: str, choices: Any, name: str) -> None:
    """Refuse what the Literal `choices` does not list."""
    if choice not in get_args(choices):
        raise ValueError(f"{name} must be one of {', '.join(get_args(choices))}, not {choice!r}")
