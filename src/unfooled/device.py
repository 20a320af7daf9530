"""Where models compute and how exactly: said once, and true for the process while a command or a call runs.

Victims are told by `load_victim`. Encoders and language models are opened by name alone, deep inside an
attack, so what was said holds for all of them. Torch is not imported here before somebody asks for a device
that only torch knows.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, wraps
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from unfooled.errors import UserError

P = ParamSpec("P")
R = TypeVar("R")

AUTO, CPU = "auto", "cpu"
FULL = "fp32"
PRECISIONS = {FULL: "float32", "bf16": "bfloat16", "fp16": "float16"}
# What the drivers of GPUs put here. Where there is nothing of it, torch need not be asked.
_DRIVERS = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/kfd", "/dev/dxg", "/dev/dri/renderD128")


@dataclass(frozen=True, slots=True)
class Compute:
    """`device` is empty where nobody said anything: what is loaded then goes to the best device there is,
    and a model that was given as an object stays where it is."""

    device: str = ""
    precision: str = FULL


_said = Compute()


def said() -> Compute:
    return _said


@contextlib.contextmanager
def computing(device: str | None = None, precision: str | None = None) -> Iterator[None]:
    """Models that are loaded in the block compute on `device`: auto, cpu, cuda, cuda:1, mps.

    `precision` is that of passes without gradients: fp32, bf16 or fp16. What is None stays as it was.

    Example:

        >>> with unfooled.computing("cpu"):
        ...     run = unfooled.attack("fake", "reviews.csv", "deepwordbug", limit=2)
        >>> run.summary().total
        2
    """
    global _said
    before = _said
    wanted = Compute(device or before.device, precision or before.precision)
    if wanted.precision not in PRECISIONS:
        raise UserError(f"{wanted.precision!r} is no precision", f"choose one of {', '.join(PRECISIONS)}")
    if wanted.device not in (before.device, AUTO, CPU):
        resolved(wanted.device)  # what is not here is said at once
    if wanted.precision not in (before.precision, FULL):
        require_precision(resolved(wanted.device), wanted.precision)
    _said = wanted
    try:
        yield
    finally:
        _said = before


def computes(function: Callable[P, R]) -> Callable[P, R]:
    """For a function with a parameter `device`, or `settings` that hold one: what it loads computes there."""

    @wraps(function)
    def there(*args: P.args, **given: P.kwargs) -> R:
        settings = given.get("settings")
        device: Any = given.get("device") or getattr(settings, "device", None)
        with computing(device, getattr(settings, "precision", None)):
            return function(*args, **given)

    return there


def resolved(asked: str = "") -> str:
    """The device that `asked`, or what was said before, means on this machine; one that is not here is an
    error that names those that are."""
    asked = (asked or _said.device or AUTO).strip().lower()
    if asked == CPU:
        return CPU
    if asked == AUTO:
        return _spread(_accelerators()) if _worth_asking() else CPU
    kind, colon, number = asked.partition(":")
    if not kind.isalpha() or (colon and not number.isdecimal()):
        raise UserError(f"{asked!r} is no device", "choose auto, cpu, cuda, cuda:1 or mps")
    from unfooled.extras import libraries_of

    with libraries_of("torch", "torch", needed_for=f"the device {asked}"):
        import torch  # noqa: F401
    here = _accelerators()
    of_kind = [name for name in here if name.partition(":")[0] == kind]
    if not of_kind or (colon and asked not in of_kind):
        raise UserError(
            f"there is no device {asked} that torch can use here",
            f"choose from what is here: {', '.join([*here, CPU])}, or auto",
        )
    return asked if colon else _spread(of_kind)


def described(device: str) -> str:
    """The device and, where torch knows it, the name of the machine part."""
    if device == CPU:
        return CPU
    module = _module(device)
    with contextlib.suppress(Exception):
        return f"{device} ({module.get_device_name(device)})"
    return device


def _worth_asking() -> bool:
    """Whether there may be an accelerator at all: importing torch to find none takes seconds."""
    if "torch" in sys.modules:
        return True
    if find_spec("torch") is None:
        return False
    if platform.system() == "Linux":
        return any(Path(driver).exists() for driver in _DRIVERS)
    return platform.system() != "Darwin" or platform.machine() == "arm64"


def _accelerators() -> list[str]:
    import torch

    if not torch.accelerator.is_available():
        return []
    found: Any = torch.accelerator.current_accelerator()
    if found.type == "mps":
        return ["mps"]
    return [f"{found.type}:{number}" for number in range(torch.accelerator.device_count())]


def _spread(devices: list[str]) -> str:
    """The first one; of worker processes each the next, so that all devices work."""
    if not devices:
        return CPU
    numbers = multiprocessing.current_process()._identity
    return devices[(numbers[-1] - 1) % len(devices) if numbers else 0]


def _module(device: str) -> Any:
    import torch

    return torch.get_device_module(device)


# -- precision -------------------------------------------------------------------------------------

_TRY = """
import sys, torch
dtype, recurrent = getattr(torch, sys.argv[1]), sys.argv[2] == "True"
with torch.inference_mode(), torch.autocast("cpu", dtype):
    for rows in (16, 64):
        states = torch.ones(rows, 24, 64)
        layer = torch.nn.LSTM(64, 64, batch_first=True) if recurrent else torch.nn.Linear(64, 64)
        states = layer(states)[0] if recurrent else layer(states)
        heads = states.reshape(-1, 4, 24, 16)  # what an LSTM gives cannot be viewed otherwise
        torch.nn.functional.scaled_dot_product_attention(heads, heads, heads).sum().item()
"""


@lru_cache(maxsize=16)
def require_precision(device: str, precision: str, recurrent: bool = False) -> None:
    """Refuse a precision that the device does not compute in. Some processors say they do and then stop the
    whole program with an illegal instruction: another process tries it out, and imports nothing from the
    folder that the user stands in."""
    import torch

    dtype: Any = getattr(torch, PRECISIONS[precision])
    if device == CPU:
        command = [sys.executable, "-P", "-c", _TRY, PRECISIONS[precision], str(recurrent)]
        try:
            tried = subprocess.run(command, capture_output=True, text=True, timeout=120)
        except subprocess.TimeoutExpired:
            tried = subprocess.CompletedProcess(command, 1, "", "no answer in two minutes")
        why = tried.stderr.strip().splitlines()[-1:] or [f"it ended with code {tried.returncode}"]
        if tried.returncode < 0:
            why = [f"it stops the program with signal {-tried.returncode}"]
        if tried.returncode == 0:
            return
    else:
        try:
            if device.startswith("cuda") and precision == "bf16" and not torch.cuda.is_bf16_supported(False):
                raise RuntimeError("it has no such numbers")
            matrix = torch.ones(64, 64, device=device, dtype=dtype)
            (matrix @ matrix).sum().item()
            return
        except (RuntimeError, TypeError) as error:
            why = str(error).strip().splitlines()[:1]
    what = f"{'recurrent ' if recurrent else ''}models"
    raise UserError(
        f"{device} does not compute {what} in {precision} here ({why[0][:160]})", f"use --precision {FULL}"
    )
