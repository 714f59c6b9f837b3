"""Data, models, kernels and callbacks that several of these tests share."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel

from widemargin import KernelSVC, _core
from widemargin.kernel import active_set, solver
from widemargin.kernel.backend import Host
from widemargin.kernel.kernels import PrecomputedKernel, make_kernel
from widemargin.kernel.problem import Problem as Programme
from widemargin.kernel.problem import Solution
from widemargin.kernel.solver import SolverSettings

# of the kernels where a test does not say otherwise
PARAMETERS = {
    "rbf": {"gamma": 0.7, "coef0": 0.0, "degree": 3},
    "poly": {"gamma": 0.5, "coef0": 1.0, "degree": 2},
    "sigmoid": {"gamma": 0.1, "coef0": 0.3, "degree": 3},
    "laplacian": {"gamma": 0.4, "coef0": 0.0, "degree": 3},
    "chi2": {"gamma": 0.6, "coef0": 0.0, "degree": 3},
}
DOT_KERNELS = ("rbf", "poly", "sigmoid")
RELATIVE = {np.float32: 5e-6, np.float64: 1e-13}  # error of kernel values for rows of norm 1 or so
EPS = {dtype: float(np.finfo(dtype).eps) for dtype in RELATIVE}

each_dtype = pytest.mark.parametrize("dtype", RELATIVE, ids=lambda t: t.__name__)
each_kernel = pytest.mark.parametrize("name", PARAMETERS)
each_dot_kernel = pytest.mark.parametrize("name", DOT_KERNELS)
each_layout = pytest.mark.parametrize("layout", ["dense", "compressed", "function", "matrix"])
each_size = pytest.mark.parametrize(
    "most_rows", [0, 2048], indirect=True, ids=["many rows", "few rows"]
)
each_instruction_set = pytest.mark.parametrize("instructions", _core.instruction_sets())


# ------------------------------------------------------------------ data


def points(n=120, n_classes=2, seed=0):
    """Rows in the unit cube, with classes that overlap."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    score = np.sin(6 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n)
    return X, np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))


def mostly_zero(n=90, d=12, share=0.15, seed=0):
    """Values in [0, 1), most of them zero; one row has none."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, d)) * (rng.random((n, d)) < share)
    X[n // 2] = 0
    return X


# ------------------------------------------------------------------ models


def svc(kernel="rbf", **changes):
    """One against the others, without an intercept, if not told otherwise."""
    plain = {"multi_class": "ovr", "fit_intercept": False, "random_state": 0}
    return KernelSVC(kernel, **{"gamma": 2.0, "C": 5.0, **plain, **changes})


def svc_matrix(name, X, Z=None):
    """The kernel matrix of ``svc(name, coef0=1.0)``."""
    return kernel_matrix(name, X, Z, gamma=2.0, coef0=1.0)


def rbf2(X, Z):
    """The kernel of `svc`, as a user's function."""
    return rbf_kernel(X, Z, gamma=2.0)


def counting(X):
    """A user kernel on rows with their number in the last column, and the rows it computed."""
    computed = []

    def kernel(A, B):
        of_the_same = np.array_equal(A[:, -1], B[:, -1])  # for the diagonal or the eigenvalues
        if not of_the_same:
            computed.extend(A[:, -1].astype(int))
        return rbf2(A[:, :-1], B[:, :-1])

    return kernel, computed, np.column_stack([X, np.arange(len(X))])


def assert_same_function(a, b, X, Z=None, *, sign=1.0, columns=..., reach=1.0):
    """Both are certified solutions of one problem; Z is X as b has to be given it.

    The scores of b are those of a's ``columns``, times ``sign``.

    The primal is strongly convex, so |w - w*|^2 / 2 is at most the duality gap, and the decisions
    at x differ by at most |w - w*| sqrt(k(x, x)), where ``reach`` is the largest such root.
    """
    gaps = [max(m.objective_ - m.dual_objective_, 0.0) for m in (a, b)]
    distance = sum(np.sqrt(2 * gap) for gap in gaps)
    assert distance < 1e-3
    first, second = a.decision_function(X), b.decision_function(X if Z is None else Z)
    np.testing.assert_allclose(
        sign * first[:, columns], second, rtol=0, atol=reach * distance + 1e-8
    )


class Recorder:
    """A callback that writes down every task, and can stop or interrupt the fit."""

    def __init__(self, stop_at=None, interrupt_at=None):
        self.ended, self.stop_at, self.interrupt_at = [], stop_at, interrupt_at

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        path = []
        while context is not None:
            path.append(context.task_name)
            context = context.parent
        self.ended.append(tuple(reversed(path)))
        if self.interrupt_at is not None and self.interrupt_at in path:
            raise KeyboardInterrupt
        return path[0] == "epoch" and self.stop_at in path


# ------------------------------------------------------------------ kernels and their rows


def kernel_matrix(name, X, Z=None, *, gamma, coef0=0.0, degree=3):
    """The kernel matrix by scikit-learn."""
    extra = {"sigmoid": {"coef0": coef0}, "poly": {"coef0": coef0, "degree": degree}}
    X, Z = (A.toarray() if sp.issparse(A) else A for A in (X, Z))
    return pairwise_kernels(X, Z, metric=name, gamma=gamma, **extra.get(name, {}))


def exact(name, X, Z=None):
    """The kernel matrix by scikit-learn, with the kernel's own `PARAMETERS`."""
    return kernel_matrix(name, X, Z, **PARAMETERS[name])


def made(name, X, dtype=np.float32, **changes):
    """A kernel with its own `PARAMETERS`."""
    kernel = make_kernel(name, **PARAMETERS[name], X=X, dtype=dtype)
    return replace(kernel, **changes) if changes else kernel


def values(kernel, a, b):
    """k(a, b), with NaN where nothing was written."""
    out = np.full((len(a), len(b)), np.nan, dtype=kernel.dtype)
    kernel.fill(kernel.as_left(a), b, out)
    return out


def laid_out(layout, n, dtype=np.float32, seed=0):
    """A kernel, n rows for it, and their kernel matrix in double precision."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    if layout == "matrix":  # not symmetric, so that rows and columns cannot be confused
        K = rng.normal(size=(n, n)).astype(dtype)
        kernel = PrecomputedKernel(dtype=dtype)
        return kernel, kernel.training_rows(K, np.arange(len(K))), K.astype(np.float64)
    if layout == "compressed":
        X *= rng.random(X.shape) < 0.2
    given = sp.csr_array(X) if layout == "compressed" else X
    kernel = make_kernel(_dot if layout == "function" else "rbf", 0.3, 0.0, 3, given, dtype)
    K = X @ X.T if layout == "function" else kernel_matrix("rbf", X, gamma=0.3)
    return kernel, kernel.prepare(given), K


def _dot(A, B):
    return A @ B.T


# ------------------------------------------------------------------ binary problems


@dataclass
class Solved(Solution):
    """A solution, the gradient that it was found by, and whether it is within the tolerance."""

    gradient: np.ndarray = None
    converged: bool = False

    @property
    def n_rows_computed(self):
        return self.history[-1]["rows"]


def hinge(kernel, rows, y, upper) -> Programme:
    """Classification with labels -1.0 and 1.0 and upper bounds C_i."""
    return Programme(kernel, rows, y, np.full(len(y), -1.0), upper)


@dataclass(frozen=True)
class Problem:
    """A binary problem as the solver takes it, and its matrix by scikit-learn's kernels."""

    kernel: object
    rows: object
    y: np.ndarray
    upper: np.ndarray
    K: np.ndarray

    @property
    def programme(self):
        return hinge(self.kernel, self.rows, self.y, self.upper)

    def solve(self, *, alpha=None, on_step=lambda gap: False, n_threads=1, memory=None, **settings):
        """As `solver.solve`, and what its descent ends with."""
        alpha = np.zeros(len(self.y)) if alpha is None else np.clip(alpha, 0, self.upper)
        with Host(n_threads, memory) as host:
            limits = SolverSettings(**settings)
            descent = solver.Descent(self.programme, host, limits, alpha)
            found = descent.run(on_step)
            descent.active.close()
        converged = found.relative_gap <= limits.tol
        parts = vars(found) | {"gradient": descent.gradient}
        return Solved(**parts, converged=converged)

    @property
    def Q(self):
        return self.y[:, None] * (self.K + self.K.T) / 2 * self.y

    def gradient(self, alpha):
        return self.Q @ alpha - 1

    def gap(self, alpha):
        """Primal minus dual, by the textbook formulas."""
        coef, sign, c = (alpha * self.y)[:, None], self.y[:, None], self.upper
        args = (self.K, coef)
        return float((reference.primal(*args, sign, c, False) - self.dual(alpha))[0])

    def dual(self, alpha):
        return reference.dual(self.K, (alpha * self.y)[:, None], self.upper, False)[0]

    def residual(self, alpha):
        """How far a projected gradient step moves; 0 at the optimum only."""
        return np.abs(np.clip(alpha - self.gradient(alpha), 0, self.upper) - alpha).max()

    def optimum(self):
        return self.dual(reference.box_qp(self.Q, self.upper))

    def outward(self, alpha, gradient):
        """How strongly the gradient holds each variable at its bound."""
        return np.where(alpha <= 0, gradient, -gradient)

    def skipped(self, solution, error):
        """Which stored gradients are off: at bounds only, held there no more than in truth."""
        alpha, stored, true = solution.alpha, solution.gradient, self.gradient(solution.alpha)
        off = np.abs(stored - true) > error
        assert np.all(((alpha <= 0) | (alpha >= self.upper))[off])
        assert np.all((self.outward(alpha, stored) <= self.outward(alpha, true))[off])
        return off


def noisy_labels(X, rng):
    score = np.sin(6 * X[:, 0]) + X[:, 1]
    return np.where(score > 0.8 + 0.4 * rng.normal(size=len(X)), 1.0, -1.0)


def problem(name="rbf", n=60, C=10.0, *, seed=0, dtype=np.float64, y=None, X=None, **changes):
    """Noisy labels on uniform rows, every row with an upper bound of its own."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 4)) if X is None else X
    y = noisy_labels(X, rng) if y is None else y
    parameters = {**PARAMETERS[name], **changes}
    kernel = make_kernel(name, **parameters, X=X, dtype=dtype)
    upper = C * rng.uniform(0.2, 1.0, len(X))
    rows = kernel.training_rows(X, np.arange(len(X)))
    return Problem(kernel, rows, y, upper, kernel_matrix(name, X, **parameters))


def cheap(p):
    """The same problem with kernel values that cost nothing, so that shrinking always pays."""
    return replace(p, kernel=replace(p.kernel, cost=0.0))


def shrinking_problem(seed, C, monkeypatch, n=300, block=32, **changes):
    monkeypatch.setattr(active_set, "WORKING_SET", block)
    return cheap(problem(n=n, C=C, seed=seed, **changes))


MINIMISED = ("pool", "slots", "block", "starts", "tol", "q", "coef")


def block_problem(n, n_all, dtype=np.float64, seed=0, starts=None):
    """Q, and a step on a block of n of its variables from a start; slots are out of order."""
    starts = np.array([0, n] if starts is None else starts)
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n_all, n_all + 2))
    sign = rng.choice([-1.0, 1.0], n_all)
    K = (A @ A.T / n_all).astype(dtype)
    Q = sign[:, None] * K * sign
    block = np.sort(rng.permutation(n_all)[:n])
    slots = rng.permutation(n)
    pool = np.full((n, n_all + 3), np.nan, dtype)  # longer than the variables are many
    pool[slots, :n_all] = K[block]
    n_values = np.sum((-(-np.diff(starts) // 8) * 8) ** 2)
    q = np.full(n_values, np.nan, dtype)  # what is in it is the core's business
    upper = rng.uniform(0.1, 2.0, n_all)
    alpha = upper * rng.choice([0.0, 0.5, 1.0], n_all)
    call = {"pool": pool, "slots": slots, "q": q, "block": block, "starts": starts, "sign": sign,
            "alpha": alpha, "gradient": Q @ alpha - 1, "upper": upper,
            "diagonal": np.diag(Q).copy(), "tol": 1e-10, "coef": np.full(n, np.nan)}  # fmt: skip
    return Q.astype(np.float64), call


def working_set(call):
    """The core's view of the variables in such a call."""
    names = ("alpha", "gradient", "sign", "upper", "diagonal")
    return _core.WorkingSet(*(call[name] for name in names), False, 0.0, np.inf)


def minimised(call):
    """The gain of a step on the block of such a call."""
    return working_set(call).minimise(*(call[name] for name in MINIMISED), None)


class Elsewhere(KernelSVC):
    """Solves its clusters, and pairs of classes, in the processes of a pool."""

    pool = None

    def _executor(self):
        return self.pool
