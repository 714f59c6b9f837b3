"""A fitted additive model: arrays only, all that prediction, saving and plots need."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from widemargin import _core
from widemargin.additive.codes import Codes, encode
from widemargin.additive.encoder import Encoder, exact_encoder
from widemargin.additive.source import Values
from widemargin.additive.tables import log_polynomials
from widemargin.engine import Threads, run_tasks

_ROWS_PER_TASK = 8192


@dataclass(frozen=True)
class AdditiveModel:
    """Decision values g(x) = sum_j L[code(x_j)] . w_j + intercept.

    Attributes
    ----------
    encoder : Encoder
        Raw values to codes.
    table : ndarray
        L, of shape (n_codes, rank); for the unary method, the kernel matrix of the bins.
    offset : ndarray or None
        Unary only: where the table of each feature begins in ``weights``.
    weights : ndarray of shape (n_blocks, n_features, rank, lanes)
        Or (n_blocks, n_cells, lanes) for the unary method.  Output k is lane ``k % lanes`` of
        block ``k // lanes``.
    intercept : ndarray of shape (n_outputs,)
    direct : bool
        Whether values are not binned at prediction but their logarithms computed (PmSVM).
    """

    encoder: Encoder
    table: np.ndarray
    offset: np.ndarray | None
    weights: np.ndarray
    intercept: np.ndarray
    n_features: int
    direct: bool = False

    @property
    def n_outputs(self) -> int:
        return len(self.intercept)

    @property
    def lanes(self) -> int:
        return self.weights.shape[-1]

    def thinned(self, at: np.ndarray) -> AdditiveModel:
        """A direct model with fewer bins: they serve as the grid of `feature_function` only."""
        thresholds, t = self.encoder.thresholds, self.encoder.representatives[at]
        encoder = replace(
            self.encoder,
            representatives=t,
            thresholds=np.append(thresholds[0], t[1:-1] / 2 + t[2:] / 2),
        )
        return replace(self, encoder=encoder, table=self.table[at])

    def encode(self, values: Values) -> tuple[Codes, np.ndarray]:
        """Codes of new data, and the table they index."""
        if not self.direct:
            return encode(values, self.encoder), self.table
        encoder = exact_encoder(values, self.encoder)
        t = np.minimum(encoder.representatives, self.encoder.representatives[-1])
        table = np.zeros((len(t), self.table.shape[1]), dtype=self.table.dtype)
        table[1:, :3] = log_polynomials(t[1:], 2)
        return encode(values, encoder), table

    def decision(self, values: Values, n_jobs: int | None = None) -> np.ndarray:
        """Decision values, of shape (n_rows, n_outputs)."""
        codes, table = self.encode(values)
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
        return scores[:, : self.n_outputs] + self.intercept

    def feature_function(self, feature: int) -> np.ndarray:
        """g_j at every code, of shape (n_codes, n_outputs); row 0 (absent) is zero."""
        if self.offset is None:
            return self._through(self.table, feature)
        own = self.weights[:, self.offset[feature] : self.offset[feature + 1]]
        code = np.minimum(np.arange(self.encoder.n_codes), max(own.shape[1] - 1, 0))
        by_block = own[:, code].transpose(1, 0, 2)
        return by_block.reshape(self.encoder.n_codes, -1)[:, : self.n_outputs]

    def contributions(self, values: Values, outputs: np.ndarray) -> np.ndarray:
        """g_j(x_j) per feature and the intercept last: (n_rows, n_features + 1, len(outputs))."""
        codes, table = self.encode(values)
        dense = codes.toarray()
        out = np.empty((codes.n_rows, self.n_features + 1, len(outputs)))
        for j in range(self.n_features):
            g = self._through(table, j) if self.direct else self.feature_function(j)
            out[:, j] = g[:, outputs][dense[:, j]]
        out[:, -1] = self.intercept[outputs]
        return out

    def _through(self, table: np.ndarray, feature: int) -> np.ndarray:
        """A table times one feature's weights, of shape (n_codes, n_outputs)."""
        by_block = np.einsum("cr,brl->cbl", table, self.weights[:, feature])
        return by_block.reshape(len(table), -1)[:, : self.n_outputs]
