"""Attack a data set and write down what happened, so that the same call goes on where it stopped."""

from __future__ import annotations

import contextlib
import platform
import sys
import tempfile
from collections.abc import Callable, Collection, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from importlib import metadata
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import unfooled
from unfooled.core.program import AsyncOracle, Oracle
from unfooled.core.recipe import Recipe, load_recipe
from unfooled.core.result import Example, Result
from unfooled.core.session import (
    Life,
    Session,
    SessionParts,
    Settings,
    fit_recipe,
    open_inside,
    open_oracles,
    require_capabilities,
    require_resources,
)
from unfooled.core.victim import TextValue, Victim
from unfooled.data.loading import Given
from unfooled.device import CPU, computes, described, resolved, said
from unfooled.errors import DataError, RunFileError
from unfooled.plugins import registry
from unfooled.progress import ProgressObserver
from unfooled.runs.coverage import look_at
from unfooled.runs.file import RunFile
from unfooled.runs.task import Examples, Task, task_for
from unfooled.victims.loading import GivenVictim, as_victim
from unfooled.victims.preflight import Preflight

if TYPE_CHECKING:
    from unfooled.metrics.summary import Summary
    from unfooled.runs.backend import Settled
    from unfooled.runs.caps import Caps, Spending
    from unfooled.runs.in_memory import MemoryRunFile
    from unfooled.runs.order import Order
    from unfooled.runs.shard import Shard
    from unfooled.runs.workers.where import Workers

# Enough to see swapped labels or logits, little enough for a paid endpoint.
PREFLIGHT_EXAMPLES = 64
FEW_EDITS = 5  # an example that withstood fewer edits than this was hardly attacked
FEW_EXAMPLES = 8  # looked at where a run attacks chosen examples only: a model that was looked at before


class Observer(ProgressObserver):
    """Told what happens in an attack while it happens. The command line draws it; this says nothing."""

    def checked(self, report: Preflight) -> None:
        """The victim was tried before the attack."""

    def working(self, life: Callable[[], Life]) -> None:
        """The attack begins. `life` says how far it is, whenever and from whichever thread it is called."""

    def finished(self, result: Result) -> None:
        """One more example is in the run file."""


@dataclass(frozen=True)
class Run:
    """A run file, on disk or held in memory. Everything shown of a run is read from it.

    Example:

        >>> run = unfooled.Run(Path("runs/x"))
        >>> rate = run.summary().success_rate
        >>> 0 <= rate.low <= rate.value <= rate.high <= 1
        True
    """

    path: Path
    held: MemoryRunFile | None = field(default=None, repr=False, compare=False)

    def save(self, out: str | Path) -> Run:
        """Write a run that was held in memory to the folder `out`; the run there."""
        if self.held is None:
            raise RunFileError(f"{self.path}: this run is on disk already", "copy its folder")
        self.held.save(Path(out))
        return Run(Path(out))

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    def _open(self) -> RunFile:
        return self.held or RunFile.read(self.path)

    def summary(self) -> Summary:
        """Rates and means with their intervals, as `unfooled summary` shows them."""
        with closing(self._open()) as file:
            summary: Summary = registry.load("summary", "run")(file)
        return summary

    def results(self) -> Iterator[Result]:
        """Every finished example, in the order of the rows."""
        with closing(self._open()) as file:
            yield from file.results()


@contextlib.contextmanager
def run_folder(run: Run | str | Path) -> Iterator[Path]:
    """Where a run lies that is given by itself or by its path; one in memory lies there for this while."""
    if not isinstance(run, Run):
        yield Path(run)
    elif run.held is None:
        yield run.path
    else:
        with tempfile.TemporaryDirectory(prefix="unfooled-") as scratch:
            yield run.save(Path(scratch) / "run").path


@computes
def attack(
    victim: GivenVictim,
    data: Given | Examples,
    recipe: Recipe | str = "textfooler",
    *,
    out: str | Path | None = None,
    limit: int | None = None,
    rows: int | None = None,
    first: bool = False,
    keys: Collection[int] | None = None,
    shard: Shard | str | None = None,
    workers: int | Workers = 1,
    settings: Settings | None = None,
    target: str | None = None,
    label_map: Mapping[str, str] | None = None,
    final: bool = False,
    observer: Observer | None = None,
    restart: bool = False,
    device: str | None = None,
    caps: Caps | None = None,
    order: Order = "constraints-first",
    surrogate: str | None = None,
    surrogate_queries: int | None = None,
    backend: str | None = None,
) -> Run:
    """Attack every example of `data` and return the finished run.

    `victim` is a victim, what `load_victim` takes, or a function from texts to probabilities; `data` is a
    data set or what `load_data` takes: a path, pairs of text and label, a table. For a translation model it
    is parallel text, what `load_parallel` takes, or pairs of sentences.

    Without `out` the run is held in memory, and `Run.save` writes it later. The run file in `out` is written
    as results arrive. The same call again skips finished examples and runs the rest, those that ended in an
    error included. `limit` takes a sample of the rows, seeded like everything else, in which each class has
    its share; with `first` it takes the first ones. A larger `limit` adds rows to those of the smaller one.
    Of an attack on one class `limit` counts the rows of that class: those of other classes in between are
    scored and not attacked. `rows` bounds the rows that are read, of whatever class. `keys`
    attacks only these examples; other keys may follow later into the same run. `shard`, such as "3/16",
    attacks one part of the rows into a run of its own; `merge` joins the parts. `final` fixes the number of
    rows: the run cannot grow, and the gate may use the narrower interval of a single look. `device` is where
    models compute that are loaded here: auto, cpu, cuda, cuda:1, mps. `caps` bound what it may cost:
    `CapReachedError` says that it stopped there.

    `order` says whether constraints or the victim are asked first, or that their costs decide (`auto`): the
    texts are the same. `surrogate` chooses the questions by a model that is fitted on the victim's answers
    (`auto`, on up to `surrogate_queries` of them), or by the one at that path. `backend` is the runtime of a
    Hugging Face classifier: torch, onnx, onnx-8bit, openvino, or the fastest of those that decide alike
    (`auto`); one that does not is refused.

    Example:

        >>> run = unfooled.attack("fake", [("a superb film", "positive")], "deepwordbug", out="runs/one")
        >>> [result.outcome for result in run.results()]
        ['success']
    """
    victim = as_victim(victim)
    task = task_for(victim)
    dataset = task.data(data, victim).aligned(victim.labels, label_map)
    recipe = load_recipe(recipe) if isinstance(recipe, str) else recipe
    settings = replace(settings or Settings(), device=said().device)  # workers are told as well
    observer = observer or Observer()
    require_capabilities(recipe, victim)
    if target is not None:
        recipe = task.aimed(recipe, target, victim)
    for name, most in (("limit", limit), ("rows", rows)):
        if most is not None and most < 1:
            raise DataError(f"{name}={most} leaves nothing to attack", f"{name} is at least 1")
    if shard is not None and keys is not None:
        raise DataError("chosen examples cannot be cut into shards", "give either keys or a shard")
    if order != "constraints-first":
        from unfooled.runs.order import require_order

        require_order(order)
    if shard is not None and order == "auto":
        raise DataError(
            "the parts of a run could each choose another order",
            "say which one with --order constraints-first or --order victim-first",
        )
    if isinstance(shard, str):
        from unfooled.runs.shard import Shard

        shard = Shard.parse(shard)
    elsewhere = _elsewhere(workers)
    settled = _with_backend(backend, victim, dataset, settings.seed, shard, out, restart, observer)
    if settled is not None:
        victim = cast(Victim, settled.victim)
        require_capabilities(recipe, victim)
    recipe, notices = fit_recipe(recipe, victim)
    for notice in notices:
        observer.note(notice)
    resources = require_resources(recipe)
    open_inside(recipe.oracles(), victim)  # what does not fit is said before a run file is made
    if elsewhere is not None:
        elsewhere.connect()

    whole, looked_at, total = dataset, dataset, len(dataset)
    if limit is not None or rows is not None:
        from unfooled.runs.row_choice import rows_for, take

        chosen = rows_for(whole, recipe, limit, seed=settings.seed, first=first)
        if chosen.notice:
            observer.note(chosen.notice)
            notices = [*notices, chosen.notice]
        total = chosen.rows if rows is None else min(rows, chosen.rows)
        dataset = take(whole, total, seed=settings.seed, first=first)
        looked_at = take(dataset, PREFLIGHT_EXAMPLES, seed=settings.seed, first=first)
    first_rows = islice(_chosen(iter(dataset if keys is not None else looked_at), keys), _looks(keys))
    sample = [example for example in first_rows if not example.problem]
    report = task.preflight(victim, sample)
    observer.checked(report)
    report.raise_for_fail()
    opened: dict[str, Oracle | AsyncOracle] = {}
    coverage = look_at(recipe, [example.text() for example in sample], opened)
    refusal = coverage.refusal(recipe.full_name)
    if refusal is not None and not settings.any_language:
        raise refusal
    warnings = coverage.warnings(recipe.full_name)
    for warning in warnings:
        observer.note(warning)

    kept, counters = recipe, {}
    if order != "constraints-first" or surrogate not in (None, "none"):
        from unfooled.runs.asking import Ways, settle_asking

        asked = settle_asking(
            Ways(order, surrogate, surrogate_queries, out, restart, caps),
            recipe,
            victim,
            whole,
            sample,
            seed=settings.seed,
            rows=total if keys is None else len(keys),
            victim_seconds=report.seconds_per_text,
            opened=opened,
            tell=observer.note,
        )
        recipe, kept, counters = asked.recipe, asked.kept, asked.counters
        notices, resources = [*notices, *asked.notices], resources | asked.resources
    where = resolved(settings.device)
    if where != CPU:
        observer.note(f"models compute on {described(where)}")
    part: dict[str, Any] = {}
    if shard is not None:
        part = {"shard": shard.told(total)}
        dataset = shard.of(dataset)
        total = len(dataset)

    header = {
        "identity": {
            "recipe": kept.to_json(),
            "victim": victim.fingerprint(),
            "data": whole.fingerprint(),
            "labels": list(victim.labels),
            "resources": resources,
            **settings.identity(),
            **(settled.identity if settled else {}),
        },
        "environment": _environment(victim, dataset, recipe, elsewhere, report)
        | {"notices": notices, "asked": total if keys is None else None}
        | {"available": len(whole), "shortened": total < len(whole), "final": final}
        | {"rows": "first" if first else "stratified", "device": described(where)}
        | {"warnings": warnings, "coverage": coverage.to_dict(), "few_edits": _few_edits(recipe)}
        | (settled.facts if settled else {})
        | part,
    }
    if getattr(victim, "unsteady", False):
        observer.note(
            f"{victim.name} answers the same texts differently: a change in what it calls will not be noticed"
        )
    file, held = _opened(out, header, restart)
    with file:
        if counters:
            file.set_counters(counters)
        examples = _unfinished(_chosen(iter(dataset), keys), file)
        low, high = (dataset.nth_key(0), dataset.nth_key(total - 1)) if total else (0, -1)
        if keys is None and dataset is whole:
            done = file.count_finished(low, high)
        elif keys is None:
            wanted = {dataset.nth_key(n) for n in range(total)}
            done = len(file.finished(low, high) & wanted)
        else:
            total, done = len(keys), len(file.finished(low, high) & set(keys))
        observer.started(total, done)
        if done < total:
            parts = SessionParts(victim, recipe, settings, _answered_question(task, victim, sample))
            with caps.counting(file, sample) if caps else contextlib.nullcontext() as spending:
                results = _results(parts, examples, elsewhere, total - done, file, opened, observer, spending)
                with closing(results):  # its counters belong into the file while that is open
                    for result in results:
                        file.add(result)
                        observer.finished(result)
    if out is None:
        return Run(file.path, held)
    task.keep(Path(out), victim)
    return Run(Path(out))


def _opened(
    out: str | Path | None, header: Mapping[str, Any], restart: bool
) -> tuple[RunFile, MemoryRunFile | None]:
    """The run file of a folder, or one that is held in memory, which is then named as such as well."""
    if out is not None:
        return RunFile.open(Path(out), header, restart=restart), None
    from unfooled.runs.in_memory import MemoryRunFile

    held = MemoryRunFile.create(header)
    return held, held


def _few_edits(recipe: Recipe) -> int:
    """Fewer edits than so many are few; an attack that tries one by design is asked for that one."""
    return min(FEW_EDITS, getattr(recipe.search, "tries", None) or FEW_EDITS)


def _with_backend(
    backend: str | None,
    victim: Victim,
    data: Examples,
    seed: int,
    shard: Shard | None,
    out: str | Path | None,
    restart: bool,
    observer: Observer,
) -> Settled | None:
    """The victim in another runtime; None where nobody asked for one."""
    if backend in (None, "torch") and "unfooled.victims.torch.compiled" not in sys.modules:
        return None
    from unfooled.runs.backend import AUTO, ROWS, backend_before, settle_backend
    from unfooled.runs.row_choice import take

    if shard is not None and backend == AUTO:
        raise DataError("the parts of a run could each choose another backend", "name one with --backend")
    before = None if restart else backend_before(out)
    rows = take(data, ROWS, seed=seed)
    return settle_backend(backend, victim, rows, seed=seed, before=before, tell=observer.note)


def _elsewhere(workers: int | Workers) -> Workers | None:
    """Several workers, or such as are on other machines; None: this process alone."""
    if workers == 1:
        return None
    from unfooled.runs.workers.where import Workers

    placed = Workers.of(workers)
    return None if placed.in_this_process else placed


def _results(
    parts: SessionParts,
    examples: Iterable[Example | None],
    workers: Workers | None,
    remaining: int,
    file: RunFile,
    opened: Mapping[str, Oracle | AsyncOracle],
    observer: Observer,
    spending: Spending | None,
) -> Generator[Result]:
    def working(life: Callable[[], Life]) -> None:
        if spending is not None:
            spending.working(life)
        observer.working(life)

    check = None if spending is None else spending.check
    if spending is not None:
        examples = spending.admitted(examples)
    if workers is not None:
        results = workers.attack(
            parts,
            examples,
            remaining=remaining,
            on_counters=file.add_counters,
            on_start=working,
            check=check,
        )
        yield from results if spending is None else spending.counted(results)
        return
    victim, recipe, settings, known_good = parts
    oracles = open_oracles(recipe, victim, opened)
    session = Session(victim, recipe, settings, oracles=oracles, known_good=known_good, check=check)
    working(session.life)
    results = session.attack(examples)
    try:
        yield from results if spending is None else spending.counted(results)
    finally:
        file.add_counters(session.counters())


def _looks(keys: Collection[int] | None) -> int:
    return PREFLIGHT_EXAMPLES if keys is None else FEW_EXAMPLES


def _chosen(examples: Iterator[Example], keys: Collection[int] | None) -> Iterator[Example]:
    return examples if keys is None else (example for example in examples if example.key in keys)


def _unfinished(examples: Iterator[Example], file: RunFile) -> Iterator[Example]:
    """Examples without a result, looked up in portions so that no list of all keys is held."""
    while portion := list(islice(examples, 1000)):
        keys = [example.key for example in portion]
        finished = file.finished(min(keys), max(keys))
        yield from (example for example in portion if example.key not in finished)


def _answered_question(task: Task, victim: Victim, sample: Sequence[Example]) -> Hashable:
    """A question that the victim can answer: it tells bad texts from a victim that is down."""
    texts: Iterator[TextValue] = (example.text().value for example in sample)
    return next((task.question(text) for text in texts if _is_answered(task, victim, text)), None)


def _is_answered(task: Task, victim: Victim, text: TextValue) -> bool:
    try:
        return len(task.answers(victim, text)) == 1
    except Exception:
        return False


def _environment(
    victim: Victim, dataset: Examples, recipe: Recipe, workers: Workers | None, report: Preflight
) -> dict[str, Any]:
    return {
        "unfooled": unfooled.__version__,
        "python": platform.python_version(),
        "versions": _versions(),
        "attack": recipe.full_name,
        "victim": victim.name,
        "data": dataset.name,
        "cleaning": list(dataset.cleaning),
        **({"workers": 1} if workers is None else workers.told()),
        "preflight": report.lines(),
    }


def _versions() -> dict[str, str]:
    """Of the installed libraries that numbers come from: an encoder loads its own after this is written."""
    packages = {
        "numpy": "numpy",
        "sklearn": "scikit-learn",
        "torch": "torch",
        "transformers": "transformers",
    }
    found = {}
    for name, package in packages.items():
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(package)
    return found
