"""What a training may do besides plain epochs: start elsewhere, add texts to batches, step differently."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from unfooled.core.victim import TextValue
from unfooled.training.families import Value
from unfooled.training.observer import TrainObserver
from unfooled.training.preparation import Prepared

if TYPE_CHECKING:
    from unfooled.training.torch_families import TorchFamily


class Extra(NamedTuple):
    """A text that joins the batch of a training row, with that row's label."""

    text: TextValue
    weight: float = 1.0  # of its loss; a row's own text weighs 1


class Course:
    """Override what you need; the base trains a new model on the rows as they are."""

    copies: int = 0  # most extra texts per row: memory is planned for them

    def make(
        self, family: TorchFamily, options: Mapping[str, Value], data: Prepared, observer: TrainObserver
    ) -> tuple[Any, Any]:
        """The model to train and its tokenizer."""
        return family.make(options, data, observer)

    def extras(self, epoch: int, model: Any, tokenizer: Any) -> Mapping[int, Sequence[Extra]]:
        """Texts to add in this epoch, by the number of their row. `model` is as trained so far."""
        return {}

    def step(self, trainer: Any, model: Any, inputs: dict[str, Any]) -> Any:
        """One forward and backward pass in place of the ordinary one: its loss. None: the ordinary one."""
        return None


def weighted_loss(model: Any, inputs: Mapping[str, Any], parts: int) -> Any:
    """Mean loss, each row with its weight.

    The rows are read in `parts` by length: added texts differ in length from the rows they came from, and
    padding all to the longest would cost more than it saves.
    """
    import torch

    tensors = dict(inputs)
    weights, labels = tensors.pop("weights"), tensors.pop("labels")
    lengths = tensors["attention_mask"].sum(dim=1)
    total = None
    for rows in torch.argsort(lengths, stable=True).tensor_split(min(parts, len(lengths))):
        longest = max(1, int(lengths[rows].max()))
        logits = model(**{name: column[rows, :longest] for name, column in tensors.items()}).logits
        losses = torch.nn.functional.cross_entropy(logits, labels[rows], reduction="none")
        part = (losses * weights[rows]).sum()
        total = part if total is None else total + part
    return total / weights.sum()
