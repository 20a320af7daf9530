"""The same run on a Ray cluster of several nodes: the same results whoever dies, and mistakes in a line."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

# A token of our own: else Ray would keep one in the user's home. It is read when Ray is first imported.
os.environ.setdefault("RAY_AUTH_MODE", "token")
os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(16))
pytest.importorskip("ray", reason="needs: pip install 'unfooled[ray]'")

import planted
import unfooled
from deadly_victim import import_deadly, write_deadly
from reviews import sentences, write_csv
from stored_runs import digest
from toy_plan import plan
from unfooled.checks.suites import Suite, SuiteAttack
from unfooled.errors import UserError, VictimError
from unfooled.metrics.measures import measure_run
from unfooled.papers.runner import StageRunner
from unfooled.runs.file import RunFile
from unfooled.runs.workers.where import Workers

pytestmark = [
    pytest.mark.skipif(
        not sys.platform.startswith("linux"), reason="nodes need loopback addresses of their own"
    ),
    pytest.mark.filterwarnings("default"),  # those of Ray are not ours to mend
]

LACKS = """
import os
if os.environ.get("PARENT") != str(os.getpid()):
    import a_package_that_is_not_here
from unfooled.victims.fake import FakeVictim
inner = FakeVictim()
def classify(texts):
    return inner.predict(texts)
classify.labels = ("negative", "positive")
"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Two nodes and a head that only leads, reached on loopback alone; gone after the tests of this file."""
    before = os.environ.get("RAY_USAGE_STATS_ENABLED")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    shared: dict[str, Any] = {"object_store_memory": 80 << 20}
    head = {"num_cpus": 0, "node_ip_address": "127.0.0.2", "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head | shared)
    try:
        for node in (3, 4):
            cluster.add_node(num_cpus=2, node_ip_address=f"127.0.0.{node}", **shared)
        yield str(cluster.address)
    finally:
        import ray

        ray.shutdown()
        cluster.shutdown()  # type: ignore[no-untyped-call]
        if before is None:
            os.environ.pop("RAY_USAGE_STATS_ENABLED", None)


@pytest.fixture
def data(tmp_path: Path) -> unfooled.Dataset:
    return unfooled.load_data(write_csv(tmp_path / "d.csv", sentences(60)))


def test_any_number_of_workers_gives_the_results_of_one(
    tmp_path: Path, data: unfooled.Dataset, address: str
) -> None:
    unfooled.attack("fake", data, "deepwordbug", out=tmp_path / "one")
    for number in (1, 2, 4, 7):  # for the last three there is no room
        workers = Workers(number=number, engine="ray", address=address)
        unfooled.attack("fake", data, "deepwordbug", out=tmp_path / f"ray-{number}", workers=workers)
        assert digest(tmp_path / f"ray-{number}") == digest(tmp_path / "one")
    with (
        closing(RunFile.read(tmp_path / "one")) as one,
        closing(RunFile.read(tmp_path / "ray-2")) as two,
    ):
        assert one.counters()["victim"]["asked"] == two.counters()["victim"]["asked"]
        assert two.header["environment"]["engine"] == "ray"
        assert "engine" not in one.header["environment"]


def test_a_victim_by_value_may_be_a_function_of_a_script(
    tmp_path: Path, data: unfooled.Dataset, address: str
) -> None:
    def classify(texts: list[str]) -> list[list[float]]:
        return [[0.1, 0.9] if "great" in text or "superb" in text else [0.8, 0.2] for text in texts]

    victim = unfooled.FunctionVictim(classify, labels=("negative", "positive"))
    unfooled.attack(victim, data, "deepwordbug", out=tmp_path / "one")
    workers = Workers(number=2, engine="ray", address=address)
    unfooled.attack(victim, data, "deepwordbug", out=tmp_path / "two", workers=workers)
    assert digest(tmp_path / "one") == digest(tmp_path / "two")


def test_a_text_that_kills_its_worker_is_found(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_deadly(tmp_path / "deadly_on_ray.py", monkeypatch)
    data = unfooled.load_data(write_csv(tmp_path / "d.csv", sentences(20)))
    workers = Workers(number=2, engine="ray", address=address)
    run = unfooled.attack("deadly_on_ray:deadly", data, "deepwordbug", out=tmp_path / "run", workers=workers)
    results = {result.key: result for result in run.results()}
    assert [key for key, result in results.items() if result.outcome == "error"] == [13]
    assert "the worker process died on this example" in results[13].note
    clean = unfooled.attack("fake", data, "deepwordbug", out=tmp_path / "clean")
    for result in clean.results():
        if result.key != 13:
            assert result == results[result.key]


def test_what_is_missing_on_a_machine_is_one_line(
    tmp_path: Path, data: unfooled.Dataset, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lacks_on_ray.py").write_text(LACKS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PARENT", str(os.getpid()))
    workers = Workers(number=1, engine="ray", address=address)
    with pytest.raises(UserError, match=r"(?s)on the machine .*a_package_that_is_not_here.*on every machine"):
        unfooled.attack("lacks_on_ray:classify", data, "deepwordbug", out=tmp_path / "a", workers=workers)
    moved = tmp_path / "model"
    victim = unfooled.load_victim("fake")
    victim.spec = str(moved)  # type: ignore[attr-defined]
    with pytest.raises(UserError, match=r"(?s)on the machine .*model.*every machine of the cluster"):
        unfooled.attack(victim, data, "deepwordbug", out=tmp_path / "b", workers=workers)


def test_a_path_counts_from_where_the_command_stands(
    tmp_path: Path, data: unfooled.Dataset, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_deadly(tmp_path / "beside.py", monkeypatch)
    monkeypatch.chdir(tmp_path)
    workers = Workers(number=1, engine="ray", address=address)
    few = unfooled.load_data("d.csv", limit=10)
    run = unfooled.attack("beside.py:deadly", few, "deepwordbug", out="run", workers=workers)
    assert {result.outcome for result in run.results()} <= {"success", "failure", "skipped"}


def test_another_model_under_the_same_name_is_refused(
    tmp_path: Path, data: unfooled.Dataset, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = unfooled.load_victim("fake")
    monkeypatch.setattr(victim, "fingerprint", lambda: "another")
    workers = Workers(number=1, engine="ray", address=address)
    with pytest.raises(UserError, match="another model than on the machine that started the run"):
        unfooled.attack(victim, data, "deepwordbug", out=tmp_path / "a", workers=workers)


def test_a_worker_that_no_machine_can_hold(tmp_path: Path, data: unfooled.Dataset, address: str) -> None:
    workers = Workers(engine="ray", address=address, gpus=1)
    with pytest.raises(UserError, match=r"(?s)asks for 1 GPU.*--gpus-per-worker"):
        unfooled.attack("fake", data, "deepwordbug", out=tmp_path / "run", workers=workers)
    workers = Workers(engine="ray", address=address, cpus=64)
    with pytest.raises(UserError, match=r"asks for 64 CPU.*more than 2"):
        unfooled.attack("fake", data, "deepwordbug", out=tmp_path / "run", workers=workers)
    assert not (tmp_path / "run").exists()  # nothing was begun


def command(cwd: Path, *more: str, model: str = "fake") -> subprocess.CompletedProcess[str]:
    write_csv(cwd / "d.csv", sentences(6))
    given = ["attack", "--model", model, "--data", "d.csv", "--attack", "deepwordbug", "--out", "run"]
    line = [sys.executable, "-m", "unfooled", *given, *more]
    return subprocess.run(line, cwd=cwd, capture_output=True, text=True, timeout=120)


def on(address: str, *more: str) -> list[str]:
    return ["--engine", "ray", "--address", address, *more]


def test_no_cluster_is_one_line(tmp_path: Path) -> None:
    for address in ("ray://127.0.0.1:1", "127.0.0.1:1"):
        said = command(tmp_path, *on(address))
        assert said.returncode == 2
        assert f"error: there is no Ray cluster at {address}" in said.stderr
        assert "ray start --head" in said.stderr
    said = command(tmp_path, *on("nowhere"))
    assert said.returncode == 2
    assert "is no address of a cluster" in said.stderr
    assert not (tmp_path / "run").exists()


# Where the command runs; a worker finds neither the package nor, once it was read, the file.
HERE = """
import os, pathlib, unfooled.victims.fake

if {lacks} and os.environ.get("PARENT") != str(os.getppid()):
    import a_package_that_is_not_here
inner = unfooled.victims.fake.FakeVictim()

def classify(texts):
    if {vanishes} and len(texts) > 1:
        pathlib.Path(__file__).unlink(missing_ok=True)
    return inner.predict(texts)

classify.labels = ("negative", "positive")
"""


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("no cluster", "there is no Ray cluster at 127.0.0.1:1"),
        ("no package", "on the machine .*a_package_that_is_not_here.*same on every machine"),
        ("no model", "on the machine .*there is no file .*model.py.*same on every machine"),
        ("no GPU", "a worker asks for 1 GPU, and no machine of the cluster has more than 0"),
    ],
)
def test_a_run_that_goes_on_wrongly_loses_nothing(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch, wrong: str, told: str
) -> None:
    """Each of these: one line, exit code 2, and what was finished is still there and is gone on with."""
    monkeypatch.setenv("PARENT", str(os.getpid()))
    model = tmp_path / "model.py"
    written = {"lacks": wrong == "no package", "vanishes": wrong == "no model"}
    model.write_text(HERE.format(**written))
    spec = f"{model}:classify"
    unfooled.attack(
        "fake", write_csv(tmp_path / "all.csv", sentences(6)), "deepwordbug", out=tmp_path / "whole"
    )
    assert command(tmp_path, "--first", "2", model=spec).returncode == 0
    before = digest(tmp_path / "run")
    model.write_text(HERE.format(**written))
    at = "127.0.0.1:1" if wrong == "no cluster" else address
    gpus = ["--gpus-per-worker", "1"] if wrong == "no GPU" else []
    said = command(tmp_path, "--first", "6", *on(at, *gpus), model=spec)
    assert said.returncode == 2, said.stderr
    assert sum(line.startswith("error:") for line in said.stderr.splitlines()) == 1
    assert re.search(told, said.stderr, re.DOTALL), said.stderr
    assert "Traceback" not in said.stderr
    assert digest(tmp_path / "run") == before
    model.write_text(HERE.format(**written))
    assert command(tmp_path, "--first", "6", model=spec).returncode == 0
    found = [(result.key, result.perturbed) for result in unfooled.Run(tmp_path / "run").results()]
    assert found == [(result.key, result.perturbed) for result in unfooled.Run(tmp_path / "whole").results()]


def test_without_ray_the_message_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "ray.py").write_text("raise ModuleNotFoundError(\"No module named 'ray'\", name='ray')")
    script = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from unfooled.runs.workers.where import Workers\n"
        "Workers(engine='ray').connect()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert "pip install 'unfooled[ray]'" in done.stderr


def test_the_command_on_a_cluster_of_this_machine(tmp_path: Path) -> None:
    said = command(tmp_path, *on("local", "--workers", "2", "--json"))
    assert said.returncode == 0, said.stderr
    assert json.loads(said.stdout)["total"] == 6  # and nothing but JSON


def test_replay_transfer_and_measure(tmp_path: Path, data: unfooled.Dataset, address: str) -> None:
    workers = Workers(number=2, engine="ray", address=address)
    run = unfooled.attack("fake", data, "deepwordbug", out=tmp_path / "run")
    unfooled.replay(run, "overconfident:fake", out=tmp_path / "one")
    unfooled.replay(run, "overconfident:fake", out=tmp_path / "two", workers=workers)
    assert digest(tmp_path / "one") == digest(tmp_path / "two")
    alone = unfooled.transfer(run, "overconfident:fake")
    assert unfooled.transfer(run, "overconfident:fake", again=True, workers=workers) == alone
    measure_run(tmp_path / "run", ["edit-distance"], workers=workers)
    with closing(RunFile.read(tmp_path / "run")) as file:
        here = file.measured("edit-distance")
    unfooled.attack("fake", data, "deepwordbug", out=tmp_path / "again")
    assert unfooled.measure(tmp_path / "again", "edit-distance") == {"edit-distance": here}


def test_a_suite_of_attacks(tmp_path: Path, data: unfooled.Dataset, address: str) -> None:
    attacks = (SuiteAttack("typos@random"), SuiteAttack("deepwordbug@paper"))
    suite = Suite(name="two", version="1", summary="", attacks=attacks)
    workers = Workers(number=2, engine="ray", address=address)
    found = {}
    for place, given in (("here", 1), ("there", workers)):
        result = unfooled.stress("fake", data, suite, out=tmp_path / place, limit=20, workers=given)
        shares = [(share.attack, share.tried, share.broke, share.queries) for share in result.attacks]
        assert result.worst.value < result.clean.value
        found[place] = shares, result.worst
    assert found["here"] == found["there"]
    runs = [sorted(path.parent for path in (tmp_path / place).rglob("run.sqlite")) for place in found]
    assert [digest(run) for run in runs[0]] == [digest(run) for run in runs[1]]
    assert any(_engine(run) == "ray" for run in runs[1])


def test_an_evaluation_with_all_its_checks(tmp_path: Path, address: str) -> None:
    """The guises in which a model is attacked again have no name: they travel by value."""
    models = {"base": "fake", "hot": "overconfident:base"}
    workers = Workers(number=2, engine="ray", address=address)
    found = []
    for place, given in (("here", 1), ("there", workers)):
        out = tmp_path / place
        given_recipe = planted.recipe(tmp_path)
        found.append(unfooled.evaluate(models, planted.data(12), given_recipe, out=out, workers=given))
    assert replace(found[1], out=found[0].out) == found[0]
    engines = {path.parent.name: _engine(path.parent) for path in (tmp_path / "there").rglob("run.sqlite")}
    # These two are texts that are only scored, not attacked.
    assert sorted(name for name, engine in engines.items() if engine != "ray") == ["premade", "transfer-base"]


def _engine(run: Path) -> Any:
    with closing(RunFile.read(run)) as file:
        return file.header["environment"].get("engine")


def test_stages_of_a_reproduction(tmp_path: Path, address: str) -> None:
    pytest.importorskip("sklearn")
    stages = plan()
    StageRunner(tmp_path / "here").carry_out(stages)
    workers = Workers(number=2, engine="ray", address=address)
    StageRunner(tmp_path / "there", workers=workers).carry_out(stages)
    found = []
    for place in ("here", "there"):
        (run,) = (tmp_path / place).rglob("run.sqlite")
        found.append([(result.key, result.perturbed) for result in unfooled.Run(run.parent).results()])
    assert found[0] == found[1]


@pytest.mark.slow
def test_kills_cost_nothing(tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "bench" / "faults.py"
    given = ["--kills", "30", "--rows", "8000", "--shards", "16", "--shard-kills", "5"]
    told = tmp_path / "faults.json"
    done = subprocess.run(
        [sys.executable, str(script), *given, "--json", str(told)],
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(told.read_text())
    assert sum(found["ray"]["kills"].values()) == 30
    assert found["shards"]["killed"] == 5
    for kind in ("ray", "shards"):
        assert (found[kind]["lost"], found[kind]["twice"], found[kind]["same_export"]) == (0, 0, True)


def test_no_other_command_knows_of_ray() -> None:
    script = "import sys, unfooled.runs.attack, unfooled.cli.attack; print('ray' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "False"


def test_engines_that_are_not_there() -> None:
    with pytest.raises(UserError, match="there is no engine 'spark'"):
        Workers(engine="spark")
    for given in ({"address": "auto"}, {"gpus": 1.0}):  # they would be forgotten without a word
        with pytest.raises(UserError, match=r"(?s)for a Ray cluster.*add --engine ray"):
            Workers(number=2, **given)
    assert issubclass(VictimError, UserError)
