"""A second opinion on a finished BAE run: every edit is checked again from the run file alone.

Nothing of the attack's code is used. Texts are rebuilt by undoing edits, words are found by a pattern,
windows are counted by hand, cosines are summed in a loop. Only models are asked, through their oracles.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from unfooled.core.result import Result
from unfooled.resources.encoders import open_encoder
from unfooled.resources.fillmask import MaskItem, open_fill_mask
from unfooled.resources.tagger import UNIVERSAL, load_tagger
from unfooled.runs.file import RunFile
from unfooled.stopwords import STOPWORDS
from unfooled.text import Edit

WORD = re.compile(r"[^\W_](?:[\w'’*@-]*[^\W_])?")
MOVES = {"R": {"replace"}, "I": {"insert"}, "R/I": {"replace", "insert"}, "R+I": {"replace", "insert"}}


class Step(NamedTuple):
    before: str
    after: str
    edit: Edit  # `at` counts in `after`


def steps(result: Result) -> list[Step]:
    """The attack's way, by undoing its edits from the last to the first."""
    found = []
    text = result.perturbed
    left = sorted(result.edits, key=lambda edit: edit.step)
    while left:
        edit = left.pop()
        begin, end = edit.at, edit.at + len(edit.after)
        assert text[begin:end] == edit.after
        if edit.kind == "insert":
            begin, end = (begin, end + 1) if text[end : end + 1] == " " else (begin - 1, end)
        earlier = text[:begin] + edit.before + text[end:]
        shift = len(earlier) - len(text)
        left = [later._replace(at=later.at + shift) if later.at > edit.at else later for later in left]
        found.append(Step(earlier, text, edit))
        text = earlier
    assert text == result.original, "undone edits lead back to the original"
    return found[::-1]


def recheck(run: Path) -> Counter[str]:
    """Assert every rule for every edit of every result; the counts say how much was looked at."""
    seen: Counter[str] = Counter()
    with RunFile.read(run) as file:
        search = file.header["identity"]["recipe"]["search"]
        results = list(file.results())
    models = Models(search)
    for result in results:
        seen[result.outcome] += 1
        way = steps(result)
        places = Counter((edit.kind, edit.position) for edit in result.edits if edit.kind == "replace")
        assert all(count == 1 for count in places.values()), "a word is replaced once"
        for step in way:
            seen[step.edit.kind] += 1
            assert step.edit.kind in MOVES[search["mode"]]
            models.check_words(step, result)
            value = models.check_similarity(step, result)
            models.check_tag(step, result)
        if way and value is not None:
            seen["measured"] += 1
            assert result.similarity is not None
            written = to_cosine(result.similarity, models.similar["scale"])
            assert math.isclose(written, value, abs_tol=1e-6), "the last similarity is written down"
    return seen


class Models:
    def __init__(self, search: dict[str, Any]) -> None:
        self.fill = search["fill"]
        self.stopwords = STOPWORDS[search["stopwords"]]
        parts = {constraint["part"].partition(":")[2]: constraint for constraint in search["constraints"]}
        self.similar, self.tagged = parts["SentenceSimilarity"], parts["SamePartOfSpeech"]
        self.encode = open_encoder(self.similar["encoder"])
        self.masked = open_fill_mask(self.fill["masked_lm"])
        self.tagger = load_tagger()

    def check_words(self, step: Step, result: Result) -> None:
        """The new word is one of the model's best for its gap, and not the old one."""
        edit = step.edit
        end = edit.at + len(edit.after)
        item = MaskItem(step.after[: edit.at], step.after[end:], self.fill["most"])
        (found,) = self.masked([item])
        assert edit.after.lower() in {fill.word.lower() for fill in found}, edit
        if edit.kind == "replace":
            assert edit.after.lower() != edit.before.lower()
            assert edit.before.lower().replace("’", "'") not in self.stopwords
            assert edit.before == WORD.findall(result.original)[edit.position]
            assert edit.after.islower() == edit.before.islower() or not edit.after.isalpha()
        else:
            around = [word for word in WORD.findall(step.after) if word.lower() == edit.after.lower()]
            assert len(around) == 1 or not re.search(
                rf"\b{re.escape(edit.after)}\W+{re.escape(edit.after)}\b", step.after, re.IGNORECASE
            ), "no word is doubled"
            beside = WORD.findall(result.original)[max(0, edit.position - 1) : edit.position + 1]
            assert any(word.lower() not in self.stopwords for word in beside), "beside a word under attack"

    def check_similarity(self, step: Step, result: Result) -> float | None:
        """The cosine, where the rule measures one."""
        rule = self.similar
        before, after = list(WORD.finditer(step.before)), list(WORD.finditer(step.after))
        size = rule["window"]
        short = size is not None and len(before) < size
        if short and rule["short_threshold"] is None:
            return None
        index = sum(1 for word in after if word.start() < step.edit.at)
        old, new = step.before, step.after
        if size is not None:
            first, last = around(index, len(after), size)
            new = new[after[first].start() : after[last].end()]
            last -= step.edit.kind == "insert"
            old = old[before[first].start() : before[last].end()]
        if rule["against"] == "original":
            old = result.original
            if size is not None:
                words = list(WORD.finditer(old))
                first, last = around(step.edit.position, len(words), size)
                old = old[words[first].start() : words[last].end()]
        value = cosine(*(vector.tolist() for vector in self.encode([old, new])))
        needed = to_cosine(rule["short_threshold"] if short else rule["threshold"], rule["scale"])
        assert value >= needed - 1e-6, (step, value)
        return value

    def check_tag(self, step: Step, result: Result) -> None:
        if step.edit.kind == "insert":
            return
        words = WORD.findall(result.original)
        index = step.edit.position
        first = max(0, index - self.tagged["before"])
        context = words[first : index + self.tagged["after"] + 1]
        place = index - first
        changed = [*context[:place], step.edit.after, *context[place + 1 :]]
        own = UNIVERSAL.get(self.tagger.tag(context)[place], "X")
        new = UNIVERSAL.get(self.tagger.tag(changed)[place], "X")
        either = self.tagged["noun_for_verb"] and {own, new} <= {"NOUN", "VERB"}
        assert own == new or either, (step.edit, own, new)


def around(index: int, words: int, size: int) -> tuple[int, int]:
    """First and last word of a window, counted from the word outwards."""
    first = last = index
    left, right = size // 2, (size - 1) // 2
    while left and first > 0:
        first, left = first - 1, left - 1
    while right and last < words - 1:
        last, right = last + 1, right - 1
    while left and last < words - 1:
        last, left = last + 1, left - 1
    while right and first > 0:
        first, right = first - 1, right - 1
    return first, last


def cosine(a: Sequence[float], b: Sequence[float]) -> float:
    dot = sum(float(x) * float(y) for x, y in zip(a, b, strict=True))
    lengths = math.sqrt(sum(float(x) ** 2 for x in a)) * math.sqrt(sum(float(x) ** 2 for x in b))
    return max(-1.0, min(1.0, dot / lengths))


def to_cosine(value: float, scale: str) -> float:
    if scale == "cosine":
        return value
    return math.cos((1 - value) * (math.pi if scale == "angular" else 1))
