"""BLEU and chrF as sacrebleu computes them: of a corpus, of a sentence, and with paired bootstrap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from unfooled.extras import libraries_of

Metric = Literal["bleu", "chrf"]
METRICS: tuple[Metric, ...] = ("bleu", "chrf")
SAMPLES = 1000


@dataclass(frozen=True, slots=True)
class ScoreChange:
    """A corpus score before and after, their difference (after - before), each with its 95 % interval.

    `p` is the chance of so large a difference if there were none, by paired bootstrap over the sentences.
    """

    metric: Metric
    before: tuple[float, float, float]  # value, low, high
    after: tuple[float, float, float]
    change: tuple[float, float, float]
    p: float
    n: int
    signature: str


@lru_cache(maxsize=4)
def _scorer(metric: Metric, sentence: bool) -> Any:
    with libraries_of("translation", "sacrebleu", needed_for="BLEU"):
        from sacrebleu.metrics.bleu import BLEU
        from sacrebleu.metrics.chrf import CHRF
    return CHRF() if metric == "chrf" else BLEU(effective_order=sentence)


def require() -> None:
    """Load sacrebleu, or say how to get it."""
    _scorer("bleu", False)


def corpus_score(outputs: Sequence[str], references: Sequence[str], metric: Metric = "bleu") -> float:
    """0 to 100."""
    return float(_scorer(metric, False).corpus_score(list(outputs), [list(references)]).score)


def sentence_score(output: str, reference: str, metric: Metric = "bleu") -> float:
    """0 to 100; BLEU with effective order and exponential smoothing, sacrebleu's default for sentences."""
    return float(_scorer(metric, True).sentence_score(output, [reference]).score)


def signature(metric: Metric = "bleu") -> str:
    """What sacrebleu asks to be reported beside a score."""
    scorer = _scorer(metric, False)
    scorer.corpus_score(["a"], [["a"]])  # the signature knows the number of references only afterwards
    return str(scorer.get_signature())


def compare(
    before: Sequence[str],
    after: Sequence[str],
    references: Sequence[str],
    metric: Metric = "bleu",
    *,
    samples: int = SAMPLES,
    seed: int = 12345,
) -> ScoreChange:
    """Two outputs per sentence against the same references; the same sentences are drawn for both."""
    scorer = _scorer(metric, False)
    first, second = (
        np.array(scorer._extract_corpus_statistics(list(outputs), [list(references)]), dtype=np.float64)
        for outputs in (before, after)
    )
    n = len(first)
    rng = np.random.default_rng(seed)
    drawn = rng.integers(n, size=(samples, n))
    counts = np.zeros((samples, n))
    np.add.at(counts, (np.arange(samples)[:, None], drawn), 1.0)

    def score(sums: Any) -> float:
        return float(scorer._compute_score_from_stats(list(sums)).score)

    values = np.array([[score(row) for row in counts @ stats] for stats in (first, second)])
    real = [score(stats.sum(axis=0)) for stats in (first, second)]
    changes = values[1] - values[0]
    change = real[1] - real[0]
    extreme = int((np.abs(changes - changes.mean()) >= abs(change)).sum())
    # A bootstrap of a few sentences sees too little variation; an exact test of k pairs that differ never
    # gets below 2^(1-k).
    differing = int((first != second).any(axis=1).sum())
    p = max((extreme + 1) / (samples + 1), min(1.0, 2.0 ** (1 - differing)))
    return ScoreChange(
        metric,
        (real[0], *_middle(values[0], n, 0.0)),
        (real[1], *_middle(values[1], n, 0.0)),
        (change, *_middle(changes, n, -100.0)),
        p,
        n,
        signature(metric),
    )


def _middle(values: Any, n: int, least: float) -> tuple[float, float]:
    """95 % of the values; one sentence says nothing of others, so everything stays possible."""
    if n < 2:
        return least, 100.0
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)
