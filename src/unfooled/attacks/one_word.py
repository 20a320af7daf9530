"""RANDOM, LIST, GS-GR, GS-EC, ASMIN-GR, ASMAX-GR, ASMIN-EC, ASMAX-EC: attacks that change one word.

Hsieh, Cheng, Juan, Wei, Hsu, Hsieh: *On the Robustness of Self-Attentive Models*, ACL 2019, pages 1520-1529.

    1. Select a word: the one whose vector, set to zero, lowers p(true class) most (GS); the one with the
       lowest or highest attention (ASMIN, ASMAX); each in turn (LIST); any (RANDOM).
    2. Replace it by random words of the vocabulary until one succeeds or all were tried (GR);
    3. or by the word that succeeds with the least L1 distance between the victim's embeddings of the sentence
       before and after (EC); or by each synonym of a list, earlier words being restored (LIST).
    4. RANDOM replaces once, by any word of the vocabulary; its rate is the mean over many draws.

Versions
    @paper  each of the eight as above.

Settings: `search.replacement.vocabulary` is `victim` (its own words) or a file of one word per line,
`.size` how many of them; `search.selection.layer` is the layer of attention (-1 for the last), `.query`
whose attention it is (`mean` over all tokens, or `cls`), and with `.special=true` a special token may have
the lowest or highest, which spends the choice: no word is changed; `search.selection.by` is `auto`, `zero`
or `deletion`; `search.replacement.encoder` is `victim` or a sentence encoder's name, which also lets a
victim without embeddings be attacked with EC; `search.positions` lets GS and AS go on to the next words;
`search.draws` is RANDOM's number of draws per example (1,000: the paper's 10^5 over its 100 examples).

Differences from the paper
    - A victim that takes no word vectors (a pipeline, a function, an endpoint) is probed by deletion.
    - The paper averages the heads of BERT's first layer and does not say over which queries, nor whether
      [CLS] and [SEP] may be chosen. The default is the mean over all queries, and words only.
    - A zero vector stands for the word alone: a transformer still adds the position to it.
    - RANDOM's outcome is that of its first draw, so the usual rates are those of one random edit; the
      estimate over all draws stands in a row of its own, with its interval over the examples.
    - LIST takes the 8 nearest counter-fitted neighbours, as Alzantot et al. 2018 do, whose list it was. Those
      of one word are asked at once and all counted as queries; the nearest that succeeds is taken.
    - The vocabulary is asked in portions of 32 to 512 words: GR may look at a few words behind the first
      success, which are counted as queries, and takes that first one.
    - With a target, selection and success are about the target.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from unfooled.attacks.parts.goals import untargeted_versions
from unfooled.attacks.parts.importance import Importance
from unfooled.attacks.parts.replacement import ClosestWord, ListedWords, RandomDraws, RandomWords, Replacement
from unfooled.attacks.parts.search import greedy, keep_highest
from unfooled.attacks.parts.selection import AttentionSelect, GreedySelect, InOrder
from unfooled.core.attempt import Attempt, Scored, Search
from unfooled.core.program import Program
from unfooled.core.recipe import Recipe


@dataclass(frozen=True, kw_only=True)
class OneWord:
    """Try the selected words one after the other, each in the otherwise unchanged text.

    `positions` is how many of them at most; None means all.
    """

    selection: Importance
    replacement: Replacement
    positions: int | None = 1

    def __post_init__(self) -> None:
        if self.positions is not None and self.positions < 1:
            raise ValueError("positions is at least 1, or none for all")

    def run(self, a: Attempt, start: Scored) -> Program[Scored]:
        choose = getattr(self.selection, "choices", self.selection.rank)  # some choices may fall on no word
        order = yield from choose(a, start, range(len(start.text.words)))
        chosen: list[int] = [i for i in order[: self.positions] if i is not None]
        if not chosen:
            a.note = "the attention chosen is that of a special token, which is no word to change"

        def explore(now: Scored, index: int) -> Program[list[Scored]]:
            return [(yield from self.replacement.replace(a, start, index))]

        return (yield from greedy(start, chosen, explore, keep=keep_highest))


_LOWEST, _HIGHEST = AttentionSelect(pick="lowest"), AttentionSelect(pick="highest")
_SELECTIONS: dict[str, tuple[Importance, str]] = {
    "gs": (GreedySelect(), "the word that matters most"),
    "asmin": (_LOWEST, "the word with least attention"),
    "asmax": (_HIGHEST, "the word with most attention"),
}
_REPLACEMENTS: dict[str, tuple[Replacement, str]] = {
    "gr": (RandomWords(), "random words until one works"),
    "ec": (ClosestWord(), "the working word that moves the sentence least"),
}


def _recipes() -> Iterator[Recipe]:
    yield _recipe("random", "swaps a random word for a random one; rate over many draws", RandomDraws())
    listed = OneWord(selection=InOrder(), replacement=ListedWords(), positions=None)
    yield _recipe("list", "tries the synonyms of one word after the other", listed)
    for way, (replacement, by) in _REPLACEMENTS.items():
        for choice, (selection, what) in _SELECTIONS.items():
            search = OneWord(selection=selection, replacement=replacement)
            yield _recipe(f"{choice}-{way}", f"{what} → {by}", search)


def _recipe(name: str, summary: str, search: Search) -> Recipe:
    about = {"name": name, "summary": summary, "paper": "Hsieh et al. 2019, ACL 2019", "needs": ()}
    return untargeted_versions({"paper": search}, **about)["paper"]


RECIPES: dict[str, Recipe] = {recipe.name: recipe for recipe in _recipes()}

RANDOM, LIST = {"paper": RECIPES["random"]}, {"paper": RECIPES["list"]}
GS_GR, GS_EC = {"paper": RECIPES["gs-gr"]}, {"paper": RECIPES["gs-ec"]}
ASMIN_GR, ASMAX_GR = {"paper": RECIPES["asmin-gr"]}, {"paper": RECIPES["asmax-gr"]}
ASMIN_EC, ASMAX_EC = {"paper": RECIPES["asmin-ec"]}, {"paper": RECIPES["asmax-ec"]}
