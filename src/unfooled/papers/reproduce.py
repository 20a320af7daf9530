"""Carry out a paper's plan, judge its claims, write its page; and the summary over all papers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unfooled.errors import UserError
from unfooled.papers.claims import DECIDED, LEVEL, Claim, Judgement, with_holm
from unfooled.papers.document import Grid, to_html, to_markdown
from unfooled.papers.findings import Findings
from unfooled.papers.pages import page
from unfooled.papers.paper import Paper, Plan, Scale, require_scale
from unfooled.papers.pictures import draw
from unfooled.papers.plans import NAMES, find_paper
from unfooled.papers.provenance import provenance
from unfooled.papers.runner import StageObserver, StageRunner
from unfooled.papers.workers import helpers
from unfooled.runs.workers.where import Workers

SUMMARY = "README.md"  # what a folder shows first
_JUDGED = ("claim", "paper", "measured", "judgement", "Holm", "stands on")


@dataclass(frozen=True)
class Reproduction:
    """A paper, judged; `files` are the page and what belongs to it."""

    paper: Paper
    scale: Scale
    judged: tuple[tuple[Claim, Judgement], ...]
    files: tuple[Path, ...]
    errors: int  # rows that ended in an error
    commit: str = ""
    plan: str = ""  # its fingerprint
    looks: int = 1  # plans that were looked at, this one included

    def to_dict(self) -> dict[str, Any]:
        return {
            "format": 1,
            "paper": self.paper.name,
            "title": self.paper.title,
            "scale": self.scale,
            "errors": self.errors,
            "commit": self.commit,
            "plan": self.plan,
            "looks": self.looks,
            "claims": [
                {
                    "name": claim.name,
                    "claim": claim.sentence,
                    "paper": claim.paper,
                    "how": claim.how,
                    "measured": judgement.measured,
                    "short": judgement.short or judgement.measured,
                    "judgement": judgement.status,
                    "artefact": claim.artefact,
                    "substitutions": [*claim.decided_by, *claim.substitutions],
                    **({"rule": judgement.rule} if judgement.rule else {}),
                    **({"p": judgement.p} if judgement.p is not None else {}),
                    **({"holm": judgement.holm} if judgement.holm else {}),
                    **({"earlier": judgement.earlier} if judgement.earlier else {}),
                }
                for claim, judgement in self.judged
            ],
        }


def reproduce(
    paper: str | Paper,
    *,
    scale: str = "small",
    work: str | Path = "reproduction-work",
    out: str | Path = "reproduction",
    data: str | Path | None = None,
    so_far: bool = False,
    workers: int | Workers = 1,
    watcher: StageObserver | None = None,
) -> Reproduction:
    """Do what `paper` did, at a scale, and write OUT/PAPER.md, .html and .json.

    What was done lies in `work`; the same call again goes on after a stop and does nothing twice. `data` is
    the folder of data sets, by default $UNFOOLED_DATA. `so_far` runs nothing and judges what is finished;
    what no finished stage measures keeps the judgement of the page in `out`, marked as an earlier one.
    `workers` processes do stages that do not need each other side by side; a script that asks for more than
    one needs its calls below `if __name__ == "__main__":`. On a Ray cluster stages follow one another,
    and the workers share the examples of each.
    """
    chosen = find_paper(paper) if isinstance(paper, str) else paper
    size = require_scale(scale)
    plan = chosen.plan(size)
    workers = Workers.of(workers)
    elsewhere = workers.engine != "local"
    if elsewhere and not so_far:
        workers.connect()
    runner = StageRunner(Path(work), _root(data), watcher, workers if elsewhere else None)
    folder = Path(out).expanduser()
    _require(chosen, size, runner, folder, so_far=so_far)
    if so_far:
        done = runner.look_up(plan.stages)
    else:
        number = 1 if elsewhere else workers.number
        with helpers(
            _useful(number, plan, runner) - 1, plan.stages, runner.work, runner.data_root, runner.watcher
        ):
            done = runner.carry_out(plan.stages)
    if not done:
        raise UserError(f"{runner.work} holds nothing of {chosen.name} yet", "run it without --so-far")
    findings = Findings(done)
    earlier = _read(folder / f"{chosen.name}.json")
    looks = _looks(earlier, plan)
    judged = [(claim, claim.judge(findings, dict(plan.substitutions))) for claim in chosen.claims]
    judged = with_holm(judged, LEVEL / looks)
    if so_far:
        judged = _with_earlier(judged, earlier)
    drawn = [
        (picture.title, draw(picture, findings, folder / "figures", chosen.name))
        for picture in chosen.pictures
    ]
    pictures = [(title, path) for title, path in drawn if path]
    origin = provenance()
    blocks = page(chosen, size, plan, findings, judged, pictures, origin, looks)
    errors = sum(findings.errors(name) for name in findings.done)
    found = Reproduction(chosen, size, tuple(judged), (), errors, origin["commit"], plan.fingerprint(), looks)
    files = {
        f"{chosen.name}.md": to_markdown(blocks, folder),
        f"{chosen.name}.html": to_html(blocks, chosen.title),
        f"{chosen.name}.json": json.dumps(found.to_dict(), indent=1, ensure_ascii=False) + "\n",
    }
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    written = (*(folder / name for name in files), *(path for _, path in pictures))
    return replace(found, files=written)


def _looks(page: dict[str, Any], plan: Plan) -> int:
    """A page of another plan was a look at its figures: what comes after is tested more strictly."""
    before = int(page.get("looks", 1))
    return before + int(bool(page.get("plan")) and page["plan"] != plan.fingerprint())


def _useful(workers: int, plan: Plan, runner: StageRunner) -> int:
    """No more than there are stages to do."""
    return 1 if workers == 1 else max(1, min(workers, runner.unfinished(plan.stages)))


def check(
    papers: Sequence[Paper],
    *,
    scale: str,
    work: str | Path,
    out: str | Path,
    data: str | Path | None = None,
    so_far: bool = False,
) -> None:
    """Raise at once what would otherwise show up after hours, at the last paper or when pages are written."""
    runner = StageRunner(Path(work), _root(data))
    for paper in papers:
        _require(paper, require_scale(scale), runner, Path(out).expanduser(), so_far=so_far)


def _root(data: str | Path | None) -> Path | None:
    root = Path(data).expanduser() if data is not None else None
    if root is not None and not root.is_dir():
        raise UserError(f"there is no folder {root}", "give the folder of the data sets with --data")
    return root


def _require(paper: Paper, scale: Scale, runner: StageRunner, folder: Path, *, so_far: bool) -> None:
    stages = paper.plan(scale).stages
    runner.require_data(stages)
    if not so_far:
        runner.require_resources(stages)
    page = folder / f"{paper.name}.json"
    there = _read(page).get("scale", scale)
    if there != scale:
        raise UserError(
            f"{page} is a page of the scale {there}, and this is {scale}",
            "choose another --out, or delete that page",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: cannot be made ({error.strerror})", "choose another --out") from error


def _with_earlier(
    judged: Sequence[tuple[Claim, Judgement]], page: dict[str, Any]
) -> list[tuple[Claim, Judgement]]:
    """Nothing that was measured is lost because its stages are not here any more.

    A claim that is measured in another way by now has the same name and another `how`: that is not kept.
    """
    claims = page.get("claims", ())
    earlier = {
        (claim["name"], claim["how"]): Judgement(
            claim["judgement"],
            claim["measured"],
            claim["short"],
            rule=claim.get("rule"),
            p=claim.get("p"),
            holm=claim.get("holm"),
            earlier=claim.get("earlier") or page.get("commit") or "unknown",
        )
        for claim in claims
        if claim["judgement"] != "not measured"
    }
    return [
        (
            claim,
            earlier.get((claim.name, claim.how), judgement)
            if judgement.status == "not measured"
            else judgement,
        )
        for claim, judgement in judged
    ]


def write_summary(out: str | Path = "reproduction") -> str:
    """The table over all papers with a page in `out`, written to OUT/README.md."""
    folder = Path(out).expanduser()
    text = summary(folder)
    (folder / SUMMARY).write_text(f"# Do the papers' findings hold?\n\n{text}", encoding="utf-8")
    return text


def summary(folder: Path) -> str:
    rows: list[Sequence[str]] = []
    decided = comparable = 0
    for name in NAMES:
        told = _read(folder / f"{name}.json")
        for claim in told.get("claims", ()):
            rows.append(
                (
                    f"[{name}]({name}.md): {claim['claim']}",
                    claim["paper"],
                    claim["short"],
                    claim["judgement"],
                    claim.get("holm", "–"),
                    ", ".join(claim.get("substitutions", ())) or "–",
                )
            )
            decided += claim["judgement"] in DECIDED
            comparable += claim["judgement"] != "not comparable"
    if not rows:
        raise UserError(f"{folder} holds no page of a paper", "run: unfooled reproduce PAPER first")
    scales = {told["scale"] for name in NAMES if (told := _read(folder / f"{name}.json"))}
    head = (
        f"{decided} of {comparable} comparable claims are decided at the scale {', '.join(sorted(scales))} "
        f"({len(rows) - comparable} of {len(rows)} are not comparable). “Holm”: the judgement when all "
        "claims of a paper are tested at once; “stands on”: what is not the paper's here and could explain a "
        "difference. Intervals, settings and reasons are on each paper's page.\n\n"
    )
    return head + to_markdown([Grid(_JUDGED, rows)], folder)


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        return {}
    except ValueError as error:
        raise UserError(
            f"{path} is broken: {error}", "delete it, and run unfooled reproduce again"
        ) from error
    return content if isinstance(content, dict) else {}
