"""FACT: SWITCH alternatives of each training text join its batch.

Mein, Hartman, Morris: *FireBERT*, 2020, section 2.1.6.

    1. A frozen, tuned classifier tells SWITCH which words matter.
    2. SWITCH makes a few alternatives of each training text.
    3. They join the batch of their text, with its label and a weight.
    4. All weights of the model are trained, its head included.

Differences from the authors' code: there the head never reached the optimiser, so it was not trained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unfooled.defenses.methods import Hardening, Method
from unfooled.defenses.retune import WithExtras
from unfooled.defenses.settings import build
from unfooled.defenses.switch import Switch
from unfooled.defenses.switching import RANGES, SETTINGS, Switcher, alternatives_of_rows
from unfooled.errors import UserError
from unfooled.training.course import Extra
from unfooled.training.families import Range


class Fact(WithExtras):
    """SWITCH alternatives in the batch: made once, or drawn anew for each epoch with `fresh`."""

    def __init__(self, given: Hardening) -> None:
        super().__init__(given)
        if not 0 < self.weight <= 100:
            raise UserError(f"weight={self.weight} makes no sense", "weight is above 0")
        self.switcher = Switcher(build(Switch, given.settings), given.model)
        self.copies = self.switcher.switch.alternatives
        self.fresh: bool = given.settings["fresh"]

    def extras(self, epoch: int, model: Any, tokenizer: Any) -> Mapping[int, Sequence[Extra]]:
        made = alternatives_of_rows(
            self.switcher,
            self.rows.texts,
            self.scratch,
            self.observer,
            field=self.field,
            seed=self.seed,
            draw=epoch if self.fresh else 0,
        )
        return {n: [Extra(text, self.weight) for text in texts] for n, texts in made.items()}


METHOD = Method(
    name="fact",
    summary="SWITCH alternatives of each text join its batch, with the same label",
    paper="Mein, Hartman, Morris 2020 (FireBERT)",
    defaults=SETTINGS | {"weight": 1.0, "fresh": False, "field": -1},
    ranges=RANGES | {"alternatives": Range(1, 4), "weight": Range(0.25, 1.0)},
    course=Fact,
)
