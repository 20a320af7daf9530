"""`check_victim`: what every victim must do. Ours pass it, and a plug-in's tests can call it."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

import numpy as np

from unfooled.core.victim import CAPABILITIES, TextValue, Victim
from unfooled.core.victim_oracle import DECIMALS, validate
from unfooled.victims.torch.whitebox import WhiteBoxVictim, is_white_box

TOLERANCE = 10.0**-DECIMALS


def check_victim(victim: Victim, texts: Sequence[TextValue]) -> None:
    """Raise AssertionError where `victim` breaks the protocol. Give a few texts that it can read."""
    if len(texts) < 3:
        raise ValueError("give at least three texts")
    texts = list(texts)
    _check_description(victim)
    classes = len(victim.labels)
    scores = victim.predict(texts)
    _require(isinstance(scores, np.ndarray), "predict must return a NumPy array")
    _require(scores.dtype == np.float64, f"predict must return float64, not {scores.dtype}")
    validate(scores, len(texts), victim.labels, victim.name)

    empty = victim.predict([])
    _require(empty.shape == (0, classes), f"no texts must give shape (0, {classes}), not {empty.shape}")
    _same(victim.predict(texts), scores, "asked twice, the victim changes its answers")
    _same(victim.predict(texts[::-1])[::-1], scores, "the answers depend on the order of the texts")
    alone = np.concatenate([victim.predict([text]) for text in texts])
    _same(alone, scores, "the answers depend on the other texts of the batch")
    repeated = victim.predict(texts + texts)
    _same(repeated[len(texts) :], scores, "the answers depend on the size of the batch")
    if "probabilities" not in victim.capabilities:
        _require(bool(np.isin(scores, (0.0, 1.0)).all()), "labels only must come as ones and zeros")

    print_before = victim.fingerprint()
    victim.predict(texts[:1])
    _require(victim.fingerprint() == print_before, "the fingerprint changes with use")
    _check_transport(victim)
    check_whitebox(victim, texts)


def check_whitebox(victim: Victim, texts: Sequence[TextValue]) -> None:
    """The same for gradients, attention and embeddings, as far as the victim claims them."""
    inside = [name for name in CAPABILITIES[1:] if name in victim.capabilities]
    if not inside:
        return
    if not is_white_box(victim):
        raise AssertionError(f"{', '.join(inside)} claimed, but a method of WhiteBoxVictim is missing")
    pieces = victim.pieces(texts)
    for name in inside:
        together = _inside(victim, name, texts)
        alone = [_inside(victim, name, [text])[0] for text in texts]
        for answer, single, counts in zip(together, alone, pieces, strict=True):
            _require(answer.shape[-2] == len(counts), f"{name} must have a row per word")
            _require(bool(np.isfinite(answer).all()), f"{name} contain NaN or infinite numbers")
            _require(not answer[..., counts == 0, :].any(), f"{name} of a word that is not read must be zero")
            scale = max(1.0, float(np.abs(single).max(initial=0.0)))
            _same(answer / scale, single / scale, f"{name} depend on the other texts of the batch")


def _inside(victim: WhiteBoxVictim, name: str, texts: Sequence[TextValue]) -> list[np.ndarray]:
    """One array [..., words, numbers] per text."""
    if name == "gradients":
        return list(victim.jacobian(texts))
    if name == "attention":
        return [answer[:, None] for answer in victim.attention(texts)]
    return [answer.layers[-1] for answer in victim.embeddings(texts)]


def _check_description(victim: Victim) -> None:
    _require(isinstance(victim, Victim), "something of the Victim protocol is missing")
    _require(bool(victim.name), "the name is empty")
    labels = victim.labels
    _require(isinstance(labels, tuple) and len(labels) >= 2, "labels must be a tuple of at least two names")
    _require(len(set(labels)) == len(labels), "a label occurs twice")
    strange = set(victim.capabilities) - set(CAPABILITIES)
    _require(not strange, f"unknown capabilities: {', '.join(sorted(strange))}")
    _require(victim.batch_size >= 1, "batch_size must be at least 1")


def _check_transport(victim: Victim) -> None:
    """A worker process must get the victim: by its spec, or pickled."""
    if getattr(victim, "spec", ""):
        return
    try:
        pickle.dumps(victim)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise AssertionError(f"the victim has no spec and cannot be pickled: {error}") from None


def _same(found: np.ndarray, expected: np.ndarray, complaint: str) -> None:
    gap = float(np.abs(found - expected).max(initial=0.0)) if found.shape == expected.shape else float("inf")
    _require(gap <= TOLERANCE, f"{complaint} (by {gap:.1g})")


def _require(condition: bool, complaint: str) -> None:
    if not condition:
        raise AssertionError(complaint)
