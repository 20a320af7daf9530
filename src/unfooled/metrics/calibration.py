"""What a similarity threshold chosen for one encoder means for another.

Real texts get one word replaced, by a near neighbour or by a random word of the data. Both encoders measure
every pair. A threshold of the first lets a certain share of these pairs pass; the threshold of the second
that lets the same share pass is the one that means the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import NDArray

from unfooled.attacks.parts.constraints import Scale, on_scale
from unfooled.attacks.parts.search import attackable
from unfooled.data.loading import Given, as_dataset
from unfooled.errors import DataError, MissingExtraError, UserError
from unfooled.extras import libraries_of
from unfooled.files import write_json
from unfooled.plugins import registry
from unfooled.text import Text, match_case

Values: TypeAlias = NDArray[np.float64]
Encode: TypeAlias = Callable[[Sequence[str]], Sequence[NDArray[Any]]]
Nearest: TypeAlias = Callable[[str], Sequence[str]]
Kind = Literal["neighbours", "random"]
Kinds = Literal["neighbours", "random", "both"]
Progress: TypeAlias = Callable[[int, int], None]  # done, of how many

STOPWORDS = "textfooler"
CURVE = (1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 98, 99)  # percentiles
_BATCH = 256
_Z = NormalDist().inv_cdf(0.975)


class WordReplacement(NamedTuple):
    """A stretch of a real text, and the same with one word replaced."""

    kind: Kind
    before: str
    after: str


class Threshold(NamedTuple):
    encoder: str
    scale: Scale
    value: float

    @classmethod
    def parse(cls, given: str, scale: Scale) -> Threshold:
        """`use:0.9`"""
        encoder, _, value = given.rpartition(":")
        try:
            number = float(value)
        except ValueError:
            number = np.nan
        if not encoder or not np.isfinite(number):
            raise UserError(
                f"--from {given!r} is no threshold", "write --from ENCODER:THRESHOLD, such as use:0.9"
            )
        return cls(encoder, scale, number)


def as_scale(given: str) -> Scale:
    if given not in get_args(Scale):
        raise UserError(f"there is no scale {given!r}", f"use {', '.join(get_args(Scale))}")
    return cast(Scale, given)


def as_window(given: str) -> int | None:
    if given.lower() == "none":
        return None
    if not given.isdecimal() or int(given) < 1:
        raise UserError(
            f"--window {given!r} is no number of words", "write a number, or none for whole texts"
        )
    return int(given)


@dataclass(frozen=True)
class Calibration:
    """A threshold and its equal, with what they were read from."""

    source: Threshold
    target: Threshold
    low: float  # 95 % interval of the target's value
    high: float
    window: int | None
    pairs: int
    passing: float  # share of the pairs at or above the threshold, the same for both
    passing_by_kind: dict[str, tuple[float, float]]  # share for the source and for the target
    agreement: float  # share of the pairs on which both decide alike
    correlation: float  # of the ranks that both give to the pairs
    curve: tuple[tuple[int, float, float], ...]  # percentile, source's value, target's value
    data: str
    seed: int

    def to_dict(self) -> dict[str, Any]:
        described = asdict(self)
        described["source"], described["target"] = self.source._asdict(), self.target._asdict()
        return described


def make_pairs(
    data: Given,
    nearest: Nearest | None,
    *,
    count: int = 2000,
    kinds: Kinds = "both",
    window: int | None = None,
    seed: int = 0,
) -> list[WordReplacement]:
    """About `count` pairs, each kind in turn; texts are used again where there are few."""
    if kinds not in get_args(Kinds):
        raise DataError(f"there are no pairs of the kind {kinds!r}", f"use {', '.join(get_args(Kinds))}")
    if nearest is None and kinds != "random":
        raise ValueError("neighbours are asked for, but nobody gives any")
    data = as_dataset(data)
    texts = [(example.key, example.text()) for example in data if not example.problem]
    texts = [(key, text) for key, text in texts if attackable(text, STOPWORDS)]
    vocabulary = sorted({word.lower() for _, text in texts for word in text.words if word.isalpha()})
    if not texts or len(vocabulary) < 2:
        raise DataError(f"{data.name} has no words to replace", "give other texts")
    wanted: tuple[Kind, ...] = ("neighbours", "random") if kinds == "both" else (kinds,)
    found: list[WordReplacement] = []
    # A text without a neighbour gives none: a few more rounds than needed, then what there is must do.
    for round_ in range(4 * -(-count // len(texts))):
        for place, (key, text) in enumerate(texts):
            kind = wanted[(place + round_) % len(wanted)]
            rng = np.random.default_rng([seed, key, round_])
            near = nearest if kind == "neighbours" else None
            found += _pair(text, kind, near, vocabulary, window, rng)
            if len(found) >= count:
                return found
    return found


def _pair(
    text: Text,
    kind: Kind,
    nearest: Nearest | None,
    vocabulary: Sequence[str],
    window: int | None,
    rng: np.random.Generator,
) -> Iterator[WordReplacement]:
    positions = attackable(text, STOPWORDS)
    index = positions[int(rng.integers(len(positions)))]
    word = text.words[index]
    options = vocabulary if nearest is None else nearest(word.lower())
    if options:
        new = match_case(options[int(rng.integers(len(options)))], word)
        if new != word:
            yield WordReplacement(kind, text.window(index, window), text.window(index, window, new))


def measure(
    pairs: Sequence[WordReplacement],
    encode: Encode,
    scale: Scale,
    *,
    progress: Progress | None = None,
) -> Values:
    """Similarity of each pair on the scale."""
    texts = list(dict.fromkeys(text for pair in pairs for text in (pair.before, pair.after)))
    rows: dict[str, NDArray[Any]] = {}
    for start in range(0, len(texts), _BATCH):
        if progress:
            progress(start, len(texts))
        portion = texts[start : start + _BATCH]
        rows.update(zip(portion, encode(portion), strict=True))
    cosines = np.array([float(rows[pair.before] @ rows[pair.after]) for pair in pairs])
    return np.array(on_scale(cosines, scale), dtype=np.float64)


def calibrate(
    source: Threshold,
    target: tuple[str, Scale],
    pairs: Sequence[WordReplacement],
    ours: Values,
    theirs: Values,
    *,
    window: int | None = None,
    data: str = "",
    seed: int = 0,
) -> Calibration:
    """The target's threshold that as many pairs reach as the source's; `ours` are the source's values."""
    below = float((ours < source.value).mean())
    if below in (0.0, 1.0):
        raise DataError(
            f"{'every' if below == 0.0 else 'none'} of the {len(pairs)} pairs reaches {source.value:g} "
            f"({source.scale}, {source.encoder}); the values lie between {ours.min():.4f} and "
            f"{ours.max():.4f}",
            "choose a threshold in between, take more pairs (--pairs), "
            f"or pairs of the kind {'random' if below == 0.0 else 'neighbours'} (--kind)",
        )
    value = float(np.quantile(theirs, below))
    low, high = threshold_interval(source.value, ours, theirs, target[1])
    passed, passes = ours >= source.value, theirs >= value
    kinds = {pair.kind for pair in pairs}
    by_kind: dict[str, tuple[float, float]] = {}
    for kind in sorted(kinds):
        mine = np.array([pair.kind == kind for pair in pairs])
        by_kind[kind] = (float(passed[mine].mean()), float(passes[mine].mean()))
    return Calibration(
        source=source,
        target=Threshold(*target, round(value, 6)),
        low=round(low, 6),
        high=round(high, 6),
        window=window,
        pairs=len(pairs),
        passing=1.0 - below,
        passing_by_kind=by_kind,
        agreement=float((passed == passes).mean()),
        correlation=_rank_correlation(ours, theirs),
        curve=tuple(
            (p, round(float(np.percentile(ours, p)), 6), round(float(np.percentile(theirs, p)), 6))
            for p in CURVE
        ),
        data=data,
        seed=seed,
    )


def threshold_interval(threshold: float, ours: Values, theirs: Values, scale: Scale) -> tuple[float, float]:
    """Thresholds of the target that as many pairs may well pass as the source's, by McNemar's test at 5 %.

    Pairs that only one of both lets pass decide. Where too few pairs lie beyond, an end is that of the scale.
    """
    order = np.argsort(theirs, kind="stable")
    passed = (ours >= threshold)[order]
    # With the threshold above the k lowest of the target's values, for every k:
    only_ours = np.concatenate([[0], np.cumsum(passed)])
    only_theirs = (~passed).sum() - np.concatenate([[0], np.cumsum(~passed)])
    possible = np.flatnonzero((only_ours - only_theirs) ** 2 <= _Z**2 * (only_ours + only_theirs))
    least, most = on_scale(np.array([-1.0, 1.0]), scale)
    ends = np.concatenate([[least], theirs[order], [most]])
    return float(ends[possible[0]]), float(ends[possible[-1] + 1])


def _rank_correlation(first: Values, second: Values) -> float:
    """Spearman's; equal values share their ranks."""
    ranks = []
    for values in (first, second):
        _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
        ranks.append((np.cumsum(counts) - (counts - 1) / 2.0)[places])
    if any(rank.std() == 0.0 for rank in ranks):
        return 0.0
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def nearest_of(table: str) -> Nearest:
    """The near words that a neighbour table knows, by its name or path."""
    oracle = registry.load("oracle", "neighbours")(table)

    def nearest(word: str) -> tuple[str, ...]:
        (found,) = oracle([(word, 50, 0.5)])
        return tuple(found)

    return nearest


def save(
    found: Calibration, ours: Values, theirs: Values, folder: Path
) -> tuple[list[Path], MissingExtraError | None]:
    """The files written, and why there is no plot among them."""
    numbers, *drawn = (folder / f"calibration.{kind}" for kind in ("json", "svg", "png"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_json(numbers, found.to_dict())
        try:
            plot(found, ours, theirs, drawn)
        except MissingExtraError as error:
            return [numbers], error
    except OSError as error:
        raise UserError(
            f"{folder}: cannot be written ({error.strerror or error})", "choose another --out"
        ) from error
    return [numbers, *drawn], None


def plot(found: Calibration, ours: Values, theirs: Values, paths: Sequence[Path]) -> None:
    """Every pair as a point, and the line of equal percentiles."""
    with libraries_of("plots", "matplotlib", needed_for="drawing the curve"):
        from matplotlib.figure import Figure
    figure = Figure(figsize=(5.5, 5.0), layout="constrained")
    axis = figure.subplots()
    axis.plot(ours, theirs, ".", markersize=2, alpha=0.25, color="#86bbd8", label="pairs", zorder=1)
    grid = np.linspace(0.0, 100.0, 201)
    axis.plot(np.percentile(ours, grid), np.percentile(theirs, grid), color="#33658a", label="equal share")
    axis.plot(found.source.value, found.target.value, "o", color="#d1495b", label="threshold", zorder=3)
    axis.set_xlabel(f"{found.source.encoder} ({found.source.scale})")
    axis.set_ylabel(f"{found.target.encoder} ({found.target.scale})")
    axis.set_title(
        f"{found.source.value:g} becomes {found.target.value:.3f}, {found.pairs:,} pairs", fontsize=10
    )
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, fontsize=8)
    for path in paths:
        figure.savefig(path, dpi=120)
