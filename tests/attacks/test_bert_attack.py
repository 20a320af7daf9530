"""BERT-Attack: words for places that the model sees, in one piece and in several."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tiny_language_models import masked
from toys import Answering, attack_one, encoder, linear
from unfooled.attacks.bert_attack import RECIPES
from unfooled.attacks.checks import check_recipe
from unfooled.resources.fillmask import FillIn, MaskedLM, MaskItem, WordItem, _beam, _product


@pytest.fixture(scope="module")
def model() -> MaskedLM:
    return MaskedLM(*masked(positions=64))


@pytest.mark.parametrize("version", list(RECIPES))
def test_it_keeps_the_rules_of_attacks(version: str) -> None:
    check_recipe(RECIPES[version])


def seen(model: MaskedLM, text: str, place: int) -> torch.Tensor:
    """Log-probabilities of the vocabulary at a place of the whole text, by the plain model."""
    ids = model.tokenizer(text, return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        return torch.log_softmax(model.model(input_ids=ids).logits[0, place], dim=-1)


def test_a_word_of_one_token_gets_the_likeliest_whole_words_of_its_place(model: MaskedLM) -> None:
    (found,) = model([WordItem("the ", "film", " was good", 6)])
    row = seen(model, "the film was good", 2)  # behind [CLS] and the
    best = row.argsort(descending=True)[:6].tolist()
    names = [model.tokenizer.convert_ids_to_tokens(token) for token in best]
    whole = [name for name in names if name in model.vocabulary.words]
    assert [fill_in.word for fill_in in found] == whole
    assert len(found) <= 6
    assert found[0].score == pytest.approx(
        float(row[model.tokenizer.convert_tokens_to_ids(whole[0])]), abs=1e-4
    )


def test_the_answer_does_not_depend_on_the_company(model: MaskedLM) -> None:
    items: list[Any] = [
        WordItem("the ", "film", " was good", 5),
        MaskItem("the ", " was good", 5),
        WordItem("the ", "films", " was not very good", 5),
    ]
    assert model(items) == [model([item])[0] for item in items]
    assert model([WordItem("the ", "", " was", 5)]) == [()]


def test_pieces_are_put_together(model: MaskedLM) -> None:
    assert len(model.tokenizer("films", add_special_tokens=False)["input_ids"]) == 2
    for combine in ("beam", "product"):
        (found,) = model([WordItem("the ", "films", " was good", 8, combine)])
        assert all("#" not in fill_in.word for fill_in in found)
        assert len({fill_in.word for fill_in in found}) == len(found) <= 8


def test_combinations_by_hand() -> None:
    best = [[(1, -0.1), (2, -2.0)], [(3, -0.5), (4, -0.6)]]
    # The product changes the last piece first; the beam goes by the sum.
    assert [tokens for tokens, _ in _product(best)] == [(1, 3), (1, 4), (2, 3), (2, 4)]
    assert [total for _, total in _beam(best)] == [-0.6, -0.7, -2.5, -2.6]


def test_the_attack_takes_the_best_word_and_reads_the_text_as_it_is_now() -> None:
    asked: list[WordItem] = []

    def fill(item: WordItem) -> tuple[FillIn, ...]:
        asked.append(item)
        return tuple(FillIn(word, -1.0) for word in {"good": ("fine", "good"), "film": ("reel",)}[item.word])

    weights = {"good": 0.3, "fine": 0.1, "film": 0.2, "reel": 0.1}
    oracles = {
        "victim": linear(weights),
        "fill:masked-lm": Answering(fill),
        "encode:minilm": encoder(),
        "vectors:counter-fitted": Answering(lambda _: np.array([1.0, 0.0])),
    }
    result = attack_one(RECIPES["textattack"], oracles, "good film it was")
    assert result.perturbed == "fine reel it was"  # 40 % of 4 words are 2
    assert asked[-1] == WordItem("fine ", "film", " it was", 8, "product")
    asked.clear()
    attack_one(RECIPES["paper"], oracles, "good film it was")
    assert asked[-1] == WordItem("good ", "film", " it was", 48, "beam"), "the paper reads the original"
