"""The embedded masked language model: MiniLM's body, and a head tied to its embeddings, trained on reviews.

No registry has a masked language model, so `unfooled resources build masked-lm --minutes N` learns one from
the plain text of the movie reviews: sentences and stretches of documents, a quarter of the whole words
masked, only masked places through the head, AdamW. The head's bias starts at the words' frequencies.
`minutes` is the whole training time: what was trained before counts, so a stopped build goes on and a
finished one can be lengthened. The batches follow from the seed and the step alone.
"""

from __future__ import annotations

import json
import time
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unfooled.errors import ResourceError
from unfooled.extras import libraries_of
from unfooled.passes import placed, to_device, to_host
from unfooled.resources import review_text
from unfooled.resources.encoders import quiet
from unfooled.resources.fillmask import FillMaskOracle, MaskedLM, MaskItem, whole_words
from unfooled.resources.store import Progress, Store, digest_of, silent
from unfooled.stopwords import STOPWORDS

NAME = "masked-lm"
MINUTES = 20.0
BATCH = 768  # tokens per step
LONGEST = 80  # tokens per text
MASKED = 0.25  # share of the whole words
PEAK, PEAK_OF_HEAD = 3e-4, 1e-3  # learning rates
WARM_UP = 60  # steps
DECAY_FROM = 0.6  # of the time; from there the learning rate falls to a twentieth
_SAVE_EVERY = 180.0  # seconds
_CHECKED = 1000  # held-out words


@dataclass
class State:
    """How far the training is."""

    step: int = 0
    seconds: float = 0.0
    tokens: int = 0


def build(
    store: Store, folder: Path, progress: Progress = silent, *, minutes: float = MINUTES
) -> dict[str, Any]:
    """Train up to `minutes` in all and write the model into `folder`; returns what is worth recording."""
    if not minutes > 0:
        raise ResourceError(f"--minutes {minutes} is no time to train in", "give a number above 0")
    _require_libraries()
    work = store.work_folder(NAME)
    work.mkdir(parents=True, exist_ok=True)
    with only_one(work / "lock"), quiet():
        progress("reading reviews", None)
        texts = review_text.read(store.path("movie-reviews"))
        training = MaskedLmTraining(store.path("minilm"), texts, work)
        training.run(minutes * 60, progress)
        progress("checking on held-out words", None)
        training.save(folder)
        model = MaskedLM(training.model, training.tokenizer)
        facts = accuracy(model, held_out_gaps(texts.held_out, set(model.vocabulary.words), _CHECKED))
    state = training.state
    trained = {"minutes": round(state.seconds / 60, 1), "steps": state.step, "tokens": state.tokens}
    return trained | facts | {"digest": digest_of(folder)}


@contextmanager
def only_one(path: Path) -> Iterator[None]:
    """Two trainings at once would overwrite each other's checkpoints. The system lets go when we end."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        yield
        return
    with path.open("w") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ResourceError(
                f"another process is training {NAME}", "wait for it to end, then repeat the command"
            ) from error
        yield


class MaskedLmTraining:
    """A model under training, with a checkpoint in `work`."""

    def __init__(self, source: Path, texts: review_text.Texts, work: Path, *, seed: int = 0) -> None:
        import torch
        import transformers

        self.texts, self.work, self.seed = texts, work, seed
        torch.manual_seed(seed)
        self._source = source
        self.tokenizer = self._read_tokenizer()
        self.model: Any = transformers.AutoModelForMaskedLM.from_pretrained(
            str(source), local_files_only=True, trust_remote_code=False
        )
        self.model = placed(self.model)
        self.model.eval()  # no dropout: no text is seen often enough to be learned by heart
        tokens = self.tokenizer.convert_ids_to_tokens(list(range(len(self.tokenizer))))
        self._inner = np.array([str(token).startswith("##") for token in tokens])
        self._whole = np.isin(np.arange(len(tokens)), whole_words(self.tokenizer, len(tokens)).ids)
        self.state = State()
        self.optimizer = torch.optim.AdamW(self._groups(), betas=(0.9, 0.98), weight_decay=0.01, fused=True)
        if not self._restore():
            self._start_from_frequencies()

    def _read_tokenizer(self) -> Any:
        import transformers

        return transformers.AutoTokenizer.from_pretrained(
            str(self._source), local_files_only=True, trust_remote_code=False
        )

    def save(self, folder: Path) -> None:
        """Write the model as any other of its library; a used tokenizer would remember how it was used."""
        self.model.save_pretrained(folder)
        self._read_tokenizer().save_pretrained(folder)

    def run(self, seconds: float, progress: Progress) -> None:
        """Train until `seconds` of training are reached in all; a stop in between loses nothing."""
        before = self.state.seconds
        began = saved = time.perf_counter()
        loss = 0.0
        try:
            while self.state.seconds < seconds:
                share = self.state.seconds / seconds
                now = self._step(share)
                loss = 0.95 * loss + 0.05 * now if loss else now
                self.state.seconds = before + time.perf_counter() - began
                progress(
                    f"{self.state.step:,} steps, {self.state.seconds / 60:.1f} of {seconds / 60:g} min, "
                    f"perplexity {np.exp(loss):,.0f}",
                    min(1.0, self.state.seconds / seconds),
                )
                if time.perf_counter() - saved > _SAVE_EVERY:
                    self._save()
                    saved = time.perf_counter()
        finally:
            self._save()

    def _step(self, share: float) -> float:
        import torch

        ids, mask, labels = (to_device(part, self.model) for part in self._batch(self.state.step))
        rate = _rate(self.state.step, share)
        for group in self.optimizer.param_groups:
            group["lr"] = group["peak"] * rate
        hidden = self.model.base_model(input_ids=ids, attention_mask=mask)[0]
        places = labels >= 0
        logits = self.model.cls(hidden[places])
        loss: Any = torch.nn.functional.cross_entropy(logits, labels[places])
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.state.step += 1
        self.state.tokens += int(mask.sum())
        return float(loss.detach())

    def _batch(self, step: int) -> tuple[Any, Any, Any]:
        """Token ids, which of them are no padding, and the masked places' own ids (-1 elsewhere)."""
        import torch

        rng = np.random.default_rng([self.seed, step])
        rows = [np.array(row) for row in self._rows(rng, long=step % 2 == 1)]
        width = max(len(row) for row in rows)
        ids = np.full((len(rows), width), self.tokenizer.pad_token_id)
        for row, into in zip(rows, ids, strict=True):
            into[: len(row)] = row
        mask = np.arange(width) < np.array([[len(row)] for row in rows])
        masked = self._maskable(ids) & (rng.random(ids.shape) < MASKED)
        if not masked.any():
            masked = self._maskable(ids)
        labels = np.where(masked, ids, -1)
        ids = np.where(masked, self.tokenizer.mask_token_id, ids)
        return torch.from_numpy(ids), torch.from_numpy(mask.astype(np.int64)), torch.from_numpy(labels)

    def _rows(self, rng: np.random.Generator, *, long: bool) -> list[list[int]]:
        """Stretches of documents, all as long as is read; or single sentences of about the same length."""
        reviews = self.texts.learned
        # More than is needed, and then those of about the same length: little of a batch is padding.
        chosen = [
            reviews[i] for i in rng.integers(len(reviews), size=BATCH // LONGEST * 4 if long else BATCH // 2)
        ]
        starts = [int(rng.integers(len(review))) for review in chosen]
        if long:
            texts = [
                review_text.stretch(review, at, LONGEST) for review, at in zip(chosen, starts, strict=True)
            ]
        else:
            texts = [review[at] for review, at in zip(chosen, starts, strict=True)]
        rows: list[list[int]] = self.tokenizer(texts, truncation=True, max_length=LONGEST)["input_ids"]
        rows.sort(key=len)
        if long:
            return rows[-(BATCH // LONGEST) :]
        end = int(rng.integers(1, len(rows) + 1))
        while end < len(rows) and end * len(rows[end - 1]) < BATCH:
            end += 1
        return rows[max(0, end - max(1, BATCH // len(rows[end - 1]))) : end]

    def _maskable(self, ids: Any) -> Any:
        """Whole words, as the oracle will be asked for: no pieces, also not the first one."""
        followed = np.zeros(ids.shape, dtype=bool)
        followed[:, :-1] = self._inner[ids[:, 1:]]
        return self._whole[ids] & ~followed

    def _groups(self) -> list[dict[str, Any]]:
        """The head is new and learns faster than the body."""
        head = {id(parameter) for parameter in self.model.cls.predictions.transform.parameters()}
        body = [parameter for parameter in self.model.parameters() if id(parameter) not in head]
        new = list(self.model.cls.predictions.transform.parameters())
        return [{"params": body, "peak": PEAK}, {"params": new, "peak": PEAK_OF_HEAD}]

    def _start_from_frequencies(self) -> None:
        """A bias of log-frequencies: the model starts where counting words would end."""
        import torch

        sample = [
            " ".join(review)[:2000]
            for review in self.texts.learned[:: max(1, len(self.texts.learned) // 3000)]
        ]
        ids = np.concatenate(self.tokenizer(sample, add_special_tokens=False)["input_ids"]).astype(np.int64)
        counts = np.bincount(ids, minlength=int(self.model.config.vocab_size)) + 0.1
        with torch.no_grad():
            bias = torch.from_numpy(np.log(counts / counts.sum())).float()
            self.model.cls.predictions.bias.copy_(to_device(bias, self.model))

    # -- checkpoint --------------------------------------------------------------------------------

    def _save(self) -> None:
        """Weights, moments and the step, in one file that appears whole or not at all."""
        from safetensors.torch import save_file

        tensors = {f"model.{name}": to_host(parameter) for name, parameter in self.model.named_parameters()}
        for index, moments in self.optimizer.state_dict()["state"].items():
            tensors |= {f"moments.{index}.{name}": to_host(tensor) for name, tensor in moments.items()}
        partial = self.work / "state.partial"
        save_file(tensors, partial, metadata={"state": json.dumps(asdict(self.state))})
        partial.replace(self.work / "state.safetensors")

    def _restore(self) -> bool:
        """Go on from the checkpoint, if there is one."""
        path = self.work / "state.safetensors"
        if not path.is_file():
            return False
        try:
            self._read(path)
        except Exception as error:  # cut short, or of another model: the library raises nearly anything
            raise ResourceError(
                f"the checkpoint {path} cannot be used: {error}",
                f"start anew: unfooled resources build {NAME} --again",
            ) from error
        return True

    def _read(self, path: Path) -> None:
        import torch
        from safetensors import safe_open

        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
            self.state = State(**json.loads(file.metadata()["state"]))
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                parameter.copy_(tensors[f"model.{name}"])
        moments: dict[int, dict[str, Any]] = {}
        for name, tensor in tensors.items():
            kind, index, what = [*name.split(".", 2), ""][:3]
            if kind == "moments":
                moments.setdefault(int(index), {})[what] = tensor
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": moments})


def _rate(step: int, share: float) -> float:
    """Learning rate as a part of its peak: up over the first steps, level, down towards the end."""
    rate = min(1.0, (step + 1) / WARM_UP)
    if share > DECAY_FROM:
        rate *= max(0.05, (1 - share) / (1 - DECAY_FROM))
    return rate


def held_out_gaps(
    reviews: list[list[str]], known: Container[str], checked: int
) -> list[tuple[MaskItem, str]]:
    """Words of held-out texts that stand free and are in the vocabulary, each as a gap; drawn by seed."""
    gaps: list[tuple[MaskItem, str]] = []
    rng = np.random.default_rng(0)
    while len(gaps) < checked:
        review = reviews[int(rng.integers(len(reviews)))]
        tokens = review_text.stretch(review, int(rng.integers(len(review))), 40).split()
        at = int(rng.integers(len(tokens)))
        word = tokens[at].lower()
        if word.isalpha() and word in known:
            item = MaskItem(" ".join([*tokens[:at], ""]), " ".join(["", *tokens[at + 1 :]]), 50)
            gaps.append((item, word))
    return gaps


def accuracy(model: FillMaskOracle, gaps: Sequence[tuple[MaskItem, str]]) -> dict[str, Any]:
    """How often the word itself comes first, among the first 10 and among the first 50; and the same for
    words that are no stop words, which are what attacks ask for."""
    ranks = []
    for (_, word), answer in zip(gaps, model([item for item, _ in gaps]), strict=True):
        found = [fill.word.lower() for fill in answer]
        ranks.append(found.index(word) if word in found else 50)
    content = [rank for rank, (_, word) in zip(ranks, gaps, strict=True) if word not in STOPWORDS["english"]]
    facts: dict[str, Any] = {}
    for name, places in (("", ranks), ("content_", content)):
        facts |= {f"{name}words": len(places)}
        facts |= {f"{name}top_{k}": round(float(np.mean(np.array(places) < k)), 3) for k in (1, 10, 50)}
    return facts


def _require_libraries() -> None:
    with libraries_of(
        "torch", "safetensors", "torch", "transformers", needed_for="training a masked language model"
    ):
        import safetensors  # noqa: F401
        import torch  # noqa: F401
        import transformers  # noqa: F401
