"""Map raw values to rows of the left table at prediction.

Values are binned as in training (`BinnedLookup`), except for PmSVM, whose table is a polynomial
that is evaluated at the value itself (`PolynomialLookup`).  The rest of a model is the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from widemargin.additive.codes import Codes, Indicators, encode, with_indicators
from widemargin.additive.encoder import Encoder, exact_encoder
from widemargin.additive.source import Values
from widemargin.additive.tables import evenly_picked, log_polynomials

_GRID = 1000


@dataclass(frozen=True)
class BinnedLookup:
    """Maps raw values to codes, every value to its bin, and has the table that codes index.

    ``encoder`` and ``table`` (in the core's precision and padding) are also the grid of shape
    functions.
    """

    encoder: Encoder
    table: np.ndarray

    @classmethod
    def of(cls, encoder: Encoder, table: np.ndarray, rank: int) -> BinnedLookup:
        return cls(encoder, table)

    @staticmethod
    def binning(asked: str) -> str:
        """Return the binning for training, given the parameter."""
        return asked

    @staticmethod
    def kept(n_codes: int) -> np.ndarray | None:
        """Return the training codes that a fitted model keeps; None for all."""
        return None

    def read(self, values: Values, marks: Indicators | None) -> tuple[Codes, np.ndarray]:
        """Return codes of new data (numbers, then indicators) and the table they index."""
        codes = encode(values, self.encoder)
        if marks is not None:
            codes = with_indicators(codes, marks, self.encoder.n_codes - 1)
        return codes, self.table


@dataclass(frozen=True)
class PolynomialLookup(BinnedLookup):
    """Polynomials of degree ``rank`` - 1 in ln(t + 0.05) of each value itself (PmSVM, eq. 5).

    The table has a row for every distinct value of the new data; columns beyond ``rank`` are the
    core's padding.
    """

    rank: int

    @classmethod
    def of(cls, encoder: Encoder, table: np.ndarray, rank: int) -> PolynomialLookup:
        return cls(encoder, table, rank)

    @staticmethod
    def binning(asked: str) -> str:
        return "exact"

    @staticmethod
    def kept(n_codes: int) -> np.ndarray:
        """Return a grid: one entry per distinct value would store the training data."""
        return evenly_picked(n_codes, _GRID)

    def read(self, values: Values, marks: Indicators | None) -> tuple[Codes, np.ndarray]:
        encoder, top = exact_encoder(values, self.encoder), self.encoder.representatives[-1]
        codes, t = encode(values, encoder), np.minimum(encoder.representatives, top)
        if marks is not None:  # the new data may lack the indicators' value
            t = np.append(t, top)
            codes = with_indicators(codes.widened(len(t)), marks, len(t) - 1)
        table = np.zeros((len(t), self.table.shape[1]), dtype=self.table.dtype)
        table[1:, : self.rank] = log_polynomials(t[1:], self.rank - 1)
        return codes, table
