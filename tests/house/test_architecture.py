"""Arrows between rooms point one way, and looking at the package costs nothing."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import unfooled

PACKAGE = Path(unfooled.__file__).parent
# Each room may import those before it and itself; a wing all of these, and nothing imports a wing.
ROOMS = [
    "base",
    "resources",
    "language",
    "core",
    "victims",
    "data",
    "training",
    "attacks",
    "defenses",
    "runs",
    "metrics",
    "checks",
    "report",
    "cli",
]
WINGS = ["translation", "internals", "people", "papers"]
APART = {("attacks", "victims")}  # an attack knows questions and answers, never who answers
# The type of `Run.summary()`: named for readers and type checkers, imported only through the registry.
ANNOTATIONS = {
    ("runs.attack", "unfooled.metrics.summary"),
    ("runs.attack", "unfooled.metrics.summary.Summary"),
}
HEAVY = {
    "torch",
    "transformers",
    "sentence_transformers",
    "sklearn",
    "skops",
    "httpx",
    "pyarrow",
    "datasets",
    "scipy",
    "jinja2",
    "matplotlib",
    "starlette",
    "uvicorn",
    "nltk",
}
MODULES = sorted(path for path in PACKAGE.rglob("*.py"))


def room(parts: tuple[str, ...]) -> str:
    return parts[0] if parts[0] in (*ROOMS, *WINGS) else "base"


def allowed(own: str, other: str) -> bool:
    if own == other:
        return True
    if other in WINGS or (own, other) in APART:
        return False
    return own in WINGS or ROOMS.index(other) < ROOMS.index(own)


def imports(tree: ast.AST) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return found


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


def forbidden(path: Path) -> list[str]:
    """What a file imports and may not, wherever in the file it does so."""
    here = module_of(path)
    if here in ("__init__", "__main__"):
        return []  # the public face names everything, and imports it only when asked
    names = {name for name in imports(ast.parse(path.read_text(encoding="utf-8"))) if "unfooled." in name}
    return sorted(
        name
        for name in names
        if not allowed(room(tuple(here.split("."))), room(tuple(name.split(".")[1:])))
        and (here, name) not in ANNOTATIONS
    )


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_arrow_points_back(path: Path) -> None:
    found = forbidden(path)
    assert not found, f"{module_of(path)} imports {', '.join(found)}"


def test_wings_do_not_know_each_other() -> None:
    """What the rule says of them, on names that stand for files."""
    assert allowed("papers", "report")
    assert not allowed("papers", "internals")
    assert not allowed("report", "people")
    assert not allowed("attacks", "victims")
    assert allowed("defenses", "victims")
    assert not allowed("runs", "metrics")


# Blocks the wings named in argv[1].
BLOCK = """
import importlib, importlib.abc, sys

blocked = tuple(f"unfooled.{wing}" for wing in sys.argv[1].split(","))


class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.startswith(blocked):
            raise ModuleNotFoundError(f"{name} is not here", name=name)
        return None


if sys.argv[1]:
    sys.meta_path.insert(0, Blocked())
"""
# Imports all the rest, and takes a run from the attack to the gate.
WITHOUT = f"""{BLOCK}
from pathlib import Path

for name in sys.argv[3].split():
    importlib.import_module(name)

import unfooled
from unfooled.checks.gate import Rule, apply_rules, overall
from unfooled.report.html import write_html

folder = Path(sys.argv[2])
reviews = [("a superb film", "positive"), ("an awful film", "negative"), ("a great story", "positive")]
run = unfooled.attack("fake", reviews, "deepwordbug", out=folder / "run")
write_html([run.path], folder / "page.html")
judged = apply_rules(run.summary(), [Rule("errors", "max", 0.9), Rule("aua", "min", 1.0)])
loaded = sorted(name for name in sys.modules if name.startswith("unfooled."))
print(run.summary().total, overall(judged), *loaded)
"""


def without(wings: Sequence[str], modules: Sequence[str], folder: Path) -> list[str]:
    """Total and verdict of a small run on the fake victim, and which modules of ours it took."""
    command = [sys.executable, "-c", WITHOUT, ",".join(wings), str(folder), " ".join(modules)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    "left_out",
    [[*WINGS], *(pytest.param([wing], marks=pytest.mark.slow) for wing in WINGS)],
    ids=["all", *WINGS],
)
def test_everything_else_works_without_a_wing(left_out: list[str], tmp_path: Path) -> None:
    faces = ("__init__", "__main__")
    modules = [f"unfooled.{name}" for name in map(module_of, MODULES) if name not in faces]
    modules = [name for name in modules if name.split(".")[1] not in WINGS]
    assert len(modules) > 200
    total, verdict, *loaded = without(left_out, modules, tmp_path)
    assert (total, verdict) == ("3", "fail")
    assert set(modules) <= set(loaded)
    assert (tmp_path / "page.html").stat().st_size > 10_000


def typed_without(wing: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    run = f"{BLOCK}\nfrom unfooled.cli.app import main; sys.argv[:2] = ['unfooled']; main()"
    command = [sys.executable, "-c", run, wing, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize(
    ("wing", "commands"),
    [
        ("translation", set()),
        ("internals", {"analyse"}),
        ("people", {"playground", "study"}),
        ("papers", {"reproduce"}),
    ],
)
def test_commands_of_a_wing_are_absent_without_it(wing: str, commands: set[str]) -> None:
    """The rest of the list stays as it is; a command that is not there is an unknown one."""
    whole, part = (
        re.findall(r"^  (\w+)  +\w", typed_without(blocked, "--help").stdout, re.MULTILINE)
        for blocked in ("", wing)
    )
    assert [name for name in whole if name not in commands] == part
    assert commands < set(whole)
    for name in commands:
        absent = typed_without(wing, name)
        assert absent.returncode == 2
        assert f"No such command '{name}'" in absent.stderr


def test_attacks_of_a_wing_are_absent_without_it() -> None:
    whole, part = (
        [recipe["name"] for recipe in json.loads(typed_without(wing, "attacks", "--json").stdout)]
        for wing in ("", "translation")
    )
    gone = {"targeted-keyword", "typo", "bleu-drop", "non-overlapping", "seq2sick", "morpheus"}
    assert [name for name in whole if name.partition("@")[0] not in gone] == part
    assert gone <= {name.partition("@")[0] for name in whole}
    absent = typed_without("translation", "show", "typo")
    assert absent.returncode == 2
    assert "there is no attack called 'typo'" in absent.stderr


def test_an_attack_on_a_classifier_imports_no_wing(tmp_path: Path) -> None:
    total, _, *loaded = without([], [], tmp_path)
    assert total == "3"
    assert {"unfooled.runs.task", "unfooled.report.html"} <= set(loaded)
    assert not [name for name in loaded if name.split(".")[1] in WINGS]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_heavy_libraries_are_imported_where_they_are_used(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = ast.Module(
        body=[node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)], type_ignores=[]
    )
    assert not {name.split(".")[0] for name in imports(top)} & HEAVY


def loaded_after(code: str) -> set[str]:
    script = f"import sys; {code}; print(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=600
    )
    return set(done.stdout.splitlines()[-1].split())


def test_importing_loads_no_model_library() -> None:
    assert not loaded_after("import unfooled") & (HEAVY | {"numpy", "rich", "typer"})


def test_help_loads_no_model_library() -> None:
    code = "sys.argv = ['unfooled', '--help']; from unfooled.cli.app import app; app(standalone_mode=False)"
    assert not loaded_after(code) & HEAVY


# Of one attack from the command line: whoever follows it through the package has this much to read.
MOST_MODULES = 63


def test_one_attack_imports_what_it_uses(tmp_path: Path) -> None:
    data = tmp_path / "reviews.csv"
    data.write_text("text,label\na superb film,positive\nan awful film,negative\n", encoding="utf-8")
    command = ["unfooled", "attack", "--model", "fake", "--attack", "deepwordbug", "--data", str(data)]
    command += ["--out", str(tmp_path / "run")]
    loaded = loaded_after(
        f"sys.argv = {command!r}; from unfooled.cli.app import app; app(standalone_mode=False)"
    )
    ours = sorted(name for name in loaded if name.partition(".")[0] == "unfooled")
    assert {"unfooled.attacks.deepwordbug", "unfooled.runs.file", "unfooled.report.tables"} <= set(ours)
    assert len(ours) <= MOST_MODULES, ours


def test_the_public_surface_is_what_it_says() -> None:
    assert sorted(unfooled.__all__) == unfooled.__all__ == dir(unfooled)
    for name in unfooled.__all__:
        assert getattr(unfooled, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        unfooled.nothing  # noqa: B018


def test_no_two_classes_of_one_name() -> None:
    """A name says what a thing is: within the package it is one thing."""
    places: dict[str, list[str]] = {}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(module_of(path))
    assert {name: modules for name, modules in places.items() if len(modules) > 1} == {}
