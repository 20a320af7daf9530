"""The command line that repeats what the playground did: same text, same seed, same result."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from unfooled.trust import Trust


@dataclass(frozen=True)
class ModelArguments:
    """How the model was named on the command line."""

    model: str
    labels: str | None = None
    trust: Trust = Trust()  # noqa: RUF009 - frozen
    options: tuple[str, ...] = ()
    thresholds: tuple[str, ...] = ()

    def words(self) -> list[str]:
        found = ["--model", self.model]
        found += ["--labels", self.labels] if self.labels else []
        found += ["--trust-pickle"] if self.trust.pickle else []
        found += ["--trust-remote-code"] if self.trust.remote_code else []
        found += [word for trusted in self.trust.types for word in ("--trust", trusted)]
        found += [word for threshold in self.thresholds for word in ("--threshold", threshold)]
        return found + [word for option in self.options for word in ("--victim-option", option)]


def repeat_command(
    model: ModelArguments,
    content: Mapping[str, str],
    edit: str,
    label: str,
    attack: str,
    *,
    seed: int,
    budget: int | None,
) -> str:
    """Writes the text to a file of one row, then attacks it."""
    row = json.dumps({**content, "label": label})
    words = ["unfooled", "attack", *model.words(), "--data", "typed.jsonl"]
    words += ["--text-column", ",".join(content), "--label-column", "label"]
    words += ["--edit", edit] if len(content) > 1 else []
    words += ["--attack", attack, "--seed", str(seed)]
    words += ["--budget", str(budget)] if budget else []
    words += ["--out", "runs/typed", "--restart"]
    return f"printf '%s\\n' {shlex.quote(row)} > typed.jsonl \\\n  && {shlex.join(words)}"
