"""The worst case over several attacks: which rows stand, which attack broke what, and what that cost.

Pure arithmetic over what each attack found. An error is never robustness: a row that no attack broke, but on
which one of them failed, is undecided and in no rate.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from unfooled.errors import RunFileError
from unfooled.files import write_json
from unfooled.metrics.summary import Rate
from unfooled.metrics.validity.accuracy import doubt_of, mean_with_interval
from unfooled.metrics.validity.regression import Values

FILE = "stress.json"
FORMAT = 1
_LARGEST = 1 << 28  # bytes of a file that is read
VALID = 0.5  # from this probability on a text counts as valid, and its row is not attacked any more

State = Literal["wrong", "broken", "stands", "undecided", "error"]

# wrong      the model was wrong before any attack
# broken     an attack broke it
# stands     every attack tried and none broke it
# undecided  none broke it, but one of them ended in an error
# error      the row itself could not be read or scored


@dataclass(slots=True)
class AttackedRow:
    """One row. `found` says for each attack, by its place, whether the model is still right; None: an error.

    `valid` is the probability that the text with which an attack broke it is valid, where that was judged.
    """

    key: int
    label: int
    clean: bool | None
    tried: bool = False  # some attack had an edit to try
    found: dict[int, bool | None] = field(default_factory=dict)
    valid: dict[int, float] = field(default_factory=dict)

    @property
    def broken_by(self) -> list[int]:
        return sorted(place for place, right in self.found.items() if right is False)

    @property
    def state(self) -> State:
        if self.clean is None:
            return "error"
        if not self.clean:
            return "wrong"
        if self.broken_by:
            return "broken"
        return "undecided" if None in self.found.values() else "stands"

    @property
    def invalid(self) -> float:
        """At most the probability that no text that broke it is valid; what nobody judged counts as valid."""
        return 1.0 - max((self.valid.get(place, 1.0) for place in self.broken_by), default=0.0)

    @property
    def settled(self) -> bool:
        """There is no need to attack it further: it fell, and by a text that counts as valid."""
        return not self.clean or (bool(self.broken_by) and 1.0 - self.invalid >= VALID)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackShare:
    """What one attack of the suite did."""

    attack: str
    folder: str
    tried: int  # rows that it attacked
    broke: int
    first: int  # broken by it and by none before it
    alone: int | None  # broken by it and by no other; None where the others did not try
    valid: float | None  # expected number of valid texts among those that broke a row; None: not judged
    errors: int
    queries: int
    seconds: float
    draws: int = 1  # of a random model, over which every query is averaged
    left: int = 0  # rows that it was not tried on, because none of the last wave fell

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ClassShare:
    """Of the rows of one class, the shares that are right before and after the suite."""

    name: str
    clean: Rate
    worst: Rate

    def to_dict(self) -> dict[str, Any]:
        return {"class": self.name, "clean": self.clean.to_dict(), "worst": self.worst.to_dict()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stress:
    """What a suite makes of a model: one accuracy, and where it comes from. `unfooled.stress` returns it."""

    suite: str
    victim: str
    fingerprint: str
    data: str
    n: int
    clean: Rate
    worst: Rate  # right at first, and no attack broke it
    valid: Rate | None  # the same where only valid texts count; None: no text was judged
    attacks: tuple[AttackShare, ...]
    left_out: tuple[tuple[str, str], ...]  # attack, and why
    classes: tuple[ClassShare, ...]
    states: Mapping[State, int]
    undecided: tuple[int, ...]  # keys
    errors: tuple[int, ...]  # keys of rows that could not be scored at all
    untried: int  # rows that stand and for which no attack had any edit to try
    notes: tuple[str, ...]
    version: str
    date: str
    out: str = ""
    remembers: str = ""  # what shows that answers depend on earlier questions

    @property
    def queries(self) -> int:
        return sum(attack.queries for attack in self.attacks)

    @property
    def seconds(self) -> float:
        return sum(attack.seconds for attack in self.attacks)

    @property
    def failures(self) -> int:
        """Rows that ended in an error somewhere and are therefore in no rate."""
        return len(self.undecided) + len(self.errors)

    @property
    def bounds(self) -> tuple[float, float]:
        """The worst case if every undecided row fell, and if every one stood."""
        known = self.worst.n + len(self.undecided)
        right = self.states["stands"]
        return (right / known, (right + len(self.undecided)) / known) if known else (0.0, 1.0)

    def to_dict(self) -> dict[str, Any]:
        return {
            "suite": self.suite,
            "victim": self.victim,
            "fingerprint": self.fingerprint,
            "data": self.data,
            "n": self.n,
            "clean": self.clean.to_dict(),
            "worst": self.worst.to_dict(),
            "valid": self.valid.to_dict() if self.valid else None,
            "attacks": [attack.to_dict() for attack in self.attacks],
            "left_out": [{"attack": attack, "why": why} for attack, why in self.left_out],
            "classes": [share.to_dict() for share in self.classes],
            "states": dict(self.states),
            "undecided": list(self.undecided),
            "errors": list(self.errors),
            "untried": self.untried,
            "queries": self.queries,
            "seconds": self.seconds,
            "notes": list(self.notes),
            "version": self.version,
            "date": self.date,
            "remembers": self.remembers,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any], out: str = "") -> Stress:
        plain = ("suite", "victim", "fingerprint", "data", "n", "states", "untried", "version", "date")
        return cls(
            **{name: stored[name] for name in plain},
            clean=Rate.from_dict(stored["clean"]),
            worst=Rate.from_dict(stored["worst"]),
            valid=Rate.from_dict(stored["valid"]) if stored["valid"] else None,
            attacks=tuple(AttackShare(**attack) for attack in stored["attacks"]),
            left_out=tuple((omitted["attack"], omitted["why"]) for omitted in stored["left_out"]),
            classes=tuple(
                ClassShare(share["class"], Rate.from_dict(share["clean"]), Rate.from_dict(share["worst"]))
                for share in stored["classes"]
            ),
            undecided=tuple(stored["undecided"]),
            errors=tuple(stored["errors"]),
            notes=tuple(stored["notes"]),
            out=out,
            remembers=stored.get("remembers", ""),
        )


# -- counting --------------------------------------------------------------------------------------------


def clean_rate(rows: Sequence[AttackedRow]) -> Rate:
    known = [row for row in rows if row.clean is not None]
    return Rate.of(sum(bool(row.clean) for row in known), len(known))


def worst_rate(rows: Sequence[AttackedRow]) -> Rate:
    decided = [row for row in rows if row.state in ("wrong", "broken", "stands")]
    return Rate.of(sum(row.state == "stands" for row in decided), len(decided))


Doubts: TypeAlias = Mapping[int, Mapping[int, Values]]  # place of an attack → key → P(valid) in each draw


def valid_rate(rows: Sequence[AttackedRow], doubts: Doubts | None = None) -> Rate:
    """A row that only doubtful texts broke stands by at most the probability that none of them is valid.

    The interval is that of a share of so many rows: chance in the rows and doubt about a text both make a row
    count as right or not, and either is in it. That the judge itself may be off is in `doubts`: what else it
    would have said of the texts, had its numbers come out otherwise, in the same draw for all rows.
    """
    decided = [row for row in rows if row.state in ("wrong", "broken", "stands")]
    standing = [0.0 if row.state == "wrong" else row.invalid for row in decided]
    rate = Rate.of(sum(standing), len(decided))
    if not doubts or not decided:
        return rate
    draws = [
        _invalid_draws(row, doubts) if row.state == "broken" else np.asarray(right)
        for row, right in zip(decided, standing, strict=True)
    ]
    sums: Values = np.asarray(np.sum(np.broadcast_arrays(*draws), axis=0), dtype=np.float64)
    _, low, high = mean_with_interval(np.array(standing), sums, len(decided))
    ends = min(low, rate.low), max(high, rate.high)
    return Rate(rate.value, *ends, rate.n, doubt_of(sums, len(decided)))


def _invalid_draws(row: AttackedRow, doubts: Doubts) -> Values:
    """As `AttackedRow.invalid`, in each draw."""
    chances = [
        doubts.get(place, {}).get(row.key, np.asarray(row.valid.get(place, 1.0))) for place in row.broken_by
    ]
    invalid: Values = 1.0 - np.max(np.broadcast_arrays(*chances), axis=0)
    return invalid


def first_broken(rows: Sequence[AttackedRow], place: int) -> int:
    return sum(row.state == "broken" and row.broken_by[0] == place for row in rows)


def broken_alone(rows: Sequence[AttackedRow], place: int, places: Sequence[int]) -> int | None:
    """Broken by this attack only; None where another did not try one of these rows, or failed on it."""
    mine = [row for row in rows if row.state == "broken" and row.broken_by == [place]]
    others = [other for other in places if other != place]
    if any(row.found.get(other) is None for row in mine for other in others):
        return None
    return len(mine)


def class_shares(rows: Sequence[AttackedRow], labels: Sequence[str]) -> tuple[ClassShare, ...]:
    by_class = [[row for row in rows if row.label == number] for number in range(len(labels))]
    return tuple(
        ClassShare(label, clean_rate(own), worst_rate(own))
        for label, own in zip(labels, by_class, strict=True)
    )


# -- the file --------------------------------------------------------------------------------------------


def write_state(folder: Path, content: Mapping[str, Any]) -> None:
    """Whole or not at all, with a seal over everything in it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / FILE, {**content, "format": FORMAT, "seal": _seal({**content, "format": FORMAT})})
    except OSError as error:
        raise RunFileError(
            f"{folder / FILE}: cannot be written ({error.strerror or error})", "choose another --out"
        ) from error


def read_state(folder: Path) -> dict[str, Any] | None:
    """What was written last; None where there is nothing. What is damaged is never used."""
    path = folder / FILE
    try:
        if path.stat().st_size > _LARGEST:
            raise _damaged(path, f"it has more than {_LARGEST:,} bytes")
        stored = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise _damaged(path, str(error)) from error
    if not isinstance(stored, dict) or stored.get("format") != FORMAT:
        raise _damaged(path, f"it is not of format {FORMAT}")
    seal = stored.pop("seal", None)
    if seal != _seal(stored):
        raise _damaged(path, "its seal does not fit")
    return stored


def is_stress(folder: Path) -> bool:
    return folder.name == FILE or (folder / FILE).is_file()


def read_stress(folder: str | Path) -> Stress:
    """The finished result in a folder of `unfooled stress`, or in its stress.json."""
    path = Path(folder)
    path = path.parent if path.name == FILE else path
    state = read_state(path)
    if state is None:
        raise RunFileError(f"{path}: holds no {FILE}", "give the --out folder of unfooled stress")
    if state.get("result") is None:
        raise RunFileError(
            f"{path}: this suite is not finished, so nothing is judged",
            "repeat the command: it goes on where it stopped",
        )
    try:
        return Stress.from_dict(state["result"], str(path))
    except (AttributeError, KeyError, TypeError) as error:
        raise _damaged(path / FILE, f"its result lacks something: {error}") from error


def _seal(content: Mapping[str, Any]) -> str:
    written = json.dumps(content, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(written.encode()).hexdigest()


def _damaged(path: Path, why: str) -> RunFileError:
    return RunFileError(
        f"{path}: cannot be read ({why})", "throw it away with --restart, or choose another --out"
    )
