"""Do texts that fool one model fool another? They are scored again; nothing is searched.

Counted are the successes of a run whose original the other model gets right: a text that it got wrong before
any edit says nothing. What is found lies beside the run as JSON, one file per model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from unfooled.core.engine import Engine
from unfooled.core.program import Program, ask
from unfooled.core.result import Result, decided, decision_name
from unfooled.core.victim import TextValue, Victim
from unfooled.core.victim_oracle import oracle_for
from unfooled.data.labels import match_labels
from unfooled.errors import RunFileError
from unfooled.files import write_json
from unfooled.metrics.summary import Rate
from unfooled.progress import ProgressObserver
from unfooled.runs.attack import Run, run_folder
from unfooled.runs.file import RunFile
from unfooled.runs.workers.portable import SentVictim
from unfooled.runs.workers.portions import DoPortion, PortionJob
from unfooled.runs.workers.where import Workers
from unfooled.victims.loading import GivenVictim, as_victim

FORMAT = 1
FOLDER = "transfer"


@dataclass(frozen=True)
class Moved:
    """One text of the run at the other model; classes are the other model's, by name."""

    key: int
    label: str
    before: str  # decided for the original
    after: str  # decided for the text that fooled the first model
    p_before: float  # of the true class
    p_after: float
    first: str  # what the first model was made to say
    error: str = ""

    @property
    def right_before(self) -> bool:
        return not self.error and self.before == self.label

    @property
    def fooled(self) -> bool:
        return self.right_before and self.after != self.label


@dataclass(frozen=True)
class Transfer:
    """A run's successes at another model."""

    run: str
    digest: str  # of the run's content
    attack: str
    data: str
    source: str  # the model that was attacked
    target: str  # the other model
    fingerprint: str  # of the other model
    examples: tuple[Moved, ...]

    @property
    def found(self) -> int:
        return len(self.examples)

    @property
    def errors(self) -> int:
        return sum(bool(example.error) for example in self.examples)

    @property
    def rate(self) -> Rate:
        """Fooled as well, of those that were right before."""
        return Rate.of(
            sum(example.fooled for example in self.examples),
            sum(example.right_before for example in self.examples),
        )

    @property
    def same_class(self) -> Rate:
        """Fooled into the very class that the first model was fooled into, of the same."""
        same = sum(example.fooled and example.after == example.first for example in self.examples)
        return Rate.of(same, self.rate.n)

    def to_dict(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "run": self.run,
            "digest": self.digest,
            "attack": self.attack,
            "data": self.data,
            "source": self.source,
            "target": self.target,
            "fingerprint": self.fingerprint,
            "found": self.found,
            "errors": self.errors,
            "transferred": self.rate.to_dict(),
            "same_class": self.same_class.to_dict(),
            "examples": [vars(example) for example in self.examples],
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Transfer:
        names = ("run", "digest", "attack", "data", "source", "target", "fingerprint")
        examples = tuple(Moved(**example) for example in stored["examples"])
        return cls(**{name: stored[name] for name in names}, examples=examples)


def transfer(
    run: Run | str | Path,
    victim: GivenVictim,
    *,
    label_map: Mapping[str, str] | None = None,
    observer: ProgressObserver | None = None,
    again: bool = False,
    workers: int | Workers = 1,
) -> Transfer:
    """Score the texts found by a run on another model, and keep the answer beside the run.

    `label_map` pairs names of the run's classes with the model's, where they differ. An answer that is there
    for the same texts and the same model is read, not computed, unless `again`. Beside a run held in memory
    nothing is kept.

    Example:

        >>> found = unfooled.transfer("runs/x", "overconfident:fake")
        >>> found.errors
        0
    """
    with run_folder(run) as folder:
        found = _transfer(
            folder, as_victim(victim), label_map, observer or ProgressObserver(), again, Workers.of(workers)
        )
    return replace(found, run=str(run.path)) if isinstance(run, Run) else found


def _transfer(
    run: Path,
    victim: Victim,
    label_map: Mapping[str, str] | None,
    observer: ProgressObserver,
    again: bool,
    workers: Workers,
) -> Transfer:
    with closing(RunFile.read(run)) as file:
        digest, labels, environment = file.content_digest(), file.labels, file.header["environment"]
        successes = list(file.results(outcome="success"))
        where = _file(file.path, victim)
    if not successes:
        raise RunFileError(
            f"{run}: no text of this run fooled the model, so there is nothing to score again",
            "attack more examples, or with another attack",
        )
    partner = match_labels(labels, victim.labels, label_map=label_map, ordered=True)
    numbers = [partner[label] for label in labels]
    if not again and (known := read_transfer(where)) and known.digest == digest:
        mapped = [victim.labels[number] for number in numbers]
        if known.fingerprint == victim.fingerprint() and {example.label for example in known.examples} <= {
            *mapped
        }:
            return known
    _make_room(where)  # before the work, so that nothing is computed in vain
    observer.started(len(successes), what=victim.name)
    found = Transfer(
        run=str(run),
        digest=digest,
        attack=str(environment["attack"]),
        data=str(environment["data"]),
        source=str(environment["victim"]),
        target=victim.name,
        fingerprint=victim.fingerprint(),
        examples=_moved(successes, victim, numbers, observer, workers),
    )
    _write(where, found)
    return found


def read_transfer(path: Path) -> Transfer | None:
    """What is stored in a file, or None where there is none that can be read."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        return Transfer.from_dict(stored) if stored["format"] == FORMAT else None
    except (OSError, KeyError, TypeError, ValueError):
        return None


def stored_transfers(run: str | Path) -> list[Transfer]:
    """Everything that was scored again for a run."""
    with closing(RunFile.read(run)) as file:
        folder = file.path.parent / FOLDER
    found = (read_transfer(path) for path in sorted(folder.glob("*.json")))
    return [transfer for transfer in found if transfer is not None]


def _moved(
    successes: list[Result],
    victim: Victim,
    numbers: list[int],
    observer: ProgressObserver,
    workers: Workers,
) -> tuple[Moved, ...]:
    if workers.in_this_process:
        moved = _score(successes, victim, numbers)
    else:
        opens = partial(_open, workers.sent(victim), numbers)
        job = PortionJob(opens, partial(_unscored, victim.labels, numbers))
        moved = workers.run(job, successes, remaining=len(successes))
    found = []
    for example in moved:
        observer.advanced()
        found.append(example)
    return tuple(sorted(found, key=lambda example: example.key))


def _open(sent: SentVictim, numbers: list[int]) -> DoPortion:
    return partial(_score, victim=sent(), numbers=numbers)


def _unscored(labels: Sequence[str], numbers: list[int], result: Result, error: str) -> Moved:
    first = _first(result, labels, numbers)
    return Moved(result.key, labels[numbers[result.label]], "", "", 0.0, 0.0, first, error)


def _first(result: Result, labels: Sequence[str], numbers: list[int]) -> str:
    """What the first model was made to say, in the other's words."""
    said = decided(result.perturbed_probs)
    return decision_name(labels, numbers[said] if said >= 0 else said)


def _score(successes: list[Result], victim: Victim, numbers: list[int]) -> Iterator[Moved]:
    """The engine batches, de-duplicates and isolates texts that the model cannot read."""
    engine: Engine[list[Any]] = Engine({"victim": oracle_for(victim)})
    results = {result.key: result for result in successes}
    jobs = ((result.key, _both(*_values(result))) for result in successes)
    for finished in engine.run(jobs):
        result = results[finished.key]  # type: ignore[index]
        label = numbers[result.label]
        if finished.value is None:
            yield _unscored(victim.labels, numbers, result, str(finished.error))
            continue
        before, after = (row.tolist() for row in finished.value)
        yield Moved(
            key=result.key,
            label=victim.labels[label],
            before=decision_name(victim.labels, decided(before)),
            after=decision_name(victim.labels, decided(after)),
            p_before=before[label],
            p_after=after[label],
            first=_first(result, victim.labels, numbers),
        )


def _both(before: TextValue, after: TextValue) -> Program[list[Any]]:
    return (yield from ask("victim", [before, after]))


def _values(result: Result) -> tuple[TextValue, TextValue]:
    """What a victim reads: before the attack and after it."""
    before = tuple(content for _, content in result.fields)
    after = tuple(result.perturbed if i == result.field else content for i, content in enumerate(before))
    return (before[0], after[0]) if len(before) == 1 else (before, after)


def _file(run: Path, victim: Victim) -> Path:
    name = re.sub(r"[^\w.-]+", "_", Path(victim.name).name).strip("_") or "model"
    mark = re.sub(r"\W+", "", victim.fingerprint())[:12]
    return run.parent / FOLDER / f"{name}-{mark}.json"


def _make_room(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from error


def _write(path: Path, found: Transfer) -> None:
    """Whole or not at all."""
    try:
        write_json(path, found.to_dict(), indent=1)
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> RunFileError:
    return RunFileError(
        f"{path}: cannot be written ({error.strerror or error})",
        "make room beside the run, or copy the run to a folder that you may write to",
    )
