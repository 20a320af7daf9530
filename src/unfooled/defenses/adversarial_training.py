"""Adversarial training: each epoch attacks the model as it is then, and trains on the texts that fooled it.

Yoo, Qi: *Towards Improving Adversarial Training of NLP Models*, EMNLP Findings 2021 (A2T), arXiv:2109.00544.

    1. Before each epoch a share of the training texts is attacked, on the model as it is then.
    2. Texts that fooled it join the batch of their original, with the right label.

Differences from the article: any attack may be named, and the share counts attacked texts, not successes.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from unfooled.core.recipe import load_recipe
from unfooled.core.result import Example, Result
from unfooled.core.session import Session, Settings, require_capabilities, require_resources
from unfooled.defenses.methods import Hardening, Method
from unfooled.defenses.retune import WithExtras
from unfooled.defenses.row_log import RowLog
from unfooled.defenses.switch import as_text, with_string
from unfooled.defenses.switching import nothing_added
from unfooled.errors import UserError
from unfooled.training.course import Extra
from unfooled.victims.torch.huggingface import HuggingFaceVictim


class AttackInLoop(WithExtras):
    """Texts that fool the model of the moment join the batch of their original."""

    copies = 1

    def __init__(self, given: Hardening) -> None:
        super().__init__(given)
        self.share: float = given.settings["share"]
        if not 0 < self.share <= 1:
            raise UserError(f"share={self.share} makes no sense", "share is above 0 and at most 1")
        self.budget: int = given.settings["budget"]
        self.recipe = load_recipe(given.settings["attack"])
        require_resources(self.recipe)

    def extras(self, epoch: int, model: Any, tokenizer: Any) -> Mapping[int, Sequence[Extra]]:
        size = max(1, round(self.share * len(self.rows)))
        chosen = np.random.default_rng([self.seed, epoch]).permutation(len(self.rows))[:size]
        with RowLog(self.scratch / f"attacked-{epoch}.jsonl") as ledger:
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
                text = result.perturbed if fooled else ""
                ledger.add(result.key, outcome=result.outcome, text=text, note=result.note)
                self.observer.working(f"attacks before epoch {epoch + 1}", len(ledger.rows), size)
            found = {n: line["text"] for n, line in ledger.rows.items() if line["outcome"] == "success"}
            errors = [line["note"] for line in ledger.rows.values() if line["outcome"] == "error"]
        if not found and (epoch == 0 or len(errors) == size):
            raise nothing_added(
                f"{self.recipe.full_name} fooled the model with none of {size} training texts",
                f"; {len(errors)} ended in an error: {errors[0]}" if errors else "",
            )
        message = f"before epoch {epoch + 1}: {len(found)} of {size} attacked texts fooled the model"
        self.observer.note(message + (f", {len(errors)} ended in an error" if errors else ""))
        texts = {n: as_text(self.rows.texts[n], self.field) for n in found}
        return {n: [Extra(with_string(texts[n], found[n]), self.weight)] for n in sorted(found)}

    def _attack(self, victim: HuggingFaceVictim, numbers: Sequence[int], epoch: int) -> Iterator[Result]:
        if not numbers:
            return
        require_capabilities(self.recipe, victim)
        settings = Settings(seed=self.seed + epoch, budget=self.budget or None)
        texts = {n: as_text(self.rows.texts[n], self.field) for n in numbers}
        examples = (
            Example(n, text.fields, int(self.rows.labels[n]), text.fields[text.field][0])
            for n, text in texts.items()
        )
        yield from Session(victim, self.recipe, settings).attack(examples)


METHOD = Method(
    name="adversarial-training",
    summary="each epoch attacks the model as it is then, and trains on the texts that fooled it",
    paper="Yoo, Qi 2021 (A2T)",
    defaults={"attack": "textfooler", "share": 0.2, "budget": 200, "weight": 1.0, "field": -1},
    course=AttackInLoop,
)
