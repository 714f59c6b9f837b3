"""Labels and sample weights that both machines refuse, in the same words."""

import numpy as np
import pytest

from widemargin import AdditiveSVC, KernelSVC

X = np.array([[0.1, 0.2, 0.0], [0.3, 0.0, 0.4], [0.5, 0.6, 0.0], [0.7, 0.0, 0.8]])
Y = np.array([0, 1, 0, 1])

each_machine = pytest.mark.parametrize("machine", [AdditiveSVC, KernelSVC])

LABELS = {
    "one class": (np.zeros(4, dtype=int), r"^{} needs .*at least 2 classes.*1 class: \[0\]\.$"),
    "two columns": (np.zeros((4, 2)), "y should be a 1d array"),
    "too few": (Y[:3], r"inconsistent numbers of samples: \[4, 3\]"),
    "continuous": (np.array([0.1, 0.2, 0.3, 0.4]), "Unknown label type: continuous"),
    "NaN": (np.array([0.0, 1.0, np.nan, 1.0]), "y contains NaN"),
    "text and numbers": (
        np.array(["a", 1, "a", 1], dtype=object),
        r"with others \(int\)",
    ),
    "text and None": (
        np.array(["a", None, "a", "b"], dtype=object),
        "no label in 1 of 4 rows, the first of them row 1",
    ),
    "None": (np.array([0, 1, None, None], dtype=object), "no label in 2 of 4 rows, .* row 2"),
    "none": (None, "requires y to be passed"),
}


@each_machine
@pytest.mark.parametrize(("y", "message"), LABELS.values(), ids=LABELS)
def test_bad_labels_are_refused(machine, y, message):
    with pytest.raises(ValueError, match=message.format(machine.__name__)):
        machine().fit(X, y)


WEIGHTS = {
    "one class left": (Y, "at least 2 classes.*weight 0 do not count"),
    "none left": (0 * Y, "at least one non-zero"),
    "negative": (np.array([1, 1, -1, 1]), "Negative values.*sample_weight"),
    "NaN": (np.array([1, 1, np.nan, 1]), "sample_weight contains NaN"),
    "too few": (np.ones(3), r"sample_weight\.shape == \(3,\), expected \(4,\)"),
}


@each_machine
@pytest.mark.parametrize(("weight", "message"), WEIGHTS.values(), ids=WEIGHTS)
def test_bad_sample_weights_are_refused(machine, weight, message):
    with pytest.raises(ValueError, match=message):
        machine().fit(X, Y, sample_weight=weight)


@each_machine
def test_one_number_is_no_path(machine):
    with pytest.raises(TypeError, match=r"Cs must be a sequence of numbers, such as \[2\], got 2"):
        machine().fit_path(X, Y, 2)
