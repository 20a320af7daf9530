"""What reads the words: the recurrent, attentive and convolutional bodies behind one interface.

Each takes word vectors [rows, positions, size] and a mask [rows, positions, 1] of ones and zeros, or None
where every position is a word, and returns a `BodyOutput`. Padding stands at the end of a row and cannot be
felt: no body lets it reach a word, so a row's numbers do not depend on the rows beside it.
"""

from __future__ import annotations

from typing import NamedTuple

from unfooled.extras import libraries_of
from unfooled.victims.torch.hooks import steady_linear
from unfooled.victims.torch.word_models.configuration import WordModelConfig

with libraries_of("torch", "torch", needed_for="a word model"):
    import torch
    from torch import Tensor, nn


class BodyOutput(NamedTuple):
    pooled: Tensor  # [rows, features]
    layers: tuple[Tensor, ...]  # per layer [rows, positions, size]; zeros at padding
    attention: Tensor | None = None  # [rows, positions], sums to one over the words


class SteadyLinear(nn.Linear):
    """A linear layer that, outside training, gives a row the same bits in any place of any batch."""

    def forward(self, inputs: Tensor) -> Tensor:
        layer = nn.functional.linear if self.training else steady_linear
        answers: Tensor = layer(inputs, self.weight, self.bias)
        return answers


class Recurrent(nn.Module):
    """One LSTM layer, in one direction or both.

    The second direction is an LSTM of its own that reads each row's words backwards; unlike a packed
    sequence this keeps torch's fast path, whose numbers are the same for any batch and any padding.
    """

    def __init__(self, size: int, units: int, *, both: bool) -> None:
        super().__init__()
        self.forwards = nn.LSTM(size, units, batch_first=True)
        self.backwards = nn.LSTM(size, units, batch_first=True) if both else None

    def forward(self, vectors: Tensor, mask: Tensor | None) -> Tensor:
        states = _states(self.forwards, vectors)
        if self.backwards is not None:
            reverse = _reversal(vectors, mask)
            back = _states(self.backwards, _take(vectors, reverse))
            states = torch.cat([states, _take(back, reverse)], dim=-1)
        return states if mask is None else states * mask


class RecurrentBody(nn.Module):
    """Layers of LSTMs with dropout before each; read out at the end of the text or by the mean."""

    def __init__(self, config: WordModelConfig, *, both: bool) -> None:
        super().__init__()
        width = config.hidden_size * (2 if both else 1)
        sizes = [config.embedding_size] + [width] * (config.layers - 1)
        self.layers = nn.ModuleList(Recurrent(size, config.hidden_size, both=both) for size in sizes)
        self.dropout = nn.Dropout(config.dropout)
        self.units = config.hidden_size
        self.mean = config.pool == "mean"
        self.features = width

    def read(self, vectors: Tensor, mask: Tensor | None) -> tuple[Tensor, ...]:
        states: list[Tensor] = []
        for layer in self.layers:
            states.append(layer(self.dropout(states[-1] if states else vectors), mask))
        return tuple(states)

    def forward(self, vectors: Tensor, mask: Tensor | None) -> BodyOutput:
        layers = self.read(vectors, mask)
        top = layers[-1]
        if self.mean:
            count = top.shape[1] if mask is None else mask.sum(dim=1).clamp(min=1)
            return BodyOutput(top.sum(dim=1) / count, layers)
        if mask is None:
            last = top[:, -1]
        else:
            last = _take(top, (mask.sum(dim=1).long() - 1).clamp(min=0)).squeeze(1)
        # Read backwards, the text ends at its first word.
        return BodyOutput(torch.cat([last[:, : self.units], top[:, 0, self.units :]], dim=-1), layers)


class AttentiveBody(RecurrentBody):
    """A two-way LSTM whose states are averaged with learned weights: v · tanh(W state), through a softmax."""

    def __init__(self, config: WordModelConfig) -> None:
        super().__init__(config, both=True)
        self.query = SteadyLinear(self.features, config.attention_size)
        self.score = nn.Parameter(torch.empty(config.attention_size))

    def forward(self, vectors: Tensor, mask: Tensor | None) -> BodyOutput:
        layers = self.read(vectors, mask)
        # A sum of products and not a matrix product, whose last bits would change with the batch.
        scores = (torch.tanh(self.query(layers[-1])) * self.score).sum(dim=-1, keepdim=True)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, torch.finfo(scores.dtype).min)
        weights = torch.softmax(scores, dim=1)
        if mask is not None:
            weights = weights * mask  # a row without words attends to nothing
        return BodyOutput((weights * layers[-1]).sum(dim=1), layers, weights.squeeze(-1))


class ConvolutionalBody(nn.Module):
    """Kim (2014): windows of several widths over the words, the strongest answer of each filter.

    Every window that touches a word counts, so texts may be shorter than the widest window. The states of
    a position are the answers of the windows centred there. A window is a linear layer over its words side
    by side: as fast as torch's convolution here, and a row's bits do not change with the batch.
    """

    def __init__(self, config: WordModelConfig) -> None:
        super().__init__()
        self.widths = list(config.widths)
        self.windows = nn.ModuleList(
            SteadyLinear(width * config.embedding_size, config.filters) for width in self.widths
        )
        self.features = config.filters * len(self.widths)

    def forward(self, vectors: Tensor, mask: Tensor | None) -> BodyOutput:
        positions = vectors.shape[1]
        strongest: list[Tensor] = []
        centred: list[Tensor] = []
        for width, window in zip(self.widths, self.windows, strict=True):
            filled = nn.functional.pad(vectors, (0, 0, width - 1, width - 1))
            count = positions + width - 1
            beside = torch.cat([filled[:, at : at + count] for at in range(width)], dim=-1)
            answers = torch.relu(window(beside))  # [rows, count, filters]
            if mask is not None:
                # Windows behind the last word see only padding. Answers are never below zero, so zero hides.
                answers = answers * nn.functional.pad(mask, (0, 0, width - 1, 0), value=1.0)
            strongest.append(answers.amax(dim=1))
            centred.append(answers[:, (width - 1) // 2 :][:, :positions])
        states = torch.cat(centred, dim=-1)
        return BodyOutput(torch.cat(strongest, dim=1), (states if mask is None else states * mask,))


def make_body(config: WordModelConfig) -> RecurrentBody | ConvolutionalBody:
    if config.kind == "word-cnn":
        return ConvolutionalBody(config)
    if config.kind == "bilstm-attention":
        return AttentiveBody(config)
    return RecurrentBody(config, both=config.bidirectional)


def _states(layer: nn.LSTM, vectors: Tensor) -> Tensor:
    if layer.training or len(vectors) > 1:
        states: Tensor = layer(vectors)[0]
    else:  # a single row would take another path, with other last bits
        states = layer(nn.functional.pad(vectors, (0, 0, 0, 0, 0, 1)))[0][:1]
    # Torch hands out a transposed view, over which sums run in an order that depends on the batch.
    return states.contiguous()


def _reversal(vectors: Tensor, mask: Tensor | None) -> Tensor:
    """Where each position's mirror image lies; padding stays where it is."""
    rows, positions = vectors.shape[:2]
    at = torch.arange(positions, device=vectors.device).expand(rows, positions)
    if mask is None:
        return at.flip(1)
    mirrored = mask.sum(dim=1).long() - 1 - at
    return torch.where(mirrored >= 0, mirrored, at)


def _take(states: Tensor, at: Tensor) -> Tensor:
    """Row by row, the states at the given positions."""
    return states.gather(1, at.unsqueeze(-1).expand(-1, -1, states.shape[-1]))
