"""State: does the model answer an edited text as it does because of what it was asked before?

A model that gives near-duplicates its earlier answer looks deterministic, and no search can move it: every
edit of a text it knows gets the answer of the text. Asked for the edited text first, it says what it thinks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from unfooled.checks.illusions.attacking import EvaluatedModel, EvaluationSetup, value_of
from unfooled.checks.illusions.checks import IllusionCheck, is_compared, note, unneeded
from unfooled.checks.illusions.fresh_process import Answers, ask_in_fresh_process
from unfooled.checks.illusions.survivors import STATE, Flags
from unfooled.checks.replay import answers
from unfooled.core.result import Result, decided
from unfooled.core.victim import TextValue, Victim
from unfooled.errors import VictimError
from unfooled.runs.notes import read_remark, write_remark
from unfooled.text import Text

CAUSE = "answers that depend on earlier questions"
_WORDS = "edited texts asked in a fresh process"
PAIRS = 48  # texts and edited ones that are compared
_DIFFERENT = 1e-3  # of a probability: more than batches and threads change


@dataclass(frozen=True, slots=True)
class EditedPair:
    key: int
    label: int
    original: TextValue
    near: TextValue  # one edit away from the original
    edited: TextValue


def run_state(bench: EvaluationSetup, subject: EvaluatedModel, others: Sequence[EvaluatedModel]) -> None:
    """The same texts in a fresh process, before and after their originals, and here, after everything."""
    if not is_compared(subject, STATE, _WORDS):
        return
    if subject.looks.random:
        unneeded(subject, STATE, _WORDS, "it answers by chance anyway")
        return
    if subject.untouched is None:
        unneeded(subject, STATE, _WORDS, "it cannot be sent to another process")
        return
    everything = _pairs(subject, others)
    pairs = everything[:PAIRS]
    if not pairs:
        unneeded(subject, STATE, _WORDS, "there is no text to ask")
        return
    try:
        with bench.watcher.wait(f"{subject.name}: {_WORDS}"):
            moved = moved_answers(subject.untouched, subject.victim, pairs)
            shown = right_afresh(subject.untouched, everything) if moved else {}
    except VictimError as error:
        unneeded(subject, STATE, _WORDS, error.cause)
        return
    remark = f"{5 * len(pairs)} queries, {3 * len(pairs)} of them in a fresh process"
    if not moved:
        if read_remark(subject.attack_run, STATE):
            write_remark(subject.attack_run, STATE, "")  # an earlier look had found something
        note(subject, STATE, _WORDS, 2 * len(pairs), f"no answer depends on earlier questions; {remark}")
        return
    finding = finding_of(moved, pairs)
    write_remark(subject.attack_run, STATE, finding)
    note(subject, STATE, _WORDS, shown, remark, finding, cause=CAUSE)


def moved_answers(copy: bytes, victim: Victim, pairs: Sequence[EditedPair]) -> dict[TextValue, float]:
    """By how much answers of the model depend on what it was asked before; `copy` was asked nothing yet."""
    originals, near = [pair.original for pair in pairs], [pair.near for pair in pairs]
    before, first, after = ask_in_fresh_process(copy, [near, originals, near])
    moved = _moved(before, [after, _asked(victim, near)])
    return moved | _moved(first, [_asked(victim, originals)])


def right_afresh(copy: bytes, pairs: Sequence[EditedPair]) -> Flags:
    """Whether a model that remembers nothing is right on each edited text, asked before its original."""
    (said,) = ask_in_fresh_process(copy, [[pair.edited for pair in pairs]])
    return {
        pair.key: decided(said[pair.edited]) == pair.label if pair.edited in said else None for pair in pairs
    }


def finding_of(moved: Mapping[TextValue, float], pairs: Sequence[EditedPair]) -> str:
    return (
        f"it remembers: of {2 * len(pairs)} texts, {len(moved)} are answered differently in a fresh process "
        f"or after others (by up to {max(moved.values()):.2f})"
    )


def edited_pair(result: Result, sample: Result) -> EditedPair | None:
    """A row and what `sample`, its own result or another model's, made of it; None: there is no such text."""
    original = value_of(result, result.original)
    near = value_of(result, _one_edit(sample) if sample.edits else _shorter(result))
    edited = value_of(result, sample.perturbed) if sample.edits else near
    if near == original or result.outcome == "error":
        return None
    return EditedPair(result.key, result.label, original, near, edited)


def _pairs(subject: EvaluatedModel, others: Sequence[EvaluatedModel]) -> list[EditedPair]:
    """Survivors first; of each the sample that fooled another model, its own last text, or a word less."""
    made = {
        result.key: result for other in others for result in other.results() if result.outcome == "success"
    }
    standing = set(subject.survival.survivors())
    results = [result for result in subject.results() if result.key in subject.survival.active]
    ordered = sorted(
        results, key=lambda result: (result.key not in standing, result.key not in made, result.key)
    )
    found = (edited_pair(result, made.get(result.key, result)) for result in ordered)
    return [pair for pair in found if pair is not None]


def _one_edit(sample: Result) -> str:
    """With the first word only that was replaced: the nearer to the original, the sooner it is remembered."""
    edit = next((edit for edit in sample.edits if edit.kind == "replace"), None)
    return Text(sample.original).replace(edit.position, edit.after).string if edit else sample.perturbed


def _shorter(result: Result) -> str:
    """Without its middle word."""
    text = Text(result.original)
    return text.delete(len(text.words) // 2).string if len(text.words) > 1 else result.original


def _asked(victim: Victim, texts: Sequence[TextValue]) -> Answers:
    return {text: row for text, row in answers(victim, texts).items() if not isinstance(row, Exception)}


def _moved(expected: Answers, others: Iterable[Answers]) -> dict[TextValue, float]:
    """By how much the answers to each text differ, where they do."""
    found: dict[TextValue, float] = {}
    for other in others:
        for text, row in expected.items():
            gap = max((abs(a - b) for a, b in zip(row, other.get(text, row), strict=True)), default=0.0)
            if gap > _DIFFERENT:
                found[text] = max(gap, found.get(text, 0.0))
    return found


CHECK = IllusionCheck(
    name=STATE,
    summary="asks edited texts in a fresh process, before and after their originals",
    place=60,
    run=run_state,
)
