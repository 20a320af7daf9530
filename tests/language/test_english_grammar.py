"""What English grammar says about an edit: hand-made cases, and a few on the real tagger and lexicons."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from unfooled.language.agreement import disagreements, indefinite_article, new_disagreements
from unfooled.language.edits import WordEdit, align, tagged_edits
from unfooled.language.english import open_english
from unfooled.language.forms import changed_form, form_of
from unfooled.language.inflection import has_form, inflect, lemmas, part_of, tag_by_form
from unfooled.language.protected import protected_words
from unfooled.language.relations import Related, Relations
from unfooled.language.tagging import PennTagger, penn_tokens, pieces, tag_texts
from unfooled.resources import store
from unfooled.resources.inflections import InflectionTable
from unfooled.resources.synonyms import WordForm
from unfooled.resources.wordnet import SenseKey, Synset, WordNet
from unfooled.text import Text


class ByWord:
    """A tagger that knows one tag for each word, NN for all others, and remembers what it was shown."""

    def __init__(self, **tags: str) -> None:
        self.tags = tags
        self.seen: list[list[str]] = []
        self.most = 0  # words shown in one call

    def tag_all(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        self.most = max(self.most, sum(map(len, sentences)))
        self.seen += [list(sentence) for sentence in sentences]
        return [[self.tags.get(word, "NN") for word in sentence] for sentence in sentences]


# -- tags ------------------------------------------------------------------------------------------


def test_the_tagger_sees_punctuation_and_clitics_as_tokens() -> None:
    tokens, places = penn_tokens(Text("Well, it’s not -- don't ask!"))
    assert tokens == ["Well", ",", "it", "'s", "not", "--", "do", "n't", "ask", "!"]
    assert places == [0, 2, 4, 6, 8]
    assert pieces("n't") == ["n't"]


def test_a_word_has_the_tag_of_its_first_piece() -> None:
    (tags,) = tag_texts([Text("it's fine")], ByWord(it="PRP", fine="JJ"))
    assert tags == ("PRP", "JJ")


def test_equal_texts_are_tagged_once_and_long_ones_a_few_at_a_time() -> None:
    """The tagger holds a row of scores for each word: a thousand copies of a long text filled the memory."""
    long = Text("it is a fine film " * 1000)
    tagger = ByWord(it="PRP", fine="JJ")
    found = tag_texts([long] * 300 + [long.replace(place, "fine") for place in range(100)], tagger)
    assert len(tagger.seen) == 81  # the long text itself, and 80 others: "fine" stood in 20 places
    assert tagger.most <= 80_000
    assert found[0][:5] == ("PRP", "NN", "NN", "JJ", "NN")
    assert [tags[0] for tags in found[300:302]] == ["JJ", "PRP"]


@pytest.mark.parametrize(
    ("tag", "other", "changed"),
    [
        ("NN", "NN", set()),
        ("NN", "NNS", {"number"}),
        ("NN", "NNP", {"name"}),
        ("VBZ", "VBP", {"number"}),
        ("VBZ", "VBD", {"tense"}),
        ("VBD", "VBN", {"verb form"}),
        ("JJ", "JJR", {"degree"}),
        ("RB", "RBS", {"degree"}),
        ("NN", "VB", {"part of speech"}),
        ("IN", "CC", {"part of speech"}),
        ("IN", "IN", set()),
    ],
)
def test_what_fine_tags_tell(tag: str, other: str, changed: set[str]) -> None:
    assert changed_form(tag, other) == changed
    assert changed_form(other, tag) == changed


def test_a_tag_without_forms_is_its_own_part_of_speech() -> None:
    assert form_of("IN").part == "IN"


# -- edits -----------------------------------------------------------------------------------------


def word_edits(before: Text, after: Text, tagger: PennTagger) -> list[WordEdit]:
    own, new = tag_texts([before, after], tagger)
    return tagged_edits(before.words, after.words, own, new, align(before.words, after.words, own, new))


def test_foreign_texts_are_aligned_by_part_of_speech() -> None:
    tagger = ByWord(are="VB", **{"is": "VB"}, really="RB", great="JJ", the="DT")
    found = word_edits(Text("the films are great"), Text("the movie is really great"), tagger)
    assert [(edit.kind, edit.before, edit.after) for edit in found] == [
        ("replace", "films", "movie"),
        ("replace", "are", "is"),
        ("insert", "", "really"),
    ]
    assert [(edit.place_before, edit.place_after) for edit in found] == [(1, 1), (2, 2), (3, 3)]


def test_alignment_at_both_ends() -> None:
    assert align(["a", "b"], ["b"]) == [(0, None)]
    assert align(["b"], ["b", "c"]) == [(None, 1)]
    assert align([], ["x"]) == [(None, 0)]
    assert align(["x"], ["x"]) == []
    assert align(["fine", "films"], ["film"]) == [(0, None), (1, 0)]


# -- protected words -------------------------------------------------------------------------------


def test_names_numbers_and_addresses_are_protected() -> None:
    text = Text("In 1999 Tom Hanks didn't see @bob at www.foo.com/x. Trout swim, two of them; McDonald #won.")
    found = {text.words[i]: kind for i, kind in protected_words(text).items()}
    assert found == {
        "1999": "number", "Tom": "name", "Hanks": "name", "didn't": "negation", "bob": "handle",
        "www": "link", "foo": "link", "com": "link", "x": "link", "two": "number", "McDonald": "name",
        "won": "hashtag",
    }  # fmt: skip


def test_a_capital_at_the_start_tells_with_another_behind_it() -> None:
    assert protected_words(Text("Trout fishing is fun")) == {}
    assert protected_words(Text("Rocky Balboa is fun")) == {0: "name", 1: "name"}
    assert protected_words(Text("I saw it and I'm glad")) == {}


def test_the_casing_of_a_heading_tells_nothing() -> None:
    assert protected_words(Text("A VERY DULL FILM INDEED")) == {}


# -- agreement -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("article", "words"),
    [
        (
            "an",
            "hour honest heir apple unusual uninteresting unimaginative uncle utter urban FBI MTV 8 11 only",
        ),
        ("a", "house hilarious European unique union useful one once-great UFO NASA 10 university film"),
    ],
)
def test_the_article_follows_the_sound(article: str, words: str) -> None:
    assert {word: indefinite_article(word) for word in words.split()} == dict.fromkeys(words.split(), article)


@pytest.mark.parametrize(
    ("words", "tags", "rules"),
    [
        ("a apple", "DT NN", ["article"]),
        ("an apple", "DT NN", []),
        ("these old film", "DT JJ NN", ["determiner"]),
        ("this movies", "DT NNS", ["determiner"]),
        ("this is fine", "DT VBZ JJ", []),
        ("a film students like", "DT NN NNS VBP", ["determiner"]),
        ("every Rolling Stones song", "DT NNP NNPS NN", []),
        ("he walk", "PRP VBP", ["subject"]),
        ("they often sees", "PRP RB VBZ", ["subject"]),
        ("the plot are thin", "DT NN VBP JJ", ["subject"]),
        ("the plot of the films is thin", "DT NN IN DT NNS VBZ JJ", []),
    ],
)
def test_agreement(words: str, tags: str, rules: list[str]) -> None:
    assert [broken.rule for broken in disagreements(words.split(), tags.split())] == rules


def test_only_new_disagreements_count() -> None:
    tags = ["DT", "NN", "VBZ"]
    assert new_disagreements(["a", "apple", "falls"], tags, ["a", "orange", "falls"], tags) == 0
    assert new_disagreements(["a", "pear", "falls"], tags, ["a", "orange", "falls"], tags) == 1


# -- forms -----------------------------------------------------------------------------------------

TABLE = InflectionTable(
    {
        ("good", "adj"): {"JJR": ("better",), "JJS": ("best",)},
        ("dull", "adj"): {},
        ("break", "verb"): {"VBD": ("broke",), "VBN": ("broken",), "VBG": ("breaking",), "VBZ": ("breaks",)},
        ("break", "noun"): {"NNS": ("breaks",)},
    }
)


@pytest.mark.parametrize(
    ("lemma", "tag", "form"),
    [
        ("good", "JJR", "better"),
        ("break", "VBN", "broken"),
        ("break", "NNS", "breaks"),
        ("dull", "JJR", ""),  # listed without one
        ("Break", "VB", "break"),
        ("blog", "VBD", "blogged"),
        ("blog", "VBG", "blogging"),
        ("vibe", "VBG", "vibing"),
        ("vibe", "VBD", "vibed"),
        ("scry", "VBD", "scried"),
        ("scry", "VBZ", "scries"),
        ("quux", "NNS", "quuxes"),
        ("quuxy", "JJR", ""),
        ("tom", "NNP", ""),
        ("of", "IN", "of"),
    ],
)
def test_a_lemma_takes_the_form_of_a_tag(lemma: str, tag: str, form: str) -> None:
    assert inflect(lemma, tag, TABLE) == form


def test_lemmas_of_a_form() -> None:
    assert lemmas("Better", "JJR", TABLE) == ["good"]
    assert lemmas("breaks", "NNS", TABLE) == ["break"]
    assert lemmas("quuxes", "NNS", TABLE) == ["quuxes"]
    assert has_form("broke", "VBD", TABLE)
    assert not has_form("broke", "VBN", TABLE)
    assert part_of("RP") == ""


def test_a_tag_that_the_form_cannot_have_is_corrected() -> None:
    assert tag_by_form("break", "VBD", TABLE) == "VBP"
    assert tag_by_form("breaks", "VBP", TABLE) == "VBZ"
    assert tag_by_form("breaks", "NN", TABLE) == "NNS"
    assert tag_by_form("quux", "VBD", TABLE) == "VBD"


# -- relations -------------------------------------------------------------------------------------


def small_net() -> Relations:
    season, summer, winter = ("noun", 1), ("noun", 2), ("noun", 3)
    good, bad, superb, awful = ("adj", 1), ("adj", 2), ("adj", 3), ("adj", 4)
    synsets: dict[SenseKey, Synset] = {
        season: Synset(("season",), (), ()),
        summer: Synset(("summer", "summertime"), (), (), (season,)),
        winter: Synset(("winter",), (), (), (season,)),
        good: Synset(("good",), ((bad, 1, 1),), (superb,)),
        bad: Synset(("bad",), ((good, 1, 1),), (awful,)),
        superb: Synset(("superb", "splendid"), (), (good,)),
        awful: Synset(("awful",), (), (bad,)),
    }
    senses: dict[tuple[str, str], list[SenseKey]] = {}
    for key, synset in synsets.items():
        for word in synset.words:
            senses[key[0], word] = [key]
    senses["adj", "splendid"] = [good, superb]  # its second sense
    net = WordNet(synsets, senses)
    return Relations(net, lambda word: [WordForm(part, word, "") for part, base in senses if base == word])


@pytest.mark.parametrize(
    ("word", "other", "related"),
    [
        ("summer", "Summer", Related("same")),
        ("summer", "summertime", Related("synonym", 0, 0)),
        ("superb", "splendid", Related("synonym", 0, 1)),
        ("summer", "winter", Related("co-hyponym", 0, 0)),
        ("summer", "season", Related("hypernym", 0, 0)),
        ("season", "winter", Related("hyponym", 0, 0)),
        ("good", "bad", Related("antonym", 0, 0)),
        ("superb", "awful", Related("antonym", 0, 0)),
        ("good", "superb", Related("similar", 0, 0)),
        ("good", "summer", Related("unrelated")),
        ("good", "zzz", Related("unknown")),
    ],
)
def test_relations(word: str, other: str, related: Related) -> None:
    assert small_net().of(word, other) == related


def test_a_part_of_speech_narrows_the_relation() -> None:
    assert small_net().of("summer", "winter", "noun").relation == "co-hyponym"
    assert small_net().of("summer", "winter", "verb").relation == "unknown"


# -- on the real tagger and lexicons -----------------------------------------------------------------


def test_the_real_lexicons_tell_the_same() -> None:
    for name in ("perceptron-tagger", "wordnet", "inflections"):
        if not store.has(name):
            pytest.skip(f"the resource {name} is not here")
    english = open_english()
    relations = {
        pair: english.relations.of(*pair).relation
        for pair in [("summer", "winter"), ("good", "bad"), ("films", "movie"), ("terrible", "great")]
    }
    assert list(relations.values()) == ["co-hyponym", "antonym", "synonym", "antonym"]
    assert inflect("good", "JJR", english.inflections) == "better"
    assert inflect("watch", "VBZ", english.inflections) == "watches"
    assert inflect("see", "VBD", english.inflections) == "saw"
    assert inflect("be", "VBZ", english.inflections) == "is"
    (edit,) = word_edits(Text("he watches the film ."), Text("he watched the film ."), english.tagger)
    assert (edit.tag_before, edit.tag_after) == ("VBZ", "VBD")
