"""Parameters in messages about columns of tables, spelled where they are raised."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from widemargin.errors import LEARNING, Parameter, listed, quoted

__all__ = ["listed", "quoted", "speaking", "words"]


class Words:
    """The names of parameters in Python.

    >>> words().option("label"), words().option("label", False)
    ('label=', 'label=False')
    """

    learning: str = LEARNING

    def option(self, name: str, value: Any = ...) -> str:
        return str(Parameter(name, value))


_words: ContextVar[Words] = ContextVar("words")


def words() -> Words:
    """The names of the interface in use."""
    return _words.get(Words())


@contextmanager
def speaking(own: Words) -> Iterator[None]:
    """Use these names until the end of the block."""
    token = _words.set(own)
    try:
        yield
    finally:
        _words.reset(token)
