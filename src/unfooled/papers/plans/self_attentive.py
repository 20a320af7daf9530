"""Is self-attention more robust than recurrence?

Hsieh, Cheng, Juan, Wei, Hsu, Hsieh: *On the Robustness of Self-Attentive Models*, ACL 2019. Stage names:
`sentiment-VICTIM` and `entailment-VICTIM` are models, `TASK-rows` the rows that all of them get right,
`TASK-VICTIM-ATTACK` the attacks, `TASK-VICTIM-gs-ec-inside` what they do inside the model. Translation joins
with the stages named in `TRANSLATION`.
"""

from __future__ import annotations

from unfooled.papers.claims import AtLeast, Claim, EachAtMost, More, Unmeasured
from unfooled.papers.findings import Quantity as Q
from unfooled.papers.paper import Bars, Cell, Paper, Table
from unfooled.papers.plans.self_attentive_plan import (
    ATTACKS,
    BLEU,
    BODY,
    DATA,
    DRAWS,
    KEYWORD,
    LAST,
    LAYER,
    LISTS,
    PAIRS,
    SCAN,
    TASKS,
    TYPOS,
    VOCABULARY,
    WMT,
    plan,
)

VICTIMS = {"lstm": "LSTM", "bert": "BERT", "nopt": "BERT_NOPT"}
# Runs of the translation models: keyword attack (outcome: the word appears), typo attack (see `translation`).
TRANSLATION = {"lstm": "translation-lstm", "transformer": "translation-transformer"}
_NEEDS_TRANSLATION = "a translation model"


_OF_TASK = {"sentiment": DATA, "entailment": PAIRS}
_OF_ATTACK = {"list": LISTS, "random": DRAWS}  # the others choose from the vocabulary


def success(task: str, victim: str, attack: str) -> Q:
    """GS-GR finds a word where GS-EC does, and is run on these rows alone."""
    attack = SCAN if attack == "gs-gr" else attack
    return Q(f"{task}-{victim}-{attack}", "draws" if attack == "random" else "success")


def _stand_ins(task: str, attacks: tuple[str, ...], *victims: str) -> tuple[str, ...]:
    """What figures of these attacks on these victims stand on."""
    found = [_OF_TASK[task], *(_OF_ATTACK.get(attack, VOCABULARY) for attack in attacks)]
    if "random" in attacks:
        found.append(VOCABULARY)
    if any(victim != "lstm" for victim in victims):
        found.append(BODY)
    return tuple(dict.fromkeys(found))


def _uneven(first: str, second: str) -> tuple[str, ...]:
    """A list of synonyms against a list of random words: how long the second is decides which wins."""
    return (VOCABULARY,) if {first, second} in ({"asmax-gr", "list"},) else ()


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
            substitutions=_stand_ins(task, (first, second), victim),
            decided_by=_uneven(first, second),
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
        substitutions=_stand_ins(task, (attack,), "lstm", victim),
    )


def _inside(task: str, victim: str, attack: str, what: str) -> Q:
    return Q(f"{task}-{victim}-{attack}-inside", what)


def _chosen_word(task: str, victim: str, measure: str, *, higher: bool) -> More:
    """What GS-EC takes against what GS-GR takes, from the same list for the same place."""
    ec, gr = (Q(f"{task}-{victim}-{attack}", measure) for attack in ("gs-ec", "gs-gr"))
    if higher:
        return More(ec, gr, names=("GS-EC", "GS-GR"), paired=True)
    return More(gr, ec, names=("GS-GR", "GS-EC"), paired=True)


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
    *(
        Claim(
            f"{task}-{victim}-ec-{name}",
            f"{sentence} ({VICTIMS[victim]}, {task}).",
            printed,
            f"{how}; GS-GR's edit of the same word in the same text, rows that both break",
            _chosen_word(task, victim, measure, higher=higher),
            substitutions=_stand_ins(task, ("gs-ec",), victim),
        )
        for name, sentence, printed, how, measure, higher in (
            (
                "closer",
                "GS-EC's word keeps the sentence closer in meaning than GS-GR's",
                "closer in the victim's own embedding, by construction; tables 2 and 6 with examples",
                "similarity by the Universal Sentence Encoder, which neither attack reads",
                "measure:similarity",
                True,
            ),
            (
                "readable",
                "GS-EC's word reads better than GS-GR's",
                "readability 1.0 against 0.55, by people",
                "perplexity by SmolLM2, times that of the original; a stand-in for readers",
                "measure:perplexity",
                False,
            ),
        )
        for task in TASKS
        for victim in ("lstm", "bert")
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
        "re-larger",
        "A successful edit moves the LSTM's sentence embedding more than BERT's (R_e).",
        "R_e 0.83 against 0.56",
        "‖z − z_adv‖/‖z‖ of the vector that the last layer reads, GS-EC successes",
        _more_inside("lstm", "bert", "re"),
        substitutions=(DATA, VOCABULARY, BODY),
        decided_by=(LAYER,),
    ),
    Claim(
        "attention-shifts",
        "The attack shifts the LSTM's attention, BERT's stays.",
        "figure 2",
        "attention moved (total variation, mean of layers), GS-EC successes; LSTM above BERT",
        _more_inside("lstm", "bert", "attention"),
        substitutions=(DATA, VOCABULARY, BODY),
    ),
    Claim(
        "sparse-first-layer",
        "In BERT's first layer the change stays on the edited word; in the LSTM it spreads.",
        "figure 4",
        "share of the summed change in layer 1 that lies on the edited word, GS-EC successes; BERT above "
        "LSTM",
        _more_inside("bert", "lstm", "edited"),
        substitutions=(DATA, VOCABULARY, BODY),
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
            substitutions=(DATA, PAIRS, VOCABULARY, *((BODY,) if victim == "bert" else ())),
        )
        for victim, paper in (("lstm", "95 against 79 %"), ("bert", "75 against 52 %"))
    ),
    Claim(
        "last-layer",
        "Attention of BERT's last layer is of little use: under 10 % success.",
        "under 10 %",
        "ASMAX with the last layer's attention (GR; the paper EC), sentiment",
        AtLeast(Q(LAST, "success"), 0.1, most=True, name="success"),
        substitutions=(DATA, VOCABULARY, BODY),
    ),
    Claim(
        "keyword",
        "Targeted keywords are harder to force into a Transformer's translation than into an LSTM's.",
        "27.5 against 10.5 % success",
        "keyword attack with at most 3 edits",
        _lstm_above_transformer("keyword", "success", paired=False),
        needs=_NEEDS_TRANSLATION,
        substitutions=(WMT, KEYWORD),
    ),
    Claim(
        "typos",
        "Typos cost the LSTM more of its BLEU than the Transformer.",
        "25.10 → 13.44 (11.66 lost) against 34.90 → 26.02 (8.88 lost)",
        "BLEU that a sentence loses by one typo, mean over the sentences (the paper: BLEU of the whole text)",
        _lstm_above_transformer("typos", "bleu-lost", paired=True),
        needs=_NEEDS_TRANSLATION,
        substitutions=(WMT, TYPOS, BLEU),
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
    examples=(
        "sentiment-lstm-gs-gr",
        "sentiment-lstm-gs-ec",
        "sentiment-bert-gs-gr",
        "sentiment-bert-gs-ec",
        "entailment-bert-gs-ec",
    ),
    tables=(
        _table("sentiment", "Table 1: success rates, sentiment (%)"),
        _table("entailment", "Table 5: success rates, entailment (%)"),
        Table(
            "Accuracy of the victims on unchanged rows",
            "task",
            tuple(VICTIMS.values()),
            tuple(
                (
                    task,
                    tuple(
                        Cell("", Q(f"{task}-rows", f"right {task}-{v}") if v in victims else None)
                        for v in VICTIMS
                    ),
                )
                for task, victims in TASKS.items()
            ),
            "Of the first seed, on the random rows among which those were chosen that all get right.",
        ),
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
