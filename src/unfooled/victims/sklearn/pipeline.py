"""A scikit-learn pipeline as a victim: from a `.skops` file, or from a pickle that the user trusts."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, Literal

import numpy as np

from unfooled.core.victim import (
    Probabilities,
    Reloadable,
    TextValue,
    digest,
    digest_files,
    join_fields,
    one_hot,
    option,
    sigmoid_pair,
    softmax,
)
from unfooled.core.victim_oracle import SEVERAL
from unfooled.errors import VictimError
from unfooled.extras import libraries_of
from unfooled.text import WORD
from unfooled.trust import granted
from unfooled.victims.labels import settle_labels
from unfooled.victims.sklearn.bag_of_words import FastWords
from unfooled.victims.sklearn.content_digest import stable_digest
from unfooled.victims.sklearn.plain_skops import NotPlainError, read_plain
from unfooled.victims.sklearn.unpacked_size import require_unpackable

Pairs = Literal["join", "pass"]


class SklearnVictim(Reloadable):
    """Any fitted classifier that takes a list of texts.

    `score` says where the numbers come from: `predict_proba`; `sigmoid(decision_function)` for two classes
    and `softmax(decision_function)` for more, where margins are squeezed into 0..1 without calibration; or
    `predict`, which gives decided labels only. Pairs are joined by a line break, or with `pairs="pass"` go
    to the pipeline as tuples. `fast=False` switches the shortcut for bags of words off.

    Example:

        >>> from sklearn.feature_extraction.text import CountVectorizer
        >>> from sklearn.naive_bayes import MultinomialNB
        >>> from sklearn.pipeline import make_pipeline
        >>> pipeline = make_pipeline(CountVectorizer(), MultinomialNB())
        >>> pipeline = pipeline.fit(["superb film", "awful film"], ["positive", "negative"])
        >>> victim = unfooled.SklearnVictim(pipeline)
        >>> victim.labels
        ('negative', 'positive')
    """

    batch_size = 4096

    def __init__(
        self,
        pipeline: Any,
        *,
        labels: Sequence[str] | None = None,
        name: str = "",
        pairs: Pairs = "join",
        fast: bool = True,
        path: Path | None = None,
    ) -> None:
        self.pipeline = pipeline
        self.name = name or type(pipeline).__name__
        self.pairs = pairs
        self.fast = fast
        self.path = path
        _require_one_label(pipeline)
        self.classes = _classes(pipeline)
        self.labels, self._order = settle_labels(_names(self.classes), labels)
        self.score = _score(pipeline, len(self.labels))
        self._words: FastWords | None = None
        self._looked = False
        self._fingerprint = ""

    @property
    def capabilities(self) -> frozenset[str]:
        return frozenset() if self.score == "predict" else frozenset({"probabilities"})

    @property
    def margins(self) -> str:
        """What the scores are where the pipeline knows no probabilities."""
        if not self.score.endswith("(decision_function)"):
            return ""
        return (
            f"{self.score}: distances from the decision boundary, squeezed into 0..1; they keep the order "
            "but are no calibrated probabilities"
        )

    @property
    def words(self) -> FastWords | None:
        """The shortcut, where one gives exactly the pipeline's own numbers; found out when first needed."""
        if not self._looked:
            self._looked = True
            self._words = FastWords.of(self.pipeline) if self.fast and self.pairs == "join" else None
        return self._words

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        if not texts:
            return np.zeros((0, len(self.labels)))
        if self.pairs == "pass":
            scores = self._ask(self.pipeline, list(texts))
        else:
            strings = [text if isinstance(text, str) else join_fields(text) for text in texts]
            words = self.words
            if words is None:
                scores = self._ask(self.pipeline, strings)
            else:
                scores = self._ask(words.rest, words.matrix(strings))
        return scores if self._order is None else scores[:, self._order]

    def vocabulary(self) -> tuple[str, ...]:
        """The words of the pipeline's vectorizer, most frequent first where it remembers how frequent.

        Without that memory in a fixed random order, so that the first thousand stand for all.
        """
        steps = [step for _, step in getattr(self.pipeline, "steps", ())]
        vectorizer = next((step for step in steps if hasattr(step, "vocabulary_")), None)
        columns: dict[str, int] = {} if vectorizer is None else vectorizer.vocabulary_
        words = sorted(word for word in columns if WORD.fullmatch(word))
        weights = _frequencies(steps, len(columns))
        if weights is None:
            order = np.random.default_rng(0).permutation(len(words))
        else:
            order = np.argsort([-weights[columns[word]] for word in words], kind="stable")
        return tuple(words[place] for place in order)

    def refitted(self, rows: Sequence[tuple[TextValue, int]]) -> Any:
        """The same pipeline, fitted anew on texts and class numbers."""
        from sklearn.base import clone

        order = range(len(self.labels)) if self._order is None else self._order
        values = [self.classes[int(place)] for place in order]
        texts = [
            text if isinstance(text, str) or self.pairs == "pass" else join_fields(text) for text, _ in rows
        ]
        return clone(self.pipeline).fit(texts, [values[label] for _, label in rows])

    def fingerprint(self) -> str:
        if not self._fingerprint:
            settings = (self.labels, self.pairs, self.score)
            if self.path is not None:
                self._fingerprint = digest("sklearn", digest_files([self.path]), settings)
            else:
                self._fingerprint = digest("sklearn", _version(), stable_digest(self.pipeline), settings)
        return self._fingerprint

    def _ask(self, model: Any, inputs: Any) -> Probabilities:
        if self.score == "predict_proba":
            return np.asarray(model.predict_proba(inputs), dtype=np.float64)
        if self.score == "predict":
            place = {name: index for index, name in enumerate(self.classes)}
            return one_hot([place[name] for name in np.asarray(model.predict(inputs)).tolist()], len(place))
        margins = np.asarray(model.decision_function(inputs), dtype=np.float64)
        return sigmoid_pair(margins) if margins.ndim == 1 else softmax(margins)

    def __getstate__(self) -> dict[str, Any]:
        # The shortcut is rebuilt where the victim is unpickled; its cache is worth nothing on the way.
        return {**self.__dict__, "_words": None, "_looked": False}


def load(
    rest: str,
    *,
    labels: Sequence[str] | None = None,
    trust_pickle: bool = False,
    pairs: Pairs = "join",
    fast: bool = True,
    name: str = "",
) -> SklearnVictim:
    """`FILE.skops`, or `FILE.joblib` / `FILE.pkl` with `trust_pickle`"""
    path = Path(rest).expanduser()
    if pairs not in ("join", "pass"):
        raise VictimError(f"pairs={pairs} is not known", f"write {option('pairs', 'join')} or pairs=pass")
    if not path.is_file():
        raise VictimError(f"there is no file {rest}", "check the path")
    if path.suffix.lower() == ".skops":
        pipeline = load_skops(path)
    elif trust_pickle:
        pipeline = load_trusted_pickle(path)
    else:
        raise VictimError(
            f"{rest} is a pickle, which can run any code when it is opened",
            "pass --trust-pickle if you trust its author, or save the pipeline with skops.io.dump",
        )
    if not hasattr(pipeline, "predict"):
        raise VictimError(
            f"{rest} holds a {type(pipeline).__name__}, which cannot predict",
            "save the fitted pipeline, vectorizer and classifier together",
        )
    return SklearnVictim(
        pipeline, labels=labels, name=name or path.stem, pairs=pairs, fast=fast, path=path.resolve()
    )


def load_skops(path: Path) -> Any:
    """Read a skops file that holds nothing but types that skops knows to be harmless, or the user trusts."""
    with libraries_of("sklearn", "sklearn", needed_for="reading a scikit-learn model"):
        import sklearn  # noqa: F401
    require_unpackable(path)
    with contextlib.suppress(NotPlainError):
        return read_plain(path)
    with libraries_of("sklearn", "skops", needed_for="reading a scikit-learn model"):
        from skops.io import get_untrusted_types
        from skops.io import load as load_checked
    trusted = granted().types
    try:
        unknown = [name for name in get_untrusted_types(file=path) if name not in trusted]
        if not unknown:
            if trusted:
                look_beside(path)
            return load_checked(path, trusted=list(trusted))
    except Exception as error:
        raise _unreadable(
            path,
            error,
            "cannot be read as a skops file",
            "save it again with skops.io.dump, with the scikit-learn version that is installed here",
        ) from error
    told = "; ".join(f"{name} ({origin(name, path)})" for name in unknown[:5])
    more = f"; and {len(unknown) - 5} more" if len(unknown) > 5 else ""
    flags = " ".join(f"--trust {shlex.quote(name)}" for name in unknown[:5])
    raise VictimError(
        f"{path} holds types that are not known to be harmless: {told}{more}",
        f"if you know and trust them, pass {flags} (in Python: trust_types=[…]), which runs their code; "
        "or wrap the model in a function: python:package.module:function",
    )


def load_trusted_pickle(path: Path) -> Any:
    """Runs whatever code the file holds: the only place that does, and only when the user said so."""
    with libraries_of("sklearn", "joblib", "sklearn", needed_for="reading a scikit-learn model"):
        import joblib  # type: ignore[import-untyped]
        import sklearn  # noqa: F401
    look_beside(path)
    try:
        return joblib.load(path)
    except Exception as error:
        raise _unreadable(
            path, error, "cannot be unpickled", "save it again with the versions that are installed here"
        ) from error


def look_beside(path: Path) -> None:
    """Let the classes of a file that the user trusts be found in its folder and in the current one.

    They come last, so that nothing there can pose as a library, and stay: a class may import more later.
    """
    for folder in (str(path.resolve().parent), os.getcwd()):
        if folder not in sys.path:
            sys.path.append(folder)


def origin(name: str, path: Path) -> str:
    """Where a type would come from; nothing is imported to find out."""
    module = name.partition(".")[0]
    if module == "__main__":
        return "defined in the script that saved the model, so it cannot be found again: move it to a module"
    if module in sys.stdlib_module_names:
        return "part of Python itself, and no part of a model: it may do anything"
    beside = {str(path.resolve().parent): "beside the model", os.getcwd(): "in the current folder"}
    for folders, where in ((sys.path, ""), *(([folder], where) for folder, where in beside.items())):
        if (found := PathFinder.find_spec(module, folders)) is not None:
            place = Path(found.origin).name if found.origin else module
            return f"from {place} {where}" if where else f"from the installed package {module}"
    return f"from the module {module}, which is not here"


def _unreadable(path: Path, error: Exception, problem: str, remedy: str) -> VictimError:
    if isinstance(error, ModuleNotFoundError) and error.name:
        return VictimError(
            f"{path} needs the Python module {error.name}, which is neither installed, nor beside the file, "
            "nor in the current folder",
            f"put {error.name.partition('.')[0]}.py beside it, or install it",
        )
    if isinstance(error, AttributeError) and "__main__" in str(error):
        return VictimError(
            f"{path} was saved by a script that defined a part of it: {error}",
            "move that class or function to a module of its own, import it from there, and save again",
        )
    return VictimError(f"{path} {problem}: {type(error).__name__}: {' '.join(str(error).split())}", remedy)


def _require_one_label(pipeline: Any) -> None:
    steps = getattr(pipeline, "steps", None)
    model = steps[-1][1] if steps else pipeline
    kind = str(getattr(getattr(model, "_label_binarizer", None), "y_type_", ""))
    many = isinstance(getattr(model, "classes_", None), list) and np.ndim(model.classes_[0]) > 0
    if many or getattr(model, "multilabel_", False) or kind.startswith("multilabel"):
        raise VictimError(f"{type(model).__name__} was fitted to choose several labels at once", SEVERAL)


def _classes(pipeline: Any) -> list[Any]:
    try:
        return list(np.asarray(pipeline.classes_).tolist())
    except AttributeError:
        raise VictimError(
            f"{type(pipeline).__name__} has no classes: it is not fitted, or not a classifier",
            "fit it before saving it",
        ) from None


def _names(classes: list[Any]) -> list[str]:
    if classes == [False, True]:
        classes = [0, 1]  # the same values; numbered, so that given labels may name them
    # Some writers store whole numbers as floats.
    return [str(int(cls)) if isinstance(cls, float) and cls.is_integer() else str(cls) for cls in classes]


def _score(pipeline: Any, classes: int) -> str:
    if hasattr(pipeline, "predict_proba"):
        return "predict_proba"
    if hasattr(pipeline, "decision_function"):
        return "sigmoid(decision_function)" if classes == 2 else "softmax(decision_function)"
    return "predict"


def _frequencies(steps: Sequence[Any], width: int) -> Any:
    """A number per column that rises with its frequency in the training texts, or None."""
    for step in steps:
        if len(getattr(step, "idf_", ())) == width:
            return -np.asarray(step.idf_)
        if np.shape(getattr(step, "feature_count_", ()))[-1:] == (width,):
            return np.asarray(step.feature_count_).sum(axis=0)
    return None


def _version() -> str:
    return str(sys.modules["sklearn"].__version__) if "sklearn" in sys.modules else ""
