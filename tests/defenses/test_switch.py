"""SWITCH on oracles whose answers are known by heart, and on a real model's gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from toys import Answering, encoder, neighbours, tags
from unfooled.core import session
from unfooled.core.questions import WordVectors
from unfooled.core.victim import TextValue
from unfooled.defenses.switch import (
    SwapOptions,
    Switch,
    as_text,
    draw_choices,
    switched,
    text_rng,
    with_string,
)
from unfooled.defenses.switching import Switcher
from unfooled.errors import CapabilityError, OracleError, UserError
from unfooled.victims.fake import FakeVictim

NEAR = {
    "superb": ["great", "lovely", "fine", "fun"],
    "plot": ["story", "scheme"],
    "dull": ["slow", "boring"],
    "end": ["finish"],
}
SLOPES = {"superb": 4.0, "dull": 3.0, "plot": 2.0, "end": 1.0, "the": 9.0, "zebra": 8.0}


def slopes(table: Mapping[str, float] = SLOPES, unread: Sequence[str] = ()) -> Answering:
    """Gradients of a known length per word; words listed as unread have no token."""

    def answer(item: Any) -> WordVectors:
        words = item.text.words
        vectors = np.array([[table.get(word.lower(), 0.5), 0.0] for word in words], dtype=np.float32)
        pieces = np.array([word.lower() not in unread for word in words], dtype=np.int64)
        return WordVectors(words, pieces, vectors)

    return Answering(answer)


def oracles(switch: Switch, **given: Any) -> dict[str, Any]:
    made = {
        "neighbours": neighbours(NEAR),
        "tag": tags({}),
        "encode": encoder(),
        "gradients": slopes(),
    } | given
    return {name: made[name.partition(":")[0]] for name in switch.asks}


def alternatives(switch: Switch, text: TextValue, seed: int = 0, **given: Any) -> list[TextValue]:
    (found,) = Switcher(switch, FakeVictim(), oracles=oracles(switch, **given))([text], seed=seed)
    return found


def words_at(found: Sequence[TextValue], position: int) -> set[str]:
    return {as_text(text).words[position] for text in found}


TEXT = "the superb plot has a dull end"  # positions: superb 1, plot 2, dull 5, end 6
PLAIN = Switch(words=2, similarity="none", pos=False, alternatives=100)


def test_the_most_important_words_are_swapped_and_no_others() -> None:
    found = alternatives(PLAIN, TEXT)
    # "the" has the longest gradient but is a stop word; "superb" and "dull" come next.
    assert words_at(found, 1) == set(NEAR["superb"])
    assert words_at(found, 5) == set(NEAR["dull"])
    assert words_at(found, 2) == {"plot"}
    assert len(found) == len(set(found)) == 4 * 2


def test_words_without_neighbours_make_room() -> None:
    found = alternatives(PLAIN, "zebra superb end")
    assert words_at(found, 0) == {"zebra"}
    assert words_at(found, 1) == set(NEAR["superb"])
    assert words_at(found, 2) == {"finish"}


def test_equal_gradients_keep_the_order_of_the_text() -> None:
    single = Switch(words=1, similarity="none", pos=False, alternatives=9)
    found = alternatives(single, "dull superb", gradients=slopes({"dull": 1.0, "superb": 1.0}))
    assert words_at(found, 1) == {"superb"}


def test_candidates_are_the_nearest() -> None:
    found = alternatives(
        Switch(words=1, candidates=2, similarity="none", pos=False, alternatives=9), "superb"
    )
    assert set(found) == {"great", "lovely"}


def test_part_of_speech_on_and_off() -> None:
    table = tags({"superb": "ADJ", "great": "ADJ", "lovely": "ADV", "fine": "ADJ", "fun": "NOUN"})
    on = Switch(words=1, similarity="none", alternatives=9)
    off = Switch(words=1, similarity="none", alternatives=9, pos=False)
    assert set(alternatives(on, "superb", tag=table)) == {"great", "fine"}
    assert set(alternatives(off, "superb")) == set(NEAR["superb"])
    assert "tag:perceptron-tagger" not in off.asks


def test_a_word_whose_candidates_are_all_of_another_kind_makes_room() -> None:
    table = tags({"superb": "ADJ", "dull": "ADJ", "slow": "ADJ", "boring": "VERB"})
    found = alternatives(Switch(words=1, similarity="none", alternatives=9), "superb dull", tag=table)
    assert found == ["superb slow"]


def test_part_of_speech_comes_before_the_number_of_candidates() -> None:
    table = tags({"superb": "ADJ", "great": "NOUN", "lovely": "NOUN", "fine": "ADJ", "fun": "ADJ"})
    single = Switch(words=1, candidates=1, similarity="none", alternatives=9)
    assert alternatives(single, "superb", tag=table) == ["fine"]


ANGLES = {"great": 0.1, "lovely": 0.6, "fine": 1.2, "fun": 2.0}  # cosines .995 .825 .362 -.416


def test_filter_leaves_out_what_is_below_the_threshold() -> None:
    none = Switch(words=1, pos=False, alternatives=9, threshold=-1.0)
    positive = Switch(words=1, pos=False, alternatives=9)
    strict = Switch(words=1, pos=False, alternatives=9, threshold=0.8)
    assert set(alternatives(none, "superb", encode=encoder(ANGLES))) == set(NEAR["superb"])
    assert set(alternatives(positive, "superb", encode=encoder(ANGLES))) == {"great", "lovely", "fine"}
    assert set(alternatives(strict, "superb", encode=encoder(ANGLES))) == {"great", "lovely"}


def test_filter_keeps_the_order_of_the_draws_and_stops_encoding() -> None:
    lazy = encoder(ANGLES)
    single = Switch(words=1, pos=False, alternatives=1, multiplier=4)
    everything = Switch(words=1, pos=False, alternatives=4, threshold=-1.0)
    drawn = alternatives(everything, "superb", encode=encoder(ANGLES))
    first = next(text for text in drawn if text != "fun")
    assert alternatives(single, "superb", encode=lazy) == [first]
    assert len(set(lazy.asked)) == 1 + 1 + drawn.index(first)


def test_rank_sorts_all_draws() -> None:
    seen = encoder(ANGLES)
    ranked = Switch(words=1, pos=False, alternatives=2, multiplier=2, similarity="rank")
    assert alternatives(ranked, "superb", encode=seen) == ["great", "lovely"]
    assert len(set(seen.asked)) == 1 + 4


def test_the_multiplier_bounds_the_draws() -> None:
    table = {"superb": [f"w{i}" for i in range(90)]}
    seen = encoder()
    switch = Switch(words=1, candidates=90, pos=False, alternatives=3, multiplier=5, similarity="rank")
    found = alternatives(switch, "superb", encode=seen, neighbours=neighbours(table))
    assert len(found) == 3
    assert len(set(seen.asked)) == 1 + 15


def test_exhausted_candidates_give_fewer_alternatives() -> None:
    switch = Switch(words=3, pos=False, similarity="none", alternatives=50)
    assert set(alternatives(switch, "dull end")) == {"slow finish", "boring finish"}
    assert alternatives(switch, "zebra") == []
    assert alternatives(switch, "… !") == []
    assert alternatives(switch, "the and of") == []


def test_draws_are_distinct_for_few_and_for_many_texts() -> None:
    few = SwapOptions((0, 1), (("a", "b"), ("c", "d", "e")))
    assert len(draw_choices(few, 6, np.random.default_rng(0))) == 6
    many = SwapOptions(tuple(range(6)), tuple(tuple(f"{i}{j}" for j in range(10)) for i in range(6)))
    choices = draw_choices(many, 500, np.random.default_rng(0))
    assert len(set(choices)) == len(choices)
    assert 490 <= len(choices) <= 500


def test_casing_spacing_and_punctuation_survive() -> None:
    found = alternatives(
        Switch(words=3, pos=False, similarity="none", alternatives=3), "  The SUPERB,  Plot…\n(dull) END!"
    )
    for text in found:
        words = as_text(text).words
        assert words[1].isupper()
        assert words[2].istitle()
        assert as_text(text).gaps == ("  ", " ", ",  ", "…\n(", ") ", "!")
        assert words[4] == "END"


def test_of_a_pair_only_the_hypothesis_is_edited() -> None:
    pair = ("a superb plot", "the dull end")
    for found in (alternatives(PLAIN, pair), alternatives(PLAIN, pair, encode=encoder())):
        assert found
        assert {text[0] for text in found} == {pair[0]}
        assert {text[1] for text in found} == {"the slow finish", "the boring finish"}


def test_another_field_may_be_chosen() -> None:
    switch = Switch(words=1, pos=False, similarity="none", alternatives=9)
    switcher = Switcher(switch, FakeVictim(), oracles=oracles(switch))
    (found,) = switcher([("a dull day", "the end")], field=0)
    assert set(found) == {("a slow day", "the end"), ("a boring day", "the end")}
    with pytest.raises(UserError, match="no field 2"):
        switcher([("a", "b")], field=2)


def test_alternatives_belong_to_the_text_whatever_the_batch() -> None:
    texts = [TEXT, "a dull end", "superb plot", "the end", "superb, dull plot", "nothing here", TEXT]
    switch = Switch(words=2, pos=True, alternatives=2, multiplier=2)
    alone = [alternatives(switch, text, seed=3) for text in texts]
    for window in (1, 2, 100):
        switcher = Switcher(switch, FakeVictim(), oracles=oracles(switch), window=window)
        assert switcher(texts, seed=3) == alone
        assert switcher(texts[::-1], seed=3) == alone[::-1]
    assert alone[0] == alone[-1]
    assert [alternatives(switch, text, seed=4) for text in texts] != alone


def test_random_numbers_follow_text_field_and_seed() -> None:
    first = text_rng("a", 0, 0).integers(1 << 60)
    assert first == text_rng("a", 0, 0).integers(1 << 60)
    others = [
        text_rng("b", 0, 0),
        text_rng("a", 0, 1),
        text_rng(("a", "b"), 0, 0),
        text_rng(("a", "b"), 1, 0),
    ]
    assert first not in [other.integers(1 << 60) for other in others]
    assert len({other.integers(1 << 60) for other in others}) == 4
    assert text_rng(("ab", "c"), 0, 0).integers(1 << 60) != text_rng(("a", "bc"), 0, 0).integers(1 << 60)


def test_words_that_the_model_does_not_read_are_left_alone() -> None:
    found = alternatives(PLAIN, TEXT, gradients=slopes(unread=["superb"]))
    assert words_at(found, 1) == {"superb"}
    assert words_at(found, 2) == set(NEAR["plot"])


def test_a_text_that_fails_is_named_and_the_others_go_on() -> None:
    def choke(item: Any) -> Any:
        if "plot" in item.text.words:
            raise RuntimeError("no plot")
        return slopes().answer(item)

    switch = Switch(words=1, pos=False, similarity="none", alternatives=1)
    switcher = Switcher(switch, FakeVictim(), oracles=oracles(switch, gradients=Answering(choke)))
    texts = [as_text("the end"), as_text("the plot"), as_text("dull")]
    outcome = {switched.number: switched for switched in switcher.each(texts)}
    assert "no plot" in outcome[1].problem
    assert outcome[0].choices
    assert outcome[2].choices
    with pytest.raises(OracleError, match="no plot"):
        switcher(["the plot"])


def test_a_known_plan_saves_the_gradients() -> None:
    seen = slopes()
    switch = Switch(words=1, pos=False, similarity="none", alternatives=4)
    switcher = Switcher(switch, FakeVictim(), oracles=oracles(switch, gradients=seen))
    text = as_text("superb")
    (first,) = switcher.each([text], seed=0)
    (again,) = switcher.each([text], seed=1, plans=[first.plan])
    assert len(seen.asked) == 1
    assert sorted(again.strings(text)) == sorted(first.strings(text)) == sorted(NEAR["superb"])


def test_switched_and_with_string() -> None:
    text = as_text("Dull, dull.")
    assert switched(text, SwapOptions((1, 0), (("slow", "x"), ("Grey",))), (1, 0)) == "Grey, x."
    assert with_string(as_text(("p", "h")), "new") == ("p", "new")
    assert with_string(as_text("p"), "new") == "new"


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("words", 0, "words=0"),
        ("alternatives", 0, "alternatives=0"),
        ("multiplier", -1, "multiplier=-1"),
        ("similarity", "best", "similarity=best"),
        ("importance", "luck", "importance=luck"),
        ("threshold", 1.5, "threshold=1.5"),
        ("stopwords", "french", "stopwords=french"),
    ],
)
def test_settings_that_make_no_sense(setting: str, value: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        Switch(**{setting: value})


def test_a_model_without_gradients_is_refused() -> None:
    with pytest.raises((CapabilityError, UserError), match=r"gradients|not here"):
        Switcher(Switch(), FakeVictim())


@pytest.mark.parametrize("kind", ["bert", "lstm"])
@pytest.mark.parametrize("importance", ["loss", "squared-logits"])
def test_a_real_model_says_which_words_matter(kind: str, importance: Any) -> None:
    pytest.importorskip("torch")
    from tiny_models import tiny
    from unfooled.victims.torch.oracles import GradientOracle

    victim = tiny(kind)
    switch = Switch(
        words=1, similarity="none", pos=False, alternatives=9, importance=importance, stopwords="none"
    )
    near = {word: ["fun", "dull"] for word in ("film", "movie", "good", "great", "plot")}
    table = oracles(switch, gradients=GradientOracle(victim, of=importance), neighbours=neighbours(near))
    text = "the good film and a great plot"
    (found,) = Switcher(switch, victim, oracles=table)([text])
    (own,) = victim.gradients([text], of=importance)
    norms = {i: own.norms[i] for i, word in enumerate(own.words) if word in near}
    best = max(norms, key=lambda i: norms[i])
    assert {as_text(value).words[best] for value in found} == {"fun", "dull"}
    assert all(
        as_text(value).words[:best] == own.words[:best]
        and as_text(value).words[best + 1 :] == own.words[best + 1 :]
        for value in found
    )


def test_the_example_of_the_documentation_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from doc_pages import DOCS, blocks
    from tiny_models import tiny
    from unfooled.plugins import registry

    made: dict[str, Any] = {"neighbours": neighbours(NEAR), "tag": tags({}), "encode": encoder()}
    load = registry.load
    monkeypatch.setattr(
        registry, "load", lambda kind, name: (lambda _: made[name]) if kind == "oracle" else load(kind, name)
    )
    monkeypatch.setattr(session, "missing_resources", lambda names: [])
    page = DOCS / "how-to" / "harden.md"
    (code,) = [block.code for block in blocks(page, "python") if "Switcher(" in block.code]
    names: dict[str, Any] = {"model": tiny("bert")}
    exec(compile(code, page.name, "exec"), names)
    expected = {f"a {word}, moving film" for word in NEAR["superb"]}
    assert [set(alternative) for alternative in names["alternatives"]] == [expected]
