"""A digest of a fitted model's contents that is the same in every process.

Pickled bytes will not do: they hold memory addresses that scikit-learn keeps to know its own objects again,
and the order of sets. Here an object is its class and its state, read one by one in an order of their own.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from hashlib import sha256
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

# Memory addresses and caches; and what changes no answer: threads, chatter and how long the training took.
_SKIPPED = re.compile(r"_\w+_id|\w*cache\w*|n_jobs|verbose|memory|refit_time_|cv_results_")

Feed = Callable[[bytes], None]


def stable_digest(value: Any) -> str:
    hasher = sha256()
    _feed(hasher.update, value, ())
    return hasher.hexdigest()


def _feed(feed: Feed, value: Any, above: tuple[int, ...]) -> None:
    """`above` are the ids of the objects that hold this one, so that a circle ends."""
    if isinstance(value, np.generic):
        value = value.item() if value.dtype.names is None else np.asarray(value)
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        _plain(feed, value)
        return
    if id(value) in above:
        _mark(feed, "circle", above[::-1].index(id(value)))
        return
    above = (*above, id(value))
    if isinstance(value, np.ndarray):
        _array(feed, value, above)
    elif isinstance(value, np.dtype):
        _mark(feed, "dtype", value.str)
    elif type(value) in (list, tuple):
        _mark(feed, type(value).__name__, len(value))
        for item in value:
            _feed(feed, item, above)
    elif type(value) is dict:
        _mapping(feed, value, above)
    elif type(value) in (set, frozenset):
        _unordered(feed, "set", value, above)
    elif isinstance(value, (type, ModuleType)):
        _mark(feed, "name", _name(value))
    elif isinstance(value, FunctionType):
        _function(feed, value, above)
    elif isinstance(value, CodeType):
        _mark(feed, "code", value.co_code.hex(), value.co_names, value.co_varnames)
        _feed(feed, value.co_consts, above)
    elif isinstance(value, re.Pattern):
        _mark(feed, "pattern", value.flags)
        _feed(feed, value.pattern, above)
    elif isinstance(value, (np.random.RandomState, np.random.Generator)):
        _mark(feed, "random", _name(type(value)))  # where it stands is a matter of the process
    elif hasattr(value, "tocsr") and hasattr(value, "nnz"):
        _sparse(feed, value, above)
    else:
        _object(feed, value, above)


def _mark(feed: Feed, *parts: object) -> None:
    """What follows, with its length, so that neighbours cannot run together."""
    text = "\x1f".join(map(str, parts)).encode(errors="surrogatepass")
    feed(b"%d:" % len(text))
    feed(text)


def _plain(feed: Feed, value: Any) -> None:
    if isinstance(value, str):
        _mark(feed, "str", value)
    elif isinstance(value, bytes):
        _mark(feed, "bytes", len(value))
        feed(value)
    elif isinstance(value, float):
        feed(b"f")
        feed(struct.pack("<d", value))
    else:
        _mark(feed, type(value).__name__, repr(value))


def _array(feed: Feed, value: Any, above: tuple[int, ...]) -> None:
    _mark(feed, "array", value.dtype.str, value.shape)
    if value.dtype.names is not None:
        for name in value.dtype.names:  # field by field: the gaps between them hold anything
            _mark(feed, "field", name)
            _feed(feed, value[name], above)
    elif value.dtype.hasobject:
        _feed(feed, value.ravel().tolist(), above)
    else:
        feed(np.ascontiguousarray(value).tobytes())


def _mapping(feed: Feed, value: Mapping[Any, Any], above: tuple[int, ...]) -> None:
    if all(type(key) is str for key in value):
        _mark(feed, "dict", len(value))
        for key in sorted(value):
            _mark(feed, "key", key)
            _feed(feed, value[key], above)
    else:
        _unordered(feed, "dict of any", value.items(), above)


def _unordered(feed: Feed, kind: str, values: Any, above: tuple[int, ...]) -> None:
    digests = []
    for value in values:
        hasher = sha256()
        _feed(hasher.update, value, above)
        digests.append(hasher.digest())
    _mark(feed, kind, len(digests))
    feed(b"".join(sorted(digests)))


def _function(feed: Feed, value: FunctionType, above: tuple[int, ...]) -> None:
    _mark(feed, "function", _name(value))
    _feed(feed, value.__code__, above)
    _feed(feed, [value.__defaults__, value.__kwdefaults__], above)
    for cell in value.__closure__ or ():
        try:
            _feed(feed, cell.cell_contents, above)
        except ValueError:  # not filled yet
            _mark(feed, "empty cell")


def _sparse(feed: Feed, value: Any, above: tuple[int, ...]) -> None:
    rows = value.tocsr().copy()
    rows.sum_duplicates()
    _mark(feed, "sparse", _name(type(value)), rows.shape)
    for part in (rows.data, rows.indices.astype(np.int64), rows.indptr.astype(np.int64)):
        _array(feed, part, above)


def _object(feed: Feed, value: Any, above: tuple[int, ...]) -> None:
    """Class and state, as the object would give them to a pickle."""
    _mark(feed, "object", _name(type(value)))
    try:
        reduced = value.__reduce_ex__(4)
    except Exception:  # locks, handles: such an object cannot say what it holds
        _state(feed, getattr(value, "__dict__", {}), above)
        return
    if isinstance(reduced, str):
        _mark(feed, "name", getattr(value, "__module__", ""), reduced)
        return
    make, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
    _mark(feed, "made by", _name(make))
    _feed(feed, arguments, above)
    for part in state if isinstance(state, tuple) else (state,):
        _state(feed, part, above)
    _feed(feed, list(items or ()), above)
    _unordered(feed, "items", pairs or (), above)


def _state(feed: Feed, state: Any, above: tuple[int, ...]) -> None:
    if type(state) is dict:
        state = {name: part for name, part in state.items() if not _SKIPPED.fullmatch(str(name))}
    _feed(feed, state, above)


def _name(value: Any) -> str:
    name = getattr(value, "__qualname__", getattr(value, "__name__", type(value).__qualname__))
    return f"{getattr(value, '__module__', '')}.{name}"
