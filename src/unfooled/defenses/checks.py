"""A conformance suite for defences around a model: run on ours, importable by plug-ins.

from unfooled.defenses.checks import check_defense
check_defense(lambda model, **changes: MyDefense(model, **changes), model, texts)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from unfooled.core.victim import TextValue, Victim
from unfooled.core.victim_oracle import validate
from unfooled.defenses.switch import as_text
from unfooled.text import Text
from unfooled.victims.checks import TOLERANCE, check_victim
from unfooled.victims.randomness import is_redrawable

Make = Callable[..., Victim]


def check_defense(make: Make, model: Victim, texts: Sequence[TextValue]) -> None:
    """Raise AssertionError at the first rule that the defence breaks.

    `make(model, **changes)` builds it; `changes` are `seed` and `fresh`. Give three or more different texts.
    """
    texts = list(dict.fromkeys(texts))
    if len(texts) < 3:
        raise ValueError("give at least three different texts")
    victim = make(model)
    check_victim(victim, texts)
    _require(victim.labels == model.labels, "a defence keeps the labels of its model, in their order")
    _check_copies(victim, model, texts)
    _check_neighbours(victim, texts)
    _check_fingerprint(make, model, victim)
    _check_draws(make, model, victim, texts)


def _check_copies(victim: Victim, model: Victim, texts: Sequence[TextValue]) -> None:
    """Whatever the model is asked is one of the texts in question, or differs from one by words only."""
    for batch in (texts, texts[::-1], texts[1:2], [*texts, *texts[:2]]):
        with recorded(model) as asked:
            victim.predict(batch)
        own = {_frame(text) for text in batch}
        for text in asked:
            _require(_frame(text) in own, f"a copy belongs to none of the texts in question: {text!r}")


def _check_neighbours(victim: Victim, texts: Sequence[TextValue]) -> None:
    """An attacker edits one text of the batch: the answers to the others stay."""
    before = victim.predict(texts)
    for place, text in enumerate(texts):
        edited = as_text(text)
        if edited.words:
            batch = [*texts[:place], edited.replace(0, "zebra").value, *texts[place + 1 :]]
            gap = np.abs(np.delete(victim.predict(batch) - before, place, axis=0))
            _require(float(gap.max(initial=0.0)) <= TOLERANCE, "an edit of one text changes another's answer")


def _check_fingerprint(make: Make, model: Victim, victim: Victim) -> None:
    print_ = victim.fingerprint()
    _require(print_ != model.fingerprint(), "the fingerprint does not tell the defence from its model")
    _require(make(model).fingerprint() == print_, "the same settings have another fingerprint")
    _require(make(model, seed=12345).fingerprint() != print_, "the fingerprint does not follow the settings")


def _check_draws(make: Make, model: Victim, victim: Victim, texts: Sequence[TextValue]) -> None:
    _require(is_redrawable(victim), "there is no redrawn() for other random numbers")
    assert is_redrawable(victim)
    before = victim.predict(texts)
    again = victim.redrawn(0).predict(texts)
    _require(bool((np.abs(again - before) <= TOLERANCE).all()), "redrawn(0) answers differently")
    other = victim.redrawn(1)
    first = validate(other.predict(texts), len(texts), victim.labels, victim.name)
    repeated = other.predict(texts)
    _require(bool((np.abs(repeated - first) <= TOLERANCE).all()), "redrawn(1) does not repeat its answers")
    fresh = make(model, fresh=True)
    answers = np.stack(
        [validate(fresh.predict(texts), len(texts), fresh.labels, fresh.name) for _ in range(4)]
    )
    moved = bool((np.abs(first - before) > TOLERANCE).any())
    varied = bool((np.ptp(answers, axis=0) > TOLERANCE).any())
    _require(varied or not moved, "fresh=True repeats its answers, though other numbers give others")
    _require(bool(getattr(fresh, "stochastic", False)), "a fresh defence must say that it is stochastic")
    _require(not getattr(victim, "stochastic", False), "a steady defence must not say that it is stochastic")


@contextmanager
def recorded(model: Victim) -> Iterator[list[TextValue]]:
    """While open, the list collects every text that the model is asked to classify."""
    asked: list[TextValue] = []
    patched: dict[str, Any] = {"predict": model.predict}
    if hasattr(model, "noisy_logits"):
        patched["noisy_logits"] = model.noisy_logits

    def watch(name: str) -> Callable[..., Any]:
        def call(items: Sequence[Any], /, **more: Any) -> Any:
            asked.extend(item.text.value if name == "noisy_logits" else item for item in items)
            return patched[name](items, **more)

        return call

    for name in patched:
        setattr(model, name, watch(name))
    try:
        yield asked
    finally:
        for name in patched:
            delattr(model, name)


def _frame(text: TextValue) -> tuple[Any, ...]:
    """What swapping words leaves as it is: the gaps between them, and the other fields."""
    made: Text = as_text(text)
    return (made.gaps, *(content for i, (_, content) in enumerate(made.fields) if i != made.field))


def _require(condition: bool, complaint: str) -> None:
    if not condition:
        raise AssertionError(complaint)
