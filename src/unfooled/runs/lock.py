"""At most one writer per run file."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from pathlib import Path
from typing import ClassVar

from unfooled.errors import LockedError, RunFileError


class Lock:
    """Held by the writer of one run file; the system lets go of it when its owner dies, however it dies."""

    _held: ClassVar[set[Path]] = set()  # locks of one process do not exclude each other

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self.descriptor = descriptor

    @classmethod
    def take(cls, file: Path) -> Lock:
        path = file.resolve().with_suffix(".lock")
        if path in cls._held:
            raise _locked(file, os.getpid())
        while True:
            try:
                # A link that somebody planted must not make us write into what it points to.
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644)
            except OSError as error:
                raise RunFileError(
                    f"{path}: cannot be written ({error.strerror})", "choose another --out"
                ) from error
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.close(descriptor)
                raise RunFileError(f"{path}: is there, but is no file", "remove it, or choose another --out")
            try:
                _system_lock(descriptor)
                same = os.path.samestat(os.fstat(descriptor), os.stat(path))
            except FileNotFoundError:
                same = False
            except OSError as error:
                owner = os.read(descriptor, 32).decode(errors="replace").strip()
                os.close(descriptor)
                if error.errno not in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):
                    raise RunFileError(
                        f"{path}: cannot be locked ({error.strerror})", "choose another --out"
                    ) from error
                raise _locked(file, owner) from error
            if same:
                break
            os.close(descriptor)  # its owner ended and removed it in this very moment: once more
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
        cls._held.add(path)
        return cls(path, descriptor)

    def release(self) -> None:
        self._held.discard(self.path)
        with contextlib.suppress(OSError):
            self.path.unlink()
        os.close(self.descriptor)


def _locked(file: Path, owner: int | str) -> LockedError:
    return LockedError(
        f"{file}: another run is writing it (process {owner or 'unknown'})",
        "wait for that run to end, or choose another --out",
    )


if sys.platform == "win32":
    import msvcrt

    def _system_lock(descriptor: int) -> None:
        os.lseek(descriptor, 1 << 20, os.SEEK_SET)  # beyond the owner's number, which others may read
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)

else:
    import fcntl

    def _system_lock(descriptor: int) -> None:
        # Record locks, unlike flock, are not inherited by forked workers that outlive a killed driver.
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
