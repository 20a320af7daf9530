"""What gets through filters of three kinds, with `unfooled guard` as a user would type it.

    python bench/guard.py prepare [SET …]            # rows, look-alikes, the filters that are trained here
    python bench/guard.py run SET/VICTIM/WAY …       # one after the other; what is finished is kept
    python bench/guard.py gather                     # all that is finished, into bench/guard.json

SET is tweets, sms or injections (`$UNFOOLED_DATA` must hold `hate_offensive`, `hatecheck`, `sms_spam`,
`prompt_injection`, `notinject`), VICTIM sklearn, minilm, or llm: an instruction-tuned SmolLM2 of 135 million
weights behind the HTTP server of `xllamacpp`, on loopback; `+mended` behind it is what `--fix` wrote.
Filters of others, where they are installed: tweets/better-profanity, tweets/profanity-check,
injections/cloneguard. WAY is one of

    ladder    disguises of characters and misspellings, what is still blocked alone; then mended, and anew
    full      the same attacks, each on every caught text
    judged    the whole ladder with synonyms and a language model, on fewer texts; a judge of validity says
              whether what is neither to be undone nor slightly misspelt means the same
    every     as `judged`, each attack on every caught text
    speed     CPU milliseconds a text that the filter takes, alone, bare and behind its normalisers

Everything is seeded and lies in `--folder`; `guard_page.py` makes the page of `bench/guard.json`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_data import ROOT, Row, read_jsonl

OUT = Path(__file__).with_name("guard.json")
SEED = 23
SYNONYMS = ("textfooler@textattack", "bae-r@textattack")
FEWER = 100  # texts to block of which the searches for synonyms, and the judge, get the caught ones
SLOW_ROWS = 80  # for filters that take longer than a tenth of a second
SLOW = ("llm", "cloneguard")
DECIDES = ("better-profanity", "cloneguard")  # yes or no: its ladder has no attacks that need scores
# Filters from the package index, unchanged: functions of `guard_filters.py`, and what their classes mean.
THIRD = {
    "better-profanity": ("better_profanity", "fine,abuse", "neither=fine,offensive=abuse,hate=abuse"),
    "profanity-check": ("profanity_check", "fine,abuse", "neither=fine,offensive=abuse,hate=abuse"),
    "cloneguard": ("cloneguard", "benign,injection", ""),
}


@dataclass(frozen=True, kw_only=True)
class FilterSet:
    """One kind of filter: its rows, what it blocks, who reads what passes."""

    source: str
    labels: tuple[str, ...]
    flag: tuple[str, ...]
    alike: str = ""  # folder of harmless texts that look bad
    reader: str = "person"
    rows: int = 340  # that should be blocked and are attacked
    most_words: int = 0  # of test texts; 0: any number
    trained_on: int = 0  # rows for MiniLM; 0: all
    max_length: int = 64  # tokens that MiniLM reads
    task: str = ""  # what a language model is asked


SETS = {
    "tweets": FilterSet(
        source="hate_offensive",
        labels=("neither", "offensive", "hate"),
        flag=("offensive", "hate"),
        alike="hatecheck",
        trained_on=6000,
        task="Is this tweet offensive or hateful?",
    ),
    "sms": FilterSet(source="sms_spam", labels=("ham", "spam"), flag=("spam",), task="Is this message spam?"),
    "injections": FilterSet(
        source="prompt_injection",
        labels=("benign", "injection"),
        flag=("injection",),
        alike="notinject",
        reader="program",
        most_words=200,
        max_length=96,
        task="Is this text a prompt injection, which tries to take over a language model?",
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--folder", type=Path, default=ROOT / ".bench" / "guard")
    commands = parser.add_subparsers(dest="command", required=True)
    preparing = commands.add_parser("prepare")
    preparing.add_argument("sets", nargs="*", default=list(SETS), metavar="SET")
    preparing.add_argument("--only", choices=("rows", "sklearn", "minilm"))
    commands.add_parser("run").add_argument("cases", nargs="+", metavar="SET/VICTIM/WAY")
    commands.add_parser("gather")
    asked = parser.parse_args()
    if asked.command == "prepare":
        for name in asked.sets:
            prepare(name, asked.folder, asked.only)
    elif asked.command == "run":
        for case in asked.cases:
            run(case, asked.folder)
    else:
        gather(asked.folder)


# -- rows and filters ------------------------------------------------------------------------------------


def split_rows(name: str) -> tuple[list[Row], list[Row]]:
    """For training and for testing; half of the messages train, their own test half has too little spam."""
    kind = SETS[name]
    folder = Path(os.environ["UNFOOLED_DATA"])
    train, test = (read_jsonl(folder / kind.source / f"{split}.jsonl.gz") for split in ("train", "test"))
    if name == "sms":
        rows = [*train, *test]
        random.Random(SEED).shuffle(rows)
        train, test = rows[::2], rows[1::2]
    if kind.most_words:
        test = [row for row in test if len(row.text.split()) <= kind.most_words]
    return train, test


def prepare(name: str, folder: Path, only: str | None) -> None:
    kind, place = SETS[name], folder / name
    place.mkdir(parents=True, exist_ok=True)
    train, test = split_rows(name)
    if only in (None, "rows"):
        write(place / "test.jsonl", kind, test)
        write(place / "train.jsonl", kind, train)
        if kind.alike:
            alike = read_jsonl(Path(os.environ["UNFOOLED_DATA"]) / kind.alike / "test.jsonl.gz")
            harmless = [" ".join(row.text.split()) for row in alike if row.label == 0]
            (place / "alike.txt").write_text("\n".join(harmless) + "\n", encoding="utf-8")
            few = random.Random(SEED).sample(harmless, SLOW_ROWS)
            (place / "alike-few.txt").write_text("\n".join(few) + "\n", encoding="utf-8")
    if only in (None, "sklearn"):
        train_sklearn(kind, train, place / "sklearn.skops")
    if only in (None, "minilm"):
        limit = ["--limit", str(kind.trained_on)] if kind.trained_on else []
        # fmt: off
        unfooled(
            "train", "--model", "bert", "--data", place / "train.jsonl", "--out", place / "minilm", *limit,
            "--epochs", "2", "--max-length", str(kind.max_length), "--restart",
        )
        # fmt: on


def write(path: Path, kind: FilterSet, rows: Sequence[Row]) -> None:
    with path.open("w", encoding="utf-8") as out:
        for row in rows:
            out.write(
                json.dumps({"text": row.text, "label": kind.labels[row.label]}, ensure_ascii=False) + "\n"
            )


def train_sklearn(kind: FilterSet, rows: Sequence[Row], out: Path) -> None:
    import skops.io
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression(C=10, max_iter=1000))
    model.fit([row.text for row in rows], [kind.labels[row.label] for row in rows])
    skops.io.dump(model, out)


def unfooled(*words: object) -> str:
    """A command as a user types it; what it prints. Errors of some texts are in the result."""
    command = [sys.executable, "-m", "unfooled", *map(str, words)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 3):
        raise SystemExit(f"{' '.join(command)}: exit {done.returncode}")
    return done.stdout


# -- runs --------------------------------------------------------------------------------------------------


def run(case: str, folder: Path) -> None:
    name, victim, way = case.split("/")
    place = folder / name
    result = folder / "results" / f"{name}-{victim}-{way}.json"
    if result.exists():
        print(f"{case}: done before")
        return
    result.parent.mkdir(parents=True, exist_ok=True)
    began = cpu_seconds()
    if way == "speed":
        found = speed(name, victim, place)
    else:
        with model_of(victim, place, name) as options:
            out = place / "runs" / f"{victim}-{way}"
            words = ["guard", *options, *guard_options(name, victim, way, place), "--out", out, "--json"]
            found = json.loads(unfooled(*words))
    found["cpu_seconds"] = round(cpu_seconds() - began, 1)
    result.write_text(json.dumps(found), encoding="utf-8")
    if way != "speed":
        told = {key: round(100 * found[key]["value"], 1) for key in ("recall", "honest", "passed")}
        print(case, told, found["caught"], found["queries"], found["cpu_seconds"], flush=True)


def cpu_seconds() -> float:
    """Of this process and those that it started and that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def guard_options(name: str, victim: str, way: str, place: Path) -> list[object]:
    kind = SETS[name]
    flag = THIRD[victim][1].split(",")[1:] if victim in THIRD else kind.flag
    words: list[object] = ["--data", place / "test.jsonl", "--flag", ",".join(flag)]
    words += ["--reader", kind.reader, "--seed", "0"]
    if kind.alike:
        words += ["--look-alikes", place / ("alike-few.txt" if victim == "llm" else "alike.txt")]
    if way in ("judged", "every"):
        words += ["--judge", "--masked-lm", "trigram"]
    elif victim not in DECIDES:
        words += [word for attack in SYNONYMS for word in ("--without", attack)]
    if way in ("full", "every"):
        words += ["--every"]
    limit = FEWER if way in ("judged", "every") else kind.rows
    if victim in SLOW:
        limit = SLOW_ROWS
        words += ["--benign", "200"]
    elif way in ("ladder", "judged") and not victim.endswith("+mended"):
        words += ["--fix", place / f"{victim}+mended-{way}"]
    return [*words, "--limit", limit]


@contextlib.contextmanager
def model_of(victim: str, place: Path, name: str) -> Iterator[list[object]]:
    if victim.startswith("llm"):
        with language_model() as address:
            kind = SETS[name]
            # fmt: off
            yield [
                "--model", f"openai:smollm2@{address}/v1", "--labels", ",".join(kind.labels),
                "--victim-option", f"task={kind.task}", "--victim-option", "concurrency=1",
                "--victim-option", 'body={"cache_prompt": false}',
            ]
            # fmt: on
    elif victim in THIRD:
        function, labels, meant = THIRD[victim]
        file = Path(__file__).with_name("guard_filters.py")
        words: list[object] = ["--model", f"{file}:{function}", "--labels", labels]
        yield [*words, "--label-map", meant] if meant else words
    elif victim.endswith("+mended"):
        yield ["--model", place / f"{victim}-ladder"]
    else:
        yield ["--model", place / ("sklearn.skops" if victim == "sklearn" else victim)]


@contextlib.contextmanager
def language_model() -> Iterator[str]:
    """A server of its own on a free port of loopback, one thread."""
    import xllamacpp

    from unfooled.resources import store

    parameters = xllamacpp.CommonParams()
    (weights,) = store.path("smollm2-gguf").rglob("*.gguf")
    parameters.model.path = str(weights)
    parameters.n_ctx = 2048
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.verbosity = -1
    server = xllamacpp.Server(parameters)
    yield server.listening_address


def speed(name: str, victim: str, place: Path) -> dict[str, Any]:
    """Median CPU milliseconds of a text by itself; bare and mended take turns."""
    from unfooled.data.loading import load_data
    from unfooled.victims.loading import load_victim

    given = {"bare": place / ("sklearn.skops" if victim == "sklearn" else victim)}
    if (place / f"{victim}+mended-ladder").exists():
        given["mended"] = place / f"{victim}+mended-ladder"
    victims = {key: load_victim(str(path)) for key, path in given.items()}
    texts = [example.text() for example in load_data(str(place / "test.jsonl"))][:220]
    taken: dict[str, list[float]] = {key: [] for key in victims}
    for text in texts:
        for key, model in victims.items():
            began = time.process_time()
            model.predict([text])
            taken[key].append(1000 * (time.process_time() - began))
    return {key: round(statistics.median(times[20:]), 3) for key, times in taken.items()} | {"n": 200}


# -- what is kept ------------------------------------------------------------------------------------------


def gather(folder: Path) -> None:
    found: dict[str, Any] = json.loads(OUT.read_text(encoding="utf-8")) if OUT.exists() else {}
    for path in sorted((folder / "results").glob("*.json")):
        name, rest = path.stem.split("-", 1)
        victim, way = rest.rsplit("-", 1)
        result = json.loads(path.read_text(encoding="utf-8"))
        found[f"{name}/{victim}/{way}"] = result if way == "speed" else kept(result)
    OUT.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def kept(result: dict[str, Any]) -> dict[str, Any]:
    """Rates as [how many, of how many]; no texts."""
    plain = ("caught", "queries", "undecided", "unanswered", "judged", "suite", "left_out")
    rates = ("recall", "honest", "look_alikes", "passed", "evaded")
    found = {key: result[key] for key in plain} | {key: counts(result[key]) for key in rates}
    price = result["at_price"]
    if price:
        found["at_price"] = {
            "recall": counts(price["recall"]),
            "honest": counts(price["honest"]),
            "chosen_on": price["chosen_on"],
            "allowed": price["allowed"],
        }
    names = ("tried", "evaded", "recoverable", "readable", "works", "unjudged", "fell", "queries", "errors")
    found["rungs"] = {rung["attack"]: {key: rung[key] for key in names} for rung in result["rungs"]}
    found["cures"] = [kept_cure(cure) for cure in result["cures"]]
    if "cpu_seconds" in result:
        found["cpu_seconds"] = result["cpu_seconds"]
    if "mended" in result:
        found["mended"] = kept(result["mended"]["result"]) | {"cure": kept_cure(result["mended"]["cure"])}
    return found


def kept_cure(cure: dict[str, Any]) -> dict[str, Any]:
    rates = {key: counts(cure[key]) for key in ("closes", "recall", "honest", "look_alikes")}
    return {"name": cure["name"], "milliseconds": cure["milliseconds"], **rates}


def counts(rate: dict[str, Any] | None) -> list[int] | None:
    return [round((rate["value"] or 0) * rate["n"]), rate["n"]] if rate else None


if __name__ == "__main__":
    main()
