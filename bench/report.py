"""`results.json` as a page that a person reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

HEAD = """# Benchmark: TextAttack and Unfooled side by side

Written by `make bench`; do not edit. Both sides attack the same sentences with the same victim, the same
word vectors and neighbour lists or masked language model, the same tagger weights and the same sentence
encoder, in turns, block by block, on the same core with one thread. Start-up is not counted. A ratio is
TextAttack's time for a block divided by Unfooled's; the median of the blocks counts, and the range shows how
steady it is. The ratio of CPU times beside it does not see other programs that took the core for a while.
"""


def write_report(results: dict[str, Any]) -> str:
    sections = {
        "workers": _workers,
        "scale": _scale,
        "jsma": _jsma,
        "one-word": _one_word,
        "translation": _translation,
        "switch": _switch,
        "startup": _startup,
    }
    scenarios = [scenario for name, scenario in results["scenarios"].items() if name not in sections]
    parts = [HEAD, _machine(results)]
    if scenarios:
        parts += [_speed(scenarios), _agreement(scenarios), _models(scenarios), _limit(scenarios)]
        parts.append(_masked(scenarios))
    for name, section in sections.items():
        if name in results["scenarios"]:
            parts.append(section(results["scenarios"][name]))
    if scenarios:
        parts += [_explanations(scenarios), _differences(scenarios)]
    return "\n".join(part for part in parts if part)


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"


def _machine(results: dict[str, Any]) -> str:
    machine = results["machine"]
    accuracy = ", ".join(f"{name} {facts['test_accuracy']:.3f}" for name, facts in results["victims"].items())
    return f"{machine['cpu']}, Python {machine['python']}, {machine['date']}. Test accuracy: {accuracy}.\n"


def _speed(scenarios: Sequence[dict[str, Any]]) -> str:
    rows = []
    for scenario in scenarios:
        theirs, ours = scenario["sides"]["textattack"], scenario["sides"]["unfooled"]
        met = "yes" if scenario["ratio"] >= scenario["goal"] else "**no**"
        rows.append(
            (
                scenario["scenario"] + (" (quick)" if scenario.get("quick") else ""),
                f"{scenario['blocks']} × {scenario['examples_per_block']}",
                f"{theirs['attacks_per_minute']:.1f}",
                f"{ours['attacks_per_minute']:.1f}",
                f"**{scenario['ratio']:.2f}×** ({min(scenario['ratios']):.2f}–{max(scenario['ratios']):.2f})",
                f"{scenario['cpu_ratio']:.2f}×",
                f"{scenario['goal']}×",
                met,
                f"{theirs['milliseconds_per_query']:.2f} / {ours['milliseconds_per_query']:.2f}",
            )
        )
    head = ("scenario", "blocks × examples", "TextAttack attacks/min", "Unfooled attacks/min")
    head += ("ratio (range)", "ratio of CPU time", "goal", "met", "ms per query, TA / Unfooled")
    return "## Speed\n\n" + table(head, rows)


def _agreement(scenarios: Sequence[dict[str, Any]]) -> str:
    rows = []
    for scenario in scenarios:
        agree, theirs, ours = (
            scenario["agreement"],
            scenario["sides"]["textattack"],
            scenario["sides"]["unfooled"],
        )
        rows.append(
            (
                scenario["scenario"],
                agree["examples"],
                f"{percent(agree['share_found'])} ({agree['same_found']}/{agree['examples']})",
                f"{percent(agree['share_queries'])}",
                f"{theirs['queries']:,} / {ours['queries']:,}",
                f"{percent(theirs['success_rate'])} / {percent(ours['success_rate'])}",
                f"{theirs['outcomes'].get('error', 0)} / {ours['outcomes'].get('error', 0)}",
            )
        )
    head = ("scenario", "examples", "same outcome and text", "same queries")
    head += ("queries, TA / Unfooled", "success rate, TA / Unfooled", "errors, TA / Unfooled")
    note = "\nQueries are texts put to the victim, repetitions included: TextAttack's own definition.\n"
    return "## Agreement\n\n" + table(head, rows) + note


def _models(scenarios: Sequence[dict[str, Any]]) -> str:
    rows = []
    for scenario in scenarios:
        for name in ("textattack", "unfooled"):
            side = scenario["sides"][name]
            victim, encoder = side["meters"]["victim"], side["meters"]["encoder"]
            rows.append(
                (
                    scenario["scenario"],
                    name,
                    f"{victim['texts']:,.0f}",
                    f"{encoder['texts']:,.0f}",
                    percent(victim["seconds"] / side["seconds"]),
                    percent(encoder["seconds"] / side["seconds"]),
                    percent(side["forward_share"]),
                    percent(side["padding_share"]) if scenario["transformer"] else "–",
                    _twice(side["computed_twice"]),
                )
            )
    head = (
        "scenario",
        "side",
        "texts through the victim",
        "texts through the encoder",
        "victim's share of time",
    )
    head += ("encoder's share", "both", "padding among tokens", "computed twice")
    return "## Where the time goes\n\n" + table(head, rows)


def _twice(repeated: dict[str, int] | None) -> str:
    if repeated is None:
        return "not counted"
    some = {name: count for name, count in repeated.items() if count}
    return ", ".join(f"{name}: {count}" for name, count in some.items()) or "nothing"


def _limit(scenarios: Sequence[dict[str, Any]]) -> str:
    rows = []
    for scenario in scenarios:
        if not scenario["raw_limit"]:
            continue
        limit = scenario["raw_limit"]["tokens_per_second"]
        fast = scenario["raw_limit"].get("onednn", {}).get("tokens_per_second")
        theirs, ours = (scenario["sides"][name]["tokens_per_second"] for name in ("textattack", "unfooled"))
        sizes = sorted(set(scenario["raw_limit"]["best_batch"].values()))
        rows.append(
            (
                scenario["scenario"],
                f"{limit:,.0f}",
                f"{fast:,.0f}" if fast else "–",
                ", ".join(map(str, sizes)),
                f"{ours:,.0f}",
                f"{percent(ours / limit)}",
                f"**{percent(ours / fast)}**" if fast else "–",
                f"{theirs:,.0f}",
                percent(theirs / limit),
            )
        )
    if not rows:
        return ""
    head = ("scenario", "raw limit of torch, tokens/s", "with oneDNN's linear layers", "best batch")
    head += ("Unfooled, tokens/s", "of torch's limit", "of oneDNN's")
    head += ("TextAttack, tokens/s", "of torch's limit")
    note = (
        "\nThe limit is the victim's forward pass alone at its best batch size, without padding. The tokens"
        " are those of the texts themselves, through victim and encoder (the same architecture), per second"
        " of wall time; where oneDNN's limit is given, both limits are per second of the processor."
        " Where it is not, the row was measured before our linear layers went to oneDNN.\n"
    )
    return "## The raw forward-pass limit\n\n" + table(head, rows) + note


def _masked(scenarios: Sequence[dict[str, Any]]) -> str:
    """BAE: what the masked language model had to do, and the mode that TextAttack does not have."""
    rows = []
    for scenario in scenarios:
        if not scenario.get("beside"):
            continue
        theirs = scenario["sides"]["textattack"]
        names = {
            "textattack": "TextAttack, BAE-R",
            "unfooled": scenario["attack"],
            "beside": scenario["beside"],
        }
        for key, name in names.items():
            side = scenario["sides"][key]
            masked = side["meters"]["masked-lm"]
            attacked = max(1, side["attacked"])
            rows.append(
                (
                    scenario["scenario"],
                    name,
                    f"{side['attacks_per_minute']:.1f}",
                    f"{side['attacks_per_minute'] / theirs['attacks_per_minute']:.2f}×",
                    percent(side["success_rate"]),
                    f"{masked['texts'] / attacked:.1f}",
                    f"{masked['calls'] / attacked:.2f}",
                    percent(masked["seconds"] / side["seconds"]),
                )
            )
    if not rows:
        return ""
    head = ("scenario", "attack", "attacks/min", "of TextAttack's", "success rate")
    head += ("masked texts per attack", "forward passes of the masked LM per attack", "its share of time")
    note = (
        "\nTextAttack has only BAE-R, so the ratio of the scenario is R against R; R+I asks more of every"
        " model and stands beside it.\n"
    )
    return "## BAE and its masked language model\n\n" + table(head, rows) + note


def _workers(found: dict[str, Any]) -> str:
    ratios = found["ratios"]
    head = (
        "examples",
        "1 worker, s",
        "2 workers, s",
        "ratio (range)",
        "goal",
        "two bare processes",
        "same results",
    )
    row = (
        found["examples"],
        " ".join(f"{seconds:.1f}" for seconds in found["seconds"]["1"]),
        " ".join(f"{seconds:.1f}" for seconds in found["seconds"]["2"]),
        f"**{found['ratio']:.2f}×** ({min(ratios):.2f}–{max(ratios):.2f})",
        "1.8×",
        f"{found['machine_ceiling']:.2f}×",
        "yes" if found["identical"] else "**no**",
    )
    note = (
        "\nThrough the command line, start-up included. *Two bare processes* is what this machine gives two"
        " raw forward-pass loops at once compared with one: no program can do better here.\n"
    )
    return "## Two workers\n\n" + table(head, [row]) + note


def _scale(told: dict[str, Any]) -> str:
    parts = [("faults", _faults), ("ray", _ray), ("rows", _rows)]
    found = [section(told[name]) for name, section in parts if name in told]
    return "## Workers on a cluster, faults and many rows\n\n" + "\n".join(found)


def _faults(told: dict[str, Any]) -> str:
    head = ("what was killed", "rows", "lost", "twice", "export as undisturbed")
    rows = []
    for name, found in told.items():
        if name == "ray":
            kills = ", ".join(f"{number} × {kind}" for kind, number in sorted(found["kills"].items()))
            what = f"Ray, 3 machines: {sum(found['kills'].values())} kills ({kills})"
        else:
            what = f"{found['killed']} of {found['parts']} shards"
        same = "yes" if found["same_export"] else "**no**"
        rows.append((what, f"{found['rows']:,}", found["lost"], found["twice"], same))
    note = (
        "\n`bench/faults.py`: SIGKILL at random moments, on a Ray cluster of several nodes on one machine."
        " A driver is the command that owns the run file, repeated after its death.\n"
    )
    return table(head, rows) + note


def _ray(told: dict[str, Any]) -> str:
    head = ("engine", "workers", "examples", "CPU s, all workers", "CPU s, busiest worker", "wall s")
    rows = [
        (
            run["engine"],
            run["workers"],
            run["rows"],
            f"{run['cpu_sum']:.2f}",
            f"{run['cpu_most']:.2f}",
            f"{run['wall']:.0f}",
        )
        for run in told["transformer"]
    ]
    free = told["free"]
    same = "the same" if told["identical"] else "**different**"
    note = (
        f"\n`bench/ray_workers.py`, one run each: DeepWordBug on a transformer of two layers, results {same}."
        f" Two Ray workers beside one: **{told['cpu_speed_up']:.2f}×** by the CPU seconds of the busiest"
        " worker (goal 1.7×), the most that two free cores could give. Wall seconds are those of a machine"
        f" with a load of {told['load']:.0f} on two cores. A victim that costs nothing:"
        f" {free['local']:.2f} ms of CPU per example with two local workers, {free['ray']:.2f} ms with two"
        f" Ray workers, all processes of Ray included: {free['overhead']:.2f} ms more (goal 0.5), from runs"
        f" of {free['rows'][0]:,} and {free['rows'][1]:,} examples.\n"
    )
    return table(head, rows) + note


def _rows(told: Sequence[dict[str, Any]]) -> str:
    head = ("rows", "step", "CPU s", "CPU µs per row", "most memory, MB")
    names = {
        "one": "attack, one file",
        "shards": "attack, 16 shards (sum; most of one)",
        "small shard": "attack, one shard of 160",
        "merge": "merge of 16 shards",
        "export one": "export",
        "summary": "summary",
    }
    rows = []
    for found in told:
        for step in (step for step in names if step in found):
            seconds, number = found[step]["cpu_seconds"], found[step].get("rows", found["rows"])
            rows.append(
                (
                    f"{number:,}" + ("" if number == found["rows"] else f" of {found['rows']:,}"),
                    names[step],
                    f"{seconds:.1f}",
                    f"{1e6 * seconds / number:.0f}",
                    f"{found[step]['megabytes']:.1f}",
                )
            )
    note = (
        "\n`bench/million.py`, one run each, on a loaded machine: a victim that costs nothing and an attack"
        " of one query; start-up included. Steps that are not listed for a number of rows were not measured."
    )
    if same := [f"{found['rows']:,}" for found in told if found.get("same_export")]:
        note += " The exports of the whole and of the joined run have the same bytes"
        note += f" ({' and '.join(same)} rows)."
    if "file_megabytes" in told[-1]:
        note += f" The file of {told[-1]['rows']:,} rows has {told[-1]['file_megabytes']:.0f} MB."
    return table(head, rows) + note + "\n"


def _jsma(found: dict[str, Any]) -> str:
    note = (
        "\nAgainst a 64-unit LSTM on IMDB: 250 words, at most 35 changed, a dictionary"
        f" of {found['dictionary']:,} words. The loop handles one review at a time: a forward and a backward"
        " pass, a product with the dictionary, a word, and a forward pass to see whether the label has"
        " flipped.\n"
    )
    shown = _beside_loop(
        found, "reviews", found["milliseconds_per_word"], "changed word", "outcome and text", digits=0
    )
    return "## JSMA beside a plain loop\n\n" + shown + note


def _translation(found: dict[str, Any]) -> str:
    note = (
        "\nThe attack `typo@important` on the reference Transformer, Multi30k en → de. The loop translates"
        " one text at a time with the library's `generate`.\n"
    )
    shown = _beside_loop(
        found, "sentences", found["milliseconds_per_query"], "query", "sentence and output", digits=1
    )
    return "## Translation beside a loop over single texts\n\n" + shown + note


def _beside_loop(
    found: dict[str, Any], texts: str, cost: dict[str, float], step: str, same: str, *, digits: int
) -> str:
    speed = found[f"{texts}_per_minute"]
    head = (f"blocks × {texts}", f"loop, {texts}/min", f"Unfooled, {texts}/min", "ratio (range)")
    head += ("ratio of CPU time", "goal", "met", f"ms per {step}, loop / Unfooled", f"same {same}")
    row = (
        f"{found['blocks']} × {found['examples_per_block']}" + (" (quick)" if found.get("quick") else ""),
        f"{speed['loop']:.{digits}f}",
        f"{speed['unfooled']:.{digits}f}",
        f"**{found['ratio']:.2f}×** ({min(found['ratios']):.2f}–{max(found['ratios']):.2f})",
        f"{found['cpu_ratio']:.2f}×",
        f"{found['goal']:g}×",
        "yes" if found["ratio"] >= found["goal"] else "**no**",
        f"{cost['loop']:.1f} / {cost['unfooled']:.1f}",
        f"{percent(found['same'] / found['examples'])} ({found['same']}/{found['examples']})",
    )
    return table(head, [row])


def _one_word(found: dict[str, Any]) -> str:
    rows = []
    for attack in found["attacks"].values():
        shares = attack["shares"]
        rows.append(
            (
                attack["attack"] + (" (quick)" if found.get("quick") else ""),
                len(shares),
                f"{attack['texts_per_second']:.0f}",
                f"**{percent(attack['share'])}** ({percent(min(shares))}–{percent(max(shares))})",
                percent(found["goal"], 0),
                "yes" if attack["share"] >= found["goal"] else "**no**",
            )
        )
    head = ("attack", "examples", "texts/s", "of the bare forward pass (range)", "goal", "met")
    note = (
        f"\nOne example at a time with a vocabulary of {found['words']:,} words. The bare pass has token ids"
        " of the same length ready and its best batch size.\n"
    )
    return "## The vocabulary pass of one-word attacks\n\n" + table(head, rows) + note


def _switch(found: dict[str, Any]) -> str:
    goals, switch, fact = found["goals"], found["switch"], found["fact"]
    low, high = switch["against_loop_range"]
    rows = [
        (
            "SWITCH: time in model passes",
            percent(switch["forward_share"]),
            f"≥ {percent(goals['forward_share'], 0)}",
        ),
        (
            "SWITCH: against text by text",
            f"{switch['against_loop']:.2f}× ({low:.2f}–{high:.2f})",
            f"≥ {goals['against_loop']}×",
        ),
    ]
    rows += [
        (
            f"{name}: copies per second, of the model's own",
            f"{percent(found[name]['of_raw'])} ({found[name]['copies']} copies)",
            f"≥ {percent(goals[name], 0)}",
        )
        for name in ("fuse", "five")
    ]
    rows.append(
        (
            f"FACT: epoch, per text of the batch ({fact['alternatives']} alternatives)",
            f"{fact['per_copy']:.2f} of a plain epoch",
            f"≤ {goals['fact']}",
        )
    )
    quick = " (quick)" if found.get("quick") else ""
    return f"## Defences{quick}\n\n" + table(("what", "measured", "goal"), rows)


def _startup(told: dict[str, Any]) -> str:
    head = ("attack", "rounds", "before, CPU s (range)", "now, CPU s (range)", "now of before", "goal")
    rows = []
    for name, sides in told["seconds"].items():
        shown = {
            side: f"{told['medians'][name][side]:.1f} ({min(found):.1f}–{max(found):.1f})"
            for side, found in sides.items()
        }
        medians = told["medians"][name]
        share = percent(medians["now"] / medians["before"], 0) if "before" in medians else "–"
        rounds = len(sides["now"])
        rows.append((name, rounds, shown.get("before", "–"), shown["now"], share, f"≤ {told['goal']:.0%}"))
    note = (
        f"\n`unfooled attack --limit {told['rows']}` on MR against a linear SVM (or a small word CNN) from"
        " the command to its summary, user and system seconds of all its processes, one thread each; medians,"
        " both versions in turns.\n"
    )
    return "## Start-up\n\n" + table(head, rows) + note


def _explanations(scenarios: Sequence[dict[str, Any]]) -> str:
    lines = [f"- **{scenario['scenario']}**: {scenario['why']}" for scenario in scenarios]
    return "## Scenarios\n\n" + "\n".join(lines) + "\n"


def _differences(scenarios: Sequence[dict[str, Any]]) -> str:
    """Every example on which the sides differ, and why: see `textattack_quirks.py`."""
    parts = [
        "## Differences\n",
        "A reason stands here only if TextAttack, with that one thing changed, gave exactly Unfooled's"
        " outcome, text and number of queries. Of the order of questions it stands only if Unfooled,"
        " run again with the constraints first, gave TextAttack's.\n",
    ]
    for scenario in scenarios:
        agree = scenario["agreement"]
        found = agree["differences"]
        parts.append(f"### {scenario['scenario']}: {len(found)} of {agree['examples']}\n")
        counts = Counter(
            difference.get("reason", "not examined") or "**unexplained**" for difference in found
        )
        parts += [f"- {count} × {reason}" for reason, count in counts.most_common()]
        parts.append("" if found else "None.\n")
        rows = [
            _difference(difference)
            for difference in found
            if difference["kind"] != "queries" or not difference.get("reason")
        ]
        if rows:
            parts.append(
                table(("example", "TextAttack", "Unfooled", "words: original → TA · Unfooled", "why"), rows)
            )
    return "\n".join(parts)


def _difference(difference: dict[str, Any]) -> tuple[object, ...]:
    a, b = difference["textattack"], difference["unfooled"]
    words = "; ".join(f"{own} → {x} · {y}" for own, x, y in difference["words"][:6]) or "same text"
    return (
        difference["index"],
        f"{a['outcome']}, {a['queries']}",
        f"{b['outcome']}, {b['queries']}",
        words.replace("|", "/"),
        difference.get("reason", "not examined") or "**unexplained**",
    )
