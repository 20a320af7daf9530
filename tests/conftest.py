from __future__ import annotations

import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest

# The numbers of one thread are the numbers of every thread count; two cores are not worth the contention.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# A shell that starts the tests in the background has Ctrl-C ignored, by them and by all that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The table of docs/explanation/trust.md stands between these.
BEGIN, END = "<!-- hostile: begin -->", "<!-- hostile: end -->"
HOSTILE = "hostile"  # what a report says of the suite it belongs to
_hostile_tried: dict[str, dict[str, int]] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--runslow", action="store_true", help="also run the tests marked slow")
    parser.addoption(
        "--stand-in-device", action="store_true", help="torch models compute on a stand-in for a GPU"
    )
    parser.addoption("--trust-table", type=Path, help="page whose table of hostile cases is written anew")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--stand-in-device"):
        import stand_in

        stand_in.install()
        start = Path(stand_in.__file__).parent / "stand_in_start"
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(start), os.environ.get("PYTHONPATH")]))


@pytest.fixture(autouse=True)
def one_device(request: pytest.FixtureRequest) -> Generator[None]:
    """With --stand-in-device: all models are there, and a test in which devices met has failed."""
    if not request.config.getoption("--stand-in-device"):
        yield
        return
    import stand_in
    from unfooled.device import computing

    stand_in.mixed.clear()
    with computing(f"{stand_in.NAME}:0"):
        yield
    assert not stand_in.mixed


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--stand-in-device"):
        digits = pytest.mark.skip(
            reason="the stand-in takes other ways through torch, with other last digits"
        )
        for item in items:
            if "processor_only" in item.keywords:
                item.add_marker(digits)
    if not config.getoption("--runslow"):
        skip = pytest.mark.skip(reason="slow; run with --runslow")
        for item in items:
            if "slow" in item.keywords:
                item.add_marker(skip)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    mark = item.get_closest_marker("hostile")
    if mark is not None:
        report.user_properties.append((HOSTILE, mark.args[0]))
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Counted where all reports arrive: with several processes, that is not where tests run."""
    suite = dict(report.user_properties).get(HOSTILE)
    if suite is not None and (report.when == "call" or not report.passed):
        counts = _hostile_tried.setdefault(str(suite), {"passed": 0, "failed": 0, "skipped": 0})
        counts[report.outcome] += 1


def pytest_sessionfinish(session: pytest.Session) -> None:
    page: Path | None = session.config.getoption("--trust-table")
    if page is None or not _hostile_tried or hasattr(session.config, "workerinput"):
        return
    rows = ["| what was attacked | tried | failed | not run here |", "|---|---|---|---|"]
    for suite, counts in sorted(_hostile_tried.items()):
        ran = counts["passed"] + counts["failed"]
        rows.append(f"| {suite} | {ran:,} | {counts['failed']} | {counts['skipped']} |")
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text(f"{before}{BEGIN}\n{chr(10).join(rows)}\n{END}{after}", encoding="utf-8")


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
