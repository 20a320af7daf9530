"""Which normalisers close how much of the gap, and what that costs.

A cure is a set of steps of `defenses.normalise`. It is tried on the texts that passed, which the attacker
made without knowing it: what it closes here is an upper bound, and `unfooled guard --fix` attacks the cured
filter anew. The filter itself is asked once about each normalised text, so steps that change nothing cost
nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from unfooled.checks.false_alarms import CachedFilter, Change, share
from unfooled.core.victim import TextValue
from unfooled.defenses.normalise import Normalise, normalised
from unfooled.defenses.normalisers import NORMALISERS
from unfooled.errors import ResourceError
from unfooled.metrics.summary import Rate
from unfooled.resources import store
from unfooled.resources.english import NAME as ENGLISH_WORDS

NONE = "none"
ALL = "all"
WITH_WORDS = "all, words split"
RETRAINED = "retrained"
WORSE = 0.01  # points of false positives that a cure may cost by default


@dataclass(frozen=True, slots=True, kw_only=True)
class Cure:
    """What one set of steps does; `closes` is about the texts that passed without it."""

    name: str
    steps: str
    table: str = ""
    closes: Rate
    recall: Rate
    honest: Rate  # blocked though they should pass
    look_alikes: Rate | None
    milliseconds: float  # that normalising a text takes
    accuracy: Rate | None = None  # of decisions on unedited rows, those to block and honest ones
    model: str = ""  # folder of a retrained model, inside that of the test

    def to_dict(self) -> dict[str, Any]:
        rates = {name: getattr(self, name).to_dict() for name in ("closes", "recall", "honest")}
        own = {"name": self.name, "steps": self.steps, "table": self.table, "model": self.model}
        rates["look_alikes"] = self.look_alikes.to_dict() if self.look_alikes else None
        rates["accuracy"] = self.accuracy.to_dict() if self.accuracy else None
        return {**own, **rates, "milliseconds": round(self.milliseconds, 3)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Cure:
        rates: dict[str, Any] = {
            name: Rate.from_dict(stored[name]) for name in ("closes", "recall", "honest")
        }
        for name in ("look_alikes", "accuracy"):
            found = stored.get(name)
            rates[name] = Rate.from_dict(found) if found else None
        return cls(**{**stored, **rates})


@dataclass(frozen=True, slots=True, kw_only=True)
class CureTexts:
    """What cures are tried on."""

    passed: Sequence[TextValue]  # texts that an attack brought through
    bad: Sequence[TextValue]
    honest: Sequence[TextValue]
    look_alikes: Sequence[TextValue] = ()


def tried_cures(asked: CachedFilter, texts: CureTexts) -> list[Cure]:
    """No cure, each step alone, all of them; the last also with a list of words where that is here."""
    singles = [step for step in NORMALISERS if _changes(step, texts.passed)]
    found = [_cure(NONE, "", "", asked, texts)]
    found += [_cure(step, step, "", asked, texts) for step in singles]
    every = ",".join(NORMALISERS)
    found.append(_cure(ALL, every, "", asked, texts))
    if has_words():
        found.append(_cure(WITH_WORDS, every, ENGLISH_WORDS, asked, texts))
    return found


def retraining_cure(asked: CachedFilter, texts: CureTexts, model: str) -> Cure:
    """A retrained filter, with nothing around it."""
    return replace(_cure(RETRAINED, "", "", asked, texts), model=model)


def cheapest_best(tried: Sequence[Cure | None], highest: float) -> Cure | None:
    """Of cures that cost no more than that the one that closes most; of equals the first."""
    good = [cure for cure in tried if cure and cure.closes.value > 0 and not cure.honest.value > highest]
    return max(good, key=lambda cure: cure.closes.value, default=None)


def best_cure(
    asked: CachedFilter, texts: CureTexts, *, price: float = WORSE, highest: float | None = None
) -> Cure | None:
    """All steps, but those that cost too much: an attacker takes whatever door is left open.

    `price` is by how much the share of blocked honest texts may rise, or `highest` how high it may be. While
    it is higher, the step goes without which it is lowest. None where what is left closes nothing.
    """
    if highest is None:
        highest = share(asked.blocks(texts.honest)).value + price
    chosen = list(NORMALISERS)
    best = _steps_cure(chosen, asked, texts)
    while best.honest.value > highest and len(chosen) > 1:
        shorter = [[step for step in chosen if step != gone] for gone in chosen]
        tried = [(_steps_cure(steps, asked, texts), steps) for steps in shorter]
        best, chosen = min(tried, key=lambda pair: (pair[0].honest.value, -pair[0].closes.value))
    return best if best.closes.value > 0 and not best.honest.value > highest else None


def _steps_cure(steps: Sequence[str], asked: CachedFilter, texts: CureTexts) -> Cure:
    table = ENGLISH_WORDS if "spacing" in steps and has_words() else ""
    name = ",".join(steps)
    if list(steps) == list(NORMALISERS):
        name = WITH_WORDS if table else ALL
    return _cure(name, ",".join(steps), table, asked, texts)


def has_words() -> bool:
    """Whether the list of English words is here, as it came."""
    try:
        return store.has(ENGLISH_WORDS) and not store.changed(ENGLISH_WORDS)
    except ResourceError:
        return False


def _cure(name: str, steps: str, table: str, asked: CachedFilter, texts: CureTexts) -> Cure:
    change: Change | None = None
    began, count = time.perf_counter(), 0
    if steps:
        change = changing(Normalise(steps=steps, table=table).functions())
        began = time.perf_counter()
        count = len([change(text) for text in (*texts.passed, *texts.bad, *texts.honest)])
    milliseconds = 1000.0 * (time.perf_counter() - began) / max(1, count) if count else 0.0
    blocks = partial(asked.blocks, change=change)
    bad, honest = blocks(texts.bad), blocks(texts.honest)
    right = [*bad, *(None if flag is None else not flag for flag in honest)]
    return Cure(
        name=name,
        steps=steps,
        table=table,
        closes=share(blocks(texts.passed)),
        recall=share(bad),
        honest=share(honest),
        look_alikes=share(blocks(texts.look_alikes)) if texts.look_alikes else None,
        milliseconds=milliseconds,
        accuracy=share(right),
    )


def changing(steps: Sequence[Callable[[str], str]]) -> Change:
    """The steps done to a text, or to each text of a pair; each text once."""
    known: dict[TextValue, TextValue] = {}

    def change(text: TextValue) -> TextValue:
        if text not in known:
            clean = partial(normalised, steps=steps)
            known[text] = clean(text) if isinstance(text, str) else tuple(map(clean, text))
        return known[text]

    return change


def _changes(step: str, texts: Sequence[TextValue]) -> bool:
    """Whether a step does anything to what passed; one that only helps others is tried with these."""
    change = changing([NORMALISERS[step]])
    return any(change(text) != text for text in texts)
