"""Attacks on an LSTM, an SVM and naive Bayes with IMDB reviews, 2017.

Stage names: `lstm`, `svm`, `svm-mean`, `nb` are models; `MODEL-tack-on`, `MODEL-1`, `-3`, `-5` the black-box
attacks on them, `lstm-jsma` the white-box one. All attack the same rows, JSMA some of them. `VARIANT-clean`
is what other LSTMs say of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from unfooled.papers import smoke
from unfooled.papers.claims import All, AtLeast, Claim, More, Near
from unfooled.papers.findings import Quantity as Q
from unfooled.papers.paper import Bars, Cell, Confused, Counts, Paper, Plane, Table, by_scale
from unfooled.papers.seeds import with_seeds
from unfooled.papers.stages import (
    AttackStage,
    Model,
    PlaneStage,
    Rows,
    Settings,
    ShowStage,
    Stage,
    TrainStage,
    WordsStage,
    settings,
)

MODELS = {"lstm": "LSTM", "svm": "SVM", "svm-mean": "SVM of mean vectors", "nb": "naive Bayes"}
BASELINES = ("svm", "nb")  # that the paper's claims are about
VARIANTS = {
    "lstm-32": "32 units",
    "lstm-128": "128 units",
    "lstm-half": "dropout 0.5",
    "lstm-tuned": "tuned vectors",
}
ARTICLES = {"svm": "the SVM", "nb": "naive Bayes"}
SWAPS = ("tack-on", "1", "3", "5")
TITLES = {"tack-on": "tack-on", "1": "1 word", "3": "3 words", "5": "5 words", "jsma": "JSMA"}


@dataclass(frozen=True, kw_only=True)
class LstmJsmaSizes:
    train: Rows
    test: Rows
    counted: Rows  # to count the words of the classes in
    lstm: Settings
    svm: Settings
    mean: Settings
    variants: dict[str, Settings]  # what is different from the LSTM
    seeds: int
    jsma: int
    words: int  # most words that JSMA may change
    more: tuple[Stage, ...] = ()


def stages(size: LstmJsmaSizes) -> tuple[Stage, ...]:
    made: list[Stage] = [
        *size.more,
        TrainStage(name="nb", family="naive-bayes", data=size.train),
        TrainStage(name="svm", family="svm", data=size.train, options=size.svm),
        TrainStage(name="svm-mean", family="svm", data=size.train, options=size.mean),
        TrainStage(name="lstm", family="lstm", data=size.train, options=size.lstm),
        WordsStage(name="words", data=size.counted),
        PlaneStage(name="plane", data=size.test),
    ]
    for name, changed in size.variants.items():
        options = tuple((dict(size.lstm) | dict(changed)).items())
        made += [
            TrainStage(name=name, family="lstm", data=size.train, options=options),
            ShowStage(name=f"{name}-clean", model=Model(stage=name), samples="", data=size.test),
        ]
    for model in MODELS:
        made += [
            AttackStage(
                name=f"{model}-{swap}",
                model=Model(stage=model),
                data=size.test,
                attack="tack-on" if swap == "tack-on" else f"strongest-words@{swap}",
                changes=settings(**{"search.words": "{words}"}),
            )
            for swap in SWAPS
        ]
    made.append(
        AttackStage(
            name="lstm-jsma",
            model=Model(stage="lstm"),
            data=size.test,
            attack="jsma@paper",
            changes=settings(**{"search.most": size.words}),
            limit=size.jsma,
        )
    )
    return with_seeds(tuple(made), dict.fromkeys(("lstm", "svm", "svm-mean"), size.seeds))


_READ = "reviews,first-250"  # letters, digits and blanks; no model reads more words
_SMOKE = LstmJsmaSizes(
    train=Rows(source="{reviews}", split="train"),
    test=Rows(source="{reviews}"),
    counted=Rows(source="{reviews}", split="train"),
    lstm=(*smoke.WORDS, ("hidden", 8)),
    svm=settings(epochs=20),
    mean=settings(epochs=20, features="mean", vectors="{vectors}"),
    variants={"lstm-32": settings(hidden=4)},
    seeds=2,
    jsma=6,
    words=3,
    more=smoke.fixtures("reviews", "vectors"),
)
_SMALL = LstmJsmaSizes(
    train=Rows(source="imdb", split="train", clean=_READ),
    test=Rows(source="imdb", sample=2000, seed=24, clean=_READ),
    counted=Rows(source="imdb", split="train", clean="reviews"),
    lstm=settings(vectors="glove-6b-50d", frozen=True, vocabulary=400_000, min_count=1),
    svm=settings(features="counts"),
    mean=settings(features="mean"),
    variants={
        "lstm-32": settings(hidden=32),
        "lstm-128": settings(hidden=128),
        "lstm-half": settings(dropout=0.5),
        "lstm-tuned": settings(frozen=False, vocabulary=20_000, min_count=2),
    },
    seeds=3,
    jsma=300,
    words=35,
)
_HUB = Rows(source="hf:stanfordnlp/imdb", split="train", text=("text",), label="label", clean=_READ)
_PAPER = replace(
    _SMALL,
    train=_HUB,
    test=replace(_HUB, split="test", sample=12_500),
    counted=replace(_HUB, clean="reviews"),
    jsma=1000,
)

_HOW = (
    "Data: IMDB, 24,779 reviews to train on (a tenth of them decides which epoch is kept), 2,000 random test "
    "reviews (seed 24); texts that occur twice were left out. Cleaned as in the paper: all but letters, "
    "digits and blanks deleted, 250 words for every model. The words of the classes are counted in whole "
    "reviews: then the ten strongest are exactly the paper's.",
    "Models: naive Bayes with Laplace smoothing; linear SVM by stochastic gradient descent on the hinge "
    "loss, regularisation 1e-4, on word counts, and a second one on the mean of 50-d GloVe vectors; LSTM of "
    "64 units, the same vectors, not tuned, dropout 0.25, Adam, batch 24. The LSTM is trained until its "
    "validation accuracy stops rising.",
    f"Seeds: LSTM and SVMs are trained {_SMALL.seeds} times, and every attack is made on each; naive Bayes "
    "has no chance in it. The variants are trained once: five minutes each, and no claim of the paper's "
    "attacks "
    "is about them.",
    "Variants of the LSTM on clean rows: 32 and 128 units, dropout 0.5, and vectors of 20,000 words that are "
    "tuned.",
    "Tack-on and N strongest words: words by the ratio of a naive Bayes model of the training reviews.",
    f"JSMA on the LSTM: most recent words first, at most 35 words, {_SMALL.jsma} of the 2,000 reviews at "
    "random (the paper attacked 291); the dictionary is the LSTM's own vocabulary.",
)
_HOW_PAPER = "As the small scale with all 25,000 training reviews, 12,500 test reviews and 1,000 for JSMA."
_WHY = (
    "The LSTM keeps its best epoch, where the paper's ran for 100,000 steps, and may be more accurate on "
    "clean reviews. It knows the words of the training reviews that have a vector, the paper's all 400,000; "
    "JSMA chooses from them. The paper does not say how long its SVM was trained; it also reads concatenated "
    "vectors, which no model here does."
)
_EPOCH, _DICTIONARY, _FEATURES = "training length", "dictionary", "SVM features"
_SUBSTITUTIONS = (
    (_EPOCH, "the LSTM keeps its best epoch; it is more accurate on clean reviews than the paper's."),
    (
        _DICTIONARY,
        "the LSTM knows the words of the training reviews in place of 400,000; JSMA chooses from these.",
    ),
    (
        _FEATURES,
        "the SVM of the claims reads word counts; one of mean vectors stands in the tables, and the paper's "
        "third, of concatenated vectors, is missing.",
    ),
)
# What each model under the black-box attacks stands on.
_OF_MODEL = {"lstm": (_EPOCH, _DICTIONARY), "svm": (_FEATURES,), "svm-mean": (_FEATURES,), "nb": ()}
_OF_JSMA = (_EPOCH, _DICTIONARY)


def _of_models(*models: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for model in models for name in _OF_MODEL[model]))


def after(model: str, swap: str) -> Q:
    return Q(f"{model}-{swap}")


def _falls(model: str, chain: tuple[str, ...]) -> All:
    """Each attack leaves no more right than the one before, ties of up to one point allowed."""
    return All(
        tuple(
            More(
                after(model, first),
                after(model, second),
                by=-0.01,
                names=(TITLES[first], TITLES[second]),
                paired=True,
            )
            for first, second in pairwise(chain)
        )
    )


def _loses_more(model: str) -> All:
    return All(
        tuple(
            More(
                Q(f"{model}-{swap}", "lost"),
                Q(f"lstm-{swap}", "lost"),
                names=(f"{TITLES[swap]}: {MODELS[model]} loses", "LSTM"),
                paired=True,
            )
            for swap in ("1", "3", "5")
        )
    )


def _at_least_as(variant: str) -> More:
    """The LSTM of the attacks against another one, on clean rows."""
    names = ("64 units, dropout 0.25:", VARIANTS[variant])
    return More(Q("lstm-1", "before"), Q(f"{variant}-clean", "before"), by=-0.01, names=names, paired=True)


_UNDER = {"tack-on": "Under tack-on"} | {swap: f"With {TITLES[swap]} swapped" for swap in ("1", "3", "5")}


def _above(model: str, swap: str) -> Claim:
    return Claim(
        f"lstm-above-{model}-{swap}",
        f"{_UNDER[swap]} the LSTM is more accurate than {ARTICLES[model]}.",
        "“outperforms both baselines in the presence of any given adversary”; figure 8 has no numbers",
        f"accuracy after the attack, LSTM against {MODELS[model]}, row by row",
        More(after("lstm", swap), after(model, swap), names=("LSTM", MODELS[model]), paired=True),
        substitutions=_of_models("lstm", model),
    )


CLAIMS = (
    Claim(
        "lstm-falls",
        "The LSTM's accuracy falls with the attack's strength: tack-on, 1, 3, 5 words, JSMA.",
        "82.24 % clean → 68.17 (3 words) → 59.36 (5) → 39.86 (JSMA); tack-on and 1 word nearly nothing",
        "accuracy after each attack; each no higher than the one before (ties of a point allowed), row by "
        "row",
        _falls("lstm", (*SWAPS, "jsma")),
        substitutions=(*_of_models("lstm"), _DICTIONARY),
    ),
    Claim(
        "svm-falls",
        "So does the SVM's.",
        "figure 8",
        "the same without JSMA",
        _falls("svm", SWAPS),
        substitutions=_of_models("svm"),
    ),
    Claim(
        "nb-falls",
        "So does naive Bayes's.",
        "figure 8",
        "the same without JSMA",
        _falls("nb", SWAPS),
        substitutions=_of_models("nb"),
    ),
    Claim(
        "svm-loses-more",
        "The SVM loses more than the LSTM under every swap attack.",
        "figure 8",
        "rows right before and wrong after the swap of 1, 3 and 5 words, SVM against LSTM",
        _loses_more("svm"),
        substitutions=_of_models("svm", "lstm"),
    ),
    Claim(
        "nb-loses-more",
        "Naive Bayes loses more than the LSTM under every swap attack.",
        "figure 8",
        "rows right before and wrong after the swap of 1, 3 and 5 words, naive Bayes against LSTM",
        _loses_more("nb"),
        substitutions=_of_models("nb", "lstm"),
    ),
    Claim(
        "svm-best-clean",
        "Without an attack the SVM is the most accurate of the three.",
        "LSTM 82.24 %; the SVM slightly higher; naive Bayes below the SVM",
        "clean accuracy on the same rows, against the LSTM and against naive Bayes",
        All(
            tuple(
                More(Q("svm-1", "before"), Q(f"{other}-1", "before"), names=("SVM", title), paired=True)
                for other, title in MODELS.items()
                if not other.startswith("svm")
            )
        ),
        substitutions=_of_models("lstm", "svm", "nb"),
    ),
    *(_above(model, swap) for model in BASELINES for swap in SWAPS),
    Claim(
        "units",
        "An LSTM of 64 units is at least as accurate as one of 32 or 128.",
        "figure 6: 64 the best of the three on the development set",
        "clean test rows, 64 against each; ties of a point allowed, row by row",
        All(tuple(_at_least_as(name) for name in ("lstm-32", "lstm-128"))),
        substitutions=_of_models("lstm"),
    ),
    Claim(
        "dropout",
        "Dropout of 25 % is at least as good as 50 %.",
        "82.21 against 81.77 %, development set",
        "clean test rows; ties of a point allowed, row by row",
        _at_least_as("lstm-half"),
        substitutions=_of_models("lstm"),
    ),
    Claim(
        "plane",
        "Two principal components already separate the classes.",
        "figure 7",
        "test rows nearest to their own class's mean in the plane of the bags of words; at least 60 % (half "
        "would be chance)",
        AtLeast(Q("plane", "near"), 0.6, name="own class"),
    ),
    Claim(
        "tack-on-negligible",
        "Tack-on has almost no effect on the LSTM.",
        "almost negligible",
        "share of rows lost; less than 5 points",
        AtLeast(Q("lstm-tack-on", "lost"), 0.05, most=True, name="lost"),
        substitutions=_of_models("lstm"),
    ),
    Claim(
        "one-word-negligible",
        "Swapping the strongest word has almost no effect on the LSTM.",
        "almost negligible",
        "share of rows lost; less than 5 points",
        AtLeast(Q("lstm-1", "lost"), 0.05, most=True, name="lost"),
        substitutions=_of_models("lstm"),
    ),
    Claim(
        "jsma-halves",
        "JSMA brings the LSTM below half its accuracy.",
        "82.24 → 39.86 %",
        "accuracy before against twice the accuracy after, row by row",
        More(
            Q("lstm-jsma", "before"),
            Q("lstm-jsma", "after"),
            times=2.0,
            names=("before", "after"),
            paired=True,
        ),
        substitutions=_OF_JSMA,
    ),
    Claim(
        "jsma-unselective",
        "JSMA breaks positive and negative reviews alike.",
        "54 of 119 positive and 62 of 172 negative stay right",
        # With 35 words every review falls, 100 against 100 %: that would say nothing.
        "share of the successes with at most 5 changed words, by class; less than 20 points apart",
        Near(
            Q("lstm-jsma", "few:5", label=0),
            Q("lstm-jsma", "few:5", label=1),
            0.2,
            names=("negative", "positive"),
        ),
        substitutions=_OF_JSMA,
    ),
    Claim(
        "jsma-few-words",
        "Many of JSMA's successes change only a few words.",
        "figure 10: many with only a few",
        "share of the successes with at most 5 changed words; at least a quarter",
        AtLeast(Q("lstm-jsma", "few:5"), 0.25, name="at most 5 words"),
        substitutions=_OF_JSMA,
    ),
)

_PAPER_LSTM = {"clean": "82.24", "3": "68.17", "5": "59.36", "jsma": "39.86"}


def _row(model: str) -> tuple[Cell, ...]:
    printed = _PAPER_LSTM if model == "lstm" else {}
    cells = [Cell(printed.get("clean", ""), Q(f"{model}-1", "before"))]
    cells += [Cell(printed.get(swap, ""), after(model, swap)) for swap in SWAPS]
    return (*cells, Cell(printed["jsma"], after("lstm", "jsma")) if model == "lstm" else Cell())


PAPER = Paper(
    name="lstm-jsma",
    title="Adversarial attacks on an LSTM, an SVM and naive Bayes (IMDB)",
    citation="Attacks on RNN sentiment classifiers, 2017 (`lstm-jsma-imdb-2017`)",
    plan=by_scale(stages, _SMOKE, (_SMALL, _HOW, _WHY), _PAPER, _HOW_PAPER, substitutions=_SUBSTITUTIONS),
    claims=CLAIMS,
    examples=(
        "lstm-3",
        "lstm-5",
        "lstm-jsma",
    ),
    tables=(
        Table(
            "Figure 8: accuracy of each model under each attack",
            "model",
            ("clean", *(TITLES[swap] for swap in (*SWAPS, "jsma"))),
            tuple((MODELS[model], _row(model)) for model in MODELS),
            "The paper prints numbers for the LSTM only, in the text.",
        ),
        Table(
            "Figure 6 and section VI: other LSTMs, clean rows",
            "LSTM",
            ("accuracy",),
            (
                ("64 units, dropout 0.25", (Cell("82.21 (dev)", Q("lstm-1", "before")),)),
                *(
                    (
                        title,
                        (Cell("81.77 (dev)" if name == "lstm-half" else "", Q(f"{name}-clean", "before")),),
                    )
                    for name, title in VARIANTS.items()
                ),
            ),
        ),
    ),
    pictures=(
        Bars(
            "accuracy",
            "accuracy of each model under each attack (the paper's figure 8)",
            tuple(
                (
                    "clean" if swap == "clean" else TITLES[swap],
                    tuple(
                        (title, Q(f"{model}-1", "before") if swap == "clean" else after(model, swap))
                        for model, title in MODELS.items()
                        if swap != "jsma" or model == "lstm"
                    ),
                )
                for swap in ("clean", *SWAPS, "jsma")
            ),
        ),
        Confused("confusion", "LSTM under JSMA (the paper's figure 9)", "lstm-jsma"),
        Counts("words", "words changed by JSMA (the paper's figure 10)", "lstm-jsma"),
        Plane("plane", "test reviews in two principal components (the paper's figure 7)", "plane"),
    ),
)
