"""Learning universal triggers: words that, put before any text of a class, turn the victim's decision.

The algorithm is told in `attacks/uat.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from unfooled.core.questions import Numbers, marked
from unfooled.core.result import decided
from unfooled.core.victim import Victim
from unfooled.core.victim_oracle import DECIMALS
from unfooled.data.dataset import Dataset
from unfooled.errors import CapabilityError, DataError
from unfooled.plugins import unknown_name
from unfooled.progress import ProgressObserver
from unfooled.resources.triggers import Trigger, Triggers, put_before
from unfooled.text import Text
from unfooled.victims.torch.oracles import steady
from unfooled.victims.torch.word_oracles import highest

Words: TypeAlias = tuple[str, ...]
_ASKED = 4096  # texts in one call of the victim


@dataclass(frozen=True, kw_only=True)
class TriggerSettings:
    """How long a trigger is and how it is looked for; `held_out` rows, a share, only measure it."""

    words: int = 3
    epochs: int = 5
    batch: int = 128
    candidates: int = 40
    beam: int = 1
    first: str = "the"
    held_out: float = 0.2
    seed: int = 0


def learn_triggers(
    victim: Victim,
    data: Dataset,
    settings: TriggerSettings,
    observer: ProgressObserver,
    *,
    against: str | None,
    target: str | None,
) -> Triggers:
    """A trigger against each class, or one of them; all lead to the `target`, where there is one."""
    rows = [row for row in data if not row.problem]
    goal = None if target is None else _class(target, victim.labels)
    chosen = range(len(victim.labels)) if against is None else [_class(against, victim.labels)]
    found = {}
    for label in chosen:
        if label != goal:
            texts = [row.text() for row in rows if row.label == label]
            learner = TriggerLearner(victim, label, settings, target=goal)
            found[victim.labels[label]] = learner.learn(texts, observer)
    return Triggers(victim.labels, found, target, victim.name, data.name)


def _class(name: str, labels: Sequence[str]) -> int:
    if name not in labels:
        raise unknown_name("class", name, list(labels))
    return labels.index(name)


class TriggerLearner:
    """Finds the trigger against one class of a victim, or towards a `target`."""

    def __init__(
        self, victim: Victim, label: int, settings: TriggerSettings, *, target: int | None = None
    ) -> None:
        if "gradients" not in victim.capabilities or not hasattr(victim, "vocabulary_vectors"):
            raise CapabilityError(
                f"{victim.name} gives no gradients, from which triggers are learned",
                "learn the trigger on a torch model; the attack `uat` can try it on this one",
            )
        self._victim: Any = victim
        self._label = label
        self._target = target
        self._settings = settings
        self._words, self._table = self._victim.vocabulary_vectors()

    def learn(self, texts: Sequence[Text], observer: ProgressObserver | None = None) -> Trigger:
        """From the rows of the class that the victim gets right; some of them only measure the result."""
        rng = np.random.default_rng([self._settings.seed, self._label])
        rows = [texts[i] for i in rng.permutation(len(texts))]
        right = [
            row
            for row, said in zip(rows, self._decisions(rows), strict=True)
            if said == self._label and row.words
        ]
        held = round(self._settings.held_out * len(right))
        measured, learned = right[:held], right[held:]
        if not learned:
            raise DataError(
                f"no row of the class {self._victim.labels[self._label]!r} to learn from that the model "
                "gets right",
                "give more rows, or check the labels",
            )
        words = self._searched(learned, rng, observer or ProgressObserver())
        flips = sum(map(self._flips, self._decisions([put_before(row, words) for row in measured])))
        return Trigger(words, len(measured), flips)

    def _flips(self, said: int) -> bool:
        if self._target is not None:
            return said == self._target
        return said not in (self._label, -1)

    def _searched(self, texts: Sequence[Text], rng: np.random.Generator, observer: ProgressObserver) -> Words:
        settings = self._settings
        now = (settings.first,) * settings.words
        starts = range(0, len(texts), settings.batch)
        observer.started(
            settings.epochs * len(starts), what=f"trigger against {self._victim.labels[self._label]}"
        )
        for epoch in range(settings.epochs):
            before, order = now, rng.permutation(len(texts))
            for first in starts:
                some = [texts[i] for i in order[first : first + settings.batch]]
                now = self._improved(now, some)
                observer.advanced()
            if now == before:
                observer.advanced((settings.epochs - epoch - 1) * len(starts))
                break
        return now

    def _improved(self, now: Words, texts: Sequence[Text]) -> Words:
        """The best trigger for these texts that differs in words which the gradient likes."""
        proposed = self._proposed(now, texts)
        members = [now]
        for place, words in enumerate(proposed):
            options = dict.fromkeys(
                (*member[:place], word, *member[place + 1 :])
                for member in members
                for word in (member[place], *words)
            )
            worth = self._worth(list(options), texts)
            best = sorted(
                zip(worth, range(len(worth)), options, strict=True), key=lambda row: (-row[0], row[1])
            )
            members = [option for _, _, option in best[: self._settings.beam]]
        return members[0]

    def _proposed(self, now: Words, texts: Sequence[Text]) -> list[list[str]]:
        """Of each place the words that lie farthest along the mean gradient."""
        places = range(len(now))
        asked = [marked(put_before(text, now), places) for text in texts]
        label, sign = (self._label, 1.0) if self._target is None else (self._target, -1.0)
        slopes = self._victim.gradients(asked, [label] * len(asked), of="loss")
        mean = np.mean([slope.vectors for slope in slopes], axis=0, dtype=np.float64)
        gains: Numbers = steady((sign * mean @ self._table.T.astype(np.float64)).astype(np.float32))
        best = highest(gains, self._settings.candidates)
        return [[self._words[number] for number in row] for row in best]

    def _worth(self, options: Sequence[Words], texts: Sequence[Text]) -> list[float]:
        """1 - mean p(class) of the texts behind each option; with a target its mean probability."""
        strings = [put_before(text, words).value for words in options for text in texts]
        column = self._label if self._target is None else self._target
        chances = np.concatenate(
            [
                self._victim.predict(strings[first : first + _ASKED])[:, column]
                for first in range(0, len(strings), _ASKED)
            ]
        )
        means = chances.reshape(len(options), len(texts)).mean(axis=1)
        worth: list[float] = np.round(1.0 - means if self._target is None else means, DECIMALS).tolist()
        return worth

    def _decisions(self, texts: Sequence[Text]) -> list[int]:
        if not texts:
            return []
        rows = np.round(self._victim.predict([text.value for text in texts]), DECIMALS)
        return [decided(row) for row in rows.tolist()]
