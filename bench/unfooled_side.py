"""The Unfooled side: `textfooler@textattack`, or another attack, on the same victim, sentences and models.

Runs in the project's environment. One session lives as long as the process, and rubbish is looked for as
rarely, as in one run of `unfooled attack`; a block of examples is attacked at once, because that is how
Unfooled works.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

from bench_data import LABELS, Row, read_jsonl
from protocol import Meter, one_thread, private_stdout, run_all, serve


def build_recipe(
    name: str,
    *,
    encoder: bool,
    neighbours: str,
    masked_lm: str,
    settings: Sequence[str] = (),
    without: Sequence[str] = (),
) -> Any:
    """The recipe, without its sentence encoder where the scenario has none."""
    from unfooled.attacks.parts.constraints import SentenceSimilarity
    from unfooled.core.recipe import load_recipe, with_everywhere, with_setting

    recipe = load_recipe(name)
    if masked_lm:
        recipe = with_everywhere(recipe, "masked_lm", masked_lm)
    if neighbours:
        recipe = with_setting(recipe, "search.candidates.table", neighbours)
    for setting in settings:
        recipe = with_setting(recipe, *setting.split("=", 1))
    if without:
        recipe = without_kinds(recipe, without)
    if encoder:
        return recipe
    search: Any = recipe.search
    kept = tuple(
        constraint for constraint in search.constraints if not isinstance(constraint, SentenceSimilarity)
    )
    return dataclasses.replace(recipe, search=dataclasses.replace(search, constraints=kept))


def without_kinds(recipe: Any, kinds: Sequence[str]) -> Any:
    """The recipe whose candidates come from all of its sources but those of some kinds of edit."""
    sources = recipe.search.candidates.sources
    kept = tuple(source for source in sources if getattr(source, "kind", "") not in kinds)
    candidates = dataclasses.replace(recipe.search.candidates, sources=kept)
    return dataclasses.replace(recipe, search=dataclasses.replace(recipe.search, candidates=candidates))


def open_session(args: argparse.Namespace) -> tuple[Any, Any]:
    """The session and its victim."""
    from unfooled.cli.app import collect_rarely
    from unfooled.core.session import Session, Settings
    from unfooled.victims.loading import load_victim

    collect_rarely()
    kind = "sklearn" if args.victim.suffix == ".skops" else "hf"
    if kind == "hf" or args.encoder != "none":
        import torch

        torch.set_num_threads(1)
    victim = load_victim(f"{kind}:{args.victim}")
    if tuple(victim.labels) not in (LABELS, ("0", "1")):
        raise SystemExit(f"the victim's labels are {victim.labels}, expected {LABELS}")
    recipe = build_recipe(
        args.attack,
        encoder=args.encoder != "none",
        neighbours=args.neighbours,
        masked_lm=args.masked_lm,
        settings=args.set,
        without=args.without,
    )
    if args.order == "victim-first":
        from unfooled.attacks.parts.victim_first import with_victim_first

        recipe = with_victim_first(recipe)
    return Session(victim, recipe, Settings(window=args.window, budget=args.budget)), victim


# ---------------------------------------------------------------------------------------------------
# The one place that knows how an attack is run through the package.
def attack_block(session: Any, rows: Sequence[Row], indices: Sequence[int]) -> list[dict[str, Any]]:
    from unfooled.core.result import Example

    examples = [
        Example(key=index, content=(("text", rows[index].text),), label=rows[index].label, edit="text")
        for index in indices
    ]
    answers = []
    for result in session.attack(examples):
        probs = result.perturbed_probs
        answers.append(
            {
                "index": result.key,
                "outcome": result.outcome,
                "text": result.perturbed,
                # TextAttack counts repeated texts too, so the comparable number is `asked`.
                "queries": result.asked,
                "distinct_queries": result.queries,
                "score": 1.0 - probs[result.label] if probs else None,
                "note": result.note,
            }
        )
    return sorted(answers, key=lambda answer: answer["index"])


# ---------------------------------------------------------------------------------------------------


class Watched:
    """An oracle that also counts which of its items it had computed before."""

    def __init__(self, oracle: Any) -> None:
        self._oracle = oracle
        self._seen: set[int] = set()
        self.items = 0
        self.repeated = 0
        self.calls = 0
        self.seconds = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._oracle, name)

    def __call__(self, items: Sequence[Hashable]) -> Any:
        known = len(self._seen)
        self._seen.update(map(hash, items))
        self.items += len(items)
        self.repeated += len(items) - (len(self._seen) - known)
        self.calls += 1
        started = time.perf_counter()
        answers = self._oracle(items)
        self.seconds += time.perf_counter() - started
        return answers


class OracleMeter(Meter):
    """A meter read from an oracle: from the model's own meter where it has one, else from outside."""

    def __init__(self, watched: Watched | None, model: Any = None) -> None:
        super().__init__()
        self._watched = watched
        self._model = model  # has the meter, where the oracle only passes questions on

    def copy(self) -> Meter:
        return self._read()

    def since(self, before: Meter) -> dict[str, float]:
        return self._read().since(before)

    def _read(self) -> Meter:
        if self._watched is None:
            return Meter()
        own = getattr(self._model, "meter", None) or getattr(self._watched, "meter", None)
        if own is None or not own.calls:
            return Meter(calls=self._watched.calls, texts=self._watched.items, seconds=self._watched.seconds)
        return Meter(own.calls, own.items, own.tokens, own.padding, own.seconds)


def watch(session: Any, victim: Any) -> tuple[dict[str, Meter], dict[str, Watched]]:
    """Put a watch on every oracle of the session; meters named victim, encoder, tagger, masked-lm."""
    watched = {name: Watched(oracle) for name, oracle in session.engine.oracles.items()}
    session.engine.oracles = watched
    kinds = {"victim": "victim", "encode": "encoder", "tag": "tagger", "fill": "masked-lm"}
    meters: dict[str, Meter] = {kind: OracleMeter(None) for kind in ("victim", "encoder")}
    for name, oracle in watched.items():
        kind = name.partition(":")[0]
        meters[kinds.get(kind, kind)] = OracleMeter(oracle, victim if kind == "victim" else None)
    return meters, watched


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--victim", type=Path, required=True, help="Hugging Face folder or .skops file")
    parser.add_argument("--sentences", type=Path, required=True, help="JSONL with text and label")
    parser.add_argument("--encoder", default="resource", help="none leaves the sentence encoder out")
    parser.add_argument("--neighbours", default="", help="folder of a saved table; else the recipe's own")
    parser.add_argument(
        "--masked-lm", default="", help="folder of a masked language model; else the resource"
    )
    parser.add_argument("--attack", default="textfooler@textattack")
    parser.add_argument("--set", action="append", default=[], help="a setting of the attack, path=value")
    parser.add_argument("--without", action="append", default=[], help="a kind of edit to leave out")
    parser.add_argument("--order", default="constraints-first", help="or victim-first")
    parser.add_argument("--window", type=int, default=256)
    parser.add_argument("--budget", type=int, help="most queries per example")
    parser.add_argument("--serve", action="store_true", help="read blocks of indices from stdin")
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--block", type=int, default=50, help="examples per block without --serve")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    one_thread()

    channel = private_stdout()
    started = time.perf_counter()
    session, victim = open_session(args)
    meters, watched = watch(session, victim)
    rows = read_jsonl(args.sentences)
    started = time.perf_counter() - started

    def block(indices: Sequence[int]) -> list[dict[str, Any]]:
        answers = attack_block(session, rows, indices)
        if answers:
            # Cumulative over the run: how many items any oracle was made to compute a second time.
            answers[-1]["repeated"] = {
                name.partition(":")[0]: oracle.repeated for name, oracle in watched.items()
            }
        return answers

    if args.serve:
        serve(block, meters, channel, {"startup_seconds": round(started, 2), "versions": _versions()})
    else:
        run_all(block, meters, min(args.limit or len(rows), len(rows)), args.block, args.out)


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in ("unfooled", "torch", "transformers", "scikit-learn", "numpy"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


if __name__ == "__main__":
    main()
