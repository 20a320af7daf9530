"""Libraries that come with an extra: where one is missing, its extra is named; where one is broken, how."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from unfooled.errors import MissingExtraError, UserError


@contextmanager
def libraries_of(extra: str, *libraries: str, needed_for: str) -> Iterator[None]:
    """Around imports of `libraries`, which `pip install 'unfooled[extra]'` brings.

    Only the absence of one of them is answered so. A library that is here and cannot be imported, because it
    lacks another, is too old or does not fit the machine, would not be mended by that: it is told as it is.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in libraries:
            raise MissingExtraError(needed_for, extra) from error
        raise _broken(needed_for, libraries, error) from error
    except (ImportError, OSError) as error:  # OSError: a shared library of it cannot be loaded
        raise _broken(needed_for, libraries, error) from error


def _broken(needed_for: str, libraries: tuple[str, ...], error: Exception) -> UserError:
    return UserError(
        f"{needed_for} needs {', '.join(libraries)}, installed but not to be imported: "
        f"{type(error).__name__}: {error}",
        "mend that installation; `python -c 'import NAME'` shows the same error in full",
    )
