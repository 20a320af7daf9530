from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unfooled.text import Edit, Text, match_case

NASTY = st.text(
    alphabet=st.one_of(st.sampled_from(list("ab'-_*@’. \t\n<>😀é𝟕中")), st.characters(codec="utf-8")),
    max_size=60,
)


def joined(text: Text) -> str:
    return "".join(gap + word for gap, word in zip(text.gaps, (*text.words, ""), strict=True))


@given(NASTY)
def test_every_byte_of_the_input_comes_back(content: str) -> None:
    text = Text(content)
    assert text.string == content == joined(text)
    assert [content[at : at + len(word)] for at, word in zip(text.starts, text.words, strict=True)] == list(
        text.words
    )
    assert text.edits() == []


@given(NASTY, st.lists(st.tuples(st.integers(0, 50), st.sampled_from(["replace", "delete", "insert"]))))
def test_edits_keep_words_gaps_and_string_in_step(content: str, steps: list[tuple[int, str]]) -> None:
    text = Text(content)
    expected_inserts = 0
    for place, kind in steps:
        if kind == "insert":
            text = text.insert(place % (len(text.words) + 1), "new")
            expected_inserts += 1
        elif text.words:
            i = place % len(text.words)
            if kind == "delete":
                expected_inserts -= text.origin[i] < 0
                text = text.delete(i)
            else:
                text = text.replace(i, "other")
        assert text.string == joined(text)
    kinds = [edit.kind for edit in text.edits()]
    assert kinds.count("insert") == expected_inserts
    kept = [i for i in text.origin if i >= 0]
    assert kept == sorted(kept)
    assert kinds.count("delete") == len(text.root.words) - len(kept)
    for edit in text.edits():
        assert text.string[edit.at : edit.at + len(edit.after)] == edit.after


def test_words_are_found_inside_punctuation() -> None:
    text = Text("Well, it's a  'great' film -- don't miss_it! 😀")
    assert text.words == ("Well", "it's", "a", "great", "film", "don't", "miss_it")


def test_edits_are_aligned_not_positional() -> None:
    text = Text("a fine and funny film").insert(1, "very").delete(3).replace(3, "droll")
    assert text.string == "a very fine droll film"
    assert text.edits() == [
        Edit("insert", 1, "", "very", 2, 1),
        Edit("delete", 2, "and", "", 12, 2),
        Edit("replace", 3, "funny", "droll", 12, 3),
    ]
    assert text.changes == 3
    assert text.perturbed == pytest.approx(3 / 5)


def test_an_inserted_word_may_follow_the_word_before_it_at_once() -> None:
    text = Text("a superb, pleasant film")
    assert text.insert(2, "truly").string == "a superb, truly pleasant film"
    assert text.insert(2, "indeed", after=True).string == "a superb indeed, pleasant film"
    assert text.insert(0, "what", after=True).string == "what a superb, pleasant film"
    assert text.insert(4, "still", after=True).string == "a superb, pleasant film still"


def test_steps_tell_the_order_of_edits_and_the_last_edit_of_a_word_counts() -> None:
    text = Text("one two three four")
    text = text.replace(3, "vier").insert(1, "new").replace(1, "newer").delete(0).replace(2, "drei")
    assert text.string == "newer two drei vier"
    assert [(edit.kind, edit.after, edit.step) for edit in text.edits()] == [
        ("insert", "newer", 3),
        ("delete", "", 4),
        ("replace", "drei", 5),
        ("replace", "vier", 1),
    ]


@given(st.lists(st.tuples(st.integers(0, 50), st.sampled_from(["replace", "left", "right"])), max_size=6))
def test_undoing_edits_in_falling_order_leads_back_through_every_text(steps: list[tuple[int, str]]) -> None:
    text = Text("One, two (three) four; 'five' six -- seven.")
    passed = [text.string]
    replaced: set[int] = set()
    for place, kind in steps:
        i = place % len(text.words)
        if kind == "replace":
            if text.origin[i] in replaced or text.origin[i] < 0:
                continue  # only the last edit of a word is told, so a word that is edited twice hides one
            replaced.add(text.origin[i])
            text = text.replace(i, "other")
        else:
            text = text.insert(i + (kind == "right"), "new", after=kind == "right")
        passed.append(text.string)
    assert undone(text.string, text.edits()) == passed


def undone(string: str, edits: list[Edit]) -> list[str]:
    """Every text on the way, from what a run file holds: a replaced word comes back, an inserted one goes
    with the space behind it, or the one before it where none is behind."""
    texts = [string]
    left = sorted(edits, key=lambda edit: -edit.step)
    while left:
        edit, *left = left
        begin, end = edit.at, edit.at + len(edit.after)
        if edit.kind == "insert":
            begin, end = (begin, end + 1) if string[end : end + 1] == " " else (begin - 1, end)
        string = string[:begin] + edit.before + string[end:]
        shift = len(edit.before) - (end - begin)
        left = [later._replace(at=later.at + shift) if later.at > edit.at else later for later in left]
        texts.append(string)
    return texts[::-1]


def test_a_word_changed_back_is_no_edit() -> None:
    assert Text("good film").replace(0, "bad").replace(0, "good").edits() == []


def test_pairs_name_the_field_that_may_be_edited() -> None:
    pair = Text({"premise": "A man sleeps.", "hypothesis": "He rests."})
    assert pair.replace(1, "runs").value == ("A man sleeps.", "He runs.")
    other = Text({"premise": "A man sleeps.", "hypothesis": "He rests."}, edit="premise")
    assert other.replace(2, "runs").value == ("A man runs.", "He rests.")
    with pytest.raises(ValueError, match="premise, hypothesis"):
        Text({"premise": "a", "hypothesis": "b"}, edit="text")


@pytest.mark.parametrize(
    ("index", "expected"), [(0, "a b c"), (1, "a b c"), (2, "b c d"), (4, "d e, f"), (5, "d e, f")]
)
def test_window_is_centred_and_shifted_inwards(index: int, expected: str) -> None:
    assert Text("a b c d e, f!").window(index, 3) == expected


@given(
    st.lists(st.sampled_from(["a", "bb", "c-c"]), min_size=1, max_size=12),
    st.integers(0, 11),
    st.integers(1, 15),
)
def test_a_window_with_another_word_is_the_window_of_the_edited_text(
    words: list[str], at: int, size: int
) -> None:
    text, index = Text(", ".join(words)), at % len(words)
    assert text.window(index, size, "other") == text.replace(index, "other").window(index, size)


def test_window_of_a_short_text_is_all_of_it() -> None:
    assert Text(" one two. ").window(0, 15) == "one two"
    # 0: from the first word to the last, however many; None: all of it.
    long = Text(f"({'so ' * 50}long).")
    assert long.window(3, 0) == "so " * 50 + "long"
    assert long.window(3, None) == long.string


def test_deleting_takes_one_space_along() -> None:
    text = Text("so, a fine film")
    assert [text.delete(i).string for i in range(4)] == [
        ", a fine film",
        "so, fine film",
        "so, a film",
        "so, a fine",
    ]


def test_span_keeps_only_some_words() -> None:
    text = Text("one, two three!")
    assert text.span(0, 2).string == "one, two"
    assert text.span(1, 3).words == ("two", "three")


def test_casing_follows_the_replaced_word() -> None:
    assert [match_case("film", like) for like in ("Movie", "MOVIE", "mOvIe")] == ["Film", "FILM", "film"]
    assert match_case("Film", "movie") == "film"


def test_backticks_by_themselves_are_no_words() -> None:
    """As the documentation promises; TextAttack counts them, so its shares of changed words are lower."""
    text = Text("`` it's a film ' ' - of ` sorts `` --")
    assert text.words == ("it's", "a", "film", "of", "sorts")
    promised = (Path(__file__).parents[2] / "docs" / "reference" / "data.md").read_text(encoding="utf-8")
    assert "A backtick or a dash by itself is none: TextAttack counts them" in promised
