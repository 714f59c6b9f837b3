"""Class labels for other programs: integers or text."""

from __future__ import annotations

import numpy as np


def plain_labels(classes: np.ndarray) -> np.ndarray:
    """Convert labels to int64 or str; integral floats and booleans become numbers.

    >>> plain_labels(np.array([-1.0, 1.0]))
    array([-1,  1])
    """
    if all(isinstance(label, str) for label in classes):
        return classes.astype(str)
    if classes.dtype.kind in "biuf":
        with np.errstate(invalid="ignore"):  # too large values become unequal
            whole = classes.astype(np.int64)
        if np.array_equal(whole, classes):
            return whole
    raise ValueError(
        f"The labels {classes.tolist()!r} are neither whole numbers (of 64 bits) nor text. Fit "
        "with labels that are, for example from sklearn.preprocessing.LabelEncoder."
    )
