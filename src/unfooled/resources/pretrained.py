"""Language models of the `transformers` library, from a folder or by their name on the hub."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from unfooled.device import Compute, resolved, said
from unfooled.errors import ResourceError
from unfooled.extras import libraries_of
from unfooled.model_folder import check_model_folder
from unfooled.passes import placed
from unfooled.resources import store
from unfooled.resources.encoders import quiet
from unfooled.trust import granted

Kind = Literal["masked", "causal"]

_CLASSES: dict[Kind, str] = {"masked": "AutoModelForMaskedLM", "causal": "AutoModelForCausalLM"}


def load_pretrained(kind: Kind, name: str) -> tuple[Any, Any]:
    """Model (float32, ready to answer on its device) and tokenizer. Weights come from safetensors only."""
    return _loaded(kind, name, Compute(resolved(), said().precision))


@lru_cache(maxsize=3)
def _loaded(kind: Kind, name: str, _computing: Compute) -> tuple[Any, Any]:
    with libraries_of("torch", "torch", "transformers", needed_for=f"a {kind} language model"):
        import torch  # noqa: F401
        import transformers
    path = Path(name).expanduser()
    local = path.is_dir()
    _check_place(kind, name, path, local)
    if local:
        check_model_folder(path, name, ResourceError)
    trusted = granted().remote_code
    with quiet():
        # A worker that forks after the tokenizer's threads have started would hang; one thread is enough.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        # Read here, because the library looks only once, when it is imported.
        offline = local or os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on")
        where = str(path) if local else name
        try:
            if not offline:
                _reach_hub(name)
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                where, local_files_only=offline, trust_remote_code=trusted
            )
            model, report = getattr(transformers, _CLASSES[kind]).from_pretrained(
                where,
                local_files_only=offline,
                use_safetensors=True,
                trust_remote_code=trusted,
                output_loading_info=True,
            )
        except Exception as error:  # the library raises nearly anything
            raise _explained(kind, name, local, error) from error
    missing = sorted(report["missing_keys"])
    if missing:
        raise ResourceError(
            f"{name} has no weights for {', '.join(missing[:3])}: it was never trained as a {kind} language "
            "model, and random weights would answer",
            f"name a model that {_CLASSES[kind]} loads whole",
        )
    return placed(model.float().eval()), tokenizer


def fingerprint(kind: Kind, variant: str) -> str:
    """What a language model was when a run began: of a name on the hub, the commit that is in use."""
    known = store.fingerprint(variant)
    if known != variant:
        return known
    model, _ = load_pretrained(kind, variant)  # kept for the run, which needs it anyway
    return " ".join(filter(None, (variant, getattr(model.config, "_commit_hash", None))))


def _check_place(kind: Kind, name: str, path: Path, local: bool) -> None:
    if local and not (path / "config.json").is_file():
        raise ResourceError(
            f"the folder {name} holds no language model: it has no config.json",
            "name a folder written by save_pretrained",
        )
    if not local and (name.startswith((".", "/", "~")) or name.count("/") > 1):
        raise ResourceError(f"there is no folder {name}", f"check the path of the {kind} language model")


def _reach_hub(name: str) -> None:
    """One quick question before loading, which would try again and again for most of a minute."""
    from huggingface_hub import HfApi, try_to_load_from_cache

    if not isinstance(try_to_load_from_cache(name, "config.json"), str):
        HfApi().model_info(name, timeout=10)


def _explained(kind: Kind, name: str, local: bool, error: Exception) -> ResourceError:
    text = " ".join(str(error).split())[:200]
    if "Unrecognized configuration class" in text:
        return ResourceError(
            f"{name} is no {kind} language model: its architecture has no such head",
            f"name a model that {_CLASSES[kind]} can load",
        )
    if "trust_remote_code" in str(error):
        return ResourceError(
            f"{name} brings Python code of its own, which would run when it is loaded",
            "pass --trust-remote-code (in Python: unfooled.trusting(remote_code=True)) if you trust its "
            "author",
        )
    if not local and not isinstance(error, MemoryError):
        return ResourceError(
            f"the language model {name!r} is no folder here, and the hub did not give it: "
            f"{type(error).__name__}: {text}",
            f"download it where there is a network (hf download {name}), or give a folder"
            + (", or use what needs no hub: --masked-lm trigram" if kind == "masked" else ""),
        )
    return ResourceError(
        f"the language model {name} cannot be loaded: {type(error).__name__}: {text}",
        "check that the folder was written by save_pretrained, with safetensors",
    )


def longest_input(config: Any, tokenizer: Any) -> int:
    """The most tokens the model can read."""
    limits = [int(tokenizer.model_max_length)]
    positions = getattr(config, "max_position_embeddings", None)
    if positions:
        # Some families count positions from behind the padding token's.
        shifted = {"roberta", "xlm-roberta", "camembert", "longformer", "mpnet", "data2vec-text"}
        limits.append(
            int(positions) - ((config.pad_token_id or 0) + 1 if config.model_type in shifted else 0)
        )
    return min(limits) if min(limits) < 1_000_000 else 512
