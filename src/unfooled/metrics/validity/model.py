"""What the judge has learned: a few dozen numbers and the record of how they were fitted, as one JSON file.

P(valid) = P(fluent) · P(label kept): two regressions on measures of the pair, each fitted on what readers
said. A third, on the measures of the first, tells how likely most of ten readers call the text altered. There
is one set of them for each choice of measures: with a causal language model, and without.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from unfooled.errors import DataError
from unfooled.files import write_json
from unfooled.metrics.validity.regression import Regression, Values, probability

Target: TypeAlias = Literal["fluent", "label_kept", "said_altered"]
TARGETS: tuple[Target, ...] = get_args(Target)
Row: TypeAlias = Mapping[str, float]  # the measures of one pair by name

KIND = "unfooled judge"
FORMAT = 1
SHIPPED = "shipped"
FULL, REDUCED = "full", "without-language-model"  # names of the variants
_FILE = "judge.json"


@dataclass(frozen=True, eq=False)
class Variant:
    """The regressions for one choice of measures."""

    name: str
    parts: Mapping[Target, Regression]

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for part in self.parts.values() for name in part.features))

    def table(self, rows: Sequence[Row], target: Target) -> Values:
        names = self.parts[target].features
        return np.array([[row[name] for name in names] for row in rows], dtype=np.float64).reshape(
            len(rows), len(names)
        )

    def chance(self, rows: Sequence[Row], target: Target) -> Values:
        return probability(self.parts[target].score(self.table(rows, target)))

    def valid(self, rows: Sequence[Row]) -> Values:
        """P(valid) of each pair."""
        return self.chance(rows, "fluent") * self.chance(rows, "label_kept")

    def valid_draws(self, rows: Sequence[Row], count: int, seed: int) -> Values:
        """P(valid) under `count` sets of numbers that the judgements allow as well: [count, rows]."""
        rng = np.random.default_rng(seed)
        fluent, kept = (
            probability(self.parts[target].draws(self.table(rows, target), count, rng))
            for target in ("fluent", "label_kept")
        )
        return fluent * kept

    def to_dict(self) -> dict[str, Any]:
        return {target: part.to_dict() for target, part in self.parts.items()}


@dataclass(frozen=True, eq=False)
class Judge:
    """Example:

    >>> judge = load_judge()
    >>> sorted(judge.variants)
    ['full', 'without-language-model']
    """

    variants: Mapping[str, Variant]
    record: Mapping[str, Any]  # data, numbers of judgements, seed, cross-validated figures

    def variant(self, name: str) -> Variant:
        if name not in self.variants:
            raise DataError(
                f"this judge has no variant {name!r}, only {', '.join(self.variants)}",
                "fit it again with unfooled judge fit",
            )
        return self.variants[name]

    @property
    def digest(self) -> str:
        """Tells judges apart: of the numbers, not of the record."""
        numbers = {name: variant.to_dict() for name, variant in self.variants.items()}
        return hashlib.sha256(json.dumps(numbers, sort_keys=True).encode()).hexdigest()[:12]

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": KIND,
            "format": FORMAT,
            "variants": {name: variant.to_dict() for name, variant in self.variants.items()},
            "record": dict(self.record),
        }

    @classmethod
    def from_dict(cls, given: Any, *, where: str) -> Judge:
        try:
            if given["kind"] != KIND or given["format"] != FORMAT:
                raise ValueError(f"its kind is {given['kind']!r}, its format {given['format']!r}")
            variants = {
                str(name): Variant(str(name), {t: Regression.from_dict(parts[t]) for t in TARGETS})
                for name, parts in given["variants"].items()
            }
            return cls(variants, dict(given["record"]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(
                f"{where} is no judge ({type(error).__name__}: {error})", "write one with unfooled judge fit"
            ) from error

    def save(self, path: Path) -> None:

        write_json(path, self.to_dict(), indent=1)


def load_judge(path: str | Path = SHIPPED) -> Judge:
    """The one that comes with the package, or one that `unfooled judge fit` wrote."""
    if str(path) == SHIPPED:
        text = (files("unfooled.metrics.validity") / _FILE).read_text(encoding="utf-8")
        return Judge.from_dict(json.loads(text), where="the shipped judge")
    try:
        given = json.loads(Path(path).expanduser().read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})", "check the path") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: this is no JSON ({error})", "write one with unfooled judge fit") from error
    return Judge.from_dict(given, where=str(path))
