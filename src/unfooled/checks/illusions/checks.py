"""The checks: each attacks what survived so far, in a way that an illusion of robustness does not survive."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from unfooled.checks.illusions.attacking import Bench, Subject, counts, read_results
from unfooled.checks.illusions.other_order import counterpart, needs_gradients
from unfooled.checks.illusions.survivors import CheckResult, Flags
from unfooled.checks.illusions.wrappers import Averaged, Guided, Tempered
from unfooled.checks.replay import Sample
from unfooled.core.result import Result
from unfooled.core.victim import Victim
from unfooled.data.labels import match_labels
from unfooled.errors import DataError
from unfooled.metrics.statistics import mcnemar

Results: TypeAlias = Mapping[int, Result]  # by key

CHECKS = ("temperature", "averages", "gradients", "transfer", "guided")
BUDGETS = (50, 200)
COMPARED = 100  # examples on which white box and black box are compared
_SWEEP = (1.0, 4.0, 0.25)  # times the temperature that gives a median margin of 2
_CLEAR = 0.01  # p-value below which a white box is called misled
_SURE = 0.999  # below this confidence six decimals resolve a two-class score: re-scaling changes nothing


def run_checks(
    bench: Bench, subject: Subject, others: Sequence[Subject], chosen: Sequence[str] = CHECKS
) -> None:
    """Run the chosen checks in order. `others` are the base and the control, as far as they are not this one.

    What is found is left in `subject.standing` and `subject.checks`.
    """
    _budget(subject)
    steps: dict[str, Callable[[], None]] = {
        "temperature": lambda: _temperature(bench, subject),
        "averages": lambda: _averages(bench, subject),
        "gradients": lambda: _gradients(bench, subject),
        "transfer": lambda: _transfer(bench, subject, others),
        "guided": lambda: _guided(bench, subject, others),
    }
    for name in CHECKS:
        if name in chosen:
            steps[name]()
        else:
            _unneeded(subject, name, name, "left out by --checks")


def _note(subject: Subject, name: str, words: str, found: Flags, note: str = "", *findings: str) -> None:
    broken = subject.standing.record(name, found)
    subject.checks.append(
        CheckResult(
            name=name,
            words=words,
            tried=len(found),
            broken=broken,
            errors=counts(found),
            note=note,
            findings=findings,
        )
    )


def _unneeded(subject: Subject, name: str, words: str, note: str, *findings: str) -> None:
    subject.checks.append(CheckResult(name=name, words=words, note=note, findings=findings))


def _budget(subject: Subject) -> None:
    """Does the attack grow with its budget? Read from the queries that each success took."""
    attacked = [one for one in subject.results() if one.key in subject.standing.active]
    attacked = [one for one in attacked if one.outcome in ("success", "failure")]
    spent = [one.queries for one in attacked if one.outcome == "success"]
    shares = [f"{budget}: {_share(sum(n <= budget for n in spent), len(attacked))}" for budget in BUDGETS]
    shares.append(f"any number: {_share(len(spent), len(attacked))}")
    _unneeded(subject, "budget", "more queries", f"flipped with so many queries: {', '.join(shares)}")


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "–"


def _temperature(bench: Bench, subject: Subject) -> None:
    """The attack on re-scaled logits: a score that is 1.000000 everywhere shows no way, its logit does."""
    name, words = "temperature", "re-scaled scores"
    looks = subject.looks
    if looks.decimals is not None:
        _unneeded(subject, name, words, "rounded scores cannot be re-scaled; see the guided attack")
        return
    keys = subject.standing.survivors()
    if len(subject.victim.labels) == 2:
        sure = {one.key for one in subject.results() if max(one.probs, default=0.0) >= _SURE}
        keys = [key for key in keys if key in sure]
    if not keys:
        _unneeded(subject, name, words, "no survivor has a score that re-scaling could change")
        return
    for factor in _SWEEP:
        keys = [key for key in subject.standing.survivors() if key in set(keys)]
        if not keys:
            return
        degree = looks.temperature * factor
        found = bench.attack(
            subject,
            Tempered(subject.facing, degree),
            subject.folder / "checks" / f"temperature-x{factor:g}",
            title=f"scores at temperature {degree:.3g}",
            keys=keys,
        )
        _note(subject, f"{name} ×{factor:g}", words, found, f"logits divided by {degree:.3g}")


def _averages(bench: Bench, subject: Subject) -> None:
    """Expectation over transformation: a search that averages over draws is not confused by one."""
    name, words = "averages", "averaged queries (EOT)"
    if not subject.looks.random:
        _unneeded(subject, name, words, "it answers without chance")
        return
    for draws in bench.averages:
        keys = subject.standing.survivors()
        if not keys:
            return
        found = bench.attack(
            subject,
            Averaged(subject.victim, draws=draws),
            subject.folder / "checks" / f"average-{draws}",
            title=f"queries averaged over {draws} draws",
            keys=keys,
        )
        _note(subject, f"{name} {draws}", words, found, f"each score is the mean of {draws} draws or more")


def _gradients(bench: Bench, subject: Subject) -> None:
    """White box against black box on the same examples, and what the gradients themselves look like."""
    white = needs_gradients(bench.recipe)
    name = "black-box order" if white else "white-box order"
    words = "the same attack in black-box order" if white else "the same attack in the order of gradients"
    findings = subject.gradients.findings() if subject.gradients else []
    other = counterpart(bench.recipe)
    if subject.gradients is None and not white:
        _unneeded(subject, name, words, "it shows no gradients")
        return
    if other is None:
        _unneeded(subject, name, words, "this attack has no order of words to change", *findings)
        return
    attacked = [one.key for one in subject.results() if one.outcome in ("success", "failure")]
    few = [key for key in attacked if key in subject.standing.active][:COMPARED]
    keys = sorted({*few, *subject.standing.survivors()})
    if not keys:
        _unneeded(subject, name, words, "it was right on no example", *findings)
        return
    folder = subject.folder / "checks" / name.replace(" ", "-")
    found = bench.attack(subject, subject.facing, folder, title=name, recipe=other, keys=keys)
    # Survivors alone would favour the check: the two are compared on examples that were not chosen by either.
    fair = {key: found[key] for key in few if key in found}
    here = {one.key: one for one in read_results(folder) if one.key in fair}
    given = {one.key: one for one in subject.results() if one.key in fair}
    blind, seeing = (here, given) if white else (given, here)
    if subject.gradients:
        findings = subject.gradients.findings(useful=_points_right(blind, seeing))
    _note(subject, name, words, found, _compared(blind, seeing), *findings, *_weaker(subject, fair, white))


def _points_right(blind: Results, seeing: Results) -> bool:
    """Where both succeed, the white box changes no more words: its order is as good."""
    both = [
        (len(blind[key].edits), len(one.edits))
        for key, one in seeing.items()
        if key in blind and one.outcome == blind[key].outcome == "success"
    ]
    return bool(both) and sum(there for _, there in both) <= sum(here for here, _ in both)


def _compared(blind: Results, seeing: Results) -> str:
    """Success within budgets, read from the queries that each success took."""
    parts = []
    for budget in (*BUDGETS, None):
        first, second = (
            sum(
                one.outcome == "success" and (budget is None or one.queries <= budget)
                for one in table.values()
            )
            / max(1, len(blind))
            for table in (blind, seeing)
        )
        limit = f"{budget} queries" if budget else "any number"
        parts.append(f"{limit}: black box {first:.0%}, white box {second:.0%}")
    return f"flipped of {len(blind)} with " + "; ".join(parts)


def _weaker(subject: Subject, found: Flags, white: bool) -> list[str]:
    """A white box that breaks clearly less than a black box has been misled."""
    pairs = [
        (bool(subject.standing.active[key]), right)
        for key, right in found.items()
        if right is not None and subject.standing.active[key] is not None
    ]
    lost = sum(given and not here for given, here in pairs)
    gained = sum(here and not given for given, here in pairs)
    blind, seeing = (lost, gained) if white else (gained, lost)
    if blind > seeing and mcnemar(blind, seeing) < _CLEAR:
        return [
            f"its gradients mislead: the black box breaks {blind} examples that the white box does not, "
            f"the white box {seeing} that the black box does not"
        ]
    return []


def _transfer(bench: Bench, subject: Subject, others: Sequence[Subject]) -> None:
    """Texts that fooled the undefended and the retuned model, shown to this one."""
    for other in others:
        words = f"samples made on {other.name}"
        name = f"transfer from {other.name}"
        made = {one.key: one for one in other.results() if one.outcome == "success"}
        samples = [
            Sample(
                example.key,
                subject.victim.labels[example.label],
                made[example.key].fields,
                made[example.key].field,
                made[example.key].perturbed,
                made[example.key].edits,
            )
            for example in subject.data
            if example.key in made and subject.standing.active.get(example.key)
        ]
        folder = subject.folder / "checks" / f"transfer-{other.name}"
        found = bench.shown(subject, samples, folder, title=name)
        if found:
            _note(subject, name, words, found)
        else:
            _unneeded(subject, name, words, "no sample of it belongs to an example that survived")


def _guided(bench: Bench, subject: Subject, others: Sequence[Subject]) -> None:
    """A search led by another model's scores, won where this model's decision falls."""
    if not others:
        _unneeded(subject, "guided", "an attack led by another model", "there is no other model")
        return
    guide = others[0]
    name, words = f"guided by {guide.name}", f"an attack led by the scores of {guide.name}"
    keys = subject.standing.survivors()
    if not keys:
        _unneeded(subject, name, words, "nothing survived so far")
        return
    try:
        match = match_labels(subject.victim.labels, guide.victim.labels)
    except DataError:
        _unneeded(subject, name, words, "the classes of the two models have different names")
        return
    order = [match[label] for label in subject.victim.labels]
    inner: Victim = subject.facing
    if subject.looks.random:
        inner = Averaged(subject.victim, draws=max(bench.averages, default=1))
    victim = Guided(inner, Tempered(guide.facing, guide.looks.temperature), order)
    folder = subject.folder / "checks" / f"guided-{guide.name}"
    found = bench.attack(subject, victim, folder, title=name, keys=keys)
    _note(subject, name, words, found)
