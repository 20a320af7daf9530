"""`unfooled attack --attack X` for every attack on five kinds of victims, a few rows each; says what fails.

    python bench/every_attack.py [ATTACK …] [--rows 5] [--budget 100]

The victims: TF-IDF with logistic regression, an LSTM, a fine-tuned MiniLM, a function that only decides, and
an LSTM that reads pairs. An attack that needs more than a victim shows must be refused with a remedy; any
other must end without an error in any row. The commands run one after the other in this process.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import time
from collections.abc import Sequence

import environment as env
from bench_data import read_rows, write_jsonl
from protocol import one_thread

FOLDER = env.HOME / "every"
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


def prepare() -> dict[str, list[str]]:
    """Victims, data and files that attacks read; what stands behind `unfooled attack` for each kind."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    victims = env.train_missing(env.resource("minilm"), ["mr", "lstm-mr", "minilm-mr"])
    reviews, pairs, learned = FOLDER / "reviews.jsonl", FOLDER / "pairs.jsonl", FOLDER / "train.jsonl"
    rows = [row for row in read_rows("mr", "test") if 8 <= len(row.text.split()) <= 20]
    write_jsonl(reviews, rows[:50])
    write_jsonl(learned, read_rows("mr", "train")[:2000])
    with pairs.open("w", encoding="utf-8") as file:
        for row in rows[:50]:
            line = {"premise": "what they say of it", "hypothesis": row.text, "label": row.label}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    decider = FOLDER / "decider.py"
    decider.write_text(DECIDER.format(model=victims / "mr.skops"), encoding="utf-8")
    words, trigger = FOLDER / "words.json", FOLDER / "trigger.json"
    model = FOLDER / "pairs"
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
    }


def verdict(code: int, told: str, rows: int) -> str:
    """`ok`, `refused` (with a cause and a remedy), or what went wrong."""
    if code == 2 and "needs" in told and "→" in told:
        return "refused"
    if code:
        return f"exit {code}: {told.strip()[:200]}"
    outcomes = json.loads(told)["counts"]
    if outcomes.get("error", 0):
        return f"errors: {outcomes}"
    return "ok" if sum(outcomes.values()) == rows else f"rows missing: {outcomes}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("attacks", nargs="*")
    parser.add_argument("--rows", type=int, default=5)
    parser.add_argument("--budget", type=int, default=100)
    args = parser.parse_args()
    one_thread()
    from unfooled.core.attack_list import TRANSLATIONS, list_attacks
    from unfooled.core.recipe import load_recipe

    kinds = prepare()
    attacks = args.attacks or [attack.name for attack in list_attacks() if attack.sight != TRANSLATIONS]
    files = {
        "uat": ["--set", f"search.trigger={FOLDER / 'trigger.json'}"],
        "tack-on": ["--set", f"search.words={FOLDER / 'words.json'}"],
        "strongest-words": ["--set", f"search.words={FOLDER / 'words.json'}"],
        "random": ["--set", f"search.vocabulary={FOLDER / 'words.json'}"],
        "breaking-bert": ["--only", "any"],  # else only texts of a class called negative
    }
    failed = 0
    for attack in attacks:
        told = []
        fills = any(oracle.startswith("fill:") for oracle in load_recipe(attack).oracles())
        more = files.get(attack, []) + (TRIGRAM if fills else [])
        started = time.process_time()
        for kind, given in kinds.items():
            arguments = ["attack", "--attack", attack, *given, *more, "--json", "--restart"]
            arguments += ["--first", str(args.rows), "--budget", str(args.budget)]
            answer = verdict(*command([*arguments, "--out", str(FOLDER / "run")]), args.rows)
            failed += answer not in ("ok", "refused")
            told.append(f"{kind} {answer}")
        print(f"{attack}: {'; '.join(told)} ({time.process_time() - started:.1f} s)", flush=True)
    print(f"{len(attacks)} attacks, {len(attacks) * len(kinds)} commands, {failed} failed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
