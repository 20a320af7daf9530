"""A look at the model itself: is it random, are its scores saturated or rounded, are its gradients alive?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from unfooled.checks.replay import answers
from unfooled.core.victim import Probabilities, TextValue, Victim
from unfooled.core.victim_oracle import DECIMALS
from unfooled.errors import VictimError
from unfooled.rates import mean_interval
from unfooled.text import Text
from unfooled.victims.randomness import is_redrawable, logits_of
from unfooled.victims.torch.whitebox import is_white_box

Chance = Literal["none", "seeded", "by nature", "by batch"]

_DIFFERENT = 1e-4  # two answers to one text that differ by more are not the same answer
_REPEATS = 4
_SATURATED = 0.5 * 10.0**-DECIMALS  # nearer to 0 or 1 than this, a search sees 0 or 1
_MOST_TEXTS = 64
_GRADIENT_TEXTS = 24
_DEAD = 1e-20  # a gradient shorter than that is none
_LEAST_TEXTS = 8  # below this a mean agreement says nothing
_LEAST_WORDS = 4  # below this a rank agreement says nothing


@dataclass(frozen=True, slots=True)
class Looks:
    """What the model's answers look like, on clean texts, shortened ones and adversarial ones."""

    chance: Chance
    spread: float  # largest difference between two answers to the same text
    saturated: float  # share of clean texts whose probabilities read 0 and 1 to a search
    decimals: int | None  # all probabilities are multiples of 10^-decimals; None: they are not rounded
    temperature: float  # by which logits must be divided for a median margin of about 2
    texts: int

    @property
    def random(self) -> bool:
        return self.chance != "none"

    @property
    def hiding(self) -> str:
        """What in its answers can hide the way from a search; empty where nothing does."""
        if self.decimals is not None:
            return "rounded scores" if self.decimals else "scores that are only ever 0 or 1"
        if self.saturated > 0.5:
            return "saturated scores"
        return "chance" if self.random else ""

    def findings(self) -> list[str]:
        found = []
        if self.chance == "by nature":
            found.append(f"it answers at random: the same text scored {self.spread:.2f} differently")
        elif self.chance == "by batch":
            found.append(
                f"its answer depends on the other texts of the batch (by {self.spread:.2f}), "
                "so it is treated as random"
            )
        if self.decimals is not None:
            places = f"{self.decimals} decimal{'s' if self.decimals > 1 else ''}"
            what = f"rounded to {places}" if self.decimals else "only ever 0 or 1"
            found.append(f"its probabilities are {what}, so that a search sees no way")
        elif self.saturated > 0.5:
            found.append(
                f"its scores are saturated: {self.saturated:.0%} of the texts have a probability of 1 to "
                f"{DECIMALS} decimals, so that a search sees no way"
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Looks:
        return cls(**content)


def look(victim: Victim, clean: Sequence[TextValue], other: Sequence[TextValue] = ()) -> Looks:
    """`other` are texts of low confidence, such as samples made against another model.

    Randomness and rounding may show only where a model is unsure, so shortened texts are asked as well.
    """
    clean = list(dict.fromkeys(clean))[:_MOST_TEXTS]
    short = [shortened for text in clean if (shortened := _half(text)) not in ("", text)]
    wanted = list(dict.fromkeys([*clean, *short, *list(other)[:_MOST_TEXTS]]))
    said = answers(victim, wanted)
    texts = [text for text in wanted if not isinstance(said[text], Exception)]
    clean = [text for text in clean if text in texts]
    if not texts:
        raise VictimError(f"{victim.name} answers none of {len(wanted)} texts: {said[wanted[0]]}")
    scores = _ask(victim, texts)
    chance, spread = _chance(victim, texts, scores)
    return Looks(
        chance=chance,
        spread=spread,
        saturated=float(np.mean(scores[: len(clean)].max(axis=1) > 1.0 - _SATURATED)) if clean else 0.0,
        decimals=_decimals(scores),
        temperature=_temperature(victim, clean),
        texts=len(texts),
    )


def same_again(victim: Victim, texts: Sequence[TextValue], said: Sequence[Sequence[float]]) -> float:
    """The largest difference between what was said during an attack and what is said now."""
    if not texts:
        return 0.0
    return float(np.abs(_ask(victim, list(texts)) - np.array(said)).max(initial=0.0))


def _chance(victim: Victim, texts: list[TextValue], scores: Probabilities) -> tuple[Chance, float]:
    again = _again(victim, texts, scores)
    if again > _DIFFERENT:
        return "by nature", again
    few = texts[:: max(1, len(texts) // 16)]
    alone = _gap(np.concatenate([victim.predict([text]) for text in few]), _ask(victim, few))
    backwards = max(alone, _gap(_ask(victim, texts[::-1])[::-1], scores))
    if backwards > _DIFFERENT:
        # A rare chance may have waited until now: only what repeats can be blamed on the batch.
        again = _again(victim, texts, scores)
        return ("by nature", again) if again > _DIFFERENT else ("by batch", backwards)
    if is_redrawable(victim):
        spread = max(_gap(_ask(victim.redrawn(n), texts), scores) for n in (1, 2))
        if spread > _DIFFERENT:
            return "seeded", spread
    return "none", max(again, backwards)


def _again(victim: Victim, texts: list[TextValue], scores: Probabilities) -> float:
    return max(_gap(_ask(victim, texts), scores) for _ in range(_REPEATS))


def _decimals(scores: Probabilities) -> int | None:
    """The fewest decimals that all scores have, if those are few."""
    for decimals in range(5):
        off = np.abs(scores - np.round(scores, decimals)) > 1e-7
        hidden = (scores > 0.0) & (scores < 1e-7)  # next to zero, but not rounded to it
        if not (off | hidden).any():
            return decimals
    return None


def _temperature(victim: Victim, texts: list[TextValue]) -> float:
    if not texts:
        return 1.0
    logits = np.concatenate([logits_of(victim, part) for part in _batches(victim, texts)])
    best = np.sort(logits, axis=1)
    margin = float(np.median(best[:, -1] - best[:, -2]))
    if not np.isfinite(margin) or margin < 1e-9:
        return 1.0
    # A power of two: a few texts more or less give the same one, and a run can go on.
    return float(2.0 ** round(np.log2(margin / 2)))


# -- gradients -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Gradients:
    """What the model's gradients are worth, on some clean texts."""

    texts: int
    dead_loss: float  # share of texts on which every word's gradient of the loss is zero
    dead_logit: float  # the same for the gradient of the pre-softmax output, which cannot saturate
    agreement: float  # mean rank correlation between gradient length and what deleting the word changes
    agreement_low: float
    agreement_high: float

    def findings(self, *, useful: bool = False) -> list[str]:
        """`useful`: an attack in their order changes no more words than one without, so they point right."""
        if self.dead_logit > 0.1:
            return [f"its gradients are masked: zero on {self.dead_logit:.0%} of the texts"]
        if self.dead_loss > 0.1:
            return [
                f"the gradient of its loss is zero on {self.dead_loss:.0%} of the texts, because the scores "
                "are saturated"
            ]
        if self.agreement_high < 0.05 and not useful:
            return [
                "its gradients look masked: they do not say which words matter (rank agreement "
                f"{self.agreement:.2f}, {self.agreement_low:.2f} to {self.agreement_high:.2f})"
            ]
        return []

    def to_dict(self) -> dict[str, Any]:
        return {name: None if value != value else value for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Gradients:
        known: dict[str, Any] = {name: np.nan if value is None else value for name, value in content.items()}
        return cls(**known)


def look_at_gradients(victim: Victim, texts: Sequence[TextValue]) -> Gradients | None:
    """None where the victim shows no gradients."""
    if "gradients" not in victim.capabilities or not is_white_box(victim):
        return None
    readable = [text for value in texts if len((text := _text(value)).words) >= _LEAST_WORDS]
    chosen = readable[:_GRADIENT_TEXTS]
    if not chosen:
        return None
    loss = victim.gradients(chosen, None, of="loss")
    logit = victim.gradients(chosen, None, of="logit")
    found = [
        rho
        for text, slope in zip(chosen, logit, strict=True)
        if (rho := _agreement(victim, text, slope.norms)) is not None
    ]
    low, high = mean_interval(found if len(found) >= _LEAST_TEXTS else [], within=(-1.0, 1.0))
    return Gradients(
        texts=len(chosen),
        dead_loss=float(np.mean([slope.norms.max(initial=0.0) < _DEAD for slope in loss])),
        dead_logit=float(np.mean([slope.norms.max(initial=0.0) < _DEAD for slope in logit])),
        agreement=float(np.mean(found)) if found else float("nan"),
        agreement_low=low,
        agreement_high=high,
    )


def _agreement(victim: Victim, text: Text, norms: NDArray[np.float64]) -> float | None:
    """Spearman's rank correlation between the words' gradients and the effect of deleting them."""
    values = [text.value, *(text.delete(i).value for i in range(len(text.words)))]
    logits = np.concatenate([logits_of(victim, part) for part in _batches(victim, values)])
    own = int(logits[0].argmax())
    others = np.delete(logits, own, axis=1).max(axis=1)
    margins = logits[:, own] - others
    return spearman(norms, margins[0] - margins[1:])


def spearman(first: NDArray[Any], second: NDArray[Any]) -> float | None:
    """Rank correlation; equal values share their mean rank. None where one side does not vary."""
    first_ranks, second_ranks = _ranks(first), _ranks(second)
    if first_ranks.std() == 0.0 or second_ranks.std() == 0.0:
        return None
    return float(np.corrcoef(first_ranks, second_ranks)[0, 1])


def _ranks(values: NDArray[Any]) -> NDArray[np.float64]:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts - 1) / 2.0)[inverse], dtype=np.float64)


# -- asking ----------------------------------------------------------------------------------------------


def _batches(victim: Victim, texts: Sequence[TextValue]) -> list[list[TextValue]]:
    size = max(1, victim.batch_size)
    return [list(texts[start : start + size]) for start in range(0, len(texts), size)]


def _ask(victim: Victim, texts: Sequence[TextValue]) -> Probabilities:
    parts = [np.zeros((0, len(victim.labels))), *map(victim.predict, _batches(victim, texts))]
    return np.concatenate(parts)


def _gap(found: Probabilities, expected: Probabilities) -> float:
    return float(np.abs(found - expected).max(initial=0.0))


def _text(value: TextValue) -> Text:
    return Text(value if isinstance(value, str) else {str(i): part for i, part in enumerate(value)})


def _half(value: TextValue) -> TextValue:
    """Every other word of the last field: a text that most models are less sure of."""
    last = value if isinstance(value, str) else value[-1]
    words = " ".join(last.split()[::2])
    return words if isinstance(value, str) else (*value[:-1], words)
