"""Find pairs of columns whose interaction an additive model misses.

A residual is, for every class, a row's membership minus the frequency of the class among rows with
such decision values (isotonic regression; for several classes, after a logistic regression).  So
a nonlinear scale of decision values leaves no residual.  As in FAST for explainable boosting
machines (Lou et al., KDD 2013), two columns are binned and residuals averaged in the cells; here
the additive part of the cells is removed.  Patterns are learned on half of the rows and measured on
the other half, so pure noise has a strength of about zero.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtr
from sklearn.exceptions import ConvergenceWarning
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.utils import check_random_state

from widemargin.sklearn_private import safe_indexing
from widemargin.term_bins import TermBins, term_values
from widemargin.terms import Explanation, Term, explain

SIGNIFICANT = 0.01
_WORTH_A_TRY = 0.02  # noise rarely exceeds this strength, except with few rows
_MOST_ROWS, _FEWEST_ROWS = 20_000, 40
_MOST_TERMS = 2000
_MOST_BINS = 8
_ROWS_PER_CELL = 20
_TESTED = 30
_WORK = 2e10  # multiplications of the screening: about a second


@dataclass(frozen=True)
class Pair:
    """Two terms and the interaction that the model misses.

    Attributes
    ----------
    first, second : Term
    strength : float
        Share of the residual that the interaction explains on held-out rows; about zero or
        negative for noise.
    chance : float
        Probability of such a strength by chance, among all tested pairs.
    bins : tuple of two tuples of str
        Names of the columns' bins.
    effect : ndarray of shape (n_bins, n_bins of the second, n_scores)
        Frequency of each class in a cell minus the model's, as a share of the cell's rows, without
        the parts of single columns; shrunk towards zero by its noise.
    """

    first: Term
    second: Term
    strength: float
    chance: float
    bins: tuple[tuple[str, ...], tuple[str, ...]] = field(repr=False)
    effect: np.ndarray = field(repr=False)

    @property
    def stands_out(self) -> bool:
        """Whether the probability by chance is below 1 %."""
        return self.chance < SIGNIFICANT

    @property
    def name(self) -> str:
        return f"{self.first.name} \N{MULTIPLICATION SIGN} {self.second.name}"


@dataclass(frozen=True)
class PairsSummary:
    """A verdict on pairs in words, and a table of the pairs that explain anything."""

    verdict: str
    header: tuple[str, ...]
    rows: list[list[str]]

    @classmethod
    def of(cls, pairs: Sequence[Pair]) -> PairsSummary:
        """
        >>> PairsSummary.of([]).verdict
        'No pair of columns stands out from the noise: a general kernel has little to gain here.'
        """
        rows = [
            [pair.name, share, "yes" if pair.stands_out else "no"]
            for pair in pairs
            if pair.strength > 0 and (share := f"{100 * pair.strength:.2f} %") != "0.00 %"
        ]
        if any(pair.stands_out for pair in pairs):
            verdict = (
                "A sum over columns cannot see these interactions: add a column for each pair that "
                "stands out, or try KernelSVC."
            )
        elif any(pair.strength > _WORTH_A_TRY for pair in pairs):
            verdict = (
                "No pair of columns stands out from the noise, but the rows are too few to tell: "
                "use more rows, or try KernelSVC."
            )
        else:
            verdict = (
                "No pair of columns stands out from the noise: a general kernel has little to gain "
                "here."
            )
        return cls(verdict, ("pair", "share of the residual", "stands out from noise"), rows)


def missed_pairs(
    model, X, y, *, most: int = 10, names: Sequence[str] | None = None, random_state=0
) -> list[Pair]:
    """Return pairs of columns whose interaction an additive model misses, the strongest first.

    Significant pairs come first.  If there are none, a `KernelSVC` or trees have little to gain
    from interactions of two columns.

    Parameters
    ----------
    model : AdditiveSVC, AdditiveSVR or Pipeline
        A fitted model that `explain` accepts.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Preferably unseen rows; at least 40.  More than 20,000 are sampled.
    y : array-like of shape (n_samples,)
    most : int, default=10
        Number of pairs to return.  All pairs of the 2,000 most important terms are screened, in
        bounded time, and the best 30 tested.
    names : sequence of str, default=None
        Names of the features.
    random_state : int or RandomState, default=0
        Selects the half of the rows to learn patterns on.

    Returns
    -------
    pairs : list of Pair

    Examples
    --------
    >>> from widemargin import AdditiveSVC
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 4))
    >>> y = (X[:, 1] * X[:, 3] > 0) ^ (X[:, 0] > 0.8)
    >>> pairs = missed_pairs(AdditiveSVC(random_state=0).fit(X, y), X, y)
    >>> pairs[0].name, pairs[0].stands_out, pairs[1].stands_out
    ('feature 1 × feature 3', True, False)
    """
    explained = explain(model, names)
    y = np.asarray(y)
    if len(y) < _FEWEST_ROWS:
        raise ValueError(f"missed_pairs needs {_FEWEST_ROWS} rows or more, got {len(y)}.")
    order = check_random_state(random_state).permutation(len(y))[:_MOST_ROWS]
    X, y = safe_indexing(X, order), y[order]
    halves = np.array_split(np.arange(len(y)), 2)
    left = _left_over(explained, X, y, halves)
    terms = _most_important(explained)
    n_bins = int(np.clip(np.sqrt(len(halves[0]) / _ROWS_PER_CELL), 2, _MOST_BINS))
    by_column = sp.csc_array(X) if sp.issparse(X) else X  # by rows, each column would need a pass
    binned = [TermBins.of(term_values(by_column, term), n_bins) for term in terms]
    tested = list(islice(_screened(binned, left, halves[0]), _TESTED))
    pairs = []
    for i, j in tested:
        strength, chance, effect = _measured(binned[i], binned[j], left, halves)
        bins = binned[i].labels, binned[j].labels
        chance = min(1.0, chance * len(tested))
        pairs.append(Pair(terms[i], terms[j], strength, chance, bins, effect))
    return sorted(pairs, key=lambda pair: (not pair.stands_out, -pair.strength))[:most]


def _left_over(explained: Explanation, X, y: np.ndarray, halves) -> np.ndarray:
    """Return the residuals (n_rows, n_scores) of class membership given the decision values.

    Of numbers: what predictions miss, each target in its own spread.
    """
    if explained.is_of_numbers:
        missed = (y - explained.model.predict(X)).reshape(len(y), -1)
        for half in halves:
            missed[half] -= missed[half].mean(axis=0)
        return missed / np.maximum(missed.std(axis=0), np.finfo(np.float64).tiny)
    scores = explained.model.decision_function(X)
    left = (y[:, None] == explained.classes).astype(np.float64)
    for half in halves:  # separately, so that the halves are independent
        ranking = _ranking(scores[half], y[half], explained.classes)
        for k in range(left.shape[1]):
            left[half, k] -= IsotonicRegression().fit_transform(ranking[:, k], left[half, k])
    return left


def _ranking(scores: np.ndarray, y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return scores (n_rows, n_scores) that increase with the probability of each class."""
    if scores.ndim == 1:
        return scores[:, None]
    known = np.isin(y, classes)
    if len(np.unique(y[known])) < 2:
        return scores
    scaled = (scores - scores.mean(axis=0)) / np.maximum(scores.std(axis=0), 1e-9)
    with warnings.catch_warnings():  # an estimate suffices
        warnings.simplefilter("ignore", ConvergenceWarning)
        joint = LogisticRegression(max_iter=100).fit(scaled[known], y[known])
    ranking = scores.copy()  # for classes that do not occur
    ranking[:, np.searchsorted(classes, joint.classes_)] = joint.predict_proba(scaled)
    return ranking


def _most_important(explained: Explanation) -> list[Term]:
    if len(explained.terms) <= _MOST_TERMS:
        return list(explained.terms)
    size = explained.importances()
    return [explained.terms[k] for k in np.sort(np.argsort(-size)[:_MOST_TERMS])]


def _screened(
    binned: list[TermBins], left: np.ndarray, rows: np.ndarray
) -> Iterator[tuple[int, int]]:
    """Rank all pairs by products of contrasts, as if columns were independent.

    Fewer contrasts, then fewer rows, bound the work."""
    d, n_scores = len(binned), left.shape[1]
    if d < 2:
        return
    widest = max(len(bins.labels) for bins in binned) - 1
    n_contrasts = int(np.clip(np.sqrt(_WORK / (len(rows) * n_scores)) / d, 1, max(widest, 1)))
    rows = rows[: max(int(_WORK / (n_scores * (d * n_contrasts) ** 2)), 500)]
    contrasts = np.zeros((len(rows), d, n_contrasts), dtype=np.float32)
    width = np.zeros(d)
    for j, bins in enumerate(binned):
        part = _contrasts(bins.number[rows], len(bins.labels), n_contrasts)
        contrasts[:, j, : part.shape[1]] = part
        width[j] = part.shape[1]
    flat = contrasts.reshape(len(rows), -1)
    promise = np.zeros((d, d))
    for k in range(n_scores):
        part = left[rows, k].astype(np.float32)
        products = flat.T @ (part[:, None] * flat) / len(rows)
        promise += (products**2).reshape(d, n_contrasts, d, n_contrasts).sum(axis=(1, 3))
        promise -= (
            np.outer(width, width) * np.mean(part**2) / len(rows)
        )  # the expectation for noise
    first, second = np.triu_indices(d, 1)
    for k in np.argsort(-promise[first, second], kind="stable"):
        yield int(first[k]), int(second[k])


def _contrasts(number: np.ndarray, n_bins: int, most: int) -> np.ndarray:
    """Return orthonormal polynomials of the bin's index, without the constant."""
    share = np.bincount(number, minlength=n_bins) / len(number)
    seen = np.flatnonzero(share)
    powers = np.linspace(-1, 1, n_bins)[seen, None] ** np.arange(min(most + 1, len(seen)))
    weight = np.sqrt(share[seen])[:, None]
    at_bin = np.zeros((n_bins, powers.shape[1]))
    at_bin[seen] = np.linalg.qr(weight * powers)[0] / weight
    return at_bin[number, 1:]


def _measured(first: TermBins, second: TermBins, left: np.ndarray, halves):
    """Return the strength of one half's pattern on the other, its chance, and the full pattern."""
    shape = (len(first.labels), len(second.labels))
    cell = first.number * shape[1] + second.number
    learn, test = halves
    pattern = _pattern(cell[learn], left[learn], shape)[cell[test]]
    gain = (left[test] ** 2 - (left[test] - pattern) ** 2).sum(axis=1)
    total, error = (left[test] ** 2).sum(), gain.std() / np.sqrt(len(test))
    strength = float(gain.sum() / total) if total > 0 else 0.0
    chance = float(ndtr(-gain.mean() / error)) if error > 0 else 1.0
    return strength, chance, _pattern(cell, left, shape).reshape(*shape, -1)


def _pattern(cell: np.ndarray, left: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Return means of cells without their additive part, shrunk by noise: (n_cells, n_scores)."""
    n_cells = shape[0] * shape[1]
    members = sp.csr_array((np.ones(len(cell)), (cell, np.arange(len(cell)))), (n_cells, len(cell)))
    count = np.bincount(cell, minlength=n_cells)
    seen = np.flatnonzero(count)
    mean = (members @ left)[seen] / count[seen, None]
    weight = np.sqrt(count[seen])[:, None]
    sides = [np.eye(shape[0])[seen // shape[1]], np.eye(shape[1])[seen % shape[1]]]
    design = np.hstack(sides)
    additive, _, rank, _ = np.linalg.lstsq(weight * design, weight * mean, rcond=1e-9)
    rest = mean - design @ additive
    size = (count[seen, None] * rest**2).sum(axis=0)
    noise = (len(seen) - rank) * (left**2).mean(axis=0)
    out = np.zeros((n_cells, left.shape[1]))
    if len(seen) > rank:
        # James-Stein shrinkage.
        out[seen] = rest * np.maximum(0, 1 - noise / np.maximum(size, np.finfo(float).tiny))
    return out
