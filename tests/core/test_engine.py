"""The rules of the query-program engine, each by its number in the design."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unfooled.attacks.parts.goals import Untargeted
from unfooled.attacks.parts.importance import Deletion
from unfooled.core.attempt import Attempt, Scored, attempt
from unfooled.core.engine import HOPELESS, Engine
from unfooled.core.program import Ask, Program, ask, gather
from unfooled.core.result import Result
from unfooled.errors import BudgetExhaustedError, OracleError, ResourceError, UnfooledError, VictimError
from unfooled.text import Text

WORDS = ["good", "fine", "dull", "bad", "film", "plot", "slow", "warm", "weak", "odd"]
WEIGHT = dict(zip(WORDS, [2.0, 1.0, -1.0, -2.0, 0.1, 0.2, -0.7, 0.6, -0.4, 0.0], strict=True))


class ToyVictim:
    """Two classes from summed word weights. Records the size of every call."""

    def __init__(self, batch_size: int = 7, poison: str = "") -> None:
        self.batch_size = batch_size
        self.poison = poison
        self.calls: list[list[Hashable]] = []

    def __call__(self, items: Sequence[Any]) -> list[np.ndarray]:
        assert len(items) <= self.batch_size
        self.calls.append(list(items))
        if self.poison and any(self.poison in item for item in items):
            raise RuntimeError("poison")
        rows = []
        for item in items:
            positive = 1 / (1 + np.exp(-sum(WEIGHT.get(word, 0.3) for word in str(item).split())))
            rows.append(np.round(np.array([1 - positive, positive]), 6))
        return rows


class SwapAnyWord:
    """A small search with everything in it: ranking, random choice, sub-programs, a second oracle."""

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        now = start
        order = yield from Deletion().rank(a, start, range(len(start.text.words)))
        for i in order:
            picks = [WORDS[int(a.rng.integers(len(WORDS)))] for _ in range(3)]
            lengths = yield from ask("length", picks)
            kept = [word for word, length in zip(picks, lengths, strict=True) if length < 5]
            groups = yield from gather([a.score([now.text.replace(i, word)]) for word in kept])
            for candidate in (scored for group in groups for scored in group):
                if candidate.score > now.score:
                    now = candidate
            if now.success:
                break
        return now


def lengths(items: Sequence[Any]) -> list[int]:
    return [len(item) for item in items]


class Lengths:
    batch_size = 5

    def __call__(self, items: Sequence[Any]) -> list[int]:
        return lengths(items)


def programs(
    texts: Sequence[str], budget: int | None = None, search: Any = None
) -> list[tuple[int, Program[Result]]]:
    return [
        (key, attempt(Text(text), 1, Untargeted(), search or SwapAnyWord(), key=key, seed=3, budget=budget))
        for key, text in enumerate(texts)
    ]


def run(
    texts: Sequence[str], *, window: int = 4, batch: int = 7, order: int = 0, **options: Any
) -> dict[Any, Any]:
    jobs = programs(texts, **options)
    random.Random(order).shuffle(jobs)
    engine: Engine[Result] = Engine({"length": Lengths(), "victim": ToyVictim(batch)}, window=window)
    return {finished.key: finished.value for finished in engine.run(jobs)}


SENTENCES = st.lists(
    st.lists(st.sampled_from([*WORDS, "unknown"]), min_size=1, max_size=6).map(" ".join),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(
    SENTENCES,
    st.integers(1, 20),
    st.integers(1, 40),
    st.integers(0, 5),
    st.one_of(st.none(), st.integers(1, 30)),
)
def test_rule_4_results_do_not_depend_on_window_batch_or_order(
    texts: list[str], window: int, batch: int, order: int, budget: int | None
) -> None:
    alone = {
        key: run([text] * (key + 1), window=1, batch=1, budget=budget)[key] for key, text in enumerate(texts)
    }
    assert run(texts, window=window, batch=batch, order=order, budget=budget) == alone


@settings(max_examples=60, deadline=None)
@given(SENTENCES, st.integers(1, 25))
def test_rule_1_the_budget_is_never_exceeded(texts: list[str], budget: int) -> None:
    victim = ToyVictim()
    seen: dict[str, set[Hashable]] = {}
    for key, program in programs(texts, budget=budget):
        engine: Engine[Result] = Engine({"length": Lengths(), "victim": victim})
        victim.calls.clear()
        (finished,) = engine.run([(key, program)])
        seen[texts[key]] = {item for call in victim.calls for item in call}
        assert finished.value is not None
        assert finished.value.queries == len(seen[texts[key]]) <= budget


def test_rule_1_budget_is_charged_when_asking_and_ends_the_search() -> None:
    class AskTwice:
        def run(self, a: Attempt, start: Scored) -> Program[Scored]:
            with pytest.raises(BudgetExhaustedError):
                yield from a.score([a.original.replace(0, word) for word in ("bad", "fine", "dull")])
            assert a.queries == 3
            raise BudgetExhaustedError("spent")

    result = run(["good film"], budget=3, search=AskTwice())[0]
    assert result.queries == 3
    assert result.outcome == "success"  # "bad film" was affordable, and the best so far survives
    assert result.perturbed == "bad film"


def test_rule_2_probes_are_paid_for_but_never_become_a_result() -> None:
    class ProbeOnly:
        def run(self, a: Attempt, start: Scored) -> Program[Scored]:
            (deleted,) = yield from a.score([a.original.delete(0)], probe=True)
            assert deleted.success
            raise BudgetExhaustedError("spent")

    result = run(["good dull"], search=ProbeOnly())[0]
    assert (result.queries, result.outcome, result.perturbed) == (2, "failure", "good dull")


def test_rule_3_a_shared_cache_saves_calls_never_the_count() -> None:
    victim = ToyVictim(batch_size=100)
    engine: Engine[Result] = Engine({"length": Lengths(), "victim": victim}, window=1)

    class TwoQueries:
        def run(self, a: Attempt, start: Scored) -> Program[Scored]:
            for _ in range(2):
                yield from a.score([a.original.replace(0, "fine")])
            return start

    results = [finished.value for finished in engine.run(programs(["good film"] * 3, search=TwoQueries()))]
    assert [(result.queries, result.asked) for result in results if result] == [(2, 3)] * 3
    assert sum(map(len, victim.calls)) == 2
    assert engine.traffic["victim"].computed == 2


def test_equal_questions_of_one_round_are_asked_once() -> None:
    victim = ToyVictim(batch_size=100)
    engine: Engine[Result] = Engine({"length": Lengths(), "victim": victim}, window=50)
    list(engine.run(programs(["good film", "fine film"] * 10)))
    asked = [item for call in victim.calls for item in call]
    assert len(asked) == len(set(asked))


def test_rule_5_scores_are_compared_after_rounding() -> None:
    rows = np.array([[0.4, 0.6], [0.4000000001, 0.5999999999]])
    scores, _ = Untargeted().judge(rows, 1)
    assert scores[0] == scores[1]


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 30), st.integers(1, 12), st.sets(st.integers(0, 19), max_size=4))
def test_rule_6_a_poisonous_item_harms_only_its_owner(batch: int, window: int, bad: set[int]) -> None:
    clean = [f"good film plot number{i}" for i in range(20)]
    texts = [text + (" poison" if i in bad else "") for i, text in enumerate(clean)]
    engine: Engine[Result] = Engine(
        {"length": Lengths(), "victim": ToyVictim(batch, "poison")}, window=window
    )
    results = {finished.key: finished.value for finished in engine.run(programs(texts))}
    expected = run(clean)
    for key, result in results.items():
        assert result is not None
        if key in bad:
            assert result.outcome == "error"
            assert "RuntimeError: poison" in result.note
        else:
            assert result == expected[key]


def test_rule_6_an_error_in_mid_search_is_an_outcome_of_its_own() -> None:
    class AskPoison:
        def run(self, a: Attempt, start: Scored) -> Program[Scored]:
            (won,) = yield from a.score([a.original.replace(0, "bad")])
            assert won.success
            yield from a.score([a.original.replace(0, "poison")])
            return won

    engine: Engine[Result] = Engine({"victim": ToyVictim(poison="poison")})
    (finished,) = engine.run(programs(["good film"], search=AskPoison()))
    assert finished.value is not None
    assert finished.value.outcome == "error"
    assert finished.value.perturbed == "good film"


def test_an_oracle_that_always_fails_stops_the_run_and_keeps_what_is_finished() -> None:
    class Dies(ToyVictim):
        down = False

        def __call__(self, items: Sequence[Any]) -> list[np.ndarray]:
            self.down |= any("plot" in str(item) for item in items)
            if self.down:
                raise ConnectionError("refused")
            return super().__call__(items)

    texts = ["good"] * 3 + [f"good plot {i}" for i in range(2 * HOPELESS)]
    engine: Engine[Result] = Engine({"length": Lengths(), "victim": Dies()}, window=3)
    done = set()

    def consume() -> None:
        for finished in engine.run(programs(texts)):
            done.add(finished.key)

    with pytest.raises(VictimError, match=r"in a row.*refused"):
        consume()
    assert {0, 1, 2} <= done


@pytest.mark.parametrize("window", [3, 500])
@pytest.mark.parametrize("oracle", [ToyVictim, lambda **options: AsyncToy(options["poison"])])
def test_many_bad_rows_in_a_row_are_not_taken_for_a_dead_victim(window: int, oracle: Any) -> None:
    # The short texts come first in every batch and all of them fail.
    texts = [f"poison {i}" for i in range(3 * HOPELESS)] + [f"good film plot number {i}" for i in range(9)]
    engine: Engine[Result] = Engine(
        {"length": Lengths(), "victim": oracle(poison="poison")},
        window=window,
        known_good={"victim": "good film"},
    )
    outcomes = [finished.value.outcome for finished in engine.run(programs(texts)) if finished.value]
    assert outcomes.count("error") == 3 * HOPELESS
    assert len(outcomes) == 3 * HOPELESS + 9


def test_a_victim_out_of_reach_stops_the_run_at_once() -> None:
    class Unreachable(VictimError):
        fatal = True

    class Gone(ToyVictim):
        def __call__(self, items: Sequence[Any]) -> list[np.ndarray]:
            self.calls.append(list(items))
            raise Unreachable("no connection", "start the server")

    victim = Gone()
    with pytest.raises(Unreachable):
        list(Engine[Result]({"length": Lengths(), "victim": victim}).run(programs(["good film"] * 9)))
    assert len(victim.calls) == 1


def test_questions_of_a_failed_example_are_dropped() -> None:
    victim = ToyVictim(batch_size=1, poison="aaa")

    def asks() -> Program[None]:
        yield from ask("victim", ["aaa", "bbbb", "ccccc"])

    engine: Engine[None] = Engine({"victim": victim})
    (finished,) = engine.run([("x", asks())])
    assert isinstance(finished.error, OracleError)
    assert victim.calls == [["aaa"]]


def test_the_cache_is_bounded_by_characters_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unfooled.core.scheduler.CACHED_CHARACTERS", 1000)
    engine: Engine[None] = Engine({"length": Lengths()}, window=1)

    def asking(word: str) -> Program[None]:
        yield from ask("length", [word])

    list(engine.run((i, asking(f"{i:0100}")) for i in range(50)))
    assert len(engine._scheduler._cache["length"]) == 10


def test_jobs_may_be_missing_for_a_while() -> None:
    pauses = 0

    def jobs() -> Any:
        nonlocal pauses
        for job in programs(["good film plot"] * 6):
            yield job
            yield None
            pauses += 1

    engine: Engine[Result] = Engine({"length": Lengths(), "victim": ToyVictim()}, window=100)
    assert len(list(engine.run(jobs()))) == 6
    assert pauses == 6


def test_a_missing_resource_stops_the_run_at_once() -> None:
    class Missing:
        batch_size = 10

        def __call__(self, items: Sequence[Any]) -> list[Any]:
            raise ResourceError("no vectors", "get them")

    engine: Engine[Result] = Engine({"length": Missing(), "victim": ToyVictim()})
    with pytest.raises(ResourceError, match="no vectors"):
        list(engine.run(programs(["good film"])))


def test_an_unknown_oracle_is_named() -> None:
    def lost() -> Program[int]:
        yield [Ask("nowhere", ["x"])]
        return 1

    engine: Engine[int] = Engine({"victim": ToyVictim()})
    with pytest.raises(UnfooledError, match=r"'nowhere'.*victim"):
        list(engine.run([("a", lost())]))


def test_a_wrong_number_of_answers_is_an_error_not_a_shift() -> None:
    class Short(ToyVictim):
        def __call__(self, items: Sequence[Any]) -> list[np.ndarray]:
            return super().__call__(items)[:-1]

    engine: Engine[Result] = Engine({"victim": Short()})
    (finished,) = engine.run(programs(["good film"]))
    assert finished.value is not None
    assert finished.value.outcome == "error"
    assert "0 answers to 1 questions" in finished.value.note


def test_batches_hold_texts_of_similar_length() -> None:
    victim = ToyVictim(batch_size=10)
    engine: Engine[Result] = Engine({"length": Lengths(), "victim": victim}, window=100)
    list(engine.run(programs([" ".join(WORDS[: 1 + i % 9]) + f" {i}" for i in range(60)])))
    sizes = [[len(str(item)) for item in call] for call in victim.calls[:6]]
    assert all(row == sorted(row) for row in sizes)
    assert [row[0] for row in sizes] == sorted(row[0] for row in sizes)


def test_cheap_oracles_are_drained_before_the_victim() -> None:
    order: list[str] = []

    def noting(name: str, inner: Callable[[Sequence[Any]], list[Any]]) -> Any:
        class Noting:
            batch_size = 1000

            def __call__(self, items: Sequence[Any]) -> list[Any]:
                order.append(name)
                return inner(items)

        return Noting()

    def asks(first: str, second: str) -> Program[None]:
        yield from ask(first, ["x"])
        yield from ask(second, ["y"])

    engine: Engine[None] = Engine({"cheap": noting("cheap", lengths), "victim": noting("victim", lengths)})
    list(engine.run([(1, asks("cheap", "victim")), (2, asks("victim", "cheap"))]))
    assert order == ["cheap", "victim", "cheap"]


def test_the_cache_is_bounded() -> None:
    oracle = Lengths()
    engine: Engine[None] = Engine({"length": oracle}, window=1, cache_size=10)

    def asking(word: str) -> Program[None]:
        yield from ask("length", [word])

    list(engine.run((i, asking(f"word{i}")) for i in range(100)))
    assert len(engine._scheduler._cache["length"]) == 10


def test_jobs_are_read_only_as_the_window_empties() -> None:
    read: list[int] = []

    def jobs() -> Any:
        for key, program in programs(["good film"] * 50):
            read.append(key)
            yield key, program

    engine: Engine[Result] = Engine({"length": Lengths(), "victim": ToyVictim()}, window=5)
    next(iter(engine.run(jobs())))
    assert len(read) <= 10


def test_gather_shares_rounds_and_keeps_order() -> None:
    rounds = 0

    def child(n: int) -> Program[int]:
        total = 0
        for _ in range(n):
            (length,) = yield from ask("length", ["x" * n])
            total += length
        return total

    def counted() -> Program[list[int]]:
        nonlocal rounds
        program = gather([child(n) for n in (3, 0, 1, 2)])
        asks = next(program)
        while True:
            rounds += 1
            answers = yield asks
            try:
                asks = program.send(answers)
            except StopIteration as stop:
                totals: list[int] = stop.value
                return totals

    engine: Engine[list[int]] = Engine({"length": Lengths()})
    (finished,) = engine.run([("a", counted())])
    assert finished.value == [9, 0, 1, 4]
    assert rounds == 3


class AsyncToy:
    """Answers after different delays, so that rounds overlap."""

    batch_size = 3
    concurrency = 4

    def __init__(self, poison: str = "") -> None:
        self.inner = ToyVictim(poison=poison)
        self.at_once = 0
        self.most_at_once = 0

    async def answer(self, items: Sequence[Any]) -> list[np.ndarray]:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(0.001 * (len(str(items[0])) % 3))
            return self.inner(items)
        finally:
            self.at_once -= 1


def test_rule_9_an_async_driver_runs_the_same_programs() -> None:
    texts = [" ".join(WORDS[i % 5 : i % 5 + 4]) for i in range(25)]
    victim = AsyncToy()
    engine: Engine[Result] = Engine({"length": Lengths(), "victim": victim}, window=10)
    results = {finished.key: finished.value for finished in engine.run(programs(texts))}
    assert results == run(texts)
    assert 1 < victim.most_at_once <= victim.concurrency


def test_rule_9_a_poisonous_item_harms_only_its_owner_there_too() -> None:
    texts = ["good film plot", "good poison plot", "fine film plot"]
    engine: Engine[Result] = Engine({"length": Lengths(), "victim": AsyncToy("poison")}, window=10)
    outcomes = {
        finished.key: finished.value.outcome for finished in engine.run(programs(texts)) if finished.value
    }
    assert outcomes[1] == "error"
    assert "error" not in (outcomes[0], outcomes[2])


def test_a_program_may_handle_a_failure_and_go_on() -> None:
    def careful() -> Program[str]:
        try:
            yield from ask("victim", ["poison", "good"])
        except OracleError:
            (row,) = yield from ask("victim", ["good"])
            return f"kept {len(row)}"
        return "nothing failed"

    engine: Engine[str] = Engine({"victim": ToyVictim(poison="poison")})
    (finished,) = engine.run([("a", careful())])
    assert finished.value == "kept 2"


def test_a_text_without_words_is_never_counted_as_robust() -> None:
    class Positive(ToyVictim):
        def __call__(self, items: Sequence[Any]) -> list[np.ndarray]:
            return [np.array([0.2, 0.8]) for _ in items]

    (finished,) = Engine[Result]({"victim": Positive()}).run(programs(["😀 😀"]))
    assert finished.value is not None
    assert (finished.value.outcome, finished.value.note) == ("error", "there are no words to edit")


# -- a device of its own ---------------------------------------------------------------------------


def run_beside(
    texts: Sequence[str], apart: set[str], *, window: int = 4, batch: int = 7, **options: Any
) -> dict[Any, Any]:
    oracles: dict[str, Any] = {"length": Lengths(), "victim": ToyVictim(batch)}
    engine: Engine[Result] = Engine(oracles, window=window, apart=apart)
    return {finished.key: finished.value for finished in engine.run(programs(texts, **options))}


@settings(max_examples=40, deadline=None)
@given(SENTENCES, st.integers(1, 20), st.integers(1, 40), st.one_of(st.none(), st.integers(1, 30)))
def test_a_device_beside_the_processor_changes_no_result(
    texts: list[str], window: int, batch: int, budget: int | None
) -> None:
    expected = run(texts, budget=budget)
    for apart in ({"victim"}, {"length"}, {"victim", "length"}):
        assert run_beside(texts, apart, window=window, batch=batch, budget=budget) == expected


class Slow:
    """Takes its time, and writes down when."""

    def __init__(self, seconds: float, batch_size: int) -> None:
        self.seconds = seconds
        self.batch_size = batch_size
        self.busy: list[tuple[float, float]] = []

    def __call__(self, items: Sequence[Any]) -> list[int]:
        began = time.perf_counter()
        time.sleep(self.seconds)
        self.busy.append((began, time.perf_counter()))
        return lengths(items)


def busy_beside(apart: set[str]) -> float:
    """The share of the tagger's time in which the victim worked as well."""
    tagger, victim = Slow(0.004, 4), Slow(0.02, 1000)

    def program(word: str) -> Program[None]:
        for number in range(4):
            yield from ask("tag", [f"{word} {number}"])
            yield from ask("victim", [f"{word} {number} good"])

    engine: Engine[None] = Engine({"tag": tagger, "victim": victim}, window=32, apart=apart)
    jobs: list[tuple[Hashable, Program[None]]] = [(number, program(f"word{number}")) for number in range(48)]
    assert len(list(engine.run(jobs))) == 48
    both = sum(
        max(0.0, min(end, other_end) - max(start, other_start))
        for start, end in tagger.busy
        for other_start, other_end in victim.busy
    )
    return both / sum(end - start for start, end in tagger.busy)


def test_the_processor_works_while_the_device_does() -> None:
    assert busy_beside(set()) == 0.0
    assert busy_beside({"victim"}) > 0.5


def test_a_bad_item_on_a_device_costs_only_its_owner() -> None:
    texts = ["good film", "bad plot", "poison pill", "warm film"]
    engine: Engine[Result] = Engine(
        {"length": Lengths(), "victim": ToyVictim(50, poison="poison")}, window=4, apart={"victim"}
    )
    found: dict[Any, Any] = {finished.key: finished.value for finished in engine.run(programs(texts))}
    assert [found[key].outcome == "error" for key in range(4)] == [False, False, True, False]


def test_a_device_that_is_down_stops_the_run() -> None:
    class Down:
        batch_size = 8

        def __call__(self, items: Sequence[Any]) -> list[Any]:
            raise RuntimeError("no device")

    engine: Engine[Result] = Engine(
        {"length": Lengths(), "victim": Down()}, window=HOPELESS * 2, apart={"victim"}
    )
    with pytest.raises(VictimError, match=f"failed on {HOPELESS} inputs in a row"):
        list(engine.run(programs(["good film"] * 3 + [f"good {number}" for number in range(60)])))
