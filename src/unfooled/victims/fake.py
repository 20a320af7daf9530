"""A shipped fake: a lexicon classifier that needs no files and no dependency.

Every word of the text that stands in one of the two lists adds its weight; the logistic function of the
sum is the probability of `positive`. It answers real English sensibly, so tests, examples and
documentation attack it like any other victim.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from unfooled.core.victim import (
    Probabilities,
    Reloadable,
    TextValue,
    digest,
    join_fields,
    require_not_negative,
    softmax,
)
from unfooled.errors import VictimError
from unfooled.text import WORD
from unfooled.victims.labels import settle_labels

STRONG, WEAK = 2.0, 1.0
BIAS = -0.1  # no word known: weakly negative, so that no text is a tie

POSITIVE: dict[float, str] = {
    STRONG: """amazing astonishing brilliant captivating delightful dazzling excellent exceptional exquisite
        fantastic flawless gorgeous great hilarious incredible love loved magnificent masterful masterpiece
        outstanding perfect remarkable splendid stunning superb terrific thrilling unforgettable wonderful""",
    WEAK: """amusing appealing beautiful best better charming clever compelling cute decent engaging enjoy
        enjoyable enjoyed entertaining fascinating fine fresh fun funny good happy impressive inspired
        interesting likable lively moving nice pleasant pleasing refreshing satisfying smart solid strong
        sweet touching warm witty worthwhile""",
}
NEGATIVE: dict[float, str] = {
    STRONG: """abysmal appalling atrocious awful disaster disastrous disgusting dreadful excruciating failure
        fails garbage hate hated hideous horrendous horrible insufferable insulting laughable lousy miserable
        pathetic repulsive terrible trash unbearable unwatchable worst worthless""",
    WEAK: """annoying bad banal bland boring cheap clumsy contrived cliched confusing dated disappointing
        disappointment drab dreary dull dumb empty flat forced forgettable incoherent lame lifeless mediocre
        mess messy muddled numbing pointless poor poorly predictable sad shallow silly slow stale stupid
        tedious tired uneven uninspired unfunny weak worse""",
}


def _weights() -> dict[str, float]:
    weights = {word: weight for weight, words in POSITIVE.items() for word in words.split()}
    weights.update({word: -weight for weight, words in NEGATIVE.items() for word in words.split()})
    return weights


WEIGHTS = _weights()


class FakeVictim(Reloadable):
    """The lexicon classifier, with faults to order for tests.

    `poison` raises on every text that contains it, `nan_on` answers NaN there, `delay` sleeps that many
    seconds in every call.
    """

    name = "fake"
    capabilities = frozenset({"probabilities"})
    batch_size = 4096

    def __init__(
        self,
        *,
        labels: Sequence[str] | None = None,
        poison: str = "",
        nan_on: str = "",
        delay: float = 0.0,
    ) -> None:
        self.labels, self._order = settle_labels(("negative", "positive"), labels)
        self.poison = poison
        self.nan_on = nan_on
        self.delay = delay

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        if self.delay:
            time.sleep(self.delay)
        find, known = WORD.findall, WEIGHTS
        totals = np.empty(len(texts))
        for row, text in enumerate(texts):
            string = text if isinstance(text, str) else join_fields(text)
            if self.poison and self.poison in string:
                raise VictimError(
                    f"the fake victim chokes on {self.poison!r}", "it was told to: drop `poison`"
                )
            total = BIAS
            for word in find(string.lower()):
                if word in known:
                    total += known[word]
            totals[row] = np.nan if self.nan_on and self.nan_on in string else total
        probabilities = softmax(np.stack([np.zeros_like(totals), totals], axis=1))
        return probabilities if self._order is None else probabilities[:, self._order]

    def fingerprint(self) -> str:
        return digest("fake", sorted(WEIGHTS.items()), BIAS, self.labels, self.poison, self.nan_on)


def load(
    rest: str,
    *,
    labels: Sequence[str] | None = None,
    trust_pickle: bool = False,
    poison: str = "",
    nan_on: str = "",
    delay: float = 0.0,
) -> FakeVictim:
    """`fake`"""
    if rest:
        raise VictimError(f"the fake victim takes no name, but got {rest!r}", "write `fake`")
    require_not_negative(delay=delay)
    return FakeVictim(labels=labels, poison=poison, nan_on=nan_on, delay=delay)
