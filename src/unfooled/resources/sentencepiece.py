"""A SentencePiece unigram model as a tokenizer, read from its own file format."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unfooled.errors import ResourceError
from unfooled.extras import libraries_of

# Numbers of the fields that matter, from the published format of the file.
_PIECE, _NORMALIZER = 1, 3
_TEXT, _SCORE, _KIND = 1, 2, 3
_CHARS_MAP = 2
_UNKNOWN = 2
_PLAIN = (1, 4)  # ordinary pieces, and those the trainer was told to keep


def read_unigram(path: Path) -> Any:
    """A `tokenizers.Tokenizer` whose ids are the positions of the pieces in the file."""
    with libraries_of("torch", "tokenizers", needed_for="this sentence encoder"):
        from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
    vocabulary: list[tuple[str, float]] = []
    unknown, lowest, chars_map = 0, 0.0, b""
    try:
        for number, value in _fields(path.read_bytes()):
            if number == _PIECE:
                piece = dict(_fields(value))
                text = piece[_TEXT].decode()
                score = struct.unpack("<f", piece[_SCORE])[0] if _SCORE in piece else 0.0
                kind = piece.get(_KIND, 1)
                if kind == _UNKNOWN:
                    unknown = len(vocabulary)
                # Control pieces are never found in a text.
                vocabulary.append((text if kind in _PLAIN else f"\0{text}", score))
                lowest = min(lowest, score)
            elif number == _NORMALIZER:
                chars_map = dict(_fields(value)).get(_CHARS_MAP, b"")
    except (AttributeError, IndexError, KeyError, TypeError, UnicodeDecodeError, struct.error) as error:
        raise ResourceError(f"{path} is no SentencePiece model", "get the resource again") from error
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=unknown, byte_fallback=False))
    steps: list[Any] = [normalizers.Precompiled(chars_map)] if chars_map else []
    steps += [normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip()]
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=False)
    return tokenizer


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Number and value of each field of a protocol-buffer message."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        size = {1: 8, 5: 4}.get(wire, 0)
        if wire == 2:
            size, at = _varint(data, at)
        if not size and wire != 2:
            raise KeyError(f"wire type {wire}")
        yield number, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
