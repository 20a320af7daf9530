"""How each kind of stage is carried out: with the same functions that the commands call."""

from __future__ import annotations

import json
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from unfooled.checks.illusions.attacking import read_results
from unfooled.checks.illusions.wrappers import Votes
from unfooled.checks.replay import Sample, answers, replay
from unfooled.checks.transfer import transfer
from unfooled.core.recipe import Recipe, load_recipe
from unfooled.core.result import Example, Result, decided
from unfooled.core.session import Settings
from unfooled.core.victim import TextValue
from unfooled.defenses.harden import harden
from unfooled.errors import RunFileError
from unfooled.files import write_json, write_whole
from unfooled.metrics.measures import measure_run
from unfooled.papers import smoke, translation
from unfooled.papers.stages import (
    Attack,
    Chosen,
    Fixture,
    Harden,
    Inside,
    Show,
    Stage,
    Train,
    Transfer,
    Vocabulary,
    Words,
)
from unfooled.plugins import registry
from unfooled.runs.attack import attack
from unfooled.runs.file import RunFile
from unfooled.training.class_words import count_class_words
from unfooled.training.record import FILE as RECORD
from unfooled.training.record import has_weights, read_record
from unfooled.training.trainer import train

if TYPE_CHECKING:
    from unfooled.papers.runner import StageRunner

MODEL, RUN = "model", "run"
NUMBERS = "numbers.json"
NOTHING = "nothing-to-do"  # marks a stage that had no row to work on


def do(stage: Stage, runner: StageRunner, folder: Path) -> None:
    """Carry it out, or go on with it."""
    match stage:
        case Train(family=family) if family.startswith(translation.FAMILIES):
            with runner.watcher.training(stage.name) as trainer:
                translation.train(stage, runner.data, folder / MODEL, trainer)
        case Train():
            with runner.watcher.training(stage.name) as trainer:
                train(
                    stage.family,
                    runner.data(stage.data),
                    folder / MODEL,
                    valid=stage.valid,
                    options=runner.filled(stage.options),
                    resume=True,
                    observer=trainer,
                )
        case Harden():
            with runner.watcher.training(stage.name) as trainer:
                harden(
                    runner.done[stage.model].folder / MODEL,
                    runner.data(stage.data),
                    method=stage.method,
                    out=folder / MODEL,
                    options=runner.filled(stage.options),
                    resume=True,
                    observer=trainer,
                )
        case Words():
            count_class_words(runner.data(stage.data)).write(folder / "words.json")
        case Vocabulary():
            _vocabulary(stage, runner, folder)
        case Chosen():
            _chosen(stage, runner, folder)
        case Attack():
            _attack(stage, runner, folder)
        case Show():
            _show(stage, runner, folder)
        case Transfer():
            _transfer(stage, runner, folder)
        case Inside():
            _inside(stage, runner, folder)
        case Fixture():
            smoke.make(stage.what, folder)
        case _:
            raise TypeError(f"{stage} is no stage")


def file_of(stage: Stage, folder: Path) -> Path:
    """What a stage leaves for others."""
    match stage:
        case Train() | Harden():
            return folder / MODEL
        case Words():
            return folder / "words.json"
        case Vocabulary():
            return folder / "words.txt"
        case Attack() | Show():
            return folder / RUN
        case Fixture():
            return folder / smoke.FILES[stage.what]
        case _:
            return folder / NUMBERS


def is_there(stage: Stage, folder: Path) -> bool:
    """Whether what a finished stage left has not been taken away."""
    made = file_of(stage, folder)
    if isinstance(stage, Train | Harden):
        return (made / RECORD).is_file() and has_weights(made)
    if isinstance(stage, Attack | Show):
        return (made / "run.sqlite").is_file() or (folder / NOTHING).is_file()
    return made.exists()


def seconds_of(stage: Stage, folder: Path) -> float:
    """How long a training took, by its own record; 0 for anything else."""
    if not isinstance(stage, Train | Harden):
        return 0.0
    return float((read_record(folder / MODEL) or {}).get("seconds", 0.0))


def recipe_of(name: str) -> Recipe:
    """`smoke:NAME` is the attack without models and lexicons (see `smoke.py`)."""
    return smoke.light(name.removeprefix("smoke:")) if name.startswith("smoke:") else load_recipe(name)


def results_of(runner: StageRunner, name: str) -> list[Result]:
    return results_in(runner.done[name].folder)


def results_in(folder: Path) -> list[Result]:
    """Results of a run; none where it had no row."""
    return [] if (folder / NOTHING).is_file() else read_results(folder / RUN)


def _attack(stage: Attack, runner: StageRunner, folder: Path) -> None:
    keys = _rows(stage, runner) if stage.rows else None
    if keys is not None and not keys:
        write_whole(folder / NOTHING, "no row was left\n")
        return
    with runner.watcher.attacking(stage.name) as observer:
        attack(
            runner.model(stage.model),
            runner.data(stage.data),
            runner.recipe(stage),
            out=folder / RUN,
            limit=stage.limit,
            first=True,  # a plan states its rows
            keys=keys,
            settings=Settings(seed=stage.seed),
            observer=observer,
        )
    if stage.measures:
        measure_run(folder / RUN, stage.measures)


def _rows(stage: Attack, runner: StageRunner) -> set[int]:
    """The rows of a `Chosen` stage, or those that a run's model still gets right."""
    if isinstance(runner.done[stage.rows].stage, Chosen):
        return set(json.loads(runner.file(stage.rows).read_text(encoding="utf-8"))["rows"])
    return {
        one.key
        for one in results_of(runner, stage.rows)
        if one.outcome != "error" and decided(one.perturbed_probs) == one.label
    }


def _show(stage: Show, runner: StageRunner, folder: Path) -> None:
    victim = runner.model(stage.model)
    found = results_of(runner, stage.samples) if stage.samples else []
    names = _labels(runner.done[stage.samples].folder) if found else ()
    samples: dict[int, Sample] = {}
    if stage.data is not None:
        rows = runner.data(stage.data).aligned(victim.labels)
        for example in rows:
            if not example.problem:
                samples[example.key] = Sample.of(example, victim.labels[example.label])
        found = [one for one in found if one.outcome == "success"][: stage.most]
    for one in found:
        if one.outcome != "error":
            label = names[one.label]
            samples[one.key] = Sample(one.key, label, one.fields, one.field, one.perturbed, one.edits)
    if not samples:
        write_whole(folder / NOTHING, "there was no text\n")
        return
    asked = Votes(victim, draws=stage.draws) if stage.draws else victim
    with runner.watcher.attacking(stage.name) as observer:
        replay(samples.values(), asked, out=folder / RUN, name=stage.samples or "rows", observer=observer)


def _labels(folder: Path) -> tuple[str, ...]:
    with closing(RunFile.read(folder / RUN)) as file:
        return file.labels


def _vocabulary(stage: Vocabulary, runner: StageRunner, folder: Path) -> None:
    counted = count_class_words(runner.data(stage.data))
    often = counted.counts.sum(axis=1) >= stage.least
    words = [word for word, kept in zip(counted.words, often, strict=True) if kept and word.isalpha()]
    if len(words) > stage.size:
        drawn = np.random.default_rng(stage.seed).choice(len(words), stage.size, replace=False)
        words = [words[place] for place in np.sort(drawn)]
    write_whole(folder / "words.txt", "".join(f"{word}\n" for word in words))


def _chosen(stage: Chosen, runner: StageRunner, folder: Path) -> None:
    right: set[int] | None = None
    accuracy = []
    for model in stage.models:
        victim = runner.model(model)
        rows = runner.data(stage.data).aligned(victim.labels)
        examples = [one for one in islice(rows, stage.of) if not one.problem]
        said = answers(victim, [_value(one) for one in examples])
        mine = {one.key for one in examples if _right(said[_value(one)], one.label)}
        accuracy.append(len(mine) / max(1, len(examples)))
        right = mine if right is None else right & mine
    both = sorted(right or ())
    if len(both) > stage.n:
        drawn = np.random.default_rng(stage.seed).choice(len(both), stage.n, replace=False)
        both = [both[place] for place in np.sort(drawn)]
    write_json(folder / NUMBERS, {"rows": both, "of": stage.of, "accuracy": accuracy}, indent=1)


def _right(answer: tuple[float, ...] | Exception, label: int) -> bool:
    return not isinstance(answer, Exception) and decided(answer) == label


def _value(example: Example) -> TextValue:
    value: TextValue = example.text().value
    return value


def _transfer(stage: Transfer, runner: StageRunner, folder: Path) -> None:
    try:
        found = transfer(runner.done[stage.run].folder / RUN, runner.model(stage.model))
    except RunFileError:
        write_json(folder / NUMBERS, {"fooled": {}}, indent=1)  # nothing fooled the first model
        return
    moved = {str(one.key): int(one.fooled) for one in found.examples if one.right_before}
    write_json(folder / NUMBERS, {"fooled": moved}, indent=1)


def _inside(stage: Inside, runner: StageRunner, folder: Path) -> None:
    victim = cast(Any, runner.model(stage.model))
    run = runner.done[stage.run].folder / RUN
    parts = ("attention", "embeddings", *(("theorem",) if stage.theorem else ()))
    told = registry.load("analysis", "internals")(run, victim=victim, only=parts, examples=0)
    numbers: dict[str, Any] = {"re": {}, "l1": {}, "attention": {}, "edited": {}}
    if told.embeddings:
        numbers["re"] = {str(key): value for key, value in told.embeddings.sentences}
        first = [one for one in told.embeddings.changes if one.layer == 1]
        numbers["edited"] = {str(one.key): one.on_edited for one in first if np.isfinite(one.on_edited)}
        numbers["l1"] = _distances(run, victim)
    if told.attention:
        per_key: dict[str, list[float]] = {}
        for shift in told.attention.shifts:
            per_key.setdefault(str(shift.key), []).append(shift.score)
        numbers["attention"] = {key: float(np.mean(values)) for key, values in per_key.items()}
    if told.theorem:
        heads = told.theorem.of("model")
        numbers["theorem"] = {f"{one.layer}.{one.head}": one.worst / one.bound for one in heads}
        numbers["theorem random"] = {str(one.d): one.worst / one.bound for one in told.theorem.of("random")}
    write_json(folder / NUMBERS, numbers, indent=1)


def _distances(run: Path, victim: Any) -> dict[str, float]:
    """L1 distance of the sentence's embedding before and after, relative to its length before."""
    won = [one for one in read_results(run) if one.outcome == "success"]
    if not won:
        return {}
    before = np.asarray(victim.sentence_vectors([_text(one, one.original) for one in won]))
    after = np.asarray(victim.sentence_vectors([_text(one, one.perturbed) for one in won]))
    moved = np.abs(after - before).sum(axis=1) / np.abs(before).sum(axis=1)
    return {str(one.key): round(float(value), 6) for one, value in zip(won, moved, strict=True)}


def _text(one: Result, content: str) -> TextValue:
    """All fields, with `content` in the place of the edited one."""
    texts = [content if place == one.field else old for place, (_, old) in enumerate(one.fields)]
    return texts[0] if len(texts) == 1 else tuple(texts)
