"""A look at the folder of a model before a library opens it: does it bring code, lead elsewhere, or lie?

The libraries decide by what stands in the folder's own files whether Python is imported, another model is
fetched or memory is asked for. So these files are read here first, as plain JSON.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path, PureWindowsPath
from typing import Any

from unfooled.errors import UserError
from unfooled.trust import granted

_CONFIGS = (
    "config.json", "tokenizer_config.json", "generation_config.json", "processor_config.json",
    "preprocessor_config.json", "config_sentence_transformers.json", "sentence_bert_config.json",
    "adapter_config.json", "modules.json", "router_config.json",
)  # fmt: skip
LARGEST_CONFIG = 64 * 1024 * 1024  # of a configuration; the largest known ones have a few megabytes
_LARGEST_NUMBER = 1 << 24
_MOST_LAYERS = 1000
_MOST_CLASSES = 100_000
# Numbers that are no sizes: nothing is made as large as they say.
_NO_SIZES = ("rope_theta", "seed", "theta", "scale", "token_id", "version")
_LAYERS = re.compile(r"(^|_)layers?$")
_OWN_MODULES = "sentence_transformers."


def check_model_folder(folder: Path, name: str, error: type[UserError]) -> None:
    """Raise `error` unless loading the folder runs no code of its own, stays inside it and fits into memory.

    `name` is what the user typed. Code is let through, with a warning, where the user trusts it.
    """
    found = {path: _read(path, name, error) for path in _configurations(folder)}
    adapter = next((path for path in found if path.name == "adapter_config.json"), None)
    if adapter is not None:
        raise error(
            f"{name} is an adapter: {adapter.name} names the model that it belongs to, which lies elsewhere",
            "merge it into its model (merge_and_unload), save that with save_pretrained, and give its folder",
        )
    reasons = [f"{_keys_path(path, folder)}: {what}" for path in found for what in _code(path, found[path])]
    if reasons and not granted().remote_code:
        raise error(
            f"{name} brings Python code of its own, which would run when it is loaded ({reasons[0]})",
            "pass --trust-remote-code (in Python: trust_remote_code=True) if you trust its author",
        )
    if reasons:
        warnings.warn(
            f"{name} runs Python code of its own ({reasons[0]}), because you trust it", stacklevel=2
        )
    for path, content in found.items():
        _check_module_paths(path, content, folder, name, error)
        if path.name == "config.json":
            _check_numbers(content, name, error)
    for path in sorted(folder.glob("*.index.json")):
        _check_shards(path, _read(path, name, error), name, error)


def _configurations(folder: Path) -> Iterator[Path]:
    """Of the folder and of the modules below it: however deep where a list of modules says where they lie."""
    below = "**" if (folder / "modules.json").is_file() else "*"
    for known in _CONFIGS:
        for path in sorted({folder / known, *folder.glob(f"{below}/{known}")}):
            if path.is_file():
                yield path


def _keys_path(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix()


def _read(path: Path, name: str, error: type[UserError]) -> Any:
    """The file's content; None where it is no JSON, which the loader of the model will say better."""
    if path.stat().st_size > LARGEST_CONFIG:
        raise error(
            f"{name}/{path.name} has {path.stat().st_size / 1e6:,.0f} MB, far too many for a configuration",
            "copy or download the model again",
        )
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    except RecursionError:
        raise error(
            f"{name}/{path.name} is nested too deeply to be a configuration",
            "copy or download the model again",
        ) from None


def _code(path: Path, content: Any) -> Iterator[str]:
    """Each place of a configuration that makes a library import what the model brings or names."""
    for key, value in _items(content):
        if key == "auto_map" and value:
            yield f"auto_map names {_first_text(value)}"
        elif key.endswith(("attn_implementation", "experts_implementation")) and "/" in str(value):
            yield f"{key} names a kernel to fetch, {_first_text(value)}"
        elif key == "activation_function" and "." in str(value) and not str(value).startswith("torch.nn."):
            yield f"{key} names {_first_text(value)}"
    for _, kind in _modules(path, content):
        if not kind.startswith(_OWN_MODULES):
            yield f"it is made of {kind}"


def _items(content: Any) -> Iterator[tuple[str, Any]]:
    """Every key and value, however deep; without recursion, because the depth is the author's choice."""
    left = [content]
    while left:
        now = left.pop()
        if isinstance(now, Mapping):
            yield from now.items()
            left += now.values()
        elif isinstance(now, list):
            left += now


def _first_text(value: Any) -> str:
    left = [value]
    while left:
        now = left.pop(0)
        if isinstance(now, str):
            return now[:80]
        left += list(now.values()) if isinstance(now, Mapping) else now if isinstance(now, list) else []
    return str(value)[:80]


def _modules(path: Path, content: Any) -> Iterator[tuple[str, str]]:
    """Where each module of an encoder lies and of which type it is.

    A router names them in its own file, or in a `config.json` as its first versions did.
    """
    if path.name == "modules.json" and isinstance(content, list):
        for module in content:
            if isinstance(module, Mapping):
                yield str(module.get("path", "")), str(module.get("type"))
    elif path.name in ("router_config.json", "config.json") and isinstance(content, Mapping):
        types = content.get("types")
        if isinstance(types, Mapping) and (path.name == "router_config.json" or "structure" in content):
            yield from ((str(place), str(kind)) for place, kind in types.items())


def _check_module_paths(path: Path, content: Any, folder: Path, name: str, error: type[UserError]) -> None:
    home = folder.resolve()
    for place, _ in _modules(path, content):
        parts = place.replace("\\", "/").split("/")
        outside = ".." in parts or place.startswith(("/", "\\")) or bool(PureWindowsPath(place).drive)
        if outside or not (path.parent / place).resolve().is_relative_to(home):
            raise error(
                f"{name}/{path.name} leads out of the folder: {place}", "copy the whole model into one folder"
            )


def _check_shards(path: Path, content: Any, name: str, error: type[UserError]) -> None:
    """The list of a model's weight files: it must name files beside it, and of the kind that it is for."""
    shards = content.get("weight_map") if isinstance(content, Mapping) else None
    ending = ".safetensors" if path.name.endswith(".safetensors.index.json") else ""
    for shard in set(map(str, shards.values())) if isinstance(shards, Mapping) else ():
        if Path(shard).name != shard or not shard.endswith(ending):
            raise error(
                f"{name}/{path.name} names {shard!r}, which is no weight file beside it",
                "copy the whole model into one folder, with safetensors",
            )


def _check_numbers(content: Any, name: str, error: type[UserError]) -> None:
    """Sizes that no model has would fill the memory before the weights are even looked at."""
    for key, value in _items(content):
        if isinstance(value, bool) or not isinstance(value, int):
            continue  # a size that is no whole number fails by itself
        if key.endswith(_NO_SIZES) or abs(value) <= _limit(key):
            continue
        raise error(
            f"{name}/config.json says {key} = {str(value)[:20]}, which no model has",
            "copy or download the model again",
        )


def _limit(key: str) -> int:
    if _LAYERS.search(key):
        return _MOST_LAYERS
    return _MOST_CLASSES if key == "num_labels" else _LARGEST_NUMBER
