"""Attack a data set and write down what happened, so that the same call goes on where it stopped."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Collection, Generator, Hashable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import unfooled
from unfooled.attacks.goals import OnlyClass, aimed_at, aimed_at_word
from unfooled.core.recipe import Recipe, all_recipes, load_recipe
from unfooled.core.result import Result
from unfooled.core.writing import Asked, TextGoal
from unfooled.data.dataset import Dataset
from unfooled.data.examples import Example
from unfooled.data.loading import Given, as_dataset
from unfooled.data.parallel import ParallelText, as_parallel
from unfooled.errors import CapabilityError, DataError, VictimError
from unfooled.evaluation.metrics import Summary, summarise
from unfooled.evaluation.outputs import keep_attention
from unfooled.evaluation.session import Session, Settings, open_inside, prepared, require_resources
from unfooled.evaluation.store import RunFile
from unfooled.evaluation.workers import attack_in_workers
from unfooled.victims.base import TextValue, Victim
from unfooled.victims.function import FunctionVictim
from unfooled.victims.loading import load_victim
from unfooled.victims.preflight import Preflight, preflight
from unfooled.victims.translator import Translator
from unfooled.victims.translator_checks import preflight_translator

# Enough to see swapped labels or logits, little enough for a paid endpoint.
PREFLIGHT_EXAMPLES = 64
FEW_EXAMPLES = 8  # looked at where a run attacks chosen examples only: a model that was looked at before


class Observer:
    """Told what happens while it happens. The command line draws it; the default says nothing."""

    def noticed(self, message: str) -> None:
        """Something that shapes the results was decided and should be known, such as a fallback."""

    def checked(self, report: Preflight) -> None:
        """The victim was tried before the attack."""

    def started(self, total: int, done: int) -> None:
        """`done` of `total` examples were finished by an earlier call."""

    def finished(self, result: Result) -> None:
        """One more example is in the run file."""


@dataclass(frozen=True)
class Run:
    """A run file on disk. Everything shown of a run is read from it."""

    path: Path

    def summary(self) -> Summary:
        with closing(RunFile.read(self.path)) as file:
            return summarise(file)

    def results(self) -> Iterator[Result]:
        with closing(RunFile.read(self.path)) as file:
            yield from file.results()


def attack(
    victim: Victim | str | Callable[[list[str]], Any],
    data: Given | ParallelText,
    recipe: Recipe | str = "textfooler",
    *,
    out: str | Path,
    limit: int | None = None,
    keys: Collection[int] | None = None,
    workers: int = 1,
    settings: Settings | None = None,
    target: str | None = None,
    label_map: Mapping[str, str] | None = None,
    observer: Observer | None = None,
    restart: bool = False,
) -> Run:
    """Attack every example of `data` and return the finished run.

    `victim` is a victim, what `load_victim` takes, or a function from texts to probabilities; `data` is a
    data set or what `load_data` takes: a path, pairs of text and label, a table. For a translation model it
    is parallel text, what `load_parallel` takes, or pairs of sentences.

    The run file in `out` is written as results arrive. The same call again skips finished examples and runs
    the rest, those that ended in an error included; a larger `limit` goes on from the smaller one. `keys`
    attacks only these examples; other keys may follow later into the same run.
    """
    victim = _as_victim(victim)
    dataset = _fitting(data, victim).aligned(victim.labels, label_map)
    recipe = load_recipe(recipe) if isinstance(recipe, str) else recipe
    settings = settings or Settings()
    observer = observer or Observer()
    require_capabilities(recipe, victim)
    if target is not None and isinstance(recipe.goal, TextGoal):
        recipe = aimed_at_word(recipe, target)
    elif target is not None:
        recipe = aim_at(recipe, target, victim.labels)
    if limit is not None and limit < 1:
        raise DataError(f"limit={limit} leaves nothing to attack", "limit is at least 1")
    if workers < 1:
        raise DataError(f"workers={workers} makes no sense", "workers is at least 1")
    recipe, notices = prepared(recipe, victim)
    for notice in notices:
        observer.noticed(notice)
    resources = require_resources(recipe)
    open_inside(recipe, victim)  # what does not fit is said before a run file is made

    total = len(dataset) if limit is None else min(limit, len(dataset))
    sample = [one for one in islice(_chosen(islice(dataset, total), keys), _looks(keys)) if not one.problem]
    texts = [one.text().value for one in sample]
    if isinstance(victim, Translator):
        strings = [one.text().string for one in sample]
        report = preflight_translator(victim, strings, [one.reference for one in sample])
    else:
        report = preflight(victim, texts, [one.label for one in sample])
    observer.checked(report)
    report.raise_for_fail()

    header = {
        "identity": {
            "recipe": recipe.to_json(),
            "victim": victim.fingerprint(),
            "data": dataset.fingerprint(),
            "labels": list(victim.labels),
            "resources": resources,
            **settings.identity(),
        },
        "environment": _environment(victim, dataset, recipe, workers, report)
        | {"notices": notices, "asked": total if keys is None else None},
    }
    with RunFile.open(Path(out), header, restart=restart) as file:
        examples = _unfinished(_chosen(islice(dataset, total), keys), file)
        first, last = dataset.nth_key(0), dataset.nth_key(total - 1)
        if keys is None:
            done = file.count_finished(first, last)
        else:
            total, done = len(keys), len(file.finished(first, last) & set(keys))
        observer.started(total, done)
        if done < total:
            good = next((text for text in texts if _answered(victim, text)), None)
            known = Asked(str(good)) if isinstance(victim, Translator) and good is not None else good
            results = _results(victim, recipe, settings, examples, workers, total - done, known, file)
            with closing(results):  # its counters belong into the file while that is open
                for result in results:
                    file.add(result)
                    observer.finished(result)
    if isinstance(victim, Translator):
        keep_attention(Path(out), victim)
    return Run(Path(out))


def require_capabilities(recipe: Recipe, victim: Victim) -> None:
    missing = [need for need in recipe.requires() if need not in victim.capabilities]
    if isinstance(victim, Translator) and not isinstance(recipe.goal, TextGoal):
        missing = ["classes"]
    if not missing:
        return
    fit = [
        one.full_name
        for one in all_recipes()
        if set(one.requires()) <= victim.capabilities
        and isinstance(one.goal, TextGoal) == isinstance(victim, Translator)
    ]
    raise CapabilityError(
        f"{recipe.full_name} needs {' and '.join(missing)}, which {victim.name} does not give",
        f"attacks that work on it: {', '.join(fit)}" if fit else "no attack works on such a victim yet",
    )


def aim_at(recipe: Recipe, target: str, labels: tuple[str, ...]) -> Recipe:
    """The same attack with one class as its goal."""
    if target not in labels:
        raise DataError(f"there is no class {target!r}", f"the victim's classes are {', '.join(labels)}")
    if isinstance(recipe.goal, OnlyClass) and recipe.goal.name.casefold() == target.casefold():
        raise DataError(
            f"{recipe.full_name} attacks only examples of the class {target}, which is also the target",
            "aim at another class, or name other examples with --only",
        )
    return aimed_at(recipe, labels.index(target))


def _results(
    victim: Victim,
    recipe: Recipe,
    settings: Settings,
    examples: Iterable[Example],
    workers: int,
    remaining: int,
    known_good: Hashable,
    file: RunFile,
) -> Generator[Result]:
    if workers > 1:
        yield from attack_in_workers(
            victim,
            recipe,
            settings,
            examples,
            workers=workers,
            remaining=remaining,
            known_good=known_good,
            on_counters=lambda counted: _add_counters(file, counted),
        )
        return
    session = Session(victim, recipe, settings, known_good=known_good)
    try:
        yield from session.attack(examples)
    finally:
        _add_counters(file, session.counters())


def _looks(keys: Collection[int] | None) -> int:
    return PREFLIGHT_EXAMPLES if keys is None else FEW_EXAMPLES


def _chosen(examples: Iterator[Example], keys: Collection[int] | None) -> Iterator[Example]:
    return examples if keys is None else (one for one in examples if one.key in keys)


def _unfinished(examples: Iterator[Example], file: RunFile) -> Iterator[Example]:
    """Examples without a result, looked up in portions so that no list of all keys is held."""
    while portion := list(islice(examples, 1000)):
        keys = [example.key for example in portion]
        finished = file.finished(min(keys), max(keys))
        yield from (example for example in portion if example.key not in finished)


def _add_counters(file: RunFile, counted: Mapping[str, Any]) -> None:
    file.set_counters(_sum(file.counters(), counted))


def _sum(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    total = dict(old)
    for name, value in new.items():
        if isinstance(value, Mapping):
            total[name] = _sum(total.get(name, {}), value)
        else:
            total[name] = total.get(name, 0) + value
    return total


def _answered(victim: Victim, text: TextValue) -> bool:
    """Whether the victim can answer this text: one that it can tells bad texts from a victim that is down."""
    try:
        if isinstance(victim, Translator):
            return len(victim.write([Asked(str(text))])) == 1
        return len(victim.predict([text])) == 1
    except Exception:
        return False


def _as_victim(given: Victim | str | Callable[[list[str]], Any]) -> Victim:
    if isinstance(given, str):
        return load_victim(given)
    if isinstance(given, Victim):
        return given
    if callable(given):
        return FunctionVictim(given)
    raise VictimError(
        f"{type(given).__name__} is not a victim", "wrap it with SklearnVictim or FunctionVictim"
    )


def _fitting(given: Given | ParallelText, victim: Victim) -> Dataset | ParallelText:
    """The data as this kind of victim needs it."""
    writes = isinstance(victim, Translator)
    if isinstance(given, Dataset | ParallelText):
        if writes != isinstance(given, ParallelText):
            raise DataError(
                f"{given.name} does not fit: {victim.name} {'writes text' if writes else 'chooses classes'}",
                f"load the data with {'load_parallel' if writes else 'load_data'}",
            )
        return given
    if writes:
        return as_parallel(given)
    return as_dataset(given, labels=victim.labels)


def _environment(
    victim: Victim, dataset: Dataset | ParallelText, recipe: Recipe, workers: int, report: Preflight
) -> dict[str, Any]:
    loaded = {
        name: sys.modules[name]
        for name in ("numpy", "sklearn", "torch", "transformers")
        if name in sys.modules
    }
    return {
        "unfooled": unfooled.__version__,
        "python": platform.python_version(),
        "versions": {name: str(getattr(module, "__version__", "")) for name, module in loaded.items()},
        "attack": recipe.full_name,
        "victim": victim.name,
        "data": dataset.name,
        "cleaning": list(dataset.cleaning),
        "workers": workers,
        "preflight": report.lines(),
    }
