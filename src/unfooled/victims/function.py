"""Any Python function as a victim: `f(list of texts)` that returns probabilities, logits or labels."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from unfooled.core.victim import SPECIMEN, Probabilities, Reloadable, TextValue, Victim, digest
from unfooled.core.victim_oracle import DECIMALS, ScoreRange
from unfooled.errors import UserError, VictimError
from unfooled.victims.answers import Answers, find_labels, interpret
from unfooled.victims.labels import settle_labels

Function = Callable[[list[Any]], Any]

# What a function is asked to tell it from another: a helper that it calls may change without its own source.
PROBES = (
    SPECIMEN,
    "A superb and moving film with a great cast.",
    "An awful, dull and pointless waste of two hours!",
    "The committee will meet again on Tuesday to discuss the budget.",
    "I do not hate it, but @someone said it was worse than 2 out of 10 :(",
)


class FunctionVictim(Reloadable):
    """Wraps `function`, which gets a list of texts (or of tuples, for pairs) and answers one entry each.

    An answer is a row of probabilities, a mapping from label to score, or a decided label. Without `labels`
    the function's own attribute `labels` counts, or else what one answer shows. `logits=True` applies a
    softmax.

    Example:

        >>> def shouting(texts):
        ...     return [[0.1, 0.9] if text.isupper() else [0.8, 0.2] for text in texts]
        >>> victim = unfooled.FunctionVictim(shouting, labels=("calm", "loud"))
        >>> victim.predict(["HELLO"]).tolist()
        [[0.1, 0.9]]
    """

    def __init__(
        self,
        function: Function,
        *,
        labels: Sequence[str] | None = None,
        name: str = "",
        logits: bool = False,
        batch_size: int = 1024,
    ) -> None:
        self.function = function
        self.name = name or getattr(function, "__name__", type(function).__name__)
        self.logits = logits
        self.batch_size = batch_size
        self._labels = None if labels is None else tuple(labels)
        self._hard: bool | None = None
        self.raw_range = ScoreRange()  # of the numbers that a softmax was applied to
        self._fingerprint = ""
        self.unsteady = False  # two answers to the same texts differed, so the fingerprint leaves them out

    @property
    def labels(self) -> tuple[str, ...]:
        if self._labels is None:
            own = getattr(self.function, "labels", None)
            self._labels = tuple(map(str, own)) if own is not None else find_labels(self._look())
        return self._labels

    @property
    def capabilities(self) -> frozenset[str]:
        if self._hard is None:
            self._hard = self._interpret(self._look(), 1).hard
        return frozenset() if self._hard else frozenset({"probabilities"})

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        if not texts:
            return self._interpret([], 0).scores
        answers = self._interpret(self._call(texts), len(texts))
        # Scores once, scores for ever: a batch of ones and zeros says nothing against it.
        self._hard = answers.hard and self._hard is not False
        self.raw_range = self.raw_range.with_(answers.raw)
        return answers.scores

    def _call(self, texts: Sequence[TextValue]) -> Any:
        try:
            return self.function(list(texts))
        except Exception as error:
            if isinstance(error, UserError) or not any(isinstance(text, tuple) for text in texts):
                raise
            raise VictimError(
                f"{self.name} fails on pairs of texts: {type(error).__name__}: {error}",
                "several columns of the data were read as one pair, so the function gets tuples; if it wants "
                "plain texts, choose the column: --text-column NAME (in Python: load_data(…, text=NAME))",
            ) from error

    def fingerprint(self) -> str:
        """Follows the function's source where that can be read, and its answers to a few fixed texts.

        The texts are asked twice, ten in all, once per victim and beside the queries of any attack. Answers
        that differ, of a function with chance in it, are left out, and so are errors: both would make every
        run another one.
        """
        if not self._fingerprint:
            target = self.function if hasattr(self.function, "__qualname__") else type(self.function)
            try:
                source = inspect.getsource(target)
            except (OSError, TypeError):
                source = ""
            where = getattr(target, "__module__", ""), getattr(target, "__qualname__", self.name)
            self._fingerprint = digest("python", *where, source, self.labels, self.logits, *self._answered())
        return self._fingerprint

    def _answered(self) -> tuple[str, ...]:
        """Rounded answers to the fixed texts, as strings; none where they are no use."""
        texts: list[TextValue] = list(PROBES)
        try:
            first, again = (self._interpret(self._call(texts), len(texts)).scores for _ in range(2))
        except Exception:
            texts = [(text, text) for text in PROBES]
            try:
                first, again = (self._interpret(self._call(texts), len(texts)).scores for _ in range(2))
            except Exception:
                return ()
        told = [str(np.round(scores, DECIMALS).tolist()) for scores in (first, again)]
        self.unsteady = told[0] != told[1]
        return () if self.unsteady else (told[0],)

    def _interpret(self, raw: Any, count: int) -> Answers:
        return interpret(raw, count, self.labels, logits=self.logits)

    def _look(self) -> Any:
        """The answer to one text; functions made for pairs refuse a plain one, so they get a pair."""
        try:
            return self.function([SPECIMEN])
        except Exception as error:
            try:
                return self.function([(SPECIMEN, SPECIMEN)])
            except Exception:
                raise VictimError(
                    f"{self.name} fails on [{SPECIMEN!r}]: {type(error).__name__}: {error}",
                    "it must take a list of texts and return one answer per text",
                ) from error


def load(
    rest: str,
    *,
    labels: Sequence[str] | None = None,
    trust_pickle: bool = False,
    logits: bool = False,
    batch_size: int = 1024,
    name: str = "",
) -> Victim:
    """`package.module:function`, or `path/to/file.py:function`

    A module is looked for in the folder one stands in, too. A file's own folder is put on Python's search
    path and stays there, so the file may import its neighbours, also later from within a function.
    """
    place, _, attribute = rest.rpartition(":")
    if not place or not attribute:
        raise VictimError(f"{rest!r} names no function", "write python:package.module:function")
    module = _module_from_file(Path(place).expanduser()) if place.endswith(".py") else _module(place)
    target: Any = module
    for part in attribute.split("."):
        if not hasattr(target, part):
            functions = [n for n, f in vars(module).items() if callable(f) and not n.startswith("_")]
            raise VictimError(
                f"{place} has no {part!r}", f"it has {', '.join(functions[:8]) or 'no functions'}"
            )
        target = getattr(target, part)
    if isinstance(target, Victim) and not isinstance(target, type):
        return target
    if not callable(target):
        raise VictimError(
            f"{rest} is a {type(target).__name__}, not a function", "name a function of a list of texts"
        )
    own = getattr(target, "labels", None) or getattr(module, "LABELS", None)
    if labels is None and own is not None:
        labels = settle_labels(tuple(map(str, own)), None)[0]
    return FunctionVictim(target, labels=labels, name=name or attribute, logits=logits, batch_size=batch_size)


def _module(name: str) -> ModuleType:
    here = os.getcwd()
    if here not in sys.path:
        # A console script does not look into the folder that the user stands in; `python -m` does.
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
            raise VictimError(f"importing {name} failed: {error}", "install what it needs") from error
        raise VictimError(
            f"there is no Python module {name}", "run from the folder that holds it, or install it"
        ) from None
    except Exception as error:
        raise VictimError(
            f"importing {name} failed: {type(error).__name__}: {error}", "mend the module"
        ) from error


def _module_from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise VictimError(f"there is no file {path}", "check the path")
    name = f"unfooled_victim_{path.stem}"
    found = importlib.util.spec_from_file_location(name, path)
    if found is None or found.loader is None:
        raise VictimError(f"{path} cannot be imported", "name a Python file")
    module = importlib.util.module_from_spec(found)
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)  # files beside it can be imported, now and later
    sys.modules[name] = module  # so that what it defines can be found again by name
    try:
        found.loader.exec_module(module)
    except ModuleNotFoundError as error:
        raise VictimError(
            f"importing {path} failed: {error}", "install what it needs, or put the file beside it"
        ) from error
    except Exception as error:
        raise VictimError(
            f"importing {path} failed: {type(error).__name__}: {error}", "mend the file"
        ) from error
    return module
