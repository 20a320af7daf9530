"""Small tokenizers and classifiers of several families, made from nothing, as victims."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from unfooled.resources.encoders import quiet
from unfooled.victims.torch.huggingface import HuggingFaceVictim

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PIECES = ["the", "a", "film", "movie", "is", "was", "good", "great", "bad", "dull", "and", "not", "very"]
PIECES += ["fun", "plot", "don", "t", "cafe", ".", ",", "!", "'", "-", "##s", "##ly", "##ness", "##er"]
PAIRS: list[Any] = [("the film", "is very good"), ("a plot", "dull films"), ("", "bad")]
POSITIONS = 24
GPT2_WIDTHS = {"n_embd": 16, "n_layer": 2, "n_head": 2}


def wordpiece(pieces: Sequence[str] = PIECES, **more: Any) -> Any:
    """As BERT: lower case, no accents, no control characters, pieces marked with ##."""
    transformers: Any = import_module("transformers")
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    vocabulary = {word: index for index, word in enumerate([*SPECIAL, *pieces])}
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    special = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    names = ["input_ids", "token_type_ids", "attention_mask"]
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, model_max_length=10**30, model_input_names=names, **special, **more
    )


def bytelevel(*, trim: bool = True) -> Any:
    """As RoBERTa: bytes, merged a little; a space belongs to the token behind it."""
    transformers: Any = import_module("transformers")
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, processors, trainers

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    backend.train_from_iterator(["the film is good and the movie was not good"] * 3, trainer)
    backend.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), trim_offsets=trim, add_prefix_space=False
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token="<s>",
        eos_token="</s>",
        cls_token="<s>",
        sep_token="</s>",
        unk_token="<unk>",
        pad_token="<pad>",
        mask_token=AddedToken("<mask>", lstrip=True),
        model_max_length=10**30,
        model_input_names=["input_ids", "attention_mask"],
    )


def words(positions: int = POSITIONS) -> Any:
    """Whole words in lower case, nothing around them; what is no letter is dropped."""
    transformers: Any = import_module("transformers")
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

    vocabulary = {word: index for index, word in enumerate(["[PAD]", "[UNK]", "[SEP]", *PIECES])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    backend.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Lowercase(), normalizers.Replace(Regex(r"[^\w\s]"), " ")]
    )
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.post_processor = processors.TemplateProcessing(
        single="$A", pair="$A [SEP] $B", special_tokens=[("[SEP]", 2)]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend,
        unk_token="[UNK]",
        pad_token="[PAD]",
        sep_token="[SEP]",
        model_max_length=positions,
        model_input_names=["input_ids", "attention_mask"],
    )


def tiny(
    kind: str, *, classes: int = 3, seed: int = 7, positions: int = POSITIONS, **options: Any
) -> HuggingFaceVictim:
    """A random classifier of up to `positions` tokens; its weights are large enough for texts to differ."""
    import torch

    transformers: Any = import_module("transformers")

    tokenizer = bytelevel() if kind == "roberta" else words(positions) if kind in WORD_KINDS else wordpiece()
    size: dict[str, Any] = {"vocab_size": len(tokenizer), "num_labels": classes}
    size["pad_token_id"] = tokenizer.pad_token_id
    config: Any
    if kind == "gpt2":
        config = transformers.GPT2Config(
            **size, **GPT2_WIDTHS, n_positions=positions, bos_token_id=2, eos_token_id=3
        )
    elif kind in WORD_KINDS:
        from unfooled.victims.torch.word_models.configuration import WordModelConfig
        from unfooled.victims.torch.word_models.modeling import register

        register()
        config = WordModelConfig(kind=kind, embedding_size=12, hidden_size=16, **size)
    else:
        config = reading_config(kind, tokenizer, positions, **size)
    torch.manual_seed(seed)
    model = transformers.AutoModelForSequenceClassification.from_config(config).eval()
    enlarge(model, 1.5 if kind in WORD_KINDS else 5.0)
    return HuggingFaceVictim(model, tokenizer, name=f"tiny-{kind}", **options)


@cache
def victim_of(kind: str) -> HuggingFaceVictim:
    """The one with default sizes; whoever changes it makes another."""
    return tiny(kind)


def widths(hidden: int, layers: int = 2, heads: int = 2) -> dict[str, int]:
    return {
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": 2 * hidden,
    }


def reading_config(kind: str, tokenizer: Any, positions: int, **size: Any) -> Any:
    """Of the families that read in both directions."""
    transformers: Any = import_module("transformers")
    wide = widths(16)
    match kind:
        case "bert":
            return transformers.BertConfig(**size, **wide, max_position_embeddings=positions)
        case "roberta":
            return transformers.RobertaConfig(
                **size, **wide, max_position_embeddings=positions + 2, type_vocab_size=1
            )
        case "distilbert":
            tokenizer.model_input_names = ["input_ids", "attention_mask"]
            return transformers.DistilBertConfig(
                **size, dim=16, n_layers=2, n_heads=2, hidden_dim=32, max_position_embeddings=positions
            )
        case "electra" | "albert":
            family = {"electra": transformers.ElectraConfig, "albert": transformers.AlbertConfig}[kind]
            return family(**size, **wide, embedding_size=16, max_position_embeddings=positions)
    assert kind == "modernbert"
    return transformers.ModernBertConfig(
        **size, **wide, max_position_embeddings=positions, cls_token_id=2, sep_token_id=3
    )


def enlarge(model: Any, times: float) -> None:
    """Random weights as they start say nearly the same everywhere."""
    import torch

    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(times)


def save_bert(
    folder: Path,
    words: Sequence[str],
    *,
    hidden: int,
    positions: int,
    kind: str = "BertModel",
    **more: Any,
) -> Path:
    """A random model that knows these words, and its tokenizer, as a user would have them."""
    import torch

    transformers: Any = import_module("transformers")
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join([*SPECIAL, *words]), "utf-8")
    sizes = {"vocab_size": len(SPECIAL) + len(words), "max_position_embeddings": positions}
    torch.manual_seed(0)
    with quiet():
        config = transformers.BertConfig(**(widths(hidden) | sizes | more))
        getattr(transformers, kind)(config).save_pretrained(folder)
        transformers.BertTokenizer(vocab=str(vocabulary), model_max_length=positions).save_pretrained(folder)
    return folder


WORD_KINDS = ("lstm", "bilstm-attention", "word-cnn")
TRANSFORMERS = ("bert", "roberta", "distilbert", "gpt2")
