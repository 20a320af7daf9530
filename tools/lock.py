"""Write requirements.lock: the packages of constraints.txt, pip and setuptools, with their wheels' sha256.

    python -m pip install --dry-run --ignore-installed --report report.json \
        --constraint constraints.txt "torch==2.13.0" ".[dev]" "setuptools>=77" "pip==26.3"
    python tools/lock.py report.json

For CPython 3.11 on Linux x86-64. Listed are the wheel that pip chose and, from the package index that pip
is set up for, every other one that it could choose on such a machine; no address is written down.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

LOCK = Path(__file__).parents[1] / "requirements.lock"
CPU_LOCK = LOCK.with_name(
    "requirements-cpu.lock"
)  # pip would rather take the build whose page has a checksum
CPU_HEADER = """\
# The build of torch for CPUs, which `make` takes where an index has it. Written by tools/lock.py.
"""
HEADER = """\
# What `make` installs on Linux x86-64 with CPython 3.11. Made by tools/lock.py, which says how.
# Other machines take the versions of constraints.txt, without checksums.
# torch: the wheel for CPUs, or the one with GPU support, whose further libraries are not listed here.
"""
_WHEEL = re.compile(
    r"-(?:py3|py2\.py3|cp311|cp3\d+)-(?:none|abi3|cp311)-(?:any|[\w.]*(?:many|musl)?linux[\w.]*x86_64)\.whl$"
)
_OTHER_PYTHON = re.compile(r"-cp3(?!11)\d+-(?!abi3)|-cp3(?:1[2-9]|[2-9]\d)-abi3")
_LINK = re.compile(r'href="[^"]*?/?([^"/#]+)#sha256=([0-9a-f]{64})"')


def index() -> str:
    """Where pip looks first: as it is set up, or its own default."""
    config = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    )
    for line in config.stdout.splitlines():
        name, _, value = line.partition("=")
        if name.endswith(".index-url"):
            return value.strip("'\"").rstrip("/")
    from pip._internal.models.index import PyPI

    return str(PyPI.simple_url).rstrip("/")


def published(place: str, name: str) -> dict[str, str]:
    """File names and checksums of a project."""
    with urllib.request.urlopen(f"{place}/{name}/", timeout=60) as answer:
        page = answer.read().decode("utf-8")
    return dict(_LINK.findall(page))


def suits(file: str, name: str, version: str) -> bool:
    start = re.sub(r"[-_.]+", "_", f"{name}-{version}").lower()
    own = re.sub(r"[-_.]+", "_", file).lower()
    return bool(own.startswith(f"{start}_") and _WHEEL.search(file) and not _OTHER_PYTHON.search(file))


def entry(place: str, item: dict[str, Any]) -> str:
    name = re.sub(r"[-_.]+", "-", item["metadata"]["name"]).lower()
    version = item["metadata"]["version"].partition("+")[0]
    hashes = {item["download_info"]["archive_info"]["hashes"]["sha256"]}
    files = published(place, name)
    hashes |= {checksum for file, checksum in files.items() if suits(file, name, version)}
    lines = [f"{name}=={version}", *(f"    --hash=sha256:{digest}" for digest in sorted(hashes))]
    return " \\\n".join(lines)


def main(report: Path) -> None:
    items = [
        item
        for item in json.loads(report.read_text(encoding="utf-8"))["install"]
        if item["metadata"]["name"] != "unfooled"
    ]
    place = index()
    with ThreadPoolExecutor(8) as pool:
        entries = sorted(pool.map(lambda item: entry(place, item), items))
    for item in items:
        if item["metadata"]["name"] == "torch" and "+cpu" in item["metadata"]["version"]:
            checksum = item["download_info"]["archive_info"]["hashes"]["sha256"]
            pin = f"torch=={item['metadata']['version']} \\\n    --hash=sha256:{checksum}\n"
            CPU_LOCK.write_text(CPU_HEADER + pin, encoding="utf-8")
    LOCK.write_text(HEADER + "\n".join(entries) + "\n", encoding="utf-8")
    sys.stdout.write(f"{len(entries)} packages in {LOCK.name}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
