"""The `translation` scenario: typos against a Transformer, beside a loop that translates one text at a time.

    python bench/translation.py --victim DIR --data SOURCE,TARGET [--blocks N] [--block N]

Both sides attack the same sentences of the same model, in turns, in one process on one thread: every word is
deleted once, then the most important one is misspelt in every way, and the worst typo for the sentence's BLEU
is kept (`typo@important`). The loop asks the library's `generate` about one text after the other.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from protocol import one_thread

GOAL = 5.0
LETTERS = 3


def plain_loop(victim: Any, pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The attacked sentence and its translation, one sentence after the other."""
    import torch

    from unfooled.metrics.bleu import sentence_score
    from unfooled.text import Text
    from unfooled.translation.attacks.typo import typos_of
    from unfooled.translation.decoding import longest_output

    def translate(text: str) -> str:
        ids = victim.tokenizer([text], return_tensors="pt")["input_ids"]
        with torch.inference_mode():
            out = victim.model.generate(
                ids,
                num_beams=1,
                do_sample=False,
                max_new_tokens=longest_output(ids.shape[1], 127),
                bad_words_ids=[[victim.tokenizer.pad_token_id]],
            )
        return str(victim.tokenizer.decode(out[0], skip_special_tokens=True)).strip()

    found = []
    for source, reference in pairs:
        text = Text(source)
        translate(source)
        places = [i for i, word in enumerate(text.words) if len(word) >= LETTERS]
        harm = {i: -sentence_score(translate(text.delete(i).string), reference) for i in places}
        at = max(places, key=lambda i: round(harm[i], 6))
        tried = [text.replace(at, typo).string for typo in typos_of(text.words[at])]
        outputs = [translate(sentence) for sentence in tried]
        worst = max(range(len(tried)), key=lambda i: -round(sentence_score(outputs[i], reference), 6))
        found.append((tried[worst], outputs[worst]))
    return found


def unfooled(session: Any, pairs: Sequence[tuple[str, str]], first: int) -> list[tuple[str, str, int]]:
    from unfooled.core.result import Example

    examples = [
        Example(first + at, (("text", source),), 0, "text", reference=reference)
        for at, (source, reference) in enumerate(pairs)
    ]
    results = sorted(session.attack(examples), key=lambda result: result.key)
    return [(result.perturbed, result.perturbed_output, result.queries) for result in results]


def measure(victim: Any, pairs: Sequence[tuple[str, str]], blocks: int, block: int) -> dict[str, Any]:
    from unfooled.core.recipe import load_recipe
    from unfooled.core.session import Session

    session = Session(victim, load_recipe("typo@important"))
    warm = pairs[blocks * block :]
    plain_loop(victim, warm)
    unfooled(session, warm, 10**6)
    sides = ("loop", "unfooled")
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    cpu: dict[str, list[float]] = {side: [] for side in sides}
    same = queries = 0
    for number in range(blocks):
        part = pairs[number * block : (number + 1) * block]
        answers: dict[str, list[Any]] = {}
        for side in sides if number % 2 == 0 else sides[::-1]:
            started, cpu_started = time.perf_counter(), time.process_time()
            answers[side] = (
                plain_loop(victim, part) if side == "loop" else unfooled(session, part, number * block)
            )
            seconds[side].append(time.perf_counter() - started)
            cpu[side].append(time.process_time() - cpu_started)
        for theirs, ours in zip(answers["loop"], answers["unfooled"], strict=True):
            same += theirs == ours[:2]
            queries += ours[2]
    ratios = [a / b for a, b in zip(seconds["loop"], seconds["unfooled"], strict=True)]
    total = blocks * block
    return {
        "scenario": "translation",
        "goal": GOAL,
        "blocks": blocks,
        "examples_per_block": block,
        "sentences_per_minute": {side: 60 * total / sum(values) for side, values in seconds.items()},
        "milliseconds_per_query": {side: 1000 * sum(v) / max(1, queries) for side, v in seconds.items()},
        "ratios": ratios,
        "ratio": median(ratios),
        "cpu_ratio": median(a / b for a, b in zip(cpu["loop"], cpu["unfooled"], strict=True)),
        "queries": queries,
        "same": same,
        "examples": total,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--victim", type=Path, required=True)
    parser.add_argument("--data", required=True, help="SOURCE_FILE,TARGET_FILE")
    parser.add_argument("--blocks", type=int, default=3)
    parser.add_argument("--block", type=int, default=40)
    args = parser.parse_args()
    one_thread()
    import torch

    from unfooled.translation.parallel import load_parallel
    from unfooled.victims.loading import load_victim

    torch.set_num_threads(1)
    victim = load_victim(str(args.victim))
    rows = load_parallel(args.data, limit=args.blocks * args.block + 2)
    pairs = [(row.content[0][1], row.reference) for row in rows if not row.problem]
    print(json.dumps(measure(victim, pairs, args.blocks, args.block)))


if __name__ == "__main__":
    main()
