"""The body of an HTTP answer, read with a limit: as it comes over the wire, and unpacked."""

from __future__ import annotations

import zlib

MOST_BYTES = 4 << 20  # of an answer, packed or unpacked; a thousand named classes for 32 texts fit twice
UNPACKED = "gzip, deflate"  # what may be sent as accept-encoding
_GZIP, _DEFLATE, _RAW_DEFLATE = 31, 15, -15  # how zlib names the formats


class BodyError(Exception):
    """What is wrong with a body, worded to follow "answered"."""


class Body:
    """Takes chunks as they come and refuses what is too much before it is in memory."""

    def __init__(self, encoding: str, most: int = MOST_BYTES) -> None:
        self._most = most
        self._read = 0
        self._content = bytearray()
        self._encoding = encoding.strip().lower()
        self._unpacker = self._unpacker_of(self._encoding)

    @property
    def content(self) -> bytes:
        """What has come so far."""
        return bytes(self._content)

    def add(self, chunk: bytes) -> None:
        self._read += len(chunk)
        if self._encoding not in ("", "identity") and self._unpacker is None:
            raise BodyError(f"a body packed as {self._encoding[:40]!r}, which was not asked for")
        if self._unpacker is None:
            self._content += chunk[: self._most + 1 - len(self._content)]
        elif not self._unpacker.eof:
            self._content += self._unpacked(chunk, self._most + 1 - len(self._content))
        if max(self._read, len(self._content)) > self._most:
            raise BodyError(f"more than {self._most >> 20} MB")

    def finish(self) -> bytes:
        if self._unpacker is not None and self._read and not self._unpacker.eof:
            raise BodyError(f"a body whose {self._encoding} packing is cut short")
        return self.content

    def _unpacked(self, chunk: bytes, room: int) -> bytes:
        assert self._unpacker is not None
        try:
            return self._unpacker.decompress(chunk, room)
        except zlib.error as error:
            if self._encoding == "deflate" and self._read == len(chunk):
                # Half of the world sends it without the header of two bytes.
                self._unpacker = zlib.decompressobj(_RAW_DEFLATE)
                self._encoding = "raw deflate"
                return self._unpacked(chunk, room)
            raise BodyError(f"a body whose {self._encoding} packing is broken: {error}") from None

    @staticmethod
    def _unpacker_of(encoding: str) -> zlib._Decompress | None:
        if encoding in ("gzip", "x-gzip"):
            return zlib.decompressobj(_GZIP)
        return zlib.decompressobj(_DEFLATE) if encoding == "deflate" else None
