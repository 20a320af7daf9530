"""How each kind of stage is carried out: with the same functions that the commands call."""

from __future__ import annotations

import json
from contextlib import closing
from functools import singledispatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from unfooled.checks.illusions.attacking import read_results
from unfooled.checks.illusions.wrappers import Votes
from unfooled.checks.replay import Sample, answers, replay
from unfooled.checks.transfer import transfer
from unfooled.core.recipe import Recipe, load_recipe
from unfooled.core.result import ATTACKED, Example, Result, decided
from unfooled.core.session import Settings
from unfooled.core.victim import TextValue
from unfooled.defenses.harden import harden
from unfooled.errors import RunFileError
from unfooled.files import write_json, write_whole
from unfooled.metrics.measures import measure_run
from unfooled.papers import smoke, translation
from unfooled.papers.stages import (
    AttackStage,
    ChosenStage,
    FixtureStage,
    HardenStage,
    InsideStage,
    PlaneStage,
    ShowStage,
    Stage,
    TrainStage,
    TransferStage,
    VocabularyStage,
    WordsStage,
)
from unfooled.plugins import registry
from unfooled.runs.attack import attack
from unfooled.runs.file import RunFile
from unfooled.runs.row_choice import take
from unfooled.runs.workers.where import Workers
from unfooled.training.class_words import count_class_words
from unfooled.training.record import FILE as RECORD
from unfooled.training.record import has_weights, read_record
from unfooled.training.trainer import train

if TYPE_CHECKING:
    from unfooled.papers.runner import StageRunner

MODEL, RUN = "model", "run"
NUMBERS = "numbers.json"
NOTHING = "nothing-to-do"  # marks a stage that had no row to work on


@singledispatch
def do(stage: Stage, runner: StageRunner, folder: Path) -> None:
    """Carry it out, or go on with it."""
    raise TypeError(f"{stage} is no stage")


def file_of(stage: Stage, folder: Path) -> Path:
    """What a stage leaves for others."""
    match stage:
        case TrainStage() | HardenStage():
            return folder / MODEL
        case WordsStage():
            return folder / "words.json"
        case VocabularyStage():
            return folder / "words.txt"
        case AttackStage() | ShowStage():
            return folder / RUN
        case FixtureStage():
            return folder / smoke.FILES[stage.what]
        case _:
            return folder / NUMBERS


def is_there(stage: Stage, folder: Path) -> bool:
    """Whether what a finished stage left has not been taken away."""
    made = file_of(stage, folder)
    if isinstance(stage, TrainStage | HardenStage):
        return (made / RECORD).is_file() and has_weights(made)
    if isinstance(stage, AttackStage | ShowStage):
        return (made / "run.sqlite").is_file() or (folder / NOTHING).is_file()
    return made.exists()


def seconds_of(stage: Stage, folder: Path) -> float:
    """How long a training took, by its own record; 0 for anything else."""
    if not isinstance(stage, TrainStage | HardenStage):
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


@do.register(TrainStage)
def _train(stage: TrainStage, runner: StageRunner, folder: Path) -> None:
    with runner.watcher.training(stage.name) as trainer:
        if stage.family.startswith(translation.FAMILIES):
            translation.train(stage, runner.data, folder / MODEL, trainer)
            return
        train(
            stage.family,
            runner.data(stage.data),
            folder / MODEL,
            valid=stage.valid,
            options=runner.filled(stage.options),
            resume=True,
            observer=trainer,
        )


@do.register(HardenStage)
def _harden(stage: HardenStage, runner: StageRunner, folder: Path) -> None:
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


@do.register(WordsStage)
def _words(stage: WordsStage, runner: StageRunner, folder: Path) -> None:
    count_class_words(runner.data(stage.data)).write(folder / "words.json")


@do.register(FixtureStage)
def _fixture(stage: FixtureStage, runner: StageRunner, folder: Path) -> None:
    smoke.make(stage.what, folder)


@do.register(AttackStage)
def _attack(stage: AttackStage, runner: StageRunner, folder: Path) -> None:
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
            keys=keys,
            settings=Settings(seed=stage.seed),
            observer=observer,
            workers=runner.workers,
        )
    if stage.measures:
        measure_run(folder / RUN, stage.measures, workers=runner.workers)


def _rows(stage: AttackStage, runner: StageRunner) -> set[int]:
    """The rows of a `ChosenStage` stage, or those that a run's model still gets right, or that fell."""
    if isinstance(runner.done[stage.rows].stage, ChosenStage):
        return set(json.loads(runner.file(stage.rows).read_text(encoding="utf-8"))["rows"])
    results = [result for result in results_of(runner, stage.rows) if result.outcome != "error"]
    if stage.fooled:
        return {result.key for result in results if result.outcome == "success"}
    return {result.key for result in results if decided(result.perturbed_probs) == result.label}


@do.register(ShowStage)
def _show(stage: ShowStage, runner: StageRunner, folder: Path) -> None:
    victim = runner.model(stage.model)
    found = results_of(runner, stage.samples) if stage.samples else []
    names = _labels(runner.done[stage.samples].folder) if found else ()
    samples: dict[int, Sample] = {}
    if stage.data is not None:
        rows = runner.data(stage.data).aligned(victim.labels)
        for example in rows if stage.limit is None else take(rows, stage.limit, seed=stage.seed):
            if not example.problem:
                samples[example.key] = Sample.of(example, victim.labels[example.label])
        won = [result for result in found if result.outcome == "success"]
        found = [won[place] for place in _drawn(len(won), stage.most, stage.seed)]
    for result in found:
        if result.outcome != "error":
            label = names[result.label]
            samples[result.key] = Sample(
                result.key, label, result.fields, result.field, result.perturbed, result.edits
            )
    if not samples:
        write_whole(folder / NOTHING, "there was no text\n")
        return
    asked = Votes(victim, draws=stage.draws) if stage.draws else victim
    with runner.watcher.attacking(stage.name) as observer:
        replay(
            samples.values(),
            asked,
            out=folder / RUN,
            name=stage.samples or "rows",
            observer=observer,
            workers=Workers() if stage.draws else runner.workers,  # draws follow one after the other
        )


def _labels(folder: Path) -> tuple[str, ...]:
    with closing(RunFile.read(folder / RUN)) as file:
        return file.labels


@do.register(VocabularyStage)
def _vocabulary(stage: VocabularyStage, runner: StageRunner, folder: Path) -> None:
    counted = count_class_words(runner.data(stage.data))
    often = counted.counts.sum(axis=1) >= stage.least
    words = [word for word, kept in zip(counted.words, often, strict=True) if kept and word.isalpha()]
    words = [words[place] for place in _drawn(len(words), stage.size, stage.seed)]
    write_whole(folder / "words.txt", "".join(f"{word}\n" for word in words))


def _drawn(every: int, most: int | None, seed: int) -> list[int]:
    """Places of `most` things drawn at random from `every`, in order."""
    if most is None or every <= most:
        return list(range(every))
    drawn = np.random.default_rng(seed).choice(every, most, replace=False)
    return [int(place) for place in np.sort(drawn)]


@do.register(ChosenStage)
def _chosen(stage: ChosenStage, runner: StageRunner, folder: Path) -> None:
    right: set[int] | None = None
    told: dict[str, dict[str, int]] = {}
    for model in stage.models:
        victim = runner.model(model)
        rows = runner.data(stage.data).aligned(victim.labels)
        examples = [row for row in take(rows, stage.of, seed=stage.seed) if not row.problem]
        said = answers(victim, [_value(example) for example in examples])
        mine = {example.key for example in examples if _right(said[_value(example)], example.label)}
        told[f"right {model.stage}"] = {str(example.key): int(example.key in mine) for example in examples}
        right = mine if right is None else right & mine
    both = sorted(right or ())
    both = [both[place] for place in _drawn(len(both), stage.n, stage.seed)]
    write_json(folder / NUMBERS, {"rows": both, "of": stage.of, **told})


def _right(answer: tuple[float, ...] | Exception, label: int) -> bool:
    return not isinstance(answer, Exception) and decided(answer) == label


def _value(example: Example) -> TextValue:
    value: TextValue = example.text().value
    return value


@do.register(PlaneStage)
def _plane(stage: PlaneStage, runner: StageRunner, folder: Path) -> None:
    found = registry.load("analysis", "plane")(runner.data(stage.data))
    numbers = {
        "near": {str(key): int(near) for key, near in zip(found.keys, found.near, strict=True)},
        "points": found.points.tolist(),
        "classes": found.classes.tolist(),
        "labels": list(found.labels),
        "explained": list(found.explained),
    }
    write_json(folder / NUMBERS, numbers)


@do.register(TransferStage)
def _transfer(stage: TransferStage, runner: StageRunner, folder: Path) -> None:
    run = runner.done[stage.run].folder / RUN
    try:
        examples = transfer(run, runner.model(stage.model), workers=runner.workers).examples
    except RunFileError:
        examples = ()  # nothing fooled the first model
    moved = {str(example.key): int(example.fooled) for example in examples if example.right_before}
    wrong = {str(example.key) for example in examples if not example.right_before}
    # What did not even fool the first model carries nothing over.
    attacked = [str(result.key) for result in results_of(runner, stage.run) if result.outcome in ATTACKED]
    carried = {key: moved.get(key, 0) for key in attacked if key not in wrong}
    write_json(folder / NUMBERS, {"fooled": moved, "carried": carried}, indent=1)


@do.register(InsideStage)
def _inside(stage: InsideStage, runner: StageRunner, folder: Path) -> None:
    victim = cast(Any, runner.model(stage.model))
    if (runner.done[stage.run].folder / NOTHING).is_file():
        write_json(folder / NUMBERS, {}, indent=1)
        return
    run = runner.done[stage.run].folder / RUN
    parts = ("attention", "embeddings", *(("theorem",) if stage.theorem else ()))
    told = registry.load("analysis", "internals")(run, victim=victim, only=parts, examples=0)
    numbers: dict[str, Any] = {"re": {}, "l1": {}, "attention": {}, "edited": {}}
    if told.embeddings:
        numbers["re"] = {str(key): value for key, value in told.embeddings.sentences}
        first = [change for change in told.embeddings.changes if change.layer == 1]
        numbers["edited"] = {
            str(shift.key): shift.on_edited for shift in first if np.isfinite(shift.on_edited)
        }
        numbers["l1"] = _distances(run, victim)
    if told.attention:
        per_key: dict[str, list[float]] = {}
        for shift in told.attention.shifts:
            per_key.setdefault(str(shift.key), []).append(shift.score)
        numbers["attention"] = {key: float(np.mean(values)) for key, values in per_key.items()}
    if told.theorem:
        heads = told.theorem.of("model")
        numbers["theorem"] = {f"{head.layer}.{head.head}": head.worst / head.bound for head in heads}
        numbers["theorem random"] = {
            str(check.d): check.worst / check.bound for check in told.theorem.of("random")
        }
    write_json(folder / NUMBERS, numbers, indent=1)


def _distances(run: Path, victim: Any) -> dict[str, float]:
    """L1 distance of the sentence's embedding before and after, relative to its length before."""
    won = [result for result in read_results(run) if result.outcome == "success"]
    if not won:
        return {}
    before = np.asarray(victim.sentence_vectors([_text(result, result.original) for result in won]))
    after = np.asarray(victim.sentence_vectors([_text(result, result.perturbed) for result in won]))
    moved = np.abs(after - before).sum(axis=1) / np.abs(before).sum(axis=1)
    return {str(result.key): round(float(value), 6) for result, value in zip(won, moved, strict=True)}


def _text(result: Result, content: str) -> TextValue:
    """All fields, with `content` in the place of the edited one."""
    texts = [content if place == result.field else old for place, (_, old) in enumerate(result.fields)]
    return texts[0] if len(texts) == 1 else tuple(texts)
