"""SWITCH over many texts at once: one engine asks the models for all of them in shared batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from unfooled.core.engine import Engine
from unfooled.core.program import AsyncOracle, Oracle, Program
from unfooled.core.session import open_named, require_oracles
from unfooled.core.victim import TextValue, Victim
from unfooled.defenses.row_log import RowLog
from unfooled.defenses.settings import defaults_of
from unfooled.defenses.switch import SwapOptions, Swaps, Switch, as_text, switched, with_string
from unfooled.errors import CapabilityError, UserError
from unfooled.text import Text
from unfooled.training.families import Choice, Range
from unfooled.training.observer import TrainObserver

# What the methods that train with SWITCH declare. The paper's filter at 0 takes no text away here (see
# `fuse.py`), so its time is saved.
SETTINGS = defaults_of(Switch) | {"words": 9, "similarity": "none"}
RANGES: dict[str, Range | Choice] = {
    "words": Range(1, 25),
    "candidates": Range(5, 20),
    "pos": Choice((True, False)),
    "similarity": Choice(("none", "rank", "filter")),
    "multiplier": Range(1, 20),
}
WINDOW = 1024  # texts under way at once; more of them mean fuller batches of equal length


class Switched(NamedTuple):
    """One text's outcome: `number` is its place among those asked about."""

    number: int
    plan: SwapOptions
    choices: list[Swaps]
    problem: str = ""

    def strings(self, text: Text) -> list[str]:
        """The editable field of each alternative."""
        return [switched(text, self.plan, choice) for choice in self.choices]


class Switcher:
    """Makes alternatives with the gradients of `model`, which stays as it is."""

    def __init__(
        self,
        switch: Switch,
        model: Victim,
        *,
        oracles: Mapping[str, Oracle | AsyncOracle] | None = None,
        window: int = WINDOW,
    ) -> None:
        if oracles is None:
            require_oracles(switch.asks, "SWITCH")
            if "gradients" not in model.capabilities:
                raise CapabilityError(
                    f"SWITCH needs gradients, which {model.name} does not give",
                    "use a torch model",
                )
            oracles = open_named(switch.asks, model)
        self.switch = switch
        self.model = model
        self.engine: Engine[tuple[SwapOptions, list[Swaps]]] = Engine(oracles, window=window)

    def __call__(
        self, values: Sequence[TextValue], *, seed: int | Sequence[int] = 0, field: int = -1
    ) -> list[list[TextValue]]:
        """For each text its alternatives, as a victim reads them. A text that fails raises."""
        texts = [as_text(value, field) for value in values]
        found: list[list[TextValue]] = [[] for _ in texts]
        for swapped in self.each(texts, seed=seed, raising=True):
            text = texts[swapped.number]
            found[swapped.number] = [with_string(text, string) for string in swapped.strings(text)]
        return found

    def each(
        self,
        texts: Sequence[Text],
        *,
        seed: int | Sequence[int] = 0,
        plans: Sequence[SwapOptions | None] | None = None,
        raising: bool = False,
    ) -> Iterator[Switched]:
        """One outcome per text as they finish. A text that fails raises, or has a `problem` and no choices.

        `seed` is one for all or one per text. A known plan saves the gradients and the tags.
        """
        seeds = [seed] * len(texts) if isinstance(seed, int) else seed
        known = plans or [None] * len(texts)
        jobs = ((n, self._alternatives(text, known[n], seeds[n])) for n, text in enumerate(texts))
        for finished in self.engine.run(jobs):
            number = finished.key
            assert isinstance(number, int)
            if finished.value is not None:
                yield Switched(number, *finished.value)
            elif raising or not isinstance(finished.error, Exception):
                raise finished.error or RuntimeError("a program ended without an answer")
            else:
                yield Switched(number, SwapOptions((), ()), [], str(finished.error))

    def _alternatives(
        self, text: Text, plan: SwapOptions | None, seed: int
    ) -> Program[tuple[SwapOptions, list[Swaps]]]:
        if plan is None:
            plan = yield from self.switch.plan(text)
        return plan, (yield from self.switch.draw(text, plan, seed))


def nothing_added(cause: str, errors: str) -> UserError:
    """A training that adds no text would be plain training under another name."""
    return UserError(
        f"{cause}{errors}: there is no text to train on besides the data",
        "try the attack or the settings with `unfooled attack` first; retune trains on the plain data",
    )


def alternatives_of_rows(
    switcher: Switcher,
    values: Sequence[TextValue],
    scratch: Path,
    observer: TrainObserver,
    *,
    field: int = -1,
    seed: int = 0,
    draw: int = 0,
) -> dict[int, list[TextValue]]:
    """SWITCH over training rows, written down as it goes. Later draws use the plans of the first one."""
    texts = [as_text(value, field) for value in values]
    plans: list[SwapOptions | None] = [None] * len(texts)
    if draw:
        with RowLog(scratch / "alternatives-0.jsonl") as first:
            for n, line in first.rows.items():
                plans[n] = SwapOptions(tuple(line["positions"]), tuple(map(tuple, line["options"])))
    with RowLog(scratch / f"alternatives-{draw}.jsonl") as ledger:
        left = [n for n in range(len(texts)) if n not in ledger.rows]
        drawn = switcher.each(
            [texts[n] for n in left], seed=seed + 1_000_003 * draw, plans=[plans[n] for n in left]
        )
        for swapped in drawn:
            positions, options = swapped.plan
            ledger.add(
                left[swapped.number],
                positions=positions,
                options=options,
                strings=swapped.strings(texts[left[swapped.number]]),
                problem=swapped.problem,
            )
            observer.working("SWITCH", len(ledger.rows), len(texts))
        problems = [line["problem"] for line in ledger.rows.values() if line["problem"]]
        if not any(line["strings"] for line in ledger.rows.values()):
            raise nothing_added(
                f"SWITCH found no alternative for any of {len(texts)} training texts",
                f"; {len(problems)} ended in an error: {problems[0]}" if problems else "",
            )
        if problems:
            observer.note(f"{len(problems)} texts got no alternatives because of an error: {problems[0]}")
        return {
            n: [with_string(texts[n], string) for string in ledger.rows[n]["strings"]]
            for n in sorted(ledger.rows)
        }
