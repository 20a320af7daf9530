"""Judge a run: the probability of being valid for each of its successes, kept beside the results.

What was measured before is not measured again, so an interrupted judging goes on, and another judge on the
same measures is a matter of seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from itertools import islice
from pathlib import Path

from unfooled.errors import UserError
from unfooled.metrics.measures import fallen, writing_measures
from unfooled.metrics.validity.accuracy import VALID, columns_of, complete
from unfooled.metrics.validity.features import Pair
from unfooled.metrics.validity.instruments import language_model_here, open_instruments
from unfooled.metrics.validity.model import FULL, REDUCED, SHIPPED, Judge, Variant, load_judge
from unfooled.runs.attack import Run
from unfooled.runs.file import JUDGE, REMARK, RunFile
from unfooled.runs.notes import write_remark

_BATCH = 64


def judge(
    run: Run | str | Path,
    by: str | Path = SHIPPED,
    *,
    language_model: bool | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[int, float]:
    """Give every success of a run a probability of being valid: its label kept and its language fluent.

    `by` is a file of `unfooled judge fit`, or the shipped judge. Without the language model it measures less;
    None takes it where it is here. The probabilities come by the example's key; they are kept in the run,
    whose summary has `accuracy_under_valid_attack` from then on.

    Example:

        >>> chances = unfooled.judge("runs/x", language_model=False)
        >>> all(0 <= chance <= 1 for chance in chances.values())
        True
        >>> unfooled.Run(Path("runs/x")).summary().accuracy_under_valid_attack.n > 0
        True
    """
    if isinstance(run, Run) and run.held is not None:
        raise UserError("a run in memory has no file that keeps a judgement", "save it: run.save('runs/x')")
    path = run.path if isinstance(run, Run) else Path(run)
    chosen = load_judge(by)
    variant = chosen.variant(_variant(chosen, language_model))
    _measure(path, variant, progress)
    found = _weigh(path, variant)
    write_remark(path, JUDGE, {"variant": variant.name, "judge": chosen.to_dict()})
    return found


def judged_chances(run: Path) -> dict[int, float] | None:
    """What a judge has said of a run's successes before; None: nobody has judged it."""
    with closing(RunFile.read(run)) as file:
        return file.measured(VALID) if REMARK + JUDGE in file.header else None


def _variant(judge: Judge, language_model: bool | None) -> str:
    if language_model is None:
        language_model = FULL in judge.variants and language_model_here()
    return FULL if language_model else REDUCED


def _measure(path: Path, variant: Variant, progress: Callable[[int, int], None]) -> None:
    names = variant.features
    with closing(RunFile.read(path)) as file:
        if file.writes:
            raise UserError("the victim of this run writes text: there is no label to keep", "measure it")
        columns = {name: file.measured(f"{VALID}/{name}") for name in names}
        keys = [result.key for result in fallen(file)]
        where = file.path
    missing = {key for key in keys if not complete(columns, key)}
    done = len(keys) - len(missing)
    progress(done, len(keys))
    if not missing:
        return
    instruments = open_instruments(names)
    with closing(RunFile.read(path)) as file, writing_measures(where) as put:
        results = (result for result in fallen(file) if result.key in missing)
        while batch := list(islice(results, _BATCH)):
            rows = instruments.measure([Pair(result.original, result.perturbed) for result in batch])
            kept = [{name: row[name] for name in names} for row in rows]
            chances = variant.valid(kept).tolist()
            put(
                [
                    column
                    for result, row, chance in zip(batch, kept, chances, strict=True)
                    for column in columns_of(row, chance, result.key)
                ]
            )
            done += len(batch)
            progress(done, len(keys))


def _weigh(path: Path, variant: Variant) -> dict[int, float]:
    """P(valid) by this judge, from what is measured; replaces what another judge said."""
    with closing(RunFile.read(path)) as file:
        columns = {name: file.measured(f"{VALID}/{name}") for name in variant.features}
        keys = [result.key for result in fallen(file)]
        said, where = file.measured(VALID), file.path
    rows = [{name: column[key] for name, column in columns.items()} for key in keys]
    chances = {key: round(chance, 6) for key, chance in zip(keys, variant.valid(rows).tolist(), strict=True)}
    new = [(VALID, key, chance) for key, chance in chances.items() if said.get(key) != chance]
    if new:
        with writing_measures(where) as put:
            put(new)
    return chances
