"""Retuning: more epochs on the plain data, the control for every other method.

Mein, Hartman, Morris: *FireBERT*, 2020, section 3.5. What a defence gains beyond this it gains by itself, and
not by longer training.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unfooled.defenses.methods import Hardening, Method
from unfooled.training.course import Course
from unfooled.training.families import Value
from unfooled.training.observer import TrainObserver
from unfooled.training.preparation import Prepared
from unfooled.training.torch_families import TorchFamily
from unfooled.trust import granted
from unfooled.victims.torch.huggingface import longest_input


class Continue(Course):
    """Goes on from a model that is trained already; on its own this is the retuned control."""

    def __init__(self, folder: Path, *, start: str = "model") -> None:
        self.folder = folder
        self.start = start

    def make(
        self, family: TorchFamily, options: Mapping[str, Value], data: Prepared, observer: TrainObserver
    ) -> tuple[Any, Any]:
        if self.start == "body":
            return super().make(family, options, data, observer)
        import transformers

        from unfooled.victims.torch import word_models as models

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


class WithExtras(Continue):
    """Texts that are made of the training rows join the batch of their row; `extras` makes them."""

    def __init__(self, given: Hardening) -> None:
        super().__init__(given.folder, start=given.start)
        self.rows = given.rows.train
        self.scratch = given.scratch
        self.observer = given.observer
        self.weight: float = given.settings["weight"]
        self.field: int = given.settings["field"]
        self.seed = given.seed


METHOD = Method(
    name="retune",
    summary="more epochs on the plain data: the control for every other method",
    paper="Mein, Hartman, Morris 2020, section 3.5",
    course=lambda given: Continue(given.folder, start=given.start),
)
