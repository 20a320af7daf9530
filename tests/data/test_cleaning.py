"""Cleaning: what each step does, that it can be undone, and how it sits in data sets and runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unfooled.core.recipe import load_recipe
from unfooled.core.result import Result
from unfooled.data import cleaning
from unfooled.data.cleaning import GROUPS, STEPS, Change, clean, shortened, steps_named
from unfooled.data.dataset import Dataset
from unfooled.data.loading import load_data
from unfooled.errors import ResourceError, UnknownNameError
from unfooled.report.diffs import as_written
from unfooled.resources import english
from unfooled.resources.english import Speller
from unfooled.runs.attack import attack
from unfooled.runs.export import export
from unfooled.runs.file import RunFile
from unfooled.runs.rows import to_result, to_row
from unfooled.text import Edit
from unfooled.training.class_words import count_class_words
from unfooled.victims.fake import FakeVictim

COUNTS = dict.fromkeys("so cool good flight the not late text really".split(), 100_000)  # noqa: SIM905
COUNTS |= {"soo": 5, "flights": 20_000, "flint": 12_000}


@pytest.fixture(autouse=True)
def small_word_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few words instead of the resource, so that every answer is known."""
    monkeypatch.setattr(cleaning, "open_speller", lambda: Speller(COUNTS))


# -- steps ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "text", "wanted"),
    [
        ("entities", "fish &amp; chips &lt;3 &#39;x&#39; R&D; &nope;", "fish & chips <3 'x' R&D; &nope;"),
        ("links", "see http://t.co/x?a=1&b and www.x.org now", "see  and  now"),
        ("handles", "@united hi @a_b: me@home.org RT @x: y", " hi  me@home.org  y"),
        ("hashtags", "#NeverAgain #FAIL #late2 #x", "Never Again FAIL late 2 x"),
        ("elongations", "sooo coooool GOOOOD aaaargh", "so cool GOOD aargh"),
        ("short-forms", "thx U r gr8 b4, ur 2day's", "thanks You are great before, your 2day's"),
        ("contractions", "I'm DON'T won't it’s Bob's i've", "I am DO NOT will not it is Bob's I have"),
        ("spelling", "flihgt Flihgt FLIHGT fligts texting", "flight Flihgt FLIHGT flights texting"),
        ("spaces", "  a \n b . c  ", "a b. c"),
    ],
)  # fmt: skip
def test_each_step_alone(step: str, text: str, wanted: str) -> None:
    found = clean(text, step)
    assert found.text == wanted
    assert found.put_back(()) == text


def test_a_whole_tweet() -> None:
    found = clean("@united  sooo   late &amp; don't care!! #NeverAgain http://t.co/x", "tweets")
    assert found.text == "so late & do not care!! Never Again"
    assert found.changes[:4] == (
        Change(0, 0, "@united  ", ""),
        Change(9, 0, "sooo", "so"),
        Change(13, 2, "   ", " "),
        Change(21, 8, "&amp;", "&"),
    )
    assert found.put_back(()) == found.original


def test_steps_are_made_in_one_order_whatever_the_order_they_are_named_in() -> None:
    assert steps_named("spaces, handles") == ("handles", "spaces")
    assert steps_named("tweets") == steps_named(["handles", "tweets"]) == GROUPS["tweets"]
    with pytest.raises(UnknownNameError, match="did you mean tweets"):
        steps_named("tweet")


def test_elongated_words_become_the_commonest_shorter_spelling() -> None:
    speller = Speller(COUNTS)
    assert shortened("soooo", speller) == "so"  # soo is known too, but rare
    assert shortened("cooooool", speller) == "cool"
    assert shortened("reallllly", speller) == "really"
    assert shortened("zzzz", speller) == "zz"


def test_the_speller_is_cautious() -> None:
    speller = Speller(COUNTS)
    assert speller.correct("flighht") == "flight"
    assert speller.correct("flint") == "flint", "known words stay"
    assert speller.correct("lte") == "lte", "so do short ones"
    assert speller.correct("plight") == "plight", "the first letter is mostly right"
    assert speller.correct("texted") == "texted", "and forms of known words"
    assert speller.correct("naïve") == "naïve"


# -- undoing -------------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [
        "@united",
        "#NeverAgain",
        "http://t.co/x",
        "don't",
        "sooo",
        "&amp;",
        "flihgt",
        "thx",
        "é",
        "😀",
        "  ",
        "\n",
    ]
)
TWEETS = st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=12).map(" ".join)


@given(TWEETS, st.lists(st.sampled_from([*STEPS, "tweets"]), min_size=1, max_size=4))
@settings(max_examples=200, deadline=None)
def test_cleaning_can_always_be_undone(text: str, steps: list[str]) -> None:
    found = clean(text, steps)
    assert found.put_back(()) == text
    assert len(found.spans) == len(found.text)
    # Stretches of the original stand in its order, and changes say exactly what differs.
    starts = [start for start, _ in found.spans]
    assert starts == sorted(starts)
    again = text
    for change in reversed(found.changes):
        end = change.start + len(change.before)
        assert again[change.start : end] == change.before
        again = again[: change.start] + change.after + again[end:]
    assert again == found.text


@given(TWEETS, st.integers(0, 200))
@settings(max_examples=100, deadline=None)
def test_an_edit_shows_in_the_original_and_nothing_else_is_lost(text: str, place: int) -> None:
    text = text.replace("§", "")
    found = clean(text, "tweets")
    at = place % (len(found.text) + 1)
    put = found.put_back([(at, at, "§")])
    assert put.count("§") == 1
    inside = [change for change in found.changes if change.at < at < change.at + len(change.after)]
    wanted = text
    for change in inside:
        end = change.start + len(change.before)
        wanted = wanted[: change.start] + change.after + wanted[end:]
    assert put.replace("§", "") == wanted


def test_words_are_put_back_where_they_came_from() -> None:
    found = clean("@united sooo late, don't care http://t.co/x", "tweets")
    assert found.text == "so late, do not care"
    assert found.put_back([(3, 7, "slow")]) == "@united sooo slow, don't care http://t.co/x"
    # An edit inside what cleaning changed leaves that stretch clean.
    assert found.put_back([(12, 15, "never")]) == "@united sooo late, do never care http://t.co/x"
    assert found.put_back([(0, 2, "very")]) == "@united very late, don't care http://t.co/x"
    assert found.put_back([(3, 3, "very ")]) == "@united sooo very late, don't care http://t.co/x"
    assert found.put_back([(3, 7, "slow"), (16, 20, "mind")]) == "@united sooo slow, don't mind http://t.co/x"


# -- data sets and runs --------------------------------------------------------------------------------

ROWS = [
    ("@x this film is sooo great http://t.co/a", "positive"),
    ("a dull film", "negative"),
    ("@x", "positive"),
]


def test_rows_are_cleaned_as_they_are_read_and_keep_what_they_were() -> None:
    plain = Dataset.from_pairs(ROWS)
    found = plain.cleaned("tweets")
    first, second, third = found
    assert first.content == (("text", "this film is so great"),)
    assert first.uncleaned == (("text", ROWS[0][0]),)
    assert (second.content, second.uncleaned) == ((("text", "a dull film"),), ())
    assert "nothing is left after cleaning" in third.problem
    assert found.aligned(("negative", "positive")).cleaning == GROUPS["tweets"]
    assert found.fingerprint() != plain.fingerprint() != plain.cleaned("links").fingerprint()
    assert found.fingerprint() == plain.cleaned(list(GROUPS["tweets"])).fingerprint()


def test_every_field_of_a_pair_is_cleaned() -> None:
    data = Dataset.from_pairs([({"premise": "@x so late", "hypothesis": "sooo late"}, 0)]).cleaned("tweets")
    (row,) = data
    assert row.content == (("premise", "so late"), ("hypothesis", "so late"))


def test_load_data_takes_steps_and_a_missing_word_list_names_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "d.jsonl"
    file.write_text(json.dumps({"text": "@x hello there", "label": 0}) + "\n")
    assert next(iter(load_data(file, clean="handles,spaces"))).content == (("text", "hello there"),)
    monkeypatch.setattr(cleaning, "open_speller", english.open_speller)
    monkeypatch.setenv("UNFOOLED_CACHE", str(tmp_path))
    assert load_data(file, clean="handles").cleaning == ("handles",)
    with pytest.raises(ResourceError, match="unfooled resources get english-words"):
        load_data(file, clean="tweets")


def test_a_run_keeps_the_original_for_display_and_export(tmp_path: Path) -> None:
    data = Dataset.from_pairs(ROWS).cleaned("tweets")
    run = attack(FakeVictim(), data, load_recipe("deepwordbug"), out=tmp_path / "run")
    first, second, third = run.results()
    assert first.original == "this film is so great"
    assert first.uncleaned == (("text", ROWS[0][0]),)
    assert second.uncleaned == ()
    assert third.outcome == "error"
    with RunFile.read(run.path) as file:
        steps = file.header["environment"]["cleaning"]
    written = as_written(first, steps)
    assert first.outcome == "success"
    assert written == ROWS[0][0].replace("great", first.edits[0].after)
    assert as_written(second, steps) == second.perturbed
    export(tmp_path / "run", tmp_path / "out.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["text_before_cleaning"] for row in rows] == [text for text, _ in ROWS]
    plain = attack(FakeVictim(), Dataset.from_pairs(ROWS[:2]), "deepwordbug", out=tmp_path / "plain")
    export(plain.path, tmp_path / "plain.jsonl")
    assert "text_before_cleaning" not in json.loads((tmp_path / "plain.jsonl").read_text().splitlines()[0])


def test_results_with_originals_survive_the_run_file() -> None:
    result = Result(
        key=1,
        outcome="success",
        label=0,
        fields=(("premise", "a"), ("hypothesis", "b")),
        field=1,
        perturbed="c",
        edits=(Edit("replace", 0, "b", "c", 0),),
        uncleaned=(("premise", "@x a"), ("hypothesis", "b")),
    )
    assert to_result(to_row(result)) == result


def test_edits_are_shown_on_the_original_with_insertions_and_deletions() -> None:
    steps = GROUPS["tweets"]
    original, cleaned = "@x sooo late today!", "so late today!"
    assert clean(original, steps).text == cleaned
    base = Result(
        key=0,
        outcome="success",
        label=0,
        fields=(("text", cleaned),),
        field=0,
        perturbed="so very late!",
        uncleaned=(("text", original),),
    )
    inserted = Edit("insert", 1, "", "very", 3)
    deleted = Edit("delete", 2, "today", "", 12)
    edits = (inserted, deleted)
    shown = as_written(replace(base, edits=edits), steps)
    assert shown == "@x sooo very late !"
    changed = replace(base, fields=(("text", "another version's text"),), edits=edits)
    assert as_written(changed, steps) == base.perturbed


def test_of_a_review_letters_digits_and_blanks_are_left() -> None:
    assert clean("Don't!<br /><br />It's 4/10 -- dull.", "reviews").text == "Dont Its 410 dull"


def test_a_review_can_be_cut_after_250_words() -> None:
    words = [f"w{number}" for number in range(300)]
    text = "  ".join([*words[:100], "...", *words[100:]])
    cleaned = clean(text, "reviews,first-250")
    assert cleaned.text == " ".join(words[:250])
    assert cleaned.put_back(()) == text
    assert clean(" ".join(words[:250]), "first-250").text == " ".join(words[:250])


@pytest.mark.slow
def test_the_strongest_words_of_the_lstm_paper(shared_data: Path) -> None:
    """Exactly its ten, in its order. They are of whole reviews: cut at 250 words, others come first."""
    words = count_class_words(load_data(shared_data / "imdb", split="train", clean="reviews"))
    negative, positive = ([word for word, _ in words.strongest(label, 5)] for label in (0, 1))
    assert words.labels == ("negative", "positive")
    assert positive == ["edie", "antwone", "din", "gunga", "yokai"]
    assert negative == ["boll", "410", "uwe", "tashan", "hobgoblins"]
