"""How often honest defences are called an illusion, and planted ones are not, by simulation.

    python bench/illusion_rates.py [TRIALS]

An honest defence has a real gain over a base that hardly stands. Every check is one more attack and breaks
each survivor of any model with the same chance; the base has next to nothing to lose. `saturated` ones look
as if they hid something besides. A planted one falls to the checks that get around what it hides.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from unfooled.checks.illusions.attacking import EvaluatedModel
from unfooled.checks.illusions.checks import hidden_way, note
from unfooled.checks.illusions.diagnosis import Looks
from unfooled.checks.illusions.survivors import AGAIN, Survival
from unfooled.checks.illusions.verdict import Rival, judge
from unfooled.data.dataset import Dataset
from unfooled.victims.fake import FakeVictim

N = 200
PLAIN = Looks(chance="none", spread=0.0, saturated=0.0, decimals=None, temperature=1.0, texts=64)
SATURATED = replace(PLAIN, saturated=1.0)
CHECKS = ("temperature ×1", "temperature ×4", "temperature ×0.25", "transfer", "guided")


@dataclass(frozen=True)
class World:
    base: float  # accuracy under attack
    defence: float
    broken: float  # by each check, of what still stands
    saturated: bool = False
    planted: bool = False  # checks around the scores break nearly all, the attack tried again does not

    def __str__(self) -> str:
        kind = "planted" if self.planted else "honest, saturated" if self.saturated else "honest"
        return f"{kind}: base {self.base:.0%}, under attack {self.defence:.0%}, broken {self.broken:.0%}"


def worlds() -> Iterator[World]:
    for base in (0.0, 0.02, 0.05, 0.1):
        for defence in (0.25, 0.4, 0.6):
            for broken in (0.1, 0.25, 0.4):
                yield World(base, defence, broken)
                yield World(base, defence, broken, saturated=True)
            yield World(base, defence, 0.05, saturated=True, planted=True)


def status(world: World, rng: np.random.Generator) -> str:
    """The verdict on one simulated evaluation."""
    models = []
    for right, defended in ((world.base, False), (world.defence, True)):
        looks = SATURATED if world.saturated and defended else PLAIN
        model = EvaluatedModel("", FakeVictim(), Dataset.from_pairs([("a", "b")]), Path(), looks)
        model.survival = Survival({key: bool(rng.random() < right) for key in range(N)})
        for name in (AGAIN, *CHECKS) if looks.hiding else CHECKS:
            chance = 0.9 if world.planted and defended and name != AGAIN else world.broken
            found = {key: bool(rng.random() >= chance) for key in model.survival.survivors()}
            cause = "" if name == AGAIN else looks.hiding
            if found:
                cause = hidden_way(model, dict(found)) if name in ("transfer", "guided") else cause
                note(model, name, name, dict(found), cause=cause)
        models.append(model)
    base, own = models
    rival = Rival("base", base.survival, {}, {})
    return judge(
        "own",
        own.survival,
        clean={},
        premade={},
        checks=own.checks,
        findings=[],
        base=rival,
        control=None,
    ).status


def called_illusions(world: World, trials: int, seed: int = 0) -> float:
    """Share of simulated evaluations that end as an illusion."""
    rng = np.random.default_rng(seed)
    return sum(status(world, rng) == "illusion" for _ in range(trials)) / trials


def main() -> None:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    rates = {world: called_illusions(world, trials) for world in worlds()}
    for world, rate in rates.items():
        print(f"{rate:6.1%}  {world}")
    honest = max(rate for world, rate in rates.items() if not world.planted)
    missed = max(1 - rate for world, rate in rates.items() if world.planted)
    print(f"honest called an illusion: {honest:.1%} at most; planted not exposed: {missed:.1%} at most")


if __name__ == "__main__":
    main()
