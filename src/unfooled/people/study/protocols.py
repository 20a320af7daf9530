"""How people are asked, as data. The protocols of the papers lie in `protocols.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, get_args

from unfooled.errors import DataError
from unfooled.plugins import unknown_name

View = Literal["text", "pair", "beside"]
Kind = Literal["label", "scale", "preference"]

STEPS = 5  # of every scale
NEITHER = 2  # third answer to a preference


@dataclass(frozen=True, slots=True)
class Question:
    id: str
    kind: Kind
    text: str
    low: str = ""  # what the ends of a scale mean
    high: str = ""

    def values(self, classes: int) -> range:
        """The answers it takes: class numbers, 1 to 5, or first, second, neither."""
        if self.kind == "label":
            return range(classes)
        return range(1, STEPS + 1) if self.kind == "scale" else range(NEITHER + 1)


@dataclass(frozen=True, slots=True)
class Part:
    """Items of one view and what is asked about each."""

    view: View
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class Protocol:
    name: str
    title: str
    paper: str
    primer: int
    originals: float
    instructions: tuple[str, ...]
    parts: tuple[Part, ...]

    def part(self, view: str) -> Part:
        return next(part for part in self.parts if part.view == view)

    def has(self, view: View) -> bool:
        return any(part.view == view for part in self.parts)

    @property
    def questions(self) -> tuple[Question, ...]:
        return tuple(question for part in self.parts for question in part.questions)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, name: str, given: Mapping[str, Any]) -> Protocol:
        try:
            parts = tuple(
                Part(part["view"], tuple(Question(**question) for question in part["questions"]))
                for part in given["parts"]
            )
            made = cls(
                name=name,
                title=str(given["title"]),
                paper=str(given.get("paper", "")),
                primer=int(given.get("primer", 0)),
                originals=float(given.get("originals", 0.0)),
                instructions=tuple(str(line) for line in given.get("instructions", ())),
                parts=parts,
            )
        except KeyError as error:
            raise _wrong(name, f"{error} is missing") from None
        except (TypeError, ValueError) as error:
            raise _wrong(name, str(error)) from None
        _check(made)
        return made


def names() -> list[str]:
    return list(_built_in())


def load_protocol(name: str) -> Protocol:
    """By its name, or from a TOML file that holds one."""
    if not name.endswith(".toml"):
        known = _built_in()
        if name not in known:
            raise unknown_name("protocol", name, list(known))
        return Protocol.from_json(name, known[name])
    try:
        given = tomllib.loads(Path(name).expanduser().read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{name}: cannot be read ({error.strerror})", "check the path") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{name}: {error}", "write it like the shipped protocols") from error
    if len(given) != 1 or not isinstance(next(iter(given.values())), dict):
        raise DataError(f"{name}: holds {len(given)} protocols", "write one table, such as [mine]")
    ((title, table),) = given.items()
    return Protocol.from_json(title, table)


def _built_in() -> dict[str, Any]:
    folder = files("unfooled.people.study")
    return tomllib.loads((folder / "protocols.toml").read_text(encoding="utf-8"))


def _check(protocol: Protocol) -> None:
    views = [part.view for part in protocol.parts]
    if not views or len(set(views)) < len(views) or not set(views) <= set(get_args(View)):
        raise _wrong(protocol.name, f"its views are {views}: one part of each of {', '.join(get_args(View))}")
    ids = [question.id for question in protocol.questions]
    if not ids or len(set(ids)) < len(ids) or not all(name.isidentifier() for name in ids):
        raise _wrong(protocol.name, f"its questions {ids} need different ids of letters")
    for part in protocol.parts:
        if not part.questions:
            raise _wrong(protocol.name, f"nothing is asked about {part.view}")
        for question in part.questions:
            if question.kind not in get_args(Kind):
                raise _wrong(protocol.name, f"{question.kind!r} is not a kind of question")
            if question.kind == "preference" and part.view != "pair":
                raise _wrong(protocol.name, "a preference needs the view pair")
    if protocol.primer < 0 or protocol.originals < 0:
        raise _wrong(protocol.name, "primer and originals are not negative")


def _wrong(name: str, what: str) -> DataError:
    return DataError(f"the protocol {name!r} cannot be used: {what}", "write it like the shipped protocols")
