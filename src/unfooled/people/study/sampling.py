"""Which texts people judge: successes of several runs, originals and attention checks, seeded.

Where the runs attacked the same data, examples that all of them broke come first, so that attacks are
compared on the same texts. Versions of one text stand apart in every annotator's order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import combinations, count
from pathlib import Path
from typing import TypeVar

import numpy as np

from unfooled.core.result import Result
from unfooled.errors import DataError, RunFileError
from unfooled.people.study.content import ORIGINAL, Content, Fields, Item, ItemKind, Place, StudySource
from unfooled.people.study.protocols import Part, Protocol, Question, View
from unfooled.runs.file import FILE, RunFile
from unfooled.runs.rows import dump

K = TypeVar("K")

APART = 4  # versions of the same text keep at least so many places between them, where possible
CHECKS = 20  # one attention check per so many items, two at least


@dataclass(frozen=True, slots=True)
class Broken:
    """What is read of a run: its successes by key, and originals that may serve as a primer."""

    source: StudySource
    labels: tuple[str, ...]
    data: str
    successes: dict[int, Result]
    originals: dict[int, Fields]


def draw(
    runs: Sequence[Path],
    protocol: Protocol,
    *,
    n: int,
    annotators: int,
    originals: int | None = None,
    checks: int | None = None,
    primer: int | None = None,
    seed: int = 0,
) -> Content:
    """A study of `n` adversarial texts in all, evenly from the runs, with originals and checks added."""
    _check_numbers(n=(n, 1), annotators=(annotators, 1), originals=(originals, 0), checks=(checks, 0))
    _check_numbers(primer=(primer, 0), seed=(seed, 0))
    read = _read_all(runs)
    if n < len(read):
        raise DataError(f"{n} texts are too few for {len(read)} runs", f"give --n {len(read)} or more")
    rng = np.random.default_rng([seed, 1])
    chosen, notices = _choose(read, n, rng)
    items = list(_items(read, chosen, protocol, originals, rng))
    if protocol.has("pair") and not any(item.view == "pair" for item in items):
        notices.append("no example was broken by two runs, so there are no pairs to compare")
    wanted = checks if checks is not None else max(2, round(len(items) / CHECKS))
    items += _checks(read, protocol, wanted, len(items), rng)
    used = {item.example for item in items if item.kind != "check"}
    wanted = protocol.primer if primer is None else primer
    shown = _primer(read, used, wanted, rng)
    if len(shown) < wanted:
        notices.append(f"the runs hold {len(shown)} other originals to read first, {wanted} were wanted")
    orders = tuple(_order(items, protocol, np.random.default_rng([seed, 2, a])) for a in range(annotators))
    return Content(
        protocol=protocol,
        labels=read[0].labels,
        sources=tuple(run.source for run in read),
        items=tuple(items),
        primer=tuple(shown),
        orders=orders,
        seed=seed,
        notices=tuple(notices),
    )


def identity_of(file: RunFile) -> str:
    """The same for the same run wherever it lies."""
    return hashlib.sha256(dump(file.header.get("identity"), sort=True).encode()).hexdigest()


def _read_all(runs: Sequence[Path]) -> list[Broken]:
    if not runs:
        raise RunFileError("there is no run to take texts from", "name at least one run")
    read = [_read(path) for path in runs]
    if len({run.labels for run in read}) > 1:
        told = "; ".join(f"{run.source.name}: {', '.join(run.labels)}" for run in read)
        raise RunFileError(f"these runs have different classes: {told}", "make a study of each")
    names = [run.source.name for run in read]
    if len({run.source.identity for run in read}) < len(read):
        raise RunFileError(f"the same run is named twice: {', '.join(names)}", "name each run once")
    return [
        run if names.count(run.source.name) == 1 else _renamed(run, number)
        for number, run in enumerate(read, 1)
    ]


def _renamed(run: Broken, number: int) -> Broken:
    return replace(run, source=replace(run.source, name=f"{run.source.name} ({number})"))


def _read(path: Path) -> Broken:
    successes: dict[int, Result] = {}
    originals: dict[int, Fields] = {}
    with closing(RunFile.read(path)) as file:
        environment = file.header["environment"]
        source = StudySource(
            name=file.path.parent.name if file.path.name == FILE else file.path.stem,
            attack=str(environment["attack"]),
            victim=str(environment["victim"]),
            data=str(environment["data"]),
            path=str(file.path.resolve()),
            identity=identity_of(file),
        )
        labels, data = file.labels, str((file.header.get("identity") or {}).get("data", ""))
        for result in file.results():
            if result.outcome == "error":
                continue
            originals[result.key] = result.fields
            if result.outcome == "success" and result.perturbed != result.original:
                successes[result.key] = result
    if not successes:
        raise RunFileError(f"{path}: this run has no success to show to people", "name another run")
    return Broken(source, labels, data, successes, originals)


def _choose(read: Sequence[Broken], n: int, rng: np.random.Generator) -> tuple[list[list[Result]], list[str]]:
    """Successes of each run; those of examples that every run broke come first."""
    share, rest = divmod(n, len(read))
    common: set[int] = set(read[0].successes) if len({run.data for run in read}) == 1 else set()
    for run in read[1:]:
        common &= set(run.successes)
    first = _shuffled(sorted(common), rng)
    chosen, notices = [], []
    for number, run in enumerate(read):
        quota = share + (number < rest)
        own = _shuffled(sorted(set(run.successes) - common), rng)
        keys = [*first, *own][:quota]
        if len(keys) < quota:
            notices.append(f"{run.source.name} has {len(keys)} successes, {quota} were wanted")
        chosen.append([run.successes[key] for key in keys])
    if len(read) > 1 and len(first) < share:
        notices.append(f"{len(first)} examples were broken by every run; the others differ between the runs")
    return chosen, notices


def _items(
    read: Sequence[Broken],
    chosen: Sequence[Sequence[Result]],
    protocol: Protocol,
    originals: int | None,
    rng: np.random.Generator,
) -> Iterator[Item]:
    number = count()
    flat = [(source, result) for source, found in enumerate(chosen) for result in found]
    same_data = len({run.data for run in read}) == 1
    plain = {(0 if same_data else source, result.key): result for source, result in flat}
    wanted = round(protocol.originals * max(map(len, chosen))) if originals is None else originals
    controls = [plain[key] for key in _shuffled(sorted(plain), rng)[:wanted]]
    views: tuple[View, ...] = ("text", "beside")
    for view in views:
        if not protocol.has(view):
            continue
        for source, result in flat:
            yield _item(
                next(number), view, "adversarial", result, (_before(result), _after(result)), (source,)
            )
        for result in controls:
            yield _item(
                next(number), view, "original", result, (_before(result), _before(result)), (ORIGINAL,)
            )
    if protocol.has("pair"):
        for pair in _pairs(chosen, same_data):
            (a, left), (b, right) = pair
            yield Item(
                number=next(number),
                view="pair",
                kind="pair",
                texts=(_before(left) if a == ORIGINAL else _after(left), _after(right)),
                sources=(a, b),
                example=left.key,
                label=left.label,
            )


def _pairs(
    chosen: Sequence[Sequence[Result]], same_data: bool
) -> Iterator[tuple[tuple[int, Result], tuple[int, Result]]]:
    """Every two runs on each example both broke; a run alone is compared with the originals."""
    if len(chosen) == 1:
        yield from (((ORIGINAL, result), (0, result)) for result in chosen[0])
    elif same_data:
        by_key = [{result.key: result for result in found} for found in chosen]
        for a, b in combinations(range(len(chosen)), 2):
            for key in by_key[a]:
                if key in by_key[b] and by_key[a][key].perturbed != by_key[b][key].perturbed:
                    yield (a, by_key[a][key]), (b, by_key[b][key])


def _item(
    number: int,
    view: View,
    kind: ItemKind,
    result: Result,
    texts: tuple[Fields, Fields],
    sources: tuple[int, ...],
) -> Item:
    # Not the attack's own similarity: attacks measure it on different scales.
    facts = {"words changed, share": round(result.share, 6)}
    return Item(
        number=number,
        view=view,
        kind=kind,
        texts=texts if view == "beside" else texts[1:],
        sources=sources,
        example=result.key,
        label=result.label,
        facts=facts if kind == "adversarial" else {},
    )


def _before(result: Result) -> Fields:
    return result.fields


def _after(result: Result) -> Fields:
    return tuple(
        (name, result.perturbed if place == result.field else content)
        for place, (name, content) in enumerate(result.fields)
    )


def _checks(
    read: Sequence[Broken], protocol: Protocol, wanted: int, first: int, rng: np.random.Generator
) -> Iterator[Item]:
    """Texts that say in plain words which answers to choose."""
    labels = read[0].labels
    keys = sorted(read[0].originals)
    for turn in range(wanted):
        part = protocol.parts[turn % len(protocol.parts)]
        key = keys[int(rng.integers(len(keys)))]
        fields = read[0].originals[key]
        expected = {question.id: _answer(question, len(labels), rng) for question in part.questions}
        asked = "; ".join(
            f"“{question.text}” – {_told(question, expected[question.id], labels)}"
            for question in part.questions
        )
        note = f"This one checks your attention. Whatever you think of the text, please answer: {asked}."
        text = (*fields[:-1], (fields[-1][0], f"{fields[-1][1]}\n\n{note}"))
        yield Item(
            number=first + turn,
            view=part.view,
            kind="check",
            texts=_check_texts(part, fields, text),
            sources=(ORIGINAL,),
            example=key,
            label=-1,
            expected=expected,
        )


def _check_texts(part: Part, plain: Fields, noted: Fields) -> tuple[Fields, ...]:
    return (noted,) if part.view == "text" else (plain, noted)


def _answer(question: Question, classes: int, rng: np.random.Generator) -> int:
    if question.kind == "preference":
        return 2  # the same on either side of a pair
    values = question.values(classes)
    return values[int(rng.integers(len(values)))]


def _told(question: Question, value: int, labels: Sequence[str]) -> str:
    if question.kind == "label":
        return labels[value]
    return str(value) if question.kind == "scale" else "no difference"


def _primer(read: Sequence[Broken], used: set[int], wanted: int, rng: np.random.Generator) -> list[Fields]:
    others = {key: text for run in read for key, text in run.originals.items() if key not in used}
    return [others[key] for key in _shuffled(sorted(others), rng)[:wanted]]


def _order(items: Sequence[Item], protocol: Protocol, rng: np.random.Generator) -> tuple[Place, ...]:
    """Part by part, each shuffled; a pair shows either text first equally often."""
    places: list[Place] = []
    for part in protocol.parts:
        own = [item for item in items if item.view == part.view]
        order = [own[i] for i in rng.permutation(len(own))]
        _keep_apart(order)
        sides = rng.permutation(len(order)) % 2 == 1
        places += [
            Place(item.number, bool(side) and part.view == "pair" and item.kind == "pair")
            for item, side in zip(order, sides, strict=True)
        ]
    return tuple(places)


def _keep_apart(order: list[Item]) -> None:
    """Swap later items in until versions of the same text have `APART` places between them."""
    for at in range(1, len(order)):
        recent = {item.example for item in order[max(0, at - APART) : at]}
        if order[at].example not in recent:
            continue
        later = next((k for k in range(at + 1, len(order)) if order[k].example not in recent), None)
        if later is not None:
            order[at], order[later] = order[later], order[at]


def _shuffled(keys: list[K], rng: np.random.Generator) -> list[K]:
    return [keys[i] for i in rng.permutation(len(keys))]


def _check_numbers(**given: tuple[int | None, int]) -> None:
    for name, (value, least) in given.items():
        if value is not None and value < least:
            raise DataError(f"--{name} {value} makes no sense", f"it is at least {least}")
