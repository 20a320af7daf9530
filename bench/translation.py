"""The `translation` scenario: typos against a Transformer, beside a loop that translates one text at a time.

    python bench/translation.py --victim DIR --data SOURCE,TARGET [--blocks N] [--block N]

Both sides attack the same sentences of the same model, in turns, in one process on one thread: every word is
deleted once, then the most important one is misspelt in every way, and the worst typo for the sentence's BLEU
is kept (`typo@important`). The loop asks the library's `generate` about one text after the other.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from plain_loop import in_turns, read_arguments
from protocol import one_thread

GOAL = 5.0
LETTERS = 3


def sentences_one_by_one(victim: Any, pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
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
    loop, ours = partial(sentences_one_by_one, victim), partial(unfooled, session)
    figures, found = in_turns(pairs, blocks, block, loop, ours, texts="sentences", step="query")
    queries = sum(asked for _, _, asked in found)
    return figures | {"scenario": "translation", "goal": GOAL, "queries": queries}


def main() -> None:
    args = read_arguments(__doc__, "--data", "SOURCE_FILE,TARGET_FILE", block=40)
    one_thread()
    import torch

    from unfooled.translation.parallel import load_parallel
    from unfooled.victims.loading import load_victim

    torch.set_num_threads(1)
    victim = load_victim(str(args.victim))
    rows = load_parallel(args.rows, limit=args.blocks * args.block + 2)
    pairs = [(row.content[0][1], row.reference) for row in rows if not row.problem]
    print(json.dumps(measure(victim, pairs, args.blocks, args.block)))


if __name__ == "__main__":
    main()
