"""Every public name says what it is, with an example that works."""

from __future__ import annotations

import doctest
import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unfooled
from doc_pages import DOCS, blocks
from unfooled.metrics.validity.instruments import ALWAYS
from unfooled.plugins import Registry
from unfooled.resources import store

PAGE = DOCS / "reference" / "api.md"
LISTED = re.findall(r"^::: unfooled\.(\S+)$", PAGE.read_text(encoding="utf-8"), re.M)
NEEDS = {
    "HuggingFaceVictim": "accelerate",
    "HttpVictim": "httpx",
    "SklearnVictim": "sklearn",
    "train": "sklearn",
    "sweep": "optuna",
    "harden": "accelerate",
}


def public(name: str) -> Any:
    """`registry` is the one name that is an object; its class tells what it does."""
    return Registry if name == "registry" else getattr(unfooled, name)


def test_the_page_lists_every_public_name_once() -> None:
    assert sorted("registry" if name == "plugins.Registry" else name for name in LISTED) == unfooled.__all__


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the examples find: the reviews of the start page, and a run on them."""
    root = tmp_path_factory.mktemp("examples")
    (reviews,) = [block for block in blocks(DOCS / "index.md", "csv") if block.title == "reviews.csv"]
    (root / "reviews.csv").write_text(reviews.code, encoding="utf-8")
    unfooled.attack("fake", root / "reviews.csv", "deepwordbug", out=root / "runs" / "x")
    return root


@pytest.mark.parametrize("name", unfooled.__all__)
def test_an_example_works(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    if name == "judge" and not all(store.has(needed) for needed in (*ALWAYS, "potion")):
        pytest.skip("what the judge measures with is not here")
    monkeypatch.chdir(folder)
    text = inspect.getdoc(public(name)) or ""
    known = {"unfooled": unfooled, "Path": Path, "np": np}
    test = doctest.DocTestParser().get_doctest(text, known, name, str(PAGE), 0)
    assert test.examples, f"unfooled.{name} has no example"
    said: list[str] = []
    doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert said == []


@pytest.mark.parametrize("name", unfooled.__all__)
def test_public_members_say_what_they_are(name: str) -> None:
    thing = public(name)
    if inspect.ismodule(thing):
        assert [part for part in thing.__all__ if not inspect.getdoc(getattr(thing, part))] == []
        return
    if not inspect.isclass(thing):
        assert inspect.signature(thing).return_annotation is not inspect.Signature.empty
        return
    own = {member: vars(thing)[member] for member in vars(thing) if not member.startswith("_")}
    told = {
        member: value for member, value in own.items() if inspect.isroutine(value) or hasattr(value, "fget")
    }
    inherited = {member for member in dir(unfooled.Victim) if not member.startswith("_")}
    assert [
        member for member, value in told.items() if not inspect.getdoc(value) and member not in inherited
    ] == []
