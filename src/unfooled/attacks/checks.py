"""A conformance suite for attacks: run on ours, importable by plug-ins.

    from unfooled.attacks.checks import check_recipe
    check_recipe(my_recipe)

Each check attacks small texts whose oracles are made up here, so it needs no model and no file. Oracles of
other kinds than ours are given as `oracles`.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from unfooled.core.attempt import Attempt, live
from unfooled.core.engine import Engine
from unfooled.core.questions import (
    Along,
    Asked,
    Flip,
    GradientItem,
    Marked,
    Mixed,
    Mixture,
    Projection,
    Pull,
    WordVectors,
    Written,
)
from unfooled.core.recipe import Recipe, recipe_from_json
from unfooled.core.result import ATTACKED, Example, Result
from unfooled.core.victim import CLASSIFICATION
from unfooled.language.oracles import EditEffect
from unfooled.language.relations import Related
from unfooled.resources.fillmask import FillIn, MaskItem
from unfooled.resources.fluency import Score
from unfooled.resources.look_alikes import LookAlike
from unfooled.text import Text

TEXTS = (
    "The superb, pleasant film is on.",
    "A DULL plot; the slow, odd end isn't worth it…",
    "😀 great!",
    "so it goes",
    "the old man and the cold, cold sea were fine company for two long hours of quiet, honest work",
)


LABELS = ("negative", "positive")


class _Made:
    """An oracle from a function of one item."""

    def __init__(self, answer: Callable[[Any], Any], batch_size: int) -> None:
        self._answer = answer
        self.batch_size = batch_size

    def __call__(self, items: Sequence[Any]) -> list[Any]:
        return [self._answer(item) for item in items]


def check_recipe(recipe: Recipe, *, oracles: Mapping[str, Callable[[Any], Any]] | None = None) -> None:
    """Raise AssertionError at the first rule that the attack breaks."""
    assert recipe.name, "an attack has a name"
    assert recipe.version, "an attack has a version"
    assert recipe.paper, "an attack names its paper"
    assert recipe.summary, "an attack says what it does"
    assert hash(recipe) == hash(dataclasses.replace(recipe)), "a recipe is a value"
    assert recipe_from_json(recipe.to_json()) == recipe, "a recipe can be rebuilt from a run file"

    alone = [_attack(recipe, [text], oracles, keys=[key])[key] for key, text in enumerate(TEXTS)]
    for window, batch in ((1, 1), (3, 2), (100, 100)):
        together = _attack(recipe, TEXTS, oracles, window=window, batch=batch)
        assert [together[key] for key in range(len(TEXTS))] == alone, "results depend on the example alone"
    for text, result in zip(TEXTS, alone, strict=True):
        assert result.outcome in (*ATTACKED, "skipped"), result.note
        assert result.original == text, "the original is kept"
        assert bool(result.edits) == (result.perturbed != text), "edits say what changed"
        assert (result.outcome == "success") <= bool(result.edits), "a success changes something"
    for budget in (1, 7):
        for result in _attack(recipe, TEXTS, oracles, budget=budget).values():
            assert result.queries <= budget, "the budget is kept"
    pair = Text({"premise": TEXTS[0], "hypothesis": TEXTS[1]})
    (result,) = _attack(recipe, [pair], oracles).values()
    assert result.outcome != "error", result.note
    assert result.fields[: len(pair.fields)] == pair.fields, "the other field of a pair is left alone"


def _attack(
    recipe: Recipe,
    texts: Sequence[str | Text],
    oracles: Mapping[str, Callable[[Any], Any]] | None,
    *,
    keys: Sequence[int] | None = None,
    window: int = 10,
    batch: int = 10,
    budget: int | None = None,
) -> dict[int, Result]:
    answers = {name: _STAND_INS.get(name.partition(":")[0]) for name in recipe.oracles()}
    goal = recipe.goal.fit(_Classes()) if hasattr(recipe.goal, "fit") else recipe.goal
    answers |= dict(oracles or {}) | {"victim": _victim if recipe.task == CLASSIFICATION else _write}
    made = {name: _Made(answer, batch) for name, answer in answers.items() if answer is not None}
    jobs = []
    for key, content in zip(keys or range(len(texts)), texts, strict=True):
        text = content if isinstance(content, Text) else Text(content)
        shared: dict[str, Any] = {"key": key, "seed": 1, "budget": budget}
        if recipe.task == CLASSIFICATION:
            a = Attempt(text, int(_victim(text.value).argmax()), goal, **shared)
        else:
            names = [name for name, _ in text.fields]
            example = Example(key, text.fields, 0, names[text.field], reference=_output(text.string))
            a = goal.attempt_on(example, **shared)
        jobs.append((key, live(a, recipe.search)))
    found = {}
    for finished in Engine[Result](made, window=window).run(jobs):
        assert finished.value is not None, finished.error
        found[finished.value.key] = finished.value
    return found


class _Classes:
    """All that a goal looks at of a victim."""

    labels = LABELS


def _number(text: str) -> float:
    """A number in [-1, 1) that belongs to the word."""
    return zlib.crc32(text.lower().encode()) / 2**31 - 1.0


def _victim(value: Any) -> np.ndarray:
    string = value if isinstance(value, str) else " ".join(value)
    total = sum(_number(word) for word in Text(string).words)
    positive = 1.0 / (1.0 + np.exp(-total))
    return np.round(np.array([1.0 - positive, positive]), 6)


def _output(text: str) -> str:
    """A translation: every word backwards."""
    return " ".join(word[::-1] for word in Text(text).words)


def _write(asked: Asked) -> Written:
    return Written(_output(asked.text), round(_number(asked.text + asked.keyword), 4))


def _encode(text: str) -> np.ndarray:
    angle = 0.2 * sum(_number(word) for word in Text(text).words)
    return np.array([np.cos(angle), np.sin(angle)], dtype=np.float32)


def _neighbours(item: tuple[str, int, float]) -> tuple[str, ...]:
    word, most, _ = item
    return tuple(f"{word[::-1]}{i}" for i in range(min(most, 4)))


def _tags(item: tuple[tuple[str, ...], int, tuple[str, ...]]) -> tuple[str, ...]:
    words, index, options = item
    return tuple("NOUN" if _number(word) < 0.8 else "ADJ" for word in (words[index], *options))


def _edit(item: tuple[str, int, tuple[str, ...]]) -> tuple[EditEffect, ...]:
    return tuple(
        EditEffect("adj", frozenset(), int(_number(word) > 0.8), Related("synonym", 0, 0), 1)
        for word in item[2]
    )


def _fill(item: MaskItem) -> tuple[FillIn, ...]:
    seed = _number(item.left[-20:] + item.right[:20])
    return tuple(
        FillIn(f"word{chr(97 + int(abs(seed) * 7 + i) % 26)}", -float(i)) for i in range(min(item.k, 4))
    )


def _synonyms(item: Any) -> tuple[str, ...]:
    word = item if isinstance(item, str) else next(part for part in reversed(item) if isinstance(part, str))
    return tuple(f"{word[::-1]}{i}" for i in range(3))


def _gradients(item: GradientItem) -> WordVectors:
    words = item.text.words
    vectors = np.array([[_number(word), 1.0] for word in words], dtype=np.float32).reshape(-1, 2)
    return WordVectors(words, np.ones(len(words), dtype=np.int64), vectors)


def _class_words(item: tuple[str, int, Any]) -> tuple[Any, ...]:
    question, label, about = item
    sign = 1.0 if label else -1.0
    if question == "sway":
        return tuple(sign * _number(word) for word in about)
    return tuple(sorted(_LISTED, key=lambda word: (-sign * _number(word), word))[:about])


def _attention(text: Marked) -> np.ndarray:
    return np.array([1.0 + _number(word) for word in text.words])


def _zeroed(item: tuple[Marked, int]) -> np.ndarray:
    text, index = item
    string = text.value if isinstance(text.value, str) else text.value[text.field]
    start, end = text.spans[index]
    return _victim(string[:start] + string[end:])


def _distance(item: tuple[Any, Any]) -> float:
    return round(float(np.abs(_victim(item[0]) - _victim(item[1])).sum()), 6)


def _projection(item: Pull) -> Projection:
    words = item.text.words
    steepest = max(range(len(words)), key=lambda i: abs(_number(words[i])))
    sign = 1.0 if (item.label == 1) == item.up else -1.0
    best = sorted(_LISTED, key=lambda word: (-sign * _number(word), word))
    return Projection(_victim(item.text.value), steepest, tuple(best[: item.most]))


def _flips(item: Pull) -> tuple[Flip, ...]:
    words = _projection(item).words
    places = range(len(item.text.words))
    return tuple(Flip(place, word) for word in words for place in places)


def _signs(item: Along) -> tuple[int, ...]:
    sign = 1.0 if (item.label == 1) == item.up else -1.0
    return tuple(round(10 - 5 * sign * _number(word)) for word in item.words)


def _sentence(value: Any) -> np.ndarray:
    string = value if isinstance(value, str) else " ".join(value)
    return np.array([sum(map(_number, Text(string).words)), 1.0], dtype=np.float32)


def _mixture(item: Mixture) -> Mixed:
    sign = 1.0 if item.label == 1 else -1.0
    values = [
        np.array([sign * _number(word) for word in (own, *options)], dtype=np.float32)
        for own, options in zip(item.text.words, item.options, strict=True)
    ]
    total = sum(float(value @ np.array(weights)) for value, weights in zip(values, item.weights, strict=True))
    return Mixed(round(total, 6), tuple(values))


_LISTED = ("fine", "cold", "odd", "old", "slow", "quiet", "honest", "long", "superb", "dull")
_STAND_INS: dict[str, Callable[[Any], Any]] = {
    "encode": _encode,
    "neighbours": _neighbours,
    "vectors": lambda word: np.array([_number(word), 1.0], dtype=np.float32),
    "tag": _tags,
    "edit": _edit,
    "inflect": lambda item: item[2],
    "forms": lambda item: (f"{item[0]}s", f"{item[0]}ed"),
    "alike": lambda item: (f"{Text(item[0]).words[item[1]]}s",),
    "polarity": lambda word: round(0.1 * _number(word), 6),
    "class-words": _class_words,
    "trigger": lambda question: _LISTED[question[0] :: 4],
    "vocabulary": lambda _: _LISTED,
    "readable": lambda text: tuple(range(len(text.words))),
    "attention": _attention,
    "zeroed": _zeroed,
    "sentence-distance": _distance,
    "projection": _projection,
    "flips": _flips,
    "mixture": _mixture,
    "signs": _signs,
    "head": lambda _: np.array([[0.0, 0.0], [1.0, 0.0]], dtype=np.float32),
    "sentence": _sentence,
    "nearness": lambda item: round(_number(item.text + item.keyword), 4),
    "pulls": lambda item: _LISTED[: item.most],
    "target-words": lambda _: tuple(word[::-1] for word in _LISTED),
    "datamuse": _synonyms,
    "look-alikes": lambda character: (LookAlike(chr(ord(character) + 1)), LookAlike("é", 0.5)),
    "fluency": lambda text: Score(-3.0 * len(Text(text).words) - _number(text), len(Text(text).words)),
    "grammar": lambda text: sum(_number(word) > 0.8 for word in Text(text).words),
    "fill": _fill,
    "gradients": _gradients,
    "table": _synonyms,
    "wordnet": _synonyms,
}
