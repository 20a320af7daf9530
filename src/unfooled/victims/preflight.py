"""Looking at a victim before an attack: is it what the user thinks it is?"""

from __future__ import annotations

import itertools
import math
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unfooled.core.victim import Probabilities, TextValue, Victim, margins_of, option
from unfooled.core.victim_oracle import (
    DECIMALS,
    FEW,
    SCALE,
    SEVERAL,
    NotProbabilitiesError,
    ScoreRange,
    validate,
)
from unfooled.errors import UserError, VictimError

Verdict = Literal["ok", "warning", "fail"]

_TEXTS = 200  # examples looked at
_GIVEN_UP = 10  # texts from all over the sample without any answer, after which a victim counts as broken
_REPEATED = 8  # texts asked again
_SURE = 0.01  # one-sided p-value below which an accuracy is above chance
_CLEARLY_BETTER = 0.2  # accuracy that another order of the labels must gain to be mentioned
_MOST_ORDERS = 7  # classes up to which all orders are tried


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    verdict: Verdict
    message: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Preflight:
    """What was found. `lines` prints it, `raise_for_fail` stops on what would make every number wrong."""

    victim: str
    checks: tuple[Check, ...]
    seconds_per_text: float | None = None  # None where it was not measured

    @property
    def failed(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.verdict == "fail")

    def lines(self) -> list[str]:
        marks = {"ok": "ok  ", "warning": "warn", "fail": "FAIL"}
        width = max(len(check.name) for check in self.checks)
        return [
            f"{marks[check.verdict]} {check.name:<{width}}  {check.message}"
            + (f" → {check.remedy}" if check.remedy else "")
            for check in self.checks
        ]

    def raise_for_fail(self) -> None:
        for check in self.failed:
            named = re.search(rf"(?<!\w){re.escape(self.victim)}(?!\w)", check.message)
            cause = check.message if named else f"{self.victim}: {check.message}"
            raise VictimError(cause, check.remedy)


def preflight(victim: Victim, texts: Sequence[TextValue], labels: Sequence[int]) -> Preflight:
    """Look at the victim with up to 200 of the data's texts and their true classes."""
    texts, labels = list(texts[:_TEXTS]), list(labels[:_TEXTS])
    truncated_before = getattr(victim, "truncated", None)
    started = time.perf_counter()
    scores, answered, problem = _try(victim, texts)
    if problem is not None and not answered:
        return Preflight(victim.name, (Check("answers", "fail", *_reason(problem)),))
    seconds = time.perf_counter() - started
    cut = None if truncated_before is None else int(getattr(victim, "truncated", 0)) - truncated_before
    asked = len(texts)
    checks = []
    if problem is not None:
        checks.append(_refused(len(texts) - len(answered), len(texts), problem))
        texts, labels = [texts[i] for i in answered], [labels[i] for i in answered]
    checks += [
        _answers(victim, scores),
        _repeats(victim, texts, scores),
        _label_order(victim, scores, labels),
    ]
    if cut is not None:
        checks.append(_truncation(cut, asked))
    shown = {"probabilities": "scores (no probabilities)"} if margins_of(victim) else {}
    found = (
        ", ".join(shown.get(capability, capability) for capability in sorted(victim.capabilities))
        or "labels only"
    )
    checks.append(Check("capabilities", "ok", found))
    checks.append(Check("speed", "ok", f"{len(texts) / max(seconds, 1e-9):,.0f} texts per second"))
    return Preflight(victim.name, tuple(checks), seconds / max(1, asked))


def _ask(victim: Victim, texts: Sequence[TextValue]) -> Probabilities:
    size = max(1, victim.batch_size)
    parts = [np.zeros((0, len(victim.labels)))]
    for start in range(0, len(texts), size):
        batch = list(texts[start : start + size])
        parts.append(validate(victim.predict(batch), len(batch), victim.labels, victim.name))
    return np.concatenate(parts)


def _try(victim: Victim, texts: list[TextValue]) -> tuple[Probabilities, list[int], Exception | None]:
    """The answers, which texts they belong to, and the first problem.

    A text that the victim chokes on must not hide the others, so a failed batch is asked one by one. A
    victim that answers none of ten texts from all over the sample is given up; so is one that cannot be
    reached, at once.
    """
    size = max(1, victim.batch_size)
    rows: list[Probabilities] = []
    answered: list[int] = []
    problem: Exception | None = None
    for start in range(0, len(texts), size):
        batch = texts[start : start + size]
        try:
            rows.append(_ask(victim, batch))
            answered += range(start, start + len(batch))
        except Exception as failed:
            error = failed
            if isinstance(error, NotProbabilitiesError):
                # Rows of such a victim may pass by accident; asked again, because one answer may be broken.
                try:
                    rows.append(_ask(victim, batch))
                    answered += range(start, start + len(batch))
                    continue
                except NotProbabilitiesError as again:
                    return np.zeros((0, 0)), [], again
                except Exception as other:
                    error = other
            if _hopeless(error) or (not answered and not _answers_any(victim, texts)):
                return np.zeros((0, 0)), [], error
            problem = problem or error
            for index in range(start, start + len(batch)):
                try:
                    rows.append(_ask(victim, [texts[index]]))
                    answered.append(index)
                except Exception as single:
                    if _hopeless(single):
                        return np.zeros((0, 0)), [], single
                    problem = single
    if problem is not None and not answered:
        return np.zeros((0, 0)), [], problem
    return np.concatenate([np.zeros((0, len(victim.labels))), *rows]), answered, problem


def _answers_any(victim: Victim, texts: list[TextValue]) -> bool:
    few = min(_GIVEN_UP, len(texts))
    for turn in range(few):
        try:
            _ask(victim, [texts[turn * len(texts) // few]])
            return True
        except Exception as error:
            if _hopeless(error):
                return False
    return False


def _hopeless(error: Exception) -> bool:
    """No other text would help: the victim is not there, or something that it needs."""
    return getattr(error, "fatal", False) or (
        isinstance(error, UserError) and not isinstance(error, VictimError)
    )


def _reason(problem: Exception) -> tuple[str, str]:
    if isinstance(problem, UserError):
        return problem.cause, problem.remedy
    return f"{type(problem).__name__}: {problem}", "mend the victim: it fails on texts of this data"


def _refused(count: int, total: int, problem: Exception) -> Check:
    cause, _ = _reason(problem)
    message = f"{count} of {total} texts get no answer ({cause})"
    return Check("refused texts", "warning", message, "these examples will end as errors")


def _answers(victim: Victim, scores: Probabilities) -> Check:
    if "probabilities" not in victim.capabilities:
        return Check(
            "answers",
            "warning",
            "decided labels without scores",
            "attacks that climb scores are blind here; use decision-based ones",
        )
    if problem := _no_logits(getattr(victim, "raw_range", ScoreRange())):
        return problem
    if margins := margins_of(victim):
        return Check("answers", "ok", f"{margins}; over {', '.join(victim.labels)}")
    if len(scores) and bool((scores.max(axis=1) >= 1.0 - 1e-9).all()):
        return Check("answers", "warning", "every probability is 0 or 1", "do they hide the real scores?")
    return Check("answers", "ok", f"probabilities over {', '.join(victim.labels)}")


def _no_logits(raw: ScoreRange) -> Check | None:
    """A softmax was asked for, but the numbers are none that one is made for."""
    if raw.texts < FEW or raw.low < -1.0 or raw.high > 1.0:
        return None
    said = f"logits=true, but all raw scores lie between {raw.low:.3g} and {raw.high:.3g}"
    if raw.low >= 0.0:
        leave = f"if they are probabilities that sum to 1, leave {option('logits', True)} out; {SEVERAL}"
        return Check("answers", "fail", f"{said}: a softmax over them would mean nothing", leave)
    return Check("answers", "warning", f"{said}: these look like a scale rather than logits", SCALE)


def _repeats(victim: Victim, texts: Sequence[TextValue], scores: Probabilities) -> Check:
    few = texts[:_REPEATED]
    try:
        again = _ask(victim, few)
        backwards = _ask(victim, few[::-1])[::-1]
        alone = _ask(victim, few[:1])
    except Exception as error:
        if _hopeless(error):
            raise
        cause, _ = _reason(error)
        return Check("deterministic", "warning", f"texts that were answered got no answer again ({cause})")
    first = scores[: len(few)]
    runs = {
        "when asked again": np.abs(again - first),
        "in another order": np.abs(backwards - first),
        "when asked alone": np.abs(alone - first[:1]),
    }
    worst, where = max((float(gap.max(initial=0.0)), where) for where, gap in runs.items())
    if worst > 10**-4:
        return Check(
            "deterministic",
            "fail",
            f"the same text scores {worst:.2g} differently {where}",
            "switch dropout, sampling or caching by batch off; a random victim needs a defence wrapper",
        )
    if worst > 10**-DECIMALS:
        return Check("deterministic", "warning", f"scores differ by up to {worst:.1g} {where}")
    return Check("deterministic", "ok", "the same scores again, in another order and alone")


def _label_order(victim: Victim, scores: Probabilities, labels: Sequence[int]) -> Check:
    name, count, classes = "label order", len(labels), len(victim.labels)
    if not count:
        return Check(name, "warning", "no labelled examples to judge by")
    table = np.zeros((classes, classes), dtype=np.int64)  # [predicted, true]
    for predicted, true in zip(scores.argmax(axis=1).tolist(), labels, strict=True):
        if not 0 <= true < classes:
            return Check(
                name, "fail", f"the data has class {true}, the victim {classes} classes", "check the labels"
            )
        table[predicted, true] += 1
    right = int(table.trace())
    said = f"accuracy {right / count:.0%} on {count} examples"
    best, order = _best_order(table)
    present = int((table.sum(axis=0) > 0).sum())
    sure = _chance_of(right, count, 1.0 / classes) < _SURE
    better = (best - right) / count > _CLEARLY_BETTER and _chance_of(best, count, 1.0 / classes) < _SURE / 10
    if better and present > 1:
        names = ",".join(victim.labels[index] for index in order)
        verdict: Verdict = "warning" if sure else "fail"
        return Check(
            name,
            verdict,
            f"{said}; with the labels in the order {names} it would be {best / count:.0%}",
            f"if the classes are swapped, pass --labels {names}",
        )
    if not sure and _chance_of(count, count, 1.0 / classes) >= _SURE:
        return Check(name, "ok", f"{said}: too few to tell it from chance")
    if present == 1:  # whoever always answers it is right on all, and a filter is judged by its recall
        told = f"{said}, all of the class {victim.labels[labels[0]]}: that says nothing about chance"
        if not right:
            return Check(name, "warning", told, "is this the right model for this data?")
        return Check(name, "ok", told)
    if not sure:
        return Check(name, "warning", f"{said}: not above chance", "is this the right model for this data?")
    return Check(name, "ok", f"{said}, above chance")


def _best_order(table: NDArray[np.int64]) -> tuple[int, tuple[int, ...]]:
    """How many would be right if column i meant class order[i], for the best order; and that order."""
    classes = len(table)
    if classes <= _MOST_ORDERS:
        orders = itertools.permutations(range(classes))
        return max((int(table[range(classes), order].sum()), order) for order in orders)
    order = tuple(int(index) for index in table.argmax(axis=1))
    if len(set(order)) < classes:
        return int(table.trace()), tuple(range(classes))
    return int(table[range(classes), order].sum()), order


def _chance_of(right: int, count: int, chance: float) -> float:
    """The probability of at least so many right answers by guessing."""
    return sum(
        math.comb(count, k) * chance**k * (1.0 - chance) ** (count - k) for k in range(right, count + 1)
    )


def _truncation(cut: int, count: int) -> Check:
    if not cut:
        return Check("truncation", "ok", "no text is longer than the model reads")
    return Check(
        "truncation",
        "warning",
        f"{cut} of {count} texts are longer than the model reads",
        "words behind the cut change nothing: shorten the texts",
    )
