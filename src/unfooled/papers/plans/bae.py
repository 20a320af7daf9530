"""BAE: replacements and insertions from a masked language model.

Garg, Ramakrishnan: *BAE: BERT-based Adversarial Examples for Text Classification*, EMNLP 2020,
arXiv:2004.01970. Stage names: `DATA-VICTIM` are models, `DATA-VICTIM-ATTACK` the attacks on them, with ATTACK
one of tf (TextFooler), r, i, r-or-i, r-and-i.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from unfooled.papers import smoke
from unfooled.papers.claims import All, AtLeast, Claim, More, Near, Unmeasured
from unfooled.papers.findings import Quantity as Q
from unfooled.papers.paper import Bars, Cell, Curves, Paper, Table, by_scale
from unfooled.papers.seeds import with_seeds
from unfooled.papers.stages import AttackStage, Model, Rows, Settings, Stage, TrainStage, settings

VICTIMS = {"lstm": "word-LSTM", "cnn": "word-CNN", "bert": "BERT"}
ATTACKS = {"tf": "TextFooler", "r": "BAE-R", "i": "BAE-I", "r-or-i": "BAE-R/I", "r-and-i": "BAE-R+I"}
MODES = ("r", "i", "r-or-i", "r-and-i")
PLACES = {"trec": "TREC", "mr": "MR", "mpqa": "MPQA", "subj": "Subj"}
FAMILIES = {"lstm": "lstm", "cnn": "word-cnn", "bert": "bert"}
LIMITS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)  # maximum share of changed words, figure 2


@dataclass(frozen=True, kw_only=True)
class BaeSizes:
    train: dict[str, Rows]
    test: dict[str, Rows]
    families: dict[str, str]
    options: dict[str, Settings]
    attacks: dict[str, str]
    cosine: dict[str, str]  # BAE with its threshold read as a cosine of whole texts
    bae: Settings
    textfooler: Settings  # of all parts of TextFooler
    everywhere: Settings  # of all parts of BAE
    measures: tuple[str, ...]
    bert: tuple[str, ...] = tuple(PLACES)  # sets with BERT as a victim
    seeds: dict[str, int] = field(default_factory=dict)  # of each victim's training
    once: tuple[str, ...] = ()  # sets on which one seed must do
    more: tuple[Stage, ...] = ()


def stages(size: BaeSizes) -> tuple[Stage, ...]:
    made: list[Stage] = list(size.more)
    pairs = [
        (place, victim)
        for place in size.train
        for victim in size.families
        if victim != "bert" or place in size.bert
    ]
    made += [
        TrainStage(
            name=f"{place}-{victim}",
            family=size.families[victim],
            data=size.train[place],
            options=size.options[victim],
        )
        for place, victim in pairs
    ]
    made += [
        AttackStage(
            name=f"{place}-{victim}-{attack}",
            model=Model(stage=f"{place}-{victim}"),
            data=size.test[place],
            attack=size.attacks[attack],
            changes=() if attack == "tf" else size.bae,
            everywhere=size.textfooler if attack == "tf" else size.everywhere,
            measures=size.measures,
        )
        for place, victim in pairs
        for attack in ATTACKS
    ]
    made += [
        AttackStage(
            name=f"trec-{victim}-{mode}-cosine",
            model=Model(stage=f"trec-{victim}"),
            data=size.test["trec"],
            attack=size.cosine[mode],
            changes=size.bae,
            everywhere=size.everywhere,
            measures=size.measures,
        )
        for victim in ("lstm", "bert")
        for mode in MODES
    ]
    several = {
        f"{place}-{victim}": size.seeds.get(victim, 1) for place, victim in pairs if place not in size.once
    }
    once = tuple(stage.name for stage in made if stage.name.endswith("-cosine"))
    return with_seeds(tuple(made), several, once)


_NAMES = {"tf": "textfooler@code"} | {mode: f"bae-{mode}@paper" for mode in MODES}
_COSINE = {mode: f"bae-{mode}@cosine" for mode in MODES}
_SMOKE = BaeSizes(
    train={"trec": Rows(source="{reviews}", split="train")},
    test={"trec": Rows(source="{reviews}", limit=6)},
    families={"lstm": "lstm", "cnn": "word-cnn", "bert": "bert-scratch"},
    options={
        "lstm": (*smoke.WORDS, ("hidden", 8)),
        "cnn": (*smoke.WORDS, ("filters", 4)),
        "bert": smoke.ATTENTION,
    },
    attacks={name: f"smoke:{recipe}" for name, recipe in _NAMES.items()},
    cosine={name: f"smoke:{recipe}" for name, recipe in _COSINE.items()},
    bae=settings(**{"search.fill.masked_lm": "{masked-lm}", "search.fill.most": 5}),
    textfooler=settings(table="{table}"),
    everywhere=(),
    measures=("edit-distance",),
    seeds={"cnn": 2},
    more=smoke.fixtures("reviews", "table", "masked-lm"),
)
_GLOVE = settings(vectors="glove-6b-50d")
_ROWS = {"trec": 150, "mr": 60, "mpqa": 150, "subj": 60}
_SMALL = BaeSizes(
    train={place: Rows(source=place, split="train") for place in PLACES},
    test={place: Rows(source=place, sample=n, seed=24) for place, n in _ROWS.items()},
    families=FAMILIES,
    options={"lstm": _GLOVE, "cnn": _GLOVE, "bert": ()},
    attacks=_NAMES,
    cosine=_COSINE,
    bae=(),
    textfooler=settings(encoder="use"),
    everywhere=settings(encoder="use"),
    measures=("similarity:use",),
    bert=("trec", "mr"),
    seeds={"lstm": 3, "cnn": 3, "bert": 2},
    once=("mpqa", "subj"),
)
_HUB = {
    "trec": Rows(source="hf:CogComp/trec", split="train", text=("text",), label="coarse_label"),
    "mr": Rows(
        source="hf:cornell-movie-review-data/rotten_tomatoes", split="train", text=("text",), label="label"
    ),
}
_PAPER = replace(
    _SMALL,
    train=_HUB,
    test={name: replace(rows, split="test") for name, rows in _HUB.items()},
    options={"lstm": _GLOVE, "cnn": _GLOVE, "bert": settings(body="bert-base-uncased", epochs=3, lr=2e-5)},
    bae=settings(**{"search.fill.masked_lm": "bert-base-uncased"}),
    bert=tuple(_HUB),
)

_HOW = (
    f"Data: random test rows (seed 24) of TREC ({_ROWS['trec']}, 6 classes), MR ({_ROWS['mr']}), MPQA "
    f"({_ROWS['mpqa']}) and Subj ({_ROWS['subj']}); BERT on the first two. The paper attacks whole sets, and "
    "Amazon, Yelp and IMDB too: reviews of a hundred words, of which one costs as much as twenty questions. "
    "Five attacks on three models of MR take an hour with 60 rows and two or three seeds; more does not fit "
    "into six hours for five papers.",
    "Seeds: LSTM and CNN three, BERT two, on TREC and MR; one on MPQA and Subj, which no claim is about.",
    "Victims: LSTM, CNN and MiniLM in place of BERT, trained with the defaults of `unfooled train`.",
    "BAE: `@paper`, 50 predictions, similarity 0.8 on TextFooler's scale in a window of 15 words (0.1 for "
    "shorter texts), Universal Sentence Encoder. The masked language model is the one that `unfooled "
    "resources build masked-lm` trains on MiniLM's body. TextFooler: `@code`, the same encoder.",
    "Similarity: cosine of whole texts by the Universal Sentence Encoder, of the successes.",
)
_HOW_PAPER = "bert-base-uncased as victim and masked language model, whole test sets of TREC and MR."
_WHY = (
    "The masked language model is a small one trained for half an hour: it prefers short common words, and "
    "puts the right content word among its first 50 only 44 times in 100. Most questions of TREC have fewer "
    "than 15 words, where the authors' similarity threshold is 0.1 and forbids nothing. Both make BAE "
    "stronger and less faithful here than in the paper. MiniLM has 6 layers and is easier to fool than "
    "BERT-base. Counter-fitted vectors for TextFooler are rebuilt ones."
)

LANGUAGE_MODEL, WINDOW, BODY = "masked language model", "short texts", "model body"
VECTORS, ENCODER, ROWS = "counter-fitted vectors", "encoder", "word models' training"
_SUBSTITUTIONS = (
    (
        LANGUAGE_MODEL,
        "a head trained for half an hour on MiniLM's body in place of BERT: the right content word is among "
        "its first 50 only 44 times in 100, and it prefers short common words.",
    ),
    (
        WINDOW,
        "98 % of TREC's questions have fewer than 15 words, where the authors' threshold is 0.1 and forbids "
        "nothing; that is so in the paper too, and no stand-in, but other encoders judge other texts.",
    ),
    (BODY, "MiniLM (6 layers of 384) in place of BERT-base as the victim."),
    (VECTORS, "rebuilt counter-fitted vectors for TextFooler."),
    (ENCODER, "the multilingual version of the Universal Sentence Encoder, as threshold and as measure."),
    (ROWS, "LSTM and CNN of 50-d GloVe vectors with our defaults; the paper does not give its own."),
)


def _stands_on(victim: str, *attacks: str) -> tuple[str, ...]:
    """What the figures of a victim under these attacks depend on."""
    found = [BODY if victim == "bert" else ROWS, ENCODER, WINDOW]
    found += [VECTORS] * ("tf" in attacks) + [LANGUAGE_MODEL] * any(mode in attacks for mode in MODES)
    return tuple(found)


def run(place: str, victim: str, attack: str, what: str = "after", **options: tuple[str, ...]) -> Q:
    return Q(f"{place}-{victim}-{attack}", what, **options)  # type: ignore[arg-type]


def _each(
    place: str, victim: str, what: str, firsts: tuple[str, ...], others: tuple[str, ...], by: float = 0.0
) -> All:
    """Every one of `firsts` above every one of the others."""
    return All(
        tuple(
            More(
                run(place, victim, first, what),
                run(place, victim, other, what),
                by=by,
                names=(f"lost to {ATTACKS[first]}" if what == "lost" else ATTACKS[first], ATTACKS[other]),
                paired=True,
            )
            for first in firsts
            for other in others
        )
    )


# Claims made of several victims: what is said, what is measured, and which attacks are above which others.
_COMPARED: dict[str, tuple[str, str, tuple[str, tuple[str, ...], tuple[str, ...], float]]] = {
    "strongest": (
        "R+I is the strongest mode",
        "rows lost, R+I against each other mode, row by row; ties of up to 3 points allowed",
        ("lost", ("r-and-i",), ("r", "i", "r-or-i"), -0.03),
    ),
    "beats-textfooler": (
        "R+I leaves fewer right than TextFooler",
        "rows lost, row by row",
        ("lost", ("r-and-i",), ("tf",), 0.0),
    ),
    "similar": (
        "All four modes keep texts more similar than TextFooler does",
        "similarity of texts that both attacks found",
        ("measure", MODES, ("tf",), 0.0),
    ),
    "i-similar": (
        "I keeps the highest similarity of the four modes",
        "similarity of texts that both modes found; ties of up to 0.01 allowed",
        ("measure", ("i",), ("r", "r-or-i", "r-and-i"), -0.01),
    ),
    "insertion-ameliorates": (
        "R+I keeps texts at least as similar as R alone",
        "similarity of texts that both modes found; ties of up to 0.01 allowed",
        ("measure", ("r-and-i",), ("r",), -0.01),
    ),
}


def _compared(name: str, place: str, victim: str, printed: str) -> Claim:
    sentence, how, (what, firsts, others, by) = _COMPARED[name]
    sentence = f"{sentence} ({VICTIMS[victim]}, {PLACES[place]})."
    return Claim(
        f"{place}-{victim}-{name}",
        sentence,
        printed,
        how,
        _each(place, victim, what, firsts, others, by),
        substitutions=_stands_on(victim, *firsts, *others),
        # Which words are proposed decides how far a text moves; without a threshold nothing holds them back.
        decided_by=(LANGUAGE_MODEL,) if name == "similar" else (),
    )


def _splits(place: str, victim: str) -> Claim:
    return Claim(
        f"{place}-{victim}-a-above-b",
        f"More texts need an insertion (A) than a replacement (B) ({VICTIMS[victim]}, {PLACES[place]}).",
        "A larger than B (table 5, whose numbers are not in our text)",
        "A: R/I succeeds and R does not; B: R/I succeeds and I does not; of all attacked, row by row",
        More(
            run(place, victim, "r-or-i", "success", without=(f"{place}-{victim}-r",)),
            run(place, victim, "r-or-i", "success", without=(f"{place}-{victim}-i",)),
            names=("A", "B"),
            paired=True,
        ),
        substitutions=_stands_on(victim, *MODES),
    )


_I_PRINTED = "TREC: I .964/.931 (LSTM/BERT), the others lower; MR: .966/.958, the others lower"
CLAIMS = (
    *(
        _compared(name, place, victim, printed)
        for name, place, victim, printed in (
            ("strongest", "trec", "lstm", "32.4 / 18.0 / 20.4 / 11.8 right (R, I, R/I, R+I)"),
            ("strongest", "trec", "cnn", "29.6 / 15.4 / 13.0 / 8.4"),
            ("strongest", "trec", "bert", "37.2 / 32.2 / 23.6 / 20.2"),
            ("beats-textfooler", "trec", "lstm", "11.8 against 42.4 right"),
            ("beats-textfooler", "trec", "bert", "20.2 against 42.8 right"),
            ("beats-textfooler", "mr", "bert", "19.21 against 30.74 right"),
            ("similar", "trec", "lstm", "TextFooler .834; R .870, I .964, R/I .954, R+I .874"),
            (
                "similar",
                "trec",
                "bert",
                "so the text; its table has TextFooler .866; R .824, I .931, R/I .908, R+I .825: two modes "
                "are below",
            ),
            ("i-similar", "trec", "lstm", _I_PRINTED),
            ("i-similar", "trec", "bert", _I_PRINTED),
            ("insertion-ameliorates", "trec", "lstm", ".874 against .870; “always higher”"),
            ("insertion-ameliorates", "trec", "bert", ".825 against .824; “always higher”"),
        )
    ),
    *(_splits("trec", victim) for victim in ("lstm", "bert")),
    Claim(
        "mr-bert-r-below-textfooler",
        "On BERT, TextFooler is sometimes stronger than R (MR).",
        "30.74 right under TextFooler, 44.05 under R",
        "rows lost, row by row",
        _each("mr", "bert", "lost", ("tf",), ("r",)),
        substitutions=_stands_on("bert", "tf", "r"),
    ),
    *(
        Claim(
            f"{place}-combined-stronger",
            f"R/I and R+I are stronger than R alone (BERT, {PLACES[place]}).",
            printed,
            "rows lost, row by row",
            _each(place, "bert", "lost", ("r-or-i", "r-and-i"), ("r",)),
            substitutions=_stands_on("bert", *MODES),
        )
        for place, printed in (
            ("trec", "23.6 and 20.2 against 37.2 right"),
            ("mr", "20.34 and 19.21 against 44.05 right"),
        )
    ),
    Claim(
        "bert-more-robust",
        "BERT is more robust to R+I than the word models (TREC).",
        "20.2 right against 11.8 (LSTM) and 8.4 (CNN)",
        "rows right after the attack, row by row",
        All(
            tuple(
                More(
                    run("trec", "bert", "r-and-i"),
                    run("trec", victim, "r-and-i"),
                    names=("BERT", VICTIMS[victim]),
                    paired=True,
                )
                for victim in ("lstm", "cnn")
            )
        ),
        substitutions=(*_stands_on("lstm"), *_stands_on("bert", "r-and-i")),
        decided_by=(BODY,),
    ),
    Claim(
        "robust-below-20",
        "With at most 20 % changed words most texts withstand (R+I, BERT, TREC).",
        "figure 2: relatively robust up to 20 %",
        "right where no more than 20 % of the words may change; at least half",
        AtLeast(run("trec", "bert", "r-and-i", "upto:0.2"), 0.5, name="right"),
        substitutions=_stands_on("bert", "r-and-i"),
    ),
    Claim(
        "saturates-at-half",
        "More than half the words changed adds nearly nothing (R+I, BERT, TREC).",
        "figure 2: saturates at 40 to 50 %",
        "right with at most 50 % and with any number; less than 5 points apart",
        Near(
            run("trec", "bert", "r-and-i", "upto:0.5"),
            run("trec", "bert", "r-and-i", "upto:10"),
            0.05,
            names=("at most 50 %", "any"),
        ),
        substitutions=_stands_on("bert", "r-and-i"),
    ),
    Claim(
        "human",
        "People find R more natural than TextFooler and read its sentiment as before.",
        "table 4: sentiment accuracy and naturalness (1–5)",
        "no model can judge this",
        Unmeasured(),
        needs="human raters",
    ),
)

_PRINTED = {
    ("trec", "lstm"): ("42.4 (.834)", "32.4 (.870)", "18.0 (.964)", "20.4 (.954)", "11.8 (.874)"),
    ("trec", "cnn"): ("47.6 (.812)", "29.6 (.843)", "15.4 (.953)", "13.0 (.936)", "8.4 (.858)"),
    ("trec", "bert"): ("42.8 (.866)", "37.2 (.824)", "32.2 (.931)", "23.6 (.908)", "20.2 (.825)"),
    ("mr", "lstm"): ("25.49 (.906)", "24.17 (.914)", "19.11 (.966)", "15.08 (.949)", "7.50 (.935)"),
    ("mr", "cnn"): ("21.18 (.910)", "20.81 (.920)", "19.49 (.971)", "15.56 (.956)", "7.87 (.938)"),
    ("mpqa", "lstm"): ("48.5 ()", "45.7 ()", "40.9 ()", "31.6 ()", "25.6 ()"),
    ("mpqa", "cnn"): ("",) * 5,
    ("subj", "lstm"): ("58.5 ()", "50.2 ()", "49.8 ()", "43.1 ()", "29.0 ()"),
    ("subj", "cnn"): ("",) * 5,
    ("mr", "bert"): ("30.74 (.902)", "44.05 (.871)", "32.05 (.958)", "20.34 (.941)", "19.21 (.917)"),
}


def _table(what: str, title: str, place_of: int) -> Table:
    rows = []
    for (place, victim), printed in _PRINTED.items():
        cells = tuple(
            Cell(
                text.replace(")", "").split(" (")[place_of] if text else "", run(place, victim, attack, what)
            )
            for attack, text in zip(ATTACKS, printed, strict=True)
        )
        rows.append((f"{VICTIMS[victim]}, {PLACES[place]}", cells))
    return Table(title, "victim, data", tuple(ATTACKS.values()), tuple(rows))


PAPER = Paper(
    name="bae",
    title="BAE: BERT-based adversarial examples for text classification",
    citation="Garg, Ramakrishnan 2020, EMNLP, arXiv:2004.01970",
    plan=by_scale(stages, _SMOKE, (_SMALL, _HOW, _WHY), _PAPER, _HOW_PAPER, substitutions=_SUBSTITUTIONS),
    claims=CLAIMS,
    examples=(
        "trec-bert-tf",
        "trec-bert-r",
        "trec-bert-i",
        "mr-bert-r",
        "mr-bert-r-and-i",
    ),
    tables=(
        _table("after", "Tables 1 and 2: accuracy under attack, %", 0),
        _table("measure", "Tables 1 and 2: average similarity of the texts found", 1),
        Table(
            "TREC where the threshold is a cosine of 0.8 of whole texts: accuracy under attack, %",
            "victim",
            tuple(ATTACKS[mode] for mode in MODES),
            tuple(
                (VICTIMS[victim], tuple(Cell("", run("trec", victim, f"{mode}-cosine")) for mode in MODES))
                for victim in ("lstm", "bert")
            ),
            "As published ports have it. The authors' threshold forbids nothing in texts of fewer than 15 "
            "words, which nearly all questions of TREC are.",
        ),
        Table(
            "Table 5: texts that need an insertion (A), a replacement (B), both (C), % of the attacked",
            "victim, data",
            ("A: R/I without R", "B: R/I without I", "C: R/I without both"),
            tuple(
                (
                    f"{VICTIMS[victim]}, {PLACES[place]}",
                    tuple(
                        Cell(
                            "",
                            run(
                                place,
                                victim,
                                "r-or-i",
                                "success",
                                without=tuple(f"{place}-{victim}-{o}" for o in others),
                            ),
                        )
                        for others in (("r",), ("i",), ("r", "i"))
                    ),
                )
                for place in PLACES
                for victim in VICTIMS
            ),
            "The numbers of the paper's table 5 are not in the text that we have.",
        ),
    ),
    pictures=(
        Bars(
            "accuracy",
            "accuracy under attack, TREC",
            tuple(
                (title, tuple((VICTIMS[victim], run("trec", victim, attack)) for victim in VICTIMS))
                for attack, title in ATTACKS.items()
            ),
        ),
        Curves(
            "perturbation",
            "BERT on TREC: accuracy where only so many words may change (the paper's figure 2)",
            LIMITS,
            tuple(
                (title, tuple(run("trec", "bert", attack, f"upto:{limit}") for limit in LIMITS))
                for attack, title in ATTACKS.items()
            ),
            "most words changed, share of the text",
        ),
    ),
)
