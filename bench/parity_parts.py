"""Parts for TextAttack's recipes that it would download, and plain bugs of it that can be taken away.

Runs in TextAttack's environment only. A *part* is what the recipe needs and cannot have here: both sides get
the same one. A *mend* takes one accident of TextAttack away, where a row of `parity_table.py` says so.
"""

from __future__ import annotations

import atexit
import math
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bench_data import ROOT
from protocol import Meter
from textattack_quirks import no_word, ranked_by_probability, replaced

# Unicode's list of intentional look-alikes, as far as ASCII goes: the wheel of TextAttack lacks the file.
ASCII = "ABEHIKMNOPTXYZCJSacdehipsxyjo!"
ALIKE = "ΑΒΕΗΙΚΜΝΟΡΤΧΥΖСЈЅасԁеһірѕхуϳοǃ"


def give_wordnet(files: Path, nltk_data: Path) -> None:
    """Our WordNet through NLTK's reader, which asks for two more files than the resource has."""
    folder = nltk_data / "corpora" / "wordnet"
    folder.mkdir(parents=True, exist_ok=True)
    for file in files.iterdir():
        # NLTK refuses links that lead out of its folder.
        if file.suffix != ".json" and not (folder / file.name).exists():
            shutil.copyfile(file, folder / file.name)
    # Keys of senses and names of lexicographers' files, which no recipe reads.
    (folder / "index.sense").touch()
    (folder / "lexnames").write_text("".join(f"{number:02}\tfile{number}\t1\n" for number in range(45)))

    from nltk.corpus.reader.wordnet import WordNetCorpusReader
    from textattack.shared import utils
    from textattack.transformations.word_swaps import word_swap_wordnet as module

    reader = WordNetCorpusReader(str(folder), None)

    def synonyms(_swap: Any, word: str, random: bool = False) -> list[str]:
        """As there, but sorted: the order of a Python set differs from process to process."""
        lemmas = {lemma for sense in reader.synsets(word) for lemma in sense.lemma_names()}
        return sorted(
            lemma for lemma in lemmas if lemma != word and "_" not in lemma and utils.is_one_word(lemma)
        )

    def start(swap: Any, language: str = "eng") -> None:
        swap.language = language

    module.WordSwapWordNet.__init__ = start
    module.WordSwapWordNet._get_replacement_words = synonyms


def give_look_alikes() -> None:
    """The data file that the wheel forgot, in the form in which it is read: two characters behind a mark."""
    import textattack

    lines = [f"{ord(a):04X} ;\t{ord(b):04X} #* ( {a} ~ {b} )" for a, b in zip(ASCII, ALIKE, strict=True)]
    file = Path(textattack.__file__).parent / "shared" / "intentional_homoglyphs.txt"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    from textattack.transformations import WordSwapHomoglyphSwap

    read = WordSwapHomoglyphSwap().homos_intentional
    if read != {a: [b] for a, b in zip(ASCII, ALIKE, strict=True)}:
        raise SystemExit("TextAttack reads the list of look-alikes in another way than expected")


def give_tagger(around: int = 4) -> None:
    """NLTK's perceptron in the place of flair: universal tags of two words that might be merged, by a few
    words to each side of them, as with us."""
    import nltk
    from textattack.shared import AttackedText
    from textattack.transformations.word_merges import word_merge_masked_lm as module

    fits = module.find_merge_index

    def mergeable(places: Sequence[tuple[Any, int]]) -> list[int]:
        found = []
        for text, index in places[:-1]:
            first = max(0, index - around)
            tagged = nltk.pos_tag(text.words[first : index + around + 2], tagset="universal")
            if fits([tag for _, tag in tagged[index - first : index - first + 2]]):
                found.append(index)
        return found

    AttackedText.pos_of_word_index = lambda text, index: (text, index)
    module.find_merge_index = mergeable


def our_synonyms(files: Path) -> Any:
    """What our own code reads from WordNet: a function from a question to words."""
    sys.path.append(str(ROOT / "src"))
    from unfooled.resources.synonyms import SynonymOracle
    from unfooled.resources.wordnet import read_wordnet

    return SynonymOracle(read_wordnet(files))


def give_sisters(files: Path) -> None:
    """WordNet's sisters in the place of HowNet's words, whatever the part of speech."""
    from textattack.shared import AttackedText
    from textattack.transformations.word_swaps import word_swap_hownet as module

    ask = our_synonyms(files)
    from unfooled.resources.synonyms import Sisters

    def start(swap: Any, max_candidates: int = -1, **options: Any) -> None:
        super(module.WordSwapHowNet, swap).__init__(**options)
        swap.max_candidates = max_candidates

    def sisters(_swap: Any, word: str, _part: str) -> list[str]:
        return list(ask([Sisters(word.lower(), 50)])[0])

    module.WordSwapHowNet.__init__ = start
    module.WordSwapHowNet._get_replacement_words = sisters
    AttackedText.pos_of_word_index = lambda _text, _index: ""


def our_lemmas(files: Path) -> tuple[Any, str, Any]:
    """An accident of another kind: NLTK finds other base forms of some words than we do."""
    from textattack.transformations import WordSwapWordNet

    ask = our_synonyms(files)
    from unfooled.resources.synonyms import Lemmas

    def lemmas(_swap: Any, word: str, random: bool = False) -> list[str]:
        return list(ask([Lemmas(word)])[0])

    return WordSwapWordNet, "_get_replacement_words", lemmas


def give_trigrams(file: Path) -> None:
    """Our trigram model in the place of GPT-2, Google's and L2W's, read by our own code."""
    sys.path.append(str(ROOT / "src"))
    import textattack.constraints.grammaticality.language_models.google_language_model as google
    import textattack.constraints.grammaticality.language_models.learning_to_write as learning
    from textattack.constraints.grammaticality.language_models import GPT2, LanguageModelConstraint

    from unfooled.resources.fluency import TrigramFluency
    from unfooled.resources.trigram import load

    model = load(file)
    score, known = TrigramFluency(model), model.index

    def likelihood(text: str) -> float:
        return float(score([text])[0].log_probability)

    def at_word(_constraint: Any, texts: Sequence[Any], index: int) -> list[float]:
        """The word after the two before it in the first text; nothing where no letter stands before."""
        prefix = texts[0].text_until_word_index(index)
        if not any(map(str.isalpha, prefix)):
            return [0.0] * len(texts)
        start = prefix.rindex(texts[0].words[index - 1])
        if index > 1:
            start = prefix.rindex(texts[0].words[index - 2], 0, start)
        return [likelihood(prefix[start:] + text.words[index]) for text in texts]

    def without_model(constraint: Any, model_name: str = "", **options: Any) -> None:
        LanguageModelConstraint.__init__(constraint, **options)

    class GoogleHelper:
        def get_words_probs(self, prefix: str, words: Sequence[str]) -> list[float]:
            return [likelihood(f"{prefix} {word}") for word in words]

        def clear_cache(self) -> None:
            pass

    class WindowHandler:
        @staticmethod
        def load_model(_folder: str, _device: object) -> WindowHandler:
            return WindowHandler()

        def query(self, windows: Sequence[Sequence[str]], words: Sequence[str]) -> list[float]:
            return [
                likelihood(" ".join(window)) if word.lower() in known else float("-inf")
                for window, word in zip(windows, words, strict=True)
            ]

    GPT2.__init__ = without_model
    GPT2.get_log_probs_at_index = at_word
    google.google_language_model.GoogLMHelper = GoogleHelper
    learning.learning_to_write.QueryHandler = WindowHandler
    learning.learning_to_write.textattack.shared.utils.download_from_s3 = lambda name: name


def wrap_word_model(folder: Path, meter: Meter) -> Any:
    """A word model of ours for TextAttack: scores, and gradients word by word.

    Its HotFlip knows only its own LSTM, and takes the number of a word for that of a token; with this victim
    the gradient of a word is the word's own, and dropout stays off.
    """
    sys.path.append(str(ROOT / "src"))
    import numpy as np
    import torch
    from textattack.models.wrappers import ModelWrapper
    from textattack.transformations.word_swaps import word_swap_gradient_based as module

    from unfooled.victims.loading import load_victim

    victim: Any = load_victim(f"hf:{_readable_copy(folder)}")
    words, vectors = victim.vocabulary_vectors()
    number = {word: at for at, word in enumerate(words)}
    unknown, padding = len(words), len(words) + 1
    # Any word without a vector of its own is read as the same unknown one.
    own = victim.embeddings(["qqzzq"])[0].input
    table = torch.tensor(np.vstack([vectors, own, np.zeros_like(own)]))
    embeddings = SimpleNamespace(weight=SimpleNamespace(data=table))

    class WordModelWrapper(ModelWrapper):
        def __init__(self) -> None:
            self.model = SimpleNamespace(get_input_embeddings=lambda: embeddings)
            self.tokenizer = SimpleNamespace(
                pad_token_id=padding, convert_id_to_word=lambda at: words[at] if at < unknown else ""
            )

        def __call__(self, texts: Sequence[str]) -> Any:
            started = time.perf_counter()
            answer = victim.predict(list(texts))
            meter.add(len(texts), 0, 0, time.perf_counter() - started)
            return answer

        def get_grad(self, text: str) -> dict[str, Any]:
            (found,) = victim.gradients([text], [None])
            ids = [number.get(word.lower(), unknown) for word in found.words]
            return {"ids": ids, "gradient": found.vectors}

    module.validate_model_gradient_word_swap_compatibility = lambda _model: None
    return WordModelWrapper()


def _readable_copy(folder: Path) -> Path:
    """The model with its tokenizer's class by the name that an older transformers knows."""
    copy = Path(tempfile.mkdtemp(prefix="word-model-")) / folder.name
    shutil.copytree(folder, copy)
    config = copy / "tokenizer_config.json"
    config.write_text(config.read_text().replace("TokenizersBackend", "PreTrainedTokenizerFast"))
    atexit.register(shutil.rmtree, copy.parent, ignore_errors=True)
    return copy


def leave_out(attack: Any, kinds: Sequence[str]) -> None:
    """Take kinds of edits out of a composite transformation."""
    classes = {
        "add": "WordSwapRandomCharacterInsertion",
        "drop": "WordSwapRandomCharacterDeletion",
        "swap": "WordSwapNeighboringCharacterSwap",
    }
    barred = {classes[kind] for kind in kinds}
    composite = attack.transformation
    composite.transformations = [
        part for part in composite.transformations if type(part).__name__ not in barred
    ]


def best_breed(attack: Any) -> None:
    """Parents are drawn with the weight exp(-score / T), so that the worst breed. Mended: exp(score / T)."""
    attack.search_method.temp = -abs(attack.search_method.temp)


def steady_gradients(attack: Any) -> None:
    """The model is put into training mode before its gradient is taken. Mended: dropout stays off."""
    wrapper = attack.goal_function.model
    wrapper.model.eval()
    wrapper.model.train = lambda mode=True: wrapper.model


def ranked_places(attack: Any) -> None:
    """Words are ranked once and then deleted by their old numbers, which after the first deletion are other
    words'. Mended: the numbers follow the words."""
    search = attack.search_method
    given = search.get_transformations

    def shifted(*args: Any, **options: Any) -> Any:
        return given(*args, **options, shifted_idxs=True)

    search.get_transformations = shifted


def rank_by_probability(attack: Any) -> None:
    """Deletions that flip the label all count the same when words are ranked, and equals come in the order of
    an unstable sort. Mended: words are ranked by p(true class), equals from left to right."""
    attack.search_method._get_index_order = ranked_by_probability(attack.search_method)


def whole_text(attack: Any) -> None:
    """The text is cut behind the last word that may be edited before its gradient is taken. Mended: it is
    not."""
    attack.search_method.truncate_words_to = None


def whole_masked_text(attack: Any) -> None:
    """Where a word is inserted or two are merged, the language model does not see what stands behind the last
    word, or before the first. Mended: it reads the whole text, as where a word is replaced."""
    from textattack.shared import AttackedText

    window = AttackedText.text_window_around_index

    def all_of_it(text: Any, index: int, size: float) -> str:
        return str(text.text if math.isinf(size) else window(text, index, size))

    _while_attacking(attack, AttackedText, "text_window_around_index", all_of_it)


def whole_words(attack: Any) -> None:
    """Pieces of words lose their mark and count as words. Mended: pieces are no candidates."""
    from textattack.shared import utils

    _while_attacking(attack, utils, "strip_BPE_artifacts", no_word)


def _while_attacking(attack: Any, owner: Any, name: str, function: Any) -> None:
    run = attack.attack

    def attacked(*args: Any) -> Any:
        with replaced(owner, name, function):
            return run(*args)

    attack.attack = attacked


def count_distinct(attack: Any) -> None:
    """Every text asked counts, however often: a population that has become one text is paid for sixty times.
    Mended: a text counts, also for the budget, when it is asked for the first time."""
    goal = attack.goal_function
    start, ask = goal.init_attack_example, goal.get_results
    seen: set[str] = set()

    def started(*args: Any) -> Any:
        seen.clear()
        return start(*args)

    def counted(texts: Sequence[Any], **options: Any) -> Any:
        left = goal.query_budget - goal.num_queries
        known, affordable = set(seen), []
        for text in texts:
            if text.text not in known and len(known) - len(seen) >= left:
                break
            known.add(text.text)
            affordable.append(text)
        goal.num_queries -= len(affordable) - (len(known) - len(seen))
        seen.update(known)
        return ask(affordable, **options)

    goal.init_attack_example, goal.get_results = started, counted
    attack.search_method.get_goal_results = counted


def stop_when_found(attack: Any) -> None:
    """Differential evolution goes on after a flip, and then polishes by gradient steps. Mended: it ends with
    the generation that flips the label, and a generation is built from the one before."""
    from textattack.goal_function_results import GoalFunctionResultStatus as Status
    from textattack.search_methods import differential_evolution as module

    search = attack.search_method
    ask, evolve = search.get_goal_results, module.differential_evolution
    found: list[bool] = []

    class FoundError(Exception):
        pass

    def noted(texts: Sequence[Any], **options: Any) -> Any:
        answer = ask(texts, **options)
        found.extend(result.goal_status == Status.SUCCEEDED for result in answer[0])
        return answer

    def generation(function: Callable[..., float], vectors: Any) -> list[float]:
        scores = [function(vector) for vector in vectors]
        if any(found):
            raise FoundError
        return scores

    def stopping(*args: Any, **options: Any) -> None:
        found.clear()
        with suppress(FoundError):
            evolve(*args, **options, polish=False, updating="deferred", workers=generation)

    search.get_goal_results = noted
    module.differential_evolution = stopping


def word_gradients(attack: Any) -> None:
    """The number of a word is taken for that of a token. Mended by the victim: see `wrap_word_model`."""


MENDS: dict[str, Callable[[Any], None]] = {
    "word-gradients": word_gradients,
    "parents": best_breed,
    "gradients": steady_gradients,
    "places": ranked_places,
    "flips": rank_by_probability,
    "whole-text": whole_text,
    "whole-mask": whole_masked_text,
    "whole-words": whole_words,
    "repeats": count_distinct,
    "evolution": stop_when_found,
}
