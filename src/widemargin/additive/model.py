"""A fitted additive model as arrays, for prediction, saving, plots and errors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from widemargin import _core
from widemargin.additive.codes import CodedRows, Codes, Indicators
from widemargin.additive.encoder import Encoder
from widemargin.additive.learn import Approximation
from widemargin.additive.lookup import BinnedLookup
from widemargin.additive.problem import CoreTables
from widemargin.additive.source import Values
from widemargin.additive.tables import Tables
from widemargin.engine import Threads, run_tasks

_ROWS_PER_TASK = 8192
_CELLS_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class AdditiveModel:
    """Decision values g(x) = sum_j L[code(x_j)] . w_j + intercept.

    For the unary method L is the kernel matrix of the bins.  Output k is lane ``k % lanes`` of
    block ``k // lanes`` of the weights.
    """

    lookup: BinnedLookup  # raw values to codes, and to rows of L, of shape (n_codes, rank)
    tables: Tables  # those of training, and their kernel
    frequency: np.ndarray  # weight of each code in the training data, (n_codes,)
    offset: np.ndarray | None  # unary only: where the table of each feature begins in the weights
    weights: np.ndarray  # (n_blocks, n_features, rank, lanes), or unary (n_blocks, n_cells, lanes)
    intercept: np.ndarray  # (n_outputs,)
    n_features: int
    shares: BinShares  # how often each feature has each code in the training data

    @classmethod
    def of(
        cls,
        learned: Approximation,
        core: CoreTables,
        weights: np.ndarray,
        intercept: np.ndarray,
        shares: BinShares,
    ) -> AdditiveModel:
        """Build the model from a fit's results, without the training data."""
        encoder, tables, frequency = learned.encoder, learned.tables, learned.frequency
        table = core.right if core.left is None else core.left
        kept = learned.lookup.kept(encoder.n_codes)
        if kept is not None:
            t = encoder.representatives
            encoder, tables = encoder.thinned(kept), tables.thinned(kept)
            table, frequency = table[kept], frequency[kept]
            shares = shares.recoded(encoder.codes_of(t), encoder.n_codes)
        lookup = learned.lookup.of(encoder, table, tables.rank)
        n_features = learned.codes.n_features
        return cls(lookup, tables, frequency, core.offset, weights, intercept, n_features, shares)

    @property
    def encoder(self) -> Encoder:
        return self.lookup.encoder

    @property
    def n_outputs(self) -> int:
        return len(self.intercept)

    @property
    def lanes(self) -> int:
        return self.weights.shape[-1]

    def decision(
        self, values: Values, n_jobs: int | None = None, marks: Indicators | None = None
    ) -> np.ndarray:
        """Return decision values, of shape (n_rows, n_outputs)."""
        return self._decided(*self.lookup.read(values, marks), n_jobs)

    def decision_of_codes(self, codes: CodedRows, encoder: Encoder, n_jobs=None) -> np.ndarray:
        """Return decision values of rows given as codes."""
        trained = self.encoder
        names = ("shift", "factor", "thresholds", "representatives")
        if not all(np.array_equal(getattr(trained, n), getattr(encoder, n)) for n in names):
            raise ValueError(
                "The store has other bins than the model, which was fitted to other data, and its "
                "raw values are gone. Predict the data that the store was built from."
            )
        table = self.lookup.table
        return np.vstack([self._decided(block, table, n_jobs) for _, block in codes.blocks()])

    def _decided(self, codes: Codes, table: np.ndarray, n_jobs: int | None) -> np.ndarray:
        left, right = (None, table) if self.offset is not None else (table, table)
        core = _core.Tables(left, right, self.offset, self.lanes)
        out = [np.empty((codes.n_rows, self.lanes), self.weights.dtype) for _ in self.weights]

        def decide(task, control):
            control.check()
            block, begin = task
            end = min(begin + _ROWS_PER_TASK, codes.n_rows)
            _core.decide(codes.core, core, self.weights[block], begin, end, out[block])

        begins = range(0, codes.n_rows, _ROWS_PER_TASK)
        run_tasks(decide, [(b, i) for b in range(len(out)) for i in begins], Threads(n_jobs))
        scores = out[0] if len(out) == 1 else np.hstack(out)
        scores = scores[:, : self.n_outputs] + self.intercept
        if not np.all(np.isfinite(scores)):
            raise ValueError(
                "The decision values are not finite: the fit of this model diverged, as it warned. "
                'Decrease C, scale the features, or use approximation="spectral".'
            )
        return scores

    def feature_function(self, feature: int, table: np.ndarray | None = None) -> np.ndarray:
        """Return g_j at every code of a table, (n_codes, n_outputs); row 0 (absent) is zero."""
        if self.offset is None:
            table = self.lookup.table if table is None else table
            by_block = np.einsum("cr,brl->cbl", table, self.weights[:, feature])
            return by_block.reshape(len(table), -1)[:, : self.n_outputs]
        cells = self.weights[:, self.offset[feature] : self.offset[feature + 1]]
        code = np.minimum(np.arange(self.encoder.n_codes), max(cells.shape[1] - 1, 0))
        by_block = cells[:, code].transpose(1, 0, 2)
        return by_block.reshape(self.encoder.n_codes, -1)[:, : self.n_outputs]

    @property
    def centred_intercept(self) -> np.ndarray:
        """Mean decision value over the training data, (n_outputs,)."""
        return self.intercept + self.centre.sum(axis=0)

    def at_cells(self, feature: np.ndarray, code: np.ndarray) -> np.ndarray:
        """Return g_j at pairs of a feature and a code, of shape (n_pairs, n_outputs)."""
        out = np.empty((len(code), self.n_outputs))
        for begin in range(0, len(code), _CELLS_AT_ONCE):
            part = slice(begin, begin + _CELLS_AT_ONCE)
            j, c = feature[part], code[part]
            if self.offset is None:
                weights = self.weights[:, j].astype(np.float64)
                by_block = np.einsum("cr,bcrl->cbl", self.lookup.table[c], weights)
            else:
                last = np.maximum(self.offset[j + 1] - 1, 0)
                by_block = self.weights[:, np.minimum(self.offset[j] + c, last)].swapaxes(0, 1)
            out[part] = by_block.reshape(len(c), -1)[:, : self.n_outputs]
        return out

    @cached_property
    def centre(self) -> np.ndarray:
        """Mean of g_j over the training data, (n_features, n_outputs)."""
        return self.shares.mean(self.at_cells(self.shares.feature, self.shares.code))

    def shape(self, feature: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the codes of a feature's values, and the centred g_j at each.

        Values that count as absent come first, if the kernel has any.
        """
        codes = np.arange(0 if self.encoder.zero_is_absent else 1, self.encoder.n_codes)
        if self.encoder.is_constant(feature):
            codes = self.encoder.codes_of(np.zeros(1))
        return codes, (self.feature_function(feature) - self.centre[feature])[codes]

    def contributions(
        self, values: Values, outputs: np.ndarray, marks: Indicators | None = None
    ) -> np.ndarray:
        """Return the centred g_j(x_j) of every feature and, last, the intercept plus their means.

        The shape is (n_rows, n_features + 1, len(outputs))."""
        codes, table = self.lookup.read(values, marks)
        dense = codes.toarray()
        out = np.empty((codes.n_rows, self.n_features + 1, len(outputs)))
        for j in range(self.n_features):
            centred = self.feature_function(j, table)[:, outputs] - self.centre[j, outputs]
            out[:, j] = centred[dense[:, j]]
        out[:, -1] = self.centred_intercept[outputs]
        return out


# ------------------------------------------------------------------ shares of codes


ROUNDING = 1e-7
"""Rounding tolerance for the sum of a feature's float32 shares."""


@dataclass(frozen=True)
class BinShares:
    """Shares of the codes of every feature; code 0 (absent) has the remainder.

    Rows count with their sample weights.  Only codes that occur are stored.
    """

    start: np.ndarray  # start of each feature's codes, (n_features + 1,), int64
    code: np.ndarray  # (n_cells,), ascending within a feature, in the smallest sufficient type
    share: np.ndarray  # (n_cells,), float32

    @classmethod
    def of(cls, codes: CodedRows, row_weight: np.ndarray) -> BinShares:
        """Count the codes of all rows, block by block."""
        n, key = codes.n_codes, np.zeros(0, np.int64)
        total: np.ndarray = np.zeros(0)
        for rows, block in codes.blocks():
            start, code, weight = map(np.asarray, _core.count_cells(block.core, row_weight[rows]))
            if block.n_rows == codes.n_rows:
                return cls._packed(start, code, weight / row_weight.sum(), n)
            keys = np.repeat(np.arange(codes.n_features), np.diff(start)) * n + code
            key, number = np.unique(np.append(key, keys), return_inverse=True)
            total = np.bincount(number, np.append(total, weight), len(key))
        start = np.searchsorted(key, np.arange(codes.n_features + 1) * n)
        return cls._packed(start, key % n, total / row_weight.sum(), n)

    @classmethod
    def _packed(cls, start, code, share, n_codes: int) -> BinShares:
        return cls(start, code.astype(code_type(n_codes)), share.astype(np.float32))

    @property
    def n_features(self) -> int:
        return len(self.start) - 1

    @cached_property
    def feature(self) -> np.ndarray:
        """Feature of every cell."""
        return np.repeat(np.arange(self.n_features), np.diff(self.start))

    @cached_property
    def _by_feature(self) -> sp.csr_array:
        """Matrix (n_features, n_cells) that maps cell values to means, counting absent as 0."""
        content = (self.share.astype(np.float64), np.arange(len(self.code)), self.start)
        return sp.csr_array(content, shape=(self.n_features, len(self.code)))

    @property
    def present(self) -> np.ndarray:
        """Share of rows with a code other than 0, (n_features,)."""
        return self._by_feature @ np.ones(len(self.code))

    @cached_property
    def absent(self) -> np.ndarray:
        """Share of rows with code 0, (n_features,)."""
        rest = 1 - self.present
        return np.where(rest > ROUNDING, rest, 0.0)

    def of_feature(self, feature: int, n_codes: int) -> np.ndarray:
        """Return the share of every code, 0 included, (n_codes,)."""
        cells = slice(*self.start[feature : feature + 2])
        shares = np.zeros(n_codes)
        shares[self.code[cells]] = self.share[cells]
        shares[0] = self.absent[feature]
        return shares

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Return the mean over rows of (n_cells, k) values, absent as 0: (n_features, k)."""
        return self._by_feature @ values

    def mean_distance(self, values: np.ndarray, centre: np.ndarray) -> np.ndarray:
        """Return the mean of |value - centre of its feature| in the same way."""
        absent = self.absent[:, None] * np.abs(centre)
        return self._by_feature @ np.abs(values - centre[self.feature]) + absent

    def recoded(self, code: np.ndarray, n_codes: int) -> BinShares:
        """Return the shares with code c replaced by ``code[c]`` of a coarser table."""
        key = self.feature * n_codes + code[self.code]
        cells, number = np.unique(key, return_inverse=True)
        share = np.bincount(number, self.share, len(cells))
        start = np.searchsorted(cells, np.arange(self.n_features + 1) * n_codes)
        return self._packed(start, cells % n_codes, share, n_codes)


def code_type(n_codes: int) -> np.dtype:
    """Return the smallest integer type for n_codes codes."""
    return np.min_scalar_type(max(n_codes - 1, 0))
