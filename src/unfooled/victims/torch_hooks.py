"""Looking inside a torch model while it runs, and leaving it as it was."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def cut_at_embeddings(model: Any, ids: Any) -> Iterator[list[Any]]:
    """While open, gradients start where `ids` are embedded; the list collects these embeddings.

    Some models use the same table for other things too (segments, a decoder's shifted input).
    """
    import torch

    leaves: list[Any] = []

    def cut(_module: Any, args: Any, output: Any) -> Any:
        if not torch.equal(args[0], ids):
            return output
        leaf = output.detach().requires_grad_()
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
    before = [(one, set(one._forward_hooks), flag in vars(one)) for one in model.modules()]
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
