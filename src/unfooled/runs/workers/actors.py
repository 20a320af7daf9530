"""Workers that are actors of a Ray cluster.

The pool asks each actor for what it has to say and gets an answer when there is something: results come in
portions, and a slow network costs time on the way, not a call per example.
"""

from __future__ import annotations

import os
import queue
import re
import socket
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from unfooled.errors import UserError, VictimError
from unfooled.runs.workers.cluster import dumps, library
from unfooled.runs.workers.job import Job, work
from unfooled.runs.workers.pool import GoneError

if TYPE_CHECKING:
    from unfooled.runs.workers.where import Workers

_GATHER = 0.01  # seconds in which further results join the first one of an answer


class Actor:
    """What runs on the other machine. Its work has a thread of its own, beside those that answer."""

    def __init__(self, packed: bytes, folder: str, path: list[str]) -> None:
        self._given: queue.SimpleQueue[list[Any]] = queue.SimpleQueue()
        self._said: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        threading.Thread(target=self._work, args=(packed, folder, path), daemon=True).start()

    def give(self, items: list[Any]) -> None:
        self._given.put(items)

    def take(self) -> list[tuple[str, Any]]:
        """All that there is to say, at least one thing."""
        found = [self._said.get()]
        time.sleep(_GATHER)
        while True:
            try:
                found.append(self._said.get_nowait())
            except queue.Empty:
                return found

    def _work(self, packed: bytes, folder: str, path: list[str]) -> None:
        # Where the command stands and looks for modules; what is not on this machine is not found here.
        with suppress(OSError):
            os.chdir(folder)
        sys.path.extend(place for place in path if place not in sys.path)

        def unpack() -> Job:
            from ray import cloudpickle

            job: Job = cloudpickle.loads(packed)
            return job

        try:
            work(unpack, self)
        except BaseException as error:  # nobody else would tell
            self.send("failed", VictimError(f"a worker failed: {type(error).__name__}: {error}"))
        self.send("end", None)

    # -- as `Line` -------------------------------------------------------------------------------------

    def send(self, kind: str, content: Any, /) -> None:
        self._said.put((kind, _on_this_machine(content) if kind == "failed" else content))

    def waits(self) -> bool:
        return not self._given.empty()

    def receive(self) -> list[Any]:
        return self._given.get()


def _on_this_machine(error: UserError) -> UserError:
    shared = "models, packages and resources must be the same on every machine of the cluster"
    remedy = f"{error.remedy}; {shared}" if error.remedy else shared
    return UserError(f"on the machine {socket.gethostname()}: {error.cause}", remedy)


class ActorChannel:
    def __init__(self, actor: Any) -> None:
        self.actor = actor
        self.answer = actor.take.remote()
        self._ended = False

    def send(self, items: list[Any], /) -> None:
        self.actor.give.remote(items)  # one that died shows it in `answer`

    def messages(self) -> list[tuple[str, Any]]:
        ray = library()
        if self._ended:
            self.end()
            raise GoneError
        try:
            found: list[tuple[str, Any]] = ray.get(self.answer)
        except ray.exceptions.RayError as error:
            self.end()
            raise _gone(error, ray.exceptions) from error
        self._ended = any(kind == "end" for kind, _ in found)
        if not self._ended:
            self.answer = self.actor.take.remote()
        return found

    def end(self) -> None:
        library().kill(self.actor)


class Actors:
    """Starts an actor per worker, on whichever machine has room."""

    def __init__(self, job: Job, workers: Workers) -> None:
        self._ray = library()
        groups = {"in": 1, "out": 1}  # calls within a group keep their order
        self._class = self._ray.remote(
            num_cpus=workers.cpus, num_gpus=workers.gpus, max_restarts=0, concurrency_groups=groups
        )(_grouped(self._ray))
        self._packed = self._ray.put(dumps(job))  # sent once to each machine

    def start(self) -> ActorChannel:
        return ActorChannel(
            self._class.remote(self._packed, os.getcwd(), [place for place in sys.path if place])
        )

    def ready(self, channels: Sequence[ActorChannel], timeout: float | None, /) -> list[ActorChannel]:
        owners = {channel.answer: channel for channel in channels}
        self._ray.wait(list(owners), timeout=timeout)
        found, _ = self._ray.wait(list(owners), num_returns=len(owners), timeout=0)
        return [owners[answer] for answer in found]

    def close(self, channels: Sequence[ActorChannel], /) -> None:
        for channel in channels:
            channel.end()


def _grouped(ray: Any) -> type[Actor]:
    """The actor with each of its two methods in a group, and so a thread, of its own."""

    class GroupedActor(Actor):
        @ray.method(concurrency_group="in")  # type: ignore[untyped-decorator]
        def give(self, items: list[Any]) -> None:
            super().give(items)

        @ray.method(concurrency_group="out")  # type: ignore[untyped-decorator]
        def take(self) -> list[tuple[str, Any]]:
            return super().take()

    return GroupedActor


def _gone(error: Exception, kinds: Any) -> GoneError | UserError:
    """What an error of Ray says of the worker that was asked."""
    said = str(error)
    if isinstance(error, kinds.LocalRayletDiedError):
        return UserError("the connection to the Ray cluster is lost", "repeat the command to go on")
    if lacks := re.search(r"No module named '([^']+)'", said):
        return VictimError(
            f"a machine of the cluster lacks the package {lacks[1]}",
            "install the same packages on every machine of the cluster",
        )
    if not isinstance(
        error, kinds.ActorDiedError
    ):  # an answer was lost on the way, or a machine is not heard
        return GoneError("lost", blameless=True)
    if "node has died" in said or "node was terminated" in said:
        return GoneError("its machine went", blameless=True)
    return GoneError("its process ended")
