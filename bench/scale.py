"""Put what faults.py, ray_workers.py and million.py measured on the benchmark page.

python bench/scale.py --faults faults.json --ray ray_workers.json --rows million.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from report import write_report

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("faults", "ray", "rows"):
        parser.add_argument(f"--{name}", type=Path)
    given = vars(parser.parse_args())
    file = HERE / "results.json"
    results = json.loads(file.read_text(encoding="utf-8"))
    told = results["scenarios"].setdefault("scale", {"scenario": "scale"})
    for name, path in given.items():
        if path is not None:
            told[name] = json.loads(path.read_text(encoding="utf-8"))
    file.write_text(
        json.dumps(results, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8"
    )
    (HERE / "RESULTS.md").write_text(write_report(results), encoding="utf-8")


if __name__ == "__main__":
    main()
