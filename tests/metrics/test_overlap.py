"""Several runs over the same examples, against counting by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stored_runs import made as told
from stored_runs import made_with_scores as made
from stored_runs import stored
from unfooled.checks.transfer import Moved, Transfer
from unfooled.metrics.columns import ResultColumns
from unfooled.metrics.overlap import bae_splits, by_attack, differences, overlap
from unfooled.report.html import write_html
from unfooled.runs.notes import write_remark


def run(broken: str, *, wrong: str = "", queries: int = 10, changed: int = 1) -> ResultColumns:
    """Examples 0 … 7; the digits in `broken` fall, those in `wrong` were wrong from the start."""
    results = []
    for key in range(8):
        if str(key) in wrong:
            results.append(made(key, "skipped", before=0.1, after=0.1))
        elif str(key) in broken:
            results.append(made(key, "success", after=0.1, changed=changed, queries=queries))
        else:
            results.append(made(key, "failure", queries=queries))
    return ResultColumns.read(results)


def test_splits_of_the_bae_paper() -> None:
    found = overlap({"r": run("012", wrong="7"), "i": run("0345", wrong="7"), "e": run("012346", wrong="7")})
    assert found is not None
    assert found.n == 7
    splits = bae_splits(found, "r", "i", "e")
    # R/I breaks 0 1 2 3 4 6. A, without R's: 3 4 6. B, without I's: 1 2 6. C, without both: 6.
    assert {name: round(rate.value * rate.n) for name, rate in splits.items()} == {"A": 3, "B": 3, "C": 1}
    assert found.groups() == [
        (("i", "e"), 2),  # 3 4
        (("r", "e"), 2),  # 1 2
        (("e",), 1),
        (("i",), 1),
        (("r", "i", "e"), 1),
    ]


def test_what_none_breaks_comes_last() -> None:
    found = overlap({"a": run("0"), "b": run("0")})
    assert found is not None
    assert found.groups() == [(("a", "b"), 1), ((), 7)]


def test_no_common_example() -> None:
    assert overlap({"a": run("0", wrong="4567"), "b": run("0", wrong="0123")}) is None


def test_differences_are_paired() -> None:
    first, other = run("0123", queries=10, changed=1), run("23", wrong="7", queries=25, changed=3)
    found = {difference.name: difference for difference in differences(first, other)}
    # First stands on 4 5 6 7, other on 0 1 4 5 6: three differ, so (+1 +1 -1) / 8.
    standing = found["accuracy under attack"]
    assert standing.value == pytest.approx(1 / 8)
    assert (standing.n, standing.p) == (8, 1.0)
    # Attacked by both: 0 … 6. Broken only by the first: 0 1.
    assert found["broken"].value == pytest.approx(-2 / 7)
    assert found["broken"].n == 7
    assert found["broken"].p == pytest.approx(2 * 0.25)
    assert (found["queries"].value, found["queries"].n) == (15.0, 7)
    words = found["words changed, where both broke it"]
    assert (words.value, words.low, words.high, words.n) == (2.0, 2.0, 2.0, 2)


def test_the_three_modes_are_found_by_name() -> None:
    names = ["bae-i@paper", "textfooler@paper", "bae-r-or-i@paper", "bae-r@cosine"]
    assert by_attack(names) == {"bae-r": 3, "bae-i": 0, "bae-r-or-i": 2}
    assert by_attack(names[:3]) is None
    assert by_attack([*names, "bae-r@paper"]) is None


def test_the_page_shows_what_carries_over_and_the_verdict_on_the_defence(tmp_path: Path) -> None:
    path = stored(tmp_path / "r", [told(key, "success", f"great film {key}") for key in range(6)])
    folder = path / "transfer"
    folder.mkdir()
    moved = [Moved(key, "positive", "positive", "negative" if key < 3 else "positive", 0.9, 0.4, "negative")
             for key in range(6)]  # fmt: skip
    found = Transfer("r", "d", "made@1", "rows", "toy", "the <other> model", "f", tuple(moved))
    (folder / "other.json").write_text(json.dumps(found.to_dict()))
    verdict = {"verdict": "partly an <illusion>", "findings": ["3 points vanish"], "notes": ["n is small"]}
    write_remark(path, "verdict", verdict)
    page = write_html([path], tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Texts that also fool other models" in page
    assert "<td>the &lt;other&gt; model</td><td>50.0%</td>" in page
    assert "partly an &lt;illusion&gt;" in page
    assert "<li>3 points vanish</li><li>n is small</li>" in page


def test_the_page_compares_runs(tmp_path: Path) -> None:
    broken = {"r": (0, 1), "i": (2,), "either": (0, 1, 2, 3)}
    attacks = {"r": "bae-r@paper", "i": "bae-i@paper", "either": "bae-r-or-i@paper"}
    runs = [
        stored(
            tmp_path / name,
            [told(key, "success" if key in keys else "failure", f"great film {key}") for key in range(6)],
            attack=attacks[name],
        )
        for name, keys in broken.items()
    ]
    page = write_html(runs, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "the splits A, B and C" in page
    for split, meaning, count in (("A", "insertion", 2), ("B", "replacement", 3), ("C", "both", 1)):
        line = page.split(f"<td>{split}</td>")[1].split("</tr>")[0]
        assert meaning in line
        assert f"<td>{count}</td>" in line
    assert "What changes against r" in page
    assert "Which runs break which examples" in page
