"""Looking inside a torch model while it runs, and leaving it as it was; answers that repeat to the bit."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial
from typing import Any

# Measured: below so many rows, and up to so many outputs of rows that are not a multiple of so many bytes,
# the matrix libraries use other kernels, with other last bits.
_FEW_ROWS, _FEW_OUTPUTS, _ALIGNED = 8, 16, 16


def make_steady(model: Any) -> None:
    """Let every linear layer give a row the same bits whatever stands beside it.

    Only the head of a classifier ever sees few rows (one per text), so filling up there costs nothing, and
    answers repeat exactly. The library's attention is left alone: it repeats for every hidden size that is a
    multiple of 4, and to seven decimals for others.
    """
    import torch

    for module in model.modules():
        if type(module) is torch.nn.Linear:
            module.forward = partial(_forward, module)  # type: ignore[method-assign]


def _forward(layer: Any, inputs: Any) -> Any:
    return steady_linear(inputs, layer.weight, layer.bias)


def steady_linear(inputs: Any, weight: Any, bias: Any) -> Any:
    """A linear layer whose rows are the same bits in any place of any batch: zeros fill up what is odd."""
    from torch.nn.functional import linear, pad

    outputs, width = weight.shape
    rows = inputs.numel() // width
    columns = -width % (_ALIGNED // inputs.element_size()) if outputs <= _FEW_OUTPUTS else 0
    second = int(outputs == 1)  # a single output would be a product of a matrix and a vector
    if rows >= _FEW_ROWS and not columns and not second:
        return linear(inputs, weight, bias)
    filled = pad(inputs.reshape(rows, width), (0, columns, 0, max(0, _FEW_ROWS - rows)))
    answers = linear(filled, pad(weight, (0, columns, 0, second)), bias)[:rows, :outputs]
    return answers.reshape(*inputs.shape[:-1], outputs)


@contextlib.contextmanager
def cut_at_embeddings(model: Any, ids: Any, instead: Any = None) -> Iterator[list[Any]]:
    """While open, gradients start where `ids` are embedded; the list collects these embeddings.

    The model reads the vectors `instead` of its own, where there are any.
    Some models use the same table for other things too (segments, a decoder's shifted input).
    """
    import torch

    leaves: list[Any] = []

    def cut(_module: Any, args: Any, output: Any) -> Any:
        if not torch.equal(args[0], ids):
            return output
        leaf = (output if instead is None else instead).detach().requires_grad_()
        leaves.append(leaf)
        return leaf.clone()  # a model may write into what it was given; a leaf must stay as it is

    handle = model.get_input_embeddings().register_forward_hook(cut)
    try:
        yield leaves
    finally:
        handle.remove()


@contextlib.contextmanager
def as_it_was(model: Any) -> Iterator[None]:
    """Asked for its states, the library leaves hooks on a model; they cost time and cannot be pickled."""
    flag = "_output_capturing_hooks_installed"
    before = [(module, set(module._forward_hooks), flag in vars(module)) for module in model.modules()]
    try:
        yield
    finally:
        for module, hooks, flagged in before:
            for key in set(module._forward_hooks) - hooks:
                del module._forward_hooks[key]
            if not flagged:
                vars(module).pop(flag, None)


@contextlib.contextmanager
def eager_attention(model: Any) -> Iterator[None]:
    """Fused attention shows no scores; the plain one does, and `predict` keeps the fused one."""
    usual = getattr(model.config, "_attn_implementation", None)
    switch = getattr(model, "set_attn_implementation", None)
    if usual in (None, "eager") or switch is None:
        yield
        return
    switch("eager")
    try:
        yield
    finally:
        switch(usual)
