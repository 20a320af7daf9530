"""What is done for the self-attention paper at each scale; `self_attentive.py` says what stages mean."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from unfooled.papers import smoke, translation
from unfooled.papers.paper import by_scale
from unfooled.papers.seeds import with_seeds
from unfooled.papers.stages import (
    AttackStage,
    ChosenStage,
    InsideStage,
    Model,
    Rows,
    Settings,
    Stage,
    TrainStage,
    VocabularyStage,
    settings,
)

TASKS = {"sentiment": ("lstm", "bert", "nopt"), "entailment": ("lstm", "bert")}
ATTACKS = {
    "random": "RANDOM",
    "list": "LIST",
    "asmin-gr": "ASMIN-GR",
    "asmax-gr": "ASMAX-GR",
    "gs-gr": "GS-GR",
    "gs-ec": "GS-EC",
}
LAST = "sentiment-bert-asmax-last"  # attention of the last layer
SCAN = "gs-ec"  # goes through the whole list; GS-GR then only chooses among what succeeds there


@dataclass(frozen=True, kw_only=True)
class SelfAttentiveSizes:
    train: dict[str, Rows]
    test: dict[str, Rows]
    families: dict[str, tuple[str, Settings]]
    n: int
    of: int
    words: int
    draws: int
    seeds: dict[str, int] = field(default_factory=dict)  # of each victim's training
    keywords: int = 200  # sentences to force a word into the translation of
    typos: int = 1000
    everywhere: Settings = ()  # of LIST
    measures: tuple[str, ...] = ("similarity:use", "perplexity:smollm2")  # of what GS-GR and GS-EC find
    more: tuple[Stage, ...] = ()


def stages(size: SelfAttentiveSizes) -> tuple[Stage, ...]:
    made: list[Stage] = list(size.more)
    for task, victims in TASKS.items():
        models = {victim: Model(stage=f"{task}-{victim}") for victim in victims}
        for victim in victims:
            family, options = size.families[victim]
            made.append(
                TrainStage(name=f"{task}-{victim}", family=family, data=size.train[task], options=options)
            )
        made += [
            VocabularyStage(name=f"{task}-words", data=size.train[task], size=size.words),
            ChosenStage(
                name=f"{task}-rows", models=tuple(models.values()), data=size.test[task], n=size.n, of=size.of
            ),
        ]
        for victim, model in models.items():
            for attack in ATTACKS:
                made.append(_attack(size, task, f"{task}-{victim}-{attack}", model, attack))
            for attack in ("gs-gr", "gs-ec"):
                run = f"{task}-{victim}-{attack}"
                theorem = (task, victim, attack) == ("sentiment", "bert", "gs-ec")
                made.append(InsideStage(name=f"{run}-inside", run=run, model=model, theorem=theorem))
    last = _attack(size, "sentiment", LAST, Model(stage="sentiment-bert"), "asmax-gr")
    made.append(replace(last, changes=(*last.changes, ("search.selection.layer", -1))))
    if size.keywords:
        made += translation.stages(
            _PARALLEL,
            replace(_PARALLEL, split="test_2016_flickr"),
            {"keyword": size.keywords, "typos": size.typos},
        )
    return with_seeds(
        tuple(made),
        {
            f"{task}-{victim}": size.seeds.get(victim, 1)
            for task, victims in TASKS.items()
            for victim in victims
        },
        once=(LAST,),
    )


_PARALLEL = Rows(source="multi30k", split="train", parallel=("en", "de"))


def _attack(size: SelfAttentiveSizes, task: str, name: str, model: Model, attack: str) -> AttackStage:
    words = f"{{{task}-words}}"
    changes: Settings = ()
    if attack == "random":
        changes = settings(**{"search.draws": size.draws, "search.vocabulary": words})
    elif attack != "list":
        changes = settings(**{"search.replacement.vocabulary": words})
    return AttackStage(
        name=name,
        model=model,
        data=size.test[task],
        attack=attack,
        changes=changes,
        everywhere=size.everywhere if attack == "list" else (),
        rows=name.replace(attack, SCAN) if attack == "gs-gr" else f"{task}-rows",
        fooled=attack == "gs-gr",
        measures=size.measures if attack.startswith("gs-") else (),
    )


_SMOKE = SelfAttentiveSizes(
    train={
        "sentiment": Rows(source="{reviews}", split="train"),
        "entailment": Rows(source="{pairs}", split="train", text=("premise", "hypothesis")),
    },
    test={
        "sentiment": Rows(source="{reviews}"),
        "entailment": Rows(source="{pairs}", text=("premise", "hypothesis")),
    },
    families={
        "lstm": ("bilstm-attention", (*smoke.WORDS, ("hidden", 8))),
        "bert": ("bert-scratch", smoke.ATTENTION),
        "nopt": ("bert-scratch", (*smoke.ATTENTION, ("seed", 1))),
    },
    n=4,
    of=30,
    words=8,
    draws=8,
    seeds={"lstm": 2},
    keywords=0,
    everywhere=settings(table="{table}"),
    measures=("edit-distance",),
    more=smoke.fixtures("reviews", "pairs", "table"),
)
_PAIR = ("premise", "hypothesis")
_SMALL = SelfAttentiveSizes(
    train={
        "sentiment": Rows(source="mr", split="train"),
        "entailment": Rows(source="snli_dev", split="train"),
    },
    test={"sentiment": Rows(source="mr"), "entailment": Rows(source="snli_dev")},
    families={
        "lstm": ("bilstm-attention", settings(vectors="glove-6b-50d")),
        "bert": ("bert", ()),
        "nopt": ("bert-scratch", ()),
    },
    n=150,
    of=600,
    words=100,
    draws=50,
    seeds={"lstm": 3, "bert": 2, "nopt": 2},
    keywords=150,
)
_MNLI = Rows(source="hf:nyu-mll/glue:mnli", split="train", text=_PAIR, label="label")
_YELP = Rows(source="hf:fancyzhx/yelp_polarity", split="train", text=("text",), label="label")
_PAPER = SelfAttentiveSizes(
    train={"sentiment": _YELP, "entailment": _MNLI},
    test={
        "sentiment": replace(_YELP, split="test"),
        "entailment": replace(_MNLI, split="validation_matched"),
    },
    families={
        "lstm": ("bilstm-attention", settings(vectors="glove-6b-50d")),
        "bert": ("bert", settings(body="bert-base-uncased", epochs=3, lr=2e-5)),
        "nopt": ("bert-scratch", settings(hidden=768, heads=12)),
    },
    n=100,
    of=1000,
    words=10_000,
    draws=1000,
    seeds=_SMALL.seeds,
)

_HOW = (
    "Data: MR sentences in place of Yelp reviews, SNLI (9,840 training pairs) in place of MultiNLI; "
    f"{_SMALL.n} random rows among {_SMALL.of} random test rows that all models of the task get right. Of a "
    "pair the hypothesis is edited.",
    "Models: BiLSTM with attention (64 units, GloVe 50-d), MiniLM fine-tuned in place of BERT, BERT_NOPT "
    "with three layers of 128 from scratch; defaults of `unfooled train`.",
    f"Vocabulary for replacements: the same {_SMALL.words} words for all models of a task, drawn at random "
    "from those that occur five times or more in the training rows. The paper goes through the whole "
    "vocabulary.",
    "GS-GR and GS-EC choose the same word to replace from the same list, so one succeeds where the other "
    "does: GS-EC goes through the list once for both, and GS-GR is run on the rows that fell, to see which "
    "word it takes.",
    f"RANDOM: {_SMALL.draws} draws per row. LIST: 8 counter-fitted neighbours per word. Attention: first "
    "layer, mean of heads. ASMIN-EC and ASMAX-EC are left out: GR and EC both exhaust the list, so both "
    "succeed on the same rows.",
    "Translation: Multi30k (English to German, 29,000 pairs) in place of WMT; an LSTM of 2 layers with 256 "
    "units and a Transformer of 3 layers with 192, defaults of `unfooled train`, greedy "
    f"decoding; random sentences of the test set of 2016. Keywords, {_SMALL.keywords} sentences: "
    "`targeted-keyword@strict`, at most 3 edits; gradients shortlist the words that are tried, and words "
    f"that by themselves translate to the keyword are barred. Typos, {_SMALL.typos} sentences: keyboard and "
    "transposition typos, one random word per sentence.",
    "Seeds: three of the LSTMs, two of BERT and BERT_NOPT, and one of the translation models, whose training "
    "takes 100 minutes. Rows are those that every model gets right with every seed. A list of 10,000 words "
    "would take 8 hours for one attack on one BERT, one of 100 words five minutes.",
)
_WHY = (
    f"The attacks choose from {_SMALL.words} words instead of a whole vocabulary, which lowers the success "
    "of all that replace by random words. Comparisons between models and among these attacks stay fair, "
    "because all have the same words; LIST does not use them, so it looks stronger beside them than in the "
    "paper. MR sentences are short and their models less sure than on Yelp, so one word weighs more: that "
    "raises all rates, most for RANDOM, LIST and BERT. The BiLSTM and the entailment models are weaker than "
    "the paper's (SNLI's development set alone to train on); rows that all models get right are therefore "
    "easy ones for BERT. MiniLM has half the layers of BERT-base. R_e depends on what z is: the paper does "
    "not say; here it is the vector that the last layer reads, which a successful attack turns round in "
    "BERT."
)
_HOW_PAPER = "Yelp polarity and MultiNLI, bert-base-uncased, 10,000 words, 1,000 draws per row."
DATA, PAIRS, VOCABULARY, DRAWS = "sentences for reviews", "SNLI for MultiNLI", "vocabulary", "draws"
BODY, LISTS, LAYER, WMT = "model body", "synonym list", "sentence vector", "Multi30k for WMT"
TYPOS, BLEU, KEYWORD = "keyboard typos", "BLEU of sentences", "strict keywords"
_SUBSTITUTIONS = (
    (DATA, "MR sentences in place of Yelp reviews: one word weighs more in twenty than in a hundred."),
    (PAIRS, "SNLI's development set (9,840 pairs) to train on in place of MultiNLI's 393,000."),
    (VOCABULARY, f"{_SMALL.words} words to choose from in place of a whole vocabulary."),
    (DRAWS, f"{_SMALL.draws} random draws per row in place of 1,000."),
    (BODY, "MiniLM (6 layers of 384) in place of BERT-base; BERT_NOPT has layers of 128."),
    (LISTS, "counter-fitted neighbours, rebuilt, as the list of synonyms."),
    (LAYER, "R_e reads the vector before the last layer; the paper does not say which vector z is."),
    (WMT, "29,000 captions of pictures in place of WMT; smaller models, greedy decoding."),
    (TYPOS, "typos of a keyboard in place of a list of common ones."),
    (BLEU, "mean over sentences in place of the whole text's."),
    (KEYWORD, "keywords must appear and not by a word that translates to them."),
)
plan = by_scale(stages, _SMOKE, (_SMALL, _HOW, _WHY), _PAPER, _HOW_PAPER, substitutions=_SUBSTITUTIONS)
