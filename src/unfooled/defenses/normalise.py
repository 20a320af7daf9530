"""Normalising: the text is freed of disguises before the model reads it.

    unfooled attack --model normalise:MODEL --data D --attack smuggle-homoglyph
    unfooled harden --method normalise --model MODEL --out FOLDER --set steps=invisible,nfkc

The model stays as it is, and may be any: an endpoint, a function, a pipeline. `steps` are names of
`normalisers.py`, done in the order given there. With `table=english-words` letters that were spaced out, and
words written without blanks between them, are split by a list of English words. What the model shows of its
inside belongs to another text than the attacker's, so gradients and attention are not handed on.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from unfooled.core.victim import Probabilities, TextValue, Victim, digest
from unfooled.defenses.methods import Method
from unfooled.defenses.normalisers import NORMALISERS, VERSION, spacing
from unfooled.defenses.settings import defaults_of
from unfooled.defenses.splitting import open_splitter
from unfooled.defenses.wrapper import Wrapper
from unfooled.errors import UserError

ALL = ",".join(NORMALISERS)


@dataclass(frozen=True, kw_only=True)
class Normalise:
    steps: str = ALL
    table: str = ""  # of English words

    def __post_init__(self) -> None:
        for step in self.names:
            if step not in NORMALISERS:
                raise UserError(f"there is no normaliser called {step!r}", f"choose from {ALL}")
        if not self.names:
            raise UserError("steps is empty: nothing would be normalised", f"choose from {ALL}")

    @property
    def names(self) -> list[str]:
        """In the order in which they work, whatever the order in which they were given."""
        given = [step.strip() for step in self.steps.split(",") if step.strip()]
        known = [step for step in NORMALISERS if step in given]
        return known + [step for step in given if step not in known]

    def functions(self) -> list[Callable[[str], str]]:
        """Opens the table, where there is one."""
        found = {step: NORMALISERS[step] for step in self.names}
        if self.table and "spacing" in found:
            split = open_splitter(self.table)
            found["spacing"] = lambda text: split.long_words(spacing(text, split.run))
        return list(found.values())


def normalised(text: str, steps: Sequence[Callable[[str], str]] = tuple(NORMALISERS.values())) -> str:
    for step in steps:
        text = step(text)
    return text


class NormalisedVictim(Wrapper):
    """Asks the model inside about normalised texts."""

    method = "normalise"
    settings: Normalise

    def __init__(self, model: Victim, settings: Normalise | None = None, *, name: str = "") -> None:
        super().__init__(model, settings or Normalise(), name=name)

    @property
    def stochastic(self) -> bool:
        return bool(getattr(self.inner, "stochastic", False))

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        return self.inner.predict([self.normalised(text) for text in texts])

    def normalised(self, text: TextValue) -> TextValue:
        clean = partial(normalised, steps=self._steps)
        return clean(text) if isinstance(text, str) else tuple(map(clean, text))

    @cached_property
    def _steps(self) -> list[Callable[[str], str]]:
        return self.settings.functions()

    def fingerprint(self) -> str:
        return digest(super().fingerprint(), VERSION, unicodedata.unidata_version)

    def __getattr__(self, name: str) -> Any:
        """Across a network it is asked as the model inside is; a random one can be drawn again."""
        if name == "concurrency" or (name in ("answer", "redrawn") and hasattr(self.inner, name)):
            return getattr(self.inner if name == "concurrency" else self, _OWN.get(name, name))
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_steps"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    async def _answer(self, items: Sequence[Any], /) -> Probabilities:
        inner: Any = self.inner
        answers: Probabilities = await inner.answer([self.normalised(item) for item in items])
        return answers

    def _redrawn(self, draw: int, /) -> NormalisedVictim:
        inner: Any = self.inner
        return NormalisedVictim(inner.redrawn(draw), self.settings, name=self.name) if draw else self


_OWN = {"answer": "_answer", "redrawn": "_redrawn"}

METHOD = Method(
    name="normalise",
    summary="undoes disguises of characters before the model reads the text",
    paper="Unicode Technical Standards 36 and 39 name the disguises; the tables are our own",
    defaults=defaults_of(Normalise),
    victim=NormalisedVictim,
    settings=Normalise,
)
