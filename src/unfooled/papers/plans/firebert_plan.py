"""What is done for FireBERT at each scale; `firebert.py` says what each stage is called and means."""

from __future__ import annotations

from dataclasses import dataclass, replace

from unfooled.papers import smoke
from unfooled.papers.paper import by_scale
from unfooled.papers.seeds import with_seeds
from unfooled.papers.stages import (
    AttackStage,
    HardenStage,
    Model,
    Rows,
    Settings,
    ShowStage,
    Stage,
    TrainStage,
    settings,
)

PLAIN = ("base", "retuned", "fact")
VOTING = ("five", "fuse", "five-fact", "fuse-fact")
EOT = ("eot", "eot-more", "eot-most")  # averaging attackers, from few draws to many
AVERAGED = {"five": 3, "five-fact": 3, "fuse": 1}  # how many of them a model meets; FuSE is slow


def averaged(name: str) -> tuple[str, ...]:
    """Runs of what still stands after each averaging attacker."""
    return tuple(f"{name}-{suffix}-active" for suffix in EOT[: AVERAGED.get(name, 0)])


@dataclass(frozen=True, kw_only=True)
class FirebertCounts:
    """How many rows and draws."""

    premade: int  # rows attacked on the base for pre-made samples
    clean: int  # rows for clean accuracy of a plain model
    few: int  # the same for a voting one
    shown: int | None  # pre-made samples that a voting one sees
    plain: int  # rows attacked on a plain model
    voting: int  # rows attacked on a voting one
    averaged: tuple[int, ...]  # draws per query of the averaging attackers, each on what the last one left
    draws: int  # fresh draws that judge a model of chance


@dataclass(frozen=True, kw_only=True)
class FirebertSizes:
    """What a scale chooses."""

    train: Rows
    harden: Rows
    test: Rows
    family: str
    base: Settings
    retune: Settings
    fact: Settings
    five: Settings
    fuse: Settings
    attack: str
    everywhere: Settings
    counts: FirebertCounts
    seeds: int = 1
    more: tuple[Stage, ...] = ()


def stages(size: FirebertSizes) -> tuple[Stage, ...]:
    models = {"base": Model(stage="base"), "retuned": Model(stage="retuned"), "fact": Model(stage="fact")}
    for method, options in (("five", size.five), ("fuse", size.fuse)):
        models[method] = Model(stage="base", defence=method, options=options)
        # As in the paper, the gradients are the baseline's, whatever model votes.
        lent = (*options, *settings(switch_model="{base}"))
        models[f"{method}-fact"] = Model(stage="fact", defence=method, options=lent)
    made: list[Stage] = [
        *size.more,
        TrainStage(name="base", family=size.family, data=size.train, options=size.base),
        HardenStage(name="retuned", method="retune", model="base", data=size.harden, options=size.retune),
        HardenStage(name="fact", method="fact", model="base", data=size.harden, options=size.fact),
    ]
    limits = {"base": size.counts.premade, "retuned": size.counts.plain, "fact": size.counts.plain}
    made += [_attack(size, name, models[name], limits[name]) for name in PLAIN]
    made += [_shown(name, models[name], size.test, size.counts.clean, None) for name in PLAIN]
    made += [_shown(name, models[name], size.test, size.counts.few, size.counts.shown) for name in VOTING]
    for name in VOTING:
        made.append(_attack(size, name, models[name], size.counts.voting))
        made.append(
            ShowStage(
                name=f"{name}-active", model=models[name], samples=f"{name}-attack", draws=size.counts.draws
            )
        )
    once: list[str] = []
    for name, most in AVERAGED.items():
        left = f"{name}-active"
        for suffix, draws in zip(EOT[:most], size.counts.averaged, strict=False):
            averaging = replace(models[name], draws=draws)
            made.append(_attack(size, name, averaging, None, suffix=suffix, rows=left))
            left = f"{name}-{suffix}-active"
            samples = f"{name}-{suffix}"
            made.append(ShowStage(name=left, model=models[name], samples=samples, draws=size.counts.draws))
            once += [samples, left]
    return with_seeds(tuple(made), dict.fromkeys(PLAIN, size.seeds), once)


def _attack(
    size: FirebertSizes, name: str, model: Model, limit: int | None, *, suffix: str = "attack", rows: str = ""
) -> AttackStage:
    return AttackStage(
        name=f"{name}-{suffix}",
        model=model,
        data=size.test,
        attack=size.attack,
        everywhere=size.everywhere,
        limit=limit,
        rows=rows,
    )


def _shown(name: str, model: Model, test: Rows, clean: int, most: int | None) -> ShowStage:
    return ShowStage(
        name=f"{name}-shown", model=model, samples="base-attack", data=test, limit=clean, most=most
    )


_TABLE = "{table}"
_TEXTS = "{reviews}"
_SWAP = settings(epochs=1, words=2, alternatives=2, similarity="none", pos=False, table=_TABLE)
_SMOKE = FirebertSizes(
    train=Rows(source=_TEXTS, split="train"),
    harden=Rows(source=_TEXTS, split="train", limit=40),
    test=Rows(source=_TEXTS),
    family="bert-scratch",
    base=smoke.ATTENTION,
    retune=settings(epochs=1),
    fact=_SWAP,
    five=settings(copies=2),
    fuse=settings(words=1, alternatives=2, pos=False, table=_TABLE),
    attack="smoke:textfooler@code",
    everywhere=settings(table=_TABLE),
    counts=FirebertCounts(
        premade=12, clean=20, few=8, shown=4, plain=6, voting=3, averaged=(2, 3, 4), draws=3
    ),
    more=smoke.fixtures("reviews", "table"),
)

_SMALL = FirebertSizes(
    train=Rows(source="mr", split="train"),
    harden=Rows(source="mr", split="train"),
    test=Rows(source="mr"),
    family="bert",
    base=(),
    retune=settings(start="body", epochs=3, lr=5e-5, seed=10),
    fact=settings(start="body", epochs=2, lr=5e-5, words=9, candidates=10, alternatives=2, seed=20),
    five=settings(words=1, sigma=2.3, copies=10, vote="mean-probs"),
    fuse=settings(words=3, candidates=10, alternatives=6, vote="mean-probs"),
    attack="textfooler@code",
    everywhere=settings(encoder="use"),
    counts=FirebertCounts(
        premade=500, clean=1042, few=200, shown=100, plain=200, voting=100, averaged=(2, 8, 32), draws=5
    ),
    seeds=2,
)

_MNLI = Rows(source="hf:nyu-mll/glue:mnli", split="train", text=("premise", "hypothesis"), label="label")
_PAPER = FirebertSizes(
    train=_MNLI,
    harden=_MNLI,
    test=replace(_MNLI, split="validation_mismatched"),
    family="bert",
    base=settings(body="bert-base-uncased", epochs=5, batch=32, lr=2e-5, decay=0.0, max_length=128),
    retune=settings(start="body", epochs=5, batch=32, lr=2e-5, seed=10),
    fact=settings(
        start="body", epochs=5, batch=7, lr=2e-5, words=9, candidates=10, alternatives=4,
        similarity="filter", multiplier=12, encoder="use", seed=20,
    ),
    five=settings(words=1, sigma=8.14, copies=8, vote="mean-logits"),
    fuse=settings(
        words=2, candidates=10, alternatives=14, similarity="filter", multiplier=14, vote="mean-logits",
        encoder="use",
    ),
    attack="textfooler@code",
    everywhere=settings(encoder="use"),
    counts=FirebertCounts(
        premade=9832, clean=9832, few=9832, shown=None, plain=1000, voting=1000, averaged=(2, 8, 32), draws=15
    ),
    seeds=2,
)  # fmt: skip

_N = _SMALL.counts
_HOW = (
    "Data: MR sentences, own split: 9,618 to train on, 1,042 to test.",
    "baseline: MiniLM (6 layers of 384) fine-tuned with the defaults of `unfooled train`.",
    "retuned and FACT: tuned anew from the body on all training rows with seeds of their own, as in the "
    "paper; "
    "retuned for 3 epochs, as the baseline, FACT for 2 with 2 SWITCH alternatives of each text (9 words, 10 "
    "candidates, part of speech; the paper: 5 epochs with 4 alternatives, which is four times the work).",
    "FIVE: 1 word, sigma 2.3, 10 copies, mean probability: the paper's for IMDB. FuSE: 3 words, 10 "
    "candidates, part of speech, mean probability: the paper's for IMDB, but 6 alternatives instead of 12. "
    "The similarity filter at 0 is left out of FuSE and FACT: it takes nothing away here. FuSE(FACT) and "
    "FIVE(FACT) choose words by the gradients of the baseline, as the paper's do.",
    "Attack: `textfooler@code`, the authors' program, with the Universal Sentence Encoder: "
    f"{_N.premade} random test rows on the baseline (its successes are the pre-made samples), of these "
    f"{_N.plain} on retuned and FACT and {_N.voting} on those that vote.",
    f"Clean accuracy: all 1,042 test rows; of those that vote, {_N.few} random ones in one draw. They see "
    f"{_N.shown} random pre-made samples in one draw.",
    f"A model of chance counts as right under attack if most of {_N.draws} fresh draws (up to "
    f"{4 * _N.draws} where they disagree) are. EOT: what survived is attacked again with scores averaged "
    f"over {_N.averaged[0]} draws per query, what survives that with {_N.averaged[1]}, and then with "
    f"{_N.averaged[2]}; FuSE only with {_N.averaged[0]}: by earlier runs 8 draws would take it hours.",
    f"Seeds: baseline, retuned and FACT are trained {_SMALL.seeds} times, and all that stands on them is "
    "measured for each, but the averaged queries: these are of the first seed.",
)
_WHY = (
    "The classifier has 6 layers instead of 12 and reads one sentence, so one or two words carry more of "
    "the decision and TextFooler needs fewer of them. FACT is tuned for 2 epochs instead of 5. Sigma 2.3 "
    "stands against embeddings of length 1.07 in 384 "
    "dimensions: the noise is 42 times as long as the word's vector, so FIVE here, as in the paper, removes "
    "a word rather than blurs it. Counter-fitted vectors are rebuilt ones, and the encoder is the "
    "multilingual version of the paper's."
)
BODY, DATA, TRAINING, ALTERNATIVES = "model body", "data", "training length", "FuSE alternatives"
VECTORS, ENCODER, FRESH, AVERAGING = "counter-fitted vectors", "encoder", "fresh draws", "averaging"
_SUBSTITUTIONS = (
    (BODY, "MiniLM (6 layers of 384) in place of BERT-base."),
    (DATA, "MR sentences in place of MNLI pairs and IMDB reviews."),
    (
        TRAINING,
        "FACT is tuned for 2 epochs with 2 alternatives per text, the control for 3 epochs; the paper tunes "
        "both "
        "for 5, FACT with 4 alternatives.",
    ),
    (ALTERNATIVES, f"{dict(_SMALL.fuse)['alternatives']} alternatives per text instead of 12."),
    (VECTORS, "rebuilt counter-fitted vectors for TextFooler and SWITCH."),
    (ENCODER, "the multilingual version of the Universal Sentence Encoder."),
    (
        FRESH,
        "what votes by chance is judged under attack in fresh draws, which the attacker never saw; the paper "
        "takes the attack's own draw.",
    ),
    (
        AVERAGING,
        "averaging attackers of 2, 8 and 32 draws per query, four times as many near a tie; FuSE meets the "
        "first.",
    ),
)
_HOW_PAPER = "The paper's protocol for MNLI: bert-base-uncased, 5 epochs, all rows; see `firebert.py`."
_WHY_PAPER = "Other seeds, other library versions, corrected FuSE and FIVE (see below)."
plan = by_scale(
    stages,
    _SMOKE,
    (_SMALL, _HOW, _WHY),
    _PAPER,
    _HOW_PAPER,
    why_paper=_WHY_PAPER,
    substitutions=_SUBSTITUTIONS,
)
