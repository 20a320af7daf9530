"""Other forms of a word as its replacements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unfooled.core.attempt import Attempt
from unfooled.core.program import Program, ask
from unfooled.core.recipe import asking
from unfooled.data.language import ENGLISH
from unfooled.text import Text, match_case

_PARTS = {"NOUN": "noun", "VERB": "verb", "ADJ": "adj"}
_AROUND = 4  # words to each side that the tagger sees


@dataclass(frozen=True)
class OtherForms:
    """All forms of the word's lemma, as the noun, verb or adjective that it is in its place."""

    language: ClassVar[str] = ENGLISH
    table: str = "inflections"
    tagger: str = "perceptron-tagger"

    asks = asking("tag:{self.tagger}", "forms:{self.table}")

    def propose(self, a: Attempt, text: Text, index: int) -> Program[list[str]]:
        first = max(0, index - _AROUND)
        context = text.words[first : index + _AROUND + 1]
        ((tag, *_),) = yield from ask(f"tag:{self.tagger}", [(context, index - first, ())])
        if tag not in _PARTS:
            return []
        word = text.words[index]
        (forms,) = yield from ask(f"forms:{self.table}", [(word.lower(), _PARTS[tag])])
        return [form for form in dict.fromkeys(match_case(form, word) for form in forms) if form != word]
