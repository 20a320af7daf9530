from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

# The numbers of one thread are the numbers of every thread count; two cores are not worth the contention.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# A shell that starts the tests in the background has Ctrl-C ignored, by them and by all that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--runslow", action="store_true", help="also run the tests marked slow")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--runslow"):
        skip = pytest.mark.skip(reason="slow; run with --runslow")
        for item in items:
            if "slow" in item.keywords:
                item.add_marker(skip)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the user's settings, and no test may reach a hub."""
    for name in list(os.environ):
        if name.startswith("UNFOOLED_") and name not in {"UNFOOLED_CACHE", "UNFOOLED_DATA"}:
            monkeypatch.delenv(name)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets, where there is one."""
    given = os.environ.get("UNFOOLED_DATA", "")
    folder = Path(given) if given else Path(__file__).parents[2] / "shared" / "data"
    if not (folder / "mr").is_dir():
        pytest.skip("real data sets are not here; set UNFOOLED_DATA")
    return folder
