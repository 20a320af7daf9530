"""A result as a row of the run file, and back.

`probs` and `perturbed_probs` hold what the victim said: a list of class probabilities, or the text it wrote.
`facts` also holds `tried`, the number of edited texts that were asked about, and `queries_untold` where
nobody told how many there were.
"""

from __future__ import annotations

import json
from typing import Any

from unfooled.core.result import OUTCOMES, Result
from unfooled.runs.sealed import DamageError
from unfooled.text import Edit

TRIED = "tried"
UNTOLD = "queries_untold"


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
        dump(dict(result.facts) | _counts(result)),
    )


def _counts(result: Result) -> dict[str, int]:
    """What a result tells of its queries beside their number."""
    tried = {} if result.tried is None else {TRIED: int(result.tried)}
    return tried | ({} if result.queries_known else {UNTOLD: 1})


def to_result(row: tuple[Any, ...]) -> Result:
    """The result of a row whose checksum fits; whoever wrote it, nothing but a result comes out."""
    try:
        return _to_result(row)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        said = str(error).partition("\n")[0][:120]
        raise DamageError(f"row {str(row[0])[:40]} of results holds no result ({said})") from error


def _to_result(row: tuple[Any, ...]) -> Result:
    key, outcome, label, fields, field, perturbed, probs, perturbed_probs, edits, *rest = row
    words, queries, asked, similarity, note, facts = rest
    stored = [[_text(part) for part in entry] for entry in json.loads(fields)]
    if any(len(entry) not in (2, 3) for entry in stored):
        raise ValueError("a field is not a name and a content")
    if outcome not in OUTCOMES:
        raise ValueError("there is no such outcome")
    if not 0 <= field < len(stored):
        raise ValueError("it edits a field that is not there")
    known = {name: _real(value) for name, value in json.loads(facts).items()}
    tried = known.pop(TRIED, None)
    untold = known.pop(UNTOLD, 0)
    output, before = _answer(probs)
    perturbed_output, after = _answer(perturbed_probs)
    return Result(
        key=_number(key),
        outcome=outcome,
        label=_number(label),
        fields=tuple((name, content) for name, content, *_ in stored),
        field=_number(field),
        perturbed=_text(perturbed),
        probs=before,
        perturbed_probs=after,
        edits=tuple(_edit(*edit) for edit in json.loads(edits)),
        words=_number(words),
        queries=_number(queries),
        asked=_number(asked),
        queries_known=not untold,
        tried=None if tried is None else int(tried),
        similarity=None if similarity is None else float(similarity),
        note=_text(note),
        facts=tuple(known.items()),
        uncleaned=tuple((name, original) for name, _, *rest in stored for original in rest),
        output=output,
        perturbed_output=perturbed_output,
    )


def _answer(stored: str) -> tuple[str, tuple[float, ...]]:
    """The text that a victim wrote, or its probabilities."""
    value = json.loads(stored)
    if isinstance(value, str):
        return value, ()
    if not isinstance(value, list):
        raise ValueError("the victim's answer is neither a text nor a list of numbers")
    return "", tuple(_real(number) for number in value)


def _edit(kind: Any, position: Any, before: Any, after: Any, at: Any, step: Any) -> Edit:
    return Edit(kind, _number(position), _text(before), _text(after), _number(at), _number(step))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{type(value).__name__} where a text is expected")
    return value


def _real(value: Any) -> float:
    if type(value) not in (int, float):
        raise ValueError(f"{type(value).__name__} where a number is expected")
    return value  # type: ignore[no-any-return]


def _number(value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"{type(value).__name__} where a whole number is expected")
    return value


def _fields(result: Result) -> list[list[str]]:
    """Name and content of each field and, where the data was cleaned, the content before."""
    if not result.uncleaned:
        return [list(pair) for pair in result.fields]
    return [
        [name, content, original]
        for (name, content), (_, original) in zip(result.fields, result.uncleaned, strict=True)
    ]
