"""The `jsma` scenario: JSMA against an LSTM, beside a plain loop that handles one review at a time.

    python bench/jsma.py --victim DIR --reviews FILE [--blocks N] [--block N]

Both sides attack the same reviews of the same model with the same dictionary, in turns, in one process on
one thread. A review is its first 250 words that the model reads as one token each, so that the loop can work
on token ids alone. The loop does what the paper's listing says: a gradient, a product with the dictionary, a
word, and a look whether the label has flipped.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench_data import Row, read_jsonl
from plain_loop import in_turns, read_arguments
from protocol import one_thread

WORDS, MOST, DICTIONARY, GOAL = 250, 35, 20_000, 5.0


def as_single_tokens(rows: Sequence[Row], victim: Any) -> list[Row]:
    """Each review as words that are one token, known to the model, at most 250 of them."""
    from unfooled.text import Text

    known = set(victim.vocabulary())
    kept = []
    for row in rows:
        words = [word for word in Text(row.text.lower()).words if word in known][:WORDS]
        if len(words) >= 20:
            kept.append(Row(" ".join(words), row.label))
    return kept


def reviews_one_by_one(victim: Any, rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Outcome and text of each review, one after the other."""
    import torch

    model, tokenizer = victim.model, victim.tokenizer
    embed = model.get_input_embeddings()
    words, _ = victim.vocabulary_vectors()
    words = words[:DICTIONARY]
    numbers = torch.tensor(tokenizer.convert_tokens_to_ids(list(words)))
    table = embed.weight.detach()[numbers]
    found = []
    for row in rows:
        ids = tokenizer([row.text], return_tensors="pt")["input_ids"]
        with torch.inference_mode():
            outcome = "failure" if int(model(input_ids=ids).logits.argmax()) == row.label else "skipped"
        for changed, position in enumerate(reversed(range(ids.shape[1])), start=1):
            if outcome != "failure" or changed > MOST:
                break
            vectors = embed(ids).detach().requires_grad_()
            logits = model(inputs_embeds=vectors).logits
            (slope,) = torch.autograd.grad(logits[0, row.label], vectors)
            scores = table @ -slope[0, position].sign()
            best = scores.topk(2).indices
            new = numbers[best[0]] if numbers[best[0]] != ids[0, position] else numbers[best[1]]
            ids[0, position] = new
            with torch.inference_mode():
                if int(model(input_ids=ids).logits.argmax()) != row.label:
                    outcome = "success"
        found.append((outcome, " ".join(tokenizer.convert_ids_to_tokens(ids[0].tolist()))))
    return found


def unfooled(session: Any, rows: Sequence[Row], first: int) -> list[tuple[str, str, int]]:
    """Outcome, text and changed words of each review, in order."""
    from unfooled.core.result import Example

    examples = [Example(first + at, (("text", row.text),), row.label, "text") for at, row in enumerate(rows)]
    results = sorted(session.attack(examples), key=lambda result: result.key)
    return [(result.outcome, result.perturbed, len(result.edits)) for result in results]


def measure(victim: Any, rows: Sequence[Row], blocks: int, block: int) -> dict[str, Any]:
    from unfooled.core.recipe import load_recipe, with_setting
    from unfooled.core.session import Session

    recipe = with_setting(load_recipe("jsma"), "search.size", str(DICTIONARY))
    recipe = with_setting(recipe, "search.most", str(MOST))
    session = Session(victim, recipe)
    loop, ours = partial(reviews_one_by_one, victim), partial(unfooled, session)
    figures, found = in_turns(rows, blocks, block, loop, ours, texts="reviews", step="word")
    return figures | {
        "scenario": "jsma",
        "goal": GOAL,
        "dictionary": len(victim.vocabulary()[:DICTIONARY]),
        "words_changed": sum(changed for _, _, changed in found),
        "outcomes": dict(Counter(outcome for outcome, _, _ in found)),
    }


def main() -> None:
    args = read_arguments(__doc__, "--reviews", "JSONL with text and label", block=400)
    one_thread()
    import torch

    from unfooled.victims.loading import load_victim

    torch.set_num_threads(1)
    victim = load_victim(f"hf:{args.victim}")
    rows = as_single_tokens(read_jsonl(Path(args.rows)), victim)[: args.blocks * args.block + 3]
    if len(rows) < args.blocks * args.block:
        raise SystemExit(f"only {len(rows)} reviews are long enough")
    print(json.dumps(measure(victim, rows, args.blocks, args.block)))


if __name__ == "__main__":
    main()
