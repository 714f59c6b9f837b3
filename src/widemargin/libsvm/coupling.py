"""Couple pairwise probabilities (Wu, Lin and Weng 2004, second method).

LIBSVM stops early, so equal numbers need the same iteration.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

_LEAST = 1e-7  # least probability of a pair
_MOST_SWEEPS = 100
_CLOSE = 0.005  # stopping tolerance times the number of classes
_AT_ONCE = 1 << 20  # numbers in a block's matrices


def sigmoid(values: np.ndarray, slope: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """Return Platt's 1 / (1 + exp(slope * value + offset)) without overflow."""
    z = slope * values + offset
    small = np.exp(-np.abs(z))
    return np.where(z >= 0, small, 1.0) / (1 + small)


def coupled(pairs: np.ndarray, n_classes: int) -> np.ndarray:
    """Return (n_rows, n_classes) from the probability of the first class of each pair.

    Examples
    --------
    >>> coupled(np.array([[0.75]]), 2)
    array([[0.75, 0.25]])
    >>> coupled(np.array([[0.5, 0.5, 0.5]]), 3).round(3)
    array([[0.333, 0.333, 0.333]])
    """
    p = np.empty((len(pairs), n_classes))
    rows = max(1, _AT_ONCE // n_classes**2)
    for begin in range(0, len(pairs), rows):
        block = np.clip(pairs[begin : begin + rows], _LEAST, 1 - _LEAST)
        p[begin : begin + rows] = _coupled_block(block, n_classes)
    return p


def _coupled_block(pairs: np.ndarray, n_classes: int) -> np.ndarray:
    """Couple a block of rows, with a matrix of classes by classes for each."""
    if n_classes == 2:
        return np.hstack([pairs, 1 - pairs])
    r = np.zeros((len(pairs), n_classes, n_classes))
    for k, (i, j) in enumerate(combinations(range(n_classes), 2)):
        r[:, i, j], r[:, j, i] = pairs[:, k], 1 - pairs[:, k]
    Q = -r * r.transpose(0, 2, 1)
    Q[:, range(n_classes), range(n_classes)] = np.square(r).sum(axis=1)
    p = np.full((len(pairs), n_classes), 1 / n_classes)
    going = np.arange(len(pairs))
    for _ in range(max(_MOST_SWEEPS, n_classes)):
        Qp = np.einsum("nij,nj->ni", Q[going], p[going])
        pQp = np.einsum("ni,ni->n", p[going], Qp)
        far = np.abs(Qp - pQp[:, None]).max(axis=1) >= _CLOSE / n_classes
        going, Qp, pQp = going[far], Qp[far], pQp[far]
        if len(going) == 0:
            break
        p[going] = _sweep(Q[going], p[going], Qp, pQp)
    return p


def _sweep(Q: np.ndarray, p: np.ndarray, Qp: np.ndarray, pQp: np.ndarray) -> np.ndarray:
    """Update every class once and normalise after each."""
    for t in range(p.shape[1]):
        own = Q[:, t, t]
        step = (pQp - Qp[:, t]) / own
        p[:, t] += step
        pQp = (pQp + step * (step * own + 2 * Qp[:, t])) / np.square(1 + step)
        Qp = (Qp + step[:, None] * Q[:, t]) / (1 + step)[:, None]
        p /= (1 + step)[:, None]
    return p
