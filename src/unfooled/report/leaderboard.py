"""A static page that ranks models by their worst case: a table that sorts, and asks nobody for anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from unfooled.checks.worst_case import FILE, is_stress, read_stress
from unfooled.errors import DataError
from unfooled.files import write_named
from unfooled.metrics.summary import Rate
from unfooled.report.eval_results import read_eval_results
from unfooled.report.evaluation import rate
from unfooled.report.stress import rendered
from unfooled.report.templates import page_file

HEADINGS = (
    "model",
    "data",
    "suite",
    "worst case",
    "by valid texts",
    "clean",
    "n",
    "queries",
    "unfooled",
    "date",
)
_TEXTS = ("model", "data", "suite", "unfooled", "date")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One model under one suite."""

    model: str
    data: str
    suite: str
    worst: Rate
    valid: Rate | None
    clean: Rate | None
    n: int
    queries: int
    version: str
    date: str
    remembers: bool = False  # its answers depend on earlier questions, so its number is no robustness

    def cells(self) -> list[tuple[str, str]]:
        """What is shown, and what it is sorted by."""
        return [
            (f"{self.model} (remembers)" if self.remembers else self.model, self.model),
            (self.data, self.data),
            (self.suite, self.suite),
            _share(self.worst),
            _share(self.valid),
            _share(self.clean),
            (f"{self.n:,}", str(self.n)),
            (f"{self.queries:,}", str(self.queries)),
            (self.version, self.version),
            (self.date, self.date),
        ]


def read_entries(sources: Sequence[Path]) -> list[Entry]:
    """From folders of `unfooled stress`, their stress.json, and evaluation results as YAML; best first."""
    found: list[Entry] = []
    for source in sources:
        if source.suffix in (".yaml", ".yml"):
            found += _from_yaml(source)
        elif is_stress(source):
            found.append(_from_stress(source))
        else:
            raise DataError(
                f"{source}: is no folder of `unfooled stress` and no file of evaluation results",
                f"give a folder with {FILE}, or what --eval-results wrote",
            )
    if not found:
        raise DataError("there is nothing to rank", "name at least one folder of `unfooled stress`")
    return sorted(
        found,
        key=lambda entry: (entry.remembers, -entry.worst.value if entry.worst.n else 1.0, entry.model),
    )


def write_leaderboard(sources: Sequence[Path], out: Path) -> Path:
    entries = read_entries(sources)
    suites = sorted({entry.suite for entry in entries})
    page = rendered(
        "leaderboard.html",
        title="Robustness in the worst case",
        headings=[(heading, "text" if heading in _TEXTS else "number") for heading in HEADINGS],
        rows=[entry.cells() for entry in entries],
        mixed=len({(entry.suite, entry.data) for entry in entries}) > 1,
        suites=suites,
        js=page_file("leaderboard.js"),
    )
    return write_named(out, page)


def _from_stress(source: Path) -> Entry:
    result = read_stress(source)
    return Entry(
        model=result.victim,
        data=result.data,
        suite=result.suite,
        worst=result.worst,
        valid=result.valid,
        clean=result.clean,
        n=result.n,
        queries=result.queries,
        version=result.version,
        date=result.date,
        remembers=bool(result.remembers),
    )


def _from_yaml(source: Path) -> list[Entry]:
    """Entries of one model, data set and suite belong together."""
    together: dict[tuple[str, str, str], dict[str, dict[str, str]]] = {}
    for entry in read_eval_results(source):
        key = (entry.get("model", ""), entry["data"], entry.get("suite", ""))
        together.setdefault(key, {})[entry.get("measure", "")] = entry
    found = []
    for (model, data, suite), measures in together.items():
        if "worst" not in measures:
            continue
        worst = measures["worst"]
        try:
            found.append(
                Entry(
                    model=model or source.stem,
                    data=data,
                    suite=suite,
                    worst=_rate(worst),
                    valid=_rate(measures["valid"]) if "valid" in measures else None,
                    clean=_rate(measures["clean"]) if "clean" in measures else None,
                    n=int(worst["n"]),
                    queries=int(worst["queries"]),
                    version=worst["unfooled"],
                    date=worst["date"],
                    remembers=worst.get("remembers") == "yes",
                )
            )
        except (KeyError, ValueError) as error:
            raise DataError(
                f"{source}: an entry of {model} lacks something ({error})", "give what --eval-results wrote"
            ) from error
    return found


def _rate(entry: dict[str, str]) -> Rate:
    value, low, high = (float(entry[name]) / 100 for name in ("value", "low", "high"))
    n = int(entry["n"])
    if not (0 <= low <= high <= 1 and 0 <= value <= 1 and n > 0):  # also false for what is no number
        raise ValueError(f"{entry['value']} ({entry['low']}–{entry['high']}) of {n} is no share in percent")
    return Rate(value, low, high, n)


def _share(value: Rate | None) -> tuple[str, str]:
    if value is None or not value.n:
        return "–", ""
    return rate(value), f"{value.value:.6f}"
