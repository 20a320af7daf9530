"""Is self-attention more robust than recurrence?

Hsieh, Cheng, Juan, Wei, Hsu, Hsieh: *On the Robustness of Self-Attentive Models*, ACL 2019. Stage names:
`sentiment-VICTIM` and `entailment-VICTIM` are models, `TASK-rows` the rows that all of them get right,
`TASK-VICTIM-ATTACK` the attacks, `TASK-VICTIM-gs-ec-inside` what they do inside the model. Translation joins
with the stages named in `TRANSLATION`.
"""

from __future__ import annotations

from unfooled.papers.claims import All, AtLeast, Claim, EachAtMost, More, Near, Unmeasured
from unfooled.papers.findings import Quantity as Q
from unfooled.papers.paper import Bars, Cell, Paper, Table
from unfooled.papers.plans.self_attentive_plan import ATTACKS, LAST, TASKS, plan

VICTIMS = {"lstm": "LSTM", "bert": "BERT", "nopt": "BERT_NOPT"}
# Runs of the translation models: keyword attack (outcome: the word appears), typo attack (see `translation`).
TRANSLATION = {"lstm": "translation-lstm", "transformer": "translation-transformer"}
_NEEDS_TRANSLATION = "a translation model"


def success(task: str, victim: str, attack: str) -> Q:
    return Q(f"{task}-{victim}-{attack}", "draws" if attack == "random" else "success")


def _above(task: str, first: str, second: str, paper: tuple[str, ...], by: float = 0.0) -> list[Claim]:
    """One attack above another, a claim for each victim; a negative `by` allows ties."""
    words = "at least as often as" if by else "more often than"
    return [
        Claim(
            f"{task}-{victim}-{first}-above-{second}",
            f"{ATTACKS[first]} breaks {VICTIMS[victim]} {words} {ATTACKS[second]} ({task}).",
            printed,
            "success on the same rows" + (f"; ties of up to {-100 * by:g} points allowed" if by else ""),
            More(
                success(task, victim, first),
                success(task, victim, second),
                by=by,
                names=(ATTACKS[first], ATTACKS[second]),
                paired=True,
            ),
        )
        for victim, printed in zip(TASKS[task], paper, strict=True)
    ]


def _recurrent(task: str, attack: str, victim: str, paper: str) -> Claim:
    return Claim(
        f"{task}-lstm-above-{victim}-{attack}",
        f"{ATTACKS[attack]} breaks the LSTM more often than {VICTIMS[victim]} ({task}).",
        paper,
        "success on the same rows",
        More(
            success(task, "lstm", attack),
            success(task, victim, attack),
            names=("LSTM", VICTIMS[victim]),
            paired=True,
        ),
    )


def _inside(task: str, victim: str, attack: str, what: str) -> Q:
    return Q(f"{task}-{victim}-{attack}-inside", what)


def _more_inside(first: str, second: str, what: str) -> More:
    """What GS-EC moves inside one victim of sentiment against another; they break other rows."""
    moved, less = (_inside("sentiment", victim, "gs-ec", what) for victim in (first, second))
    return More(moved, less, names=(VICTIMS[first], VICTIMS[second]), paired=False)


def _lstm_above_transformer(attack: str, what: str, *, paired: bool) -> More:
    lstm, transformer = (Q(f"{stage}-{attack}", what) for stage in TRANSLATION.values())
    return More(lstm, transformer, names=("LSTM", "Transformer"), paired=paired)


CLAIMS = (
    *_above("sentiment", "gs-gr", "asmax-gr", ("79 against 62 %", "52 against 17 %", "53 against 35 %")),
    *_above("sentiment", "asmax-gr", "list", ("62 against 27 %", "17 against 6 %", "35 against 15 %")),
    *_above("sentiment", "list", "random", ("27 against 1.1 %", "6 against 0.8 %", "15 against 1.0 %")),
    *_above(
        "sentiment",
        "asmax-gr",
        "asmin-gr",
        ("62 against 16 %", "17 against 11 %", "35 against 32 %"),
        by=-0.03,
    ),
    *_above("entailment", "gs-gr", "asmax-gr", ("95 against 78 %", "75 against 54 %")),
    *_above("entailment", "list", "random", ("63 against 17.8 %", "56 against 9.2 %")),
    *_above("entailment", "asmax-gr", "asmin-gr", ("78 against 57 %", "54 against 53 %"), by=-0.03),
    Claim(
        "ec-as-often",
        "GS-EC succeeds about as often as GS-GR.",
        "78/50/53 and 79/52/53 % on Yelp; 95/75 and 95/75 % on MultiNLI",
        "success on the same rows; less than 5 points apart. By construction here: both go through the whole "
        "list of words, so either finds a word where the other does",
        All(
            tuple(
                Near(
                    success(task, v, "gs-ec"),
                    success(task, v, "gs-gr"),
                    0.05,
                    names=(f"{VICTIMS[v]}, {task}: GS-EC", "GS-GR"),
                )
                for task, victims in TASKS.items()
                for v in victims
            )
        ),
    ),
    *(
        _recurrent(task, attack, victim, paper)
        for task, attack, victim, paper in (
            ("sentiment", "random", "bert", "1.1 against 0.8 %"),
            ("sentiment", "list", "bert", "27 against 6 %"),
            ("sentiment", "asmax-gr", "bert", "62 against 17 %"),
            ("sentiment", "gs-gr", "bert", "79 against 52 %"),
            ("sentiment", "random", "nopt", "1.1 against 1 %"),
            ("sentiment", "list", "nopt", "27 against 15 %"),
            ("sentiment", "asmax-gr", "nopt", "62 against 35 %"),
            ("sentiment", "gs-gr", "nopt", "79 against 53 %"),
            ("entailment", "random", "bert", "17.8 against 9.2 %"),
            ("entailment", "list", "bert", "63 against 56 %"),
            ("entailment", "asmax-gr", "bert", "78 against 54 %"),
            ("entailment", "gs-gr", "bert", "95 against 75 %"),
        )
    ),
    Claim(
        "ec-closer",
        "GS-EC's sentences stay closer in the victim's embedding than GS-GR's.",
        "by construction; shown in tables 2 and 6 with examples",
        "L1 distance of the sentence vector, relative to its length, rows that both break (LSTM, BERT)",
        All(
            tuple(
                More(
                    _inside("sentiment", victim, "gs-gr", "l1"),
                    _inside("sentiment", victim, "gs-ec", "l1"),
                    names=(f"{VICTIMS[victim]}: GS-GR", "GS-EC"),
                    paired=True,
                )
                for victim in ("lstm", "bert")
            )
        ),
    ),
    Claim(
        "re-larger",
        "A successful edit moves the LSTM's sentence embedding more than BERT's (R_e).",
        "R_e 0.83 against 0.56",
        "‖z − z_adv‖/‖z‖ of the vector that the last layer reads, GS-EC successes",
        _more_inside("lstm", "bert", "re"),
    ),
    Claim(
        "attention-shifts",
        "The attack shifts the LSTM's attention, BERT's stays.",
        "figure 2",
        "attention moved (total variation, mean of layers), GS-EC successes; LSTM above BERT",
        _more_inside("lstm", "bert", "attention"),
    ),
    Claim(
        "sparse-first-layer",
        "In BERT's first layer the change stays on the edited word; in the LSTM it spreads.",
        "figure 4",
        "share of the summed change in layer 1 that lies on the edited word, GS-EC successes; BERT above "
        "LSTM",
        _more_inside("bert", "lstm", "edited"),
    ),
    Claim(
        "theorem",
        "Theorem 1: E|s′ − s| ≤ Cδ/√d.",
        "proved",
        "worst direction, each head of the fine-tuned BERT, 10,000 vectors; as a multiple of the bound",
        EachAtMost(_inside("sentiment", "bert", "gs-ec", "theorem"), 1.0, "heads"),
    ),
    *(
        Claim(
            f"entailment-easier-{victim}",
            f"Entailment is easier to break than sentiment ({VICTIMS[victim]}, GS-GR).",
            paper,
            "success, different rows",
            More(
                success("entailment", victim, "gs-gr"),
                success("sentiment", victim, "gs-gr"),
                names=("entailment", "sentiment"),
                paired=False,
            ),
        )
        for victim, paper in (("lstm", "95 against 79 %"), ("bert", "75 against 52 %"))
    ),
    Claim(
        "last-layer",
        "Attention of BERT's last layer is of little use: under 10 % success.",
        "under 10 %",
        "ASMAX with the last layer's attention (GR; the paper EC), sentiment",
        AtLeast(Q(LAST, "success"), 0.1, most=True, name="success"),
    ),
    Claim(
        "keyword",
        "Targeted keywords are harder to force into a Transformer's translation than into an LSTM's.",
        "27.5 against 10.5 % success",
        "keyword attack with at most 3 edits",
        _lstm_above_transformer("keyword", "success", paired=False),
        needs=_NEEDS_TRANSLATION,
    ),
    Claim(
        "typos",
        "Typos cost the LSTM more of its BLEU than the Transformer.",
        "25.10 → 13.44 (11.66 lost) against 34.90 → 26.02 (8.88 lost)",
        "BLEU that a sentence loses by one typo, mean over the sentences (the paper: BLEU of the whole text)",
        _lstm_above_transformer("typos", "bleu-lost", paired=True),
        needs=_NEEDS_TRANSLATION,
    ),
    Claim(
        "human",
        "People find GS-EC's sentences more readable than GS-GR's, and those that fool BERT than those that "
        "fool the LSTM.",
        "readability 1.0 against 0.55 and 0.6; human accuracy 68.8 against 64.6 and 52.1 %",
        "no model can judge this",
        Unmeasured(),
        needs="human raters",
    ),
)

_PRINTED: dict[str, dict[str, tuple[str, ...]]] = {
    "sentiment": {
        "random": ("1.1", "0.8", "1.0"),
        "list": ("27", "6", "15"),
        "asmin-gr": ("16", "11", "32"),
        "asmax-gr": ("62", "17", "35"),
        "gs-gr": ("79", "52", "53"),
        "gs-ec": ("78", "50", "53"),
    },
    "entailment": {
        "random": ("17.8", "9.2"),
        "list": ("63", "56"),
        "asmin-gr": ("57", "53"),
        "asmax-gr": ("78", "54"),
        "gs-gr": ("95", "75"),
        "gs-ec": ("95", "75"),
    },
}


def _table(task: str, title: str) -> Table:
    rows = tuple(
        (
            ATTACKS[attack],
            tuple(
                Cell(text, success(task, victim, attack))
                for victim, text in zip(TASKS[task], _PRINTED[task][attack], strict=True)
            ),
        )
        for attack in ATTACKS
    )
    return Table(title, "attack", tuple(VICTIMS[victim] for victim in TASKS[task]), rows)


PAPER = Paper(
    name="self-attentive",
    title="On the robustness of self-attentive models",
    citation="Hsieh, Cheng, Juan, Wei, Hsu, Hsieh 2019, ACL, pages 1520–1529",
    plan=plan,
    claims=CLAIMS,
    tables=(
        _table("sentiment", "Table 1: success rates, sentiment (%)"),
        _table("entailment", "Table 5: success rates, entailment (%)"),
        Table(
            "R_e and what moves inside (GS-EC, sentiment)",
            "figure",
            ("LSTM", "BERT"),
            tuple(
                (
                    title,
                    tuple(
                        Cell(text, _inside("sentiment", victim, "gs-ec", what))
                        for victim, text in zip(("lstm", "bert"), printed, strict=True)
                    ),
                )
                for title, what, printed in (
                    ("R_e of the sentence", "re", ("0.83", "0.56")),
                    ("attention moved", "attention", ("", "")),
                    ("change on the edited word, layer 1", "edited", ("", "")),
                )
            ),
        ),
        Table(
            "Tables 7 and 8: translation",
            "model",
            ("keyword attack: success, %", "BLEU", "BLEU with typos", "BLEU lost"),
            tuple(
                (
                    "LSTM" if victim == "lstm" else "Transformer",
                    (
                        Cell(keyword, Q(f"{stage}-keyword", "success")),
                        *(
                            Cell(text, Q(f"{stage}-typos", what))
                            for text, what in zip(bleu, ("bleu", "bleu-after", "bleu-lost"), strict=True)
                        ),
                    ),
                )
                for (victim, stage), keyword, bleu in zip(
                    TRANSLATION.items(),
                    ("27.5", "10.5"),
                    (("25.10", "13.44", "11.66"), ("34.90", "26.02", "8.88")),
                    strict=True,
                )
            ),
            "The paper's BLEU is of the whole text, ours the mean over its sentences: another scale.",
        ),
    ),
    pictures=tuple(
        Bars(
            task,
            f"success of each attack, {task}",
            tuple(
                (title, tuple((VICTIMS[victim], success(task, victim, attack)) for victim in victims))
                for attack, title in ATTACKS.items()
            ),
            axis="success",
        )
        for task, victims in TASKS.items()
    ),
)
