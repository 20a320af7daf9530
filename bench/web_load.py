"""Twenty annotators and five attacks at once: how long does a page take to answer?

Starts `unfooled study serve` and `unfooled playground` as two servers on this machine, then

  - 20 annotators sign in, open items, answer them and open the next, with a short pause between,
  - 5 visitors attack one text after another in the playground and read the events as they come,
  - meanwhile each visitor also opens the playground's page and searches its texts.

The load comes from the same machine, so the figures include it.

    python bench/web_load.py --model FOLDER --attack textfooler --seconds 30
    python bench/web_load.py --quick
"""

from __future__ import annotations

import argparse
import csv
import http.client
import json
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path
from urllib.parse import urlencode

GOOD = ["superb", "great", "delightful", "charming", "funny", "moving"]
BAD = ["awful", "dull", "terrible", "lame", "tedious", "boring"]
PLAIN = ["the film", "this story", "a cast of unknowns", "every scene", "its second half", "the old director"]
BAR = 0.2  # seconds, median

Times = dict[str, list[float]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", default="fake", help="the playground's model")
    parser.add_argument("--labels", default="", help="its class names, where they are not negative,positive")
    parser.add_argument("--attack", default="deepwordbug")
    parser.add_argument("--annotators", type=int, default=20)
    parser.add_argument("--visitors", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--pause", type=float, default=1.0, help="mean seconds that an annotator thinks")
    parser.add_argument("--quick", action="store_true", help="5 seconds")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    seconds = 5.0 if options.quick else options.seconds
    with tempfile.TemporaryDirectory() as folder:
        codes = prepare(Path(folder), options.annotators)
        data = Path(folder) / "d.csv"
        ports = free_port(), free_port()
        playground = ["playground", "--model", options.model, "--data", str(data), "--attack", options.attack]
        playground += ["--labels", options.labels] if options.labels else []
        servers = [
            start(["study", "serve", str(Path(folder) / "study.db")], ports[0]),
            start(playground, ports[1]),
        ]
        try:
            times, attacks = load(ports, codes, options.visitors, options.attack, seconds, options.pause)
        finally:
            for server in servers:
                server.terminate()
                server.wait(timeout=20)
    return report(times, attacks, options, seconds)


# -- what the servers serve ------------------------------------------------------------------------


def unfooled(*arguments: str) -> str:
    done = subprocess.run([sys.executable, "-m", "unfooled", *arguments], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return done.stdout


def prepare(folder: Path, annotators: int) -> list[str]:
    rng = random.Random(0)
    with (folder / "d.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        for i in range(300):
            label, words = rng.choice([("negative", BAD), ("positive", GOOD)])
            told = f"{rng.choice(PLAIN)} is {rng.choice(words)} and {rng.choice(words)}, number {i}."
            writer.writerow([told, label])
    run = str(folder / "run")
    unfooled("attack", "-m", "fake", "-d", str(folder / "d.csv"), "-a", "deepwordbug", "-o", run, "--json")
    study = str(folder / "study.db")
    told = unfooled(
        "study", "create", run, "--n", "100", "--annotators", str(annotators), "-o", study, "--json"
    )
    return list(json.loads(told)["codes"].values())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(arguments: list[str], port: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "unfooled", *arguments, "--port", str(port)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)
    for _ in range(1200):
        if server.poll() is not None:
            raise SystemExit("a server did not start")
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return server
        except OSError:
            time.sleep(0.1)
    raise SystemExit("a server did not answer")


# -- the load --------------------------------------------------------------------------------------


class Browser:
    """Keeps a connection and a cookie, as a browser does; notes how long every answer takes."""

    def __init__(self, port: int, times: Times) -> None:
        self._port = port
        self._times = times
        self._cookie = ""
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def ask(self, kind: str, method: str, path: str, form: dict[str, str] | None = None) -> tuple[int, str]:
        headers = {"Origin": f"http://127.0.0.1:{self._port}"}
        headers |= {"Cookie": self._cookie} if self._cookie else {}
        body = None
        if form is not None:
            body = urlencode(form)
            headers |= {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        began = time.perf_counter()
        self._connection.request(method, path, body, headers)
        answer = self._connection.getresponse()
        text = answer.read().decode()
        self._times[kind].append(time.perf_counter() - began)
        if given := answer.getheader("set-cookie"):
            self._cookie = given.split(";")[0]
        return answer.status, text


def annotate(port: int, code: str, until: float, pause: float, times: Times) -> None:
    rng = random.Random(code)
    browser = Browser(port, times)
    browser.ask("sign in", "POST", "/sign-in", {"code": code})
    number = 0
    while time.perf_counter() < until:
        number += 1
        status, page = browser.ask("open an item", "GET", f"/items/{number}")
        if status != 200:
            return
        proof = re.search(r'name="proof" value="(\w+)"', page)
        assert proof, page[:200]
        for question, value in (("q.label", rng.randrange(2)), ("q.naturalness", rng.randint(1, 5))):
            time.sleep(rng.uniform(0.5, 1.5) * pause / 2)
            form = {"proof": proof.group(1), question: str(value)}
            status, _ = browser.ask("save an answer", "POST", f"/items/{number}", form)
            assert status == 200, status


def visit(port: int, number: int, attack: str, until: float, times: Times, attacks: list[float]) -> None:
    rng = random.Random(number)
    browser = Browser(port, times)
    _, page = browser.ask("open the playground", "GET", "/")
    proof = re.search(r'name="proof" value="([\w-]+)"', page)
    name = re.search(rf'<option value="({re.escape(attack)}[^"]*)"', page)
    assert proof
    assert name, f"{attack} is not in the list"
    while True:
        words = GOOD if rng.random() < 0.5 else BAD
        text = " and ".join(f"{rng.choice(PLAIN)} is {rng.choice(words)}" for _ in range(6))
        form = {"proof": proof.group(1), "attack": name.group(1), "field.text": text}
        began = time.perf_counter()
        status, answer = browser.ask("start an attack", "POST", "/attacks", form)
        assert status == 200, answer
        Browser(port, defaultdict(list)).ask("", "GET", f"/attacks/{json.loads(answer)['id']}/events")
        attacks.append(time.perf_counter() - began)
        if time.perf_counter() >= until:
            return


def look(port: int, until: float, times: Times) -> None:
    browser = Browser(port, times)
    while time.perf_counter() < until:
        browser.ask("open the playground", "GET", "/")
        browser.ask("search its texts", "GET", "/texts?find=film")
        time.sleep(0.5)


def load(
    ports: tuple[int, int], codes: list[str], visitors: int, attack: str, seconds: float, pause: float
) -> tuple[Times, list[float]]:
    study, playground = ports
    times: Times = defaultdict(list)
    attacks: list[float] = []
    # The first attack opens word lists and encoders; that is not what is measured.
    visit(playground, 99, attack, 0.0, defaultdict(list), [])
    until = time.perf_counter() + seconds
    threads = [threading.Thread(target=annotate, args=(study, code, until, pause, times)) for code in codes]
    for number in range(visitors):
        threads.append(
            threading.Thread(target=visit, args=(playground, number, attack, until, times, attacks))
        )
        threads.append(threading.Thread(target=look, args=(playground, until, times)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times, attacks


def report(times: Times, attacks: list[float], options: argparse.Namespace, seconds: float) -> int:
    everything = [value for values in times.values() for value in values]
    rows = {kind: figures(values) for kind, values in sorted(times.items())} | {"all": figures(everything)}
    told = {
        "model": Path(options.model).name,
        "attack": options.attack,
        "annotators": options.annotators,
        "visitors": options.visitors,
        "seconds": seconds,
        "attacks_finished": len(attacks),
        "attack_median_ms": round(1000 * statistics.median(attacks), 1) if attacks else None,
        "answers": rows,
    }
    if options.json:
        print(json.dumps(told, indent=2))
    else:
        print(f"{options.annotators} annotators, {options.visitors} attacks at once, {seconds:g} s")
        print(f"{len(attacks)} attacks finished, median {told['attack_median_ms']} ms each")
        for kind, row in rows.items():
            print(f"{kind:22} n={row['n']:6}  median {row['median_ms']:7.1f} ms  p95 {row['p95_ms']:7.1f} ms")
    return 0 if statistics.median(everything) < BAR else 1


def figures(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {
        "n": len(ordered),
        "median_ms": round(1000 * statistics.median(ordered), 1),
        "p95_ms": round(1000 * ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))], 1),
        "max_ms": round(1000 * ordered[-1], 1),
    }


if __name__ == "__main__":
    sys.exit(main())
