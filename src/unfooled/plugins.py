"""One lazy registry: a kind and a name lead to `"module:attribute"`, imported only when asked for.

Plug-ins join through the entry-point groups `unfooled.<kind>`. A plug-in that fails to import warns and is
left out; it never breaks the others.
"""

from __future__ import annotations

import difflib
import importlib.util
import warnings
from functools import cache, cached_property
from importlib.metadata import entry_points
from typing import Any

from unfooled.errors import UnfooledError, UnknownNameError

_BUILT_IN: dict[str, dict[str, str]] = {
    "attack": {
        "textfooler": "unfooled.attacks.textfooler:RECIPES",
        "deepwordbug": "unfooled.attacks.deepwordbug:RECIPES",
        "pwws": "unfooled.attacks.pwws:RECIPES",
        "alzantot": "unfooled.attacks.genetic:ALZANTOT",
        "faster-alzantot": "unfooled.attacks.genetic:FASTER_ALZANTOT",
        "iga": "unfooled.attacks.genetic:IGA",
        "pso": "unfooled.attacks.swarms:PSO",
        "leap": "unfooled.attacks.swarms:LEAP",
        "kuleshov": "unfooled.attacks.kuleshov:RECIPES",
        "bert-attack": "unfooled.attacks.bert_attack:RECIPES",
        "clare": "unfooled.attacks.clare:RECIPES",
        "a2t": "unfooled.attacks.a2t:A2T",
        "a2t-mlm": "unfooled.attacks.a2t:A2T_MLM",
        "textbugger": "unfooled.attacks.textbugger:RECIPES",
        "hlbb": "unfooled.attacks.hlbb:RECIPES",
        "texthoaxer": "unfooled.attacks.texthoaxer:RECIPES",
        "texthacker": "unfooled.attacks.texthacker:RECIPES",
        "hqa": "unfooled.attacks.hqa:RECIPES",
        "limeattack": "unfooled.attacks.limeattack:RECIPES",
        "decision-learner": "unfooled.attacks.decision_learner:RECIPES",
        "tack-on": "unfooled.attacks.tack_on:RECIPES",
        "strongest-words": "unfooled.attacks.strongest_words:RECIPES",
        "jsma": "unfooled.attacks.jsma:RECIPES",
        "hotflip": "unfooled.attacks.hotflip:RECIPES",
        "fd": "unfooled.attacks.fd:RECIPES",
        "geo": "unfooled.attacks.geo:RECIPES",
        "uat": "unfooled.attacks.uat:RECIPES",
        "gbda": "unfooled.attacks.gbda:RECIPES",
        "random": "unfooled.attacks.one_word:RANDOM",
        "list": "unfooled.attacks.one_word:LIST",
        "gs-gr": "unfooled.attacks.one_word:GS_GR",
        "gs-ec": "unfooled.attacks.one_word:GS_EC",
        "asmin-gr": "unfooled.attacks.one_word:ASMIN_GR",
        "asmax-gr": "unfooled.attacks.one_word:ASMAX_GR",
        "asmin-ec": "unfooled.attacks.one_word:ASMIN_EC",
        "asmax-ec": "unfooled.attacks.one_word:ASMAX_EC",
        "breaking-bert": "unfooled.attacks.breaking_bert:RECIPES",
        "bae": "unfooled.attacks.bae:BAE",
        "bae-r": "unfooled.attacks.bae:R",
        "bae-i": "unfooled.attacks.bae:I_",
        "bae-r-or-i": "unfooled.attacks.bae:R_OR_I",
        "bae-r-and-i": "unfooled.attacks.bae:R_AND_I",
        "smuggle-zero-width": "unfooled.attacks.smuggle:ZERO_WIDTH",
        "smuggle-homoglyph": "unfooled.attacks.smuggle:HOMOGLYPH",
        "smuggle-bidi": "unfooled.attacks.smuggle:BIDI",
        "smuggle-width": "unfooled.attacks.smuggle:WIDTH",
        "smuggle-accents": "unfooled.attacks.smuggle:ACCENTS",
        "smuggle-tags": "unfooled.attacks.smuggle:TAGS",
        "smuggle-emoji": "unfooled.attacks.smuggle:EMOJI",
        "leetspeak": "unfooled.attacks.smuggle:LEETSPEAK",
        "spacing": "unfooled.attacks.smuggle:SPACING",
        "viper": "unfooled.attacks.viper:RECIPES",
        "typos": "unfooled.attacks.typos:RECIPES",
        "pruthi": "unfooled.attacks.pruthi:RECIPES",
        "charmer": "unfooled.attacks.charmer:RECIPES",
        "bad-characters": "unfooled.attacks.bad_characters:HOMOGLYPHS",
        "bad-invisible": "unfooled.attacks.bad_characters:INVISIBLE",
        "bad-homoglyphs": "unfooled.attacks.bad_characters:HOMOGLYPHS",
        "bad-reorderings": "unfooled.attacks.bad_characters:REORDERINGS",
        "bad-deletions": "unfooled.attacks.bad_characters:DELETIONS",
        "input-reduction": "unfooled.attacks.input_reduction:RECIPES",
        "checklist": "unfooled.attacks.checklist:RECIPES",
        "targeted-keyword": "unfooled.translation.attacks.targeted_keyword:RECIPES",
        "typo": "unfooled.translation.attacks.typo:RECIPES",
        "seq2sick": "unfooled.translation.attacks.seq2sick:RECIPES",
        "morpheus": "unfooled.translation.attacks.morpheus:RECIPES",
        "bleu-drop": "unfooled.translation.attacks.worse_output:BLEU_DROP",
        "non-overlapping": "unfooled.translation.attacks.worse_output:NON_OVERLAPPING",
    },
    "victim": {
        "fake": "unfooled.victims.fake:load",
        "python": "unfooled.victims.function:load",
        "sklearn": "unfooled.victims.sklearn.pipeline:load",
        "hf": "unfooled.victims.torch.huggingface:load",
        "seq2seq": "unfooled.translation.victim:load",
        "http": "unfooled.victims.http.endpoint:load",
        "https": "unfooled.victims.http.endpoint:load",
        "openai": "unfooled.victims.http.openai:load",
        # Planted fakes: models that look robust and are not.
        "overconfident": "unfooled.victims.impostors:load_overconfident",
        "noisy": "unfooled.victims.impostors:load_noisy",
        "rounded": "unfooled.victims.impostors:load_rounded",
        "masked": "unfooled.victims.impostors:load_masked",
        "fuse": "unfooled.defenses.saving:load_fuse",
        "five": "unfooled.defenses.saving:load_five",
        "normalise": "unfooled.defenses.saving:load_normalise",
        "defense": "unfooled.defenses.saving:load_defense",
    },
    # Ways to harden a classifier; see `defenses.methods`.
    "defense": {
        "adversarial-training": "unfooled.defenses.adversarial_training:METHOD",
        "augment": "unfooled.defenses.augment:METHOD",
        "fact": "unfooled.defenses.fact:METHOD",
        "five": "unfooled.defenses.five:METHOD",
        "freelb": "unfooled.defenses.freelb:METHOD",
        "fuse": "unfooled.defenses.fuse:METHOD",
        "normalise": "unfooled.defenses.normalise:METHOD",
        "retune": "unfooled.defenses.retune:METHOD",
    },
    # Attacks that an illusion of robustness does not survive; see `checks.illusions.checks`.
    "check": {
        "abstention": "unfooled.checks.illusions.abstention:CHECK",
        "again": "unfooled.checks.illusions.again:CHECK",
        "averages": "unfooled.checks.illusions.averages:CHECK",
        "gradients": "unfooled.checks.illusions.gradients:CHECK",
        "fresh-rows": "unfooled.checks.illusions.fresh_rows:CHECK",
        "guided": "unfooled.checks.illusions.guided:CHECK",
        "memory": "unfooled.checks.illusions.memory:CHECK",
        "state": "unfooled.checks.illusions.state:CHECK",
        "temperature": "unfooled.checks.illusions.temperature:CHECK",
        "transfer": "unfooled.checks.illusions.transfer:CHECK",
    },
    # Ordered lists of attacks for the worst case; see `checks.suites`.
    # What was said of the successes of a run: folder to {key: probability of being valid}, or None.
    "validity": {"run": "unfooled.metrics.validity.judging:judged_chances"},
    "suite": {
        "standard": "unfooled.checks.suites:STANDARD",
        "decisions": "unfooled.checks.suites:DECISIONS",
        "ladder": "unfooled.checks.suites:LADDER",
        "whitebox": "unfooled.checks.suites:WHITEBOX",
    },
    # What a found text is like, one number each; see `metrics.measures`.
    "measure": {
        "changed-pos": "unfooled.metrics.text_measures.parts_of_speech:CHANGED",
        "edit-distance": "unfooled.metrics.text_measures.edit_distance:MEASURE",
        "grammar": "unfooled.metrics.text_measures.grammar:MEASURE",
        "perplexity": "unfooled.metrics.text_measures.perplexity:MEASURE",
        "picture": "unfooled.metrics.text_measures.picture:MEASURE",
        "same-pos": "unfooled.metrics.text_measures.parts_of_speech:SAME",
        "similarity": "unfooled.metrics.text_measures.similarity:MEASURE",
    },
    # Models that can be trained here; see `training.families`.
    "family": {
        "bert": "unfooled.training.classifiers.bert:FAMILY",
        "bert-scratch": "unfooled.training.classifiers.bert_scratch:FAMILY",
        "bilstm-attention": "unfooled.training.classifiers.bilstm_attention:FAMILY",
        "lstm": "unfooled.training.classifiers.lstm:FAMILY",
        "naive-bayes": "unfooled.training.classifiers.naive_bayes:FAMILY",
        "seq2seq-lstm": "unfooled.translation.families:LSTM",
        "seq2seq-transformer": "unfooled.translation.families:TRANSFORMER",
        "svm": "unfooled.training.classifiers.svm:FAMILY",
        "word-cnn": "unfooled.training.classifiers.word_cnn:FAMILY",
    },
    "oracle": {
        "neighbours": "unfooled.resources.neighbours:open_neighbours",
        "vectors": "unfooled.resources.vectors:open_vectors",
        "encode": "unfooled.resources.encoders:open_encoder",
        "tag": "unfooled.resources.tagger:open_tagger",
        "wordnet": "unfooled.resources.synonyms:open_synonyms",
        "datamuse": "unfooled.resources.datamuse:open_datamuse",
        "look-alikes": "unfooled.resources.look_alikes:open_look_alikes",
        "table": "unfooled.resources.table:open_table",
        "fill": "unfooled.resources.fillmask:open_fill_mask",
        "fluency": "unfooled.resources.fluency:open_fluency",
        "grammar": "unfooled.resources.grammar:open_grammar",
        "picture": "unfooled.resources.pictures:open_pictures",
        "forms": "unfooled.language.oracles:open_forms",
        "inflect": "unfooled.language.oracles:open_inflect",
        "edit": "unfooled.language.oracles:open_edit",
        "alike": "unfooled.language.oracles:open_alike",
        "polarity": "unfooled.language.oracles:open_polarity",
        "surrogate": "unfooled.victims.surrogate:open_surrogate",
    },
    # What an oracle was when a run began, where its variant alone does not say it.
    "fingerprint": {
        "datamuse": "unfooled.resources.datamuse:fingerprint",
        "look-alikes": "unfooled.resources.look_alikes:fingerprint",
        "table": "unfooled.resources.table:fingerprint",
        "fill": "unfooled.resources.fillmask:fingerprint",
        "fluency": "unfooled.resources.fluency:fingerprint",
        "grammar": "unfooled.resources.grammar:fingerprint",
        "surrogate": "unfooled.victims.surrogate:fingerprint",
    },
    # Parts that a recipe may swap by name; see `core.recipe.load_part`.
    "importance": {
        "attention": "unfooled.attacks.parts.selection:AttentionSelect",
        "bisection": "unfooled.attacks.parts.importance:Bisection",
        "deletion": "unfooled.attacks.parts.importance:Deletion",
        "gradient": "unfooled.attacks.parts.gradient_importance:Gradient",
        "masking": "unfooled.attacks.parts.importance:Masking",
        "random": "unfooled.attacks.parts.importance:RandomOrder",
        "temporal": "unfooled.attacks.parts.importance:TemporalScore",
    },
    "candidates": {
        "characters": "unfooled.attacks.parts.candidates:CharacterEdits",
        "datamuse": "unfooled.attacks.parts.sources:Datamuse",
        "disguise": "unfooled.attacks.parts.disguise:Disguise",
        "fill-mask": "unfooled.attacks.parts.masks:FillMask",
        "fill-word": "unfooled.attacks.parts.masks:FillWord",
        "look-alikes": "unfooled.attacks.parts.characters:LookAlikes",
        "misspelling": "unfooled.attacks.parts.characters:Misspelling",
        "forms": "unfooled.attacks.parts.inflections:OtherForms",
        "neighbours": "unfooled.attacks.parts.candidates:Neighbours",
        "table": "unfooled.attacks.parts.sources:UserTable",
        "typos": "unfooled.translation.attacks.typo:KeyboardTypos",
        "wordnet": "unfooled.attacks.parts.sources:WordNetSynonyms",
        "wordnet-lemmas": "unfooled.attacks.parts.sources:WordNetLemmas",
        "wordnet-sisters": "unfooled.attacks.parts.sources:WordNetSisters",
    },
    "constraint": {
        "first-options": "unfooled.attacks.parts.limits:FirstOptions",
        "fluency": "unfooled.attacks.parts.fluency:Fluency",
        "good-grammar": "unfooled.attacks.parts.english:GoodGrammar",
        "grammar": "unfooled.attacks.parts.fluency:Grammar",
        "keep-likeliest": "unfooled.attacks.parts.limits:KeepLikeliest",
        "max-changed-share": "unfooled.attacks.parts.english:MaxChangedShare",
        "max-words": "unfooled.attacks.parts.limits:MaxWords",
        "mean-vector": "unfooled.attacks.parts.limits:MeanVector",
        "min-letters": "unfooled.attacks.parts.limits:MinLetters",
        "no-antonyms": "unfooled.attacks.parts.limits:NoAntonyms",
        "once-per-place": "unfooled.attacks.parts.limits:OncePerPlace",
        "only-tags": "unfooled.attacks.parts.limits:OnlyTags",
        "protected-words": "unfooled.attacks.parts.english:ProtectedWords",
        "reads-on": "unfooled.attacks.parts.prose:ReadsOn",
        "related-words": "unfooled.attacks.parts.english:RelatedWords",
        "word-distance": "unfooled.attacks.parts.limits:WordDistance",
        "word-loss": "unfooled.attacks.parts.limits:WordLoss",
    },
    # What a victim does with a text: how it is checked, asked and given data; see `runs.task`.
    "task": {
        "classification": "unfooled.runs.task:TASK",
        "translation": "unfooled.translation.task:TASK",
    },
    # How data and models of a task other than classification are loaded and trained.
    "loader": {
        "translation": "unfooled.translation.parallel:load_parallel",
    },
    "trainer": {
        "translation": "unfooled.translation.training:train_translator",
    },
    # What attacks leave as a remark in a run and what draws it on the run's page; see `report.html`.
    "run-charts": {
        "attention": "unfooled.translation.attention_maps:attention_charts",
    },
    # Parts of the page that are read from another file than the runs.
    "report-section": {
        "study": "unfooled.people.report:read_people",
    },
    # Looks at a finished run that need more than its file; called with the run and the victim.
    "analysis": {
        "internals": "unfooled.internals.analysis:analyse",
        "plane": "unfooled.internals.pca:project",
    },
    # What a finished run says in numbers.
    "summary": {
        "run": "unfooled.metrics.summary:summarise",
    },
    # Commands of the wings, by what is typed after `unfooled`; see `cli.command.Command`.
    "command": {
        "analyse": "unfooled.internals.command:Analyse",
        "playground": "unfooled.people.commands.playground:OpenPlayground",
        "reproduce": "unfooled.papers.command:Reproduce",
        "study create": "unfooled.people.commands.study:Create",
        "study report": "unfooled.people.commands.study:ReportStudy",
        "study serve": "unfooled.people.commands.study:Serve",
    },
    # Oracles that know the victim: opened with it and the variant.
    "inside": {
        "gradients": "unfooled.victims.torch.oracles:open_gradients",
        "attention": "unfooled.victims.torch.oracles:open_attention",
        "embeddings": "unfooled.victims.torch.oracles:open_embeddings",
        "sentence": "unfooled.victims.torch.oracles:open_sentence_vectors",
        "sentence-distance": "unfooled.victims.torch.word_oracles:open_distance",
        "vocabulary": "unfooled.victims.torch.word_oracles:open_vocabulary",
        "readable": "unfooled.victims.torch.word_oracles:open_readable",
        "zeroed": "unfooled.victims.torch.word_oracles:open_zeroed",
        "projection": "unfooled.victims.torch.word_oracles:open_projection",
        "flips": "unfooled.victims.torch.mixtures:open_flips",
        "head": "unfooled.victims.torch.oracles:open_head",
        "signs": "unfooled.victims.torch.mixtures:open_signs",
        "mixture": "unfooled.victims.torch.mixtures:open_mixture",
        "trigger": "unfooled.attacks.parts.triggers:open_triggers",
        "class-words": "unfooled.attacks.parts.class_words:open_class_words",
        "nearness": "unfooled.translation.oracles:open_nearness",
        "pulls": "unfooled.translation.oracles:open_pulls",
        "token-probabilities": "unfooled.translation.oracles:open_tokens",
        "target-words": "unfooled.translation.oracles:open_target_words",
    },
}


class Registry:
    """Names of each kind. `register` adds one at run time, `load` imports and returns the object.

    Example:

        >>> from unfooled.plugins import registry
        >>> "textfooler" in registry.names("attack")
        True
    """

    def __init__(self, table: dict[str, dict[str, str]]) -> None:
        self._table = {kind: dict(names) for kind, names in table.items()}
        self._objects: dict[tuple[str, str], Any] = {}
        self._plugins_read: set[str] = set()

    def register(self, kind: str, name: str, target: Any) -> None:
        """`target` is `"module:attribute"` or the object itself. A taken name is an error."""
        names = self._table.setdefault(kind, {})
        if name in names or (kind, name) in self._objects:
            raise UnfooledError(f"the {kind} name {name!r} is taken")
        if isinstance(target, str):
            names[name] = target
        else:
            names[name] = ""
            self._objects[kind, name] = target

    def unregister(self, kind: str, name: str) -> None:
        """Forget a name; one that is not there is no error."""
        self._table.get(kind, {}).pop(name, None)
        self._objects.pop((kind, name), None)

    def names(self, kind: str) -> list[str]:
        """Every name of a kind, those of plug-ins included; a folder of ours that was left out has none."""
        self._read_plugins(kind)
        return sorted(name for name, target in self._table.get(kind, {}).items() if _is_here(target))

    def packages(self, kind: str) -> list[str]:
        """The packages in which our own things of this kind lie."""
        modules = (target.partition(":")[0] for target in self._table.get(kind, {}).values())
        return sorted({module.rpartition(".")[0] for module in modules if module.startswith("unfooled.")})

    def load(self, kind: str, name: str) -> Any:
        """The object behind a name. An unknown one is an error that lists what is near."""
        key = (kind, name)
        if key not in self._objects:
            known = self.names(kind)
            if name not in known:
                raise unknown_name(kind, name, known)
            module, _, attribute = self._table[kind][name].partition(":")
            self._objects[key] = getattr(importlib.import_module(module), attribute)
        return self._objects[key]

    def load_version(self, kind: str, name: str) -> Any:
        """Of a kind whose things have versions: that behind `@`, or the first of them without it."""
        base, _, version = name.partition("@")
        versions = self.load(kind, base)
        if not version:
            return next(iter(versions.values()))
        if version not in versions:
            raise unknown_name(kind, name, [f"{base}@{known}" for known in versions])
        return versions[version]

    @cached_property
    def _entry_points(self) -> Any:
        """Of all installed packages, read once: that takes longer than all else that is done here.

        Their type is another one since Python 3.12; both have `select`.
        """
        return entry_points()

    def _read_plugins(self, kind: str) -> None:
        if kind in self._plugins_read:
            return
        self._plugins_read.add(kind)
        for point in self._entry_points.select(group=f"unfooled.{kind}"):
            try:
                self.register(kind, point.name, point.load())
            except Exception as error:
                warnings.warn(f"plug-in {point.value} left out: {error}", stacklevel=2)


def _is_here(target: str) -> bool:
    """Whether the folder of ours that holds it was not left out; nothing is imported to see that."""
    root, *inside = target.partition(":")[0].split(".")
    return root != "unfooled" or _is_found(f"{root}.{inside[0]}")


@cache
def _is_found(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False


def unknown_name(kind: str, name: str, known: list[str]) -> UnknownNameError:
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known)}"
    return UnknownNameError(f"there is no {kind} called {name!r}", hint)


registry = Registry(_BUILT_IN)
