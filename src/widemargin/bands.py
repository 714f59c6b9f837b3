"""Bootstrap bands of an additive model's terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state, resample

from widemargin.sklearn_private import safe_indexing
from widemargin.terms import Shape, explain


@dataclass(frozen=True)
class Bands:
    """Lower and upper values of a share of the refitted models, by the name of a term.

    ``low[name]`` and ``high[name]`` are (n_values, n_scores), at the values of the term's shape.
    """

    n_fits: int
    coverage: float
    low: dict[str, np.ndarray] = field(repr=False)
    high: dict[str, np.ndarray] = field(repr=False)


def shape_bands(
    model,
    X,
    y,
    *,
    n_fits: int = 20,
    coverage: float = 0.9,
    names: Sequence[str] | None = None,
    random_state=0,
) -> Bands:
    """Fit copies of a model to bootstrap samples of its training rows.

    Parameters
    ----------
    model : AdditiveSVC, AdditiveSVR or Pipeline
        A fitted model that `explain` accepts.
    X, y
        The training rows.
    n_fits : int, default=20
        Copies, each with as many rows as y has (of every class, if y has classes), drawn with
        replacement.
    coverage : float, default=0.9
        The share of the copies between ``low`` and ``high``.
    names : sequence of str, default=None
        Names of the features.
    random_state : int or RandomState, default=0

    Returns
    -------
    bands : Bands
        For `widemargin.plots.plot_shape`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import AdditiveSVC, explain
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = AdditiveSVC(random_state=0).fit(X, y)
    >>> bands = shape_bands(model, X, y, n_fits=5)
    >>> shape = explain(model).shape(explain(model).ranked[0])
    >>> bands.low["petal width (cm)"].shape == shape.scores.shape
    True
    """
    explained = explain(model, names)
    random = check_random_state(random_state)
    moved: dict[str, list[np.ndarray]] = {term.name: [] for term in explained.terms}
    for _ in range(n_fits):
        strata = None if explained.is_of_numbers else np.asarray(y)
        rows = resample(np.arange(len(y)), stratify=strata, random_state=random)
        copy = clone(model).fit(safe_indexing(X, rows), safe_indexing(y, rows))
        again = explain(copy, explained.column_names)
        for term in explained.terms:
            moved[term.name].append(_at(explained.shape(term), again.shape(term)))
    ends = (1 - coverage) / 2, (1 + coverage) / 2
    quantiles = {name: np.nanquantile(fits, ends, axis=0) for name, fits in moved.items()}
    low, high = ({name: q[k] for name, q in quantiles.items()} for k in (0, 1))
    return Bands(n_fits, coverage, low, high)


def _at(wanted: Shape, other: Shape) -> np.ndarray:
    """Return scores of another fit at this one's values, with the same mean over its rows."""
    if wanted.values.dtype == object:
        scores = dict(zip(other.values, other.scores, strict=True))
        nothing = np.full(other.scores.shape[1], np.nan)
        at = np.array([scores.get(value, nothing) for value in wanted.values])
    else:
        between = (other.values[1:] + other.values[:-1]) / 2
        at = other.scores[np.searchsorted(between, wanted.values)]
    known = np.where(np.isnan(at).any(axis=1), 0.0, wanted.share)
    if known.sum() == 0:
        return at
    return at - np.average(np.nan_to_num(at), axis=0, weights=known)
