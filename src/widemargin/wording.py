"""Messages in the words of the interface in use: of Python here, of options on the command line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

UNSAID = object()


def listed(names: Sequence[str], most: int = 20, between: str = ", ") -> str:
    """The first of them, and how many there are beside.

    >>> listed(["a", "b"]), listed(["a", "b", "c"], 1)
    ('a, b', 'a and 2 more')
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return between.join(names[:most]) + more


def quoted(names: Sequence, most: int = 20) -> str:
    """The same, as Python writes them.

    >>> quoted(["a", 7])
    "'a', 7"
    """
    return listed([repr(name) for name in names], most)


class Words:
    """What a message calls parameters, functions, features and ways out; these are Python's.

    Examples
    --------
    >>> words().option("label"), words().option("label", False)
    ('label=', 'label=False')
    """

    imputing = "for example with widemargin.TableEncoder"
    uncalibrated = "model.calibrated_classifiers_[0].estimator"

    @property
    def additive(self) -> str:
        """A machine with an additive kernel."""
        return "AdditiveSVC"

    @property
    def learning(self) -> str:
        return ', or learn from them with AdditiveSVC(missing="learn")'

    @property
    def converging(self) -> str:
        return "Increase max_iter, decrease C, or accept a larger tol."

    def option(self, name: str, value: Any = UNSAID) -> str:
        """A parameter by its name, with a value or without one."""
        return f"{name}=" if value is UNSAID else f"{name}={value!r}"

    def scaling(self, sparse: bool) -> str:
        """How to scale features; sparse ones without filling in their zeros."""
        scaler = "MaxAbsScaler" if sparse else "StandardScaler"
        return f"for example with sklearn.preprocessing.{scaler}"

    def function(self, name: str) -> str:
        return name

    def feature(self, number: int) -> str:
        """A column of X that has no name."""
        return str(number)


_python = Words()
_words: ContextVar[Words | None] = ContextVar("words", default=None)


def words() -> Words:
    """Those in use."""
    return _words.get() or _python


@contextmanager
def speaking(own: Words) -> Iterator[None]:
    """Messages have these words until the end of the block."""
    token = _words.set(own)
    try:
        yield
    finally:
        _words.reset(token)
