"""Fewer questions: a surrogate guesses what the victim would say, and the victim confirms the best guesses.

A pass over the words with the moves, the constraints and the goal of the recipe, asked for in another way:

    1. A surrogate says of every option how far it would move the text towards the goal. Nobody else is asked.
    2. Of the options that the constraints let pass, the victim is asked about the one with the best estimate
       (or the victim first, and dear constraints only about what would be taken).
    3. Its answer corrects the estimates of this text: those of the same word, and the surrogate's scale.
    4. While the estimate of another, with some of its doubt, is above the best answer, go on with 2.
    5. Take the best answer, close its word, and go on with 2 from the text that this makes.
    6. Where that ends too early, begin again, word by word, and ask while an option of the word may be
       better than the best answer, with much of its doubt: the recipe's own search with what was learned.
    7. Of a text that was found, leave out swaps that its margin seems not to need, and ask.

Everything is measured in log-odds, in which edits of different words nearly add up: what was learned of an
option before another word changed still holds. An estimate is that of a regression with few answers: the
surrogate's gain times a factor near 1, plus an error that options of the same word share. What comes out was
said by the victim itself, as in every attack; no example learns from another.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unfooled.attacks.parts.constraints import Constraint, NextText
from unfooled.attacks.parts.search import GreedySteps, allowed, keep_most_similar
from unfooled.attacks.parts.victim_first import split
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program, ask, gather
from unfooled.text import Text

Floats = NDArray[np.float64]
LEAST = 1e-6  # scores are rounded to six decimals: nothing is surer than that
_SCALE_DOUBT = 0.5  # standard deviation of the factor between the surrogate's gains and the victim's
MATERIAL = 1.1  # an option that promises less than a tenth more than the best answer is not asked about
_PRIOR_ANSWERS = 2  # answers of this text that count as much as what is known of the surrogate's error
_NOISE = 1e-3  # variance of an answer that was given for an earlier text


@dataclass(frozen=True)
class BySurrogate:
    """A recipe whose questions are chosen by a surrogate.

    `tries`: options of a word that the victim is asked about in the quick pass. `together`: options asked
    about at once. `optimism` and `thoroughness`: how many standard deviations of doubt an estimate is given
    in the quick and in the thorough pass. `reach`: the thorough pass ends where the best of all open words,
    with so many standard deviations of their sum, is less than what is missing. `give_up`: it is left out
    where the quick one came less than this share of the way to the goal; 0 never gives up. `spread`: how far
    the surrogate is off for one edit, in log-odds; `own`: the share of that error's variance that options of
    one word do not share. `victim_first`: dear constraints are asked about the answers that would be taken,
    instead of about the guesses.
    """

    mark: ClassVar[str] = "surrogate"
    surrogate: str
    spread: float = 0.4
    own: float = 0.5
    tries: int = 3
    together: int = 1
    optimism: float = 0.5
    thoroughness: float = 2.5
    reach: float = 1.0
    give_up: float = 0.0
    victim_first: bool = False

    def __post_init__(self) -> None:
        if self.tries < 1 or self.together < 1:
            raise ValueError("tries and together are at least 1")
        if self.spread <= 0:
            raise ValueError("spread is above 0")
        if self.reach < 0:
            raise ValueError("reach is at least 0")
        if not 0 <= self.give_up <= 1:
            raise ValueError("give_up is a share, from 0 to 1")
        if not 0 < self.own < 1:
            raise ValueError("own is a share above 0 and below 1")

    @property
    def asks(self) -> tuple[str, ...]:
        return (f"surrogate:{self.surrogate}",)

    def go_through(self, a: Attempt, start: Scored, words: GreedySteps) -> Program[Scored]:
        return (yield from _GuidedPass(self, a, words).run(start))


def margin(goal: Any, probs: Floats, label: int) -> float:
    """How far the log-odds stand on the goal's side: the best class that it wants above the best other."""
    while hasattr(goal, "goal"):  # a goal for the rows of one class
        goal = goal.goal
    logs = np.log(np.clip(probs, LEAST, 1.0 - LEAST))
    target = getattr(goal, "target", None)
    if target is not None:
        return float(logs[target] - np.delete(logs, target).max())
    return float(np.delete(logs, label).max() - logs[label])


class _Option:
    """One edit at one step, and what the surrogate makes of it."""

    __slots__ = ("asked", "gain", "key", "next", "step")

    def __init__(self, step: int, option: NextText, gain: float) -> None:
        self.step = step
        self.next = option
        self.gain = gain
        self.key: Hashable = (step, option.word, option.inserted, option.merged, option.position)
        self.asked = False


class _Answer(NamedTuple):
    scored: Scored
    option: _Option
    gain: float


class _GuidedPass:
    def __init__(self, guided: BySurrogate, a: Attempt, words: GreedySteps) -> None:
        self.guided, self.a, self.words = guided, a, words
        self.cheap, self.dear = split(words.constraints)
        self.late: Sequence[Constraint] = ()  # dear constraints that are asked after the victim
        if guided.victim_first:
            self.dear, self.late = (), self.dear
        self.beliefs = _Beliefs(guided.spread**2, guided.own)
        self.proposed: dict[int, list[NextText]] = {}  # by step, for the text as it was
        self.options: dict[int, list[_Option]] = {}  # by step, those that may still be asked about
        self.tries: dict[int, int] = {}
        self.stale: set[int] = set()  # steps whose options were made from an earlier text
        self.taken: list[_Answer] = []

    def run(self, start: Scored) -> Program[Scored]:
        steps, self.propose = self.words.steps((yield from self._rank(start)))
        self.steps = list(steps)
        end = yield from self._quick(start)
        if not end.success and not self._hopeless(start, end):
            end = keep_most_similar(end, [(yield from self._thorough(start))])
        return (yield from self._without_needless(start, end)) if end.success else end

    # -- the passes --------------------------------------------------------------------------------

    def _quick(self, start: Scored) -> Program[Scored]:
        """Take the best option of any word, again and again; a word gets a few tries."""
        yield from self._begin(start, self.guided.tries, self.guided.optimism)
        now = start
        while self.options and not now.success:
            kept = yield from self._step(now, list(self.options))
            if kept is now:
                break
            now = kept
        return now

    def _thorough(self, start: Scored) -> Program[Scored]:
        """From the start again, word by word, each with as many tries as may find something better."""
        yield from self._begin(start, None, self.guided.thoroughness)
        now = start
        while self.options and not now.success and self._may_reach(now):
            every = [option for options in self.options.values() for option in options]
            step = every[int(np.argmax(self.beliefs.estimates(every, 0.0)))].step
            now = yield from self._step(now, [step])
            self.options.pop(step, None)
        return now

    def _may_reach(self, now: Scored) -> bool:
        """Whether the best of each open word together may be what is missing: else nothing is asked."""
        every = [option for options in self.options.values() for option in options]
        return self.beliefs.together(every, self.guided.reach) > -self._margin(now)

    def _hopeless(self, start: Scored, end: Scored) -> bool:
        """Whether the quick pass came too short a part of the way for the thorough one to be worth it."""
        if not self.guided.give_up:
            return False
        missing = -self._margin(start)
        if self._margin(end) + missing >= self.guided.give_up * missing:
            return False
        self.a.note = "given up: the quick pass came too short a part of the way"
        return True

    def _without_needless(self, start: Scored, end: Scored) -> Program[Scored]:
        """The same without swaps that it seems not to need, if the constraints let the others pass alone."""
        if any(answer.option.next.inserted or answer.option.next.merged for answer in self.taken):
            return end
        for answer in sorted(self.taken[:-1], key=lambda answer: answer.gain):
            if answer.gain >= self._margin(end):
                break
            others = [other for other in self.taken if other is not answer]
            made = yield from self._made_of(start, [other.option.next for other in others])
            if made is None:
                continue
            (scored,) = yield from self.a.score([made.text], [made.similarity])
            if scored.success:
                end, self.taken = scored, others
        return end

    def _made_of(self, start: Scored, swaps: Sequence[NextText]) -> Program[NextText | None]:
        """The text that these swaps make one after the other, each of them allowed where it comes."""
        now, last = start, None
        for swap in swaps:
            fresh = NextText(now.text.replace(swap.position, swap.word), swap.position)
            passed = yield from allowed(self.a, now, [fresh], self.words.constraints)
            if not passed:
                return None
            last = passed[0]
            now = now._replace(text=last.text)
        return last

    # -- one step of a pass ------------------------------------------------------------------------

    def _begin(self, start: Scored, tries: int | None, optimism: float) -> Program[None]:
        self.most, self.optimism = tries, optimism
        self.options, self.tries, self.stale, self.taken = {}, {}, set(), []
        yield from self._make(start, range(len(self.steps)))

    def _step(self, now: Scored, among: Sequence[int]) -> Program[Scored]:
        """The text with the best option of these steps, whose word is closed then; or the present text."""
        found = yield from self._ask(now, among)
        kept = keep_most_similar(now, [answer.scored for answer in found])
        if kept is not now:
            (answer,) = (answer for answer in found if answer.scored is kept)
            self.taken.append(answer)
            del self.options[answer.option.step]
            self.stale = set(self.options)
        return kept

    def _ask(self, now: Scored, among: Sequence[int]) -> Program[list[_Answer]]:
        """Ask about the best guesses until none promises more than the best answer."""
        found: list[_Answer] = []
        before = self._margin(now)
        while not any(answer.scored.success for answer in found):
            best = MATERIAL * max([0.0, *(answer.gain for answer in found)])
            chosen: list[_Option] = []
            while len(chosen) < self.guided.together:
                # Options of one word tell much the same; of different words they are asked about together.
                busy = {option.step for option in chosen} if len(among) > 1 else set()
                free = [step for step in among if step not in busy]
                option = yield from self._next(now, free, chosen, best)
                if option is None:
                    break
                chosen.append(option)
            if not chosen:
                break
            texts = [option.next.text for option in chosen]
            answers = yield from self._score(texts, [option.next.similarity for option in chosen])
            for option, scored in zip(chosen, answers, strict=True):
                option.asked = True
                self.tries[option.step] = self.tries.get(option.step, 0) + 1
                answer = _Answer(scored, option, self._margin(scored) - before)
                self.beliefs.add(option, answer.gain)
                if self.late:
                    known = yield from self._checked(now, answer, [other.scored for other in found])
                    if known is None:
                        continue
                    answer = answer._replace(scored=known)
                found.append(answer)
        return found

    def _score(self, texts: Sequence[Text], similarities: Sequence[float | None]) -> Program[list[Scored]]:
        if not self.late:
            return (yield from self.a.score(texts, similarities))
        return (yield from self.a.score(texts, probe=True))

    def _checked(self, now: Scored, answer: _Answer, others: Sequence[Scored]) -> Program[Scored | None]:
        """An answer that would be taken, if the dear constraints let it pass; None where it would not be."""
        scored = answer.scored
        if not scored.success and scored.score <= max([now, *others], key=lambda each: each.score).score:
            self.a.admit([], unchecked=[scored])
            return None
        passed = yield from allowed(self.a, now, [answer.option.next], self.late)
        if not passed:
            return None
        scored = scored._replace(similarity=passed[0].similarity)
        self.a.admit([scored])
        return scored

    def _next(
        self, now: Scored, among: Sequence[int], chosen: Sequence[_Option], least: float
    ) -> Program[_Option | None]:
        """The option with the best estimate that the constraints let pass, if that is above the `least`."""
        while True:
            free = [
                option
                for step in among
                if self.most is None or self.tries.get(step, 0) < self.most
                for option in self.options.get(step, ())
                if not option.asked and option not in chosen
            ]
            if not free:
                return None
            estimates = self.beliefs.estimates(free, self.optimism)
            place = int(np.argmax(estimates))
            option = free[place]
            unasked = self.most is None and option.step not in self.beliefs.steps
            if estimates[place] <= least and not unasked:
                return None
            if option.step in self.stale:
                yield from self._make(now, [option.step])
                continue
            passed = yield from allowed(self.a, now, [option.next], self.dear)
            if not passed:
                self.options[option.step].remove(option)
                continue
            option.next = passed[0]
            return option

    # -- what the surrogate says -------------------------------------------------------------------

    def _rank(self, start: Scored) -> Program[list[int]]:
        """The words by what the surrogate makes of the text without each."""
        positions = self.words.positions
        gains = yield from self._gains(start.text, [start.text.delete(i) for i in positions])
        return [positions[place] for place in np.argsort(-np.asarray(gains), kind="stable")]

    def _make(self, now: Scored, numbers: Sequence[int]) -> Program[None]:
        """The options of some steps, as the present text has them."""

        def of(number: int) -> Program[list[NextText]]:
            known = self.proposed.get(number)
            if known is None or self.words.by_context:
                proposed = yield from self.propose(now, self.steps[number])
                self.proposed.setdefault(number, proposed)
            else:
                # A random source would propose others, of which nothing is known.
                proposed = [_moved(now.text, option) for option in known]
            return (yield from allowed(self.a, now, proposed, self.cheap, self.words.ties))

        made = yield from gather([of(number) for number in numbers])
        texts = [option.text for options in made for option in options]
        gains = iter((yield from self._gains(now.text, texts)))
        for number, options in zip(numbers, made, strict=True):
            self.stale.discard(number)
            self.options[number] = [_Option(number, option, next(gains)) for option in options]
            if not options:
                del self.options[number]

    def _gains(self, base: Text, texts: Sequence[Text]) -> Program[list[float]]:
        """The surrogate's margins of the texts above that of the base."""
        if not texts:
            return []
        answers = yield from ask(self.guided.asks[0], [base.value, *(text.value for text in texts)])
        first, *others = (margin(self.a.goal, np.asarray(answer), self.a.label) for answer in answers)
        return [round(other - first, 6) for other in others]

    def _margin(self, scored: Scored) -> float:
        return margin(self.a.goal, scored.probs, self.a.label)


def _moved(text: Text, option: NextText) -> NextText:
    """The same replacement in a text whose other words may have changed."""
    return NextText(text.replace(option.position, option.word), option.position)


class _Beliefs:
    """What the victim's answers say of the options that it was not asked about.

    A Gaussian regression: gain = factor times the surrogate's gain + error of the word + error of the option.
    How large the errors are in this text is learned as well: the more answers were foretold, the less doubt.
    """

    def __init__(self, variance: float, own: float) -> None:
        self._before = {"all": variance, "own": own * variance}
        self._seen: list[tuple[float, int, Hashable]] = []
        self._answers: list[float] = []
        self._missed: dict[int, list[float]] = {}  # by step: by how much the surrogate was off
        self._own = self._before["own"]
        self._shared = variance - self._own

    @property
    def steps(self) -> Collection[int]:
        """Those that some answer was about."""
        return self._missed.keys()

    def add(self, option: _Option, answer: float) -> None:
        self._seen.append((option.gain, option.step, option.key))
        self._answers.append(answer)
        self._missed.setdefault(option.step, []).append(answer - option.gain)

        # Variances as if some answers had been seen before: of an option's own error by how much options of
        # one word differ, of the error that they share by what is left.
        own = [error - float(np.mean(errors)) for errors in self._missed.values() for error in errors]
        free = len(own) - len(self._missed)
        every = [error for errors in self._missed.values() for error in errors]
        whole = _mean_square(every, len(every), self._before["all"])
        self._own = max(_NOISE, min(_mean_square(own, free, self._before["own"]), whole - _NOISE))
        self._shared = max(_NOISE, whole - self._own)

    def estimates(self, options: Sequence[_Option], optimism: float) -> Floats:
        """Of each option's gain; with so many standard deviations of doubt."""
        middle, doubt = self._known_of(options)
        return np.asarray((middle + optimism * doubt).round(6))

    def together(self, options: Sequence[_Option], optimism: float) -> float:
        """What the best option of each step may give in sum; with so many standard deviations of the sum."""
        middle, doubt = self._known_of(options)
        upper = (middle + doubt).round(6)
        places: dict[int, list[int]] = {}
        for place, option in enumerate(options):
            places.setdefault(option.step, []).append(place)
        total = variance = 0.0
        for of_step in places.values():
            best = max(of_step, key=lambda place: float(upper[place]))
            known = max(0.0, *(float(middle[place]) for place in of_step))
            # The best of so many is better than the one that looks best.
            own = min(self._own, float(doubt[best]) ** 2)
            likely = float(middle[best]) + math.sqrt(2.0 * math.log(len(of_step)) * own)
            if likely + doubt[best] > known:
                variance += float(doubt[best]) ** 2
            total += max(known, likely)
        return round(total + optimism * math.sqrt(variance), 6)

    def _known_of(self, options: Sequence[_Option]) -> tuple[Floats, Floats]:
        """The expected gains, and their standard deviations."""
        gains = np.array([option.gain for option in options])
        steps = np.array([option.step for option in options])
        prior = _SCALE_DOUBT**2 * gains**2 + self._shared + self._own
        if not self._seen:
            return gains, np.sqrt(prior)
        seen, seen_steps = (np.array(column) for column in zip(*(s[:2] for s in self._seen), strict=True))
        between = self._alike(gains, steps, seen, seen_steps)
        known = {key: place for place, (_, _, key) in enumerate(self._seen)}
        for row, option in enumerate(options):
            if (place := known.get(option.key)) is not None:
                between[row, place] += self._own
        among = self._alike(seen, seen_steps, seen, seen_steps) + np.eye(len(seen)) * (self._own + _NOISE)
        missed = np.array(self._answers) - seen
        solved = np.linalg.solve(among, np.column_stack([missed, between.T]))
        doubt = np.sqrt(np.maximum(prior - np.einsum("ij,ji->i", between, solved[:, 1:]), 0.0))
        return gains + between @ solved[:, 0], doubt

    def _alike(self, gains: Floats, steps: Floats, others: Floats, other_steps: Floats) -> Floats:
        same = self._shared * (steps[:, None] == other_steps)
        return np.asarray(_SCALE_DOUBT**2 * np.outer(gains, others) + same)


def _mean_square(errors: Sequence[float], free: int, before: float) -> float:
    """Of errors with so many degrees of freedom, where some of the size `before` were seen already."""
    return (_PRIOR_ANSWERS * before + sum(error**2 for error in errors)) / (_PRIOR_ANSWERS + free)
