"""A device for machines without any: torch's own place for foreign devices, filled with the processor.

A tensor here is a shell around an ordinary one. Every operation checks that all tensors it gets are on one
device, computes on the processor, and puts its answer into a shell again: what works here mixes no devices.
The numbers are those of the processor. Memory is counted, and may be limited, so that a pass that is too
large ends as it would on a GPU.

`install()` makes the device known to torch for the rest of the process. It cannot be taken back: tests that
use it run in a process of their own (`pytest --stand-in-device`).
"""

from __future__ import annotations

import functools
import os
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils import backend_registration
from torch.utils._pytree import tree_leaves, tree_map

NAME = "standin"
_TESTS, _PACKAGE = f"{os.sep}tests{os.sep}", f"{os.sep}src{os.sep}unfooled{os.sep}"
_NETWORKS = (f"{os.sep}word_models{os.sep}", f"{os.sep}networks.py", f"{os.sep}hooks.py")
COUNT = "STAND_IN_DEVICES"  # environment: how many there are
# Copies are how tensors change their device; the rest asks about a tensor or takes a number out of it.
_ACROSS = {"aten::_to_copy", "aten::copy_", "aten::_copy_from", "aten::_local_scalar_dense"}


mixed: list[str] = []  # every time that devices met: code that tries things out may catch the error


class WrongDeviceError(RuntimeError):
    """Tensors of two devices met."""


class Memory:
    """Bytes in use on all stand-ins, of storages that a tensor still looks at."""

    total = 1 << 34
    used = 0
    peak = 0
    _storages: dict[int, list[int]] = {}  # noqa: RUF012 (one memory for the process)

    @classmethod
    def hold(cls, raw: torch.Tensor) -> int:
        storage = raw.untyped_storage()
        address, size = storage.data_ptr(), storage.nbytes()
        known = cls._storages.setdefault(address, [0, size])
        if not known[0]:
            if cls.used + size > cls.total:
                del cls._storages[address]
                raise torch.OutOfMemoryError(
                    f"{NAME} out of memory: {cls.used} + {size} of {cls.total} bytes"
                )
            cls.used += size
            cls.peak = max(cls.peak, cls.used)
        known[0] += 1
        return address

    @classmethod
    def free(cls, address: int) -> None:
        known = cls._storages[address]
        known[0] -= 1
        if not known[0]:
            cls.used -= cls._storages.pop(address)[1]


@contextmanager
def memory_of(size: int) -> Iterator[None]:
    """So many bytes more than are in use now."""
    before = Memory.total
    Memory.total = Memory.used + size
    try:
        yield
    finally:
        Memory.total = before


class _DeviceModule:
    """What torch asks of a device's module, and what memory probes ask."""

    def device_count(self) -> int:
        return int(os.environ.get(COUNT, "1"))

    def is_available(self) -> bool:
        return self.device_count() > 0

    def is_initialized(self) -> bool:
        return True

    def current_device(self) -> int:
        return 0

    def _is_in_bad_fork(self) -> bool:
        return False

    def manual_seed_all(self, seed: int) -> None:
        """The numbers are drawn by the processor's generator."""

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.float16, torch.bfloat16]

    def get_device_name(self, device: Any) -> str:
        return "the processor, dressed up"

    def mem_get_info(self, device: Any = None) -> tuple[int, int]:
        return Memory.total - Memory.used, Memory.total

    def max_memory_allocated(self, device: Any = None) -> int:
        return Memory.peak

    def reset_peak_memory_stats(self, device: Any = None) -> None:
        Memory.peak = Memory.used


class Shell(torch.Tensor):
    """A tensor on a stand-in."""

    raw: torch.Tensor

    @staticmethod
    def __new__(cls, raw: torch.Tensor, device: torch.device) -> Shell:
        shell: Shell = torch.Tensor._make_wrapper_subclass(
            cls,
            raw.shape,
            strides=raw.stride(),
            storage_offset=raw.storage_offset(),
            dtype=raw.dtype,
            device=device,
        )
        shell.raw = raw
        weakref.finalize(shell, Memory.free, Memory.hold(raw))
        return shell

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"Shell({self.raw}, {self.device})"

    def tolist(self) -> Any:
        return self.raw.tolist()

    def numpy(self, **_: Any) -> Any:
        if not _asked_by_a_test():
            raise TypeError(f"a tensor on {self.device} has no numbers here: bring it to the processor first")
        return self.raw.detach().numpy()

    def __reduce_ex__(self, protocol: Any) -> Any:
        copy: Any = self.raw.detach().clone()
        return copy.__reduce_ex__(protocol)  # files know no stand-ins

    @classmethod
    def __torch_dispatch__(cls, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        return _compute(op, *args, **(kwargs or {}))


def _compute(op: Any, *args: Any, **kwargs: Any) -> Any:
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    shells = [tensor for tensor in tensors if isinstance(tensor, Shell)]
    name = op._schema.name
    # A single number from the processor may join, as on any device.
    devices = {tensor.device for tensor in tensors if tensor.dim() or isinstance(tensor, Shell)}
    # With gradients a test's own tensors may not join either: autograd would meet two devices.
    if len(devices) > 1 and name not in _ACROSS and (torch.is_grad_enabled() or not _asked_by_a_test()):
        mixed.append(f"{name} got tensors on {', '.join(sorted(map(str, devices)))}")
        raise WrongDeviceError(mixed[-1])
    where = _device(kwargs.get("device")) or (shells[0].device if shells else torch.device(NAME, 0))
    own = {id(shell.raw): shell for shell in shells}
    raw_args, raw_kwargs = tree_map(_bare, (args, kwargs))
    raw_kwargs.pop("pin_memory", None)
    found = _INSTEAD.get(name, op)(*raw_args, **raw_kwargs)
    if name == "aten::copy_":
        return args[0]
    if where.type == "cpu":
        return found

    def dressed(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or isinstance(value, Shell):
            return value
        if id(value) in own:
            return own[id(value)]
        with torch.inference_mode(value.is_inference()):
            return Shell(value, where)

    return tree_map(dressed, found)


def _asked_by_a_test() -> bool:
    """Whether a test, to have something to compare with, asks the model itself: it may bring its own tensors.

    The networks' own code is neither a test's nor the package's: who called it counts.
    """
    frame: Any = sys._getframe(2)
    while frame is not None:
        path = frame.f_code.co_filename
        if _PACKAGE in path and not any(part in path for part in _NETWORKS):
            return False
        if _TESTS in path and not path.endswith(("stand_in.py", "conftest.py")):
            return True
        frame = frame.f_back
    return False


def _device(given: Any) -> torch.device | None:
    if given is None:
        return None
    device = torch.device(given)
    return torch.device(NAME, 0) if device.type == NAME and device.index is None else device


def _bare(value: Any) -> Any:
    if isinstance(value, Shell):
        return value.raw
    return torch.device("cpu") if isinstance(value, torch.device) else value


# The step of an LSTM that torch has only for devices; the processor reads whole texts at once.


def _lstm_step(inputs: Any, hidden: Any, cell: Any, bias: Any = None, hidden_bias: Any = None) -> Any:
    gates = inputs + hidden
    if bias is not None:
        gates = gates + bias + hidden_bias
    into, forget, new, out = gates.chunk(4, 1)
    into, forget, new, out = into.sigmoid(), forget.sigmoid(), new.tanh(), out.sigmoid()
    state = forget * cell + into * new
    return out * state.tanh(), state, torch.cat([into, forget, new, out], 1)


def _lstm_step_back(for_hidden: Any, for_state: Any, cell: Any, state: Any, gates: Any, biased: bool) -> Any:
    into, forget, new, out = gates.chunk(4, 1)
    squeezed = state.tanh()
    hidden = torch.zeros_like(cell) if for_hidden is None else for_hidden
    flow = hidden * out * (1 - squeezed**2) + (0 if for_state is None else for_state)
    slopes = torch.cat(
        [
            flow * new * into * (1 - into),
            flow * cell * forget * (1 - forget),
            flow * into * (1 - new**2),
            hidden * squeezed * out * (1 - out),
        ],
        1,
    )
    return slopes, flow * forget, slopes.sum(0) if biased else None


_INSTEAD = {
    "aten::_thnn_fused_lstm_cell": _lstm_step,
    "aten::_thnn_fused_lstm_cell_backward_impl": _lstm_step_back,
}
_KEPT: list[Any] = []  # registrations last as long as these


def install() -> None:
    """Make the device known to torch; a second time changes nothing."""
    if _KEPT:
        return
    backend_registration._setup_privateuseone_for_python_backend(NAME, backend_module=_DeviceModule())
    library: Any = torch.library
    everything = library.Library("_", "IMPL")
    everything.fallback(_compute, "PrivateUse1")
    everything.fallback(library.fallthrough_kernel, "AutocastPrivateUse1")
    made = library.Library("aten", "IMPL")
    for name in ("empty_strided", "_to_copy", "copy_", "empty.memory_format", "_copy_from"):
        packet, _, overload = name.partition(".")
        op = getattr(getattr(torch.ops.aten, packet), overload or "default")
        made.impl(name, functools.partial(_compute, op), "PrivateUse1")
    _KEPT.extend((everything, made))
    _replace_weights()
    _save_from_the_processor()


def _replace_weights() -> None:
    """Weights that move or change are new shells; torch would put new numbers into the old tensors.

    What two layers share, they share again afterwards.
    """
    family: Any = torch.nn.Module
    usual = family._apply

    @functools.wraps(usual)
    def apply(module: Any, change: Any, recurse: bool = True) -> Any:
        with torch.no_grad():
            shells = [weight for weight in module._parameters.values() if isinstance(weight, Shell)]
            replaced = any(change(weight) is not weight for weight in shells)
        torch.__future__.set_overwrite_module_params_on_conversion(replaced)
        try:
            usual(module, change, recurse)
            if hasattr(module, "tie_weights"):
                module.tie_weights()
            return module
        finally:
            torch.__future__.set_overwrite_module_params_on_conversion(False)

    family._apply = apply


def _save_from_the_processor() -> None:
    """The library reads weights out of memory when it saves; of a GPU it knows how to."""
    import transformers

    family: Any = transformers.PreTrainedModel
    usual = family.save_pretrained

    @functools.wraps(usual)
    def save(model: Any, folder: Any, *args: Any, **given: Any) -> Any:
        state = given.pop("state_dict", None) or model.state_dict()
        given["state_dict"] = {name: tensor.cpu() for name, tensor in state.items()}
        return usual(model, folder, *args, **given)

    family.save_pretrained = save
