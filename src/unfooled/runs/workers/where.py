"""How many workers there are, and where: processes of this machine, or actors of a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from unfooled.core.result import Example, Result
from unfooled.core.session import Life, SessionParts, require_resources
from unfooled.core.victim import Victim
from unfooled.errors import DataError, UserError
from unfooled.runs.workers.job import AttackJob, Job
from unfooled.runs.workers.pool import Pool, Transport
from unfooled.runs.workers.portable import SentVictim, portable

ENGINES = ("local", "ray")


@dataclass(frozen=True, kw_only=True)
class Workers:
    """`number` workers. With the engine "ray", `address` is that of a cluster: "auto" finds one that runs
    on this machine, "local" starts one for this call, `ray://host:port` is reached over the network; `cpus`
    and `gpus` are what each worker takes.

    Example:

        >>> two = unfooled.Workers(number=2)
        >>> run = unfooled.attack("fake", "reviews.csv", "deepwordbug", out="runs/two", workers=two)
        >>> len(list(run.results()))
        6
    """

    number: int = 1
    engine: str = "local"
    address: str = "local"
    cpus: float = 1.0
    gpus: float = 0.0

    def __post_init__(self) -> None:
        if self.number < 1:
            raise DataError(f"workers={self.number} makes no sense", "workers is at least 1")
        if self.engine not in ENGINES:
            raise UserError(f"there is no engine {self.engine!r}", f"engines are {' and '.join(ENGINES)}")
        if self.engine == "local" and (self.address, self.gpus) != ("local", 0.0):
            raise UserError(
                "an address and GPUs per worker are for a Ray cluster", "add --engine ray, or leave them out"
            )
        if self.cpus < 0 or self.gpus < 0:
            raise UserError("a worker cannot take less than nothing", "give 0 or more CPUs and GPUs")

    @classmethod
    def of(cls, given: int | Workers) -> Workers:
        """From a number: so many processes of this machine."""
        return given if isinstance(given, Workers) else cls(number=given)

    @property
    def in_this_process(self) -> bool:
        """Whether no other process is needed."""
        return self.engine == "local" and self.number == 1

    def connect(self) -> None:
        """Reach the cluster, so that what stands in the way is said before there is a run file."""
        if self.engine == "ray":
            from unfooled.runs.workers.cluster import connect

            connect(self)

    def told(self) -> dict[str, Any]:
        """What the header of a run says."""
        return {"workers": self.number} | ({} if self.engine == "local" else {"engine": self.engine})

    def transport(self, job: Job) -> Transport[Any]:
        """How workers of this kind are started and heard."""
        if self.engine == "ray":
            from unfooled.runs.workers.actors import Actors

            return Actors(job, self)
        from unfooled.runs.workers.processes import Processes

        return Processes(job)

    def run(
        self,
        job: Job,
        items: Iterable[Any],
        *,
        remaining: int,
        on_counters: Callable[[dict[str, Any]], None] = lambda counters: None,
        on_start: Callable[[Callable[[], Life]], None] = lambda life: None,
        check: Callable[[], None] | None = None,
    ) -> Iterator[Any]:
        """One result per item, in the order in which they come. `remaining` is how many there will be; a None
        among them means that the next may come later."""
        self.connect()
        pool = Pool(
            self.transport(job),
            job,
            iter(items),
            size=self.number,
            remaining=remaining,
            on_counters=on_counters,
            check=check,
        )
        on_start(pool.life)
        return pool.run()

    def attack(self, parts: SessionParts, examples: Iterable[Example | None], **how: Any) -> Iterator[Result]:
        """Like `Session.attack`, in these workers; `how` is what `run` takes."""
        victim, recipe, settings, known_good = parts
        resources = require_resources(recipe) if self.engine == "ray" else {}
        job = AttackJob(self.sent(victim), recipe, settings, known_good, resources)
        return self.run(job, examples, **how)

    def sent(self, victim: Victim) -> SentVictim:
        """The victim as it gets to the workers: by name, or by value."""
        if self.engine != "ray":
            return SentVictim(portable(victim))
        from unfooled.runs.workers.cluster import dumps

        return SentVictim(portable(victim, dumps), victim.fingerprint())  # each machine has files of its own
