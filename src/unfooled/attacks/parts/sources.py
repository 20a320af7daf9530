"""More places that replacements come from; any attack with a part `candidates` may use any of them.

`--candidates wordnet|datamuse|fill-mask|neighbours|table:PATH` swaps the part on the command line. Nearest
neighbours and character edits are in `candidates.py`, a masked language model's words in `masks.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from unfooled.attacks.parts.candidates import AnyOf, Candidates
from unfooled.core.attempt import Attempt
from unfooled.core.program import Program, ask
from unfooled.core.recipe import asking, require_counts
from unfooled.data.language import ENGLISH
from unfooled.errors import ResourceError
from unfooled.resources import datamuse
from unfooled.resources.synonyms import Lemmas, Sisters
from unfooled.text import Text, match_case


def like(word: str, found: Sequence[str], most: int) -> list[str]:
    """Up to `most` different words in the casing of `word`, never the word itself in any casing."""
    cased = dict.fromkeys(match_case(synonym, word) for synonym in found if synonym.lower() != word.lower())
    return list(cased)[:most]


@dataclass(frozen=True)
class WordNetSynonyms:
    """Words that share a WordNet synset, in the form of the word they replace; common senses first.

    `senses` says how many senses count per part of speech; 0 takes all.
    """

    language: ClassVar[str] = ENGLISH
    senses: int = 0
    most: int = 50
    lexicon: str = "wordnet"
    asks = asking("wordnet:{self.lexicon}")

    def __post_init__(self) -> None:
        require_counts(self, "most")
        if self.senses < 0:
            raise ValueError("senses is at least 0 (all)")

    def propose(self, a: Attempt, text: Text, index: int) -> Program[list[str]]:
        word = text.words[index]
        (found,) = yield from ask(f"wordnet:{self.lexicon}", [(word.lower(), self.senses)])
        return like(word, found, self.most)


@dataclass(frozen=True)
class WordNetLemmas:
    """Every single word of every synset of the word, as WordNet writes it: in base form, capitals and all.

    The base form of the word itself is among them. By the alphabet, for WordNet's own order is lost.
    """

    language: ClassVar[str] = ENGLISH
    lexicon: str = "wordnet"

    asks = asking("wordnet:{self.lexicon}")

    def propose(self, a: Attempt, text: Text, index: int) -> Program[list[str]]:
        (found,) = yield from ask(f"wordnet:{self.lexicon}", [Lemmas(text.words[index])])
        return list(found)


@dataclass(frozen=True)
class WordNetSisters:
    """Words beside the word under the same more general WordNet sense, or of its adjectives, and synonyms.

    They come in the form of the word they replace, synonyms first, then those of the commonest senses. They
    are of the same kind, as words of equal sememes are, but need not mean the same (summer, winter).
    """

    language: ClassVar[str] = ENGLISH
    most: int = 50
    lexicon: str = "wordnet"
    asks = asking("wordnet:{self.lexicon}")

    def __post_init__(self) -> None:
        require_counts(self, "most")

    def propose(self, a: Attempt, text: Text, index: int) -> Program[list[str]]:
        word = text.words[index]
        (found,) = yield from ask(f"wordnet:{self.lexicon}", [Sisters(word.lower(), self.most)])
        return like(word, found, self.most)


@dataclass(frozen=True)
class Datamuse:
    """Synonyms from the Datamuse service: `rel_syn` shares a sense, `ml` means something like it.

    Whether the service can be reached is decided once, when a run begins, and written into it: then `mode`
    is `online`, or `offline`, where words without a kept answer get those of `fallback`. Single words of the
    texts are sent to `address`, nothing else.
    """

    language: ClassVar[str] = ENGLISH
    relation: Literal["rel_syn", "ml"] = "rel_syn"
    most: int = 50
    address: str = datamuse.ADDRESS
    fallback: Candidates | None = WordNetSynonyms()
    mode: Literal["auto", "online", "offline"] = "auto"

    @property
    def asks(self) -> tuple[str, ...]:
        return (f"datamuse:{'cached:' if self.mode == 'offline' else ''}{self.address}",)

    def __post_init__(self) -> None:
        require_counts(self, "most")
        if self.relation not in ("rel_syn", "ml"):
            raise ValueError("relation is rel_syn or ml")

    def settle(self) -> tuple[Datamuse, str]:
        """Decide between service and fallback, and say so."""
        if self.mode != "auto":
            return self, ""
        reason = datamuse.unreachable(self.address)
        if not reason:
            told = f"candidates come from {self.address}: single words of the texts are sent there"
            return replace(self, mode="online", fallback=None), told
        if self.fallback is None:
            raise ResourceError(
                f"Datamuse at {self.address} cannot be used ({reason}), and there is no fallback",
                "mend the cause, or use --candidates wordnet",
            )
        told = f"Datamuse at {self.address} cannot be used ({reason}): words without a kept answer get "
        return replace(self, mode="offline"), told + f"candidates from {type(self.fallback).__name__} instead"

    def propose(self, a: Attempt, text: Text, index: int) -> Program[list[str]]:
        word = text.words[index]
        (found,) = yield from ask(self.asks[0], [(self.relation, word.lower())])
        if found is None:
            return (yield from self.fallback.propose(a, text, index)) if self.fallback else []
        return like(word, found, self.most)


@dataclass(frozen=True)
class UserTable:
    """A user's own table, a JSON or CSV file of words and their replacements."""

    path: str
    most: int = 50
    asks = asking("table:{self.path}")

    def __post_init__(self) -> None:
        require_counts(self, "most")

    def propose(self, a: Attempt, text: Text, index: int) -> Program[list[str]]:
        word = text.words[index]
        (found,) = yield from ask(f"table:{self.path}", [word])
        return like(word, found, self.most)


@dataclass(frozen=True)
class Several(AnyOf):
    """The words of several sources, those of the first one first; recipes of valid texts keep this name."""


@dataclass(frozen=True)
class InAll:
    """The words that every one of several sources proposes, in the order of the first."""

    sources: tuple[Candidates, ...]

    def propose(self, a: Attempt, text: Text, index: int) -> Program[list[str]]:
        first, *others = self.sources
        found = yield from first.propose(a, text, index)
        for source in others:
            known = {word.lower() for word in (yield from source.propose(a, text, index))}
            found = [word for word in found if word.lower() in known]
        return found
