"""A million examples through one run file, and through 16 shards that are merged: seconds and memory by rows.

python bench/million.py --rows 1000000 --json million.json
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

# A victim that costs nothing, and an attack that gives up at once: what is left is our own work per row.
VICTIM = """
import numpy as np

def classify(texts):
    return np.tile([0.2, 0.8], (len(texts), 1))

classify.labels = ("negative", "positive")
"""


def rows(path: Path, number: int) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        for row in range(number):
            writer.writerow([f"a story of number {row}", "positive" if row % 4 else "negative"])


def run(home: Path, *arguments: str) -> dict[str, float]:
    """Seconds and the most memory of one command, which is a process of its own."""
    script = (
        "import resource, sys\n"
        "from unfooled.cli.app import main\n"
        "try:\n    main()\n"
        "except SystemExit as stop:\n    assert not stop.code, stop.code\n"
        "used = resource.getrusage(resource.RUSAGE_SELF)\n"
        "sys.stderr.write(f'\\n{used.ru_utime + used.ru_stime} {used.ru_maxrss}')"
    )
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=home,
        env=os.environ | {"PYTHONPATH": str(home), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    cpu, kilobytes = map(float, done.stderr.splitlines()[-1].split())
    return {"cpu_seconds": cpu, "wall_seconds": time.monotonic() - began, "megabytes": kilobytes / 1024}


def attack(home: Path, out: str, *more: str) -> dict[str, float]:
    given = ["--model", "free_victim:classify", "--data", "d.csv", "--attack", "deepwordbug", "--budget", "1"]
    return run(home, "attack", *given, "--json", "--out", out, *more)


def measure(number: int, parts: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="unfooled-million-") as folder:
        home = Path(folder)
        (home / "free_victim.py").write_text(VICTIM)
        rows(home / "d.csv", number)
        found: dict[str, Any] = {"rows": number, "one": attack(home, "one")}
        print(number, "one file", found["one"], flush=True)
        shards = [attack(home, f"part-{n}", "--shard", f"{n}/{parts}") for n in range(1, parts + 1)]
        found["shards"] = {
            "parts": parts,
            "cpu_seconds": sum(shard["cpu_seconds"] for shard in shards),
            "megabytes": max(shard["megabytes"] for shard in shards),
            "each": shards,
        }
        print(number, "shards", found["shards"], flush=True)
        # As many rows of its own as a shard of a tenth of the rows has: what differs follows from the whole.
        found["small shard"] = attack(home, "small", "--shard", f"1/{10 * parts}")
        found["small shard"]["rows"] = number // (10 * parts)
        names = [f"part-{n}" for n in range(1, parts + 1)]
        found["merge"] = run(home, "merge", *names, "--out", "joined")
        print(number, "merge", found["merge"], flush=True)
        for name in ("one", "joined"):
            found[f"export {name}"] = run(home, "export", name, "-o", f"{name}.csv")
        found["same_export"] = (home / "one.csv").read_bytes() == (home / "joined.csv").read_bytes()
        found["file_megabytes"] = (home / "one" / "run.sqlite").stat().st_size / 2**20
        found["summary"] = run(home, "summary", "one")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--parts", type=int, default=16)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    found = []
    for number in given.rows:
        found.append(measure(number, given.parts))
        if given.json:
            given.json.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
