"""From the answers to several copies of a text to one answer."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from unfooled.core.victim import Probabilities, softmax
from unfooled.core.victim_oracle import DECIMALS
from unfooled.errors import UserError
from unfooled.victims.randomness import log

Vote = Literal["majority", "mean-logits", "mean-probs"]
VOTES: tuple[str, ...] = get_args(Vote)

_TIE = 1e-3  # of a vote goes to the mean probabilities, so that equal counts are decided by them


def require_vote(vote: str) -> None:
    if vote not in VOTES:
        raise UserError(f"vote={vote} is not known", f"use {', '.join(VOTES)}")


def require_seed(seed: int) -> None:
    if seed < 0:
        raise UserError(f"seed={seed} makes no sense", "seed is at least 0")


def combine(copies: Probabilities, vote: Vote) -> Probabilities:
    """Probabilities of one text from those of its copies, [..., copies, classes] to [..., classes].

    `majority`: the share of copies that decide for each class. `mean-probs`: the mean. `mean-logits`: the
    softmax of the mean logits; logarithms of probabilities are logits up to a constant per copy, which the
    softmax does not see, so no victim has to show its own.
    """
    if vote == "mean-probs":
        return np.asarray(copies.mean(axis=-2))
    if vote == "mean-logits":
        return softmax(log(copies).mean(axis=-2))
    classes, count = copies.shape[-1], copies.shape[-2]
    decided = np.round(copies, DECIMALS).argmax(axis=-1)
    votes = (decided[..., None] == np.arange(classes)).sum(axis=-2)
    return np.asarray((votes + _TIE * copies.mean(axis=-2)) / (count + _TIE))
