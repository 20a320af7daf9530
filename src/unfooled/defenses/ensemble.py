"""What FuSE and FIVE share: a victim around a victim that votes over copies of each text.

Capabilities. `probabilities` are those of the vote. `gradients`, where the wrapped victim has them, are the
mean over the copies, with their random numbers held fixed, as an attacker who averages would take them; also
where the vote itself has no slope (a majority). `attention`, `embeddings` and sentence vectors are those of
the wrapped victim when it reads the text as it stands.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np

from unfooled.core.questions import Counts, Numbers, Of, Pool, Readable, WordVectors, mark
from unfooled.core.victim import Probabilities, TextValue, Victim
from unfooled.defenses.switch import text_rng
from unfooled.defenses.voting import Vote
from unfooled.defenses.wrapper import Wrapper
from unfooled.errors import CapabilityError, VictimError
from unfooled.victims.loading import load_victim
from unfooled.victims.torch.whitebox import AttentionMaps, WhiteBoxVictim, WordEmbeddings, is_white_box

BATCH = 512  # texts per call: their copies are many times as many


class EnsembleSettings(Protocol):
    """Every defence of this kind has these."""

    @property
    def vote(self) -> Vote: ...
    @property
    def field(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def fresh(self) -> bool: ...


class WordSettings(EnsembleSettings, Protocol):
    """Also of those that change the words that matter."""

    @property
    def switch_model(self) -> str: ...


class Ensemble(Wrapper):
    """A classifier that answers by a vote."""

    batch_size = BATCH
    settings: EnsembleSettings

    def __init__(self, model: Victim, settings: EnsembleSettings, *, name: str = "") -> None:
        super().__init__(model, settings, name=name)
        self.drawn = 0  # texts answered so far, for fresh random numbers
        if "probabilities" not in model.capabilities and settings.vote == "mean-logits":
            raise CapabilityError(
                f"{model.name} only decides labels: there are no logits to average", "use vote=majority"
            )

    # -- the victim --------------------------------------------------------------------------------

    @property
    def capabilities(self) -> frozenset[str]:
        return self.inner.capabilities | {"probabilities"}

    @property
    def stochastic(self) -> bool:
        """Whether the same text may get another answer the next time."""
        return self.settings.fresh

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        if self.settings.fresh:
            return self._answers(texts)  # equal texts are not the same question then
        distinct = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        return self._answers(list(distinct))[[distinct[text] for text in texts]]

    def _answers(self, texts: Sequence[TextValue]) -> Probabilities:
        answers = np.zeros((len(texts), len(self.labels)))
        for start in range(0, len(texts), BATCH):
            batch = texts[start : start + BATCH]
            answers[start : start + BATCH] = self._vote(batch, self._seeds(len(batch)))
        return answers

    def redrawn(self, draw: int) -> Self:
        """The same defence with other random numbers; 0 means those that it has."""
        if not draw:
            return self
        seed = int(np.random.SeedSequence([self.settings.seed, draw]).generate_state(1)[0])
        return self._like(dataclasses.replace(self.settings, seed=seed))  # type: ignore[type-var]

    def _like(self, settings: Any) -> Self:
        return type(self)(self.inner, settings, name=self.name)

    # -- what a defence adds -----------------------------------------------------------------------

    def _vote(self, texts: Sequence[TextValue], seeds: Sequence[int]) -> Probabilities:
        """One row per text; `seeds` has the seed of each text's random numbers."""
        raise NotImplementedError

    def _slopes(self, texts: Sequence[Readable], labels: Sequence[int | None], of: Of) -> list[WordVectors]:
        raise NotImplementedError

    def _seeds(self, count: int) -> list[int]:
        """The same for every text, because a text's own digest joins it; or a new one for each."""
        if not self.settings.fresh:
            return [self.settings.seed] * count
        self.drawn += count
        first = self.drawn - count
        return [
            int(np.random.SeedSequence([self.settings.seed, 1, n]).generate_state(1)[0])
            for n in range(first, self.drawn)
        ]

    def _rng(self, text: TextValue, seed: int) -> np.random.Generator:
        return text_rng(text, self.settings.field, seed)

    # -- inside ------------------------------------------------------------------------------------

    @property
    def _inside(self) -> WhiteBoxVictim:
        if not is_white_box(self.inner):
            raise CapabilityError(f"{self.inner.name} shows nothing of its inside", "use a torch model")
        return self.inner

    def pieces(self, texts: Sequence[Readable], /) -> list[Counts]:
        return self._inside.pieces(texts)

    def gradients(
        self, texts: Sequence[Readable], labels: Sequence[int | None] | None = None, *, of: Of = "loss"
    ) -> list[WordVectors]:
        wanted: list[int | None] = list(labels) if labels is not None else [None] * len(texts)
        open_ones = [n for n, label in enumerate(wanted) if label is None]
        if open_ones and of != "squared-logits":
            decided = self.predict([mark(texts[n]).value for n in open_ones]).argmax(axis=1)
            for n, label in zip(open_ones, decided.tolist(), strict=True):
                wanted[n] = label
        return self._slopes(texts, wanted, of)

    def jacobian(self, texts: Sequence[Readable], /) -> list[Numbers]:
        classes = [self._slopes(texts, [label] * len(texts), "logit") for label in range(len(self.labels))]
        return [np.stack([cls[n].vectors for cls in classes]) for n in range(len(texts))]

    def attention(self, texts: Sequence[Readable], **how: Any) -> list[Numbers]:
        return self._inside.attention(texts, **how)

    def attention_maps(self, texts: Sequence[Readable], /) -> list[AttentionMaps]:
        return self._inside.attention_maps(texts)

    def embeddings(self, texts: Sequence[Readable], /) -> list[WordEmbeddings]:
        return self._inside.embeddings(texts)

    def sentence_vectors(self, texts: Sequence[Readable], *, pool: Pool = "head") -> Numbers:
        return self._inside.sentence_vectors(texts, pool=pool)


class WordEnsemble(Ensemble):
    """Its copies differ in the words that matter, by the gradients of the model inside or of another one."""

    settings: WordSettings

    def __init__(
        self, model: Victim, settings: WordSettings, *, name: str = "", frozen: Victim | None = None
    ) -> None:
        super().__init__(model, settings, name=name)
        if frozen is not None:
            self.frozen = frozen

    @cached_property
    def frozen(self) -> Victim:
        """Whose gradients say which words matter."""
        other = self.settings.switch_model
        if not other:
            return innermost(self.inner)
        try:
            lent = load_victim(other)
        except VictimError as error:
            raise VictimError(f"switch_model={other}: {error.cause}", error.remedy) from error
        if "gradients" not in lent.capabilities:
            raise CapabilityError(
                f"switch_model={other}: {lent.name} gives no gradients",
                "name a torch model that reads the same texts",
            )
        return lent


def innermost(victim: Victim) -> Victim:
    """The model inside all defences."""
    while isinstance(victim, Ensemble):
        victim = victim.inner
    return victim


def ask_in_batches(victim: Victim, texts: Sequence[TextValue]) -> Probabilities:
    size = max(1, victim.batch_size)
    parts = [victim.predict(texts[start : start + size]) for start in range(0, len(texts), size)]
    return np.concatenate([np.zeros((0, len(victim.labels))), *parts])


def own_settings(
    defaults: Mapping[str, Any], given: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Those of the options that belong to the defence, and those that go on to the model inside."""
    mine = {name: value for name, value in given.items() if name in defaults}
    return mine, {name: value for name, value in given.items() if name not in defaults}
