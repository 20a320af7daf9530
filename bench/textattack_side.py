"""The TextAttack side: its own TextFooler or BAE recipe on our victim, vectors, encoder and masked LM.

Runs in TextAttack's environment only and imports nothing of Unfooled. Nothing of TextAttack is changed but
what it would download (word vectors, sentence encoder, masked language model) and, with `--padding dynamic`,
the padding of its Hugging Face wrapper and of its masked language model.
"""

from __future__ import annotations

import argparse
import atexit
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bench_data import Row, read_jsonl
from protocol import Meter, one_thread, private_stdout, run_all, serve
from textattack_quirks import explain

ENCODER_TOKENS = 256
ENCODER_BATCH = 32


def isolate(nltk_data: Path) -> None:
    """Before TextAttack is imported: a scratch home, no downloads, our NLTK data."""
    scratch = tempfile.mkdtemp(prefix="textattack-home-")
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    cache = Path(scratch) / ".cache" / "textattack"
    cache.mkdir(parents=True)
    # This file says that its first-import downloads are done.
    (cache / "post_install_check_3").touch()
    os.environ.update(
        HOME=scratch,
        NLTK_DATA=str(nltk_data.resolve()),
        HF_HUB_OFFLINE="1",
        TRANSFORMERS_OFFLINE="1",
        CUDA_VISIBLE_DEVICES="",
    )


def watch(module: Any, meter: Meter) -> None:
    """Count and time every forward pass of a transformer from outside."""
    started: list[float] = []

    def before(_module: Any, _args: Any, _kwargs: Any) -> None:
        started.append(time.perf_counter())

    def after(_module: Any, args: Any, kwargs: dict[str, Any], _output: Any) -> None:
        seconds = time.perf_counter() - started.pop()
        ids, mask = kwargs["input_ids"], kwargs["attention_mask"]
        real = int(mask.sum())
        meter.add(len(ids), real, ids.numel() - real, seconds)

    module.register_forward_pre_hook(before, with_kwargs=True)
    module.register_forward_hook(after, with_kwargs=True)


def give_vectors(table: Path) -> None:
    """Our vectors and neighbour lists in the place of the downloaded counter-fitted ones."""
    import numpy as np
    from textattack.shared import WordEmbedding

    with np.load(table, allow_pickle=False) as stored:
        words = [str(word) for word in stored["words"]]
        ids, cosines, vectors = stored["ids"], stored["cosines"], stored["vectors"]
    own = np.arange(len(words))[:, None]
    # An empty place (-1) becomes the word itself, which its word swap skips.
    ids = np.where(ids < 0, own, ids)
    index = {word: at for at, word in enumerate(words)}
    embedding = WordEmbedding(vectors, index, dict(enumerate(words)), np.hstack([own, ids]))
    # The downloaded set brings precomputed cosines, so ours does too.
    for at, (row, values) in enumerate(zip(ids.tolist(), cosines.tolist(), strict=True)):
        for other, cosine in zip(row, values, strict=True):
            embedding._cos_sim_mat[min(at, other)][max(at, other)] = cosine
    WordEmbedding.counterfitted_GLOVE_embedding = staticmethod(lambda: embedding)


def give_encoder(folder: Path, meter: Meter, places: Sequence[str] = ("UniversalSentenceEncoder",)) -> None:
    """MiniLM in the place of another sentence encoder, with the recipe's own arguments."""
    import torch
    from textattack.constraints.semantics.sentence_encoders import SentenceEncoder
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder).eval()
    watch(model, meter)

    class MiniLMEncoder(SentenceEncoder):
        def __init__(
            self,
            threshold: float = 0.8,
            large: bool = False,
            metric: str = "angular",
            model_name: str = "",
            **kwargs: Any,
        ) -> None:
            super().__init__(threshold=threshold, metric=metric, **kwargs)

        def encode(self, sentences: Sequence[str]) -> torch.Tensor:
            parts = []
            for at in range(0, len(sentences), ENCODER_BATCH):
                packed = tokenizer(
                    list(sentences[at : at + ENCODER_BATCH]),
                    padding=True,
                    truncation=True,
                    max_length=ENCODER_TOKENS,
                    return_tensors="pt",
                )
                with torch.no_grad():
                    states = model(**packed).last_hidden_state
                mask = packed["attention_mask"].unsqueeze(-1).to(states.dtype)
                mean = (states * mask).sum(1) / mask.sum(1)
                parts.append(torch.nn.functional.normalize(mean, dim=1))
            return torch.cat(parts)

    for name, module in list(sys.modules.items()):
        for place in places:
            if name.startswith("textattack") and hasattr(module, place):
                setattr(module, place, MiniLMEncoder)


def give_masked_lm(folder: Path, padding: str) -> None:
    """Our masked language model in the place of the downloaded bert-base-uncased."""
    from textattack.attack_recipes import clare_li_2020 as clare
    from textattack.transformations import WordInsertionMaskedLM, WordMergeMaskedLM
    from textattack.transformations.word_swaps import word_swap_masked_lm as module

    class Here:
        """A loader that reads our folder whatever name it is given."""

        def __init__(self, loader: Any) -> None:
            self.loader = loader

        def from_pretrained(self, _name: str, **options: Any) -> Any:
            return self.loader.from_pretrained(folder, **options)

    def encode(swap: Any, text: list[str]) -> Any:
        return swap._lm_tokenizer(
            text, max_length=swap.max_length, truncation=True, padding=True, return_tensors="pt"
        )

    module.AutoModelForMaskedLM = Here(module.AutoModelForMaskedLM)
    module.AutoTokenizer = Here(module.AutoTokenizer)
    # One recipe loads its model itself, as a causal one, which masks nothing all the same.
    clare.transformers = SimpleNamespace(
        AutoModelForCausalLM=module.AutoModelForMaskedLM, AutoTokenizer=module.AutoTokenizer
    )
    if padding == "dynamic":
        for swap in (module.WordSwapMaskedLM, WordInsertionMaskedLM, WordMergeMaskedLM):
            swap._encode_text = encode


def wrap_victim(path: Path, padding: str, meter: Meter) -> Any:
    if path.suffix == ".skops":
        return _wrap_sklearn(path, meter)
    import torch
    from textattack.models.wrappers import HuggingFaceModelWrapper
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    class DynamicWrapper(HuggingFaceModelWrapper):
        """The same, padded to the longest text of the batch instead of the model's maximum."""

        def __call__(self, texts: Sequence[str]) -> torch.Tensor:
            packed = self.tokenizer(list(texts), padding=True, truncation=True, return_tensors="pt")
            with torch.no_grad():
                logits: torch.Tensor = self.model(**packed).logits
            return logits

        def get_grad(self, text: str) -> Any:
            tokenizer = self.tokenizer
            self.tokenizer = lambda texts, **options: tokenizer(texts, **options | {"padding": True})
            try:
                return super().get_grad(text)
            finally:
                self.tokenizer = tokenizer

    model = AutoModelForSequenceClassification.from_pretrained(path).eval()
    watch(model, meter)
    wrapper = HuggingFaceModelWrapper if padding == "shipped" else DynamicWrapper
    return wrapper(model, AutoTokenizer.from_pretrained(path))


def _wrap_sklearn(path: Path, meter: Meter) -> Any:
    """TextAttack's own wrapper calls a method that scikit-learn removed in 1.2, hence this one."""
    import skops.io
    from textattack.models.wrappers import ModelWrapper

    class PipelineWrapper(ModelWrapper):
        def __init__(self, model: Any) -> None:
            self.model = model

        def __call__(self, texts: Sequence[str]) -> Any:
            started = time.perf_counter()
            answer = self.model.predict_proba(list(texts))
            meter.add(len(texts), 0, 0, time.perf_counter() - started)
            return answer

    return PipelineWrapper(skops.io.load(path))


def build_attack(args: argparse.Namespace, meters: dict[str, Meter]) -> Any:
    import textattack
    import torch
    from textattack.attack_recipes import BAEGarg2019, TextFoolerJin2019
    from textattack.constraints.semantics.sentence_encoders import SentenceEncoder

    torch.set_num_threads(1)
    if args.encoder != "none":
        give_encoder(Path(args.encoder), meters["encoder"])
    victim = wrap_victim(args.victim, args.padding, meters["victim"])
    if args.masked_lm:
        give_masked_lm(args.masked_lm, args.padding)
        attack = BAEGarg2019.build(victim)
        watch(attack.transformation._language_model, meters["masked-lm"])
    else:
        give_vectors(args.neighbours)
        attack = TextFoolerJin2019.build(victim)
    if args.encoder != "none":
        return attack
    kept = [constraint for constraint in attack.constraints if not isinstance(constraint, SentenceEncoder)]
    return textattack.Attack(
        attack.goal_function,
        attack.pre_transformation_constraints + kept,
        attack.transformation,
        attack.search_method,
    )


def attack_one(attack: Any, index: int, row: Row) -> dict[str, Any]:
    names = {"Successful": "success", "Failed": "failure", "Skipped": "skipped"}
    started = time.perf_counter()
    try:
        result = attack.attack(row.text, row.label)
    except Exception as error:  # one bad example must not end the comparison
        return {"index": index, "outcome": "error", "text": row.text, "queries": 0, "note": repr(error)}
    kind = type(result).__name__.removesuffix("AttackResult")
    reached = result.perturbed_result
    if kind in ("Successful", "Skipped") and int(reached.raw_output.argmax()) == row.label:
        kind = "Failed"  # a goal of the recipe's own was reached, but the label stands
    if kind == "Maximized":  # as little of the text as possible: a success is one word
        kind = "Successful" if result.perturbed_result.attacked_text.num_words == 1 else "Failed"
    return {
        "index": index,
        "outcome": names[kind],
        # A failed attack's last text is kept too: both searches must have walked the same way.
        "text": result.perturbed_text(),
        "queries": result.num_queries,
        "score": float(result.perturbed_result.score),
        "seconds": round(time.perf_counter() - started, 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--victim", type=Path, required=True, help="Hugging Face folder or .skops file")
    parser.add_argument("--sentences", type=Path, required=True, help="JSONL with text and label")
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--neighbours", type=Path, help="TextFooler; npz: words, ids, cosines, vectors")
    chosen.add_argument("--masked-lm", type=Path, help="BAE; folder of a masked language model")
    parser.add_argument("--encoder", default="none", help="MiniLM folder, or none")
    parser.add_argument("--nltk-data", type=Path, required=True)
    parser.add_argument("--padding", choices=("shipped", "dynamic"), default="shipped")
    parser.add_argument("--serve", action="store_true", help="read blocks of indices from stdin")
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    one_thread()

    channel = private_stdout()
    started = time.perf_counter()
    isolate(args.nltk_data)
    meters = {"victim": Meter(), "encoder": Meter(), "masked-lm": Meter()}
    attack = build_attack(args, meters)
    rows = read_jsonl(args.sentences)
    started = time.perf_counter() - started

    def attack_block(indices: Sequence[int]) -> list[dict[str, Any]]:
        return [attack_one(attack, index, rows[index]) for index in indices]

    def why(other: dict[str, Any]) -> str:
        return explain(lambda: attack_one(attack, other["index"], rows[other["index"]]), other)

    if args.serve:
        from importlib.metadata import version

        names = ("textattack", "torch", "transformers", "scikit-learn", "nltk")
        facts = {"startup_seconds": round(started, 2), "versions": {name: version(name) for name in names}}
        serve(attack_block, meters, channel, facts, why)
    else:
        run_all(attack_block, meters, min(args.limit or len(rows), len(rows)), 1, args.out)


if __name__ == "__main__":
    main()
