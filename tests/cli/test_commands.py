"""A command is one dataclass: what its fields say is what one can type, and what it is given."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from unfooled.cli.app import COMMANDS, app
from unfooled.cli.attack import Attack
from unfooled.cli.command import Command, argument, option
from unfooled.cli.evaluate import Evaluate
from unfooled.cli.options import Data
from unfooled.core.recipe import load_recipe, with_setting
from unfooled.core.victim import as_type as victim_value
from unfooled.defenses.settings import as_type as method_value
from unfooled.errors import UserError
from unfooled.plugins import registry
from unfooled.training.families import find_family, settle
from unfooled.values import pairs, settings, several


@dataclass(frozen=True, kw_only=True)
class Probe(Data):
    """Tell what was typed."""

    files: tuple[Path, ...] = argument((), "Files.")
    count: int = option(3, "How many.", "-c", min=1)
    names: tuple[str, ...] = option((), "Names.", "--name")
    share: float | None = option(None, "A share.")
    dry: bool = option(False, "Nothing is done.")
    split: str = "train"

    def run(self) -> int:
        SEEN.append(self)
        return 3 if self.dry else 0


SEEN: list[Command] = []


@pytest.fixture
def probe() -> Iterator[None]:
    SEEN.clear()
    registry.register("command", "probe", Probe)
    yield
    registry.unregister("command", "probe")


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, [*arguments], env={"COLUMNS": "120"})


@pytest.mark.usefixtures("probe")
def test_a_registered_command_gets_one_object() -> None:
    assert invoke("probe").exit_code == 0
    typed = ["probe", "a", "b", "-c", "2", "--name", "x", "--name", "y", "--share", "1e-3", "--dry"]
    assert invoke(*typed, "--encoding", "latin-1").exit_code == 3
    assert [
        Probe(),
        Probe(
            files=(Path("a"), Path("b")), count=2, names=("x", "y"), share=0.001, dry=True, encoding="latin-1"
        ),
    ] == SEEN
    assert invoke("probe", "--count", "0").exit_code == 2


@pytest.mark.usefixtures("probe")
def test_its_help_has_its_own_options_first_and_a_changed_default() -> None:
    assert re.search(r"probe +Tell what was typed\.", invoke("--help").output)
    told = invoke("probe", "--help").output
    assert told.index("--count") < told.index("--text-column")
    assert "datasets folder. [default: train]" in " ".join(told.split())
    assert told.index("--split") < told.index("--text-column")  # named again in the class, for its place
    assert "--no-dry" not in told


def test_every_command_that_takes_an_attack_changes_it_alike() -> None:
    given: dict[str, Any] = {
        "data": "d.csv",
        "attack": "bae-r",
        "encoder": "potion",
        "masked_lm": "trigram",
        "set_": ("search.fill.most=7",),
    }
    first = Attack(model="fake", **given).recipe()
    assert first == Evaluate(models=("base=fake",), **given).recipe()
    assert {"encode:potion", "fill:trigram"} <= set(first.oracles())
    assert '"most": 7' in json.dumps(first.to_json())
    with pytest.raises(UserError, match="--first and --limit"):
        Attack(model="fake", data="d.csv", first=3, limit=4).run()


def test_listing_the_commands_imports_none_of_them() -> None:
    code = (
        "import sys; sys.argv = ['unfooled', '--help']; from unfooled.cli.app import app;"
        "app(standalone_mode=False); print(*(n for n in sys.modules if n.startswith('unfooled.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.splitlines()[-1].split()) == {
        "unfooled.cli",
        "unfooled.cli.app",
        "unfooled.cli.command",
        "unfooled.errors",
        "unfooled.plugins",
    }
    assert all(f"  {name} " in done.stdout for name in COMMANDS)


@pytest.mark.parametrize(("typed", "meant"), [("on", True), ("Yes", True), ("1", True), ("off", False)])
def test_truth_is_typed_alike_everywhere(typed: str, meant: bool) -> None:
    assert victim_value("x", typed, False) is meant
    assert method_value("x", typed, False) is meant
    assert settle(find_family("lstm"), {"frozen": typed})["frozen"] is meant
    recipe: Any = with_setting(load_recipe("textfooler"), "search.importance.flip_gain", typed)
    assert recipe.search.importance.flip_gain is meant


@pytest.mark.parametrize(("typed", "meant"), [("1e2", 100), ("100", 100), ("1e-3", None), ("many", None)])
def test_whole_numbers_are_typed_alike_everywhere(typed: str, meant: int | None) -> None:

    def of_recipe() -> int:
        recipe: Any = with_setting(load_recipe("textfooler"), "search.candidates.most", typed)
        most: int = recipe.search.candidates.most
        return most

    readers: list[Callable[[], Any]] = [
        of_recipe,
        lambda: victim_value("x", typed, 1),
        lambda: method_value("x", typed, 1),
        lambda: settle(find_family("lstm"), {"hidden": typed})["hidden"],
    ]
    for read in readers:
        if meant is None:
            with pytest.raises(UserError):
                read()
        else:
            assert read() == meant


def test_pairs_and_lists() -> None:
    assert pairs(["a = 1", "b=x=y"], "--set") == {"a": "1", "b": "x=y"}
    assert settings(["max-length=3"]) == {"max_length": "3"}
    assert several(["a,b", "c"]) == ["a", "b", "c"]
    with pytest.raises(UserError, match="--set 'a' has no '='"):
        pairs(["a"], "--set")


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        (["measure"], "RUN"),
        (["evaluate"], "NAME=MODEL"),
        (["evaluate", "base=fake"], "--data"),
    ],
)
def test_what_a_list_does_without_is_missed_elsewhere(arguments: list[str], missing: str) -> None:
    done = invoke(*arguments)
    assert isinstance(done.exception, UserError)
    assert done.exception.cause == f"{missing} is missing"
