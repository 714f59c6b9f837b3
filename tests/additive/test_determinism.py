"""The same bits whatever n_jobs and the clock, and the same model in every arithmetic."""

import numpy as np
import pytest
import scipy.sparse as sp
from reference import timeless

from widemargin import AdditiveSVC, _core
from widemargin.additive import batches, problem
from widemargin.additive.solver import ActiveSamples

from .problems import LOSSES, MULTI_CLASS, histograms, noisy, unconverged


@pytest.mark.parametrize("n_jobs", [2, 3, 4])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("multi_class", MULTI_CLASS)
def test_results_are_bit_identical_whatever_n_jobs(multi_class, loss, n_jobs):
    X, y = noisy(40)
    many_rows = np.tile(X, (50, 1))  # prediction is cut into tasks of 8,192 rows
    settings = {"multi_class": multi_class, "loss": loss, "C": 0.1, "random_state": 0}
    one = AdditiveSVC("chi2", n_jobs=1, **settings).fit(X, y)
    more = AdditiveSVC("chi2", n_jobs=n_jobs, **settings).fit(X, y)
    np.testing.assert_array_equal(
        more.decision_function(many_rows), one.decision_function(many_rows)
    )
    assert more.objective_ == one.objective_
    assert more.n_iter_ == one.n_iter_


@pytest.mark.parametrize("multi_class", MULTI_CLASS)
def test_the_same_seed_gives_the_same_bits(multi_class):
    X, y = noisy(5)
    models = [
        AdditiveSVC(multi_class=multi_class, C=0.1, random_state=7).fit(X, y) for _ in range(2)
    ]
    np.testing.assert_array_equal(models[0].decision_function(X), models[1].decision_function(X))


def test_the_seed_decides_the_order_of_the_sweeps():
    X, y = noisy(5)
    one, other = (
        AdditiveSVC(tol=1e-3, random_state=seed).fit(X, y).decision_function(X) for seed in (0, 1)
    )
    assert not np.array_equal(one, other)
    np.testing.assert_allclose(one, other, atol=0.1)


def cut_into_slices(monkeypatch, seconds, X, y, **changes):
    monkeypatch.setattr(problem, "SLICE_SECONDS", seconds)
    return AdditiveSVC("chi2", random_state=0, max_iter=3, **changes).fit(X, y)


SETTINGS = [
    {},
    {"tol": 1e-6},
    {"approximation": "unary"},
    {"multi_class": "crammer_singer", "rank": 4},
]


@pytest.mark.parametrize("changes", SETTINGS)
@pytest.mark.parametrize("n_classes", [2, 3])
@unconverged
def test_solution_does_not_depend_on_where_the_clock_cuts_a_sweep(monkeypatch, n_classes, changes):
    X, y = noisy(n_classes, n_rows=9000, n_features=64)  # the clock is read every 3,277 rows
    whole = cut_into_slices(monkeypatch, 1e9, X, y, **changes)
    sliced = cut_into_slices(monkeypatch, 0.0, X, y, **changes)
    np.testing.assert_array_equal(sliced.decision_function(X), whole.decision_function(X))


@unconverged
def test_certificate_does_not_depend_on_where_the_clock_cuts_a_pass(monkeypatch):
    X, y = noisy(3, n_rows=9000, n_features=64)
    whole = cut_into_slices(monkeypatch, 1e9, X, y)
    sliced = cut_into_slices(monkeypatch, 0.0, X, y)
    assert timeless(sliced.history_) == timeless(whole.history_)
    assert sliced.duality_gap_ == whole.duality_gap_


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("changes", SETTINGS)
@pytest.mark.parametrize("n_classes", [2, 3])
@unconverged
def test_instruction_sets_agree_within_rounding(use_instruction_set, n_classes, changes, layout):
    X, y = noisy(n_classes)
    results = []
    for name in _core.instruction_sets():
        use_instruction_set(name)
        model = AdditiveSVC("chi2", random_state=0, max_iter=10, **changes).fit(layout(X), y)
        results.append(model.decision_function(layout(X)))
    rounding = 1e-10 if "tol" in changes else 1e-4
    for other in results[1:]:
        np.testing.assert_allclose(other, results[0], atol=rounding)


def test_an_unknown_instruction_set_is_refused():
    with pytest.raises(ValueError, match="no instruction set called 'z80'"):
        _core.use_instruction_set("z80")


def assert_precisions_agree(monkeypatch, n_classes, **changes):
    """The same sweeps in single and in double precision end at nearly the same model."""
    X, y = histograms(n_classes)
    model = AdditiveSVC("chi2", tol=1e-30, max_iter=8, random_state=0, **changes)
    # Who is visited again hangs on the last bit: a step of 0 in one precision is one in the other.
    monkeypatch.setattr(ActiveSamples, "visit_again", lambda *_: 0)
    decisions = []
    for limit, precision in ((0.0, np.float32), (1.0, np.float64)):
        monkeypatch.setattr(batches, "FLOAT32_TOL", limit)
        assert model.fit(X, y).model_.weights.dtype == precision
        decisions.append(model.decision_function(X))
    np.testing.assert_allclose(*decisions, atol=1e-3)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("approximation", ["spectral", "unary", "fourier"])
@unconverged
def test_single_precision_agrees_with_double(monkeypatch, n_classes, loss, approximation):
    changes = {"loss": loss, "approximation": approximation}
    assert_precisions_agree(monkeypatch, n_classes, **changes)


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("multi_class", MULTI_CLASS)
@unconverged
def test_single_precision_agrees_with_double_at_every_rank(monkeypatch, multi_class, rank):
    assert_precisions_agree(monkeypatch, 5, multi_class=multi_class, loss="hinge", rank=rank)


@pytest.mark.parametrize(("tol", "precision"), [(1e-4, np.float32), (9.9e-5, np.float64)])
def test_a_tolerance_below_1e_4_is_certified_in_double_precision(tol, precision):
    model = AdditiveSVC(tol=tol, random_state=0).fit(*histograms(3))
    assert model.model_.weights.dtype == precision
