"""`unfooled train`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import typer

from unfooled.cli.command import Command, Exit, option
from unfooled.cli.options import Clean, TrainingOptions, TrustCode, print_json
from unfooled.plugins import registry
from unfooled.values import listed

if TYPE_CHECKING:
    from unfooled.training.trainer import Trained


@dataclass(frozen=True, kw_only=True)
class FamilySettings(Command):
    """Settings of families that have a flag of their own."""

    patience: int | None = option(None, "Epochs without gain before it stops.")
    hidden: int | None = option(None, "Units per layer.")
    layers: int | None = option(None, "Layers.")
    pool: str | None = option(None, "lstm: `last` or `mean`.")
    dropout: float | None = option(None, "Share dropped while training.")
    vectors: str | None = option(None, "Word vectors: glove-6b-50d, none, or a file.")
    body: str | None = option(None, "bert: folder or hub name to fine-tune. [default: minilm]")
    max_length: int | None = option(None, "Tokens that are read; the rest is cut.")
    minutes: float | None = option(None, "seq2seq: minutes of training, at most; the best epoch is kept.")


@dataclass(frozen=True, kw_only=True)
class Train(FamilySettings, TrainingOptions, Clean, TrustCode):
    EPILOG: ClassVar[str] = f"""\b
Examples:
  unfooled train --model lstm --data reviews.csv --out models/lstm
  unfooled train --model bert --data mr --out models/bert --epochs 2 --max-length 64
  unfooled train --model word-cnn --data nli.csv --text-column premise,hypothesis --out models/cnn
  unfooled train --model svm --data reviews.csv --out models/svm --sweep 30
  unfooled train --model lstm --data reviews.csv --out models/lstm --resume
  unfooled train --model seq2seq-transformer --data train.en,train.de --valid val.en,val.de --out models/en-de
  unfooled train --model seq2seq-lstm --data multi30k --text-column en,de --valid val --minutes 40 -o models/l
\b
Families: {", ".join(registry.names("family"))}.
\b
--list tells what each is, its settings, their defaults and the ranges of --sweep. Settings without a flag of
their own: --set name=value.
"""

    model: str | None = option(None, "A family from the list below.", "-m", show_default=False)
    data: str | None = option(None, "Labelled texts or pairs: file, folder, set name.", "-d")
    out: Path | None = option(None, "Folder of the model.", "-o")
    sweep: int | None = option(None, "Train N times within the ranges of --list; keep the best.", min=1)
    sweep_time: float | None = option(None, "Minutes after which no trial begins.", min=0)
    sampler: str = option("tpe", "How a sweep draws: `tpe` or `random`.")

    def run(self) -> int:
        from rich.console import Console

        from unfooled.report.choices import families_as_json, print_families
        from unfooled.report.progress import TrainProgress
        from unfooled.training.families import find_family
        from unfooled.training.sweep import sweep
        from unfooled.training.trainer import find_classifier, train

        if self.list_:
            print_json(families_as_json(), ensure_ascii=False) if self.json else print_families(Console())
            return Exit.DONE
        model, named, out = self.needed("train", "model", "data", "out")
        family = find_family(model)
        if self.sweep:
            find_classifier(family.name)
        data = self.choose_rows(self.load(named))
        shared = self.values("resume", "restart")
        shared |= {"valid": self.validation(named), "options": self.given(FamilySettings)}
        with TrainProgress(self.console(), family.name) as observer:
            try:
                if self.sweep:
                    trained = sweep(
                        family.name,
                        data,
                        out,
                        trials=self.sweep,
                        minutes=self.sweep_time,
                        sampler=cast(Literal["tpe", "random"], self.sampler),
                        observer=observer,
                        **shared,
                    )
                else:
                    trained = train(family.name, data, out, observer=observer, **shared)
            except KeyboardInterrupt:
                return self.stopped()
        _show(trained, self)
        return Exit.DONE

    def load(self, source: str, *, split: str | None = None, **more: Any) -> Any:
        """What the family is trained on."""
        from unfooled.training.families import NamedData, find_family

        assert self.model is not None
        text = listed(self.text_column)
        return find_family(self.model).load_data(
            NamedData(
                source=source,
                text=None if text is None else tuple(text),
                label=self.label_column,
                split=split or self.split,
                encoding=self.encoding,
                clean=self.clean,
            )
        )


def _show(trained: Trained, options: Train) -> None:
    from unfooled.report.advice import attack_next
    from unfooled.report.training import attack_options, score_line

    if options.json:
        facts = {"path": str(trained.path), "family": trained.family, "seconds": trained.seconds}
        print_json(facts | {"metrics": trained.metrics})
        return
    typer.echo(score_line(trained))
    typer.echo(f"model: {options.out}")
    more = attack_options(trained, options.values("text_column", "label_column", "clean"))
    assert options.out is not None
    line = attack_next(options.out, options.data, split=options.split, valid=options.valid, more=more)
    typer.echo(f"try next: {line}")
