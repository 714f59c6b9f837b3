"""How near PmSVM's and PmSVM-LUT's variables are to the optimum of the exact kernel.

A digit of usps against the rest, 1,500 rows.  ``duality_gap_`` is the gap of the variables under
spectral tables; the same under the exact kernel on the bins; and a bound for the learned function f
itself, whose norm in the kernel's space is f_j' K^-1 f_j, summed over the features.  The last
column is the largest difference of f, over the rows, from the function of the variables, and the
largest value of that.
"""

from __future__ import annotations

import warnings

import numpy as np

from benchmarks.data import usps
from benchmarks.report import SEED, one_thread, table, write
from widemargin import papers
from widemargin.additive.codes import encode
from widemargin.additive.source import Values
from widemargin.losses import LOSSES

ROWS = 1500
SETTINGS = [{}, {"tol": 1e-4}, {"loss": "hinge", "C": 1.0}]
USABLE = 1e-13  # eigenvalues of the kernel on the bins, relative to the largest


def row(name: str, p: float, changes: dict, X, y) -> list[str]:
    model = getattr(papers, name)(p, warm_start=True, random_state=SEED, **changes).fit(X, y)
    arrays, coef = model.model_, model._dual.coef[:, 0]
    t, codes = arrays.encoder.representatives, encode(Values.of(X), arrays.encoder).toarray()
    K = np.zeros((len(t), len(t)))
    K[1:, 1:] = arrays.tables.kernel(t[1:, None], t[None, 1:])
    values, vectors = np.linalg.eigh(K)
    usable = values > USABLE * values[-1]
    exact, learned, norm = np.zeros(len(y)), np.zeros(len(y)), 0.0
    for j in range(X.shape[1]):
        exact += (K @ np.bincount(codes[:, j], coef, len(t)))[codes[:, j]]
        f = arrays.feature_function(j)[:, 0]
        learned += f[codes[:, j]]
        norm += ((vectors[:, usable].T @ f) ** 2 / values[usable]).sum()
    loss, c = LOSSES[model.loss], np.full(len(y), model.C_)
    gap = loss.gap(y, exact, coef, c).sum()
    primal = coef @ exact / 2 + loss.value(y, exact, c).sum()
    of_learned = norm / 2 + loss.value(y, learned, c).sum()
    return [
        f"{name}({p:g})", ", ".join(f"{k}={v}" for k, v in changes.items()) or "as in the paper",
        f"{model.violation_:.1e}", f"{100 * model.duality_gap_:.2f}", f"{100 * gap / primal:.2f}",
        f"{100 * (1 - (primal - gap) / of_learned):.1f}",
        f"{np.abs(learned - exact).max():.2f} of {np.abs(exact).max():.1f}",
    ]  # fmt: skip


def main() -> None:
    one_thread()
    warnings.simplefilter("ignore")
    X, digit, *_ = usps()
    some = np.random.default_rng(SEED).permutation(len(digit))[:ROWS]
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X)[some]
    y = np.where(digit[some] == digit[some[0]], 1, -1)
    rows = [
        row(name, p, changes, X, y)
        for name in ("pmsvm", "pmsvm_lut") for p in (-1.0, -8.0) for changes in SETTINGS
    ]  # fmt: skip
    columns = ["preset", "changes", "violation", "duality_gap_, %", "gap, exact kernel, %",
               "bound for f, %", "f from the variables' function"]  # fmt: skip
    write("approximate_gradient", "Gaps of tables that are not symmetric", table(columns, rows))


if __name__ == "__main__":
    main()
