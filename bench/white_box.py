"""The scenarios that compare Unfooled with itself stripped bare: they need no TextAttack."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import environment as env
from startup import run_startup


def run_jsma(args: argparse.Namespace) -> dict[str, Any]:
    """JSMA on an LSTM, in turns with a plain loop; see `jsma.py`."""
    name = "lstm-imdb-quick" if args.quick else "lstm-imdb"
    victim: Path = args.lstm or env.train_missing(None, [name]) / name
    blocks = args.blocks or (1 if args.quick else 3)
    block = args.examples or (24 if args.quick else 400)
    print(f"jsma: {blocks} blocks of {block} reviews", flush=True)
    # Some reviews are too short once unknown words are gone.
    reviews = env.reviews(2 * blocks * block + 100)
    command: list[object] = [env.BENCH / "jsma.py", "--victim", victim, "--reviews", reviews]
    measured = _asked([*command, "--blocks", blocks, "--block", block])
    print(f"  ratio {measured['ratio']:.2f}", flush=True)
    return measured


def run_one_word(args: argparse.Namespace) -> dict[str, Any]:
    """GS-GR and GS-EC beside the bare forward pass; see `one_word.py`."""
    victim = _classifier(args)
    examples = args.examples or (1 if args.quick else 3)
    print(f"one-word: {examples} examples, one at a time", flush=True)
    command: list[object] = [env.BENCH / "one_word.py", "--victim", victim]
    command += ["--sentences", env.sentences("mr", 200), "--examples", examples]
    measured = _asked([*command, *(["--quick", "--words", 400] if args.quick else [])])
    for attack in measured["attacks"].values():
        print(f"  {attack['attack']}: {attack['share']:.0%} of the bare pass", flush=True)
    return measured


def run_switch(args: argparse.Namespace) -> dict[str, Any]:
    """SWITCH, FuSE, FIVE and FACT beside the models inside them; see `switch.py`."""
    print("switch", flush=True)
    command: list[object] = [env.BENCH / "switch.py", "--model", _classifier(args)]
    command += ["--sentences", env.sentences("mr", 1000), *(["--quick"] if args.quick else [])]
    measured = _asked(command)
    print(f"  ratio {measured['switch']['against_loop']:.2f}", flush=True)
    return measured


def run_translation(args: argparse.Namespace) -> dict[str, Any] | None:
    """Typos against a Transformer, in turns with a loop over single texts; see `translation.py`."""
    folder = Path(os.environ.get("UNFOOLED_DATA", "")) / "multi30k"
    if not folder.is_dir():
        print("translation: left out, there is no multi30k in $UNFOOLED_DATA", flush=True)
        return None
    victim: Path = args.translator or env.HOME / "victims" / "translation"
    if not (victim / "config.json").is_file():
        _train_translator(folder, victim, minutes=1 if args.quick else 30)
    blocks, block = args.blocks or (1 if args.quick else 3), args.examples or (4 if args.quick else 40)
    print(f"translation: {blocks} blocks of {block} sentences", flush=True)
    data = ",".join(str(folder / f"test_2016_flickr.{language}.gz") for language in ("en", "de"))
    command: list[object] = [env.BENCH / "translation.py", "--victim", victim, "--data", data]
    measured = _asked([*command, "--blocks", blocks, "--block", block])
    print(f"  ratio {measured['ratio']:.2f}", flush=True)
    return measured


def _classifier(args: argparse.Namespace) -> Path:
    if args.classifier:
        return Path(args.classifier)
    return env.train_missing(args.body or env.resource("minilm"), ["minilm-mr"]) / "minilm-mr"


def _train_translator(folder: Path, out: Path, minutes: float) -> None:
    command = [sys.executable, "-m", "unfooled", "train", "--model", "seq2seq-transformer"]
    command += ["--data", str(folder), "--split", "train", "--text-column", "en,de", "--valid", "val"]
    subprocess.run([*command, "--minutes", str(minutes), "--out", str(out), "--restart"], check=True)


def _asked(command: list[object]) -> dict[str, Any]:
    """The last line of a script, run on one core."""
    done = subprocess.run(
        env.pinned([sys.executable, *command]),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=env.clean_env(),
    )
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


ALONE = {
    "jsma": run_jsma,
    "one-word": run_one_word,
    "translation": run_translation,
    "switch": run_switch,
    "startup": run_startup,
}
