"""A short way to read the skops files that text classifiers are: fixed types, built from plain data.

The `skops` package loads every estimator of scikit-learn to know which it may trust, and reads a file twice.
Here the types are a short list. Nothing else is ever looked up, and whatever is not understood is left to
`skops`, so this decides how fast a file is read, never whether.
"""

from __future__ import annotations

import importlib
import io
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

_PROTOCOL = 2
_ESTIMATORS = frozenset(
    {
        ("sklearn.pipeline", "Pipeline"),
        ("sklearn.feature_extraction.text", "CountVectorizer"),
        ("sklearn.feature_extraction.text", "HashingVectorizer"),
        ("sklearn.feature_extraction.text", "TfidfTransformer"),
        ("sklearn.feature_extraction.text", "TfidfVectorizer"),
        ("sklearn.naive_bayes", "BernoulliNB"),
        ("sklearn.naive_bayes", "ComplementNB"),
        ("sklearn.naive_bayes", "MultinomialNB"),
        ("sklearn.linear_model._logistic", "LogisticRegression"),
        ("sklearn.linear_model._stochastic_gradient", "SGDClassifier"),
        ("sklearn.svm._classes", "LinearSVC"),
    }
)
_LOSSES = frozenset(
    {
        ("sklearn.linear_model._sgd_fast", "Hinge"),
        ("sklearn.linear_model._sgd_fast", "ModifiedHuber"),
        ("sklearn.linear_model._sgd_fast", "SquaredHinge"),
        ("sklearn._loss._loss", "CyHalfBinomialLoss"),
    }
)
_NUMBERS = frozenset({"bool", "float32", "float64", "int32", "int64"})
_BUILT_IN: Mapping[str, type] = {"bool": bool, "float": float, "int": int, "str": str}

State = Mapping[str, Any]


class NotPlainError(Exception):
    """The file holds something that only skops can judge."""


def read_plain(path: Path) -> Any:
    """The model in a skops file; `NotPlainError` where it holds more than the parts above."""
    try:
        with zipfile.ZipFile(path) as archive:
            schema = json.loads(archive.read("schema.json"))
            if schema["protocol"] != _PROTOCOL:
                raise NotPlainError("another protocol")
            return _Builder(archive).build(schema)
    except NotPlainError:
        raise
    except Exception as error:  # a damaged file: skops says what is wrong with it
        raise NotPlainError(str(error)) from error


class _Builder:
    """Objects of one file. A node whose number was seen before is the same object again."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._built: dict[int, Any] = {}
        self._loaders: dict[str, Callable[[State], Any]] = {
            "DictNode": self._dict,
            "JsonNode": lambda state: json.loads(state["content"]),
            "ListNode": self._list,
            "LossNode": self._loss,
            "NdArrayNode": self._array,
            "ObjectNode": self._estimator,
            "TupleNode": self._tuple,
            "TypeNode": self._type,
        }

    def build(self, state: State) -> Any:
        number = state.get("__id__")
        if number is not None and number in self._built:
            return self._built[number]
        loader = self._loaders.get(state["__loader__"])
        if loader is None:
            raise NotPlainError(f"a {state['__loader__']}")
        built = loader(state)
        if number is not None:
            self._built[number] = built
        return built

    def _dict(self, state: State) -> dict[Any, Any]:
        _require(state, "builtins", "dict")
        types, content = self.build(state["key_types"]), state["content"]
        if len(types) != len(content) or not set(types) <= {str, int}:
            raise NotPlainError("keys of other types")
        build = self.build
        return {kind(key): build(value) for kind, (key, value) in zip(types, content.items(), strict=True)}

    def _list(self, state: State) -> list[Any]:
        _require(state, "builtins", "list")
        return [self.build(part) for part in state["content"]]

    def _tuple(self, state: State) -> tuple[Any, ...]:
        _require(state, "builtins", "tuple")
        return tuple([self.build(part) for part in state["content"]])

    def _type(self, state: State) -> type:
        module, name = state["__module__"], state["__class__"]
        if module == "builtins" and name in _BUILT_IN:
            return _BUILT_IN[name]
        found: type = _number_type(module, name)
        return found

    def _array(self, state: State) -> Any:
        if state["type"] == "json":
            _require(state, "numpy", "ndarray")
            items = [self.build(part) for part in state["content"]]
            if self.build(state["shape"]) != (len(items),):
                raise NotPlainError("objects in more than one dimension")
            objects = np.empty(len(items), dtype=object)
            objects[:] = items
            return objects
        array = np.load(io.BytesIO(self._archive.read(state["file"])), allow_pickle=False)
        module, name = state["__module__"], state["__class__"]
        return array if (module, name) == ("numpy", "ndarray") else _number_type(module, name)(array)

    def _estimator(self, state: State) -> Any:
        found = _look_up(state, _ESTIMATORS)
        estimator = found.__new__(found)
        estimator.__setstate__(self.build(state["content"]))
        return estimator

    def _loss(self, state: State) -> Any:
        if self.build(state["content"]):
            raise NotPlainError("a loss with a state")
        return _look_up(state, _LOSSES)(*self.build(state["__reduce__"]["args"]))


def _require(state: State, module: str, name: str) -> None:
    if (state["__module__"], state["__class__"]) != (module, name):
        raise NotPlainError(f"a {state['__module__']}.{state['__class__']}")


def _look_up(state: State, known: frozenset[tuple[str, str]]) -> Any:
    module, name = state["__module__"], state["__class__"]
    if (module, name) not in known:
        raise NotPlainError(f"a {module}.{name}")
    return getattr(importlib.import_module(module), name)


def _number_type(module: str, name: str) -> Any:
    if module != "numpy" or name not in _NUMBERS:
        raise NotPlainError(f"a {module}.{name}")
    return np.dtype(name).type
