"""What an attack wants of a victim that writes text. See `translation/attempt.py`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from unfooled.core.program import Program, ask
from unfooled.core.questions import Written
from unfooled.metrics.bleu import sentence_score
from unfooled.text import WORD, Text
from unfooled.translation.attempt import TextGoal, WritingAttempt


def words_of(text: str) -> Counter[str]:
    """The words of a text, whatever their casing, and how often each occurs."""
    return Counter(word.casefold() for word in WORD.findall(text))


@dataclass(frozen=True)
class Keyword(TextGoal):
    """A word that shall appear in the output; the score is its best log-probability over the places there.

    Where none is given, each example draws one from the training's target words of the ranks `first` to
    `last` by frequency (counted from 0): the first few dozens are words without content. An example whose
    output has the keyword before the attack is passed over; a drawn keyword is never one of these.
    """

    keyword: str = ""
    first: int = 50
    last: int = 250

    def __post_init__(self) -> None:
        if not 0 <= self.first < self.last:
            raise ValueError("first is at least 0 and below last")
        if self.keyword and not WORD.fullmatch(self.keyword):
            raise ValueError("keyword is one word")

    @property
    def asks(self) -> tuple[str, ...]:
        return () if self.keyword else (f"target-words:{self.first}-{self.last}",)

    def take_aim(self, a: WritingAttempt) -> Program[str]:
        there = words_of(a.before)
        if self.keyword:
            a.keyword = self.keyword
            return f"the output has {self.keyword!r} already" if self.keyword.casefold() in there else ""
        (words,) = yield from ask(self.asks[0], ["words"])
        left = [word for word in words if word.casefold() not in there]
        if not left:
            return "the output has every word that could be drawn"
        a.keyword = left[int(a.rng.integers(len(left)))]
        return ""

    def judge(self, answers: Sequence[Written], a: WritingAttempt) -> tuple[list[float], list[bool]]:
        wanted = a.keyword.casefold()
        return [answer.nearness for answer in answers], [
            wanted in words_of(answer.output) for answer in answers
        ]


@dataclass(frozen=True)
class NonOverlapping(TextGoal):
    """No word of the output before is in the output after, or at most the share `kept` of them."""

    kept: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.kept < 1:
            raise ValueError("kept is a share from 0 to below 1")

    def take_aim(self, a: WritingAttempt) -> Program[str]:
        return "" if words_of(a.before) else "the output has no words before the attack"
        yield  # no question is needed, but a program is a generator

    def judge(self, answers: Sequence[Written], a: WritingAttempt) -> tuple[list[float], list[bool]]:
        before = words_of(a.before)
        total = max(1, before.total())
        shares = [(words_of(answer.output) & before).total() / total for answer in answers]
        return [round(1.0 - share, 6) for share in shares], [share <= self.kept for share in shares]


@dataclass(frozen=True)
class PlacesChanged(TextGoal):
    """No place of the output holds the word that the reference has there; the output before, without one."""

    def take_aim(self, a: WritingAttempt) -> Program[str]:
        return "" if Text(a.reference or a.before).words else "there are no words to change in the output"
        yield  # no question is needed, but a program is a generator

    def judge(self, answers: Sequence[Written], a: WritingAttempt) -> tuple[list[float], list[bool]]:
        wanted = Text(a.reference or a.before).words
        pairs = [zip(wanted, Text(answer.output).words, strict=False) for answer in answers]
        shares = [sum(word != other for word, other in places) / max(1, len(wanted)) for places in pairs]
        return [round(share, 6) for share in shares], [share == 1.0 for share in shares]


@dataclass(frozen=True)
class NoBleu(TextGoal):
    """Nothing is left of the output's BLEU against the reference; the output before, where there is none.

    It is that of up to four words in a row, without smoothing: 0 where no four are in common. `exchanged`
    takes the output for the reference, as TextAttack does.
    """

    exchanged: bool = False

    def take_aim(self, a: WritingAttempt) -> Program[str]:
        lost = self._bleu(a.before, a) == 0
        return "the output has a BLEU of 0 before the attack" if lost else ""
        yield  # no question is needed, but a program is a generator

    def judge(self, answers: Sequence[Written], a: WritingAttempt) -> tuple[list[float], list[bool]]:
        found = [self._bleu(answer.output, a) for answer in answers]
        return [round(1.0 - bleu, 6) for bleu in found], [bleu == 0 for bleu in found]

    def _bleu(self, output: str, a: WritingAttempt) -> float:
        texts = Text(output).words, Text(a.reference or a.before).words
        return plain_bleu(*(texts[::-1] if self.exchanged else texts))


def plain_bleu(output: Sequence[str], reference: Sequence[str]) -> float:
    """BLEU of one sentence from its one to four words in a row, without smoothing."""
    logs = []
    for length in range(1, 5):
        rows, wanted = (
            Counter(zip(*(words[start:] for start in range(length)), strict=False))
            for words in (output, reference)
        )
        common = (rows & wanted).total()
        if not common:
            return 0.0
        logs.append(math.log(common / rows.total()))
    short = min(0.0, 1.0 - len(reference) / len(output))
    return round(math.exp(sum(logs) / 4 + short), 6)


@dataclass(frozen=True)
class BleuDrop(TextGoal):
    """The sentence's BLEU falls by more than the share `least` of what it was.

    It is measured against the reference; against the output before the attack where there is none. A sentence
    without any BLEU to lose is passed over: it is broken already, and no sign of robustness. With `least` 0
    every sentence is attacked, because the scores of the whole corpus are what is compared then.
    """

    least: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.least < 1:
            raise ValueError("least is a share from 0 to below 1")

    def take_aim(self, a: WritingAttempt) -> Program[str]:
        lost = self.least > 0 and self._score(a.before, a) == 0
        return "the output has a BLEU of 0 before the attack" if lost else ""
        yield  # no question is needed, but a program is a generator

    def judge(self, answers: Sequence[Written], a: WritingAttempt) -> tuple[list[float], list[bool]]:
        before = self._score(a.before, a)
        drops = [round(before - self._score(answer.output, a), 6) for answer in answers]
        return drops, [drop > self.least * before and drop > 0 for drop in drops]

    @staticmethod
    def _score(output: str, a: WritingAttempt) -> float:
        return round(sentence_score(output, a.reference or a.before), 6)
