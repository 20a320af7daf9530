"""Evaluation results as the Hugging Face Hub reads them from a model's folder `.eval_results`.

The format (page "Evaluation Results" of the Hub's documentation): a YAML list; an entry names the data set
and its task, gives one value, a date, and notes. An entry has one value only, so the worst case, the clean
accuracy and the accuracy by valid texts are an entry each, told apart by their task; what else belongs to a
value stands in its notes as `name=value; …`, from which `unfooled leaderboard` reads it back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from unfooled.checks.worst_case import Stress
from unfooled.errors import DataError, UserError
from unfooled.extras import libraries_of
from unfooled.files import write_named
from unfooled.metrics.summary import Rate

FRAMEWORK = "unfooled"
_MEASURES = ("worst", "valid", "clean")
_HUB_ID = re.compile(r"[\w-]+|[\w.-]+/[\w.-]+")
_LARGEST = 1 << 20  # bytes of a file that is read


def write_eval_results(result: Stress, out: Path, *, dataset: str | None = None) -> Path:
    """Write the file; `dataset` is the Hub id of the data, where its name here is another."""
    return write_named(out, "".join(_yaml(entry) for entry in entries(result, dataset=dataset)))


def entries(result: Stress, *, dataset: str | None = None) -> list[dict[str, Any]]:
    """Percentages, as the Hub shows them, each with what is needed to read it."""
    name = dataset or result.data
    if not _HUB_ID.fullmatch(name):
        raise UserError(
            f"{name!r} is no id of a data set on the Hub", "give it: --eval-dataset ORGANISATION/NAME"
        )
    found = []
    for measure in _MEASURES:
        rate: Rate | None = getattr(result, measure)
        if rate is None or not rate.n:
            continue
        notes = {
            "model": result.victim,
            "suite": result.suite,
            "measure": measure,
            "low": f"{100 * rate.low:.2f}",
            "high": f"{100 * rate.high:.2f}",
            "n": rate.n,
            "queries": result.queries,
            "unfooled": result.version,
            **({"remembers": "yes"} if result.remembers else {}),
        }
        found.append(
            {
                "dataset": {"id": name, "task_id": f"{_task(result.suite)}_{measure}"},
                "value": round(100 * rate.value, 2),
                "date": result.date,
                "evaluation_framework": FRAMEWORK,
                "notes": "; ".join(f"{key}={_plain(value)}" for key, value in notes.items()),
            }
        )
    return found


def read_eval_results(path: Path) -> Iterator[dict[str, str]]:
    """Entries that were written here, with what their notes say; those of other tools are passed by."""
    with libraries_of("torch", "yaml", needed_for="reading YAML"):
        yaml: Any = import_module("yaml")
    try:
        if path.stat().st_size > _LARGEST:
            raise DataError(f"{path}: is too large for evaluation results", "give what --eval-results wrote")
        stored = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise DataError(f"{path}: cannot be read ({error})", "give what --eval-results wrote") from error
    for entry in stored if isinstance(stored, list) else []:
        if not isinstance(entry, Mapping) or entry.get("evaluation_framework") != FRAMEWORK:
            continue
        dataset, value = entry.get("dataset"), entry.get("value")
        if isinstance(dataset, Mapping) and isinstance(value, int | float):
            pairs = (part.partition("=") for part in _text(entry.get("notes")).split("; "))
            notes = {name: content for name, _, content in pairs}
            yield notes | {
                "data": _text(dataset.get("id")),
                "value": str(value),
                "date": _text(entry.get("date")),
            }


def _text(value: object) -> str:
    """Nothing but strings: an alias in YAML can stand for a structure that is endless when written out."""
    return value if isinstance(value, str) else ""


def _task(suite: str) -> str:
    return re.sub(r"\W+", "_", suite)


def _plain(value: object) -> str:
    """Without what separates notes."""
    return " ".join(str(value).replace(";", ",").split())


def _yaml(entry: Mapping[str, Any]) -> str:
    """One entry of the list. JSON's strings and numbers are YAML's, so nothing in them can be misread."""
    lines = []
    for name, value in entry.items():
        if isinstance(value, Mapping):
            lines.append(f"{name}:")
            lines += [f"  {inner}: {json.dumps(content)}" for inner, content in value.items()]
        else:
            lines.append(f"{name}: {json.dumps(value)}")
    return "\n".join(("- " if number == 0 else "  ") + line for number, line in enumerate(lines)) + "\n"
