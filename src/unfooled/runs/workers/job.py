"""What a worker does, whatever machine it is on: open its job once, work on what it is handed, send results.

Items and results carry a `key`, by which the pool knows what is done.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from unfooled.core.recipe import Recipe
from unfooled.core.result import Example, Result
from unfooled.core.session import Life, Session, Settings, require_resources
from unfooled.errors import UserError, VictimError
from unfooled.runs.workers.portable import SentVictim
from unfooled.trust import Trust, granted

LOOK = 1.0  # seconds between two reports of how far a worker is


class Runner(Protocol):
    """A job that is open."""

    @property
    def busy(self) -> bool:
        """Whether there is something to go on with, or to send."""
        ...

    def run(self, items: Iterable[Any], /) -> Iterator[Any]:
        """One result per item; None among the items means that one will come later."""
        ...

    def life(self) -> Life: ...
    def counters(self) -> dict[str, Any]: ...


class Job(Protocol):
    """What all workers of a pool do. Travels to each of them."""

    @property
    def window(self) -> int:
        """Items that a worker asks for at once."""
        ...

    def open(self) -> Runner: ...

    def killed(self, item: Any, cause: str, /) -> Any:
        """The result of an item that kills whoever works on it."""
        ...


class ParentGoneError(Exception):
    """Nobody is there any more to send results to."""


class Line(Protocol):
    """A worker's connection to the pool."""

    def send(self, kind: str, content: Any, /) -> None: ...
    def waits(self) -> bool:
        """Whether something has come."""
        ...

    def receive(self) -> list[Any]:
        """Items; none at all means that no more will come."""
        ...


def work(unpack: Callable[[], Job], line: Line) -> None:
    """A worker's life: open the job, work on what comes, leave when nothing more comes."""
    ended = threading.Event()

    def report(runner: Runner) -> None:
        """From a thread of its own, because one batch of a large model can take minutes."""
        with suppress(ParentGoneError):
            while not ended.wait(LOOK):
                line.send("life", runner.life())

    def incoming(window: int, runner: Runner) -> Iterator[Any]:
        while True:
            line.send("want", window)
            while runner.busy and not line.waits():
                yield None  # nothing yet; there is work to go on with
            given = line.receive()
            if not given:
                return
            yield from given

    try:
        job = unpack()
        runner = job.open()
        threading.Thread(target=report, args=(runner,), daemon=True).start()
        for result in runner.run(incoming(job.window, runner)):
            line.send("result", result)
        line.send("life", runner.life())
        line.send("counters", runner.counters())
    except ParentGoneError:
        return
    except Exception as error:
        line.send("failed", told(error))
    finally:
        ended.set()


def told(error: Exception) -> UserError:
    """What a worker's failure means to the user."""
    if isinstance(error, UserError):
        return error
    if isinstance(error, ModuleNotFoundError):
        return VictimError(f"a worker lacks the package {error.name}", "install it where the worker runs")
    return VictimError(f"a worker failed: {type(error).__name__}: {error}", "try --workers 1 to see more")


@dataclass(frozen=True)
class AttackJob:
    """A session: a victim and a recipe. `resources` are fingerprints that must be the same elsewhere."""

    victim: SentVictim
    recipe: Recipe
    settings: Settings
    known_good: Hashable
    resources: Mapping[str, str] = field(default_factory=dict)
    trust: Trust = field(default_factory=granted)

    @property
    def window(self) -> int:
        return self.settings.window

    def open(self) -> Runner:
        with self.trust.here():  # a worker trusts what its parent trusts
            victim = self.victim()
            self._require_same_resources()
            return _AttackRunner(Session(victim, self.recipe, self.settings, known_good=self.known_good))

    def _require_same_resources(self) -> None:
        here = require_resources(self.recipe) if self.resources else {}
        for name, fingerprint in self.resources.items():
            if here.get(name) != fingerprint:
                raise VictimError(
                    f"the resource {name} is not that of the machine that started the run",
                    "put the same files on every machine",
                )

    def killed(self, item: Example, cause: str, /) -> Result:
        text = item.text()
        return Result(
            key=item.key,
            outcome="error",
            label=item.label,
            fields=text.fields,
            field=text.field,
            perturbed=text.string,
            words=len(text.words),
            note=f"the worker process died on this example ({cause})",
            uncleaned=item.uncleaned,
        )


class _AttackRunner:
    def __init__(self, session: Session) -> None:
        self._session = session
        self.run = session.attack
        self.life = session.life
        self.counters = session.counters

    @property
    def busy(self) -> bool:
        return self._session.engine.busy
