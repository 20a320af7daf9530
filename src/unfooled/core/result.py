"""An example, and what became of it. Everything downstream reads results and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from unfooled.text import Edit, Text


@dataclass(frozen=True, slots=True)
class Example:
    """One row to attack. `key` is its number in its file, from 0: the seed of everything random about it.

    Example:

        >>> example = unfooled.Example(0, (("text", "a superb film"),), label=1, edit="text")
        >>> example.text().words
        ('a', 'superb', 'film')
    """

    key: int
    content: tuple[tuple[str, str], ...]  # name and content of each field, in order
    label: int
    edit: str  # name of the field that may be edited
    problem: str = ""  # why the row cannot be attacked; such a row ends as an error, named
    uncleaned: tuple[tuple[str, str], ...] = ()  # the fields before cleaning, where that changed them
    reference: str = ""  # the right answer where that is a text, such as a person's translation

    def text(self) -> Text:
        """All fields, with the one that may be edited named."""
        return Text(dict(self.content), edit=self.edit)


Outcome = Literal["success", "failure", "skipped", "error", "abstained"]

# success  the attack reached its goal
# failure  it did not
# skipped  the victim was wrong before the attack, so there was nothing to break
# error    something failed: never a success, never robustness
# abstained  the victim was brought to a tie: it decides for no class, neither a wrong one nor the right one
OUTCOMES: tuple[Outcome, ...] = ("success", "failure", "skipped", "error", "abstained")
REFERENCE = "reference"  # the field of a result that holds what a person wrote
UNREAD = "unread"  # the fact that says what share of a text lay behind the end of what the model reads
KEYWORD = "keyword"  # the field that holds the word that was to appear
ATTACKED: tuple[Outcome, ...] = ("success", "failure", "abstained")
NO_CLASS = -1
ABSTAINED = "abstained"  # what tables say where a class would stand


def decided(probs: Sequence[float]) -> int:
    """The class that the victim decides for. `NO_CLASS` of a tie, which is an abstention, and of no numbers.

    Probabilities are rounded to six decimals before they come here, so equal ones are a tie for certain.
    """
    most = max(probs, default=0.0)
    first = next((number for number, value in enumerate(probs) if value == most), NO_CLASS)
    return NO_CLASS if any(value == most for value in probs[first + 1 :]) else first


def decision_name(labels: Sequence[str], number: int) -> str:
    """The label of a decided class, or that there is none."""
    return labels[number] if number >= 0 else ABSTAINED


@dataclass(frozen=True, slots=True)
class Result:
    """One finished example. Holds no timings: equal runs give equal results.

    Example:

        >>> result = next(unfooled.Run(Path("runs/x")).results())
        >>> result.original
        'a superb and moving film'
        >>> [edit.before for edit in result.edits] if result.outcome == "success" else []
        ['superb', 'moving']
    """

    key: int  # row of the data set, from 0
    outcome: Outcome
    label: int  # the true class; 0 where there are none
    fields: tuple[tuple[str, str], ...]  # name and content of every field before the attack
    field: int  # which of them was edited
    perturbed: str  # that field after the attack; equal to the original where nothing was found
    probs: tuple[float, ...] = ()  # of the original; empty after an error
    perturbed_probs: tuple[float, ...] = ()
    edits: tuple[Edit, ...] = ()
    words: int = 0  # words of the original's editable field
    queries: int = 0  # distinct texts scored by the victim
    asked: int = 0  # the same, with repetitions
    queries_known: bool = True  # False where another tool attacked and did not tell how often it asked
    tried: int | None = None  # of these, edited texts that could have become the result; None: not counted
    similarity: float | None = None  # of the last accepted edit, on the constraint's own scale
    note: str = ""  # why it ended so, where that is not obvious
    facts: tuple[tuple[str, float], ...] = ()  # what this kind of attack measures besides, by name
    uncleaned: tuple[tuple[str, str], ...] = ()  # the fields as they came, where cleaning changed them
    output: str = ""  # what a victim that writes text made of the original; then there are no `probs`
    perturbed_output: str = ""

    @property
    def original(self) -> str:
        """The edited field before the attack."""
        return self.fields[self.field][1]

    @property
    def share(self) -> float:
        """Edited words as a share of the original's words."""
        return len(self.edits) / max(1, self.words)
