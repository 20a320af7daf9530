"""The command line: one small file per command, imported only when that command runs."""

from __future__ import annotations

import os
import sys
from enum import IntEnum
from pathlib import Path
from typing import Annotated

import typer

from unfooled import __version__
from unfooled.cli import (
    analysis_commands,
    evaluation_commands,
    harden_commands,
    import_commands,
    model_commands,
    playground_commands,
    report_commands,
    reproduce_commands,
    study_commands,
    threshold_commands,
    word_commands,
)
from unfooled.cli.options import (
    AnyLanguage,
    AsJson,
    AttackName,
    Clean,
    Encoding,
    LabelColumn,
    MaxWords,
    RunFolder,
    Seed,
    Split,
    TextColumn,
    Thresholds,
    TrustPickle,
    TrustRemoteCode,
    TrustTypes,
)
from unfooled.cli.pipes import ending_with_the_reader
from unfooled.errors import UserError


class Exit(IntEnum):
    DONE = 0
    GATE_FAILED = 1
    MISTAKE = 2  # the user can mend it; the message says how
    SOME_ERRORS = 3  # finished, but some examples could not be attacked
    GATE_UNDECIDED = 4  # too few examples to tell
    INTERRUPTED = 130
    NOT_READ = 141  # who reads the output stopped, as `head` does


EPILOG = """
Exit codes: 0 done · 1 a gate failed · 2 something to mend, see the message · 3 done, but some examples
ended in an error · 4 a gate is not decided by so few examples · 130 interrupted, results so far are saved
and the same command goes on · 141 the reader of the output, such as head, stopped reading.
"""

app = typer.Typer(
    name="unfooled",
    help="Find the words that fool a text classifier.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Verbatim = "\b\n"  # keeps the line breaks of examples in --help


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


@app.command(
    epilog="""\b
Examples:
  unfooled attack --model model.skops --data reviews.csv --attack textfooler --limit 500 --out runs/x
  unfooled attack --model my_module:classify --data test.jsonl.gz --labels negative,positive
  unfooled attack --model ./bert-dir --data nli.csv --text-column premise,hypothesis --workers 2
  unfooled attack --model http://127.0.0.1:8000/predict --data d.csv --labels ham,spam
  unfooled attack --model ./bert-dir --data mr.csv --attack bae-r-and-i --masked-lm bert-base-uncased
  unfooled attack --model ./bert-dir --data tweets.csv --attack breaking-bert --clean tweets
  unfooled attack --model ./bert-dir --data tweets.csv --attack breaking-bert --importance random
  unfooled attack --model ./bert-dir --data mr.csv --attack bae --constraint fluency:6 --constraint grammar
  unfooled attack --model m.skops --data posts.csv --only offensive --threshold offensive=0.8 --limit 200
  unfooled attack --model ./en-de --data test.en,test.de --attack typo --candidates table:typos.txt
  unfooled attack --model ./en-de --data test.en,test.de --attack targeted-keyword --target Hund
"""
)
def attack(
    model: Annotated[
        str,
        typer.Option("--model", "-m", help="Path, module:function, hub name, http(s) address, or `fake`."),
    ],
    data: Annotated[
        str, typer.Option("--data", "-d", help="CSV, TSV, JSONL (.gz), Parquet, datasets folder, set name.")
    ],
    attack: AttackName = "textfooler",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder of the run. [default: runs/…]")
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=1, help="Attack the first N rows (of the class of --only)."),
    ] = None,
    sample: Annotated[int | None, typer.Option(min=1, help="Attack N rows drawn at random (seeded).")] = None,
    workers: Annotated[
        int, typer.Option("--workers", "-w", min=1, help="Processes; one per core is best.")
    ] = 1,
    seed: Seed = 0,
    budget: Annotated[int | None, typer.Option(min=1, help="Most victim queries per example.")] = None,
    target: Annotated[
        str | None, typer.Option(help="Class to reach, or a translation's keyword. [default: any]")
    ] = None,
    max_words: MaxWords = 5000,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    edit: Annotated[
        str | None, typer.Option(help="Which text column of a pair may be edited. [default: the last]")
    ] = None,
    split: Split = "test",
    encoding: Encoding = "utf-8-sig",
    labels: Annotated[
        str | None, typer.Option(help="Victim's class names in its order, comma-separated.")
    ] = None,
    label_map: Annotated[str | None, typer.Option(help="Data label=victim label, comma-separated.")] = None,
    threshold: Thresholds = None,
    encoder: Annotated[str | None, typer.Option(help="Sentence encoder for similarity constraints.")] = None,
    neighbours: Annotated[
        str | None, typer.Option(help="Neighbour table: name, JSON table or vectors file.")
    ] = None,
    masked_lm: Annotated[
        str | None, typer.Option(help="Masked language model of BAE: folder, hub name or `trigram`.")
    ] = None,
    importance: Annotated[
        str | None,
        typer.Option(help="Order of words: gradient, deletion, attention[:LAYER], random, masking."),
    ] = None,
    candidates: Annotated[
        str | None,
        typer.Option(help="Replacements: neighbours, wordnet, datamuse, fill-mask, table:PATH, characters."),
    ] = None,
    constraint: Annotated[
        list[str] | None,
        typer.Option(help="One more thing to respect: fluency:MOST_LOSS, grammar[:MOST_NEW_ERRORS]."),
    ] = None,
    only: Annotated[
        str | None, typer.Option(help="Attack rows of this class only; `any`: every class.")
    ] = None,
    any_language: AnyLanguage = False,
    clean: Clean = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Change a setting shown by `unfooled show`: path=value.")
    ] = None,
    victim_option: Annotated[
        list[str] | None, typer.Option(help="name=value for the victim's adapter.")
    ] = None,
    trust_pickle: TrustPickle = False,
    trust_remote_code: TrustRemoteCode = False,
    trust: TrustTypes = None,
    window: Annotated[
        int, typer.Option(min=1, help="Examples under attack at once; speed and memory only.")
    ] = 256,
    restart: Annotated[
        bool, typer.Option("--restart", help="Discard an earlier run in the same folder.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON and nothing else.")] = False,
) -> None:
    """Attack a classifier with labelled texts, or a translation model; repeat the command to go on."""
    from unfooled.cli.attack import AttackOptions, run_attack

    options = AttackOptions(
        model=model,
        data=data,
        attack=attack,
        out=out,
        limit=limit,
        sample=sample,
        workers=workers,
        seed=seed,
        budget=budget,
        target=target,
        max_words=max_words,
        text_column=text_column,
        label_column=label_column,
        edit=edit,
        split=split,
        encoding=encoding,
        labels=labels,
        label_map=label_map,
        thresholds=tuple(threshold or ()),
        encoder=encoder,
        neighbours=neighbours,
        masked_lm=masked_lm,
        importance=importance,
        candidates=candidates,
        constraints=tuple(constraint or ()),
        only=only,
        any_language=any_language,
        clean=clean,
        settings=tuple(set_ or ()),
        victim_options=tuple(victim_option or ()),
        trust_pickle=trust_pickle,
        window=window,
        restart=restart,
        json=json,
    )
    raise typer.Exit(run_attack(options))


app.command(epilog=model_commands.TRAIN_EPILOG)(model_commands.train)
app.command(epilog=model_commands.COMPARE_EPILOG)(model_commands.compare)
app.command(epilog=word_commands.WORDS_EPILOG)(word_commands.words)
app.command(epilog=analysis_commands.ANALYSE_EPILOG)(analysis_commands.analyse)
app.command(epilog=threshold_commands.CALIBRATE_EPILOG)(threshold_commands.calibrate)
app.command(epilog=threshold_commands.TRANSFER_EPILOG)(threshold_commands.transfer)
app.command(epilog=reproduce_commands.REPRODUCE_EPILOG)(reproduce_commands.reproduce)
app.command(epilog=harden_commands.HARDEN_EPILOG)(harden_commands.harden)
app.command(epilog=harden_commands.SEARCH_EPILOG)(harden_commands.search)
app.command(epilog=evaluation_commands.EVALUATE_EPILOG)(evaluation_commands.evaluate)
app.command(epilog=evaluation_commands.REPLAY_EPILOG)(evaluation_commands.replay)
app.command(epilog=report_commands.REPORT_EPILOG)(report_commands.report)
app.command(epilog=report_commands.MEASURE_EPILOG)(report_commands.measure)
app.command(epilog=report_commands.GATE_EPILOG)(report_commands.gate)
app.command(epilog=playground_commands.PLAYGROUND_EPILOG)(playground_commands.playground)
app.add_typer(study_commands.app)
app.add_typer(import_commands.app, name="import")


@app.command()
def attacks(json: AsJson = False) -> None:
    """List the attacks, what they need and where they come from."""
    from unfooled.cli.listing import list_attacks

    list_attacks(as_json=json)


@app.command(epilog="\b\nExample:\n  unfooled show textfooler@paper\n")
def show(
    name: Annotated[str, typer.Argument(help="An attack, such as textfooler or textfooler@paper.")],
    json: AsJson = False,
) -> None:
    """Show an attack: its paper, its algorithm, its settings and how it differs from the authors' code."""
    from unfooled.cli.listing import show_attack

    show_attack(name, as_json=json)


@app.command(
    epilog="""\b
Examples:
  unfooled resources                 what is here and what is not
  unfooled resources get minilm      fetch one from the package registry
  unfooled resources get all         fetch and build everything that takes no training
  unfooled resources build masked-lm --minutes 40      train the masked language model, or go on with it
  unfooled resources build counter-fitted --again      build it anew
"""
)
def resources(
    action: Annotated[
        str, typer.Argument(help="`list`, `get` or `build`, the last two followed by names.")
    ] = "list",
    names: Annotated[list[str] | None, typer.Argument(help="Names, or `all`.")] = None,
    minutes: Annotated[
        float | None, typer.Option(help="build: minutes of training in all, earlier ones included.")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="build: replace what is here, from the start.")
    ] = False,
    json: AsJson = False,
) -> None:
    """List, fetch or build word vectors, encoders, language models and data. Nothing else downloads them."""
    from unfooled.cli.resources import run_resources

    run_resources(action, names or [], minutes=minutes, again=again, as_json=json)


@app.command(
    epilog="""\b
Examples:
  unfooled export runs/x results.csv
  unfooled export runs/x results.parquet
  unfooled export runs/x results.jsonl
"""
)
def export(
    run: RunFolder,
    out: Annotated[Path, typer.Argument(help="File ending in .csv, .jsonl or .parquet; or a folder.")],
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="CSV as it is: cells that a spreadsheet would run stay so.")
    ] = False,
) -> None:
    """Write a run's results as a table."""
    from unfooled.runs.export import export as write

    rows = write(run, out, force=force, raw=raw)
    typer.echo(f"{rows} rows written to {out}")


@app.command(epilog="\b\nExample:\n  unfooled summary runs/x --examples 10\n")
def summary(
    run: RunFolder,
    examples: Annotated[int, typer.Option(min=0, help="How many word diffs to show.")] = 5,
    json: AsJson = False,
) -> None:
    """Show the table and some word diffs of a run again."""
    from unfooled.cli.render import show_run

    show_run(run, examples=examples, as_json=json)


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Where the model, the run and the report go.")
    ] = Path("demo"),
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many sentences to attack.")] = 100,
) -> None:
    """Train a small sentiment classifier on real reviews, attack it and write a report folder."""
    from unfooled.cli.demo import run_demo

    raise typer.Exit(run_demo(out, limit))


def _wait_without_spinning() -> None:
    """Threads of a model that wait for each other sleep, unless the user wants otherwise.

    By default they spin, and on a machine with other work that costs many times what the model does. The
    libraries read this once, when they are first imported; it changes no number.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def main() -> None:
    """Run the command; a user's error is shown without a traceback."""
    _wait_without_spinning()
    with ending_with_the_reader(Exit.NOT_READ):
        try:
            app()
        except UserError as error:
            from unfooled.report.diffs import visible

            typer.echo(f"error: {visible(str(error))}", err=True)
            sys.exit(Exit.MISTAKE)
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            sys.exit(Exit.INTERRUPTED)
