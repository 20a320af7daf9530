"""A result as a row of the run file, and back.

`probs` and `perturbed_probs` hold what the victim said: a list of class probabilities, or the text it wrote.
`facts` also holds `tried`, the number of edited texts that were asked about.
"""

from __future__ import annotations

import json
from typing import Any

from unfooled.core.result import Result
from unfooled.text import Edit

COLUMNS = (
    "key, outcome, label, fields, field, perturbed, probs, perturbed_probs, edits, words, queries, asked, "
    "similarity, note, facts"
)

TRIED = "tried"


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


def encodable(text: str) -> str:
    """The text with halves of surrogate pairs written out."""
    return text if _encodes(text) else text.encode(errors="backslashreplace").decode()


def to_row(result: Result) -> tuple[Any, ...]:
    return (
        int(result.key),
        result.outcome,
        int(result.label),
        dump(_fields(result)),
        int(result.field),
        encodable(result.perturbed),
        dump(result.output or [float(p) for p in result.probs]),
        dump(result.perturbed_output or [float(p) for p in result.perturbed_probs]),
        dump([list(edit) for edit in result.edits]),
        int(result.words),
        int(result.queries),
        int(result.asked),
        None if result.similarity is None else float(result.similarity),
        encodable(result.note),
        dump(dict(result.facts) | ({} if result.tried is None else {TRIED: int(result.tried)})),
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
    known = json.loads(facts)
    stored, before, after = json.loads(fields), json.loads(probs), json.loads(perturbed_probs)
    return Result(
        key=key,
        outcome=outcome,
        label=label,
        fields=tuple((name, content) for name, content, *_ in stored),
        field=field,
        perturbed=perturbed,
        probs=() if isinstance(before, str) else tuple(before),
        perturbed_probs=() if isinstance(after, str) else tuple(after),
        edits=tuple(Edit(*edit) for edit in json.loads(edits)),
        words=words,
        queries=queries,
        asked=asked,
        tried=known.pop(TRIED, None),
        similarity=similarity,
        note=note,
        facts=tuple(known.items()),
        uncleaned=tuple((name, original) for name, _, *rest in stored for original in rest),
        output=before if isinstance(before, str) else "",
        perturbed_output=after if isinstance(after, str) else "",
    )


def _fields(result: Result) -> list[list[str]]:
    """Name and content of each field and, where the data was cleaned, the content before."""
    if not result.uncleaned:
        return [list(pair) for pair in result.fields]
    return [
        [name, content, original]
        for (name, content), (_, original) in zip(result.fields, result.uncleaned, strict=True)
    ]
