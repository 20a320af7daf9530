"""A filter tested as it is deployed: what gets through, what it costs the honest, and what would help.

The ladder is a suite of attacks on the rows that the filter should block, cheapest first; each gets what is
still blocked, or what passed and no longer works. It lies in the folder `ladder` as `unfooled stress` writes
it, so that `unfooled gate` and `unfooled report` read it as well; `guard.json` beside it holds the rest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import unfooled
from unfooled.checks.cures import WORSE, Cure, CureTexts, best_cure, tried_cures
from unfooled.checks.false_alarms import AtPrice, CachedFilter, recall_at_price, share
from unfooled.checks.illusions.attacking import EvaluationObserver, read_results, value_of
from unfooled.checks.paying import paying, purse_for
from unfooled.checks.payload import Judge, Payload, Reader, payloads
from unfooled.checks.stress import stress
from unfooled.checks.suites import Suite, load_suite
from unfooled.checks.techniques import technique_of
from unfooled.checks.worst_case import VALID, Stress, read_state
from unfooled.core.session import Settings
from unfooled.core.victim import TextValue, Victim
from unfooled.data.dataset import Dataset
from unfooled.defenses.normalise import Normalise, NormalisedVictim
from unfooled.errors import RunFileError
from unfooled.files import write_json
from unfooled.metrics.summary import Rate
from unfooled.runs.row_choice import take
from unfooled.victims.filtering import BLOCKED, LABELS, Filter
from unfooled.victims.loading import load_victim
from unfooled.victims.thresholds import Thresholded

if TYPE_CHECKING:
    from unfooled.runs.caps import Caps
    from unfooled.runs.purse import Purse

FILE = "guard.json"
FORMAT = 1
LADDER = "ladder"
BENIGN = 2000  # honest rows that are looked at, unless told otherwise
_BLOCKED = LABELS.index(BLOCKED)
_LARGEST = 1 << 28  # bytes of a file that is read


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """What one attack of the ladder did."""

    attack: str
    technique: str
    tried: int
    left: int = 0  # that it was not tried on, because none of a wave got through
    evaded: int
    recoverable: int
    readable: int
    works: int  # still does what it was written for, as far as anybody knows
    unjudged: int  # of these, texts that nobody judged
    fell: int  # texts that pass and work for the first time
    queries: int
    edits: float  # mean of the texts that evaded
    seconds: float
    errors: int

    @property
    def rate(self) -> Rate:
        return Rate.of(self.works, self.tried)

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__} | {"rate": self.rate.to_dict()}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Rung:
        return cls(**{name: value for name, value in stored.items() if name != "rate"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedText:
    """A text that passed, for people to see."""

    key: int
    attack: str
    before: str
    after: str
    queries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterTest:
    """What `unfooled guard` found."""

    victim: str
    fingerprint: str
    data: str
    flag: tuple[str, ...]
    reader: Reader
    suite: str
    recall: Rate  # of the rows that should be blocked
    honest: Rate  # of the rows that should pass: blocked all the same
    look_alikes: Rate | None
    at_price: AtPrice | None
    caught: int  # rows that were attacked
    passed: Rate  # of these: got through, and still work
    evaded: Rate  # got through in any way
    undecided: int  # rows on which an attack ended in an error
    unanswered: int  # texts that the filter gave no answer to outside the attacks
    rungs: tuple[Rung, ...]
    left_out: tuple[tuple[str, str], ...]
    fell_at: Mapping[int, str]  # row → the attack that brought it through
    cures: tuple[Cure, ...]
    best: Cure | None
    examples: tuple[PassedText, ...]
    judged: bool
    notes: tuple[str, ...]
    version: str
    date: str
    out: str = ""

    @property
    def queries(self) -> int:
        return sum(rung.queries for rung in self.rungs)

    def to_dict(self) -> dict[str, Any]:
        plain = ("victim", "fingerprint", "data", "reader", "suite", "caught", "undecided", "unanswered")
        return {
            **{name: getattr(self, name) for name in (*plain, "judged", "version", "date", "queries")},
            "flag": list(self.flag),
            **{name: getattr(self, name).to_dict() for name in ("recall", "honest", "passed", "evaded")},
            "look_alikes": self.look_alikes.to_dict() if self.look_alikes else None,
            "at_price": self.at_price.to_dict() if self.at_price else None,
            "rungs": [rung.to_dict() for rung in self.rungs],
            "left_out": [list(pair) for pair in self.left_out],
            "fell_at": {str(key): attack for key, attack in self.fell_at.items()},
            "cures": [cure.to_dict() for cure in self.cures],
            "best": self.best.to_dict() if self.best else None,
            "examples": [
                {name: getattr(example, name) for name in example.__slots__} for example in self.examples
            ],
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any], out: str = "") -> FilterTest:
        plain = ("victim", "fingerprint", "data", "reader", "suite", "caught", "undecided", "unanswered")
        look_alikes, at_price, best = stored["look_alikes"], stored["at_price"], stored["best"]
        rates: dict[str, Any] = {
            name: Rate.from_dict(stored[name]) for name in ("recall", "honest", "passed", "evaded")
        }
        return cls(
            **{name: stored[name] for name in (*plain, "judged", "version", "date")},
            **rates,
            flag=tuple(stored["flag"]),
            look_alikes=Rate.from_dict(look_alikes) if look_alikes else None,
            at_price=AtPrice.from_dict(at_price) if at_price else None,
            rungs=tuple(Rung.from_dict(rung) for rung in stored["rungs"]),
            left_out=tuple((attack, why) for attack, why in stored["left_out"]),
            fell_at={int(key): attack for key, attack in stored["fell_at"].items()},
            cures=tuple(map(Cure.from_dict, stored["cures"])),
            best=Cure.from_dict(best) if best else None,
            examples=tuple(PassedText(**example) for example in stored["examples"]),
            notes=tuple(stored["notes"]),
            out=out,
        )


def guard(
    victim: Filter,
    data: Dataset,
    *,
    out: str | Path,
    suite: Suite | str | None = None,
    reader: Reader = "person",
    look_alikes: Sequence[TextValue] = (),
    limit: int | None = None,
    first: bool = False,
    benign: int | None = BENIGN,
    every: bool = False,
    without: Sequence[str] = (),
    everywhere: Mapping[str, str] | None = None,
    cures: bool = True,
    price: float = WORSE,
    judge: Judge | None = None,
    workers: int = 1,
    settings: Settings | None = None,
    watcher: EvaluationObserver | None = None,
    restart: bool = False,
    caps: Caps | None = None,
    purse: Purse | None = None,
) -> FilterTest:
    """Test a filter on rows that are labelled `blocked` and `passed` (see `data.filtered.relabelled`).

    `limit` bounds the rows that should be blocked, `benign` those that should pass. The same call again goes
    on where it stopped. `judge` says of texts in other words whether they mean the same. `price` is by how
    much the best cure may raise the share of honest texts that are blocked.
    """
    folder, settings = Path(out), settings or Settings()
    watcher = watcher or EvaluationObserver()
    purse = purse or purse_for(caps, folder, workers)
    bad, honest = by_class(data)
    chosen = take(bad, limit, seed=settings.seed, first=first) if limit else bad
    kept = take(honest, benign, seed=settings.seed) if benign else honest
    if suite is None:
        suite = fitting_ladder(victim, reader)

    attacked: dict[Path, dict[int, Payload]] = {}

    def works(run: Path) -> Mapping[int, float]:
        attack = run.name.partition("-")[2]
        attacked[run] = payloads(run, attack, judge)
        chances = {key: payload.chance(reader) for key, payload in attacked[run].items()}
        return {key: chance for key, chance in chances.items() if chance is not None}

    found = stress(
        paying(victim, purse),
        chosen,
        suite,
        out=folder / LADDER,
        every=every,
        without=without,
        everywhere=everywhere,
        workers=workers,
        settings=settings,
        validity=works,
        watcher=watcher,
        restart=restart,
    )
    price_of_cures = price if cures else None
    return _summed(
        found,
        attacked,
        victim,
        chosen,
        kept,
        look_alikes,
        reader,
        price_of_cures,
        judge,
        folder,
        watcher,
        purse,
    )


def by_class(data: Dataset) -> tuple[Dataset, Dataset]:
    """The rows that should be blocked, and those that should pass; rows that cannot be read are neither."""
    keys: dict[int, list[int]] = {0: [], 1: []}
    for example in data:
        if not example.problem:
            keys[example.label].append(example.key)
    return data.only(keys[_BLOCKED]), data.only(keys[1 - _BLOCKED])


def fitting_ladder(victim: Victim, reader: Reader) -> Suite:
    decides = "probabilities" not in victim.capabilities
    versions = {
        ("person", False): "2",
        ("person", True): "decisions-2",
        ("program", False): "program-2",
        ("program", True): "program-decisions-2",
    }
    return load_suite(f"ladder@{versions[reader, decides]}")


def _summed(
    found: Stress,
    attacked: Mapping[Path, Mapping[int, Payload]],
    victim: Filter,
    bad: Dataset,
    honest: Dataset,
    look_alikes: Sequence[TextValue],
    reader: Reader,
    price: float | None,  # None: no cure is tried
    judge: Judge | None,
    folder: Path,
    watcher: EvaluationObserver,
    purse: Purse | None,
) -> FilterTest:
    state = read_state(folder / LADDER)
    assert state is not None
    rows = state["rows"]
    rungs, fell_at, passing = _climbed(found, attacked, reader, folder / LADDER)
    evaded = {row["key"] for row in rows if row["broken_by"]}
    caught = sum(row["state"] in ("broken", "stands") for row in rows)
    with watcher.wait("honest texts"):
        asked = CachedFilter(paying(victim, purse))
        texts = CureTexts(
            passed=[text for text, _ in passing.values()],
            bad=[example.text().value for example in bad],
            honest=[example.text().value for example in honest],
            look_alikes=tuple(look_alikes),
        )
        blocked = [asked.blocks(group) for group in (texts.bad, texts.honest, texts.look_alikes)]
        scored = "probabilities" in victim.capabilities
        plain = _without_threshold(victim)
        unlimited = asked if plain is victim else CachedFilter(paying(plain, purse))
        at_price = (
            recall_at_price(unlimited.scores(texts.bad), unlimited.scores(texts.honest)) if scored else None
        )
        tried = tried_cures(asked, texts) if price is not None and passing else []
        if tried and at_price:
            tried.append(_other_threshold(at_price, unlimited.scores(texts.passed)))
        best = best_cure(asked, texts, price=price) if tried and price is not None else None
    result = FilterTest(
        victim=victim.name,
        fingerprint=victim.fingerprint(),
        data=bad.name,
        flag=victim.flag,
        reader=reader,
        suite=found.suite,
        recall=share(blocked[0]),
        honest=share(blocked[1]),
        look_alikes=share(blocked[2]) if look_alikes else None,
        at_price=at_price,
        caught=caught,
        passed=Rate.of(len(fell_at), caught),
        evaded=Rate.of(len(evaded), caught),
        undecided=found.states["undecided"],
        unanswered=sum(flag is None for group in blocked for flag in group),
        rungs=rungs,
        left_out=found.left_out,
        fell_at=fell_at,
        cures=tuple(tried),
        best=best,
        examples=tuple(example for _, example in passing.values()),
        judged=judge is not None,
        notes=found.notes,
        version=unfooled.__version__,
        date=found.date,
        out=str(folder),
    )
    write_json(folder / FILE, {"format": FORMAT, **result.to_dict()})
    return result


Passing = dict[int, tuple[TextValue, PassedText]]


def _climbed(
    found: Stress, attacked: Mapping[Path, Mapping[int, Payload]], reader: Reader, folder: Path
) -> tuple[tuple[Rung, ...], dict[int, str], Passing]:
    """What each rung did, at which each row fell, and the text that did it."""
    rungs, fell_at, passing = [], {}, {}
    for attack in found.attacks:
        said = attacked.get(folder / attack.folder, {})
        results = {result.key: result for result in read_results(folder / attack.folder)} if said else {}
        works = [
            key
            for key, payload in said.items()
            if (chance := payload.chance(reader)) is None or chance >= VALID
        ]
        new = [key for key in works if key not in fell_at]
        for key in new:
            result = results[key]
            fell_at[key] = attack.attack
            passing[key] = (
                value_of(result, result.perturbed),
                PassedText(
                    key=key,
                    attack=attack.attack,
                    before=result.original,
                    after=result.perturbed,
                    queries=result.queries,
                ),
            )
        edits = [len(results[key].edits) for key in said]
        rungs.append(
            Rung(
                attack=attack.attack,
                technique=technique_of(attack.attack).id,
                tried=attack.tried,
                left=attack.left,
                evaded=len(said),
                recoverable=sum(payload.recoverable for payload in said.values()),
                readable=sum(payload.readable for payload in said.values()),
                works=len(works),
                unjudged=sum(said[key].chance(reader) is None for key in works),
                fell=len(new),
                queries=attack.queries,
                edits=round(sum(edits) / len(edits), 2) if edits else 0.0,
                seconds=round(attack.seconds, 2),
                errors=attack.errors,
            )
        )
    return tuple(rungs), fell_at, passing


def _other_threshold(at_price: AtPrice, passed: Sequence[float | None]) -> Cure:
    """No normaliser, but the threshold at which the filter costs so much."""
    return Cure(
        name=f"threshold {at_price.threshold:g}",
        steps="",
        closes=share([None if score is None else score > at_price.threshold for score in passed]),
        recall=at_price.recall,
        honest=at_price.honest,
        look_alikes=None,
        milliseconds=0.0,
    )


def _without_threshold(victim: Filter) -> Filter:
    inner = victim.inner
    return Filter(inner.inner, victim.flag) if isinstance(inner, Thresholded) else victim


def read_guard(folder: str | Path) -> FilterTest:
    """The finished result in a folder of `unfooled guard`."""
    path = Path(folder)
    path = path.parent if path.name == FILE else path
    try:
        if (path / FILE).stat().st_size > _LARGEST:
            raise ValueError("it is far too large")
        stored = json.loads((path / FILE).read_text(encoding="utf-8"))
        if stored.pop("format", None) != FORMAT:
            raise ValueError(f"it is not of format {FORMAT}")
        stored.pop("queries", None)
        return FilterTest.from_dict(stored, str(path))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise RunFileError(
            f"{path / FILE}: cannot be read ({error})", "give the --out folder of unfooled guard"
        ) from error


def with_cure(victim: Filter, cure: Cure) -> Filter:
    """The same filter behind the cure, thresholds and all."""
    settings: dict[str, Any] = {"steps": cure.steps, "table": cure.table}
    if victim.spec:
        cured = load_victim(f"normalise:{victim.spec}", **{**victim.options, **settings})
        assert isinstance(cured, Filter)
        return cured
    inner = victim.inner
    if not isinstance(inner, Thresholded):
        return Filter(NormalisedVictim(inner, Normalise(**settings)), victim.flag)
    behind = NormalisedVictim(inner.inner, Normalise(**settings))
    return Filter(Thresholded(behind, inner.thresholds), victim.flag)
