"""A shortcut through a scikit-learn vectorizer, for texts that are near-copies of one another.

The vectorizer reads every text from scratch. Here each word is tokenised once, by the vectorizer's own
functions, and each sentence is read once; both are remembered as numbers, so of an edited text only the
edited sentence is read again. A batch then becomes a matrix with a few NumPy calls. The shortcut is used
only where it gives exactly the vectorizer's own matrix.
"""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray

# No token of these patterns holds a space, so a text's tokens are those of its stretches between spaces.
_PATTERNS = {r"(?u)\b\w\w+\b", r"\b\w\w+\b", r"(?u)\b\w+\b", r"\b\w+\b", r"(?u)\w+", r"\w+"}
_MOST_BYTES = 20_000_000  # remembered, of words and of sentences each, roughly
_ENTRY = 200  # what an entry costs beside its characters

Integers = NDArray[np.int64]


class _Words(dict[str, bytes]):
    """Stretch between spaces → the numbers of its tokens, as the bytes of an array (the quickest to join)."""

    def __init__(self, vectorizer: Any, numbers: dict[str, int], *, keep_unknown: bool) -> None:
        super().__init__()
        self.prepare = vectorizer.build_preprocessor()
        self.tokenise = vectorizer.build_tokenizer()
        self.stop = vectorizer.get_stop_words() or frozenset()
        self.numbers = numbers
        self.keep_unknown = keep_unknown  # as -1: an unknown token stands between the two beside it
        self.bytes = 0

    def __missing__(self, stretch: str) -> bytes:
        number, stop = self.numbers.get, self.stop
        tokens = self.tokenise(self.prepare(stretch))
        numbers = [number(token, -1) for token in tokens if token not in stop]
        if not self.keep_unknown:
            numbers = [number for number in numbers if number >= 0]
        found = array("q", numbers).tobytes()
        if self.bytes > _MOST_BYTES:
            self.clear()
            self.bytes = 0
        self.bytes += len(stretch) + _ENTRY
        self[stretch] = found
        return found


class _Sentences(dict[str, int]):
    """Sentence → its number. The tokens of number `i` are `tokens[starts[i] : starts[i] + sizes[i]]`."""

    def __init__(self, words: _Words) -> None:
        super().__init__()
        self.words = words
        self.forget()

    def forget(self) -> None:
        self.clear()
        # Number 0 stands for nothing: NumPy cannot look into an empty array.
        self.tokens = array("q", [-1])
        self.starts = array("q", [0])
        self.sizes = array("q", [0])
        self.bytes = 0

    def __missing__(self, sentence: str) -> int:
        number = len(self.starts)
        before = len(self.tokens)
        self.tokens.frombytes(b"".join(map(self.words.__getitem__, sentence.split())))
        self.starts.append(before)
        self.sizes.append(len(self.tokens) - before)
        self.bytes += len(sentence) + _ENTRY
        self[sentence] = number
        return number


class FastWords:
    """The matrix of a fitted `CountVectorizer` or `TfidfVectorizer` over words, or words and word pairs."""

    def __init__(self, vectorizer: Any, rest: Any) -> None:
        self.vectorizer = vectorizer
        self.rest = rest  # the pipeline after the vectorizer
        vocabulary: dict[str, int] = vectorizer.vocabulary_
        self.width = len(vocabulary)
        self.pairs = vectorizer.ngram_range == (1, 2)
        known: dict[str, int] = {}
        for term in vocabulary:
            for token in term.split(" "):
                known.setdefault(token, len(known))
        # Each token's column, and -1 at the end for tokens (and -1 itself) that have none.
        self.column = np.full(len(known) + 1, -1, dtype=np.int64)
        self.pair_shift = max(1, len(known).bit_length())
        pair_keys: list[int] = []
        pair_columns: list[int] = []
        for term, column in vocabulary.items():
            first, space, second = term.partition(" ")
            if space:
                pair_keys.append(known[first] << self.pair_shift | known[second])
                pair_columns.append(column)
            else:
                self.column[known[term]] = column
        order = np.argsort(np.array(pair_keys, dtype=np.int64))
        self.pair_keys = np.array(pair_keys, dtype=np.int64)[order]
        self.pair_columns = np.array(pair_columns, dtype=np.int64)[order]
        self.shift = max(1, self.width.bit_length())
        numbers = known if self.pairs else vocabulary
        self.sentences = _Sentences(_Words(vectorizer, numbers, keep_unknown=self.pairs))

    @classmethod
    def of(cls, pipeline: Any) -> FastWords | None:
        """The shortcut for this pipeline, or None where it would not be exact."""
        try:
            from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
            from sklearn.pipeline import Pipeline
        except ImportError:
            return None
        if type(pipeline) is not Pipeline or len(pipeline.steps) < 2:
            return None
        vectorizer = pipeline.steps[0][1]
        plain = (
            type(vectorizer) in (CountVectorizer, TfidfVectorizer)
            and vectorizer.analyzer == "word"
            and vectorizer.tokenizer is None
            and vectorizer.preprocessor is None
            and vectorizer.token_pattern in _PATTERNS
            and vectorizer.ngram_range in ((1, 1), (1, 2))
            # "ascii" would drop unusual spaces and so join the words around them.
            and vectorizer.strip_accents in (None, "unicode")
            and vectorizer.input == "content"
            and getattr(vectorizer, "vocabulary_", None)
        )
        if not plain or len(vectorizer.vocabulary_) >= 1 << 31:
            return None
        rest = pipeline.steps[1][1] if len(pipeline.steps) == 2 else pipeline[1:]
        words = cls(vectorizer, rest)
        return words if words.exact() else None

    def exact(self) -> bool:
        """Whether texts made of the vectorizer's own vocabulary give its own matrix, bit by bit."""
        terms = list(self.vectorizer.vocabulary_)[:: max(1, self.width // 200)]
        samples = ["", " \t\n", "'", "ÉTÉ été naïve ΟΔΟΣ x_y 3.14 don't a-b", " ".join(terms)]
        samples += [" ".join(terms[i : i + 9]) for i in range(0, len(terms), 5)]
        samples += [", ".join(terms[i::7]).title() + "  " + "!".join(terms[i : i + 3] * 2) for i in range(7)]
        samples += [" ".join(reversed(terms)).upper()]
        theirs = self.vectorizer.transform(samples)
        ours = self.matrix(samples)
        theirs.sort_indices()
        return (
            bool(ours.shape == theirs.shape and ours.dtype == theirs.dtype)
            and np.array_equal(ours.indptr, theirs.indptr)
            and np.array_equal(ours.indices, theirs.indices)
            and np.array_equal(ours.data, theirs.data)
        )

    def matrix(self, texts: list[str]) -> Any:
        """What `vectorizer.transform(texts)` gives."""
        from scipy.sparse import csr_matrix

        rows, columns = self._cells(texts)
        keys = rows << self.shift | columns
        if len(texts) << self.shift < 1 << 31:
            keys = keys.astype(np.int32)  # sorts twice as fast
        keys.sort()
        # Equal keys stand side by side now: each run is one cell, its length the count.
        first = np.empty(len(keys), dtype=bool)
        first[:1] = True
        np.not_equal(keys[1:], keys[:-1], out=first[1:])
        at = np.flatnonzero(first)
        cells = keys[at]
        counts = np.diff(at, append=len(keys))
        row_keys = (np.arange(len(texts) + 1, dtype=np.int64) << self.shift).astype(keys.dtype)
        pointers = np.searchsorted(cells, row_keys)
        dtype = self.vectorizer.dtype
        data = np.ones(len(at), dtype=dtype) if self.vectorizer.binary else counts.astype(dtype)
        indices = (cells & ((1 << self.shift) - 1)).astype(np.int32)
        matrix = csr_matrix(
            (data, indices, pointers.astype(np.int32)), shape=(len(texts), self.width), copy=False
        )
        matrix.has_sorted_indices = True
        matrix.has_canonical_format = True
        weigh = getattr(self.vectorizer, "_tfidf", None)
        return matrix if weigh is None else weigh.transform(matrix, copy=False)

    def _cells(self, texts: list[str]) -> tuple[Integers, Integers]:
        """Row and column of every counted token and token pair, with repetitions."""
        sentences = self.sentences
        if sentences.bytes > _MOST_BYTES:
            sentences.forget()
        number = sentences.__getitem__
        numbers: list[int] = []
        lengths = np.empty(len(texts), dtype=np.int64)
        for row, text in enumerate(texts):
            parts = text.split(". ")  # always at a space, so no token is cut
            lengths[row] = len(parts)
            numbers += map(number, parts)
        which = np.array(numbers, dtype=np.int64)
        sizes = _take(sentences.sizes, which)
        starts = _take(sentences.starts, which)
        rows = np.repeat(np.repeat(np.arange(len(texts)), lengths), sizes)
        ends = np.cumsum(sizes)
        places = np.arange(len(rows)) + np.repeat(starts - (ends - sizes), sizes)
        tokens = _take(sentences.tokens, places)
        if not self.pairs:
            return rows, tokens
        columns = self.column[tokens]
        seen = columns >= 0
        pair_rows, pair_columns = self._pairs(rows, tokens)
        return np.concatenate([rows[seen], pair_rows]), np.concatenate([columns[seen], pair_columns])

    def _pairs(self, rows: Integers, tokens: Integers) -> tuple[Integers, Integers]:
        left, right = tokens[:-1], tokens[1:]
        whole = np.flatnonzero((rows[:-1] == rows[1:]) & (left >= 0) & (right >= 0))
        if not len(whole) or not len(self.pair_keys):
            return rows[:0], tokens[:0]
        keys = left[whole] << self.pair_shift | right[whole]
        at = np.minimum(np.searchsorted(self.pair_keys, keys), len(self.pair_keys) - 1)
        found = self.pair_keys[at] == keys
        return rows[whole[found]], self.pair_columns[at[found]]


def _take(values: array[int], places: Integers) -> Integers:
    # The view must die at once: an array cannot grow while somebody looks into it.
    return np.frombuffer(values, dtype=np.int64)[places]
