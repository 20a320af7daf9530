"""SWITCH over many texts at once: one engine asks the models for all of them in shared batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from unfooled.core.engine import Engine
from unfooled.core.oracle import AsyncOracle, Oracle
from unfooled.core.program import Program
from unfooled.core.session import open_named, require_oracles
from unfooled.core.victim import TextValue, Victim
from unfooled.defenses.switch import Choice, Plan, Switch, as_text, switched, with_string
from unfooled.errors import CapabilityError
from unfooled.text import Text

WINDOW = 1024  # texts under way at once; more of them mean fuller batches of equal length


class Switched(NamedTuple):
    """One text's outcome: `number` is its place among those asked about."""

    number: int
    plan: Plan
    choices: list[Choice]
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
        self.engine: Engine[tuple[Plan, list[Choice]]] = Engine(oracles, window=window)

    def __call__(
        self, values: Sequence[TextValue], *, seed: int | Sequence[int] = 0, field: int = -1
    ) -> list[list[TextValue]]:
        """For each text its alternatives, as a victim reads them. A text that fails raises."""
        texts = [as_text(value, field) for value in values]
        found: list[list[TextValue]] = [[] for _ in texts]
        for one in self.each(texts, seed=seed, raising=True):
            text = texts[one.number]
            found[one.number] = [with_string(text, string) for string in one.strings(text)]
        return found

    def each(
        self,
        texts: Sequence[Text],
        *,
        seed: int | Sequence[int] = 0,
        plans: Sequence[Plan | None] | None = None,
        raising: bool = False,
    ) -> Iterator[Switched]:
        """One outcome per text as they finish. A text that fails raises, or has a `problem` and no choices.

        `seed` is one for all or one per text. A known plan saves the gradients and the tags.
        """
        seeds = [seed] * len(texts) if isinstance(seed, int) else seed
        known = plans or [None] * len(texts)
        jobs = ((n, self._one(text, known[n], seeds[n])) for n, text in enumerate(texts))
        for finished in self.engine.run(jobs):
            number = finished.key
            assert isinstance(number, int)
            if finished.value is not None:
                yield Switched(number, *finished.value)
            elif raising or not isinstance(finished.error, Exception):
                raise finished.error or RuntimeError("a program ended without an answer")
            else:
                yield Switched(number, Plan((), ()), [], str(finished.error))

    def _one(self, text: Text, plan: Plan | None, seed: int) -> Program[tuple[Plan, list[Choice]]]:
        if plan is None:
            plan = yield from self.switch.plan(text)
        return plan, (yield from self.switch.draw(text, plan, seed))
