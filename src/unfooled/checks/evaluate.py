"""Three evaluations of several models, the checks, and a verdict on each defended one.

1. Clean accuracy and macro F1. 2. Pre-made samples: texts that fooled the base, shown to every model. 3. The
attack on each model itself. Everything is a run file in one folder, so the same call goes on after a stop.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unfooled.checks.illusions.attacking import (
    EvaluatedModel,
    EvaluationObserver,
    EvaluationSetup,
    read_results,
)
from unfooled.checks.illusions.checks import require_checks, run_checks
from unfooled.checks.illusions.diagnosis import Gradients, Looks, look, look_at_gradients, same_again
from unfooled.checks.illusions.fresh_process import packed
from unfooled.checks.illusions.survivors import STATE, CheckResult, Flags, Survival, counted
from unfooled.checks.illusions.verdict import MISSING_CONTROL, Rival, Verdict, judge
from unfooled.checks.naming import load_models, roles
from unfooled.checks.replay import Sample
from unfooled.core.recipe import Recipe, fit_to_victim, load_recipe
from unfooled.core.result import ATTACKED, NO_CLASS, Result, decided
from unfooled.core.session import Settings
from unfooled.core.victim import Victim
from unfooled.data.dataset import Dataset
from unfooled.data.loading import Given, as_dataset
from unfooled.device import computes
from unfooled.errors import DataError, UserError
from unfooled.metrics.summary import COUNTS, Mean, Rate, Recall, Tries, cautions
from unfooled.metrics.validity.judging import judge as judge_successes
from unfooled.rates import confusion, f1_interval, macro_f1
from unfooled.runs.attack import Run
from unfooled.runs.export import export
from unfooled.runs.notes import write_remark
from unfooled.runs.row_choice import rows_for
from unfooled.victims.loading import GivenVictim

if TYPE_CHECKING:
    from unfooled.runs.workers.where import Workers

CLEAN_LIMIT = 2000
DRAWS = 15
PREMADE = "premade.jsonl"
LOOK = "look.json"
_SHOWN = 64  # texts that a model is looked at with
_ASKED_AGAIN = 200
_DIFFERENT = 1e-4
_RATES = ("clean", "premade", "active", "seen", "worst")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReport:
    """One row of the table."""

    name: str
    role: str  # base, control or defended
    victim: str
    clean: Rate
    f1: float
    f1_low: float
    f1_high: float
    premade: Rate  # right on texts that fooled the base
    active: Rate  # right under the attack on this model
    by_valid: Rate | None  # the same when only valid texts count; None: the attack was not judged
    seen: Rate  # the same as the attack saw it; for a random model one draw, as papers report it
    worst: Rate  # right under the attack and under every check
    queries: Mean  # of all attacked whose queries are known
    words: Mean  # changed, of the successes
    share: Mean  # of the words, of the successes
    errors: int
    chance: str
    checks: tuple[CheckResult, ...]
    verdict: Verdict | None
    tries: Tries  # of the attack on this model
    cautions: tuple[str, ...]  # what must be said beside the numbers of that attack
    classes: tuple[Recall, ...]  # right before and under the attack, of the rows of each class
    abstained: Rate  # ties between classes under the attack, as the attack saw them

    def to_dict(self) -> dict[str, Any]:
        rates = {name: getattr(self, name).to_dict() for name in _RATES}
        means = {name: getattr(self, name).to_dict() for name in ("queries", "words", "share")}
        return {
            "name": self.name,
            "role": self.role,
            "victim": self.victim,
            **rates,
            "active_by_valid_texts": self.by_valid.to_dict() if self.by_valid else None,
            "macro_f1": {"value": self.f1, "low": self.f1_low, "high": self.f1_high},
            **means,
            "classes": [cls.to_dict() for cls in self.classes],
            "abstained": self.abstained.to_dict(),
            "errors": self.errors,
            "chance": self.chance,
            "checks": [check.to_dict() for check in self.checks],
            "tries": self.tries.to_dict(),
            "cautions": list(self.cautions),
            "verdict": self.verdict.to_dict() if self.verdict else None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    attack: str
    data: str
    n: int
    models: tuple[ModelReport, ...]
    notes: tuple[str, ...]
    out: Path
    rows: str = ""  # what must be said about the rows that were taken

    @property
    def verdicts(self) -> dict[str, Verdict]:
        return {model.name: model.verdict for model in self.models if model.verdict}

    @property
    def errors(self) -> int:
        return sum(model.errors for model in self.models)

    def to_dict(self) -> dict[str, Any]:
        return {
            "attack": self.attack,
            "data": self.data,
            "n": self.n,
            "models": [model.to_dict() for model in self.models],
            "notes": list(self.notes),
            "rows": self.rows,
            "out": str(self.out),
        }


@computes
def evaluate(
    models: Mapping[str, GivenVictim],
    data: Given,
    recipe: Recipe | str = "textfooler",
    *,
    out: str | Path,
    limit: int | None = None,
    first: bool = False,
    clean_limit: int = CLEAN_LIMIT,
    base: str | None = None,
    control: str | None = None,
    checks: Sequence[str] | None = None,
    fresh: Given | None = None,
    averages: Sequence[int] = (4, 16),
    draws: int = DRAWS,
    workers: int | Workers = 1,
    settings: Settings | None = None,
    label_map: Mapping[str, str] | None = None,
    watcher: EvaluationObserver | None = None,
    restart: bool = False,
    judged: bool = False,
    device: str | None = None,
) -> Evaluation:
    """Evaluate `models` (name to victim, to what `load_victim` takes, or to a function) on the same rows.

    The base is the model called `base` (or the first), the control the one called `retuned`. `limit` is the
    number of rows to attack, a sample with each class in its share, or with `first` the first ones; clean
    accuracy is measured on up to `clean_limit`. `averages` and `draws` say
    how often random models are asked during and after an attack. `checks` are names of illusion checks, all
    of them by default. `fresh` are rows of the same kind that were never published: a gain that is not there
    was learned by heart. A name may stand for another model inside a wrapper, as in `"overconfident:base"`.
    `device` is where models compute that are loaded here.

    Example:

        >>> models = {"base": "fake", "hot": "overconfident:base"}
        >>> evaluation = unfooled.evaluate(models, "reviews.csv", "deepwordbug", out="runs/both")
        >>> evaluation.verdicts["hot"].status
        'not decided'
    """
    base, control = roles(list(models), base, control)
    _require(checks, averages, draws, limit, clean_limit)
    dataset = as_dataset(data)
    recipe = load_recipe(recipe) if isinstance(recipe, str) else recipe
    victims = load_models(models)  # all of them now: a wrong path must not show up after hours
    asks_afresh = checks is None or STATE in checks
    untouched = {name: packed(victim) if asks_afresh else None for name, victim in victims.items()}
    unseen = None if fresh is None else as_dataset(fresh)
    labels = victims[base].labels
    settings = settings or Settings()
    aligned = dataset.aligned(labels, label_map)
    chosen = rows_for(aligned, fit_to_victim(recipe, victims[base]), limit, seed=settings.seed, first=first)
    n = chosen.rows
    bench = EvaluationSetup(
        recipe=recipe,
        settings=settings,
        rows=n,
        first=first,
        workers=workers,
        averages=tuple(sorted(averages)),
        draws=draws,
        watcher=watcher or EvaluationObserver(),
        restart=restart,
    )
    out = Path(out)
    order = [base, *([control] if control else []), *(name for name in models if name not in (base, control))]
    subjects: dict[str, EvaluatedModel] = {}
    scored: dict[str, list[Result]] = {}
    samples: dict[int, Result] = {}
    for name in order:
        victim = victims[name]
        aligned = dataset.aligned(victim.labels, label_map)
        subjects[name] = _attacked(bench, name, victim, aligned, out / name, list(samples.values()))
        subjects[name].defended = name not in (base, control)
        subjects[name].untouched = untouched[name]
        subjects[name].never_published = unseen.aligned(victim.labels, label_map) if unseen else None
        if name == base:
            samples = _premade(subjects[name])
            export(subjects[name].attack_run, out / PREMADE, force=True)
        if judged:
            with bench.watcher.wait(f"{name}: judging what was found"):
                judge_successes(subjects[name].attack_run)
        scored[name] = _scored(bench, subjects[name], samples, max(n, min(clean_limit, len(dataset))))
    for name in order:
        others = [subjects[rival] for rival in (base, control) if rival is not None and rival != name]
        run_checks(bench, subjects[name], others, checks)
    rivals = {
        name: Rival(name, subjects[name].survival, _before(scored[name]), _after(scored[name], samples))
        for name in order
    }
    reports = []
    for name in models:
        verdict = None
        if name not in (base, control):
            retuned = rivals[control] if control else None
            verdict = _verdict(subjects[name], rivals[name], rivals[base], retuned)
            write_remark(subjects[name].attack_run, "verdict", verdict.to_dict())
        role = "base" if name == base else "control" if name == control else "defended"
        reports.append(_report(subjects[name], role, scored[name], rivals[name], verdict))
    notes = () if control or len(models) == 1 else (MISSING_CONTROL,)
    return Evaluation(
        attack=bench.recipe.full_name,
        data=dataset.name,
        n=n,
        models=tuple(reports),
        notes=notes,
        out=out,
        rows=chosen.notice,
    )


def _require(
    checks: Sequence[str] | None, averages: Sequence[int], draws: int, limit: int | None, clean_limit: int
) -> None:
    require_checks(checks or ())
    if any(average < 2 for average in averages):
        raise UserError(f"averages={list(averages)} makes no sense", "an average takes at least 2 draws")
    if draws < 1 or draws % 2 == 0:
        raise UserError(f"draws={draws} makes no sense", "an odd number of draws decides by majority")
    if (limit is not None and limit < 1) or clean_limit < 1:
        raise DataError("a limit below 1 leaves nothing to evaluate", "limits are at least 1")


# -- one model -------------------------------------------------------------------------------------------


def _attacked(
    bench: EvaluationSetup, name: str, victim: Victim, data: Dataset, folder: Path, hard: Sequence[Result]
) -> EvaluatedModel:
    """Look at the model, attack it, and look again at the texts that came out."""
    with bench.watcher.wait(f"{name}: a look at the model"):
        looks, gradients = _looked_at(bench, victim, data, folder, hard)
    subject = EvaluatedModel(name, victim, data, folder, looks, gradients)
    keys = {example.key for example in bench.taken(data, bench.rows)}
    flags = bench.attack(subject, subject.facing, subject.attack_run, title="attack")
    if not looks.random:
        # A model may be random only where it is unsure: the attack has been there.
        again = [result for result in subject.results() if result.outcome in ATTACKED][:_ASKED_AGAIN]
        gap = same_again(
            victim, [_final(result) for result in again], [result.perturbed_probs for result in again]
        )
        if gap > _DIFFERENT:
            subject.looks = dataclasses.replace(looks, chance="by nature", spread=gap)
            _keep(folder, victim, subject.looks, gradients)
            flags = bench.judged(subject, subject.attack_run, keys=keys)
    subject.survival = Survival({key: flags[key] for key in sorted(flags) if key in keys})
    return subject


def _looked_at(
    bench: EvaluationSetup, victim: Victim, data: Dataset, folder: Path, hard: Sequence[Result]
) -> tuple[Looks, Gradients | None]:
    """What was found at the first look is kept: going on must not depend on chance."""
    try:
        kept = json.loads((folder / LOOK).read_text(encoding="utf-8"))
        if kept["victim"] == victim.fingerprint() and not bench.restart:
            found = kept["gradients"]
            return Looks.from_dict(kept["looks"]), Gradients.from_dict(found) if found else None
    except (OSError, ValueError, KeyError, TypeError):
        pass  # none yet, or of another version
    texts = [
        example.text().value
        for example in islice((example for example in data if not example.problem), _SHOWN)
    ]
    looks, gradients = (
        look(victim, texts, [_final(result) for result in hard]),
        look_at_gradients(victim, texts),
    )
    _keep(folder, victim, looks, gradients)
    return looks, gradients


def _keep(folder: Path, victim: Victim, looks: Looks, gradients: Gradients | None) -> None:
    content = {
        "victim": victim.fingerprint(),
        "looks": looks.to_dict(),
        "gradients": gradients.to_dict() if gradients else None,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / LOOK).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _premade(subject: EvaluatedModel) -> dict[int, Result]:
    """Successes of the attack on the base; of a random base, those that fresh draws confirm."""
    broken = {key for key, right in subject.survival.active.items() if right is False}
    return {
        result.key: result
        for result in subject.results()
        if result.outcome == "success" and result.key in broken
    }


def _scored(
    bench: EvaluationSetup, subject: EvaluatedModel, premade: Mapping[int, Result], rows: int
) -> list[Result]:
    """The model's answers to every row, and to the pre-made sample where the row has one."""
    samples = []
    for example in bench.taken(subject.data, rows):
        if example.problem:
            continue
        sample = Sample.of(example, subject.victim.labels[example.label])
        if made := premade.get(example.key):
            sample = dataclasses.replace(sample, perturbed=made.perturbed, edits=made.edits)
        samples.append(sample)
    folder = subject.folder / "premade"
    bench.shown(subject, samples, folder, title="clean and pre-made texts")
    keys = {sample.key for sample in samples}
    return [result for result in read_results(folder) if result.key in keys]


def _verdict(subject: EvaluatedModel, own: Rival, base: Rival, control: Rival | None) -> Verdict:
    found = [finding for check in subject.checks for finding in check.findings]
    if subject.gradients:
        found += subject.gradients.findings()
    return judge(
        subject.name,
        subject.survival,
        clean=own.clean,
        premade=own.premade,
        checks=subject.checks,
        findings=[*subject.looks.findings(), *found, *cautions(*_tried(subject))],
        base=base,
        control=control,
    )


def _report(
    subject: EvaluatedModel, role: str, scored: Sequence[Result], own: Rival, verdict: Verdict | None
) -> ModelReport:
    judged = [result for result in scored if result.outcome != "error"]
    truth, said = [result.label for result in judged], [decided(result.probs) for result in judged]
    table = confusion(truth, said, len(subject.victim.labels))
    low, high = f1_interval(table)
    results = [result for result in subject.results() if result.key in subject.survival.active]
    told = [result for result in results if result.outcome != "error"]
    attacked = [result for result in told if result.outcome != "skipped"]
    won = [result for result in attacked if result.outcome == "success"]
    warnings, tries = _tried(subject)
    summary = Run(subject.attack_run).summary()
    # The judge speaks of what the search heard, of all rows of the run: elsewhere the two do not compare.
    same = not subject.looks.random and summary.total == len(subject.survival.active)
    by_valid = summary.accuracy_under_valid_attack if same else None
    return ModelReport(
        name=subject.name,
        role=role,
        victim=subject.victim.name,
        clean=Rate.of(*counted(own.clean)),
        f1=float(macro_f1(table)),
        f1_low=low,
        f1_high=high,
        premade=Rate.of(*counted(own.premade)),
        active=Rate.of(*counted(subject.survival.active)),
        by_valid=by_valid,
        seen=Rate.of(sum(decided(result.perturbed_probs) == result.label for result in told), len(told)),
        worst=Rate.of(*counted(subject.survival.worst)),
        queries=Mean.of([result.queries for result in attacked if result.queries_known], COUNTS),
        words=Mean.of([len(result.edits) for result in won], COUNTS),
        share=Mean.of([result.share for result in won], COUNTS),
        errors=sum(right is None for right in subject.survival.worst.values()),
        chance=subject.looks.chance,
        checks=tuple(subject.checks),
        verdict=verdict,
        tries=tries,
        cautions=cautions(warnings, tries),
        classes=_by_class(subject, told),
        abstained=Rate.of(sum(decided(result.perturbed_probs) == NO_CLASS for result in told), len(told)),
    )


def _by_class(subject: EvaluatedModel, results: Sequence[Result]) -> tuple[Recall, ...]:
    """Of each class the rows that are right before the attack and under it, as fresh draws judge it."""
    found = []
    for number, name in enumerate(subject.victim.labels):
        own = [result for result in results if result.label == number]
        before = sum(decided(result.probs) == number for result in own)
        flags = {result.key: subject.survival.active[result.key] for result in own}
        found.append(Recall(name, Rate.of(before, len(own)), Rate.of(*counted(flags)), bool(own)))
    return tuple(found)


def _tried(subject: EvaluatedModel) -> tuple[tuple[str, ...], Tries]:
    """Warnings about the attack on a model, and what it tried on the rows of this evaluation."""
    summary = Run(subject.attack_run).summary()
    rows = [result for result in subject.results() if result.key in subject.survival.active]
    return summary.warnings, Tries.of(rows, summary.tries.bound)


def _before(scored: Sequence[Result]) -> Flags:
    return {
        result.key: None if result.outcome == "error" else decided(result.probs) == result.label
        for result in scored
    }


def _after(scored: Sequence[Result], premade: Mapping[int, Result]) -> Flags:
    return {
        result.key: None if result.outcome == "error" else decided(result.perturbed_probs) == result.label
        for result in scored
        if result.key in premade
    }


def _final(result: Result) -> str | tuple[str, ...]:
    texts = [content for _, content in result.fields]
    texts[result.field] = result.perturbed
    return texts[0] if len(texts) == 1 else tuple(texts)
