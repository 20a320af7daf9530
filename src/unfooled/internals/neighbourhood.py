"""What a model says about the words around the one that tipped it (FireBERT, figures 5 to 7).

Of an adversarial text the last edit is looked at: with the original word in its place the text was still
right, with the new one it is wrong. Two questions, for the attacked model and for others, such as a hardened
copy:

    neighbours  the nearest words of the original and of the adversarial one, each put in that place
    field       vectors drawn around the embedding of either word, in two dimensions (t-SNE)

The paper's field has a standard deviation of 0.25 on BERT's embeddings, whose mean length is about 1.4. Here
it is that share of the mean length of the model's own embeddings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from unfooled.core.questions import mark
from unfooled.core.result import Result
from unfooled.core.victim import TextValue, Victim
from unfooled.extras import libraries_of
from unfooled.text import Edit
from unfooled.victims.torch.noise import NoisyText, TorchNoise

Side = Literal["original", "adversarial"]

NEAREST = 12  # words around either of the two
DRAWS = 80  # vectors around either of the two
SPREAD = 0.25 / 1.4

Find = Callable[[str], Sequence[str]]  # a word → its nearest words


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A word in the place of the edit; per model the decided class and p(true class)."""

    word: str
    near: Side
    rank: int  # 0 is the word itself
    decided: tuple[int, ...]
    p_true: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    key: int
    label: int
    labels: tuple[str, ...]
    models: tuple[str, ...]
    neighbours: tuple[Neighbour, ...]

    def wrong(self, model: int, near: Side) -> tuple[int, int]:
        """How many of the neighbours, the word itself left out, get another class than the true one."""
        around = [neighbour for neighbour in self.neighbours if neighbour.near == near and neighbour.rank]
        return sum(neighbour.decided[model] != self.label for neighbour in around), len(around)


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """Vectors around the two words in two dimensions, and what one model makes of each."""

    key: int
    label: int
    labels: tuple[str, ...]
    model: str
    sigma: float
    words: tuple[str, str]  # original, adversarial
    near: NDArray[np.int64]  # 0 original, 1 adversarial
    decided: NDArray[np.int64]
    points: NDArray[np.float64]  # the first two are the words themselves


def tipping_edit(result: Result) -> Edit | None:
    """The last replacement of a success that replaced words only; None for others."""
    if result.outcome != "success" or any(edit.kind != "replace" for edit in result.edits):
        return None
    return max(result.edits, key=lambda edit: (edit.step, edit.position), default=None)


def neighbourhood(result: Result, find: Find, models: Mapping[str, Victim]) -> Neighbourhood | None:
    """None where there is no single edit to look at."""
    edit = tipping_edit(result)
    if edit is None:
        return None
    places: list[tuple[str, Side, int]] = []
    sides: tuple[tuple[str, Side], ...] = ((edit.before, "original"), (edit.after, "adversarial"))
    for word, side in sides:
        around = [
            near for near in find(word.lower()) if near not in (edit.before.lower(), edit.after.lower())
        ]
        places += [(near, side, rank) for rank, near in enumerate([word, *around[:NEAREST]])]
    texts = [_put(result, edit, _cased(word, edit.before)) for word, _, _ in places]
    answers = [_probabilities(victim, texts) for victim in models.values()]
    first = next(iter(models.values()))
    return Neighbourhood(
        key=result.key,
        label=result.label,
        labels=tuple(first.labels),
        models=tuple(models),
        neighbours=tuple(
            Neighbour(
                word,
                side,
                rank,
                tuple(int(rows[at].argmax()) for rows in answers),
                tuple(round(float(rows[at][result.label]), 6) for rows in answers),
            )
            for at, (word, side, rank) in enumerate(places)
        ),
    )


def field(result: Result, model: str, victim: TorchNoise, *, seed: int = 0) -> Field | None:
    """None where there is no single edit to look at, or where the model does not read so far."""
    edit = tipping_edit(result)
    if edit is None:
        return None
    marked = [mark(_put(result, edit, word)) for word in (edit.before, edit.after)]
    states = victim.embeddings(marked)
    if any(edit.position >= len(state.words) or not state.pieces[edit.position] for state in states):
        return None
    sigma = SPREAD * victim.embedding_norm()
    seeds = [(seed, result.key, side) for side in range(2)]
    items = [
        NoisyText(text, (edit.position,), np.random.default_rng(drawing))
        for text, drawing in zip(marked, seeds, strict=True)
    ]
    logits = victim.noisy_logits(items, sigma=sigma, copies=DRAWS, plain=True)
    vectors = []
    for state, drawing in zip(states, seeds, strict=True):
        pieces, width = int(state.pieces[edit.position]), state.input.shape[1]
        drawn = np.random.default_rng(drawing).standard_normal((DRAWS, pieces, width), dtype=np.float32)
        own = state.input[edit.position]
        vectors.append(np.concatenate([own[None], own + sigma * drawn.mean(axis=1)]))
    # The words first, then the draws around each.
    order = np.argsort(np.tile(np.r_[0, np.ones(DRAWS)], 2), kind="stable")
    return Field(
        key=result.key,
        label=result.label,
        labels=tuple(victim.labels),
        model=model,
        sigma=round(sigma, 6),
        words=(edit.before, edit.after),
        near=np.repeat([0, 1], DRAWS + 1)[order],
        decided=logits.reshape(-1, logits.shape[-1]).argmax(axis=1)[order],
        points=_plane(np.concatenate(vectors)[order], seed),
    )


def _plane(vectors: NDArray[Any], seed: int) -> NDArray[np.float64]:
    with libraries_of("sklearn", "sklearn", needed_for="the field of embeddings"):
        from sklearn.manifold import TSNE
    shrink = TSNE(2, init="pca", perplexity=30.0, random_state=seed)
    points: NDArray[np.float64] = shrink.fit_transform(vectors).astype(np.float64)
    return points.round(4)


def _put(result: Result, edit: Edit, word: str) -> TextValue:
    """The adversarial text with another word in the place of the edit."""
    changed = result.perturbed[: edit.at] + word + result.perturbed[edit.at + len(edit.after) :]
    parts = tuple(
        changed if place == result.field else content for place, (_, content) in enumerate(result.fields)
    )
    return parts[0] if len(parts) == 1 else parts


def _cased(word: str, like: str) -> str:
    return word.capitalize() if like[:1].isupper() and word.islower() else word


def _probabilities(victim: Victim, texts: Sequence[TextValue]) -> NDArray[np.float64]:
    rows = [
        victim.predict(texts[start : start + victim.batch_size])
        for start in range(0, len(texts), victim.batch_size)
    ]
    return np.concatenate(rows).astype(np.float64)
