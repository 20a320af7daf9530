"""The papers' word models as ordinary `transformers` classifiers.

    config = WordModelConfig(kind="lstm", vocab_size=len(tokenizer), num_labels=2)
    model = WordModelForSequenceClassification(config)

They train with `Trainer`, are saved as safetensors, and load with `from_pretrained`; importing this module
also makes `AutoModelForSequenceClassification` know them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from unfooled.errors import VictimError
from unfooled.extras import libraries_of
from unfooled.victims.torch.word_models.bodies import AttentiveBody, SteadyLinear, make_body
from unfooled.victims.torch.word_models.configuration import WordModelConfig

with libraries_of("torch", "torch", "transformers", needed_for="a word model"):
    import torch
    from torch import Tensor, nn
    from transformers import AutoConfig, AutoModelForSequenceClassification, PreTrainedModel
    from transformers.modeling_outputs import SequenceClassifierOutput

_SMALL = 0.1  # unknown words start within this of zero; known vectors are of size one and more


class WordModelForSequenceClassification(PreTrainedModel):  # type: ignore[no-untyped-call]
    """Word vectors, a body (`bodies`), dropout and a linear layer.

    Without `attention_mask` every position is a word. A mask has its zeros at the end of a row. A row
    without any word is allowed. `hidden_states` are the word vectors and then each layer's states;
    `attentions` (bilstm-attention only) is one tensor [rows, 1 head, 1 query, positions].
    """

    config_class = WordModelConfig
    config: WordModelConfig
    main_input_name = "input_ids"
    # The mean over the batch, as for any classifier: `Trainer` divides by its accumulated steps itself.
    accepts_loss_kwargs = False

    def __init__(self, config: WordModelConfig) -> None:
        super().__init__(config)
        self.num_labels = int(config.num_labels or 2)
        self.embeddings = nn.Embedding(config.vocab_size, config.embedding_size, config.pad_token_id)
        self.body = make_body(config)
        self.dropout = nn.Dropout(config.dropout)
        self.classifier = SteadyLinear(self.body.features, self.num_labels)
        self.post_init()  # type: ignore[no-untyped-call]
        self.train()

    def train(self, mode: bool = True) -> WordModelForSequenceClassification:
        # Here, because loading puts new weights in place and forgets which were frozen, then calls eval().
        self.embeddings.weight.requires_grad_(not self.config.frozen_embeddings)
        super().train(mode)
        return self

    def get_input_embeddings(self) -> nn.Embedding:
        return self.embeddings

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.embeddings = value  # type: ignore[assignment]

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **_unused: Any,
    ) -> SequenceClassifierOutput | tuple[Any, ...]:
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("give either input_ids or inputs_embeds")
        if inputs_embeds is None:
            assert input_ids is not None
            # An empty list of ids becomes a tensor of floats.
            inputs_embeds = self.embeddings(input_ids if input_ids.shape[1] else input_ids.long())
        assert inputs_embeds is not None
        positions = inputs_embeds.shape[1]
        vectors, mask = _settled(inputs_embeds, attention_mask)
        reading = self.body(vectors, mask)
        logits = self.classifier(self.dropout(reading.pooled))
        loss: Any = None if labels is None else nn.functional.cross_entropy(logits, labels.view(-1))
        config = self.config
        hidden = attentions = None
        if config.output_hidden_states if output_hidden_states is None else output_hidden_states:
            hidden = tuple(states[:, :positions] for states in (vectors, *reading.layers))
        if config.output_attentions if output_attentions is None else output_attentions:
            found = reading.attention
            attentions = None if found is None else (found[:, None, None, :positions],)
        output = SequenceClassifierOutput(
            loss=loss, logits=logits, hidden_states=hidden, attentions=attentions
        )
        as_dict = config.return_dict if return_dict is None else return_dict
        return output if as_dict else output.to_tuple()

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, nn.LSTM):
            for name, weight in module.named_parameters():
                _start_lstm(name, weight, module.hidden_size)
        elif isinstance(module, nn.Embedding):
            if not _loaded(module.weight):
                nn.init.normal_(module.weight, std=_SMALL)
                if module.padding_idx is not None:
                    module.weight[module.padding_idx].zero_()
        elif isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, AttentiveBody):
            nn.init.normal_(module.score, std=module.score.numel() ** -0.5)


def initialise_embeddings(
    model: PreTrainedModel,
    tokenizer: Any,
    words: Sequence[str],
    matrix: npt.NDArray[np.float32],
    *,
    seed: int = 0,
) -> int:
    """Give each known word its vector and every other one small random numbers. Returns how many are known.

    A word that the vectors spell only with capitals ("Paris") counts as known. The random numbers depend on
    `seed` and the word's place in the vocabulary alone.
    """
    weight: Tensor = model.get_input_embeddings().weight  # type: ignore[assignment]
    rows, size = weight.shape
    if matrix.ndim != 2 or matrix.shape[1] != size:
        raise VictimError(
            f"the word vectors have {matrix.shape[-1]} numbers each, but the model's embeddings have {size}",
            "make the model with that embedding size, or use other vectors",
        )
    start = np.random.default_rng(seed).uniform(-_SMALL, _SMALL, (rows, size)).astype(np.float32)
    special = set(tokenizer.all_special_ids)
    vocabulary = {word: row for word, row in tokenizer.get_vocab().items() if row not in special}
    found: dict[int, int] = {}
    for index, word in enumerate(words):
        if (row := vocabulary.get(word)) is not None:
            found[row] = index
    for index, word in enumerate(words):
        if (row := vocabulary.get(word.lower())) is not None:
            found.setdefault(row, index)
    start[list(found)] = np.asarray(matrix[list(found.values())], dtype=np.float32)
    if tokenizer.pad_token_id is not None:
        start[tokenizer.pad_token_id] = 0.0
    with torch.no_grad():
        weight.copy_(torch.from_numpy(start))
    return len(found)


def register() -> None:
    """Make the auto classes of transformers know the word models; a second time changes nothing."""
    AutoConfig.register(WordModelConfig.model_type, WordModelConfig, exist_ok=True)
    AutoModelForSequenceClassification.register(
        WordModelConfig, WordModelForSequenceClassification, exist_ok=True
    )


def _settled(vectors: Tensor, given: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Vectors of at least one position, zero at padding, and a mask of numbers where there is any padding."""
    if vectors.shape[1] == 0:
        # One position of padding, still tied to the vectors that were given, for whoever asks for gradients.
        return nn.functional.pad(vectors, (0, 0, 0, 1)), vectors.new_zeros(len(vectors), 1, 1)
    if given is None or bool(given.all()):
        return vectors, None
    if bool((given[:, 1:] > given[:, :-1]).any()):
        raise ValueError("the attention mask must have its zeros at the end of each row: pad on the right")
    mask = given.to(vectors.dtype).unsqueeze(-1)
    return vectors * mask, mask


def _start_lstm(name: str, weight: Tensor, units: int) -> None:
    """Orthogonal recurrences, and forget gates that are open at first, so that early words are not lost."""
    if _loaded(weight):
        return
    if name.startswith("weight_hh"):
        for gate in range(4):
            nn.init.orthogonal_(weight[gate * units : (gate + 1) * units])
    elif name.startswith("weight_ih"):
        nn.init.xavier_uniform_(weight)
    else:
        nn.init.zeros_(weight)
        if name.startswith("bias_ih"):
            nn.init.ones_(weight[units : 2 * units])


def _loaded(weight: Tensor) -> bool:
    """transformers marks the weights that came from a file."""
    return bool(getattr(weight, "_is_hf_initialized", False))


register()
