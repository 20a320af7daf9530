"""Dotted paths into JSON documents: `data.texts`, `outputs.0.scores`; an empty path is all of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from unfooled.core.victim import option
from unfooled.errors import VictimError

MOST_VALUES = 500_000  # of an answer; a thousand named classes for 32 texts are a seventh of it


def parse(content: bytes, source: str) -> Any:
    """The document in `content`. `source` is named in the error where there is none."""
    if content.count(b",") + content.count(b"[") > MOST_VALUES:
        # Three bytes such as `[],` become dozens in memory.
        raise VictimError(
            f"{source} answered JSON of more than {MOST_VALUES:,} values",
            f"check the address; if its answers are long, ask less at once: {option('batch_size', 1)}",
        )
    try:
        return json.loads(content, object_pairs_hook=_without_doubles)
    except RecursionError:
        cause = f"{source} answered JSON that is nested too deeply"
    except _DoubleKeyError as error:
        cause = f"{source} answered JSON with the key {error.args[0][:40]!r} twice in one object"
    except ValueError:
        start = content[:800].decode(errors="replace")[:200]
        cause = f"{source} answered no JSON, but {start!r}"
    raise VictimError(cause, "check the address: it may be a page rather than an endpoint")


class _DoubleKeyError(Exception):
    pass


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Which of two values counts is anyone's guess, so neither does."""
    found = dict(pairs)
    if len(found) != len(pairs):
        (key, _), *_ = Counter(key for key, _ in pairs).most_common(1)
        raise _DoubleKeyError(key)
    return found


def put(document: Mapping[str, Any], path: str, value: Any) -> Any:
    """A copy of `document` with `value` at `path`."""
    if not path:
        return value
    key, _, rest = path.partition(".")
    inner = document.get(key)
    return {**document, key: put(inner if isinstance(inner, Mapping) else {}, rest, value)}


_WHERE = f"say where the answers stand, such as {option('output_field', 'result.scores')}"
_WHOLE = (
    f"the answer is a list itself, and an empty path means the whole answer: {option('output_field', '')}"
)


def dig(document: Any, path: str, source: str) -> Any:
    """What stands at `path`. `source` is named in the error where nothing does."""
    here = document
    for part in path.split(".") if path else ():
        if isinstance(here, Mapping) and part in here:
            here = here[part]
        elif isinstance(here, list) and part.isdecimal() and int(part) < len(here):
            here = here[int(part)]
        else:
            raise VictimError(
                f"{source} answered without {part!r} of the path {path!r}; there is {_inventory(here)}",
                _WHOLE if here is document and isinstance(here, list) else _WHERE,
            )
    return here


def as_object(name: str, value: Mapping[str, Any] | str | None) -> dict[str, Any]:
    """A dictionary, or the JSON text of one."""
    if not value:
        return {}
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise VictimError(f"{name} is not JSON: {error}", f"write {_example(name)}") from None
    if not isinstance(value, Mapping):
        raise VictimError(f"{name} is not a JSON object", f"write {_example(name)}")
    return dict(value)


def _example(name: str) -> str:
    return option(name, {"key": "value"})


def _inventory(here: Any) -> str:
    if isinstance(here, Mapping):
        return f"only {', '.join(repr(key[:40]) for key in list(here)[:10])}" if here else "an empty object"
    if isinstance(here, list):
        return f"a list of {len(here)}"
    return f"{str(here)[:80]!r}"
