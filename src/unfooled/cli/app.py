"""The command line: the table of commands, each a file of its own that is imported when it runs."""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, TextIO

import typer

from unfooled import __version__
from unfooled.cli.command import WING, AllCommands, Exit, Group, LazyGroup, Table
from unfooled.errors import UserError

COMMANDS: Table = {
    "attack": (
        "unfooled.cli.attack:Attack",
        "Attack a classifier with labelled texts, or a translation model; repeat the command to go on.",
    ),
    "train": (
        "unfooled.cli.train:Train",
        "Train a classifier of one of the papers' families; the folder is a model for every other command.",
    ),
    "compare": (
        "unfooled.cli.compare:Compare",
        "Show models side by side: accuracy, F1, size, speed and training time, as a table and a plot.",
    ),
    "words": (
        "unfooled.cli.words:Words",
        "Show and save the words that speak most for each class, for the attacks that swap them.",
    ),
    "trigger": (
        "unfooled.cli.trigger:LearnTriggers",
        "Learn a few words that, put before any text of a class, make a torch model take it for another.",
    ),
    "analyse": (
        WING,
        "Look behind a run: attention and embeddings before and after, confusion, words changed, PCA.",
    ),
    "calibrate": (
        "unfooled.cli.calibrate:Calibrate",
        "Map a published similarity threshold to another sentence encoder, by equal shares of real pairs.",
    ),
    "transfer": (
        "unfooled.cli.transfer:TransferTexts",
        "Score the texts that fooled one model on other models; nothing is searched anew.",
    ),
    "reproduce": (
        WING,
        "Measure the findings of a paper, judge each claim, and write a page about it.",
    ),
    "harden": (
        "unfooled.cli.harden:Harden",
        "Make a classifier harder to fool: train it on, or put a defence around it.",
    ),
    "search": (
        "unfooled.cli.search:SearchCommand",
        "Try random settings of a defence for a while; "
        "keep those with the best accuracy, clean and pre-made.",
    ),
    "evaluate": (
        "unfooled.cli.evaluate:Evaluate",
        "Compare models clean, on pre-made samples and under attack; check each gain and give a verdict.",
    ),
    "stress": (
        "unfooled.cli.stress:StressCommand",
        "Attack a classifier with a suite of attacks and say what accuracy is left in the worst case.",
    ),
    "guard": (
        "unfooled.cli.guard:GuardCommand",
        "Test a moderation, spam or injection filter as it is deployed: what gets through, at what price.",
    ),
    "leaderboard": (
        "unfooled.cli.leaderboard:Leaderboard",
        "Write one page that ranks models by their worst case, from folders of `stress`.",
    ),
    "replay": (
        "unfooled.cli.replay:Replay",
        "Show adversarial samples that were made on one model to others.",
    ),
    "report": (
        "unfooled.cli.report:Report",
        "Write one self-contained HTML page about a run, or several side by side.",
    ),
    "measure": (
        "unfooled.cli.measure:MeasureCommand",
        "Measure the texts that a run found: similarity, fluency, grammar. Nothing is attacked again.",
    ),
    "judge": Group(
        "Give every success of a run a probability of being valid: `unfooled judge RUN`.",
        {
            "run": (
                "unfooled.cli.judge:JudgeRun",
                "Judge a run's successes and show both numbers: accuracy under attack, and by valid texts.",
            ),
            "fit": (
                "unfooled.cli.judge:FitJudge",
                "Fit the judge on what people said of altered texts, and show how good it is.",
            ),
        },
        default="run",
    ),
    "gate": (
        "unfooled.cli.gate:Gate",
        "Pass or fail a run by bounds on its rates, as its intervals allow.",
    ),
    "playground": (
        WING,
        "Open a page to type a text, attack it and watch every step, on one model or two side by side.",
    ),
    "attacks": (
        "unfooled.cli.attacks:Attacks",
        "List the attacks, what they need and where they come from.",
    ),
    "show": (
        "unfooled.cli.attacks:Show",
        "Show an attack: its paper, its algorithm, its settings and how it differs from the authors' code.",
    ),
    "resources": (
        "unfooled.cli.resources:Resources",
        "List, fetch or build word vectors, encoders, language models and data. Nothing else downloads them.",
    ),
    "merge": (
        "unfooled.cli.merge:MergeShards",
        "Join the runs that `attack --shard` wrote into the run that was cut.",
    ),
    "export": ("unfooled.cli.export:Export", "Write a run's results as a table."),
    "summary": ("unfooled.cli.summary:ShowSummary", "Show the table and some word diffs of a run again."),
    "demo": (
        "unfooled.cli.demo:Demo",
        "Train a small sentiment classifier on real reviews, attack it and write a report folder.",
    ),
    "study": Group(
        "Let people judge adversarial texts: make a study, serve its page, report what they say.",
        {
            "create": (
                WING,
                "Sample successes of runs, mix in originals and attention checks, "
                "and give every annotator a code.",
            ),
            "serve": (WING, "Open the page on which annotators judge, one item at a time."),
            "report": (
                WING,
                "Say what people think so far: "
                "accuracy, naturalness, readability, agreement, quality, disputes.",
            ),
        },
    ),
    "import": Group(
        "Make a run of what another tool wrote down.",
        {
            "textattack": (
                "unfooled.cli.import_textattack:ImportTextAttack",
                "A log of TextAttack, for `report`, `measure`, `gate` and `transfer`.",
            )
        },
    ),
}

EPILOG = """
Exit codes: 0 done · 1 a gate failed · 2 something to mend, see the message · 3 done, but some examples
ended in an error · 4 a gate is not decided by so few examples · 5 stopped at --max-cost or --max-hours ·
130 interrupted, results so far are saved and the same command goes on · 141 the reader of the output, such
as head, stopped reading.
"""


class _Unfooled(LazyGroup):
    def __init__(self, **settings: Any) -> None:
        super().__init__(AllCommands(COMMANDS), **settings)


app = typer.Typer(
    name="unfooled",
    cls=_Unfooled,
    help="Find the words that fool a text classifier.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"unfooled {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Find the words that fool a text classifier."""


def _wait_without_spinning() -> None:
    """Threads of a model that wait for each other sleep, unless the user wants otherwise.

    By default they spin, and on a machine with other work that costs many times what the model does. The
    libraries read this once, when they are first imported; it changes no number.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def collect_rarely() -> None:
    """The libraries of a model make a million objects that stay. Looking through them for rubbish again and
    again while they are imported took a sixth of that time."""
    gc.set_threshold(100_000, 20, 100)


class _Pipe(io.FileIO):
    """Ends the command on the first write that nobody can read.

    The exception is no OSError, which the libraries that print would each turn into an ending of their own:
    a failure, or a message. What is written on the way out goes nowhere.
    """

    def __init__(self, descriptor: int, code: int) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self._code = code

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            raise SystemExit(self._code) from None


@contextmanager
def _ending_with_the_reader(code: int) -> Iterator[None]:
    """Standard output and error end the process with `code` when their reader is gone."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (_watched(stream, code) for stream in before)
    try:
        yield
    finally:
        try:
            # What is still held back would meet the closed pipe when the interpreter ends.
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            sys.stdout, sys.stderr = before


def _watched(stream: TextIO, code: int) -> TextIO:
    if type(stream) is not io.TextIOWrapper:
        return stream  # a test or a notebook has put something of its own there
    stream.flush()
    pipe: Any = _Pipe(stream.fileno(), code)
    held_back = isinstance(stream.buffer, io.BufferedWriter)  # not so where the user wants every byte at once
    return io.TextIOWrapper(
        io.BufferedWriter(pipe) if held_back else pipe,
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def main() -> None:
    """Run the command; a user's error is shown without a traceback."""
    _wait_without_spinning()
    collect_rarely()
    with _ending_with_the_reader(Exit.NOT_READ):
        try:
            app()
        except UserError as error:
            from unfooled.report.diffs import visible

            typer.echo(f"error: {visible(str(error))}", err=True)
            sys.exit(Exit.MISTAKE)
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            sys.exit(Exit.INTERRUPTED)
