"""Write the figures of `bench/guard.json` into docs/reference/guard-measured.md."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from bench_data import ROOT
from fewer_page import wilson
from guard import OUT, SETS, SYNONYMS, THIRD

PAGE = ROOT / "docs" / "reference" / "guard-measured.md"
TITLES = {"tweets": "tweets", "sms": "SMS", "injections": "injections"}
VICTIMS = {"sklearn": "sklearn", "minilm": "MiniLM", "llm": "SmolLM2"}
Case = dict[str, Any]


def main() -> None:
    found: dict[str, Case] = json.loads(OUT.read_text(encoding="utf-8"))
    page = PAGE.read_text(encoding="utf-8")
    for name, block in blocks(found).items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        before, rest = page.split(begin)
        page = f"{before}{begin}\n{block}\n{end}{rest.split(end)[1]}"
    PAGE.write_text(page, encoding="utf-8")


def blocks(found: dict[str, Case]) -> dict[str, str]:
    return {
        "filters": filters(found),
        "techniques": techniques(found),
        "effort": effort(found),
        "judged": judged(found),
        "cures": cures(found),
        "third": third_party(found),
    }


# -- tables --------------------------------------------------------------------------------------------------


def filters(found: dict[str, Case]) -> str:
    """Each filter in a column: never a success rate without the false positives."""
    names = list(cases(found, "ladder"))
    lines = [*quality(found, names), *mended_lines(found, names)]
    return table(["%", *map(title, names)], lines)


def techniques(found: dict[str, Case]) -> str:
    """What each attack does by itself to all caught texts, as far as it was asked of all."""
    names = list(cases(found, "full"))
    attacks = list(dict.fromkeys(attack for name in names for attack in found[name]["rungs"]))
    lines = [(f"`{attack}`", [rung(found[name], attack) for name in names]) for attack in attacks]
    lines.append(("caught", [str(found[name]["caught"]) for name in names]))
    lines.append(("honest texts flagged", [share(found[name]["honest"]) for name in names]))
    return table(["works, % of the caught", *map(title, names)], lines)


def effort(found: dict[str, Case]) -> str:
    lines = []
    for cheap, dear in (("ladder", "full"), ("judged", "every")):
        for name in cases(found, dear):
            other = name.rsplit("/", 1)[0] + "/" + cheap
            ladder = found.get(other)
            if ladder is None and "+mended" in name:
                ladder = found.get(other.replace("+mended", ""), {}).get("mended")
            if ladder is None:
                continue
            full = found[name]
            asked = full["queries"]
            lines.append(
                (
                    f"{title(name)}{'' if cheap == 'ladder' else ', with synonyms'}",
                    [
                        str(full["caught"]),
                        percent(ladder["passed"]),
                        percent(full["passed"]),
                        f"{ladder['queries']:,}",
                        f"{asked:,}",
                        f"{100 * ladder['queries'] / asked:.0f} %",
                    ],
                )
            )
    return table(["", "n", "passes, ladder", "passes, in full", "queries", "in full", ""], lines)


def judged(found: dict[str, Case]) -> str:
    """Of the texts that evade by searches, what a judge says means the same."""
    names = list(cases(found, "every"))
    attacks = list(dict.fromkeys(attack for name in names for attack in found[name]["rungs"]))
    searched = [attack for attack in attacks if attack.startswith(("typos", "deepwordbug", *SYNONYMS))]
    lines = []
    for attack in searched:
        for kind, column in (("evades", "evaded"), ("… and works, as judged", "works")):
            cells = [rung(found[name], attack, column) for name in names]
            lines.append((f"`{attack}` {kind}" if column == "evaded" else kind, cells))
    lines.append(("whole ladder: gets through and works", [share(found[name]["passed"]) for name in names]))
    lines.append(("caught", [str(found[name]["caught"]) for name in names]))
    lines.append(("honest texts flagged", [share(found[name]["honest"]) for name in names]))
    return table(["% of the caught", *map(title, names)], lines)


def cures(found: dict[str, Case]) -> str:
    lines = []
    for name in cases(found, "ladder"):
        own = speed(found, name)
        for cure in found[name]["cures"]:
            takes = f"{own:.1f}" if cure["name"] == "none" and own else f"+ {cure['milliseconds']:.2f}"
            rates = [share(cure[key]) for key in ("closes", "recall", "honest", "look_alikes")]
            if cure["name"] == "none":
                rates[0] = "–"
            lines.append((f"{title(name)}: {cure['name']}", [*rates, takes]))
    heads = ["%", "closes", "recall", "honest texts flagged", "look-alikes flagged", "ms a text"]
    return table(heads, lines)


def third_party(found: dict[str, Case]) -> str:
    names = [name for name in found if name.split("/")[1] in THIRD]
    lines = [*quality(found, names), *mended_lines(found, names)]
    return table(["%", *(name.split("/")[1] for name in names)], lines)


Line = tuple[str, list[str]]


def quality(found: dict[str, Case], names: Sequence[str]) -> list[Line]:
    """What a filter does, attacked and not."""
    return [
        ("texts to block", [count(found[name]["recall"]) for name in names]),
        ("recall", [share(found[name]["recall"]) for name in names]),
        ("**honest texts flagged**", [share(found[name]["honest"]) for name in names]),
        ("… of", [count(found[name]["honest"]) for name in names]),
        ("look-alikes flagged", [share(found[name]["look_alikes"]) for name in names]),
        ("… of", [count(found[name]["look_alikes"]) for name in names]),
        ("recall at 1 % false positives", [price(found[name], "recall") for name in names]),
        ("of other honest texts then flagged", [price(found[name], "honest") for name in names]),
        ("… threshold chosen on", [price(found[name], "chosen_on") for name in names]),
        ("caught, so attacked", [f"{found[name]['caught']:,}" for name in names]),
        ("gets through in any way", [share(found[name]["evaded"]) for name in names]),
        ("**gets through and works**", [share(found[name]["passed"]) for name in names]),
        ("texts that got through, readable", [first_texts(found[name], "readable") for name in names]),
        ("queries", [f"{found[name]['queries']:,}" for name in names]),
    ]


def mended_lines(found: dict[str, Case], names: Sequence[str]) -> list[Line]:
    return [
        ("**behind normalisers, attacked anew**", [mended(found[name], "passed") for name in names]),
        ("… honest texts flagged", [mended(found[name], "honest") for name in names]),
        ("… look-alikes flagged", [mended(found[name], "look_alikes") for name in names]),
        ("… recall", [mended(found[name], "recall") for name in names]),
        ("… queries", [mended(found[name], "queries") for name in names]),
    ]


# -- cells -----------------------------------------------------------------------------------------------


def cases(found: dict[str, Case], way: str) -> Iterable[str]:
    for kind in SETS:
        for victim in ("sklearn", "sklearn+mended", "minilm", "minilm+mended", "llm"):
            if (name := f"{kind}/{victim}/{way}") in found:
                yield name


def title(name: str) -> str:
    kind, victim, _ = name.split("/")
    bare, _, cure = victim.partition("+")
    return f"{TITLES[kind]}, {VICTIMS[bare]}{' mended' if cure else ''}"


def share(counted: Sequence[int] | None) -> str:
    if not counted or not counted[1]:
        return "–"
    low, high = wilson(counted[0] / counted[1], counted[1])
    return f"{percent(counted)} ({100 * max(0.0, low):.1f}–{100 * min(1.0, high):.1f})"


def count(counted: Sequence[int] | None) -> str:
    return f"{counted[1]:,}" if counted else "–"


def percent(counted: Sequence[int]) -> str:
    return f"{100 * counted[0] / counted[1]:.1f}"


def rung(case: Case, attack: str, column: str = "works") -> str:
    row = case["rungs"].get(attack)
    if row is None or not row["tried"]:
        return "–"
    low, high = wilson(row[column] / row["tried"], row["tried"])
    return f"{100 * row[column] / row['tried']:.1f} ({100 * max(0.0, low):.1f}–{100 * min(1.0, high):.1f})"


def first_texts(case: Case, column: str) -> str:
    """Of the texts that evaded anywhere on the ladder."""
    evaded = sum(row["evaded"] for row in case["rungs"].values())
    return share([sum(row[column] for row in case["rungs"].values()), evaded])


def price(case: Case, key: str) -> str:
    given = case.get("at_price")
    if not given:
        return "–"
    return f"{given[key]:,}" if key == "chosen_on" else share(given[key])


def mended(case: Case, key: str) -> str:
    inner = case.get("mended")
    if inner is None:
        return "–"
    return f"{inner['queries']:,}" if key == "queries" else share(inner[key])


def speed(found: dict[str, Case], name: str) -> float:
    own = found.get(name.rsplit("/", 1)[0] + "/speed", {})
    return float(own.get("bare", 0.0))


def table(heads: Sequence[str], lines: Iterable[tuple[str, Sequence[str]]]) -> str:
    rows = [f"| {' | '.join([name, *cells])} |" for name, cells in lines]
    return "\n".join([f"| {' | '.join(heads)} |", "|---" * len(heads) + "|", *rows])


if __name__ == "__main__":
    main()
