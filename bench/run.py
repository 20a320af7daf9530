"""`make bench`: TextAttack and Unfooled on the same victim, sentences, neighbours and encoder.

    python bench/run.py [--scenario NAME ...] [--examples N] [--blocks N] [--quick]
    python bench/run.py --scenario NAME --explain

With `--explain` nothing is measured: the differences that have no reason yet are looked at again.

The scenarios `jsma`, `one-word`, `translation` and `switch` need no TextAttack: they compare with a plain
loop or a bare pass; `startup` measures small attacks as a whole, in turns with another version.

Both sides are started once and then asked for one block of examples at a time, in turns (A B, B A, A B, ...),
on the same core with one thread, so that a slow minute of the machine hits both. Writes `bench/RESULTS.md`
and `bench/results.json`.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import environment as env
from bench_data import ROOT, data_source, read_jsonl
from compare import compare, total
from protocol import Side
from report import write_report
from white_box import ALONE
from workers import run_workers

MINILM = "minilm-mr"
WHY = {
    "transformer-shipped": "TextAttack as installed: every text is padded to the model's 512 tokens.",
    "transformer-dynamic": "TextAttack with its padding patched to the longest text of the batch.",
    "sklearn-sentences": "A victim that costs almost nothing, and no encoder: "
    "what is left is the toolkit's own cost.",
    "sklearn-reviews": "The same with reviews of 200 words: "
    "what the toolkit does must not grow with length squared.",
    "sklearn-encoder": "A victim that costs almost nothing with the default encoder: we ask the victim "
    "first (`--order victim-first`), so that our queries are more and the texts the same.",
    "bae": "BAE-R, TextAttack as installed: 512 tokens for every text.",
    "bae-dynamic": "BAE-R, TextAttack with the padding of both models patched.",
}


@dataclass(frozen=True)
class Scenario:
    name: str
    victim: str  # below the victims' folder; named after its data
    padding: str
    blocks: int
    block: int  # examples per block
    goal: float  # the ratio that the project promises
    attack: str = "textfooler@textattack"
    order: str = "constraints-first"
    beside: str = ""  # another attack of ours, on the same blocks, that TextAttack does not have

    @property
    def why(self) -> str:
        return WHY[self.name]

    @property
    def data(self) -> str:
        return "imdb" if "imdb" in self.victim else "mr"

    @property
    def transformer(self) -> bool:
        return not self.victim.endswith(".skops")

    @property
    def encoder(self) -> bool:
        """Not beside a victim that costs almost nothing: what is left there is the toolkit's own cost."""
        return self.transformer or self.order != "constraints-first"

    @property
    def masked_lm(self) -> bool:
        return self.attack.startswith("bae")


_BAE = {"attack": "bae-r@textattack", "beside": "bae-r-and-i@paper"}
SCENARIOS = (
    Scenario("transformer-shipped", MINILM, "shipped", blocks=2, block=10, goal=10),
    Scenario("transformer-dynamic", MINILM, "dynamic", blocks=4, block=50, goal=1.4),
    Scenario("sklearn-sentences", "mr.skops", "dynamic", blocks=4, block=100, goal=10),
    Scenario("sklearn-reviews", "imdb.skops", "dynamic", blocks=4, block=25, goal=20),
    Scenario("sklearn-encoder", "mr.skops", "dynamic", blocks=4, block=25, goal=6, order="victim-first"),
    Scenario("bae", MINILM, "shipped", blocks=2, block=10, goal=3, **_BAE),
    Scenario("bae-dynamic", MINILM, "dynamic", blocks=4, block=50, goal=1.4, **_BAE),
)
WARM_UP = 3  # sentences attacked before the clock starts: lazy loading is start-up


@dataclass(frozen=True)
class Parts:
    """What both sides are given."""

    textattack: Path
    body: Path
    victims: Path
    neighbours: Path  # the recipe's own table, exported for TextAttack
    nltk: Path
    masked_lm: Path | None


def run_scenario(scenario: Scenario, args: argparse.Namespace, parts: Parts) -> dict[str, Any]:
    block = args.examples or (max(3, scenario.block // 10) if args.quick else scenario.block)
    blocks = args.blocks or (2 if args.quick else scenario.blocks)
    file = env.sentences(scenario.data, block * blocks + WARM_UP)
    rows = read_jsonl(file)
    theirs, ours = commands(scenario, args, parts, file)
    limit_before = raw_limit(scenario, file, args, parts)
    sides = {
        "textattack": start("textattack", theirs),
        "unfooled": start("unfooled", [*ours, "--attack", scenario.attack, "--order", scenario.order]),
    }
    if scenario.beside:
        sides["beside"] = start("beside", [*ours, "--attack", scenario.beside])
    print(f"{scenario.name}: {blocks} blocks of {block} examples", flush=True)
    warm = list(range(len(rows) - WARM_UP, len(rows)))
    for side in sides.values():
        side.block(warm)
    answers: list[dict[str, Any]] = []
    for number in range(blocks):
        indices = range(number * block, (number + 1) * block)
        order = list(sides) if number % 2 == 0 else list(sides)[::-1]
        answer = {name: sides[name].block(indices) for name in order}
        answers.append(answer)
        ratio = answer["textattack"]["seconds"] / answer["unfooled"]["seconds"]
        print(
            f"  block {number + 1}: TextAttack {answer['textattack']['seconds']:.1f} s, "
            f"Unfooled {answer['unfooled']['seconds']:.1f} s, ratio {ratio:.2f}",
            flush=True,
        )
    agreement = compare(rows, answers)
    differences = agreement["differences"]
    if scenario.padding != "shipped":
        # Padding does not change the answers, and explaining at 15 s per attack would take an hour.
        others = [difference["unfooled"] | {"index": difference["index"]} for difference in differences]
        if scenario.order != "constraints-first":
            others = in_textattacks_order(ours, scenario, [other["index"] for other in others])
        for difference, other, reason in zip(
            differences, others, sides["textattack"].explain(others), strict=True
        ):
            difference["reason"] = why(difference, other, reason, scenario.order)
    for side in sides.values():
        side.close()
    limit_after = raw_limit(scenario, file, args, parts)
    ratios = [answer["textattack"]["seconds"] / answer["unfooled"]["seconds"] for answer in answers]
    cpu = [answer["textattack"]["cpu_seconds"] / answer["unfooled"]["cpu_seconds"] for answer in answers]
    limits = [limit for limit in (limit_before, limit_after) if limit]
    return {
        "scenario": scenario.name,
        "why": scenario.why,
        "goal": scenario.goal,
        "attack": scenario.attack,
        "beside": scenario.beside,
        "transformer": scenario.transformer,
        "encoder": scenario.encoder,
        "blocks": blocks,
        "examples_per_block": block,
        "ratios": ratios,
        "ratio": median(ratios),
        "cpu_ratio": median(cpu),
        "sides": {name: total([answer[name] for answer in answers]) for name in sides},
        "facts": {name: side.facts for name, side in sides.items()},
        "startup_seconds": {name: round(side.startup_seconds, 2) for name, side in sides.items()},
        "agreement": agreement,
        "raw_limit": max(limits, key=lambda limit: limit["tokens_per_second"]) if limits else None,
    }


PARTS = ("outcome", "text", "queries")
ORDER = "the order of the questions: with the constraints first, Unfooled's are TextAttack's"
ORDER_AND = "the order of the questions, and "


def in_textattacks_order(
    ours: Sequence[object], scenario: Scenario, indices: Sequence[int]
) -> list[dict[str, Any]]:
    """Our results for these examples, asked with the constraints first as TextAttack does."""
    side = start("unfooled-again", [*ours, "--attack", scenario.attack, "--order", "constraints-first"])
    results: list[dict[str, Any]] = side.block(indices)["results"] if indices else []
    side.close()
    found = {result["index"]: result for result in results}
    return [found[index] for index in indices]


def why(difference: dict[str, Any], other: dict[str, Any], reason: str, order: str) -> str:
    """The reason of a difference; `reason` is that of what still differs where ours ask in the same order."""
    if order == "constraints-first" or all(other[part] == difference["unfooled"][part] for part in PARTS):
        return reason
    if all(other[part] == difference["textattack"][part] for part in PARTS):
        return ORDER
    return ORDER_AND + reason if reason else ""


def prepare(args: argparse.Namespace) -> Parts:
    env.HOME.mkdir(exist_ok=True)
    body = args.body or env.resource("minilm")
    return Parts(
        textattack=env.textattack_python(args.textattack_python),
        body=body,
        victims=env.train_missing(body),
        neighbours=env.export_neighbours(args.neighbours or env.resource("counter-fitted")),
        nltk=env.nltk_data(),
        masked_lm=_masked_lm(args),
    )


def _masked_lm(args: argparse.Namespace) -> Path | None:
    """The resource, which takes a while to make, only where a chosen scenario needs it."""
    if not any(scenario.masked_lm and scenario.name in args.scenario for scenario in SCENARIOS):
        return None
    return args.masked_lm or env.resource("masked-lm")


def start(name: str, command: list[object]) -> Side:
    # TextAttack must not see our package, nor we its environment.
    return Side(
        name, env.pinned(command), env.HOME / f"{name}.log", env.clean_env(package=name != "textattack")
    )


def commands(
    scenario: Scenario, args: argparse.Namespace, parts: Parts, file: Path
) -> tuple[list[object], list[object]]:
    """What starts TextAttack's side, and ours without its attack and order."""
    common = ["--victim", parts.victims / scenario.victim, "--sentences", file, "--serve"]
    theirs: list[object] = [parts.textattack, env.BENCH / "textattack_side.py", *common]
    theirs += ["--nltk-data", parts.nltk, "--padding", scenario.padding]
    theirs += ["--encoder", parts.body if scenario.encoder else "none"]
    ours: list[object] = [sys.executable, env.BENCH / "unfooled_side.py", *common]
    ours += ["--encoder", "resource" if scenario.encoder else "none"]
    if scenario.masked_lm:
        theirs += ["--masked-lm", parts.masked_lm]
        ours += ["--masked-lm", parts.masked_lm]
    else:
        theirs += ["--neighbours", parts.neighbours]
        ours += ["--neighbours", args.neighbours] if args.neighbours else []
    return theirs, ours


def explain_again(
    scenario: Scenario, known: dict[str, Any], args: argparse.Namespace, parts: Parts
) -> dict[str, Any]:
    """The same figures, with reasons for the differences that had none when they were measured."""
    left = [found for found in known["agreement"]["differences"] if not found.get("reason")]
    if not left:
        return known
    file = env.sentences(scenario.data, known["blocks"] * known["examples_per_block"] + WARM_UP)
    rows = read_jsonl(file)
    if any(rows[found["index"]].text != found["original"] for found in left):
        raise SystemExit(f"{scenario.name}: measured on other rows than {data_source()} gives now")
    theirs, ours = commands(scenario, args, parts, file)
    others = [found["unfooled"] | {"index": found["index"]} for found in left]
    if scenario.order != "constraints-first":
        others = in_textattacks_order(ours, scenario, [other["index"] for other in others])
    side = start("textattack", theirs)
    for found, other, reason in zip(left, others, side.explain(others), strict=True):
        found["reason"] = why(found, other, reason, scenario.order)
        print(
            f"{scenario.name}, example {found['index']}: {found['reason'] or 'no reason found'}", flush=True
        )
    side.close()
    return known


def raw_limit(
    scenario: Scenario, file: Path, args: argparse.Namespace, parts: Parts
) -> dict[str, Any] | None:
    if not scenario.transformer:
        return None
    command: list[object] = [sys.executable, env.BENCH / "raw_limit.py", "--sentences", file]
    command += ["--victim", parts.victims / scenario.victim, *(["--quick"] if args.quick else [])]
    done = subprocess.run(
        env.pinned(command), check=True, capture_output=True, text=True, env=env.clean_env()
    )
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def machine() -> dict[str, Any]:
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else model
    return {"cpu": model, "python": platform.python_version(), "date": time.strftime("%Y-%m-%d")}


def main() -> None:
    names = [*(scenario.name for scenario in SCENARIOS), "workers", *ALONE]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--scenario", nargs="*", choices=names, default=names)
    parser.add_argument("--examples", type=int, default=0, help="examples per block")
    parser.add_argument("--blocks", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="few examples: to see that it works")
    parser.add_argument("--explain", action="store_true", help="only explain differences that are left")
    parser.add_argument("--textattack-python", type=Path, help="an environment that exists already")
    parser.add_argument("--lstm", type=Path, help="LSTM folder for `jsma` in place of one trained here")
    parser.add_argument("--classifier", type=Path, help="MiniLM on MR for `switch` and `one-word`, likewise")
    parser.add_argument("--translator", type=Path, help="Transformer folder for `translation`, en to de")
    parser.add_argument("--against", type=Path, help="`src` of another version to compare in `startup`")
    parser.add_argument("--body", type=Path, help="MiniLM folder in place of the resource")
    parser.add_argument("--neighbours", type=Path, help="folder of a saved table in place of the resource")
    parser.add_argument("--masked-lm", type=Path, help="folder of a masked LM in place of the resource")
    parser.add_argument("--out", type=Path, default=ROOT / "bench", help="where the results are written")
    args = parser.parse_args()
    beside_textattack = {*names} - {*ALONE}
    parts = prepare(args) if beside_textattack & {*args.scenario} else None
    file = args.out / "results.json"
    # Scenarios that are not run this time keep their last figures.
    results = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"scenarios": {}}
    if args.explain and parts is not None:
        for scenario in SCENARIOS:
            if scenario.name in args.scenario and scenario.name in results["scenarios"]:
                explain_again(scenario, results["scenarios"][scenario.name], args, parts)
                save(args.out, results)
        return
    results["machine"] = machine()
    results["data"] = data_source()
    results["victims"] = results.get("victims", {}) | trained()
    for scenario in SCENARIOS:
        if scenario.name in args.scenario and parts is not None:
            measured = run_scenario(scenario, args, parts) | {"quick": args.quick, "date": machine()["date"]}
            results["scenarios"][scenario.name] = measured
            save(args.out, results)
    if "workers" in args.scenario and parts is not None:
        examples = args.examples or (20 if args.quick else 150)
        measured = run_workers(
            parts.victims / "minilm-mr", env.sentences("mr", examples), examples, args.quick
        )
        results["scenarios"]["workers"] = measured | {"quick": args.quick, "date": machine()["date"]}
        save(args.out, results)
    for name, measure in ALONE.items():
        if name in args.scenario and (measured := measure(args)) is not None:
            results["scenarios"][name] = measured | {"quick": args.quick, "date": machine()["date"]}
            results["victims"] = results.get("victims", {}) | trained()
            save(args.out, results)
    print(f"written: {args.out / 'RESULTS.md'}", flush=True)


def trained() -> dict[str, Any]:
    """Test accuracies of the victims that are there."""
    file = env.HOME / "victims" / "victims.json"
    facts: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return {name: fact for name, fact in facts.items() if not name.endswith("quick")}


def save(out: Path, results: dict[str, Any]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(results, indent=1, ensure_ascii=False, sort_keys=True)
    (out / "results.json").write_text(text + "\n", encoding="utf-8")
    (out / "RESULTS.md").write_text(write_report(results), encoding="utf-8")


if __name__ == "__main__":
    main()
