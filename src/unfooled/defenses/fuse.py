"""FuSE, the fuzzy sentence ensemble: classify the text and its SWITCH alternatives, then vote.

Mein, Hartman, Morris: *FireBERT*, 2020, arXiv:2008.04203, section 2.1.4.

    1. SWITCH makes alternatives of the text that is being classified.
    2. Classify the text and each alternative.
    3. Combine: majority of the decisions, mean of the logits, or mean of the probabilities.

Differences from the authors' code
    - The alternatives belong to the text in question, always. There they were looked up by a row number in a
      shuffled file, so that on IMDB other reviews voted, and under attack the neighbours of the first test
      example did: the published collapse to 0.518 and 0.373 is that.
    - The draws follow from the text and a seed; `fresh=true` draws anew in every call.
    - `similarity` is `none` by default. The paper's filter at 0 took none of 600 texts away (MR, MiniLM), so
      it gives the same alternatives at twice the time.
    - The gradients for SWITCH come from the wrapped model, or from `switch_model`: where that has none,
      or for FuSE(FACT), whose gradients are the baseline's in the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np

from unfooled.core.questions import Marked, Of, Readable, WordVectors, mark
from unfooled.core.victim import Probabilities, TextValue, Victim, digest, softmax
from unfooled.defenses.ensemble import WordEnsemble, ask_in_batches, innermost
from unfooled.defenses.methods import VOTES, Method
from unfooled.defenses.settings import defaults_of
from unfooled.defenses.switch import Similarity, Switch, as_text
from unfooled.defenses.switching import RANGES, Switched, Switcher
from unfooled.defenses.voting import Vote, combine, require_seed, require_vote
from unfooled.errors import CapabilityError
from unfooled.text import Text
from unfooled.training.families import Range
from unfooled.victims.randomness import Logits, log
from unfooled.victims.torch.noise import NoiseReader, NoisyText


@dataclass(frozen=True, kw_only=True)
class Fuse(Switch):
    """SWITCH and a vote. The defaults are the paper's for IMDB, but for the encoder (see above)."""

    similarity: Similarity = "none"
    multiplier: int = 17
    alternatives: int = 12
    vote: Vote = "mean-probs"
    original: bool = True  # the text itself votes too
    field: int = -1  # of a pair
    seed: int = 0
    fresh: bool = False
    switch_model: str = ""  # another model to take gradients from

    def __post_init__(self) -> None:
        super().__post_init__()
        require_vote(self.vote)
        require_seed(self.seed)


class FuseVictim(WordEnsemble):
    """Wraps any victim. One with no word to swap answers as the wrapped one does."""

    method = "fuse"
    settings: Fuse

    def __init__(
        self,
        model: Victim,
        settings: Fuse | None = None,
        *,
        name: str = "",
        switcher: Switcher | None = None,
    ) -> None:
        super().__init__(model, settings or Fuse(), name=name)
        lent = switcher is not None or self.settings.switch_model
        if not lent and "gradients" not in innermost(model).capabilities:
            raise CapabilityError(
                f"FuSE needs gradients for SWITCH, which {innermost(model).name} does not give",
                "lend it those of a torch model that reads the same texts: switch_model=DIR "
                "(harden: --set, attack: --victim-option)",
            )
        self._switcher = switcher
        self._own = switcher is None

    def __getstate__(self) -> dict[str, Any]:
        # Another process opens its own word vectors and models.
        return {**self.__dict__, "_switcher": None if self._own else self._switcher}

    def _like(self, settings: Any) -> Self:
        return type(self)(self.inner, settings, name=self.name, switcher=self.switcher)

    @property
    def switcher(self) -> Switcher:
        """Made when first used: it opens word vectors, the tagger and the encoder."""
        if self._switcher is None:
            self._switcher = Switcher(self.settings, self.frozen)
        return self._switcher

    def fingerprint(self) -> str:
        return digest(super().fingerprint(), self.frozen.fingerprint())

    def _vote(self, texts: Sequence[TextValue], seeds: Sequence[int]) -> Probabilities:
        alternatives = self.switcher(texts, seed=seeds, field=self.settings.field)
        copies: list[TextValue] = []
        ends = [0]
        for text, others in zip(texts, alternatives, strict=True):
            copies += [text, *others] if self.settings.original or not others else others
            ends.append(len(copies))
        answers = ask_in_batches(self.inner, copies)
        return np.stack([combine(answers[a:b], self.settings.vote) for a, b in pairwise(ends)])

    def _slopes(self, texts: Sequence[Readable], labels: Sequence[int | None], of: Of) -> list[WordVectors]:
        """The mean over the copies; a swapped word does not depend on the word it stands for."""
        marked = [mark(text) for text in texts]
        plain = [as_text(text.value, self.settings.field) for text in marked]
        made = {
            swapped.number: swapped
            for swapped in self.switcher.each(plain, seed=self._seeds(len(plain)), raising=True)
        }
        inside = self._inside
        totals = inside.gradients(marked, labels, of=of)
        found = []
        for n, (text, own, label) in enumerate(zip(plain, totals, labels, strict=True)):
            sums = own.vectors.astype(np.float64)
            count = 1
            if marked[n] == mark(text):
                others = [self._alternative(text, made[n], choice) for choice in made[n].choices]
                for slope in inside.gradients(others, [label] * len(others), of=of):
                    kept = slope.vectors.copy()
                    kept[list(made[n].plan.positions)] = 0.0
                    sums += kept
                    count += 1
            sums[own.pieces == 0] = 0.0  # an alternative may be shorter, and its end be read
            found.append(WordVectors(own.words, own.pieces, (sums / count).astype(np.float32)))
        return found

    # -- noise, for FIVE around it -----------------------------------------------------------------

    def noisy_logits(
        self, items: Sequence[NoisyText], *, sigma: float, copies: int, plain: bool = False
    ) -> Logits:
        """Each copy is a vote over the text and its alternatives, with noise on the same words of each."""
        texts = [as_text(item.text.value, self.settings.field) for item in items]
        drawn = self.switcher.each(texts, seed=self._seeds(len(texts)), raising=True)
        made = {swapped.number: swapped for swapped in drawn}
        noisy: list[NoisyText] = []
        ends = [0]
        for n, item in enumerate(items):
            others = [self._alternative(texts[n], made[n], choice) for choice in made[n].choices]
            own = [texts[n]] if self.settings.original or not others else []
            # The words that get noise are FIVE's, which may edit another field of a pair.
            voters = [_marked_in(text, item.text.field) for text in (*own, *others)]
            rngs = item.rng.spawn(len(voters))
            noisy += [NoisyText(voter, item.words, rng) for voter, rng in zip(voters, rngs, strict=True)]
            ends.append(len(noisy))
        answers = softmax(self._reader.noisy_logits(noisy, sigma=sigma, copies=copies, plain=plain))
        # [voters, copies, classes]: the vote runs over the voters of each copy.
        votes = [combine(answers[a:b].swapaxes(0, 1), self.settings.vote) for a, b in pairwise(ends)]
        return log(np.stack(votes)) if votes else np.zeros((0, copies + plain, len(self.labels)))

    def embedding_norm(self) -> float:
        return self._reader.embedding_norm()

    @property
    def _reader(self) -> NoiseReader:
        if not isinstance(self.inner, NoiseReader):
            raise CapabilityError(f"{self.inner.name} cannot be read with noise", "wrap a torch model")
        return self.inner

    @staticmethod
    def _alternative(text: Text, made: Switched, choice: tuple[int, ...]) -> Text:
        for position, options, number in zip(made.plan.positions, made.plan.options, choice, strict=True):
            text = text.replace(position, options[number])
        return text


def _marked_in(text: Text, field: int) -> Marked:
    return mark(text) if text.field == field else mark(as_text(text.value, field))


METHOD = Method(
    name="fuse",
    summary="votes over the text and its SWITCH alternatives",
    paper="Mein, Hartman, Morris 2020 (FireBERT)",
    defaults=defaults_of(Fuse),
    ranges=RANGES | {"words": Range(1, 10), "alternatives": Range(2, 14), "vote": VOTES},
    victim=FuseVictim,
    settings=Fuse,
)
