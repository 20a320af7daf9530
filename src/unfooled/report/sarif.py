"""A test of a filter as SARIF 2.1.0, which code hosts show beside the code.

One rule and one result per technique, not per text: the finding is that a technique works. The location is
the filter's own file; a fingerprint of filter and technique keeps a finding the same between runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unfooled.checks.guard import FilterTest, Rung
from unfooled.checks.techniques import ATLAS, NIST, VERSIONS, Technique, technique_of
from unfooled.files import write_named
from unfooled.metrics.summary import Rate
from unfooled.report.diffs import visible

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
HOME = "https://atlas.mitre.org/techniques/"
_NAMES = {"ATLAS": ("MITRE ATLAS", "5.6", ATLAS), "NIST": ("NIST AI 100-2", "E2025", NIST)}


def write_sarif(result: FilterTest, out: Path, *, model: str, most: float) -> Path:
    return write_named(out, json.dumps(sarif(result, model=model, most=most), indent=2) + "\n")


def sarif(result: FilterTest, *, model: str, most: float) -> dict[str, Any]:
    """`model` is what is shown as the place; `most` the share of caught texts that may get through."""
    by_id: dict[str, tuple[Technique, list[Rung]]] = {}
    for rung in result.rungs:
        technique = technique_of(rung.attack)
        by_id.setdefault(technique.id, (technique, []))[1].append(rung)
    results = [
        _result(result, technique, rungs, index, model, most)
        for index, (technique, rungs) in enumerate(by_id.values())
    ]
    rules = [
        _rule(technique, found["properties"].pop("security-severity"))
        for (technique, _), found in zip(by_id.values(), results, strict=True)
    ]
    driver = {
        "name": "unfooled",
        "version": result.version,
        "semanticVersion": result.version,
        "informationUri": "https://atlas.mitre.org/",
        "rules": rules,
        "supportedTaxonomies": [{"name": name, "index": n} for n, name in enumerate(_NAMES)],
    }
    run = {
        "tool": {"driver": driver},
        "taxonomies": [_taxonomy(name) for name in _NAMES],
        "invocations": [{"executionSuccessful": result.undecided == 0}],
        "results": results,
        "columnKind": "unicodeCodePoints",
        "properties": {
            "recall": result.recall.to_dict(),
            "falsePositives": result.honest.to_dict(),
            "passed": result.passed.to_dict(),
            "standards": VERSIONS,
        },
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(technique: Technique, severity: str) -> dict[str, Any]:
    return {
        "id": technique.rule,
        "name": "".join(part.capitalize() for part in technique.id.split("-")),
        "shortDescription": {"text": f"The filter is evaded by {technique.title}"},
        "fullDescription": {
            "text": f"Texts that the filter catches get through it when rewritten: {technique.title}."
        },
        "helpUri": HOME + technique.atlas[-1],
        "defaultConfiguration": {"level": "warning"},
        "properties": {
            "tags": ["security", *technique.atlas, *technique.nist, "CWE-1039"],
            "security-severity": severity,
        },
    }


def _result(
    result: FilterTest, technique: Technique, rungs: list[Rung], index: int, model: str, most: float
) -> dict[str, Any]:
    tried = max(rung.tried for rung in rungs)
    works = sum(rung.fell for rung in rungs)
    rate = Rate.of(works, tried)
    if not tried:
        level, kind = "none", "notApplicable"
        text = f"Not tried: what came before it let every text through ({technique.title})."
    else:
        level = "error" if rate.low > most else "warning" if rate.high > most and works else "note"
        kind = "fail" if level in ("error", "warning") else "pass"
        level = level if kind == "fail" else "none"
        text = (
            f"{works} of {tried} texts that were still blocked get through and work "
            f"({rate.low:.1%} to {rate.high:.1%}). The filter catches {result.recall.value:.1%} and flags "
            f"{result.honest.value:.1%} of honest texts."
        )
    mark = hashlib.sha256(f"{result.fingerprint}:{technique.id}".encode()).hexdigest()
    taxa = [("ATLAS", one) for one in technique.atlas] + [("NIST", one) for one in technique.nist]
    return {
        "ruleId": technique.rule,
        "ruleIndex": index,
        "level": level,
        "kind": kind,
        "message": {"text": visible(text)},
        "locations": [
            {"physicalLocation": {"artifactLocation": {"uri": _uri(model)}, "region": {"startLine": 1}}}
        ],
        "partialFingerprints": {"filterAndTechnique/v1": mark},
        "taxa": [{"id": number, "toolComponent": {"name": name}} for name, number in taxa],
        "properties": {
            "security-severity": f"{10 * rate.value:.1f}" if tried else "0.0",
            "tried": tried,
            "passed": works,
            "queries": sum(rung.queries for rung in rungs),
        },
    }


def _taxonomy(name: str) -> dict[str, Any]:
    full, version, known = _NAMES[name]
    numbers: Mapping[str, str] = known
    return {
        "name": name,
        "fullName": full,
        "version": version,
        "taxa": [{"id": number, "shortDescription": {"text": title}} for number, title in numbers.items()],
    }


def _uri(model: str) -> str:
    """A path below the folder one stands in, as code hosts want it."""
    path = Path(model)
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    return path.as_posix().replace(" ", "%20") if "://" not in model else model
