"""Translation models, trained on parallel text with the `Trainer` of transformers.

The learning rate rises over the warm-up and then falls to zero with the steps or with the minutes, whichever
are nearer to their end: a training that is given minutes always ends well, and keeps its best epoch.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unfooled.data.readers import Held
from unfooled.errors import UserError
from unfooled.metrics import bleu
from unfooled.passes import placed, to_device
from unfooled.training import record
from unfooled.training.batches import loader_of
from unfooled.training.families import Value, find_family, settle
from unfooled.training.observer import TrainObserver
from unfooled.training.preparation import DEFAULT_SHARE
from unfooled.training.torch_families import (
    arguments_on_device,
    at_home,
    last_checkpoint,
    metrics_of,
    read_checkpoint,
    reporting,
    require,
    save_model,
    stopped_at,
    watch,
)
from unfooled.training.trainer import Trained
from unfooled.translation.decoding import longest_output, signs_of, write_greedily
from unfooled.translation.families import TranslatorFamily
from unfooled.translation.inside import WORDS
from unfooled.translation.parallel import ParallelText, as_parallel
from unfooled.translation.parallel_rows import (
    IGNORED,
    Pairs,
    collate_pairs,
    features_of_pairs,
    split_pairs,
    write_words,
)
from unfooled.victims.torch.quiet import quiet

JUDGED = ("bleu", "loss")
_JUDGED_BY = 300  # sentences that are translated after each epoch


def train_translator(
    family: str,
    data: ParallelText | str | Path | Held,
    out: str | Path,
    *,
    valid: ParallelText | str | Path | Held | float = DEFAULT_SHARE,
    options: Mapping[str, Any] | None = None,
    resume: bool = False,
    restart: bool = False,
    observer: TrainObserver | None = None,
) -> Trained:
    """Train `family` on parallel text and write the model to the folder `out`.

    `valid` is parallel text or the share of the pairs, drawn at random, whose BLEU decides which epoch is
    kept. Same seed, same model, unless `minutes` are given: the learning rate follows the clock then.
    """
    watcher = observer or TrainObserver()
    chosen = find_family(family)
    if not isinstance(chosen, TranslatorFamily):
        raise UserError(f"{family} does not translate", "choose a seq2seq family: unfooled train --list")
    settled = settle(chosen, options or {})
    data = as_parallel(data)
    valid = valid if isinstance(valid, float | int) else as_parallel(valid)
    train, held_out, skipped = split_pairs(data, valid, int(settled["seed"]))
    folder = Path(out).expanduser().resolve()
    marks = [data.fingerprint(), valid.fingerprint() if isinstance(valid, ParallelText) else f"{valid:g}"]
    plan = {
        "format": 1,
        "family": chosen.name,
        # Minutes are a limit, not a setting: a training that was stopped may go on with more of them.
        "options": {name: value for name, value in settled.items() if name != "minutes"},
        "data": {
            "name": data.name,
            "fingerprint": "+".join(marks),
            "columns": [*data.fields, data.target],
            "train": len(train),
            "valid": len(held_out),
            "skipped": skipped,
        },
    }
    held = record.claim(folder, plan, resume=resume, restart=restart)
    if held["status"] == "finished":
        watcher.note(f"{folder} is finished: nothing is left to train")
        return Trained(folder, chosen.name, held["metrics"], held["seconds"])
    if skipped:
        watcher.note(f"{skipped} rows lack one side and are left out")
    require(chosen.name)
    bleu.require()
    began, before = time.perf_counter(), float(held["seconds"])
    # On a machine that is shared, the processor's time says more than the clock's.
    busy = time.process_time() - float(held.get("processor_seconds", 0.0))

    def spent() -> float:
        return before + time.perf_counter() - began

    def remember() -> None:
        so_far = {"seconds": round(spent(), 3), "processor_seconds": round(time.process_time() - busy, 3)}
        record.write_record(folder, {**held, **so_far})

    metrics = _fit(chosen, _Fitting(settled, train, held_out, folder, watcher, spent, remember))
    seconds = round(spent(), 3)
    facts = {
        "metrics": metrics,
        "seconds": seconds,
        "processor_seconds": round(time.process_time() - busy, 3),
        "machine": record.machine(),
    }
    record.write_record(folder, {**held, "status": "finished", "versions": record.versions(), **facts})
    return Trained(folder, chosen.name, metrics, seconds)


def make_translator(family: TranslatorFamily, options: Mapping[str, Value], pairs: Pairs) -> tuple[Any, Any]:
    """The model before its first step, and its tokenizer."""
    from unfooled.translation.subwords import build_subword_tokenizer

    tokenizer = build_subword_tokenizer(
        (text for side in (pairs.sources, pairs.targets) for text in side),
        vocabulary=int(options["vocabulary"]),
        max_length=int(options["max_length"]),
    )
    return family.network(options, len(tokenizer)), tokenizer


@dataclass(frozen=True, slots=True)
class _Fitting:
    """One training: what it is given, and whom it tells."""

    options: Mapping[str, Value]
    train: Pairs
    valid: Pairs
    out: Path
    observer: TrainObserver
    spent: Callable[[], float]  # seconds, those before a stop included
    remember: Callable[[], None]  # to be called when there is something to go on with after a stop


def _fit(family: TranslatorFamily, given: _Fitting) -> dict[str, Any]:
    import transformers

    options, out = given.options, given.out
    with quiet():
        transformers.set_seed(int(options["seed"]))
        model, tokenizer = make_translator(family, options, given.train)
        write_words(out / WORDS, given.train)
        checkpoint = last_checkpoint(out / record.CHECKPOINTS)
        if checkpoint:
            at_home(checkpoint)
        if checkpoint and (state := stopped_at(transformers, checkpoint, options, JUDGED)):
            save_model(read_checkpoint(model, state.best_model_checkpoint or checkpoint), tokenizer, out)
            return metrics_of(state, options, JUDGED)
        trainer = _trainer(transformers, given, model, tokenizer)
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        save_model(trainer.model, tokenizer, out)
        return metrics_of(trainer.state, options, JUDGED)


def _trainer(transformers: Any, given: _Fitting, model: Any, tokenizer: Any) -> Any:
    import torch

    model = placed(model)  # before the optimiser is made of its weights
    options, spent = given.options, given.spent
    rows, checked = (features_of_pairs(tokenizer, pairs) for pairs in (given.train, given.valid))
    size, epochs, limit = int(options["batch"]), int(options["epochs"]), 60.0 * float(options["minutes"])
    steps = math.ceil(len(rows) / size)
    rising = max(1, int(float(options["warmup"]) * steps * epochs))
    smoothing, start = float(options["smoothing"]), model.config.decoder_start_token_id

    def share(step: int) -> float:
        if step < rising:
            return (step + 1) / rising
        done = (step - rising) / max(1, steps * epochs - rising)
        return max(0.0, 1.0 - max(done, spent() / limit if limit else 0.0))

    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=float(options["lr"]),
        betas=(0.9, 0.98),
        weight_decay=float(options["decay"]),
        fused=True,
    )
    arguments = arguments_on_device(
        transformers,
        output_dir=str(given.out / record.CHECKPOINTS),
        num_train_epochs=epochs,
        per_device_train_batch_size=size,
        eval_strategy="epoch",
        save_strategy="epoch",
        save_total_limit=2,
        load_best_model_at_end=True,
        metric_for_best_model=JUDGED[0],
        greater_is_better=True,
        seed=int(options["seed"]),
        **reporting(steps),
    )

    def collate(batch: list[dict[str, Any]]) -> dict[str, Any]:
        return collate_pairs(batch, tokenizer.pad_token_id, start)

    class TimeIsUp(transformers.TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if limit and spent() >= limit:
                control.should_training_stop = (
                    True  # the epoch ends here: it is judged and saved as any other
                )

    class PairTrainer(transformers.Trainer):  # type: ignore[misc]
        def get_train_dataloader(self) -> Any:
            return loader_of(rows, size, int(options["seed"]), collate)

        def compute_loss(self, model: Any, inputs: Any, *args: Any, **more: Any) -> Any:
            return token_loss(model, inputs, smoothing)

        def evaluate(self, *args: Any, **more: Any) -> dict[str, float]:
            found = judge(self.model, tokenizer, checked, given.valid, size, collate)
            metrics = {f"eval_{name}": value for name, value in found.items()}
            self.log(metrics)
            handler: Any = self.callback_handler
            self.control: Any = handler.on_evaluate(self.args, self.state, self.control, metrics)
            return metrics

    trainer = PairTrainer(
        model=model,
        args=arguments,
        train_dataset=rows,
        eval_dataset=checked,
        data_collator=collate,
        optimizers=(optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share)),
        callbacks=[
            watch(transformers, given.out, int(options["patience"]), given.observer, given.remember, JUDGED),
            TimeIsUp(),
        ],
    )
    trainer.remove_callback(transformers.trainer_callback.PrinterCallback)
    trainer.model_accepts_loss_kwargs = False
    return trainer


def token_loss(model: Any, inputs: Mapping[str, Any], smoothing: float) -> Any:
    """Mean cross-entropy of the target's tokens; padding does not even reach the large last layer."""
    import torch

    labels = inputs["labels"]
    real = labels != IGNORED
    states = model.model(
        **{name: value for name, value in inputs.items() if name != "labels"}, use_cache=False
    )
    logits = torch.nn.functional.linear(states[0][real], model.get_output_embeddings().weight)
    return torch.nn.functional.cross_entropy(logits, labels[real], label_smoothing=smoothing)


def judge(
    model: Any,
    tokenizer: Any,
    rows: Sequence[dict[str, Any]],
    pairs: Pairs,
    size: int,
    collate: Callable[[list[dict[str, Any]]], dict[str, Any]],
) -> dict[str, float]:
    """BLEU of greedy translations and the mean loss of a token, both without dropout."""
    import torch

    was_training = model.training
    model.eval()
    try:
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]["input_ids"]))
        total = count = 0.0
        with torch.inference_mode():
            for first in range(0, len(order), size):
                batch = to_device(collate([rows[i] for i in order[first : first + size]]), model)
                tokens = int((batch["labels"] != IGNORED).sum())
                total += float(token_loss(model, batch, 0.0)) * tokens
                count += tokens
        few = range(min(_JUDGED_BY, len(rows)))
        outputs = _greedy(model, [tuple(rows[i]["input_ids"]) for i in few], size)
        texts = tokenizer.batch_decode(outputs, skip_special_tokens=True)
        score = bleu.corpus_score(texts, [pairs.targets[i] for i in few])
        return {"bleu": round(score, 4), "loss": total / max(1.0, count)}
    finally:
        model.train(was_training)


def _greedy(model: Any, sources: Sequence[tuple[int, ...]], size: int) -> list[tuple[int, ...]]:
    groups: dict[int, list[int]] = {}
    for place, source in enumerate(sources):
        groups.setdefault(len(source), []).append(place)
    signs = signs_of(model)
    found: list[tuple[int, ...]] = [()] * len(sources)
    limit = int(model.config.max_position_embeddings)
    for length, places in groups.items():
        for first in range(0, len(places), size):
            chosen = places[first : first + size]
            outputs = write_greedily(
                model, signs, [sources[i] for i in chosen], longest_output(length, limit - 1)
            )
            for place, output in zip(chosen, outputs, strict=True):
                found[place] = output
    return found
