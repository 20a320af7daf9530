"""Translation models in a plan, where this installation can train and attack them.

The self-attention paper also attacks an LSTM and a Transformer that translate. Their stages join a plan as
soon as the attacks are registered; until then the claims say what they need.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from unfooled.papers.stages import AttackStage, Model, Rows, Stage, TrainStage
from unfooled.plugins import registry
from unfooled.training.observer import TrainObserver

FAMILIES = ("seq2seq-",)
VICTIMS = {"lstm": "seq2seq-lstm", "transformer": "seq2seq-transformer"}
ATTACKS = {"keyword": "targeted-keyword@strict", "typos": "typo@paper"}


def available() -> bool:
    known = registry.names("attack")
    return all(name.partition("@")[0] in known for name in ATTACKS.values())


def stages(train_on: Rows, test: Rows, n: dict[str, int]) -> list[Stage]:
    """Both models and both attacks: `translation-VICTIM`, `translation-VICTIM-ATTACK`."""
    if not available():
        return []
    made: list[Stage] = [
        TrainStage(name=f"translation-{victim}", family=family, data=train_on)
        for victim, family in VICTIMS.items()
    ]
    made += [
        AttackStage(
            name=f"translation-{victim}-{attack}",
            model=Model(stage=f"translation-{victim}"),
            data=test,
            attack=recipe,
            limit=n[attack],
        )
        for victim in VICTIMS
        for attack, recipe in ATTACKS.items()
    ]
    return made


def load(rows: Rows, source: str) -> Any:
    """Sentences and their translations."""
    return registry.load("loader", "translation")(
        source, columns=rows.parallel, split=rows.split, limit=rows.limit, sample=rows.sample, seed=rows.seed
    )


def train(stage: TrainStage, data: Callable[[Rows], Any], out: Path, observer: TrainObserver) -> None:
    """The split `val` decides which epoch is kept."""
    registry.load("trainer", "translation")(
        stage.family,
        data(stage.data),
        out,
        valid=data(replace(stage.data, split="val")),
        options=dict(stage.options),
        resume=True,
        observer=observer,
    )
