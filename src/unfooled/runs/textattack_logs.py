"""What TextAttack wrote down of an attack, as a run file: its CSV logs and its text logs.

The texts of a log carry [[marks]] around changed words, or none, or the colours of a terminal; the marks are
taken away. A log tells less than a run: no probabilities but one, in a text log no queries. Nothing is made
up for it, the run says so in its notices, and no model is asked.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import unfooled
from unfooled.core.result import Outcome, Result
from unfooled.data.delimited import Delimited
from unfooled.data.readers import text_lines
from unfooled.errors import DataError
from unfooled.runs.attack import Run
from unfooled.runs.file import RunFile
from unfooled.text import Edit, EditKind, Text

_OUTCOMES: dict[str, Outcome] = {
    "successful": "success", "maximized": "success", "failed": "failure", "skipped": "skipped",
}  # fmt: skip
_NEEDED = ("original_text", "perturbed_text", "original_output", "perturbed_output", "result_type")
_SPLIT = "<SPLIT>"  # where the text of a CSV log had a line break
_MARK = re.compile(r"\[\[([^\[\]]*)\]\]")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_BLOCK = re.compile(r"^-{20,} Result (\d+) -{20,}\n", re.M)
_ANSWER = re.compile(r"(?P<name>.*?)(?: \((?P<sure>\d+)%\))?$", re.S)
_FIELD = re.compile(r"^([A-Z][\w ]{0,40}): ")
# The closing statistics: plain lines in a file, a table on a terminal.
_END = re.compile(
    r"\n(?:\+-[-+]*\n\| Attack Results[^\n]*\n\+-[-+]*\n)?(?:\| )?Number of successful attacks:.*", re.S
)
_CLOSING = re.compile(r"^(?:\| )?([A-Z][^:\n]*:) [ |]*([\d.]+)%?[ |]*$", re.M)
# How TextAttack counts words: some marks belong to one, but not at its ends. Its first versions split words
# at every mark, and a backtick was none.
_WORD = re.compile(r"[\w'\-*@`˗×]+")
_EARLY_WORD = re.compile(r"\w+")
_ENDS = "'-_*@"


@dataclass(frozen=True, slots=True)
class Logged:
    """One result of a log; what the log does not tell is None."""

    original: str
    perturbed: str
    kind: str  # successful, maximized, failed or skipped
    said: str  # the model's answer before the attack: a class's number or name
    said_after: str
    truth: str | None
    p_true: float | None  # probability of the true class
    p_true_after: float | None
    sure: float | None  # probability of the class that was decided for
    sure_after: float | None
    queries: int | None


@dataclass(frozen=True, slots=True)
class Imported:
    run: Run
    statistics: dict[str, float]  # TextAttack's closing statistics, counted anew from the log
    closing: dict[str, float]  # those that the log or its summary ends with; empty where there are none

    def differences(self) -> list[str]:
        return [
            f"{name} {value} there, {self.statistics[name]} counted here"
            for name, value in self.closing.items()
            if name in self.statistics and value != self.statistics[name]
        ]


def import_textattack(
    log: str | Path,
    *,
    out: str | Path,
    labels: Sequence[str] = (),
    summary: str | Path | None = None,
    restart: bool = False,
) -> Imported:
    """Make a run of a CSV or text log. `labels` names the classes in the order of their numbers.

    `summary` is the JSON summary of the same attack; its numbers are compared with those of the log.
    """
    path = Path(log).expanduser()
    if not path.is_file():
        raise DataError(f"{path}: there is no such file", "give a log that TextAttack wrote")
    entries, closing = _read(path)
    if not entries:
        raise DataError(f"{path}: holds no result", "give a log of --log-to-csv or --log-to-txt")
    if summary is not None:
        closing |= _read_summary(Path(summary).expanduser())
    names = _classes(path, entries, labels)
    results, several = _results(entries, names)
    notices = [f"imported from a log of TextAttack, {path.name}: no model was asked, nothing can be resumed"]
    if unknown := sum(entry.queries is None for entry in entries):
        of = "" if unknown == len(entries) else f" of {unknown} of {len(entries)} examples"
        notices.append(f"the log does not tell the queries{of}; they are in no number here")
    if len(names) > 2 and any(entry.truth is None for entry in entries):
        notices.append(
            "the log does not tell the true class of skipped examples: another one than the model's stands "
            "for it, so do not read rates by class"
        )
    if several:
        notices.append("some attacks changed several fields, so the fields of each example are one text here")
    if any("`" in entry.original for entry in entries):
        notices.append(
            "some texts hold backticks, which TextAttack counts as words and this package does not: "
            "shares of changed words are a little higher here"
        )
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    header = {
        "identity": {"imported": "textattack", "victim": digest, "data": digest, "labels": list(names)},
        "environment": {
            "unfooled": unfooled.__version__,
            "attack": "TextAttack (imported)",
            "victim": "the model of the log",
            "data": path.name,
            "notices": notices,
            "asked": len(results),
        },
    }
    with RunFile.open(Path(out), header, restart=restart) as file:
        for result in results:
            file.add(result)
    done = Imported(Run(Path(out)), closing_statistics(entries), closing)
    early = replace(done, statistics=closing_statistics(entries, early=True))
    return early if len(early.differences()) < len(done.differences()) else done


# -- reading -----------------------------------------------------------------------------------------------


def _read(path: Path) -> tuple[list[Logged], dict[str, float]]:
    name = path.name.lower().removesuffix(".gz")
    if name.endswith(".json"):
        raise DataError(
            f"{path}: a summary holds no texts",
            "import the log of --log-to-csv or --log-to-txt, and give the summary with --summary",
        )
    return (list(_read_csv(path)), {}) if name.endswith(".csv") else _read_text(path)


def _read_csv(path: Path) -> Iterator[Logged]:
    table = Delimited(path)
    missing = [name for name in _NEEDED if name not in table.columns()]
    if missing:
        raise DataError(
            f"{path}: has no column {missing[0]}", "give a log that TextAttack wrote with --log-to-csv"
        )
    for row in table.rows():
        if row.values is None:
            raise DataError(f"{path}: {table.place(row.number)}: {row.problem}")
        try:
            yield _from_row(row.values)
        except ValueError as error:
            raise DataError(
                f"{path}: {table.place(row.number)}: {error}", "give a log as TextAttack wrote it"
            ) from error


def _from_row(row: Any) -> Logged:
    kind = row["result_type"].strip().lower()
    if kind not in _OUTCOMES:
        raise ValueError(f"there is no result type {kind[:40]!r}")
    queries = row.get("num_queries", "")
    before, after = _share(row.get("original_score", "")), _share(row.get("perturbed_score", ""))
    return Logged(
        original=_plain(row["original_text"]).replace(_SPLIT, "\n"),
        perturbed=_plain(row["perturbed_text"]).replace(_SPLIT, "\n"),
        kind=kind,
        said=_class(row["original_output"]),
        said_after=_class(row["perturbed_output"]),
        truth=_class(row["ground_truth_output"]) if row.get("ground_truth_output") else None,
        p_true=None if before is None else 1 - before,  # the score of an untargeted attack
        p_true_after=None if after is None else 1 - after,
        sure=None,
        sure_after=None,
        queries=int(float(queries)) if queries else None,
    )


def _share(written: str) -> float | None:
    """A score, where it can be a probability."""
    value = float(written) if written else -1.0
    return value if 0 <= value <= 1 else None


def _class(written: str) -> str:
    """`1.0` and `1` are the same class; anything but a number is a name."""
    number = re.fullmatch(r"\s*(\d{1,6})(\.0*)?\s*", written)
    return number[1] if number else written.strip()


def _read_text(path: Path) -> tuple[list[Logged], dict[str, float]]:
    with text_lines(path, "utf-8-sig", None) as lines:
        content = _COLOUR.sub("", "".join(lines))
    parts = _BLOCK.split(content)
    if len(parts) < 3:
        raise DataError(
            f"{path}: this is no log of TextAttack",
            "give a file of --log-to-csv or --log-to-txt",
        )
    *blocks, last = parts[2::2]
    end = _END.search(last)
    closing = {name: float(value) for name, value in _CLOSING.findall(end[0])} if end else {}
    numbered = zip(parts[1::2], [*blocks, last[: end.start()] if end else last], strict=True)
    return [_from_block(path, number, block) for number, block in numbered], closing


def _from_block(path: Path, number: str, block: str) -> Logged:
    first, _, rest = block.strip("\n").partition("\n")
    # Older versions put no empty line between the answers and the texts.
    between = "\n\n" if rest.startswith("\n") else "\n"
    texts = [text for text in rest.strip("\n").split(between) if text]
    before, arrow, after = (part.strip() for part in first.partition("-->"))
    kind = {"[FAILED]": "failed", "[SKIPPED]": "skipped"}.get(_plain(after), "successful")
    halves = 2 if kind == "successful" else 1
    if not arrow or not texts or len(texts) % halves:
        raise DataError(f"{path}: result {number} cannot be read", "give a log as TextAttack wrote it")
    half = len(texts) // halves
    said, sure = _answer(before)
    said_after, sure_after = _answer(after) if kind == "successful" else (said, sure)
    return Logged(
        original=_plain(between.join(texts[:half])),
        perturbed=_plain(between.join(texts[-half:])),
        kind=kind,
        said=said,
        said_after=said_after,
        truth=None if kind == "skipped" else said,
        p_true=None,
        p_true_after=None,
        sure=sure,
        sure_after=sure_after,
        queries=None,
    )


def _answer(written: str) -> tuple[str, float | None]:
    """`[[Positive (91%)]]` → the class and how sure the model was."""
    found = _ANSWER.fullmatch(_plain(written))
    assert found is not None  # the pattern takes any text
    return _class(found["name"]), int(found["sure"]) / 100 if found["sure"] else None


def _plain(marked: str) -> str:
    """Without the marks around changed words and, twice, around the names of fields."""
    for _ in range(2):
        marked = _MARK.sub(r"\1", marked)
    return marked


def _read_summary(path: Path) -> dict[str, float]:
    try:
        found = json.loads(path.read_bytes())["Attack Results"]
        return {str(name): float(value) for name, value in found.items()}
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DataError(
            f"{path}: this is no summary of TextAttack", "give a file of --log-summary-to-json"
        ) from error


# -- as results --------------------------------------------------------------------------------------------


def _classes(path: Path, entries: Sequence[Logged], labels: Sequence[str]) -> tuple[str, ...]:
    said = {name for entry in entries for name in (entry.said, entry.said_after, entry.truth) if name}
    if len(said) > 1000:
        raise DataError(
            f"{path}: {len(said):,} different answers are no classes", "only classifiers are known"
        )
    if all(name.isdigit() for name in said):
        number = max(map(int, said)) + 1
        if labels and len(labels) < number:
            raise DataError(
                f"{path}: has at least {number} classes, but {len(labels)} labels are given",
                "name all of them",
            )
        if number > 1000:
            raise DataError(f"{path}: class {number - 1} is no class", "give a classifier's log")
        return tuple(labels) or tuple(str(at) for at in range(max(2, number)))
    if not labels and len(said) < 2:
        raise DataError(f"{path}: only one class occurs", "name all classes with --labels")
    known = {label.casefold() for label in labels}
    strange = sorted(name for name in said if labels and name.casefold() not in known)
    if strange:
        raise DataError(f"{path}: the class {strange[0]!r} is none of the labels", "name all with --labels")
    return tuple(labels) or tuple(sorted(said))


def _results(entries: Sequence[Logged], names: Sequence[str]) -> tuple[list[Result], bool]:
    """And whether the fields of each example had to become one text."""
    pairs = [(_fields(entry.original), _fields(entry.perturbed)) for entry in entries]
    keys = {tuple(name for name, _ in side) for pair in pairs for side in pair}
    several = len(keys) == 1 and any(_changed(*pair) > 1 for pair in pairs)
    if len(keys) != 1 or several:
        pairs = [((("text", entry.original),), (("text", entry.perturbed),)) for entry in entries]
    return [
        _result(key, entry, *pair, names)
        for key, (entry, pair) in enumerate(zip(entries, pairs, strict=True))
    ], several


Fields = tuple[tuple[str, str], ...]


def _fields(text: str) -> Fields:
    """`Premise: …` and `Hypothesis: …` on lines of their own; a text without such names is one field."""
    found: list[tuple[str, str]] = []
    for line in text.split("\n"):
        named = _FIELD.match(line)
        if named:
            found.append((named[1].lower(), line[named.end() :]))
        elif found:
            found[-1] = (found[-1][0], f"{found[-1][1]}\n{line}")
        else:
            return (("text", text),)
    distinct = len({name for name, _ in found}) == len(found)
    return tuple(found) if len(found) > 1 and distinct else (("text", text),)


def _changed(before: Fields, after: Fields) -> int:
    return sum(old != new for old, new in zip(before, after, strict=True))


def _result(key: int, entry: Logged, before: Fields, after: Fields, names: Sequence[str]) -> Result:
    different = [at for at, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    field = different[0] if different else len(before) - 1
    said, said_after = _number(entry.said, names), _number(entry.said_after, names)
    label = _label(entry, said, names)
    text, edited = Text(before[field][1]), Text(after[field][1])
    outcome = _OUTCOMES[entry.kind]
    # A failed search may log where it gave up; a run keeps the original then.
    perturbed = edited if outcome == "success" else text
    result = Result(
        key=key,
        outcome=outcome,
        label=label,
        fields=before,
        field=field,
        perturbed=perturbed.string,
        probs=_probs(said, label, entry.p_true, entry.sure, len(names)),
        perturbed_probs=_probs(said_after, label, entry.p_true_after, entry.sure_after, len(names)),
        edits=tuple(_edits(text, perturbed)),
        words=len(text.words),
        queries=entry.queries or 0,
        asked=entry.queries or 0,
        queries_known=entry.queries is not None,
        note="maximized" if entry.kind == "maximized" else "",
    )
    return result if outcome == "success" else replace(result, perturbed_probs=result.probs)


def _number(name: str, names: Sequence[str]) -> int:
    if name.isdigit() and not any(name.casefold() == label.casefold() for label in names):
        return int(name)
    return [label.casefold() for label in names].index(name.casefold())


def _label(entry: Logged, said: int, names: Sequence[str]) -> int:
    """The true class. Of an example that a text log passes over it is known only that it is another one."""
    if entry.truth is not None:
        return _number(entry.truth, names)
    return said if entry.kind != "skipped" else (said + 1) % len(names)


def _probs(
    said: int, label: int, p_true: float | None, sure: float | None, classes: int
) -> tuple[float, ...]:
    """Probabilities that agree with the decision and, where that can be, with the one that was logged."""
    known, value = (said, sure) if p_true is None else (label, p_true)
    if value is not None:
        rest = 1 - value
        if known == said:
            probs = [rest / max(1, classes - 1)] * classes
        else:
            probs = [0.0] * classes
            probs[said] = rest
        probs[known] = value
        if max(range(classes), key=probs.__getitem__) == said:
            return tuple(probs)
    return tuple(float(at == said) for at in range(classes))


def _edits(text: Text, edited: Text) -> Iterator[Edit]:
    before, after = text.words, edited.words
    ends = [*edited.starts[: len(after)], len(edited.string)]
    step = 0
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for kind, a0, a1, b0, b1 in matcher.get_opcodes():
        if kind == "equal":
            continue
        for offset in range(max(a1 - a0, b1 - b0)):
            a, b = a0 + offset, b0 + offset
            done: EditKind = "insert" if a >= a1 else "delete" if b >= b1 else "replace"
            step += 1
            yield Edit(
                done,
                min(a, a1),
                "" if done == "insert" else before[a],
                "" if done == "delete" else after[b],
                ends[min(b, b1)],
                step,
            )


# -- TextAttack's own statistics ---------------------------------------------------------------------------


def closing_statistics(entries: Sequence[Logged], *, early: bool = False) -> dict[str, float]:
    """What TextAttack writes at the end, under its names and rounded as it does.

    `early` counts words as its first versions did.
    """
    kinds = [_OUTCOMES[entry.kind] for entry in entries]
    total, won, lost = len(kinds), kinds.count("success"), kinds.count("failure")
    word = _EARLY_WORD if early else _WORD
    counts = [len(_words(entry.original, word)) for entry in entries]
    shares = [
        100.0 * changed / count
        for entry, kind, count in zip(entries, kinds, counts, strict=True)
        if kind == "success" and count
        if (changed := _words_changed(entry, word))
    ]
    asked = [entry.queries for entry, kind in zip(entries, kinds, strict=True) if kind != "skipped"]
    found = {
        "Number of successful attacks:": won,
        "Number of failed attacks:": lost,
        "Number of skipped attacks:": kinds.count("skipped"),
        "Original accuracy:": round((won + lost) * 100.0 / total, 2),
        "Accuracy under attack:": round(lost * 100.0 / total, 2),
        "Attack success rate:": round(won * 100.0 / (won + lost), 2) if won + lost else 0.0,
        "Average num. words per input:": round(sum(counts) / total, 2),
    }
    if shares:
        found["Average perturbed word %:"] = round(sum(shares) / len(shares), 2)
    known = [number for number in asked if number is not None]
    if known:
        found["Avg num queries:"] = round(sum(known) / len(known), 2)
    return {name: float(value) for name, value in found.items()}


def _words(text: str, word: re.Pattern[str]) -> list[str]:
    """Without the names of fields, as TextAttack counts them."""
    joined = " ".join(content for _, content in _fields(text))
    found = (part.strip(_ENDS) for run in joined.split() for part in word.findall(run.strip(_ENDS)))
    return [part for part in found if part]


def _words_changed(entry: Logged, word: re.Pattern[str]) -> int:
    pairs = zip(_words(entry.original, word), _words(entry.perturbed, word), strict=False)
    return sum(before != after for before, after in pairs)
