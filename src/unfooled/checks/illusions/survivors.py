"""Which examples a model still gets right: under the attack, and under every check that followed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

# Still right: yes, no, or not known because something failed. What is not known is in no rate.
Flags: TypeAlias = dict[int, bool | None]

AGAIN = "again"  # name of the check that the others are compared with
STATE = "state"  # the check that asks in a fresh process, and the remark that it leaves with a run


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """One check of one model."""

    name: str  # short, for tables and files
    words: str  # what a verdict calls it
    tried: int = 0
    broken: int = 0  # of those tried that survived everything before
    errors: int = 0
    note: str = ""  # why it was not needed, or what else it showed
    findings: tuple[str, ...] = ()  # what a verdict must mention
    looked: int = 0  # texts that it looked at without an attack of its own
    cause: str = ""  # why what it broke only seemed to stand; empty where it cannot say
    exposure: str = ""  # shows by itself, without examples that fall, how far the gain is none

    @property
    def ran(self) -> bool:
        return self.tried > 0

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "findings": list(self.findings)}


@dataclass(slots=True)
class Survival:
    """Examples by key. An example counts as robust only if it survives all checks."""

    active: Flags
    broken: dict[str, set[int]] = field(default_factory=dict)
    unknown: set[int] = field(default_factory=set)

    def survivors(self) -> list[int]:
        gone = self.unknown.union(*self.broken.values())
        return [key for key, right in self.active.items() if right and key not in gone]

    def record(self, check: str, found: Mapping[int, bool | None]) -> int:
        """Note what a check found; returns how many survivors it broke."""
        survival = set(self.survivors())
        fallen = {key for key, right in found.items() if right is False and self.active.get(key)}
        self.broken.setdefault(check, set()).update(fallen)
        self.unknown |= {key for key, right in found.items() if right is None and key in survival}
        return len(fallen & survival)

    @property
    def worst(self) -> Flags:
        gone: set[int] = set().union(*self.broken.values())
        return {
            key: False if key in gone else None if right is None or key in self.unknown else right
            for key, right in self.active.items()
        }


def counted(flags: Mapping[int, bool | None]) -> tuple[int, int]:
    """How many are right, of how many that are known."""
    known = [right for right in flags.values() if right is not None]
    return sum(known), len(known)
