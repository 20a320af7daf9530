"""Blocks of options that commands share: one spelling, one help text, one way to use them."""

from __future__ import annotations

import json
import re
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from unfooled.cli.command import Command, Exit, interrupted, option
from unfooled.device import PRECISIONS, computing
from unfooled.errors import CapReachedError, UserError
from unfooled.trust import trusting
from unfooled.values import columns, listed, literal, pairs, settings, several

if TYPE_CHECKING:
    from rich.console import Console

    from unfooled.core.recipe import Recipe
    from unfooled.core.session import Settings
    from unfooled.core.victim import Victim
    from unfooled.data.dataset import Dataset
    from unfooled.runs.caps import Caps
    from unfooled.runs.task import Examples
    from unfooled.runs.workers.where import Workers

E = TypeVar("E", bound="Examples")


@dataclass(frozen=True, kw_only=True)
class Output(Command):
    """Commands that tell people what they found, or machines."""

    json: bool = option(False, "Print the result as JSON and nothing else.")

    def console(self) -> Console:
        """For what is shown on the way: standard error, and nothing where a machine reads."""
        from rich.console import Console

        return Console(stderr=True, quiet=self.json)

    def require(self, *names: str, told: str) -> tuple[Any, ...]:
        """Values of options that are needed for all but --list; `told` says where to look."""
        values = self.values(*names)
        for name, value in values.items():
            if value is None:
                raise UserError(f"--{name} is missing", told)
        return tuple(values.values())


def print_json(found: Any, *, ensure_ascii: bool = True) -> None:
    typer.echo(json.dumps(found, indent=2, ensure_ascii=ensure_ascii))


@dataclass(frozen=True, kw_only=True)
class Devices(Command):
    """Commands that load models."""

    device: str = option("auto", "Where torch models compute: auto, cpu, cuda, cuda:1, mps.")

    def computing(self) -> AbstractContextManager[None]:
        return computing(self.device)


@dataclass(frozen=True, kw_only=True)
class TrustCode(Devices):
    """Commands that load models from hub pages, but no files that hold objects."""

    trust_remote_code: bool = option(False, "Run the Python code that a model's folder or hub page brings.")

    def trusted(self) -> AbstractContextManager[None]:
        return trusting(remote_code=self.trust_remote_code)


@dataclass(frozen=True, kw_only=True)
class TrustOptions(TrustCode):
    """Commands that load models of every kind."""

    trust_pickle: bool = option(False, "Load a pickle. It may run any code.")
    trust: tuple[str, ...] = option((), "A type that a .skops file may hold; repeatable.")

    def trusted(self) -> AbstractContextManager[None]:
        return trusting(pickle=self.trust_pickle, remote_code=self.trust_remote_code, types=self.trust)


@dataclass(frozen=True, kw_only=True)
class ColumnOptions(Command):
    """Which rows and columns of a data set."""

    text_column: str | None = option(None, "Text column; two for pairs: premise,hypothesis.")
    label_column: str | None = option(None, "Label column.")
    split: str = option("test", "Split of a named set or datasets folder.")


@dataclass(frozen=True, kw_only=True)
class Data(ColumnOptions):
    """Columns of a data set that may be a file."""

    encoding: str = option("utf-8-sig", "Encoding of a text file.")

    def load(self, source: str, *, split: str | None = None, **more: Any) -> Dataset:
        """`more`: rows and editing, as for `load_data`."""
        from unfooled.data.loading import load_data

        text, label = columns(self.text_column), self.label_column
        return load_data(
            source, text=text, label=label, split=split or self.split, encoding=self.encoding, **more
        )


@dataclass(frozen=True, kw_only=True)
class Clean(Command):
    clean: str | None = option(None, "Clean texts first: `tweets`, or steps such as links,handles.")


@dataclass(frozen=True, kw_only=True)
class LabelMap(Command):
    label_map: str | None = option(None, "Data label=model label, comma-separated.")

    def mapped_labels(self) -> dict[str, str] | None:
        return pairs(listed(self.label_map) or (), "--label-map") or None


@dataclass(frozen=True, kw_only=True)
class Thresholds(Command):
    threshold: tuple[str, ...] = option((), "Decide a class from this score on: offensive=0.8, or several.")

    def thresholds(self) -> dict[str, str] | None:
        """`offensive=0.8,hate=0.3`, each; None where none is given."""
        return pairs(several(self.threshold), "--threshold") or None


@dataclass(frozen=True, kw_only=True)
class ModelOptions(Thresholds, TrustOptions):
    """How the models that a command names are loaded."""

    labels: str | None = option(None, "The models' class names in their order, comma-separated.")
    victim_option: tuple[str, ...] = option((), "name=value for the models' adapter.")

    def load_model(self, spec: str, **more: Any) -> Victim:
        from unfooled.victims.loading import load_victim

        given = pairs(self.victim_option, "--victim-option")
        more = {"thresholds": self.thresholds()} | more
        more |= {name: literal(value) for name, value in given.items()}
        return load_victim(spec, labels=listed(self.labels), trust_pickle=self.trust_pickle, **more)


@dataclass(frozen=True, kw_only=True)
class RowOptions(Command):
    """Commands that can do with fewer rows than there are."""

    limit: int | None = option(None, "N rows only: a seeded sample, each class in its share.", "-n", min=1)
    first: int | None = option(None, "The first N rows instead.", min=1)

    def rows(self) -> dict[str, Any]:
        """How many and which, as `attack` takes them."""
        if self.first is not None and self.limit is not None:
            raise UserError("--first and --limit contradict each other", "give one of them")
        return {"limit": self.first or self.limit, "first": self.first is not None}

    def choose_rows(self, data: E, *, seed: int = 0, otherwise: int | None = None) -> E:
        """What --limit or --first asks for; without them `otherwise` many. A class without a row is said."""
        from unfooled.runs.row_choice import taken

        rows = self.rows()
        count = rows["limit"] or otherwise
        if count is None:
            return data
        chosen, notice = taken(data, count, seed=seed, first=rows["first"])
        if notice:
            typer.echo(f"note: {notice}", err=True)
        return chosen


@dataclass(frozen=True, kw_only=True)
class EngineOptions(Command):
    """Commands that can have their work done elsewhere."""

    engine: str = option("local", "Who runs workers: local (this machine), or ray (a cluster).")
    address: str = option("local", "The Ray cluster: auto, local, or ray://host:port.")
    cpus_per_worker: float = option(1.0, "CPUs that a Ray worker takes.", min=0.0)
    gpus_per_worker: float = option(0.0, "GPUs that a Ray worker takes.", min=0.0)

    def where(self, number: int) -> int | Workers:
        if self.engine == "local":
            return number
        from unfooled.runs.workers.where import Workers

        return Workers(
            number=number,
            engine=self.engine,
            address=self.address,
            cpus=self.cpus_per_worker,
            gpus=self.gpus_per_worker,
        )


@dataclass(frozen=True, kw_only=True)
class WorkerOptions(EngineOptions):
    """Commands whose work several processes or machines can share."""

    workers: int = option(1, "Processes; one per core is best.", "-w", min=1)


@dataclass(frozen=True, kw_only=True)
class Prices(Command):
    """Commands that may be told to stop before they cost too much."""

    price_per_query: float = option(
        0.0, "Price of a text that the victim is asked, in any currency.", min=0.0
    )
    price_per_token: float = option(0.0, "Price of a token: four characters of such a text.", min=0.0)
    max_cost: float | None = option(None, "Stop at this cost, within one batch of questions.", min=0.0)
    max_hours: float | None = option(None, "Stop after so many hours.", min=0.0)

    def caps(self) -> Caps | None:
        given = (self.max_cost, self.max_hours, self.price_per_query or None, self.price_per_token or None)
        if set(given) == {None}:
            return None
        from unfooled.runs.caps import Caps

        return Caps(
            max_cost=self.max_cost,
            max_hours=self.max_hours,
            per_query=self.price_per_query,
            per_token=self.price_per_token,
        )


def capped(reached: CapReachedError, saved: str = "") -> Exit:
    """Tell what is kept, and how to go on."""
    typer.echo(f"{reached.cause}{saved}\n  → {reached.remedy}", err=True)
    return Exit.CAPPED


@dataclass(frozen=True, kw_only=True)
class Attacking(Data, RowOptions, LabelMap, WorkerOptions, Devices, Output):
    """Commands that attack: which rows, how far, and where words and meanings are looked up."""

    out: Path | None = option(None, "Folder of all runs. [default: runs/…]", "-o")
    sample: int | None = option(None, "Attack N rows drawn at random (seeded).", min=1)
    seed: int = option(0, "Same seed, same results.", min=0)
    budget: int | None = option(None, "Most victim queries per example and attack.", min=1)
    max_words: int = option(5000, "Longer rows end as errors.", min=1)
    edit: str | None = option(None, "Which text column of a pair may be edited. [default: the last]")
    encoder: str | None = option(None, "Sentence encoder for similarity constraints.")
    neighbours: str | None = option(None, "Neighbour table: name, JSON table or vectors file.")
    masked_lm: str | None = option(None, "Masked language model of BAE: folder, hub name or `trigram`.")
    precision: str = option("fp32", f"Of passes without gradients: {', '.join(PRECISIONS)}.")
    any_language: bool = option(False, "Also texts in letters that the attack's words do not know.")
    restart: bool = option(False, "Discard earlier runs in the folder.")

    def computing(self) -> AbstractContextManager[None]:
        return computing(self.device, self.precision)

    def settings(self, **more: Any) -> Settings:
        from unfooled.core.session import Settings

        return Settings(**self.values("seed", "budget", "max_words", "any_language"), **more)

    def everywhere(self) -> dict[str, str]:
        """What replaces the resources of an attack, wherever it has such a part."""
        given = {"encoder": self.encoder, "table": self.neighbours, "masked_lm": self.masked_lm}
        return {name: value for name, value in given.items() if value}


@dataclass(frozen=True, kw_only=True)
class OneAttack(Attacking):
    """Commands that try a single attack."""

    attack: str = option("textfooler", "A name from `unfooled attacks`.", "-a")
    set_: tuple[str, ...] = option((), "Change a setting shown by `unfooled show`: path=value.", "--set")

    def recipe(self) -> Recipe:
        """The named recipe with all that the options change."""
        from unfooled.core.recipe import with_everywhere, with_setting

        recipe = self.composed()
        for name, value in self.everywhere().items():
            recipe = with_everywhere(recipe, name, value)
        for name, value in pairs(self.set_, "--set").items():
            recipe = with_setting(recipe, name, value)
        return recipe

    def composed(self) -> Recipe:
        """Before resources and settings are changed."""
        from unfooled.core.recipe import load_recipe

        return load_recipe(self.attack)


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(Data, RowOptions, Output):
    """Commands that train a model."""

    data: str | None = option(None, "Labelled texts or pairs to train on.", "-d")
    out: Path | None = option(None, "Folder of the model.", "-o")
    valid: str | None = option(None, "Validation: share of the rows, file, or split. [default: 0.1]")
    epochs: int | None = option(None, "Passes over the data, at most.")
    batch: int | None = option(None, "Rows per step.")
    lr: float | None = option(None, "Learning rate.")
    seed: int | None = option(None, "Same seed, same model. [default: 0]")
    set_: tuple[str, ...] = option((), "Any other setting: name=value.", "--set")
    split: str = "train"
    resume: bool = option(False, "Go on with what was stopped.")
    restart: bool = option(False, "Replace what the folder holds.")
    list_: bool = option(False, "Show all there is to choose from, settings and ranges.", "--list")

    def needed(self, command: str, *names: str) -> tuple[Any, ...]:
        """The options without which nothing can be trained."""
        found = self.require(*names, told=f"see unfooled {command} --help; --list shows what there is")
        check_resume(resume=self.resume, restart=self.restart)
        return found

    def stopped(self) -> Exit:
        return interrupted(f"what is done so far is in {self.out}", "repeat the command with --resume")

    def given(self, flags: type[Command]) -> dict[str, Any]:
        """Settings: those that were given by flags, this block's and those of every training, or --set."""
        typed = self.values("epochs", "batch", "lr", "seed", *(field.name for field in fields(flags)))
        given = {name: value for name, value in typed.items() if value is not None and value is not False}
        return given | settings(self.set_)

    def validation(self, data: str) -> Any:
        """A share of the training rows, a file or named set, or another split of the same data."""
        from unfooled.training.preparation import DEFAULT_SHARE

        if self.valid is None:
            return DEFAULT_SHARE
        try:
            return float(self.valid)
        except ValueError:
            pass
        named = Path(self.valid).expanduser().exists() or self.valid.startswith("hf:") or "," in self.valid
        return self.load(self.valid) if named else self.load(data, split=self.valid)


def check_resume(*, resume: bool, restart: bool) -> None:
    if resume and restart:
        raise UserError("--resume and --restart contradict each other", "give one of them")


@dataclass(frozen=True, kw_only=True)
class Server(Command):
    """Commands that open a page."""

    host: str = option("127.0.0.1", "Address to listen on.")
    port: int = option(8765, "0 takes any free one.", min=0, max=65535)
    allow_remote: bool = option(False, "Needed for a --host that other machines can reach.")
    token: str | None = option(
        None, "What visitors from elsewhere need; `new` makes one.", envvar="UNFOOLED_TOKEN"
    )


def slug(*names: str) -> str:
    """A folder's name, from the names of what is in it."""
    return "-".join(re.sub(r"[^\w.@]+", "_", Path(name).name or name).strip("_") for name in names)
