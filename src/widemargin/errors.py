"""Errors and warnings: their types, and messages that spell parameters for Python or the terminal.

Catch and filter by the types here: `ParameterError`, `TooLargeError`, and the warnings.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Parameter:
    """A parameter in a message; ``python`` replaces ``name=value`` in Python.

    >>> str(Parameter("C", -1)), str(Parameter("tol"))
    ('C=-1', 'tol=')
    """

    name: str
    value: Any = ...
    python: str | None = None

    def __str__(self) -> str:
        if self.python is not None:
            return self.python
        return f"{self.name}=" if self.value is ... else f"{self.name}={self.value!r}"


@dataclass(frozen=True)
class Feature:
    """A column of X without a name in a message."""

    number: int

    def __str__(self) -> str:
        return str(self.number)


class Message(str):
    """Text with fields: parameters, features, errors, other messages and plain values.

    Without fields the template is the text.

    >>> message = Message("{C} must be {what}.", C=Parameter("C", -1), what="finite")
    >>> message
    'C=-1 must be finite.'
    >>> message.respelled(lambda part: f"--{part.name} {part.value}")
    '--C -1 must be finite.'
    """

    _template: str
    _fields: dict[str, Any]

    def __new__(cls, template: str, fields: Mapping[str, Any] | None = None, /, **more) -> Message:
        named = {**(fields or {}), **more}
        for name, field in named.items():
            if isinstance(field, Exception):
                named[name] = message_of(field)
        self = super().__new__(cls, template.format(**named) if named else template)
        self._template, self._fields = template, named
        return self

    def __getnewargs__(self):
        return self._template, self._fields

    def respelled(self, spell: Callable[[Any], str]) -> str:
        """Return the text with parameters and features spelled by ``spell``."""
        fields = dict(self._fields)
        for name, field in fields.items():
            if isinstance(field, Message):
                fields[name] = field.respelled(spell)
            elif isinstance(field, (Parameter, Feature)):
                fields[name] = spell(field)
        return self._template.format(**fields) if fields else self._template


class ParameterError(ValueError):
    """A parameter has an invalid value; ``fields`` fill the reason's template.

    >>> print(ParameterError("C", -1, "must be finite."), ParameterError("folds", 9, ": too many."))
    C=-1 must be finite. folds=9: too many.
    """

    def __init__(self, name: str, value: object, reason: str, **fields: object):
        said = reason if isinstance(reason, Message) else Message(reason, fields)
        parameter, between = Parameter(name, value), "" if said.startswith(":") else " "
        template = "{parameter}{between}{said}"
        super().__init__(Message(template, parameter=parameter, between=between, said=said))
        self.name, self.value, self.reason = name, value, said

    def __reduce__(self):
        return type(self), (self.name, self.value, self.reason)


def message_of(error: BaseException) -> str:
    """Return the text of an error or a warning; a `Message` if it has one."""
    only = error.args[0] if len(error.args) == 1 else None
    return only if isinstance(only, Message) else str(error)


CONVERGING = Message(
    "Increase {most}, decrease {C}, or accept a larger {tol}.",
    most=Parameter("max_iter", python="max_iter"),
    C=Parameter("C", python="C"),
    tol=Parameter("tol", python="tol"),
)
AT_LIMIT = Message(
    "Rounding may hide that much: no smaller gap can be certified for such values of {C} and of "
    "the kernel. Scale the features, decrease {C}, or accept a larger {tol}.",
    C=Parameter("C", python="C"),
    tol=Parameter("tol", python="tol"),
)
STALLED = Message(
    "It stopped making progress: kernel values are too large or span too many orders of "
    "magnitude, as those of features far from zero do. Centre and scale the features (a kernel "
    "matrix: divide it by its mean diagonal), or decrease {C}, gamma or degree.",
    C=Parameter("C", python="C"),
)
LEARNING = Message(
    ", or learn from them with {missing}",
    missing=Parameter("missing", "learn", python='AdditiveSVC(missing="learn")'),
)


def not_finite(value: float, row: int, column: str | Feature) -> Message:
    """Return the message that says where the input has NaN or infinity, and what to do."""
    return Message(
        "Input X contains {kind} at row {row}, column {column}. Remove or impute such values "
        "first, for example with widemargin.TableEncoder{learning}.",
        kind="NaN" if value != value else "infinity",
        row=row,
        column=column,
        learning=LEARNING if value != value else "",
    )


def scaling_advice(*, sparse: bool) -> Message:
    """Return advice on scaling features, for sparse ones with a scaler that keeps zeros."""
    method, scaler = ("maxabs", "MaxAbsScaler") if sparse else ("standard", "StandardScaler")
    scale = Parameter("scale", method, python=f"sklearn.preprocessing.{scaler}")
    return Message("for example with {scale}", scale=scale)


def listed(names: Sequence[str], most: int = 20, between: str = ", ") -> str:
    """List the first names, and count the rest.

    >>> listed(["a", "b"]), listed(["a", "b", "c"], 1)
    ('a, b', 'a and 2 more')
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return between.join(names[:most]) + more


def quoted(names: Sequence, most: int = 20) -> str:
    """List names like `listed`, quoted as in Python.

    >>> quoted(["a", 7])
    "'a', 7"
    """
    return listed([repr(name) for name in names], most)


# Packages whose frames are skipped: this one, and those that call it on a user's behalf
# (scikit-learn's callback wrapper and meta-estimators, threads, the command line's parser).
_BETWEEN = {"widemargin", "sklearn", "joblib", "threading", "concurrent", "typer", "click"}


class TooLargeError(ValueError):
    """The contents of a file take more memory than ``max_bytes`` allows."""


class UnscaledWarning(UserWarning):
    """A feature's range is so large that distances ignore the other features."""


class RareClassWarning(UserWarning):
    """A class has fewer rows than a cross-validation has folds."""


class LostClassWarning(UserWarning):
    """A class is never predicted for its training rows."""


class NegativeWarning(UserWarning):
    """A kernel for histograms got negative values."""


class IdentifierWarning(UserWarning):
    """A column differs in every row and may be an identifier."""


class UnseenWarning(UserWarning):
    """New data has categories or missing values that the training data did not have."""


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first line outside this package.

    In a thread of ours, where no such line is known, warn at the caller.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        if frame.f_back is None:
            level = 2
            break
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
