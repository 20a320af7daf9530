"""Trainings that harden: each is a `Course`, so the plain trainer runs it, logs it and goes on with it.

FACT (Mein, Hartman, Morris 2020, section 2.1.6)
    1. A frozen, tuned classifier tells SWITCH which words matter.
    2. SWITCH makes a few alternatives of each training text.
    3. They join the batch of their text, with its label and a weight.
    4. All weights of the model are trained, its head included.
    Differences from the authors' code: there the head never reached the optimiser, so it was not trained.

Adversarial training in the way of A2T (Yoo, Qi: *Towards Improving Adversarial Training of NLP Models*, 2021)
    1. Before each epoch a share of the training texts is attacked, on the model as it is then.
    2. Texts that fooled it join the batch of their original, with the right label.
    Differences from the article: any attack may be named, and the share counts attacked texts, not successes.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unfooled.core.attempt import attempt
from unfooled.core.engine import Engine
from unfooled.core.recipe import Recipe
from unfooled.core.result import Result
from unfooled.core.writing import TextGoal
from unfooled.defenses.ledger import Ledger
from unfooled.defenses.switch import Plan, as_text, with_string
from unfooled.defenses.switching import Switcher, open_oracles, require_resources
from unfooled.errors import CapabilityError
from unfooled.training.course import Course, Extra
from unfooled.training.families import Family, Value
from unfooled.training.preparation import Prepared, Rows
from unfooled.training.watching import TrainObserver
from unfooled.trust import granted
from unfooled.victims.base import TextValue
from unfooled.victims.huggingface import HuggingFaceVictim, longest_input


class Continue(Course):
    """Goes on from a model that is trained already; on its own this is the retuned control."""

    def __init__(self, folder: Path, *, start: str = "model") -> None:
        self.folder = folder
        self.start = start

    def make(
        self, family: Family, options: Mapping[str, Value], data: Prepared, observer: TrainObserver
    ) -> tuple[Any, Any]:
        if self.start == "body":
            return super().make(family, options, data, observer)
        import transformers

        from unfooled.victims import models

        models.register()
        trusted = granted().remote_code  # the folder was looked at when the model was loaded as a victim
        model = transformers.AutoModelForSequenceClassification.from_pretrained(
            self.folder, local_files_only=True, use_safetensors=True, trust_remote_code=trusted
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            self.folder, local_files_only=True, trust_remote_code=trusted
        )
        tokenizer.model_max_length = min(int(options["max_length"]), longest_input(model.config, tokenizer))
        return model.float(), tokenizer


class Fact(Continue):
    """SWITCH alternatives in the batch: made once, or drawn anew for each epoch with `fresh`."""

    def __init__(
        self,
        folder: Path,
        switcher: Switcher,
        rows: Rows,
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


class AttackInLoop(Continue):
    """Texts that fool the model of the moment join the batch of their original."""

    copies = 1

    def __init__(
        self,
        folder: Path,
        recipe: Recipe,
        rows: Rows,
        *,
        labels: Sequence[str],
        scratch: Path,
        observer: TrainObserver,
        start: str = "model",
        share: float = 0.2,
        budget: int = 0,
        weight: float = 1.0,
        field: int = -1,
        seed: int = 0,
    ) -> None:
        super().__init__(folder, start=start)
        require_resources(recipe.oracles(), recipe.full_name)
        self.recipe = recipe
        self.rows = rows
        self.labels = tuple(labels)
        self.scratch = scratch
        self.observer = observer
        self.share = share
        self.budget = budget
        self.weight = weight
        self.field = field
        self.seed = seed

    def extras(self, epoch: int, model: Any, tokenizer: Any) -> Mapping[int, Sequence[Extra]]:
        size = max(1, round(self.share * len(self.rows)))
        chosen = np.random.default_rng([self.seed, epoch]).permutation(len(self.rows))[:size]
        with Ledger(self.scratch / f"attacked-{epoch}.jsonl") as ledger:
            left = [int(n) for n in chosen if int(n) not in ledger.rows]
            # A copy, because a victim's linear layers are changed a little, and training must not notice.
            victim = HuggingFaceVictim(
                copy.deepcopy(model).eval(),
                tokenizer,
                name="the model in training",
                max_length=int(tokenizer.model_max_length),
            )
            for result in self._attack(victim, left, epoch):
                fooled = result.outcome == "success"
                ledger.add(result.key, outcome=result.outcome, text=result.perturbed if fooled else "")
                self.observer.working(f"attacks before epoch {epoch + 1}", len(ledger.rows), size)
            found = {n: one["text"] for n, one in ledger.rows.items() if one["outcome"] == "success"}
            errors = sum(one["outcome"] == "error" for one in ledger.rows.values())
        message = f"before epoch {epoch + 1}: {len(found)} of {size} attacked texts fooled the model"
        self.observer.note(message + (f", {errors} ended in an error" if errors else ""))
        texts = {n: as_text(self.rows.texts[n], self.field) for n in found}
        return {n: [Extra(with_string(texts[n], found[n]), self.weight)] for n in sorted(found)}

    def _attack(self, victim: HuggingFaceVictim, numbers: Sequence[int], epoch: int) -> Any:
        if not numbers:
            return
        goal = self.recipe.goal
        missing = [need for need in self.recipe.needs if need not in victim.capabilities]
        if missing or isinstance(goal, TextGoal):
            raise CapabilityError(
                f"{self.recipe.full_name} needs {' and '.join(missing) or 'translations'}, "
                "which this model does not give",
                "choose another attack",
            )
        engine: Engine[Result] = Engine(open_oracles(self.recipe.oracles(), victim, victim=True))
        jobs = (
            (
                n,
                attempt(
                    as_text(self.rows.texts[n], self.field),
                    int(self.rows.labels[n]),
                    goal,
                    self.recipe.search,
                    key=n,
                    seed=self.seed + epoch,
                    budget=self.budget or None,
                    max_words=5000,
                ),
            )
            for n in numbers
        )
        for finished in engine.run(jobs):
            assert finished.value is not None, finished.error
            yield finished.value


def alternatives_of_rows(
    switcher: Switcher,
    values: Sequence[TextValue],
    scratch: Path,
    observer: TrainObserver,
    *,
    field: int = -1,
    seed: int = 0,
    draw: int = 0,
) -> dict[int, list[TextValue]]:
    """SWITCH over training rows, written down as it goes. Later draws use the plans of the first one."""
    texts = [as_text(value, field) for value in values]
    plans: list[Plan | None] = [None] * len(texts)
    if draw:
        with Ledger(scratch / "alternatives-0.jsonl") as first:
            for n, line in first.rows.items():
                plans[n] = Plan(tuple(line["positions"]), tuple(map(tuple, line["options"])))
    with Ledger(scratch / f"alternatives-{draw}.jsonl") as ledger:
        left = [n for n in range(len(texts)) if n not in ledger.rows]
        drawn = switcher.each(
            [texts[n] for n in left], seed=seed + 1_000_003 * draw, plans=[plans[n] for n in left]
        )
        for one in drawn:
            positions, options = one.plan
            ledger.add(
                left[one.number],
                positions=positions,
                options=options,
                strings=one.strings(texts[left[one.number]]),
                problem=one.problem,
            )
            observer.working("SWITCH", len(ledger.rows), len(texts))
        problems = [line["problem"] for line in ledger.rows.values() if line["problem"]]
        if problems:
            observer.note(f"{len(problems)} texts got no alternatives because of an error: {problems[0]}")
        return {
            n: [with_string(texts[n], string) for string in ledger.rows[n]["strings"]]
            for n in sorted(ledger.rows)
        }
