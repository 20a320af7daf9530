"""`unfooled harden`."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import typer

from unfooled.cli.command import Command, Exit, option
from unfooled.cli.options import TrainingOptions, TrustOptions, print_json
from unfooled.errors import UserError

if TYPE_CHECKING:
    from unfooled.defenses.harden import Hardened


@dataclass(frozen=True, kw_only=True)
class MethodSettings(Command):
    """Settings of methods that have a flag of their own."""

    words: int | None = option(None, "Words to swap, or to put noise on.")
    alternatives: int | None = option(None, "Most alternatives per text.")
    similarity: str | None = option(None, "SWITCH: none, rank or filter.")
    weight: float | None = option(None, "Weight of an added text's loss.")
    fresh: bool = option(False, "New random numbers each epoch, or each call.")
    copies: int | None = option(None, "five: copies that vote.")
    sigma: float | None = option(None, "five: standard deviation of the noise.")
    vote: str | None = option(None, "majority, mean-logits or mean-probs.")
    attack: str | None = option(None, "adversarial-training: the attack.")
    share: float | None = option(None, "adversarial-training: share of the rows.")


@dataclass(frozen=True, kw_only=True)
class Harden(MethodSettings, TrainingOptions, TrustOptions):
    EPILOG: ClassVar[str] = """\b
Examples:
  unfooled harden --method fact --model models/bert --data mr --out models/fact
  unfooled harden --method retune --model models/bert --data mr --out models/retuned
  unfooled harden --method fact --model models/lstm --data reviews.csv --alternatives 2 --out models/lstm-fact
  unfooled harden --method five --model models/fact --out models/five-fact --set sigma=1.5
  unfooled harden --method augment --model models/bert --data mr --samples runs/x --out models/augmented
  unfooled harden --method adversarial-training --model models/bert --data mr --out models/at
  unfooled harden --method fact --model models/bert --data mr --out models/fact --resume
\b
Methods:
  fact: SWITCH alternatives of each text join its batch, with the same label
  fuse: votes over the text and its SWITCH alternatives
  five: votes over copies with noise on the embeddings of the most important words
  normalise: undoes disguises of characters before the model reads the text
  augment: SWITCH alternatives, or samples of a finished attack, are added to the training rows
  adversarial-training: each epoch attacks the model as it is then, and trains on the texts that fooled it
  freelb: gradient steps on the input embeddings inside each batch
  retune: more epochs on the plain data: the control for every other method
\b
Settings without a flag of their own: --set name=value. --list shows every setting and its default.
"""

    method: str | None = option(None, "How: a method from the list below.")
    model: str | None = option(None, "The model to harden, as for `attack --model`.", "-m")
    out: Path | None = option(None, "Folder of the hardened model.", "-o")
    samples: Path | None = option(None, "augment: run, or .jsonl of one, whose successes are added.")
    threshold: tuple[str, ...] = option((), "Not here: give it where the model is used.", hidden=True)

    def run(self) -> int:
        from rich.console import Console

        from unfooled.checks.replay import fooling_texts
        from unfooled.defenses.harden import harden
        from unfooled.defenses.methods import find_method
        from unfooled.report.choices import methods_as_json, print_methods
        from unfooled.report.progress import HardenProgress
        from unfooled.training.preparation import DEFAULT_SHARE
        from unfooled.victims.loading import load_victim

        if self.list_:
            print_json(methods_as_json(), ensure_ascii=False) if self.json else print_methods(Console())
            return Exit.DONE
        name, model, out = self.needed("harden", "method", "model", "out")
        if self.threshold:
            raise UserError(
                "a threshold is how a model's scores are used, and harden changes what they are: "
                "the folder that it writes holds none",
                "leave it out, and give --threshold to attack, evaluate or search with the hardened model",
            )
        method = find_method(name)
        if method.kind == "train" and self.data is None:
            raise UserError(f"--data is missing: {method.name} trains", "give the rows to train on")
        data = None
        if method.kind == "train" and self.data is not None:
            data = self.choose_rows(self.load(self.data))
        samples = fooling_texts(self.samples, load_victim(model).labels) if self.samples else None
        with HardenProgress(self.console(), method.name) as observer:
            try:
                hardened = harden(
                    model,
                    data,
                    method=method.name,
                    out=out,
                    valid=self.validation(self.data) if self.data else DEFAULT_SHARE,
                    options=self.given(MethodSettings),
                    samples=samples,
                    observer=observer,
                    **self.values("resume", "restart"),
                )
            except KeyboardInterrupt:
                return self.stopped()
        _show(hardened, self)
        return Exit.DONE


def _show(hardened: Hardened, options: Harden) -> None:
    from unfooled.report.advice import attack_next
    from unfooled.report.tables import duration

    trained = hardened.trained
    if options.json:
        facts: dict[str, Any] = {"path": str(hardened.path), "method": hardened.method}
        facts |= {"settings": dict(hardened.settings), "alone": hardened.alone}
        if trained:
            facts |= {"metrics": trained.metrics, "seconds": trained.seconds}
        print_json(facts)
        return
    if trained:
        valid = trained.metrics.get("valid")
        score = f": validation accuracy {valid['accuracy']:.1%}" if valid else ""
        typer.echo(f"{hardened.method} of {options.model} in {duration(trained.seconds)}{score}")
    else:
        typer.echo(f"{hardened.method} around {options.model}")
        if "relative_sigma" in hardened.settings:
            chosen = hardened.settings
            typer.echo(
                f"sigma {chosen['sigma']:g} is {chosen['relative_sigma']:.2f} of the mean embedding norm; "
                f"the noise on a token is {chosen['relative_noise_norm']:.1f} times as long as an embedding"
            )
    typer.echo(f"model: {options.out}")
    assert options.out is not None
    again = ""
    if not hardened.alone:
        again = f" --victim-option {shlex.quote(f'model={options.model}')}"
        typer.echo(
            f"note: {options.out} cannot be loaded by itself, because a folder may only name models that lie "
            f"below or beside it: name the model each time, or write {hardened.method}:{options.model}"
        )
    line = attack_next(options.out, options.data, split=options.split, valid=options.valid)
    typer.echo(f"try next: {line}{again}")
