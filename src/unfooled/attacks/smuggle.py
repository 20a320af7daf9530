"""Smuggling: one rewrite of the whole text, one look at the victim.

Boucher, Shumailov, Anderson, Papernot: *Bad Characters: Imperceptible NLP Attacks*, IEEE S&P 2022,
arXiv:2106.09898; Hackett et al.: *Bypassing Prompt Injection and Jailbreak Detection in LLM Guardrails*,
2025, arXiv:2504.11168, for tags and emoji.

    1. Write every word in other characters (or a drawn share of the words, `search.share`).
    2. Ask the victim once. Nothing is searched for and nothing but the decision is needed.

Attacks and versions (`disguise.py` has the code points)
    smuggle-zero-width  an invisible character between the letters: @word-joiner, @space (U+200B),
                        @non-joiner, @joiner, @no-break (U+FEFF), @soft-hyphen.
    smuggle-homoglyph   @intentional: Unicode's letters that are meant to look alike; @confusables: its table
                        of all that are confusable (the package confusable-homoglyphs), less alike.
    smuggle-bidi        each word stored backwards, shown forwards.
    smuggle-width       @full-width forms, or @mathematical bold ones.
    smuggle-accents     @acute: an accent on every letter; @stroke: a stroke through it.
    smuggle-tags        ASCII as tag characters, which nothing draws: @words, @decoded.
    smuggle-emoji       bytes as variation selectors behind one emoji: @words, @decoded.
    leetspeak           a4 e3 i1 o0 s5 t7.
    spacing             @blanks, or @dots, between letters.

`smuggle-tags` and `smuggle-emoji` hide the text from people and classifiers alike. That a classifier decides
otherwise about nothing is no attack, unless a program behind it decodes the text: such flips are a class of
their own ("unreadable") and never in the success rate. `@decoded` is for a filter before a language model or
another program that does decode: there such a flip is a success.

Differences from the papers
    - Word by word: blanks, punctuation and emoji stay. A whole text reversed would be shown with its lines in
      the wrong order as soon as it has more than one, so that each word is reversed by itself.
    - Boucher et al. search for places (`bad-characters` does); here all are changed.
"""

from __future__ import annotations

from unfooled.attacks.parts.disguise import Disguise, HiddenRewrite, Kind, Rewrite
from unfooled.attacks.parts.goals import untargeted_versions
from unfooled.core.recipe import Recipe

_BOUCHER = "Boucher et al. 2022, arXiv:2106.09898"
_HACKETT = "Hackett et al. 2025, arXiv:2504.11168"
_EGER = "Eger et al. 2019, arXiv:1903.11508"


def _versions(name: str, summary: str, paper: str, kinds: dict[str, Kind]) -> dict[str, Recipe]:
    searches: dict[str, Rewrite] = {
        version: Rewrite(disguise=Disguise(kind)) for version, kind in kinds.items()
    }
    if any(search.disguise.hides for search in searches.values()):
        searches["decoded"] = HiddenRewrite(disguise=next(iter(searches.values())).disguise)
    return untargeted_versions(searches, name=name, summary=summary, paper=paper, needs=())


ZERO_WIDTH = _versions(
    "smuggle-zero-width",
    "puts an invisible character between all letters",
    _BOUCHER,
    {
        "word-joiner": "word-joiner",
        "space": "zero-width-space",
        "non-joiner": "zero-width-non-joiner",
        "joiner": "zero-width-joiner",
        "no-break": "no-break-space",
        "soft-hyphen": "soft-hyphen",
    },
)
HOMOGLYPH = _versions(
    "smuggle-homoglyph",
    "exchanges letters for others that look alike",
    _BOUCHER,
    {"intentional": "intentional", "confusables": "confusables"},
)
BIDI = _versions(
    "smuggle-bidi", "stores words backwards that are shown forwards", _BOUCHER, {"words": "backwards"}
)
WIDTH = _versions(
    "smuggle-width",
    "writes letters as full-width or mathematical ones",
    _HACKETT,
    {"full-width": "full-width", "mathematical": "mathematical"},
)
ACCENTS = _versions(
    "smuggle-accents", "puts a mark on every letter", _EGER, {"acute": "acute", "stroke": "stroke"}
)
TAGS = _versions("smuggle-tags", "hides the text in tag characters", _HACKETT, {"words": "tags"})
EMOJI = _versions("smuggle-emoji", "hides the text behind an emoji", _HACKETT, {"words": "selectors"})
LEETSPEAK = _versions("leetspeak", "writes digits for letters", _EGER, {"plain": "leet"})
SPACING = _versions(
    "spacing", "puts blanks or dots between letters", _HACKETT, {"blanks": "spaced", "dots": "dotted"}
)

_ALL = (ZERO_WIDTH, HOMOGLYPH, BIDI, WIDTH, ACCENTS, TAGS, EMOJI, LEETSPEAK, SPACING)
RECIPES: dict[str, Recipe] = {
    recipe.full_name: recipe for versions in _ALL for recipe in versions.values()
}  # what `unfooled show` finds this account by
