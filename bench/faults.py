"""Kill workers, machines and the driver of one run, at random, on a real Ray cluster of several nodes on this
machine; and some of the shards of another. In the end every row must be there once, as in an undisturbed run.

    python bench/faults.py --kills 30 --rows 3000 --json faults.json
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_AUTH_MODE", "token")
os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(16))

# So slow that there is time to kill somebody in the midst of it.
VICTIM = """
import os, time
from unfooled.victims.fake import FakeVictim

inner = FakeVictim()

def classify(texts):
    time.sleep(float(os.environ.get("FAULTS_PAUSE", "0")))
    return inner.predict(texts)

classify.labels = ("negative", "positive")
"""
GOOD = ("superb", "great", "delightful", "charming", "funny", "moving")
BAD = ("awful", "dull", "terrible", "lame", "tedious", "boring")


class Bench:
    def __init__(self, home: Path, rows: int, pause: float, seed: int) -> None:
        self.home = home
        self.rng = random.Random(seed)
        self.env = os.environ | {
            "PYTHONPATH": str(home),
            "FAULTS_PAUSE": str(pause),
            "OMP_NUM_THREADS": "1",
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        os.environ["FAULTS_PAUSE"] = str(pause)  # for the workers, whose environment is that of the cluster
        (home / "slow_victim.py").write_text(VICTIM)
        with (home / "d.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["text", "label"])
            for row in range(rows):
                label = self.rng.choice(("negative", "positive"))
                words = GOOD if label == "positive" else BAD
                told = f"the film is {self.rng.choice(words)} and {self.rng.choice(words)}, number {row}."
                writer.writerow([told, label])

    def command(self, out: str, *more: str) -> list[str]:
        given = ["--model", "slow_victim:classify", "--data", "d.csv", "--attack", "deepwordbug", "--json"]
        return [sys.executable, "-m", "unfooled", "attack", *given, "--out", out, *more]

    def start(self, command: list[str], **env: str) -> subprocess.Popen[bytes]:
        with (self.home / "log").open("ab") as log:
            return subprocess.Popen(
                command, cwd=self.home, env=self.env | env, stdout=subprocess.DEVNULL, stderr=log
            )

    def plain(self) -> bytes:
        """What an undisturbed run exports."""
        assert self.start(self.command("plain"), FAULTS_PAUSE="0").wait() == 0
        return self.export("plain")

    def export(self, run: str) -> bytes:
        command = [sys.executable, "-m", "unfooled", "export", run, "-o", f"{run}.jsonl", "--force"]
        subprocess.run(command, cwd=self.home, env=self.env, check=True, stdout=subprocess.DEVNULL)
        return (self.home / f"{run}.jsonl").read_bytes()

    def compared(self, run: str, plain: bytes) -> dict[str, Any]:
        found, wanted = (
            [json.loads(line) for line in text.splitlines()] for text in (self.export(run), plain)
        )
        keys = Counter(row["key"] for row in found)
        return {
            "rows": len(wanted),
            "lost": len({row["key"] for row in wanted} - set(keys)),
            "twice": sum(number - 1 for number in keys.values()),
            "same_export": self.export(run) == plain,
        }


class Nodes:
    """A Ray cluster on loopback addresses: a head without CPUs, and machines that can be killed."""

    def __init__(self, number: int, cpus: int) -> None:
        from ray.cluster_utils import Cluster

        self.cpus = cpus
        self._made = 2
        head = {"num_cpus": 0, "node_ip_address": "127.0.0.2", "include_dashboard": False}
        self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.alive: list[Any] = []
        for _ in range(number):
            self.add()

    @property
    def address(self) -> str:
        return str(self.cluster.address)

    def add(self) -> None:
        self._made += 1
        self.alive.append(
            self.cluster.add_node(num_cpus=self.cpus, node_ip_address=f"127.0.0.{self._made}", wait=False)
        )

    def raylet(self, node: Any) -> int:
        return int(node.all_processes["raylet"][0].process.pid)

    def workers(self) -> list[int]:
        """Processes of actors, children of our own raylets."""
        parents = {self.raylet(node) for node in self.alive}
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                title = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if parent in parents and b"GroupedActor" in title:
                found.append(int(entry.name))
        return found

    def kill_node(self, node: Any) -> None:
        os.kill(self.raylet(node), signal.SIGKILL)
        self.alive.remove(node)
        self.add()

    def close(self) -> None:
        self.cluster.shutdown()


def ray_faults(bench: Bench, plain: bytes, kills: int, limit: float) -> dict[str, Any]:
    nodes = Nodes(number=3, cpus=1)
    done: Counter[str] = Counter()
    try:
        command = bench.command(
            "ray", "--engine", "ray", "--address", nodes.address, "--workers", "3", "--window", "16"
        )
        driver = bench.start(command)
        began, starts = time.monotonic(), 1
        while time.monotonic() - began < limit:
            if driver.poll() is not None:
                break
            if sum(done.values()) < kills:
                kind = bench.rng.choice(("worker", "worker", "machine", "driver"))
                workers = nodes.workers()
                if not workers:
                    time.sleep(0.2)  # they are on their way: a kill now would hit nobody
                    continue
                time.sleep(bench.rng.uniform(0.0, 2.0))
                workers = nodes.workers()
                if driver.poll() is not None or not workers:
                    continue
                if kind == "worker":
                    os.kill(bench.rng.choice(workers), signal.SIGKILL)
                elif kind == "machine":
                    nodes.kill_node(bench.rng.choice(nodes.alive))
                else:
                    driver.kill()
                    driver.wait()
                    driver = bench.start(command)
                    starts += 1
                done[kind] += 1
                print(f"{time.monotonic() - began:6.1f} s  killed a {kind}", flush=True)
            else:
                time.sleep(0.2)
        code = driver.poll()
        if code is None:
            driver.kill()
            driver.wait()
    finally:
        nodes.close()
    seconds = time.monotonic() - began
    told = {"kills": dict(done), "code": code, "commands": starts, "seconds": round(seconds, 1)}
    return told | bench.compared("ray", plain)


def shard_faults(bench: Bench, plain: bytes, parts: int, kills: int) -> dict[str, Any]:
    """Two at a time; `kills` of them are killed in their midst and started again."""
    doomed = set(bench.rng.sample(range(1, parts + 1), kills))
    waiting, running, killed = list(range(1, parts + 1)), {}, 0
    while waiting or running:
        while waiting and len(running) < 2:
            part = waiting.pop(0)
            running[part] = bench.start(bench.command(f"part-{part}", "--shard", f"{part}/{parts}"))
            if part in doomed:
                file = bench.home / f"part-{part}" / "run.sqlite"
                while not file.exists() and running[part].poll() is None:
                    time.sleep(0.02)
                time.sleep(bench.rng.uniform(0.0, 0.5))
                running[part].kill()
                running.pop(part).wait()
                doomed.remove(part)
                killed += 1
                waiting.append(part)
        for part, process in list(running.items()):
            if (code := process.poll()) is not None:
                assert code == 0, f"part {part} ended with {code}"
                del running[part]
        time.sleep(0.02)
    command = [sys.executable, "-m", "unfooled", "merge", "--out", "joined"]
    command += [f"part-{part}" for part in range(1, parts + 1)]
    subprocess.run(command, cwd=bench.home, env=bench.env, check=True, stdout=subprocess.DEVNULL)
    return {"parts": parts, "killed": killed} | bench.compared("joined", plain)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--pause", type=float, default=0.05)
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument("--shard-kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=1200.0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="unfooled-faults-") as home:
        bench = Bench(Path(home), given.rows, given.pause, given.seed)
        plain = bench.plain()
        found: dict[str, Any] = {}
        if given.kills:
            found["ray"] = ray_faults(bench, plain, given.kills, given.limit)
        if given.shards:
            found["shards"] = shard_faults(bench, plain, given.shards, given.shard_kills)
        print(json.dumps(found, indent=1))
        if given.json:
            given.json.write_text(json.dumps(found, indent=1) + "\n")
        if any(part["lost"] or part["twice"] or not part["same_export"] for part in found.values()):
            print((Path(home) / "log").read_text()[-3000:])
            sys.exit(1)


if __name__ == "__main__":
    main()
