"""Data that a Python caller holds, in every shape that people have it in."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reviews import sentences
from unfooled.checks.compare import compare
from unfooled.checks.evaluate import evaluate
from unfooled.data.dataset import Dataset
from unfooled.data.loading import as_dataset, load_data
from unfooled.errors import DataError
from unfooled.runs.attack import attack
from unfooled.translation.parallel import ParallelText, as_parallel
from unfooled.victims.fake import FakeVictim

TEXTS, LABELS = zip(*sentences(12), strict=True)


def pairs() -> Any:
    return list(zip(TEXTS, LABELS, strict=True))


def rows() -> Any:
    return [{"id": n, "review": text, "label": label} for n, (text, label) in enumerate(pairs())]


def columns() -> Any:
    return {"review": list(TEXTS), "stars": np.array(LABELS)}


def frame() -> Any:
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({"review": TEXTS, "label": LABELS}, index=range(100, 112))


def table() -> Any:
    datasets = pytest.importorskip("datasets")
    return datasets.Dataset.from_dict({"review": list(TEXTS), "label": list(LABELS)})


SHAPES = [pairs, rows, columns, frame, table]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_holds_the_same_rows(shape: Callable[[], Any]) -> None:
    dataset = as_dataset(shape())
    assert [example.content[0][1] for example in dataset] == list(TEXTS)
    assert [dataset.labels[example.label] for example in dataset] == list(LABELS)
    assert dataset.fingerprint() == as_dataset(shape()).fingerprint()
    assert [example.label for example in pickle.loads(pickle.dumps(dataset))] == [e.label for e in dataset]
    assert as_dataset(dataset) is dataset


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_attacked_evaluated_and_compared_alike(
    shape: Callable[[], Any], tmp_path: Path
) -> None:
    expected = [
        result.perturbed
        for result in attack(FakeVictim(), pairs(), "deepwordbug", out=tmp_path / "a").results()
    ]
    run = attack(FakeVictim(), shape(), "deepwordbug", out=tmp_path / "b")
    assert [result.perturbed for result in run.results()] == expected
    assert compare([FakeVictim()], shape())[0].n == 12
    models = {"base": FakeVictim(), "same": FakeVictim()}
    found = evaluate(models, shape(), "deepwordbug", out=tmp_path / "c", checks=(), limit=4)
    assert len(found.models) == 2


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_trained_on(shape: Callable[[], Any], tmp_path: Path) -> None:
    pytest.importorskip("skops")
    from unfooled.training.trainer import train

    plain = train("naive-bayes", Dataset.from_pairs(pairs()), tmp_path / "a", valid=as_dataset(pairs()))
    trained = train("naive-bayes", shape(), tmp_path / "b", valid=shape())
    assert trained.metrics == plain.metrics


def test_columns_of_what_is_held_can_be_named() -> None:
    given = {"a": ["good film", "bad film"], "b": ["x", "y"], "c": [1, 0]}
    dataset = load_data(given, text="a", label="c", limit=1)
    assert ([example.content for example in dataset], dataset.labels) == ([(("a", "good film"),)], ("0", "1"))


def test_missing_values_of_a_frame_are_rows_with_a_problem() -> None:
    pandas = pytest.importorskip("pandas")
    values = pandas.array([1, None, 0], dtype="Int64")
    given = pandas.DataFrame({"text": ["good", "dull", None], "label": values})
    assert [example.problem for example in as_dataset(given)] == [
        "",
        "row 2 of the data: no label (column 'label')",
        "row 3 of the data: no text (column 'text')",
    ]


def test_class_names_of_a_table_are_known() -> None:
    datasets = pytest.importorskip("datasets")
    kinds = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["ham", "spam"])}
    )
    given = datasets.Dataset.from_dict({"text": ["a b", "c d"], "label": [1, 0]}, features=kinds)
    assert as_dataset(given).labels == ("ham", "spam")


def frame_of_two_names() -> Any:
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame([["a", 1]], columns=["text", "text"])


def splits() -> Any:
    datasets = pytest.importorskip("datasets")
    return datasets.DatasetDict(test=table())


def stream() -> Any:
    return table().to_iterable_dataset()


WRONG: list[tuple[str, Any, str]] = [
    ("texts without labels", ["a film", "a plot"], "row 1 of the data is a text without a label"),
    ("two letters", [("a film", 1), "ab"], "row 2 of the data is a text without a label"),
    ("three in a row", [("a", 1), ("a", "b", 1)], "row 2 of the data is a tuple of 3, not a pair"),
    ("one in a row", [("a",)], "row 1 of the data is a tuple of 1, not a pair"),
    ("numbers", [1, 2], "row 1 of the data is a int, not a pair"),
    ("labels first", [(1, "a film")], "the text comes first"),
    ("nothing", [], "the file is empty|there are no rows|is empty"),
    ("none", None, "NoneType is no labelled data"),
    ("a number", 3, "int is no labelled data"),
    ("bytes", b"a", "bytes is no labelled data"),
    ("a dict of texts", {"a film": "positive"}, "'a film' holds a str, not a list"),
    ("uneven columns", {"text": ["a"], "label": [1, 0]}, "different numbers of rows: 'text' 1, 'label' 2"),
    ("no columns", {}, "is empty|no column"),
    ("unknown columns", {"a": ["x"], "b": ["y"], "c": [1]}, "cannot tell which column holds the text"),
    ("names twice", frame_of_two_names, "'text' occurs twice in the DataFrame"),
    ("several splits", splits, "of several splits"),
    ("a stream", stream, "can be read only once"),
    ("examples", [object()], "row 1 of the data is a object, not a pair"),
]


@pytest.mark.parametrize(("given", "message"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
def test_a_wrong_shape_gets_a_sentence(given: Any, message: str, tmp_path: Path) -> None:
    given = given() if callable(given) else given
    with pytest.raises(DataError, match=message):
        attack(FakeVictim(), given, "deepwordbug", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_parallel_text_in_every_shape() -> None:
    plain = [("a dog", "ein Hund"), ("a cat", "eine Katze")]
    table = {"en": ["a dog", "a cat"], "de": ["ein Hund", "eine Katze"]}
    expected = [(example.content[0][1], example.reference) for example in as_parallel(plain)]
    assert expected == plain
    for given in (table, ParallelText.from_pairs(plain), pytest.importorskip("pandas").DataFrame(table)):
        assert [(example.content[0][1], example.reference) for example in as_parallel(given)] == plain
    with pytest.raises(DataError, match="row 2 of the data is a tuple of 3"):
        as_parallel([("a", "b"), ("a", "b", "c")])
    with pytest.raises(DataError, match="which of the 3 columns a, b, c"):
        as_parallel({"a": ["x"], "b": ["y"], "c": ["z"]})


def test_pandas_is_never_loaded_for_it() -> None:
    code = (
        "import sys; from unfooled.data.loading import as_dataset;"
        "as_dataset({'text': ['a', 'b'], 'label': [0, 1]});"
        "sys.exit(bool({'pandas', 'datasets', 'pyarrow'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
