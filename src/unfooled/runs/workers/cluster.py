"""The connection to a Ray cluster: made once, and every obstacle told in a line."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from unfooled.errors import UserError
from unfooled.extras import libraries_of
from unfooled.runs.workers.processes import no_current_folder

if TYPE_CHECKING:
    from unfooled.runs.workers.where import Workers

_REACH = 5.0  # seconds for a first answer of a machine
_STORE = 128 << 20  # bytes of shared memory of a cluster of this machine alone
_OTHERS = "someone else's"  # connected before we came

_connected: str | None = None  # the address that this process is connected to


def library() -> Any:
    """The library `ray`, which tells nobody that it is used."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else it warns of what we do not use
    # Else what it has to say of a dead worker stands on standard output, where a machine reads our JSON.
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
    with libraries_of("ray", "ray", needed_for="--engine ray"):
        import ray
    return ray


def dumps(value: Any) -> bytes:
    """As Ray sends it: functions of a script can travel, too."""
    packed: bytes = library().cloudpickle.dumps(value)
    return packed


def connect(workers: Workers) -> None:
    """Be connected to the cluster, which has a machine on which a worker finds room."""
    global _connected
    ray = library()
    if ray.is_initialized():
        if _connected in (None, _OTHERS):
            _connected = _OTHERS
        elif _connected != workers.address:
            ray.shutdown()
    if not ray.is_initialized():
        with _explained(workers.address):
            _init(ray, workers)
        _connected = workers.address
    _require_room(ray, workers)


def _init(ray: Any, workers: Workers) -> None:
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if workers.address == "local":
        os.environ.setdefault("RAY_worker_niceness", "0")  # else every other program goes before our workers
        cores = max(os.cpu_count() or 1, int(workers.number * workers.cpus + 0.999))
        with no_current_folder():
            ray.init(
                address="local",
                num_cpus=cores,
                include_dashboard=False,
                object_store_memory=_STORE,
                **_loopback(),
                **quiet,
            )
        return
    if workers.address != "auto":
        _require_listener(workers.address)
    ray.init(address=workers.address, **quiet)


def _loopback() -> dict[str, str]:
    """Nobody else can reach it. Ray takes 127.0.0.1 for a mistake; outside of Linux it does so itself."""
    return {"_node_ip_address": "127.0.0.2"} if sys.platform.startswith("linux") else {}


def _require_listener(address: str) -> None:
    """Ray itself would try for a minute."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        raise UserError(f"{address!r} is no address of a cluster", "write auto, local or ray://host:10001")
    with socket.create_connection((host.strip("[]"), int(port)), timeout=_REACH):
        pass


@contextlib.contextmanager
def _explained(address: str) -> Iterator[None]:
    try:
        yield
    except (OSError, RuntimeError, ValueError) as error:  # ConnectionError, TimeoutError are OSErrors
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        said = lines[0] if lines else type(error).__name__
        raise UserError(
            f"there is no Ray cluster at {address} ({said[:160]})",
            "start one with `ray start --head`, give the address of one that runs, or take --address local",
        ) from error


def _require_room(ray: Any, workers: Workers) -> None:
    """A worker that no machine can hold would wait for ever."""
    nodes = [node["Resources"] for node in ray.nodes() if node.get("Alive")]
    for name, wanted, option in (("CPU", workers.cpus, "cpus"), ("GPU", workers.gpus, "gpus")):
        most = max((node.get(name, 0.0) for node in nodes), default=0.0)
        if wanted > most:
            raise UserError(
                f"a worker asks for {wanted:g} {name}, and no machine of the cluster has more than {most:g}",
                f"ask for less with --{option}-per-worker, or start a machine that has them",
            )
