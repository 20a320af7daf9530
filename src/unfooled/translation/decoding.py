"""Writing token by token with any encoder-decoder of transformers: greedily, or with a beam.

The rows of a call all have the same source length, so nothing is padded, and rows that are done leave the
batch: what is written for a row does not depend on the rows beside it. Keys and values of earlier positions
are kept in the model's own cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from unfooled.passes import answering, to_device, to_host

Row: TypeAlias = tuple[int, ...]


class Signs(NamedTuple):
    """The special tokens of a model: where writing begins, what ends it, what is never written."""

    start: int
    ends: tuple[int, ...]
    never: tuple[int, ...] = ()
    first: int | None = None  # written first whatever the model says: a language's token, say


def signs_of(model: Any) -> Signs:
    """From the model's generation settings, or its configuration."""
    settings = (getattr(model, "generation_config", None), model.config)

    def find(name: str) -> Any:
        found = (getattr(setting, name, None) for setting in settings)
        return next((value for value in found if value is not None), None)

    ends = find("eos_token_id")
    ends = tuple(ends) if isinstance(ends, list | tuple) else (int(ends),) if ends is not None else ()
    start = find("decoder_start_token_id")
    start = start if start is not None else find("bos_token_id")
    if start is None or not ends:
        raise ValueError("the model does not say which token begins an output and which ends it")
    padding = find("pad_token_id")
    never = [padding] if padding is not None and padding not in ends else []
    for word in find("bad_words_ids") or ():
        if len(word) == 1 and word[0] not in never:
            never.append(word[0])
    return Signs(int(start), ends, tuple(never), find("forced_bos_token_id"))


def longest_output(length: int, most: int) -> int:
    """Tokens that may be written for a source of `length` tokens: enough for any sane translation."""
    return max(1, min(most, 2 * length + 10))


class _Writer:
    """The model with its memory of rows under way."""

    def __init__(self, model: Any, signs: Signs, sources: Any, copies: int) -> None:
        self._model, self._signs = model, signs
        self._read = model.get_encoder()(input_ids=sources, return_dict=True)
        if copies > 1:
            states = self._read.last_hidden_state.repeat_interleave(copies, dim=0)
            self._read = type(self._read)(last_hidden_state=states)
        self._cache: Any = None

    def step(self, tokens: Any, at: int) -> Any:
        """Log-probabilities of the next token, [rows, vocabulary], after one more token per row."""
        import torch

        out = self._model(
            encoder_outputs=self._read,
            decoder_input_ids=tokens[:, None],
            past_key_values=self._cache,
            use_cache=True,
        )
        self._cache = out.past_key_values
        scores = out.logits[:, -1].float()
        if self._signs.never:
            scores[:, list(self._signs.never)] = -torch.inf
        if at == 0 and self._signs.first is not None:
            forced = torch.full_like(scores, -torch.inf)
            forced[:, self._signs.first] = 0.0
            return forced
        return scores.log_softmax(dim=-1)

    def keep(self, rows: Any) -> None:
        """Only these rows, in this order; one may stand twice."""
        self._cache.batch_select_indices(rows)
        self._read = type(self._read)(last_hidden_state=self._read.last_hidden_state[rows])


def write_greedily(model: Any, signs: Signs, sources: Sequence[Row], most: int) -> list[Row]:
    """The likeliest token at each place, up to the end sign (left out) or `most` tokens."""
    import torch

    with answering(model):
        writer = _Writer(model, signs, to_device(torch.tensor(sources), model), 1)
        outputs: list[list[int]] = [[] for _ in sources]
        alive = list(range(len(sources)))
        tokens = to_device(torch.full((len(sources),), signs.start), model)
        for at in range(most):
            tokens = writer.step(tokens, at).argmax(dim=-1)
            chosen = to_host(tokens).tolist()
            going = [place for place, token in enumerate(chosen) if token not in signs.ends]
            for place in going:
                outputs[alive[place]].append(chosen[place])
            if not going:
                break
            if len(going) < len(alive):
                rows = to_device(torch.tensor(going), model)
                writer.keep(rows)
                tokens, alive = tokens[rows], [alive[place] for place in going]
    return [tuple(output) for output in outputs]


def write_with_beam(
    model: Any, signs: Signs, sources: Sequence[Row], most: int, beams: int, length_penalty: float = 1.0
) -> list[Row]:
    """The best of `beams` outputs kept at each place, by log-probability over length^`length_penalty`.

    A sentence is done when as many of its outputs have ended as there are beams.
    """
    import torch

    with answering(model):
        writer = _Writer(model, signs, to_device(torch.tensor(sources), model), beams)
        ended: list[list[tuple[float, Row]]] = [[] for _ in sources]
        alive = list(range(len(sources)))
        kept: list[list[Row]] = [[()] * beams for _ in sources]
        # All beams start equal: only the first of them may grow at first.
        scores = torch.full((len(sources), beams), -torch.inf)
        scores[:, 0] = 0.0
        scores = to_device(scores, model)
        tokens = to_device(torch.full((len(sources) * beams,), signs.start), model)
        for at in range(most):
            logs = writer.step(tokens, at)
            width = logs.shape[-1]
            # Each beam may end in each of the end signs: behind those, enough must be left to go on with.
            enough = (1 + len(signs.ends)) * beams
            best, places = (logs + scores.view(-1, 1)).view(len(alive), -1).topk(enough, dim=-1)
            told = to_host(best).tolist(), to_host(places).tolist()
            rows: list[int] = []
            going: list[int] = []
            following: list[tuple[list[Row], list[float], list[int]]] = []
            for place, sentence in enumerate(alive):
                texts: list[Row] = []
                values: list[float] = []
                parents: list[int] = []
                ranked = zip(told[0][place], told[1][place], strict=True)
                for rank, (value, cell) in enumerate(ranked):
                    beam, token = divmod(cell, width)
                    if token in signs.ends:
                        if rank < beams:
                            score = value / (at + 1) ** length_penalty
                            ended[sentence].append((score, kept[place][beam]))
                        continue
                    texts.append((*kept[place][beam], token))
                    values.append(value)
                    parents.append(place * beams + beam)
                    if len(texts) == beams:
                        break
                if len(ended[sentence]) < beams:
                    going.append(sentence)
                    following.append((texts, values, parents))
                    rows += parents
            if not going:
                break
            writer.keep(to_device(torch.tensor(rows), model))
            kept = [texts for texts, _, _ in following]
            scores = to_device(torch.tensor([values for _, values, _ in following]), model)
            tokens = to_device(torch.tensor([text[-1] for texts in kept for text in texts]), model)
            alive = going
        else:
            for place, sentence in enumerate(alive):
                values = to_host(scores[place] / most**length_penalty).tolist()
                ended[sentence] += list(zip(values, kept[place], strict=True))
    return [max(outputs, key=lambda pair: pair[0])[1] for outputs in ended]
