"""The manifest and the store: what is here, how it gets here, and what is said when it cannot."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tiny_index import MANIFEST, tiny_store
from unfooled.errors import ResourceError, UnknownNameError
from unfooled.resources import checksums
from unfooled.resources import store as store_module
from unfooled.resources.datasets import movie_reviews
from unfooled.resources.manifest import built_in, parse_manifest
from unfooled.resources.store import Store, cache_dir
from unfooled.stopwords import STOPWORDS


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    return tiny_store(tmp_path, monkeypatch)


def test_absent_then_got_then_present(store: Store) -> None:
    with pytest.raises(ResourceError, match="unfooled resources get words"):
        store.path("words")
    stages: list[str] = []
    folder = store.get("words", lambda stage, _share: stages.append(stage))
    assert folder == store.path("words")
    assert (folder / "words.txt").read_text(encoding="utf-8") == "red\ngreen\n"
    assert (folder / "a" / "b.txt").read_text(encoding="utf-8") == "deep"
    assert not list(folder.rglob("code.py"))
    assert {"words: downloading", "words: unpacking"} <= set(stages)
    record = store.record("words")
    assert (record["licence"], record["origin"]) == ("CC0-1.0", "PyPI tiny-words==1.0")
    assert record["sha256"] == store.resources["words"].sha256
    assert [path.name for path in store.root.iterdir()] == ["words-1.0"]


def test_status_shows_what_is_here(store: Store) -> None:
    assert [entry.present for entry in store.status()] == [False, False]
    store.get("words")
    words, upper = store.status()
    assert (words.present, words.path, words.licence) == (True, store.root / "words-1.0", "CC0-1.0")
    assert (upper.present, upper.command) == (False, "unfooled resources get upper")


def test_building_gets_what_it_needs(store: Store) -> None:
    folder = store.get("upper")
    assert (folder / "upper.txt").read_text(encoding="utf-8") == "RED\nGREEN\n"
    assert store.record("upper")["words"] == 2
    (folder / "upper.txt").unlink()
    assert list(store.build("upper").glob("*.txt")) == []
    assert [path.name for path in store.build("upper", again=True).glob("*.txt")] == ["upper.txt"]
    with pytest.raises(ResourceError, match="not built but downloaded"):
        store.build("words")


def test_a_wrong_checksum_is_refused(store: Store) -> None:
    wheel = next((store.root.parent / "index").glob("*.whl"))
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("tiny_words/more.txt", "not what was promised")
    with pytest.raises(ResourceError, match="the manifest says") as caught:
        store.get("words")
    assert "unfooled resources get words" in caught.value.remedy
    assert list(store.root.iterdir()) == []


def test_an_index_without_the_package(store: Store) -> None:
    next((store.root.parent / "index").glob("*.whl")).unlink()
    with pytest.raises(ResourceError, match="pip could not download tiny-words") as caught:
        store.get("words")
    assert "check the network" in caught.value.remedy
    assert list(store.root.iterdir()) == []


def test_a_python_without_pip(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text('#!/bin/sh\necho "$0: No module named pip" >&2\nexit 1\n', encoding="utf-8")
    bare.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(bare))
    with pytest.raises(ResourceError, match="this Python has none") as caught:
        store.get("words")
    assert "ensurepip" in caught.value.remedy


def test_offline_refuses_to_download(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNFOOLED_OFFLINE", "1")
    with pytest.raises(ResourceError, match="UNFOOLED_OFFLINE is set"):
        store.get("words")
    monkeypatch.delenv("UNFOOLED_OFFLINE")
    store.get("words")
    monkeypatch.setenv("UNFOOLED_OFFLINE", "1")
    assert store.get("words") == store.path("words")


def test_a_file_that_the_package_lacks(store: Store) -> None:
    text = MANIFEST.format(sha=store.resources["words"].sha256, build="").replace("words.txt", "lost.txt")
    with pytest.raises(ResourceError, match=r"has no file tiny_words/lost\.txt"):
        Store(store.root, parse_manifest(text)).get("words")


def test_two_at_once_do_not_disturb_each_other(store: Store) -> None:
    with ThreadPoolExecutor(3) as pool:
        folders = list(pool.map(lambda _: store.get("words"), range(3)))
    assert set(folders) == {store.path("words")}
    assert [path.name for path in store.root.iterdir()] == ["words-1.0"]
    assert (folders[0] / "words.txt").is_file()


def test_a_half_filled_folder_is_replaced(store: Store) -> None:
    (store.root / "words-1.0").mkdir(parents=True)
    (store.root / "words-1.0" / "words.txt").write_text("half", encoding="utf-8")
    with pytest.raises(ResourceError):
        store.path("words")
    assert (store.get("words") / "words.txt").read_text(encoding="utf-8") == "red\ngreen\n"


def test_a_cache_that_cannot_be_written(store: Store, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ResourceError, match="UNFOOLED_CACHE"):
        Store(tmp_path / "file" / "cache", store.resources).get("words")


def test_an_unknown_name_gets_a_suggestion(store: Store) -> None:
    with pytest.raises(UnknownNameError, match="did you mean words"):
        store.get("word")


def test_the_cache_folder_is_chosen_by_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("UNFOOLED_CACHE", str(tmp_path))
    assert cache_dir() == tmp_path
    assert store_module.default_store().root == tmp_path
    assert not any(entry.present for entry in store_module.status())
    monkeypatch.delenv("UNFOOLED_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert sys.platform != "linux" or cache_dir() == tmp_path / "x" / "unfooled"


def test_the_manifest_is_complete() -> None:
    resources = built_in()
    assert {"minilm", "glove-840b", "wordnet", "perceptron-tagger", "movie-reviews", "thesaurus"} < set(
        resources
    )
    for resource in resources.values():
        assert resource.what.endswith(".")
        assert resource.licence
        assert resource.size > 1000
        downloaded = bool(resource.package and len(resource.sha256) == 64 and resource.files)
        assert downloaded != bool(resource.build)
        assert set(resource.built_from) <= set(resources)


@pytest.mark.processor_only
def test_importing_reads_no_heavy_library() -> None:
    rooms = [f"unfooled.resources.{name}" for name in ("encoders", "counterfit", "tagger", "datasets")]
    heavy = {"torch", "transformers", "httpx", "sklearn"}
    code = (
        f"import json, sys, {', '.join(rooms)}; print(json.dumps([m for m in {heavy} if m in sys.modules]))"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=600
    ).stdout
    assert json.loads(out) == []


def test_stop_words() -> None:
    sizes = {name: len(words) for name, words in STOPWORDS.items()}
    assert sizes == {"textfooler": 266, "english": 179, "none": 0}
    assert "the" in STOPWORDS["textfooler"] & STOPWORDS["english"]
    assert "good" not in STOPWORDS["textfooler"] | STOPWORDS["english"]


def test_an_unknown_set_of_reviews() -> None:
    with pytest.raises(ResourceError, match='use "mr" or "imdb"'):
        movie_reviews("yelp")  # type: ignore[arg-type]


@pytest.mark.skipif(
    not store_module.has("movie-reviews"), reason="needs: unfooled resources get movie-reviews"
)
def test_movie_reviews() -> None:
    rows = list(movie_reviews("mr"))
    assert len(rows) == 8530
    assert sum(label for _, label in rows) == 4265
    assert ("simplistic , silly and tedious .", 0) in rows
    text, label = next(iter(movie_reviews("imdb")))
    assert text.startswith("I rented I AM CURIOUS")
    assert label == 0


def test_pip_is_not_a_folder_where_the_user_stands(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    for name in ("pip", "zipfile"):  # one that is asked for by name, one that it imports
        (here / name).mkdir(parents=True)
        for file in ("__init__.py", "__main__.py"):
            (here / name / file).write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()", encoding="utf-8")
    monkeypatch.chdir(here)
    assert (store.get("words") / "words.txt").is_file()
    assert not (tmp_path / "ran").exists()


def test_a_changed_file_of_a_resource_is_noticed(store: Store) -> None:
    folder = store.get("words")
    words = folder / "words.txt"
    words.write_text("red\nblack\n", encoding="utf-8")  # as long as before
    with pytest.raises(ResourceError, match=r"not what it was .* words\.txt was changed") as caught:
        store.path("words")
    assert "unfooled resources get words" in caught.value.remedy
    assert store.get("words") == store.path("words")
    assert words.read_text(encoding="utf-8") == "red\ngreen\n"
    (folder / "a" / "b.txt").unlink()
    with pytest.raises(ResourceError, match=r"a/b\.txt is gone"):
        store.path("words")
    store.get("words")
    (folder / "checksums.json").write_text("{", encoding="utf-8")
    with pytest.raises(ResourceError, match=r"checksums\.json cannot be read"):
        store.path("words")


def test_a_built_resource_that_was_changed_is_built_again(store: Store) -> None:
    folder = store.get("upper")
    (folder / "upper.txt").write_text("BLUE", encoding="utf-8")
    with pytest.raises(ResourceError, match=r"upper\.txt was changed"):
        store.path("upper")
    assert (store.get("upper") / "upper.txt").read_text(encoding="utf-8") == "RED\nGREEN\n"


def test_a_copied_cache_is_read_once_and_then_known(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = store.get("words")
    os.utime(folder / "words.txt", ns=(1, 1))
    read: list[str] = []
    own = checksums._sha256

    def noting(path: Path) -> str:
        read.append(path.name)
        return own(path)

    monkeypatch.setattr(checksums, "_sha256", noting)
    assert store.path("words") == store.path("words") == folder
    assert read == ["words.txt"]
    (folder / "words.txt").write_text("red\nblack\n", encoding="utf-8")
    with pytest.raises(ResourceError, match="was changed"):
        store.path("words")


def test_a_resource_from_before_checksums_is_listed_and_that_is_said_once(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    folder = store.get("words")
    (folder / "checksums.json").unlink()
    assert store.path("words") == store.path("words") == folder
    (said,) = caplog.messages
    assert "came in before checksums" in said
    assert "unfooled resources get words --again" in said
    (folder / "words.txt").write_text("red\nblack\n", encoding="utf-8")
    with pytest.raises(ResourceError, match="was changed"):
        store.path("words")


def test_a_resource_is_fetched_again_where_that_is_asked_for(store: Store) -> None:
    folder = store.get("words")
    (folder / "words.txt").write_text("red\nblack\n", encoding="utf-8")
    (folder / "checksums.json").unlink()  # so that the change is not seen
    store.get("words")
    assert (folder / "words.txt").read_text(encoding="utf-8") == "red\nblack\n"
    store.get("words", again=True)
    assert (folder / "words.txt").read_text(encoding="utf-8") == "red\ngreen\n"


def test_a_file_made_on_first_use_is_listed_too(store: Store) -> None:
    folder = store.get("words")
    made = folder / "made.npz"
    made.write_bytes(b"made")
    assert store.path("words") == folder
    checksums.add_checksum(folder, "made.npz")
    assert store.path("words") == folder
    made.write_bytes(b"evil")
    with pytest.raises(ResourceError, match=r"made\.npz was changed"):
        store.path("words")
