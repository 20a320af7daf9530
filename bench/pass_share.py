"""What share of the raw forward-pass limit an attack reaches, and where the rest goes.

    python bench/pass_share.py --victim DIR --sentences FILE [--examples 50] [--blocks 2] [--out FILE]

TextFooler on blocks of examples, in seconds of the processor: within the models' passes, in tokenizers, in
all the rest. Between the blocks the raw limit is measured with the same linear layers, in full batches of
one length, over the lengths of the very tokens that the attack computed. `--apart` gives every length passes
of its own, as before lengths shared passes.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import unfooled_side
from bench_data import read_jsonl
from protocol import one_thread

BATCHES = (16, 24, 32, 48, 64, 96)


class Clock:
    """Seconds of the processor within some functions."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            began = time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                self.seconds += time.process_time() - began

        return timed


class Passes:
    """A model whose passes are timed, and the lengths of what went through it."""

    def __init__(self, model: Any, clock: Clock, lengths: Counter[int]) -> None:
        self._model = model
        self._clock = clock
        self._lengths = lengths

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def __call__(self, batch: Any) -> Any:
        rows, width = batch["input_ids"].shape
        self._lengths[width] += rows
        return self._clock.around(self._model)(batch)

    def packed(self, texts: Sequence[Sequence[int]]) -> Any:
        self._lengths.update(map(len, texts))
        return self._clock.around(self._model.packed)(texts)


def limit(model: Any, lengths: Counter[int], repeats: int = 3) -> dict[str, float]:
    """Tokens a second in full batches of each of some lengths, with torch as it is and with oneDNN."""
    from contextlib import nullcontext

    import torch

    from unfooled.linear import fast_linear

    ordered = sorted(lengths.elements())
    chosen = [ordered[len(ordered) * part // 10] for part in (1, 3, 5, 7, 9)]
    found: dict[str, list[float]] = {"torch": [], "onednn": []}
    with torch.inference_mode():
        for length in chosen:
            ids = torch.randint(1000, 9000, (max(BATCHES), length))
            best = {"torch": float("inf"), "onednn": float("inf")}
            for size in BATCHES:
                if size * length > 3000:
                    continue
                took: dict[str, list[float]] = {"torch": [], "onednn": []}
                for repeat in range(repeats + 1):
                    for way, mode in (("torch", nullcontext), ("onednn", fast_linear)):
                        with mode():
                            began = time.process_time()
                            model(input_ids=ids[:size])
                        if repeat:
                            took[way].append(time.process_time() - began)
                for way, seconds in took.items():
                    best[way] = min(best[way], median(seconds) / (size * length))
            for way, seconds_per_token in best.items():
                found[way].append(seconds_per_token * length)
    return {way: sum(chosen) / sum(seconds) for way, seconds in found.items()}


def measure(args: argparse.Namespace) -> dict[str, Any]:
    from unfooled.core.session import Session

    session, victim = unfooled_side.open_session(args)
    assert isinstance(session, Session)
    rows = read_jsonl(args.sentences)
    oracles = session.engine.oracles
    encoder: Any = next(oracle for name, oracle in oracles.items() if name.startswith("encode"))
    forward, tokenizer = Clock(), Clock()
    lengths: Counter[int] = Counter()
    unfooled_side.attack_block(session, rows, range(len(rows) - 3, len(rows)))
    raw_model = victim.model
    run = victim._run

    def counted(tokenised: Any, width: int) -> Any:
        lengths.update(len(ids) for ids, _ in tokenised)
        return forward.around(run)(tokenised, width)

    victim._run = counted
    victim.tokens = tokenizer.around(victim.tokens)
    encoder.model = Passes(encoder.model, forward, lengths)
    encoder._tokenize = tokenizer.around(encoder._tokenize)
    if args.apart:
        victim._packing_tried, victim._packed, encoder._packs = True, None, False
    shares, limits = [], []
    passes = texts = 0
    for number in range(args.blocks):
        lengths.clear()
        forward.seconds = tokenizer.seconds = 0.0
        before = victim.meter.calls + encoder.meter.calls
        began = time.process_time()
        unfooled_side.attack_block(session, rows, range(number * args.examples, (number + 1) * args.examples))
        seconds = time.process_time() - began
        tokens = sum(length * count for length, count in lengths.items())
        passes += victim.meter.calls + encoder.meter.calls - before
        texts += lengths.total()
        measured = limit(raw_model, lengths)
        limits.append(measured)
        shares.append(
            {
                "tokens": tokens,
                "seconds": seconds,
                "tokens_per_second": tokens / seconds,
                "of_onednn": tokens / seconds / measured["onednn"],
                "of_torch": tokens / seconds / measured["torch"],
                "passes": forward.seconds / seconds,
                "tokenizer": tokenizer.seconds / seconds,
                "rest": 1 - (forward.seconds + tokenizer.seconds) / seconds,
                "limit_onednn": measured["onednn"],
                "limit_torch": measured["torch"],
            }
        )
        print(json.dumps(shares[-1]), flush=True)
    return {
        "blocks": shares,
        "examples_per_block": args.examples,
        "apart": args.apart,
        "tokens_per_pass": sum(share["tokens"] for share in shares) / passes,
        "texts": texts,
        **{name: median(share[name] for share in shares) for name in shares[0]},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--victim", type=Path, required=True)
    parser.add_argument("--sentences", type=Path, required=True)
    parser.add_argument("--examples", type=int, default=50)
    parser.add_argument("--blocks", type=int, default=2)
    parser.add_argument("--apart", action="store_true", help="passes of one length only")
    parser.add_argument("--name", default="", help="of this measurement in the file")
    parser.add_argument("--out", type=Path)
    parser.set_defaults(
        encoder="resource", attack="textfooler@textattack", neighbours="", masked_lm="", set=[], without=[]
    )
    parser.set_defaults(order="constraints-first", window=256, budget=None)
    args = parser.parse_args()
    one_thread()
    found = measure(args)
    if args.out:
        known = json.loads(args.out.read_text(encoding="utf-8")) if args.out.exists() else {}
        known[args.name or f"{args.examples} examples{', apart' if args.apart else ''}"] = found
        args.out.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
