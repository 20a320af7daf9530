"""`unfooled guard`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import typer

from unfooled.cli.command import Exit, interrupted, option
from unfooled.cli.options import Attacking, Clean, ModelOptions, Prices, capped, print_json, slug
from unfooled.errors import CapReachedError, UserError
from unfooled.values import pairs, several

if TYPE_CHECKING:
    from unfooled.checks.cures import Cure
    from unfooled.checks.payload import Reader


@dataclass(frozen=True, kw_only=True)
class GuardCommand(Attacking, Clean, ModelOptions, Prices):
    EPILOG: ClassVar[str] = """\b
Examples:
  unfooled guard --model filter.skops --data posts.csv --flag hate,offensive --threshold 0.8
  unfooled guard --model filter.skops --data prompts.csv --flag injection --reader program --limit 300
  unfooled guard --model filter.skops --data sms.csv --flag spam --look-alikes adverts.txt --judge --fix safe
\b
Only texts that the filter catches are attacked, cheapest tricks first; success means that the text is not
flagged at the deployed threshold and can still be read (or undone by a program). Repeat the command to go on.
Then: unfooled gate runs/guard/ladder --min-recall blocked=0.5 --junit gate.xml
"""

    model: str = option(..., "The filter, as for `attack --model`.", "-m")
    data: str = option(..., "Labelled texts that it was not trained on, honest ones too.", "-d")
    flag: tuple[str, ...] = option(..., "Class that is blocked; several by commas.")
    threshold: tuple[str, ...] = option((), "The deployed one: 0.8, or offensive=0.8,hate=0.5.")
    reader: str = option("person", "Who reads what passes: a person, or a program such as an LLM.")
    out: Path | None = None
    limit: int | None = option(None, "Attack N of the rows that should be blocked.", "-n", min=1)
    benign: int = option(2000, "Honest rows that are looked at, at most.", min=2)
    look_alikes: Path | None = option(None, "Harmless texts that look bad, one a line: over-defence.")
    behind: str | None = option(None, "The LLM behind the filter, openai:MODEL@URL: does it still obey?")
    suite: str | None = option(None, "Suite of attacks. [default: the ladder that fits]")
    every: bool = option(False, "Each attack on every row: dearer, tells what each does alone.")
    without: tuple[str, ...] = option((), "Leave an attack out; repeatable.")
    train_data: str | None = option(None, "Rows that it was trained on: retraining is tried as a cure, too.")
    judge: bool = option(False, "Judge whether texts in other words mean the same.")
    fix: Path | None = option(None, "Put the filter with the best cure here, and test it again.")
    price: float = option(0.01, "Most that --fix may add to the false positives.", min=0.0, max=1.0)
    sarif: Path | None = option(None, "Also write SARIF 2.1.0 here, for code hosts.")
    most: float = option(0.1, "SARIF: share that may get through before it is an error.", min=0.0, max=1.0)
    examples: int = option(0, "Texts that got through to show on the page; they may be vile.", min=0)
    eval_results: Path | None = option(None, "Also write Hugging Face's evaluation results here (YAML).")
    eval_dataset: str | None = option(None, "Hub id of the data set, for --eval-results.")
    i_may_test_this: bool = option(False, "The owner of the host allows the test.")

    def run(self) -> int:
        from rich.console import Console

        from unfooled.checks.canary import Followed, followed, plant, require_speaking
        from unfooled.checks.false_alarms import read_lines
        from unfooled.checks.guard import LADDER, guard
        from unfooled.checks.mending import Mended, mend
        from unfooled.checks.worst_case import read_stress
        from unfooled.data.filtered import relabelled
        from unfooled.metrics.validity.judging import judge
        from unfooled.report.eval_results import write_eval_results
        from unfooled.report.guard import PAGE, print_guard, print_mended, write_page
        from unfooled.report.live_checks import LiveWatcher
        from unfooled.report.sarif import write_sarif
        from unfooled.victims.filtering import Filter
        from unfooled.victims.http.chat import open_chat
        from unfooled.victims.http.permission import require_allowed

        rows = self.rows()
        out = self.out or Path("runs") / f"guard-{slug(self.model, self.data)}"
        self._require_room(out)
        require_allowed(self.model, allowed=self.i_may_test_this)
        victim = self.load_model(self.model, flag=several(self.flag))
        assert isinstance(victim, Filter)
        data = self.load(self.data, edit=self.edit, clean=self.clean, sample=self.sample, seed=self.seed)
        labelled = relabelled(data, victim, self.mapped_labels())
        if self.behind:
            require_allowed(self.behind, allowed=self.i_may_test_this)
            labelled = plant(labelled, seed=self.seed)
            with open_chat(self.behind) as speaker:
                require_speaking(speaker, self.behind)
        options: dict[str, Any] = {
            "suite": self.suite,
            "reader": self._reader(),
            "look_alikes": read_lines(self.look_alikes) if self.look_alikes else (),
            "benign": self.benign,
            "every": self.every,
            "without": self.without,
            "everywhere": self.everywhere(),
            "price": self.price,
            "judge": judge if self.judge else None,
            "workers": self.where(self.workers),
            "settings": self.settings(),
            "watcher": LiveWatcher(self.console()),
            "restart": self.restart,
            "caps": self.caps(),
            "train": self.load(self.train_data, split="train", clean=self.clean) if self.train_data else None,
            "train_labels": self.mapped_labels(),
            **rows,
        }
        mended: Mended | None = None
        obeyed: Followed | None = None
        try:
            result = guard(victim, labelled, out=out, **options)
            if self.behind:
                with open_chat(self.behind) as speaker:
                    obeyed = followed(result.examples, speaker, seed=self.seed)
            if self.fix:
                mended = mend(victim, labelled, result, out=out, **options)
        except CapReachedError as reached:
            return capped(reached, f" in {out}")
        except KeyboardInterrupt:
            return interrupted(f"what is finished is saved in {out}")
        page = write_page(result, out / PAGE, mended=mended, obeyed=obeyed, examples=self.examples)
        if self.sarif:
            write_sarif(result, self.sarif, model=self.model, most=self.most)
        if self.eval_results:
            write_eval_results(read_stress(out / LADDER), self.eval_results, dataset=self.eval_dataset)
        if self.json:
            found = result.to_dict()
            if mended:
                found["mended"] = {"cure": mended.cure.to_dict(), "result": mended.result.to_dict()}
            if obeyed:
                found["followed"] = obeyed.to_dict()
            print_json(found)
        else:
            print_guard(Console(), result, obeyed)
            if self.fix:
                print_mended(Console(), result, mended)
            typer.echo(f"\npage: {page}")
        saved = self._save(mended.cure, out) if mended else ""  # last: where it fails, all else is there
        if saved and not self.json:
            typer.echo(saved)
        tests = [result, *([mended.result] if mended else [])]
        failed = any(test.undecided or test.unanswered for test in tests)
        return Exit.SOME_ERRORS if failed else Exit.DONE

    def _require_room(self, out: Path) -> None:
        """Refuse, before anything is asked, places that the mended filter could not be written to."""
        from unfooled.checks.cures import RETRAINED
        from unfooled.checks.retraining import require_ours

        if self.train_data:
            require_ours(out / RETRAINED, "move it away, or name another --out")
        if self.fix is None:
            return
        for place in [self.fix, *([self._beside(self.fix)] if self.train_data else [])]:
            for kept in (out, Path(self.model)):
                if kept.resolve().is_relative_to(place.resolve()):
                    raise UserError(f"--fix would replace {kept}", "name another folder with --fix")
            require_ours(place, or_defence=True)

    @staticmethod
    def _beside(fix: Path) -> Path:
        """Where a retrained model goes that has a defence around it."""
        return fix.with_name(f"{fix.name}-retrained")

    def _save(self, cure: Cure, out: Path) -> str:
        """Write the mended filter; what to say of it."""
        from unfooled.checks.retraining import copy_model, vacate
        from unfooled.defenses.harden import harden

        assert self.fix is not None
        model = self.model
        if cure.model:
            place = self._beside(self.fix) if cure.steps else self.fix
            copy_model(out / cure.model, place)
            model = str(place)
        if not cure.steps:
            return f"mended filter: {self.fix}"
        vacate(self.fix, or_defence=True)
        chosen = {"steps": cure.steps, "table": cure.table}
        hardened = harden(model, method="normalise", out=self.fix, options=chosen, restart=True)
        return f"mended filter: {self.fix}{'' if hardened.alone else self._named_again(model)}"

    def _named_again(self, model: str) -> str:
        """What every command must be told of a model that is not in the folder."""
        labels = f" --labels {self.labels}" if self.labels else ""
        return f" (name its model each time: --victim-option model={model}{labels})"

    def _reader(self) -> Reader:
        if self.reader == "person":
            return "person"
        if self.reader == "program":
            return "program"
        raise UserError(f"--reader {self.reader} is not known", "write person or program")

    def thresholds(self) -> dict[str, str] | None:
        """A number alone is for every flagged class."""
        given = several(self.threshold)
        if len(given) == 1 and "=" not in given[0]:
            return dict.fromkeys(several(self.flag), given[0])
        return pairs(given, "--threshold") or None
