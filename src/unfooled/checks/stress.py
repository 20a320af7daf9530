"""The worst case: a suite of attacks, cheapest first, each on what still stands.

Every attack is a run of its own in one folder, beside `stress.json`, which holds the result. The same call
goes on where it stopped; what is finished is not asked again.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import unfooled
from unfooled.checks.asked_before import AskedBefore
from unfooled.checks.illusions.attacking import (
    EvaluatedModel,
    EvaluationObserver,
    EvaluationSetup,
    read_results,
    value_of,
)
from unfooled.checks.illusions.diagnosis import Looks, look, same_again
from unfooled.checks.illusions.fresh_process import packed
from unfooled.checks.illusions.state import PAIRS, edited_pair, finding_of, moved_answers, right_afresh
from unfooled.checks.illusions.survivors import Flags
from unfooled.checks.illusions.wrappers import Averaged
from unfooled.checks.paying import paying, purse_for
from unfooled.checks.replay import Sample
from unfooled.checks.suites import CHANGED, Suite, fitting_suite, load_suite
from unfooled.checks.worst_case import (
    FILE,
    AttackedRow,
    AttackShare,
    Doubts,
    State,
    Stress,
    broken_alone,
    class_shares,
    clean_rate,
    first_broken,
    read_state,
    valid_rate,
    worst_rate,
    write_state,
)
from unfooled.core.recipe import Recipe
from unfooled.core.result import ATTACKED, Example, Result
from unfooled.core.session import (
    Settings,
    fit_recipe,
    open_inside,
    require_capabilities,
    require_resources,
)
from unfooled.core.victim import CLASSIFICATION, TextValue, Victim, task_of
from unfooled.data.dataset import Dataset
from unfooled.data.loading import Given, as_dataset
from unfooled.errors import (
    CapabilityError,
    DataError,
    MissingExtraError,
    ResourceError,
    RunFileError,
    UnknownNameError,
    UserError,
    VictimError,
)
from unfooled.metrics.validity.accuracy import VALID as VALID_MEASURE
from unfooled.metrics.validity.accuracy import draws_of
from unfooled.metrics.validity.regression import Values
from unfooled.plugins import registry
from unfooled.runs.attack import PREFLIGHT_EXAMPLES, Run
from unfooled.runs.file import RunFile
from unfooled.runs.identity import differences
from unfooled.runs.row_choice import take, taken
from unfooled.runs.task import task_for
from unfooled.victims.loading import GivenVictim, as_victim

if TYPE_CHECKING:
    from unfooled.runs.caps import Caps
    from unfooled.runs.workers.where import Workers

AVERAGED = 4  # draws of a random model behind every answer that an attack hears
DRAWS = 15  # fresh draws of a random model that judge a text
_DIFFERENT = 1e-4
_ASKED_AGAIN = 64
# An attack that cannot be done here is left out and named; anything else stops the suite.
_LEAVES_OUT = (CapabilityError, DataError, MissingExtraError, ResourceError, UnknownNameError)

# The folder of a run → the probability that the text found for a key is valid; None where nobody judged it.
Validity: TypeAlias = Callable[[Path], Mapping[int, float] | None]


def stress(
    victim: GivenVictim,
    data: Given,
    suite: Suite | str | None = None,
    *,
    out: str | Path | None = None,
    limit: int | None = None,
    first: bool = False,
    every: bool = False,
    without: Sequence[str] = (),
    everywhere: Mapping[str, str] | None = None,
    workers: int | Workers = 1,
    settings: Settings | None = None,
    label_map: Mapping[str, str] | None = None,
    draws: int = DRAWS,
    validity: Validity | None = None,
    watcher: EvaluationObserver | None = None,
    restart: bool = False,
    caps: Caps | None = None,
) -> Stress:
    """Attack a model with a suite and say how much of its accuracy is left in the worst case.

    Without `suite` it is `standard` for a model that gives probabilities and `decisions` for one that only
    decides. A row stands if it was right at first and no attack broke it; an error is never robustness. With
    `every`, each attack attacks all rows that were right, not only what still stands: dearer, and tells what
    each attack breaks alone. `without` names attacks to leave out; `everywhere` sets parts of all attacks
    that have them, such as `{"masked_lm": "trigram"}`. A model that answers at random is attacked with
    averaged queries, and judged by `draws` fresh ones. Without `out` the runs are thrown away. `caps` bound
    what all of it may cost together, over all calls on the same folder: `CapReachedError` says that it
    stopped there.

    Example:

        >>> slow = ["textfooler@textattack", "bert-attack@textattack"]
        >>> slow += ["decision-learner@quick", "bae-r@textattack", "bae-r-and-i@cosine"]
        >>> result = unfooled.stress("fake", "reviews.csv", without=slow, out="runs/worst")
        >>> result.suite, [attack.attack for attack in result.attacks]
        ('standard@3+changed', ['typos@random', 'bad-reorderings@textattack', 'deepwordbug@paper'])
    """
    if out is None:
        with tempfile.TemporaryDirectory(prefix="unfooled-") as scratch:
            found = stress(
                victim,
                data,
                suite,
                out=scratch,
                limit=limit,
                first=first,
                every=every,
                without=without,
                everywhere=everywhere,
                workers=workers,
                settings=settings,
                label_map=label_map,
                draws=draws,
                validity=validity,
                watcher=watcher,
                caps=caps,
            )
        return replace(found, out="")
    victim = paying(as_victim(victim), purse_for(caps, Path(out), workers))
    if task_of(victim.capabilities) != CLASSIFICATION:
        raise VictimError(f"{victim.name} writes text, and a suite is for models that choose a class")
    dataset = as_dataset(data, labels=victim.labels).aligned(victim.labels, label_map)
    if limit is not None and limit < 1:
        raise DataError(f"limit={limit} leaves nothing to attack", "limit is at least 1")
    if draws < 1 or draws % 2 == 0:
        raise UserError(f"draws={draws} makes no sense", "an odd number of draws decides by majority")
    chosen = _chosen_suite(victim, suite, without, everywhere)
    settings = settings or Settings()
    work = _Work(
        suite=chosen,
        victim=victim,
        data=dataset,
        rows=len(dataset) if limit is None else min(limit, len(dataset)),
        first=first,
        everywhere=dict(everywhere or {}),
        every=every,
        folder=Path(out),
        settings=settings,
        workers=workers,
        draws=draws,
        validity=validity or _registered_validity,
        watcher=watcher or EvaluationObserver(),
    )
    if restart:
        work.throw_away()
    return work.run()


def _chosen_suite(
    victim: Victim, suite: Suite | str | None, without: Sequence[str], everywhere: Mapping[str, str] | None
) -> Suite:
    if suite is None:
        suite = fitting_suite(victim)
    elif isinstance(suite, str):
        suite = load_suite(suite)
    suite = suite.without(*without)
    changed = bool(everywhere) and not suite.version.endswith(CHANGED)
    return replace(suite, version=suite.version + CHANGED) if changed else suite


def _registered_validity(run: Path) -> Mapping[int, float] | None:
    """What a judge of validity has said of a run, where one is registered (kind `validity`, name `run`)."""
    if "run" not in registry.names("validity"):
        return None
    judged: Mapping[int, float] | None = registry.load("validity", "run")(run)
    return judged


@dataclass(slots=True, kw_only=True)
class _Work:
    """One call: what was asked for, and what is known so far."""

    suite: Suite
    victim: Victim
    data: Dataset
    rows: int
    first: bool
    everywhere: dict[str, str]
    every: bool
    folder: Path
    settings: Settings
    workers: int | Workers
    draws: int
    validity: Validity
    watcher: EvaluationObserver
    judged: bool = False  # whether somebody said of a run which of its texts are valid
    state: dict[str, Any] = field(default_factory=dict)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    nearest: dict[int, float] = field(default_factory=dict)  # the lowest score of each row's own class so far
    charged: set[int] = field(default_factory=set)  # rows whose unedited text is counted
    cautions: list[str] = field(default_factory=list)  # what the runs say beside their numbers

    # -- the folder ------------------------------------------------------------------------------------

    def throw_away(self) -> None:
        """The runs that an earlier call has listed, and the file that lists them."""
        try:
            old = read_state(self.folder) or {"attacks": {}}
            names = [str(record["folder"]) for record in old["attacks"].values()]
        except (RunFileError, AttributeError, KeyError, TypeError):
            names = []  # what cannot be read names nothing
        for name in ["clean", *names]:
            if Path(name).name == name:  # nothing outside the folder, whatever the file says
                shutil.rmtree(self.folder / name, ignore_errors=True)
                shutil.rmtree(self.folder / f"{name}-fresh", ignore_errors=True)
        (self.folder / FILE).unlink(missing_ok=True)

    def _identity(self) -> dict[str, Any]:
        return {
            **self.suite.to_json(),
            "everywhere": self.everywhere,
            "victim": self.victim.fingerprint(),
            "data": self.data.fingerprint(),
            "labels": list(self.victim.labels),
            "draws": self.draws,
            "rows": "first" if self.first else "stratified",
            # Which rows come first depends on all of them, so such a suite cannot grow.
            **({"limit": self.rows} if self.waves else {}),
            **self.settings.identity(),
        }

    def _continue(self) -> None:
        identity = self._identity()
        old = read_state(self.folder)
        if old is not None and (changed := differences(old["identity"], identity)):
            raise RunFileError(
                f"{self.folder}: holds a suite with other settings\n    " + "\n    ".join(changed),
                "write to another --out, or throw the old one away with --restart",
            )
        self.state = old or {"identity": identity, "looks": None, "attacks": {}}
        self.state["result"] = None  # until all of it is known again
        self._keep()

    def _keep(self) -> None:
        write_state(self.folder, self.state)

    # -- the course of it ------------------------------------------------------------------------------

    def run(self) -> Stress:
        untouched = packed(self.victim)
        recipes = self._recipes()
        self._continue()
        subject = EvaluatedModel(
            "model", self.victim, self.data, self.folder, self._looks(), untouched=untouched
        )
        bench = EvaluationSetup(
            recipe=next(iter(recipes.values())),
            settings=self.settings,
            rows=self.rows,
            first=self.first,
            workers=self.workers,
            draws=self.draws,
            watcher=self.watcher,
        )
        self._preflight(subject)
        rows = self._clean(bench, subject)
        done: dict[int, AttackShare] = {}
        for place, recipe in recipes.items():
            share = self._attack(bench, subject, rows, place, recipe)
            if share is not None:
                done[place] = share
            self._look_again(bench, subject, rows, done)
        remembers = self._ask_afresh(subject, rows, done)
        result = replace(
            self._result(subject, rows, self._shares(rows, done), self._doubts(rows, done)),
            remembers=remembers,
        )
        self.state["result"] = result.to_dict()
        self.state["rows"] = [
            {"key": row.key, "label": row.label, "state": row.state, "broken_by": row.broken_by}
            for row in rows.values()
        ]
        self._keep()
        return result

    def _recipes(self) -> dict[int, Recipe]:
        """What can be done with this victim on this machine, by its place in the suite."""
        found: dict[int, Recipe] = {}
        remedies = []
        for place, member in enumerate(self.suite.attacks, 1):
            try:
                recipe = member.recipe(self.everywhere)
                require_capabilities(recipe, self.victim)
                fitted, _ = fit_recipe(recipe, self.victim)
                require_resources(fitted)
                open_inside(fitted.oracles(), self.victim)
            except _LEAVES_OUT as error:
                self.left_out.append((member.attack, error.cause))
                remedies.append(error.remedy)
            else:
                found[place] = recipe
        if not found:
            reasons = "; ".join(f"{attack}: {why}" for attack, why in self.left_out)
            raise CapabilityError(
                f"no attack of {self.suite.full_name} can be done here: {reasons}",
                next((remedy for remedy in remedies if remedy), "choose another --suite"),
            )
        return found

    def _looks(self) -> Looks:
        """What was found at the first look is kept: going on must not depend on chance."""
        if self.state["looks"] is None:
            with self.watcher.wait("a look at the model"):
                looks = look(self.victim, [_text(example) for example in self._readable(PREFLIGHT_EXAMPLES)])
            self.state["looks"] = looks.to_dict()
            self._keep()
        return Looks.from_dict(self.state["looks"])

    def _rows(self) -> Dataset:
        rows, notice = taken(self.data, self.rows, seed=self.settings.seed, first=self.first)
        if notice and notice not in self.cautions:
            self.cautions.append(notice)
        return rows

    def _readable(self, most: int) -> list[Example]:
        rows = take(self._rows(), most, seed=self.settings.seed, first=self.first)
        return [example for example in rows if not example.problem]

    def _preflight(self, subject: EvaluatedModel) -> None:
        """On rows from the start of the data: the attacks see only those that the model gets right."""
        report = task_for(self.victim).preflight(subject.facing, self._readable(PREFLIGHT_EXAMPLES))
        with self.watcher.stage("preflight") as observer:
            observer.checked(report)
        report.raise_for_fail()

    def _clean(self, bench: EvaluationSetup, subject: EvaluatedModel) -> dict[int, AttackedRow]:
        examples = list(self._rows())
        samples = [
            Sample.of(example, self.victim.labels[example.label])
            for example in examples
            if not example.problem
        ]
        folder = self.folder / "clean"
        right = bench.shown(subject, samples, folder, title="clean texts")
        heard = read_results(folder) if samples else []
        self.nearest = {result.key: result.probs[result.label] for result in heard if result.probs}
        if self.waves and not subject.looks.random:
            known = {value_of(result, result.original): result.probs for result in heard if result.probs}
            subject.victim = AskedBefore(self.victim, known)
        return {
            example.key: AttackedRow(example.key, example.label, right.get(example.key))
            for example in examples
        }

    def _attack(
        self,
        bench: EvaluationSetup,
        subject: EvaluatedModel,
        rows: dict[int, AttackedRow],
        place: int,
        recipe: Recipe,
    ) -> AttackShare | None:
        open_ = [row for row in rows.values() if row.clean and (self.every or not row.settled)]
        record = self._record(subject, place, recipe)
        folder, draws = self.folder / record["folder"], record["draws"]
        left = 0
        for keys, rest in self._waves(open_):
            began = time.monotonic()
            try:
                bench.attack(
                    subject,
                    subject.victim if draws == 1 else Averaged(subject.victim, draws=draws),
                    folder,
                    title=recipe.full_name,
                    recipe=recipe,
                    keys=keys,
                )
            except DataError as error:  # texts that this attack has no words for
                self.left_out.append((self.suite.attacks[place - 1].attack, error.cause))
                return None
            finally:
                record["seconds"] += time.monotonic() - began
                self._keep()
            self._judge(bench, subject, rows, place, folder, _results_of(folder, rows))
            if rest and self._none_fell(rows, keys, place):
                left = rest
                break
        results = _results_of(folder, rows)
        if results:
            self.cautions += [f"{recipe.full_name}: {caution}" for caution in Run(folder).summary().cautions]
        if not open_:
            self._judge(bench, subject, rows, place, folder, results)
        return AttackShare(
            attack=recipe.full_name,
            folder=record["folder"],
            tried=len(results),
            broke=0,
            first=0,
            alone=None,
            valid=None,
            errors=0,
            queries=self._asked(results),
            seconds=record["seconds"],
            draws=draws,
            left=left,
        )

    def _waves(self, open_: Sequence[AttackedRow]) -> Iterator[tuple[set[int], int]]:
        """The rows of each wave, and how many are left after it; all at once where there are no waves."""
        if not self.waves:
            if open_:
                yield {row.key for row in open_}, 0
            return
        order = sorted(open_, key=lambda row: (self.nearest[row.key], self._lot(row.key)))
        keys, size = [row.key for row in order], self.suite.wave
        while keys:
            if len(keys) < 1.5 * size:
                size = len(keys)  # a wave of few would say nothing
            yield set(keys[:size]), len(keys) - size
            keys, size = keys[size:], 2 * size

    def _none_fell(self, rows: Mapping[int, AttackedRow], keys: Collection[int], place: int) -> bool:
        """Of a wave that says something: rows on which the attack ended in an error say nothing."""
        known = sum(rows[key].found.get(place) is not None for key in keys)
        return known >= self.suite.wave and not any(rows[key].settled for key in keys)

    def _lot(self, key: int) -> bytes:
        """Which of rows that are equally near comes first."""
        return hashlib.sha256(f"{self.settings.seed}:{key}".encode()).digest()

    @property
    def waves(self) -> bool:
        return bool(self.suite.wave) and not self.every

    def _asked(self, results: Sequence[Result]) -> int:
        """What an attack cost. In waves the unedited text of a row is asked about once, for all attacks."""
        if not self.waves:
            return sum(result.queries for result in results)
        new = {result.key for result in results} - self.charged
        self.charged |= new
        return sum(max(0, result.queries - (result.key not in new)) for result in results)

    def _record(self, subject: EvaluatedModel, place: int, recipe: Recipe) -> dict[str, Any]:
        """How this attack was begun: it goes on in the same way, whatever is known of the model by now."""
        records: dict[str, Any] = self.state["attacks"]
        if str(place) not in records:
            name = f"{place}-{recipe.full_name}".replace("/", "_")
            draws = AVERAGED if subject.looks.random else 1
            records[str(place)] = {"folder": name, "draws": draws, "seconds": 0.0}
            self._keep()
        found: dict[str, Any] = records[str(place)]
        if Path(found["folder"]).name != found["folder"]:
            raise RunFileError(f"{self.folder}: names a run outside itself", "begin anew with --restart")
        return found

    def _judge(
        self,
        bench: EvaluationSetup,
        subject: EvaluatedModel,
        rows: dict[int, AttackedRow],
        place: int,
        folder: Path,
        results: Sequence[Result],
    ) -> None:
        """Write down for every row of this attack whether the model is still right."""
        if not results:
            return
        for result in results:
            if result.perturbed_probs:
                near = min(self.nearest.get(result.key, 1.0), result.perturbed_probs[result.label])
                self.nearest[result.key] = near
        keys = [result.key for result in results]
        flags: Flags = bench.judged(subject, folder, keys=keys, same=True)
        said = self.validity(folder)
        self.judged |= said is not None
        valid = said or {}
        for key, result in zip(keys, results, strict=True):
            rows[key].tried |= result.tried is None or result.tried > 0
            rows[key].found[place] = flags[key]
            if flags[key] is False and key in valid:
                rows[key].valid[place] = valid[key]

    def _look_again(
        self,
        bench: EvaluationSetup,
        subject: EvaluatedModel,
        rows: dict[int, AttackedRow],
        done: Mapping[int, AttackShare],
    ) -> None:
        """A model may be random only where it is unsure, or remember what it was asked: ask once more.

        If so, what was found is judged again in fresh draws, and the attacks that follow ask for averages.
        """
        if subject.looks.random or not done:
            return
        last = _results_of(self.folder / done[max(done)].folder, rows)
        again = [result for result in last if result.outcome in ATTACKED][:_ASKED_AGAIN]
        gap = same_again(
            self.victim, [_final(result) for result in again], [result.perturbed_probs for result in again]
        )
        if gap <= _DIFFERENT:
            return
        subject.looks = replace(subject.looks, chance="by nature", spread=gap)
        self.state["looks"] = subject.looks.to_dict()
        self._keep()
        for place, share in done.items():
            folder = self.folder / share.folder
            self._judge(bench, subject, rows, place, folder, _results_of(folder, rows))

    def _ask_afresh(
        self, subject: EvaluatedModel, rows: dict[int, AttackedRow], done: Mapping[int, AttackShare]
    ) -> str:
        """A model that answers texts alike as it did before blinds a search: a fresh process is asked.

        Returns what was found; then every text at which an attack ended is asked anew, before its original.
        """
        standing = {row.key for row in rows.values() if row.state == "stands"}
        if subject.untouched is None or subject.looks.random or not standing:
            return ""
        ends = {
            place: [
                pair
                for result in _results_of(self.folder / share.folder, rows)
                if (pair := edited_pair(result, result)) is not None
            ]
            for place, share in done.items()
        }
        asked = [pair for pairs in ends.values() for pair in pairs if pair.key in standing][:PAIRS]
        try:
            with self.watcher.wait("edited texts asked in a fresh process"):
                moved = moved_answers(subject.untouched, self.victim, asked) if asked else {}
                if not moved:
                    return ""
                for place, pairs in ends.items():
                    for key, right in right_afresh(subject.untouched, pairs).items():
                        if right is False:
                            rows[key].found[place] = False
        except VictimError:
            return ""  # it cannot be started there, so nothing is known
        return finding_of(moved, asked)

    # -- the result ------------------------------------------------------------------------------------

    def _shares(
        self, rows: Mapping[int, AttackedRow], done: Mapping[int, AttackShare]
    ) -> tuple[AttackShare, ...]:
        all_rows = list(rows.values())
        found = []
        for place, share in done.items():
            broke = [row for row in all_rows if row.found.get(place) is False]
            judged = [row.valid[place] for row in broke if place in row.valid]
            found.append(
                replace(
                    share,
                    broke=len(broke),
                    first=first_broken(all_rows, place),
                    alone=broken_alone(all_rows, place, list(done)),
                    valid=sum(judged) if judged else None,
                    errors=sum(place in row.found and row.found[place] is None for row in all_rows),
                )
            )
        return tuple(found)

    def _doubts(self, rows: Mapping[int, AttackedRow], done: Mapping[int, AttackShare]) -> Doubts:
        """What else the judge of each run might have said of the texts that broke a row.

        Of texts that somebody else judged nothing is known but what he said.
        """
        found: dict[int, dict[int, Values]] = {}
        for place, share in done.items():
            said = {row.key: row.valid[place] for row in rows.values() if place in row.valid}
            if said:
                with closing(RunFile.read(self.folder / share.folder)) as run:
                    stored = run.measured(VALID_MEASURE)
                    own = [key for key, chance in said.items() if stored.get(key) == chance]
                    found[place] = draws_of(run, own)
        return found

    def _result(
        self,
        subject: EvaluatedModel,
        rows: Mapping[int, AttackedRow],
        attacks: tuple[AttackShare, ...],
        doubts: Doubts,
    ) -> Stress:
        found = list(rows.values())
        states: dict[State, int] = {"stands": 0, "broken": 0, "wrong": 0, "undecided": 0, "error": 0}
        for row in found:
            states[row.state] += 1
        return Stress(
            suite=self.suite.full_name,
            victim=self.victim.name,
            fingerprint=self.victim.fingerprint(),
            data=self.data.name,
            n=len(found),
            clean=clean_rate(found),
            worst=worst_rate(found),
            valid=valid_rate(found, doubts) if self.judged else None,
            attacks=attacks,
            left_out=tuple(self.left_out),
            classes=class_shares(found, self.victim.labels),
            states=states,
            undecided=tuple(row.key for row in found if row.state == "undecided"),
            errors=tuple(row.key for row in found if row.state == "error"),
            untried=sum(row.state == "stands" and not row.tried for row in found),
            notes=(*self._remarks(subject.looks, attacks), *self._given_up(attacks), *self.cautions),
            version=unfooled.__version__,
            date=datetime.now(UTC).date().isoformat(),
            out=str(self.folder),
        )

    def _given_up(self, attacks: Sequence[AttackShare]) -> list[str]:
        """Which attacks did not try all that stood, and how much they may have missed."""
        early = [attack for attack in attacks if attack.left]
        if not early:
            return []
        named = ", ".join(
            f"{attack.attack} (after {attack.tried} of {attack.tried + attack.left})" for attack in early
        )
        most = 1.0 - 0.05 ** (1.0 / self.suite.wave)
        return [
            f"left where none of a wave fell: {named}; had all others been as near to falling as that wave, "
            f"at most {most:.0%} of them would have fallen to it (95 %)"
        ]

    def _remarks(self, looks: Looks, attacks: Sequence[AttackShare]) -> list[str]:
        """What the model is like, where that hides something from a search, and what was done about it."""
        # Of a model that only decides, nobody expects scores between 0 and 1.
        notes = looks.findings() if "probabilities" in self.victim.capabilities else []
        if looks.random:
            averaged = max((attack.draws for attack in attacks), default=1)
            notes.append(
                f"it decides with the help of chance: queries are means of {averaged} draws or more, and a "
                f"text breaks it only if most of {self.draws} fresh draws are wrong"
            )
            if any(attack.draws == 1 for attack in attacks):
                early = ", ".join(attack.attack for attack in attacks if attack.draws == 1)
                notes.append(f"its answers changed only while it was attacked: {early} heard single draws")
        return notes


def _results_of(folder: Path, rows: Mapping[int, AttackedRow]) -> list[Result]:
    """Of an attack, on rows of this call: an earlier one may have asked for more."""
    if not folder.is_dir():
        return []
    return [result for result in read_results(folder) if result.key in rows and rows[result.key].clean]


def _text(example: Example) -> TextValue:
    return example.text().value


def _final(result: Result) -> TextValue:
    texts = [content for _, content in result.fields]
    texts[result.field] = result.perturbed
    return texts[0] if len(texts) == 1 else tuple(texts)
