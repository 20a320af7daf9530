"""FIVE, the fuzzy internal vector ensemble: noise on the embeddings of the words that matter, then a vote.

Mein, Hartman, Morris: *FireBERT*, 2020, arXiv:2008.04203, section 2.1.5.

    1. Find the most important words of the text by their gradient; stop words do not count.
    2. Make copies of the text in which Gaussian noise is added to the embeddings of these words.
    3. Classify the copies, and the text itself.
    4. Combine: majority of the decisions, mean of the logits, or mean of the probabilities.

Differences from the authors' code
    - Every one of the chosen words gets noise; there only the last one did.
    - The noise follows from the text and a seed, so a text gets the same answer in any batch; `fresh=true`
      draws it anew in every call, as theirs does.
    - sigma = 2.3 and 8.14 are the published values, for embeddings of length about 1 in 768 dimensions: such
      noise overwrites the word. `describe` gives sigma, and the length of the noise, relative to the mean
      length of this model's embeddings.
    - The gradients come from the model inside, or from `switch_model`, as the baseline's do for FIVE(FACT) in
      the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from unfooled.core.questions import GradientItem, Marked, Of, Readable, WordVectors, mark
from unfooled.core.victim import Probabilities, TextValue, Victim, digest, softmax
from unfooled.defenses.ensemble import WordEnsemble
from unfooled.defenses.methods import VOTES, Method
from unfooled.defenses.settings import defaults_of
from unfooled.defenses.switch import Importance, as_text, important_words, require_stopwords
from unfooled.defenses.voting import Vote, combine, require_seed, require_vote
from unfooled.errors import CapabilityError, UserError
from unfooled.training.families import Range
from unfooled.victims.torch.noise import Logits, NoiseReader, NoisyText, TorchNoise
from unfooled.victims.torch.oracles import GradientOracle, steady


@dataclass(frozen=True, kw_only=True)
class Five:
    """The defaults are the paper's for IMDB."""

    words: int = 1
    sigma: float = 2.3
    copies: int = 10
    vote: Vote = "mean-probs"
    original: bool = True  # the text itself votes too
    importance: Importance = "loss"
    stopwords: str = "textfooler"
    field: int = -1  # of a pair
    seed: int = 0
    fresh: bool = False
    switch_model: str = ""  # another model to take gradients from

    def __post_init__(self) -> None:
        for name in ("words", "copies"):
            if getattr(self, name) < 1:
                raise UserError(f"{name}={getattr(self, name)} makes no sense", f"{name} is at least 1")
        if self.sigma < 0:
            raise UserError(f"sigma={self.sigma} makes no sense", "sigma is at least 0")
        if self.importance not in ("loss", "squared-logits"):
            raise UserError(f"importance={self.importance} is not known", "use loss or squared-logits")
        require_stopwords(self.stopwords)
        require_vote(self.vote)
        require_seed(self.seed)


class FiveVictim(WordEnsemble):
    """Needs a model whose embeddings can be reached: any torch model."""

    method = "five"
    settings: Five
    later = ("switch_model",)

    def __init__(
        self,
        model: Victim,
        settings: Five | None = None,
        *,
        name: str = "",
        frozen: Victim | None = None,
    ) -> None:
        if not isinstance(model, NoiseReader) or not {"gradients", "embeddings"} <= model.capabilities:
            raise CapabilityError(
                f"FIVE adds noise to embeddings, and {model.name} does not show its own",
                "wrap a torch model, or use FuSE, which only swaps words",
            )
        super().__init__(model, settings or Five(), name=name, frozen=frozen)
        self._reader: NoiseReader = model
        self._gradients = GradientOracle(self.frozen, of=self.settings.importance)

    def _like(self, settings: Any) -> Self:
        return type(self)(self.inner, settings, name=self.name, frozen=self.frozen)

    def fingerprint(self) -> str:
        own = super().fingerprint()
        return digest(own, self.frozen.fingerprint()) if self.settings.switch_model else own

    @property
    def capabilities(self) -> frozenset[str]:
        found = super().capabilities
        return found if isinstance(self.inner, TorchNoise) else found - {"gradients"}

    def describe(self) -> dict[str, Any]:
        norm = self._reader.embedding_norm()
        width = len(self.embeddings(["word"])[0].input[0])
        noise = self.settings.sigma * width**0.5
        return super().describe() | {
            "mean_embedding_norm": round(norm, 4),
            "relative_sigma": round(self.settings.sigma / norm, 4),
            "relative_noise_norm": round(noise / norm, 4),
        }

    def _vote(self, texts: Sequence[TextValue], seeds: Sequence[int]) -> Probabilities:
        chosen = self.settings
        items, seen = self._noisy([self._marked(text) for text in texts], seeds)
        logits = self._reader.noisy_logits(
            items, sigma=chosen.sigma, copies=chosen.copies, plain=chosen.original and seen is None
        )
        if chosen.original and seen is not None:
            logits = np.concatenate([seen[:, None], logits], axis=1)
        return combine(softmax(logits), chosen.vote)

    def _noisy(self, texts: Sequence[Marked], seeds: Sequence[int]) -> tuple[list[NoisyText], Logits | None]:
        """Which words of each text get noise, from which random numbers; and logits seen on the way."""
        words: list[tuple[int, ...]] = []
        logits: list[Logits] = []
        for start in range(0, len(texts), self._gradients.batch_size):
            for slopes in self._importance(texts[start : start + self._gradients.batch_size], logits):
                ranked = important_words(slopes, self.settings.stopwords)
                # A text of stop words only: then these are all there is.
                ranked = ranked or important_words(slopes, "none")
                words.append(tuple(ranked[: self.settings.words]))
        rngs = [self._rng(text.value, seed) for text, seed in zip(texts, seeds, strict=True)]
        items = [NoisyText(*parts) for parts in zip(texts, words, rngs, strict=True)]
        return items, np.concatenate(logits) if logits else None

    def _importance(self, texts: Sequence[Marked], logits: list[Logits]) -> list[WordVectors]:
        """Gradients; a model that is read directly gives its logits in the same pass."""
        if self.settings.switch_model or not isinstance(self.inner, TorchNoise):
            return self._gradients([GradientItem(text) for text in texts])
        slopes, seen = self.inner.gradients_and_logits(texts, of=self.settings.importance)
        logits.append(seen)
        return [replace(slope, vectors=steady(slope.vectors)) for slope in slopes]

    def _slopes(self, texts: Sequence[Readable], labels: Sequence[int | None], of: Of) -> list[WordVectors]:
        if not isinstance(self.inner, TorchNoise):
            raise CapabilityError(f"{self.inner.name} gives no gradients under noise", "use a torch model")
        # The words that get noise are those of the victim's own reading; the spans are the caller's.
        marked = [mark(text) for text in texts]
        own, _ = self._noisy([self._marked(text.value) for text in marked], self._seeds(len(marked)))
        items = [self._moved(item, to) for item, to in zip(own, marked, strict=True)]
        chosen = self.settings
        return self.inner.noisy_gradients(items, labels, sigma=chosen.sigma, copies=chosen.copies, of=of)

    def _moved(self, item: NoisyText, to: Marked) -> NoisyText:
        if to.field != item.text.field:
            return NoisyText(to, (), item.rng)
        spans = [item.text.spans[i] for i in item.words]
        words = [n for n, (a, b) in enumerate(to.spans) if any(a < end and start < b for start, end in spans)]
        return NoisyText(to, tuple(words), item.rng)

    def _marked(self, text: TextValue) -> Marked:
        return mark(as_text(text, self.settings.field))


METHOD = Method(
    name="five",
    summary="votes over copies with noise on the embeddings of the most important words",
    paper="Mein, Hartman, Morris 2020 (FireBERT)",
    defaults=defaults_of(Five),
    ranges={
        "words": Range(1, 10),
        "sigma": Range(0.02, 10.0, log=True),
        "copies": Range(2, 15),
        "vote": VOTES,
    },
    victim=FiveVictim,
    settings=Five,
)
