"""Tries an installed package from nothing: run by `make dist` with the Python of an empty environment.

Attacks the fake victim with a small file, by the command and in Python, writes the reports, and looks for
every file that the package reads at run time. No test library, no clone, no model library.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

ROWS = ["a superb film,positive", "a dull film,negative", "great fun,positive", "terrible acting,negative"]


def main() -> None:
    import unfooled

    where = Path(unfooled.__file__).resolve()
    assert where.is_relative_to(Path(sys.prefix).resolve()), f"{where} is not the installed package"
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "reviews.csv").write_text("\n".join(["text,label", *ROWS]), encoding="utf-8")
        told = command(
            root,
            "attack",
            "--model",
            "fake",
            "--data",
            "reviews.csv",
            "--attack",
            "deepwordbug",
            "--out",
            "runs/x",
            "--json",
        )
        assert json.loads(told)["success_rate"]["n"] == len(ROWS), told
        command(root, "report", "runs/x", "-o", "report", "--folder")
        page = (root / "report" / "report.html").read_text(encoding="utf-8")
        assert "<style>" in page
        assert "<script" in page
        command(root, "export", "runs/x", "-o", "results.csv")
        command(root, "attacks")
        command(root, "resources")
        command(root, "study", "create", "runs/x", "--n", "2", "--annotators", "1", "-o", "study.db")
        run = unfooled.attack("fake", root / "reviews.csv", "deepwordbug", out=root / "runs" / "y")
        assert run.summary().success_rate.n == len(ROWS)
    package = files("unfooled")
    for path in sys.argv[1:]:
        assert package.joinpath(path).is_file(), f"{path} is not in the package"
    sys.stdout.write(
        f"installed: unfooled {unfooled.__version__} works, with {len(sys.argv) - 1} data files\n"
    )


def command(folder: Path, *arguments: str) -> str:
    program = Path(sys.executable).with_name("unfooled")
    done = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"unfooled {' '.join(arguments)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


if __name__ == "__main__":
    main()
