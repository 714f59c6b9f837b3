"""Learn scale, bins, codes and tables from training data without labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from widemargin.additive.choice import choose_kernel
from widemargin.additive.codes import CodedRows, encode
from widemargin.additive.encoder import BINNINGS, MAX_BINS, SCALINGS, Encoder, fit_encoder
from widemargin.additive.indicators import Indicators, beside
from widemargin.additive.kernels import resolve_kernel, vanishes_at_zero
from widemargin.additive.lookup import BinnedLookup, Lookup, PolynomialLookup
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
    def lookup(self) -> type[Lookup]:
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
    lookup: type[Lookup]  # maps new data to codes

    def diagonal(self) -> np.ndarray:
        """Return k(x, x) of every sample."""
        return self.codes.row_sums(self.tables.diagonal)


def learn(
    values: Values, weight: np.ndarray, settings: Settings, marks: Indicators | None = None
) -> Approximation:
    """Learn scale, bins, codes and tables for training data with sample weights.

    Only the numbers in ``values`` determine kernel, scale and bins; indicators use the last bin.
    """
    chosen = choose_kernel(values) if settings.chooses_kernel else settings.kernel
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
        codes = beside(codes, marks, encoder.n_codes - 1)
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
    tables = make_tables(
        resolve_kernel(kernel),
        encoder.representatives,
        frequency,
        approximation=settings.approximation,
        rank=settings.rank,
        sparse=sparse,
    )
    return Approximation(kernel, encoder, codes, frequency, tables, settings.lookup)
