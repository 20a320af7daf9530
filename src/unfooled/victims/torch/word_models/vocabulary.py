"""A tokenizer of whole words, made from the training texts.

A word is a run of letters and digits. Contractions fall apart the way the public word vectors expect
("do" + "n't", "it" + "'s"), so that a negation is a word of its own. Everything is read in lower case; the
positions of a token always point into the text as it was given.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from unfooled.errors import DataError
from unfooled.extras import libraries_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

PAD, UNK, SEP, CLS = "[PAD]", "[UNK]", "[SEP]", "[CLS]"

_FIRST, _NEXT, _END = r"[\p{L}\p{N}]", r"[\p{L}\p{N}\p{M}]", r"(?![\p{L}\p{N}])"
_WORDS = "|".join(
    (
        rf"{_FIRST}{_NEXT}*+(?!'t{_END})",  # most words; the first to be tried, for speed
        rf"{_FIRST}{_NEXT}*(?=n't{_END})",  # do|n't
        rf"n't{_END}",
        rf"'(?:s|re|ve|ll|d|m){_END}",  # it|'s, also where the text already has a space between
        rf"{_FIRST}{_NEXT}*",
        r"\p{So}",  # an emoji is no punctuation: it says something
    )
)
_PUNCTUATION = r"[\p{P}\p{S}]"


def build_word_tokenizer(
    texts: Iterable[str],
    *,
    max_words: int = 20_000,
    min_count: int = 2,
    max_length: int = 250,
    remove_punctuation: bool = True,
    bert: bool = False,
) -> PreTrainedTokenizerFast:
    """The most frequent words of `texts`, ordered by count, then alphabetically.

    A text becomes its words and a pair `first [SEP] second`; with `bert`, `[CLS] first [SEP]` and
    `[CLS] first [SEP] second [SEP]` with segment ids. Rarer words than `min_count` are `[UNK]`. What looks
    like a special token inside a text ("[PAD]") is read as an ordinary word.
    """
    with libraries_of("torch", "tokenizers", "transformers", needed_for="a word tokenizer"):
        from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
        from transformers import PreTrainedTokenizerFast
    # A process that forks after the tokenizer's threads have started would hang; one thread is enough.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    special = [PAD, UNK, SEP, CLS] if bert else [PAD, UNK, SEP]
    ids = {token: index for index, token in enumerate(special)}
    pattern = _WORDS if remove_punctuation else f"{_WORDS}|{_PUNCTUATION}"
    backend = Tokenizer(models.WordLevel(dict(ids), unk_token=UNK))
    backend.normalizer = normalizers.Sequence([normalizers.Lowercase(), normalizers.Replace("’", "'")])
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), behavior="removed", invert=True)
    trainer = trainers.WordLevelTrainer(
        vocab_size=max_words + len(special),
        min_frequency=min_count,
        special_tokens=special,
        show_progress=False,
    )
    backend.train_from_iterator(texts, trainer=trainer)
    if backend.get_vocab_size() == len(special):
        raise DataError(
            f"the training texts have no word that occurs {min_count} times or more",
            "give more texts, or a smaller min_count: --set min_count=1",
        )
    single, pair = "$A", f"$A {SEP} $B"
    if bert:
        single, pair = f"{CLS} $A {SEP}", f"{CLS} $A {SEP} $B:1 {SEP}:1"
    used = [(token, ids[token]) for token in special if token in (SEP, CLS)]
    backend.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=used)
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=backend,
        pad_token=PAD,
        unk_token=UNK,
        sep_token=SEP,
        cls_token=CLS if bert else None,
        model_max_length=max_length,
        padding_side="right",
        truncation_side="right",
        split_special_tokens=True,
        model_input_names=["input_ids", *(["token_type_ids"] if bert else []), "attention_mask"],
    )
