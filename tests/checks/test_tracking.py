"""Robustness in TensorBoard, in MLflow and in a trainer's log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reviews import sentences
from stored_runs import made, stored
from tiny_models import tiny
from unfooled.checks.tracking import log_to_mlflow, log_to_tensorboard, watch_robustness
from unfooled.errors import UserError


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return stored(
        tmp_path / "r", [made(i, "success" if i < 3 else "failure", f"great {i}") for i in range(4)]
    )


def test_tensorboard_reads_the_numbers(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    log_to_tensorboard(run, tmp_path / "logs", step=7)
    events = EventAccumulator(str(tmp_path / "logs"))
    events.Reload()
    (found,) = events.Scalars("unfooled/success_rate")
    assert (found.step, found.value) == (7, 0.75)
    assert "unfooled/macro_f1_under_attack" in events.Tags()["scalars"]
    assert "unfooled/success_rate_low" in events.Tags()["scalars"]


# SQLAlchemy tells MLflow, not us, what will go.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_mlflow_keeps_numbers_and_settings(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")
    monkeypatch.chdir(tmp_path)  # it makes a folder for artifacts where it stands
    uri = f"sqlite:///{tmp_path / 'm.db'}"
    logged = mlflow.get_run(log_to_mlflow(run, uri=uri))
    assert logged.data.metrics["accuracy_under_attack"] == 0.25
    assert logged.data.params["attack"] == "made@1"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_places_that_take_no_logs_are_named(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("mlflow", reason="mlflow is not installed")
    with pytest.raises(UserError, match="MLflow cannot be reached at nonsense://x"):
        log_to_mlflow(run, uri="nonsense://x")
    pytest.importorskip("tensorboard")
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match="TensorBoard cannot write here"):
        log_to_tensorboard(run, tmp_path / "file" / "logs")


def test_a_trainer_logs_robustness_after_each_epoch(tmp_path: Path) -> None:
    transformers: Any = pytest.importorskip("transformers")
    victim = tiny("bert", classes=2)
    model, tokenizer = victim.model, victim.tokenizer
    rows = [(text, int(label == "positive")) for text, label in sentences(12)]
    data = [{**tokenizer(text, truncation=True, max_length=16), "labels": label} for text, label in rows]
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path), num_train_epochs=2, per_device_train_batch_size=6, report_to=[],
        save_strategy="no", disable_tqdm=True, logging_strategy="no", use_cpu=True,
    )  # fmt: skip
    trainer = transformers.Trainer(
        model=model, args=arguments, train_dataset=data, processing_class=tokenizer,
        data_collator=transformers.DataCollatorWithPadding(tokenizer),
    )  # fmt: skip
    watch_robustness(trainer, rows, recipe="deepwordbug", limit=5, out=tmp_path)
    trainer.train()
    logged = [entry for entry in trainer.state.log_history if "robustness_accuracy_before" in entry]
    assert [entry["epoch"] for entry in logged] == [1.0, 2.0]
    assert (tmp_path / "epoch-2" / "run.sqlite").is_file()
    assert all(p.requires_grad for p in model.parameters())
