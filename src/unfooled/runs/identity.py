"""What tells two runs apart, in words."""

from __future__ import annotations

import re
from typing import Any

from unfooled.runs.rows import dump

_CHANGED = {"victim": "the model changed", "data": "the data or the choice of rows changed"}
_FINGERPRINT = re.compile(r"\b[0-9a-f]{32,}\b")


def differences(old: Any, new: Any, name: str = "") -> list[str]:
    """One line per entry that differs, in words where the entry is a fingerprint."""
    if isinstance(old, dict) and isinstance(new, dict):
        found: list[str] = []
        for key in sorted({*old, *new}):
            inner = f"{name}.{key}" if name else str(key)
            found += differences(old.get(key, "(absent)"), new.get(key, "(absent)"), inner)
        return found
    if dump(old) == dump(new):
        return []
    change = f"{_brief(old)} → {_brief(new)}"
    if name in _CHANGED:
        return [f"{_CHANGED[name]} ({change})"]
    if name.startswith("resources."):
        return [f"the resource {name.removeprefix('resources.')} changed ({change})"]
    return [f"{name or 'identity'}: {change}"]


def _brief(value: Any) -> str:
    if value is None:
        return "none"
    text = value if isinstance(value, str) else dump(value)
    text = _FINGERPRINT.sub(lambda found: found[0][:8] + "…", text)
    return text if len(text) <= 80 else text[:77] + "…"
