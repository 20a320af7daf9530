"""Classifiers side by side on the same rows: how right, how large, how fast, how long they were trained."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unfooled.core.victim import TextValue, Victim
from unfooled.core.victim_oracle import decisions
from unfooled.data.loading import Given, as_dataset
from unfooled.errors import DataError
from unfooled.extras import libraries_of
from unfooled.files import write_table
from unfooled.passes import to_device, to_host
from unfooled.rates import accuracy, confusion, f1_interval, macro_f1, wilson
from unfooled.training.preparation import LabelledTexts, read_rows
from unfooled.victims.loading import GivenVictim, as_victim

_WARM = 500  # texts that are predicted before the clock starts
_PANELS = {
    "accuracy": "accuracy, %",
    "macro_f1": "macro F1, %",
    "texts_per_second": "texts per second",
    "parameters": "parameters",
    "training_seconds": "training, seconds",
}
_COEFFICIENTS = ("coef_", "intercept_", "feature_log_prob_", "class_log_prior_", "idf_")


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One classifier. None where a figure cannot be known, such as the size of an endpoint."""

    name: str
    family: str
    n: int
    skipped: int
    accuracy: float
    accuracy_low: float
    accuracy_high: float
    macro_f1: float
    macro_f1_low: float
    macro_f1_high: float
    parameters: int | None
    megabytes: float | None
    texts_per_second: float
    padding: float | None  # share of all tokens computed
    of_bare_loop: float | None  # texts per second, as a share of a bare forward loop's
    training_seconds: float | None


def compare(
    victims: Iterable[GivenVictim],
    data: Given,
    *,
    label_map: Mapping[str, str] | None = None,
    bare: bool = False,
) -> list[Measured]:
    """Measure each on the same rows; two of one name are numbered.

    `victims` are what `attack` takes, and may load one after the other: none is kept. `bare` also times a
    bare forward loop, where there is a model to loop.

    Example:

        >>> (measured,) = unfooled.compare(["fake"], "reviews.csv")
        >>> measured.accuracy
        1.0
    """
    data = as_dataset(data)
    measured: list[Measured] = []
    names: Counter[str] = Counter()
    for given in victims:
        victim = as_victim(given)
        rows, skipped = read_rows(data.aligned(victim.labels, label_map))
        if not len(rows):
            raise DataError(f"{data.name}: no row can be used", "check the text and label columns")
        names[victim.name] += 1
        times = names[victim.name]
        name = victim.name if times == 1 else f"{victim.name} ({times})"
        measured.append(measure(victim, rows, name=name, skipped=skipped, bare=bare))
        del victim, given  # before the next one is loaded
    return measured


def measure(
    victim: Victim, rows: LabelledTexts, *, name: str = "", skipped: int = 0, bare: bool = False
) -> Measured:
    order = sorted(range(len(rows)), key=lambda i: _length(rows.texts[i]))
    texts = [rows.texts[i] for i in order]
    # A network's libraries prepare themselves for each new shape of a batch, which is not counted. Others
    # see one text only: they may remember what they have seen.
    _predict(victim, texts[:: max(1, len(texts) // _WARM)] if hasattr(victim, "model") else texts[:1])
    before = _meter(victim)
    began = time.perf_counter()
    predicted = _predict(victim, texts)
    seconds = time.perf_counter() - began
    after = _meter(victim)
    table = confusion(rows.labels[order], predicted, len(victim.labels))
    hits = int(np.trace(table))
    low, high = wilson(hits, len(rows))
    f1_low, f1_high = f1_interval(table)
    tokens, padding = after[0] - before[0], after[1] - before[1]
    rate = len(rows) / max(seconds, 1e-9)
    record = training_record(victim)
    return Measured(
        name=name or victim.name,
        family=str(record.get("family", "")),
        n=len(rows),
        skipped=skipped,
        accuracy=float(accuracy(table)),
        accuracy_low=low,
        accuracy_high=high,
        macro_f1=float(macro_f1(table)),
        macro_f1_low=f1_low,
        macro_f1_high=f1_high,
        parameters=parameters(victim),
        megabytes=megabytes(victim),
        texts_per_second=rate,
        padding=padding / max(1, tokens + padding) if tokens else None,
        of_bare_loop=beside_bare_loop(victim, texts).ratio if bare and hasattr(victim, "model") else None,
        training_seconds=float(record["seconds"]) if "seconds" in record else None,
    )


def parameters(victim: Victim) -> int | None:
    """Numbers that were learned."""
    if (model := getattr(victim, "model", None)) is not None and hasattr(model, "parameters"):
        return sum(int(weights.numel()) for weights in model.parameters())
    steps = getattr(getattr(victim, "pipeline", None), "steps", None)
    if steps is None:
        return None
    found = [getattr(part, name, None) for _, part in steps for name in _COEFFICIENTS]
    return sum(int(np.size(weights)) for weights in found if weights is not None) or None


def megabytes(victim: Victim) -> float | None:
    """Of the files that are needed to load it."""
    if (path := getattr(victim, "path", None)) is not None:
        return float(Path(path).stat().st_size / 1e6)
    if (folder := getattr(victim, "folder", None)) is None:
        return None
    files = [path for path in Path(folder).iterdir() if path.is_file() and path.name != "training.json"]
    return sum(path.stat().st_size for path in files) / 1e6


def training_record(victim: Victim) -> dict[str, Any]:
    """`training.json` beside the model, where there is one."""
    path, folder = getattr(victim, "path", None), getattr(victim, "folder", None)
    where = folder or (Path(path).parent if path else None)
    if where is None or not (Path(where) / "training.json").is_file():
        return {}
    try:
        content = json.loads((Path(where) / "training.json").read_text(encoding="utf-8"))
    except ValueError:
        return {}
    return content if isinstance(content, dict) and content.get("status") == "finished" else {}


@dataclass(frozen=True)
class Speed:
    """Texts per second, ours and a bare loop's, and the ratio: medians over the rounds."""

    rate: float
    bare_rate: float
    ratio: float


def beside_bare_loop(
    victim: Any,
    texts: Sequence[TextValue],
    rounds: int = 3,
    clock: Callable[[], float] = time.perf_counter,
) -> Speed:
    """Both in turn, so that a slow second of the machine hits both."""
    ours: list[float] = []
    theirs: list[float] = []
    for number in range(rounds):
        for mine in (True, False) if number % 2 == 0 else (False, True):
            began = clock()
            if mine:
                _predict(victim, texts)
            else:
                bare_loop(victim, texts)
            (ours if mine else theirs).append(len(texts) / (clock() - began))
    ratios = [mine / bare for mine, bare in zip(ours, theirs, strict=True)]
    return Speed(median(ours), median(theirs), median(ratios))


def bare_loop(victim: Any, texts: Sequence[TextValue], size: int = 32) -> None:
    """The shortest honest loop: tokens, batches of like length, padding, forward."""
    import torch

    pairs = not isinstance(texts[0], str)
    encoded = victim.tokenizer(
        [text[0] for text in texts] if pairs else list(texts),
        [text[1] for text in texts] if pairs else None,
        truncation=True,
        max_length=victim.max_length,
    )
    lengths = [len(ids) for ids in encoded["input_ids"]]
    order = sorted(range(len(texts)), key=lengths.__getitem__)
    fill = {"input_ids": victim.tokenizer.pad_token_id or 0}
    with torch.inference_mode():
        for start in range(0, len(order), size):
            members = order[start : start + size]
            longest = max(1, lengths[members[-1]])
            batch = {
                name: torch.tensor([rows[i] + [fill.get(name, 0)] * (longest - lengths[i]) for i in members])
                for name, rows in encoded.items()
            }
            to_host(victim.model(**to_device(batch, victim.model)).logits)


def write_csv(measured: Sequence[Measured], path: Path) -> None:
    names = [field.name for field in fields(Measured)]
    write_table(path, names, (asdict(model).values() for model in measured))


def plot(measured: Sequence[Measured], title: str, paths: Sequence[Path]) -> None:
    """One panel per figure, one bar per classifier, intervals where there are any."""
    with libraries_of("plots", "matplotlib", needed_for="the plot"):
        from matplotlib.figure import Figure
    figure = Figure(figsize=(15, 1.4 + 0.42 * len(measured)), layout="constrained")
    axes = figure.subplots(1, len(_PANELS), sharey=True)
    figure.suptitle(f"{title}; whiskers: 95 % intervals")
    places = np.arange(len(measured))
    for axis, (name, heading) in zip(axes, _PANELS.items(), strict=True):
        values = [getattr(model, name) for model in measured]
        if name in ("accuracy", "macro_f1"):
            low = [getattr(model, name) - getattr(model, f"{name}_low") for model in measured]
            high = [getattr(model, f"{name}_high") - getattr(model, name) for model in measured]
            errors = np.maximum([low, high], 0)
            bars = axis.barh(places, values, xerr=errors, color="#9dbcd4", height=0.65, capsize=3)
            axis.bar_label(bars, [f"{100 * value:.1f}" for value in values], fontsize=8, label_type="center")
            axis.set_xlim(0, 1)
            axis.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25", "50", "75", "100"])
        else:
            # Points, not bars: a logarithmic axis has no zero that a bar could begin at.
            _points(axis, values)
        axis.set_title(heading, fontsize=10)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_yticks(places, [model.name for model in measured])
    axes[0].set_ylim(len(measured) - 0.5, -0.5)
    for path in paths:
        figure.savefig(path, dpi=120)


def _predict(victim: Victim, texts: Sequence[TextValue]) -> NDArray[np.intp]:
    step = max(1, victim.batch_size)
    parts = [decisions(victim.predict(texts[at : at + step])) for at in range(0, len(texts), step)]
    return np.concatenate(parts)


def _meter(victim: Victim) -> tuple[int, int]:
    meter = getattr(victim, "meter", None)
    return (meter.tokens, meter.padding) if meter is not None else (0, 0)


def _length(text: TextValue) -> int:
    return len(text) if isinstance(text, str) else sum(map(len, text))


def _points(axis: Any, values: Sequence[float | None]) -> None:
    known = [(value, at) for at, value in enumerate(values) if value]
    if not known:
        axis.set_xticks([])
        return
    axis.set_xscale("log")
    axis.xaxis.minorticks_off()
    numbers = [value for value, _ in known]
    axis.set_xlim(min(numbers) / 3, max(numbers) * 12)  # the figure stands to the right of its point
    axis.plot(*zip(*known, strict=True), "o", color="#33658a")
    for value, at in known:
        axis.annotate(_short(value), (value, at), xytext=(6, -3), textcoords="offset points", fontsize=8)
    axis.grid(axis="x", alpha=0.3)


def _short(value: float) -> str:
    for size, unit in ((1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"
