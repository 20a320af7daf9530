"""What is not here says how to get it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from unfooled.errors import ResourceError
from unfooled.resources.fillmask import open_fill_mask
from unfooled.resources.fluency import open_fluency
from unfooled.resources.neighbours import open_neighbours


@pytest.mark.parametrize(
    ("opened", "name", "message"),
    [
        (open_fluency, "smollm2", "unfooled resources get smollm2"),
        (open_fluency, "", "unfooled resources get trigram"),
        (open_fill_mask, "", "unfooled resources build masked-lm"),
        (open_fill_mask, "trigram", "unfooled resources get trigram"),
        (open_neighbours, "", "unfooled resources get counter-fitted"),
        (open_neighbours, "elsewhere", "no such file"),
        (open_neighbours, ".", "does not hold a neighbour table"),
    ],
)
def test_absent_resources_are_explained(
    opened: Callable[[str], Any], name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNFOOLED_CACHE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ResourceError, match=message):
        opened(name)
