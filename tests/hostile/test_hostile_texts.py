"""Hostile texts through every attack: no error without a name, no success that is none, no byte lost."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hostile import some
from hostile_texts import TEXTS, contents, example
from recheck import replayed, steps
from tiny_language_models import masked, save
from tiny_models import PIECES, tiny
from tiny_translation import victim as translator
from toys import Answering
from unfooled.attacks.parts.class_words import ClassWordsOracle
from unfooled.attacks.parts.goals import KeepLabel, only_class
from unfooled.attacks.parts.triggers import TriggerOracle
from unfooled.core.questions import Asked
from unfooled.core.recipe import Recipe, all_recipes, load_recipe
from unfooled.core.result import OUTCOMES, Example, Result
from unfooled.core.session import Session, Settings, fit_recipe, open_inside
from unfooled.core.victim_oracle import oracle_for
from unfooled.plugins import registry
from unfooled.report.diffs import pieces
from unfooled.resources import store
from unfooled.resources.class_words import ClassWords
from unfooled.translation.attempt import TextGoal
from unfooled.translation.oracles import WritingOracle

BUDGET = 30
ATTACKS = [recipe.full_name for recipe in all_recipes()]
# Stand-ins for what is large, slow or far away; the others are the real ones.
REAL = {
    "tag": "perceptron-tagger",
    "neighbours": "counter-fitted",
    "vectors": "counter-fitted",
    "wordnet": "wordnet",
    "fluency": "trigram",
}


CASES = [
    (attack, text)
    for attack in ATTACKS
    for text in contents(pairs=not isinstance(load_recipe(attack).goal, TextGoal))
]
CHOSEN = some(CASES, few=13)


@pytest.fixture(scope="session")
def language_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(masked(positions=64), tmp_path_factory.mktemp("masked"))


def attacked(name: str) -> Recipe:
    recipe = load_recipe(name)
    return recipe if isinstance(recipe.goal, TextGoal) else only_class(recipe, "any")


@cache
def victim_for(name: str) -> Any:
    """A real model of the kind that the attack needs. Bytes where anything will do: it reads every sign."""
    recipe = load_recipe(name)
    if isinstance(recipe.goal, TextGoal):
        return translator("seq2seq-transformer")
    inside = {oracle.partition(":")[0] for oracle in recipe.oracles()} & set(registry.names("inside"))
    kind = "bert" if inside - {"class-words", "trigger"} else "roberta"
    return undecided(tiny(kind, classes=2, positions=64, labels=("negative", "positive")))


def undecided(victim: Any) -> Any:
    """The same model with its last bias moved: the texts fall into both classes, many of them barely."""
    import torch

    texts = [text for text in TEXTS.values() if text.isprintable()]
    gaps = [float(np.log(row[1] / row[0])) for row in victim.predict(texts)]
    head = victim.model.classifier
    with torch.no_grad():
        getattr(head, "out_proj", head).bias[1] -= float(np.median(gaps))
    return victim


_shared: dict[str, Any] = {}


def shared(name: str, folder: Path) -> Any:
    """An oracle that does not know the victim, opened once."""
    kind, _, variant = name.partition(":")
    if name not in _shared:
        load = registry.load("oracle", kind)
        if kind == "fill":
            _shared[name] = load(str(folder))
        elif kind == "encode":
            _shared[name] = load("potion") if here("potion") else Answering(direction)
        elif kind == "datamuse":
            _shared[name] = Answering(lambda item: ("movie", "fine", f"{item[1]}s"))
        else:
            if kind in REAL and not here(REAL[kind]):
                pytest.skip(f"{REAL[kind]} is not here")
            _shared[name] = load(variant)
    return _shared[name]


def here(resource: str) -> bool:
    return {entry.name: entry.present for entry in store.status()}[resource]


def direction(text: str) -> np.ndarray:
    return np.array([1.0, len(text) % 7 / 100], dtype=np.float32)


def oracles_of(recipe: Recipe, victim: Any, folder: Path) -> dict[str, Any]:
    half = len(PIECES) // 2
    lists = [dict.fromkeys(PIECES[:half], 5), dict.fromkeys(PIECES[half:], 5)]
    words = ClassWords.of(("negative", "positive"), lists)
    found: dict[str, Any] = {}
    own = [name for name in recipe.oracles() if name.partition(":")[0] in registry.names("inside")]
    for name in recipe.oracles():
        if name.startswith("class-words"):
            found[name] = ClassWordsOracle(words, (0, 1))
        elif name.startswith("trigger"):
            found[name] = TriggerOracle({(0, -1): ("good", "fun"), (1, -1): ("bad", "dull")})
        elif name not in own:
            found[name] = shared(name, folder)
    if own and not any(name.startswith(("class-words", "trigger")) for name in own):
        found |= open_inside(recipe.oracles(), victim)
    found["victim"] = WritingOracle(victim) if isinstance(recipe.goal, TextGoal) else oracle_for(victim)
    return found


class Bench:
    """An attack with its victim; the texts that are tried here are attacked in one batch, once."""

    def __init__(self, name: str, folder: Path) -> None:
        self.victim = victim_for(name)
        self.recipe, _ = fit_recipe(attacked(name), self.victim)
        self.oracles = oracles_of(self.recipe, self.victim, folder)
        self.writes = isinstance(self.recipe.goal, TextGoal)
        self.names = list(contents(pairs=not self.writes))
        chosen = [self.names.index(text) for attack, text in CHOSEN if attack == name]
        together = {*chosen, self.names.index("plain"), self.names.index("casings")}
        self.examples = {key: self._example(key) for key in sorted(together)}
        self.together = {result.key: result for result in self.attack([*self.examples.values()])}

    def attack(self, examples: list[Example]) -> list[Result]:
        settings = Settings(budget=BUDGET, seed=1)
        session = Session(self.victim, self.recipe, settings, oracles=self.oracles)
        return list(session.attack(examples))

    def _example(self, key: int) -> Example:
        content = contents(pairs=not self.writes)[self.names[key]]
        if self.writes:
            return example(key, content, 0)
        try:
            label = int(self.ask(tuple(text for _, text in content)).argmax())
        except Exception:  # what the attack makes of it is what is tested
            label = 0
        return example(key, content, label)

    def ask(self, texts: tuple[str, ...]) -> Any:
        value = texts if len(texts) > 1 else texts[0]
        if self.writes:
            return self.oracles["victim"]([Asked(texts[0])])[0].output
        return self.oracles["victim"]([value])[0]


_benches: dict[str, Bench] = {}


def bench(name: str, folder: Path) -> Bench:
    if name not in _benches:
        _benches[name] = Bench(name, folder)
    return _benches[name]


@pytest.mark.hostile("texts, by every attack")
@pytest.mark.parametrize(("attack", "text"), CHOSEN, ids=["-".join(case) for case in CHOSEN])
def test_a_hostile_text(attack: str, text: str, language_model: Path) -> None:
    table = bench(attack, language_model)
    key = table.names.index(text)
    given = table.examples[key]
    (result,) = table.attack([given])
    check(result, given, table)
    assert result == table.together[key], "the same alone and beside all the others"


def check(result: Result, given: Example, table: Bench) -> None:
    assert result.outcome in OUTCOMES
    assert result.key == given.key
    assert result.fields[: len(given.content)] == given.content, "the original comes back byte for byte"
    assert result.queries <= BUDGET
    if result.outcome == "error":
        assert result.note.strip(), "an error names its cause"
        assert "Traceback" not in result.note
    if any("\ud800" <= char <= "\udfff" for _, text in given.content for char in text):
        assert (result.note, result.queries) == ("the text holds half of a surrogate pair", 0)
    if result.outcome in ("error", "skipped"):
        assert result.perturbed == result.original
        assert not result.edits
    unchanged(result)
    assert "".join(text for kind, text in pieces(result) if kind != "gone") == result.perturbed
    assert [text for kind, text in pieces(result) if kind == "gone"] == [
        edit.before for edit in result.edits if edit.before
    ]
    if result.outcome == "success":
        assert result.perturbed != result.original
        confirm(result, given, table)


def unchanged(result: Result) -> None:
    """Undone one after the other, the edits lead back to the original, every byte between them untouched.

    Where words were taken out, the blank that went with each is not kept: made again, the edits lead there.
    """
    if any(edit.kind == "delete" for edit in result.edits):
        assert replayed(result) == result.perturbed
    else:
        steps(result)


def confirm(result: Result, given: Example, table: Bench) -> None:
    """The victim, asked again, decides otherwise than before."""
    after = tuple(
        result.perturbed if place == result.field else text for place, (_, text) in enumerate(given.content)
    )
    if table.writes:
        assert table.ask(after) == result.perturbed_output
        return
    row = table.ask(after)
    kept = isinstance(table.recipe.goal, KeepLabel)  # what this one wants
    assert (int(row.argmax()) == given.label) == kept
    assert row.tolist() == list(result.perturbed_probs)
