from __future__ import annotations

import csv
import gzip
import json
import pickle
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from unfooled.data.dataset import Dataset
from unfooled.data.labels import match_labels
from unfooled.data.loading import load_data, named_sets
from unfooled.errors import DataError

ROWS = [("a fine film", "pos"), ("a dull, long film", "neg"), ('she said "no"', "neg"), ("two\nlines", "pos")]


def write_csv(
    path: Path, rows: list[Any], header: tuple[str, ...] = ("text", "label"), mark: str = ","
) -> Path:
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=mark).writerows([header, *rows])
    return path


def write_jsonl(path: Path, rows: list[Any]) -> Path:
    data = "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def texts(data: Dataset) -> list[str]:
    return [" | ".join(content for _, content in example.content) for example in data]


def named(data: Dataset) -> list[str]:
    return [data.labels[example.label] for example in data]


# -- formats ---------------------------------------------------------------------------------------------


def test_csv_gives_every_byte_back_again_and_again(tmp_path: Path) -> None:
    data = load_data(write_csv(tmp_path / "a.csv", ROWS))
    for _ in range(2):
        assert texts(data) == [text for text, _ in ROWS]
        assert named(data) == [label for _, label in ROWS]
    assert (data.name, data.labels, data.fields, len(data)) == ("a.csv", ("neg", "pos"), ("text",), 4)
    assert [example.key for example in data] == [0, 1, 2, 3]


def test_all_text_formats_agree(tmp_path: Path) -> None:
    paths = [
        write_csv(tmp_path / "a.csv", ROWS),
        write_csv(tmp_path / "a.tsv", ROWS, mark="\t"),
        write_csv(tmp_path / "semicolons.csv", ROWS, mark=";"),
        write_jsonl(tmp_path / "a.jsonl", [{"text": text, "label": label} for text, label in ROWS]),
        write_jsonl(tmp_path / "b.jsonl.gz", [{"text": text, "label": label} for text, label in ROWS]),
    ]
    for name in ("a.csv", "a.tsv"):
        paths.append(tmp_path / f"{name}.gz")
        paths[-1].write_bytes(gzip.compress((tmp_path / name).read_bytes()))
    marked = tmp_path / "marked.csv"
    marked.write_bytes(b"\xef\xbb\xbf" + (tmp_path / "a.csv").read_bytes())
    wide = tmp_path / "wide.csv"
    wide.write_bytes((tmp_path / "a.csv").read_text("utf-8").encode("utf-16"))
    for path in [*paths, marked]:
        assert texts(load_data(path)) == [text for text, _ in ROWS], path.name
    assert texts(load_data(wide, encoding="utf-16")) == [text for text, _ in ROWS]


def test_parquet_with_class_names(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["bad", "good"])}
    )
    rows = {"text": ["x y", "z", None], "label": [1, 0, 1]}
    table = datasets.Dataset.from_dict(rows, features=features)
    table.to_parquet(tmp_path / "a.parquet")
    data = load_data(tmp_path / "a.parquet")
    assert data.labels == ("bad", "good")
    assert [example.label for example in data] == [1, 0, 1]
    assert [example.problem for example in data] == ["", "", "row 3 of the data: no text (column 'text')"]
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        load_data(tmp_path / "broken.parquet")


def test_saved_folder_and_its_splits(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    single = datasets.Dataset.from_dict({"premise": ["a"], "hypothesis": ["b"], "label": [2]})
    single.save_to_disk(tmp_path / "one")
    data = load_data(tmp_path / "one")
    assert (texts(data), data.fields, data.edit) == (["a | b"], ("premise", "hypothesis"), "hypothesis")
    datasets.DatasetDict({"train": single, "dev": single}).save_to_disk(tmp_path / "two")
    assert texts(load_data(tmp_path / "two", split="dev")) == ["a | b"]
    with pytest.raises(DataError, match="no split 'test'") as caught:
        load_data(tmp_path / "two")
    assert "train, dev" in caught.value.remedy
    assert load_data(tmp_path / "two", split="dev").fingerprint() == data.fingerprint()


def test_hub_out_of_reach_is_explained() -> None:
    pytest.importorskip("datasets")
    code = "from unfooled.data.loading import load_data; load_data('hf:nobody/nothing-at-all')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert "DataError: hf:nobody/nothing-at-all: cannot be loaded from the hub" in done.stderr
    assert "give a local file" in done.stderr


def test_named_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UNFOOLED_DATA", raising=False)
    with pytest.raises(DataError, match="UNFOOLED_DATA is not set"):
        load_data("mini")
    (tmp_path / "mini").mkdir()
    write_jsonl(tmp_path / "mini" / "test.jsonl.gz", [{"text": "a", "label": 1}, {"text": "b", "label": -1}])
    (tmp_path / "mini" / "labels.json").write_text('["ham", "spam"]')
    monkeypatch.setenv("UNFOOLED_DATA", str(tmp_path))
    data = load_data("mini")
    assert (named_sets(), data.labels, data.name) == (["mini"], ("ham", "spam"), "mini")
    assert [example.problem for example in data] == ["", "line 2 of the file: no label (column 'label')"]
    assert texts(load_data(tmp_path / "mini")) == ["a", "b"]
    with pytest.raises(DataError, match="no split 'train'"):
        load_data("mini", split="train")
    with pytest.raises(DataError, match="no named set 'maxi'") as caught:
        load_data("maxi")
    assert "mini" in caught.value.remedy


def test_real_sets(shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNFOOLED_DATA", str(shared_data))
    assert (len(load_data("mr")), load_data("mr").labels) == (1042, ("negative", "positive"))
    pairs = load_data("snli_dev", limit=5, edit="premise")
    assert (len(list(pairs)), pairs.edit, pairs.fields) == (5, "premise", ("premise", "hypothesis"))
    assert next(iter(pairs)).text().string == next(iter(pairs)).content[0][1]


def test_pairs_in_memory() -> None:
    data = Dataset.from_pairs([("a", 1), ("b", 0)], labels=("no", "yes"))
    assert (texts(data), named(data), data.name) == (["a", "b"], ["yes", "no"], "pairs")
    two = Dataset.from_pairs([({"q": "a", "r": "b"}, "x"), ({"q": "", "r": "c"}, "y")], edit="q")
    assert (two.fields, two.edit, two.labels) == (("q", "r"), "q", ("x", "y"))
    assert [example.problem for example in two] == ["", "row 2 of the data: no text (column 'q')"]
    with pytest.raises(DataError, match="empty"):
        Dataset.from_pairs([])


# -- columns ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "fields", "label"),
    [
        (("id", "Review", "Sentiment"), ("Review",), "Sentiment"),
        (("label", "sentence2", "sentence1"), ("sentence1", "sentence2"), "label"),
        (("question1", "question2", "is_duplicate"), ("question1", "question2"), "is_duplicate"),
        (("text_a", "text_b", "gold_label"), ("text_a", "text_b"), "gold_label"),
        (("v1", "v2"), ("v2",), "v1"),
        (("words", "class"), ("words",), "class"),
        (("tweet", "what"), ("tweet",), "what"),
    ],
)
def test_columns_are_guessed(
    tmp_path: Path, header: tuple[str, ...], fields: tuple[str, ...], label: str
) -> None:
    rows = [[f"{name} of row {i}" if name in fields else i % 2 for name in header] for i in range(6)]
    data = load_data(write_csv(tmp_path / "a.csv", rows, header))
    assert data.fields == fields
    assert [example.label for example in data] == [0, 1, 0, 1, 0, 1]
    assert next(iter(data)).content == tuple((name, f"{name} of row 0") for name in fields)


def test_columns_can_be_given(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", [("x", "y", "z", 0)], ("text", "Other", "third", "label"))
    assert load_data(path, text="other").fields == ("Other",)
    assert load_data(path, text=["third", "text"], edit="third").fields == ("third", "text")
    with pytest.raises(
        DataError, match="no column 'txt'; the columns are 'text', 'Other', 'third', 'label'"
    ) as no:
        load_data(path, text="txt")
    assert "--text-column" in no.value.remedy
    with pytest.raises(DataError, match="no text field 'Other' to edit"):
        load_data(path, edit="Other")
    unknown = write_csv(tmp_path / "b.csv", [("x", "y", "z")], ("foo", "bar", "baz"))
    with pytest.raises(DataError, match="holds the text and which the label") as no:
        load_data(unknown)
    assert no.value.remedy == "name both with --text-column and --label-column"
    with pytest.raises(DataError, match="holds the text; ") as no:
        load_data(unknown, label="baz")
    assert no.value.remedy == "name it with --text-column"
    with pytest.raises(DataError, match=r"holds the label.*'foo', 'bar', 'baz'") as no:
        load_data(unknown, text="foo")
    assert no.value.remedy == "name it with --label-column"


def test_a_tab_separated_file_may_hold_bare_quotes(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text('text\tlabel\n"open\t0\nclosed"\t1\n"both"\t1\n')
    assert texts(load_data(path)) == ['"open', 'closed"', '"both"']


def test_a_bare_quote_late_in_a_tab_separated_file_is_text(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("text\tlabel\n" + "fine\t0\n" * 500 + '"open\t1\nlast\t0\n')
    assert texts(load_data(path))[-2:] == ['"open', "last"]


# -- labels ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "victim", "expected"),
    [
        (("neg", "pos"), ("Negative", "Positive"), [0, 1]),
        (("negative", "positive"), ("positive", "negative"), [1, 0]),
        (("negative", "positive"), ("LABEL_0", "LABEL_1"), [0, 1]),
        (("0", "1"), ("positive", "negative"), [1, 0]),
        (("0", "1"), ("ham", "spam"), [0, 1]),
        (("1",), ("ham", "spam"), [1]),
        (("0", "1", "2"), ("a", "b", "c"), [0, 1, 2]),
        (("neg", "neu", "pos"), ("positive", "neutral", "negative"), [2, 1, 0]),
        (("Sci/Tech", "World"), ("world", "sci_tech", "sports"), [1, 0]),
        (("-1", "1"), ("1", "-1"), [1, 0]),
    ],
)
def test_labels_meet(data: tuple[str, ...], victim: tuple[str, ...], expected: list[int]) -> None:
    assert match_labels(data, victim) == dict(zip(data, expected, strict=True))


@pytest.mark.parametrize(
    ("data", "victim"),
    [
        (("ham", "spam"), ("negative", "positive")),
        (("0", "1", "2"), ("negative", "positive")),
        (("1", "2"), ("a", "b", "c")),  # counts from one?
        (("world", "sports"), ("LABEL_0", "LABEL_1")),  # which is first?
    ],
)
def test_labels_that_do_not_meet_show_both_lists(data: tuple[str, ...], victim: tuple[str, ...]) -> None:
    with pytest.raises(DataError) as caught:
        match_labels(data, victim)
    assert ", ".join(data) in caught.value.cause
    assert ", ".join(victim) in caught.value.cause
    assert "--labels" in caught.value.remedy
    assert "--label-map" in caught.value.remedy


@pytest.mark.parametrize(
    ("data", "victim", "shown"),
    [
        (("ham", "spam"), ("negative", "positive"), "--label-map DATA_LABEL=VICTIM_LABEL,… "),
        (("0", "1", "2"), ("negative", "positive"), "--label-map DATA_LABEL=VICTIM_LABEL,… "),
        (("1", "2", "3"), ("neg", "neu", "pos"), "--label-map 1=neg,2=neu,3=pos "),
        (("good", "bad"), ("bad", "awful"), "--label-map DATA_LABEL=VICTIM_LABEL,… "),
        (
            ("neg", "positiv", "ngeative"),
            ("negative", "positive"),
            "--label-map positiv=positive,ngeative=negative ",
        ),
        (("sport", "unheard"), ("Sports", "World"), "--label-map sport=Sports,… "),
        (("5", "1"), ("1", "2"), "--label-map DATA_LABEL=VICTIM_LABEL,… "),
    ],
)
def test_only_a_map_that_can_be_right_is_suggested(
    data: tuple[str, ...], victim: tuple[str, ...], shown: str
) -> None:
    with pytest.raises(DataError) as caught:
        match_labels(data, victim)
    assert shown in caught.value.remedy


def test_a_model_without_classes_is_told_apart() -> None:
    with pytest.raises(DataError, match="has no classes: it writes text"):
        match_labels(("negative", "positive"), ())


def test_label_map_decides() -> None:
    assert match_labels(("ham", "spam"), ("neg", "pos"), label_map={"HAM": "pos", "spam": "0"}) == {
        "ham": 1,
        "spam": 0,
    }
    with pytest.raises(DataError, match="'eggs', which is no label of the data"):
        match_labels(("ham", "spam"), ("neg", "pos"), label_map={"eggs": "pos"})
    with pytest.raises(DataError, match="'maybe', which is no label of the victim"):
        match_labels(("ham", "spam"), ("neg", "pos"), label_map={"ham": "maybe"})


def test_label_values_of_many_kinds(tmp_path: Path) -> None:
    path = write_jsonl(
        tmp_path / "a.jsonl", [{"text": "t", "label": v} for v in (0, "1", 2.0, "2.0", True, " 0 ")]
    )
    data = load_data(path)
    assert data.labels == ("0", "1", "2")
    assert [example.label for example in data] == [0, 1, 2, 2, 1, 0]


def test_given_labels_follow_the_order_of_the_numbers(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", [("a", 1), ("b", 2), ("c", 3)])
    assert named(load_data(path, labels=["low", "mid", "high"])) == ["low", "mid", "high"]
    with pytest.raises(DataError, match="do not match"):
        load_data(path, labels=["low", "high"])
    with pytest.raises(DataError, match="named twice"):
        load_data(path, labels=["low", "low", "high"])


def test_aligned_uses_the_order_of_the_victim(tmp_path: Path) -> None:
    data = load_data(write_csv(tmp_path / "a.csv", ROWS)).aligned(("positive", "negative"))
    assert data.labels == ("positive", "negative")
    assert named(data) == ["positive", "negative", "negative", "positive"]
    assert data.aligned(("positive", "negative")) == data
    other = load_data(tmp_path / "a.csv").aligned(("spam", "ham"), {"pos": "ham", "neg": "spam"})
    assert named(other) == ["ham", "spam", "spam", "ham"]
    with pytest.raises(DataError, match="spam, ham"):
        data.aligned(("spam", "ham"))
    declared = Dataset.from_pairs([("a", 0), ("b", 1)], labels=("world", "sports"))
    assert [example.label for example in declared.aligned(("LABEL_0", "LABEL_1"))] == [0, 1]


def test_an_unknown_label_is_named_with_its_first_row(tmp_path: Path) -> None:
    rows = [("two\nlines", "neg"), ("b", "pos"), ("c", "postive"), ("d", "postive"), ("e", "ngeative")]
    path = write_csv(tmp_path / "a.csv", rows)
    with pytest.raises(DataError, match="do not match the victim's") as caught:
        load_data(path).aligned(("negative", "positive"))
    assert caught.value.cause.splitlines()[3:] == [
        "    'ngeative' first occurs in line 7 of the file",
        "    'postive' first occurs in line 5 of the file",
    ]
    assert "--label-map ngeative=negative" in caught.value.remedy
    fixed = load_data(path).aligned(("negative", "positive"), {"ngeative": "negative", "postive": "positive"})
    assert [example.label for example in fixed] == [0, 1, 1, 1, 0]
    with pytest.raises(DataError, match="'postive' first occurs in line 5 of the file"):
        load_data(path, labels=["neg", "pos"])
    with pytest.raises(DataError, match="'maybe' first occurs in row 2 of the data"):
        Dataset.from_pairs([("a", "yes"), ("b", "maybe")], labels=("no", "yes"))
    many = write_csv(tmp_path / "b.csv", [("a", "neg"), *((f"t{i}", f"odd {i}") for i in range(9))])
    with pytest.raises(
        DataError, match=r"'odd 4' first occurs in line 7 of the file\n    and 4 more unknown"
    ):
        load_data(many).aligned(("negative", "positive"))


# -- rows and files that are not right -------------------------------------------------------------------


def test_bad_csv_rows_are_named_by_their_line(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('text,label\n"two\nlines",0\n\nfine,1\n  ,1\nfine,\nfew\na,b,c\nnan,1\n')
    data = load_data(path)
    assert [(example.key, example.problem) for example in data] == [
        (0, ""),
        (1, ""),
        (2, "line 6 of the file: no text (column 'text')"),
        (3, "line 7 of the file: no label (column 'label')"),
        (4, "line 8 of the file: 1 column where the header has 2"),
        (
            5,
            "line 9 of the file: 3 columns where the header has 2; "
            "a text with a comma needs quotation marks around it",
        ),
        (6, ""),
    ]
    assert (len(data), data.bad_rows) == (7, 4)
    assert [example.label for example in data] == [0, 1, 1, -1, -1, -1, 1]


def test_bad_json_rows(tmp_path: Path) -> None:
    rows = ['{"text": "a", "label": 0}', "{broken", "[1]", '{"label": 1}', '{"text": NaN, "label": 1}']
    rows += ['{"text": 3.5, "label": 1}', '{"text": ["x"], "label": 1}', '{"text": "a", "label": [1]}']
    rows += ['{"text": "\\ud83d", "label": 1}', '{"text": "\\ud83d\\ude00", "label": 1}', "[" * 100_000]
    data = load_data(write_jsonl(tmp_path / "a.jsonl", rows))
    problems = [example.problem for example in data]
    assert [bool(problem) for problem in problems] == [False, *[True] * 4, False, *[True] * 3, False, True]
    assert problems[1].startswith("line 2 of the file: broken JSON")
    assert problems[2] == "line 3 of the file: a JSON list where an object is expected"
    assert problems[3] == "line 4 of the file: no text (column 'text')"
    assert problems[6] == "line 7 of the file: a list where a text is expected (column 'text')"
    assert problems[7] == "line 8 of the file: the label is a list, not a name or a number (column 'label')"
    assert "surrogate" in problems[8]
    assert texts(data)[5] == "3.5"
    assert texts(data)[9] == "😀"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            'fine,1\n"open,0\n' + "lost,1\n" * 9000,
            "on line 3 and never closed; it swallows the 9,000 lines after",
        ),
        ('fine,1\n"open,0\nlost,1', "on line 3 and never closed; it swallows the line after it"),
        ('fine,1\n"open,0', "on line 3 and never closed$"),
        ('"two\nlines","open\nlost,1\n', "on line 3 and never closed; it swallows the line after it"),
        # The next quoted text closes it, and the row would even have the right number of columns.
        (
            '"open,0\n' + "lost,1\n" * 10 + '"good text",1\nfine,0\n',
            "on line 2 and closed in the middle of a text on line 13; it swallows the 11 lines after it",
        ),
        (
            '"open,0\n' + "a long line that is lost,1\n" * 700_000,
            "on line 2 and not closed within 16,777,216 characters; it swallows the 6",
        ),
    ],
    ids=["many", "one", "last line", "second cell", "closed later", "too long"],
)
def test_an_open_quote_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"text,label\n{content}")
    with pytest.raises(DataError) as caught:
        load_data(path, limit=1)
    assert re.search(message, caught.value.cause)
    assert "close it" in caught.value.remedy


def test_an_open_quote_in_the_header_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('"text,label\nfine,1\nfine,0\n')
    with pytest.raises(DataError, match="on line 1 and never closed; it swallows the 2 lines after it"):
        load_data(tmp_path / "a.csv")


def test_quotes_that_harm_nobody_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(
        'text,label\n"two\r\nlines, ""and"" more",1\n"so" called,0\nan inch: 1",1\n""" mark",0\n'
        '"two\nlines","1"\n"u\u2028v" w,1\n"last",0',
        encoding="utf-8",
        newline="",
    )
    data = load_data(path)
    assert texts(data) == [
        'two\r\nlines, "and" more', "so called", 'an inch: 1"', '" mark', "two\nlines", "u\u2028v w", "last",
    ]  # fmt: skip
    assert data.bad_rows == 0


def test_a_row_over_several_lines_tells_where_it_ends(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('text,label\nfine,1\n"two\nlines"\nfine,0\n')
    problems = [example.problem for example in load_data(tmp_path / "a.csv")]
    assert problems[1] == "line 3 of the file: 1 column where the header has 2 (the row goes on to line 4)"


@pytest.mark.parametrize("mark", ["", '"'])
def test_a_field_that_is_too_long_is_called_so(tmp_path: Path, mark: str) -> None:
    (tmp_path / "a.csv").write_text(f"text,label\nfine,1\n{mark}{'a' * 17_000_000}{mark},0\nfine,0\n")
    with pytest.raises(DataError, match="a field on line 3 is too long") as caught:
        load_data(tmp_path / "a.csv")
    assert "quotation" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "the file is empty"),
        ("a.jsonl", b"", "the file is empty"),
        ("a.jsonl", b"\n\n", "the file is empty"),
        ("a.csv", b"text,label\n", "there are no rows"),
        ("a.csv", b"text,label\n,1\nx,\n", "none of the 2 rows can be used; line 2 of the file: no text"),
        ("a.jsonl", b"{\n", "no row can be read; line 1 of the file: broken JSON"),
        ("a.json", b'[{"text": "a", "label": 1}]', "one JSON array"),
        ("a.json", b'[\n{"text": "a", "label": 1}]', "one JSON array"),
        ("a.csv", b"text,text,label\na,b,1\n", "'text' occurs twice"),
        ("a.csv", b"text,label\nna\xefve,1\n", r"byte 13 \(line 2\) is not valid utf-8-sig"),
        ("a.csv", b"\xef\xbb\xbftext,label\nna\xefve,1\n", r"byte 16 \(line 2\)"),
        ("a.csv", b"text,label\nna\xc3", r"byte 13 \(line 2\)"),
        ("a.jsonl.gz", b"not gzip", "damaged gzip data"),
        ("a.jsonl.gz", gzip.compress(mtime=0, data=b'{"text": "a", "label": 1}\n')[:-9], "damaged gzip data"),
        ("a.xlsx", b"PK", "this format is not known"),
    ],
)
def test_unusable_files(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        load_data(tmp_path / name)


def test_a_bad_byte_is_found_far_into_the_file(tmp_path: Path) -> None:
    start = b"text,label\n" + "äöü,1\n".encode() * 150_000
    (tmp_path / "a.csv").write_bytes(start + b"\xff,1\n")
    with pytest.raises(DataError, match=rf"byte {len(start)} \(line 150002\)") as caught:
        load_data(tmp_path / "a.csv")
    assert "--encoding" in caught.value.remedy
    assert len(load_data(tmp_path / "a.csv", encoding="latin-1", limit=3)) == 3
    with pytest.raises(DataError, match="no encoding 'klingon'"):
        load_data(tmp_path / "a.csv", encoding="klingon")


def test_missing_files_and_odd_places(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        load_data(tmp_path / "a.csv")
    with pytest.raises(DataError, match="holds no data set"):
        load_data(tmp_path)
    with pytest.raises(DataError, match="needs the name"):
        load_data("hf:")


def test_a_column_of_ids_is_no_label(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", [(f"t{i}", f"id{i}") for i in range(1001)])
    with pytest.raises(DataError, match="looks like a text or id column") as caught:
        load_data(path)
    assert "--label-column" in caught.value.remedy


# -- which rows ------------------------------------------------------------------------------------------


def test_limit_offset_and_sample(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", [(f"t{i}", i % 2) for i in range(50)])
    assert [example.key for example in load_data(path, limit=3, offset=10)] == [10, 11, 12]
    assert [example.key for example in load_data(path, limit=99, offset=48)] == [48, 49]
    drawn = load_data(path, sample=7, offset=5, limit=40)
    keys = [example.key for example in drawn]
    assert len(drawn) == len(set(keys)) == 7
    assert keys == sorted(keys) == [example.key for example in load_data(path, sample=7, offset=5, limit=40)]
    assert 5 <= keys[0] <= keys[-1] < 45
    assert texts(drawn) == [f"t{key}" for key in keys]
    assert keys != [example.key for example in load_data(path, sample=7, offset=5, limit=40, seed=1)]
    assert len(load_data(path, sample=99)) == 50
    for offset, limit, sample in ((0, 0, None), (-1, None, None), (0, None, 0), (50, None, None)):
        with pytest.raises(DataError):
            load_data(path, offset=offset, limit=limit, sample=sample)


@pytest.mark.parametrize(
    "choice", [{}, {"offset": 4}, {"sample": 7, "offset": 5}, {"sample": 99, "limit": 9}]
)
def test_keys_are_known_without_reading(tmp_path: Path, choice: dict[str, int]) -> None:
    path = write_csv(tmp_path / "a.csv", [(f"t{i}", i % 2) for i in range(50)])
    data = load_data(path, **choice)  # type: ignore[arg-type]
    path.unlink()
    keys = [data.nth_key(n) for n in range(len(data))]
    write_csv(path, [(f"t{i}", i % 2) for i in range(50)])
    assert keys == sorted(keys) == [example.key for example in data]
    assert type(keys[0]) is int
    for outside in (-1, len(data)):
        with pytest.raises(IndexError):
            data.nth_key(outside)


def test_labels_come_from_the_whole_file(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", [("a", "neg"), ("b", "neg"), ("c", "pos")])
    assert load_data(path, limit=1).labels == ("neg", "pos")


def test_fingerprint_follows_content_and_settings(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", ROWS)
    data = load_data(path)
    moved = write_csv(tmp_path / "b.csv", ROWS)
    assert data.fingerprint() == load_data(moved).fingerprint()
    others = [
        load_data(path, limit=3),
        load_data(path, offset=1),
        load_data(path, sample=2),
        load_data(path, sample=2, seed=1),
        load_data(path, labels=["pos", "neg"]),
        data.aligned(("positive", "negative")),
        load_data(write_csv(moved, ROWS[:3])),
        Dataset.from_pairs(ROWS),
        Dataset.from_pairs(ROWS[:3]),
    ]
    assert len({data.fingerprint(), *(other.fingerprint() for other in others)}) == len(others) + 1


def test_a_dataset_travels_to_a_worker(tmp_path: Path) -> None:
    data = load_data(write_csv(tmp_path / "a.csv", ROWS), sample=2)
    copy = pickle.loads(pickle.dumps(data))
    assert list(copy) == list(data)
    assert copy.fingerprint() == data.fingerprint()


def test_memory_stays_flat(tmp_path: Path) -> None:
    def peak(rows: int) -> int:
        path = write_csv(
            tmp_path / f"{rows}.csv", [(f"text {i} with a few words more", i % 2) for i in range(rows)]
        )
        tracemalloc.start()
        assert sum(1 for _ in load_data(path)) == rows
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    small, large = peak(2_000), peak(20_000)
    assert large < small * 1.2 + 50_000
