"""What the user allows to run code while a model is loaded. Nothing, unless said on the command line or in
the call: no file can grant it.

Victims are told by `load_victim`. Encoders and language models are opened by name alone, deep inside an
attack, so what was granted holds for the whole process while a command or a call runs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Trust:
    """`pickle`: files that run code when opened; `remote_code`: Python that a model's folder brings;
    `types`: full names of classes that a skops file may build."""

    pickle: bool = False
    remote_code: bool = False
    types: tuple[str, ...] = ()

    def here(self) -> contextlib.AbstractContextManager[None]:
        """Grant the same in this process, until the block ends."""
        return trusting(pickle=self.pickle, remote_code=self.remote_code, types=self.types)


_granted = Trust()


def granted() -> Trust:
    return _granted


@contextlib.contextmanager
def trusting(*, pickle: bool = False, remote_code: bool = False, types: Sequence[str] = ()) -> Iterator[None]:
    """Grant this on top of what is granted already, until the block ends.

    Example:

        >>> with unfooled.trusting(types=["my_package.Tokenizer"]):
        ...     victim = unfooled.load_victim("fake")
        >>> victim.labels
        ('negative', 'positive')
    """
    global _granted
    before = _granted
    _granted = Trust(
        pickle=before.pickle or pickle,
        remote_code=before.remote_code or remote_code,
        types=tuple(dict.fromkeys((*before.types, *types))),
    )
    try:
        yield
    finally:
        _granted = before
