"""Suites: ordered lists of attacks that together stand for the worst case, cheapest first.

A suite is data, named and versioned like a recipe: `standard@1` attacks the same way for ever, and a better
choice gets the next number. `bench/suite.py` measures which attacks find what, and at what cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from unfooled.attacks.parts.goals import only_class
from unfooled.core.recipe import Recipe, load_recipe, with_everywhere, with_setting
from unfooled.core.victim import Victim
from unfooled.errors import UnknownNameError
from unfooled.plugins import registry, unknown_name

CHANGED = "+changed"  # behind the version of a suite that is not quite the named one


@dataclass(frozen=True, slots=True)
class SuiteAttack:
    """An attack with its version, and what is changed of it; `only` as for `unfooled attack --only`."""

    attack: str
    settings: tuple[tuple[str, str], ...] = ()
    only: str = ""

    def recipe(self, everywhere: Mapping[str, str] | None = None) -> Recipe:
        """With `everywhere` set in each part that has such a setting."""
        recipe = load_recipe(self.attack)
        if self.only:
            recipe = only_class(recipe, self.only)
        for path, value in self.settings:
            recipe = with_setting(recipe, path, value)
        for name, value in (everywhere or {}).items():
            try:
                recipe = with_everywhere(recipe, name, value)
            except UnknownNameError:
                continue  # most attacks of a suite have no such part
        return recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Attacks in their order; each attacks what still stands. `needs` is what the victim must give.

    With `wave`, an attack takes the rows in waves, of so many at first and then twice as many each time. The
    rows that an earlier attack brought nearest to falling come first, and after a wave of which none falls
    the attack is left.
    """

    name: str
    version: str
    summary: str
    attacks: tuple[SuiteAttack, ...]
    needs: tuple[str, ...] = ()
    wave: int = 0  # 0: every attack on all rows that stand

    @property
    def full_name(self) -> str:
        return f"{self.name}@{self.version}"

    def to_json(self) -> dict[str, Any]:
        attacks = [
            {"attack": attack.attack, "settings": dict(attack.settings), "only": attack.only}
            for attack in self.attacks
        ]
        return {"suite": self.full_name, "attacks": attacks} | ({"wave": self.wave} if self.wave else {})

    def without(self, *attacks: str) -> Suite:
        """A shorter suite, which says so in its name: its numbers are not the named version's."""
        known = [attack.attack for attack in self.attacks]
        for attack in attacks:
            if attack not in known:
                raise unknown_name(f"attack of {self.full_name}", attack, known)
        kept = tuple(attack for attack in self.attacks if attack.attack not in attacks)
        return replace(self, attacks=kept, version=self.version + CHANGED) if attacks else self


def load_suite(name: str) -> Suite:
    """The suite of that name; a version stands behind `@`, and the first of them is meant without it."""
    suite: Suite = registry.load_version("suite", name)
    return suite


def all_suites() -> Iterator[Suite]:
    for name in registry.names("suite"):
        yield from registry.load("suite", name).values()


def fitting_suite(victim: Victim) -> Suite:
    """For a victim that gives probabilities, or for one that only decides."""
    return load_suite("standard" if "probabilities" in victim.capabilities else "decisions")


def suites_table() -> str:
    """For `unfooled stress --list`."""
    lines = []
    for suite in all_suites():
        lines.append(f"{suite.full_name}: {suite.summary}")
        lines += [f"  {number}. {attack.attack}" for number, attack in enumerate(suite.attacks, 1)]
    return "\n".join(lines)


def _suite(
    full_name: str, summary: str, *attacks: SuiteAttack, needs: tuple[str, ...] = (), wave: int = 0
) -> Suite:
    name, _, version = full_name.partition("@")
    return Suite(name=name, version=version, summary=summary, attacks=attacks, needs=needs, wave=wave)


def _by_version(*suites: Suite) -> dict[str, Suite]:
    """The first is what the name alone means."""
    return {suite.version: suite for suite in suites}


_PROBABILITIES, _GRADIENTS = ("probabilities",), ("probabilities", "gradients")
_SPELLING, _MORE_SPELLING = SuiteAttack("deepwordbug@textattack"), SuiteAttack("deepwordbug@paper")
_SYNONYMS = SuiteAttack("textfooler@textattack")
_ONE_SYNONYM = SuiteAttack("list@paper")  # one word at a time, whatever the scores say
_BY_DECISIONS = SuiteAttack("decision-learner@quick")  # a search for synonyms that needs no scores
# Dearest by far, so they get what is left.
_LANGUAGE_MODEL = (SuiteAttack("bae-r@textattack"), SuiteAttack("bae-r-and-i@cosine"))

_QUICK = (SuiteAttack("typos@random"), SuiteAttack("bert-attack@textattack"))
_THOROUGH = (SuiteAttack("bad-reorderings@textattack"), _SYNONYMS, _MORE_SPELLING, *_LANGUAGE_MODEL)

# Chosen by `bench/suite.py` on 200 rows of each of several models; docs/how-to/stress.md has the figures.
# The first of each is what the name alone means. Version 1: of the 17 attacks that there were.
STANDARD = _by_version(
    _suite(
        "standard@3",
        "for a model that gives probabilities: typos, a language model, synonyms, hidden order",
        *_QUICK,
        # It breaks what the scores lead the others away from, and is what is left of the quick ones where
        # there is no language model.
        _BY_DECISIONS,
        *_THOROUGH,
        needs=_PROBABILITIES,
    ),
    _suite(
        "standard@2",
        "for a model that gives probabilities: typos, hidden order, synonyms, a language model",
        *_QUICK,
        *_THOROUGH,
        needs=_PROBABILITIES,
    ),
    _suite(
        "standard@1",
        "for a model that gives probabilities: spelling, synonyms, a masked language model",
        _SPELLING,
        _SYNONYMS,
        _MORE_SPELLING,
        _ONE_SYNONYM,
        *_LANGUAGE_MODEL,
        needs=_PROBABILITIES,
    ),
)
# Not strongest-words: it turns the meaning, and nothing would ever stand.
_ONE_QUERY = (
    SuiteAttack("tack-on@paper"),
    SuiteAttack("smuggle-bidi@words"),
    SuiteAttack("smuggle-zero-width@non-joiner"),
    SuiteAttack("leetspeak@plain"),
)
DECISIONS = _by_version(
    _suite(
        "decisions@3",
        "for a model that only decides: a first word of another class, disguises, synonyms by search",
        # The search is most of what is left where a filter undoes disguises.
        *_ONE_QUERY,
        _BY_DECISIONS,
    ),
    _suite(
        "decisions@2",
        "for a model that only decides: a first word of another class, disguises, single synonyms",
        *_ONE_QUERY,
        _ONE_SYNONYM,
    ),
    _suite(
        "decisions@1",
        "for a model that only decides: single synonyms, and a first word of another class",
        SuiteAttack("tack-on@paper"),
        _ONE_SYNONYM,
    ),
)
WHITEBOX = _by_version(
    _suite(
        "whitebox@3",
        "for a model that shows its gradients: synonyms and words moved along them, and as standard@3",
        SuiteAttack("fd@openattack"),  # a dozen queries for most of what falls
        *_QUICK,
        _BY_DECISIONS,
        SuiteAttack("gbda@neighbours"),
        *_THOROUGH,
        needs=_GRADIENTS,
    ),
    _suite(
        "whitebox@2",
        "for a model that shows its gradients: words moved along them, and as standard@2",
        # Not jsma: it puts in words of the other class.
        *_QUICK,
        SuiteAttack("gbda@neighbours"),
        *_THOROUGH,
        needs=_GRADIENTS,
    ),
    _suite(
        "whitebox@1",
        "for a model that shows its gradients: along them, and as standard@1",
        SuiteAttack("jsma@grammatical"),
        _SPELLING,
        SuiteAttack("breaking-bert@flip", only="any"),
        _SYNONYMS,
        _MORE_SPELLING,
        _ONE_SYNONYM,
        *_LANGUAGE_MODEL,
        needs=_GRADIENTS,
    ),
)

# What somebody tries who wants a text through a filter: disguises of characters, which cost one question
# each; then typos, synonyms and a language model, which search. `stress` leaves out what cannot be done.
_DISGUISES = tuple(
    SuiteAttack(attack)
    for attack in (
        "smuggle-zero-width@space",
        "smuggle-homoglyph@intentional",
        "smuggle-homoglyph@confusables",
        "smuggle-width@mathematical",
        "smuggle-width@full-width",
        "smuggle-accents@acute",
        "smuggle-accents@stroke",
        "smuggle-bidi@words",
        "spacing@dots",
        "spacing@blanks",
        "leetspeak@plain",
    )
)
_HIDDEN = (SuiteAttack("smuggle-tags@decoded"), SuiteAttack("smuggle-emoji@decoded"))
_SEARCHED = (
    SuiteAttack("typos@random"),
    _MORE_SPELLING,
    _SYNONYMS,
    SuiteAttack("bae-r@textattack"),
)
_BLIND = SuiteAttack("typos@blind")  # most of what the searches for misspellings find, at three questions
_WAVE = 32  # rows; `bench/ladder.py` has what this saves and misses
# The first of each is what the name alone means. Version 1: every attack on all that stands.
LADDER = _by_version(
    _suite(
        "ladder@2",
        "for a filter: disguises of characters at one question each, typos, synonyms, masked words; in waves",
        *_DISGUISES,
        _BLIND,
        *_SEARCHED,
        needs=_PROBABILITIES,
        wave=_WAVE,
    ),
    _suite(
        "ladder@program-2",
        "as ladder@2, with hidden text: for a filter before a language model",
        *_HIDDEN,
        *_DISGUISES,
        _BLIND,
        *_SEARCHED,
        needs=_PROBABILITIES,
        wave=_WAVE,
    ),
    _suite(
        "ladder@decisions-2",
        "as ladder@2 for a filter that only says yes or no: disguises, typos, synonyms by search",
        *_DISGUISES,
        _BLIND,
        _BY_DECISIONS,
        wave=_WAVE,
    ),
    _suite(
        "ladder@program-decisions-2",
        "as ladder@decisions-2, with hidden text: for a filter before a language model",
        *_HIDDEN,
        *_DISGUISES,
        _BLIND,
        _BY_DECISIONS,
        wave=_WAVE,
    ),
    _suite(
        "ladder@1",
        "for a filter: disguises of characters at one question each, typos, synonyms, language model",
        *_DISGUISES,
        *_SEARCHED,
        needs=_PROBABILITIES,
    ),
    _suite(
        "ladder@program",
        "as ladder@1, with hidden text: for a filter before a language model",
        *_HIDDEN,
        *_DISGUISES,
        *_SEARCHED,
        needs=_PROBABILITIES,
    ),
    _suite(
        "ladder@decisions",
        "as ladder@1 for a filter that only says yes or no: disguises, synonyms by search",
        *_DISGUISES,
        _BY_DECISIONS,
    ),
    _suite(
        "ladder@program-decisions",
        "as ladder@decisions, with hidden text: for a filter before a language model",
        *_HIDDEN,
        *_DISGUISES,
        _BY_DECISIONS,
    ),
)
