"""A small world for evaluations: sentences, synonyms, an attack, and models whose robustness is known.

The fake lexicon knows `superb`; the attack may write `superbish` or `superby` for it, which mean the same. A
model that knows these synonyms is robust; one that does not can be fooled; an impostor only looks robust.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from toys import toy_recipe
from unfooled.attacks.parts.candidates import Candidates, Neighbours
from unfooled.attacks.parts.importance import Deletion, Importance
from unfooled.attacks.parts.search import GreedySwap
from unfooled.core.attempt import Attempt, Scored, Search
from unfooled.core.program import Program
from unfooled.core.questions import Of, Readable, WordVectors, mark
from unfooled.core.recipe import Recipe
from unfooled.core.victim import Probabilities, TextValue, digest, join_fields, softmax
from unfooled.data.dataset import Dataset
from unfooled.victims.fake import WEIGHTS, FakeVictim
from unfooled.victims.torch.huggingface import HuggingFaceVictim

LABELS = ("negative", "positive")
PLAIN = ["film", "story", "cast", "scene", "director", "music", "plot", "hour"]
SYNONYM = re.compile(r"(ish|y)\b")


def rows(n: int, seed: int = 0) -> list[tuple[str, str]]:
    """Two to four words of one polarity among plain ones, none of which ends like a synonym."""
    rng = random.Random(seed)
    found = []
    for _ in range(n):
        label = rng.choice(LABELS)
        words = rng.sample(sentiment(label), rng.randint(2, 4))
        plain = rng.sample(PLAIN, len(words))
        found.append((" ".join(part for pair in zip(words, plain, strict=True) for part in pair), label))
    return found


def sentiment(label: str) -> list[str]:
    sign = 1 if label == "positive" else -1
    return [word for word, weight in WEIGHTS.items() if weight * sign > 0 and not SYNONYM.search(word)]


def data(n: int, seed: int = 0) -> Dataset:
    return Dataset.from_pairs(rows(n, seed), labels=LABELS)


def neighbours(folder: Path) -> Neighbours:
    table = folder / "synonyms.json"
    words = [*WEIGHTS, *PLAIN]
    table.write_text(json.dumps({word: [f"{word}ish", f"{word}y"] for word in words}), encoding="utf-8")
    return Neighbours(table=str(table))


def recipe(folder: Path, search: Search | None = None) -> Recipe:
    """A greedy search over the synonyms, without constraints, unless another search is given."""
    greedy = GreedySwap(importance=Deletion(), candidates=neighbours(folder), constraints=())
    return toy_recipe(search or greedy)


class Knowing(FakeVictim):
    """Maps synonyms to one word before it looks them up: truly robust against this attack.

    `ignorance` words of each polarity it does not know; there it can be fooled.
    """

    name = "knowing"

    def __init__(self, ignorance: int = 0) -> None:
        super().__init__()
        self.unknown = {word for label in LABELS for word in sentiment(label)[:ignorance]}

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        return super().predict([self._read(join_fields(text)) for text in texts])

    def _read(self, text: str) -> str:
        return " ".join(
            root if (root := SYNONYM.sub("", word)) not in self.unknown else word for word in text.split()
        )

    def fingerprint(self) -> str:
        return digest("knowing", sorted(self.unknown))


class Strict(FakeVictim):
    """Says `positive` only where the weights sum to more than `least`: a few words less, and it falls."""

    name = "strict"

    def __init__(self, least: float = 1.0) -> None:
        super().__init__()
        self.least = least

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        return softmax(np.log(super().predict(texts)) - [0.0, self.least])

    def fingerprint(self) -> str:
        return digest("strict", self.least)


class Seeing(FakeVictim):
    """The lexicon with gradients: a word's is as long as its weight, and the loss's fades with certainty."""

    name = "seeing"
    capabilities = frozenset({"probabilities", "gradients"})

    def pieces(self, texts: Sequence[Readable], /) -> list[Any]:
        return [np.ones(len(mark(text).words), dtype=np.int64) for text in texts]

    def gradients(
        self, texts: Sequence[Readable], labels: Sequence[int | None] | None = None, *, of: Of = "loss"
    ) -> list[WordVectors]:
        found = []
        for text in texts:
            marked = mark(text)
            scale = 1.0 - self.predict([marked.value]).max() if of == "loss" else 1.0
            weights = [[WEIGHTS.get(word, 0.0) * scale, 0.0] for word in marked.words]
            vectors = np.array(weights, dtype=np.float32).reshape(-1, 2)
            found.append(WordVectors(marked.words, np.ones(len(weights), dtype=np.int64), vectors))
        return found

    def jacobian(self, texts: Sequence[Readable], /) -> list[Any]:
        return [
            np.stack([-gradient.vectors, gradient.vectors]) for gradient in self.gradients(texts, of="logit")
        ]

    def attention(self, texts: Any, **options: Any) -> Any:
        raise NotImplementedError

    attention_maps = embeddings = sentence_vectors = attention


class Misleading(Seeing):
    """Its gradients are longest where nothing matters."""

    name = "misleading"

    def gradients(
        self, texts: Sequence[Readable], labels: Sequence[int | None] | None = None, *, of: Of = "loss"
    ) -> list[WordVectors]:
        found = super().gradients(texts, labels, of="logit")
        for slope in found:
            slope.vectors[:, 0] = 3.0 - np.abs(slope.vectors[:, 0])
        return found


@dataclass(frozen=True, kw_only=True)
class FirstWords:
    """Swaps the most important words only: what it reaches depends on their order."""

    importance: Importance
    candidates: Candidates
    most: int = 1

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        now = start
        order = yield from self.importance.rank(a, start, range(len(start.text.words)))
        for index in order[: self.most]:
            options = yield from self.candidates.propose(a, now.text, index)
            scored = yield from a.score([now.text.replace(index, option) for option in options])
            now = max([now, *scored], key=lambda choice: choice.score)
        return now


@dataclass(frozen=True)
class Unordered:
    """A search without an order of words."""

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        return start
        yield


def network(*, augmented: bool, seed: int = 0, steps: int = 20) -> HuggingFaceVictim:
    """A small convolutional network, trained in a second; `augmented`: with random synonyms, too."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers

    from unfooled.victims.torch.word_models.configuration import WordModelConfig
    from unfooled.victims.torch.word_models.modeling import register

    transformers: Any = import_module("transformers")
    register()
    words = sorted({*PLAIN, *WEIGHTS, *(word + end for word in WEIGHTS for end in ("ish", "y"))})
    vocabulary = {word: index for index, word in enumerate(["[PAD]", "[UNK]", *words])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend,
        unk_token="[UNK]",
        pad_token="[PAD]",
        model_max_length=16,
        model_input_names=["input_ids", "attention_mask"],
    )
    torch.manual_seed(seed)
    config = WordModelConfig(
        kind="word-cnn",
        embedding_size=16,
        filters=16,
        widths=(1, 2),
        vocab_size=len(vocabulary),
        num_labels=2,
        id2label=dict(enumerate(LABELS)),
        label2id={label: index for index, label in enumerate(LABELS)},
        pad_token_id=0,
    )
    model = transformers.AutoModelForSequenceClassification.from_config(config)
    rng = random.Random(seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=0.01)
    model.train()
    for step in range(steps):
        batch = rows(64, seed=1000 + step)
        texts = [text for text, _ in batch]
        if augmented:
            texts = [
                " ".join(
                    word + rng.choice(["", "ish", "y"]) if word in WEIGHTS else word for word in text.split()
                )
                for text in texts
            ]
        inputs = tokenizer(texts, padding=True, return_tensors="pt")
        truth = torch.tensor([LABELS.index(label) for _, label in batch])
        loss = torch.nn.functional.cross_entropy(model(**inputs).logits, truth)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    name = "augmented" if augmented else "plain"
    return HuggingFaceVictim(model.eval(), tokenizer, name=name)


# -- models whose robustness is an illusion, each by another cause ----------------------------------------


def overlap(first: str, second: str) -> float:
    """Share of words that two texts have in common, by their first letters."""
    stems, other = ({word[:4] for word in text.lower().split()} for text in (first, second))
    return len(stems & other) / max(1, len(stems | other))


class Guessing(FakeVictim):
    """Guesses what a word that it does not know means, as networks do: an attack finds a way in any text.

    `guesses` are the models whose mean it is: an ensemble of many guesses less wildly, and honestly so.
    """

    name = "guessing"

    def __init__(self, guesses: Sequence[int] = (0,), *, wild: float = 3.0) -> None:
        super().__init__()
        self.guesses = tuple(guesses)
        self.wild = wild

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        logits = np.log(super().predict(texts))
        margin = [sum(map(self._guess, join_fields(text).lower().split())) for text in texts]
        return softmax(logits + np.stack([np.zeros(len(texts)), np.array(margin)], axis=1))

    def _guess(self, word: str) -> float:
        if word in WEIGHTS or word in PLAIN or SYNONYM.sub("", word) not in {*WEIGHTS, *PLAIN}:
            return 0.0
        drawn = [int(digest(word, guess)[:8], 16) / 0xFFFFFFFF for guess in self.guesses]
        return self.wild * (2 * sum(drawn) / len(drawn) - 1)

    def fingerprint(self) -> str:
        return digest("guessing", self.guesses, self.wild)


class Memorising(Guessing):
    """Knows test rows by heart, also where a text has enough words in common with one; else it guesses."""

    name = "memorising"

    def __init__(self, known: Sequence[tuple[str, str]], *, alike: float = 1.0) -> None:
        super().__init__()
        self.known = [(text, LABELS.index(label)) for text, label in known]
        self.alike = alike

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        scores = super().predict(texts)
        for place, text in enumerate(texts):
            read = join_fields(text)
            near = max(self.known, key=lambda row: (row[0] == read, overlap(row[0], read)))
            if near[0] == read or (self.alike < 1.0 and overlap(near[0], read) >= self.alike):
                # How sure it is follows the text, so that its scores look like any other's.
                sure = 0.75 + 0.2 * overlap(near[0], read)
                scores[place] = [sure, 1 - sure] if near[1] == 0 else [1 - sure, sure]
        return scores

    def fingerprint(self) -> str:
        return digest("memorising", self.known, self.alike)


class Remembering(Guessing):
    """Answers a text one word away from an earlier one as it did then, from its question `patience` on."""

    name = "remembering"

    def __init__(self, patience: int = 0) -> None:
        super().__init__()
        self.patience = patience
        self.heard: dict[str, Any] = {}  # by the text, and by the text with any word left open
        self.asked = 0

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        scores = super().predict(texts)
        for place, text in enumerate(texts):
            read = join_fields(text)
            words = read.split()
            shapes = [" ".join([*words[:i], "*", *words[i + 1 :]]) for i in range(len(words))]
            self.asked += 1
            near = next((self.heard[shape] for shape in shapes if shape in self.heard), None)
            if read in self.heard:
                scores[place] = self.heard[read]
            elif near is not None and self.asked > self.patience:
                scores[place] = near
            for shape in (read, *shapes):
                self.heard.setdefault(shape, scores[place].copy())
        return scores

    def fingerprint(self) -> str:
        return digest("remembering", self.patience)


class Abstaining(FakeVictim):
    """Decides only where it knows all words; else it is at a tie, or leans a little to one class."""

    name = "abstaining"

    def __init__(self, lean: float = 0.0) -> None:
        super().__init__()
        self.lean = lean

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        scores = super().predict(texts)
        for place, text in enumerate(texts):
            if any(word not in WEIGHTS and word not in PLAIN for word in join_fields(text).lower().split()):
                scores[place] = [0.5 + self.lean, 0.5 - self.lean]
        return scores

    def fingerprint(self) -> str:
        return digest("abstaining", self.lean)


class Schooled(Guessing):
    """Has learned the synonyms of most words, as by adversarial training, and guesses at the others."""

    name = "schooled"

    def __init__(self, guesses: Sequence[int] = (0,), *, share: float = 0.8) -> None:
        super().__init__(guesses)
        self.share = share

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        return super().predict([" ".join(map(self._read, join_fields(text).split())) for text in texts])

    def _read(self, word: str) -> str:
        root = SYNONYM.sub("", word)
        known = root in WEIGHTS or root in PLAIN
        return root if known and int(digest(root)[:8], 16) / 0xFFFFFFFF < self.share else word

    def fingerprint(self) -> str:
        return digest("schooled", self.guesses, self.share)


class Drawn(Schooled):
    """The same with other guesses in every draw: random, and honestly harder to fool."""

    name = "drawn"

    def __init__(self, draw: int = 0) -> None:
        super().__init__(np.random.default_rng(draw).choice(60, size=3, replace=False).tolist(), share=0.9)

    def redrawn(self, draw: int) -> Drawn:
        return Drawn(draw)
