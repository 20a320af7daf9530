"""Any encoder-decoder of transformers as a victim that writes text: Marian, T5, our own LSTM and others."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from unfooled.batching import Meter
from unfooled.core.questions import Asked, Forced, Written
from unfooled.core.victim import (
    SPECIMEN,
    Reloadable,
    TextValue,
    Victim,
    digest,
    digest_files,
    options_of,
    require_not_negative,
    require_positive,
)
from unfooled.device import FULL
from unfooled.errors import VictimError
from unfooled.passes import OnDevice, answering, placed, precision_of, to_device, to_host
from unfooled.translation.decoding import (
    Row,
    Signs,
    longest_output,
    signs_of,
    write_greedily,
    write_with_beam,
)
from unfooled.translation.inside import WORDS, LooksInside, in_groups
from unfooled.victims.torch.hooks import make_steady
from unfooled.victims.torch.huggingface import HASHED, longest_input, tokens_per_pass
from unfooled.victims.torch.pretrained import load_pretrained
from unfooled.victims.torch.quiet import quiet

DECIMALS = 4  # kept of a log-probability: float32 noise lies below


@runtime_checkable
class Translator(Victim, Protocol):
    """A victim that writes text. It has no labels, and `predict` refuses."""

    def write(self, asked: Sequence[Asked], /) -> list[Written]: ...


class TranslatorVictim(LooksInside, OnDevice, Reloadable):
    """A model and its tokenizer. Sentences of equal length share a pass, and nothing is padded.

    `beams=1` writes greedily. `prefix` stands before every text ("translate English to German: " for T5);
    the languages are codes that a multilingual tokenizer knows. `max_tokens` bounds the tokens of a pass.
    """

    batch_size = 4096
    labels: tuple[str, ...] = ()

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        name: str = "",
        folder: Path | None = None,
        max_length: int = 0,
        max_tokens: int = 0,
        beams: int = 1,
        length_penalty: float = 1.0,
        prefix: str = "",
        source_language: str = "",
        target_language: str = "",
    ) -> None:
        model = placed(model, given=True)
        self.model, self.tokenizer = model, tokenizer
        self.name = name or type(model).__name__
        self.folder = folder
        self.max_length = max_length or longest_input(model.config, tokenizer)
        self.max_tokens = max_tokens or tokens_per_pass(model, self.max_length)
        self.beams, self.length_penalty, self.prefix = beams, length_penalty, prefix
        self.languages = (source_language, target_language)
        self.meter = Meter()
        self.truncated = 0
        self.signs = self._signs()
        self._fingerprint = ""
        self._capabilities: frozenset[str] | None = None
        make_steady(model)

    @property
    def capabilities(self) -> frozenset[str]:
        """Tried out when first asked for."""
        if self._capabilities is None:
            found = {"translations", "embeddings"}
            if getattr(self.tokenizer, "is_fast", False):
                found.add("gradients")  # which token belongs to which word is known
            try:
                with quiet():
                    self.attention([(SPECIMEN, SPECIMEN)])
                found.add("attention")
            except Exception:
                found.discard("attention")  # it writes all the same
            self._capabilities = frozenset(found)
        return self._capabilities

    def predict(self, texts: Sequence[TextValue], /) -> Any:
        raise VictimError(
            f"{self.name} writes text and knows no classes",
            "attack it with targeted-keyword, typo, bleu-drop or non-overlapping",
        )

    def unread(self, texts: Sequence[TextValue], /) -> list[float]:
        """What share of each text's tokens lies behind the last one that the model reads."""
        asked = [self.prefix + (text if isinstance(text, str) else text[0]) for text in texts]
        whole = self.tokenizer(asked, return_attention_mask=False, verbose=False)["input_ids"]
        return [max(0, len(row) - self.max_length) / max(1, len(row)) for row in whole]

    def fingerprint(self) -> str:
        if not self._fingerprint:
            written = (self.beams, self.length_penalty, self.prefix, self.languages)
            settings: tuple[Any, ...] = (self.max_length, *written)
            if (precision := precision_of(self.model)) != FULL:
                settings = (*settings, precision)
            if self.folder is not None:
                files = {path for pattern in (*HASHED, WORDS) for path in self.folder.glob(pattern)}
                self._fingerprint = digest("seq2seq", digest_files(files), settings)
            else:
                state = self.model.state_dict()
                weights = [digest(key, state[key].detach().cpu().numpy().tobytes()) for key in sorted(state)]
                words = sorted(self.tokenizer.get_vocab().items())
                self._fingerprint = digest("seq2seq", *weights, words, settings)
        return self._fingerprint

    # -- writing -----------------------------------------------------------------------------------

    def write(self, asked: Sequence[Asked], /) -> list[Written]:
        """One output per text and, where a keyword is asked about, how near it is."""
        questions = [Asked(*question) for question in asked]
        texts = list(dict.fromkeys(question.text for question in questions))
        sources = dict(zip(texts, self._sources(texts), strict=True))
        rows = list(dict.fromkeys(sources.values()))
        tokens = dict(zip(rows, self._write(rows), strict=True))
        outputs = self.tokenizer.batch_decode([list(tokens[row]) for row in rows], skip_special_tokens=True)
        said = dict(zip(rows, (output.strip() for output in outputs), strict=True))
        near = [
            (sources[question.text], tokens[sources[question.text]], self._pieces(question.keyword))
            for question in questions
            if question.keyword
        ]
        nearness = iter(self._nearness(near))
        return [
            Written(said[sources[question.text]], next(nearness) if question.keyword else 0.0)
            for question in questions
        ]

    def translate(self, texts: Sequence[str], /) -> list[str]:
        return [written.output for written in self.write([Asked(text) for text in texts])]

    def nearness(self, items: Sequence[Forced], /) -> list[float]:
        """The best log-probability of each keyword over the places of a given output (teacher-forced)."""
        asked = [Forced(*item) for item in items]
        sources = self._sources([forced.text for forced in asked])
        along = {text: self._target(text) for text in dict.fromkeys(item.along for item in asked)}
        pieces = {keyword: self._pieces(keyword) for keyword in dict.fromkeys(item.keyword for item in asked)}
        return self._nearness(
            [
                (s, along[forced.along], pieces[forced.keyword])
                for s, forced in zip(sources, asked, strict=True)
            ]
        )

    def token_log_probs(self, pairs: Sequence[tuple[str, str]], /) -> list[tuple[float, ...]]:
        """The log-probability of each token of the given output, the end sign last (teacher-forced)."""
        sources = self._sources([source for source, _ in pairs])
        targets = [(*self._target(target), self.signs.ends[0]) for _, target in pairs]

        def run(chosen: list[int]) -> list[tuple[float, ...]]:
            import torch

            logs = self._logits([sources[i] for i in chosen], [targets[i][:-1] for i in chosen])
            logs = logs.log_softmax(dim=-1)
            wanted = to_device(torch.tensor([targets[i] for i in chosen]), self.model)
            found = to_host(logs.gather(-1, wanted.unsqueeze(-1)).squeeze(-1))
            return [tuple(round(value, DECIMALS) for value in row) for row in found.tolist()]

        lengths = [(len(s), len(t)) for s, t in zip(sources, targets, strict=True)]
        return in_groups(self, lengths, run)

    def _write(self, rows: Sequence[Row]) -> list[Row]:
        def run(chosen: list[int]) -> list[Row]:
            began = time.perf_counter()
            sources = [rows[i] for i in chosen]
            most = longest_output(len(sources[0]), self._longest)
            if self.beams > 1:
                found = write_with_beam(
                    self.model, self.signs, sources, most, self.beams, self.length_penalty
                )
            else:
                found = write_greedily(self.model, self.signs, sources, most)
            tokens = sum(map(len, sources)) + sum(map(len, found))
            self.meter.add(len(sources), tokens, 0, time.perf_counter() - began)
            return found

        # A beam keeps so many rows of each sentence alive.
        return in_groups(self, [(len(row),) for row in rows], run, copies=self.beams)

    def _nearness(self, items: Sequence[tuple[Row, Row, Row]]) -> list[float]:
        """Best over the places by the keyword's first piece; there, the sum over all of its pieces."""

        def first(chosen: list[int]) -> list[tuple[float, int]]:
            import torch

            sources, along = [items[i][0] for i in chosen], [items[i][1] for i in chosen]
            logits = self._logits(sources, along)
            pieces = to_device(torch.tensor([items[i][2][0] for i in chosen]), self.model)
            wanted = pieces[:, None, None].expand(-1, logits.shape[1], 1)
            logs = logits.gather(-1, wanted).squeeze(-1) - logits.logsumexp(dim=-1)
            best, places = logs.max(dim=-1)
            return list(zip(to_host(best).tolist(), to_host(places).tolist(), strict=True))

        lengths = [(len(source), len(along) + 1) for source, along, _ in items]
        begun = in_groups(self, lengths, first)
        longer = [i for i, item in enumerate(items) if len(item[2]) > 1]

        def rest(chosen: list[int]) -> list[float]:
            import torch

            numbers = [longer[i] for i in chosen]
            sources = [items[i][0] for i in numbers]
            along = [(*items[i][1][: begun[i][1]], *items[i][2][:-1]) for i in numbers]
            places = [begun[i][1] for i in numbers]
            logs = self._logits(sources, along).log_softmax(dim=-1)
            found = []
            for row, (i, place) in enumerate(zip(numbers, places, strict=True)):
                pieces = to_device(torch.tensor(items[i][2]), self.model)
                at = to_device(torch.arange(place, place + len(pieces)), self.model)
                found.append(logs[row, at, pieces].sum())
            return list(to_host(torch.stack(found)).tolist())

        lengths = [(len(items[i][0]), begun[i][1] + len(items[i][2])) for i in longer]
        values = [value for value, _ in begun]
        for i, value in zip(longer, in_groups(self, lengths, rest), strict=True):
            values[i] = value
        return [round(value, DECIMALS) for value in values]

    def _logits(self, sources: Sequence[Row], along: Sequence[Row]) -> Any:
        """What the model says at each place of given outputs, the place behind the last token included."""
        import torch

        began = time.perf_counter()
        with answering(self.model):
            decoder = torch.tensor([(self.signs.start, *row) for row in along])
            inputs = to_device({"input_ids": torch.tensor(sources), "decoder_input_ids": decoder}, self.model)
            out = self.model(**inputs, use_cache=False).logits.float()
        tokens = len(sources) * (len(sources[0]) + decoder.shape[1])
        self.meter.add(len(sources), tokens, 0, time.perf_counter() - began)
        return out

    # -- tokens ------------------------------------------------------------------------------------

    def _sources(self, texts: Sequence[str]) -> list[Row]:
        encoded = self.tokenizer(
            [self.prefix + text for text in texts], return_attention_mask=False, verbose=False
        )["input_ids"]
        found = []
        for row in encoded:
            if len(row) > self.max_length:
                self.truncated += 1
                ends = row[-1:] if row[-1] in self.signs.ends else []
                row = row[: self.max_length - len(ends)] + ends
            found.append(tuple(row))
        return found

    def _target(self, text: str) -> Row:
        """The tokens of an output, without the end sign and what a language puts first."""
        (row,) = self.tokenizer(text_target=[text], return_attention_mask=False, verbose=False)["input_ids"]
        special = {*self.signs.ends, *self.signs.never, self.signs.first, self.signs.start}
        return tuple(token for token in row if token not in special)[: self._longest - 1]

    def _pieces(self, keyword: str) -> Row:
        pieces = self._target(keyword)
        unknown = getattr(self.tokenizer, "unk_token_id", None)
        if not pieces or unknown in pieces:
            raise VictimError(f"{self.name} cannot write the keyword {keyword!r}", "choose another keyword")
        return pieces

    @property
    def _longest(self) -> int:
        return int(getattr(self.model.config, "max_position_embeddings", None) or 512) - 1

    def _signs(self) -> Signs:
        source, target = self.languages
        try:
            if source:
                self.tokenizer.src_lang = source
            signs = signs_of(self.model)
        except ValueError as error:
            raise VictimError(f"{self.name}: {error}", "use an encoder-decoder that was trained") from None
        if not target:
            return signs
        token = self.tokenizer.convert_tokens_to_ids(target)
        if token in (None, getattr(self.tokenizer, "unk_token_id", None)):
            raise VictimError(
                f"{self.name} knows no language {target!r}", "use the code that its tokenizer uses"
            )
        return signs._replace(first=int(token))


def is_translator(config: Any) -> bool:
    """Whether a configuration is that of a model that writes text."""
    kinds = " ".join(map(str, getattr(config, "architectures", None) or ()))
    return bool(config.is_encoder_decoder) and "Classif" not in kinds


@options_of(TranslatorVictim, without=("folder",))
def load(
    rest: str, *, labels: Sequence[str] | None = None, trust_pickle: bool = False, **options: Any
) -> TranslatorVictim:
    """`FOLDER` or `ORGANISATION/NAME` of an encoder-decoder"""
    require_not_negative(**{name: options[name] for name in ("max_length", "max_tokens", "length_penalty")})
    require_positive(beams=options["beams"])
    if labels:
        raise VictimError(f"{rest} writes text and has no classes", "leave --labels out")
    loaded = load_pretrained(
        rest,
        "AutoModelForSeq2SeqLM",
        purpose="translation model",
        register=_register_networks,
        require_config=partial(_require_translator, name=rest),
        trust_pickle=trust_pickle,
    )
    options["name"] = options["name"] or Path(rest).expanduser().name
    return TranslatorVictim(loaded.model, loaded.tokenizer, folder=loaded.folder, **options)


def _register_networks() -> None:
    from unfooled.translation import networks

    networks.register()


def _require_translator(config: Any, name: str) -> None:
    if not is_translator(config):
        raise VictimError(
            f"{name} is no encoder-decoder that writes text", f"load it as a classifier: hf:{name}"
        )
