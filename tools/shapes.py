"""Make `src/unfooled/defenses/shapes.py`: letters that look like ASCII ones, found by drawing them.

    python tools/shapes.py

The font is DejaVu Sans, which comes with matplotlib. Characters that Unicode itself takes apart (full-width,
accented, mathematical) are left out: normalisation undoes them. No table of confusable characters is read, so
that the cure does not know by heart what an attack takes from one.
"""

from __future__ import annotations

import string
import unicodedata
from pathlib import Path

import numpy as np

from unfooled.metrics.validity.pictures import Pictures

OUT = Path(__file__).parents[1] / "src" / "unfooled" / "defenses" / "shapes.py"
MOST = 0.2  # share of the ink that may differ
ASCII = string.ascii_letters + string.digits


def measured() -> dict[str, str]:
    """ASCII character → those whose picture is nearest to its own, the likest first."""
    drawer = Pictures()
    own = {letter: drawer._draw(letter) for letter in ASCII}
    found: dict[str, list[tuple[float, str]]] = {}
    for code in sorted(drawer._font.get_charmap()):
        other = chr(code)
        if code < 128 or unicodedata.category(other)[0] not in "LN":
            continue
        if unicodedata.normalize("NFKD", other) != other:
            continue
        drawn = drawer._draw(other)
        unlike, letter = min(
            (float(np.abs(drawn - picture).sum() / np.maximum(drawn, picture).sum()), letter)
            for letter, picture in own.items()
        )
        if unlike <= MOST:
            found.setdefault(letter, []).append((round(unlike, 3), other))
    return {letter: "".join(other for _, other in sorted(found[letter])) for letter in sorted(found)}


def main() -> None:
    rows = "".join(f'    "{letter}": "{others}",\n' for letter, others in measured().items())
    head = '"""Letters that are drawn like ASCII ones in DejaVu Sans; made by `tools/shapes.py`."""\n\n'
    OUT.write_text(f"{head}SHAPES: dict[str, str] = {{\n{rows}}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
