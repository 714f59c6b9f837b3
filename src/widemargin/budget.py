"""`max_bytes`: how much memory the contents of a file may take, and the one error that says so."""

from __future__ import annotations

from widemargin.errors import Message, Parameter
from widemargin.resources import free_memory

_SHARE = 0.8  # of the memory that is free, where nobody sets a limit


class TooLargeError(ValueError):
    """The contents of a file take more memory than ``max_bytes`` allows."""


class Budget:
    """What reading one file may hold; as a context, no room at all is the same error.

    Parameters
    ----------
    max_bytes : int or None
        What the caller has set; None is 80 % of the memory that is free.
    name : str
        Of the file, for the message.
    at_most : float
        What the reader allows itself where the caller has set nothing.

    Examples
    --------
    >>> budget = Budget(1000, "rows.gz")
    >>> budget.check(900, "its rows take")
    >>> budget.check(4.2e9, "its rows take")
    Traceback (most recent call last):
    ...
    widemargin.budget.TooLargeError: rows.gz: its rows take 4.2 GB or more, but max_bytes=1000 is \
the limit. If you trust the file and have the memory, set a larger one.
    """

    def __init__(self, max_bytes: int | None, name: str, at_most: float = float("inf")):
        if max_bytes is not None:
            from widemargin.validation import check_number  # scikit-learn takes its time

            check_number("max_bytes", max_bytes, low=1, integer=True)
            self.max_bytes = int(max_bytes)
        else:
            self.max_bytes = int(min(_SHARE * free_memory(), at_most))
        self.name, self.held = name, 0

    @classmethod
    def of(cls, max_bytes: int | Budget | None, name: str) -> Budget:
        """A reader that another one calls goes on with what that one has."""
        return max_bytes if isinstance(max_bytes, Budget) else cls(max_bytes, name)

    def check(self, n_bytes: float, what: str) -> None:
        """Refuse so much beside what is held already; ``what`` is a subject and its verb."""
        total, limit = self.held + n_bytes, self.max_bytes
        if total > limit:
            message = Message(
                "{name}: {what} {size} or more, but {limit} is the limit. If you trust the file "
                "and have the memory, set a larger one.",
                name=self.name,
                what=what,
                size=_size(total),
                limit=Parameter("max_bytes", limit),
            )
            raise TooLargeError(message)

    def hold(self, n_bytes: int, what: str) -> None:
        """The same for what stays in memory until the file is read."""
        self.check(n_bytes, what)
        self.held += n_bytes

    def __enter__(self) -> Budget:
        return self

    def __exit__(self, kind, error, traceback) -> None:
        if isinstance(error, MemoryError):
            message = Message(
                "{name}: reading it takes more memory than there is, which may be less than "
                "{limit} ({error}).",
                name=self.name,
                limit=Parameter("max_bytes", self.max_bytes),
                error=" ".join(str(error).split()) or "out of memory",
            )
            raise TooLargeError(message) from None


def _size(n_bytes: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if n_bytes < 1000 or unit == "GB":
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    raise AssertionError("unreachable")
