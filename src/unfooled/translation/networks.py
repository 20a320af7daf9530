"""The reference translation models: an LSTM with attention of our own, and the settings of a small Marian.

Both are ordinary encoder-decoders of transformers: they are saved as safetensors and load with
`AutoModelForSeq2SeqLM`, which importing this module tells about the LSTM.
"""

from __future__ import annotations

from typing import Any

from unfooled.errors import VictimError
from unfooled.extras import libraries_of
from unfooled.victims.torch.word_models.bodies import Recurrent, SteadyLinear

with libraries_of("torch", "torch", "transformers", needed_for="a translation model"):
    import torch
    from torch import Tensor, nn
    from transformers import (
        AutoConfig,
        AutoModelForSeq2SeqLM,
        MarianConfig,
        PretrainedConfig,
        PreTrainedModel,
    )
    from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput, Seq2SeqModelOutput


class TranslationLstmConfig(PretrainedConfig):  # type: ignore[no-untyped-call]
    """`layers` in both directions read, as many write; `hidden_size` units, half of them per direction."""

    model_type = "unfooled-translation-lstm"
    attribute_map = {"num_hidden_layers": "layers"}  # noqa: RUF012 (the library's own spelling)

    def __init__(
        self,
        *,
        vocab_size: int = 4000,
        embedding_size: int = 256,
        hidden_size: int = 256,
        layers: int = 2,
        dropout: float = 0.2,
        pad_token_id: int = 0,
        eos_token_id: int = 1,
        decoder_start_token_id: int = 0,
        **kwargs: Any,
    ) -> None:
        if min(vocab_size, embedding_size, layers) < 1 or hidden_size < 2 or hidden_size % 2:
            raise VictimError(
                "a translation LSTM needs sizes of at least 1, and hidden units for two directions",
                "check hidden (an even number), layers and embedding",
            )
        self.vocab_size = vocab_size
        self.embedding_size = embedding_size
        self.hidden_size = hidden_size
        self.layers = layers
        self.dropout = dropout
        ids = {"pad_token_id": pad_token_id, "eos_token_id": eos_token_id}
        ids["decoder_start_token_id"] = decoder_start_token_id
        fixed = {"is_encoder_decoder": True, "tie_word_embeddings": True}
        super().__init__(**(kwargs | ids | fixed))


class LstmState:
    """What the decoder remembers: one matrix of states and one of cells per layer, [layers, rows, units].

    Named like the caches of transformers, so that decoding treats all models alike.
    """

    def __init__(self, states: Tensor, cells: Tensor) -> None:
        self.states, self.cells = states, cells

    def batch_select_indices(self, rows: Tensor) -> None:
        self.states, self.cells = self.states[:, rows], self.cells[:, rows]

    reorder_cache = batch_select_indices


class Reader(nn.Module):
    """The encoder: layers of LSTMs in both directions, with dropout before each."""

    main_input_name = "input_ids"

    def __init__(self, config: TranslationLstmConfig, embeddings: nn.Embedding) -> None:
        super().__init__()
        self.embeddings = embeddings
        sizes = [config.embedding_size] + [config.hidden_size] * (config.layers - 1)
        self.layers = nn.ModuleList(Recurrent(size, config.hidden_size // 2, both=True) for size in sizes)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, **_unused: Any
    ) -> BaseModelOutput:
        vectors = self.embeddings(input_ids)
        mask = None
        if attention_mask is not None and not bool(attention_mask.all()):
            mask = attention_mask.to(vectors.dtype).unsqueeze(-1)
        for layer in self.layers:
            vectors = layer(self.dropout(vectors), mask)
        return BaseModelOutput(last_hidden_state=vectors)


class LstmBody(nn.Module):
    """Reads, then writes with attention on what was read (Luong et al. 2015, the general score).

    The decoder starts from the mean of the encoder's states. Attention follows the recurrence and is not fed
    back into it: all positions of a known target are computed at once.
    """

    def __init__(self, config: TranslationLstmConfig) -> None:
        super().__init__()
        size, units = config.embedding_size, config.hidden_size
        self.layers = config.layers
        self.embeddings = nn.Embedding(config.vocab_size, size, config.pad_token_id)
        self.encoder = Reader(config, self.embeddings)
        self.start = SteadyLinear(units, 2 * config.layers * units)
        self.decoder = nn.LSTM(
            size, units, config.layers, batch_first=True, dropout=config.dropout if config.layers > 1 else 0.0
        )
        self.query = SteadyLinear(units, units, bias=False)
        self.join = SteadyLinear(2 * units, size)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        encoder_outputs: Any = None,
        past_key_values: LstmState | None = None,
        **_unused: Any,
    ) -> Seq2SeqModelOutput:
        if encoder_outputs is None:
            encoder_outputs = self.encoder(input_ids, attention_mask)
        read: Tensor = encoder_outputs[0]
        state = past_key_values or self._begin(read, attention_mask)
        assert decoder_input_ids is not None
        vectors = self.dropout(self.embeddings(decoder_input_ids))
        written, (states, cells) = self.decoder(
            vectors, (state.states.contiguous(), state.cells.contiguous())
        )
        written = self.dropout(written)
        scores = self.query(written) @ read.transpose(1, 2)
        if attention_mask is not None:
            scores = scores.masked_fill(attention_mask[:, None, :] == 0, torch.finfo(scores.dtype).min)
        weights = scores.softmax(dim=-1)
        joined = torch.tanh(self.join(torch.cat([weights @ read, written], dim=-1)))
        return Seq2SeqModelOutput(
            last_hidden_state=self.dropout(joined),
            past_key_values=LstmState(states, cells),  # type: ignore[arg-type]
            cross_attentions=(weights.unsqueeze(1),),
            encoder_last_hidden_state=read,  # type: ignore[arg-type]
        )

    def _begin(self, read: Tensor, mask: Tensor | None) -> LstmState:
        if mask is None:
            mean = read.mean(dim=1)
        else:
            mean = read.sum(dim=1) / mask.sum(dim=1, keepdim=True).clamp(min=1).to(read.dtype)
        numbers = torch.tanh(self.start(mean)).view(len(read), self.layers, 2, -1)
        states, cells = numbers.permute(2, 1, 0, 3)
        return LstmState(states, cells)


class TranslationLstm(PreTrainedModel):  # type: ignore[no-untyped-call]
    """The body and a linear layer that shares its matrix with the embeddings."""

    config_class = TranslationLstmConfig
    config: TranslationLstmConfig
    base_model_prefix = "model"
    main_input_name = "input_ids"
    accepts_loss_kwargs = False
    _tied_weights_keys = {  # noqa: RUF012
        "lm_head.weight": "model.embeddings.weight",
        "model.encoder.embeddings.weight": "model.embeddings.weight",
    }

    def __init__(self, config: TranslationLstmConfig) -> None:
        super().__init__(config)
        self.model: Any = LstmBody(config)
        self.lm_head: Any = SteadyLinear(config.embedding_size, config.vocab_size, bias=False)
        self.post_init()  # type: ignore[no-untyped-call]

    def get_input_embeddings(self) -> Any:
        return self.model.embeddings

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.model.embeddings = self.model.encoder.embeddings = value

    def get_output_embeddings(self) -> Any:
        return self.lm_head

    def set_output_embeddings(self, new_embeddings: nn.Module) -> None:
        self.lm_head = new_embeddings

    def get_encoder(self, *_unused: Any, **_more: Any) -> Any:
        return self.model.encoder

    def forward(self, input_ids: Tensor | None = None, **inputs: Any) -> Seq2SeqLMOutput:
        body = self.model(input_ids, **inputs)
        return Seq2SeqLMOutput(
            logits=self.lm_head(body.last_hidden_state),
            past_key_values=body.past_key_values,
            cross_attentions=body.cross_attentions,
            encoder_last_hidden_state=body.encoder_last_hidden_state,
        )

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        # Weights that came from a file are marked by the library and left alone.
        if isinstance(module, nn.LSTM):
            for name, weight in module.named_parameters(recurse=False):
                if not getattr(weight, "_is_hf_initialized", False):
                    if name.startswith("weight"):
                        nn.init.xavier_uniform_(weight)
                    else:
                        nn.init.zeros_(weight)
        elif isinstance(module, nn.Embedding):
            if not getattr(module.weight, "_is_hf_initialized", False):
                nn.init.normal_(module.weight, std=module.weight.shape[1] ** -0.5)
        elif isinstance(module, nn.Linear) and module is not self.lm_head:
            if not getattr(module.weight, "_is_hf_initialized", False):
                nn.init.xavier_uniform_(module.weight)
            if module.bias is not None and not getattr(module.bias, "_is_hf_initialized", False):
                nn.init.zeros_(module.bias)


def small_marian_config(
    *, vocab_size: int, hidden_size: int, layers: int, heads: int, inner: int, dropout: float, max_length: int
) -> MarianConfig:
    """A Transformer in the style of Marian, for the tokenizer of `build_subword_tokenizer`."""
    if hidden_size % heads:
        raise VictimError(
            f"{hidden_size} hidden units cannot be shared among {heads} heads",
            "choose a hidden size that the number of heads divides",
        )
    sides: dict[str, Any] = {}
    for side in ("encoder", "decoder"):
        sides |= {
            f"{side}_layers": layers,
            f"{side}_attention_heads": heads,
            f"{side}_ffn_dim": inner,
        }
    return MarianConfig(
        vocab_size=vocab_size,
        d_model=hidden_size,
        **sides,
        dropout=dropout,
        attention_dropout=0.0,
        activation_dropout=0.0,
        activation_function="relu",
        init_std=hidden_size**-0.5 / 2,
        scale_embedding=True,
        max_position_embeddings=max_length,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=None,
        decoder_start_token_id=0,
        forced_eos_token_id=None,
        tie_word_embeddings=True,
        share_encoder_decoder_embeddings=True,
    )


def register() -> None:
    """Make the auto classes of transformers know the LSTM; a second time changes nothing."""
    AutoConfig.register(TranslationLstmConfig.model_type, TranslationLstmConfig, exist_ok=True)
    AutoModelForSeq2SeqLM.register(TranslationLstmConfig, TranslationLstm, exist_ok=True)


register()
