"""`unfooled calibrate`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, cast

import typer

from unfooled.cli.command import option
from unfooled.cli.options import Clean, Data, Output, TrustCode, print_json, slug
from unfooled.plugins import registry


@dataclass(frozen=True, kw_only=True)
class Calibrate(Data, Clean, TrustCode, Output):
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

    def run(self) -> None:
        from rich.console import Console

        from unfooled.metrics.calibration import (
            Kinds,
            Threshold,
            as_scale,
            as_window,
            calibrate,
            make_pairs,
            measure,
            nearest_of,
            save,
        )
        from unfooled.report.calibration import print_calibration
        from unfooled.report.progress import counting

        source = Threshold.parse(self.from_, as_scale(self.scale))
        to_scale = as_scale(self.to_scale or self.scale)
        window = as_window(self.window)
        data = self.load(self.data, clean=self.clean)
        kinds = cast(Kinds, self.kind)
        nearest = None if kinds == "random" else nearest_of(self.neighbours)
        pairs = make_pairs(data, nearest, count=self.pairs, kinds=kinds, window=window, seed=self.seed)
        measured = []
        for name, scale in ((source.encoder, source.scale), (self.to, to_scale)):
            with counting(self.console(), name) as progress:
                encode = registry.load("oracle", "encode")(name)
                measured.append(measure(pairs, encode, scale, progress=progress))
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
        names = (source.encoder, f"{source.value:g}", source.scale, found.target.encoder)
        written, missing = save(found, ours, theirs, self.out or Path("calibration") / slug(*names))
        if missing:
            typer.echo(f"note: no plot, {missing.cause}: {missing.remedy}", err=True)
        if self.json:
            print_json(found.to_dict() | {"written": [str(path) for path in written]})
        else:
            print_calibration(Console(), found)
            typer.echo(f"written: {', '.join(str(path) for path in written)}")
