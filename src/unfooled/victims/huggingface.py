"""Any Hugging Face sequence classifier as a victim, from a folder or by its name on the hub."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from unfooled.batching import Meter, same_length
from unfooled.errors import MissingExtraError, VictimError
from unfooled.victims import models
from unfooled.victims.base import Probabilities, Reloadable, TextValue, digest, digest_files, softmax
from unfooled.victims.labels import settle_labels
from unfooled.victims.options import require_not_negative
from unfooled.victims.whitebox_torch import TorchWhiteBox

MAX_TOKENS = 2048  # per forward pass: the fastest on one core, by a little
FEW_ROWS = 8  # below this, matrix products use other kernels with other last bits

_HASHED = ("*.safetensors", "*.bin", "config.json", "tokenizer.json", "vocab.txt", "vocab.json", "merges.txt")


class HuggingFaceVictim(TorchWhiteBox, Reloadable):
    """A model and its tokenizer, run without padding: texts of equal length share a forward pass.

    The scores of a text do not depend on the texts beside it. `meter` counts what was computed and
    `truncated` the texts that were longer than the model can read. Gradients, attention and embeddings per
    word come from `TorchWhiteBox`; `capabilities` names those that this model gives. One thread at a time.
    """

    batch_size = 2048

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        labels: Sequence[str] | None = None,
        name: str = "",
        folder: Path | None = None,
        max_length: int = 0,
        max_tokens: int = MAX_TOKENS,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.name = name or type(model).__name__
        self.folder = folder
        self.max_length = max_length or longest_input(model.config, tokenizer)
        self.max_tokens = max_tokens
        self.labels, self._order = settle_labels(own_labels(model.config), labels)
        self.meter = Meter()
        self.truncated = 0
        self._fingerprint = ""
        self._capabilities: frozenset[str] | None = None
        make_steady(model)

    @property
    def capabilities(self) -> frozenset[str]:
        """Tried out when first asked for."""
        if self._capabilities is None:
            import transformers

            with _quiet(transformers):
                self._capabilities = frozenset({"probabilities"}) | self._probe()
        return self._capabilities

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        import torch

        if not texts:
            return np.zeros((0, len(self.labels)))
        sequences, segments = self._tokenise(texts)
        # Different spellings may read the same to the model; each reading is computed once.
        distinct: dict[tuple[Any, ...], int] = {}
        which = np.empty(len(texts), dtype=np.intp)
        for row, reading in enumerate(zip(map(tuple, sequences), segments, strict=True)):
            which[row] = distinct.setdefault(reading, len(distinct))
        readings = list(distinct)
        logits = np.empty((len(readings), len(self.labels)))
        for group in same_length([len(ids) for ids, _ in readings], self.max_tokens):
            started = time.perf_counter()
            inputs = {"input_ids": torch.tensor([readings[i][0] for i in group], dtype=torch.long)}
            if readings[group[0]][1]:
                inputs["token_type_ids"] = torch.tensor([readings[i][1] for i in group])
            with torch.inference_mode():
                logits[group] = self.model(**inputs).logits.double().numpy()
            self.meter.add(len(group), inputs["input_ids"].numel(), 0, time.perf_counter() - started)
        scores = softmax(logits)[which]
        return scores if self._order is None else scores[:, self._order]

    def fingerprint(self) -> str:
        if not self._fingerprint:
            settings = (self.labels, self.max_length)
            if self.folder is not None:
                files = {path for pattern in _HASHED for path in self.folder.glob(pattern)}
                self._fingerprint = digest("hf", digest_files(files), settings)
            else:
                state = self.model.state_dict()
                weights = [digest(key, state[key].detach().cpu().numpy().tobytes()) for key in sorted(state)]
                self._fingerprint = digest(
                    "hf", *weights, sorted(self.tokenizer.get_vocab().items()), settings
                )
        return self._fingerprint

    def _fields(self, texts: Sequence[TextValue]) -> tuple[list[str], list[str] | None]:
        """First and, for pairs, second field of every text."""
        pairs = [text for text in texts if not isinstance(text, str)]
        if pairs and (len(pairs) != len(texts) or any(len(pair) != 2 for pair in pairs)):
            raise VictimError(
                "the texts are neither all single nor all pairs",
                "give the model one text or two fields per row",
            )
        first: list[Any] = [pair[0] for pair in pairs] or list(texts)
        return first, [pair[1] for pair in pairs] or None

    def _tokenise(self, texts: Sequence[TextValue]) -> tuple[list[list[int]], list[tuple[int, ...]]]:
        """Token ids and, for models that tell the texts of a pair apart, segment ids."""
        first, second = self._fields(texts)
        # Without truncation here, so that one can see which texts are too long.
        encoded = self.tokenizer(first, second, return_attention_mask=False, verbose=False)
        ids: list[list[int]] = encoded["input_ids"]
        kinds: list[list[int]] | None = encoded.get("token_type_ids")
        long = [row for row, sequence in enumerate(ids) if len(sequence) > self.max_length]
        if long:
            self.truncated += len(long)
            shorter = self.tokenizer(
                [first[row] for row in long],
                [second[row] for row in long] if second else None,
                truncation=True,
                max_length=self.max_length,
                return_attention_mask=False,
            )
            for at, row in enumerate(long):
                ids[row] = shorter["input_ids"][at]
                if kinds is not None:
                    kinds[row] = shorter["token_type_ids"][at]
        return ids, [tuple(kind) for kind in kinds] if kinds is not None else [()] * len(ids)


def load(
    rest: str,
    *,
    labels: Sequence[str] | None = None,
    trust_pickle: bool = False,
    max_length: int = 0,
    max_tokens: int = MAX_TOKENS,
    name: str = "",
) -> HuggingFaceVictim:
    """`FOLDER` or `ORGANISATION/NAME`; `max_length=0` means as long as the model reads"""
    require_not_negative(max_length=max_length)
    try:
        import torch  # noqa: F401
        import transformers
    except ImportError:
        raise MissingExtraError("a Hugging Face model", "torch") from None
    path = Path(rest).expanduser()
    local = path.is_dir()
    if local and not (path / "config.json").is_file():
        raise VictimError(
            f"the folder {rest} holds no model: it has no config.json",
            "name a folder written by save_pretrained",
        )
    if not local and (rest.startswith((".", "/", "~")) or rest.count("/") > 1):
        raise VictimError(f"there is no folder {rest}", "check the path")
    # A worker that forks after the tokenizer's threads have started would hang; one thread is enough.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    where = str(path) if local else rest
    # Read here, because the library looks only once, when it is imported.
    offline = local or os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on")
    with _quiet(transformers), _explained(rest, local):
        models.register()  # the papers' word models, so that their folders are known
        config = transformers.AutoConfig.from_pretrained(where, local_files_only=offline)
        if getattr(config, "num_labels", 2) == 1:
            raise VictimError(
                f"{rest} predicts one number (regression), not classes",
                "use a model with at least two labels",
            )
        tokenizer = transformers.AutoTokenizer.from_pretrained(where, local_files_only=offline)
        model, report = transformers.AutoModelForSequenceClassification.from_pretrained(
            where,
            config=config,
            local_files_only=offline,
            output_loading_info=True,
            use_safetensors=None if trust_pickle else True,
        )
    missing = sorted(report["missing_keys"])
    if missing:
        raise VictimError(
            f"{rest} has no weights for {', '.join(missing[:4])}: it was never trained as a classifier",
            "fine-tune it first; untrained weights would be random",
        )
    if config.pad_token_id is None:
        # Decoders look for the last token that is not padding; there is none here, so any will do.
        model.config.pad_token_id = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else -1
    return HuggingFaceVictim(
        model.float().eval(),
        tokenizer,
        labels=labels,
        name=name or path.name,
        folder=path.resolve() if local else _folder_of(config),
        max_length=max_length,
        max_tokens=max_tokens,
    )


def own_labels(config: Any) -> list[str]:
    return [str(config.id2label[index]) for index in sorted(config.id2label)]


def longest_input(config: Any, tokenizer: Any) -> int:
    """The most tokens the model can read."""
    limits = [int(tokenizer.model_max_length)]
    positions = getattr(config, "max_position_embeddings", None)
    if positions:
        # The RoBERTa family counts positions from behind the padding token's.
        shifted = {"roberta", "xlm-roberta", "camembert", "longformer", "mpnet", "data2vec-text"}
        offset = (config.pad_token_id or 0) + 1 if config.model_type in shifted else 0
        limits.append(int(positions) - offset)
    return min(limits) if min(limits) < 1_000_000 else 512


def make_steady(model: Any) -> None:
    """Let every linear layer give a row the same bits however few rows stand beside it.

    Below a handful of rows the matrix libraries take another path. Only the head of a classifier ever sees
    so few (one row per text), so filling up there costs nothing, and answers repeat exactly.
    """
    import torch

    for module in model.modules():
        if type(module) is torch.nn.Linear:
            module.forward = partial(_steady_linear, module)  # type: ignore[method-assign]


def _steady_linear(layer: Any, inputs: Any) -> Any:
    import torch

    width = inputs.shape[-1]
    rows = inputs.numel() // width
    if rows >= FEW_ROWS:
        return torch.nn.functional.linear(inputs, layer.weight, layer.bias)
    filled = torch.cat([inputs.reshape(rows, width), inputs.new_zeros(FEW_ROWS - rows, width)])
    outputs = torch.nn.functional.linear(filled, layer.weight, layer.bias)[:rows]
    return outputs.reshape(*inputs.shape[:-1], outputs.shape[-1])


@contextlib.contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """No bars and no warnings while loading; what matters is checked and raised."""
    log = transformers.utils.logging
    level, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity_error()
    log.disable_progress_bar()
    try:
        yield
    finally:
        log.set_verbosity(level)
        if bars:
            log.enable_progress_bar()


@contextlib.contextmanager
def _explained(name: str, local: bool) -> Iterator[None]:
    """Turn what the libraries raise into a cause and a remedy."""
    try:
        yield
    except VictimError:
        raise
    except Exception as error:
        text = " ".join(str(error).split())
        kind = type(error).__name__
        if "SafetensorError" in kind or ("safetensor" in text.lower() and "header" in text.lower()):
            cause = f"the weights of {name} are damaged or cut short ({text[:200]})"
            remedy = "copy or download the model again"
        elif "no file named" in text or "does not appear to have a file named" in text:
            cause = f"{name} lacks a file: {text[:200]}"
            remedy = "save it with safetensors, or pass --trust-pickle for a .bin file that you trust"
        elif not local:
            cause = f"{name} is no folder here, and the hub did not give it: {kind}: {text[:200]}"
            remedy = f"download it where there is a network (hf download {name}), or give a folder"
        elif "model type" in text or "Unrecognized" in text:
            cause = f"{name} is of an unknown architecture: {text[:200]}"
            remedy = "use a model that AutoModelForSequenceClassification can load, or upgrade transformers"
        else:
            cause = f"{name} cannot be loaded: {kind}: {text[:200]}"
            remedy = "check that the folder was written by save_pretrained of a sequence classifier"
        raise VictimError(cause, remedy) from error


def _folder_of(config: Any) -> Path | None:
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
