"""One example under attack: its budget, its random numbers and the best text so far."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from unfooled.core.program import Program, ask
from unfooled.core.result import NO_CLASS, Outcome, Result, decided
from unfooled.errors import BudgetExhaustedError
from unfooled.text import Text

if TYPE_CHECKING:
    from unfooled.core.curve import CurvePoint

Row = NDArray[np.float64]


class Scored(NamedTuple):
    """A text and what the victim says of it. A higher `score` is better for the attacker."""

    text: Text
    probs: Row
    score: float
    success: bool
    similarity: float | None = None
    output: str = ""  # of a victim that writes text, such as a translation; then `probs` is empty


class Goal(Protocol):
    """Turns probabilities into a score to raise, and says when the attack has won."""

    def judge(self, probs: NDArray[np.float64], label: int, /) -> tuple[list[float], list[bool]]: ...


Watch: TypeAlias = Callable[[Sequence[Scored], bool], None]  # texts scored together; are they probes?


class Attempt:
    """What a search may use of the example it works on. The search itself keeps no other state."""

    def __init__(
        self, text: Text, label: int, goal: Goal, *, key: int, seed: int, budget: int | None = None
    ) -> None:
        self.original = text
        self.label = label
        self.goal = goal
        self.key = key
        self.seed = seed
        self.budget = budget
        self.asked = 0
        self.best: Scored | None = None
        self.abstained: Scored | None = None  # the first edited text that the victim has no class for
        self.note = ""  # why a search gave up, where that is not obvious
        self.facts: dict[str, float] = {}  # what else a search found out; written into the result
        self.curve: list[CurvePoint] | None = (
            None  # of a search that goes on after a success; its list is filled
        )
        self.watch: Watch | None = None  # told of every score; changes nothing
        self.asking: Any = None  # the recipe's way to put its questions; None: constraints, then the victim
        self._charged: dict[Hashable, int] = {}  # which query each text was, from 1
        self._tried: set[Hashable] = set()
        self._known: dict[Hashable, Any] = {}

    @cached_property
    def rng(self) -> np.random.Generator:
        """The example's own random numbers; made when first used, which for most attacks is never."""
        return np.random.default_rng([self.seed, self.key])

    @property
    def queries(self) -> int:
        """Distinct texts paid for."""
        return len(self._charged)

    def begin(self) -> Program[tuple[Scored, str]]:
        """The scored original, and why the example is passed over, or nothing."""
        (start,) = yield from self.score([self.original])
        said = decided(start.probs.tolist())
        if said == NO_CLASS:
            return start, "the victim abstained before the attack: its highest probabilities are equal"
        if said != self.label:
            return start, "the victim was wrong before the attack"
        passed_over = getattr(self.goal, "passed_over", None)  # a goal that does not attack every class
        return start, passed_over(self.label) if passed_over else ""

    @property
    def fields(self) -> tuple[tuple[str, str], ...]:
        """What the result keeps beside the text that came out."""
        return self.original.fields

    @property
    def tried(self) -> int:
        """Distinct edited texts that the victim was asked about and that could have become the result.

        An attack that tried none was not withstood. Probes are not among them.
        """
        return len(self._tried - {_brief(self.original.value)})

    def score(
        self,
        texts: Sequence[Text],
        similarities: Sequence[float | None] | None = None,
        *,
        probe: bool = False,
    ) -> Program[list[Scored]]:
        """What the victim says of each text. Each distinct text is paid for once, when it is asked.

        A probe (a text with a word deleted or masked) is paid for but never becomes a result. When the
        budget cannot pay for all, the affordable ones are scored first; then the search is ended.
        """
        if not texts:
            return []
        self.asked += len(texts)
        keys = [_brief(text.value) for text in texts]
        wanted = {key: text.value for key, text in zip(keys, texts, strict=True) if key not in self._known}
        refused = self._pay(wanted)
        for key in refused:
            del wanted[key]
        answers = yield from ask("victim", [self._question(value) for value in wanted.values()])
        self._known.update(zip(wanted, answers, strict=True))
        places = [place for place, key in enumerate(keys) if key not in refused]
        scored = self._judge([texts[i] for i in places], [self._known[keys[i]] for i in places])
        if similarities is not None:
            scored = [
                candidate._replace(similarity=similarities[i])
                for candidate, i in zip(scored, places, strict=True)
            ]
        if probe:
            self._show(scored, probe)
        else:
            self.admit(scored)
        if refused:
            raise self.spent()
        return scored

    def admit(self, scored: Sequence[Scored], *, unchecked: Sequence[Scored] = ()) -> None:
        """These texts may become the result: no constraint is left that could refuse them.

        A search that asks the victim first scores texts as probes and admits those that pass. `unchecked`
        ones, which it had no need to check, count as tried all the same.
        """
        keys = [_brief(each.text.value) for each in scored]
        self._tried.update(keys, (_brief(each.text.value) for each in unchecked))
        if scored:
            self._follow(scored, [self._charged[key] for key in keys])
            self.best = most_similar([*scored, *([self.best] if self.best else [])])
            if self.abstained is None:
                self.abstained = next((text for text in scored if is_tie(text.probs)), None)
        self._show(scored, False)

    def _show(self, scored: Sequence[Scored], probe: bool) -> None:
        if self.watch is not None:
            self.watch(scored, probe)

    def look(self, oracle: str, questions: Mapping[Hashable, Text | None]) -> Program[list[Any]]:
        """Ask an oracle that runs the victim in its own way; one answer per question, in order.

        Each is paid for like a query: as the query of its text where it reads that text as it is, else (a
        word's vector set to zero, say) as one of its own. None of them becomes a result.
        """
        self.asked += len(questions)
        keys = {item: item if text is None else _brief(text.value) for item, text in questions.items()}
        refused = self._pay(keys.values())
        answers = yield from ask(oracle, [item for item, key in keys.items() if key not in refused])
        # A text that is read as it is may become the result: JSMA looks at each step of its way like that.
        self._tried.update(
            key for item, key in keys.items() if questions[item] is not None and key not in refused
        )
        if refused:
            raise self.spent()
        return answers

    @property
    def room(self) -> int | None:
        """How many queries the budget still pays for; None means any number."""
        return None if self.budget is None else max(0, self.budget - len(self._charged))

    def payable(self, texts: Sequence[Text]) -> list[bool]:
        """Which of the texts the budget pays for, if all are asked about in this order."""
        keys = [_brief(text.value) for text in texts]
        unpaid = [key for key in dict.fromkeys(keys) if key not in self._charged]
        refused = set(unpaid[self.room :]) if self.room is not None else set()
        return [key not in refused for key in keys]

    def _pay(self, keys: Iterable[Hashable]) -> set[Hashable]:
        """Charge what was not paid for before. Returns what the budget cannot pay."""
        unpaid = [key for key in dict.fromkeys(keys) if key not in self._charged]
        room = len(unpaid) if self.room is None else self.room
        first = len(self._charged) + 1
        self._charged.update((key, first + number) for number, key in enumerate(unpaid[:room]))
        return set(unpaid[room:])

    def _follow(self, scored: Sequence[Scored], numbers: Sequence[int]) -> None:
        """Adds each text to the curve that reaches the goal and is more similar than all before it."""
        if self.curve is None:
            return
        from unfooled.core.curve import CurvePoint

        for candidate, number in zip(scored, numbers, strict=True):
            similarity = candidate.similarity
            if not candidate.success or similarity is None:
                continue
            if not self.curve or similarity > self.curve[-1].similarity:
                self.curve.append(CurvePoint(number, similarity, candidate.text.changes))

    def spent(self) -> BudgetExhaustedError:
        """What ends a search whose budget pays for no more."""
        return BudgetExhaustedError(f"the budget of {self.budget} queries is spent")

    def _question(self, value: str | tuple[str, ...]) -> Hashable:
        """What the victim is asked about a text."""
        return value

    def _judge(self, texts: Sequence[Text], answers: list[Any]) -> list[Scored]:
        if not texts:
            return []
        scores, successes = self.goal.judge(np.array(answers), self.label)
        return list(map(Scored, texts, answers, scores, successes))


def most_similar(texts: Sequence[Scored]) -> Scored:
    """Of texts that reach the goal the most similar one; else the one with the highest score.

    Where nothing was measured the score decides. Equals fall to the first.
    """

    def rank(candidate: Scored) -> tuple[bool, float, float]:
        return (
            candidate.success,
            (candidate.similarity or 0.0) if candidate.success else 0.0,
            candidate.score,
        )

    return max(texts, key=rank)


def is_tie(probs: Row) -> bool:
    """Whether several classes share the highest probability: the victim decides for none."""
    row = probs.tolist()  # asked often, and a list of few classes is several times as fast
    return len(row) > 1 and row.count(max(row)) > 1


def _brief(value: str | tuple[str, ...]) -> Hashable:
    """The text itself, or its digest where keeping hundreds of near-copies would fill the memory."""
    if isinstance(value, str) and len(value) <= 200:
        return value
    joined = value if isinstance(value, str) else "\x00".join(value)
    return hashlib.blake2b(joined.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class Search(Protocol):
    """Looks for a text that reaches the goal, starting from the scored original."""

    def run(self, a: Attempt, start: Scored, /) -> Program[Scored]: ...


def attempt(
    text: Text,
    label: int,
    goal: Goal,
    search: Search,
    *,
    key: int,
    seed: int,
    budget: int | None = None,
    max_words: int | None = None,
) -> Program[Result]:
    """Attack one text of a known class with a classifier's goal; see `live`."""
    a = Attempt(text, label, goal, key=key, seed=seed, budget=budget)
    return (yield from live(a, search, max_words=max_words))


def live(a: Attempt, search: Search, *, max_words: int | None = None) -> Program[Result]:
    """The whole life of one example, from the first query to its `Result`. Never raises an `Exception`."""
    start: Scored | None = None
    final: Scored | None = None
    outcome: Outcome = "failure"
    note = ""
    try:
        require_readable(a.original, max_words)
        start, unwanted = yield from a.begin()
        if unwanted:
            outcome, note = "skipped", unwanted
        elif start.success:
            outcome, note = "skipped", "the goal is reached without any edit"
        elif not a.original.words:
            # Nothing could be tried, so nothing was learned: not a failed attack.
            outcome, note = "error", "there are no words to edit"
        else:
            final = yield from search.run(a, start)
            note = a.note
    except BudgetExhaustedError as spent:
        final, note = a.best, str(spent)
    except Exception as error:
        outcome, final, note = "error", None, reason_of(error)
    return conclude(a, outcome, start, final, note)


def conclude(a: Attempt, outcome: Outcome, start: Scored | None, final: Scored | None, note: str) -> Result:
    """The result of an attempt that began with `start`; `final` is what its search came back with."""
    if final is not None and final.success:
        outcome = "success"
    elif outcome == "failure":
        # A search that comes back with nothing may have met a tie on its way.
        edited = final is not None and final.text.value != a.original.value
        tie = final if edited else a.abstained
        if tie is not None and is_tie(tie.probs):
            outcome, final, note = "abstained", tie, note or "the victim was brought to a tie"
    end, text = final or start, a.original
    return Result(
        key=a.key,
        outcome=outcome,
        label=a.label,
        fields=a.fields,
        field=text.field,
        perturbed=end.text.string if end else text.string,
        probs=tuple(start.probs.tolist()) if start else (),
        perturbed_probs=tuple(end.probs.tolist()) if end else (),
        edits=tuple(end.text.edits()) if end else (),
        words=len(text.words),
        queries=a.queries,
        asked=a.asked,
        tried=a.tried,
        similarity=end.similarity if end else None,
        note=note,
        facts=tuple(sorted(_facts(a).items())),
        output=start.output if start else "",
        perturbed_output=end.output if end else "",
    )


def _facts(a: Attempt) -> dict[str, float]:
    """What the search found out, and its curve where it kept one."""
    if a.curve is None:
        return a.facts
    from unfooled.core.curve import curve_facts  # few attacks keep one

    return a.facts | curve_facts(a.curve)


def require_readable(text: Text, max_words: int | None) -> None:
    """A text that no tokenizer can read, or that is too long, ends before anything is asked."""
    for _, content in text.fields:
        try:
            content.encode()
        except UnicodeEncodeError:
            raise ValueError("the text holds half of a surrogate pair") from None
    if max_words is not None and len(text.words) > max_words:
        raise ValueError(f"{len(text.words):,} words are more than the limit of {max_words:,} (--max-words)")


def reason_of(error: Exception) -> str:
    """What an error says, with its kind where it is not one of ours."""
    text = str(error).strip()
    known = text and type(error).__module__.startswith("unfooled")
    return text if known or isinstance(error, ValueError) else f"{type(error).__name__}: {text}"
