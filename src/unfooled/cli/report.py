"""`unfooled report` and `unfooled gate`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import Progress

from unfooled.checks import gate
from unfooled.checks.gate import Rule
from unfooled.checks.tracking import log_to_mlflow, log_to_tensorboard
from unfooled.cli.app import Exit
from unfooled.errors import RunFileError, UserError
from unfooled.metrics.measures import measure_run, parse_measure
from unfooled.metrics.summary import Mean, summarise
from unfooled.report.diffs import in_markdown, visible
from unfooled.report.folder import write_report
from unfooled.report.html import write_html
from unfooled.runs.file import RunFile


def run_report(
    runs: Sequence[Path],
    out: Path,
    *,
    folder: bool,
    study: Path | None,
    tensorboard: Path | None,
    mlflow: str | None,
) -> None:
    console = Console(stderr=True)
    if folder and len(runs) > 1:
        raise UserError("--folder takes one run", "leave --folder out to compare several in one page")
    with console.status("Writing the report …"):
        written = write_report(runs[0], out) / "report.html" if folder else out
        if not folder or study is not None:
            write_html(runs, written, study=study)
    for run in runs:
        if tensorboard is not None:
            log_to_tensorboard(run, tensorboard / (run.parent.name if run.suffix == ".sqlite" else run.name))
        if mlflow is not None:
            log_to_mlflow(run, uri=mlflow)
    typer.echo(f"{written}: {written.stat().st_size / 1e6:.1f} MB, open it in a browser")


def run_measure(run: Path, names: Sequence[str], *, as_json: bool) -> None:
    console = Console(stderr=True, quiet=as_json)
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("measuring")
        done = measure_run(run, names, progress=lambda now, all_: bar.update(task, completed=now, total=all_))
    with closing(RunFile.read(run)) as file:
        found = {name: Mean.of(list(file.measured(name).values())) for name in done}
    if as_json:
        typer.echo(json.dumps({name: mean.to_dict() for name, mean in found.items()}, indent=2))
        return
    for name, mean in found.items():
        title = parse_measure(name)[0].title
        told = (
            f"{mean.value:.3f} ({mean.low:.3f} – {mean.high:.3f}, n = {mean.n})" if mean.n else "nothing fell"
        )
        typer.echo(f"{name}: {title}: {told}")


def run_gate(
    run: Path,
    least: Mapping[str, float | None],
    most: Mapping[str, float | None],
    recalls: Mapping[str, float],
    *,
    junit: Path | None,
    markdown: Path | None,
    undecided_passes: bool,
    as_json: bool,
) -> int:
    rules = [Rule(name, "min", bound) for name, bound in least.items() if bound is not None]
    rules += [Rule(name, "max", bound) for name, bound in most.items() if bound is not None]
    rules += [Rule("recall", "min", bound, label) for label, bound in recalls.items()]
    if all(rule.measure == "errors" for rule in rules):
        raise UserError("the gate has no rule", "give one, such as --min-aua 0.6 or --max-success 0.3")
    with closing(RunFile.read(run)) as file:
        if missing := file.missing():
            raise UserError(
                f"{run}: {missing:,} examples of this run are missing, so nothing is judged",
                "repeat the attack's command: it goes on where it stopped",
            )
        summary = summarise(file)
        environment = file.header["environment"]
    name = f"{environment['attack']} on {environment['victim']}, data {environment['data']}"
    judged = gate.apply_rules(summary, rules)
    verdict = gate.overall(judged)
    cautions = [*([str(summary.tries)] if summary.tries.few else []), *summary.cautions]
    if junit:
        _write(junit, gate.junit(judged, name=visible(name), cautions=list(map(visible, cautions))))
    if markdown:
        told = list(map(in_markdown, cautions))
        _write(markdown, gate.markdown(judged, name=in_markdown(name), cautions=told))
    if as_json:
        found = [
            {"rule": str(one.rule), "judgement": one.judgement, "reason": one.reason, **one.rate.to_dict()}
            for one in judged
        ]
        answer = {
            "gate": verdict,
            "rules": found,
            "warnings": list(summary.cautions),
            "tries": summary.tries.to_dict(),
        }
        typer.echo(json.dumps(answer, indent=2, ensure_ascii=False))
    else:
        for one in judged:
            typer.echo(f"{one.judgement:9}  {visible(str(one))}")
        for caution in cautions:
            typer.echo(f"warning    {visible(caution)}")
        typer.echo(f"gate: {verdict}")
    if verdict == "undecided" and undecided_passes:
        return Exit.DONE
    return {"pass": Exit.DONE, "fail": Exit.GATE_FAILED, "undecided": Exit.GATE_UNDECIDED}[verdict]


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RunFileError(
            f"{path}: cannot be written ({error.strerror or error})", "choose another path"
        ) from error
