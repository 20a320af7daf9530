"""`unfooled attack --attack X` for every attack, in every version, on six kinds of victims; says what fails.

    python bench/every_attack.py [ATTACK …] [--victims sklearn lstm …] [--fitting] [--rows 1] [--budget 100]

The victims: TF-IDF with logistic regression, an LSTM, a fine-tuned MiniLM, a function that only decides, an
LSTM that reads pairs, and a small translator. An attack that needs more than a victim shows must be refused
with a remedy; any other must end without an error in any row. With `--fitting` each attacks one victim only,
the first that it fits, and nothing may be refused. The commands run one after the other in this process.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import json
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import environment as env
from bench_data import Row, read_rows, write_jsonl
from protocol import one_thread

if TYPE_CHECKING:
    from unfooled.core.recipe import Recipe

DECIDER = """
from unfooled.victims.loading import load_victim
LABELS = ("negative", "positive")
victim = load_victim("sklearn:{model}")
def decide(texts):
    return [LABELS[row.argmax()] for row in victim.predict(texts)]
"""
# A masked language model is not what is tried here: three words in a row will do.
TRIGRAM = ["--masked-lm", "trigram"]


def command(arguments: Sequence[str]) -> tuple[int, str]:
    """Exit code and output of a command; an error that is no user's is a code of its own."""
    from unfooled.cli.app import app
    from unfooled.errors import UserError

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = app(list(arguments), standalone_mode=False) or 0
        except UserError as error:
            return 2, str(error)
        except SystemExit as end:
            code = int(end.code or 0)
        except Exception as error:
            return 99, f"{type(error).__name__}: {error}"
    return int(code), out.getvalue() if code == 0 else err.getvalue()


def right_for_all(models: Sequence[str], rows: Sequence[Row]) -> list[Row]:
    """Of the first rows those that every model gets right: a row that is wrong at once tries no attack."""
    from unfooled.victims.loading import load_victim

    rows = rows[:100]
    texts = [row.text for row in rows]
    decided = [load_victim(model).predict(texts).argmax(axis=1) for model in models]
    return [
        row
        for row, classes in zip(rows, zip(*decided, strict=True), strict=True)
        if {*classes} == {row.label}
    ]


def write_parallel(source: Path, target: Path) -> None:
    """Sentences of one pattern and the same in capitals: a translation that is learned in seconds."""
    things = ["movie", "story", "actor", "film", "joke", "plot", "scene", "song", "book", "end", "man"]
    kinds = ["good", "bad", "old", "young", "dark", "long", "great", "small"]
    verbs = ["likes", "tells", "makes", "takes", "gives", "sees"]
    sentences = [
        f"the {kind} {one} {verb} the {other}"
        for kind, one, verb, other in itertools.product(kinds, things, verbs, things)
        if one != other
    ]
    random.Random(0).shuffle(sentences)
    source.write_text("".join(f"{line}\n" for line in sentences[:1500]), encoding="utf-8")
    target.write_text("".join(f"{line.upper()}\n" for line in sentences[:1500]), encoding="utf-8")


def prepare(folder: Path) -> dict[str, list[str]]:
    """Victims, data and files that attacks read; what stands behind `unfooled attack` for each kind."""
    folder.mkdir(parents=True, exist_ok=True)
    victims = env.train_missing(env.resource("minilm"), ["mr", "lstm-mr", "minilm-mr"])
    reviews, pairs, learned = folder / "reviews.jsonl", folder / "pairs.jsonl", folder / "train.jsonl"
    source, target = folder / "sentences.en", folder / "sentences.capitals"
    models = [
        f"sklearn:{victims / 'mr.skops'}",
        *(f"hf:{victims / name}" for name in ("lstm-mr", "minilm-mr")),
    ]
    rows = right_for_all(models, [row for row in read_rows("mr", "test") if 8 <= len(row.text.split()) <= 20])
    write_jsonl(reviews, rows[:50])
    write_jsonl(learned, read_rows("mr", "train")[:2000])
    with pairs.open("w", encoding="utf-8") as file:
        for row in rows[:50]:
            line = {"premise": "what they say of it", "hypothesis": row.text, "label": row.label}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    write_parallel(source, target)
    decider = folder / "decider.py"
    decider.write_text(DECIDER.format(model=victims / "mr.skops"), encoding="utf-8")
    words, trigger = folder / "words.json", folder / "trigger.json"
    model, translator = folder / "pairs", folder / "translator"
    steps = [
        (words, ["words", "--data", str(learned), "--out", str(words), "--force"]),
        (
            trigger,
            ["trigger", "--model", f"hf:{victims / 'lstm-mr'}", "--data", str(learned), "--limit", "200"]
            + ["--epochs", "1", "--out", str(trigger), "--force"],
        ),
        (
            model,
            ["train", "--model", "lstm", "--data", str(pairs), "--out", str(model), "--epochs", "1"]
            + ["--text-column", "premise,hypothesis", "--restart"],
        ),
        (
            translator,
            ["train", "--model", "seq2seq-lstm", "--data", f"{source},{target}", "--epochs", "8"]
            + ["--hidden", "64", "--layers", "1", "--lr", "0.005", "--batch", "32", "--out", str(translator)]
            + ["--restart"],
        ),
    ]
    for file, arguments in steps:
        if not file.exists():
            code, told = command(arguments)
            if code:
                raise SystemExit(f"{arguments[0]} ended with {code}: {told}")
    texts = ["--data", str(reviews)]
    named = ["--label-map", "0=negative,1=positive"]
    return {
        "sklearn": ["--model", f"sklearn:{victims / 'mr.skops'}", *texts, *named],
        "lstm": ["--model", f"hf:{victims / 'lstm-mr'}", *texts],
        "minilm": ["--model", f"hf:{victims / 'minilm-mr'}", *texts, *named],
        "decisions": ["--model", f"{decider}:decide", *texts, *named],
        "pairs": ["--model", f"hf:{model}", "--data", str(pairs), "--text-column", "premise,hypothesis"],
        "translator": ["--model", str(translator), "--data", f"{source},{target}"],
    }


def fitting(recipe: Recipe) -> str:
    """The first victim that shows what the attack needs."""
    from unfooled.core.attack_list import DECISIONS, PROBABILITIES, TRANSLATIONS

    needs = set(recipe.requires())
    if TRANSLATIONS in needs:
        return "translator"
    if not needs:
        return DECISIONS
    if "attention" in needs:
        return "minilm"
    return "sklearn" if needs == {PROBABILITIES} else "lstm"


def verdict(code: int, told: str, rows: int) -> str:
    """`ok`, `refused` (with a cause and a remedy), or what went wrong."""
    if code == 2 and "needs" in told and "→" in told:
        return "refused"
    if code:
        return f"exit {code}: {told.strip()[:200]}"
    from unfooled.core.result import ATTACKED

    outcomes = json.loads(told)["counts"]
    if outcomes.get("error", 0):
        return f"errors: {outcomes}"
    if not any(outcomes.get(outcome, 0) for outcome in ATTACKED):
        return f"nothing attacked: {outcomes}"
    return "ok" if sum(outcomes.values()) == rows else f"rows missing: {outcomes}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("attacks", nargs="*")
    parser.add_argument("--rows", type=int, default=1)
    parser.add_argument("--budget", type=int, default=100)
    parser.add_argument("--victims", nargs="*", default=[], help="only these kinds")
    parser.add_argument("--fitting", action="store_true", help="the first victim that fits, for each attack")
    parser.add_argument("--work", type=Path, default=env.HOME / "every", help="victims, data and runs")
    args = parser.parse_args()
    one_thread()
    from unfooled.core.recipe import all_recipes, load_recipe

    kinds = prepare(args.work)
    attacks = [load_recipe(name) for name in args.attacks] or list(all_recipes())
    files = {
        "uat": ["--set", f"search.trigger={args.work / 'trigger.json'}"],
        "tack-on": ["--set", f"search.words={args.work / 'words.json'}"],
        "strongest-words": ["--set", f"search.words={args.work / 'words.json'}"],
        "random": ["--set", f"search.vocabulary={args.work / 'words.json'}"],
        # Its own keywords are words in the middle of a vocabulary larger than this translator's.
        "targeted-keyword": ["--target", "MAN"],
        "breaking-bert": ["--only", "any"],  # else only texts of a class called negative
    }
    failed = commands = 0
    for attack in attacks:
        told = []
        fills = any(oracle.startswith("fill:") for oracle in attack.oracles())
        more = files.get(attack.name, []) + (TRIGRAM if fills else [])
        started = time.process_time()
        chosen = [fitting(attack)] if args.fitting else args.victims or list(kinds)
        for kind in chosen:
            arguments = ["attack", "--attack", attack.full_name, *kinds[kind], *more, "--json", "--restart"]
            arguments += ["--first", str(args.rows), "--budget", str(args.budget)]
            answer = verdict(*command([*arguments, "--out", str(args.work / "run")]), args.rows)
            failed += answer not in (("ok",) if args.fitting else ("ok", "refused"))
            told.append(f"{kind} {answer}")
            commands += 1
        print(f"{attack.full_name}: {'; '.join(told)} ({time.process_time() - started:.1f} s)", flush=True)
    print(f"{len(attacks)} attacks, {commands} commands, {failed} failed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
