"""Fluency and grammar: what the oracles say, and what the constraints make of it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toys import Answering, attack_one, encoder, linear, neighbours, toy_recipe
from unfooled.attacks.parts.candidates import Neighbours
from unfooled.attacks.parts.constraints import NextText
from unfooled.attacks.parts.fluency import Fluency, Grammar
from unfooled.attacks.parts.goals import Untargeted
from unfooled.attacks.parts.importance import Deletion
from unfooled.attacks.parts.search import GreedySwap
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program
from unfooled.core.recipe import load_part, load_recipe, recipe_from_json, with_constraint
from unfooled.errors import MissingExtraError, ResourceError, UnknownNameError
from unfooled.plugins import registry
from unfooled.resources import grammar, store
from unfooled.resources.fluency import Score, open_fluency
from unfooled.resources.grammar import HarperChecker, open_grammar
from unfooled.text import Text

TEXTS = ["the film is good", "the movie was not good", "the", "", "film the good is", "a b c d e f g h"]


# -- a causal language model ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def network() -> tuple[Any, Any]:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tiny_language_models import causal

    return causal()


def test_perplexity_is_that_of_the_library(network: tuple[Any, Any]) -> None:
    import torch

    from unfooled.resources.causal import CausalLM

    model, tokenizer = network
    for text, score in zip(TEXTS, CausalLM(model, tokenizer)(TEXTS), strict=True):
        ids = [tokenizer.bos_token_id, *tokenizer(text, add_special_tokens=False)["input_ids"]]
        assert score.units == len(ids) - 1
        if score.units:
            with torch.inference_mode():
                loss = float(model(input_ids=torch.tensor([ids]), labels=torch.tensor([ids])).loss)
            assert score.per_unit == pytest.approx(-loss, abs=1e-4)
            assert score.perplexity == pytest.approx(math.exp(loss), rel=1e-3)
        else:
            assert score == Score(0.0, 0)


def test_company_does_not_matter(network: tuple[Any, Any]) -> None:
    from unfooled.resources.causal import CausalLM

    alone = {text: CausalLM(*network)([text])[0] for text in TEXTS}
    rng = np.random.default_rng(1)
    for max_tokens in (8, 100, 1024):
        model = CausalLM(*network, max_tokens=max_tokens)
        for size in (3, 20):
            chosen = [TEXTS[i] for i in rng.integers(len(TEXTS), size=size)]
            assert model(chosen) == [alone[text] for text in chosen]
    assert model([]) == []
    assert model.meter.items > 0


def test_long_texts_are_read_up_to_the_window(network: tuple[Any, Any]) -> None:
    from unfooled.resources.causal import CausalLM

    model = CausalLM(*network)
    assert model.window == 64
    long, longer = model(["the film is good " * 60, "the film is good " * 80])
    assert long == longer
    assert long.units == 63


def test_opening_a_causal_model(
    network: tuple[Any, Any], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from tiny_language_models import masked, save
    from unfooled.resources.causal import CausalLM

    folder = save(network, tmp_path / "causal")
    capfd.readouterr()
    opened = registry.load("oracle", "fluency")(str(folder))
    assert opened(TEXTS) == CausalLM(*network)(TEXTS)
    assert capfd.readouterr() == ("", "")
    assert len(registry.load("fingerprint", "fluency")(str(folder))) == 64
    with pytest.raises(ResourceError, match="no folder"):
        open_fluency("./nothing")
    with pytest.raises(ResourceError, match="hub did not give it"):
        open_fluency("nobody/nothing-here")
    with pytest.raises(ResourceError, match="causal language"):
        open_fluency(str(save(masked("distilbert"), tmp_path / "masked")))


def test_a_model_without_start_and_end(network: tuple[Any, Any]) -> None:
    from tiny_models import words
    from unfooled.resources.causal import CausalLM

    class Config:
        bos_token_id = None
        max_position_embeddings = 8
        model_type = "gpt2"
        pad_token_id = 0

    class Model:
        config = Config()

        def to(self, device: str) -> Model:
            return self

    with pytest.raises(ResourceError, match="neither a start nor an end"):
        CausalLM(Model(), words())


@pytest.mark.slow
@pytest.mark.skipif(not store.has("smollm2"), reason="needs: unfooled resources get smollm2")
def test_smollm2_tells_english_from_nonsense() -> None:
    scores = open_fluency("smollm2")(
        [
            "The film is a fine piece of work, and the actors are good.",
            "The film is a fine piece of toil, and the actors are benign.",
            "work film The fine good are actors and is piece a the of.",
        ]
    )
    fluent, odd, shuffled = (score.perplexity for score in scores)
    assert fluent < odd < shuffled


# -- grammar ---------------------------------------------------------------------------------------


def test_the_grammar_checker_counts() -> None:
    pytest.importorskip("harper")
    checker = open_grammar("harper")
    right, wrong = "He has gone to the store.", "He have went to the store."
    none, some = checker([right, wrong])
    assert none < some
    assert checker([wrong, right, wrong]) == [some, none, some]
    assert checker([]) == []
    assert registry.load("fingerprint", "grammar")("harper").startswith("harper 0.")


def test_grammar_checkers_have_names() -> None:
    with pytest.raises(UnknownNameError, match="did you mean harper"):
        open_grammar("harpr")


def test_a_missing_checker_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "harper", None)
    grammar._linter.cache_clear()
    with pytest.raises(MissingExtraError, match=r"unfooled\[language\]"):
        open_grammar()
    monkeypatch.setattr(grammar, "_PACKAGE", "no-such-package")
    with pytest.raises(MissingExtraError, match=r"unfooled\[language\]"):
        grammar.fingerprint("harper")


def test_a_checker_sees_one_text_at_a_time() -> None:
    class Linter:
        def lint(self, text: str) -> list[str]:
            return text.split()

    assert HarperChecker(Linter())(["a b", "", "c"]) == [2, 0, 1]


# -- constraints -------------------------------------------------------------------------------------

LIKELY = {"good": -1.0, "fine": -2.0, "okay": -4.0, "gnarly": -9.0}


def by_word(text: str) -> Score:
    found = [LIKELY.get(word.strip(".,"), -1.0) for word in text.split()]
    return Score(sum(found), len(found))


def allowed(constraint: Any, now: Text, options: Sequence[NextText], oracle: Any) -> list[str]:
    original = now.root
    attempt = Attempt(original, 1, Untargeted(), key=0, seed=0)
    program = constraint.allow(attempt, Scored(now, np.array([0.1, 0.9]), 0.1, False), options)
    try:
        asks = next(program)
        assert [ask.oracle for ask in asks] == list(constraint.asks)
        program.send([[oracle(item) for item in ask.items] for ask in asks])
    except StopIteration as stop:
        return [option.word for option in stop.value]
    raise AssertionError("one round of questions is enough")


def swaps(text: Text, index: int, words: Sequence[str]) -> list[NextText]:
    return [NextText(text.replace(index, word), index) for word in words]


WORDS = ["fine", "okay", "gnarly"]


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        (Fluency(1.0), ["fine"]),
        (Fluency(3.0), ["fine", "okay"]),
        (Fluency(8.0), WORDS),
        (Fluency(2.9), ["fine"]),
        (Fluency(0.75, measure="per-unit"), ["fine", "okay"]),  # three nats over four words
        (Fluency(0.74, measure="per-unit"), ["fine"]),
        (Fluency(0.8, measure="perplexity"), ["fine"]),  # e^1.25 - e^1 = 0.772; e^1.75 - e^1 = 3.04
        (Fluency(3.1, measure="perplexity"), ["fine", "okay"]),
        (Fluency(1.5, measure="per-unit", window=2), ["fine", "okay"]),  # three nats over two words
        (Fluency(1.4, measure="per-unit", window=2), ["fine"]),
    ],
)
def test_fluency_by_hand(constraint: Fluency, expected: list[str]) -> None:
    text = Text("the film is good")
    assert allowed(constraint, text, swaps(text, 3, WORDS), by_word) == expected


def test_edits_add_up_against_the_original() -> None:
    now = Text("good film, good plot").replace(0, "okay")
    options = swaps(now, 2, WORDS)
    assert allowed(Fluency(4.0), now, options, by_word) == ["fine"]
    assert allowed(Fluency(4.0, against="current"), now, options, by_word) == ["fine", "okay"]


def test_an_inserted_word_costs_its_own_probability() -> None:
    text = Text("the film is good")
    options = [NextText(text.insert(3, word), 3, inserted=True) for word in WORDS]
    assert allowed(Fluency(4.0), text, options, by_word) == ["fine", "okay"]
    # Mean over the text: (-4 - 4) / 5 against -1.
    assert allowed(Fluency(0.6, measure="per-unit"), text, options, by_word) == ["fine", "okay"]
    assert allowed(Fluency(0.6, measure="per-unit", window=3), text, options, by_word) == ["fine"]
    last = [NextText(text.insert(4, word), 4, inserted=True) for word in WORDS]
    for against in ("original", "current"):
        kept = allowed(Fluency(0.0, window=1, against=against), text, last, by_word)
        assert kept == []


def test_the_window_of_an_insertion_is_compared_with_what_stood_there_before() -> None:
    """Not with a window of as many words: the one that drops out would pay for the new one."""
    text = Text("the dim film is good")
    options = [NextText(text.insert(3, word), 3, inserted=True) for word in WORDS]
    # "film fine is" against "film is": the new word alone costs 2, 4 and 9.
    for against in ("original", "current"):
        assert allowed(Fluency(1.9, window=3, against=against), text, options, by_word) == []
        assert allowed(Fluency(4.0, window=3, against=against), text, options, by_word) == ["fine", "okay"]
    # An earlier insertion within the window costs against the original, and nothing against the present.
    now = text.insert(3, "fine")
    beside = [NextText(now.insert(4, word), 4, inserted=True) for word in WORDS]
    assert allowed(Fluency(4.0, window=3, against="original"), now, beside, by_word) == ["fine"]
    assert allowed(Fluency(4.0, window=3, against="current"), now, beside, by_word) == ["fine", "okay"]


def test_grammar_by_hand() -> None:
    errors = {"okay": 1, "gnarly": 2}

    def check(text: str) -> int:
        return sum(errors.get(word, 0) for word in text.split())

    text = Text("the film is good")
    assert allowed(Grammar(), text, swaps(text, 3, WORDS), check) == ["fine"]
    assert allowed(Grammar(1), text, swaps(text, 3, WORDS), check) == ["fine", "okay"]
    now = Text("good films are good").replace(0, "okay")
    assert allowed(Grammar(1), now, swaps(now, 3, WORDS), check) == ["fine"]
    assert allowed(Grammar(1, against="current", window=2), now, swaps(now, 3, WORDS), check) == [
        "fine",
        "okay",
    ]


def test_no_options_no_question() -> None:
    text = Text("the film is good")
    for constraint in (Fluency(1.0), Grammar()):
        assert allowed(constraint, text, [], by_word) == []


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: Fluency(1.0, measure="words"), "measure must be one of"),  # type: ignore[arg-type]
        (lambda: Fluency(1.0, against="now"), "against must be one of"),  # type: ignore[arg-type]
        (lambda: Fluency(1.0, window=0), "window is at least 1"),
        (lambda: Grammar(against="now"), "against must be one of"),  # type: ignore[arg-type]
        (lambda: Grammar(window=0), "window is at least 1"),
    ],
)
def test_settings_are_checked(make: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        make()


def test_parts_are_found_by_name() -> None:
    assert load_part("constraint", "fluency:2.5") == Fluency(2.5)
    assert load_part("constraint", "grammar") == Grammar()
    with pytest.raises(UnknownNameError, match="write fluency:MOST_LOSS"):
        load_part("constraint", "fluency")


def test_in_an_attack() -> None:
    """Without the constraint the odd word wins; with it the likely one does."""
    oracles = {
        "victim": linear({"good": 0.4, "gnarly": -0.4, "fine": -0.3}),
        "neighbours:toy": neighbours({"good": ["gnarly", "fine"]}),
        "fluency:toy": Answering(by_word),
        "grammar:toy": Answering(lambda text: 0),
        "encode:toy": encoder(),
    }
    found = {}
    for constraints in ((), (Fluency(2.0, model="toy"), Grammar(checker="toy"))):
        recipe = toy_recipe(
            GreedySwap(importance=Deletion(), candidates=Neighbours(table="toy"), constraints=constraints)
        )
        assert recipe_from_json(recipe.to_json()) == recipe
        found[len(constraints)] = attack_one(recipe, oracles, "the film is good").perturbed
    assert recipe.oracles() == ["neighbours:toy", "fluency:toy", "grammar:toy"]
    assert found == {0: "the film is gnarly", 2: "the film is fine"}


def test_added_to_a_recipe_by_name() -> None:
    recipe = load_recipe("textfooler")
    changed = with_constraint(recipe, load_part("constraint", "grammar:1"))
    assert changed.version == "textattack+changed"
    assert changed.search.constraints[-1] == Grammar(1)  # type: ignore[attr-defined]
    assert changed.oracles()[-1] == "grammar:harper"

    @dataclass(frozen=True)
    class Bare:
        def run(self, a: Attempt, start: Scored) -> Program[Scored]:
            return start
            yield

    with pytest.raises(UnknownNameError, match="no constraints"):
        with_constraint(dataclasses.replace(recipe, search=Bare()), Grammar())
