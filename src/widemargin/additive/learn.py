"""Learn kernel="auto", scale, bins, codes and tables from training data without labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin.additive.codes import CodedRows, Indicators, encode, with_indicators
from widemargin.additive.encoder import BINNINGS, MAX_BINS, SCALINGS, Encoder, fit_encoder
from widemargin.additive.kernels import resolve_kernel, vanishes_at_zero
from widemargin.additive.lookup import BinnedLookup, PolynomialLookup
from widemargin.additive.source import Values
from widemargin.additive.store import BlockStore
from widemargin.additive.tables import APPROXIMATIONS, Tables, make_tables
from widemargin.errors import ParameterError
from widemargin.validation import check_choice, check_number_or_auto


@dataclass(frozen=True)
class Settings:
    """Parameters of `AdditiveSVC` and `AdditiveMap` for kernel, bins and tables."""

    kernel: Any = "intersection"
    approximation: str = "spectral"
    rank: int | str = "auto"
    n_bins: int | str = "auto"
    binning: str = "auto"
    scaling: str | None = "auto"

    def check(self) -> None:
        """Check each parameter; `learn` checks their combinations and the data."""
        if not self.chooses_kernel:
            resolve_kernel(self.kernel)
        check_choice("approximation", self.approximation, APPROXIMATIONS)
        check_number_or_auto("rank", self.rank, low=1, high=256, integer=True)
        check_number_or_auto("n_bins", self.n_bins, low=1, high=MAX_BINS, integer=True)
        check_choice("binning", self.binning, BINNINGS)
        check_choice("scaling", self.scaling, SCALINGS)

    @property
    def chooses_kernel(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "auto"

    @property
    def lookup(self) -> type[BinnedLookup]:
        """The lookup: PmSVM uses the values themselves (Algorithm 3), unless binning is set."""
        unbinned = self.binning == "auto" and self.n_bins == "auto"
        return PolynomialLookup if self.approximation == "pmsvm" and unbinned else BinnedLookup


@dataclass(frozen=True)
class Approximation:
    """The kernel and the training data, in bins."""

    kernel: Any  # the parameter, or the name that "auto" chose
    encoder: Encoder
    codes: CodedRows
    frequency: np.ndarray  # weight of each code
    tables: Tables
    symmetric: Tables  # the same, or spectral ones beside tables that are not: for certificates
    lookup: type[BinnedLookup]  # maps new data to codes

    def diagonal(self) -> np.ndarray:
        """Return k(x, x) of every sample."""
        return self.codes.row_sums(self.tables.diagonal)


def learn(
    values: Values, weight: np.ndarray, settings: Settings, marks: Indicators | None = None
) -> Approximation:
    """Learn scale, bins, codes and tables for training data with sample weights.

    Only the numbers in ``values`` determine kernel, scale and bins; indicators use the last bin.
    """
    chosen = choose_kernel(values, values.n_rows) if settings.chooses_kernel else settings.kernel
    encoder = fit_encoder(
        values,
        weight,
        scaling=settings.scaling,
        n_bins=settings.n_bins,
        binning=settings.lookup.binning(settings.binning),
        zero_is_absent=vanishes_at_zero(resolve_kernel(chosen)),
    )
    codes = encode(values, encoder)
    if marks is not None:
        codes = with_indicators(codes, marks, encoder.n_codes - 1)
    return approximate(chosen, encoder, codes, weight, settings, sparse=values.sparse)


def learn_stored(store: BlockStore, weight: np.ndarray, settings: Settings) -> Approximation:
    """Compute tables for a store, whose codes exist."""
    codes = store.codes  # first, because a store of values has no settings of bins
    chosen = store.kernel if settings.chooses_kernel else settings.kernel
    binning = settings.lookup.binning(settings.binning)
    store.check_settings(
        {"scaling": settings.scaling, "n_bins": settings.n_bins, "binning": binning}
    )
    if not vanishes_at_zero(resolve_kernel(chosen)):
        reason = "is not zero at zero, as codes in a store require. Fit it to data in memory."
        raise ParameterError("kernel", chosen, reason)
    return approximate(chosen, store.encoder, codes, weight, settings, sparse=store.sparse)


def approximate(
    kernel, encoder: Encoder, codes: CodedRows, weight, settings: Settings, *, sparse: bool
) -> Approximation:
    """Approximate the kernel on the bins of coded data."""
    frequency = codes.frequency(weight)
    make = partial(
        make_tables, resolve_kernel(kernel), encoder.representatives, frequency, sparse=sparse
    )
    tables = make(approximation=settings.approximation, rank=settings.rank)
    symmetric = tables if tables.symmetric else make()
    return Approximation(kernel, encoder, codes, frequency, tables, symmetric, settings.lookup)


MANY = 128  # features
MOSTLY_ZERO = 0.1  # largest share of nonzeros
HALF = 0.5  # least share of columns with three values or more in an image
SAME_LENGTH = 1e-3  # relative spread of row norms
SAMPLE = 1000  # rows to inspect


def choose_kernel(values: Values, n_rows: int) -> str:
    """Return the name of the kernel for data of ``n_rows`` rows, from some of them.

    A rule for wide data (``MANY`` features or more) without negative values; all other data gets
    the intersection kernel, which bends most.  Derived from
    benchmarks/results/additive_defaults.md.

    - Rows of equal norm, mostly zeros: tf-idf and other texts that were normalised for inner
      products.  "linear" is the most accurate there, and the fastest.
    - Counts and histograms, mostly zeros: "chi2" is as accurate as the intersection, in a fraction
      of its time.  The same holds for images, whose columns are dense but take many values on one
      scale, unless there are fewer of them than columns: histograms of images are then a point more
      accurate with the intersection (the experiment icd_table3).
    - Columns with two values, such as categories, are equal for every kernel, so the few other
      columns decide: the intersection.
    """
    if values.n_features < MANY:
        return "intersection"
    rows = sp.csr_array(_some_rows(values))
    rows.data[np.isnan(rows.data)] = 0  # missing
    if rows.nnz and rows.data.min() < 0:
        return "intersection"
    if rows.nnz <= MOSTLY_ZERO * rows.shape[0] * rows.shape[1]:
        return "linear" if _have_one_length(rows) else "chi2"
    few = n_rows < values.n_features  # so the time of the intersection is short
    return "chi2" if _are_an_image(rows) and not few else "intersection"


def _some_rows(values: Values):
    every = slice(None, None, max(1, values.n_rows // SAMPLE))
    return values.csr()[every] if values.sparse else values.data[every]


def _have_one_length(rows: sp.csr_array) -> bool:
    squared = rows.astype(np.float64).power(2).sum(axis=1)
    squared = squared[squared > 0]
    return len(squared) > 0 and squared.max() <= (1 + SAME_LENGTH) ** 2 * squared.min()


def _are_an_image(rows: sp.csr_array) -> bool:
    """Whether most columns have more than two values and similar maxima."""
    values = rows.toarray()
    top = values.max(axis=0)
    between = np.any((values > 0) & (values < top), axis=0)
    if between.mean() < HALF:
        return False
    top = top[between]
    return bool(np.mean(top >= top.max() / 2) >= HALF)
