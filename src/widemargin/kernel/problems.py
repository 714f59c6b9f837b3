"""Many classes as binary problems, and binary scores as scores of classes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from sklearn.utils.multiclass import _ovr_decision_function

MULTI_CLASS = ("ovr", "ovo")


@dataclass(frozen=True)
class Binary:
    """One binary problem: its rows among all, their signs and upper bounds."""

    rows: np.ndarray
    y: np.ndarray
    upper: np.ndarray


def binary_problems(label: np.ndarray, n_classes: int, upper, multi_class: str) -> list[Binary]:
    """One problem for two classes; else one per class, or one per pair (the later is positive)."""
    every = np.arange(len(label))
    if n_classes > 2 and multi_class == "ovo":
        pairs = []
        for i, j in combinations(range(n_classes), 2):
            rows = np.flatnonzero((label == i) | (label == j))
            pairs.append(Binary(rows, np.where(label[rows] == j, 1.0, -1.0), upper[rows]))
        return pairs
    positive = [1] if n_classes == 2 else range(n_classes)
    return [Binary(every, np.where(label == c, 1.0, -1.0), upper) for c in positive]


def class_scores(scores: np.ndarray, n_classes: int, multi_class: str) -> np.ndarray:
    """(n,) for two classes, else (n, n_classes): pairs vote, ties go to the larger sum."""
    if n_classes == 2:
        return scores[:, 0]
    if multi_class == "ovo":
        return _ovr_decision_function(scores > 0, scores, n_classes)
    return scores
