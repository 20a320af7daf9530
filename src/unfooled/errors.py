"""Every exception of the package.

    UnfooledError
    ├── UserError                 the user can mend it: the message says how
    │   ├── DataError             a file, a row, a column or a label is not usable
    │   ├── VictimError           a classifier cannot be loaded or answers nonsense
    │   ├── CapabilityError       an attack needs what the victim cannot give
    │   ├── ResourceError         vectors, lexicon or model are not here
    │   ├── MissingExtraError     an optional dependency is not installed
    │   ├── CapReachedError       a run stopped at its bound on money or hours
    │   ├── UnknownNameError      nothing is registered under that name
    │   └── RunFileError          a run file cannot be read, written or continued
    │       └── LockedError       another process is writing it
    ├── OracleError               one question could not be answered (one example's error)
    └── BudgetExhaustedError      ends a search from within; never leaves the engine

Anything else that escapes is a bug and stays loud.
"""

from __future__ import annotations


class UnfooledError(Exception):
    """Root of the tree: what this package raises on purpose.

    Example:

        >>> try:
        ...     unfooled.load_recipe("texfooler")
        ... except unfooled.UnfooledError as error:
        ...     print(type(error).__name__)
        UnknownNameError
    """


class UserError(UnfooledError):
    """A cause and its remedy, both shown to the user; no traceback.

    Example:

        >>> try:
        ...     unfooled.load_victim("model.onnx")
        ... except unfooled.UserError as error:
        ...     print(error.cause)
        'model.onnx' is not a model
    """

    def __init__(self, cause: str, remedy: str = "") -> None:
        super().__init__(f"{cause}\n  → {remedy}" if remedy else cause)
        self.cause = cause
        self.remedy = remedy

    def __reduce__(self) -> tuple[type[UserError], tuple[str, str]]:
        # Worker processes send errors home; the default would call __init__ with one argument.
        return (type(self), (self.cause, self.remedy))


class DataError(UserError):
    pass


class VictimError(UserError):
    pass


class CapabilityError(UserError):
    pass


class ResourceError(UserError):
    pass


class CapReachedError(UserError):
    pass


class UnknownNameError(UserError):
    pass


class RunFileError(UserError):
    pass


class LockedError(RunFileError):
    pass


class MissingExtraError(UserError):
    """Raised where an optional dependency is first needed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional dependency", f"pip install 'unfooled[{extra}]'")
        self.what = what
        self.extra = extra

    def __reduce__(self) -> tuple[type[UserError], tuple[str, str]]:
        return (type(self), (self.what, self.extra))


class OracleError(UnfooledError):
    """An oracle failed on one item. The example that asked ends with the outcome `error`."""


class BudgetExhaustedError(UnfooledError):
    """The attempt has no queries left."""
