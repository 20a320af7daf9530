"""The papers' word models: a vocabulary, a configuration and three architectures for `transformers`.

Importing this package loads nothing; `modeling` and `configuration` define classes on top of torch and
transformers and are imported where a model is needed.
"""

from __future__ import annotations


def register() -> None:
    """Let `AutoConfig` and `AutoModelForSequenceClassification` know the word models; again is harmless."""
    from unfooled.victims.torch.word_models import modeling

    modeling.register()
