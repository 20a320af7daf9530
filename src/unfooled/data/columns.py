"""Which columns hold the text and which the label, guessed where the user does not say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from unfooled.data.readers import Row
from unfooled.errors import DataError

PAIRS = (
    ("premise", "hypothesis"),
    ("sentence1", "sentence2"),
    ("sentence_1", "sentence_2"),
    ("sentence_a", "sentence_b"),
    ("question1", "question2"),
    ("text_a", "text_b"),
    ("text1", "text2"),
    ("query", "passage"),
    ("question", "passage"),
    ("question", "sentence"),
)
TEXTS = (
    "text", "sentence", "review", "review_text", "reviewtext", "review_body", "content", "comment",
    "comment_text", "message", "tweet", "tweet_text", "full_text", "body", "document", "article",
    "description", "phrase", "utterance", "post", "sms", "email", "question", "query", "title", "headline",
    "input", "inputs", "prompt", "string", "x",
)  # fmt: skip
LABELS = (
    "label", "gold_label", "labels", "class", "category", "sentiment", "target", "polarity", "class_label",
    "label_name", "label_text", "label_id", "class_id", "class_index", "airline_sentiment", "topic", "intent",
    "emotion", "stars", "rating", "score", "is_duplicate", "spam", "toxic", "toxicity", "output",
    "answer", "y",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Columns:
    texts: tuple[str, ...]
    label: str


def choose_columns(
    columns: Sequence[str],
    first_rows: Iterable[Row],
    *,
    where: str,
    text: str | Sequence[str] | None = None,
    label: str | None = None,
) -> Columns:
    """What the user named, completed by guesses; `first_rows` decides between two unknown columns.

    They are looked at one by one, and only there: a row may be large.
    """
    wanted = [text] if isinstance(text, str) else list(text or ())
    texts = tuple(_given(columns, name, where, "--text-column") for name in wanted)
    if len(set(texts)) < len(texts):
        raise DataError(f"{where}: a text column is named twice", "name each column once in --text-column")
    found = _given(columns, label, where, "--label-column") if label is not None else None
    if found is not None and found in texts:
        raise DataError(
            f"{where}: column {found!r} cannot be both text and label",
            f"the columns are {_shown(columns)}; choose with --text-column and --label-column",
        )
    found = found or _first(columns, LABELS, texts)
    texts = texts or _guess_texts(columns, found)
    if len(columns) == 2 and len(texts) < 2:
        first, second = columns
        if found is None:
            taken = texts[0] if texts else _text_of_two(columns, first_rows)
            found = second if taken == first else first
        texts = texts or (second if found == first else first,)
    if not texts or found is None:
        raise _missing(where, columns, text=not texts, label=found is None)
    for name in (*texts, found):
        if any("\ud800" <= char <= "\udfff" for char in name):
            raise DataError(
                f"{where}: the name of column {name!r} holds half of a surrogate pair", "rename it"
            )
    return Columns(texts, found)


def _given(columns: Sequence[str], name: str, where: str, option: str) -> str:
    if name in columns:
        return name
    alike = [column for column in columns if column.casefold() == name.strip().casefold()]
    if len(alike) == 1:
        return alike[0]
    raise DataError(
        f"{where}: there is no column {name!r}; the columns are {_shown(columns)}",
        f"name one of them with {option}",
    )


def _first(columns: Sequence[str], known: Sequence[str], taken: Sequence[str]) -> str | None:
    spelled = {column.strip().casefold(): column for column in reversed(columns) if column not in taken}
    return next((spelled[name] for name in known if name in spelled), None)


def _guess_texts(columns: Sequence[str], label: str | None) -> tuple[str, ...]:
    taken = () if label is None else (label,)
    for pair in PAIRS:
        both = tuple(_first(columns, (name,), taken) for name in pair)
        if both[0] is not None and both[1] is not None:
            return (both[0], both[1])
    text = _first(columns, TEXTS, taken)
    return () if text is None else (text,)


def _text_of_two(columns: Sequence[str], first_rows: Iterable[Row]) -> str:
    """The one of two columns with more distinct values; the longer one where that is a draw."""
    different: dict[str, set[int]] = {name: set() for name in columns}
    length = dict.fromkeys(columns, 0)
    for row in first_rows:
        for name in columns:
            if row.values and (value := row.values.get(name)) is not None:
                content = str(value)
                different[name].add(hash(content))
                length[name] += len(content)
    return max(columns, key=lambda name: (len(different[name]), length[name]))


def _missing(where: str, columns: Sequence[str], *, text: bool, label: bool) -> DataError:
    """One error for all that is missing, so that one repetition of the command is enough."""
    what, name = "which column holds the text and which the label", "both"
    options = "--text-column and --label-column"
    if not label:
        what, name, options = "which column holds the text", "it", "--text-column"
    elif not text:
        what, name, options = "which column holds the label", "it", "--label-column"
    return DataError(
        f"{where}: cannot tell {what}; the columns are {_shown(columns)}", f"name {name} with {options}"
    )


def _shown(columns: Sequence[str]) -> str:
    names = [repr(name if len(name) <= 60 else f"{name[:60]}…") for name in columns[:40]]
    return ", ".join(names) + (", …" if len(columns) > 40 else "")
