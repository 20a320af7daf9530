"""A subword tokenizer for translation, learned from both sides of parallel text.

Byte-pair encoding on words that carry the space before them (`▁dog`), as SentencePiece does it; punctuation
stands alone. One vocabulary serves both languages, so that names and numbers can be copied. Decoding gives
back the text with its spaces, byte for byte.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from unfooled.errors import DataError
from unfooled.extras import libraries_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

PAD, EOS, UNK = "<pad>", "</s>", "<unk>"
SPACE = "▁"


def build_subword_tokenizer(
    texts: Iterable[str], *, vocabulary: int = 4000, max_length: int = 128
) -> PreTrainedTokenizerFast:
    """At most `vocabulary` pieces, the special ones included. A text ends with `</s>`."""
    with libraries_of("torch", "tokenizers", "transformers", needed_for="a subword tokenizer"):
        from tokenizers import (
            Tokenizer,
            decoders,
            models,
            normalizers,
            pre_tokenizers,
            processors,
            trainers,
        )
        from transformers import PreTrainedTokenizerFast
    # A process that forks after the tokenizer's threads have started would hang; one thread is enough.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    special = [PAD, EOS, UNK]
    backend = Tokenizer(models.BPE(unk_token=UNK))
    backend.normalizer = normalizers.NFC()
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always"),
            pre_tokenizers.Punctuation(behavior="isolated"),
        ]
    )
    backend.decoder = decoders.Metaspace(replacement=SPACE, prepend_scheme="always")
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, min_frequency=2, special_tokens=special, show_progress=False
    )
    backend.train_from_iterator(texts, trainer=trainer)
    if backend.get_vocab_size() <= len(special) + 1:
        raise DataError("the training texts hold next to no text to learn pieces of words from", "give more")
    backend.post_processor = processors.TemplateProcessing(
        single=f"$A {EOS}", pair=f"$A $B {EOS}", special_tokens=[(EOS, special.index(EOS))]
    )
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=backend,
        pad_token=PAD,
        eos_token=EOS,
        unk_token=UNK,
        model_max_length=max_length,
        padding_side="right",
        truncation_side="right",
        split_special_tokens=True,
        clean_up_tokenization_spaces=False,
        model_input_names=["input_ids", "attention_mask"],
    )
