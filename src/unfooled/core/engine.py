"""The engine: keeps a window of programs alive and answers what they all ask in shared batches.

Rules (each has a test in `tests/test_engine.py`): a result is the same for every window, batch size and
order; equal questions are computed once; a failing call is halved until the bad item is alone and only its
owner gets the exception; an oracle that answers nothing any more stops the run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from unfooled.core.program import AsyncOracle, Oracle, Program
from unfooled.core.scheduler import Finished, Scheduler, Traffic
from unfooled.errors import OracleError, UnfooledError, UserError, VictimError

R = TypeVar("R")
Job: TypeAlias = tuple[Hashable, Program[R]] | None
_END: Any = object()

# So many bad items in a row, with no good one between them, mean that the oracle itself is down.
HOPELESS = 20


class _UnderWay(NamedTuple):
    """A call that the device works on."""

    oracle: str
    items: list[Hashable]
    began: float
    answers: Future[Any]


class Engine(Generic[R]):
    """Runs programs against oracles.

    `oracles` are drained in the order given: cheap ones first and the victim last, so that its batches hold
    the questions of every live program. `window` is how many programs are alive at once. `known_good` has
    an item per oracle that was answered before: a run of failures stops the run only if that fails as well.
    Those `apart` compute on a device of their own, one at a time, while the others work here.
    `check` is called after every answer; what it raises ends the run.
    """

    def __init__(
        self,
        oracles: Mapping[str, Oracle | AsyncOracle],
        *,
        window: int = 256,
        cache_size: int = 50_000,
        known_good: Mapping[str, Hashable] | None = None,
        apart: Collection[str] = (),
        check: Callable[[], None] | None = None,
    ) -> None:
        self.oracles = dict(oracles)
        self._apart = frozenset(apart)
        self._check = check
        self.window = window
        uncached = frozenset(
            name for name, oracle in oracles.items() if not getattr(oracle, "cacheable", True)
        )
        self._scheduler: Scheduler[R] = Scheduler(cache_size=cache_size, uncached=uncached)
        self._failures_in_a_row = 0
        self._known_good = dict(known_good or {})
        self._exhausted = False

    @property
    def live(self) -> int:
        """Programs under way."""
        return self._scheduler.live

    @property
    def busy(self) -> bool:
        """Whether programs are under way, or have ended and wait to be handed over."""
        return bool(self._scheduler.live or self._scheduler.finished)

    @property
    def traffic(self) -> dict[str, Traffic]:
        return self._scheduler.traffic

    def open(self, oracle: str) -> int:
        """Questions to one oracle that wait for an answer."""
        return self._scheduler.open(oracle)

    def oldest(self) -> tuple[Hashable, int, int] | None:
        """The program that has been under way for longest: its key, its questions, those with an answer."""
        return self._scheduler.oldest()

    def add(self, oracles: Mapping[str, Oracle | AsyncOracle]) -> None:
        """More oracles while it runs, from within its jobs; drained before those it has, so the victim stays
        last. Names that it knows keep their oracle."""
        new = {name: oracle for name, oracle in oracles.items() if name not in self.oracles}
        self.oracles = {**new, **self.oracles}
        self._scheduler.uncached |= {n for n, oracle in new.items() if not getattr(oracle, "cacheable", True)}

    def cancel(self, key: Hashable) -> bool:
        """End a program without a result, from within a job or an oracle; False if it is not under way."""
        return self._scheduler.cancel(key)

    def run(self, jobs: Iterable[Job[R]]) -> Iterator[Finished[R]]:
        """Yield each program's end as it comes. `jobs` is read only as fast as the window empties.

        A `None` among the jobs means that there is none at the moment; it is asked again after a round.
        """
        if any(isinstance(oracle, AsyncOracle) for oracle in self.oracles.values()):
            return self._run_async(jobs)
        return self._run_beside(jobs) if self._apart else self._run(jobs)

    # -- one call at a time ------------------------------------------------------------------------

    def _run(self, jobs: Iterable[Job[R]]) -> Iterator[Finished[R]]:
        scheduler, source = self._scheduler, iter(jobs)
        self._exhausted = False
        try:
            while self._fill(source):
                yield from self._finished()
                for name, oracle in self.oracles.items():
                    if scheduler.pending(name):
                        self._drain(name, oracle)  # type: ignore[arg-type]
                        break
                else:
                    self._check_names()
        except (Exception, KeyboardInterrupt):
            # What was finished before the failure is handed over first: nothing computed is lost.
            yield from self._finished()
            raise
        finally:
            scheduler.close()

    def _drain(self, name: str, oracle: Oracle) -> None:
        """Answer all that is pending for one oracle, texts of similar length together."""
        items = sorted(self._scheduler.take(name), key=_length)
        for start in range(0, len(items), oracle.batch_size):
            self._answer(name, oracle, items[start : start + oracle.batch_size])

    def _answer(self, name: str, oracle: Oracle, items: list[Hashable]) -> None:
        items = self._scheduler.wanted(name, items)
        if not items:
            return
        began = time.perf_counter()
        try:
            answers = _checked(name, items, oracle(items))
        except Exception as error:
            self._count(name, began, 0)
            for part in self._after_failure(name, items, error):
                self._answer(name, oracle, part)
            if self._failures_in_a_row >= HOPELESS:
                self._failures_in_a_row = 0
                if not any(_answers(oracle, probe) for probe in self._probes(name)):
                    raise _hopeless(name, error) from error
        else:
            self._answered(name, began, items, answers)

    # -- one call on a device, others here meanwhile ---------------------------------------------------

    def _run_beside(self, jobs: Iterable[Job[R]]) -> Iterator[Finished[R]]:
        """While the device computes a batch, programs step and the other oracles answer; what is asked of the
        device meanwhile is its next batch. Results are those of `_run`: no batch changes an answer."""
        scheduler, source = self._scheduler, iter(jobs)
        self._exhausted = False
        under_way: _UnderWay | None = None
        again: list[tuple[str, list[Hashable]]] = []
        device = ThreadPoolExecutor(max_workers=1, thread_name_prefix="device")
        try:
            while self._fill(source):
                yield from self._finished()
                if under_way is None:
                    under_way = self._begin(device, again)
                here = next((name for name in self._here() if scheduler.pending(name)), None)
                if here is not None and (under_way is None or not under_way.answers.done()):
                    items = scheduler.take(here, self.oracles[here].batch_size)
                    self._answer(here, self.oracles[here], sorted(items, key=_length))  # type: ignore[arg-type]
                elif under_way is not None:
                    again += self._end(under_way)
                    under_way = None
                else:
                    self._check_names()
        except (Exception, KeyboardInterrupt):
            yield from self._finished()
            raise
        finally:
            device.shutdown(wait=True, cancel_futures=True)
            scheduler.close()

    def _here(self) -> Iterator[str]:
        return (name for name in self.oracles if name not in self._apart)

    def _begin(self, device: ThreadPoolExecutor, again: list[tuple[str, list[Hashable]]]) -> _UnderWay | None:
        """Give the device its next batch: what failed, in halves, and then what is open, the victim last."""
        while again:
            name, items = again.pop(0)
            if items := self._scheduler.wanted(name, items):
                return self._sent(device, name, items)
        for name, oracle in self.oracles.items():
            if name in self._apart and (items := self._scheduler.take(name, oracle.batch_size)):
                return self._sent(device, name, sorted(items, key=_length))
        return None

    def _sent(self, device: ThreadPoolExecutor, name: str, items: list[Hashable]) -> _UnderWay:
        oracle: Any = self.oracles[name]
        return _UnderWay(name, items, time.perf_counter(), device.submit(oracle, items))

    def _end(self, call: _UnderWay) -> list[tuple[str, list[Hashable]]]:
        """Hand over the device's answers; what has to be asked again."""
        name, items, began, future = call
        try:
            answers = _checked(name, items, future.result())
        except Exception as error:
            self._count(name, began, 0)
            parts = self._after_failure(name, items, error)
            if self._failures_in_a_row >= HOPELESS:
                self._failures_in_a_row = 0
                if not any(_answers(self.oracles[name], probe) for probe in self._probes(name)):  # type: ignore[arg-type]
                    raise _hopeless(name, error) from error
            return [(name, part) for part in parts]
        self._answered(name, began, items, answers)
        return []

    # -- several calls under way -------------------------------------------------------------------

    def _run_async(self, jobs: Iterable[Job[R]]) -> Iterator[Finished[R]]:
        source = iter(jobs)
        self._exhausted = False
        tasks: dict[asyncio.Task[Any], tuple[str, list[Hashable], float]] = {}
        with asyncio.Runner() as runner:
            try:
                while self._fill(source):
                    yield from self._finished()
                    if self._scheduler.live:
                        runner.run(self._turn(tasks))
            except (Exception, KeyboardInterrupt):
                yield from self._finished()
                raise
            finally:
                for task in tasks:
                    task.cancel()
                self._scheduler.close()
                for oracle in self.oracles.values():
                    if hasattr(oracle, "aclose"):
                        runner.run(oracle.aclose())

    async def _turn(self, tasks: dict[asyncio.Task[Any], tuple[str, list[Hashable], float]]) -> None:
        """Send what may be sent, wait for the first answer, hand it over."""
        for name, oracle in self.oracles.items():
            under_way = sum(1 for sent in tasks.values() if sent[0] == name)
            most = oracle.concurrency if isinstance(oracle, AsyncOracle) else 1
            while under_way < most and (items := self._scheduler.take(name, oracle.batch_size)):
                tasks[asyncio.create_task(_call(oracle, items))] = (name, items, time.perf_counter())
                under_way += 1
        if not tasks:
            self._check_names()
            return
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            name, items, began = tasks.pop(task)
            try:
                answers = _checked(name, items, task.result())
            except Exception as error:
                self._count(name, began, 0)
                for part in self._after_failure(name, items, error):
                    if part := self._scheduler.wanted(name, part):
                        again = asyncio.create_task(_call(self.oracles[name], part))
                        tasks[again] = (name, part, time.perf_counter())
                if self._failures_in_a_row >= HOPELESS:
                    self._failures_in_a_row = 0
                    probes = [_answers_async(self.oracles[name], probe) for probe in self._probes(name)]
                    if not any(await asyncio.gather(*probes)):
                        raise _hopeless(name, error) from error
            else:
                self._answered(name, began, items, answers)

    # -- shared ------------------------------------------------------------------------------------

    def _fill(self, source: Iterator[Job[R]]) -> bool:
        """Top up the window. False when nothing is left to do or to hand out."""
        while not self._exhausted and self._scheduler.live < self.window:
            job = next(source, _END)
            if job is _END:
                self._exhausted = True
            elif job is None:
                break
            else:
                self._scheduler.start(*job)
                if len(self._scheduler.finished) >= self.window:
                    break
        return bool(self._scheduler.live or self._scheduler.finished or not self._exhausted)

    def _finished(self) -> Iterator[Finished[R]]:
        """Hand over what is finished, also what finishes meanwhile."""
        while self._scheduler.finished:
            yield self._scheduler.finished.popleft()

    def _answered(self, name: str, began: float, items: list[Hashable], answers: Sequence[Any]) -> None:
        self._count(name, began, len(items))
        self._failures_in_a_row = 0
        self._known_good[name] = items[0]
        self._scheduler.answer(name, items, answers)
        if self._check is not None:
            self._check()

    def _after_failure(self, name: str, items: list[Hashable], error: Exception) -> list[list[Hashable]]:
        """Halves to ask again, or nothing when the bad item is alone and its owner has been told."""
        if isinstance(error, UserError) and not isinstance(error, VictimError):
            raise error
        if getattr(error, "fatal", False):
            # Nothing is wrong with the items: the victim cannot be reached at all.
            raise error
        if len(items) > 1:
            middle = len(items) // 2
            return [items[:middle], items[middle:]]
        self._failures_in_a_row += 1
        failure = OracleError(f"{name}: {type(error).__name__}: {error}")
        failure.__cause__ = error
        self._scheduler.fail(name, items[0], failure)
        return []

    def _probes(self, name: str) -> list[Hashable]:
        """Items that tell a dead oracle from a run of bad items: one that was answered, or others to come."""
        if name in self._known_good:
            return [self._known_good[name]]
        others = sorted(self._scheduler.untried(name) or self._scheduler.taken(name), key=_length)
        return others[:: max(1, len(others) // 5)][-6:]

    def _count(self, name: str, began: float, computed: int) -> None:
        traffic = self._scheduler.traffic[name]
        traffic.calls += 1
        traffic.computed += computed
        traffic.seconds += time.perf_counter() - began

    def _check_names(self) -> None:
        for name in self._scheduler.traffic:
            if name not in self.oracles:
                raise UnfooledError(f"a program asked the oracle {name!r}; there are {sorted(self.oracles)}")


def _length(item: Hashable) -> int:
    return len(item) if isinstance(item, str) else 0


def _checked(name: str, items: Sequence[Hashable], answers: Sequence[Any]) -> Sequence[Any]:
    if len(answers) != len(items):
        raise OracleError(f"{name} gave {len(answers)} answers to {len(items)} questions")
    return answers


def _hopeless(name: str, error: Exception) -> VictimError:
    return VictimError(
        f"{name} failed on {HOPELESS} inputs in a row, and on every other that was tried: {error}",
        "finished examples are saved; mend the cause and repeat the command to go on",
    )


def _answers(oracle: Oracle, item: Hashable) -> bool:
    try:
        return len(oracle([item])) == 1
    except Exception:
        return False


async def _answers_async(oracle: Oracle | AsyncOracle, item: Hashable) -> bool:
    try:
        return len(await _call(oracle, [item])) == 1
    except Exception:
        return False


async def _call(oracle: Oracle | AsyncOracle, items: list[Hashable]) -> Sequence[Any]:
    if isinstance(oracle, AsyncOracle):
        return await oracle.answer(items)
    return await asyncio.to_thread(oracle, items)
