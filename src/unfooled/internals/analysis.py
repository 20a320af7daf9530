"""What lies behind a run's numbers: the figures of the papers, computed from a run file and its victim.

    analysis = unfooled.analyse("runs/x", victim="models/bert", data="mr")
    analysis.embeddings.sentence.value        # R_e
    analysis.save("analysis/x")

| part       | needs                                             |
|------------|---------------------------------------------------|
| confusion  | the run                                           |
| words      | the run                                           |
| attention  | the victim, and that it shows attention           |
| embeddings | the victim, and that it shows embeddings          |
| theorem    | nothing; the model's own matrices where it is one |
| pca        | data                                              |
| neighbours | the victim, and a table of nearest words          |
| field      | the victim, and that it is a torch model          |

What cannot be made is left out, and a note says why.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, cast

from unfooled.core.result import Result
from unfooled.core.victim import Victim
from unfooled.data.dataset import Dataset
from unfooled.data.loading import Given, as_dataset
from unfooled.errors import ResourceError, RunFileError, UserError, VictimError
from unfooled.internals.attention import Attention, compare_attention, shifts_of
from unfooled.internals.embeddings import (
    Embeddings,
    changes_of,
    compare_embeddings,
    relative_change,
)
from unfooled.internals.figures.heat import WIDTH
from unfooled.internals.neighbourhood import NEAREST, Field, Find, Neighbourhood, field, neighbourhood
from unfooled.internals.pairs import TextPair, pair_of, portions
from unfooled.internals.pca import Features, PcaProjection, project, require_vectors
from unfooled.internals.theorem import Theorem, check_model, check_random, head_weights
from unfooled.metrics.outcomes import Confusion, WordsChanged, outcomes
from unfooled.progress import ProgressObserver
from unfooled.resources.neighbours import open_neighbours
from unfooled.runs.attack import Run, run_folder
from unfooled.runs.file import RunFile
from unfooled.victims.loading import GivenVictim, as_victim
from unfooled.victims.torch.noise import TorchNoise
from unfooled.victims.torch.whitebox import WhiteBoxVictim, is_white_box

Compared = TypeVar("Compared")
PARTS = ("confusion", "words", "attention", "embeddings", "theorem", "pca", "neighbours", "field")
_INSIDE = ("attention", "embeddings")
_LONGEST = 512  # tokens, where a victim does not say how many it reads


@dataclass(frozen=True, kw_only=True, eq=False)
class Analysis:
    """Numbers of every part that could be made; None for the others, with the reason in `notes`."""

    run: str
    attack: str
    victim: str
    data: str
    counts: dict[str, int]  # of each outcome
    looked_at: int  # successes whose inside was compared
    confusion: Confusion | None = None
    words: WordsChanged | None = None
    attention: Attention | None = None
    embeddings: Embeddings | None = None
    theorem: Theorem | None = None
    pca: PcaProjection | None = None
    neighbours: tuple[Neighbourhood, ...] = ()
    field: tuple[Field, ...] = ()
    notes: tuple[str, ...] = ()

    def save(self, out: str | Path, *, width: int = WIDTH, every_head: bool = False) -> Path:
        """Write pictures, tables and `index.md` to the folder `out`, as `unfooled analyse` does."""
        from unfooled.internals.folder import write_analysis  # which takes an analysis

        return write_analysis(self, out, width=width, every_head=every_head)


def analyse(
    run: Run | str | Path,
    *,
    victim: GivenVictim | None = None,
    against: Mapping[str, GivenVictim] | None = None,
    nearest: Find | str | None = "",
    data: Given | None = None,
    keys: Sequence[int] | None = None,
    examples: int = 3,
    limit: int | None = None,
    only: Collection[str] = PARTS,
    features: Features = "tfidf",
    seed: int = 0,
    observer: ProgressObserver | None = None,
) -> Analysis:
    """Look behind a run's numbers: what `unfooled analyse` does.

    `victim` must be the one that was attacked; `against` are others, such as hardened copies, that are asked
    about the same words. `nearest` finds these: a table by name or path, the counter-fitted one where it is
    here, or a function of a word. `keys` chooses the examples that are kept for pictures; without it these
    are the first `examples` successes. `limit` restricts the look inside to the first ones. `only` names
    parts: confusion, words, attention, embeddings, theorem, pca, neighbours, field.

    Example:

        >>> analysis = unfooled.analyse("runs/x", victim="fake", only=["confusion", "words"])
        >>> analysis.confusion.labels, analysis.notes
        (('negative', 'positive'), ())
    """
    observer = observer or ProgressObserver()
    victim = None if victim is None else as_victim(victim)
    others = {name: as_victim(other) for name, other in (against or {}).items()}
    data = None if data is None else as_dataset(data)
    _check(only, victim, keys)
    if data is not None and "pca" in only and features == "sentence":
        require_vectors(victim)  # now, not after minutes of computing
    notes: list[str] = []
    with run_folder(run) as folder, closing(RunFile.read(folder)) as file:
        header = file.header
        if victim is not None:
            require_same_victim(header, victim)
        counts = {str(name): number for name, number in file.count().items()}
        if not counts:
            raise RunFileError(f"{file.path}: the run has no finished example", "attack some rows first")
        confusion, words = outcomes(file.results(), file.labels)
        if not confusion.n:
            notes.append("no confusion matrix: every example ended in an error")
        if not words.n:
            notes.append("no histogram of changed words: no attack was successful")
        chosen = _chosen(file, keys, examples)
        inside = [part for part in _INSIDE if part in only and _possible(part, victim, words.n, notes)]
        total = 0
        attention: Attention | None = None
        embeddings: Embeddings | None = None
        if inside:
            total = words.n if limit is None else min(limit, words.n)
            successes = {result.key: result for result in chosen}
            results = _looked_at(file, limit, successes)
            attention, embeddings = _look_inside(
                results, cast(WhiteBoxVictim, victim), inside, set(successes), total, observer
            )
        models = {"attacked": victim, **others} if victim is not None else {}
        neighbours: tuple[Neighbourhood, ...] = ()
        if "neighbours" in only:
            find = nearest_words(nearest) if isinstance(nearest, str) and models else nearest
            neighbours = _neighbours(chosen, find, models, observer, notes)
        fields = _fields(chosen, models, seed, observer, notes) if "field" in only else ()
    environment = header.get("environment") or {}
    return Analysis(
        run=str(run.path if isinstance(run, Run) else run),
        attack=str(environment.get("attack", "")),
        victim=str(environment.get("victim", "")),
        data=str(environment.get("data", "")),
        counts=counts,
        looked_at=total,
        confusion=confusion if "confusion" in only and confusion.n else None,
        words=words if "words" in only and words.n else None,
        attention=attention,
        embeddings=embeddings,
        theorem=_theorem(victim, seed, notes) if "theorem" in only else None,
        pca=_pca(data, features, victim, seed, observer, notes) if "pca" in only else None,
        neighbours=neighbours,
        field=fields,
        notes=tuple(notes),
    )


def nearest_words(table: str) -> Find | None:
    """Finds words in a table given by name or path; None where none is given and the usual one is missing."""
    try:
        oracle = open_neighbours(table)
    except ResourceError:
        if table:
            raise
        return None
    return lambda word: oracle([(word, NEAREST + 2, 0.0)])[0]


def require_same_victim(header: dict[str, Any], victim: Victim) -> None:
    """Numbers about another model than the attacked one would mean nothing."""
    attacked = str((header.get("identity") or {}).get("victim", ""))
    given = victim.fingerprint()
    if attacked == given:
        return
    name = (header.get("environment") or {}).get("victim", "another")
    raise VictimError(
        f"{victim.name} is not the model that was attacked: the run is about {name} "
        f"({attacked[:8] or 'no fingerprint'}…), this one is {given[:8]}…",
        "give the attacked model as --model, with the same --labels, --threshold and --victim-option; "
        "if it was trained again since, attack it again",
    )


def _check(only: Collection[str], victim: Victim | None, keys: Sequence[int] | None) -> None:
    unknown = [name for name in only if name not in PARTS]
    if unknown:
        raise UserError(f"there is no part {unknown[0]!r}", f"choose from {', '.join(PARTS)}")
    if keys and victim is None:
        raise UserError(
            "pictures of single examples need the model",
            "give the attacked model as --model, or no --example",
        )


def _chosen(file: RunFile, keys: Sequence[int] | None, examples: int) -> list[Result]:
    if keys is None:
        return list(islice(file.results(outcome="success"), examples))
    found = []
    for key in dict.fromkeys(keys):
        result = next(file.results(keys=range(key, key + 1)), None)
        if result is None or not result.edits:
            state = (
                "was not attacked in this run" if result is None else f"was not changed ({result.outcome})"
            )
            some = ", ".join(str(result.key) for result in islice(file.results(outcome="success"), 10))
            raise UserError(
                f"example {key} {state}",
                f"choose a changed one, such as {some}" if some else "none was changed",
            )
        found.append(result)
    return found


def _possible(part: str, victim: Victim | None, successes: int, notes: list[str]) -> bool:
    why = ""
    if victim is None:
        why = "give the attacked model as --model"
    elif part not in victim.capabilities or not is_white_box(victim):
        why = f"{victim.name} gives none"
    elif not successes:
        why = "no attack was successful"
    if why:
        notes.append(f"no {part} pictures: {why}")
    return not why


def _looked_at(file: RunFile, limit: int | None, chosen: dict[int, Result]) -> Iterator[Result]:
    """The first successes, and then the chosen examples that are not among them."""
    seen: set[int] = set()
    for result in islice(file.results(outcome="success"), limit):
        seen.add(result.key)
        yield result
    yield from (result for key, result in chosen.items() if key not in seen)


def _look_inside(
    results: Iterator[Result],
    victim: WhiteBoxVictim,
    inside: list[str],
    chosen: set[int],
    total: int,
    observer: ProgressObserver,
) -> tuple[Attention | None, Embeddings | None]:
    """One pass over the texts, before and after; only numbers per layer are kept, and the chosen examples."""
    shifts, attention_examples, pools = [], [], True
    changes, embedding_examples, sentences = [], [], []
    unread = counted = 0
    observer.started(total, what=" and ".join(inside))
    for portion in portions((pair_of(result) for result in results), getattr(victim, "max_length", _LONGEST)):
        texts = [pair.before for pair in portion] + [pair.after for pair in portion]
        counting = [counted + at < total for at in range(len(portion))]
        if "attention" in inside:
            seen = _compared(_sides(portion, victim.attention_maps(texts), counting), compare_attention)
            shifts += [shift for _, compared, counts in seen if counts for shift in shifts_of(compared)]
            attention_examples += [compared for pair, compared, _ in seen if pair.key in chosen]
            pools = pools and all(compared.pools for _, compared, _ in seen)
        if "embeddings" in inside:
            found = _compared(_sides(portion, victim.embeddings(texts), counting), compare_embeddings)
            changes += [change for _, changed, counts in found if counts for change in changes_of(changed)]
            embedding_examples += [changed for pair, changed, _ in found if pair.key in chosen]
            unread += sum(
                counts and bool(pair.edited) and not any(changed.edited) for pair, changed, counts in found
            )
            vectors = victim.sentence_vectors(texts)
            for pair, old, new, counts in _sides(portion, list(vectors), counting):
                sentences += [(pair.key, relative_change(old, new))] if counts else []
        observer.advanced(sum(counting))
        counted += len(portion)
    return (
        Attention(tuple(shifts), tuple(attention_examples), pools) if "attention" in inside else None,
        Embeddings(tuple(changes), tuple(sentences), tuple(embedding_examples), unread)
        if "embeddings" in inside
        else None,
    )


def _compared(
    sides: Iterable[tuple[TextPair, Any, Any, bool]], compare: Callable[[TextPair, Any, Any], Compared]
) -> list[tuple[TextPair, Compared, bool]]:
    return [(pair, compare(pair, before, after), counts) for pair, before, after, counts in sides]


def _sides(
    portion: Sequence[TextPair], answers: Sequence[Any], counting: Sequence[bool]
) -> Iterator[tuple[TextPair, Any, Any, bool]]:
    half = len(portion)
    return zip(portion, answers[:half], answers[half:], counting, strict=True)


def _neighbours(
    chosen: Sequence[Result],
    nearest: Find | str | None,
    models: Mapping[str, Victim],
    observer: ProgressObserver,
    notes: list[str],
) -> tuple[Neighbourhood, ...]:
    if not models or nearest is None or isinstance(nearest, str):
        what = "the attacked model as --model" if not models else "a table of nearest words as --neighbours"
        notes.append(f"no neighbours: give {what}")
        return ()
    labels = {name: tuple(victim.labels) for name, victim in models.items()}
    if len(set(labels.values())) > 1:
        told = "; ".join(f"{name}: {', '.join(names)}" for name, names in labels.items())
        raise VictimError(f"the models have different classes: {told}", "compare models of the same classes")
    observer.started(len(chosen), what="neighbours")
    found = []
    for result in chosen:
        found.append(neighbourhood(result, nearest, models))
        observer.advanced()
    known = tuple(around for around in found if around is not None)
    if not known:
        notes.append("no neighbours: no chosen success replaced words only")
    return known


def _fields(
    chosen: Sequence[Result],
    models: Mapping[str, Victim],
    seed: int,
    observer: ProgressObserver,
    notes: list[str],
) -> tuple[Field, ...]:
    readers = {name: victim for name, victim in models.items() if isinstance(victim, TorchNoise)}
    if not readers:
        notes.append("no field of embeddings: it needs a torch model as --model, and no --threshold")
        return ()
    observer.started(len(chosen) * len(readers), what="field")
    found = []
    for result in chosen:
        for name, victim in readers.items():
            found.append(field(result, name, victim, seed=seed))
            observer.advanced()
    known = tuple(around for around in found if around is not None)
    if not known:
        notes.append("no field of embeddings: no chosen success replaced words only")
    return known


def _theorem(victim: Victim | None, seed: int, notes: list[str]) -> Theorem:
    heads = head_weights(victim) if victim is not None else []
    if victim is None:
        notes.append("Theorem 1 on random matrices only: give the attacked model as --model for its own")
    elif not heads:
        notes.append(f"Theorem 1 on random matrices only: {victim.name} has no query and key matrices")
    return Theorem((*check_random(seed=seed), *check_model(heads, seed=seed)))


def _pca(
    data: Dataset | None,
    features: Features,
    victim: Victim | None,
    seed: int,
    observer: ProgressObserver,
    notes: list[str],
) -> PcaProjection | None:
    if data is None:
        notes.append("no PCA: give the data as --data")
        return None
    observer.started(len(data), what="pca")
    return project(data, features=features, victim=victim, seed=seed, told=observer.advanced)
