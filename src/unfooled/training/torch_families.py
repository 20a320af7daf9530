"""Neural families, trained with the `Trainer` of transformers and saved with safetensors."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unfooled.device import CPU, resolved
from unfooled.errors import DataError, UserError
from unfooled.extras import libraries_of
from unfooled.files import write_json
from unfooled.rates import scores
from unfooled.training import record
from unfooled.training.batches import add_extras, features_of, loader_of, pad
from unfooled.training.course import weighted_loss
from unfooled.training.families import Value
from unfooled.training.networks import Maker, find_body, find_vectors
from unfooled.training.observer import TrainObserver
from unfooled.training.trainer import ClassifierFamily, Fitting
from unfooled.victims.torch.quiet import quiet

MEMORY = 6e9  # bytes that the activations of one backward pass may take, by estimate
JUDGED = ("accuracy", "macro_f1", "loss")  # what validation measures; the first decides which epoch is kept


@dataclass(frozen=True, kw_only=True)
class TorchFamily(ClassifierFamily):
    """`make` gives the model before its first step and its tokenizer; `schedule` is that of the rate."""

    make: Maker
    schedule: str = "constant_with_warmup"

    def require(self) -> None:
        require(self.name)

    def fit(self, given: Fitting) -> dict[str, Any]:
        return _fit(self, given)

    def resolve(self, options: dict[str, Value], observer: TrainObserver) -> dict[str, Value]:
        if "vectors" in options:
            options["vectors"] = find_vectors(str(options["vectors"]), observer)
        if "body" in options:
            find_body(str(options["body"]))
        return options


def _fit(family: TorchFamily, given: Fitting) -> dict[str, Any]:
    """Train, keep the best epoch, write the model to `out`; returns the metrics.

    A checkpoint is written after each epoch, and training goes on from the last whole one. The order of the
    batches follows from the seed and the epoch alone, and the checkpoint holds the state of the random
    numbers, so a training that was stopped ends with the same weights on the same machine.
    """
    import transformers

    options, data, out = given.options, given.data, given.out
    if data.fields > 2:
        raise DataError(
            f"{family.name} reads one text or a pair, but the data has {data.fields} text columns",
            "choose one or two with --text-column",
        )
    with quiet():
        transformers.set_seed(int(options["seed"]))
        model, tokenizer = given.course.make(family, options, data, given.observer)
        checkpoint = last_checkpoint(out / record.CHECKPOINTS)
        if checkpoint:
            at_home(checkpoint)
        if checkpoint and (state := stopped_at(transformers, checkpoint, options)):
            # Only the saving was left to do; one more step would make another model of it.
            best = state.best_model_checkpoint or checkpoint
            save_model(read_checkpoint(model, best), tokenizer, out)
            return metrics_of(state, options)
        trainer = _trainer(transformers, family, given, model, tokenizer)
        try:
            trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        except (RuntimeError, MemoryError) as error:
            if not isinstance(error, MemoryError) and "alloc" not in str(error).lower():
                raise
            raise UserError(
                f"not enough memory for {options['batch']} texts of {tokenizer.model_max_length} tokens",
                "lower --batch or --max-length",
            ) from error
        metrics = metrics_of(trainer.state, options)
        save_model(trainer.model, tokenizer, out)
    return metrics


def read_checkpoint(model: Any, folder: str | Path) -> Any:
    """A model of the same class with the weights of a checkpoint."""
    return type(model).from_pretrained(folder, local_files_only=True, use_safetensors=True)


def require(name: str) -> None:
    """Load the libraries, so that their loading is no part of the training time."""
    with libraries_of("train", "accelerate", "torch", "transformers", needed_for=f"training {name}"):
        import accelerate  # type: ignore[import-untyped]  # noqa: F401
        import torch  # noqa: F401
        import transformers  # noqa: F401
        from transformers import Trainer  # noqa: F401


def last_checkpoint(folder: Path) -> Path | None:
    """The newest checkpoint that was written to its end: the state file comes last."""
    whole = []
    for path in folder.glob("checkpoint-*"):
        try:
            json.loads((path / "trainer_state.json").read_text(encoding="utf-8"))
            whole.append((int(path.name.rpartition("-")[2]), path))
        except (OSError, ValueError):
            continue
    return max(whole)[1] if whole else None


def at_home(checkpoint: Path) -> None:
    """Point at the best checkpoint beside this one: the folder may have been moved since."""
    file = checkpoint / "trainer_state.json"
    state = json.loads(file.read_text(encoding="utf-8"))
    best = state.get("best_model_checkpoint")
    if best and Path(best).parent != checkpoint.parent:
        state["best_model_checkpoint"] = str(checkpoint.parent / Path(best).name)
        write_json(file, state)


def micro_batch(batch: int, longest: int, config: Any, copies: int = 0) -> tuple[int, int]:
    """Rows per backward pass and passes per optimiser step, so that activations fit into memory.

    Each row is read with up to `copies` texts that were added to it.
    """
    layers = getattr(config, "num_hidden_layers", None) or getattr(config, "layers", None) or 1
    width = max(getattr(config, "hidden_size", None) or 0, getattr(config, "embedding_size", None) or 0, 64)
    # About forty numbers per unit are kept for the way back; attention adds a square for each head.
    heads = getattr(config, "num_attention_heads", None) or 0
    per_text = 4.0 * layers * longest * (40 * width + 4 * heads * longest)
    most = max(1, min(batch, int(MEMORY // (per_text * (1 + copies)))))
    passes = math.ceil(batch / most)
    return math.ceil(batch / passes), passes


def arguments_on_device(transformers: Any, **settings: Any) -> Any:
    """Arguments of a training on the device that was chosen; the library would take every GPU there is."""
    import torch

    device = torch.device(resolved())
    arguments = transformers.TrainingArguments(use_cpu=device.type == CPU, **settings)
    if device.type != CPU:
        arguments.distributed_state.device = device
        vars(arguments).update(_setup_devices=device, _n_gpu=1)
    return arguments


def reporting(steps: int) -> dict[str, Any]:
    """What any training of ours asks of transformers: notes twenty times per epoch, rows as we made them."""
    return {
        "logging_steps": max(1, steps // 20),
        "report_to": "none",
        "disable_tqdm": True,
        "dataloader_pin_memory": False,
        "remove_unused_columns": False,
        "label_names": ["labels"],
    }


def _trainer(transformers: Any, family: TorchFamily, given: Fitting, model: Any, tokenizer: Any) -> Any:
    options, data, course = given.options, given.data, given.course
    train = features_of(tokenizer, data.train)
    valid = features_of(tokenizer, data.valid)
    # Sorted once: validation then pads next to nothing.
    valid.sort(key=lambda row: len(row["input_ids"]))
    size, passes = micro_batch(
        int(options["batch"]), max(len(row["input_ids"]) for row in train), model.config, course.copies
    )
    epochs, classes = int(options["epochs"]), len(data.labels)
    steps = math.ceil(math.ceil(len(train) / size) / passes)
    judged = bool(valid)
    choosing = judged and options.get("keep") != "last"
    arguments = arguments_on_device(
        transformers,
        output_dir=str(given.out / record.CHECKPOINTS),
        num_train_epochs=epochs,
        per_device_train_batch_size=size,
        per_device_eval_batch_size=max(size, 32),
        gradient_accumulation_steps=passes,
        learning_rate=float(options["lr"]),
        weight_decay=float(options["decay"]),
        warmup_steps=int(float(options["warmup"]) * steps * epochs),
        lr_scheduler_type=family.schedule,
        eval_strategy="epoch" if judged else "no",
        save_strategy="epoch",
        save_total_limit=2 if choosing else 1,
        load_best_model_at_end=choosing,
        metric_for_best_model="accuracy" if choosing else None,
        greater_is_better=True if choosing else None,
        seed=int(options["seed"]),
        **reporting(steps),
    )
    padding = tokenizer.pad_token_id or 0

    def collate(rows: list[dict[str, Any]]) -> dict[str, Any]:
        return pad(rows, padding)

    def refresh(epoch: int) -> None:
        if course.copies:
            add_extras(train, course.extras(epoch, model, tokenizer), tokenizer)

    class LengthTrainer(transformers.Trainer):  # type: ignore[misc]
        def get_train_dataloader(self) -> Any:
            return loader_of(train, size, int(options["seed"]), collate, refresh)

        def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> Any:
            loss = course.step(self, model, inputs)
            return super().training_step(model, inputs, num_items_in_batch) if loss is None else loss

        def compute_loss(self, model: Any, inputs: Any, *args: Any, **more: Any) -> Any:
            if "weights" in inputs:
                return weighted_loss(model, inputs, 1 + course.copies)
            return super().compute_loss(model, inputs, *args, **more)

    trainer = LengthTrainer(
        model=model,
        args=arguments,
        train_dataset=train,
        eval_dataset=valid or None,
        data_collator=collate,
        compute_metrics=lambda answer: scores(answer.label_ids, answer.predictions.argmax(axis=-1), classes),
        preprocess_logits_for_metrics=lambda logits, _: logits[0] if isinstance(logits, tuple) else logits,
        callbacks=[
            watch(
                transformers,
                given.out,
                int(options.get("patience", epochs)),
                given.observer,
                given.remember,
            )
        ],
    )
    trainer.remove_callback(transformers.trainer_callback.PrinterCallback)
    # Our models take any keyword but scale no loss: the Trainer has to divide by the passes itself.
    trainer.model_accepts_loss_kwargs = False
    return trainer


def watch(
    transformers: Any,
    out: Path,
    patience: int,
    observer: TrainObserver,
    remember: Callable[[], None],
    judged: Sequence[str] = JUDGED,
) -> Any:
    """The callback that goes along with a training."""

    class Watch(transformers.TrainerCallback):  # type: ignore[misc]
        """Tells the observer, writes for TensorBoard, and stops early."""

        writer: Any = None

        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            observer.started(state.max_steps, state.global_step)
            self.writer = _writer(out / record.LOGS, state.global_step, observer)

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            observer.step(state.global_step, None)

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            if "loss" in (logs or {}):
                observer.step(state.global_step, float(logs["loss"]))
            if self.writer is not None:
                for name, value in (logs or {}).items():
                    if isinstance(value, int | float):
                        kind = "valid" if name.startswith("eval_") else "train"
                        self.writer.add_scalar(
                            f"{kind}/{name.removeprefix('eval_')}", value, state.global_step
                        )

        def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **_: Any) -> None:
            if _without_gain(state, judged[0]) >= patience:
                control.should_training_stop = True
            shown = {name: float(metrics[f"eval_{name}"]) for name in judged}
            observer.evaluated(round(state.epoch or 0), shown)

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            remember()

        def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if self.writer is not None:
                self.writer.close()

    return Watch()


def _writer(folder: Path, step: int, observer: TrainObserver) -> Any:
    try:
        with libraries_of("train", "tensorboard", needed_for="logging to TensorBoard"):
            from torch.utils.tensorboard import SummaryWriter
    except UserError as error:
        observer.note(f"no logs for TensorBoard are written: {error.cause}; {error.remedy}")
        return None
    # Steps behind the checkpoint are computed again; what was logged of them is hidden.
    return SummaryWriter(log_dir=str(folder), purge_step=step + 1 if step else None)


def _without_gain(state: Any, best: str) -> int:
    """Epochs since the best; from the history, which checkpoints keep, so that going on counts the same."""
    seen = [entry[f"eval_{best}"] for entry in state.log_history if f"eval_{best}" in entry]
    return len(seen) - 1 - seen.index(max(seen)) if seen else 0


def stopped_at(
    transformers: Any, checkpoint: Path, options: Mapping[str, Value], judged: Sequence[str] = JUDGED
) -> Any:
    """The state in a checkpoint that was the last one, or None."""
    state = transformers.TrainerState.load_from_json(str(checkpoint / "trainer_state.json"))
    patience = int(options.get("patience", options["epochs"]))
    over = state.global_step >= state.max_steps or _without_gain(state, judged[0]) >= patience
    return state if over else None


def metrics_of(state: Any, options: Mapping[str, Value], judged: Sequence[str] = JUDGED) -> dict[str, Any]:
    """What the record of a training keeps: the best epoch and all of them."""
    history = [
        {"epoch": round(entry["epoch"]), **{name: entry[f"eval_{name}"] for name in judged}}
        for entry in state.log_history
        if f"eval_{judged[0]}" in entry
    ]
    found: dict[str, Any] = {"epochs": math.ceil(state.epoch or 0), "steps": state.global_step}
    if history:
        # The first of equals, as the Trainer keeps.
        best = (
            history[-1] if options.get("keep") == "last" else max(history, key=lambda epoch: epoch[judged[0]])
        )
        found["best_epoch"] = best["epoch"]
        found["valid"] = {name: best[name] for name in judged}
        found["history"] = history
    return found


def save_model(model: Any, tokenizer: Any, out: Path) -> None:
    import torch

    if not all(bool(torch.isfinite(weights).all()) for weights in model.parameters()):
        raise UserError("the training diverged: some weights are no numbers any more", "lower --lr")
    final = out / record.CHECKPOINTS / "final"
    shutil.rmtree(final, ignore_errors=True)
    model.save_pretrained(final)
    tokenizer.save_pretrained(final)
    record.move_in(final, out)
    shutil.rmtree(out / record.CHECKPOINTS)
