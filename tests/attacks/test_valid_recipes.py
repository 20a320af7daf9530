"""Parts that hold a search to valid texts, by hand-made answers; and the recipes, on the real lexicons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from toys import Answering, attack_one, encoder, linear, neighbours, toy_recipe
from unfooled.attacks.parts.candidates import Neighbours
from unfooled.attacks.parts.constraints import NextText, SamePartOfSpeech, SentenceSimilarity
from unfooled.attacks.parts.english import (
    GoodGrammar,
    InForm,
    MaxChangedShare,
    ProtectedWords,
    RelatedWords,
)
from unfooled.attacks.parts.fluency import Fluency
from unfooled.attacks.parts.goals import Untargeted
from unfooled.attacks.parts.importance import Deletion
from unfooled.attacks.parts.planned import PlannedSwap
from unfooled.attacks.parts.prose import ReadsOn
from unfooled.attacks.parts.search import GreedySwap
from unfooled.attacks.parts.undoing import with_one_undone
from unfooled.attacks.valid import SWAP_VALID
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.engine import Engine
from unfooled.core.recipe import Recipe, load_part, load_recipe
from unfooled.language.english import open_english
from unfooled.language.forms import same_stem
from unfooled.language.oracles import EditEffect, EditOracle, InflectOracle
from unfooled.language.relations import Related
from unfooled.plugins import registry
from unfooled.resources import store
from unfooled.resources.fluency import Score
from unfooled.text import Text

SYNONYM = Related("synonym", 0, 0)


def verdict(
    related: Related = SYNONYM, *, part: str = "adj", changed: str = "", breaks: int = 0, senses: int = 1
) -> EditEffect:
    return EditEffect(part, frozenset({changed} if changed else set()), breaks, related, senses)  # type: ignore[arg-type]


def edits(table: Mapping[str, EditEffect]) -> Answering:
    return Answering(lambda item: tuple(table[word] for word in item[2]))


def alike(*words: str) -> Answering:
    """Whatever the place, these may stand there."""
    return Answering(lambda item: words)


def swaps(text: Text, index: int, words: Sequence[str]) -> list[NextText]:
    return [NextText(text.replace(index, word), index) for word in words]


def allowed(constraint: Any, options: Sequence[NextText], oracles: Mapping[str, Any], now: Text) -> list[str]:
    attempt = Attempt(now.root, 1, Untargeted(), key=0, seed=0)
    program = constraint.allow(attempt, Scored(now, np.array([0.1, 0.9]), 0.1, False), options)
    (finished,) = Engine[list[NextText]](oracles).run([(0, program)])
    assert finished.value is not None
    return [option.word for option in finished.value]


# -- protected words -------------------------------------------------------------------------------


def test_protected_words_stay_and_none_comes_in() -> None:
    text = Text("we never saw Alaska")
    assert allowed(ProtectedWords(), swaps(text, 1, ["always"]), {}, text) == []
    assert allowed(ProtectedWords(negations=False), swaps(text, 1, ["always"]), {}, text) == ["always"]
    assert allowed(ProtectedWords(), swaps(text, 3, ["Texas"]), {}, text) == []
    assert allowed(ProtectedWords(), swaps(text, 2, ["met", "two"]), {}, text) == ["met"]
    inserted = [NextText(text.insert(2, word), 2, inserted=True) for word in ("not", "once", "gladly")]
    assert allowed(ProtectedWords(), inserted, {}, text) == ["gladly"]


# -- grammar ---------------------------------------------------------------------------------------


def test_forms_agreement_and_repetition() -> None:
    text = Text("a dull plot with passionate enthusiasms")
    table = {
        "slow": verdict(),
        "slower": verdict(changed="degree"),
        "odd": verdict(breaks=1),
    }
    others = {"enthusiastic": verdict(), "keen": verdict()}
    oracles = {"edit:wordnet": edits(table | others), "alike:inflections": alike()}
    options = swaps(text, 1, list(table))
    assert allowed(GoodGrammar(), options, oracles, text) == ["slow"]
    assert allowed(GoodGrammar(form=False), options, oracles, text) == ["slow", "slower"]
    assert allowed(GoodGrammar(agreement=False), options, oracles, text) == ["slow", "odd"]
    listed = oracles | {"alike:inflections": alike("slower", "odd")}
    assert allowed(GoodGrammar(), options, listed, text) == ["slow", "slower"]
    repeated = swaps(text, 4, ["enthusiastic", "keen"])
    assert allowed(GoodGrammar(), repeated, oracles, text) == ["keen"]
    assert allowed(GoodGrammar(no_repetition=False), repeated, oracles, text) == ["enthusiastic", "keen"]


def test_inserted_words_pass_unasked() -> None:
    text = Text("a dull plot")
    inserted = [NextText(text.insert(1, "very"), 1, inserted=True)]
    for constraint in (GoodGrammar(), RelatedWords()):
        assert allowed(constraint, inserted, {}, text) == ["very"]


def test_words_of_one_stem() -> None:
    assert same_stem("hack", "hacker")
    assert same_stem("Imagery", "imaging")
    assert not same_stem("film", "movie")
    assert not same_stem("great", "grand")


# -- relations -------------------------------------------------------------------------------------

FAR, CLOSE, SURE = 2.0, 1.08, 0.5  # radians: cosines of -0.42, 0.47 and 0.88


def related(
    word: str,
    found: EditEffect,
    *,
    angle: float = SURE,
    near: bool = False,
    sure: bool = False,
    turned: float = 0.0,
    interchangeable: Sequence[str] = (),
    rule: RelatedWords = RelatedWords(),  # noqa: B008 (frozen)
) -> bool:
    """Whether the word may stand for "dull"; it is `near` that or even `sure`, and `turned` to the good."""
    text = Text("a dull plot")

    def lookup(item: tuple[str, int, float]) -> tuple[str, ...]:
        return (word,) if (sure if item[2] > 0.8 else near or sure) else ()

    oracles = {
        "edit:wordnet": edits({word: found}),
        "neighbours:counter-fitted": Answering(lookup),
        "polarity:counter-fitted": Answering(lambda asked: -0.3 + turned * (asked != "dull")),
        "encode:potion": encoder({word: angle}),
        "alike:inflections": alike(*interchangeable),
    }
    return allowed(rule, swaps(text, 1, [word]), oracles, text) == [word]


@pytest.mark.parametrize(
    ("found", "how_near", "passes"),
    [
        (verdict(SYNONYM), {"angle": CLOSE}, True),
        (verdict(SYNONYM), {"angle": FAR, "sure": True}, False),
        (verdict(SYNONYM), {"turned": 0.3}, False),
        (verdict(Related("synonym", 0, 1)), {"sure": True}, False),
        (verdict(SYNONYM, part="verb"), {"angle": CLOSE}, True),
        (verdict(SYNONYM, part="noun"), {"sure": True}, False),
        (verdict(SYNONYM, part="verb", senses=21), {"sure": True}, False),
        (verdict(SYNONYM, part=""), {"sure": True}, False),
        (verdict(Related("similar", 0, 1)), {}, True),
        (verdict(Related("similar", 0, 1)), {"angle": CLOSE}, False),
        (verdict(Related("similar", 0, 2)), {}, False),
        (verdict(Related("antonym", 0, 0)), {"sure": True}, False),
        (verdict(Related("co-hyponym", 0, 0)), {"sure": True}, False),
        (verdict(Related("hypernym", 0, 0)), {"sure": True}, False),
        (verdict(Related("unknown")), {"sure": True}, False),
        (verdict(Related("unrelated")), {"near": True}, True),
        (verdict(Related("unrelated")), {"near": True, "angle": CLOSE}, False),
        (verdict(Related("unrelated")), {}, False),
        (verdict(Related("unrelated"), part="verb"), {"near": True}, False),
        (verdict(Related("unrelated"), part="verb"), {"sure": True}, True),
    ],
)
def test_which_words_mean_the_same(found: EditEffect, how_near: dict[str, Any], passes: bool) -> None:
    assert related("slow", found, **how_near) is passes


def test_rare_senses_and_nouns_pass_where_they_are_asked_for() -> None:
    assert related("slow", verdict(Related("synonym", 4, 2)), rule=RelatedWords(rarest=6))
    assert not related("slow", verdict(Related("synonym", 4, 3)), rule=RelatedWords(rarest=6))
    assert related("slow", verdict(SYNONYM, part="noun"), rule=RelatedWords(nouns=True))


def test_a_word_of_the_same_stem_and_a_stop_word_are_barred() -> None:
    assert not related("dullish", verdict(), sure=True)
    assert not related("too", verdict(), sure=True)


def test_a_word_that_is_listed_as_interchangeable_passes_whatever_else_is_known_of_it() -> None:
    unlikely = verdict(Related("antonym", 0, 0))
    assert related("dullish", unlikely, angle=FAR, turned=1.0, interchangeable=["dullish"])


# -- read as prose ---------------------------------------------------------------------------------


def test_texts_are_read_as_prose_and_listed_words_may_surprise_more() -> None:
    text = Text("a dull ( and long ) plot , and more .")
    costs = {"dull": 10.0, "slow": 14.0, "drab": 14.0, "flat": 12.5, "arid": 15.0}
    asked: list[str] = []

    def read(item: str) -> Score:
        asked.append(item)
        return Score(-costs[item.removeprefix("Text: a ").split()[0]], 8)

    oracles = {"fluency:smollm2": Answering(read), "alike:inflections": alike("drab", "arid")}
    options = swaps(text, 1, ["slow", "drab", "flat", "arid"])
    assert allowed(ReadsOn(), options, oracles, text) == ["drab", "flat"]
    assert allowed(ReadsOn(most_loss=5, unlisted=5), options, oracles, text) == [*costs][1:]
    assert asked[0] == "Text: a dull (and long) plot, and more."


# -- share, forms, undoing -------------------------------------------------------------------------


def test_one_change_is_always_allowed() -> None:
    text = Text("one two three four five six")
    options = swaps(text, 0, ["other"])
    assert allowed(MaxChangedShare(0.0), options, {}, text) == ["other"]
    assert allowed(MaxChangedShare(0.2), swaps(text.replace(3, "x"), 0, ["y"]), {}, text) == []
    assert allowed(MaxChangedShare(0.34), swaps(text.replace(3, "x"), 0, ["y"]), {}, text) == ["y"]
    assert allowed(MaxChangedShare(1.0, words=1), swaps(text.replace(3, "x"), 0, ["y"]), {}, text) == []
    with pytest.raises(ValueError, match="between 0 and 1"):
        MaxChangedShare(1.5)
    with pytest.raises(ValueError, match="at least 1"):
        MaxChangedShare(0.5, words=0)


def test_candidates_take_the_form_of_the_word() -> None:
    forms = {"see": "Saw", "watched": "watched", "eye": ""}
    oracles = {
        "victim": linear({"Watched": 0.4, "Saw": -0.5}),
        "neighbours:toy": neighbours({"watched": ["eye", "see"]}),
        "inflect:inflections": Answering(lambda item: tuple(forms[word.lower()].lower() for word in item[2])),
    }
    search = GreedySwap(
        importance=Deletion(), candidates=InForm(sources=(Neighbours(table="toy"),)), constraints=()
    )
    assert attack_one(toy_recipe(search), oracles, "Watched").perturbed == "Saw"


def planned(checks: Any = (), **settings: Any) -> Recipe:
    return toy_recipe(
        PlannedSwap(candidates=Neighbours(table="toy"), constraints=(), checks=checks, **settings)
    )


def test_a_planned_search_tries_every_word_and_makes_the_best_edits_first() -> None:
    oracles = {
        "victim": linear({"good": 0.3, "fine": 0.1, "so": 0.05, "bad": -0.3, "poor": -0.05}),
        "neighbours:toy": neighbours({"good": ["poor", "bad"], "fine": ["poor"], "so": ["very"]}),
    }
    found = attack_one(planned(), oracles, "so fine good")
    assert (found.outcome, found.perturbed) == ("success", "so fine bad")
    assert found.queries == 5  # the original and each edit alone; the best of them was known by then


def test_of_a_long_text_a_spent_budget_leaves_the_later_words_unread() -> None:
    """Each option is a whole text; those of all places together filled the memory."""
    tags = Answering(lambda item: ("ADJ", *["ADJ" for _ in item[2]]))
    oracles = {
        "victim": linear({"good": 0.3}),
        "neighbours:toy": neighbours({"good": ["poor", "bad"]}),
        "tag:toy": tags,
    }
    context = SamePartOfSpeech(tagger="toy", before=4500)  # no two places are shown with the same words
    search = PlannedSwap(candidates=Neighbours(table="toy"), constraints=(context,))
    found = attack_one(toy_recipe(search), oracles, " ".join(["good"] * 5000), budget=10)
    assert (found.queries, found.note) == (10, "the budget of 10 queries is spent")
    assert len(tags.asked) < 500


def test_edits_that_a_success_does_not_need_are_undone() -> None:
    """Together the small edits were needed before the large one was made; after it they are not."""
    weights = {"fine": 0.3, "good": 0.2, "bad": -0.1, "awful": -0.15}
    oracles = {
        "victim": linear(weights),
        "neighbours:toy": neighbours({"fine": ["bad"], "good": ["awful"]}),
    }
    found = attack_one(planned(), oracles, "fine good")
    assert (found.outcome, found.perturbed) == ("success", "bad awful")
    oracles["victim"] = linear(weights | {"awful": -0.9})
    found = attack_one(planned(), oracles, "fine good")
    assert (found.outcome, found.perturbed) == ("success", "fine awful")
    spent = attack_one(planned(), oracles, "fine good", budget=found.queries)
    assert spent.perturbed == found.perturbed


def a_check_that_refuses_bad(other: str, weight: float) -> tuple[dict[str, Any], tuple[Fluency]]:
    """Two words for `good` that would succeed; the language model stumbles over the first."""
    oracles = {
        "victim": linear({"good": 0.3, "bad": -0.3, other: weight}),
        "neighbours:toy": neighbours({"good": ["bad", other]}),
        "fluency:toy": Answering(lambda text: Score(-9.0 if "bad" in text else -1.0, 1)),
    }
    return oracles, (Fluency(most_loss=5.0, model="toy", against="current"),)


def test_what_a_check_refuses_is_not_made_again() -> None:
    oracles, careful = a_check_that_refuses_bad("poor", -0.2)
    assert attack_one(planned(), oracles, "a good plot").perturbed == "a bad plot"
    assert attack_one(planned(careful), oracles, "a good plot").perturbed == "a poor plot"
    oracles["neighbours:toy"] = neighbours({"good": ["bad"]})
    refused = attack_one(planned(careful), oracles, "a good plot")
    assert (refused.outcome, refused.perturbed) == ("failure", "a good plot")


def test_a_success_is_checked_though_the_budget_is_spent() -> None:
    oracles, careful = a_check_that_refuses_bad("worst", -0.4)
    plain = attack_one(planned(), oracles, "a good plot", budget=2)
    assert (plain.outcome, plain.perturbed, plain.queries) == ("success", "a bad plot", 2)
    checked = attack_one(planned(careful), oracles, "a good plot", budget=2)
    assert (checked.outcome, checked.perturbed) == ("failure", "a good plot")
    assert "budget" in plain.note
    assert "budget" in checked.note


def test_slow_models_are_asked_of_successes_only() -> None:
    slow = Answering(lambda text: Score(-1.0, 1))
    oracles = {
        "victim": linear({"good": 0.3, "poor": -0.05}, bias=0.3),
        "neighbours:toy": neighbours({"good": ["poor"]}),
        "fluency:toy": slow,
    }
    checks = (Fluency(most_loss=5.0, model="toy", against="current"),)
    assert attack_one(planned(checks), oracles, "a good plot").outcome == "failure"
    assert slow.asked == []


def test_each_edit_undone_alone() -> None:
    text = Text("a dull old film").replace(1, "slow").insert(3, "and")
    assert [undone.string for undone in with_one_undone(text)] == ["a dull old and film", "a slow old film"]


# -- the recipes -----------------------------------------------------------------------------------


def test_the_plain_names_mean_what_they_meant() -> None:
    assert load_recipe("textfooler").full_name == "textfooler@textattack"
    assert load_recipe("bae-r").full_name == "bae-r@paper"
    assert load_recipe("textfooler@valid").full_name == "textfooler@valid"
    assert {"edit:wordnet", "inflect:inflections", "tag:perceptron-tagger", "encode:potion"} <= set(
        load_recipe("bae-r@valid").oracles()
    )


def test_parts_are_found_by_name() -> None:
    assert load_part("constraint", "max-changed-share:0.1") == MaxChangedShare(0.1)
    assert load_part("constraint", "good-grammar") == GoodGrammar()
    assert load_part("constraint", "related-words") == RelatedWords()
    assert load_part("constraint", "reads-on:6") == ReadsOn(6)
    assert load_part("constraint", "protected-words") == ProtectedWords()


def test_oracles_on_the_real_lexicons() -> None:
    for name in ("perceptron-tagger", "wordnet", "inflections"):
        if not store.has(name):
            pytest.skip(f"the resource {name} is not here")
    inflect, edit = InflectOracle(open_english()), EditOracle(open_english())
    text = "she watches an old movie ."
    assert inflect([(text, 1, ("see", "view", "film", "of"))]) == [("sees", "views", "films", "")]
    ((film, flicks, season),) = edit([(text, 4, ("film", "flicks", "season"))])
    assert (film.part, film.changed, film.disagreements, film.related) == ("noun", frozenset(), 0, SYNONYM)
    assert (flicks.changed, flicks.disagreements) == (frozenset({"number"}), 1)
    assert season.related.relation == "unrelated"
    ((new,),) = edit([(text, 3, ("new",))])
    assert (new.disagreements, new.related.relation) == (1, "antonym")


# -- what readers' eyes ask for, each by a case on the real lexicons ---------------------------------

NEEDED = ("perceptron-tagger", "wordnet", "inflections", "counter-fitted", "potion")
REFUSED = [
    ("number", "it tells a moving story of two sisters .", "story", "stories"),
    ("tense", "she watched the whole film twice .", "watched", "views"),
    ("verb form", "he is trying to amuse us .", "trying", "attempted"),
    ("degree", "the sequel is a nicer film .", "nicer", "pleasant"),
    ("a or an", "she saw a strange film last night .", "strange", "odd"),
    ("agreement", "he likes this picture very much .", "picture", "films"),
    ("names", "we met Alan in Trout Creek yesterday .", "Trout", "Fisheries"),
    ("a name that comes in", "we met a friend in the evening .", "evening", "Night"),
    ("numbers", "it runs for two hours and ends .", "two", "three"),
    ("negations", "it is never dull .", "never", "always"),
    ("links", "see www.great.com for more of it .", "great", "grand"),
    ("handles", "thanks @wonderful for a nice film .", "wonderful", "marvelous"),
    ("hashtags", "what a night #wonderful film .", "wonderful", "marvelous"),
    ("two of a kind", "we went there in the summer .", "summer", "winter"),
    ("opposites", "it is a good film for kids .", "good", "bad"),
    ("opposites by their groups", "it is a superb film for kids .", "superb", "awful"),
    ("attitude", "it is a hilarious film for kids .", "hilarious", "laughable"),
    ("a noun that only the lexicon knows", "the basic premise is intriguing .", "premise", "assumption"),
    ("a rare sense", "a funny little gem of a film .", "funny", "laughable"),
    ("the same stem", "a hack directed this film .", "hack", "hacker"),
]
ACCEPTED = [
    ("it tells a moving story of two sisters .", "story", "tale"),
    ("she watched the whole film twice .", "watched", "viewed"),
    ("he is trying to amuse us .", "trying", "attempting"),
    ("she saw a strange film last night .", "strange", "bizarre"),
    ("he likes this picture very much .", "picture", "film"),
    ("the humor is fine , but the plot is thin .", "humor", "humour"),
    ("the humor is fine , but the plot is thin .", "but", "yet"),
]


@pytest.fixture(scope="module")
def real_oracles() -> dict[str, Any]:
    if missing := [name for name in NEEDED if not store.has(name)]:
        pytest.skip(f"not here: {', '.join(missing)}")
    asked = {name for constraint in SWAP_VALID.constraints for name in getattr(constraint, "asks", ())}
    return {
        name: registry.load("oracle", kind)(variant)
        for name in asked
        for kind, _, variant in [name.partition(":")]
    }


def passes_all(text: str, word: str, other: str, oracles: Mapping[str, Any]) -> bool:
    now = Text(text)
    options = swaps(now, now.words.index(word), [other])
    for constraint in SWAP_VALID.constraints:
        kept = allowed(constraint, options, oracles, now)
        options = [option for option in options if option.word in kept]
    return bool(options)


@pytest.mark.parametrize(
    ("text", "word", "other"), [case[1:] for case in REFUSED], ids=[c[0] for c in REFUSED]
)
def test_what_a_reader_would_not_accept_is_refused(
    text: str, word: str, other: str, real_oracles: dict[str, Any]
) -> None:
    assert not passes_all(text, word, other, real_oracles)


@pytest.mark.parametrize(("text", "word", "other"), ACCEPTED)
def test_what_a_reader_would_accept_is_allowed(
    text: str, word: str, other: str, real_oracles: dict[str, Any]
) -> None:
    assert passes_all(text, word, other, real_oracles)


def test_short_texts_are_measured_too() -> None:
    text = Text("dull film")
    (similarity,) = [part for part in SWAP_VALID.constraints if isinstance(part, SentenceSimilarity)]
    oracles = {"encode:potion": encoder({"slow": FAR, "drab": 0.1})}
    assert allowed(similarity, swaps(text, 0, ["slow", "drab"]), oracles, text) == ["drab"]
