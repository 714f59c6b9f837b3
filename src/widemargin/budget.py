"""`max_bytes`: limit the memory for the contents of a file."""

from __future__ import annotations

from widemargin.errors import Message, Parameter, TooLargeError
from widemargin.resources import free_memory

_SHARE = 0.8  # default share of the free memory


class Budget:
    """Memory limit for reading a file; as a context, MemoryError becomes the same error.

    Parameters
    ----------
    max_bytes : int or None
        The caller's limit; None is 80 % of the free memory.
    name : str
        Name of the file for messages.
    at_most : float
        The reader's own limit if the caller sets none.

    Examples
    --------
    >>> budget = Budget(1000, "rows.gz")
    >>> budget.check(900, "its rows take")
    >>> budget.check(4.2e9, "its rows take")
    Traceback (most recent call last):
    ...
    widemargin.errors.TooLargeError: rows.gz: its rows take 4.2 GB or more, but max_bytes=1000 is \
the limit. If you trust the file and have the memory, set a larger one.
    """

    def __init__(self, max_bytes: int | None, name: str, at_most: float = float("inf")):
        if max_bytes is not None:
            from widemargin.validation import check_number  # imports scikit-learn, which is slow

            check_number("max_bytes", max_bytes, low=1, integer=True)
            self.max_bytes = int(max_bytes)
        else:
            self.max_bytes = int(min(_SHARE * free_memory(), at_most))
        self.name, self.held = name, 0

    @classmethod
    def of(cls, max_bytes: int | Budget | None, name: str) -> Budget:
        """Return the caller's budget if ``max_bytes`` is one, else a new one."""
        return max_bytes if isinstance(max_bytes, Budget) else cls(max_bytes, name)

    def check(self, n_bytes: float, what: str) -> None:
        """Refuse ``n_bytes`` in addition to what is held; ``what`` is a subject and its verb."""
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
        """Check ``n_bytes`` and count them as held until the file is read."""
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
