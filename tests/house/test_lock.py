"""`make` installs from a lock with checksums where it fits, and says so where it does not."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENTRY = re.compile(r"^(\S+)==(\S+) \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.MULTILINE)
# Answers as a Python would: makes a "venv" of itself, and writes down what pip was asked for.
FAKE = """#!{python}
import os, pathlib, sys
arguments = sys.argv[1:]
if arguments[:2] == ["-m", "venv"]:
    place = pathlib.Path(arguments[2], "bin", "python")
    place.parent.mkdir(parents=True)
    place.write_text(pathlib.Path(__file__).read_text())
    place.chmod(0o755)
elif arguments[0] == "-c":
    import platform
    platform.system = lambda: {system!r}
    platform.machine = lambda: "x86_64"
    sys.version_info = (3, 11)
    exec(arguments[1])
else:
    with open({log!r}, "a") as log:
        log.write(" ".join(arguments) + "\\n")
    sys.exit({check} if "check" in arguments else 0)
"""


def locked() -> dict[str, str]:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    body = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))
    assert "".join(found.group(0) for found in ENTRY.finditer(body)) == body  # nothing but pins and checksums
    return {found[1]: found[2] for found in ENTRY.finditer(body)}


# Of an extra that the development does not install.
NOT_LOCKED = {"openvino", "openvino-telemetry"}


def test_the_lock_and_the_constraints_name_the_same_versions() -> None:
    pinned = locked()
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").split():
        name, _, version = line.partition("==")
        plain = re.sub(r"[-_.]+", "-", name).lower()
        assert plain in NOT_LOCKED or pinned.pop(plain) == version
    assert sorted(pinned) == ["pip", "setuptools"]  # what installs the rest


def test_the_locks_name_no_address() -> None:
    for name in ("requirements.lock", "requirements-cpu.lock"):
        assert "://" not in (ROOT / name).read_text(encoding="utf-8")


def test_both_locks_hold_the_same_build_of_torch_for_cpus() -> None:
    (version, checksum) = re.findall(
        r"^torch==(\S+)\+cpu \\\n    --hash=(sha256:[0-9a-f]{64})$",
        (ROOT / "requirements-cpu.lock").read_text(encoding="utf-8"),
        re.MULTILINE,
    )[0]
    assert locked()["torch"] == version
    assert checksum in (ROOT / "requirements.lock").read_text(encoding="utf-8")


def made(tmp_path: Path, *, system: str, check: int = 0) -> tuple[str, list[str]]:
    """What `make` said, and what it asked of pip."""
    log, fake = tmp_path / "log", tmp_path / "python"
    fake.write_text(
        FAKE.format(python=sys.executable, system=system, log=str(log), check=check), encoding="utf-8"
    )
    fake.chmod(0o755)
    venv = tmp_path / "venv"
    command = ["make", f"PYTHON={fake}", f"VENV={venv}", str(venv / ".installed")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert (venv / ".installed").is_file()
    return done.stdout, log.read_text(encoding="utf-8").splitlines()


def test_make_checks_every_file(tmp_path: Path) -> None:
    said, asked = made(tmp_path, system="Linux")
    assert "every file checked" in said
    torch, rest, own, check = asked
    assert "--require-hashes --no-deps --requirement requirements-cpu.lock" in torch
    assert "--require-hashes --no-deps --requirement requirements.lock" in rest
    assert "--no-deps --no-build-isolation --editable ." in own  # nothing is fetched for it
    assert check.endswith("pip --quiet check")


def test_make_says_what_it_does_not_check(tmp_path: Path) -> None:
    said, asked = made(tmp_path, system="Darwin")
    assert "installing by constraints.txt, unchecked" in said
    assert not any("require-hashes" in line for line in asked)
    assert sum("--constraint constraints.txt" in line for line in asked) == 2
    (tmp_path / "gpu").mkdir()
    said, asked = made(tmp_path / "gpu", system="Linux", check=1)
    assert "GPU support" in said
    assert "--constraint constraints.txt" in asked[-1]


def test_pip_is_never_the_folder_one_stands_in() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert makefile.count(" -m pip") == makefile.count(" -P -m pip") > 0
