"""Looking at a translation model before an attack: does it write, always the same, and the right language?"""

from __future__ import annotations

import time
from collections.abc import Sequence

from unfooled.core.questions import Asked
from unfooled.errors import MissingExtraError, UserError
from unfooled.metrics.bleu import corpus_score
from unfooled.translation.victim import Translator
from unfooled.victims.preflight import Check, Preflight

_TEXTS = 64
_REPEATED = 8
_LOW = 5.0  # BLEU of a model that does not translate this pair of languages


def preflight_translator(victim: Translator, texts: Sequence[str], references: Sequence[str]) -> Preflight:
    """Look at the victim with up to 64 of the data's sentences and their references, where there are any."""
    texts, references = list(texts[:_TEXTS]), list(references[:_TEXTS])
    cut_before = getattr(victim, "truncated", None)
    began = time.perf_counter()
    try:
        outputs = _write(victim, texts)
    except Exception as error:
        cause = error.cause if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
        remedy = error.remedy if isinstance(error, UserError) else "mend the victim: it fails on this data"
        return Preflight(victim.name, (Check("answers", "fail", cause, remedy),))
    seconds = time.perf_counter() - began
    checks = [_answers(outputs), _repeats(victim, texts, outputs)]
    pairs = [(output, right) for output, right in zip(outputs, references, strict=True) if right]
    if pairs:
        checks.append(_quality([output for output, _ in pairs], [right for _, right in pairs]))
    if cut_before is not None:
        cut = int(getattr(victim, "truncated", 0)) - cut_before
        checks.append(
            Check("truncation", "warning", f"{cut} sentences are longer than the model reads", "shorten them")
            if cut
            else Check("truncation", "ok", "no sentence is longer than the model reads")
        )
    checks.append(Check("capabilities", "ok", ", ".join(sorted(victim.capabilities))))
    checks.append(Check("speed", "ok", f"{len(texts) / max(seconds, 1e-9):,.0f} sentences per second"))
    return Preflight(victim.name, tuple(checks), asked=len(texts) + 3 * len(texts[:_REPEATED]))


def _write(victim: Translator, texts: Sequence[str]) -> list[str]:
    return [written.output for written in victim.write([Asked(text) for text in texts])]


def _answers(outputs: Sequence[str]) -> Check:
    empty = sum(not output.strip() for output in outputs)
    if outputs and empty == len(outputs):
        return Check("answers", "fail", "it writes nothing at all", "was it trained to its end?")
    if empty:
        return Check("answers", "warning", f"it writes nothing for {empty} of {len(outputs)} sentences")
    return Check("answers", "ok", "a text for each sentence")


def _repeats(victim: Translator, texts: Sequence[str], outputs: Sequence[str]) -> Check:
    few = list(texts[:_REPEATED])
    runs = {
        "when asked again": _write(victim, few),
        "in another order": _write(victim, few[::-1])[::-1],
        "when asked alone": [_write(victim, [text])[0] for text in few],
    }
    for where, found in runs.items():
        differing = sum(output != other for output, other in zip(found, outputs, strict=False))
        if differing:
            return Check(
                "deterministic",
                "fail" if where == "when asked again" else "warning",
                f"{differing} of {len(few)} outputs differ {where}",
                "switch sampling and dropout off" if where == "when asked again" else "",
            )
    return Check("deterministic", "ok", "the same texts again, in another order and alone")


def _quality(outputs: Sequence[str], references: Sequence[str]) -> Check:
    try:
        score = corpus_score(outputs, references)
    except MissingExtraError as error:
        return Check("quality", "warning", "BLEU cannot be computed", error.remedy)
    said = f"BLEU {score:.1f} on {len(outputs)} sentences"
    if score < _LOW:
        return Check("quality", "warning", said, "are source and target the languages of this model?")
    return Check("quality", "ok", said)
