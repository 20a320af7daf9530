"""Where replacements come from: WordNet's synonyms and a user's table; and the encoder of the papers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toys import Answering
from unfooled.attacks.checks import check_recipe
from unfooled.attacks.parts.sources import UserTable, WordNetSynonyms, like
from unfooled.core.attempt import Attempt
from unfooled.core.engine import Engine
from unfooled.core.recipe import load_part, load_recipe, with_everywhere
from unfooled.core.session import require_resources
from unfooled.errors import ResourceError
from unfooled.resources import store
from unfooled.resources.encoders import open_encoder
from unfooled.resources.sentencepiece import read_unigram
from unfooled.resources.static import StaticEncoder
from unfooled.resources.synonyms import SynonymOracle, WordForm, open_synonyms
from unfooled.resources.table import TableOracle, fingerprint, open_table
from unfooled.resources.use import UniversalEncoder, _windows
from unfooled.resources.wordnet import Synset, WordNet
from unfooled.text import Text


def net() -> WordNet:
    def synset(*words: str) -> Synset:
        return Synset(words, (), ())

    synsets = {
        ("verb", 1): synset("delay", "detain", ""),
        ("verb", 2): synset("delay", "stop"),
        ("verb", 3): synset("take", "offset", "drive"),
        ("noun", 4): synset("delay", "wait"),
        ("noun", 5): synset("seat", "bottom", "pants", "city"),
        ("adj", 6): synset("cold", "frigid", "icy", "big"),
        ("noun", 7): synset("pant", "gasp"),
    }
    senses: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for (part, number), group in synsets.items():
        for word in filter(None, group.words):
            senses.setdefault((part, word), []).append((part, number))
    irregular = {"verb": {"take": ["taken", "took"], "drive": ["driven", "drove"]}}
    return WordNet(synsets, senses, irregular)


# -- synonyms ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("delay", ("wait", "detain", "stop")),  # noun and verb in turn, the first senses first
        ("delayed", ("detained", "stopped")),
        ("delaying", ("detaining", "stopping")),
        ("delays", ("waits", "detains", "stops")),
        ("stopped", ("delayed",)),
        ("took", ("offset", "drove")),
        ("taken", ("offset", "driven")),
        ("taking", ("offsetting", "driving")),
        ("seats", ("bottoms", "pants", "cities")),
        ("colder", ("icier", "bigger")),  # "frigider" is no word
        ("coldest", ("iciest", "biggest")),
        ("nothing", ()),
        ("s", ()),
        ("", ()),
    ],
)
def test_synonyms_come_in_the_form_of_the_word(word: str, found: tuple[str, ...]) -> None:
    assert SynonymOracle(net())([(word, 0)]) == [found]


def test_fewer_senses_give_fewer_synonyms() -> None:
    assert SynonymOracle(net())([("delayed", 1), ("delay", 1)]) == [("detained",), ("wait", "detain")]


def test_readings_are_those_that_wordnet_knows() -> None:
    assert SynonymOracle(net()).readings("delays") == [
        WordForm("noun", "delay", "s"),
        WordForm("verb", "delay", "s"),
    ]


def test_the_real_wordnet_knows_plain_words() -> None:
    if not store.has("wordnet"):
        pytest.skip("the resource wordnet is not here")
    terrible, cancelled = open_synonyms()([("terrible", 0), ("cancelled", 0)])
    assert {"awful", "dreadful"} <= set(terrible)
    assert {"scrubbed", "deleted"} <= set(cancelled)
    assert "" not in terrible


# -- tables --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.json", '{"Paris": ["London"], "bad": ["poor", "weak", "poor"], "late": "tardy"}'),
        ("t.csv", "word,replacement\nParis,London\nbad,poor,weak\n\nbad,poor\nlate, tardy\n"),
        ("t.csv", "\ufeffParis,London\nbad,poor\nbad,weak\nlate,tardy\n"),
        ("t.tsv", "Paris\tLondon\nbad\tpoor\tweak\nlate\ttardy\n"),
    ],
)
def test_tables_are_read_from_json_and_csv(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    oracle = open_table(str(tmp_path / name))
    assert oracle(["bad", "BAD", "Paris", "paris", "late", "x"]) == [
        ("poor", "weak"), ("poor", "weak"), ("London",), (), ("tardy",), (),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.json", "{", "not JSON"),
        ("t.json", "[1]", "no JSON object"),
        ("t.json", '{"bad": [3]}', "'bad' are no list of words"),
        ("t.json", '{"bad": [" "]}', "'bad' are no list of words"),
        ("t.json", "{}", "no replacements"),
        ("t.csv", "good,fine\nbad\n", "line 2: no replacement for 'bad'"),
        ("t.csv", "good,fine\n,poor\n", "line 2: no word"),
        ("t.csv", "word,replacement\n", "no replacements"),
        ("t.csv", "", "no replacements"),
    ],
)
def test_bad_tables_are_explained(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(ResourceError, match=message):
        open_table(str(tmp_path / name))


def test_a_table_counts_by_its_content_and_is_looked_at_before_a_run(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("bad,poor\nbad,weak\n")
    (tmp_path / "b.json").write_text('{"bad": ["poor", "weak"]}')
    recipe = with_everywhere(
        load_recipe("deepwordbug"), "candidates", load_part("candidates", f"table:{tmp_path / 'a.csv'}")
    )
    (found,) = require_resources(recipe).values()
    assert found == fingerprint(str(tmp_path / "b.json"))
    (tmp_path / "a.csv").unlink()
    with pytest.raises(ResourceError, match="cannot be read"):
        require_resources(recipe)


def test_a_missing_or_foreign_file_is_explained(tmp_path: Path) -> None:
    with pytest.raises(ResourceError, match="cannot be read"):
        open_table(str(tmp_path / "none.csv"))
    (tmp_path / "latin.csv").write_bytes("bad,pauvre café".encode("latin-1"))
    with pytest.raises(ResourceError, match="UTF-8"):
        open_table(str(tmp_path / "latin.csv"))


# -- parts ---------------------------------------------------------------------------------------------


def proposed(part: Any, oracles: dict[str, Any], text: str, index: int) -> list[str]:
    a = Attempt(Text(text), 0, None, key=0, seed=0)  # type: ignore[arg-type]
    (finished,) = Engine[list[str]](oracles).run([(0, part.propose(a, a.original, index))])
    assert finished.value is not None, finished.error
    return finished.value


def test_casing_follows_the_word_and_the_word_itself_never_comes() -> None:
    assert like("Bad", ["poor", "bad", "BAD", "POOR", "weak"], 50) == ["Poor", "Weak"]
    assert like("BAD", ["poor", "weak"], 1) == ["POOR"]
    oracle = {"wordnet:wordnet": Answering(lambda item: ("poor", item[0]))}
    assert proposed(WordNetSynonyms(), oracle, "a Bad day", 1) == ["Poor"]
    assert oracle["wordnet:wordnet"].asked == [("bad", 0)]


def test_a_table_is_asked_for_the_word_as_written() -> None:
    oracle = {"table:mine.csv": TableOracle({"Paris": ["London", "Rome"], "paris": ["plaster"]})}
    assert proposed(UserTable("mine.csv", most=1), oracle, "in Paris", 1) == ["London"]


@pytest.mark.parametrize(
    "name", ["wordnet", "datamuse", "fill-mask", "table:x.csv", "neighbours", "characters"]
)
def test_every_source_serves_other_attacks(name: str) -> None:
    check_recipe(with_everywhere(load_recipe("textfooler"), "candidates", load_part("candidates", name)))


@pytest.mark.parametrize("part", [WordNetSynonyms, lambda **kwargs: UserTable("x", **kwargs)])
def test_at_least_one_candidate_is_asked_for(part: Any) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        part(most=0)


# -- the encoder of the papers -------------------------------------------------------------------------


def weights(size: int = 34, dim: int = 512, narrow: int = 256) -> dict[str, Any]:
    rng = np.random.default_rng(0)

    def drawn(*shape: int) -> Any:
        return rng.normal(0, 0.05, shape).astype(np.float32)

    found: dict[str, Any] = {
        f"q{i + 1}": rng.integers(0, 64, (size // 17, dim)).astype(np.uint8) for i in range(17)
    }
    found |= {
        "scale": np.full(17, 0.01, np.float32),
        "lo": np.full(17, -0.3, np.float32),
        "eps": np.float64(1e-6),
    }
    for width in (2, 3, 5):
        found |= {f"proj{width}": drawn(dim, narrow), f"proj_b{width}": drawn(narrow)}
        found |= {f"ln_g{width}": np.ones(narrow, np.float32), f"ln_b{width}": np.zeros(narrow, np.float32)}
        for layer in (1, 2):
            found |= {f"w{layer}_{width}": drawn(width * narrow, narrow), f"b{layer}_{width}": drawn(narrow)}
    wide = dim + 3 * narrow
    found |= {"ln_g": np.ones(wide, np.float32), "ln_b": np.zeros(wide, np.float32)}
    found |= {"cnn_W": drawn(wide, 512), "cnn_b": drawn(512), "d0": drawn(512, 320), "d1": drawn(320, 320)}
    return found | {
        "p1": drawn(512, 320),
        "d2": drawn(320, 512),
        "p3": drawn(320, 512),
        "d3": drawn(512, 512),
    }


class Letters:
    """A tokenizer whose pieces are letters."""

    def encode_batch(self, texts: list[str]) -> list[Any]:
        return [type("Encoding", (), {"ids": [3 + ord(letter) % 30 for letter in text]}) for text in texts]


def test_vectors_have_length_one_and_company_does_not_matter() -> None:
    encoder = UniversalEncoder(weights(), Letters())
    texts = [f"text {'abc'[i % 3] * (i % 7)}" for i in range(50)] + ["", "x"]
    together = encoder(texts)
    assert np.allclose(np.linalg.norm(together, axis=1), 1.0, atol=1e-5)
    for text, row in zip(texts, together, strict=True):
        assert np.array_equal(encoder([text])[0], row)
    assert encoder([]) == []
    assert encoder.meter.items >= 52


def test_a_convolution_by_hand() -> None:
    x = np.arange(1, 4, dtype=np.float32).reshape(1, 3, 1)
    assert _windows(x, 2)[0].tolist() == [[1, 2], [2, 3], [3, 0]]
    assert _windows(x, 3)[0].tolist() == [[0, 1, 2], [1, 2, 3], [2, 3, 0]]
    assert _windows(x, 5)[0].tolist() == [[0, 0, 1, 2, 3], [0, 1, 2, 3, 0], [1, 2, 3, 0, 0]]


def field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2, len(content)]) + content


def test_a_sentencepiece_file_is_read(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    pieces = [
        ("<unk>", 0.0, 2),
        ("<s>", 0.0, 3),
        ("▁good", -1.0, 1),
        ("▁go", -1.5, 1),
        ("od", -3.0, 1),
        ("▁", -4.0, 1),
    ]
    data = b""
    for text, score, kind in pieces:
        score_bytes = bytes([2 << 3 | 5]) + np.float32(score).tobytes()
        data += field(1, field(1, text.encode()) + score_bytes + bytes([3 << 3, kind]))
    (tmp_path / "sp.model").write_bytes(data)
    tokenizer = read_unigram(tmp_path / "sp.model")
    assert tokenizer.encode("good  go").ids == [2, 3]
    assert tokenizer.encode("<s>").ids != [1], "control pieces are not found in texts"
    (tmp_path / "sp.model").write_bytes(b"\x0b\x0b\x0b")
    with pytest.raises(ResourceError, match="no SentencePiece model"):
        read_unigram(tmp_path / "sp.model")


@pytest.mark.parametrize("name", ["use", "potion"])
def test_the_real_ones_tell_near_from_far(name: str) -> None:
    if not store.has(name):
        pytest.skip(f"the resource {name} is not here")
    pytest.importorskip("tokenizers")
    texts = ["the flight was awful", "the flight was terrible", "my dog eats fish"]
    near, same, far = open_encoder(name)(texts)
    assert near @ same > 0.9
    assert near @ far < 0.3
    assert np.array_equal(open_encoder(name)(texts[:1])[0], near)


def test_a_static_encoder_by_hand() -> None:
    table = np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0], [9.0, 9.0]], dtype=np.float32)

    class Digits:
        def encode_batch(self, texts: list[str], add_special_tokens: bool) -> list[Any]:
            return [type("Encoding", (), {"ids": [int(digit) for digit in text]}) for text in texts]

    encoder = StaticEncoder(table, Digits(), unknown=3)
    found = encoder(["1", "13", "12", "3", ""])
    assert np.allclose(found[0], [0.6, 0.8])
    assert np.array_equal(found[1], found[0])
    assert np.allclose(found[2], np.array([1.5, 2.5]) / np.hypot(1.5, 2.5))
    assert found[3].tolist() == found[4].tolist() == [0.0, 0.0]
