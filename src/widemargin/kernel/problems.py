"""The binary problems of many classes, each on its own rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from widemargin.multiclass import Coding

MULTI_CLASS = ("ovr", "ovo")


@dataclass(frozen=True)
class Binary:
    """One binary problem: its rows among all, their signs and upper bounds."""

    rows: np.ndarray
    y: np.ndarray
    upper: np.ndarray


def binary_problems(label: np.ndarray, coding: Coding, upper: np.ndarray) -> list[Binary]:
    """One problem per output, on the rows whose classes take part in it."""
    every = np.arange(len(label))
    problems = []
    for target in coding.targets.T:
        rows = every if np.all(target) else np.flatnonzero(target[label])
        problems.append(Binary(rows, target[label[rows]], upper[rows]))
    return problems
