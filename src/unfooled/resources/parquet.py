"""Just enough of the Parquet format to read a column of strings without a further library.

Flat, without nulls, Snappy or no compression, plain or dictionary pages of the first kind: what data-frame
libraries write for a list of words. Anything else is refused in words.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unfooled.errors import ResourceError

_MAGIC = b"PAR1"
_PLAIN, _OLD_DICTIONARY, _DICTIONARY = 0, 2, 8
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_NO_CODEC, _SNAPPY = 0, 1
_OPTIONAL = 1
_MOST_WORDS = 1 << 24
_STRINGS = 6  # the physical type BYTE_ARRAY


def read_strings(path: Path) -> list[str]:
    """The only column of a Parquet file, which must be one of strings."""
    content = path.read_bytes()
    try:
        return _column(content)
    except (IndexError, KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ResourceError(
            f"{path} cannot be read as a Parquet file with one column of strings ({error})",
            "get the file again; it may be cut short or written with options that are not understood",
        ) from error


def _column(content: bytes) -> list[str]:
    if len(content) < 12 or content[:4] != _MAGIC or content[-4:] != _MAGIC:
        raise ValueError("it does not begin and end like one")
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    if footer < 4:
        raise ValueError("its table of contents is damaged")
    table, _ = _struct(content, footer)
    columns = table[2][1:]
    if len(columns) != 1 or columns[0].get(1) != _STRINGS:
        raise ValueError("it has other columns")
    optional = columns[0].get(3) == _OPTIONAL
    words: list[str] = []
    for group in table[4]:
        words += _chunk(content, group[1][0][3], optional=optional)
    if len(words) != table[3]:
        raise ValueError(f"{table[3]} rows were promised, {len(words)} found")
    return words


def _chunk(content: bytes, column: dict[int, Any], *, optional: bool) -> list[str]:
    codec, promised = column[4], column[5]
    if promised > _MOST_WORDS:
        raise ValueError(f"{promised:,} words are promised")
    at = min(offset for offset in (column.get(11), column[9]) if offset)
    if not 0 < at < len(content):
        raise ValueError("its table of contents is damaged")
    dictionary: list[str] = []
    words: list[str] = []
    while len(words) < promised:
        header, start = _struct(content, at)
        if not 0 <= header[3] <= len(content) - start:
            raise ValueError("a page ends too early")
        at = start + header[3]
        body = _unpacked(content[start:at], codec, header[2])
        if header[1] == _DICTIONARY_PAGE:
            dictionary = list(_plain(body, 0, header[7][1]))
        elif header[1] == _DATA_PAGE:
            count, encoding = header[5][1], header[5][2]
            if count > promised:
                raise ValueError("a page promises more words than the file")
            begin = 0
            if optional:
                begin = 4 + int.from_bytes(body[:4], "little")
                if sum(_small_numbers(body[4:begin], 1, count)) != count:
                    raise ValueError("some rows are empty")
            if encoding == _PLAIN:
                words += _plain(body, begin, count)
            elif encoding in (_OLD_DICTIONARY, _DICTIONARY):
                words += [dictionary[i] for i in _small_numbers(body[begin + 1 :], body[begin], count)]
            else:
                raise ValueError(f"encoding {encoding} is not understood")
        else:
            raise ValueError(f"pages of type {header[1]} are not understood")
    return words


def _plain(body: bytes, at: int, count: int) -> Iterator[str]:
    for _ in range(count):
        start = at + 4
        at = start + int.from_bytes(body[at:start], "little")
        if at > len(body):
            raise ValueError("a page ends too early")
        yield body[start:at].decode("utf-8")


def _small_numbers(body: bytes, width: int, count: int) -> list[int]:
    """Numbers of `width` bits, in runs of one value or packed by eights."""
    numbers: list[int] = []
    mask = (1 << width) - 1
    whole = (width + 7) // 8
    at = 0
    while len(numbers) < count:
        head, at = _varint(body, at)
        if head & 1:
            # No more than is asked for: a damaged page may promise any number.
            groups = min(head >> 1, (count - len(numbers) + 7) // 8)
            packed = int.from_bytes(body[at : at + groups * width], "little")
            numbers += _packed(packed, groups * 8, width, mask)
            at += (head >> 1) * width
        else:
            value = int.from_bytes(body[at : at + whole], "little")
            numbers += [value] * min(head >> 1, count - len(numbers))
            at += whole
    return numbers[:count]


def _packed(bits: int, count: int, width: int, mask: int) -> Iterator[int]:
    for _ in range(count):
        yield bits & mask
        bits >>= width


def _unpacked(data: bytes, codec: int, size: int) -> bytes:
    if codec == _NO_CODEC:
        return data
    if codec != _SNAPPY:
        raise ValueError(f"compression {codec} is not understood")
    body = unsnap(data)
    if len(body) != size:
        raise ValueError("a page is damaged")
    return body


def unsnap(data: bytes) -> bytes:
    """Undo Snappy: stretches of plain bytes, and references to bytes that were already written."""
    promised, at = _varint(data, 0)
    out = bytearray()
    end = len(data)
    while at < end:
        tag = data[at]
        at += 1
        kind = tag & 3
        if kind == 0:
            length = (tag >> 2) + 1
            if length > 60:
                extra = length - 60
                length = int.from_bytes(data[at : at + extra], "little") + 1
                at += extra
            out += data[at : at + length]
            at += length
            continue
        if kind == 1:
            length, offset = ((tag >> 2) & 7) + 4, (tag >> 5) << 8 | data[at]
            at += 1
        else:
            size = 2 if kind == 2 else 4
            length, offset = (tag >> 2) + 1, int.from_bytes(data[at : at + size], "little")
            at += size
        if not 0 < offset <= len(out):
            raise ValueError("a page is damaged")
        start = len(out) - offset
        piece = out[start : start + length]
        # A reference may run into what it is writing: then it repeats itself.
        out += piece if offset >= length else (piece * (length // offset + 1))[:length]
    if len(out) != promised:
        raise ValueError("a page is damaged")
    return bytes(out)


# -- the headers: Thrift's compact encoding ------------------------------------------------------------


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number is damaged")


def _struct(data: bytes, at: int) -> tuple[dict[int, Any], int]:
    """A record as {number of the field: value}, and where it ends."""
    fields: dict[int, Any] = {}
    number = 0
    while data[at]:
        kind, step = data[at] & 15, data[at] >> 4
        at += 1
        if step:
            number += step
        else:
            raw, at = _varint(data, at)
            number = (raw >> 1) ^ -(raw & 1)
        fields[number], at = (kind == 1, at) if kind in (1, 2) else _value(data, at, kind)
    return fields, at + 1


def _value(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind == 3:
        return data[at], at + 1
    if kind in (4, 5, 6):
        raw, at = _varint(data, at)
        return (raw >> 1) ^ -(raw & 1), at
    if kind == 7:
        return None, at + 8
    if kind == 8:
        size, at = _varint(data, at)
        if size > len(data) - at:
            raise ValueError("its table of contents is damaged")
        return data[at : at + size], at + size
    if kind in (9, 10):
        count, inner = data[at] >> 4, data[at] & 15
        at += 1
        if count == 15:
            count, at = _varint(data, at)
        if count > len(data) - at:
            raise ValueError("its table of contents is damaged")
        values = []
        for _ in range(count):
            value, at = (data[at] == 1, at + 1) if inner in (1, 2) else _value(data, at, inner)
            values.append(value)
        return values, at
    if kind == 12:
        return _struct(data, at)
    raise ValueError("its table of contents is damaged")
