"""Warnings that point at the line of the user's own program."""

from __future__ import annotations

import sys
import warnings

# Packages whose frames are passed over: this one, and those that call it on a user's behalf
# (scikit-learn's callback wrapper and meta-estimators, threads, the command line's parser).
_BETWEEN = {"widemargin", "sklearn", "joblib", "threading", "concurrent", "typer", "click"}


class UnscaledWarning(UserWarning):
    """One feature is so wide that a kernel of distances is blind to the others."""


class RareClassWarning(UserWarning):
    """A class has fewer rows than a cross-validation has folds."""


class IdentifierWarning(UserWarning):
    """A column is different in every row, and may only number them."""


class UnseenWarning(UserWarning):
    """New data has categories, or gaps, that the training data did not have."""


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first line outside this package, however deep in it the trouble was found.

    In a thread of ours no such line is known; there it is the line that called this function.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        if frame.f_back is None:
            level = 2
            break
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
