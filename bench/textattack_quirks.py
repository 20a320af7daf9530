"""Why the two sides differ on an example: TextAttack again, with one of its accidents removed at a time.

A difference counts as explained only if TextAttack without that accident gives exactly Unfooled's answer.

tag       It looks for a word's tag at the first place where that word stands in the tagged window, so that
          a replacement equal to an earlier word gets that word's tag. Removed: the tag of the place itself.
order     Words whose deletion scores the same (a word that occurs twice, for a bag of words) are ranked as
          an unstable sort leaves them. Removed: the earlier word first.
score     Two candidates, or two deletions, differ by less than one millionth. Removed: scores are rounded
          to six digits, candidates in the order of their text.
flips     Deletions that flip the label score 0 in input reduction, whatever p(true class) is. Removed: words
          are ranked by p(true class).
lemmas    NLTK's rules find base forms that ours do not, and the other way round. Removed: ours.
blank     A word behind a bracket or a quotation mark leaves its blank when it is taken out: "( ." and not
          "(.". Removed: the blank behind goes.
marks     Pieces that are put together to "script." count as one word. Removed: they do not.
pieces    Pieces of words that the masked language model predicts lose their mark and count as words: "##s"
          becomes the candidate "s". Removed: pieces are no candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import combinations
from typing import Any

REASONS = {
    "tag": "TextAttack reads the tag of an equal word that stands earlier",
    "order": "equally important words, in the order of an unstable sort",
    "score": "scores that differ by less than a millionth",
    "flips": "deletions that flip the label all count the same when words are ranked",
    "lemmas": "NLTK finds other base forms of a word",
    "blank": "a word behind a bracket or quotation mark leaves its blank when it is taken out",
    "marks": "TextAttack takes a word with a punctuation mark at its end for a word",
    "pieces": "TextAttack takes pieces of words for words",
}


@contextmanager
def replaced(owner: Any, name: str, function: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, function)
    try:
        yield
    finally:
        setattr(owner, name, before)


def place_tag(constraint: Any, before: list[str], word: str, after: list[str]) -> str:
    import nltk

    tagged = nltk.pos_tag([*before, word, *after], tagset=constraint.tagset, lang=constraint.language_nltk)
    return str(tagged[len(before)][1])


def steady_numpy() -> Any:
    """NumPy for a search method: its arrays hold six digits, and sorting keeps equals in their order."""
    import numpy as np

    class Steady(np.ndarray):  # type: ignore[type-arg]
        def argsort(self, *_args: Any, **_options: Any) -> Any:
            return np.argsort(np.round(np.asarray(self), 6), kind="stable")

    class SteadyNumpy:
        def array(self, values: Any, *args: Any, **options: Any) -> Any:
            return np.array(values, *args, **options).view(Steady)

        def __getattr__(self, name: str) -> Any:
            return getattr(np, name)

    return SteadyNumpy()


def from_left_to_right(rank: Callable[..., Any]) -> Callable[..., Any]:
    """The ranking of a search, given the places that may be edited in their order, not as a set has them."""

    def steady(search: Any, text: Any, *args: Any) -> Any:
        places = search.get_indices_to_order

        def in_order(*given: Any, **options: Any) -> tuple[int, list[int]]:
            count, found = places(*given, **options)
            return count, sorted(found)

        with replaced(search, "get_indices_to_order", in_order):
            return rank(search, text, *args)

    return steady


def by_probability(rank: Callable[..., Any]) -> Callable[..., Any]:
    """The ranking of input reduction by p(true class) alone: deletions that flip the label are not equal."""
    from textattack.goal_functions import InputReduction

    def probability(goal: Any, output: Any, _text: Any) -> float:
        return float(output[goal.ground_truth_output])

    def steady(search: Any, text: Any, *args: Any) -> Any:
        with replaced(InputReduction, "_get_score", probability):
            return rank(search, text, *args)

    return steady


def ranked_by_probability(search: Any) -> Callable[..., Any]:
    """The ranking of one search, as `by_probability` has it, and equals from left to right."""
    from textattack.search_methods import greedy_word_swap_wir

    rank = by_probability(from_left_to_right(type(search)._get_index_order))

    def ranked(text: Any, *args: Any) -> Any:
        with replaced(greedy_word_swap_wir, "np", steady_numpy()):
            return rank(search, text, *args)

    return ranked


def taking_blanks(delete: Callable[..., Any]) -> Callable[..., Any]:
    """Deletion of a word that takes the blank behind it where none stands before."""

    def deleted(text: Any, index: int) -> Any:
        before = text.text_until_word_index(index)
        shorter = delete(text, index)
        if index and not before.endswith(" ") and shorter.text[len(before) :].startswith(" "):
            (column,) = shorter._text_input
            shorter._text_input[column] = before + shorter.text[len(before) + 1 :]
        return shorter

    return deleted


def rounded_score(goal: Any, output: Any, _text: Any) -> float:
    return round(1.0 - round(float(output[goal.ground_truth_output]), 6), 6)


def only_one_word(text: str) -> bool:
    from textattack.shared import utils

    return bool(utils.words_from_text(text) == [text])


def no_word(_token: str, _model_type: str) -> str:
    return ""


def accidents() -> dict[str, list[tuple[Any, str, Any]]]:
    from textattack.constraints.grammaticality import PartOfSpeech
    from textattack.goal_functions import UntargetedClassification
    from textattack.search_methods import GreedyWordSwapWIR, beam_search, greedy_word_swap_wir
    from textattack.shared import AttackedText, utils

    steady = steady_numpy()
    in_order = from_left_to_right(GreedyWordSwapWIR._get_index_order)
    return {
        "tag": [(PartOfSpeech, "_get_pos", place_tag)],
        "order": [
            (greedy_word_swap_wir, "np", steady),
            (beam_search, "np", steady),
            (GreedyWordSwapWIR, "_get_index_order", in_order),
        ],
        "flips": [
            (greedy_word_swap_wir, "np", steady),
            (GreedyWordSwapWIR, "_get_index_order", by_probability(in_order)),
        ],
        "score": [(UntargetedClassification, "_get_score", rounded_score)],
        "blank": [(AttackedText, "delete_word_at_index", taking_blanks(AttackedText.delete_word_at_index))],
        "marks": [(utils, "is_one_word", only_one_word)],
        "pieces": [(utils, "strip_BPE_artifacts", no_word)],
    }


def explain(
    attack_again: Callable[[], dict[str, Any]],
    wanted: dict[str, Any],
    more: dict[str, list[tuple[Any, str, Any]]] | None = None,
) -> str:
    """The one accident, or the two, whose removal makes TextAttack answer `wanted`; "" when none do."""
    known = accidents() | (more or {})
    for count in range(1, 3):
        for chosen in combinations(known, count):
            with ExitStack() as stack:
                for name in chosen:
                    for patch in known[name]:
                        stack.enter_context(replaced(*patch))
                answer = attack_again()
            if all(answer[part] == wanted[part] for part in ("outcome", "text", "queries")):
                return "; ".join(REASONS[name] for name in chosen)
    return ""
