"""Models and tokenizers before the first step: from words and vectors, or from a pretrained body."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from unfooled.errors import UserError, VictimError
from unfooled.model_folder import check_model_folder
from unfooled.resources import store
from unfooled.resources.vectors import NAMES, load_word_vectors
from unfooled.training.families import Option, Value
from unfooled.training.observer import TrainObserver
from unfooled.training.preparation import LabelledTexts, Prepared
from unfooled.trust import granted
from unfooled.victims.torch.huggingface import longest_input
from unfooled.victims.torch.load_errors import require_vocabulary

VECTORS = "glove-6b-50d"
BODY = "minilm"

# The model with its classes named, and its tokenizer with the length set that both read.
Maker: TypeAlias = Callable[[Mapping[str, Value], Prepared, TrainObserver], tuple[Any, Any]]

# What every model on word vectors has, and what is said of it beyond the shared options.
WORD_DEFAULTS: Mapping[str, Value] = MappingProxyType(
    {
        "vectors": "auto",
        "embedding": 50,
        "frozen": False,
        "max_length": 250,
        "vocabulary": 20_000,
        "min_count": 2,
        "epochs": 20,
        "patience": 3,
        "lr": 1e-3,
        "decay": 0.0,
        "warmup": 0.0,
        "seed": 0,
    }
)
WORD_OPTIONS: Mapping[str, Option] = MappingProxyType(
    {
        "frozen": Option(bool, "keep the word vectors as they come"),
        "vectors": Option(str, f"`{VECTORS}`, `none`, a file, or `auto`: {VECTORS} where it is here"),
    }
)

# The names that different architectures give to the same thing.
_DROPOUTS = ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout",
             "seq_classif_dropout", "classifier_dropout")  # fmt: skip


def word_model(kind: str) -> Maker:
    """Word vectors and a network of this kind behind them; see `word_models.configuration`."""

    def make(options: Mapping[str, Value], data: Prepared, observer: TrainObserver) -> tuple[Any, Any]:
        return _words(kind, options, data, observer)

    return make


def _words(
    kind: str, options: Mapping[str, Value], data: Prepared, observer: TrainObserver
) -> tuple[Any, Any]:
    from unfooled.victims.torch.word_models.configuration import WordModelConfig
    from unfooled.victims.torch.word_models.modeling import (
        WordModelForSequenceClassification,
        initialise_embeddings,
    )

    tokenizer = _tokenizer(options, data)
    vectors = None if options["vectors"] == "none" else load_word_vectors(str(options["vectors"]))
    sizes: dict[str, Any] = {"embedding_size": vectors[1].shape[1] if vectors else options["embedding"]}
    for ours, theirs in (
        ("hidden", "hidden_size"),
        ("layers", "layers"),
        ("pool", "pool"),
        ("filters", "filters"),
    ):
        if ours in options:
            sizes[theirs] = options[ours]
    if "widths" in options:
        sizes["widths"] = [int(width) for width in str(options["widths"]).split("+")]
    config = WordModelConfig(
        kind=kind,
        vocab_size=len(tokenizer),
        dropout=float(options["dropout"]),
        frozen_embeddings=bool(options["frozen"]),
        **sizes,
        **_naming(data),
    )
    model = WordModelForSequenceClassification(config)
    if vectors:
        known = initialise_embeddings(model, tokenizer, *vectors, seed=int(options["seed"]))
        observer.note(f"{known:,} of {len(tokenizer):,} words have a vector in {options['vectors']}")
    return model, tokenizer


def scratch(options: Mapping[str, Value], data: Prepared, observer: TrainObserver) -> tuple[Any, Any]:
    """A BERT that starts at random, on whole words."""
    from transformers import BertForSequenceClassification

    from unfooled.victims.torch.word_models.configuration import bert_scratch_config

    tokenizer = _tokenizer(options, data, bert=True)
    config = bert_scratch_config(
        vocab_size=len(tokenizer),
        hidden_size=int(options["hidden"]),
        layers=int(options["layers"]),
        heads=int(options["heads"]),
        dropout=float(options["dropout"]),
        max_length=int(options["max_length"]),
        **_naming(data),
    )
    model: Any = BertForSequenceClassification(config)  # type: ignore[no-untyped-call]
    return model, tokenizer


def _tokenizer(options: Mapping[str, Value], data: Prepared, *, bert: bool = False) -> Any:
    from unfooled.victims.torch.word_models.vocabulary import build_word_tokenizer

    return build_word_tokenizer(
        _strings(data.train),
        max_words=int(options["vocabulary"]),
        min_count=int(options["min_count"]),
        max_length=int(options["max_length"]),
        bert=bert,
    )


def pretrained(options: Mapping[str, Value], data: Prepared, observer: TrainObserver) -> tuple[Any, Any]:
    """A pretrained body with a new head for the classes of the data."""
    import transformers

    # A process that forks after the tokenizer's threads have started would hang; one thread is enough.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    body = str(options["body"])
    path = find_body(body)
    local = path.is_dir()
    where = str(path) if local else body
    if local:
        check_model_folder(path, body, VictimError)
    trusted = granted().remote_code
    offline = local or os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on")
    try:
        config = transformers.AutoConfig.from_pretrained(
            where, local_files_only=offline, trust_remote_code=trusted, **_naming(data)
        )
        for name in _DROPOUTS:
            if isinstance(getattr(config, name, None), float):
                setattr(config, name, float(options["dropout"]))
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            where, local_files_only=offline, trust_remote_code=trusted
        )
        require_vocabulary(tokenizer, body)
        model = transformers.AutoModelForSequenceClassification.from_pretrained(
            where,
            config=config,
            local_files_only=offline,
            use_safetensors=True,
            trust_remote_code=trusted,
            ignore_mismatched_sizes=True,  # a head for other classes is replaced by a new one
        )
    except UserError:
        raise
    except Exception as error:
        # The libraries raise a different class for every way in which a folder can be no model.
        if "trust_remote_code" in str(error):
            raise VictimError(
                f"{body} brings Python code of its own, which would run when it is loaded",
                "pass --trust-remote-code if you trust its author",
            ) from error
        reason = " ".join(str(error).split())[:200]
        raise VictimError(
            f"{body} cannot be fine-tuned: {type(error).__name__}: {reason}",
            "give --body a folder of a BERT-family model with safetensors, or a hub name that can be reached",
        ) from error
    if tokenizer.pad_token_id is None:
        raise VictimError(f"{body} has no padding token", "choose a model of the BERT family")
    tokenizer.model_max_length = min(int(options["max_length"]), longest_input(config, tokenizer))
    return model.float(), tokenizer


def find_body(body: str) -> Path:
    """The folder of a pretrained model; a name that may be one on the hub comes back as it is."""
    path = store.path(BODY) if body == BODY else Path(body).expanduser()
    if not path.is_dir() and (body.startswith((".", "/", "~")) or body.count("/") > 1):
        raise VictimError(f"there is no folder {body} to fine-tune", "check the path given with --body")
    return path


def find_vectors(vectors: str, observer: TrainObserver) -> str:
    """What a name of word vectors means on this machine; what is not there is an error."""
    if vectors == "auto":
        here = store.has(VECTORS)
        if not here:
            observer.note(f"word vectors start at random; better: unfooled resources get {VECTORS}")
        return VECTORS if here else "none"
    if vectors in NAMES:
        store.path(vectors)
    elif vectors != "none" and not Path(vectors).expanduser().is_file():
        raise UserError(
            f"there are no word vectors {vectors}",
            f"give {', '.join(NAMES)}, none, or a text file of vectors",
        )
    return vectors


def _naming(data: Prepared) -> dict[str, Any]:
    return {
        "num_labels": len(data.labels),
        "id2label": dict(enumerate(data.labels)),
        "label2id": {name: index for index, name in enumerate(data.labels)},
    }


def _strings(rows: LabelledTexts) -> Iterator[str]:
    for text in rows.texts:
        if isinstance(text, str):
            yield text
        else:
            yield from text
