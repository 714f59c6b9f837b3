"""Look-up tables: how well each pair stands for its kernel."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from widemargin import PowerMean
from widemargin.additive.kernels import KERNELS, resolve_kernel
from widemargin.additive.tables import (
    _MAX_EIGEN,
    APPROXIMATIONS,
    AUTO_ERROR,
    AUTO_RANKS,
    LOG_OFFSET,
    PMSVM_NODES,
    chebyshev_nodes,
    make_tables,
)

# Bins that are finer near zero, and how often data crowded near zero falls into each.
GRID = (np.arange(121) / 120) ** 2

CROWDED = np.sqrt(GRID) * np.exp(-GRID / 0.05)

EVEN = (GRID > 0).astype(float)

POLYNOMIALS = ("chebyshev", "pmsvm")

NAMED = (*KERNELS, PowerMean(-8.0))

each_kernel = pytest.mark.parametrize("kernel", NAMED, ids=str)

each_approximation = pytest.mark.parametrize("approximation", APPROXIMATIONS)


def tables(kernel="chi2", approximation="spectral", rank="auto", grid=GRID, weight=CROWDED):
    return make_tables(resolve_kernel(kernel), grid, weight, approximation=approximation, rank=rank)


def weighted_error(*args, weight=CROWDED, **options):
    return tables(*args, weight=weight, **options).error(weight).relative_weighted


def exact(kernel, grid=GRID):
    t = grid[1:]
    return resolve_kernel(kernel)(t[:, None], t[None, :])


def asymmetry(gram):
    return np.abs(gram - gram.T).max() / np.abs(gram).max()


@each_approximation
def test_row_zero_stands_for_absent_values(approximation):
    made = tables("chi2", approximation)
    assert made.diagonal[0] == 0
    assert not made.gram()[0].any()
    assert not made.gram()[:, 0].any()


@each_approximation
def test_symmetric_is_what_the_tables_say_they_are(approximation):
    made = tables("chi2", approximation)
    assert made.symmetric == (approximation not in POLYNOMIALS)
    assert made.symmetric == (asymmetry(made.gram()) < 1e-12)


@pytest.mark.parametrize("approximation", ["spectral", "fourier", "unary"])
def test_diagonal_of_symmetric_tables_is_that_of_their_own_kernel(approximation):
    made = tables("chi2", approximation)
    assert_allclose(made.diagonal, np.diag(made.gram()))


@pytest.mark.parametrize("approximation", POLYNOMIALS)
def test_diagonal_of_polynomial_tables_is_that_of_the_exact_kernel(approximation):
    assert_allclose(tables("chi2", approximation).diagonal, GRID)


@pytest.mark.parametrize("weight", [None, CROWDED], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("approximation", ["spectral", "chebyshev"])
def test_errors_follow_their_definitions(approximation, weight):
    made = tables("chi2", approximation, rank=3)
    reported = made.error(weight)
    K = exact("chi2")
    error = np.abs(made.gram()[1:, 1:] - K)
    w = np.ones(len(K)) if weight is None else weight[1:]
    pairs = np.outer(w, w) / w.sum() ** 2
    assert reported.max == pytest.approx(error.max())
    assert reported.mean == pytest.approx(error.mean())
    assert reported.weighted == pytest.approx(np.sqrt((pairs * error**2).sum()))
    assert reported.relative_max == pytest.approx(error.max() / K.max())
    assert reported.relative_mean == pytest.approx(error.mean() / K.mean())
    ratio = np.sqrt((pairs * error**2).sum() / (pairs * K**2).sum())
    assert reported.relative_weighted == pytest.approx(ratio)


def best_relative_error(kernel, weight, rank, grid=GRID):
    """The least weighted error of any table of this rank (Eckart and Young)."""
    root = np.sqrt(weight[1:])
    s = np.linalg.svd(root[:, None] * exact(kernel, grid) * root, compute_uv=False)
    return np.linalg.norm(s[rank:]) / np.linalg.norm(s)


@each_kernel
def test_spectral_tables_are_symmetric_and_positive_semidefinite(kernel):
    gram = tables(kernel, rank=5).gram()
    assert asymmetry(gram) < 1e-14
    assert np.linalg.eigvalsh(gram)[0] > -1e-12 * np.trace(gram)


@each_kernel
def test_spectral_tables_of_full_rank_are_exact(kernel):
    made = tables(kernel, rank=len(GRID), weight=EVEN)
    assert_allclose(made.gram()[1:, 1:], exact(kernel), atol=1e-6)


@each_kernel
@pytest.mark.parametrize("weight", [CROWDED, EVEN], ids=["crowded", "even"])
@pytest.mark.parametrize("rank", [1, 3, 8])
def test_spectral_tables_are_the_best_of_their_rank(kernel, weight, rank):
    best = best_relative_error(kernel, weight, rank)
    assert weighted_error(kernel, rank=rank, weight=weight) == pytest.approx(
        best, rel=1e-6, abs=1e-7
    )


def test_no_perturbation_improves_spectral_tables():
    made, rng = tables("chi2", rank=3), np.random.default_rng(0)
    pairs, K = np.outer(CROWDED[1:], CROWDED[1:]), exact("chi2")
    phi = made.left[1:]

    def error(factor):
        return (pairs * (factor @ factor.T - K) ** 2).sum()

    for size in (1e-1, 1e-2, 1e-3):
        assert error(phi * (1 + size * rng.normal(size=phi.shape))) > error(phi)


@each_kernel
def test_spectral_error_does_not_grow_with_rank(kernel):
    errors = np.array([weighted_error(kernel, rank=r) for r in range(1, 10)])
    assert np.all(np.diff(errors) <= 1e-7)


@each_kernel
@pytest.mark.parametrize("weight", [CROWDED, EVEN], ids=["crowded", "even"])
def test_automatic_rank_meets_the_stated_error_or_is_the_largest(kernel, weight):
    made = tables(kernel, weight=weight)
    assert made.rank == AUTO_RANKS[-1] or made.error(weight).relative_weighted <= AUTO_ERROR


@each_kernel
def test_no_smaller_rank_than_the_automatic_one_meets_the_stated_error(kernel):
    chosen = tables(kernel).rank
    smaller = max((r for r in AUTO_RANKS if r < chosen), default=None)
    assert smaller is None or weighted_error(kernel, rank=smaller) > AUTO_ERROR


@pytest.mark.parametrize("kernel", ["hellinger", "linear"])
def test_kernels_of_rank_one_get_one_column(kernel):
    made = tables(kernel, rank=8)
    assert made.rank == 1
    assert_allclose(made.gram()[1:, 1:], exact(kernel), atol=1e-12)


@pytest.mark.parametrize("kernel", ["chi2", "intersection"])
def test_bins_never_seen_get_a_sensible_table(kernel):
    unseen = np.arange(len(GRID)) % 3 != 1
    weight = np.where(unseen, 0.0, EVEN)
    made = tables(kernel, rank=8, weight=weight)
    seen_error = made.error(weight).relative_weighted
    assert made.error(np.where(unseen, EVEN, 0.0)).relative_weighted < 2 * seen_error + 1e-5
    assert made.error(EVEN).relative_weighted < 0.02


@pytest.mark.parametrize("approximation", ["spectral", "fourier"])
def test_bins_that_no_data_has_seen_count_alike(approximation):
    without = tables("chi2", approximation, rank=3, weight=np.zeros_like(GRID))
    assert_allclose(without.gram(), tables("chi2", approximation, rank=3, weight=EVEN).gram())


def test_more_bins_than_the_eigenvalue_problem_takes_are_grouped_without_much_loss():
    grid = (np.arange(701) / 700) ** 2
    weight = np.sqrt(grid) * np.exp(-grid / 0.05)
    assert len(grid) > _MAX_EIGEN
    error = weighted_error("intersection", rank=3, grid=grid, weight=weight)
    assert error < 1.001 * best_relative_error("intersection", weight, 3, grid)


def test_a_kernel_that_is_not_positive_semidefinite_is_named_and_its_positive_part_used():
    with pytest.warns(UserWarning, match="'maximum' is not positive semi-definite"):
        gram = tables(np.maximum, rank=5).gram()
    assert np.linalg.eigvalsh(gram)[0] > -1e-12 * np.trace(gram)


@pytest.mark.parametrize("approximation", ["chebyshev", "pmsvm"])
@pytest.mark.parametrize(("kernel", "factor"), [("chi2", 10), ("intersection", 3)])
def test_rank_3_spectral_tables_beat_polynomials_of_degree_2(kernel, factor, approximation):
    published = weighted_error(kernel, approximation, rank=3)
    assert weighted_error(kernel, rank=3) < published / factor


@pytest.mark.parametrize("approximation", ["chebyshev", "pmsvm"])
@pytest.mark.parametrize("kernel", ["chi2", "intersection", PowerMean(-8.0)], ids=str)
def test_polynomial_tables_are_not_symmetric(kernel, approximation):
    assert asymmetry(tables(kernel, approximation, rank=3).gram()) > 0.01


@pytest.mark.parametrize("degree", [1, 2, 5, 9])
def test_chebyshev_nodes_follow_their_formula(degree):
    i = np.arange(1, degree + 2)
    expected = np.cos((2 * i - 1) / (2 * (degree + 1)) * np.pi)
    low, high = np.log(LOG_OFFSET), np.log(1 + LOG_OFFSET)
    u = np.log(chebyshev_nodes(degree) + LOG_OFFSET)
    assert_allclose((2 * u - low - high) / (high - low), expected, atol=1e-14)


@pytest.mark.parametrize("degree", [1, 2, 5])
@each_kernel
def test_chebyshev_tables_interpolate_at_their_nodes(kernel, degree):
    nodes = np.sort(chebyshev_nodes(degree))
    grid = np.unique(np.concatenate([GRID, nodes]))
    made = tables(kernel, "chebyshev", rank=degree + 1, grid=grid, weight=np.ones_like(grid))
    at_nodes = made.gram()[np.searchsorted(grid, nodes), 1:]
    assert_allclose(at_nodes, resolve_kernel(kernel)(nodes[:, None], grid[None, 1:]), atol=1e-11)


@pytest.mark.parametrize(
    "kernel", ["chi2", "intersection", "jensen_shannon", PowerMean(-8.0)], ids=str
)
def test_degree_5_is_better_than_degree_2(kernel):
    assert (
        weighted_error(kernel, "chebyshev", rank=6)
        < weighted_error(kernel, "chebyshev", rank=3) / 2
    )


@pytest.mark.parametrize("p", [-1.0, -8.0, -np.inf, 0.0])
def test_pmsvm_is_the_papers_quadratic_in_the_logarithm(p):
    """PmSVM eq. 7 and 11 with X_kt = ln(c_k + 0.05)^t and M_p(c_0, x) taken to be c_0."""
    kernel, c, t = PowerMean(p), np.array(PMSVM_NODES), GRID[1:]
    X = np.log(c + 0.05)[:, None] ** np.arange(3)
    at_nodes = np.stack([np.full_like(t, c[0]), kernel(c[1], t), kernel(c[2], t)])
    coefficients = np.linalg.inv(X) @ at_nodes
    powers = np.log(t + 0.05)[:, None] ** np.arange(3)
    assert_allclose(tables(kernel, "pmsvm").gram()[1:, 1:], powers @ coefficients, atol=1e-10)


@pytest.mark.parametrize("kernel", ["jensen_shannon", "linear", lambda x, y: x * y])
def test_pmsvm_takes_the_first_node_for_its_kernel_of_power_means_only(kernel):
    """PmSVM offers Algorithm 3 for every smooth kernel; k_JS(.01, 1) is .04 and not .01."""
    kernel, c, t = resolve_kernel(kernel), np.array(PMSVM_NODES), GRID[1:]
    at_nodes = np.log(c + 0.05)[:, None] ** np.arange(3)
    coefficients = np.linalg.inv(at_nodes) @ kernel(c[:, None], t[None, :])
    powers = np.log(t + 0.05)[:, None] ** np.arange(3)
    assert_allclose(tables(kernel, "pmsvm").gram()[1:, 1:], powers @ coefficients, atol=1e-10)


def test_pmsvm_tables_of_jensen_shannon_are_about_as_good_as_chebyshevs():
    assert weighted_error("jensen_shannon", "pmsvm") < 2 * weighted_error(
        "jensen_shannon", "chebyshev", rank=3
    )


@pytest.mark.parametrize("rank", [1, 2, 4, 8])
def test_pmsvm_refuses_a_rank_other_than_three(rank):
    with pytest.raises(ValueError, match=f'rank={rank} with approximation="pmsvm"'):
        tables("chi2", "pmsvm", rank=rank)


@pytest.mark.parametrize("approximation", POLYNOMIALS)
def test_polynomials_refuse_values_above_one(approximation):
    with pytest.raises(ValueError, match=r"scaled values reach 1\.5.*scaling="):
        tables("chi2", approximation, grid=1.5 * GRID)


@each_kernel
def test_unary_tables_are_exact(kernel):
    made = tables(kernel, "unary")
    assert_array_equal(made.gram()[1:, 1:], exact(kernel))
    assert made.error(CROWDED).max == 0


def test_unary_tables_have_no_rank():
    assert tables("intersection", "unary").rank == 0
    with pytest.raises(ValueError, match='rank must be "auto"'):
        tables("intersection", "unary", rank=3)


def test_unary_tables_refuse_too_many_bins():
    grid = np.arange(5000.0)
    with pytest.raises(ValueError, match="n_bins"):
        tables("intersection", "unary", grid=grid, weight=grid)


@pytest.mark.parametrize(
    "kernel", ["chi2", "intersection", "jensen_shannon", PowerMean(-8.0)], ids=str
)
def test_fourier_error_falls_with_rank(kernel):
    errors = [weighted_error(kernel, "fourier", rank=r) for r in (1, 3, 5, 7, 9)]
    assert np.all(np.diff(errors) < 0)


def test_fourier_tables_of_rank_3_approximate_chi2():
    assert weighted_error("chi2", "fourier", rank=3) < 0.05


def test_fourier_tables_sample_the_closed_form_spectrum_of_chi2():
    """At t = 1 the features are sqrt(S), sqrt(2 S sech(pi S)) and 0."""
    at_one = tables("chi2", "fourier", rank=3).left[-1]
    step = at_one[0] ** 2
    assert_allclose(at_one[1:], [np.sqrt(2 * step / np.cosh(np.pi * step)), 0.0], atol=1e-9)


def test_fourier_tables_of_hellinger_refuse_a_rank_they_have_no_use_for():
    with pytest.raises(ValueError, match="exact with rank 1"):
        tables("hellinger", "fourier", rank=3)


@pytest.mark.parametrize("rank", [1, "auto"])
def test_fourier_tables_of_hellinger_are_exact_with_one_column(rank):
    made = tables("hellinger", "fourier", rank=rank)
    assert made.rank == 1
    assert_allclose(made.gram()[1:, 1:], exact("hellinger"), rtol=1e-12)


@pytest.mark.parametrize("rank", [2, 4])
def test_fourier_tables_refuse_an_even_rank(rank):
    with pytest.raises(ValueError, match=f"rank={rank}.*odd"):
        tables("chi2", "fourier", rank=rank)


def test_fourier_tables_refuse_a_kernel_that_is_not_homogeneous():
    with pytest.raises(ValueError, match="needs a homogeneous kernel"):
        tables("linear", "fourier", rank=3)
