"""Victims in another runtime: the same answers in any company, and only what such a copy can give."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

from tiny_models import tiny
from unfooled.errors import VictimError
from unfooled.victims.loading import load_victim
from unfooled.victims.torch.compiled import BACKENDS, CompiledVictim, available, compiled

pytest.importorskip("torch")
pytest.importorskip("onnxruntime", reason="needs the extra unfooled[onnx]")
pytest.importorskip("onnxscript", reason="needs the extra unfooled[onnx]")

TEXTS = ["a film", "the film is good and very long and good", "bad", "a dull plot , bad cast", "", "very good"]


@pytest.fixture(scope="module")
def copies() -> dict[str, CompiledVictim]:
    return compiled(tiny("bert", positions=40), *available())


@pytest.mark.parametrize("backend", BACKENDS[1:])
def test_a_copy_answers_as_the_original(copies: dict[str, CompiledVictim], backend: str) -> None:
    if backend not in copies:
        pytest.skip(f"needs the extra unfooled[{backend}]")
    copy = copies[backend]
    expected = copy.original.raw_logits(TEXTS)
    near = 0.2 if backend.endswith("8bit") else 1e-4
    assert np.abs(copy.raw_logits(TEXTS) - expected).max() < near * np.abs(expected).max()
    assert np.allclose(copy.predict(TEXTS).sum(axis=1), 1)


@pytest.mark.parametrize("backend", BACKENDS[1:])
def test_a_text_has_the_same_scores_in_any_company(copies: dict[str, CompiledVictim], backend: str) -> None:
    if backend not in copies:
        pytest.skip(f"needs the extra unfooled[{backend}]")
    copy = copies[backend]
    together = copy.predict([*TEXTS, *(f"{text} film" for text in TEXTS)])[: len(TEXTS)]
    alone = np.concatenate([copy.predict([text]) for text in TEXTS])
    assert np.abs(together - alone).max() < 5e-7  # scores are rounded to six digits


def test_a_copy_is_another_model_and_says_what_it_gives(copies: dict[str, CompiledVictim]) -> None:
    copy = copies["onnx"]
    assert copy.capabilities == {"probabilities"}
    assert copy.fingerprint() not in (copy.original.fingerprint(), copies["onnx-8bit"].fingerprint())
    assert copy.labels == copy.original.labels
    assert copy.meter is copy.original.meter
    assert not hasattr(copy, "slopes")


def test_models_of_other_kinds_are_exported_or_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        copy = compiled(tiny("roberta", positions=40), "onnx")["onnx"]
    assert np.allclose(copy.predict(TEXTS), copy.original.predict(TEXTS), atol=1e-4)
    assert not caplog.records


def test_a_model_that_cannot_be_exported_is_told(tmp_path: Path) -> None:
    victim = tiny("bert", positions=40)
    ordinary = victim.model.forward

    def strange(*args: object, **kwargs: object) -> object:
        if "input_ids" in kwargs and kwargs["input_ids"].sum().item() < 0:  # type: ignore[attr-defined]
            raise RuntimeError
        return ordinary(*args, **kwargs)

    victim.model.forward = strange
    with pytest.raises(VictimError, match=r"cannot be exported(.|\n)*leave --backend out"):
        compiled(victim, "onnx")


def test_an_unknown_backend_names_those_that_are_known() -> None:
    with pytest.raises(VictimError, match="torch, onnx, onnx-8bit, openvino"):
        compiled(tiny("bert"), "tensorrt")


def test_a_folder_is_loaded_with_its_backend(tmp_path: Path) -> None:
    victim = tiny("bert", positions=40)
    victim.model.save_pretrained(tmp_path)
    victim.tokenizer.save_pretrained(tmp_path)
    copy = load_victim(str(tmp_path), backend="onnx")
    assert isinstance(copy, CompiledVictim)
    again = load_victim(copy.spec, **copy.options)
    assert again.fingerprint() == copy.fingerprint()
    assert np.array_equal(again.predict(TEXTS), copy.predict(TEXTS))
