"""`unfooled calibrate`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast, get_args

import typer

from unfooled.cli.command import option
from unfooled.cli.options import Clean, Data, TrustCode
from unfooled.errors import MissingExtraError, UserError
from unfooled.plugins import registry

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from unfooled.attacks.parts.constraints import Scale
    from unfooled.metrics.calibration import Calibration, Threshold


@dataclass(frozen=True, kw_only=True)
class Calibrate(Data, Clean, TrustCode):
    EPILOG: ClassVar[str] = """\b
Examples:
  unfooled calibrate --from use:0.9 --to minilm --data tweets.csv
  unfooled calibrate --from use:0.8 --scale arccos --to minilm --window 15 --data mr --kind neighbours
"""

    from_: str = option(..., "Encoder and published threshold, ENCODER:THRESHOLD.", "--from")
    to: str = option(..., "Encoder to find the equal threshold for.")
    data: str = option(..., "Texts to make pairs of; labels do not matter.", "-d")
    scale: str = option("cosine", "Scale of the threshold: cosine, angular, arccos.")
    to_scale: str | None = option(None, "Scale of the answer. [default: the same]")
    window: str = option("none", "Words around the edit, or `none` for whole texts.")
    kind: str = option("both", "Replacements: neighbours, random words, or both.")
    pairs: int = option(2000, "How many pairs to measure.", min=20)
    neighbours: str = option("counter-fitted", "Neighbour table: name, JSON table or vectors file.")
    seed: int = option(0, "Same seed, same pairs.", min=0)
    out: Path | None = option(None, "Folder for calibration.json, .svg, .png. [default: calibration/…]", "-o")
    json: bool = option(False, "Print the result as JSON and nothing else.")

    def run(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        from unfooled.metrics.calibration import Kinds, calibrate, make_pairs, measure
        from unfooled.report.calibration import print_calibration

        source = _threshold(self.from_, _scale(self.scale))
        to_scale = _scale(self.to_scale or self.scale)
        window = _window(self.window)
        data = self.load(self.data, clean=self.clean)
        kinds = cast(Kinds, self.kind)
        nearest = None
        if kinds != "random":
            table = registry.load("oracle", "neighbours")(self.neighbours)
            nearest = partial(_nearest, table)
        pairs = make_pairs(data, nearest, count=self.pairs, kinds=kinds, window=window, seed=self.seed)
        bars = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True, quiet=self.json),
            transient=True,
        )
        with bars:
            measured = []
            for name, scale in ((source.encoder, source.scale), (self.to, to_scale)):
                task = bars.add_task(name, total=None)
                encode = registry.load("oracle", "encode")(name)
                measured.append(measure(pairs, encode, scale, name=name, progress=partial(_tell, bars, task)))
                bars.update(task, completed=1, total=1)
        ours, theirs = measured
        found = calibrate(
            source,
            (self.to, to_scale),
            pairs,
            ours,
            theirs,
            window=window,
            data=f"{data.name}, {self.split}",
            seed=self.seed,
        )
        folder = self.out or Path("calibration") / _slug(found)
        written = _save(found, ours, theirs, folder)
        if self.json:
            typer.echo(json.dumps(found.to_dict() | {"written": [str(path) for path in written]}, indent=2))
        else:
            print_calibration(Console(), found)
            typer.echo(f"written: {', '.join(str(path) for path in written)}")


def _threshold(given: str, scale: Scale) -> Threshold:
    import numpy as np

    from unfooled.metrics.calibration import Threshold

    encoder, colon, value = given.rpartition(":")
    try:
        number = float(value)
    except ValueError:
        number = np.nan
    if not colon or not encoder or not np.isfinite(number):
        raise UserError(
            f"--from {given!r} is no threshold", "write --from ENCODER:THRESHOLD, such as use:0.9"
        )
    return Threshold(encoder, scale, number)


def _scale(given: str) -> Scale:
    from unfooled.attacks.parts.constraints import Scale

    if given not in get_args(Scale):
        raise UserError(f"there is no scale {given!r}", f"use {', '.join(get_args(Scale))}")
    return cast(Scale, given)


def _window(given: str) -> int | None:
    if given.lower() == "none":
        return None
    if not given.isdecimal() or int(given) < 1:
        raise UserError(
            f"--window {given!r} is no number of words", "write a number, or none for whole texts"
        )
    return int(given)


def _nearest(table: Any, word: str) -> tuple[str, ...]:
    (found,) = table([(word, 50, 0.5)])
    return tuple(found)


def _tell(bars: Progress, task: TaskID, name: str, done: int, total: int) -> None:
    bars.update(task, completed=done, total=total)


def _save(found: Calibration, ours: Any, theirs: Any, folder: Path) -> list[Path]:
    from unfooled.metrics.calibration import plot

    written = [folder / "calibration.json"]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written[0].write_text(json.dumps(found.to_dict(), indent=2) + "\n", encoding="utf-8")
        drawn = [folder / "calibration.svg", folder / "calibration.png"]
        try:
            plot(found, ours, theirs, drawn)
            written += drawn
        except MissingExtraError as error:
            typer.echo(f"note: no plot, {error.cause}: {error.remedy}", err=True)
    except OSError as error:
        raise UserError(
            f"{folder}: cannot be written ({error.strerror or error})", "choose another --out"
        ) from error
    return written


def _slug(found: Calibration) -> str:
    parts = (found.source.encoder, f"{found.source.value:g}", found.source.scale, found.target.encoder)
    return "-".join(re.sub(r"[^\w.]+", "_", Path(part).name).strip("_") for part in parts)
