"""Linear SVMs on benchopt's problem, and `LinearSVC` as it is beside scikit-learn's.

benchopt's problem has the hinge loss, no intercept and C = 1.

Seconds until the primal objective is within 1e-4 and within 1e-8 of its least value, relatively.
As in benchopt, a solver that does not know how near it is gets twice as many iterations until it is
there, and only its last run counts; ours ends by its own duality gap.  L-BFGS-B on the dual is
benchopt's.  `LinearSVC` is `widemargin.sklearn`'s, with all defaults: the squared hinge loss and an
intercept.  Seconds are those that the process computes, in turns, after a warm-up.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from itertools import count

import numpy as np
import scipy.sparse as sp
from scipy.optimize import fmin_l_bfgs_b
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from benchmarks import data
from benchmarks.report import SEED, alternate, one_thread, table, write
from widemargin import KernelSVC
from widemargin.sklearn import LinearSVC as Ours

BARS = (1e-4, 1e-8)
REPEATS = 1
CS = (0.01, 1.0, 100.0)  # of the drop-in
LIMIT = 1.0  # seconds of a run, after which a solver is given up
SETS = {
    "a9a": data.a9a,
    "w8a": data.w8a,
    "ijcnn1": data.ijcnn1,
    "news20, first class": data.news20_tfidf,
}

Solver = Callable[[int], np.ndarray]  # weights after so many iterations


def objective(X, y: np.ndarray, w: np.ndarray) -> float:
    return 0.5 * float(w @ w) + float(np.maximum(0, 1 - y * (X @ w)).sum())


def ours(X, y, tol: float) -> np.ndarray:
    return KernelSVC("linear", fit_intercept=False, tol=tol, max_iter=-1).fit(X, y).coef_


def liblinear(X, y, n_iter: int) -> np.ndarray:
    how = {"loss": "hinge", "fit_intercept": False, "tol": 1e-300, "random_state": SEED}
    return LinearSVC(max_iter=n_iter, **how).fit(X, y).coef_[0]


def l_bfgs_b(X, y, n_iter: int) -> np.ndarray:
    """On the dual, the product with the transpose as a matrix of its own."""
    signed = sp.csr_array(X.multiply(y[:, None]))
    transposed = sp.csr_array(signed.T)

    def dual(alpha: np.ndarray) -> tuple[float, np.ndarray]:
        w = transposed @ alpha
        return 0.5 * float(w @ w) - float(alpha.sum()), signed @ w - 1

    bounds = np.tile([0.0, 1.0], (len(y), 1))
    limits = {"pgtol": 0.0, "factr": 0.0, "maxiter": n_iter, "maxfun": 2 * n_iter}
    alpha, *_ = fmin_l_bfgs_b(dual, np.zeros(len(y)), bounds=bounds, **limits)
    return transposed @ alpha


def iterations(solve: Solver, reached: Callable[[np.ndarray], bool]) -> int | None:
    """How many it needs, in powers of two; None where a run takes too long."""
    for power in count():
        started = time.process_time()
        if reached(solve(2**power)):
            return 2**power
        if time.process_time() - started > LIMIT:
            return None
    return None


def dense(w) -> np.ndarray:
    return w.toarray()[0] if sp.issparse(w) else np.ravel(w)


def rows(name: str, X, y) -> list[str]:
    """The cells of one set: seconds of every solver at every bar."""
    least = objective(X, y, dense(ours(X, y, 1e-12)))
    cells = [f"{name}, {X.shape[0]:,} x {X.shape[1]:,}"]
    for bar in BARS:

        def reached(w: np.ndarray, bar: float = bar) -> bool:
            return objective(X, y, w) <= (1 + bar) * least

        tasks: dict[str, Callable[[], object]] = {"ours": lambda bar=bar: ours(X, y, bar)}
        for solver in (liblinear, l_bfgs_b):
            n = iterations(lambda n, solver=solver: solver(X, y, n), reached)
            if n is not None:
                tasks[solver.__name__] = lambda n=n, solver=solver: solver(X, y, n)
        seconds = alternate(tasks, REPEATS, time.process_time)
        for solver in ("ours", "liblinear", "l_bfgs_b"):
            found = seconds.get(solver)
            text = f"> {LIMIT:g}" if found is None else f"{found:.3f}"
            cells.append(f"**{text}**" if found == min(seconds.values()) else text)
    return cells


def drop_in(name: str, X, y, C: float) -> list[str]:
    """The cells of `LinearSVC`: seconds, and objectives divided by ours."""
    models = {"ours": Ours(C=C), "theirs": LinearSVC(C=C, random_state=SEED)}
    seconds = alternate(
        {key: lambda m=m: m.fit(X, y) for key, m in models.items()}, REPEATS, time.process_time
    )
    objectives = [_squared(X, y, models[key], C) for key in models]
    cells = [f"{seconds[key]:.3f}" for key in models]
    return [name, f"{C:g}", *cells, f"{objectives[1] / objectives[0]:.6f}"]


def _squared(X, y, model, C: float) -> float:
    short = np.maximum(0, 1 - y * model.decision_function(X))
    squares = np.sum(model.coef_**2) + np.sum(model.intercept_**2)
    return float(0.5 * squares + C * np.sum(short**2))


def main() -> None:
    one_thread()
    warnings.simplefilter("ignore", ConvergenceWarning)
    lines, others = [], []
    for name, read in SETS.items():
        X, labels, *_ = read()
        classes = np.unique(labels)
        y = np.where(labels == classes[-1 if len(classes) == 2 else 0], 1.0, -1.0)
        X = sp.csr_array(X, dtype=np.float64)
        lines.append(rows(name, X, y))
        others += [drop_in(name, X, y, C) for C in CS]
    heads = [f"{solver}, {bar:g}" for bar in BARS for solver in ("ours", "LIBLINEAR", "L-BFGS-B")]
    text = ["Seconds to a relative suboptimality of 1e-4 and of 1e-8.", ""]
    text += table(["data", *heads], lines)
    text += [
        "",
        "`LinearSVC` with all defaults but C, of `widemargin.sklearn` and of `sklearn.svm`:",
        "",
    ]
    heads = ["data", "C", "ours, s", "scikit-learn's, s", "its objective / ours"]
    write("linear", "Linear SVMs", text + table(heads, others))


if __name__ == "__main__":
    main()
