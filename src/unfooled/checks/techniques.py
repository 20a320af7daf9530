"""How filters are evaded: each technique with the numbers that others know it by.

MITRE ATLAS 5.6 and NIST AI 100-2 E2025. A technique belongs to an
attack by the attack's name, whatever its version.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["hidden", "characters", "spelling", "words"]

# hidden      nobody sees the text; a program can decode it
# characters  the same letters in other characters, or with something between them
# spelling    misspelt as people do
# words       other words

VERSIONS = "MITRE ATLAS 5.6 · NIST AI 100-2 E2025 · CWE-1039"
ATLAS = {
    "AML.T0015": "Evade AI Model",
    "AML.T0043": "Craft Adversarial Data",
    "AML.T0043.001": "Black-Box Optimization",
    "AML.T0043.003": "Manual Modification",
    "AML.T0068": "LLM Prompt Obfuscation",
}
NIST = {"NISTAML.022": "Evasion", "NISTAML.025": "Black-box Evasion"}


@dataclass(frozen=True, slots=True)
class Technique:
    id: str
    title: str
    kind: Kind
    atlas: tuple[str, ...] = ("AML.T0015", "AML.T0043.003")
    nist: tuple[str, ...] = ("NISTAML.022", "NISTAML.025")

    @property
    def rule(self) -> str:
        return f"UNF-GUARD-{self.id}"


_OBFUSCATED = ("AML.T0015", "AML.T0043.003", "AML.T0068")
_SEARCHED = ("AML.T0015", "AML.T0043.001")
_TECHNIQUES = {
    "smuggle-zero-width": Technique("zero-width", "invisible characters", "characters", _OBFUSCATED),
    "smuggle-homoglyph": Technique("homoglyph", "look-alike letters", "characters", _OBFUSCATED),
    "smuggle-bidi": Technique("bidi", "letters stored backwards", "characters", _OBFUSCATED),
    "smuggle-width": Technique("compat", "full-width and mathematical letters", "characters", _OBFUSCATED),
    "smuggle-accents": Technique("marks", "accents and strokes", "characters", _OBFUSCATED),
    "smuggle-tags": Technique("tags", "text hidden in tag characters", "hidden", _OBFUSCATED),
    "smuggle-emoji": Technique("selectors", "text hidden behind an emoji", "hidden", _OBFUSCATED),
    "spacing": Technique("spacing", "letters with something between them", "characters", _OBFUSCATED),
    "leetspeak": Technique("leet", "digits for letters", "characters", _OBFUSCATED),
    "typos": Technique("typo", "misspelt words", "spelling", _SEARCHED),
    "deepwordbug": Technique("typo", "misspelt words", "spelling", _SEARCHED),
}


def technique_of(attack: str) -> Technique:
    """Of an attack by its name with its version; anything that is not listed changes words."""
    name = attack.partition("@")[0]
    return _TECHNIQUES.get(name, Technique(name, f"other words ({name})", "words", _SEARCHED))
