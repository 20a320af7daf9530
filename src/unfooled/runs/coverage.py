"""Before a run: does the attack know the words of these texts at all?

An attack that finds nothing to put in place of a word leaves a text as it is, and the text reads as robust.
So the language of the texts is looked at, and the attack's own source is asked for candidates of some words.
A source that only changes spelling (`spells`), and an attack that takes words of the victim's own vocabulary,
is not looked at: what they really tried stands in each result.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unfooled.attacks.parts.search import attackable
from unfooled.core.attempt import Attempt
from unfooled.core.engine import Engine
from unfooled.core.program import AsyncOracle, Oracle
from unfooled.core.recipe import Recipe
from unfooled.data.language import LATIN, Language, language_of, main_script
from unfooled.errors import DataError
from unfooled.plugins import registry
from unfooled.text import Text

# Of the words in English reviews, tweets, messages, news and prompts 62 to 97 % have candidates in the
# counter-fitted neighbours and in WordNet; of German ones 9 to 17 %, of French, Spanish, Italian 22 to 46 %.
LEAST_SHARE = 0.5
_MOST_WORDS = 200  # different words that are asked about
_FEW_WORDS = 20  # so few words say nothing about a share


@dataclass(frozen=True, slots=True)
class Coverage:
    """`share` of `words` looked at have a candidate in their own script; None where that was not asked."""

    language: Language
    source: str = ""  # where candidates come from
    source_language: str = ""
    words: int = 0
    share: float | None = None

    def refusal(self, attack: str) -> DataError | None:
        """Why there is nothing to try: a script that the source does not know at all."""
        if self.share != 0.0 or self.language.script in ("", LATIN):
            return None
        return DataError(
            f"{attack} would try nothing: the texts are {self.language}, and {self.source} has no "
            f"candidate in {self.language.script} letters for any of the {self.words} words looked at. "
            "Texts that no attack touches read as robust",
            "use an attack on spelling (--attack deepwordbug, or --candidates characters), or your own table "
            "(--candidates table:PATH); --any-language attacks all the same",
        )

    def warnings(self, attack: str) -> list[str]:
        """What must be said beside every number of the run."""
        found = []
        name, own = self.language.name, self.source_language
        if name and own and name != own:
            found.append(
                f"the texts look {name}, and {attack} puts in {own} words ({self.source}): "
                f"its numbers say little about {name} texts"
            )
        if (
            self.share is not None
            and self.share < LEAST_SHARE
            and (self.words >= _FEW_WORDS or not self.share)
        ):
            found.append(
                f"only {self.share:.0%} of the words have candidates in {self.source} ({self.words} looked "
                f"at, {LEAST_SHARE:.0%} expected): a text that the attack finds nothing for reads as robust"
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        return {
            "language": self.language.name,
            "script": self.language.script,
            "source": self.source,
            "words": self.words,
            "share": self.share,
        }


def look_at(
    recipe: Recipe, texts: Sequence[Text], opened: dict[str, Oracle | AsyncOracle] | None = None
) -> Coverage:
    """Look at the texts with the eyes of the attack. Oracles are taken from `opened`, or opened into it."""
    language = language_of(text.string for text in texts)
    sources = list(sources_of(recipe.search))
    asked = _asked(sources)
    # The victim's own words are asked of the victim, and are never few.
    inside = {name for name in asked if name.partition(":")[0] in registry.names("inside")}
    if not sources or inside or any(getattr(source, "spells", False) for source in sources):
        return Coverage(language)
    oracles = {} if opened is None else opened
    for name in asked:
        kind, _, variant = name.partition(":")
        if name not in oracles:
            oracles[name] = registry.load("oracle", kind)(variant)
    known = _known(recipe, sources, _places(recipe, texts), oracles)
    languages = {getattr(source, "language", "") for source in sources}
    return Coverage(
        language,
        ", ".join(_name(source) for source in sources),
        languages.pop() if len(languages) == 1 else "",
        len(known),
        sum(known) / len(known) if known else None,
    )


def sources_of(part: Any) -> Iterator[Any]:
    """The outermost parts that propose words; what stands inside one is its own business."""
    if hasattr(part, "propose"):
        yield part
    elif isinstance(part, tuple):
        for inner in part:
            yield from sources_of(inner)
    elif dataclasses.is_dataclass(part) and not isinstance(part, type):
        for field in dataclasses.fields(part):
            yield from sources_of(getattr(part, field.name))


def _asked(part: Any) -> set[str]:
    """Names of the oracles that a part and those inside it ask."""
    if isinstance(part, tuple | list):
        return {name for inner in part for name in _asked(inner)}
    if not dataclasses.is_dataclass(part) or isinstance(part, type):
        return set()
    inside = [getattr(part, field.name) for field in dataclasses.fields(part)]
    return set(getattr(part, "asks", ())) | _asked(inside)


def _name(source: Any) -> str:
    named = [str(getattr(source, name)) for name in ("table", "masked_lm", "path") if hasattr(source, name)]
    return named[0] if named else type(source).__name__


def _places(recipe: Recipe, texts: Sequence[Text]) -> list[tuple[Text, int]]:
    """Different words that the attack may change, from all over the texts."""
    stopwords = getattr(recipe.search, "stopwords", None)
    found: dict[str, tuple[Text, int]] = {}
    for text in texts:
        places = attackable(text, stopwords) if stopwords else range(len(text.words))
        for i in places:
            if main_script(text.words[i]):
                found.setdefault(text.words[i].lower(), (text, i))
    step = max(1, -(-len(found) // _MOST_WORDS))
    return list(found.values())[::step]


def _known(
    recipe: Recipe,
    sources: Sequence[Any],
    places: Sequence[tuple[Text, int]],
    oracles: Mapping[str, Oracle | AsyncOracle],
) -> list[bool]:
    """For each place whether a source has a candidate in the script of the word."""
    goal: Any = recipe.goal
    engine: Engine[list[str]] = Engine(oracles)
    jobs = [
        ((place, number), source.propose(Attempt(text, 0, goal, key=place, seed=0), text, i))
        for place, (text, i) in enumerate(places)
        for number, source in enumerate(sources)
    ]
    found: dict[int, bool] = {}
    for finished in engine.run(jobs):
        if finished.value is None:
            continue  # what cannot be asked about is no word of the sample
        place = finished.key[0]  # type: ignore[index]
        text, i = places[place]
        script = main_script(text.words[i])
        suits = any(main_script(word) == script for word in finished.value)
        found[place] = found.get(place, False) or suits
    return list(found.values())
