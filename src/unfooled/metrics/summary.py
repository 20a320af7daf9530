"""What a run says, in numbers that carry their uncertainty."""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from unfooled.core.result import ATTACKED, NO_CLASS, OUTCOMES, UNREAD, Outcome, Result, decided
from unfooled.metrics.tally import Tally
from unfooled.metrics.unread import CutText, CutTexts, Unread
from unfooled.rates import confusion, f1_interval, macro_f1, mean_interval, wilson
from unfooled.runs.attack import FEW_EDITS
from unfooled.runs.file import JUDGE, REMARK, RunFile

if TYPE_CHECKING:
    from unfooled.metrics.bleu import ScoreChange
    from unfooled.metrics.validity.accuracy import Validity

Decisions: TypeAlias = Mapping[tuple[int, int], int]  # how often the first class was called the second

_TOP = 10
_NOTES = 3
_MOST_PAIRS = 100_000  # counted at a time; the rarest are forgotten beyond that
_MOST_MESSAGES = 1000
COUNTS = (0.0, math.inf)  # what a count can be; words changed per word may be more than one
SHARES = (0.0, 1.0)
PERCENTILES = (10, 25, 50, 75, 90, 99)
_ROW = re.compile(r"^(?:line \d+ of the file|row \d+ of the data): ")


@dataclass(frozen=True, slots=True)
class Rate:
    """A share of `n`, with its 95 % interval; nan where `n` is 0."""

    value: float
    low: float
    high: float
    n: int
    doubt: tuple[float, float] | None = None  # what a judge that has a say in it leaves possible by itself

    @classmethod
    def of(cls, successes: float, n: int) -> Rate:
        return cls(successes / n if n else math.nan, *wilson(successes, n), n)

    @classmethod
    def f1(cls, decisions: Decisions) -> Rate:
        """Macro F1 of how often each class (first) was called each (second): no share, but a number between
        0 and 1 with an interval like one."""
        true, predicted = ([pair[side] for pair in decisions] for side in (0, 1))
        classes = 1 + max((*true, *predicted), default=0)
        table = confusion(true, predicted, classes, list(decisions.values()))
        n = int(table.sum())
        return cls(float(macro_f1(table)) if n else math.nan, *f1_interval(table), n)

    def to_dict(self) -> dict[str, Any]:
        doubt = {} if self.doubt is None else {"doubt": list(self.doubt)}
        return {**_numbers(self), **doubt}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Rate:
        value, low, high = (
            math.nan if stored[name] is None else stored[name] for name in ("value", "low", "high")
        )
        doubt = stored.get("doubt")
        return cls(value, low, high, stored["n"], None if doubt is None else (doubt[0], doubt[1]))


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean and a median over `n`, with the mean's 95 % interval; nan where `n` is 0."""

    value: float
    low: float
    high: float
    median: float
    n: int

    @classmethod
    def of(cls, values: Sequence[float] | Tally, within: tuple[float, float] = (-math.inf, math.inf)) -> Mean:
        """`within` are the least and the most that a value can be."""
        if not values:
            return cls(math.nan, math.nan, math.nan, math.nan, 0)
        if isinstance(values, Tally):
            numbers, times = values.counted
            ends = mean_interval(numbers, times=times, within=within)
            mean = float((numbers * times).sum() / len(values))
            return cls(mean, *ends, values.quantile(0.5), len(values))
        sample = np.asarray(values, dtype=np.float64)
        ends = mean_interval(sample, within=within)
        return cls(float(sample.mean()), *ends, float(np.median(sample)), len(values))

    def to_dict(self) -> dict[str, Any]:
        return _numbers(self)


@dataclass(frozen=True, slots=True)
class Substitution:
    before: str  # empty for an inserted word
    after: str  # empty for a deleted one
    count: int


@dataclass(frozen=True, slots=True)
class ErrorNote:
    message: str
    count: int
    key: int  # of the first example it happened to


@dataclass(frozen=True, slots=True)
class Recall:
    """Of the rows of one class, the share that is decided so: before the attack and under it."""

    name: str
    before: Rate
    under_attack: Rate
    attacked: bool  # its rows were attacked; else `under_attack` says nothing

    def to_dict(self) -> dict[str, Any]:
        return {
            "class": self.name,
            "before": self.before.to_dict(),
            "under_attack": self.under_attack.to_dict() if self.attacked else None,
        }


@dataclass(frozen=True, slots=True)
class Tries:
    """How many examples withstood an attack that could hardly try anything.

    Counted are edited texts that the victim was asked about and that could have become the result. A success
    ends an attack early, so only examples that withstood it can be among the few.
    """

    n: int = 0  # attacked examples whose edits were counted; 0 in runs that did not count them
    few: int = 0  # withstood fewer than `bound` edits
    none: int = 0  # of these, withstood nothing at all
    bound: int = FEW_EDITS

    @classmethod
    def of(cls, results: Iterable[Result], bound: int) -> Tries:
        attacked = [result for result in results if result.outcome in ATTACKED and result.tried is not None]
        withstood = [result.tried or 0 for result in attacked if result.outcome == "failure"]
        few = sum(tried < bound for tried in withstood)
        return cls(len(attacked), few, withstood.count(0), bound)

    @property
    def mostly_none(self) -> bool:
        """Nothing could be tried on most examples: whatever the rates say, it is no robustness."""
        return 2 * self.none > self.n

    def __str__(self) -> str:
        more = f", {self.none} of them none at all" if self.bound > 1 else ""
        few = f"{self.few} of {self.n} attacked examples"
        return f"on {few} fewer than {_edits(self.bound)} could be tried{more}"

    def to_dict(self) -> dict[str, Any]:
        return {"n": self.n, "fewer_than": self.bound, "few": self.few, "none": self.none}


def _edits(number: int) -> str:
    return f"{number} edit{'' if number == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class Summary:
    """Errors are in no rate: an example that could not be attacked says nothing about robustness.

    Where the rows of one class were attacked, accuracies count these rows, and there is no macro F1.
    """

    counts: dict[Outcome, int]
    accuracy_before: Rate  # right before the attack, of all without errors
    accuracy_under_attack: Rate  # still right after it, of the same
    f1_before: Rate  # macro F1 of the same
    f1_under_attack: Rate
    success_rate: Rate  # of those that were attacked
    abstained_before: Rate  # ties between classes, of all without errors
    abstained_under_attack: Rate
    perturbed_share: Mean  # of the successes
    words_changed: Mean  # of the successes
    queries: Mean  # of all attacked, broken or not, whose queries are known
    query_percentiles: dict[int, float]  # of the same; see PERCENTILES
    similarity: Mean  # of the successes that have one
    substitutions: tuple[Substitution, ...]  # the most frequent ones of the successes, in lower case
    error_notes: tuple[ErrorNote, ...]  # the most frequent ones
    draws: Mean  # share of random draws that succeed, per attacked example; of attacks that draw many times
    unreadable: Rate  # other decisions about texts that nobody can read: never successes; see `disguise.py`
    outputs: tuple[ScoreChange, ...] = ()  # BLEU and chrF before and under attack, of a victim that writes
    writes: bool = False  # the victim writes text: there is no accuracy
    recalls: tuple[Recall, ...] = ()  # one per class
    only: str = ""  # the class whose rows were attacked, where it was one
    tries: Tries = Tries()
    unread: Unread | None = None  # texts that are longer than the model reads
    warnings: tuple[str, ...] = ()  # of the look at the texts before the attack (see `coverage.py`)
    validity: Validity | None = None  # of a run that was judged (`unfooled judge`)
    fitting: int = 0  # queries that a surrogate was fitted on before the attack; in no mean

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def attacked(self) -> int:
        return sum(self.counts[outcome] for outcome in ATTACKED)

    @property
    def errors(self) -> int:
        return self.counts["error"]

    @property
    def cautions(self) -> tuple[str, ...]:
        """What must be said beside these numbers: else they read as more robust than they are."""
        told = cautions(self.warnings, self.tries)
        return (*told, str(self.unread)) if self.unread else told

    def _repr_html_(self) -> str:
        from unfooled.metrics.notebook import summary_html

        return summary_html(self)

    @property
    def accuracy_under_valid_attack(self) -> Rate | None:
        """Still right when a success counts as far as a reader accepts its text; None: nobody judged."""
        if self.validity is None:
            return None
        return Rate(*self.validity.accuracy, self.validity.n, self.validity.doubt)

    def recall_of(self, name: str) -> Recall | None:
        return next((recall for recall in self.recalls if recall.name.casefold() == name.casefold()), None)

    def to_dict(self) -> dict[str, Any]:
        return {
            "total": self.total,
            "attacked": self.attacked,
            "errors": self.errors,
            "counts": dict(self.counts),
            "accuracy_before": self.accuracy_before.to_dict(),
            "accuracy_under_attack": self.accuracy_under_attack.to_dict(),
            "macro_f1_before": self.f1_before.to_dict(),
            "macro_f1_under_attack": self.f1_under_attack.to_dict(),
            "success_rate": self.success_rate.to_dict(),
            "abstained_before": self.abstained_before.to_dict(),
            "abstained_under_attack": self.abstained_under_attack.to_dict(),
            "perturbed_share": self.perturbed_share.to_dict(),
            "words_changed": self.words_changed.to_dict(),
            "queries": {
                **self.queries.to_dict(),
                **{f"p{at}": _number(value) for at, value in self.query_percentiles.items()},
            },
            "similarity": self.similarity.to_dict(),
            "fitting_queries": self.fitting,
            "draws": self.draws.to_dict(),
            "unreadable_flips": self.unreadable.to_dict(),
            "only": self.only or None,
            "recalls": [recall.to_dict() for recall in self.recalls],
            "tries": self.tries.to_dict(),
            "unread": self.unread.to_dict() if self.unread else None,
            "warnings": list(self.cautions),
            "validity": None if self.validity is None else self.validity.to_dict(),
            "outputs": [asdict(output) for output in self.outputs],
            "substitutions": [
                {"before": s.before, "after": s.after, "count": s.count} for s in self.substitutions
            ],
            "error_notes": [{"message": e.message, "count": e.count, "key": e.key} for e in self.error_notes],
        }


def cautions(warnings: Sequence[str], tries: Tries) -> tuple[str, ...]:
    if not tries.mostly_none:
        return tuple(warnings)
    nothing = f"the attack could try nothing on {tries.none} of {tries.n} examples"
    return (*warnings, f"{nothing}: that these withstood it says nothing about robustness")


def summarise(run: RunFile) -> Summary:
    """One pass over the results. Of numbers that repeat, nothing more is kept."""
    counts: dict[Outcome, int] = dict.fromkeys(OUTCOMES, 0)
    shares, changed, queries, similarities, draws = (Tally() for _ in range(5))
    pairs: Counter[tuple[str, str]] = Counter()
    notes: dict[str, list[int]] = {}
    before: Counter[tuple[int, int]] = Counter()  # true and decided class
    after: Counter[tuple[int, int]] = Counter()
    writes = run.writes
    header = run.header
    only = only_class(run)
    judged = REMARK + JUDGE in header
    fallen = array("q")  # keys, of a run that was judged
    few = none = counted = hidden = hidden_flips = 0
    bound = int((header.get("environment") or {}).get("few_edits", FEW_EDITS))
    cut = CutTexts()
    for result in run.results():
        counts[result.outcome] += 1
        facts = dict(result.facts)
        if UNREAD in facts:
            cut.add(CutText(result.key, result.words, facts[UNREAD]))
        if not writes and result.outcome != "error":
            label, said, said_after = result.label, decided(result.probs), decided(result.perturbed_probs)
            before[label, said] += 1
            after[label, said_after] += 1
            if judged and said == label != said_after and only in (-1, label):
                fallen.append(result.key)
        if result.outcome in ATTACKED:
            if result.queries_known:
                queries.add(result.queries)
            if result.tried is not None:
                counted += 1
                few += result.outcome == "failure" and result.tried < bound
                none += result.outcome == "failure" and result.tried == 0
            if facts.get("draws"):
                draws.add(facts["draws_won"] / facts["draws"])
            hidden += bool(facts.get("unreadable"))
            hidden_flips += bool(facts.get("unreadable_flips"))
        if result.outcome == "success":
            shares.add(result.share)
            changed.add(len(result.edits))
            if result.similarity is not None:
                similarities.add(result.similarity)
            _count_pairs(pairs, result)
        elif result.outcome == "error":
            _count_note(notes, result)
    attacked = sum(counts[outcome] for outcome in ATTACKED)
    scored = only < 0  # one class alone has no F1 over all of them
    first, then = (_right(decisions, only) for decisions in (before, after))
    return Summary(
        counts=counts,
        accuracy_before=Rate.of(*first),
        accuracy_under_attack=Rate.of(*then),
        f1_before=Rate.f1(before) if scored else Rate.of(0, 0),
        f1_under_attack=Rate.f1(after) if scored else Rate.of(0, 0),
        success_rate=Rate.of(counts["success"], attacked),
        abstained_before=_abstained(before),
        abstained_under_attack=_abstained(after),
        perturbed_share=Mean.of(shares, COUNTS),
        words_changed=Mean.of(changed, COUNTS),
        queries=Mean.of(queries, COUNTS),
        query_percentiles={at: queries.quantile(at / 100) for at in PERCENTILES} if queries else {},
        similarity=Mean.of(similarities, (-1.0, 1.0)),
        substitutions=_top(pairs),
        error_notes=tuple(
            ErrorNote(message, count, key)
            for message, (count, key) in sorted(notes.items(), key=lambda item: (-item[1][0], item[1][1]))[
                :_NOTES
            ]
        ),
        draws=Mean.of(draws, SHARES),
        unreadable=Rate.of(hidden_flips, hidden),
        outputs=_outputs(run) if writes else (),
        writes=writes,
        recalls=_recalls(run.labels, _only(header), before, after),
        only=_only(header),
        tries=Tries(counted, few, none, bound),
        unread=cut.unread(sum(counts.values())),
        warnings=_warnings(header),
        fitting=int((run.counters().get("fitting") or {}).get("asked", 0)),
        validity=_validity(run, then, fallen) if judged else None,
    )


def _validity(run: RunFile, standing: tuple[int, int], fallen: Sequence[int]) -> Validity | None:
    """How much of the accuracy under attack was lost to texts that a reader accepts."""
    from unfooled.metrics.validity.accuracy import validity_of

    right, n = standing
    return validity_of(run, right, list(fallen), n)


def _outputs(run: RunFile) -> tuple[ScoreChange, ...]:
    from unfooled.metrics.outputs import compare_outputs

    return compare_outputs(run.results())


def only_class(run: RunFile) -> int:
    """The number of the class whose rows alone were attacked; -1 where rows of every class were."""
    wanted = _only(run.header).casefold()
    return next((at for at, name in enumerate(run.labels) if wanted and name.casefold() == wanted), -1)


def _only(header: Mapping[str, Any]) -> str:
    """The class of an attack on one class; empty where rows of every class were attacked."""
    recipe = (header.get("identity") or {}).get("recipe")
    goal = recipe.get("goal") if isinstance(recipe, Mapping) else None
    is_one = isinstance(goal, Mapping) and str(goal.get("part", "")).endswith(":OnlyClass")
    return str(goal["name"]) if is_one and goal else ""


def _warnings(header: Mapping[str, Any]) -> tuple[str, ...]:
    """Of the first command and of those that went on with the run."""
    environments = [header.get("environment"), *(header.get("resumes") or ())]
    found = (
        line for environment in environments if environment for line in environment.get("warnings") or ()
    )
    return tuple(dict.fromkeys(map(str, found)))


def _right(decisions: Decisions, only: int) -> tuple[int, int]:
    """Right decisions and all of them; of one class where that alone counts."""
    counted = [(pair, times) for pair, times in decisions.items() if only in (-1, pair[0])]
    return sum(times for (own, said), times in counted if own == said), sum(times for _, times in counted)


def _abstained(decisions: Decisions) -> Rate:
    none = sum(times for (_, said), times in decisions.items() if said == NO_CLASS)
    return Rate.of(none, sum(decisions.values()))


def _recalls(labels: Sequence[str], only: str, before: Decisions, after: Decisions) -> tuple[Recall, ...]:
    return tuple(
        Recall(
            label,
            Rate.of(*_right(before, number)),
            Rate.of(*_right(after, number)),
            only.casefold() in ("", label.casefold()),
        )
        for number, label in enumerate(labels)
    )


def _count_pairs(pairs: Counter[tuple[str, str]], result: Result) -> None:
    pairs.update((e.before.lower(), e.after.lower()) for e in result.edits)
    if len(pairs) > _MOST_PAIRS:
        kept = pairs.most_common(_MOST_PAIRS // 2)
        pairs.clear()
        pairs.update(dict(kept))


def _count_note(notes: dict[str, list[int]], result: Result) -> None:
    message = _ROW.sub("", result.note) or "no reason given"
    if message in notes:
        notes[message][0] += 1
    elif len(notes) < _MOST_MESSAGES:
        notes[message] = [1, result.key]


def _top(pairs: Counter[tuple[str, str]]) -> tuple[Substitution, ...]:
    ranked = sorted(pairs.items(), key=lambda item: (-item[1], item[0]))[:_TOP]
    return tuple(Substitution(before, after, count) for (before, after), count in ranked)


def _numbers(figure: Rate | Mean) -> dict[str, Any]:
    """Its numbers by name, in their order; what is not known is None, which JSON has a word for."""
    values = {field.name: getattr(figure, field.name) for field in fields(figure)}
    return {name: _number(value) for name, value in values.items() if isinstance(value, int | float)}


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
