"""A part of a run that another process or machine attacks, into a run file of its own.

Every part draws the same rows as the whole run would and looks at the same of them before the attack, so
that all parts have one identity. `merge.py` joins them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, TypeVar

from unfooled.errors import DataError
from unfooled.runs.task import Examples

E = TypeVar("E", bound=Examples)

_FORM = re.compile(r"(\d{1,6})/(\d{1,6})")


class Shard(NamedTuple):
    """Part number `part`, counted from 1, of `parts`."""

    part: int
    parts: int

    @classmethod
    def parse(cls, given: str) -> Shard:
        """From `3/16`."""
        found = _FORM.fullmatch(given.strip())
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise DataError(
                f"{given!r} is no shard", "write PART/PARTS with PART from 1 to PARTS, such as 3/16"
            )
        return cls(int(found[1]), int(found[2]))

    def places(self, rows: int) -> Iterator[int]:
        """One place in every `parts` rows, another in each such block: rows of a data set may alternate."""
        for block, start in enumerate(range(0, rows, self.parts)):
            place = start + (self.part - 1 + block) % self.parts
            if place < rows:
                yield place

    def of(self, data: E) -> E:
        """This part of the rows."""
        return data.only(data.nth_key(place) for place in self.places(len(data)))

    def told(self, rows: int) -> dict[str, int]:
        """What the header of its run file says of it; `rows` are those of all parts."""
        return {"part": self.part, "parts": self.parts, "rows": rows}
