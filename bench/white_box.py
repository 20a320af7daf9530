"""The scenarios that compare Unfooled with itself stripped bare: `jsma` and `one-word`."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import environment as env


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
    body = args.body or env.resource("minilm")
    victim = env.train_missing(body, ["minilm-mr"]) / "minilm-mr"
    examples = args.examples or (1 if args.quick else 3)
    print(f"one-word: {examples} examples, one at a time", flush=True)
    command: list[object] = [env.BENCH / "one_word.py", "--victim", victim]
    command += ["--sentences", env.sentences("mr", 200), "--examples", examples]
    measured = _asked([*command, *(["--quick", "--words", 400] if args.quick else [])])
    for attack in measured["attacks"].values():
        print(f"  {attack['attack']}: {attack['share']:.0%} of the bare pass", flush=True)
    return measured


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
