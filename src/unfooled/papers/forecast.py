"""What a plan will take before anything is run: what is downloaded, and about how many hours.

Hours come from rates of earlier runs on one core of a laptop-like machine with models of MiniLM's size,
before linear layers were computed by oneDNN. They are right within a factor of two or three at the scale
`small`. For a GPU they are worked out and not measured: BERT-base does eight times the work of MiniLM (86 and
10.6 million weights beside the embeddings), and a GPU at 15 TFlop/s does that of 150 cores.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from unfooled.core.victim import digest
from unfooled.papers.runner import StageRunner
from unfooled.papers.stages import (
    AttackStage,
    ChosenStage,
    HardenStage,
    InsideStage,
    Model,
    Rows,
    ShowStage,
    Stage,
    TrainStage,
    VocabularyStage,
    described,
    in_order,
    is_file,
    needs_of,
)

LARGER, CORES_OF_A_GPU = 8.0, 150.0

# Rows of sets on the hub, by set and split.
_HUB: Mapping[tuple[str, str], int] = {
    ("hf:stanfordnlp/imdb", "train"): 25_000,
    ("hf:stanfordnlp/imdb", "test"): 25_000,
    ("hf:nyu-mll/glue:mnli", "train"): 392_702,
    ("hf:nyu-mll/glue:mnli", "validation_matched"): 9_815,
    ("hf:nyu-mll/glue:mnli", "validation_mismatched"): 9_832,
    ("hf:fancyzhx/yelp_polarity", "train"): 560_000,
    ("hf:fancyzhx/yelp_polarity", "test"): 38_000,
    ("hf:CogComp/trec", "train"): 5_452,
    ("hf:CogComp/trec", "test"): 500,
    ("hf:cornell-movie-review-data/rotten_tomatoes", "train"): 8_530,
    ("hf:cornell-movie-review-data/rotten_tomatoes", "test"): 1_066,
    ("hf:cardiffnlp/tweet_eval:sentiment", "train"): 45_615,
    ("hf:cardiffnlp/tweet_eval:sentiment", "test"): 12_284,
}
_UNKNOWN = 10_000  # rows of any other set

# Seconds of a core: for a row that is trained on once, or as often as a family's own stopping has it.
_EPOCH = {"bert": 0.043, "bert-scratch": 0.006}
_TRAINING = {
    "lstm": 0.012,
    "bilstm-attention": 0.006,
    "word-cnn": 0.008,
    "svm": 0.001,
    "naive-bayes": 0.001,
    "seq2seq-lstm": 0.08,
    "seq2seq-transformer": 0.13,
}
_ANSWER = {"bert": 0.02, "bert-scratch": 0.002, "lstm": 0.0005}  # a text
# Texts asked about for a row that is attacked.
_ASKED = {
    "textfooler": 60, "bae-r": 80, "bae-i": 140, "bae-r-or-i": 150, "bae-r-and-i": 90, "breaking-bert": 20,
    "list": 75, "tack-on": 2, "strongest-words": 2, "jsma": 10, "typo": 2, "targeted-keyword": 70,
}  # fmt: skip
_FEW = 0.001  # seconds of a text of a model that is not in the table, and of what an attack does itself


@dataclass(frozen=True)
class Forecast:
    """`seconds` of one core by kind of stage, of what is left to do; `downloads` are names."""

    seconds: dict[str, float]
    downloads: tuple[str, ...]
    left: int
    stages: int
    gpu: bool

    @property
    def hours(self) -> float:
        """Of one core, or of one GPU."""
        return sum(self.seconds.values()) / 3600

    def by_kind(self) -> dict[str, float]:
        """Hours of each kind of stage that takes more than a few minutes, the longest first."""
        hours = {kind: seconds / 3600 for kind, seconds in self.seconds.items()}
        return {
            kind: hours[kind] for kind in sorted(hours, key=lambda kind: -hours[kind]) if hours[kind] >= 0.1
        }

    def to_dict(self) -> dict[str, Any]:
        where = "GPU" if self.gpu else "core"
        return {
            "stages": self.stages,
            "left": self.left,
            "hours": round(self.hours, 2),
            "of": where,
            "downloads": list(self.downloads),
        }


def forecast(
    stages: Sequence[Stage], runner: StageRunner, *, gpu: bool = False, counted: set[str] | None = None
) -> Forecast:
    """Of the stages that are not finished in the runner's folder. With `gpu` BERTs are as large as BERT-base.

    What is in `counted` is done by another plan, and what this one does is added to it.
    """
    every = {stage.name: stage for stage in in_order(tuple(stages))}
    local = [stage for stage in every.values() if not _needs_the_hub(stage, every)]
    done = runner.look_up(local)
    known = set() if counted is None else counted
    left: list[Stage] = []
    for stage in every.values():
        work = _work(stage, every)
        if stage.name not in done and work not in known:
            left.append(stage)
            known.add(work)
    seconds: dict[str, float] = {}
    for stage in left:
        factor = LARGER / CORES_OF_A_GPU if gpu and _is_large(stage, every) else 1.0
        seconds[stage.kind] = seconds.get(stage.kind, 0.0) + factor * _seconds(stage, every, runner)
    return Forecast(seconds, _downloads(left, runner), len(left), len(every), gpu)


def _work(stage: Stage, every: Mapping[str, Stage]) -> str:
    """What is done, whatever it is called: plans may call the same model differently."""
    told = json.dumps(described(replace(stage, name="")), sort_keys=True)
    return digest(told, *(_work(every[name], every) for name in needs_of(stage)))


def _needs_the_hub(stage: Stage, every: Mapping[str, Stage]) -> bool:
    rows = getattr(stage, "data", None)
    if isinstance(rows, Rows) and rows.source.startswith("hf:"):
        return True
    return any(_needs_the_hub(every[name], every) for name in stage.needs())


def _downloads(stages: Sequence[Stage], runner: StageRunner) -> tuple[str, ...]:
    """Data sets and models of the hub, and resources that are not here."""
    found: dict[str, None] = {}
    for stage in stages:
        rows = getattr(stage, "data", None)
        if isinstance(rows, Rows) and rows.source.startswith("hf:"):
            found[f"data set {rows.source.removeprefix('hf:')}"] = None
        options: dict[str, Any] = dict(getattr(stage, "options", ()))
        changes: dict[str, Any] = dict(getattr(stage, "changes", ()))
        if body := options.get("body"):
            found[f"model {body}"] = None
        if (head := changes.get("search.fill.masked_lm")) and not is_file(head):
            found[f"model {head}"] = None
    found |= dict.fromkeys(f"resource {name}" for name in runner.missing_resources(stages))
    return tuple(sorted(found))


def _family(model: Model, every: Mapping[str, Stage]) -> str:
    stage = every.get(model.stage)
    while isinstance(stage, HardenStage):
        stage = every[stage.model]
    return stage.family if isinstance(stage, TrainStage) else ""


def _is_large(stage: Stage, every: Mapping[str, Stage]) -> bool:
    if isinstance(stage, TrainStage):
        return stage.family == "bert"
    if isinstance(stage, HardenStage):
        return True
    model = getattr(stage, "model", None)
    return isinstance(model, Model) and _family(model, every) == "bert"


def _count(rows: Rows, runner: StageRunner) -> int:
    """How many rows; cleaning does not change it, and takes long."""
    if rows.source.startswith("hf:"):
        there = _HUB.get((rows.source, rows.split), _UNKNOWN)
        return min(n for n in (there, rows.limit, rows.sample) if n is not None)
    if is_file(rows.source):
        return rows.limit or 40
    return len(runner.data(replace(rows, clean=None)))


def _seconds(stage: Stage, every: Mapping[str, Stage], runner: StageRunner) -> float:
    match stage:
        case TrainStage() | HardenStage():
            return _training(stage, _count(stage.data, runner))
        case AttackStage():
            model = stage.model
            return _attacked(stage, every, runner) * (_FEW + _texts(stage, every) * _answer(model, every))
        case ShowStage():
            texts = _of_samples(stage, every, runner) if stage.data is None else _count(stage.data, runner)
            draws = max(1, 2 * stage.draws)
            return min(texts, stage.limit or texts) * draws * _answer(stage.model, every)
        case ChosenStage():
            return stage.of * sum(_answer(model, every) for model in stage.models)
        case InsideStage():
            return 50 * _answer(stage.model, every) * 10
        case VocabularyStage():
            return 1.0
    return 5.0


def _training(stage: TrainStage | HardenStage, rows: int) -> float:
    options: dict[str, Any] = dict(stage.options)
    if isinstance(stage, HardenStage):
        texts = 1 + int(options.get("alternatives", 0)) if stage.method == "fact" else 1
        return rows * texts * int(options.get("epochs", 3)) * _EPOCH["bert"]
    if stage.family in _EPOCH:
        return rows * int(options.get("epochs", 3)) * _EPOCH[stage.family]
    return rows * _TRAINING.get(stage.family, 0.01)


def _answer(model: Model, every: Mapping[str, Stage]) -> float:
    options: dict[str, Any] = dict(model.options)
    votes = int(options.get("copies", options.get("alternatives", 9)) if model.defence else 0) + 1
    return votes * max(1, 2 * model.draws) * _ANSWER.get(_family(model, every), _FEW)


def _attacked(stage: AttackStage, every: Mapping[str, Stage], runner: StageRunner) -> int:
    chosen = every.get(stage.rows)
    if isinstance(chosen, ChosenStage):
        return chosen.n
    if isinstance(chosen, AttackStage):
        return _attacked(chosen, every, runner) // 2
    if isinstance(chosen, ShowStage):
        return _of_samples(chosen, every, runner) // 3  # of those attacked, what still stands
    there = _count(stage.data, runner)
    return min(there, stage.limit or there)


def _of_samples(stage: ShowStage, every: Mapping[str, Stage], runner: StageRunner) -> int:
    run = every[stage.samples]
    return _attacked(run, every, runner) if isinstance(run, AttackStage) else 0


def _texts(stage: AttackStage, every: Mapping[str, Stage]) -> int:
    """How many texts a row takes; the attacks of one word go through their list, or half of it."""
    name = stage.attack.removeprefix("smoke:").partition("@")[0]
    changes: dict[str, Any] = dict(stage.changes)
    if name == "random":
        return int(changes.get("search.draws", 1000))
    if name in _ASKED:
        return _ASKED[name]
    files = [every[value[1:-1]] for value in changes.values() if is_file(value)]
    words = sum(file.size for file in files if isinstance(file, VocabularyStage))
    return 20 + words // (1 if name.endswith("ec") else 2)
