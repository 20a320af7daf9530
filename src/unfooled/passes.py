"""Running a torch model: placed once, asked in passes whose inputs go to its device once and whose answers
come back once. A pass that does not fit into memory comes again in halves.

Every torch model of the package is called through these few functions, so there is one place that knows
about devices.
"""

from __future__ import annotations

import contextlib
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Protocol, TypeVar

from unfooled.batching import Meter
from unfooled.device import CPU, FULL, PRECISIONS, require_precision, resolved, said
from unfooled.linear import fast_linear

M = TypeVar("M")

# On a GPU: tokens of the probing pass, the share of free memory that passes may fill, and the most tokens of
# a pass, beyond which more make nothing faster.
_PROBE, _SHARE, _LARGEST = 4096, 0.6, 131_072
_FULL_MEMORY = ("out of memory", "can't allocate memory", "ALLOC_FAILED")


# -- where -----------------------------------------------------------------------------------------


def placed(model: M, *, given: bool = False) -> M:
    """The model on its device, where it stays. One that was `given` as an object moves only if asked."""
    import torch

    this: Any = model
    wanted = said()
    if not given or wanted.device:
        device = resolved()
        if device.startswith("cuda"):
            torch.backends.cudnn.allow_tf32 = False  # fp32 means fp32, in recurrent layers as well
        if device != CPU or str(device_of(this)) != CPU:
            this = this.to(device)
    if wanted.precision != FULL:
        require_precision(str(device_of(this)), wanted.precision, recurrent=is_recurrent(this))
    if not given or wanted.precision != FULL:
        this.pass_precision = wanted.precision
    ready: M = this
    return ready


def device_of(model: Any) -> Any:
    """The torch device of its weights; the processor, where it has none."""
    import torch

    if (found := getattr(model, "device", None)) is not None:
        return torch.device(found)
    weights: Callable[[], Iterable[Any]] = getattr(model, "parameters", tuple)
    return next((weight.device for weight in weights()), torch.device(CPU))


def precision_of(model: Any) -> str:
    """That of its passes without gradients."""
    return str(getattr(model, "pass_precision", FULL))


def is_apart(model: Any) -> bool:
    """Whether it computes on a device of its own, while this processor is free for other work."""
    return bool(device_of(model).type != CPU)


class OnDevice:
    """Whatever asks one torch model, wherever that is."""

    model: Any

    @property
    def apart(self) -> bool:
        """Whether it computes on a device of its own while the processor does other work."""
        return is_apart(self.model)


def to_device(tensors: Any, model: Any) -> Any:
    """A tensor, or several by name, where the model is. From pinned memory CUDA copies while it computes."""
    device = device_of(model)
    if device.type == CPU:
        return tensors
    if isinstance(tensors, Mapping):
        return {name: to_device(tensor, model) for name, tensor in tensors.items()}
    if device.type == "cuda" and tensors.device.type == CPU:
        return tensors.pin_memory().to(device, non_blocking=True)
    return tensors.to(device)


def to_host(tensor: Any) -> Any:
    """Numbers of a pass, back on the processor, without their history."""
    return tensor.detach().cpu()


@contextlib.contextmanager
def answering(model: Any) -> Iterator[None]:
    """Around a pass without gradients, in the precision that the model was placed with.

    The weights stay fp32 and are rounded on the way (autocast): passes with gradients need them whole, and
    what is sensitive to rounding, sums and norms, is still computed in fp32.
    """
    import torch

    precision = precision_of(model)
    with torch.inference_mode():
        if precision == FULL:
            with fast_linear() if device_of(model).type == CPU else contextlib.nullcontext():
                yield
            return
        with torch.autocast(device_of(model).type, getattr(torch, PRECISIONS[precision])):
            yield


def is_recurrent(model: Any) -> bool:
    import torch

    modules: Callable[[], Iterable[Any]] = getattr(model, "modules", tuple)
    return any(isinstance(module, torch.nn.RNNBase) for module in modules())


# -- how much at a time ------------------------------------------------------------------------------


class PassOwner(Protocol):
    """A model that is asked in passes: how many tokens each may hold, and what was computed."""

    max_tokens: int
    meter: Meter


class Pass:
    """Sequences that go through a model together, filled up to one width. Entered, it gives their numbers;
    left because memory was full, it is put back in halves."""

    def __init__(self, passes: Passes, group: list[int], width: int) -> None:
        self._passes = passes
        self.group = group
        self.width = width
        self.done = False

    def __enter__(self) -> list[int]:
        return self.group

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self.done = error is None
        return error is not None and self._passes.halved(self, error)


class Passes:
    """The passes that some sequences need, one after the other.

        for batch in Passes(self, like_length(lengths, self.max_tokens)):
            with batch as group:
                ...

    After a pass that was too large the model is asked in smaller ones from then on.
    """

    def __init__(self, asked: PassOwner, groups: Iterable[tuple[list[int], int]]) -> None:
        self._asked = asked
        self._left = deque(groups)
        self._most: int | None = None  # tokens, once memory was full

    def __iter__(self) -> Iterator[Pass]:
        while self._left:
            group, width = self._left.popleft()
            if self._most is not None and len(group) > 1 and len(group) * width > self._most:
                middle = (len(group) + 1) // 2
                self._left.extendleft([(group[middle:], width), (group[:middle], width)])
                continue
            self._asked.meter.largest = max(self._asked.meter.largest, len(group) * width)
            yield Pass(self, group, width)

    def halved(self, batch: Pass, error: BaseException) -> bool:
        """Whether it makes sense to go on in halves."""
        if len(batch.group) < 2 or not is_out_of_memory(error):
            return False
        self._left.appendleft((batch.group, batch.width))
        self._most = max(1, len(batch.group) * batch.width // 2)
        self._asked.max_tokens = min(self._asked.max_tokens, max(1, self._most))
        self._asked.meter.out_of_memory += 1
        error.__traceback__ = None  # its frames hold the tensors
        _give_back()
        return True


def is_out_of_memory(error: BaseException) -> bool:
    torch: Any = sys.modules.get("torch")
    if torch is None or not isinstance(error, RuntimeError):
        return False
    return isinstance(error, torch.OutOfMemoryError) or any(said in str(error) for said in _FULL_MEMORY)


def _give_back() -> None:
    """What torch keeps for later tensors, of another size than the next ones."""
    import torch

    if torch.accelerator.is_available():
        with contextlib.suppress(Exception):
            torch.accelerator.empty_cache()


def tokens_that_fit(model: Any, otherwise: int, longest: int, run: Callable[[Any], Any]) -> int:
    """Tokens of a pass: `otherwise` on the processor; on a device what its free memory has room for.

    Found by one pass over made-up texts of the `longest` length, which need the most memory per token.
    """
    import torch

    device = device_of(model)
    if device.type == CPU:
        return otherwise
    memory: Any = torch.get_device_module(device)
    if not all(hasattr(memory, name) for name in ("mem_get_info", "max_memory_allocated")):
        return otherwise
    rows = max(1, _PROBE // longest)
    try:
        memory.reset_peak_memory_stats(device)
        before = memory.max_memory_allocated(device)
        with answering(model):
            run(to_device(torch.zeros(rows, longest, dtype=torch.long), model))
        needed = (memory.max_memory_allocated(device) - before) / (rows * longest)
        free, _ = memory.mem_get_info(device)
    except Exception:  # the probe itself did not fit, or the model wants other inputs
        return otherwise
    fitting = int(_SHARE * free / max(1.0, needed))
    # A power of two: two machines with a little more or less memory then take the same passes.
    return min(_LARGEST, 1 << (fitting.bit_length() - 1)) if fitting >= 1 else otherwise
