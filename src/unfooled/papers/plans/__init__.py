"""One file per paper, and the list of them."""

from __future__ import annotations

import importlib

from unfooled.papers.paper import Paper
from unfooled.plugins import unknown_name

_HOMES = {
    "lstm-jsma": "lstm_jsma",
    "self-attentive": "self_attentive",
    "firebert": "firebert",
    "bae": "bae",
    "breaking-bert": "breaking_bert",
}
NAMES = tuple(_HOMES)


def find_paper(name: str) -> Paper:
    if name not in _HOMES:
        raise unknown_name("paper", name, [*NAMES, "all"])
    module = importlib.import_module(f"unfooled.papers.plans.{_HOMES[name]}")
    paper: Paper = module.PAPER
    return paper
