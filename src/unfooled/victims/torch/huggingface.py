"""Any Hugging Face sequence classifier as a victim, from a folder or by its name on the hub."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from unfooled.batching import MIXED, UNPADDED, Meter, mixed_length
from unfooled.core.victim import (
    SPECIMEN,
    Probabilities,
    Reloadable,
    TextValue,
    digest,
    digest_files,
    require_not_negative,
    softmax,
)
from unfooled.core.victim_oracle import SCALE, SEVERAL
from unfooled.device import FULL
from unfooled.errors import VictimError
from unfooled.passes import (
    OnDevice,
    Passes,
    answering,
    is_recurrent,
    placed,
    precision_of,
    to_device,
    to_host,
    tokens_that_fit,
)
from unfooled.victims.labels import settle_labels
from unfooled.victims.torch import word_models as models
from unfooled.victims.torch.hooks import make_steady
from unfooled.victims.torch.noise import TorchNoise
from unfooled.victims.torch.packed import PackedPasses, is_watched
from unfooled.victims.torch.pretrained import load_pretrained
from unfooled.victims.torch.quiet import quiet
from unfooled.victims.torch.tokens import Tokens, tensors, tokenise
from unfooled.victims.torch.words import TorchWords

if TYPE_CHECKING:
    from unfooled.victims.torch.compiled import CompiledVictim

# Tokens per forward pass: the fastest on one core, by a little. A recurrent network goes word by word, so it
# pays to take more texts along.
MAX_TOKENS = 1536
MAX_TOKENS_RECURRENT = 8192
FULL_ENOUGH = 0.5  # of a pass: texts of one length that have it to themselves
TORCH = "torch"  # the backend that every model has

# From token sequences and the width that they are filled up to, to logits.
Run: TypeAlias = Callable[[Sequence[Tokens], int], Any]

HASHED = ("*.safetensors", "*.bin", "config.json", "tokenizer.json", "tokenizer_config.json",
           "vocab.txt", "vocab.json", "merges.txt", "*.model")  # fmt: skip


class HuggingFaceVictim(TorchWords, TorchNoise, OnDevice, Reloadable):
    """A model and its tokenizer, run with next to no padding: texts of like length share a forward pass.

    The scores of a text do not depend on the texts beside it: how far it is padded, if at all, follows from
    its own length (see `batching`). `max_tokens` bounds a pass; 0 means what suits the model. `meter` counts
    what was computed and `truncated` the texts that were longer than the model can read. Gradients, attention
    and embeddings per word come from `TorchWhiteBox`, its own words from `TorchWords`; `capabilities` names
    what it gives. One thread at a time.

    Example:

        >>> data = unfooled.load_data("reviews.csv")
        >>> model = unfooled.train("lstm", data, "models/small", valid=0, options={"epochs": 1, "hidden": 8})
        >>> victim = unfooled.load_victim(str(model.path))
        >>> isinstance(victim, unfooled.HuggingFaceVictim), "gradients" in victim.capabilities
        (True, True)
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
        max_tokens: int = 0,
    ) -> None:
        self.model = model = placed(model, given=True)
        self.tokenizer = tokenizer
        self.name = name or type(model).__name__
        require_classes(model.config, self.name)
        self.folder = folder
        self.max_length = max_length or longest_input(model.config, tokenizer)
        self.max_tokens = max_tokens or tokens_per_pass(model, self.max_length)
        self.labels, self._order = settle_labels(own_labels(model.config), labels)
        self.meter = Meter()
        self.truncated = 0
        self._fingerprint = ""
        self._capabilities: frozenset[str] | None = None
        self.padding_id: int | None = getattr(tokenizer, "pad_token_id", None)
        self._padding_is_hidden: bool | None = None
        self._packed: PackedPasses | None = None
        self._packing_tried = False
        make_steady(model)

    @property
    def capabilities(self) -> frozenset[str]:
        """Tried out when first asked for."""
        if self._capabilities is None:
            with quiet():
                self._capabilities = frozenset({"probabilities"}) | self._probe()
        return self._capabilities

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        return softmax(self.raw_logits(texts)) if texts else np.zeros((0, len(self.labels)))

    def raw_logits(self, texts: Sequence[TextValue], /, run: Run | None = None) -> Probabilities:
        """What the softmax reads, in the order of the labels; passes by `run`, where it is given."""
        tokenised, cut = self.tokens(texts)
        self.truncated += cut
        # Different spellings may read the same to the model; each reading is computed once.
        distinct: dict[Tokens, int] = {}
        which = [distinct.setdefault(tokens, len(distinct)) for tokens in tokenised]
        readings = list(distinct)
        lengths = [len(ids) for ids, _ in readings]
        most = self.max_length if max(lengths) > UNPADDED and self._hides_padding() else 0
        logits = np.empty((len(readings), len(self.labels)))
        packs = run is None and len(set(lengths)) > 1 and self._packs() is not None
        least = self.max_tokens * FULL_ENOUGH if packs else 0
        groups = mixed_length(lengths, self.max_tokens, most=most, least=int(least))
        for batch in Passes(self, groups, lengths):
            with batch as group:
                started = time.perf_counter()
                logits[group] = (run or self._run_here)([readings[i] for i in group], batch.width)
                real, spent = sum(lengths[i] for i in group), time.perf_counter() - started
                self.meter.add(len(group), real, max(0, len(group) * batch.width - real), spent)
        scores = logits[which]
        return scores if self._order is None else scores[:, self._order]

    def unread(self, texts: Sequence[TextValue], /) -> list[float]:
        """What share of each text's tokens lies behind the last one that the model reads."""
        first, second = self._fields(texts)
        whole = self.tokenizer(first, second, return_attention_mask=False, verbose=False)["input_ids"]
        return [max(0, len(row) - self.max_length) / max(1, len(row)) for row in whole]

    def fingerprint(self) -> str:
        if not self._fingerprint:
            settings: tuple[Any, ...] = (self.labels, self.max_length)
            if (precision := precision_of(self.model)) != FULL:
                settings = (*settings, precision)
            if self.folder is not None:
                files = {path for pattern in HASHED for path in self.folder.glob(pattern)}
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

    def tokens(self, texts: Sequence[TextValue], /) -> tuple[list[Tokens], int]:
        """What the model reads of each text, and how many texts were too long for it."""
        if (reader := self._stretches(texts)) and (known := reader.ids([str(text) for text in texts])):
            return [(ids, ()) for ids in known[0]], known[1]
        return tokenise(self.tokenizer, *self._fields(texts), self.max_length)

    def _run_here(self, tokenised: Sequence[Tokens], width: int) -> Any:
        return self._run(tokenised, width).numpy()

    def _run(self, tokenised: Sequence[Tokens], width: int) -> Any:
        """The logits of token sequences that are filled up to a width, or of several lengths."""
        if width == MIXED:
            return to_host(self._packed.logits(tokenised)).double()  # type: ignore[union-attr]
        with answering(self.model):
            inputs = to_device(tensors(tokenised, width, self.padding_id or 0), self.model)
            return to_host(self.model(**inputs).logits).double()

    def _packs(self) -> PackedPasses | None:
        """How several lengths share a pass; None where they cannot. Tried out when first asked."""
        if is_watched(self.model):  # for now
            return None
        if not self._packing_tried:
            self._packing_tried = True
            (specimen,), _ = self.tokens([SPECIMEN])
            self._packed = PackedPasses.of(self.model, specimen)
        return self._packed

    def _hides_padding(self) -> bool:
        """Whether padding behind a mask leaves this model's answers alone; tried out when first asked."""
        if self._padding_is_hidden is None:
            self._padding_is_hidden = False
            if self.padding_id is not None:
                (specimen,), _ = self.tokens([SPECIMEN])
                length = len(specimen[0])
                with contextlib.suppress(Exception):
                    plain, padded = (self._run([specimen], width) for width in (length, length + 9))
                    self._padding_is_hidden = bool(plain.allclose(padded, rtol=1e-4, atol=1e-4))
        return self._padding_is_hidden


def load(
    rest: str,
    *,
    labels: Sequence[str] | None = None,
    trust_pickle: bool = False,
    max_length: int = 0,
    max_tokens: int = 0,
    name: str = "",
    backend: str = TORCH,
) -> HuggingFaceVictim | CompiledVictim:
    """`FOLDER` or `ORGANISATION/NAME`; `max_length=0` means as long as the model reads"""
    require_not_negative(max_length=max_length, max_tokens=max_tokens)
    if backend != TORCH:
        from unfooled.victims.torch.compiled import compiled, require_backend

        require_backend(backend)
    path = Path(rest).expanduser()
    local = path.is_dir()
    if local and not (path / "config.json").is_file():
        raise VictimError(
            f"the folder {rest} holds no model: it has no config.json",
            "name a folder written by save_pretrained",
        )
    if not local and (rest.startswith((".", "/", "~")) or rest.count("/") > 1):
        raise VictimError(f"there is no folder {rest}", "check the path")
    loaded = load_pretrained(
        rest,
        "AutoModelForSequenceClassification",
        purpose="classifier",
        register=models.register,  # the papers' word models, so that their folders are known
        require_config=partial(require_classes, name=rest),
        trust_pickle=trust_pickle,
    )
    if loaded.config.pad_token_id is None:
        # Decoders look for the last token that is not padding; there is none here, so any will do.
        padding = loaded.tokenizer.pad_token_id
        loaded.model.config.pad_token_id = padding if padding is not None else -1
    victim = HuggingFaceVictim(
        loaded.model,
        loaded.tokenizer,
        labels=labels,
        name=name or path.name,
        folder=loaded.folder,
        max_length=max_length,
        max_tokens=max_tokens,
    )
    return victim if backend == TORCH else compiled(victim, backend)[backend]


def require_classes(config: Any, name: str) -> None:
    """Refuse models whose answers are not the probabilities of classes of which one holds."""
    if config.is_encoder_decoder and not any("Classif" in kind for kind in config.architectures or ()):
        raise VictimError(
            f"{name} writes text: it is no classifier", f"load it as what it is: seq2seq:{name}"
        )
    if getattr(config, "problem_type", None) == "multi_label_classification":
        raise VictimError(
            f"{name} was trained to choose several labels at once (problem_type in its config.json)", SEVERAL
        )
    if getattr(config, "num_labels", 2) == 1 or getattr(config, "problem_type", None) == "regression":
        raise VictimError(
            f"{name} predicts numbers on a scale (regression), not classes",
            f"use a model with at least two labels; {SCALE}",
        )


def tokens_per_pass(model: Any, longest: int) -> int:
    otherwise = MAX_TOKENS_RECURRENT if is_recurrent(model) else MAX_TOKENS
    return tokens_that_fit(model, otherwise, min(longest, 512), lambda ids: model(input_ids=ids))


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
