"""A model and its tokenizer out of a folder or from the hub, opened the same way for every kind of victim."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unfooled.errors import VictimError
from unfooled.extras import libraries_of
from unfooled.model_folder import check_model_folder
from unfooled.passes import placed
from unfooled.trust import granted
from unfooled.victims.torch.load_errors import (
    explain_load_errors,
    require_finite,
    require_size,
    require_vocabulary,
)
from unfooled.victims.torch.quiet import quiet


@dataclass(frozen=True, slots=True)
class Pretrained:
    """`model` is ready to be asked; `folder` is where its files lie, None where nobody can say."""

    model: Any
    tokenizer: Any
    config: Any
    folder: Path | None


def load_pretrained(
    name: str,
    auto_class: str,
    *,
    purpose: str,
    register: Callable[[], None],
    require_config: Callable[[Any], None],
    trust_pickle: bool,
) -> Pretrained:
    """`name` is a folder or a name on the hub; `auto_class` is the class of transformers that opens it.

    `purpose` says in an error what the model would have been trained as. `register` makes architectures of
    ours known first; `require_config` refuses a configuration of another kind of model.
    """
    with libraries_of("torch", "torch", "transformers", needed_for=f"a {purpose}"):
        import torch  # noqa: F401
        import transformers
    path = Path(name).expanduser()
    local = path.is_dir()
    # A worker that forks after the tokenizer's threads have started would hang; one thread is enough.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if local:
        check_model_folder(path, name, VictimError)
    where = str(path) if local else name
    auto = getattr(transformers, auto_class)
    trusted = granted().remote_code
    # Read here, because the library looks only once, when it is imported.
    offline = local or os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on")
    with quiet(), explain_load_errors(name, path if local else None):
        register()
        config = transformers.AutoConfig.from_pretrained(
            where, local_files_only=offline, trust_remote_code=trusted
        )
        require_config(config)
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            where, local_files_only=offline, trust_remote_code=trusted
        )
        require_vocabulary(tokenizer, name)
        if local:
            require_size(auto, config, path, name)
        model, report = auto.from_pretrained(
            where,
            config=config,
            local_files_only=offline,
            output_loading_info=True,
            trust_remote_code=trusted,
            use_safetensors=None if trust_pickle else True,
        )
        require_finite(model, name)
    missing = sorted(report["missing_keys"])
    if missing:
        raise VictimError(
            f"{name} has no weights for {', '.join(missing[:4])}: it was never trained as a {purpose}",
            "fine-tune it first; untrained weights would be random",
        )
    folder = path.resolve() if local else hub_folder(config)
    return Pretrained(placed(model.float().eval()), tokenizer, config, folder)


def hub_folder(config: Any) -> Path | None:
    """Where the hub's files lie on this machine, for the fingerprint."""
    commit = getattr(config, "_commit_hash", None)
    name = getattr(config, "_name_or_path", "")
    if not commit or not name:
        return None
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError:
        return None
    found = try_to_load_from_cache(name, "config.json", revision=commit)
    return Path(found).parent if isinstance(found, str) else None
