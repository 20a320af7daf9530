"""Open what the judge measures with: resources by their names, and a clear word on what is missing."""

from __future__ import annotations

from collections.abc import Sequence

from unfooled.errors import DataError, MissingExtraError, ResourceError
from unfooled.language.english import open_english
from unfooled.language.polarity import open_word_lookup
from unfooled.metrics.validity.features import (
    ENCODERS,
    FEATURES,
    LANGUAGE_MODEL,
    WORD_VECTORS,
    Encode,
    Instruments,
)
from unfooled.metrics.validity.pictures import open_pictures
from unfooled.resources import store
from unfooled.resources.encoders import Vector, open_encoder
from unfooled.resources.english import open_speller
from unfooled.resources.fluency import open_fluency

ALWAYS = ("perceptron-tagger", "wordnet", "inflections", "english-words", WORD_VECTORS)


def language_model_here() -> bool:
    """Whether what the full judge measures with is here and can be run."""
    present = {resource.name: resource.present for resource in store.status()}
    if not all(present.get(name, False) for name in (LANGUAGE_MODEL, *ENCODERS)):
        return False
    try:
        import torch  # noqa: F401
        import transformers  # noqa: F401
    except ImportError:
        return False
    return True


def open_instruments(features: Sequence[str]) -> Instruments:
    """Those that the features need."""
    unknown = [name for name in features if name not in FEATURES]
    if unknown:
        raise DataError(
            f"this judge wants measures that are not known here: {', '.join(unknown)}",
            "fit it again with unfooled judge fit",
        )
    chosen = [name for name in ENCODERS if f"praise-{name}" in features]
    needed = [*ALWAYS, *chosen]
    with_model = any(name.startswith("lm-") for name in features)
    needed += [LANGUAGE_MODEL] if with_model else []
    present = {resource.name: resource.present for resource in store.status()}
    missing = [name for name in needed if not present.get(name, False)]
    if missing:
        raise ResourceError(
            f"the judge measures with {', '.join(missing)}, not here yet",
            "; ".join(f"run: unfooled resources get {name}" for name in missing),
        )
    vectors = open_word_lookup(WORD_VECTORS)
    encoders = {name: _encoder(name) for name in chosen}
    tokens = None
    if with_model:
        model = open_fluency(LANGUAGE_MODEL)
        tokens = getattr(model, "tokens", None)
        if tokens is None:
            raise MissingExtraError("the judge's language model", "torch")
    return Instruments(open_english(), vectors, open_speller(), encoders, tokens, open_pictures())


def _encoder(name: str) -> Encode:
    opened = open_encoder(name)

    def encode(texts: Sequence[str]) -> Sequence[Vector]:
        return opened(texts)

    return encode
