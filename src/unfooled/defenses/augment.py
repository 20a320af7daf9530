"""Augmentation: SWITCH alternatives, or the samples of a finished attack, become training rows.

Samples as in Jin et al. 2020, section 5: texts that fooled the model, with their right labels.
"""

from __future__ import annotations

from dataclasses import replace

from unfooled.defenses.methods import Hardening, Method
from unfooled.defenses.retune import METHOD as RETUNE
from unfooled.defenses.settings import build
from unfooled.defenses.switch import Switch
from unfooled.defenses.switching import SETTINGS, Switcher, alternatives_of_rows
from unfooled.training.preparation import Prepared, joined


def _add_rows(given: Hardening) -> Prepared:
    """The rows and, behind them, their SWITCH alternatives."""
    rows = given.rows
    made = alternatives_of_rows(
        Switcher(build(Switch, given.settings), given.model),
        rows.train.texts,
        given.scratch,
        given.observer,
        field=given.settings["field"],
        seed=given.seed,
    )
    more = [(text, int(rows.train.labels[n])) for n, texts in made.items() for text in texts]
    return replace(rows, train=joined(rows.train, more))


METHOD = Method(
    name="augment",
    summary="SWITCH alternatives, or samples of a finished attack, are added to the training rows",
    paper="data augmentation; samples as in Jin et al. 2020, section 5",
    defaults=SETTINGS | {"field": -1},
    course=RETUNE.course,
    add_rows=_add_rows,
    takes_samples=True,
)
