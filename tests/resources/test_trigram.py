"""The trigram model: a packed file read right, probabilities and gaps by hand, mistakes explained."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from unfooled.errors import OracleError, ResourceError
from unfooled.resources import store
from unfooled.resources.cloze import TrigramCloze, after, before
from unfooled.resources.fillmask import MaskItem
from unfooled.resources.fluency import Score, TrigramFluency, open_fluency
from unfooled.resources.trigram import Trigrams, load, open_model, tokens

WORDS = ["</s>", "<s>", "a", "b", "c", "d."]
# log-probabilities and back-off weights, in nats; an n-gram is written in reading order
SINGLE = {
    "</s>": (-1.0, 0.0),
    "<s>": (-99.0, -0.5),
    "a": (-2.0, -0.25),
    "b": (-3.0, -0.125),
    "c": (-4.0, 0.0),
    "d.": (-1.5, 0.0),
}
PAIR = {
    ("<s>", "a"): (-0.5, -0.1),
    ("a", "b"): (-1.0, -0.2),
    ("b", "c"): (-1.25, 0.0),
    ("a", "c"): (-0.75, 0.0),
}
PAIR |= {("c", "</s>"): (-0.3, 0.0), ("b", "</s>"): (-0.6, 0.0)}
TRIPLE = {("<s>", "a", "b"): -0.25, ("a", "b", "c"): -0.5, ("a", "c", "</s>"): -0.125}
UNIT = math.log(1.0001)


def pack(records: Sequence[tuple[int, ...]], widths: tuple[int, ...]) -> bytes:
    """Bit fields one behind the other, the lowest bits first, with room behind them."""
    number = at = 0
    for record in records:
        for value, width in zip(record, widths, strict=True):
            number |= value << at
            at += width
    size = ((len(records) * sum(widths)) + 7) // 8 + 8
    return number.to_bytes(size, "little")


def packed() -> bytes:
    """The model above as a file of the Sphinx tools: a tree from the last word to the first."""
    index = {word: i for i, word in enumerate(WORDS)}
    pairs = sorted(PAIR, key=lambda pair: (index[pair[1]], index[pair[0]]))
    triples = sorted(TRIPLE, key=lambda three: (pairs.index(three[1:]), index[three[0]]))
    tables = np.zeros((3, 1 << 16), dtype="<f4")
    tables[0, : len(pairs)] = [PAIR[pair][0] / UNIT for pair in pairs]
    tables[1, : len(pairs)] = [PAIR[pair][1] / UNIT for pair in pairs]
    tables[2, : len(triples)] = [TRIPLE[three] / UNIT for three in triples]
    nodes = b""
    for word in [*WORDS, ""]:
        first = sum(1 for pair in pairs if word == "" or index[pair[1]] < index[word])
        prob, backoff = SINGLE.get(word, (0.0, 0.0))
        nodes += struct.pack("<ffI", prob / UNIT, backoff / UNIT, first)
    counts = (len(WORDS), len(pairs), len(triples))
    word_bits, place_bits = counts[0].bit_length(), counts[2].bit_length()
    middle = [
        (index[pair[0]], i, i, sum(1 for three in triples if pairs.index(three[1:]) < i))
        for i, pair in enumerate(pairs)
    ]
    middle.append((0, 0, 0, len(triples)))
    last = [(index[three[0]], i) for i, three in enumerate(triples)] + [(0, 0)]
    names = b"".join(word.encode() + b"\0" for word in WORDS)
    return b"".join(
        [
            b"Trie Language Model",
            struct.pack("<B3II", 3, *counts, 1),
            tables.tobytes(),
            nodes,
            pack(middle, (word_bits, 16, 16, place_bits)),
            pack(last, (word_bits, 16)),
            struct.pack("<I", len(names)),
            names,
        ]
    )


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trigram") / "tiny.lm.bin"
    path.write_bytes(packed())
    return path


@pytest.fixture
def model(path: Path) -> Trigrams:
    return load(path)


def probability(model: Trigrams, *words: str) -> float:
    first, middle, last = (np.array([number]) for number in model.ids(["?", "?", *words][-3:]))
    return float(model.log_probability(first, middle, last)[0])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("a",), -2.0),
        (("a", "b"), -1.0),
        (("<s>", "a", "b"), -0.25),
        (("b", "a"), -2.0 - 0.125),  # no pair: the word alone, and the weight of what stands before
        (("<s>", "a", "c"), -0.75 - 0.1),  # no triple: the pair, and the weight of the pair before
        (("<s>", "a", "d."), -1.5 - 0.25 - 0.1),
        (("?", "a", "b"), -1.0),  # an unknown word ends the history
        (("a", "?", "b"), -3.0),
        (("a", "b", "?"), -4.0 - 0.125 - 0.2),  # unknown: as rare as the rarest
    ],
)
def test_probabilities_by_hand(model: Trigrams, words: tuple[str, ...], expected: float) -> None:
    assert probability(model, *words) == pytest.approx(expected, abs=1e-5)


def test_tokens() -> None:
    assert tokens("A b, c. D's 3.5 — it’s!") == ["a", "b", "c", "</s>", "d's", "3", "5", "it's", "</s>"]
    assert before("One. a b ") == ["<s>", "a", "b"]
    assert before("") == ["<s>"]
    assert before("x " * 200)[:1] == ["x"]
    assert after(" b. C") == ["b", "</s>"]
    assert after("") == ["</s>"]
    assert after(" b" * 200)[-1] == "b"


def test_gaps_by_hand(model: Trigrams) -> None:
    """<s> a _ </s>: P(w | <s> a) P(</s> | a w), for the words that are words."""
    cloze = TrigramCloze(model)
    (answer,) = cloze([MaskItem("a ", ".", 5)])
    totals = {
        "a": (-2.0 - 0.25 - 0.1) + (-1.0 - 0.25),
        "b": -0.25 + (-0.6 - 0.2),
        "c": (-0.75 - 0.1) + -0.125,
    }
    scale = math.log(sum(math.exp(value) for value in totals.values()))
    ranked = sorted(totals, key=lambda word: -totals[word])
    assert [fill.word for fill in answer] == ranked == ["c", "b", "a"]
    assert [fill.score for fill in answer] == pytest.approx([totals[w] - scale for w in ranked], abs=1e-5)


@pytest.mark.parametrize("left", ["", "a ", "a b ", "zebra ", "c. a "])
@pytest.mark.parametrize("right", ["", " b", " b c", " c.", " zebra", " b zebra"])
def test_gaps_are_products_of_three_probabilities(model: Trigrams, left: str, right: str) -> None:
    (answer,) = TrigramCloze(model)([MaskItem(left, right, 5)])
    l2, l1 = ["?", "?", *before(left)][-2:]
    behind = after(right)
    expected = {}
    for word in "abc":
        total = probability(model, l2, l1, word)
        if behind[0] in model.index:
            total += probability(model, l1, word, behind[0])
            if len(behind) > 1 and behind[1] in model.index:
                total += probability(model, word, behind[0], behind[1])
        expected[word] = total
    scale = math.log(sum(math.exp(value) for value in expected.values()))
    assert {fill.word: fill.score for fill in answer} == pytest.approx(
        {word: value - scale for word, value in expected.items()}, abs=1e-5
    )


def test_gaps_need_a_number(model: Trigrams) -> None:
    cloze = TrigramCloze(model)
    assert cloze([]) == []
    assert len(cloze([MaskItem("a ", "", 2)])[0]) == 2
    with pytest.raises(OracleError, match="at least 1"):
        cloze([MaskItem("a ", "", 0)])


def test_fluency_by_hand(model: Trigrams) -> None:
    fluency = TrigramFluency(model)
    whole, empty, two, unknown = fluency(["A b c.", "...", "a. a", "zebra"])
    expected = -0.5 + -0.25 + -0.5 + -0.3
    assert whole == pytest.approx((expected, 4), abs=1e-5)
    assert whole.per_unit == pytest.approx(expected / 4, abs=1e-5)
    assert whole.perplexity == pytest.approx(math.exp(-expected / 4), abs=1e-4)
    assert empty.units == 1
    assert two == pytest.approx((-0.5 + (-1.0 - 0.25 - 0.1) - 0.5, 3), abs=1e-5)
    assert unknown == pytest.approx((-4.0 - 0.5, 1), abs=1e-5)
    assert fluency([""]) == [Score(0.0, 0)]
    assert fluency([""])[0].perplexity == 1.0
    assert fluency([]) == []


def test_company_does_not_matter(model: Trigrams) -> None:
    texts = ["a b c", "", "b", "a. c b!", "zebra a b"]
    fluency, cloze = TrigramFluency(model), TrigramCloze(model)
    assert fluency(texts * 3) == [fluency([text])[0] for text in texts] * 3
    items = [MaskItem(text, " b", 3) for text in texts]
    assert cloze(items * 2) == [cloze([item])[0] for item in items] * 2


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda content: b"Something else" + content, "does not start with its mark"),
        (lambda content: content[: len(content) // 2], "buffer|cut short"),
        (lambda content: content[:-60], "cut short|do not fit"),
        (lambda content: content[:19] + b"\2" + content[20:], "order 2"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, change: object, reason: str) -> None:
    path = tmp_path / "wrong.lm.bin"
    path.write_bytes(change(packed()))  # type: ignore[operator]
    with pytest.raises(ResourceError, match=reason) as caught:
        load(path)
    assert "Sphinx" in caught.value.remedy


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ResourceError, match="cannot be read"):
        open_model(str(tmp_path / "none.bin"))


@pytest.mark.skipif(not store.has("trigram"), reason="needs: unfooled resources get trigram")
@pytest.mark.parametrize(
    ("words", "expected"),
    [  # what the library that made the file says, pocketsphinx 5.1.1
        (("the",), -3.19934),
        (("the", "film"), -7.306535),
        (("in", "new", "york"), -0.468477),
        (("the", "film", "good"), -7.589221),
        (("film", "</s>"), -1.781211),
        (("<s>", "the"), -2.921754),
        (("zzzq", "film"), -9.182041),
    ],
)
def test_the_real_file_says_what_its_makers_library_says(words: tuple[str, ...], expected: float) -> None:
    assert probability(open_model(), *words) == pytest.approx(expected, abs=2e-4)


@pytest.mark.skipif(not store.has("trigram"), reason="needs: unfooled resources get trigram")
def test_the_real_model_knows_english() -> None:
    cloze = TrigramCloze(open_model())
    (answer,) = cloze([MaskItem("it's one of the ", " movies of the year .", 3)])
    assert answer[0].word == "best"
    good, odd, shuffled = open_fluency("trigram")(
        [
            "the film is a fine piece of work",
            "the film is a fine piece of toil",
            "work fine the of a film is piece",
        ]
    )
    assert good.perplexity < odd.perplexity < shuffled.perplexity


@pytest.mark.skipif(not store.has("trigram"), reason="needs: unfooled resources get trigram")
def test_the_python_example_of_the_documentation_runs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "language-models.md").read_text(
        encoding="utf-8"
    )
    (code,) = re.findall(r"```python\n(.*?)```", page, re.S)
    shown: list[list[str]] = []
    exec(compile(code, "language-models.md", "exec"), {"print": shown.append})
    assert shown[0][0] == "best"
