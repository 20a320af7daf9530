"""A result as a row of the run file, and back."""

from __future__ import annotations

import json
from typing import Any

from unfooled.core.result import Result
from unfooled.text import Edit

COLUMNS = (
    "key, outcome, label, fields, field, perturbed, probs, perturbed_probs, edits, words, queries, asked, "
    "similarity, note, facts"
)


def dump(value: Any, *, sort: bool = False) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=sort)
    # Half a surrogate pair has no UTF-8 form; escaped it survives the round trip.
    return text if _encodes(text) else json.dumps(value, separators=(",", ":"), sort_keys=sort)


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _plain(text: str) -> str:
    return text if _encodes(text) else text.encode(errors="backslashreplace").decode()


def to_row(result: Result) -> tuple[Any, ...]:
    return (
        int(result.key),
        result.outcome,
        int(result.label),
        dump([list(pair) for pair in result.fields]),
        int(result.field),
        _plain(result.perturbed),
        dump([float(p) for p in result.probs]),
        dump([float(p) for p in result.perturbed_probs]),
        dump([list(edit) for edit in result.edits]),
        int(result.words),
        int(result.queries),
        int(result.asked),
        None if result.similarity is None else float(result.similarity),
        _plain(result.note),
        dump(dict(result.facts)),
    )


def to_result(row: tuple[Any, ...]) -> Result:
    (
        key,
        outcome,
        label,
        fields,
        field,
        perturbed,
        probs,
        perturbed_probs,
        edits,
        *numbers,
        similarity,
        note,
        facts,
    ) = row
    words, queries, asked = numbers
    return Result(
        key=key,
        outcome=outcome,
        label=label,
        fields=tuple((name, content) for name, content in json.loads(fields)),
        field=field,
        perturbed=perturbed,
        probs=tuple(json.loads(probs)),
        perturbed_probs=tuple(json.loads(perturbed_probs)),
        edits=tuple(Edit(*edit) for edit in json.loads(edits)),
        words=words,
        queries=queries,
        asked=asked,
        similarity=similarity,
        note=note,
        facts=tuple(json.loads(facts).items()),
    )
