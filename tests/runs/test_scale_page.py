"""Every command of the page about scale is run here: sbatch and kubectl by what they would run."""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("skops")

import unfooled
from doc_pages import DOCS, blocks, typed
from reviews import sentences, write_csv

PAGE = DOCS / "how-to" / "scale.md"
LINES = [line for block in blocks(PAGE, "sh") for line in typed(block)]
PARTS = 16
TOKEN = secrets.token_hex(16)  # of our clusters; else Ray would keep one in the user's home


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model and rows, as the reader has them."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import SGDClassifier
    from sklearn.pipeline import make_pipeline
    from skops.io import dump

    made = tmp_path_factory.mktemp("scale")
    rows = sentences(24)
    pipeline = make_pipeline(TfidfVectorizer(), SGDClassifier(loss="log_loss", random_state=0))
    dump(pipeline.fit([text for text, _ in rows], [label for _, label in rows]), made / "model.skops")
    write_csv(made / "reviews.csv", rows)
    return made


def environment(**more: str) -> dict[str, str]:
    """With the command `unfooled` of this very Python."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    own = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN}
    return os.environ | {"PATH": path} | own | more


def shell(line: str, folder: Path, code: int = 0, **more: str) -> str:
    done = subprocess.run(
        line, shell=True, cwd=folder, env=environment(**more), capture_output=True, text=True, timeout=180
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def those_with(*parts: str) -> list[str]:
    found = [line for line in LINES if all(part in line for part in parts)]
    assert found, parts
    return found


def exported(folder: Path, run: str) -> bytes:
    unfooled.export(folder / "runs" / run, folder / f"{run}.jsonl", force=True)
    return (folder / f"{run}.jsonl").read_bytes()


@pytest.fixture(scope="module")
def laptop(folder: Path) -> bytes:
    """Step 1; what all others must give as well."""
    for line in those_with("--dry-run"):
        said = shell(line, folder)
        assert "examples  24" in said
        assert "money     about" in said
        assert not (folder / "runs").exists()
    for line in [*those_with("runs/laptop"), *those_with("--max-cost")]:
        shell(line, folder)
    assert exported(folder, "laptop") == exported(folder, "paid")
    return exported(folder, "laptop")


def test_shards(folder: Path, laptop: bytes) -> None:
    plain = [line for line in those_with("--shard") if "--surrogate" not in line]
    for line in [*plain, *those_with("merge runs/part-1 runs/part-2")]:
        shell(line, folder)
    assert exported(folder, "all") == laptop


def test_shards_that_share_a_surrogate(folder: Path) -> None:
    fit, attack = those_with("--surrogate")
    shell(fit, folder)
    shell(attack, folder)
    shell(attack.replace("1/2", "2/2").replace("guided-1", "guided-2"), folder)
    shell("unfooled merge runs/guided-1 runs/guided-2 --out runs/guided", folder)
    assert len(list(unfooled.Run(folder / "runs" / "guided").results())) == 24


def at_once(commands: list[tuple[list[str], dict[str, str]]], folder: Path) -> None:
    """Two at a time, as an array job would run more."""
    for first in range(0, len(commands), 2):
        running = [
            subprocess.Popen(command, cwd=folder, env=environment(**more), stdout=subprocess.DEVNULL)
            for command, more in commands[first : first + 2]
        ]
        assert [process.wait(timeout=180) for process in running] == [0] * len(running)


def test_the_script_for_slurm(folder: Path, laptop: bytes, tmp_path: Path) -> None:
    (line,) = those_with("sbatch")
    _, script, *arguments = shlex.split(line)
    (block,) = [block for block in blocks(PAGE, "bash") if block.title == script]
    assert f"#SBATCH --array=1-{PARTS}" in block.code
    (tmp_path / script).write_text(block.code)
    for name in ("model.skops", "reviews.csv"):
        (tmp_path / name).symlink_to(folder / name)
    command = ["bash", script, *arguments]
    at_once([(command, {"SLURM_ARRAY_TASK_ID": str(task)}) for task in range(1, PARTS + 1)], tmp_path)
    (merge,) = those_with("merge runs/part-*")
    shell(merge, tmp_path)
    assert exported(tmp_path, "all") == laptop


def test_the_manifest_for_kubernetes(folder: Path, laptop: bytes, tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    (line,) = those_with("kubectl")
    (block,) = [block for block in blocks(PAGE, "yaml") if block.title == line.split()[-1]]
    job: dict[str, Any] = yaml.safe_load(block.code)
    spec = job["spec"]
    assert (spec["completionMode"], spec["completions"]) == ("Indexed", PARTS)
    (container,) = spec["template"]["spec"]["containers"]
    own = {entry["name"]: entry["value"] for entry in container["env"]}
    assert own["RUNS"] == container["volumeMounts"][0]["mountPath"]
    given = own | {
        "RUNS": str(tmp_path / "runs"),
        "MODEL": str(folder / "model.skops"),
        "DATA": str(folder / "reviews.csv"),
    }
    command = [*container["command"], *container["args"]]
    at_once([(command, given | {"JOB_COMPLETION_INDEX": str(index)}) for index in range(PARTS)], tmp_path)
    (merge,) = those_with("merge runs/part-*")
    shell(merge, tmp_path)
    assert exported(tmp_path, "all") == laptop


def test_ray_on_this_machine(folder: Path, laptop: bytes) -> None:
    pytest.importorskip("ray")
    assert those_with("pip install") == ["pip install 'unfooled[ray]'"]
    for line in those_with("--address local"):
        shell(line, folder)
    assert exported(folder, "ray") == laptop


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, int]]:
    """What the two commands start, on loopback and with ports of its own; ended by its own processes."""
    pytest.importorskip("ray")
    if not sys.platform.startswith("linux"):
        pytest.skip("nodes need loopback addresses of their own")
    head, other = those_with("ray start")
    gcs, client = free_port(), free_port()
    short = tempfile.mkdtemp(prefix="ray-")  # the path of a socket may have 107 bytes
    limits = ["--object-store-memory=80000000", "--disable-usage-stats", "--block"]
    started = [
        [*shlex.split(head.replace("6379", str(gcs))), "--num-cpus=1", "--node-ip-address=127.0.0.5"]
        + [f"--ray-client-server-port={client}", "--include-dashboard=false", f"--temp-dir={short}"],
        [*shlex.split(other.replace("HEAD:6379", f"127.0.0.5:{gcs}")), "--num-cpus=1"]
        + ["--node-ip-address=127.0.0.6"],
    ]
    running: list[subprocess.Popen[bytes]] = []
    try:
        for command, port in zip(started, (gcs, client), strict=True):
            with (tmp_path / "log").open("ab") as log:
                running.append(
                    subprocess.Popen(
                        [*command, *limits],
                        cwd=tmp_path,
                        env=environment(),
                        stdout=log,
                        stderr=log,
                        start_new_session=True,
                    )
                )
            wait_for(port, running, tmp_path / "log")
        yield f"127.0.0.5:{gcs}", client
    finally:
        for process in reversed(running):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in running:
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        shutil.rmtree(short, ignore_errors=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int, running: list[subprocess.Popen[bytes]], log: Path) -> None:
    until = time.monotonic() + 120
    while time.monotonic() < until:
        assert all(process.poll() is None for process in running), log.read_text()
        with suppress(OSError), socket.create_connection(("127.0.0.5", port), timeout=1):
            return
        time.sleep(0.1)
    raise AssertionError(log.read_text())


def test_a_cluster(folder: Path, laptop: bytes, cluster: tuple[str, int]) -> None:
    address, client = cluster
    (inside,) = those_with("--address auto")
    # `auto` finds a cluster by this variable first, and then the one that was started last on the machine.
    shell(inside, folder, RAY_ADDRESS=address)
    assert exported(folder, "cluster") == laptop
    (outside,) = those_with("ray://HEAD:10001")
    shell(outside.replace("HEAD:10001", f"127.0.0.5:{client}"), folder)
    assert exported(folder, "outside") == laptop


def test_no_command_of_the_page_is_left_out() -> None:
    run = [
        "--dry-run",
        "runs/laptop",
        "--max-cost",
        "--surrogate",
        "--shard",
        "merge",
        "sbatch",
        "kubectl",
        "pip install",
    ]
    run += ["--address local", "ray start", "--address auto", "ray://HEAD:10001"]
    assert [line for line in LINES if not any(part in line for part in run)] == []
