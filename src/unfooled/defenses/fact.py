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
from pathlib import Path
from typing import Any

from unfooled.defenses.methods import Hardening, Method
from unfooled.defenses.retune import Continue
from unfooled.defenses.settings import build
from unfooled.defenses.switch import Switch
from unfooled.defenses.switching import RANGES, SETTINGS, Switcher, alternatives_of_rows
from unfooled.errors import UserError
from unfooled.training.course import Extra
from unfooled.training.families import Range
from unfooled.training.observer import TrainObserver
from unfooled.training.preparation import LabelledTexts


class Fact(Continue):
    """SWITCH alternatives in the batch: made once, or drawn anew for each epoch with `fresh`."""

    def __init__(
        self,
        folder: Path,
        switcher: Switcher,
        rows: LabelledTexts,
        *,
        scratch: Path,
        observer: TrainObserver,
        start: str = "model",
        weight: float = 1.0,
        fresh: bool = False,
        field: int = -1,
        seed: int = 0,
    ) -> None:
        super().__init__(folder, start=start)
        self.copies = switcher.switch.alternatives
        self.switcher = switcher
        self.rows = rows
        self.scratch = scratch
        self.observer = observer
        self.weight = weight
        self.fresh = fresh
        self.field = field
        self.seed = seed

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


def _course(given: Hardening) -> Fact:
    settings = given.settings
    if not 0 < settings["weight"] <= 100:
        raise UserError(f"weight={settings['weight']} makes no sense", "weight is above 0")
    return Fact(
        given.folder,
        Switcher(build(Switch, settings), given.model),
        given.rows.train,
        scratch=given.scratch,
        observer=given.observer,
        start=given.start,
        weight=settings["weight"],
        fresh=settings["fresh"],
        field=settings["field"],
        seed=given.seed,
    )


METHOD = Method(
    name="fact",
    summary="SWITCH alternatives of each text join its batch, with the same label",
    paper="Mein, Hartman, Morris 2020 (FireBERT)",
    defaults=SETTINGS | {"weight": 1.0, "fresh": False, "field": -1},
    ranges=RANGES | {"alternatives": Range(1, 4), "weight": Range(0.25, 1.0)},
    course=_course,
)
