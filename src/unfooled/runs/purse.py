"""What several attacks may cost together: one counter on disk, which every process asks before the victim.

`Caps` watches one run. Where many runs share a cap, as those of a ladder do, each batch is paid for here
before it is sent: one that would cost more than is left is not sent, so the cap is never exceeded by what is
known beforehand. The counter survives whatever happens to the process; a batch that was paid for and never
answered stays paid, as an endpoint would see it.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from unfooled.errors import CapReachedError, RunFileError
from unfooled.runs.caps import CHARACTERS, Caps

FILE = "spent.sqlite"
_TABLE = "CREATE TABLE IF NOT EXISTS spent (one INTEGER PRIMARY KEY, texts INTEGER, tokens INTEGER)"
_WAIT = 60.0  # seconds for another process that pays


class Spent(NamedTuple):
    """Texts that the victim was asked about, and tokens of them."""

    texts: int = 0
    tokens: int = 0


@dataclass(frozen=True)
class Purse:
    """`folder` holds the counter; `began` is when this command did."""

    folder: Path
    caps: Caps
    began: float = field(default_factory=time.time)

    def pay(self, texts: int, tokens: int) -> None:
        """Count a batch before it is sent; refuse it where it would cost too much."""
        hours = (time.time() - self.began) / 3600
        if self.caps.max_hours is not None and hours >= self.caps.max_hours:
            raise CapReachedError(
                f"stopped after {self.caps.max_hours:g} hours (--max-hours); what is finished is saved",
                "repeat the command to go on",
            )
        with self._open() as file:
            file.execute("BEGIN IMMEDIATE")
            spent = _read(file)
            cost = self.cost(Spent(spent.texts + texts, spent.tokens + tokens))
            most = self.caps.max_cost
            if most is not None and cost > most:
                file.execute("ROLLBACK")
                raise CapReachedError(
                    f"stopped at {self.cost(spent):.4g} of {most:g} (--max-cost); the next {texts:,} texts "
                    "would cost more than is left; what is finished is saved",
                    "repeat the command with a higher --max-cost to go on",
                )
            _add(file, texts, tokens)
            file.execute("COMMIT")

    def settle(self, tokens: int) -> None:
        """Correct the tokens once it is known how many they were; less than none gives some back."""
        if tokens:
            with self._open() as file:
                _add(file, 0, tokens)

    def cost(self, spent: Spent) -> float:
        return spent.texts * self.caps.per_query + spent.tokens * self.caps.per_token

    def spent(self) -> Spent:
        with self._open() as file:
            return _read(file)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        path = self.folder / FILE
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(path, timeout=_WAIT, isolation_level=None)) as file:
                file.execute(_TABLE)
                file.execute("INSERT OR IGNORE INTO spent VALUES (1, 0, 0)")
                yield file
        except (OSError, sqlite3.Error) as error:
            raise RunFileError(
                f"{path}: what was spent cannot be counted ({error})",
                "mend or remove the file; without it, counting begins at nothing",
            ) from error


def _read(file: sqlite3.Connection) -> Spent:
    return Spent(*file.execute("SELECT texts, tokens FROM spent").fetchone())


def _add(file: sqlite3.Connection, texts: int, tokens: int) -> None:
    file.execute("UPDATE spent SET texts = texts + ?, tokens = max(0, tokens + ?)", (texts, tokens))


def tokens_in(characters: int) -> int:
    """An estimate, where nobody counts them."""
    return -(-characters // CHARACTERS)
