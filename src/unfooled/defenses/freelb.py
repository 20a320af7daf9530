"""FreeLB: adversarial steps on the input embeddings, whose gradients for the weights come for free.

Zhu, Cheng, Gan, Sun, Goldstein, Liu: *FreeLB: Enhanced Adversarial Training for Natural Language
Understanding*, ICLR 2020, arXiv:1909.11764.

    1. Start with a small random shift of every token's embedding.
    2. Forward and backward pass with the shifted embeddings: gradients for the weights, and for the shift.
    3. Move the shift along its gradient, of length one per text, by `step_size`.
    4. Keep its length per text within `radius`.
    5. After `steps` passes the averaged gradients of the weights make one optimiser step.

Differences from the authors' code: dropout is drawn anew in each pass; texts of a pair are shifted both.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unfooled.defenses.methods import Method
from unfooled.defenses.retune import Continue
from unfooled.errors import UserError


class FreeLB(Continue):
    def __init__(
        self,
        folder: Path,
        *,
        start: str = "model",
        steps: int = 3,
        step_size: float = 0.1,
        magnitude: float = 0.1,
        radius: float = 0.6,
    ) -> None:
        super().__init__(folder, start=start)
        if steps < 1 or step_size <= 0 or magnitude < 0 or radius < 0:
            raise UserError(
                f"steps={steps} step_size={step_size} magnitude={magnitude} radius={radius} makes no sense",
                "steps is at least 1, step_size above 0, the others at least 0 (radius 0: no limit)",
            )
        self.steps = steps
        self.step_size = step_size
        self.magnitude = magnitude
        self.radius = radius

    def step(self, trainer: Any, model: Any, inputs: dict[str, Any]) -> Any:
        import torch

        model.train()
        inputs = trainer._prepare_inputs(inputs)
        mask = inputs["attention_mask"].unsqueeze(-1).to(torch.float32)
        width = model.get_input_embeddings().weight.shape[1]
        lengths = mask.sum(dim=(1, 2), keepdim=True).clamp(min=1)
        # Drawn on the processor: the same numbers on every device.
        shift = torch.empty(*mask.shape[:2], width).uniform_(-1, 1).to(mask.device) * mask
        shift = shift * self.magnitude / (lengths * width).sqrt()
        passes = getattr(trainer, "current_gradient_accumulation_steps", 0)
        passes = passes or trainer.args.gradient_accumulation_steps
        total = torch.zeros((), device=mask.device)
        for left in range(self.steps - 1, -1, -1):
            shift = shift.detach().requires_grad_()
            with shifted(model, inputs["input_ids"], shift):
                loss = model(**inputs).loss / (self.steps * passes)
            trainer.accelerator.backward(loss)
            total += loss.detach()
            if left and shift.grad is not None:
                shift = self._moved(shift.detach(), shift.grad)
        return total

    def _moved(self, shift: Any, slope: Any) -> Any:
        shift = shift + self.step_size * slope / _length(slope).clamp(min=1e-12)
        if self.radius:
            shift = shift * (self.radius / _length(shift).clamp(min=1e-12)).clamp(max=1.0)
        return shift


@contextlib.contextmanager
def shifted(model: Any, ids: Any, shift: Any) -> Iterator[None]:
    """While open, what the embedding table says of `ids` is shifted."""
    import torch

    def move(_module: Any, args: Any, output: Any) -> Any:
        return output + shift if torch.equal(args[0], ids) else output

    handle = model.get_input_embeddings().register_forward_hook(move)
    try:
        yield
    finally:
        handle.remove()


def _length(values: Any) -> Any:
    return values.flatten(1).norm(dim=1)[:, None, None]


METHOD = Method(
    name="freelb",
    summary="gradient steps on the input embeddings inside each batch",
    paper="Zhu et al. 2020 (FreeLB)",
    defaults={"steps": 3, "step_size": 0.1, "magnitude": 0.1, "radius": 0.6},
    course=lambda given: FreeLB(given.folder, start=given.start, **given.settings),
)
