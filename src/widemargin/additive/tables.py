"""Pairs of look-up tables: k(t_u, t_v) ~= L[u] . R[v], with r numbers per bin.

Every method of the three papers is such a pair, so there is one solver and not five.

=============  ==============================  ====================  ===================
approximation  L                               R                     paper
=============  ==============================  ====================  ===================
spectral       Phi                             Phi                   kernel PCA per feature
chebyshev      polynomials in ln(t + 0.05)     X^-1 k(c, t)          PmSVM-LUT, eq. 18-19
pmsvm          1, u, u^2 with u = ln(t + .05)  X^-1 k(c, t)          PmSVM, Algorithm 3
unary          one-hot                         k(t_v, .)             ICD, Algorithm 2
fourier        psi                             psi                   Vedaldi, Zisserman
=============  ==============================  ====================  ===================
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from widemargin.additive.kernels import PowerMean, ScalarKernel, UserKernel, checked_gram
from widemargin.errors import warn_user
from widemargin.resources import one_blas_thread

APPROXIMATIONS = ("spectral", "chebyshev", "pmsvm", "unary", "fourier")
AUTO_ERROR = 0.001
AUTO_RANKS = (1, 2, 3, 4, 8, 12, 16)  # up to 4, and then multiples of the unrolled 4
PMSVM_NODES = (0.01, 0.06, 0.75)
LOG_OFFSET = 0.05
_MAX_EIGEN = 512


@dataclass(frozen=True)
class ApproximationError:
    """Errors of a table against its kernel, or of a g_j against the exact one.

    ``max`` and ``mean`` are over all pairs of bins (or all bins), ``weighted`` is the root of the
    mean square error with every pair weighted by how often its bins occur.  ``relative_`` divides
    each by the same norm of the true values: ``relative_max`` and ``relative_mean`` are the
    percentages of PmSVM-LUT's Tables 1 and 2.
    """

    max: float
    mean: float
    weighted: float
    relative_max: float
    relative_mean: float
    relative_weighted: float


@dataclass(frozen=True)
class Tables:
    """A pair of look-up tables; row 0 belongs to absent values and is zero.

    ``left`` is None for the unary method, whose ``right`` is the whole kernel matrix.
    """

    left: np.ndarray | None
    right: np.ndarray
    diagonal: np.ndarray
    symmetric: bool
    kernel: ScalarKernel
    representatives: np.ndarray

    @property
    def rank(self) -> int:
        return 0 if self.left is None else self.left.shape[1]

    def gram(self) -> np.ndarray:
        """Return the kernel that the tables represent, on all pairs of bins."""
        return self.right if self.left is None else self.left @ self.right.T

    def thinned(self, codes: np.ndarray) -> Tables:
        """Return the tables of these bins only, code 0 among them."""
        left = None if self.left is None else self.left[codes]
        right = self.right[np.ix_(codes, codes)] if self.left is None else self.right[codes]
        return replace(
            self,
            left=left,
            right=left if self.left is self.right and left is not None else right,
            diagonal=self.diagonal[codes],
            representatives=self.representatives[codes],
        )

    def error(self, weight: np.ndarray | None = None) -> ApproximationError:
        """Return the error on all pairs of bins (of 2,048 at most), weighted by occurrence."""
        codes = evenly_picked(len(self.representatives), 2048)
        tables = self.thinned(codes)
        t = tables.representatives[1:]
        w = np.ones(len(t)) if weight is None else weight[codes][1:]
        exact = self.kernel(t[:, None], t[None, :])
        return compare(tables.gram()[1:, 1:], exact, w[:, None] * w[None, :])


def evenly_picked(n_codes: int, most: int) -> np.ndarray:
    """Return code 0 and at most ``most`` others, the first and the last among them."""
    picked = np.linspace(1, n_codes - 1, min(most, n_codes - 1)).astype(int)
    return np.append(0, np.unique(picked))


def compare(approximate: np.ndarray, exact: np.ndarray, weight: np.ndarray) -> ApproximationError:
    """Return the errors of an approximation, absolute and relative."""
    error = np.abs(approximate - exact)
    total = max(weight.sum(), np.finfo(float).tiny)
    root = float(np.sqrt((weight * error**2).sum() / total))
    size = float(np.sqrt((weight * exact**2).sum() / total))
    peak = np.abs(exact).max(initial=0.0)
    mean = np.abs(exact).mean() if exact.size else 0.0

    def ratio(a, b):
        return float(a / b) if b > 0 else 0.0

    return ApproximationError(
        max=float(error.max(initial=0.0)),
        mean=float(error.mean()),
        weighted=root,
        relative_max=ratio(error.max(initial=0.0), peak),
        relative_mean=ratio(error.mean(), mean),
        relative_weighted=ratio(root, size),
    )


def make_tables(
    kernel: ScalarKernel,
    representatives: np.ndarray,
    weight: np.ndarray,
    *,
    approximation: str = "spectral",
    rank: int | str = "auto",
    sparse: bool = False,
) -> Tables:
    """Factorise a scalar kernel on the bin representatives, by how often each bin occurs.

    Entry 0 stands for absent values; if such values occur (``sparse``), k(0, y) must vanish.
    ``rank`` is numbers per bin: the polynomial methods have degree ``rank - 1``, the Fourier map
    ``(rank - 1) / 2`` frequencies; "pmsvm" accepts 3 only and "unary" has no rank.
    """
    t = representatives[1:]
    if approximation == "unary":
        return _unary(kernel, representatives, rank, sparse=sparse)
    nodes = _Nodes.of(kernel, t, weight[1:], sparse=sparse)
    if approximation == "spectral":
        left = right = _spectral(kernel, t, nodes, rank)
    elif approximation == "fourier":
        left = right = _fourier(kernel, t, nodes, rank)
    else:
        left, right = _polynomial(kernel, t, approximation, 3 if rank == "auto" else int(rank))
    if isinstance(kernel, UserKernel) and approximation != "spectral":  # warns by itself
        _warn_if_indefinite(kernel, scipy.linalg.eigvalsh(nodes.gram))
    for table in (left, right):
        if not np.all(np.isfinite(table)):
            bad = t[np.argmin(np.isfinite(table).all(axis=1))]
            raise ValueError(f"kernel {kernel.name!r} is not finite for the value {bad:g}.")
    symmetric = left is right
    # The published methods use the exact kernel's diagonal (PmSVM, Algorithm 3, line 2).
    diagonal = np.einsum("ur,ur->u", left, right) if symmetric else kernel(t, t)
    left = np.vstack([np.zeros(left.shape[1]), left])
    right = left if symmetric else np.vstack([np.zeros(right.shape[1]), right])
    return Tables(
        left, right, np.concatenate([[0.0], diagonal]), symmetric, kernel, representatives
    )


@dataclass(frozen=True)
class _Nodes:
    """At most `_MAX_EIGEN` weighted values that represent all bins, and the kernel on them."""

    t: np.ndarray
    mass: np.ndarray
    gram: np.ndarray

    @classmethod
    def of(cls, kernel: ScalarKernel, t: np.ndarray, weight, *, sparse: bool) -> _Nodes:
        mass = weight / weight.sum() if weight.sum() > 0 else np.full(len(t), 1 / len(t))
        if len(t) > _MAX_EIGEN:
            t, mass = _aggregate(t, mass)
        return cls(t, mass, checked_gram(kernel, t, sparse=sparse))


def _aggregate(t: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean value and the weight of groups of neighbours."""
    groups = np.array_split(np.arange(len(t)), _MAX_EIGEN)
    mass = np.array([weight[g].sum() for g in groups])
    means = [
        t[g] @ weight[g] / m if m > 0 else t[g].mean() for g, m in zip(groups, mass, strict=True)
    ]
    return np.array(means), mass


def _spectral(kernel: ScalarKernel, t: np.ndarray, nodes: _Nodes, rank) -> np.ndarray:
    """Return the best factor in the norm weighted by bin frequency, extended to unseen bins.

    This is kernel PCA per feature, as Perronnin, Sanchez and Liu (CVPR 2010) use it for additive
    kernels; here it is computed once, on bins, for all features together.
    With D = diag(weight) and D^1/2 K D^1/2 = U S U', the best rank-r factor is
    D^-1/2 U_r S_r^1/2, which equals K D^1/2 U_r S_r^-1/2: the second form needs no division by
    the weights and is Nystrom's extension where a weight is zero.
    """
    root = np.sqrt(nodes.mass)
    weighted = root[:, None] * nodes.gram * root
    with one_blas_thread():
        values, vectors = scipy.linalg.eigh(weighted)
    _warn_if_indefinite(kernel, values)
    values, vectors = values[::-1], vectors[:, ::-1]
    usable = int(np.count_nonzero(values > 1e-12 * max(values[0], 0.0)))
    if usable == 0:
        return np.zeros((len(t), 1))
    if rank == "auto":
        size = np.linalg.norm(values)
        rank = next(
            (r for r in AUTO_RANKS if np.linalg.norm(values[r:]) <= AUTO_ERROR * size),
            AUTO_RANKS[-1],
        )
    r = min(int(rank), usable)
    extension = nodes.gram if nodes.t is t else kernel(t[:, None], nodes.t[None, :])
    return extension @ (root[:, None] * vectors[:, :r]) / np.sqrt(values[:r])


def _warn_if_indefinite(kernel, eigenvalues: np.ndarray) -> None:
    low, high = eigenvalues[0], eigenvalues[-1]
    if low < -1e-6 * abs(high):
        warn_user(
            f"kernel {kernel.name!r} is not positive semi-definite on this data (eigenvalues from "
            f'{low:.2g} to {high:.2g}). approximation="spectral" uses its nearest positive '
            "semi-definite part; any other may not converge, and its gap is no certificate."
        )


def log_polynomials(t: np.ndarray, degree: int) -> np.ndarray:
    """Return Chebyshev polynomials T_0..T_degree of u = ln(t + 0.05), u scaled to [-1, 1].

    They span the same polynomials as the papers' powers of u, whose Vandermonde matrix is
    ill-conditioned from degree 3 on.
    """
    low, high = np.log(LOG_OFFSET), np.log(1 + LOG_OFFSET)
    u = (2 * np.log(t + LOG_OFFSET) - low - high) / (high - low)
    return np.polynomial.chebyshev.chebvander(u, degree)


def chebyshev_nodes(degree: int) -> np.ndarray:
    """PmSVM-LUT eq. 13 on [0, 1], placed in ln(t + 0.05)."""
    i = np.arange(1, degree + 2)
    s = np.cos((2 * i - 1) / (2 * (degree + 1)) * np.pi)
    low, high = np.log(LOG_OFFSET), np.log(1 + LOG_OFFSET)
    return np.maximum(np.exp((low + high) / 2 + s * (high - low) / 2) - LOG_OFFSET, 0.0)


def _polynomial(kernel, t, approximation, rank) -> tuple[np.ndarray, np.ndarray]:
    """Interpolate g_j(t) by the polynomial in ln(t + 0.05) through its values at the nodes c.

    a_j = X^-1 g_j(c) (PmSVM eq. 7), so one sample adds X^-1 k(c, x) to it (eq. 11).
    """
    if t.max(initial=0.0) > 1 + 1e-9:
        raise ValueError(
            f'approximation="{approximation}" is defined on [0, 1], but scaled values reach '
            f'{t.max():g}. Use scaling="global" or "minmax".'
        )
    if approximation == "pmsvm":
        if rank != 3:
            raise ValueError(
                f'rank={rank} with approximation="pmsvm": its three nodes make rank 3 '
                '("auto"); use approximation="chebyshev" for other degrees.'
            )
        nodes = np.array(PMSVM_NODES)
    else:
        nodes = chebyshev_nodes(rank - 1)
    at_nodes = kernel(nodes[:, None], t[None, :])
    if approximation == "pmsvm" and isinstance(kernel, PowerMean):
        at_nodes[0] = nodes[0]  # "we assume M_p(c_0, x) ~= c_0 for all i and j" (PmSVM, sec. 4.4)
    right = np.linalg.solve(log_polynomials(nodes, rank - 1), at_nodes).T
    return log_polynomials(t, rank - 1), right


def _unary(kernel: ScalarKernel, representatives: np.ndarray, rank, *, sparse: bool) -> Tables:
    """L one-hot, R a row of the kernel matrix: exact on the bins, for every kernel."""
    if rank != "auto":
        raise ValueError('rank must be "auto" with approximation="unary", which has no rank.')
    if len(representatives) > 4096:
        raise ValueError(
            f'approximation="unary" keeps a table of {len(representatives)} entries per feature '
            "here; set n_bins to 4,095 or less."
        )
    gram = np.zeros((len(representatives), len(representatives)))
    gram[1:, 1:] = checked_gram(kernel, representatives[1:], sparse=sparse)
    return Tables(None, gram, np.diag(gram).copy(), True, kernel, representatives)


def _fourier(kernel: ScalarKernel, t: np.ndarray, nodes: _Nodes, rank) -> np.ndarray:
    """The homogeneous kernel map of Vedaldi and Zisserman (2012).

    For k(cx, cy) = c k(x, y), k(x, y) = sqrt(xy) K(ln x - ln y); sampling the spectrum of K at
    0, S, 2S, ... gives 2n + 1 numbers.  The spectrum is integrated numerically, so every
    homogeneous kernel has one, and the step S is the one with the least weighted error.
    """
    if rank != "auto" and int(rank) % 2 == 0:
        raise ValueError(f'rank={rank} with approximation="fourier": use an odd rank, 2n + 1.')
    x = np.array([0.05, 0.3, 1.0])
    if not np.allclose(kernel(4 * x, x[::-1] * 4), 4 * kernel(x, x[::-1]), rtol=1e-6):
        raise ValueError(
            f'approximation="fourier" needs a homogeneous kernel, k(cx, cy) = c k(x, y), and '
            f'{kernel.name!r} is not; use approximation="spectral".'
        )
    omega = np.linspace(-60.0, 60.0, 24_001)
    signature = kernel(np.exp(omega / 2), np.exp(-omega / 2))
    if np.allclose(signature, 1.0):  # Hellinger: the spectrum is a single line at 0
        if rank not in ("auto", 1):
            raise ValueError(f'rank={rank} with "fourier": this kernel is exact with rank 1.')
        return np.sqrt(t)[:, None]
    rank = 3 if rank == "auto" else int(rank)
    step = omega[1] - omega[0]
    pairs = np.outer(nodes.mass, nodes.mass)

    def features(t: np.ndarray, spacing: float) -> np.ndarray:
        lines = spacing * np.arange((rank - 1) // 2 + 1)
        spectrum = np.cos(lines[:, None] * omega) @ signature * step / (2 * np.pi)
        spectrum = np.maximum(spectrum, 0.0) * spacing
        angle = np.log(np.maximum(t, 1e-300))[:, None] * lines[1:]
        amplitude = np.sqrt(2 * spectrum[1:])
        constant = np.sqrt(spectrum[:1]) * np.ones((len(t), 1))
        waves = [amplitude * np.cos(angle), amplitude * np.sin(angle)]
        return np.sqrt(t)[:, None] * np.hstack([constant, *waves])

    def error(spacing: float) -> float:
        phi = features(nodes.t, spacing)
        return float((pairs * (phi @ phi.T - nodes.gram) ** 2).sum())

    return features(t, min(np.geomspace(0.02, 3.0, 60), key=error))
