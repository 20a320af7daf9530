"""Recipes: named, versioned, printable values that say what an attack is made of.

`textfooler` means the first version listed in its file; `textfooler@paper` names one. Every part is a frozen
dataclass, so a recipe can be written into a run file and rebuilt from it.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

from unfooled.core.attempt import Search
from unfooled.core.victim import task_of
from unfooled.errors import RunFileError, UnknownNameError
from unfooled.plugins import registry, unknown_name

# Marks the `field` of a setting that a part got when there were runs with it: files have it only where it is
# not the default, so that the recipes of those runs stay what they were, and the runs go on as they began.
LATER = {"later": True}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A goal, a search and its parts. The victim comes at run time.

    Example:

        >>> recipe = unfooled.load_recipe("textfooler")
        >>> recipe.full_name, recipe.requires()
        ('textfooler@textattack', ('probabilities',))
    """

    name: str
    version: str
    summary: str
    paper: str
    goal: Any  # a `Goal`, or what else its victims answer to
    search: Search
    needs: tuple[str, ...] = ("probabilities",)
    asking: Any = None  # another way to put the same questions; None: constraints first, then the victim

    @property
    def full_name(self) -> str:
        """Name and version, as `load_recipe` takes them."""
        return f"{self.name}@{self.version}"

    def oracles(self) -> list[str]:
        """Names of the oracles, other than the victim, that its parts ask."""
        found = (name for part in _parts(self) for name in getattr(part, "asks", ()))
        return list(dict.fromkeys(found))

    def requires(self) -> tuple[str, ...]:
        """What it needs of the victim: its own `needs` and those of its parts."""
        found = (name for part in _parts(self) for name in getattr(part, "needs", ()))
        return tuple(dict.fromkeys(found))

    @property
    def levels(self) -> tuple[str, ...]:
        """What it edits: `characters`, `words` or `sentences`.

        A search says so with `level`, or its sources do: those that change the spelling of any word
        (`spells`) edit characters, all others words.
        """
        if own := getattr(self.search, "level", ""):
            return (own,)
        sources = [part for part in _parts(self.search) if hasattr(part, "propose")]
        inner = [
            part for part in sources if not any(hasattr(within, "propose") for within in [*_parts(part)][1:])
        ]
        spelled = {bool(getattr(part, "spells", False)) for part in inner}
        levels = {"characters": True in spelled, "words": False in spelled or not spelled}
        return tuple(level for level, edited in levels.items() if edited)

    @property
    def task(self) -> str:
        """What its victims do: `classification` or `translation`."""
        return task_of(self.requires())

    def files(self) -> dict[str, str]:
        """Files of the user's own that its parts read, and how to make each."""
        found: dict[str, str] = {}
        for part in _parts(self):
            found |= getattr(part, "reads", {})
        return found

    def to_json(self, *, whole: bool = False) -> dict[str, Any]:
        """Every part and setting, as a run file keeps them; `whole`: also the `LATER` ones left unset."""
        described = _to_json(self, whole)
        assert isinstance(described, dict)
        if self.asking is None:
            del described["asking"]  # runs from before there was a choice go on as they began
        return described


def recipe_versions(
    searches: Mapping[str, Search],
    *,
    name: str,
    summary: str,
    paper: str,
    goal: Any,
    needs: tuple[str, ...] = ("probabilities",),
) -> dict[str, Recipe]:
    """Versions of an attack that differ in nothing but their search, the default first."""
    about: dict[str, Any] = {"name": name, "summary": summary, "paper": paper, "goal": goal, "needs": needs}
    return {version: Recipe(version=version, search=search, **about) for version, search in searches.items()}


def asking(*names: str) -> property:
    """A part's `asks`: names of oracles, with the part's own settings in braces.

    asks = asking("neighbours:{self.table}")
    """
    return property(lambda part: tuple(name.format(self=part) for name in names))


def require_counts(part: object, *names: str) -> None:
    """Refuse settings of a part that count something and are below 1."""
    for name in names:
        if getattr(part, name) < 1:
            raise ValueError(f"{name} is at least 1")


def load_recipe(name: str) -> Recipe:
    """The attack of that name; a version stands behind `@`, and the first of them is meant without it.

    Example:

        >>> unfooled.load_recipe("deepwordbug@paper").summary
        'misspells the most important words'
    """
    recipe: Recipe = registry.load_version("attack", name)
    return recipe


def all_recipes() -> Iterator[Recipe]:
    """Each once, however many names lead to it."""
    found = (recipe for name in registry.names("attack") for recipe in registry.load("attack", name).values())
    yield from dict.fromkeys(found)


def recipe_from_json(described: Mapping[str, Any]) -> Recipe:
    try:
        recipe = _from_json(described)
    except (AttributeError, ImportError, TypeError, ValueError) as error:
        raise RunFileError(
            f"this recipe cannot be rebuilt here: {error}",
            "use the version of unfooled, and the plug-ins, that wrote the run",
        ) from error
    if not isinstance(recipe, Recipe):
        raise RunFileError("this is not a recipe", "check that the file was written by unfooled")
    return recipe


def with_setting(recipe: Recipe, path: str, value: str) -> Recipe:
    """A copy with one value changed, such as `search.candidates.most=20`.

    A tuple of parts is reached by number: `search.constraints.1.threshold=0.7`.
    """
    if path.split(".")[0] not in ("goal", "search"):
        raise unknown_name("setting", path, ["goal", "search"])
    try:
        changed = _replaced(recipe, path.split("."), value, path)
    except ValueError as error:
        raise UnknownNameError(
            f"{path}={value}: {error}", "`unfooled show ATTACK` lists the settings"
        ) from None
    assert isinstance(changed, Recipe)
    return _marked(recipe, changed)


def fit_to_victim(recipe: Recipe, victim: Any) -> Recipe:
    """The recipe with what depends on the victim decided once, before a run.

    A part decides through its method `fit(victim) -> part`. What is decided is written into the run.
    """
    changed = _rebuilt(recipe, lambda part: part.fit(victim) if hasattr(part, "fit") else part)
    assert isinstance(changed, Recipe)
    return changed


def load_part(kind: str, name: str) -> Any:
    """A part by its registered name; `name:value` gives its first setting, such as `attention:-1`."""
    base, _, value = name.partition(":")
    made: Any = registry.load(kind, base)
    settings = [field.name for field in dataclasses.fields(made)]
    try:
        if not value:
            return made()
        if not settings:
            raise ValueError("it has no settings")
        return made(_parsed(get_type_hints(made)[settings[0]], value))
    except TypeError:
        raise UnknownNameError(
            f"{kind} {base!r} needs a value", f"write {base}:{settings[0].upper()}"
        ) from None
    except ValueError as error:
        raise UnknownNameError(
            f"{kind} {name!r}: {error}", "the part behind ':' is its first setting"
        ) from None


def fit_to_machine(recipe: Recipe) -> tuple[Recipe, list[str]]:
    """The recipe with what depends on this machine decided once, before a run, and what to tell the user.

    A part decides through its method `settle() -> (part, notice)`. What is decided is written into the run.
    """
    notices: list[str] = []

    def settle(part: Any) -> Any:
        if not hasattr(part, "settle"):
            return part
        decided, notice = part.settle()
        notices.extend([notice] if notice else [])
        return decided

    return _rebuilt(recipe, settle), list(dict.fromkeys(notices))


def _rebuilt(part: Any, change: Callable[[Any], Any]) -> Any:
    """A copy in which every part went through `change`, the outer ones first."""
    if isinstance(part, tuple):
        return tuple(_rebuilt(member, change) for member in part)
    if not dataclasses.is_dataclass(part) or isinstance(part, type):
        return part
    part = change(part)
    fields = {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}
    new = {name: _rebuilt(old, change) for name, old in fields.items()}
    changed = {name: value for name, value in new.items() if value is not fields[name]}
    return dataclasses.replace(part, **changed) if changed else part


def with_everywhere(recipe: Recipe, setting: str, value: Any) -> Recipe:
    """A copy in which every part that has the setting gets the value: another encoder, another importance."""
    if not any(hasattr(part, setting) for part in _parts(recipe)):
        raise UnknownNameError(
            f"{recipe.full_name} has no part with the setting {setting!r}",
            f"`unfooled show {recipe.full_name}` lists its settings",
        )
    changed = _everywhere(recipe, setting, value)
    assert isinstance(changed, Recipe)
    return _marked(recipe, changed)


def with_constraint(recipe: Recipe, part: Any) -> Recipe:
    """A copy whose edits must also respect `part`, asked after the recipe's own constraints."""
    own = getattr(recipe.search, "constraints", None)
    if not isinstance(own, tuple):
        raise UnknownNameError(
            f"{recipe.full_name} has no constraints that one could add to",
            f"`unfooled show {recipe.full_name}` lists its parts",
        )
    search: Any = recipe.search
    return _marked(
        recipe, dataclasses.replace(recipe, search=dataclasses.replace(search, constraints=(*own, part)))
    )


def with_asking(recipe: Recipe, asking: Any) -> Recipe:
    """A copy that puts its questions in that way, and says so in its name."""
    return dataclasses.replace(recipe, asking=asking, version=f"{recipe.version}+{asking.mark}")


def _marked(old: Recipe, new: Recipe) -> Recipe:
    """A changed recipe says so in its name: its numbers are not the named version's."""
    return old if new == old else dataclasses.replace(new, version=f"{old.version.split('+')[0]}+changed")


def _everywhere(part: Any, setting: str, value: Any) -> Any:
    if isinstance(part, tuple):
        return tuple(_everywhere(member, setting, value) for member in part)
    if not dataclasses.is_dataclass(part) or isinstance(part, type):
        return part
    fields = {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}
    new = {
        name: value if name == setting else _everywhere(old, setting, value) for name, old in fields.items()
    }
    return dataclasses.replace(part, **new)


def _replaced(part: Any, names: list[str], value: str, path: str) -> Any:
    name, *rest = names
    if isinstance(part, tuple) and name.isdigit() and int(name) < len(part) and rest:
        place = int(name)
        return (*part[:place], _replaced(part[place], rest, value, path), *part[place + 1 :])
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        known = [field.name for field in dataclasses.fields(part)]
        if name not in known:
            raise unknown_name("setting", path, known)
        kind = get_type_hints(type(part))[name]
        new = _replaced(getattr(part, name), rest, value, path) if rest else _parsed(kind, value)
        return dataclasses.replace(part, **{name: new})
    raise UnknownNameError(f"{path!r} leads nowhere at {name!r}", "`unfooled show ATTACK` lists the settings")


def _parsed(kind: Any, value: str) -> Any:
    """The value as the setting's annotated type; ValueError says what would fit."""
    from unfooled.values import read_number, read_truth

    choices = get_args(kind)
    if get_origin(kind) is Literal:
        if value not in choices:
            raise ValueError(f"choose one of {', '.join(map(str, choices))}")
        return value
    if type(None) in choices:
        if value.lower() == "none":
            return None
        (kind,) = (member for member in choices if member is not type(None))
    if kind is bool:
        return read_truth(value)
    if kind in (int, float):
        try:
            number = read_number(value, whole=kind is int)
        except ValueError:
            raise ValueError(f"this setting is a number ({kind.__name__})") from None
        if not math.isfinite(number):
            raise ValueError("this is not a finite number")
        return number
    if kind is str:
        return value
    raise ValueError("this is made of parts and cannot be set as a whole")


def _parts(value: Any) -> Iterator[Any]:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield value
        for field in dataclasses.fields(value):
            yield from _parts(getattr(value, field.name))
    elif isinstance(value, tuple):
        for member in value:
            yield from _parts(member)


def _to_json(value: Any, whole: bool) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        settings = {
            field.name: _to_json(getattr(value, field.name), whole)
            for field in dataclasses.fields(value)
            if whole or field.metadata != LATER or getattr(value, field.name) != field.default
        }
        return {"part": part_name(type(value)), **settings}
    if isinstance(value, tuple):
        return [_to_json(member, whole) for member in value]
    return value


def _from_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        module, _, name = str(value.get("part", "")).partition(":")
        # Only parts that belong to us or to a plug-in that registered an attack may be built.
        allowed = {"unfooled"} | {
            type(member).__module__.split(".")[0] for recipe in all_recipes() for member in _parts(recipe)
        }
        if module.split(".")[0] not in allowed:
            raise ValueError(f"unknown part {value.get('part')!r}")
        kind: Any = getattr(_module_of_part(module), name)
        if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
            raise ValueError(f"{value['part']} is not a part")
        return kind(**{key: _from_json(member) for key, member in value.items() if key != "part"})
    if isinstance(value, list):
        return tuple(_from_json(member) for member in value)
    return value


def part_name(kind: type) -> str:
    """What a part is called in files: `unfooled.attacks.goals:Untargeted`.

    The folder below `attacks` in which our file lies is not in it, so that moving one changes no run.
    """
    module = kind.__module__
    if module.startswith("unfooled.") and ".attacks." in module:
        module = f"unfooled.attacks.{module.rpartition('.')[2]}"
    return f"{module}:{kind.__qualname__}"


def _module_of_part(module: str) -> Any:
    """The module behind the name that `part_name` gives."""
    package, _, last = module.rpartition(".")
    if package != "unfooled.attacks":
        return importlib.import_module(module)
    homes = [f"{package}.parts", *registry.packages("attack")]
    for home in homes:
        if importlib.util.find_spec(f"{home}.{last}"):
            return importlib.import_module(f"{home}.{last}")
    raise ImportError(f"there is no part {module}")
