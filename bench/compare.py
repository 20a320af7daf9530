"""Results of both sides side by side, example by example."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from bench_data import Row


def compare(rows: Sequence[Row], answers: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """How often outcome, text and queries agree. Every difference is kept with both texts."""
    theirs = {result["index"]: result for answer in answers for result in answer["textattack"]["results"]}
    ours = {result["index"]: result for answer in answers for result in answer["unfooled"]["results"]}
    same: Counter[str] = Counter()
    differences = []
    for index in sorted(theirs.keys() & ours.keys()):
        a, b = theirs[index], ours[index]
        equal = {part: a[part] == b[part] for part in ("outcome", "text", "queries")}
        equal["found"] = equal["outcome"] and equal["text"]
        same.update(part for part, is_equal in equal.items() if is_equal)
        if not all(equal.values()):
            differences.append(describe(rows[index], a, b))
    count = len(theirs.keys() & ours.keys())
    return {
        "examples": count,
        **{f"same_{part}": same[part] for part in ("outcome", "text", "queries", "found")},
        "share_found": same["found"] / max(1, count),
        "share_queries": same["queries"] / max(1, count),
        "differences": differences,
    }


def describe(row: Row, a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    """One difference, with the words where the two texts part."""
    return {
        "index": a["index"],
        "kind": "text"
        if a["text"] != b["text"]
        else "outcome"
        if a["outcome"] != b["outcome"]
        else "queries",
        "original": row.text,
        "textattack": {key: a.get(key) for key in ("outcome", "text", "queries", "score", "note")},
        "unfooled": {key: b.get(key) for key in ("outcome", "text", "queries", "score", "note")},
        "words": [
            [own, x, y]
            for own, x, y in zip(row.text.split(), a["text"].split(), b["text"].split(), strict=False)
            if x != y
        ],
    }


def total(blocks: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The sums of one side over its blocks, and the rates that follow from them."""
    results = [result for block in blocks for result in block["results"]]
    seconds = sum(block["seconds"] for block in blocks)
    outcomes = Counter(result["outcome"] for result in results)
    attacked = outcomes["success"] + outcomes["failure"]
    meters = _add([block["meters"] for block in blocks])
    models = [meters[name] for name in ("victim", "encoder", "masked-lm") if name in meters]
    tokens = sum(model["tokens"] for model in models)
    padding = sum(model["padding"] for model in models)
    repeated = next((result["repeated"] for result in reversed(results) if "repeated" in result), None)
    return {
        "seconds": seconds,
        "cpu_seconds": sum(block["cpu_seconds"] for block in blocks),
        "block_seconds": [block["seconds"] for block in blocks],
        "examples": len(results),
        # An example that the victim gets wrong is no attack: it costs one query.
        "attacked": attacked,
        "attacks_per_minute": 60 * attacked / seconds,
        "seconds_per_example": seconds / max(1, len(results)),
        "outcomes": dict(outcomes),
        "success_rate": outcomes["success"] / max(1, attacked),
        "queries": sum(result["queries"] for result in results),
        "milliseconds_per_query": 1000 * seconds / max(1, sum(result["queries"] for result in results)),
        "meters": meters,
        "forward_share": sum(model["seconds"] for model in models) / seconds,
        "padding_share": padding / max(1, tokens + padding),
        "tokens_per_second": tokens / seconds,
        "computed_twice": repeated,
    }


def _add(parts: Sequence[dict[str, dict[str, float]]]) -> dict[str, dict[str, float]]:
    added: dict[str, Counter[str]] = {}
    for part in parts:
        for name, meter in part.items():
            added.setdefault(name, Counter()).update(meter)
    fields = ("calls", "texts", "tokens", "padding", "seconds")
    return {name: {field: meter[field] for field in fields} for name, meter in added.items()}
