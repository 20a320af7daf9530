"""Linear layers on the processor, by oneDNN.

A transformer on a processor spends four fifths of its time in linear layers. Torch hands them to MKL, which
on processors of another maker than its own computes them at less than half the speed of oneDNN, the second
library that torch brings. Here they go to oneDNN, on every x86-64 processor: one way to compute them.

Numbers differ from MKL's in the last digits, as they do between two makes of processor. In return those of a
row are the same bits in any company: oneDNN computes a row the same way among any number of rows but alone,
so a row alone is computed twice.
"""

from __future__ import annotations

import platform
from contextlib import nullcontext
from functools import lru_cache
from typing import Any


@lru_cache(maxsize=1)
def _onednn() -> Any:
    """oneDNN's linear layer, or None where torch lacks it or it does not do what the ordinary one does.

    Torch's compiler calls it; it is no public function, so it is tried out before it is trusted.
    """
    import torch

    backend: Any = torch.backends.mkldnn
    if platform.machine().lower() not in ("x86_64", "amd64") or not backend.is_available():
        return None
    try:
        function: Any = torch.ops.mkldnn._linear_pointwise
        rows, weight, bias = (torch.arange(n, dtype=torch.float32).sin() for n in (4 * 24, 8 * 24, 8))
        rows, weight = rows.reshape(2, 2, 24), weight.reshape(8, 24)
        found = function(rows, weight, bias, "none", [], "")
        if not torch.allclose(found, torch.nn.functional.linear(rows, weight, bias), atol=1e-5):
            return None
    except (AttributeError, RuntimeError, TypeError):
        return None
    return function


@lru_cache(maxsize=1)
def _mode() -> Any:
    import torch
    from torch.overrides import TorchFunctionMode

    by_onednn = _onednn()
    ordinary = torch.nn.functional.linear
    plain = (torch.Tensor, torch.nn.Parameter)

    def fits(tensor: Any) -> bool:
        return (
            type(tensor) in plain
            and tensor.dtype is torch.float32
            and tensor.device.type == "cpu"
            and tensor.layout is torch.strided
        )

    def fast(input: Any, weight: Any, bias: Any = None) -> Any:
        if (
            fits(input)
            and fits(weight)
            and weight.dim() == 2
            and weight.numel()  # of nothing it makes an error
            and (bias is None or (fits(bias) and bias.shape == weight.shape[:1] and bias.is_contiguous()))
            and input.shape[-1:] == weight.shape[1:]  # else torch itself says what is wrong
            and torch.is_inference_mode_enabled()  # it knows no gradients
            and not torch.is_autocast_enabled("cpu")
        ):
            alone = input.numel() == input.shape[-1]
            rows = input.reshape(1, -1).expand(2, -1) if alone else input
            found = by_onednn(rows, weight, bias, "none", [], "")
            return found[0].reshape(*input.shape[:-1], -1) if alone else found
        return ordinary(input, weight, bias)

    class Linear(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return (fast if function is ordinary else function)(*args, **(kwargs or {}))

    return Linear if by_onednn is not None else None


def fast_linear() -> Any:
    """Around passes without gradients: linear layers in fp32 on the processor are computed by oneDNN."""
    mode = _mode()
    return nullcontext() if mode is None else mode()
