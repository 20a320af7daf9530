"""What the ladder saves: its questions against those of all its attacks in full, and what it misses by that.

    python bench/ladder.py FOLDER NAME...      (such as: tweets sms-behind; FOLDER keeps the runs)

Rows are those of `hate_offensive`, `sms_spam` and `prompt_injection` in `$UNFOOLED_DATA`. Filters are tf-idf
of words and pairs of words under logistic regression, trained on one half of the rows and attacked on the
other. `-behind` has all normalisers before it, `-synonyms` the attacks that take other words, on fewer rows.
Results join `bench/ladder.json`.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import sys
from pathlib import Path

import skops.io
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import unfooled
from unfooled.checks.guard import fitting_ladder, guard
from unfooled.checks.payload import Reader
from unfooled.data.dataset import Dataset
from unfooled.data.filtered import relabelled
from unfooled.metrics.summary import Rate
from unfooled.victims.filtering import Filter

DATA = Path(os.environ.get("UNFOOLED_DATA", "data"))
OUT = Path(__file__).with_suffix(".json")
SETS: dict[str, tuple[str, tuple[str, ...], Reader]] = {
    "tweets": ("hate_offensive", ("offensive", "hate"), "person"),
    "sms": ("sms_spam", ("spam",), "person"),
    "injections": ("prompt_injection", ("injection",), "program"),
}
SYNONYMS = ("textfooler@textattack", "bae-r@textattack")
BEHIND = "-behind"
WITH = "-synonyms"  # fewer rows, as these are slow


def rows_of(name: str) -> list[tuple[str, str]]:
    labels = json.loads((DATA / name / "labels.json").read_text(encoding="utf-8"))
    found = []
    for part in ("train", "test"):
        with gzip.open(DATA / name / f"{part}.jsonl.gz", "rt", encoding="utf-8") as lines:
            found += [(row["text"], labels[row["label"]]) for row in map(json.loads, lines)]
    random.Random(0).shuffle(found)
    return found


def filter_of(folder: Path, name: str, *, behind: bool) -> tuple[Filter, Dataset, Reader]:
    source, flag, reader = SETS[name]
    rows = rows_of(source)
    half = len(rows) // 2
    path = folder / f"{name}.skops"
    if not path.is_file():
        model = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression(max_iter=300))
        model.fit(*zip(*rows[:half], strict=True))
        skops.io.dump(model, path)
    victim = unfooled.load_victim(f"normalise:{path}" if behind else path, flag=flag)
    assert isinstance(victim, Filter)
    return victim, relabelled(Dataset.from_pairs(rows[half:], name=source), victim), reader


def measured(folder: Path, name: str) -> dict[str, object]:
    behind, synonyms = BEHIND in name, WITH in name
    victim, data, reader = filter_of(folder, name.split("-")[0], behind=behind)
    suite = fitting_ladder(victim, reader).without(*(() if synonyms else SYNONYMS))
    found = {}
    for way in ("ladder", "full"):
        found[way] = guard(
            victim,
            data,
            out=folder / name / way,
            suite=suite,
            reader=reader,
            limit=80 if synonyms else 400,
            benign=200,
            every=way == "full",
            cures=False,
        )
    ladder, full = found["ladder"], found["full"]
    assert ladder.caught == full.caught
    return {
        "suite": ladder.suite,
        "caught": ladder.caught,
        "queries": {"ladder": ladder.queries, "full": full.queries},
        "share": round(ladder.queries / full.queries, 4),
        "passed": {way: test.passed.to_dict() for way, test in found.items()},
        "missed": Rate.of(
            len(full.fell_at) - len(set(ladder.fell_at) & set(full.fell_at)), full.caught
        ).to_dict(),
        "unjudged": {way: sum(rung.unjudged for rung in test.rungs) for way, test in found.items()},
        "rungs": [
            {
                "attack": one.attack,
                "tried": one.tried,
                "left": one.left,
                "fell": one.fell,
                "queries": one.queries,
            }
            | {"alone": other.works, "in_full": other.queries}
            for one, other in zip(ladder.rungs, full.rungs, strict=True)
        ],
    }


def main() -> None:
    folder, *names = sys.argv[1:]
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name in names:
        known = json.loads(OUT.read_text(encoding="utf-8")) if OUT.is_file() else {}
        known[name] = measured(Path(folder), name)
        OUT.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        told = known[name]
        print(name, told["caught"], told["queries"], told["share"], told["passed"], told["missed"])


if __name__ == "__main__":
    main()
