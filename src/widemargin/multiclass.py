"""Map targets to outputs, and outputs back to scores of classes or to numbers.

A machine learns outputs, each a two-class problem.  A `Coding` gives every class its target in each
output, +1, -1, or 0 if the class does not take part (Allwein, Schapire and Singer 2000), and turns
decision values of outputs back into scores of classes.  Targets that are numbers are outputs
themselves (`Numbers`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

_FEW_CLASSES = 32  # up to this many, votes are a matrix product


@dataclass(frozen=True)
class Coding:
    """Maps ``n_classes`` classes to outputs.

    "ovr" has an output per class and "ovo" one per pair (the later class is positive), both a
    single one for two classes; "crammer_singer" always has one per class, trained together.

    Examples
    --------
    >>> Coding("ovr", 3).targets
    array([[ 1., -1., -1.],
           [-1.,  1., -1.],
           [-1., -1.,  1.]])
    >>> Coding("ovo", 3).targets[2]  # classes 0 and 1, 0 and 2, 1 and 2
    array([0., 1., 1.])
    >>> Coding("ovr", 2).targets.ravel()
    array([-1.,  1.])
    """

    multi_class: str
    n_classes: int

    objective_unit = np.ones(1)

    @cached_property
    def targets(self) -> np.ndarray:
        """Target of every class in every output, (n_classes, n_outputs)."""
        if self.n_classes == 2 and self.multi_class != "crammer_singer":
            return np.array([[-1.0], [1.0]])
        if not self.votes:
            return 2 * np.eye(self.n_classes) - 1
        pairs = np.zeros((self.n_classes, self.n_outputs))
        for number in range(self.n_classes):
            pairs[number, pairs_of(number, self.n_classes)] = np.where(
                np.arange(self.n_classes - 1) < number, 1.0, -1.0
            )
        return pairs

    @property
    def n_outputs(self) -> int:
        if self.votes:  # the targets of pairs are a large matrix
            return self.n_classes * (self.n_classes - 1) // 2
        return self.targets.shape[1]

    @property
    def votes(self) -> bool:
        """Whether outputs are voting pairs of classes, rather than scores."""
        return self.multi_class == "ovo" and self.n_classes > 2

    @property
    def scored(self) -> slice:
        """Classes with a score: all, or the second of two."""
        return slice(1, 2) if self.n_classes == 2 else slice(self.n_classes)

    @property
    def readout(self) -> np.ndarray:
        """Scores as linear combinations of outputs that do not vote, (n_outputs, n_scores)."""
        if self.n_classes > 2:
            return np.eye(self.n_classes)
        return np.array([[1.0]]) if self.n_outputs == 1 else np.array([[-1.0], [1.0]])

    def scores(self, outputs: np.ndarray) -> np.ndarray:
        """Turn outputs on the last axis into the values of ``decision_function``.

        Two classes have one score, positive for the second, and no last axis; for several, pairs
        vote, and the larger sum breaks ties.
        """
        if self.votes:
            return _voted(outputs, outputs, self.n_classes)
        if self.n_classes > 2:
            return outputs
        # Crammer and Singer's two outputs give one score: the second minus the first.
        return outputs[..., 0] if self.n_outputs == 1 else outputs[..., 1] - outputs[..., 0]

    def are_certain(self, outputs: np.ndarray, error: np.ndarray) -> np.ndarray:
        """Whether a row's class is the same for all outputs within ``error``.

        A class's lowest score takes every output at its worst for that class.
        """
        if self.n_classes == 2:
            return np.abs(self.scores(outputs)) > error.sum(axis=1)
        with np.errstate(invalid="ignore"):  # with infinite errors nothing is certain
            worst, best = outputs - error, outputs + error
            if self.votes:
                low, high = worst, best
                worst, best = _voted(low, high, self.n_classes), _voted(high, low, self.n_classes)
        every, label = np.arange(len(outputs)), self.scores(outputs).argmax(axis=1)
        lowest = worst[every, label]
        best[every, label] = -np.inf
        return lowest > best.max(axis=1)

    def score_of(self, outputs: np.ndarray, number: int) -> np.ndarray:
        """Return the score of one class, from outputs on the last axis that do not vote."""
        scores = self.scores(outputs)
        return scores[..., number] if self.n_classes > 2 else scores * (1 if number == 1 else -1)

    def in_their_unit(self, weights: np.ndarray, intercept: np.ndarray) -> np.ndarray:
        """Return the intercepts: outputs of classes have no unit."""
        return intercept

    def classes(self, scores: np.ndarray) -> np.ndarray:
        """Return the index of the class with the highest score."""
        return (scores > 0).astype(np.intp) if self.n_classes == 2 else scores.argmax(axis=1)


@lru_cache(1024)
def pairs_of(number: int, n_classes: int) -> np.ndarray:
    """Return the outputs of a class's pairs, in the order of the other classes.

    Examples
    --------
    >>> pairs_of(1, 4)  # with class 0, 2 and 3
    array([0, 3, 4])
    """
    other = np.arange(n_classes - 1)
    other[number:] += 1
    return _shared(pair_numbers(np.minimum(number, other), np.maximum(number, other), n_classes))


@lru_cache(1)
def every_pair(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the second class of every pair.

    Examples
    --------
    >>> every_pair(3)
    (array([0, 0, 1]), array([1, 2, 2]))
    """
    first, second = np.triu_indices(n_classes, 1)
    return _shared(first), _shared(second)


def pair_numbers(first: np.ndarray, second: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the output of each pair of classes with first < second."""
    return first * (2 * n_classes - first - 1) // 2 + second - first - 1


def _shared(array: np.ndarray) -> np.ndarray:
    """Make an array read-only, because it is shared."""
    array.flags.writeable = False
    return array


def _voted(pairs: np.ndarray, for_first: np.ndarray, n_classes: int) -> np.ndarray:
    """Return votes of pairs, plus less than a third of a vote by the sum of decision values.

    Equal to scikit-learn's, but summed by class instead of by pair.  A pair's first class uses
    ``for_first``, which differs from ``pairs`` in `Coding.are_certain` only.
    """
    if n_classes <= _FEW_CLASSES:
        first_of, later_of = _sides(n_classes)
        votes = (pairs > 0) @ later_of + ~(for_first > 0) @ first_of
        return _ranked(votes, pairs @ later_of - for_first @ first_of)
    votes = np.zeros((len(pairs), n_classes), order="F")
    sums, end = np.zeros_like(votes), 0
    for first in range(n_classes - 1):
        begin, end = end, end + n_classes - 1 - first
        # Votes for the later class.
        against, against_first = pairs[:, begin:end], for_first[:, begin:end]
        votes[:, first] += (end - begin) - (against_first > 0).sum(axis=1)
        votes[:, first + 1 :] += against > 0
        sums[:, first] -= against_first.sum(axis=1)
        sums[:, first + 1 :] += against
    return np.ascontiguousarray(_ranked(votes, sums))


def _ranked(votes: np.ndarray, sums: np.ndarray) -> np.ndarray:
    return votes + sums / (3 * (np.abs(sums) + 1))


@lru_cache(_FEW_CLASSES)
def _sides(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return indicator matrices of the first and the later class of each pair."""
    first, later = every_pair(n_classes)
    return _shared(np.eye(n_classes)[first]), _shared(np.eye(n_classes)[later])


@dataclass(frozen=True)
class Numbers:
    """Outputs that are numbers: what a `Coding` is to classes.

    A machine learns targets that are centred and divided by a scale, for each output.

    Examples
    --------
    >>> coding = Numbers(np.array([20.0]), np.array([4.0]))
    >>> coding.scores(np.array([[19.5], [21.0]]))
    array([19.5, 21. ])
    """

    centre: np.ndarray
    scale: np.ndarray
    several: bool = False  # whether y had a column per output

    multi_class = "numbers"
    n_classes = 1
    votes = False
    scored = slice(None)

    @property
    def n_outputs(self) -> int:
        return len(self.centre)

    @property
    def objective_unit(self) -> np.ndarray:
        """What the targets' unit multiplies objectives by, which are of scaled targets."""
        return self.scale**2

    @property
    def readout(self) -> np.ndarray:
        return np.eye(self.n_outputs)

    def scores(self, outputs: np.ndarray) -> np.ndarray:
        """Turn outputs on the last axis into what ``predict`` returns."""
        return outputs if self.several else outputs[..., 0]

    def score_of(self, outputs: np.ndarray, number: int) -> np.ndarray:
        return outputs[..., number]

    def in_their_unit(self, weights: np.ndarray, intercept: np.ndarray) -> np.ndarray:
        """Change weights, in blocks of lanes, to the targets' unit; return intercepts in it."""
        scale = np.ones(len(weights) * weights.shape[-1])
        scale[: self.n_outputs] = self.scale
        shape = (len(weights), *(1,) * (weights.ndim - 2), weights.shape[-1])
        weights *= scale.reshape(shape).astype(weights.dtype)
        return self.centre + self.scale * intercept


@dataclass(frozen=True)
class Targets:
    """Rows that take part in a fit, with weights and targets."""

    X: Any
    weight: np.ndarray  # positive
    present: np.ndarray  # indices of the rows in X
    label: np.ndarray  # row of ``coding.targets`` for each row; 0 where targets are numbers
    coding: Any  # Coding or Numbers
    fitted: dict[str, Any]  # attributes for the estimator, such as ``classes_``
    value: np.ndarray | None = None  # numbers, as `Numbers` scales them, (n_rows, n_outputs)

    @property
    def by_output(self) -> np.ndarray:
        """Targets of every class, or of every row if they are numbers, (n, n_outputs)."""
        return self.coding.targets if self.value is None else self.value

    @property
    def sizes(self) -> np.ndarray:
        """Sizes that single precision must hold: units of objectives, and the largest number's."""
        if self.value is None:
            return self.coding.objective_unit
        return np.append(self.coding.objective_unit, max(np.abs(self.value).max(), 1.0) ** 2)

    @property
    def target_row(self) -> np.ndarray:
        """Row of ``by_output`` for each row."""
        continuous = self.value is not None
        return np.arange(len(self.label), dtype=np.int32) if continuous else self.label

    @property
    def unit(self) -> float:
        """What C is divided by, at least: the scale of numbers, 1 for classes."""
        return float(self.coding.scale.min()) if isinstance(self.coding, Numbers) else 1.0


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
