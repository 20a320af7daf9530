"""Robustness where people already look: MLflow, TensorBoard, and a callback for `transformers.Trainer`."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from unfooled.core.recipe import Recipe
from unfooled.core.session import Settings
from unfooled.data.loading import Given
from unfooled.errors import UserError
from unfooled.extras import libraries_of
from unfooled.metrics.summary import Mean, Rate, Summary, summarise
from unfooled.runs.attack import attack
from unfooled.runs.file import RunFile


def numbers(summary: Summary) -> dict[str, float]:
    """The summary as flat numbers; rates with the ends of their intervals, nothing that was not measured."""
    found: dict[str, float] = {f"count_{name}": float(count) for name, count in summary.counts.items()}
    measures: dict[str, Rate | Mean] = {
        "accuracy_before": summary.accuracy_before,
        "accuracy_under_attack": summary.accuracy_under_attack,
        "macro_f1_before": summary.f1_before,
        "macro_f1_under_attack": summary.f1_under_attack,
        "success_rate": summary.success_rate,
        "words_changed": summary.words_changed,
        "perturbed_share": summary.perturbed_share,
        "queries": summary.queries,
        "similarity": summary.similarity,
    }
    if (valid := summary.accuracy_under_valid_attack) is not None:
        measures["accuracy_under_valid_attack"] = valid
    for name, measure in measures.items():
        if measure.n:
            found |= {name: measure.value, f"{name}_low": measure.low, f"{name}_high": measure.high}
    return found


def log_to_mlflow(run: Path, *, uri: str | None = None, experiment: str = "unfooled") -> str:
    """Log a run's numbers, settings and summary to MLflow; returns the id of the MLflow run."""
    with libraries_of("mlflow", "mlflow", needed_for="logging to MLflow"):
        import mlflow
    with closing(RunFile.read(run)) as file:
        summary, header = summarise(file), file.header
    try:
        if uri is not None:
            mlflow.set_tracking_uri(uri)
        mlflow.set_experiment(experiment)
    except (mlflow.exceptions.MlflowException, OSError) as error:
        raise UserError(
            f"MLflow cannot be reached at {uri or mlflow.get_tracking_uri()} ({_first_line(error)})",
            "check the address, such as sqlite:///mlflow.db or http://127.0.0.1:5000",
        ) from error
    environment = header["environment"]
    with mlflow.start_run(run_name=f"{environment['attack']} on {environment['victim']}") as logged:
        mlflow.log_params({name: str(environment[name])[:500] for name in ("attack", "victim", "data")})
        mlflow.log_metrics(numbers(summary))
        mlflow.log_dict(header, "header.json")
        mlflow.log_dict(summary.to_dict(), "summary.json")
        return str(logged.info.run_id)


def log_to_tensorboard(run: Path, folder: Path, *, step: int = 0) -> Path:
    """Write a run's numbers as scalars that TensorBoard reads."""
    with libraries_of("train", "torch", "tensorboard", needed_for="logging to TensorBoard"):
        from torch.utils.tensorboard import SummaryWriter
    with closing(RunFile.read(run)) as file:
        summary = summarise(file)
    try:
        writer = SummaryWriter(str(folder))
    except OSError as error:
        raise UserError(
            f"{folder}: TensorBoard cannot write here ({error.strerror or error})", "choose another folder"
        ) from error
    try:
        for name, value in numbers(summary).items():
            writer.add_scalar(f"unfooled/{name}", value, step)
    finally:
        writer.close()
    return folder


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def watch_robustness(
    trainer: Any,
    data: Given,
    *,
    recipe: Recipe | str = "textfooler",
    limit: int = 100,
    every: int = 1,
    seed: int = 0,
    out: Path | None = None,
) -> Any:
    """Attack the model of a `transformers.Trainer` at the end of every `every`-th epoch and log the rates.

    They go through the trainer's own log as `robustness_…`, so whatever shows the loss shows them too. The
    model is attacked in evaluation mode and given back as it was. With `out`, each run is kept as
    `out/epoch-N`. Returns the `TrainerCallback` that was added.
    """
    with libraries_of("torch", "transformers", needed_for="watching robustness while training"):
        from transformers import TrainerCallback

    class TrackingCallback(TrainerCallback):
        def on_epoch_end(self, args: Any, state: Any, control: Any, model: Any = None, **unused: Any) -> None:
            epoch = round(state.epoch or 0)
            if epoch % every:
                return
            with tempfile.TemporaryDirectory() as scratch:
                folder = (out or Path(scratch)) / f"epoch-{epoch}"
                summary = _attacked(model, trainer.processing_class, data, recipe, folder, limit, seed)
            trainer.log({f"robustness_{name}": value for name, value in numbers(summary).items()})

    watcher = TrackingCallback()
    trainer.add_callback(watcher)
    return watcher


def _attacked(
    model: Any, tokenizer: Any, data: Any, recipe: Recipe | str, folder: Path, limit: int, seed: int
) -> Summary:
    import copy

    from unfooled.victims.torch.huggingface import HuggingFaceVictim

    # A copy: wrapping a model changes its layers, and the one in training must not notice.
    victim = HuggingFaceVictim(copy.deepcopy(model).eval(), tokenizer)
    run = attack(victim, data, recipe, out=folder, limit=limit, settings=Settings(seed=seed), restart=True)
    return run.summary()
