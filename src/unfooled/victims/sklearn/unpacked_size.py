"""How large a skops file is unpacked, found out without unpacking it into memory.

A file of three megabytes can hold three gigabytes of blanks, and what an archive says about its own sizes is
its author's word. So what is packed is unpacked here once, in small steps, and only counted.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO

from unfooled.errors import VictimError

_ALWAYS = 64 << 20  # bytes that any file may have unpacked
_MOST_TIMES = 20  # its size on disk; schemas of large vocabularies reach 10
_STEP = 1 << 20
_LOCAL_HEADER = struct.Struct("<26xHH")  # in front of each part: the lengths of its name and of what follows


def require_unpackable(path: Path) -> None:
    """Raise where a file has far more in it than on disk, or is packed so that this cannot be counted.

    A file that is no archive at all is left to whoever reads it.
    """
    most = _ALWAYS + _MOST_TIMES * path.stat().st_size
    try:
        with zipfile.ZipFile(path) as archive, path.open("rb") as file:
            room = most
            for part in archive.infolist():
                if part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise _refused(path, "is packed in an unusual way")
                room -= max(part.file_size, _unpacked(file, part, room))
                if room < 0:
                    raise _refused(path, f"has over {most >> 20:,} MB unpacked, far too many for its size")
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile, struct.error, zlib.error):
        return


def _unpacked(file: BinaryIO, part: zipfile.ZipInfo, room: int) -> int:
    """Bytes that a part really has; counted no further than there is room."""
    if part.compress_type == zipfile.ZIP_STORED:
        return part.compress_size
    file.seek(part.header_offset)
    file.seek(sum(_LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))), 1)
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    found, left, packed = 0, part.compress_size, b""
    while found <= room and not unpacker.eof:
        if not packed:
            packed = file.read(min(left, _STEP))
            left -= len(packed)
            if not packed:
                break
        found += len(unpacker.decompress(packed, _STEP))
        packed = unpacker.unconsumed_tail
    return found


def _refused(path: Path, problem: str) -> VictimError:
    return VictimError(f"{path} {problem}", "save it again with skops.io.dump, without compression")
