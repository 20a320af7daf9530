"""Fit a surrogate of the victim before an attack, or take one that the user has.

The texts are a seeded sample of all rows of the data, whichever of them are attacked, and copies in which
some words are replaced by what the attack itself would put there. So neither the limit nor the order of rows
changes it. It is kept beside the run file; a run that goes on, and every worker, reads it from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from unfooled.attacks.parts.guided import BySurrogate
from unfooled.attacks.parts.search import attackable
from unfooled.attacks.parts.victim_first import cannot_guide
from unfooled.core.attempt import Attempt
from unfooled.core.engine import Engine
from unfooled.core.program import AsyncOracle, Oracle, Program, ask, gather
from unfooled.core.recipe import Recipe, with_asking
from unfooled.core.result import Example
from unfooled.core.session import open_named
from unfooled.core.victim import Victim
from unfooled.core.victim_oracle import oracle_for
from unfooled.errors import DataError, ResourceError, RunFileError, UnknownNameError
from unfooled.runs.coverage import sources_of
from unfooled.runs.file import FILE as RUN_FILE
from unfooled.runs.task import Examples
from unfooled.victims.surrogate import LinearSurrogate, fit_surrogate, load_surrogate

AUTO, NONE = "auto", "none"
FILE = "surrogate.json"
QUERIES = 2000  # at most, where the user does not say how many
_LEAST = 500  # fewer foretell too little, and cost little less
_PER_OPTION = 8  # an attack with few options has little to choose, and asks little without a surrogate
_COUNTED = 20  # texts whose options are counted
_COPIES = 6  # of each text
_SHARE = 0.3  # of the words of a copy are replaced
_FEW = 50  # answers that are too few for any model
_LITTLE = 0.1  # share of what edits change that a surrogate must foretell to be of use


class Copy(NamedTuple):
    """A text that the victim answered, and how many of its words were replaced."""

    value: Any
    edits: int
    answer: Any


def guided_by(recipe: Recipe, path: str) -> Recipe:
    """The same attack with its questions chosen by the model at that path."""
    _require_guidable(recipe)
    if path.endswith(".json"):
        return guided_by_fitted(recipe, Path(path), load_surrogate(Path(path).expanduser()))
    return with_asking(recipe, BySurrogate(surrogate=path, **_habits(recipe)))


def guided_by_fitted(recipe: Recipe, path: Path, fitted: LinearSurrogate) -> Recipe:
    """The same attack with its questions chosen by a model that was fitted for it."""
    _require_guidable(recipe)
    spread = float(fitted.facts.get("spread", BySurrogate.spread))
    return with_asking(recipe, BySurrogate(surrogate=str(path), spread=spread, **_habits(recipe)))


def _habits(recipe: Recipe) -> dict[str, Any]:
    """To most victims all misspellings of a word are the same unknown word; other words are not."""
    return {"own": 0.03} if recipe.levels == ("characters",) else {}


def in_order(recipe: Recipe, victim_first: bool) -> Recipe:
    """The guided attack with dear constraints asked after the victim, or before."""
    return replace(recipe, asking=replace(recipe.asking, victim_first=victim_first))


def as_kept(recipe: Recipe) -> Recipe:
    """What a run keeps of a recipe: a surrogate beside the run file has no other address."""
    return replace(recipe, asking=replace(recipe.asking, surrogate=AUTO))


def fitted_for(
    recipe: Recipe,
    victim: Victim,
    data: Examples,
    *,
    seed: int,
    queries: int | None,
    path: Path,
    restart: bool,
    opened: Mapping[str, Oracle | AsyncOracle],
    tell: Callable[[str], None],
    afford: Callable[[int], None] = lambda queries: None,
) -> LinearSurrogate:
    """The surrogate at that path, if it was fitted for the same attack; else a new one, put there, after
    `afford` had the chance to refuse. That of a run that is there is never replaced by another. Without
    `queries`, there are as many as the attack has use for."""
    _require_guidable(recipe)
    of = {
        "victim": victim.fingerprint(),
        "data": data.fingerprint(),
        "attack": recipe.full_name,
        "seed": seed,
        "asked_for": queries,
    }
    if path.exists() and not restart:
        try:
            found = load_surrogate(path)
        except ResourceError:
            found = None
        changed = [name for name, value in of.items() if found and found.facts.get(name) != value]
        if found is not None and not changed:
            return found
        if changed and (path.parent / RUN_FILE).exists():
            raise RunFileError(
                f"{path}: was fitted for a run with other settings: {', '.join(changed)}",
                "write to another --out, or throw the old run away with --restart",
            )
    if queries is not None and queries < _FEW:
        raise DataError(
            f"{queries} answers of the victim are too few to fit a surrogate",
            f"give --surrogate-queries of at least {_FEW}, or leave --surrogate out",
        )
    if queries is None:
        queries = _wanted(recipe, victim, data, seed, opened)
    afford(queries)
    tell(f"fitting a surrogate on up to {queries:,} answers of the victim")
    answered = _answers(recipe, victim, _sample(data, queries, seed), seed, queries, opened)
    texts = [copy.value for copies in answered for copy in copies]
    if len(texts) < _FEW:
        raise DataError(
            f"{len(texts)} answers of the victim are too few to fit a surrogate",
            "attack without --surrogate: with so few rows it would not pay",
        )
    groups = [number for number, copies in enumerate(answered) for _ in copies]
    fitted = fit_surrogate(
        texts,
        np.array([copy.answer for copies in answered for copy in copies]),
        groups,
        [copy.edits for copies in answered for copy in copies],
        of | {"queries": len(set(texts))},
    )
    fitted.save(path)
    return fitted


def about(fitted: LinearSurrogate, rows: int) -> list[str]:
    """What the user should know of it before the attack."""
    queries, explained = int(fitted.facts["queries"]), float(fitted.facts["explained"])
    told = [
        f"surrogate: fitted on {queries:,} answers of the victim, {queries / max(1, rows):.1f} for each of "
        f"{rows:,} rows; it foretells {max(0.0, explained):.0%} of what edits change"
    ]
    if explained < _LITTLE:
        told.append("the surrogate knows little about this victim: without it the attack may ask no more")
    return told


def _require_guidable(recipe: Recipe) -> None:
    if reason := cannot_guide(recipe):
        raise UnknownNameError(
            f"{recipe.full_name} cannot be guided by a surrogate: {reason}", "leave --surrogate out"
        )


def _wanted(
    recipe: Recipe,
    victim: Victim,
    data: Examples,
    seed: int,
    opened: Mapping[str, Oracle | AsyncOracle],
) -> int:
    """So many queries that the fit costs about what it saves: by how many options a text has on average."""
    oracles = open_named(recipe.oracles(), victim, opened)
    jobs = [(row.key, _count_options(recipe, row, seed)) for row in _drawn(data, _COUNTED, seed)]
    counts = [done.value for done in Engine[int](oracles).run(jobs) if done.value is not None]
    each = sum(counts) / max(1, len(counts))
    return max(_LEAST, min(QUERIES, round(_PER_OPTION * each)))


def _count_options(recipe: Recipe, row: Example, seed: int) -> Program[int]:
    search: Any = recipe.search
    text = row.text()
    positions = attackable(text, search.stopwords, cased=getattr(search, "stopwords_cased", False))
    a = Attempt(text, row.label, recipe.goal, key=row.key, seed=seed)
    (source,) = sources_of(recipe.search)
    options = yield from gather([source.propose(a, text, i) for i in positions])
    return sum(len(each) for each in options)


def _sample(data: Examples, queries: int, seed: int) -> list[Example]:
    """Rows for so many queries, copies included; fewer texts get more copies."""
    return _drawn(data, max(1, queries // (1 + _COPIES)), seed)


def _drawn(data: Examples, count: int, seed: int) -> list[Example]:
    count = min(len(data), count)
    places = np.sort(np.random.default_rng([seed, len(data)]).permutation(len(data))[:count])
    chosen = data.only(data.nth_key(int(place)) for place in places)
    return [example for example in chosen if not example.problem]


def _answers(
    recipe: Recipe,
    victim: Victim,
    rows: Sequence[Example],
    seed: int,
    queries: int,
    opened: Mapping[str, Oracle | AsyncOracle],
) -> list[list[Copy]]:
    """The victim's answers to each text and its copies; texts that it cannot answer are left out."""
    copies = max(1, queries // max(1, len(rows)) - 1)
    oracles = open_named(recipe.oracles(), victim, opened) | {"victim": oracle_for(victim)}
    engine: Engine[list[Copy]] = Engine(oracles)
    jobs = [(row.key, _ask_copies(recipe, row, seed, copies)) for row in rows]
    found = {finished.key: finished.value for finished in engine.run(jobs) if finished.value is not None}
    return [found[row.key] for row in rows if row.key in found]


def _ask_copies(recipe: Recipe, row: Example, seed: int, count: int) -> Program[list[Copy]]:
    text = row.text()
    rng = np.random.default_rng([seed, row.key, count])
    search: Any = recipe.search
    cased = getattr(search, "stopwords_cased", False)
    positions = attackable(text, search.stopwords, cased=cased)
    drawn = [[i for i in positions if rng.random() < _SHARE] for _ in range(count)]
    needed = sorted({i for places in drawn for i in places})
    a = Attempt(text, row.label, recipe.goal, key=row.key, seed=seed)
    (source,) = sources_of(recipe.search)
    options = dict(
        zip(needed, (yield from gather([source.propose(a, text, i) for i in needed])), strict=True)
    )
    made: dict[Any, int] = {text.value: 0}
    for places in drawn:
        edited, edits = text, 0
        for i in places:
            if options[i]:
                edited, edits = edited.replace(i, options[i][int(rng.integers(len(options[i])))]), edits + 1
        made.setdefault(edited.value, edits)
    answers = yield from ask("victim", list(made))
    return [Copy(value, edits, answer) for (value, edits), answer in zip(made.items(), answers, strict=True)]
