"""What a command proposes to do next: a line that can be copied, and that measures what it should."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

TEST = "test"
OTHER_ROWS = "TEST_FILE"


def attack_next(model: Path, data: str | None, *, split: str, valid: str | None, more: str = "") -> str:
    """An attack on rows that `model` was not trained on: a model is right about those that it has seen."""
    where = held_out(data, split, valid)
    hint = f"  # {OTHER_ROWS}: rows that the model was not trained on" if where is None else ""
    return f"unfooled attack --model {quote(str(model))} --data {where or OTHER_ROWS}{more} --limit 100{hint}"


def held_out(data: str | None, split: str, valid: str | None) -> str | None:
    """Where such rows are: another split of the same data, or the file of validation rows."""
    if data is None:
        return None
    other = _other_split(data, split, valid)
    if other is not None:
        return quote(data) + ("" if other == TEST else f" --split {quote(other)}")
    if valid and (Path(valid).expanduser().exists() or valid.startswith("hf:") or "," in valid):
        return quote(valid)
    return None


def _other_split(data: str, split: str, valid: str | None) -> str | None:
    from unfooled.data.huggingface import saved_splits
    from unfooled.data.loading import find_named_folder, named_splits

    if data.startswith("hf:"):
        return TEST if split != TEST else valid
    folder = find_named_folder(data)
    if folder is None:
        return None
    # Parallel text lies in files SPLIT.LANGUAGE.
    parallel = {file.name.partition(".")[0] for file in folder.iterdir() if file.is_file()}
    splits = {*named_splits(folder), *saved_splits(folder), *parallel} - {split}
    return next((name for name in (TEST, valid) if name in splits), None)
