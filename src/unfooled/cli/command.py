"""A command is a frozen dataclass: a field is an option, written once, and `run` is what the command does;
what that returns is its exit code.

Commands are named in a table and imported when they run, so that `unfooled --help` costs nothing.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import MISSING, Field, dataclass, field, fields
from enum import IntEnum
from typing import Annotated, Any, ClassVar, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from unfooled.plugins import registry

_DECLARED = "unfooled.cli"  # in the metadata of a field: how it is typed


class Exit(IntEnum):
    DONE = 0
    GATE_FAILED = 1
    MISTAKE = 2  # the user can mend it; the message says how
    SOME_ERRORS = 3  # finished, but some examples could not be attacked
    GATE_UNDECIDED = 4  # too few examples to tell
    CAPPED = 5  # stopped at --max-cost or --max-hours; the same command goes on
    INTERRUPTED = 130
    NOT_READ = 141  # who reads the output stopped, as `head` does


def interrupted(saved: str, remedy: str = "repeat the command to go on") -> Exit:
    """Tell what is kept, and how to go on."""
    typer.echo(f"interrupted: {saved}\n  → {remedy}", err=True)
    return Exit.INTERRUPTED


@dataclass(frozen=True, kw_only=True)
class Command:
    """What `unfooled NAME …` was given, and what it does with it.

    A plug-in adds one through the entry-point group `unfooled.command`; its docstring is its help.
    """

    EPILOG: ClassVar[str] = ""

    def run(self) -> int | None:
        """Do it; the exit code, where it is not 0."""
        raise NotImplementedError

    def values(self, *names: str) -> dict[str, Any]:
        """What these options were given, for an object whose fields have the same names."""
        return {name: getattr(self, name) for name in names}

    def trusted(self) -> AbstractContextManager[None]:
        """What files may do while the command runs; see `options.Trust`."""
        return nullcontext()

    def computing(self) -> AbstractContextManager[None]:
        """Where models compute while the command runs; see `options.Devices`."""
        return nullcontext()


def option(default: Any, help: str, *flags: str, **more: Any) -> Any:
    """A field that is typed `--name`. A short flag adds to it, a long one replaces it; `...`: required."""
    return _field(default, typer.Option, help, flags, more)


def argument(default: Any, help: str, **more: Any) -> Any:
    """A field that is typed without a name; `...`: required."""
    return _field(default, typer.Argument, help, (), more)


def _field(default: Any, kind: Any, help: str, flags: tuple[str, ...], more: dict[str, Any]) -> Any:
    declared = {_DECLARED: (kind, help, flags, more)}
    return field(default=MISSING if default is ... else default, metadata=declared)


def build(name: str, kind: type[Command], help: str) -> TyperCommand:
    """The command as typer knows it: its own options first, then the blocks that it shares with others."""
    hints = get_type_hints(kind)
    defaults = {field.name: field.default for field in fields(kind)}
    several = {option for option, hint in hints.items() if get_origin(hint) is tuple}

    def callback(**given: Any) -> None:
        command = kind(**{name: tuple(v or ()) if name in several else v for name, v in given.items()})
        with command.trusted(), command.computing():
            try:
                code = command.run() or 0
            except BrokenPipeError:  # a pipe other than the output's own; click would call it a failure
                code = Exit.NOT_READ
            raise typer.Exit(code)

    parameters = [
        _parameter(name, metadata, hints[name], defaults[name]) for name, metadata in _declared(kind).items()
    ]
    callback.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name, help=help, epilog=kind.EPILOG or None)(callback)
    built = typer.main.get_command(alone)
    assert isinstance(built, TyperCommand)
    return built


def _declared(kind: type[Command]) -> dict[str, Any]:
    """How each field is typed, a class's own first; to change a default or a place, its name is enough."""
    found: dict[str, Any] = {}
    for owner in kind.__mro__:
        own: Mapping[str, Field[Any]] = vars(owner).get("__dataclass_fields__", {})
        for name in filter(own.__contains__, vars(owner).get("__annotations__", {})):
            found[name] = found.get(name) or own[name].metadata.get(_DECLARED)
    return {name: declared for name, declared in found.items() if declared}


def _parameter(name: str, declared: Any, hint: Any, default: Any) -> inspect.Parameter:
    kind, help, flags, more = declared
    if get_origin(hint) is tuple:
        hint = list[get_args(hint)[0]]  # type: ignore[misc]
        hint, default = (hint | None, None) if default == () else (hint, default)
    if kind is typer.Option and not any(flag.startswith("--") for flag in flags):
        flags = (f"--{name.replace('_', '-')}", *flags)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        annotation=Annotated[hint, kind(*flags, help=help, **more)],
        default=inspect.Parameter.empty if default is MISSING else default,
    )


@dataclass(frozen=True)
class Group:
    """Commands under a name of their own, such as `unfooled study create`.

    What is no command of the group is given to its `default`: `unfooled judge runs/x`.
    """

    help: str
    commands: Table
    default: str = ""


Table = Mapping[str, tuple[str, str] | Group]  # name: ("module:Class", the line that --help shows) or a group
WING = ""  # in place of "module:Class": a wing has put it into the registry, under what is typed


class Commands(Mapping[str, Any]):
    """Those of a table, each imported when it is asked for; those of a wing that was left out are not there.

    `before` is what is typed before their names.
    """

    def __init__(self, table: Table, before: str = "") -> None:
        self._table = table
        self._before = before
        self._built: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if not self.is_here(name):
            raise KeyError(name)
        if name not in self._built:
            self._built[name] = self._build(name)
        return self._built[name]

    def __iter__(self) -> Iterator[str]:
        return filter(self.is_here, self._table)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def is_here(self, name: str) -> bool:
        entry = self._table.get(name)
        if isinstance(entry, Group):
            return len(self._inside(name, entry)) > 0
        return entry is not None and (
            entry[0] != WING or f"{self._before}{name}" in registry.names("command")
        )

    def help(self, name: str) -> str:
        entry = self._table[name]
        return entry.help if isinstance(entry, Group) else entry[1]

    def _inside(self, name: str, group: Group) -> Commands:
        return Commands(group.commands, f"{self._before}{name} ")

    def _build(self, name: str) -> Any:
        entry = self._table[name]
        if isinstance(entry, Group):
            return LazyGroup(
                self._inside(name, entry),
                default=entry.default,
                name=name,
                help=entry.help,
                no_args_is_help=True,
                rich_markup_mode=None,
            )
        if entry[0] == WING:
            return build(name, registry.load("command", f"{self._before}{name}"), entry[1])
        module, _, attribute = entry[0].partition(":")
        return build(name, getattr(importlib.import_module(module), attribute), entry[1])


class AllCommands(Commands):
    """Those of the table, and those of plug-ins."""

    def __iter__(self) -> Iterator[str]:
        yield from super().__iter__()
        yield from filter(self._is_plug_in, registry.names("command"))

    def is_here(self, name: str) -> bool:
        return super().is_here(name) or self._is_plug_in(name)

    def help(self, name: str) -> str:
        if self._is_plug_in(name):
            return inspect.getdoc(registry.load("command", name)) or ""
        return super().help(name)

    def _is_plug_in(self, name: str) -> bool:
        return name not in self._table and " " not in name and name in registry.names("command")

    def _build(self, name: str) -> Any:
        if self._is_plug_in(name):
            return build(name, registry.load("command", name), self.help(name))
        return super()._build(name)


class LazyGroup(TyperGroup):
    """Lists its commands without importing them."""

    def __init__(self, table: Commands, default: str = "", **settings: Any) -> None:
        super().__init__(**settings)
        self._default = default
        self._listed = table
        self.commands = table  # type: ignore[assignment]

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if self._default and args and args[0] not in self.commands:
            args = [self._default, *args]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        listed = {name: TyperCommand(name, help=self._listed.help(name)) for name in self._listed}
        TyperGroup(name=self.name, commands=dict(listed)).format_commands(ctx, formatter)
