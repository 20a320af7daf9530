"""A run that is cut into parts and joined again is the run that was never cut."""

from __future__ import annotations

import shutil
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

import unfooled
from command_line import unfooled as run_command
from reviews import sentences, write_csv
from unfooled.core.session import Settings
from unfooled.errors import DataError, RunFileError
from unfooled.runs.file import RunFile
from unfooled.runs.merge import merge
from unfooled.runs.notes import write_remark
from unfooled.runs.shard import Shard
from unfooled.runs.surrogate import FILE


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "d.csv", sentences(61))


def parts(data: Path, folder: Path, number: int, **more: object) -> list[Path]:
    made = []
    for part in range(1, number + 1):
        out = folder / f"part-{part}"
        unfooled.attack("fake", data, "deepwordbug", out=out, shard=f"{part}/{number}", **more)  # type: ignore[arg-type]
        made.append(out)
    return made


def exported(run: Path) -> bytes:
    out = run.with_suffix(".jsonl")
    unfooled.export(run, out, force=True)
    return out.read_bytes()


@pytest.mark.parametrize("rows", [0, 1, 7, 16, 100])
@pytest.mark.parametrize("number", [1, 2, 3, 16])
def test_every_row_is_in_exactly_one_part(rows: int, number: int) -> None:
    cut = [list(Shard(part, number).places(rows)) for part in range(1, number + 1)]
    assert sorted(place for part in cut for place in part) == list(range(rows))
    assert max(map(len, cut)) - min(map(len, cut)) <= 1


def test_classes_that_alternate_are_in_every_part() -> None:
    for part in (1, 2):
        classes = Counter(place % 2 for place in Shard(part, 2).places(100))
        assert classes == {0: 25, 1: 25}


@pytest.mark.parametrize("rows", [{}, {"limit": 40}, {"limit": 40, "first": True}, {"rows": 30}])
def test_joined_parts_are_the_whole_run(tmp_path: Path, data: Path, rows: dict[str, int]) -> None:
    whole = unfooled.attack("fake", data, "deepwordbug", out=tmp_path / "whole", **rows)  # type: ignore[arg-type]
    made = parts(data, tmp_path, 4, **rows)
    merged = merge([*reversed(made)], tmp_path / "joined")
    assert (merged.parts, merged.missing, merged.errors) == (4, (), 0)
    assert exported(tmp_path / "joined") == exported(tmp_path / "whole")
    with closing(RunFile.read(whole.path)) as one, closing(RunFile.read(tmp_path / "joined")) as joined:
        assert one.content_digest() == joined.content_digest()
        assert joined.missing() == 0
        # All that a reader sees of where it came from, but for the number of parts.
        told = joined.header["environment"]
        assert told.pop("merged") == 4
        seen = {name: value for name, value in one.header["environment"].items() if name != "preflight"}
        assert {name: told[name] for name in told if name != "preflight"} == seen  # which tells the speed
        assert one.counters()["victim"]["asked"] == joined.counters()["victim"]["asked"]
    assert unfooled.Run(tmp_path / "joined").summary() == whole.summary()


def test_a_joined_run_goes_on_as_a_whole_one(tmp_path: Path, data: Path) -> None:
    merge(parts(data, tmp_path, 3, limit=20), tmp_path / "joined")
    unfooled.attack("fake", data, "deepwordbug", out=tmp_path / "joined", limit=40)
    unfooled.attack("fake", data, "deepwordbug", out=tmp_path / "whole", limit=40)
    assert exported(tmp_path / "joined") == exported(tmp_path / "whole")


def test_more_parts_than_rows(tmp_path: Path) -> None:
    data = write_csv(tmp_path / "few.csv", sentences(3))
    merged = merge(parts(data, tmp_path, 5), tmp_path / "joined")
    assert (merged.rows, merged.missing) == (3, ())


def test_measures_of_the_parts_are_joined_as_well(tmp_path: Path, data: Path) -> None:
    made = parts(data, tmp_path, 2)
    for part in made:
        unfooled.measure(part, "edit-distance")
    merge(made, tmp_path / "joined")
    unfooled.attack("fake", data, "deepwordbug", out=tmp_path / "whole")
    unfooled.measure(tmp_path / "whole", "edit-distance")
    assert exported(tmp_path / "joined") == exported(tmp_path / "whole")


def test_what_does_not_belong_together_is_refused(tmp_path: Path, data: Path) -> None:
    one, two = parts(data, tmp_path / "a", 2)
    other, _ = parts(data, tmp_path / "b", 2, settings=Settings(seed=1))
    with pytest.raises(RunFileError, match=r"(?s)another run.*seed: 0 → 1"):
        merge([two, other], tmp_path / "joined")
    with pytest.raises(RunFileError, match=r"(?s)holds row \d+, and so does .*give each part once"):
        merge([one, two, one], tmp_path / "joined")
    shutil.copytree(one, tmp_path / "copy")
    with pytest.raises(RunFileError) as told:  # both are named, and no third
        merge([one, tmp_path / "copy", two], tmp_path / "joined")
    assert str(tmp_path / "copy") in str(told.value)
    assert str(one) in str(told.value)
    assert str(two) not in str(told.value)
    third = parts(data, tmp_path / "c", 3)
    with pytest.raises(RunFileError, match=r"one of 3 parts of 61 rows.*one of 2 of 61"):
        merge([one, third[1]], tmp_path / "joined")
    fewer = parts(data, tmp_path / "d", 2, limit=20)
    with pytest.raises(RunFileError, match="one of 2 parts of 20 rows"):
        merge([one, fewer[1]], tmp_path / "joined")
    unfooled.attack("fake", data, "deepwordbug", out=tmp_path / "whole")
    with pytest.raises(RunFileError, match="is no part of a run"):
        merge([one, tmp_path / "whole"], tmp_path / "joined")
    assert not (tmp_path / "joined").exists()
    with pytest.raises(RunFileError, match="is one of the parts"):
        merge([one, two], one, force=True)
    assert not list(tmp_path.glob(".merge*"))


def test_what_the_parts_fitted_is_added(tmp_path: Path, data: Path) -> None:
    made = parts(data, tmp_path, 2, surrogate="auto", surrogate_queries=300)
    merge(made, tmp_path / "joined")
    with closing(RunFile.read(made[0])) as one, closing(RunFile.read(tmp_path / "joined")) as joined:
        alone, both = one.counters()["fitting"], joined.counters()["fitting"]
    assert both["asked"] == 2 * alone["asked"]


def test_parts_that_fit_a_surrogate_each_are_the_whole_run(tmp_path: Path, data: Path) -> None:
    """All fit the same one, on answers of their own; a file that is given costs nothing more."""
    fit = {"surrogate": "auto", "surrogate_queries": 300}
    unfooled.attack("fake", data, "deepwordbug", out=tmp_path / "whole", **fit)  # type: ignore[arg-type]
    made = parts(data, tmp_path, 3, **fit)
    fitted = {(part / FILE).read_bytes() for part in (*made, tmp_path / "whole")}
    assert len(fitted) == 1
    assert merge(made, tmp_path / "joined").missing == ()
    assert exported(tmp_path / "joined") == exported(tmp_path / "whole")
    shared = str(tmp_path / "whole" / FILE)
    guided = parts(data, tmp_path / "shared", 3, surrogate=shared)
    assert not any((part / FILE).exists() for part in guided)
    merge(guided, tmp_path / "joined-shared")
    unfooled.attack("fake", data, "deepwordbug", out=tmp_path / "whole-shared", surrogate=shared)
    assert exported(tmp_path / "joined-shared") == exported(tmp_path / "whole-shared")
    with closing(RunFile.read(tmp_path / "joined-shared")) as joined:
        assert "fitting" not in joined.counters()


def test_a_folder_holds_one_part(tmp_path: Path, data: Path) -> None:
    out = tmp_path / "part"
    unfooled.attack("fake", data, "deepwordbug", out=out, shard="1/2")
    with pytest.raises(RunFileError, match=r"holds part 1 of 2 of 61 rows.*attacks part 2 of 2"):
        unfooled.attack("fake", data, "deepwordbug", out=out, shard="2/2")
    with pytest.raises(RunFileError, match="attacks part 1 of 2 of 40 rows"):
        unfooled.attack("fake", data, "deepwordbug", out=out, shard="1/2", limit=40)
    with pytest.raises(RunFileError, match="attacks a run that is not cut"):
        unfooled.attack("fake", data, "deepwordbug", out=out)


@pytest.mark.parametrize("shard", ["0/4", "5/4", "1", "a/b", "1/0", "-1/4", "1/4/4"])
def test_what_is_no_shard(tmp_path: Path, data: Path, shard: str) -> None:
    with pytest.raises(DataError, match="such as 3/16"):
        unfooled.attack("fake", data, "deepwordbug", out=tmp_path / "x", shard=shard)
    assert not (tmp_path / "x").exists()


def test_the_command_names_what_is_missing(tmp_path: Path, data: Path) -> None:
    common = ("attack", "--model", "fake", "--data", str(data), "--attack", "deepwordbug")
    for part in ("1", "3"):
        run_command(*common, "--shard", f"{part}/3", "--out", str(tmp_path / f"part-{part}"))
    with closing(RunFile.read(tmp_path / "part-3")) as file:
        header = {name: file.header[name] for name in ("identity", "environment")}
        kept = list(file.results())[:-2]
    with RunFile.open(tmp_path / "part-3", header, restart=True) as file:
        for result in kept:
            file.add(result)
    given = ("merge", *(str(tmp_path / f"part-{part}") for part in "13"), "--out", str(tmp_path / "all"))
    said = run_command(*given, code=3)
    assert "missing: part 2 of 3 is not here" in said.stderr
    assert "lacks 2 of its rows" in said.stderr
    assert "2 parts joined: 38 rows" in said.stdout
    run_command(*common, "--shard", "2/3", "--out", str(tmp_path / "part-2"))
    run_command(*common, "--shard", "3/3", "--out", str(tmp_path / "part-3"))
    again = ("merge", *(str(tmp_path / f"part-{part}") for part in "123"), "--out", str(tmp_path / "all"))
    assert "exists already" in run_command(*again, code=2).stderr
    assert "3 parts joined: 61 rows" in run_command(*again, "--force").stdout
    run_command(*common, "--out", str(tmp_path / "whole"))
    assert exported(tmp_path / "all") == exported(tmp_path / "whole")


def test_what_was_found_out_about_a_part_is_said_of_the_whole(tmp_path: Path, data: Path) -> None:
    made = parts(data, tmp_path, 2)
    for part in made:
        write_remark(part, "judge", {"variant": "small"})
    write_remark(made[0], "verdict", {"words": "of this part alone"})
    write_remark(made[1], "state", "the model remembers")
    write_remark(made[0], "looks", [30])
    merge(made, tmp_path / "joined")
    with closing(RunFile.read(tmp_path / "joined")) as file:
        remarks = {name: value for name, value in file.header.items() if name.startswith("remark:")}
    assert remarks == {"remark:judge": {"variant": "small"}, "remark:state": "the model remembers"}
