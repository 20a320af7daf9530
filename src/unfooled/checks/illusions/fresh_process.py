"""A model that remembers nothing: a copy made before its first question, asked in a process of its own.

Not a worker of `multiprocessing`, which imports the user's script again and with it whatever the script does.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from unfooled.checks.replay import answers
from unfooled.core.victim import TextValue, Victim
from unfooled.errors import VictimError
from unfooled.runs.workers.portable import Reload, portable
from unfooled.trust import granted, trusting

Row: TypeAlias = tuple[float, ...]
Answers: TypeAlias = dict[TextValue, Row]  # a text that the model chokes on has none

_LENGTH = 8  # bytes that say how long the job is


def packed(victim: Victim) -> bytes | None:
    """The victim as it is now, for another process; None where it cannot be sent there."""
    try:
        return pickle.dumps(portable(victim))
    except VictimError:
        return None


def ask_in_fresh_process(copy: bytes, questions: Sequence[Sequence[TextValue]]) -> list[Answers]:
    """One process hears all lists of texts, in this order."""
    job = pickle.dumps((granted(), copy, [list(texts) for texts in questions]))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (folder / "errors").open("wb") as errors:
            code = _run([sys.executable, "-P", "-m", __spec__.name, str(folder / "answers")], job, errors)
        if code:
            told = (folder / "errors").read_text(encoding="utf-8", errors="replace").strip().splitlines()
            why = told[-1] if told else f"exit code {code}"
            raise VictimError(
                f"the model does not start in a process of its own: {why}",
                "name it by path or as module:function, or leave the check out: --checks",
            )
        given = json.loads((folder / "answers").read_text(encoding="utf-8"))
    return [
        {text: tuple(row) for text, row in zip(texts, rows, strict=True) if row is not None}
        for texts, rows in zip(questions, given, strict=True)
    ]


def _run(command: list[str], job: bytes, errors: object) -> int:
    """Give the job to a process and wait; its input stays open, so that it notices when we are gone."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        env=environment,  # type: ignore[call-overload]
    ) as process:
        try:
            process.stdin.write(len(job).to_bytes(_LENGTH, "big") + job)
            process.stdin.flush()
        except BrokenPipeError:
            pass  # it ended early, and its errors say why
        return int(process.wait())


def _leave_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


def _main(out: Path) -> None:
    length = int.from_bytes(sys.stdin.buffer.read(_LENGTH), "big")
    trust, copy, questions = pickle.loads(sys.stdin.buffer.read(length))
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    with trusting(pickle=trust.pickle, remote_code=trust.remote_code, types=trust.types):
        source = pickle.loads(copy)
        victim: Victim = source() if isinstance(source, Reload) else source
    found = []
    for texts in questions:
        said = answers(victim, texts)
        found.append([None if isinstance(row := said[text], Exception) else row for text in texts])
    out.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    try:
        _main(Path(sys.argv[1]))
    except Exception as error:
        sys.stderr.write(f"{type(error).__name__}: {error}")
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)  # an orderly exit would wait for the thread that waits for the parent's end
