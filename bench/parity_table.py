"""Everything about what is compared: one row for every recipe of TextAttack and every attacker of OpenAttack.

`how` is one of
    texts    TextAttack is deterministic: outcome and text example by example, with the same parts
    rates    random: success rate and queries, with their intervals
    cases    not run side by side, for the reason in `why`; `tests` pin it on cases worked out by hand
    absent   not here yet
    lost     cannot be built: what it is made of can be had nowhere
"""

from __future__ import annotations

from dataclasses import dataclass

WORD_MODEL = "lstm-mr"  # a victim whose words have vectors of their own


@dataclass(frozen=True)
class Row:
    peer: str  # textattack or openattack
    name: str  # the peer's own
    ours: str  # a recipe of Unfooled with its version; "" where there is none
    how: str
    why: str = ""  # why it is compared so, or not at all
    parts: tuple[str, ...] = ()  # given to both sides: see parity_parts.py
    mends: tuple[str, ...] = ()  # accidents of TextAttack that are taken away first
    recipe: str = ""  # class of TextAttack
    build: tuple[tuple[str, object], ...] = ()  # arguments of its `build`
    settings: tuple[str, ...] = ()  # of our recipe, path=value
    without: tuple[str, ...] = ()  # kinds of edits that both sides leave out, because they are random
    budget: int = 0  # most queries per text on both sides; 0 is any number
    victim: str = "mr.skops"
    examples: int = 100
    longest: int = 0  # words of a text; 0 is any number
    tests: str = ""  # a file below tests/

    @property
    def distinct(self) -> bool:
        """Whether a text counts as a query only the first time it is asked."""
        return "repeats" in self.mends

    @property
    def measured(self) -> bool:
        return self.how in ("texts", "rates")


def _textattack(name: str, recipe: str, ours: str, how: str, **more: object) -> Row:
    return Row("textattack", name, ours, how, recipe=recipe, **more)  # type: ignore[arg-type]


def _openattack(name: str, ours: str, why: str, tests: str = "", how: str = "cases") -> Row:
    return Row("openattack", name, ours, how, why=why, tests=tests)


PART_NAMES = {
    "vectors": "word vectors and neighbours",
    "encoder": "sentence encoder (MiniLM)",
    "masked-lm": "masked language model",
    "wordnet": "WordNet",
    "look-alikes": "look-alikes (the wheel of TextAttack lacks the file)",
    "tagger": "tagger (in place of flair)",
    "sisters": "WordNet sisters (in place of HowNet)",
    "trigram": "trigram language model",
    "places": "after a deletion, the words' numbers follow the words",
    "flips": "words are ranked by p(true class), also where a deletion flips the label; equals by place",
    "whole-mask": "the language model reads the text to its end also where words are inserted or merged",
    "whole-words": "pieces of words are no candidates",
    "word-gradients": "the gradient of a word is that of its own token, without dropout",
    "whole-text": "the gradient is that of the whole text, not of the text up to its last editable word",
    "lemmas": "base forms by our rules",
    "parents": "the best breed, not the worst",
    "repeats": "a text counts as a query once, as with us",
    "evolution": "it ends with the generation that flips the label, without polishing",
    "gradients": "no dropout while gradients are taken",
}
_LIST = "OpenAttack lower-cases texts and counts exceptions as failures: "
_POPULATION = "a population of texts, drawn at random"
_TRANSLATOR = "it attacks translators; no small one is there that both sides can load"
_WHITE_BOX = "attacks/test_white_box.py"

TEXTATTACK = (
    _textattack(
        "a2t",
        "A2TYoo2021",
        "a2t@textattack",
        "texts",
        parts=("vectors", "encoder"),
        mends=("gradients", "whole-text"),
        victim="minilm-mr",
    ),
    _textattack(
        "alzantot",
        "GeneticAlgorithmAlzantot2018",
        "alzantot@textattack",
        "rates",
        why=_POPULATION,
        examples=200,
        parts=("vectors", "trigram"),
        mends=("repeats",),
    ),
    _textattack(
        "bad-characters",
        "BadCharacters2021",
        "bad-homoglyphs@textattack",
        "rates",
        why="differential evolution; homoglyphs, its default kind, towards the other class",
        parts=("look-alikes",),
        build=(("goal_function_type", "targeted_classification"), ("allow_skip", True)),
        examples=200,
        mends=("repeats", "evolution"),
    ),
    _textattack("bae", "BAEGarg2019", "bae-r@textattack", "texts", parts=("encoder", "masked-lm")),
    _textattack(
        "bert-attack", "BERTAttackLi2020", "bert-attack@textattack", "texts", parts=("encoder", "masked-lm")
    ),
    _textattack(
        "checklist",
        "CheckList2020",
        "checklist@textattack",
        "cases",
        why="names, places and numbers are drawn from other lists, and entities come from a model of a hub",
        tests="attacks/test_checklist.py",
    ),
    _textattack("chinese", "ChineseRecipe", "", "absent", why="Chinese is not attacked yet"),
    _textattack(
        "clare",
        "CLARE2020",
        "clare@textattack",
        "texts",
        parts=("encoder", "masked-lm", "tagger"),
        mends=("whole-mask", "whole-words"),
        longest=14,
    ),
    _textattack(
        "deepwordbug",
        "DeepWordBugGao2018",
        "deepwordbug@textattack",
        "rates",
        why="letters are drawn at random",
        examples=400,
    ),
    _textattack(
        "faster-alzantot",
        "FasterGeneticAlgorithmJia2019",
        "faster-alzantot@textattack",
        "rates",
        why=_POPULATION,
        budget=1000,
        examples=200,
        parts=("vectors", "trigram"),
        mends=("repeats",),
    ),
    _textattack("french", "FrenchRecipe", "", "absent", why="French is not attacked yet"),
    _textattack(
        "hotflip",
        "HotFlipEbrahimi2017",
        "hotflip@textattack",
        "texts",
        why="on an LSTM over words: the one flip worth most among all mostly fails the cosine",
        parts=("vectors",),
        mends=("word-gradients", "repeats"),
        victim=WORD_MODEL,
    ),
    _textattack(
        "iga",
        "IGAWang2019",
        "iga@textattack",
        "rates",
        why=_POPULATION,
        budget=1000,
        examples=200,
        parts=("vectors",),
        mends=("repeats",),
    ),
    _textattack(
        "input-reduction",
        "InputReductionFeng2018",
        "input-reduction@textattack",
        "texts",
        why="a success is a text of one word that keeps its class",
        mends=("places", "flips"),
    ),
    _textattack(
        "kuleshov",
        "Kuleshov2017",
        "kuleshov@textattack",
        "texts",
        why="it stops below a confidence of 0.7: where the label stands then, both count a failure",
        parts=("vectors", "trigram"),
    ),
    _textattack(
        "leap",
        "LEAP2023",
        "leap@textattack",
        "rates",
        why=_POPULATION,
        examples=200,
        parts=("wordnet",),
        mends=("repeats",),
    ),
    _textattack(
        "morpheus",
        "MorpheusTan2020",
        "morpheus@textattack",
        "cases",
        why=_TRANSLATOR,
        tests="translation/test_output_attacks.py",
    ),
    _textattack("pruthi", "Pruthi2019", "pruthi@textattack", "texts", without=("add",)),
    _textattack(
        "pso",
        "PSOZang2020",
        "pso@textattack",
        "rates",
        why=_POPULATION,
        budget=1000,
        examples=200,
        parts=("sisters",),
        mends=("repeats",),
    ),
    _textattack("pwws", "PWWSRen2019", "pwws@textattack", "texts", parts=("wordnet",)),
    _textattack(
        "seq2sick",
        "Seq2SickCheng2018BlackBox",
        "seq2sick@textattack",
        "cases",
        why=_TRANSLATOR,
        tests="translation/test_output_attacks.py",
    ),
    _textattack("spanish", "SpanishRecipe", "", "absent", why="Spanish is not attacked yet"),
    _textattack(
        "textbugger",
        "TextBuggerLi2018",
        "textbugger@textattack",
        "rates",
        why="three of five kinds of bugs are drawn",
        parts=("vectors", "encoder", "look-alikes"),
        examples=200,
    ),
    _textattack(
        "textfooler",
        "TextFoolerJin2019",
        "textfooler@textattack",
        "texts",
        parts=("vectors", "encoder"),
    ),
)

OPENATTACK = (
    _openattack(
        "BAEAttacker", "bae-r-and-i@paper", _LIST + "a rejected word stays in the text", "attacks/test_bae.py"
    ),
    _openattack(
        "BERTAttacker",
        "bert-attack@paper",
        _LIST + "36 words a place, the last word never ranked, a rejected word stays in the text",
        "attacks/test_bert_attack.py",
    ),
    _openattack(
        "DeepWordBugAttacker",
        "deepwordbug@paper",
        _LIST + "otherwise the article's",
        "attacks/test_attacks.py",
    ),
    _openattack(
        "FDAttacker",
        "fd@openattack",
        _LIST + "its gradient of a transformers model has the wrong sign; synonyms of synonyms",
        _WHITE_BOX,
    ),
    _openattack(
        "GANAttacker",
        "",
        "the generator and inverter that it was trained with can be had nowhere; of SST it only decodes "
        "a noisy copy, once",
        how="lost",
    ),
    _openattack(
        "GEOAttacker",
        "geo@paper",
        "switched off in OpenAttack itself: it calls a function that torch no longer has",
        _WHITE_BOX,
    ),
    _openattack(
        "GeneticAttacker",
        "alzantot@paper",
        _LIST + "20 texts, 20 generations, weights by the score, no language model",
        "attacks/test_population.py",
    ),
    _openattack(
        "HotFlipAttacker",
        "hotflip@paper",
        _LIST + "no gradient in it: the first neighbour that flips, and every word tried stays in the text",
        _WHITE_BOX,
    ),
    _openattack(
        "PSOAttacker",
        "pso@paper",
        _LIST + "its particles' bests start at -1 and never change",
        "attacks/test_population.py",
    ),
    _openattack("PWWSAttacker", "pwws@paper", _LIST + "no entities", "attacks/test_pwws.py"),
    _openattack(
        "SCPNAttacker",
        "",
        "its two models, their list of word pieces and its parser can be had nowhere",
        how="lost",
    ),
    _openattack("SEAAttacker", "", "named in its README; 2.1.1 has no code of it", how="lost"),
    _openattack(
        "TextBuggerAttacker",
        "textbugger@textattack",
        _LIST + "blanks in short words only, any two inner letters swapped, no similarity",
        "attacks/test_word_attacks.py",
    ),
    _openattack(
        "TextFoolerAttacker",
        "textfooler@code",
        _LIST + "one short text lowers the threshold for all that follow",
        "attacks/test_attacks.py",
    ),
    _openattack(
        "UATAttacker",
        "uat@paper",
        _LIST + "its trigger is `the the the` unless one was learned; ours is learned by `unfooled trigger`",
        _WHITE_BOX,
    ),
    _openattack(
        "VIPERAttacker",
        "viper@dces",
        _LIST + "draws up to 120 times, the farther look-alike the likelier",
        "attacks/test_disguise.py",
    ),
)

ROWS = TEXTATTACK + OPENATTACK


def row(name: str) -> Row:
    """The row of a recipe of TextAttack."""
    return next(row for row in TEXTATTACK if row.name == name)
