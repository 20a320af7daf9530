"""How the harness talks to one side. Standard library only: both environments import it.

The harness writes one JSON line per block, `{"indices": [3, 4, 5]}`, and reads one JSON line back:
`{"seconds": wall, "results": [...], "meters": {...}}`. The first line of a side is `{"ready": ...}`, so
start-up is outside every measured time. A result has `index`, `outcome` (success, failure, skipped, error),
`text` and `queries`. Meters are what the side's models did during the block. After the measured blocks
TextAttack's side also takes `{"explain": [...]}`, the other side's results where they differ.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TextIO

Results = list[dict[str, Any]]


@dataclass
class Meter:
    """What one model did: `seconds` inside it, `tokens` that are text, `padding` that is not."""

    calls: int = 0
    texts: int = 0
    tokens: int = 0
    padding: int = 0
    seconds: float = 0.0

    def add(self, texts: int, tokens: int, padding: int, seconds: float) -> None:
        self.calls += 1
        self.texts += texts
        self.tokens += tokens
        self.padding += padding
        self.seconds += seconds

    def since(self, before: Meter) -> dict[str, float]:
        return {f.name: getattr(self, f.name) - getattr(before, f.name) for f in fields(self)}

    def copy(self) -> Meter:
        return Meter(**asdict(self))


def one_thread() -> None:
    """Before NumPy or torch are imported."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"


def private_stdout() -> TextIO:
    """The real stdout for the protocol alone; whatever libraries print goes to stderr."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    return channel


def measured(
    attack_block: Callable[[Sequence[int]], Results], indices: Sequence[int], meters: dict[str, Meter]
) -> dict[str, Any]:
    before = {name: meter.copy() for name, meter in meters.items()}
    started = time.perf_counter()
    cpu = time.process_time()
    results = attack_block(indices)
    return {
        "seconds": time.perf_counter() - started,
        "cpu_seconds": time.process_time() - cpu,
        "results": results,
        "meters": {name: meter.since(before[name]) for name, meter in meters.items()},
    }


def serve(
    attack_block: Callable[[Sequence[int]], Results],
    meters: dict[str, Meter],
    channel: TextIO,
    facts: dict[str, Any],
    explain: Callable[[dict[str, Any]], str] | None = None,
) -> None:
    """Answer blocks until stdin closes."""
    print(json.dumps({"ready": facts}), file=channel)
    for line in sys.stdin:
        request = json.loads(line)
        if explain is not None and "explain" in request:
            print(json.dumps([explain(other) for other in request["explain"]]), file=channel)
            continue
        print(json.dumps(measured(attack_block, request["indices"], meters)), file=channel)


def run_all(
    attack_block: Callable[[Sequence[int]], Results],
    meters: dict[str, Meter],
    count: int,
    block: int,
    out: Path | None,
) -> None:
    """Without a harness: attack everything in blocks, one JSON line per example, totals to stderr."""
    lines: list[str] = []
    seconds = 0.0
    for at in range(0, count, block):
        indices = list(range(at, min(at + block, count)))
        answer = measured(attack_block, indices, meters)
        seconds += answer["seconds"]
        lines += [json.dumps(result, ensure_ascii=False) for result in answer["results"]]
        print(f"{indices[-1] + 1}/{count} in {seconds:.1f} s", file=sys.stderr, flush=True)
    if out is not None:
        out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    totals = {name: meter.since(Meter()) for name, meter in meters.items()}
    print(json.dumps({"examples": count, "seconds": round(seconds, 3), "meters": totals}), file=sys.stderr)


class Side:
    """The harness's end: a running side, asked for one block at a time."""

    def __init__(self, name: str, command: Sequence[str], log: Path, env: dict[str, str]) -> None:
        self.name = name
        self._log = log.open("w", encoding="utf-8")
        self._process = subprocess.Popen(
            list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True, env=env
        )
        started = time.perf_counter()
        self.facts: dict[str, Any] = self._read()["ready"]
        self.startup_seconds = time.perf_counter() - started

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._log.flush()
            tail = Path(self._log.name).read_text(encoding="utf-8")[-2000:]
            raise SystemExit(f"the {self.name} side ended (exit {self._process.wait()}):\n{tail}")
        return json.loads(line)

    def _ask(self, request: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._read()

    def block(self, indices: Sequence[int]) -> dict[str, Any]:
        answer: dict[str, Any] = self._ask({"indices": list(indices)})
        return answer

    def explain(self, others: Sequence[dict[str, Any]]) -> list[str]:
        reasons: list[str] = self._ask({"explain": list(others)})
        return reasons

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        self._log.close()
