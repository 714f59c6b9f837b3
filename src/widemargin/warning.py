"""Warnings that point at the line of the user's program."""

from __future__ import annotations

import sys
import warnings

# Packages whose frames are skipped: this one, and those that call it on a user's behalf
# (scikit-learn's callback wrapper and meta-estimators, threads, the command line's parser).
_BETWEEN = {"widemargin", "sklearn", "joblib", "threading", "concurrent", "typer", "click"}


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
