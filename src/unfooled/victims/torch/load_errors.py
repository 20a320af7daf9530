"""What the libraries raise when a model cannot be loaded, as one line of cause and one of remedy."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unfooled.errors import UserError, VictimError
from unfooled.trust import granted

_AGAIN = "copy or download the model again"
_MOST_UNTOLD = 50_000_000  # numbers that need no file: tables of positions and the like


@contextlib.contextmanager
def explain_load_errors(name: str, folder: Path | None) -> Iterator[None]:
    """`name` is what the user typed; `folder` is where the model lies, None for one from the hub."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise VictimError(*_reason(error, name, folder)) from error


def require_vocabulary(tokenizer: Any, name: str) -> None:
    """Where its files are missing, the library makes a tokenizer to which every word is unknown."""
    if len(tokenizer.get_vocab()) <= len(set(tokenizer.all_special_tokens)):
        raise VictimError(
            f"{name} has no vocabulary: its tokenizer knows no word", "add its tokenizer.json or vocab.txt"
        )


def require_size(auto_class: Any, config: Any, folder: Path, name: str) -> None:
    """The configuration must not ask for far more memory than the weights fill.

    The library makes room for every weight that a configuration names, also for those that no file holds.
    """
    import torch

    with torch.device("meta"):  # sizes only, no memory
        model = auto_class.from_config(config, trust_remote_code=granted().remote_code)
    named = sum(parameter.numel() for parameter in (*model.parameters(), *model.buffers()))
    held = sum(path.stat().st_size for path in _weights(folder))
    if named > _MOST_UNTOLD + held * 8:  # even weights of one bit each would be more
        raise VictimError(
            f"{name}/config.json describes {named:,} weights, but its files hold {held:,} bytes", _AGAIN
        )


def require_finite(model: Any, name: str) -> None:
    """One weight that is no number makes every answer none."""
    import torch

    for key, weight in model.state_dict().items():
        if weight.is_floating_point() and not torch.isfinite(weight.sum()) and not weight.isfinite().all():
            raise VictimError(f"{name} holds weights that are no numbers (NaN or infinite), in {key}", _AGAIN)


def _weights(folder: Path) -> list[Path]:
    return [path for pattern in ("*.safetensors", "*.bin") for path in folder.glob(pattern)]


def _reason(error: Exception, name: str, folder: Path | None) -> tuple[str, str]:
    text = " ".join(str(error).split())
    kind = type(error).__name__
    if "trust_remote_code" in text:
        remedy = "pass --trust-remote-code (in Python: trust_remote_code=True) if you trust its author"
        return f"{name} brings Python code of its own, which would run when it is loaded", remedy
    if "SafetensorError" in kind or ("safetensor" in text.lower() and "header" in text.lower()):
        return f"the weights of {name} are damaged or cut short ({text[:200]})", _AGAIN
    if folder is not None and (broken := _broken_json(folder)):
        return f"{name}/{broken} is damaged or cut short: it is no JSON", _AGAIN
    if "ignore_mismatched_sizes" in text:
        return f"the weights of {name} have other sizes than its config.json says", _AGAIN
    if "no file named" in text or "does not appear to have a file named" in text:
        remedy = "save it with safetensors, or pass --trust-pickle for a .bin file that you trust"
        return f"{name} lacks a file: {text[:200]}", remedy
    if folder is None:
        remedy = f"download it where there is a network (hf download {name}), or give a folder"
        return f"{name} is no folder here, and the hub did not give it: {kind}: {text[:200]}", remedy
    if "model type" in text or "Unrecognized" in text:
        remedy = "use a model that AutoModelForSequenceClassification can load, or upgrade transformers"
        return f"{name} is of an unknown architecture: {_architecture(folder)}", remedy
    if "backend tokenizer" in text:
        return f"{name} has no tokenizer that can be read", "add its tokenizer.json or vocab.txt"
    remedy = "check that the folder was written by save_pretrained of a sequence classifier"
    return f"{name} cannot be loaded: {kind}: {text[:200]}", remedy


def _broken_json(folder: Path) -> str:
    """The first of the model's files that should be JSON and is not."""
    for path in (folder / name for name in ("config.json", "tokenizer_config.json", "tokenizer.json")):
        try:
            if path.is_file():
                json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            return path.name
    return ""


def _architecture(folder: Path) -> str:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    kind = config.get("model_type") if isinstance(config, dict) else None
    return f"model_type {kind!r}" if kind else "its config.json has no model_type"
