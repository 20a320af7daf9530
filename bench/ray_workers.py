"""Ray workers beside local ones: how evenly two share a transformer's work, and what a free victim tells of
the way to a worker and back. In CPU seconds, which other programs do not change; start-up is not counted.

    python bench/ray_workers.py --rows 120 --json ray_workers.json
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

# Each process notes when it was asked, and its CPU seconds until then.
VICTIM = """
import os, pathlib, time
from unfooled.victims.loading import load_victim

inner = load_victim("hf:" + os.environ["BENCH_MODEL"])
notes = pathlib.Path(os.environ["BENCH_NOTES"])
first = None

def classify(texts):
    global first
    if first is None:
        first = (time.monotonic(), time.process_time())
    answers = inner.predict(texts)
    line = f"{first[0]} {first[1]} {time.monotonic()} {time.process_time()}"
    (notes / str(os.getpid())).write_text(line)
    return answers

classify.labels = ("negative", "positive")
"""
TEXT = """
the a film story cast scene director actor plot music camera city family night summer war
love friend house is was seems looks feels stays becomes very quite rather almost never
always often great good fine superb charming funny moving dull awful lame slow boring
tedious bad cheap long short old new young dark bright and but with without for of in on
about after before against between
"""
WORDS = TEXT.split()


def model(folder: Path) -> None:
    """A transformer of two layers; what it says does not matter here, what it costs does."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    folder.mkdir()
    letters = [chr(number) for number in range(97, 123)]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    vocabulary = {piece: place for place, piece in enumerate(dict.fromkeys([*pieces, *WORDS, ",", "."]))}
    tokenizer = BertTokenizerFast(vocab=vocabulary)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=128, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=512, id2label={0: "negative", 1: "positive"},
        label2id={"negative": 0, "positive": 1},
    )  # fmt: skip
    BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def transformer(home: Path, rows: int) -> list[dict[str, Any]]:
    import unfooled

    model(home / "model")
    (home / "bench_victim.py").write_text(VICTIM)
    os.environ |= {"BENCH_MODEL": str(home / "model"), "PYTHONPATH": str(home)}
    os.environ["BENCH_NOTES"] = str(home / "notes")
    (home / "notes").mkdir()
    sys.path.insert(0, str(home))
    rng = random.Random(0)
    texts = [" ".join(rng.choices(WORDS, k=rng.randint(8, 30))) + " ." for _ in range(rows)]
    said = unfooled.load_victim("bench_victim:classify").predict(texts).argmax(axis=1)
    data = [(text, ("negative", "positive")[label]) for text, label in zip(texts, said, strict=True)]
    found = []
    for engine, number in (("local", 2), ("ray", 1), ("ray", 2)):
        for note in (home / "notes").iterdir():
            note.unlink()
        workers = unfooled.Workers(number=number, engine=engine)
        out = home / f"{engine}-{number}"
        run = unfooled.attack(
            "bench_victim:classify",
            data,
            "deepwordbug",
            out=out,
            workers=workers,
            settings=unfooled.Settings(window=16),  # so that there is something to hand out
        )
        seen = [list(map(float, note.read_text().split())) for note in (home / "notes").iterdir()
                if note.name != str(os.getpid())]  # fmt: skip
        cpu = [last - first for _, first, _, last in seen]
        found.append(
            {
                "engine": engine,
                "workers": number,
                "rows": len(list(run.results())),
                "cpu_sum": sum(cpu),
                "cpu_most": max(cpu),
                "wall": max(row[2] for row in seen) - min(row[0] for row in seen),
                "digest": digest(out),
            }
        )
        print(found[-1], flush=True)
    return found


def digest(run: Path) -> str:
    from unfooled.runs.file import RunFile

    with closing(RunFile.read(run)) as file:
        return file.content_digest()


class Sampler:
    """CPU seconds of this process and of all that it started, those that ended included."""

    def __init__(self) -> None:
        self._last: dict[int, float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Sampler:
        self._look()
        self._before = dict(self._last)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._look()
        self.seconds = sum(value - self._before.get(pid, 0.0) for pid, value in self._last.items())

    def _watch(self) -> None:
        while not self._stop.wait(0.1):
            self._look()

    def _look(self) -> None:
        parents: dict[int, int] = {}
        spent: dict[int, float] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    fields = (entry / "stat").read_text().rpartition(")")[2].split()
                except OSError:
                    continue
                parents[int(entry.name)] = int(fields[1])
                spent[int(entry.name)] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        for pid in spent:
            above = pid
            while above not in (0, 1, os.getpid()):
                above = parents.get(above, 0)
            if above == os.getpid():
                self._last[pid] = spent[pid]


def free(home: Path, rows: tuple[int, int]) -> dict[str, Any]:
    """CPU milliseconds per example beyond start-up: what a longer run needs more than a short one."""
    import unfooled

    texts = [(f"the film is superb and great, number {row}.", "positive") for row in range(rows[1])]
    found: dict[str, Any] = {"rows": list(rows)}
    for engine in ("local", "ray"):
        workers = unfooled.Workers(number=2, engine=engine)
        workers.connect()
        seconds = []
        for number in rows:
            with Sampler() as sampler:
                out = home / f"free-{engine}-{number}"
                unfooled.attack("fake", texts[:number], "deepwordbug", out=out, workers=workers)
            seconds.append(sampler.seconds)
        found[engine] = 1000 * (seconds[1] - seconds[0]) / (rows[1] - rows[0])
        print(engine, seconds, found[engine], flush=True)
    found["overhead"] = found["ray"] - found["local"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=120)
    parser.add_argument("--free-rows", type=int, nargs=2, default=[1000, 9000])
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="unfooled-ray-") as home:
        found: dict[str, Any] = {}
        if given.rows:
            runs = transformer(Path(home), given.rows)
            one, two = (next(r for r in runs if (r["engine"], r["workers"]) == ("ray", n)) for n in (1, 2))
            found["transformer"] = runs
            found["cpu_speed_up"] = one["cpu_sum"] / two["cpu_most"]
            found["identical"] = len({run.pop("digest") for run in runs}) == 1
        found["free"] = free(Path(home), tuple(given.free_rows))
        found["load"] = os.getloadavg()[1]
        found["date"] = time.strftime("%Y-%m-%d")
    print(json.dumps(found, indent=1))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
