"""Fill-mask: whole words, the best first, the same alone and in any company, few calls."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tiny_language_models import MASKED, causal, masked, masked_tokenizer, save
from tiny_models import PIECES, words
from unfooled.core.engine import Engine
from unfooled.core.program import Program, ask
from unfooled.errors import OracleError, ResourceError
from unfooled.plugins import registry
from unfooled.resources import fillmask, pretrained, store
from unfooled.resources.blend import Blend
from unfooled.resources.fillmask import FillIn, MaskedLM, MaskItem, open_fill_mask, whole_words

SENTENCES = [
    "the film is good",
    "The movie was not good, and the plot was dull.",
    "a very bad film!",
    "don't",
    "the good, the bad and the dull - not fun. the plot is very very very dull",
]


def gaps(text: str, k: int = 5) -> list[MaskItem]:
    """A question for each word of a text."""
    tokens = text.split(" ")
    return [
        MaskItem(" ".join([*tokens[:i], ""]), " ".join(["", *tokens[i + 1 :]]), k) for i in range(len(tokens))
    ]


ITEMS = [item for text in SENTENCES for item in gaps(text)] + [MaskItem("", "", 3)]


@pytest.fixture(scope="module")
def model() -> MaskedLM:
    return MaskedLM(*masked())


def by_hand(shares: dict[str, float]) -> MaskedLM:
    """A model that gives every gap the same probabilities."""
    import torch

    network, tokenizer = masked()
    share = np.full(len(tokenizer), 1e-9)
    for token, value in shares.items():
        share[tokenizer.convert_tokens_to_ids(token)] = value
    with torch.no_grad():
        network.cls.predictions.decoder.weight.zero_()
        network.cls.predictions.bias.copy_(torch.from_numpy(np.log(share)))
    return MaskedLM(network, tokenizer)


def test_ranking_by_hand() -> None:
    model = by_hand({"[SEP]": 0.3, "bad": 0.2, "##s": 0.2, ".": 0.1, "good": 0.1, "film": 0.1})
    (answer,) = model([MaskItem("the ", " is fun", 3)])
    # The piece, the mark and the punctuation are left out; equal words come in the vocabulary's order.
    assert [fill.word for fill in answer] == ["bad", "film", "good"]
    assert [fill.score for fill in answer] == pytest.approx(np.log([0.2, 0.1, 0.1]).tolist(), abs=2e-6)


def test_only_whole_words(model: MaskedLM) -> None:
    (answer,) = model([MaskItem("the film is ", ".", 1000)])
    expected = {piece for piece in PIECES if piece.isalpha()}
    assert {fill.word for fill in answer} == expected
    scores = [fill.score for fill in answer]
    assert scores == sorted(scores, reverse=True)


def test_fewer_words_are_the_beginning_of_more(model: MaskedLM) -> None:
    long, short = model([MaskItem("the ", " is", 9), MaskItem("the ", " is", 4)])
    assert long[:4] == short
    assert model.meter.items == 1 or len(long) == 9


@pytest.mark.parametrize("kind", MASKED)
def test_answers_are_those_of_the_whole_model(kind: str) -> None:
    """The head sees the gap alone, and says what it says with all positions before it."""
    import torch

    network, tokenizer = masked(kind)
    model = MaskedLM(network, tokenizer)
    assert model._head._early
    for item in ITEMS:
        text = item.left + tokenizer.mask_token + item.right
        encoded = tokenizer(text, return_tensors="pt")
        if encoded["input_ids"].shape[1] > model.window:
            continue
        with torch.inference_mode():
            logits = network(input_ids=encoded["input_ids"]).logits[0]
        (place,) = (encoded["input_ids"][0] == tokenizer.mask_token_id).nonzero().flatten().tolist()
        scores = torch.log_softmax(logits[place], dim=0)
        vocabulary = whole_words(tokenizer, len(tokenizer))
        expected = sorted(
            zip(vocabulary.words, scores[list(vocabulary.ids)].tolist(), strict=True),
            key=lambda pair: -pair[1],
        )
        (answer,) = model([item])
        assert [fill.score for fill in answer] == pytest.approx(
            [score for _, score in expected[: item.k]], abs=1e-4
        )


def test_a_head_that_looks_around_gets_everything() -> None:
    """Where narrowing would change the answer, it is not done."""
    network, tokenizer = masked()
    head = network.cls.forward
    network.cls.forward = lambda hidden: head(hidden + hidden.mean(dim=1, keepdim=True))
    model = MaskedLM(network, tokenizer)
    assert not model._head._early
    assert len(model([MaskItem("the ", " is good", 4)])[0]) == 4


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_company_does_not_matter(kind: str) -> None:
    network, tokenizer = masked(kind)
    model = MaskedLM(network, tokenizer)
    alone = {item: model([item])[0] for item in ITEMS}
    rng = np.random.default_rng(5)
    for max_tokens in (16, 64, 2048):
        model = MaskedLM(network, tokenizer, max_tokens=max_tokens)
        for size in (2, 7, 40, 90):
            chosen = [ITEMS[i] for i in rng.integers(len(ITEMS), size=size)]
            assert model(chosen) == [alone[item] for item in chosen]


def test_a_mask_written_in_the_text_is_text() -> None:
    model = MaskedLM(*masked())
    (answer,) = model([MaskItem("the [MASK] is ", "", 3)])
    assert len(answer) == 3
    (reading,), _, _ = model._read([MaskItem("the [MASK] is ", "", 3)])
    ids, place = reading
    assert ids.count(model.tokenizer.mask_token_id) == 1
    assert ids[place] == model.tokenizer.mask_token_id


def test_long_texts_are_cut_around_the_gap(model: MaskedLM) -> None:
    filler = "the film is good " * 50
    first, second = model._read([MaskItem(filler, " " + filler, 3), MaskItem(filler, ".", 3)])[0]
    assert len(first[0]) == len(second[0]) == model.window
    assert model.window // 2 - 2 <= first[1] <= model.window // 2 + 2
    assert second[1] == model.window - 3  # what the right side does not need, the left one gets
    far, near = model(
        [MaskItem(filler, " " + filler, 3), MaskItem("bad " + filler, " " + filler + "dull", 3)]
    )
    assert far == near


def test_long_texts_are_cut_at_spaces() -> None:
    assert fillmask._last("one two three", 8) == " three"
    assert fillmask._last("abcdefgh", 4) == "gh"
    assert fillmask._last("short", 8) == "short"
    assert fillmask._first("one two three", 8) == "one two"
    assert fillmask._first("abcdefgh", 4) == "ab"
    assert fillmask._first("short", 8) == "short"


def test_words_of_a_byte_level_vocabulary() -> None:
    network, tokenizer = masked("roberta")
    vocabulary = whole_words(tokenizer, len(tokenizer))
    assert {"film", "good", "not"} & set(vocabulary.words)
    assert all(word.strip() == word and word.isalnum() for word in vocabulary.words)
    tokens = tokenizer.convert_ids_to_tokens(list(vocabulary.ids))
    assert all(token.startswith("Ġ") for token in tokens)
    assert len(MaskedLM(network, tokenizer)([MaskItem("the ", " was good", 2)])[0]) == 2


def test_every_position_of_many_texts_in_few_calls() -> None:
    """One call per position would be `len(items)` calls."""
    model = MaskedLM(*masked())
    items = [item for text in SENTENCES[:3] * 7 for item in gaps(text)]

    def program(item: MaskItem) -> Program[list[FillIn]]:
        return (yield from ask("fill:tiny", [item]))

    oracles: dict[str, Any] = {"fill:tiny": model}
    engine = Engine[Any](oracles, window=500)
    finished = list(engine.run([(number, program(item)) for number, item in enumerate(items)]))
    assert len(finished) == len(items)
    assert engine.traffic["fill:tiny"].computed == len(set(items))  # equal questions are answered once
    assert model.meter.items == len(set(items))
    assert model.meter.calls * 5 <= len(items)


def test_the_meter_counts_gaps_and_tokens() -> None:
    model = MaskedLM(*masked())
    model([MaskItem("the ", " is good", 3), MaskItem("the film ", " good", 3), MaskItem("a ", "", 3)])
    assert (model.meter.calls, model.meter.items, model.meter.tokens) == (2, 3, 6 + 6 + 4)
    assert model([]) == []


def test_nothing_is_asked_for(model: MaskedLM) -> None:
    with pytest.raises(OracleError, match="at least 1"):
        model([MaskItem("the ", " is", 0)])


def test_opening_by_folder(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    network, tokenizer = masked()
    folder = save((network, tokenizer), tmp_path / "model")
    capfd.readouterr()
    opened = registry.load("oracle", "fill")(str(folder))
    assert opened(ITEMS) == MaskedLM(network, tokenizer)(ITEMS)
    assert capfd.readouterr() == ("", "")
    fingerprint = registry.load("fingerprint", "fill")
    assert len(fingerprint(str(folder))) == 64


def answering(table: dict[str, float]) -> Any:
    class Model:
        batch_size = 7
        asked: ClassVar[list[MaskItem]] = []

        def __call__(self, items: Sequence[MaskItem], /) -> list[tuple[FillIn, ...]]:
            self.asked.extend(items)
            return [tuple(FillIn(*pair) for pair in table.items()) for _ in items]

    return Model()


def test_two_models_together_by_hand() -> None:
    first = answering({"good": -1.0, "bad": -2.0, "dull": -4.0})
    second = answering({"fine": -0.5, "bad": -1.0, "film": -3.0})
    blend = Blend(first, second)
    answer, shorter = blend([MaskItem("a ", " b", 4), MaskItem("a ", " b", 2)])
    # Words that only one model names get the other's last score: -4 and -3.
    assert answer == (
        FillIn("bad", -1.5),
        FillIn("good", -2.0),
        FillIn("fine", -2.25),
        FillIn("dull", -3.5),  # film has the same score and comes later
    )
    assert shorter == answer[:2]
    assert {item.k for item in first.asked} == {500}
    assert blend.batch_size == 7
    assert blend([]) == []


def test_two_models_are_opened_by_name(tmp_path: Path) -> None:
    first, second = (save(masked(seed=seed), tmp_path / str(seed)) for seed in (3, 4))
    items = [MaskItem("the ", " is good", 3), MaskItem("a ", "", 3)]
    both = open_fill_mask(f"{first}+{second}")
    answers = both(items)
    assert answers == Blend(open_fill_mask(str(first)), open_fill_mask(str(second)))(items)
    assert answers == [both([item])[0] for item in items]
    assert len(fillmask.fingerprint(f"{first}+{second}").split(" + ")) == 2
    plus = save(masked(), tmp_path / "a+b")  # a folder may be called so
    assert isinstance(open_fill_mask(str(plus)), MaskedLM)
    with pytest.raises(OracleError, match="at least 1"):
        both([MaskItem("the ", " is", 0)])


def test_what_is_no_masked_language_model(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(ResourceError, match=r"no config\.json"):
        open_fill_mask(str(empty))
    with pytest.raises(ResourceError, match="no folder"):
        open_fill_mask(str(tmp_path / "missing"))
    with pytest.raises(ResourceError, match="no masked language model"):
        open_fill_mask(str(save(causal(), tmp_path / "causal")))
    network, tokenizer = masked()
    body = save((network.base_model, tokenizer), tmp_path / "body")
    with pytest.raises(ResourceError, match="never trained as a masked language model"):
        open_fill_mask(str(body))


def test_a_damaged_model(tmp_path: Path) -> None:
    folder = save(masked(), tmp_path / "model")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:200])
    with pytest.raises(ResourceError, match="cannot be loaded"):
        open_fill_mask(str(folder))


def test_a_tokenizer_without_a_mask(tmp_path: Path) -> None:
    network, _ = masked()
    with pytest.raises(ResourceError, match="no mask token"):
        MaskedLM(network, words())


def test_a_name_that_the_hub_does_not_give() -> None:
    with pytest.raises(ResourceError, match="hf download nobody/nothing-here") as caught:
        open_fill_mask("nobody/nothing-here")
    assert "the hub did not give it" in caught.value.cause


def test_a_vocabulary_without_words() -> None:
    class Bare:
        all_special_ids = (0,)
        added_tokens_decoder = ()

        def __len__(self) -> int:
            return 3

        def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
            return ["[PAD]", ".", "##s"]

    with pytest.raises(ResourceError, match="no whole words"):
        whole_words(Bare(), 3)


def test_fingerprints_name_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fingerprint = fillmask.fingerprint
    assert fingerprint("trigram") == "trigram 5.1.1"

    class Config:
        _commit_hash = "0123abcd"

    class Network:
        config = Config()

    monkeypatch.setattr(pretrained, "load_pretrained", lambda kind, name: (Network(), None))
    assert fingerprint("org/some-bert") == "org/some-bert 0123abcd"


@pytest.mark.skipif(not store.has("masked-lm"), reason="needs: unfooled resources build masked-lm")
def test_the_trained_default() -> None:
    model = open_fill_mask("masked-lm")
    (answer,) = model([MaskItem("this is one of the best ", " i have ever seen.", 20)])
    found = [fill.word for fill in answer]
    assert {"films", "movies", "things"} & set(found[:5])
    first, second = model(
        [MaskItem("a ", " film.", 10), MaskItem("this is one of the best ", " i have ever seen.", 20)]
    )
    assert second == answer
    assert len(first) == 10
    assert masked_tokenizer().mask_token == "[MASK]"
