"""Universal adversarial triggers: the same few words before every text of a class.

Wallace, Feng, Kandpal, Gardner, Singh: *Universal Adversarial Triggers for Attacking and Analyzing NLP*,
EMNLP 2019, arXiv:1908.07125.

    1. Start with "the the the" before every text of the class.
    2. For a batch of texts take the mean gradient of the loss at each of the three places.
    3. The 40 words whose vectors lie farthest along it are tried in that place, on the whole batch;
    4. the word that leaves the lowest mean p(true class) stays (with a target: the highest p(target)), place
       by place, with a beam.
    5. Batch after batch, five times over the data. Then the words are put before any text: one query.

Steps 1 to 4 are `unfooled trigger --model MODEL --data TRAINING_DATA --out trigger.json`, which needs
gradients and tells how many texts it flips that it did not learn from. The attack reads the file that
`search.trigger` names, and needs nothing of the victim but its decision: a trigger of one model can be tried
on another.

Versions
    @paper       as above.

Learn it on training data, never on the texts that are attacked.

Differences from the authors' code
    - The words are the whole words of the victim's vocabulary, and every option is scored as real text.
    - A place keeps its word where no other does better, so that a batch never makes the trigger worse on it;
      learning ends when a pass over the data changes nothing.
    - A trigger is learned from the texts that the victim gets right.
    - Of a pair the trigger stands before the field that may be edited.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from unfooled.attacks.parts.class_words import target_of
from unfooled.attacks.parts.goals import untargeted_versions
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program, ask
from unfooled.core.recipe import Recipe, asking
from unfooled.resources.triggers import COMMAND, put_before


@dataclass(frozen=True, kw_only=True)
class PutTrigger:
    """The trigger against the text's class, before the text; one query."""

    tries: ClassVar[int] = 1
    trigger: str = "trigger.json"

    asks = asking("trigger:{self.trigger}")

    @property
    def reads(self) -> Mapping[str, str]:
        remedy = f"make it: {COMMAND.format(self.trigger)}, or name yours: --set search.trigger=FILE"
        return {self.trigger: remedy}

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        target = target_of(a.goal)
        asked = (a.label, -1 if target is None else target)
        (words,) = yield from ask(f"trigger:{self.trigger}", [asked])
        if not words:
            a.note = "the file has no trigger against this class"
            return start
        (end,) = yield from a.score([put_before(start.text, words)])
        return end


RECIPES: dict[str, Recipe] = untargeted_versions(
    {"paper": PutTrigger()},
    name="uat",
    summary="puts the same few words, learned on other texts, before every text of a class",
    paper="Wallace et al. 2019, arXiv:1908.07125",
    needs=(),
)
