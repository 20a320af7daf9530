"""Runs made up for studies: known texts, known successes, hostile ones among them."""

from __future__ import annotations

from pathlib import Path

from unfooled.core.result import Outcome, Result
from unfooled.runs.file import RunFile
from unfooled.text import Text

HOSTILE = [
    "<script>window.harmed=1</script> a great film",
    "\"'><img src=x onerror=window.harmed=1> great",
    "</p></article><script>window.harmed=1</script> great",
    "{{ 7*7 }} {% raw %} great",
    "\u202egreat desrever\u202c and z\u200bero width",
    "4-byte 😀𝕏 great, \x1b[31m colour",
]


def result(key: int, content: str, *, word: str = "awful", outcome: Outcome = "success") -> Result:
    text = Text(content)
    new = text.replace(len(text.words) - 1, word) if outcome == "success" else text
    return Result(
        key=key,
        outcome=outcome,
        label=key % 2,
        fields=text.fields,
        field=0,
        perturbed=new.string,
        probs=() if outcome == "error" else (0.1, 0.9),
        perturbed_probs=() if outcome == "error" else (0.8, 0.2),
        edits=tuple(new.edits()),
        words=len(text.words),
        queries=key + 2,
        similarity=0.5 + key / 1000,
    )


def write_run(folder: Path, results: list[Result], *, attack: str = "made@1", data: str = "d") -> Path:
    header = {
        "identity": {
            "recipe": {"name": attack},
            "victim": "v",
            "data": data,
            "labels": ["negative", "positive"],
        },
        "environment": {"attack": attack, "victim": "toy", "data": "rows", "preflight": ["fine"]},
    }
    with RunFile.open(folder, header) as file:
        for result in results:
            file.add(result)
    return folder


def two_runs(folder: Path, n: int = 30) -> list[Path]:
    """Two attacks on the same rows; the first six rows are hostile."""
    texts = [*HOSTILE, *(f"film number {i} is great" for i in range(len(HOSTILE), n))]
    return [
        write_run(
            folder / name, [result(i, text, word=word) for i, text in enumerate(texts)], attack=f"{name}@1"
        )
        for name, word in (("first", "awful"), ("second", "dire"))
    ]
