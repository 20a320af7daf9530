"""What running an attack on a translation model needs, beside what every attack needs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

from unfooled.attacks.parts.goals import aimed_at_word
from unfooled.core.program import Oracle
from unfooled.core.questions import Asked, Written
from unfooled.core.recipe import Recipe
from unfooled.core.result import Example
from unfooled.core.victim import TextValue, Victim
from unfooled.errors import VictimError
from unfooled.runs.task import Examples, misfit
from unfooled.translation.kept_attention import keep_attention
from unfooled.translation.oracles import WritingOracle
from unfooled.translation.parallel import ParallelText, as_parallel
from unfooled.translation.preflight import preflight_translator
from unfooled.translation.victim import Translator
from unfooled.victims.preflight import Preflight


class Translation:
    """Victims that write text. See `runs.task.Task`, and `core.victim_oracle` for the oracle."""

    def oracle(self, victim: Victim) -> Oracle:
        return WritingOracle(_writing(victim))

    def data(self, given: Any, victim: Victim, /) -> ParallelText:
        if isinstance(given, Examples) and not isinstance(given, ParallelText):
            raise misfit(given, victim, "writes text", "load_parallel")
        return as_parallel(given)

    def preflight(self, victim: Victim, sample: Sequence[Example], /) -> Preflight:
        texts = [example.text().string for example in sample]
        return preflight_translator(_writing(victim), texts, [example.reference for example in sample])

    def aimed(self, recipe: Recipe, target: str, victim: Victim, /) -> Recipe:
        return aimed_at_word(recipe, target)

    def question(self, text: TextValue, /) -> Hashable:
        return Asked(str(text))

    def answers(self, victim: Victim, text: TextValue, /) -> Sequence[Written]:
        return _writing(victim).write([Asked(str(text))])

    def keep(self, run: Path, victim: Victim, /) -> None:
        keep_attention(run, victim)


def _writing(victim: Victim) -> Translator:
    if not isinstance(victim, Translator):
        raise VictimError(
            f"{victim.name} says that it writes text, and has no method to write",
            "give it a method write, or leave `translations` out of its capabilities",
        )
    return victim


TASK = Translation()
