"""Texts for what reads whole words: short and long, an empty one, a word that nothing else has."""

from __future__ import annotations

TEXTS = [
    "The film isn't good.",
    "A dull, dull plot!",
    "",
    "It's a great film; the cast is great and the plot's fun, really",
    "zebra",
    "the film was good",
    "?!",
]
CORPUS = [*TEXTS, "the cast was dull", "it was n't a good plot", "really really fun and a great film"]
PAIRS = [("the film", "is good"), ("the film is", "good"), ("a great cast", ""), ("", "dull"), ("fun", "fun")]
