"""How fast a Hugging Face victim answers in each runtime, and on how many decisions it agrees with torch.

    python bench/backends.py --victim DIR --sentences FILE [--rounds 5] [--out bench/backends.json]
    python bench/backends.py --page bench/backends.json

Texts of 24, 64 and 250 tokens, in seconds of the processor, all runtimes in turns, medians. Decisions are
asked of rows and edited copies of them, as `attack --backend` asks. Beside what `--backend` offers stands the
usual dynamic quantisation, whose scale is that of a whole batch.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench_data import read_jsonl
from protocol import one_thread

LENGTHS = {24: 64, 64: 24, 250: 6}  # tokens: texts of a pass
PLAIN, DYNAMIC = "torch as installed", "8 bits, a scale for each batch (not offered)"


def plain(victim: Any) -> Callable[[Sequence[Any], int], Any]:
    """Torch's own linear layers."""
    import torch

    from unfooled.victims.torch.tokens import tensors

    def run(tokenised: Sequence[Any], width: int) -> Any:
        with torch.inference_mode():
            return victim.model(**tensors(tokenised, width)).logits.double().numpy()

    return run


def dynamic(victim: Any) -> Any:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    from unfooled.victims.torch import compiled

    with tempfile.TemporaryDirectory() as folder, compiled._silence():
        import onnx

        path = compiled._export(victim, Path(folder))
        model = onnx.load(path)
        del model.graph.value_info[:]
        onnx.save(model, path)
        small = Path(folder) / "dynamic.onnx"
        quantize_dynamic(path, small, weight_type=QuantType.QInt8, op_types_to_quantize=["MatMul", "Gemm"])
        return compiled.CompiledVictim(victim, DYNAMIC, compiled._onnx(small, victim))


def speeds(runs: dict[str, Callable[[Sequence[Any], int], Any]], rounds: int) -> dict[str, Any]:
    found: dict[str, Any] = {name: {} for name in runs}
    drawn = random.Random(0)
    for length, texts in LENGTHS.items():
        rows = [
            (tuple(drawn.randrange(1000, 9000) for _ in range(length)), (0,) * length) for _ in range(texts)
        ]
        took: dict[str, list[float]] = {name: [] for name in runs}
        for number in range(rounds + 1):
            for name, run in runs.items():
                began = time.process_time()
                run(rows, length)
                if number:
                    took[name].append(time.process_time() - began)
        for name, seconds in took.items():
            each = median(seconds) / texts
            found[name][str(length)] = {"texts_per_second": 1 / each, "tokens_per_second": length / each}
    return found


def measure(args: argparse.Namespace) -> dict[str, Any]:
    from unfooled.core.result import Example
    from unfooled.rates import wilson
    from unfooled.runs import backend
    from unfooled.victims.loading import load_victim
    from unfooled.victims.torch.compiled import available, compiled

    victim: Any = load_victim(str(args.victim))
    copies: dict[str, Any] = {**compiled(victim, *available()), DYNAMIC: dynamic(victim)}
    runs: dict[str, Any] = {PLAIN: plain(victim), "torch": victim._run_here}
    runs |= {name: copy._run for name, copy in copies.items()}
    found = speeds(runs, args.rounds)
    rows = [
        Example(key=number, content=(("text", row.text),), label=row.label, edit="text")
        for number, row in enumerate(read_jsonl(args.sentences)[: backend.ROWS])
    ]
    texts = backend._texts(rows, 0)
    few = texts[:8]
    for name, copy in copies.items():
        same, asked = backend.agreement(victim, copy, texts)
        low, high = wilson(same, asked)
        company = abs(copy.predict(few) - [copy.predict([text])[0] for text in few]).max()
        found[name] |= {"same": same, "asked": asked, "low": low, "high": high, "company": float(company)}
        print(name, json.dumps(found[name]), flush=True)
    return found


def page(found: dict[str, Any]) -> str:
    """The table of the documentation."""
    head = ["backend", *(f"{length} tokens" for length in LENGTHS), "agrees on", "95 % interval"]
    lines = [head, ["---"] * len(head)]
    for name, told in found.items():
        told_speeds = [f"{told[str(length)]['tokens_per_second']:,.0f}" for length in LENGTHS]
        share = f"{told['same']:,} of {told['asked']:,}" if "same" in told else "–"
        span = f"{100 * told['low']:.1f}–{100 * told['high']:.1f} %" if "same" in told else "–"
        lines.append([name if " " in name else f"`{name}`", *told_speeds, share, span])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--victim", type=Path)
    parser.add_argument("--sentences", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--page", type=Path, help="print the table of a measurement")
    args = parser.parse_args()
    if args.page:
        print(page(json.loads(args.page.read_text(encoding="utf-8"))))
        return
    one_thread()
    found = measure(args)
    print(page(found))
    if args.out:
        args.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
