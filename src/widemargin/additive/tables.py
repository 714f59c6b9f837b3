"""Pairs of look-up tables: k(t_u, t_v) ~= L[u] . R[v], with r numbers per bin.

Every method of the three papers is such a pair, so there is one solver and not five.

=============  ==============================  ====================  ===================
approximation  L                               R                     paper
=============  ==============================  ====================  ===================
spectral       Phi                             Phi                   none (ours)
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

from widemargin.additive.codes import Codes, encode
from widemargin.additive.encoder import BINNINGS, MAX_BINS, SCALINGS, Encoder, fit_encoder
from widemargin.additive.kernels import (
    ScalarKernel,
    UserKernel,
    checked_gram,
    resolve_kernel,
    vanishes_at_zero,
)
from widemargin.additive.source import Values
from widemargin.resources import one_blas_thread
from widemargin.validation import check_choice, check_number_or_auto
from widemargin.warning import warn_user

APPROXIMATIONS = ("spectral", "chebyshev", "chebyshev_linear", "pmsvm", "unary", "fourier")
AUTO_ERROR = 0.001
AUTO_RANKS = (1, 2, 3, 4, 8, 12, 16)  # up to 4, and then multiples of the unrolled 4
PMSVM_NODES = (0.01, 0.06, 0.75)
LOG_OFFSET = 0.05
_MAX_EIGEN = 512


@dataclass(frozen=True)
class ApproximationError:
    """How far a table is from its kernel: absolute and relative to the kernel's own size.

    ``max`` and ``mean`` are over all pairs of bins, ``weighted`` is the root of the mean square
    error with every pair weighted by how often its bins occur.
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
        """The kernel that the tables stand for, on all pairs of bins."""
        return self.right if self.left is None else self.left @ self.right.T

    def thinned(self, most: int) -> tuple[Tables, np.ndarray]:
        """At most so many bins (evenly picked, the absent one kept), and which they are."""
        n = len(self.representatives)
        at = np.append(0, np.unique(np.linspace(1, n - 1, min(most, n - 1)).astype(int)))
        left = None if self.left is None else self.left[at]
        right = self.right[np.ix_(at, at)] if self.left is None else self.right[at]
        return replace(
            self,
            left=left,
            right=left if self.left is self.right and left is not None else right,
            diagonal=self.diagonal[at],
            representatives=self.representatives[at],
        ), at

    def error(self, weight: np.ndarray | None = None) -> ApproximationError:
        """Against the kernel, on all pairs of bins (of 2,048 at most), weighted by occurrence."""
        tables, at = self.thinned(2048)
        t = tables.representatives[1:]
        w = np.ones(len(t)) if weight is None else weight[at][1:]
        exact = self.kernel(t[:, None], t[None, :])
        return compare(tables.gram()[1:, 1:], exact, w[:, None] * w[None, :])


def compare(approximate: np.ndarray, exact: np.ndarray, weight: np.ndarray) -> ApproximationError:
    """Errors of an approximation, each absolute and relative."""
    error = np.abs(approximate - exact)
    total = max(weight.sum(), np.finfo(float).tiny)
    root = float(np.sqrt((weight * error**2).sum() / total))
    size = float(np.sqrt((weight * exact**2).sum() / total))
    peak = np.abs(exact).max(initial=0.0)
    mean = np.abs(exact).mean() if exact.size else 0.0

    def ratio(a, b):
        return float(a / b) if b > 0 else 0.0

    return ApproximationError(
        float(error.max(initial=0.0)),
        float(error.mean()),
        root,
        ratio(error.max(initial=0.0), peak),
        ratio(error.mean(), mean),
        ratio(root, size),
    )


@dataclass(frozen=True)
class Learned:
    """What training data determines before any label is looked at."""

    encoder: Encoder
    codes: Codes
    frequency: np.ndarray  # weight of each code
    tables: Tables


def check_settings(estimator) -> None:
    """The parameters that `AdditiveSVC` and `AdditiveMap` share."""
    resolve_kernel(estimator.kernel)
    check_choice("approximation", estimator.approximation, APPROXIMATIONS)
    check_number_or_auto("rank", estimator.rank, low=1, high=256, integer=True)
    check_number_or_auto("n_bins", estimator.n_bins, low=1, high=MAX_BINS, integer=True)
    check_choice("binning", estimator.binning, BINNINGS)
    check_choice("scaling", estimator.scaling, SCALINGS)


def learn(X, weight: np.ndarray, estimator, *, binning: str) -> Learned:
    """Scale, bins, codes and tables for training data under an estimator's parameters."""
    kernel, values = resolve_kernel(estimator.kernel), Values.of(X)
    encoder = fit_encoder(
        values,
        weight,
        scaling=estimator.scaling,
        n_bins=estimator.n_bins,
        binning=binning,
        zero_is_absent=vanishes_at_zero(kernel),
    )
    codes = encode(values, encoder)
    frequency = codes.frequency(weight)
    tables = make_tables(
        kernel,
        encoder.representatives,
        frequency,
        approximation=estimator.approximation,
        rank=estimator.rank,
        sparse=values.sparse,
    )
    return Learned(encoder, codes, frequency, tables)


def make_tables(
    kernel: ScalarKernel,
    representatives: np.ndarray,
    weight: np.ndarray,
    *,
    approximation: str = "spectral",
    rank: int | str = "auto",
    sparse: bool = False,
) -> Tables:
    """Factorise a scalar kernel on the bin representatives.

    Parameters
    ----------
    kernel : ScalarKernel
    representatives : ndarray of shape (b + 1,)
        Bin values; entry 0 stands for absent values.
    weight : ndarray of shape (b + 1,)
        How often each bin occurs.
    approximation : str
        One of `APPROXIMATIONS`.
    rank : int or "auto"
        Numbers per bin.  The polynomial methods have degree ``rank - 1``, the Fourier map
        ``(rank - 1) / 2`` frequencies; "pmsvm" accepts 3 only and "unary" has no rank.
    sparse : bool
        Whether absent values occur, so that k(0, y) must vanish.
    """
    t = representatives[1:]
    sample = t[np.unique(np.linspace(0, len(t) - 1, min(len(t), _MAX_EIGEN)).astype(int))]
    checked_gram(kernel, sample, sparse=sparse)
    if approximation == "spectral":
        left = right = _spectral(kernel, t, weight[1:], rank)
    elif approximation == "fourier":
        left = right = _fourier(kernel, t, weight[1:], rank)
    elif approximation == "unary":
        if rank != "auto":
            raise ValueError('rank must be "auto" with approximation="unary", which has no rank.')
        return _unary(kernel, representatives)
    else:
        left, right = _polynomial(kernel, t, approximation, 3 if rank == "auto" else int(rank))
    if isinstance(kernel, UserKernel) and approximation != "spectral":  # which warns by itself
        _warn_if_indefinite(
            kernel, scipy.linalg.eigvalsh(checked_gram(kernel, sample, sparse=sparse))
        )
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


def _spectral(kernel, t, weight, rank) -> np.ndarray:
    """Best factor in the norm weighted by bin frequency, extended to bins never seen.

    With D = diag(weight) and D^1/2 K D^1/2 = U S U', the best rank-r factor is
    D^-1/2 U_r S_r^1/2, which equals K D^1/2 U_r S_r^-1/2: the second form needs no division by
    the weights and is Nystrom's extension where a weight is zero.
    """
    nodes, mass = _aggregate(t, weight)
    root = np.sqrt(mass)
    weighted = root[:, None] * kernel(nodes[:, None], nodes[None, :]) * root
    with one_blas_thread:
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
    phi = kernel(t[:, None], nodes[None, :]) @ (root[:, None] * vectors[:, :r])
    return phi / np.sqrt(values[:r])


def _warn_if_indefinite(kernel, eigenvalues: np.ndarray) -> None:
    low, high = eigenvalues[0], eigenvalues[-1]
    if low < -1e-6 * abs(high):
        warn_user(
            f"kernel {kernel.name!r} is not positive semi-definite on this data (eigenvalues from "
            f'{low:.2g} to {high:.2g}). approximation="spectral" uses its nearest positive '
            "semi-definite part; any other may not converge, and its gap is no certificate."
        )


def _aggregate(t, weight) -> tuple[np.ndarray, np.ndarray]:
    """At most `_MAX_EIGEN` weighted nodes for the eigenvalue problem."""
    weight = weight / weight.sum() if weight.sum() > 0 else np.full(len(t), 1 / len(t))
    if len(t) <= _MAX_EIGEN:
        return t, weight
    groups = np.array_split(np.arange(len(t)), _MAX_EIGEN)
    mass = np.array([weight[g].sum() for g in groups])
    nodes = np.array([t[g] @ weight[g] / m if (m := weight[g].sum()) > 0 else t[g].mean()
                      for g in groups])  # fmt: skip
    return nodes, mass


def log_polynomials(t: np.ndarray, degree: int) -> np.ndarray:
    """Chebyshev polynomials T_0..T_degree of u = ln(t + 0.05), u scaled to [-1, 1].

    They span the same polynomials as the papers' powers of u, whose Vandermonde matrix is
    ill-conditioned from degree 3 on.
    """
    low, high = np.log(LOG_OFFSET), np.log(1 + LOG_OFFSET)
    u = (2 * np.log(t + LOG_OFFSET) - low - high) / (high - low)
    return np.polynomial.chebyshev.chebvander(u, degree)


def chebyshev_nodes(degree: int, *, linear: bool = False) -> np.ndarray:
    """PmSVM-LUT eq. 13 on [0, 1], placed in ln(t + 0.05) (default) or in t itself."""
    i = np.arange(1, degree + 2)
    s = np.cos((2 * i - 1) / (2 * (degree + 1)) * np.pi)
    if linear:
        return (s + 1) / 2
    low, high = np.log(LOG_OFFSET), np.log(1 + LOG_OFFSET)
    return np.maximum(np.exp((low + high) / 2 + s * (high - low) / 2) - LOG_OFFSET, 0.0)


def _polynomial(kernel, t, approximation, rank) -> tuple[np.ndarray, np.ndarray]:
    """g_j(t) as the polynomial in ln(t + 0.05) through its values at the nodes c.

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
        nodes = chebyshev_nodes(rank - 1, linear=approximation == "chebyshev_linear")
    at_nodes = kernel(nodes[:, None], t[None, :])
    if approximation == "pmsvm":
        at_nodes[0] = nodes[0]  # "we assume M_p(c_0, x) ~= c_0 for all x" (PmSVM, sec. 4.4)
    right = np.linalg.solve(log_polynomials(nodes, rank - 1), at_nodes).T
    return log_polynomials(t, rank - 1), right


def _unary(kernel, representatives) -> Tables:
    """L one-hot, R a row of the kernel matrix: exact on the bins, for every kernel."""
    if len(representatives) > 4096:
        raise ValueError(
            f'approximation="unary" keeps a table of {len(representatives)} entries per feature '
            "here; set n_bins to 4,095 or less."
        )
    gram = np.zeros((len(representatives), len(representatives)))
    t = representatives[1:]
    gram[1:, 1:] = checked_gram(kernel, t, sparse=False)
    return Tables(None, gram, np.diag(gram).copy(), True, kernel, representatives)


def _fourier(kernel, t, weight, rank) -> np.ndarray:
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
    nodes, mass = _aggregate(t, weight)
    exact = kernel(nodes[:, None], nodes[None, :])
    pairs = np.outer(mass, mass)

    def features(t: np.ndarray, spacing: float) -> np.ndarray:
        lines = spacing * np.arange((rank - 1) // 2 + 1)
        spectrum = np.cos(lines[:, None] * omega) @ signature * step / (2 * np.pi)
        spectrum = np.maximum(spectrum, 0.0) * spacing
        angle = np.log(np.maximum(t, 1e-300))[:, None] * lines[1:]
        amplitude = np.sqrt(2 * spectrum[1:])
        parts = [np.sqrt(spectrum[:1]) * np.ones((len(t), 1)),
                 amplitude * np.cos(angle), amplitude * np.sin(angle)]  # fmt: skip
        return np.sqrt(t)[:, None] * np.hstack(parts)

    def error(spacing: float) -> float:
        phi = features(nodes, spacing)
        return float((pairs * (phi @ phi.T - exact) ** 2).sum())

    return features(t, min(np.geomspace(0.02, 3.0, 60), key=error))
