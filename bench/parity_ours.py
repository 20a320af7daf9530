"""Our side of `parity.py`: the recipes by the rows of `parity_table.py`, in the project's environment."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench_data import read_jsonl
from parity_table import row
from protocol import Meter, one_thread, private_stdout, serve_rows
from unfooled_side import attack_block, open_session


class VictimMeter(Meter):
    """That of the victim that is attacked at present, where it counts what it computes."""

    def __init__(self) -> None:
        super().__init__()
        self.own: Any = None

    def copy(self) -> Meter:
        own = self.own
        return Meter() if own is None else Meter(own.calls, own.items, own.tokens, own.padding, own.seconds)

    def since(self, before: Meter) -> dict[str, float]:
        return self.copy().since(before)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sentences", type=Path, required=True)
    parser.add_argument("--masked-lm", default="")
    args = parser.parse_args()
    one_thread()
    channel = private_stdout()
    rows = read_jsonl(args.sentences)
    meter = VictimMeter()

    def open_row(name: str, victim: Path) -> tuple[Callable[..., Any], None]:
        chosen = row(name)
        session, victim = open_session(
            argparse.Namespace(
                victim=victim,
                attack=chosen.ours,
                encoder="resource",
                neighbours="",
                masked_lm=args.masked_lm if "masked-lm" in chosen.parts else "",
                set=chosen.settings,
                without=chosen.without,
                window=256,
                budget=chosen.budget or None,
                order="constraints-first",
            )
        )

        meter.own = getattr(victim, "meter", None)

        def attack(indices: Sequence[int]) -> list[dict[str, Any]]:
            answers = attack_block(session, rows, indices)
            if chosen.distinct:
                answers = [answer | {"queries": answer["distinct_queries"]} for answer in answers]
            return answers

        return attack, None

    serve_rows(open_row, {"victim": meter}, channel)


if __name__ == "__main__":
    main()
