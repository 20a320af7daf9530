"""Carries out the stages of a plan, each once.

A stage lives in `WORK/KIND/NAME-FINGERPRINT`. The fingerprint covers its settings, the content of its data,
the resources that its attack reads and the fingerprints of the stages that it needs. `stage.json` says
whether it is finished; an unfinished one is gone on with by what trains, attacks or shows, which can all be
stopped.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unfooled.checks.illusions.wrappers import Averaged
from unfooled.core.recipe import Recipe, load_part, with_everywhere, with_setting
from unfooled.core.session import missing_resources, not_here, require_resources
from unfooled.core.victim import Victim, digest
from unfooled.data.dataset import Dataset
from unfooled.data.loading import VARIABLE, load_data
from unfooled.defenses.saving import wrap
from unfooled.errors import LockedError, UserError
from unfooled.files import write_json
from unfooled.metrics.measures import parse_measure
from unfooled.papers import carry_out, translation
from unfooled.papers.provenance import commit
from unfooled.papers.stages import (
    AttackStage,
    Model,
    Rows,
    Stage,
    TrainStage,
    described,
    in_order,
    is_file,
    needs_of,
)
from unfooled.resources import store
from unfooled.resources.vectors import NAMES as VECTORS
from unfooled.runs.attack import Observer
from unfooled.runs.lock import Lock
from unfooled.runs.workers.where import Workers
from unfooled.training.observer import TrainObserver
from unfooled.victims.loading import load_victim

FILE = "stage.json"
FORMAT = 1
_KEPT = 4  # models in memory
_PAUSE = 1.0  # seconds between looks at a stage that another process is at


class StageObserver:
    """Told what is being done. The command line draws it; the default says nothing."""

    def begins(self, stage: Stage, number: int, total: int, *, finished: bool) -> None: ...

    def waits(self, stage: Stage) -> None: ...

    def ended(self, stage: Stage, seconds: float) -> None: ...

    def notes(self, line: str) -> None: ...

    def attacking(self, title: str) -> AbstractContextManager[Observer]:
        return nullcontext(Observer())

    def training(self, title: str) -> AbstractContextManager[TrainObserver]:
        return nullcontext(TrainObserver())


@dataclass(frozen=True)
class Done:
    """A finished stage, and the commit that it was done at (where that was noted)."""

    stage: Stage
    folder: Path
    fingerprint: str
    seconds: float
    commit: str = ""


class StageRunner:
    """`work` keeps what was done; `data` is the folder of data sets, by default $UNFOOLED_DATA."""

    def __init__(
        self,
        work: Path,
        data: Path | None = None,
        watcher: StageObserver | None = None,
        workers: Workers | None = None,
    ) -> None:
        self.workers = workers or Workers()  # that share the examples of a stage
        self.work = work.expanduser().resolve()
        self.watcher = watcher or StageObserver()
        given = data or (Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None)
        self.data_root = given.expanduser() if given else None
        self.done: dict[str, Done] = {}
        self._began = time.time()
        self._commit = commit()  # of the code that runs, whatever happens to the checkout meanwhile
        self._fingerprints: dict[str, str] = {}
        self._models: dict[Model, Victim] = {}
        self._data: dict[Rows, Dataset] = {}

    def carry_out(self, stages: Sequence[Stage]) -> dict[str, Done]:
        """Every stage, those first that others need. Finished ones are only looked up.

        Other processes may be at the same plan: a stage that one of them holds is passed over, and waited for
        when nothing else can be done.
        """
        ordered = in_order(tuple(stages))
        self.require_data(ordered)
        left = {number: stage for number, stage in enumerate(ordered, 1) if stage.name not in self.done}
        waited: set[str] = set()
        while left:
            held: list[Stage] = []
            for number, stage in left.items():
                if not all(name in self.done for name in needs_of(stage)):
                    continue
                found = self._finish(stage, number, len(ordered))
                if found:
                    self.done[stage.name] = found
                    del left[number]
                    break  # and look again from the first: it may be free by now
                held.append(stage)
            else:
                for stage in held:
                    if stage.name not in waited:
                        self.watcher.waits(stage)
                        waited.add(stage.name)
                time.sleep(_PAUSE)
        return {stage.name: self.done[stage.name] for stage in ordered}

    def require_data(self, stages: Sequence[Stage]) -> None:
        """A missing set must not show up after an hour."""
        for rows in {rows for stage in stages for rows in _rows_of(stage)}:
            self._require(rows)

    def require_resources(self, stages: Sequence[Stage]) -> None:
        """Nor a missing resource. An attack that reads a stage's file is checked when that is there."""
        if missing := self.missing_resources(stages):
            raise not_here("this", missing)

    def missing_resources(self, stages: Sequence[Stage]) -> list[str]:
        """What these need and is not here, as far as that is known before anything is done."""
        missing: set[str] = set()
        for stage in stages:
            if isinstance(stage, TrainStage):
                named = {value for name, value in stage.options if name == "vectors" and value in VECTORS}
                missing |= {name for name in named if not store.has(name)}
            elif isinstance(stage, AttackStage) and not any(
                is_file(value) for _, value in (*stage.changes, *stage.everywhere)
            ):
                missing |= set(missing_resources(self.recipe(stage).oracles()))
            if isinstance(stage, AttackStage):
                missing |= set(missing_resources(_oracles_of(stage.measures)))
        return sorted(missing)

    def look_up(self, stages: Sequence[Stage]) -> dict[str, Done]:
        """Those that are finished already, as far as what they need is. Nothing is run."""
        self.require_data(stages)
        for stage in in_order(tuple(stages)):
            if stage.name in self.done or not all(name in self.done for name in needs_of(stage)):
                continue
            fingerprint = self._known_fingerprint(stage)
            if found := _finished(stage, self.folder(stage, fingerprint), fingerprint):
                self.done[stage.name] = found
        return {stage.name: self.done[stage.name] for stage in stages if stage.name in self.done}

    def unfinished(self, stages: Sequence[Stage]) -> int:
        """How many are left to do. What is finished is still told of when it is carried out."""
        before = dict(self.done)
        try:
            return len(stages) - len(self.look_up(stages))
        finally:
            self.done = before

    def _finish(self, stage: Stage, number: int, total: int) -> Done | None:
        """Done now or before; nothing while another process is at it."""
        fingerprint = self._known_fingerprint(stage)
        folder = self.folder(stage, fingerprint)
        found = _finished(stage, folder, fingerprint)
        if found is None:
            _make(folder)
            try:
                lock = Lock.take(folder / FILE)
            except LockedError:
                return None
            try:
                found = _finished(stage, folder, fingerprint)  # by another process, in this very moment
                if found is None:
                    self.watcher.begins(stage, number, total, finished=False)
                    return self._do(stage, folder, fingerprint)
            finally:
                lock.release()
        self.watcher.begins(stage, number, total, finished=True)
        if (folder / FILE).stat().st_mtime > self._began:
            self.watcher.ended(stage, found.seconds)  # by another process, meanwhile
        return found

    def _do(self, stage: Stage, folder: Path, fingerprint: str) -> Done:
        spent = float(read_note(folder).get("seconds", 0.0))
        began = time.perf_counter()
        note = {"format": FORMAT, "fingerprint": fingerprint, "settings": described(stage)}
        write_note(folder, note | {"status": "running", "seconds": spent})
        try:
            carry_out.do(stage, self, folder)
        except BaseException:
            seconds = spent + time.perf_counter() - began
            write_note(folder, note | {"status": "running", "seconds": round(seconds, 1)})
            raise
        spent = carry_out.seconds_of(stage, folder) or round(spent + time.perf_counter() - began, 1)
        write_note(folder, note | {"status": "finished", "seconds": spent, "commit": self._commit})
        self.watcher.ended(stage, spent)
        return Done(stage, folder, fingerprint, spent, self._commit)

    # -- where a stage lies --------------------------------------------------------------------------

    def fingerprint(self, stage: Stage) -> str:
        """Of all that shapes its outcome. The stages it needs must be done."""
        needed = [self.done[name].fingerprint for name in needs_of(stage)]
        content = [self.data(rows).fingerprint() for rows in _rows_of(stage)]
        parts = [FORMAT, json.dumps(_plain(stage), sort_keys=True), *needed, *content]
        if isinstance(stage, AttackStage):
            # A file of ours is known by the stage that made it; its path may change with the work folder.
            found = require_resources(self.recipe(stage))
            parts += [json.dumps(sorted(value for name, value in found.items() if not _is_path(name)))]
        return digest(*parts)

    def _known_fingerprint(self, stage: Stage) -> str:
        """Taken once: it reads all of the stage's data."""
        if stage.name not in self._fingerprints:
            self._fingerprints[stage.name] = self.fingerprint(stage)
        return self._fingerprints[stage.name]

    def folder(self, stage: Stage, fingerprint: str) -> Path:
        """Two papers may call the same work differently: the fingerprint decides."""
        home, mark = self.work / stage.kind, fingerprint[:12]
        there = sorted(home.glob(f"*-{mark}"), key=_unfinished_last) if home.is_dir() else []
        return there[0] if there else home / f"{stage.name}-{mark}"

    # -- what stages ask for ---------------------------------------------------------------------------

    def data(self, rows: Rows) -> Dataset:
        if rows not in self._data and rows.parallel:
            self._data[rows] = translation.load(rows, self._source(rows))
        elif rows not in self._data:
            self._data[rows] = load_data(
                self._source(rows),
                text=rows.text[0] if len(rows.text) == 1 else rows.text or None,
                label=rows.label,
                split=rows.split,
                limit=rows.limit,
                sample=rows.sample,
                seed=rows.seed,
                clean=rows.clean,
            )
        return self._data[rows]

    def model(self, model: Model) -> Victim:
        """Loaded, and kept for the next stage."""
        if model not in self._models:
            while len(self._models) >= _KEPT:
                del self._models[next(iter(self._models))]
            spec = str(self.done[model.stage].folder / carry_out.MODEL) if model.stage else model.spec
            plain = replace(model, defence="", options=(), draws=0)
            victim = load_victim(spec) if model == plain else self.model(plain)
            if model.defence:
                victim = wrap(model.defence, victim, self.filled(model.options))
            self._models[model] = Averaged(victim, draws=model.draws) if model.draws else victim
        return self._models[model]

    def recipe(self, stage: AttackStage) -> Recipe:
        recipe = carry_out.recipe_of(stage.attack)
        for name, value in self.filled(stage.everywhere).items():
            recipe = with_everywhere(recipe, name, value)
        if stage.order:
            recipe = with_everywhere(recipe, "importance", load_part("importance", stage.order))
        if stage.candidates:
            recipe = with_everywhere(recipe, "candidates", load_part("candidates", stage.candidates))
        for name, value in self.filled(stage.changes).items():
            recipe = with_setting(recipe, name, str(value))
        return recipe

    def filled(self, given: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        """Settings in which `{NAME}` became the file that the stage NAME made."""
        return {name: str(self.file(value[1:-1])) if is_file(value) else value for name, value in given}

    def file(self, name: str) -> Path:
        done = self.done[name]
        return carry_out.file_of(done.stage, done.folder)

    def _source(self, rows: Rows) -> str:
        if rows.source.startswith("hf:"):
            return rows.source
        if is_file(rows.source):
            return str(self.file(rows.source[1:-1]))
        assert self.data_root is not None
        return str(self.data_root / rows.source)

    def _require(self, rows: Rows) -> None:
        if rows.source.startswith("hf:") or is_file(rows.source):
            return
        if self.data_root is None:
            raise UserError(
                f"this needs the data set {rows.source}, and no folder of data sets is known",
                f"give --data DIR, or set {VARIABLE}",
            )
        if not (self.data_root / rows.source).is_dir():
            raise UserError(
                f"there is no data set {rows.source} in {self.data_root}",
                f"give the folder that holds it with --data DIR, or set {VARIABLE}",
            )


def read_note(folder: Path) -> dict[str, Any]:
    """What `stage.json` says; nothing where there is none, or a half-written one."""
    try:
        content = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    whole = isinstance(content, dict) and content.get("format") == FORMAT
    return content if whole and isinstance(content.get("seconds"), int | float) else {}


def _finished(stage: Stage, folder: Path, fingerprint: str) -> Done | None:
    noted = read_note(folder)
    if noted.get("status") != "finished" or not carry_out.is_there(stage, folder):
        return None
    return Done(stage, folder, fingerprint, float(noted["seconds"]), str(noted.get("commit", "")))


def _unfinished_last(folder: Path) -> tuple[bool, str]:
    return (read_note(folder).get("status") != "finished", folder.name)


def write_note(folder: Path, content: dict[str, Any]) -> None:
    """Whole or not at all."""
    write_json(folder / FILE, content, indent=1)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: cannot be made ({error.strerror})", "choose another --work") from error


def _rows_of(stage: Stage) -> list[Rows]:
    rows = getattr(stage, "data", None)
    return [rows] if isinstance(rows, Rows) else []


def _oracles_of(measures: Sequence[str]) -> list[str]:
    parsed = [parse_measure(name) for name in measures]
    return [f"{measure.oracle}:{full.partition(':')[2]}" for measure, full in parsed if measure.oracle]


def _plain(stage: Stage) -> Any:
    """Settings without the stage's own name: the same work under another name is the same work."""
    return {name: value for name, value in described(stage).items() if name != "name"}


def _is_path(name: str) -> bool:
    return name.startswith(("file:", "table:", "vocabulary:", "class-words:", "neighbours:/"))
