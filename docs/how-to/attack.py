"""An attack of our own: letters become digits that look like them, `g00d` for `good`.

Run it: `python attack.py`. It checks the attack against the rules for attacks, attacks a small classifier
that is always there, and prints what was found.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass

import unfooled
from unfooled.attacks.checks import check_recipe
from unfooled.attacks.parts.goals import Untargeted
from unfooled.core.attempt import Attempt, Scored
from unfooled.core.program import Program
from unfooled.plugins import registry

LOOKALIKES = str.maketrans("aeiost", "43105+")


@dataclass(frozen=True, kw_only=True)
class Lookalikes:
    """The words that matter most, one after the other, are written in digits until the label flips.

    A search is a frozen dataclass: its fields are the settings that `unfooled show` lists.
    """

    most: int = 3

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        # No model is called here: this asks, and is answered together with hundreds of other searches.
        words = range(len(start.text.words))
        without = yield from a.score([start.text.delete(i) for i in words], probe=True)
        now = start
        for i in sorted(words, key=lambda i: -without[i].score)[: self.most]:
            spelt = now.text.replace(i, now.text.words[i].translate(LOOKALIKES))
            (scored,) = yield from a.score([spelt])
            now = max(now, scored, key=lambda choice: choice.score)
            if now.success:
                break
        return now


LEET = unfooled.Recipe(
    name="leet",
    version="first",
    summary="writes the most important words in digits",
    paper="our own",
    goal=Untargeted(),
    search=Lookalikes(),
)
# `leet` is the first version of this table, `leet@first` names it.
RECIPES = {"first": LEET}


def main() -> None:
    registry.register(
        "attack", "leet", RECIPES
    )  # only parts of registered attacks are rebuilt from a run file
    check_recipe(LEET)
    texts = [("a good film", "positive"), ("a superb and moving story", "positive"), ("dull", "negative")]
    with tempfile.TemporaryDirectory() as folder:
        run = unfooled.attack("fake", texts, "leet", out=folder)
        for result in run.results():
            print(result.outcome, repr(result.original), "→", repr(result.perturbed))
        print(f"success rate: {run.summary().success_rate.value:.0%}")


if __name__ == "__main__":
    main()
