"""Take back what a success does not need: each change less is one that cannot displease."""

from __future__ import annotations

from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program
from unfooled.errors import BudgetExhaustedError
from unfooled.text import Text


def undo_needless(a: Attempt, found: Scored) -> Program[Scored]:
    """Takes back one edit after the other, the one that costs least first, as long as the goal is reached."""
    while found.success and len(shorter := with_one_undone(found.text)) > 1:
        try:
            scored = yield from a.score(shorter)
        except BudgetExhaustedError:
            return found
        won = [candidate for candidate in scored if candidate.success]
        if not won:
            return found
        found = max(won, key=lambda candidate: candidate.score)
    return found


def with_one_undone(text: Text) -> list[Text]:
    """The text with each of its replaced words put back, or each inserted one taken out."""
    original = text.root.words
    return [
        text.delete(i) if came_from < 0 else text.replace(i, original[came_from])
        for i, (word, came_from) in enumerate(zip(text.words, text.origin, strict=True))
        if came_from < 0 or word != original[came_from]
    ]
