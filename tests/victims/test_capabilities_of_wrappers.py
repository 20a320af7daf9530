"""What a wrapper hands on from the victim inside it is found on every version of Python.

From Python 3.12 on, `isinstance` with a protocol uses `inspect.getattr_static`, which does not see what
`__getattr__` gives; these tests hold the look-up to what is really there.
"""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from unfooled.checks.illusions.wrappers import Wrapped
from unfooled.core.victim_oracle import AsyncVictimOracle, is_async, oracle_for
from unfooled.victims.fake import FakeVictim
from unfooled.victims.impostors import Masked
from unfooled.victims.randomness import is_redrawable
from unfooled.victims.thresholds import Thresholded
from unfooled.victims.torch.whitebox import is_white_box


class Open(FakeVictim):
    """A fake with an inside, a draw and an answer over a network; what they say is not asked here."""

    concurrency = 1
    capabilities = frozenset({"probabilities", "gradients"})

    def pieces(self, *given: Any, **more: Any) -> Any:
        raise NotImplementedError

    gradients = jacobian = attention = attention_maps = embeddings = sentence_vectors = pieces

    def redrawn(self, draw: int, /) -> Open:
        return self

    async def answer(self, items: Any, /) -> Any:
        return self.predict(items)


@pytest.mark.parametrize(
    "wrap",
    [Wrapped, lambda inner: Thresholded(inner, {"positive": 0.8}), Masked],
    ids=["wrapped", "thresholded", "masked"],
)
def test_the_inside_of_a_wrapped_victim_is_found(wrap: Any) -> None:
    victim = wrap(Open())
    unseen = object()
    assert inspect.getattr_static(victim, "pieces", unseen) is unseen  # else this test could not fail
    assert is_white_box(victim)


def test_draws_and_answers_over_a_network_are_found_through_thresholds() -> None:
    victim: Any = Thresholded(Open(), {"positive": 0.8})
    assert is_redrawable(victim)
    assert isinstance(oracle_for(victim), AsyncVictimOracle)
    assert not is_async(Thresholded(FakeVictim(), {"positive": 0.8}))
    assert not is_white_box(Thresholded(FakeVictim(), {"positive": 0.8}))
