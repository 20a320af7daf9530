"""A package index that is a folder with one wheel, and a resource store that knows no other."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from unfooled.resources.manifest import parse_manifest
from unfooled.resources.store import Progress, Store

MANIFEST = """
[words]
what = "A few words."
package = "tiny-words"
version = "1.0"
licence = "CC0-1.0"
size = 900
sha256 = "{sha}"
files = ["tiny_words/words.txt", "tiny_words/deep/"]

[upper]
what = "The same words in capitals."
version = "1"
licence = "CC0-1.0"
size = 10
built_from = ["words"]
build = "{build}"
"""


def make_wheel(folder: Path) -> str:
    """A wheel that pip accepts; returns its checksum."""
    files = {
        "tiny_words/words.txt": "red\ngreen\n",
        "tiny_words/deep/a/b.txt": "deep",
        "tiny_words/code.py": "raise SystemExit('never run')",
        "tiny_words-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tiny-words\nVersion: 1.0\n",
        "tiny_words-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    digest = {name: hashlib.sha256(text.encode()).digest() for name, text in files.items()}
    lines = [
        f"{name},sha256={base64.urlsafe_b64encode(digest[name]).rstrip(b'=').decode()},{len(text)}"
        for name, text in files.items()
    ]
    files["tiny_words-1.0.dist-info/RECORD"] = "\n".join([*lines, "tiny_words-1.0.dist-info/RECORD,,"])
    path = folder / "tiny_words-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def build_upper(store: Store, folder: Path, progress: Progress) -> dict[str, Any]:
    words = (store.path("words") / "words.txt").read_text(encoding="utf-8")
    (folder / "upper.txt").write_text(words.upper(), encoding="utf-8")
    progress("shouting", 0.5)
    return {"words": 2}


def tiny_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store whose only package index is a folder; pip reads these variables itself."""
    (tmp_path / "index").mkdir()
    sha = make_wheel(tmp_path / "index")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    monkeypatch.delenv("UNFOOLED_OFFLINE", raising=False)
    manifest = MANIFEST.format(sha=sha, build=f"{__name__}:build_upper")
    return Store(tmp_path / "cache", parse_manifest(manifest))
