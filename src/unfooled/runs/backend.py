"""Which runtime computes a victim's passes: asked for by name, or found by a short race on this machine.

A copy in another runtime is another model until it is shown to decide as the original does. It is asked for
rows of the data and for edited copies of them, since these are what an attack asks about; one that agrees on
too few of these decisions is refused.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from unfooled.core.result import Example
from unfooled.core.victim import TextValue, Victim
from unfooled.errors import UnfooledError, UserError, VictimError
from unfooled.runs.file import RunFile

if TYPE_CHECKING:
    from unfooled.victims.torch.compiled import CompiledVictim
    from unfooled.victims.torch.huggingface import HuggingFaceVictim

AUTO, TORCH = "auto", "torch"
ENOUGH = 0.999  # of the decisions are the original's
ROWS, DECISIONS = 250, 1000
_ROUNDS, _RACED = 3, 192  # texts
_FASTER = 1.1  # torch wins what is closer than that


class SameDecisions(NamedTuple):
    """On how many of the texts asked a copy decides as the original."""

    same: int
    asked: int

    @property
    def enough(self) -> bool:
        return self.asked > 0 and self.same >= ENOUGH * self.asked

    def __str__(self) -> str:
        return f"{self.same:,} of {self.asked:,} decisions ({_percent(self.same / max(1, self.asked))})"


@dataclass(frozen=True)
class SettledBackend:
    """The victim that a run asks, and what its header keeps of how it came to that."""

    victim: Any
    identity: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)


def settle_backend(
    backend: str | None,
    victim: Victim,
    rows: Iterable[Example],
    *,
    seed: int,
    before: str | None,
    tell: Callable[[str], None],
) -> SettledBackend:
    """The victim in the runtime that was asked for. `rows` are of the data; `before` is the backend of a run
    that goes on: it does not race again."""
    inside = compiled_inside(victim)
    if inside is None and backend in (None, TORCH):
        return SettledBackend(victim)
    texts = _texts(rows, seed)
    if inside is not None:
        if backend not in (None, inside.backend):
            raise VictimError(
                f"{victim.name} was loaded with the backend {inside.backend}",
                f"leave --backend {backend} out, or load it without a backend",
            )
        return _settled(victim, inside, texts, {}, tell)
    original = _original(victim)
    if backend == AUTO:
        return _raced(original, texts, before, tell)
    from unfooled.victims.torch.compiled import compiled

    copy = compiled(original, str(backend))[str(backend)]
    return _settled(copy, copy, texts, {}, tell)


def backend_before(out: str | Path | None) -> str | None:
    """The backend of the run in that folder; None without a run."""
    if out is None:
        return None
    try:
        with closing(RunFile.read(out)) as file:
            return str(file.header["identity"].get("backend", TORCH))
    except (UnfooledError, KeyError, TypeError, AttributeError):
        return None  # what is wrong with it is said when it is opened to be written


def agreement(original: HuggingFaceVictim, copy: CompiledVictim, texts: Sequence[TextValue]) -> SameDecisions:
    """Asked in the batches that an attack would ask in."""
    one, other = original.predict(texts), copy.predict(texts)
    return SameDecisions(int((one.argmax(axis=1) == other.argmax(axis=1)).sum()), len(texts))


def edited_copies(example: Example, seed: int) -> Iterator[TextValue]:
    """The text itself, without one of its words, and with two letters of one exchanged, in a drawn order."""
    text = example.text()
    yield text.value
    drawn = random.Random(f"{seed} {example.key}")
    places = list(range(len(text.words)))
    drawn.shuffle(places)
    for at in places if len(places) > 1 else ():
        yield text.delete(at).value
        word = text.words[at]
        if len(word) > 2:
            where = drawn.randrange(len(word) - 1)
            yield text.replace(at, word[:where] + word[where + 1] + word[where] + word[where + 2 :]).value


def _texts(rows: Iterable[Example], seed: int) -> list[TextValue]:
    """One of each row in turn, until there are enough."""
    copies = [edited_copies(example, seed) for example in rows if not example.problem]
    found: dict[TextValue, None] = {}
    while copies and len(found) < DECISIONS:
        left = []
        for one in copies:
            if (text := next(one, None)) is not None:
                found[text] = None
                left.append(one)
        copies = left
    return list(islice(found, DECISIONS))


def _settled(
    victim: Any,
    copy: CompiledVictim,
    texts: Sequence[TextValue],
    facts: dict[str, Any],
    tell: Callable[[str], None],
) -> SettledBackend:
    found = agreement(copy.original, copy, texts)
    if not found.enough:
        raise VictimError(
            f"the backend {copy.backend} is not this model: it agrees with {copy.name} on {found}, "
            f"and {_percent(ENOUGH)} is asked for",
            f"leave --backend out, or let --backend {AUTO} choose among those that agree",
        )
    tell(f"backend: {copy.backend}, agrees with torch on {found}")
    facts = facts | {"name": copy.backend, "same": found.same, "asked": found.asked}
    return SettledBackend(victim, {"backend": copy.backend}, {"backend": facts})


def _raced(
    original: HuggingFaceVictim, texts: Sequence[TextValue], before: str | None, tell: Callable[[str], None]
) -> SettledBackend:
    from unfooled.victims.torch.compiled import available, compiled

    names = available() if before is None else [name for name in (before,) if name != TORCH]
    if not names:
        why = "as the run began" if before else "no other is installed: pip install 'unfooled[onnx]'"
        tell(f"backend: {TORCH}, {why}")
        return SettledBackend(original, {}, {"backend": {"name": TORCH}})
    copies = compiled(original, *names)
    if before is not None:
        return _settled(copies[before], copies[before], texts, {}, tell)
    seconds = race({TORCH: original, **copies}, texts[:_RACED])
    speeds = {name: round(len(texts[:_RACED]) / spent, 1) for name, spent in seconds.items()}
    told = ", ".join(f"{name} {speed:,.0f}" for name, speed in speeds.items())
    tell(f"backend: texts a second: {told}")
    refused: dict[str, str] = {}
    for name in sorted(copies, key=seconds.__getitem__):
        if seconds[name] * _FASTER >= seconds[TORCH]:
            break
        found = agreement(original, copies[name], texts)
        if found.enough:
            facts = {"race": speeds, "refused": refused}
            return _settled(copies[name], copies[name], texts, facts, tell)
        refused[name] = str(found)
        tell(f"backend: not {name}, it agrees with torch on {found} only")
    tell(f"backend: {TORCH}")
    return SettledBackend(original, {}, {"backend": {"name": TORCH, "race": speeds, "refused": refused}})


def race(victims: dict[str, Any], texts: Sequence[TextValue]) -> dict[str, float]:
    """The best seconds of each on the same texts, in turns, after a round that does not count."""
    best = dict.fromkeys(victims, float("inf"))
    for number in range(_ROUNDS + 1):
        for name, victim in victims.items():
            began = time.perf_counter()
            victim.predict(texts)
            if number:
                best[name] = min(best[name], time.perf_counter() - began)
    return best


def compiled_inside(victim: Any) -> CompiledVictim | None:
    """The victim itself, or what a threshold, a filter or a defence wraps."""
    module: Any = sys.modules.get("unfooled.victims.torch.compiled")
    if module is None:  # then nothing can be one
        return None
    while victim is not None and not isinstance(victim, module.CompiledVictim):
        victim = getattr(victim, "inner", None)
    return victim


def _original(victim: Victim) -> HuggingFaceVictim:
    from unfooled.victims.torch.huggingface import HuggingFaceVictim

    if isinstance(victim, HuggingFaceVictim):
        return victim
    raise UserError(
        f"--backend is for Hugging Face classifiers, and {victim.name} is none by itself",
        "leave it out; below a threshold or a filter: --victim-option backend=onnx",
    )


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %".replace(".00 %", " %")
