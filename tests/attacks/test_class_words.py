"""Word lists of a naive Bayes model, the command that makes them, and the attacks that swap them in."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reviews import sentences, write_csv
from toys import Answering, attack_one, linear
from unfooled import attack, load_data
from unfooled.attacks.parts.class_words import open_class_words, target_of
from unfooled.attacks.parts.goals import Targeted, Untargeted
from unfooled.cli.app import main
from unfooled.core.recipe import Recipe, load_recipe, with_setting
from unfooled.core.result import Result
from unfooled.data.dataset import Dataset
from unfooled.errors import DataError, ResourceError, UnknownNameError
from unfooled.resources.class_words import ClassWords, read_word_list
from unfooled.runs.file import RunFile
from unfooled.training.class_words import count_class_words
from unfooled.victims.fake import FakeVictim
from word_toys import VectorVictim

# Tokens: 10 of each class; 5 distinct words. p(good | pos) = 5 / 15, p(good | neg) = 1 / 15, and so on.
COUNTS = {"good": (0, 4), "fine": (0, 4), "bad": (4, 0), "odd": (4, 0), "film": (2, 2)}


def table(**counts: tuple[int, ...]) -> ClassWords:
    labels = ("negative", "positive", "neutral")[: len(next(iter(counts.values())))]
    columns: list[dict[str, int]] = [{} for _ in labels]
    for word, row in counts.items():
        for column, count in zip(columns, row, strict=True):
            column[word] = count
    return ClassWords.of(labels, columns, data="toy", fingerprint="f00")


TABLE = table(**COUNTS)


def test_the_sway_is_the_ratio_of_smoothed_probabilities() -> None:
    assert TABLE.sway("good", 1) == pytest.approx(5.0)  # (5/15) / (1/15)
    assert TABLE.sway("good", 0) == pytest.approx(0.2)
    assert TABLE.sway("Film", 1) == pytest.approx(1.0)
    assert TABLE.sway("never", 0) == pytest.approx(1.0)  # 1/15 against 1/15
    uneven = table(good=(0, 3), bad=(1, 0))
    # 1 token against 3, two words: unknown (1/3) / (1/5), good (1/3) / (4/5)
    assert uneven.sway("never", 0) == pytest.approx(5 / 3)
    assert uneven.sway("good", 0) == pytest.approx(5 / 12)


def test_ties_are_broken_in_lexicographic_order() -> None:
    assert [word for word, _ in TABLE.strongest(1, 3)] == ["fine", "good", "film"]
    assert [word for word, _ in TABLE.strongest(0, 2)] == ["bad", "odd"]
    assert [word for word, _ in TABLE.strongest(0, 99)] == ["bad", "odd", "film", "fine", "good"]


def test_more_than_two_classes_are_compared_with_the_mean_of_the_others() -> None:
    three = table(good=(0, 4, 1), plain=(1, 1, 4))
    # tokens 1, 5, 5; two words: p(good) = 1/3, 5/7, 2/7
    assert three.sway("good", 1) == pytest.approx((5 / 7) / ((1 / 3 + 2 / 7) / 2))
    assert three.strongest(2, 1)[0][0] == "plain"


def test_equal_counts_are_equal_whatever_the_order_of_the_sum() -> None:
    rng = np.random.default_rng(0)
    counts = {f"w{i:03d}": tuple(rng.integers(0, 3, size=7).tolist()) for i in range(300)}
    columns = [{word: row[label] for word, row in counts.items()} for label in range(7)]
    words = ClassWords.of([str(label) for label in range(7)], columns)
    for label in range(7):
        ranked = words.strongest(label, 300)
        assert ranked == sorted(ranked, key=lambda entry: (-entry[1], entry[0]))


def test_words_are_counted_as_attacks_split_them() -> None:
    data = Dataset.from_pairs([("A good, GOOD film!", "p"), ("It isn't good", "n")], labels=("n", "p"))
    words = count_class_words(data)
    assert words.labels == ("n", "p")
    assert dict(zip(words.words, words.counts.tolist(), strict=True)) == {
        "a": [0, 1],
        "film": [0, 1],
        "good": [1, 2],
        "isn't": [1, 0],
        "it": [1, 0],
    }
    assert words.fingerprint == data.fingerprint()


def test_of_a_pair_the_editable_field_counts() -> None:
    rows = [
        ({"premise": "a man", "hypothesis": "nobody sleeps"}, 0),
        ({"premise": "a dog", "hypothesis": "it runs"}, 1),
    ]
    assert count_class_words(Dataset.from_pairs(rows)).words == ("it", "nobody", "runs", "sleeps")
    assert count_class_words(Dataset.from_pairs(rows, edit="premise")).words == ("a", "dog", "man")


def test_a_single_class_has_nothing_to_compare() -> None:
    with pytest.raises(DataError, match="only one"):
        count_class_words(Dataset.from_pairs([("a film", "x")]))
    with pytest.raises(DataError, match="no row has a word for the class 'n'"):
        count_class_words(Dataset.from_pairs([("a film", "p"), ("!!", "n")], labels=("n", "p")))


def test_the_file_survives_the_round_trip(tmp_path: Path) -> None:
    TABLE.write(tmp_path / "deep" / "words.json", top=1)
    back = ClassWords.read(tmp_path / "deep" / "words.json")
    assert (back.labels, back.words, back.data, back.fingerprint) == (
        TABLE.labels, TABLE.words, "toy", "f00",
    )  # fmt: skip
    assert np.array_equal(back.counts, TABLE.counts)
    shown = json.loads((tmp_path / "deep" / "words.json").read_text())
    assert shown["strongest"] == {"negative": {"bad": 5.0}, "positive": {"fine": 5.0}}
    assert shown["tokens"] == [10, 10]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "was not written by"),
        ('{"kind": "other"}', "was not written by"),
        ('{"kind": "unfooled class words", "labels": ["a"], "counts": {}}', "names no classes"),
        (
            '{"kind": "unfooled class words", "labels": ["a", "b"], "counts": {"w": [1]}}',
            "no 2 counts for the word 'w'",
        ),
        (
            '{"kind": "unfooled class words", "labels": ["a", "b"], "counts": {"w": [1, -1]}}',
            "no 2 counts for the word 'w'",
        ),
    ],
)
def test_a_file_that_is_none_says_so(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "words.json").write_text(content)
    with pytest.raises(ResourceError, match=message) as caught:
        ClassWords.read(tmp_path / "words.json")
    assert "unfooled words --data" in caught.value.remedy


def test_word_lists_are_read_from_text_and_from_class_words(tmp_path: Path) -> None:
    TABLE.write(tmp_path / "words.json")
    assert read_word_list(tmp_path / "words.json") == ("bad", "film", "fine", "good", "odd")  # 4 each
    (tmp_path / "list.txt").write_text("\ufeffgood\n two words\nbad \n...\ngood\nisn't\n", encoding="utf-8")
    assert read_word_list(tmp_path / "list.txt") == ("good", "bad", "isn't")
    (tmp_path / "empty.txt").write_text("\n?!\n")
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9\n")
    for name, message in {
        "empty.txt": "no word",
        "latin.txt": "not UTF-8",
        "none.txt": "cannot be read",
    }.items():
        with pytest.raises(ResourceError, match=message):
            read_word_list(tmp_path / name)


# -- the attacks -----------------------------------------------------------------------------------


def answers(words: ClassWords = TABLE) -> Answering:
    oracle = open_class_words(FakeVictim() if len(words.labels) == 2 else _three(), _saved(words))
    return Answering(lambda item: oracle([item])[0])


def _three() -> Any:
    class Three:
        name, labels = "three", ("negative", "positive", "neutral")

    return Three()


def _saved(words: ClassWords) -> str:
    import tempfile

    path = Path(tempfile.mkdtemp()) / "words.json"
    words.write(path)
    return str(path)


def run(recipe: Recipe | str, text: Any, victim: Any, words: ClassWords = TABLE, **more: Any) -> Result:
    recipe = load_recipe(recipe) if isinstance(recipe, str) else recipe
    oracles = {"class-words:words.json": answers(words), "victim": victim}
    return attack_one(recipe, oracles, text, **more)


WEIGHTS = {"good": 0.2, "Good": 0.2, "fine": 0.1, "bad": -0.2, "Bad": -0.2, "odd": -0.2, "Odd": -0.2}


def test_tack_on_replaces_the_first_word_once() -> None:
    for seed in range(4):
        options = ("bad", "odd", "film", "fine", "good")  # negative's five; the last are the positive ones
        place = int(np.random.default_rng([seed, 0]).integers(5))
        victim = linear(WEIGHTS)
        result = run("tack-on", "the good film", victim, seed=seed)
        assert result.perturbed == f"{options[place]} good film"
        assert (result.queries, len(victim.asked)) == (2, 2)  # one shot, whatever comes of it
        # 0.7 before; bad and odd make it 0.5, which is class 0
        assert (result.outcome == "success") == (place < 2)


def test_tack_on_takes_the_casing_and_not_the_word_itself() -> None:
    two = with_setting(load_recipe("tack-on"), "search.top", "2")
    assert {run(two, "The good film", linear(WEIGHTS), seed=seed).perturbed for seed in range(9)} == {
        "Bad good film",
        "Odd good film",
    }
    assert {run(two, "bad good good film", linear(WEIGHTS), seed=seed).perturbed for seed in range(9)} == {
        "odd good good film"
    }
    single = with_setting(load_recipe("tack-on"), "search.top", "1")
    stuck = run(
        single, "bad good good film", linear(WEIGHTS)
    )  # the only word of the list stands there already
    assert (stuck.outcome, stuck.edits, stuck.queries) == ("failure", (), 1)


def test_the_strongest_words_give_way_in_order_of_their_sway() -> None:
    # Positive sways: fine 5, good 5 (ties by letter), film 1, bad 0.2. Replaced by the negative two.
    recipe = with_setting(load_recipe("strongest-words@3"), "search.top", "2")
    text = "good bad film, Fine good"
    for seed in range(4):
        order = np.random.default_rng([seed, 0]).permutation(2)
        first, second = (("bad", "odd")[place] for place in order)
        result = run(recipe, text, linear(WEIGHTS, bias=0.1), seed=seed)
        # Fine first, then both goods from the left; the list starts anew after its end.
        assert result.perturbed == f"{second} bad film, {first.capitalize()} {first}"
        assert result.queries == 2


def test_any_number_of_words() -> None:
    assert load_recipe("strongest-words").full_name == "strongest-words@5"
    victim = linear({}, bias=0.2)
    for most in (1, 2, 7):
        recipe = with_setting(load_recipe("strongest-words@1"), "search.most", str(most))
        result = run(recipe, "good fine film film good", victim)
        assert len(result.edits) == min(most, 5)
        assert result.outcome == "failure"
    with pytest.raises(UnknownNameError, match="at least 1"):
        with_setting(load_recipe("strongest-words"), "search.most", "0")


def test_targets_and_further_classes_choose_the_words() -> None:
    words = table(good=(0, 9, 0), bad=(9, 0, 0), plain=(0, 0, 9))
    probs = {"good film": [0.1, 0.6, 0.3]}
    victim = Answering(lambda text: np.array(probs.get(text, [0.2, 0.2, 0.6])))
    recipe = with_setting(load_recipe("strongest-words@1"), "search.top", "1")
    # Neutral (0.3) is likelier than negative (0.1): its word comes in.
    result = run(recipe, "good film", victim, words)
    assert (result.outcome, result.perturbed) == ("success", "plain film")
    aimed = dataclasses.replace(recipe, goal=Targeted(0))
    result = run(aimed, "good film", victim, words)
    assert (result.outcome, result.perturbed) == ("failure", "bad film")
    tack = dataclasses.replace(with_setting(load_recipe("tack-on"), "search.top", "1"), goal=Targeted(0))
    assert run(tack, "good film", victim, words).perturbed == "bad film"


def test_pairs_change_the_editable_field_only() -> None:
    pair = {"premise": "good film", "hypothesis": "good film"}
    result = run("strongest-words@1", pair, linear(WEIGHTS))
    assert result.fields[0] == ("premise", "good film")
    assert result.edits[0].before == "good"


def test_the_target_is_found_inside_a_narrower_goal() -> None:
    @dataclasses.dataclass(frozen=True)
    class Only:
        goal: Any

        def judge(self, probs: Any, label: int) -> Any:
            return self.goal.judge(probs, label)

    assert target_of(Targeted(2)) == target_of(Only(Targeted(2))) == 2
    assert target_of(Untargeted()) is target_of(Only(Untargeted())) is None


# -- as a user meets them --------------------------------------------------------------------------


Command = Callable[..., str]


@pytest.fixture
def unfooled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command line in this process and in a folder of its own; returns what it printed."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, code: int = 0) -> str:
        monkeypatch.setattr(sys, "argv", ["unfooled", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        assert (ended.value.code or 0) == code, printed.out + printed.err
        return printed.out if code == 0 else printed.err

    return call


def test_words_and_attacks_through_the_command_line(tmp_path: Path, unfooled: Command) -> None:
    write_csv(tmp_path / "train.csv", sentences(80))
    write_csv(tmp_path / "test.csv", sentences(12, seed=1))
    done = unfooled("words", "--data", "train.csv", "--top", "3")
    assert "negative" in done
    assert "written: words.json" in done
    listed = json.loads(unfooled("words", "-d", "train.csv", "--json"))
    assert set(listed["strongest"]["positive"]) <= {
        "superb",
        "great",
        "delightful",
        "charming",
        "funny",
        "moving",
    }
    assert len(listed["strongest"]["negative"]) == 5
    arguments = ["attack", "-m", "fake", "-d", "test.csv", "-a", "strongest-words@3", "-o", "run"]
    assert "success rate" in unfooled(*arguments)
    with RunFile.read(tmp_path / "run") as run_file:
        assert len(run_file.header["identity"]["resources"]["file:words.json"]) == 64
    # Other words are another attack.
    unfooled("words", "--data", "train.csv", "-n", "40")
    assert "file:words.json changed" in unfooled(*arguments, code=2)


def test_mistakes_are_explained(tmp_path: Path, unfooled: Command) -> None:
    write_csv(tmp_path / "d.csv", sentences(6))
    arguments = ["attack", "-m", "fake", "-d", "d.csv", "-o", "run", "-a"]
    missing = unfooled(*arguments, "tack-on", code=2)
    assert "tack-on@paper reads the file words.json, which is not here" in missing
    assert "unfooled words --data TRAINING_DATA --out words.json" in missing
    write_csv(tmp_path / "mail.csv", [("win money", "spam"), ("see you", "ham")])
    unfooled("words", "-d", "mail.csv")
    other = unfooled(*arguments, "strongest-words@1", code=2)
    assert "words for the classes ham, spam, but those of fake" in other
    assert "--label-map" in other
    assert not (tmp_path / "run").exists()
    unfooled("words", "-d", "mail.csv", "--label-map", "ham=positive,spam=negative")
    unfooled(*arguments, "strongest-words@1")
    assert "renames no class" in unfooled("words", "-d", "mail.csv", "--label-map", "x=y", code=2)
    same = unfooled("words", "-d", "mail.csv", "--label-map", "ham=spam", code=2)
    assert "called the same" in same
    (tmp_path / "mine.json").write_text("{}")
    taken = ["words", "-d", "mail.csv", "-o", "mine.json"]
    assert "no word file" in unfooled(*taken, code=2)
    unfooled(*taken, "--force")


def test_paths_with_colons_and_folders_work(tmp_path: Path) -> None:
    path = tmp_path / "my: lists" / "words.json"
    TABLE.write(path)
    recipe = with_setting(load_recipe("tack-on"), "search.words", str(path))
    found = attack(FakeVictim(), sentences(4), recipe, out=tmp_path / "run")
    assert found.summary().errors == 0


def test_a_victim_of_vectors_needs_its_own_labels(tmp_path: Path) -> None:
    TABLE.write(tmp_path / "words.json")
    with pytest.raises(ResourceError, match="but those of vectors are no, yes"):
        open_class_words(VectorVictim(), str(tmp_path / "words.json"))


@pytest.mark.slow
def test_the_papers_own_words_come_out_of_the_papers_data(shared_data: Path) -> None:
    """The positive five of the article, in its order; its negative five differ by "410", our "4" and "10"."""
    if not (shared_data / "imdb").is_dir():
        pytest.skip("the IMDB reviews are not here")
    data = load_data(shared_data / "imdb", split="train")
    if len(data) < 20_000:
        pytest.skip("this is only a part of the IMDB reviews")
    words = count_class_words(data)
    positive, negative = words.labels.index("positive"), words.labels.index("negative")
    assert [word for word, _ in words.strongest(positive, 5)] == ["edie", "antwone", "din", "gunga", "yokai"]
    assert {"boll", "uwe", "tashan", "hobgoblins"} <= {word for word, _ in words.strongest(negative, 5)}
