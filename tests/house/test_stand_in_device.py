"""Torch tests once more, with every model on a stand-in for a GPU: no tensor is made on another device."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
# One of each kind of model that is called; `pytest --stand-in-device tests/victims` and so on runs all.
FEW = {
    "victims/test_devices.py": "stand_in or sent or memory or halves or same_as",
    "victims/test_whitebox.py": "plain_loop or attention",
    "resources/test_fillmask.py": "answer or window",
    "translation/test_translation_models.py": "greed or beam or teacher",
}


@pytest.mark.parametrize("file", FEW)
def test_torch_tests_on_a_stand_in_device(file: str) -> None:
    pytest.importorskip("torch")
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "-p", "no:cacheprovider", "--tb=short"]
    command += ["--stand-in-device", str(TESTS / file), "-k", FEW[file]]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=1500, cwd=TESTS.parent)
    assert ran.returncode == 0, ran.stdout[-4000:]
