"""The file in which Optuna keeps the trials of a sweep or a search, and how damage to it is noticed.

A trial that came to an end carries a checksum of all that is read from it later: what was drawn, from which
ranges, and what came of it. A file that SQLite or Optuna cannot read, a trial that was changed and one that
is missing between others end in a sentence. One that is gone at the end is drawn and tried again.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from unfooled.errors import UserError
from unfooled.extras import libraries_of
from unfooled.training.families import Choice, Range, Value
from unfooled.training.observer import TrainObserver

_CHECKSUM, _BROKEN = "checksum", "broken"
_REMEDY = "begin again with --restart, or name another folder"


def require_optuna(what: str) -> None:
    with libraries_of("train", "optuna", needed_for=what):
        import optuna  # noqa: F401


@contextmanager
def open_study(path: Path, name: str) -> Iterator[Any]:
    """The study in `path`, a new one where there is none; trials that were cut off are closed."""
    import optuna
    from sqlalchemy.exc import SQLAlchemyError

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        _check_pages(path)
        study = optuna.create_study(
            storage=f"sqlite:///{path}", study_name=name, direction="maximize", load_if_exists=True
        )
        for trial in study.get_trials(states=(optuna.trial.TrialState.RUNNING,)):
            study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
        _check_trials(study)
    except UserError as error:
        raise UserError(f"{path} is damaged: {error.cause}", _REMEDY) from None
    except Exception as error:  # Optuna fails on contents that are not its own in any way there is
        raise UserError(f"{path} is damaged, or no file of trials: {_brief(error)}", _REMEDY) from error
    try:
        yield study
    except (optuna.exceptions.OptunaError, SQLAlchemyError, sqlite3.Error) as error:
        raise UserError(
            f"{path} cannot be read or written any more: {_brief(error)}",
            "make room there and go on with --resume, or begin again with --restart",
        ) from error


def finished(study: Any) -> list[Any]:
    """Trials that came to an end, those whose settings did not fit included."""
    import optuna

    complete = optuna.trial.TrialState.COMPLETE
    return [trial for trial in study.trials if trial.state == complete or _BROKEN in trial.user_attrs]


def trials_left(study: Any, trials: int, minutes: float | None, observer: TrainObserver) -> Iterator[int]:
    """Numbers of the trials to make. No trial begins after `minutes`.

    A trial that was cut off is no trial: its number is drawn again, from what came before it.
    """
    began = time.monotonic()
    for number in range(len(finished(study)), trials):
        if minutes is not None and number and time.monotonic() - began > minutes * 60:
            observer.note(f"time is up after {number} of {trials} trials")
            return
        yield number


def completed(study: Any) -> list[Any]:
    """Trials that have a result."""
    return [trial for trial in finished(study) if _BROKEN not in trial.user_attrs]


def complete(study: Any, trial: Any, value: float, **facts: Any) -> None:
    """The trial has a result; `facts` are kept with it."""
    for name, fact in facts.items():
        trial.set_user_attr(name, fact)
    trial.set_user_attr(_CHECKSUM, _checksum(trial, value))
    study.tell(trial, value)


def give_up(study: Any, trial: Any, number: int, error: UserError, observer: TrainObserver) -> None:
    """A trial whose options do not fit together: it counts as tried, and is no result."""
    import optuna

    trial.set_user_attr(_BROKEN, error.cause)
    trial.set_user_attr(_CHECKSUM, _checksum(trial, None))
    study.tell(trial, state=optuna.trial.TrialState.FAIL)
    observer.note(f"trial {number + 1} failed: {error.cause}")
    observer.tried(number + 1, None)


def why_broken(study: Any) -> list[str]:
    return [trial.user_attrs[_BROKEN] for trial in study.trials if _BROKEN in trial.user_attrs]


def draw(trial: Any, name: str, drawn: Range | Choice) -> Value:
    if isinstance(drawn, Choice):
        value: Value = trial.suggest_categorical(name, list(drawn.values))
        return value
    if isinstance(drawn.low, int) and isinstance(drawn.high, int):
        return int(trial.suggest_int(name, drawn.low, drawn.high, log=drawn.log))
    # Four digits are plenty, and the record stays readable.
    return float(f"{trial.suggest_float(name, drawn.low, drawn.high, log=drawn.log):.4g}")


def _check_pages(path: Path) -> None:
    if not path.is_file():
        return
    with closing(sqlite3.connect(path)) as database:
        (told,) = database.execute("PRAGMA integrity_check(1)").fetchone()
    if told != "ok":
        raise UserError(str(told).replace("\n", " "))


def _check_trials(study: Any) -> None:
    if [trial.number for trial in study.trials] != list(range(len(study.trials))):
        raise UserError("a trial is missing")
    for trial in finished(study):
        if trial.user_attrs.get(_CHECKSUM) != _checksum(trial, trial.value):
            raise UserError(f"the checksum of trial {trial.number + 1} does not fit")


def _checksum(trial: Any, value: float | None) -> str:
    content = {
        "value": value,
        "drawn": trial.params,
        "ranges": {name: repr(drawn) for name, drawn in trial.distributions.items()},
        "facts": {name: fact for name, fact in trial.user_attrs.items() if name != _CHECKSUM},
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _brief(error: Exception) -> str:
    """The first line: SQLAlchemy's errors go on with the statement."""
    lines = str(error.__cause__ or error).splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
