"""The search of the targeted keyword attack: a few edits that make the victim write a word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unfooled.attacks.parts.replacement import FromVocabulary
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program, ask
from unfooled.core.questions import OWN, Asked, Forced, Pulled
from unfooled.text import Text
from unfooled.translation.attacks.output_goals import words_of
from unfooled.translation.attempt import WritingAttempt

_ANY_NUMBER = 1 << 30


@dataclass(frozen=True, kw_only=True)
class KeywordSearch(FromVocabulary):
    """Up to `edits` words, each the best of the vocabulary at the best of `positions` places.

    Not `search.greedy`: places are ranked anew after each edit, and the words of several places compete by
    their nearness along the present output, before a few of them are translated.
    """

    size: int | None = None
    edits: int = 3
    positions: int = 2
    shortlist: int | None = 100
    tried: int = 16
    strict: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(self.edits, self.positions, self.tried, self.shortlist or 1) < 1:
            raise ValueError("edits, positions, shortlist and tried are at least 1")

    @property
    def asks(self) -> tuple[str, ...]:
        return (*super().asks, "nearness", *(("pulls",) if self.shortlist else ()), "sentence-distance:mean")

    @property
    def needs(self) -> tuple[str, ...]:
        return ("gradients",) if self.shortlist else ()

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        assert isinstance(a, WritingAttempt)
        words = yield from self.words()
        now = start
        for _ in range(self.edits):
            edited = {edit.position for edit in now.text.edits()}
            free = [i for i in range(len(now.text.words)) if i not in edited]
            probes = yield from self._near(a, now, [now.text.delete(i) for i in free])
            ranked = [free[i] for i in _best_first(probes)][: self.positions]
            lists = yield from self._listed(a, now, ranked, words)
            texts = [
                now.text.replace(i, word)
                for i, listed in zip(ranked, lists, strict=True)
                for word in listed
                if word != now.text.words[i]
            ]
            near = yield from self._near(a, now, texts)
            best = [texts[i] for i in _best_first(near)]
            best = (yield from self._unmeant(a, best)) if self.strict else best[: self.tried]
            scored = yield from a.score(best)
            if won := [candidate for candidate in scored if candidate.success]:
                return (yield from self._closest(a, won))
            nearest = max(scored, key=lambda candidate: candidate.score, default=now)
            if nearest.score <= now.score:
                break
            now = nearest
        return now

    def _listed(
        self, a: WritingAttempt, now: Scored, places: Sequence[int], words: Sequence[str]
    ) -> Program[list[Sequence[str]]]:
        """The words to try at each place."""
        if self.shortlist is None:
            return [words] * len(places)
        text, known = now.text, frozenset(words)
        every = self.size is None and self.vocabulary == OWN
        most = self.shortlist if every else _ANY_NUMBER  # those that are not in the vocabulary drop out
        spans = [(text.starts[i], text.starts[i] + len(text.words[i])) for i in places]
        items = [Pulled(text.string, *span, now.output, a.keyword, most) for span in spans]
        found = yield from a.look("pulls", dict.fromkeys(items))
        return [[word for word in pulled if word in known][: self.shortlist] for pulled in found]

    def _near(self, a: WritingAttempt, now: Scored, texts: Sequence[Text]) -> Program[list[float]]:
        """The keyword's best log-probability for each text, were its output to go along the present one."""
        items = {Forced(text.string, now.output, a.keyword): None for text in texts}
        found = yield from a.look("nearness", dict.fromkeys(items))
        known = dict(zip(items, found, strict=True))
        return [known[Forced(text.string, now.output, a.keyword)] for text in texts]

    def _unmeant(self, a: WritingAttempt, texts: Sequence[Text]) -> Program[list[Text]]:
        """The first texts, `tried` of them at most, whose newest word alone does not mean the keyword."""
        few = texts[: 3 * self.tried]
        newest = [max(text.edits(), key=lambda edit: edit.step).after for text in few]
        found = yield from a.look("victim", dict.fromkeys(Asked(word) for word in newest))
        said = dict(zip(dict.fromkeys(newest), found, strict=True))
        wanted = a.keyword.casefold()
        kept = [t for t, word in zip(few, newest, strict=True) if wanted not in words_of(said[word].output)]
        return kept[: self.tried]

    def _closest(self, a: Attempt, won: Sequence[Scored]) -> Program[Scored]:
        pairs = [(a.original.string, candidate.text.string) for candidate in won]
        distances = yield from ask("sentence-distance:mean", pairs)
        least = min(distances)
        a.facts["distance"] = least
        return won[distances.index(least)]


def _best_first(values: Sequence[float]) -> list[int]:
    """Places of the highest values first; equals in their order."""
    return sorted(range(len(values)), key=lambda i: -values[i])
