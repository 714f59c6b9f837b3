"""What a fitted model keeps of the solutions: coefficients and intercepts of every output."""

from __future__ import annotations

import numpy as np

from widemargin.kernel.coefficients import Coefficients
from widemargin.kernel.problem import Solution
from widemargin.kernel.problems import Variables
from widemargin.multiclass import Targets, every_pair


def coefficients(
    targets: Targets, problems: list[Variables], alphas: list[np.ndarray], support: np.ndarray
) -> Coefficients:
    """Of the support vectors, which are sorted by class where pairs of classes vote."""
    coding, label, votes = targets.coding, targets.label, targets.coding.votes
    place = np.zeros(len(label), dtype=np.int64)
    place[support] = np.arange(len(support))
    values = np.zeros((len(support), coding.n_classes - 1 if votes else coding.n_outputs))
    first, second = every_pair(coding.n_classes if votes else 0)
    for variables, alpha in zip(problems, alphas, strict=True):
        used = alpha.nonzero()[0]
        row, column = variables.row[used], variables.output_of[used]
        if votes:  # a column for each of the other classes
            other = first[column] + second[column] - label[row]
            column = other - (other > label[row])
        values[place[row], column] = alpha[used] * variables.sign[used]
    return Coefficients(values, label[support].astype(np.int64) if votes else None)


def intercepts(problems: list[Variables], solutions: list[Solution], n_outputs: int) -> np.ndarray:
    """Of every output; zeros for a level, which is solved without."""
    found = np.zeros(n_outputs)
    for variables, solution in zip(problems, solutions, strict=False):
        found[variables.output] = solution.offset
    return found
