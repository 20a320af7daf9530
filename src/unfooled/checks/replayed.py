"""Several models shown the same pre-made samples: how often each is right before and after the edits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unfooled.checks.illusions.attacking import EvaluationObserver, read_results
from unfooled.checks.illusions.diagnosis import look
from unfooled.checks.illusions.wrappers import Votes
from unfooled.checks.replay import Sample, replay
from unfooled.core.result import decided
from unfooled.core.victim import Victim
from unfooled.metrics.summary import Rate
from unfooled.runs.workers.where import Workers


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """One model's accuracy on the originals and on the samples."""

    name: str
    before: Rate
    after: Rate
    errors: int  # in no rate
    random: bool  # decides with the help of chance: most of several draws count
    run: Path

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "errors": self.errors,
            "random": self.random,
            "run": str(self.run),
        }


def replay_on_models(
    samples: Sequence[Sample],
    models: Mapping[str, Victim],
    *,
    out: Path,
    draws: int,
    name: str,
    label_map: Mapping[str, str] | None,
    watcher: EvaluationObserver,
    restart: bool,
    workers: int | Workers,
) -> list[Replayed]:
    """Show `samples` to each model; its run is in the folder of its name."""
    keys = {sample.key for sample in samples}
    found = []
    for model, victim in models.items():
        with watcher.wait(f"{model}: a look at the model"):
            looks = look(victim, [sample.value(edited=True) for sample in samples[:32]])
        asked: Victim = Votes(victim, draws=draws) if looks.random else victim
        with watcher.stage(f"{model}: {len(samples)} samples") as observer:
            run = replay(
                samples,
                asked,
                out=out / model,
                label_map=label_map,
                name=name,
                observer=observer,
                restart=restart,
                workers=1 if looks.random else workers,  # draws follow one after the other
            )
        results = [result for result in read_results(run.path) if result.key in keys]
        judged = [result for result in results if result.outcome != "error"]
        before = sum(decided(result.probs) == result.label for result in judged)
        after = sum(decided(result.perturbed_probs) == result.label for result in judged)
        found.append(
            Replayed(
                name=model,
                before=Rate.of(before, len(judged)),
                after=Rate.of(after, len(judged)),
                errors=len(samples) - len(judged),
                random=looks.random,
                run=run.path,
            )
        )
    return found
