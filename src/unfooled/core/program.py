"""Query programs and oracles: search code asks, and somebody else answers.

A program is a generator. It yields a list of `Ask`s and is sent one list of answers per ask, in order. It
never touches a model, a file, the clock or a global random generator, so hundreds of them can share a batch.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

R = TypeVar("R")


class Ask(NamedTuple):
    """Questions to one oracle, named `kind` or `kind:variant` such as `victim` or `encode:minilm`."""

    oracle: str
    items: Sequence[Hashable]


Program: TypeAlias = Generator[list[Ask], list[list[Any]], R]


def ask(oracle: str, items: Sequence[Hashable]) -> Program[list[Any]]:
    """One answer per item, in order. Asking nothing costs no round."""
    if not items:
        return []
    (answers,) = yield [Ask(oracle, items)]
    return answers


def gather(programs: Sequence[Program[R]]) -> Program[list[R]]:
    """Run sub-programs of one example side by side, so that their questions share a batch.

    When one of them raises (its budget is spent, say), questions that its siblings have already paid for are
    still asked and answered; then the exception goes on.
    """
    results: dict[int, R] = {}
    waiting: dict[int, tuple[Program[R], list[Ask]]] = {}
    raised: list[Exception] = []

    def advance(index: int, program: Program[R], answers: list[list[Any]] | None) -> None:
        try:
            asks = next(program) if answers is None else program.send(answers)
        except StopIteration as stop:
            results[index] = stop.value
        except Exception as error:
            raised.append(error)
        else:
            waiting[index] = (program, asks)

    try:
        for index, program in enumerate(programs):
            if raised:
                break
            advance(index, program, None)
        while waiting:
            last_round = bool(raised)
            round_ = list(waiting.items())
            waiting.clear()
            answers = yield [ask for _, (_, asks) in round_ for ask in asks]
            at = 0
            for index, (program, asks) in round_:
                advance(index, program, answers[at : at + len(asks)])
                at += len(asks)
            if last_round:
                break
        if raised:
            raise raised[0]
    finally:
        # Whatever ends this program (budget, a failed oracle, the user) ends its children too.
        for program in programs:
            program.close()
    return [results[index] for index in range(len(programs))]


class Oracle(Protocol):
    """Answers hashable items, one answer each, in order.

    The answer to an item depends on that item alone. `batch_size` is the most items one call may get.
    An exception means that some item of the call is bad; the engine finds out which.
    """

    @property
    def batch_size(self) -> int: ...

    def __call__(self, items: Sequence[Hashable], /) -> Sequence[Any]: ...


@runtime_checkable
class AsyncOracle(Protocol):
    """An oracle across a network: several calls may be under way at once."""

    @property
    def batch_size(self) -> int: ...

    @property
    def concurrency(self) -> int: ...

    async def answer(self, items: Sequence[Hashable], /) -> Sequence[Any]: ...
