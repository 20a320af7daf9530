"""Plans fit together; pages have the papers' tables beside ours; mistakes are said at once."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from toy_plan import REVIEWS, Seen
from unfooled.cli.app import app, main
from unfooled.defenses.methods import TRAINING, all_methods
from unfooled.defenses.settings import settle as settle_method
from unfooled.errors import ResourceError, UnknownNameError, UserError
from unfooled.papers.claims import STATUSES
from unfooled.papers.document import Block, Bullets, Grid, Heading, Paragraph, to_html, to_markdown
from unfooled.papers.findings import (
    Findings,
)
from unfooled.papers.paper import SCALES
from unfooled.papers.plans import NAMES, find_paper
from unfooled.papers.reproduce import SUMMARY, check, reproduce, write_summary
from unfooled.papers.runner import StageRunner
from unfooled.papers.stages import (
    AttackStage,
    FixtureStage,
    HardenStage,
    Rows,
    TrainStage,
    in_order,
    settings,
)
from unfooled.training.families import find_family, settle

# -- papers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", SCALES)
def test_plans_fit_together(name: str, scale: Any) -> None:
    """Every setting of every plan is known to what it is a setting of; nothing is run or downloaded."""
    paper = find_paper(name)
    made = paper.plan(scale)
    stages = {stage.name: stage for stage in in_order(made.stages)}
    assert made.settings
    assert made.differs
    runner = StageRunner(Path("nowhere"))
    for stage in stages.values():
        if isinstance(stage, TrainStage):
            settle(find_family(stage.family), dict(stage.options))
        elif isinstance(stage, HardenStage):
            known = {**TRAINING, **all_methods()[stage.method].defaults}
            settle_method(known, dict(stage.options), stage.method)
        elif isinstance(stage, AttackStage):
            plain = [(key, value) for key, value in stage.changes if not str(value).startswith("{")]
            runner.recipe(replace(stage, changes=tuple(plain), everywhere=()))
    assert len({claim.name for claim in paper.claims}) == len(paper.claims)
    if scale != "smoke":
        missing = {
            stage
            for claim in paper.claims
            if not claim.needs
            for quantity in claim.rule.quantities()
            for stage in quantity.stages()
        } - set(stages)
        assert not missing


def test_the_full_protocol_of_firebert_runs_on_a_stand_in(tmp_path: Path) -> None:
    """BERT-base becomes a tiny body of the same kind, MNLI a few made-up pairs; all other settings stay."""
    pytest.importorskip("torch")
    pytest.importorskip("accelerate")
    made = {stage.name: stage for stage in find_paper("firebert").plan("paper").stages}
    rows = Rows(source="{pairs}", split="train", text=("premise", "hypothesis"), limit=24)
    light: dict[str, Any] = {"similarity": "none", "pos": False, "table": "{table}"}

    def small(stage: Any) -> Any:
        options = dict(stage.options)
        options |= {"epochs": 1}
        if isinstance(stage, TrainStage):
            options |= {"body": "{masked-lm}", "max_length": 32}
        elif stage.method == "fact":
            options |= light
        return replace(stage, data=rows, options=tuple(options.items()))

    five: Any = made["five-attack"]
    fuse: Any = made["fuse-attack"]
    attacks = [
        replace(
            stage,
            data=replace(rows, split="test"),
            attack=f"smoke:{stage.attack}",
            everywhere=settings(table="{table}"),
            limit=2,
            model=replace(stage.model, options=tuple((dict(stage.model.options) | changes).items())),
        )
        for stage, changes in ((five, {}), (fuse, light))
    ]
    fixtures = [FixtureStage(name=name, what=name) for name in ("pairs", "table", "masked-lm")]
    trained = [small(made[name]) for name in ("base", "retuned", "fact")]
    done = StageRunner(tmp_path).carry_out([*fixtures, *trained, *attacks])
    found = Findings(done)
    assert len(found.results("five-attack")) == len(found.results("fuse-attack")) == 2
    assert found.errors("five-attack") == 0
    record = json.loads((done["fact"].folder / "model" / "training.json").read_text(encoding="utf-8"))
    assert record["options"]["start"] == "body"
    assert (record["options"]["words"], record["options"]["batch"]) == (9, 7)


def test_smoke_texts_are_the_same_every_time(tmp_path: Path) -> None:
    first = StageRunner(tmp_path / "a").carry_out([REVIEWS])["reviews"].folder
    second = StageRunner(tmp_path / "b").carry_out([REVIEWS])["reviews"].folder
    files = sorted(path.relative_to(first) for path in first.rglob("*.gz"))
    assert len(files) == 2
    assert all((first / file).read_bytes() == (second / file).read_bytes() for file in files)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All papers at the smoke scale, by the command."""
    for library in ("torch", "sklearn", "accelerate", "matplotlib"):
        pytest.importorskip(library)
    root = tmp_path_factory.mktemp("smoke")
    arguments = ["reproduce", "all", "--scale", "smoke", "--work", str(root / "work"), "--json"]
    arguments += ["--out", str(root / "out")]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, (done.output, done.exception)
    assert [page["paper"] for page in json.loads(done.stdout)] == list(NAMES)
    return root


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "img"):
            self.open.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_its_parts(pages: Path, name: str) -> None:
    paper = find_paper(name)
    text = (pages / "out" / f"{name}.md").read_text(encoding="utf-8")
    for heading in ("## Claims", "## Settings", "## Why numbers differ", "## What was run"):
        assert heading in text
    assert text.count("| claim | paper | measured | judgement | Holm | stands on |") == 1
    assert " steps | `" in text  # how far trainings went
    for claim in paper.claims:
        assert claim.sentence.replace("|", "\\|") in text
    for table in paper.tables:
        block = text[text.index(f"## {table.title}") :]
        rows = [line for line in block.splitlines() if line.startswith("|")][: 2 + len(table.rows)]
        assert all(len(line.replace("\\|", "").split("|")) == len(table.columns) + 3 for line in rows)
        for (row, cells), line in zip(table.rows, rows[2:], strict=True):
            assert line.startswith(f"| {row} |")
            assert all(cell.paper in line for cell in cells)
    told = json.loads((pages / "out" / f"{name}.json").read_text(encoding="utf-8"))
    assert {claim["judgement"] for claim in told["claims"]} <= set(STATUSES)
    assert sum(claim["judgement"] != "not measured" for claim in told["claims"]) >= len(paper.claims) / 2
    parsed = Tags()
    parsed.feed((pages / "out" / f"{name}.html").read_text(encoding="utf-8"))
    assert parsed.open == []
    assert all(link.startswith("data:image/svg+xml;base64,") for link in parsed.links)
    assert len(parsed.links) >= 1


def test_the_summary_lists_every_claim(pages: Path) -> None:
    text = (pages / "out" / SUMMARY).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("| [")]
    assert len(lines) == sum(len(find_paper(name).claims) for name in NAMES)
    assert "| [firebert](firebert.md): FACT keeps" in text


def test_the_same_command_again_only_writes(pages: Path) -> None:
    before = (pages / "out" / "lstm-jsma.md").read_bytes()
    seen = Seen()
    reproduce("lstm-jsma", scale="smoke", work=pages / "work", out=pages / "out", watcher=seen)
    assert seen.done == []
    assert (pages / "out" / "lstm-jsma.md").read_bytes() == before


def test_markup_in_texts_stays_text(tmp_path: Path) -> None:
    blocks: list[Block] = [
        Heading("a <b>", 1),
        Paragraph("`code` and **bold** <script>alert(1)</script>"),
        Bullets(["one & two"]),
        Grid(("x", "y"), [("1 | 2", "holds")]),
    ]
    html = to_html(blocks, "t")
    assert "<script>" not in html
    assert "<code>code</code> and <strong>bold</strong>" in html
    assert '<td class="holds">holds</td>' in html
    assert "| 1 \\| 2 | holds |" in to_markdown(blocks, tmp_path)


# -- mistakes --------------------------------------------------------------------------------------------


def test_unknown_names_are_said(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="firebirt"):
        reproduce("firebirt", out=tmp_path)
    with pytest.raises(UserError, match="no scale 'tiny'"):
        reproduce("bae", scale="tiny", out=tmp_path)


def test_data_that_is_not_there_is_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UNFOOLED_DATA", raising=False)
    with pytest.raises(UserError, match="no folder of data sets") as error:
        reproduce("lstm-jsma", work=tmp_path / "work", out=tmp_path)
    assert "UNFOOLED_DATA" in error.value.remedy
    with pytest.raises(UserError, match="there is no folder"):
        reproduce("lstm-jsma", data=tmp_path / "absent", work=tmp_path / "work", out=tmp_path)
    with pytest.raises(UserError, match="no data set imdb"):
        reproduce("lstm-jsma", data=tmp_path, work=tmp_path / "work", out=tmp_path)
    assert not (tmp_path / "work").exists()


def test_resources_that_are_not_there_are_said_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNFOOLED_CACHE", str(tmp_path / "cache"))
    for name in ("mr", "trec", "imdb", "mpqa", "subj"):
        (tmp_path / "data" / name).mkdir(parents=True)
    for paper, needed in (("bae", "masked-lm"), ("lstm-jsma", "glove-6b-50d")):
        with pytest.raises(ResourceError, match=needed) as error:
            reproduce(paper, data=tmp_path / "data", work=tmp_path / "work", out=tmp_path / "out")
        assert "unfooled resources get" in error.value.remedy
    assert not (tmp_path / "work").exists()


def test_a_page_of_another_scale_is_never_written_over(tmp_path: Path) -> None:
    page = tmp_path / "bae.json"
    page.write_text(json.dumps({"scale": "small", "claims": []}), encoding="utf-8")
    for so_far in (True, False):
        with pytest.raises(UserError, match="page of the scale small, and this is smoke") as error:
            reproduce("bae", scale="smoke", work=tmp_path / "work", out=tmp_path, so_far=so_far)
        assert "--out" in error.value.remedy
    assert not (tmp_path / "work").exists()


def test_where_pages_go_is_checked_before_the_work(tmp_path: Path) -> None:
    papers = [find_paper(name) for name in NAMES]
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(UserError, match="cannot be made") as error:
        check(papers, scale="smoke", work=tmp_path / "work", out=tmp_path / "file")
    assert "--out" in error.value.remedy
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / f"{NAMES[-1]}.json").write_text('{"scale": "small"}', encoding="utf-8")
    with pytest.raises(UserError, match=f"{NAMES[-1]}.json is a page of the scale small"):
        check(papers, scale="smoke", work=tmp_path / "work", out=tmp_path / "out")


def test_a_work_folder_that_is_a_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "work").write_text("x", encoding="utf-8")
    with pytest.raises(UserError, match="cannot be made"):
        StageRunner(tmp_path / "work").carry_out([REVIEWS])


def test_the_summary_is_made_of_what_is_there(tmp_path: Path) -> None:
    claim = {"claim": "c", "paper": "p", "short": "s", "judgement": "holds"}
    (tmp_path / "bae.json").write_text(
        json.dumps({"scale": "small", "claims": [claim]}),
        encoding="utf-8",
    )
    told = write_summary(tmp_path)
    assert "1 of 1 comparable claims are decided" in told
    assert (tmp_path / SUMMARY).read_text(encoding="utf-8").endswith(told)
    (tmp_path / "bae.json").write_text("{", encoding="utf-8")
    with pytest.raises(UserError, match="is broken"):
        write_summary(tmp_path)
    with pytest.raises(UserError, match="holds no page"):
        write_summary(tmp_path / "empty")


def test_the_command_says_what_to_mend(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["unfooled", "reproduce", "firebrt"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert "firebert" in capsys.readouterr().err
