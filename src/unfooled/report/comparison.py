"""Several runs side by side: what differs, who breaks what, and what carries over to other models."""

from __future__ import annotations

from collections.abc import Sequence

from unfooled.metrics.overlap import Difference, Overlap, bae_splits, by_attack, differences, overlap
from unfooled.report.charts import bar_chart, share_matrix
from unfooled.report.interpretation import Chart, PageTable, View

_MOST_GROUPS = 12


def comparisons(views: Sequence[View]) -> list[str]:
    """Each further run against the first, in words; on the same examples where the data are the same."""
    told = []
    for other in views[1:]:
        first = views[0]
        if not _same_data(first, other):
            told.append(f"{other.name} was attacked on other data than {first.name}: no paired comparison.")
            continue
        found = differences(first.ledger, other.ledger)
        if not found:
            told.append(f"{first.name} and {other.name} have no finished example in common.")
            continue
        standing = found[0]
        p = standing.p or 0.0
        verb = "differ" if p < 0.05 else "do not differ more than chance would explain"
        told.append(
            f"{first.name} and {other.name}, the same {standing.n:,} examples: {standing.name} "
            f"{100 * standing.value:+.1f} points ({100 * standing.low:+.1f} to {100 * standing.high:+.1f}); "
            f"the two {verb} (exact McNemar test, p = {p:.3g})."
        )
    return told


def tables(views: Sequence[View]) -> list[PageTable]:
    """The ablation table, the splits of the BAE paper where its three runs are there, and cut texts."""
    found = [_ablation(views), _splits(views), *(_unread(view, len(views)) for view in views)]
    return [table for table in found if table is not None]


def comparison_charts(views: Sequence[View]) -> list[Chart]:
    """Who breaks what, and the matrix of transfers that were scored."""
    found = [_groups(views), _transfers(views)]
    return [chart for chart in found if chart is not None and chart.svg]


def _unread(view: View, runs: int) -> PageTable | None:
    unread = view.summary.unread
    if unread is None:
        return None
    return PageTable(
        title="What the model never read" + (f": {view.name}" if runs > 1 else ""),
        caption=f"{unread}. Words behind the cut change nothing, whoever writes them."
        + (f" The {len(unread.listed)} texts that lost most." if unread.texts > len(unread.listed) else ""),
        columns=("example", "words", "not read"),
        lines=tuple((str(cut.key), f"{cut.words:,}", f"{cut.share:.1%}") for cut in unread.listed),
    )


def _ablation(views: Sequence[View]) -> PageTable | None:
    pairs = [(other, differences(views[0].ledger, other.ledger)) for other in _paired(views)[1:]]
    names = list(dict.fromkeys(difference.name for _, found in pairs for difference in found))
    if not names:
        return None
    lines = []
    for other, found in pairs:
        cells = {difference.name: _cell(difference) for difference in found}
        lines.append((other.name, *(cells.get(name, "–") for name in names)))
    return PageTable(
        title=f"What changes against {views[0].name}",
        caption="Each run minus the first, over the examples that both have, with 95 % intervals.",
        columns=("run", *names),
        lines=tuple(lines),
    )


def _cell(difference: Difference) -> str:
    scale, form = (100.0, "{:+.1f}") if difference.p is not None else (1.0, "{:+.2f}")
    value, low, high = (
        form.format(scale * number) for number in (difference.value, difference.low, difference.high)
    )
    unit = " points" if difference.p is not None else ""
    return f"{value}{unit} ({low} to {high}, n = {difference.n:,})"


def _splits(views: Sequence[View]) -> PageTable | None:
    places = by_attack([view.attack for view in views])
    if places is None:
        return None
    chosen = {mode: views[place] for mode, place in places.items()}
    first = next(iter(chosen.values()))
    if not all(_same_data(first, view) and _same_victim(first, view) for view in chosen.values()):
        return None
    found = overlap({mode: view.ledger for mode, view in chosen.items()})
    if found is None:
        return None
    meaning = {
        "A": "R/I breaks it and R does not: it takes an insertion",
        "B": "R/I breaks it and I does not: it takes a replacement",
        "C": "only R/I breaks it: it takes both",
    }
    lines = tuple(
        (name, meaning[name], f"{round(rate.value * rate.n):,}", f"{rate.value:.1%}",
         f"{rate.low:.1%} – {rate.high:.1%}")
        for name, rate in bae_splits(found, *places).items()
    )  # fmt: skip
    return PageTable(
        title="Insertions or replacements: the splits A, B and C",
        caption=f"Of the {found.n:,} examples that all three runs attacked.",
        columns=("split", "meaning", "examples", "share", "95 % interval"),
        lines=lines,
    )


def _groups(views: Sequence[View]) -> Chart | None:
    together = [view for view in _paired(views) if _same_victim(views[0], view)]
    if len(together) < 2:
        return None
    found: Overlap | None = overlap({view.name: view.ledger for view in together})
    if found is None:
        return None
    groups = found.groups()[:_MOST_GROUPS]
    names = [" + ".join(names) or "none" for names, _ in groups]
    counts = [count for _, count in groups]
    title = "Which runs break which examples"
    letters = [chr(ord("a") + place) for place in range(len(groups))]
    return Chart(
        title=title,
        svg=bar_chart(letters, counts, title=title, x_name="broken by just these runs"),
        caption=f"Of the {found.n:,} examples that all runs attacked. "
        + "; ".join(f"{letter}: {name}" for letter, name in zip(letters, names, strict=True))
        + ".",
        columns=("broken by", "examples"),
        lines=tuple((name, f"{count:,}") for name, count in zip(names, counts, strict=True)),
    )


def _transfers(views: Sequence[View]) -> Chart | None:
    scored = [view for view in views if view.transfers]
    if not scored:
        return None
    targets = list(dict.fromkeys(transfer.target for view in scored for transfer in view.transfers))
    rates = [{transfer.target: transfer.rate for transfer in view.transfers} for view in scored]
    title = "Texts that also fool other models"
    rows = [view.name for view in scored]
    cells = [[row[name].value if name in row else None for name in targets] for row in rates]
    return Chart(
        title=title,
        svg=share_matrix(rows, targets, cells, title=title),
        caption="Rows: the run whose texts were scored again. Columns: the model that read them. Counted are "
        "texts whose original that model gets right.",
        columns=("run", "made for", "read by", "fooled as well", "95 % interval", "n"),
        lines=tuple(
            (view.name, transfer.source, transfer.target, f"{transfer.rate.value:.1%}",
             f"{transfer.rate.low:.1%} – {transfer.rate.high:.1%}", f"{transfer.rate.n:,}")
            for view in scored for transfer in view.transfers
        ),
    )  # fmt: skip


def _paired(views: Sequence[View]) -> list[View]:
    return [view for view in views if _same_data(views[0], view)]


def _same_data(view: View, other: View) -> bool:
    return view.data_fingerprint == other.data_fingerprint


def _same_victim(view: View, other: View) -> bool:
    return view.victim_fingerprint == other.victim_fingerprint
