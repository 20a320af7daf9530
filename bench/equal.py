"""Are the results of all recipes what they were? The same rows attacked by two checkouts, row by row.

    CHECKOUT/.venv/bin/python bench/equal.py run --out DIR --data mr.jsonl --victim m.skops --inside lstm
    python bench/equal.py compare DIR DIR

The first command is given once with each checkout's own Python, and with the same files. `--victim` is
attacked by recipes that look only at the output, `--inside` by those that need attention, gradients or
embeddings, `--translator` by those on translations. All rows are attacked, so that no sampling of either
checkout matters. Results that are there already are kept: a stopped command goes on.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

INSIDE = {"attention", "gradients", "embeddings"}
COMPARED = ("outcome", "perturbed_text", "queries", "asked")


def whom(recipe: Any, args: argparse.Namespace) -> tuple[str, str, str | None]:
    """Whom the recipe attacks, with which data, and what it aims at."""
    needs = set(recipe.requires())
    if "translations" in needs:
        return args.translator, args.sentences, args.keyword if recipe.name == "targeted-keyword" else None
    return args.inside if needs & INSIDE else args.victim, args.data, None


def with_files(recipe: Any, args: argparse.Namespace) -> Any:
    """The recipe with the parts that were chosen on the command line."""
    from unfooled.core.recipe import with_everywhere
    from unfooled.errors import UnknownNameError

    chosen = {"masked_lm": args.masked_lm, "encoder": args.encoder, "words": args.words}
    for setting, value in chosen.items():
        with suppress(UnknownNameError):  # a recipe without the setting stays as it is
            recipe = with_everywhere(recipe, setting, value) if value else recipe
    return recipe


def run(args: argparse.Namespace) -> None:
    import unfooled
    from unfooled.core.recipe import all_recipes

    victims: dict[str, Any] = {}
    for recipe in all_recipes():
        name = recipe.full_name
        out = args.out / f"{name}.jsonl"
        victim, data, target = whom(recipe, args)
        if out.exists() or (args.only and name not in args.only) or not victim:
            continue
        started = time.process_time()
        known = victims.setdefault(victim, unfooled.load_victim(victim))
        try:
            unfooled.attack(
                known, data, with_files(recipe, args), out=args.out / "runs" / name, target=target
            )
            unfooled.export(args.out / "runs" / name, out)
            print(f"{name}: {time.process_time() - started:.0f} CPU seconds", flush=True)
        except unfooled.UnfooledError as error:
            print(f"{name}: {error}", flush=True)


def read(file: Path) -> dict[Any, dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        return {row["key"]: row for row in map(json.loads, lines)}


def compare(first: Path, second: Path) -> int:
    """Print one line per recipe and every row that differs; how many do."""
    total = 0
    for file in sorted(first.glob("*.jsonl")):
        other = second / file.name
        if not other.exists():
            print(f"{file.stem}: only in {first}")
            continue
        before, after = read(file), read(other)
        keys = sorted(before.keys() & after.keys())
        unlike = [
            key for key in keys if any(before[key].get(part) != after[key].get(part) for part in COMPARED)
        ]
        total += len(unlike) + len(before.keys() ^ after.keys())
        outcomes = dict(Counter(row["outcome"] for row in before.values()))
        print(
            f"{file.stem}: {len(keys) - len(unlike)} of {max(len(before), len(after))} rows equal {outcomes}"
        )
        for key in unlike:
            changed = {part: (before[key].get(part), after[key].get(part)) for part in COMPARED}
            told = [f"{part} {a!r} / {b!r}" for part, (a, b) in changed.items() if a != b]
            print(f"  row {key}: {', '.join(told)}")
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    actions = parser.add_subparsers(required=True, dest="action")
    side = actions.add_parser("run")
    side.add_argument("--out", type=Path, required=True)
    side.add_argument("--data", help="labelled rows, all of which are attacked")
    side.add_argument("--victim", help="model that is asked for probabilities only")
    side.add_argument("--inside", help="model with attention and gradients")
    side.add_argument("--translator")
    side.add_argument("--sentences", help="data of the translator: SOURCE,TARGET")
    side.add_argument("--keyword", default="frau", help="word to be made appear in translations")
    side.add_argument("--masked-lm", default="trigram")
    side.add_argument("--encoder", help="in place of the recipes' own, to be quick: potion")
    side.add_argument("--words", help="file of `unfooled words`, for the attacks that read one")
    side.add_argument("--only", nargs="*", default=[], help="names of recipes; else all")
    both = actions.add_parser("compare")
    both.add_argument("first", type=Path)
    both.add_argument("second", type=Path)
    args = parser.parse_args()
    if args.action == "run":
        args.out.mkdir(parents=True, exist_ok=True)
        run(args)
    else:
        sys.exit(1 if compare(args.first, args.second) else 0)


if __name__ == "__main__":
    main()
