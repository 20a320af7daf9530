"""What a reproduction does, as data: models to train, texts to choose, attacks to run, numbers to take.

A stage names the stages it needs. `runner.py` carries them out, each in a folder named after a
fingerprint of everything it depends on: the same stage is never done twice, a changed one never mixed up.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, TypeAlias

Settings: TypeAlias = tuple[tuple[str, Any], ...]  # names and values, hashable


def settings(**values: Any) -> Settings:
    return tuple(values.items())


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Rows of a data set: a folder of the data directory, a file, or `hf:org/name`."""

    source: str
    split: str = "test"
    limit: int | None = None
    sample: int | None = None
    seed: int = 0
    clean: str | None = None
    text: tuple[str, ...] = ()
    label: str | None = None
    parallel: tuple[str, ...] = ()  # source and target, of sentences and their translations


@dataclass(frozen=True, kw_only=True)
class Stage:
    """`name` is how others refer to it."""

    name: str

    @property
    def kind(self) -> str:
        return type(self).__name__.removesuffix("Stage").lower()

    def needs(self) -> tuple[str, ...]:
        """Names of the stages whose outcome it uses."""
        return ()


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model that a stage made, or `spec` as for `--model`; perhaps with a defence around it.

    `draws` > 0 is an attacker who averages over so many draws of a defence that decides with chance.
    """

    stage: str = ""
    spec: str = ""
    defence: str = ""  # five or fuse
    options: Settings = ()
    draws: int = 0

    def needs(self) -> tuple[str, ...]:
        return (self.stage,) if self.stage else ()


@dataclass(frozen=True, kw_only=True)
class TrainStage(Stage):
    """`unfooled train`."""

    family: str
    data: Rows
    options: Settings = ()
    valid: float = 0.1


@dataclass(frozen=True, kw_only=True)
class HardenStage(Stage):
    """`unfooled harden` with a method that trains; further, the model to start from."""

    method: str
    model: str
    data: Rows
    options: Settings = ()

    def needs(self) -> tuple[str, ...]:
        return (self.model,)


@dataclass(frozen=True, kw_only=True)
class WordsStage(Stage):
    """`unfooled words`: which words speak for which class, in words.json."""

    data: Rows


@dataclass(frozen=True, kw_only=True)
class VocabularyStage(Stage):
    """`size` words drawn from those that occur at least `least` times: one per line in words.txt."""

    data: Rows
    size: int
    least: int = 5
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class ChosenStage(Stage):
    """`n` rows that every one of the models gets right; both these and the `of` asked about are random."""

    models: tuple[Model, ...]
    data: Rows
    n: int
    of: int
    seed: int = 0

    def needs(self) -> tuple[str, ...]:
        return tuple(name for model in self.models for name in model.needs())


@dataclass(frozen=True, kw_only=True)
class AttackStage(Stage):
    """`unfooled attack`, of `limit` rows drawn with `seed`: those of a smaller limit are among them.

    `changes` are settings of the attack as for `--set`; a value `{NAME}` is the file that the stage NAME
    made. `everywhere` are those of all parts, such as the encoder. `rows` names a stage:
    of a `ChosenStage` one its rows, of a run those that its model still gets right; with `fooled`, those that
    fell. `measures` are taken of the texts found.
    """

    model: Model
    data: Rows
    attack: str
    changes: Settings = ()
    everywhere: Settings = ()
    limit: int | None = None
    rows: str = ""
    fooled: bool = False
    order: str = ""  # another order of words, as for --importance
    candidates: str = ""  # other replacements, as for --candidates
    measures: tuple[str, ...] = ()
    seed: int = 0

    def needs(self) -> tuple[str, ...]:
        return (*self.model.needs(), *((self.rows,) if self.rows else ()))


@dataclass(frozen=True, kw_only=True)
class ShowStage(Stage):
    """Texts shown to a model, nothing searched.

    With `data`: `limit` rows of it as they are, drawn as those of an attack, and `most` random ones of the
    texts by which the run `samples` fooled its own model. Without: the last texts of the run. `draws` > 0
    asks a model of chance in so many fresh draws.
    """

    model: Model
    samples: str
    data: Rows | None = None
    limit: int | None = None
    most: int | None = None  # pre-made samples
    draws: int = 0
    seed: int = 0

    def needs(self) -> tuple[str, ...]:
        return (*self.model.needs(), *((self.samples,) if self.samples else ()))


@dataclass(frozen=True, kw_only=True)
class TransferStage(Stage):
    """`unfooled transfer`: what fools one model, shown to another."""

    run: str
    model: Model

    def needs(self) -> tuple[str, ...]:
        return (self.run, *self.model.needs())


@dataclass(frozen=True, kw_only=True)
class InsideStage(Stage):
    """How far the edits of a run move the model inside: distances, R_e, attention, layer 1; and Theorem 1."""

    run: str
    model: Model
    theorem: bool = False

    def needs(self) -> tuple[str, ...]:
        return (self.run, *self.model.needs())


@dataclass(frozen=True, kw_only=True)
class PlaneStage(Stage):
    """Bags of words in the plane of their two principal components: do the classes lie apart?"""

    data: Rows


@dataclass(frozen=True, kw_only=True)
class FixtureStage(Stage):
    """Small files for the smoke scale, made from nothing (see `smoke.py`)."""

    what: str


def is_file(value: Any) -> bool:
    """Whether a setting stands for the file that a stage made."""
    return isinstance(value, str) and value.startswith("{") and value.endswith("}")


def needs_of(stage: Stage) -> tuple[str, ...]:
    """Stages that it names, and those whose files its settings or its data stand for."""
    return tuple(dict.fromkeys((*stage.needs(), *_files(described(stage)))))


def _files(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [name for part in value.values() for name in _files(part)]
    if isinstance(value, list):
        return [name for part in value for name in _files(part)]
    return [value[1:-1]] if is_file(value) else []


def in_order(stages: tuple[Stage, ...]) -> list[Stage]:
    """Each after those it needs; otherwise as listed. A missing or circular need is a mistake of ours."""
    known = {stage.name: stage for stage in stages}
    if len(known) < len(stages):
        raise ValueError("two stages have the same name")
    done: dict[str, Stage] = {}

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise ValueError(f"{' needs '.join((*above, name))}")
        if name not in known:
            raise ValueError(f"{above[-1] if above else 'a plan'} needs {name}, which is no stage")
        if name not in done:
            for needed in needs_of(known[name]):
                visit(needed, (*above, name))
            done[name] = known[name]

    for stage in stages:
        visit(stage.name, ())
    return list(done.values())


def described(value: Any) -> Any:
    """A stage as plain data, for fingerprints and files. What has its default value is left out."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {
            field.name: described(getattr(value, field.name))
            for field in dataclasses.fields(value)
            if getattr(value, field.name) != field.default
        }
        return {"kind": type(value).__name__.removesuffix("Stage").lower(), **fields}
    return [described(part) for part in value] if isinstance(value, tuple) else value
