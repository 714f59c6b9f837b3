"""The solver against independent references (`reference.py`), LIBLINEAR, and itself."""

import warnings
from functools import lru_cache

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from widemargin import AdditiveSVC, _core
from widemargin.additive import estimator, solver
from widemargin.duality import GAP, LOSS, N_SUMS, PG_MAX, PG_MIN, QUADRATIC, Certificate

LOSSES = ["hinge", "squared_hinge"]
MULTI_CLASS = ["ovr", "crammer_singer"]
# warm_start keeps the dual variables, from which references recompute what the solver reports.
TIGHT = {"tol": 1e-11, "max_iter": 100_000, "random_state": 0, "warm_start": True}

unconverged = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def histograms(n_classes, n_rows=60, n_features=6, seed=0):
    """Small counts around a centre per class, with enough noise that no class is separable."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_rows) % n_classes
    centre = rng.integers(1, 9, (n_classes, n_features))
    X = centre[y] + rng.integers(-4, 5, (n_rows, n_features))
    return np.clip(X, 0, 9).astype(np.float64), y


def svc(kernel="chi2", **changes):
    return AdditiveSVC(kernel, **{**TIGHT, **changes})


def c_of(model, n_rows):
    return np.full(n_rows, model.C_)


def squared(model):
    return model.loss == "squared_hinge"


def exact(model, X, y):
    """The optimum of a fitted model's own problem, on its own tables."""
    K, c = reference.gram(model, X), c_of(model, len(X))
    if model.multi_class == "crammer_singer":
        return reference.crammer_singer(K, y, c, squared(model))
    return reference.one_vs_rest(K, reference.signs(y), c, squared(model))


@lru_cache
def optimum(model_key, n_classes):
    """A tightly fitted one-vs-rest model, its data and the exact optimum."""
    X, y = histograms(n_classes, n_rows=100 if n_classes > 16 else 60)
    model = svc(**dict(model_key)).fit(X, y)
    return model, X, y, exact(model, X, y)


each_problem = pytest.mark.parametrize(
    ("model_key", "n_classes"),
    [
        pytest.param(
            (("loss", loss), ("fit_intercept", intercept), ("approximation", tables)),
            n_classes,
            id=f"{loss}-{tables}-{n_classes} classes{'' if intercept else '-no intercept'}",
        )
        for loss in LOSSES
        for intercept in (True, False)
        for tables in ("spectral", "unary")
        for n_classes in (2, 3, 20)  # one lane; one batch of lanes; two batches
    ],
)


# ------------------------------------------------------------------ against the exact optimum


@each_problem
def test_objective_is_that_of_the_quadratic_program(model_key, n_classes):
    model, _, _, best = optimum(model_key, n_classes)
    assert model.objective_ == pytest.approx(best.objective, rel=1e-8)


@each_problem
def test_dual_objective_is_that_of_the_quadratic_program(model_key, n_classes):
    model, _, _, best = optimum(model_key, n_classes)
    dual = sum(batch[-1]["dual"] for batch in model.history_)
    assert dual == pytest.approx(best.objective, rel=1e-8)


@each_problem
def test_decision_values_are_those_of_the_reference_expansion(model_key, n_classes):
    model, X, _, best = optimum(model_key, n_classes)
    Z = histograms(n_classes, seed=1)[0]
    expansion = reference.gram(model, Z, X) @ best.coef
    decision = model.decision_function(Z).reshape(len(Z), -1)
    np.testing.assert_allclose(decision, expansion, atol=1e-4)


@each_problem
def test_decision_values_are_the_expansion_of_the_models_own_dual_variables(model_key, n_classes):
    model, X, y, _ = optimum(model_key, n_classes)
    coef = model._dual.alpha * reference.signs(y)
    decision = model.decision_function(X).reshape(len(X), -1)
    np.testing.assert_allclose(decision, reference.gram(model, X) @ coef, atol=1e-10)


def test_unary_tables_are_the_exact_kernel_of_the_bin_representatives():
    X, y = histograms(2)
    model = svc(approximation="unary", fit_intercept=False).fit(X, y)
    t = model.model_.encoder.representatives[reference.codes_of(model, X)]
    K = model._tables.kernel.matrix(t)
    np.testing.assert_allclose(reference.gram(model, X), K, rtol=1e-14)


def rare_counts(n_classes):
    """Mostly zeros: dense input with so few values is compressed."""
    X, y = histograms(n_classes)
    return X * (np.random.default_rng(2).random(X.shape) < 0.3), y


def many_values(n_classes):
    """More distinct values than one byte can count."""
    X, y = histograms(n_classes)
    return X + np.random.default_rng(2).random(X.shape), y


@pytest.mark.parametrize(
    ("n_classes", "data", "layout", "code_type"),
    [
        (2, histograms, sp.csr_array, np.uint8),
        (3, histograms, sp.csr_array, np.uint8),
        (2, rare_counts, np.asarray, np.uint8),
        (3, rare_counts, np.asarray, np.uint8),
        (2, many_values, np.asarray, np.uint16),
        (3, many_values, np.asarray, np.uint16),
        (3, many_values, sp.csr_array, np.uint16),
    ],
)
def test_every_layout_of_codes_reaches_the_optimum(n_classes, data, layout, code_type):
    X, y = data(n_classes)
    model = svc(binning="exact", rank=5).fit(layout(X), y)
    assert reference.codes_of(model, X).dtype == code_type
    assert model.objective_ == pytest.approx(exact(model, X, y).objective, rel=1e-8)


def test_c_is_measured_per_unit_of_the_mean_kernel_diagonal():
    X, y = histograms(2)
    model = svc(C=3.0, fit_intercept=False).fit(X, y)
    mean = np.diag(reference.gram(model, X)).mean()
    np.testing.assert_allclose(model.C_, 3.0 / mean, rtol=1e-12)


def test_raw_c_is_taken_as_it_is():
    assert svc(C=0.01, C_unit="raw").fit(*histograms(2)).C_ == 0.01


def test_sample_weights_are_upper_weights_of_the_reference_problem():
    X, y = histograms(3)
    weight = np.random.default_rng(0).uniform(0.2, 3.0, len(X))
    model = svc(loss="hinge").fit(X, y, sample_weight=weight)
    K, c = reference.gram(model, X), model.C_ * weight
    best = reference.one_vs_rest(K, reference.signs(y), c, squared=False)
    assert model.objective_ == pytest.approx(best.objective, rel=1e-8)


# ------------------------------------------------------------------ Crammer-Singer


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("approximation", ["spectral", "unary"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", LOSSES)
def test_crammer_singer_objective_is_that_of_a_general_solver(
    loss, n_classes, approximation, fit_intercept
):
    X, y = histograms(n_classes, n_rows=21)
    changes = {"approximation": approximation, "fit_intercept": fit_intercept}
    model = svc(loss=loss, multi_class="crammer_singer", **changes).fit(X, y)
    best = exact(model, X, y)
    expansion = reference.gram(model, X) @ best.coef
    assert model.objective_ == pytest.approx(best.objective, rel=1e-8)
    np.testing.assert_allclose(_scores(model, X), _centred(expansion), atol=1e-4)


def _scores(model, X):
    """Decision values up to a constant per row; for two classes only their difference is known."""
    scores = model.decision_function(X)
    return _centred(scores if scores.ndim == 2 else np.stack([-scores, scores], axis=1) / 2)


def _centred(scores):
    return scores - scores.mean(axis=1, keepdims=True)


@pytest.mark.parametrize("loss", LOSSES)
def test_crammer_singer_with_more_classes_than_lanes_is_optimal_by_weak_duality(loss):
    X, y = histograms(18, n_rows=72)
    model = svc(loss=loss, multi_class="crammer_singer", tol=1e-9).fit(X, y)
    problem = reference.gram(model, X), model._dual.alpha, y, c_of(model, len(X)), squared(model)
    reference.assert_crammer_singer_feasible(*problem[1:])
    primal = reference.crammer_singer_primal(*problem)
    assert reference.crammer_singer_dual(*problem) == pytest.approx(primal, rel=1e-8)
    assert model.objective_ == pytest.approx(primal, rel=1e-10)


# ------------------------------------------------------------------ the certificate


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("n_classes", "multi_class"), [(2, "ovr"), (3, "ovr"), (3, "crammer_singer")]
)
def test_gap_is_never_below_the_true_suboptimality(n_classes, multi_class, loss):
    X, y = histograms(n_classes, n_rows=21)
    model = svc(loss=loss, multi_class=multi_class, warm_start=False)
    best = exact(model.fit(X, y), X, y).objective
    for tol in (0.5, 0.1, 1e-2, 1e-3, 1e-5):
        model.set_params(tol=tol).fit(X, y)
        above = model.objective_ - best
        assert -1e-6 * best <= above <= model.duality_gap_ * model.objective_ + 1e-6 * best
        assert model.duality_gap_ <= tol


@pytest.mark.parametrize("n_sweeps", [1, 3, 30])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 3, 20])
@unconverged
def test_gap_is_the_one_recomputed_from_the_dual_variables(n_classes, loss, n_sweeps):
    X, y = histograms(n_classes)
    model = svc(loss=loss, max_iter=n_sweeps).fit(X, y)
    K, sign, c = reference.gram(model, X), reference.signs(y), c_of(model, len(X))
    coef = model._dual.alpha * sign
    primal = reference.primal(K, coef, sign, c, squared(model))
    gap = primal - reference.dual(K, coef, c, squared(model))
    assert model.objective_ == pytest.approx(primal.sum(), rel=1e-10)
    assert model.duality_gap_ == pytest.approx((gap / primal).max(), abs=1e-12, rel=1e-8)


@pytest.mark.parametrize("n_sweeps", [1, 3, 30])
@pytest.mark.parametrize("loss", LOSSES)
@unconverged
def test_crammer_singer_gap_is_the_one_recomputed_from_the_dual_variables(loss, n_sweeps):
    X, y = histograms(3)
    model = svc(loss=loss, max_iter=n_sweeps, multi_class="crammer_singer").fit(X, y)
    problem = reference.gram(model, X), model._dual.alpha, y, c_of(model, len(X)), squared(model)
    reference.assert_crammer_singer_feasible(*problem[1:])
    primal = reference.crammer_singer_primal(*problem)
    gap = 1 - reference.crammer_singer_dual(*problem) / primal
    assert model.objective_ == pytest.approx(primal, rel=1e-10)
    assert model.duality_gap_ == pytest.approx(gap, abs=1e-12, rel=1e-8)


@pytest.mark.parametrize("multi_class", MULTI_CLASS)
@pytest.mark.parametrize("loss", LOSSES)
@unconverged
def test_dual_objective_never_falls_from_sweep_to_sweep(loss, multi_class):
    X, y = histograms(3)
    duals = []
    for n_sweeps in range(1, 13):
        model = svc(loss=loss, multi_class=multi_class, max_iter=n_sweeps).fit(X, y)
        duals.append(model.history_[0][-1]["dual"])
    assert np.all(np.diff(duals) > -1e-12 * duals[-1])
    assert duals[-1] > duals[0]


@pytest.mark.parametrize("n_sweeps", [1, 3, 30])
@pytest.mark.parametrize("loss", LOSSES)
@unconverged
def test_violation_is_the_spread_of_the_projected_gradient(loss, n_sweeps):
    X, y = histograms(2)
    model = svc(loss=loss, max_iter=n_sweeps).fit(X, y)
    K, sign, c = reference.gram(model, X), reference.signs(y), c_of(model, len(X))
    pg = reference.projected_gradient(K, model._dual.alpha * sign, sign, c, squared(model))
    spread = max(pg.max(), 0) - min(pg.min(), 0)
    assert model.violation_ == pytest.approx(spread, abs=1e-12, rel=1e-8)


@pytest.mark.parametrize(
    ("pg_max", "pg_min", "violation"),
    [(0.05, -0.08, 0.13), (0.3, 0.25, 0.3), (-0.25, -0.3, 0.3), (0.0, 0.0, 0.0)],
)
def test_liblinear_rule_has_three_parts(pg_max, pg_min, violation):
    account = np.zeros((N_SUMS, 16))
    account[PG_MAX], account[PG_MIN] = pg_max, pg_min
    assert Certificate.from_account(account, 1).violation == pytest.approx(violation)


def test_certificate_reads_only_the_lanes_that_hold_a_problem():
    account = np.full((N_SUMS, 16), np.nan)
    account[:, :2] = 0
    account[LOSS, :2], account[QUADRATIC, :2], account[GAP, :2] = [3, 5], [4, 2], [1, 3]
    certificate = Certificate.from_account(account, 2)
    np.testing.assert_array_equal(certificate.primal, [5, 6])
    np.testing.assert_array_equal(certificate.dual, [4, 3])
    np.testing.assert_array_equal(certificate.relative_gap, [0.2, 0.5])


@pytest.mark.parametrize("approximation", ["chebyshev", "chebyshev_linear", "pmsvm"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_tables_without_symmetry_stop_on_the_violation_and_claim_no_gap(approximation, n_classes):
    X, y = histograms(n_classes)
    model = svc(approximation=approximation, C=0.1, tol=0.01).fit(X, y)
    assert np.isnan(model.duality_gap_)
    assert np.isnan(model.objective_)
    assert 0 < model.violation_ <= 0.01


def test_convergence_warning_gives_the_gap_and_advice():
    advice = r"relative duality gap of 0\.\d+, above tol=1e-11\. Increase max_iter, decrease C"
    with pytest.warns(ConvergenceWarning, match=advice):
        svc(max_iter=2).fit(*histograms(3))


def test_convergence_warning_of_tables_without_symmetry_gives_the_violation():
    with pytest.warns(ConvergenceWarning, match=r"projected gradient violation of .*max_iter"):
        svc(approximation="chebyshev", max_iter=2).fit(*histograms(3))


# ------------------------------------------------------------------ LIBLINEAR


@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 3, 20])
def test_linear_kernel_has_liblinears_objective(n_classes, loss, C):
    X, y = histograms(n_classes)
    peer = LinearSVC(
        C=C, loss=loss, dual=True, tol=1e-8, fit_intercept=False, max_iter=1_000_000, random_state=0
    ).fit(X / 9, y)
    margin = reference.signs(y) * peer.decision_function(X / 9).reshape(len(X), -1)
    slack = np.maximum(1 - margin, 0)
    losses = slack.sum() if loss == "hinge" else (slack**2).sum()
    ours = svc("linear", C=C, C_unit="raw", loss=loss, scaling="global", fit_intercept=False)
    objective = ours.fit(X, y).objective_
    assert objective == pytest.approx((peer.coef_**2).sum() / 2 + C * losses, rel=1e-6)
    np.testing.assert_allclose(ours.decision_function(X), peer.decision_function(X / 9), atol=1e-3)


def test_linear_kernel_has_liblinears_crammer_singer_solution():
    X, y = histograms(3)
    peer = LinearSVC(
        C=0.5, multi_class="crammer_singer", tol=1e-8, fit_intercept=False, max_iter=1_000_000
    ).fit(X / 9, y)
    ours = svc("linear", C=0.5, C_unit="raw", loss="hinge", multi_class="crammer_singer")
    ours.set_params(scaling="global", fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), peer.decision_function(X / 9), atol=1e-3)


# ------------------------------------------------------------------ invariances

counts = st.integers(0, 8)


@st.composite
def problems(draw):
    """A few rows of counts and two or three classes, each of which occurs."""
    n_rows, n_features = draw(st.integers(6, 14)), draw(st.integers(1, 4))
    row = st.lists(counts, min_size=n_features, max_size=n_features)
    X = draw(st.lists(row, min_size=n_rows, max_size=n_rows))
    n_classes = draw(st.integers(2, 3))
    labels = st.lists(
        st.integers(0, n_classes - 1), min_size=n_rows - n_classes, max_size=n_rows - n_classes
    )
    return np.array(X, dtype=np.float64), np.array([*range(n_classes), *draw(labels)])


def invariance(test):
    few = settings(max_examples=20)
    return unconverged(few(given(problem=problems(), data=st.data())(test)))


def decide(X, y, at, sample_weight=None, **changes):
    model = svc(tol=1e-14, max_iter=3000, **changes).fit(X, y, sample_weight=sample_weight)
    return model.decision_function(at)


def assert_same(one, other):
    np.testing.assert_allclose(one, other, atol=1e-5)


@invariance
def test_order_of_rows_does_not_matter(problem, data):
    X, y = problem
    order = data.draw(st.permutations(range(len(X))))
    assert_same(decide(X[order], y[order], X), decide(X, y, X))


@invariance
def test_order_of_features_does_not_matter(problem, data):
    X, y = problem
    order = data.draw(st.permutations(range(X.shape[1])))
    assert_same(decide(X[:, order], y, X[:, order]), decide(X, y, X))


@invariance
def test_whole_weights_are_copies_and_weight_zero_is_absence(problem, data):
    X, y = problem
    weight = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(X), max_size=len(X))))
    weight[: y.max() + 1] = np.maximum(weight[: y.max() + 1], 1)  # the first rows: one per class
    copies = np.repeat(np.arange(len(X)), weight)
    assert_same(decide(X, y, X, sample_weight=weight), decide(X[copies], y[copies], X))


@invariance
def test_names_of_labels_do_not_matter(problem, data):
    X, y = problem
    names = np.array(sorted(data.draw(st.sets(st.text("abc", min_size=1), min_size=3, max_size=3))))
    assert_same(decide(X, names[y], X), decide(X, y, X))


@invariance
def test_reversed_labels_reverse_the_columns(problem, data):
    X, y = problem
    loss = data.draw(st.sampled_from(LOSSES))
    reverse = decide(X, -y, X, loss=loss, C=0.1)
    reverse = -reverse if reverse.ndim == 1 else reverse[:, ::-1]
    assert_same(reverse, decide(X, y, X, loss=loss, C=0.1))


@invariance
def test_sparse_and_dense_data_give_the_same_model(problem, data):
    X, y = problem
    layout = data.draw(st.sampled_from([sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix]))
    changes = {"approximation": data.draw(st.sampled_from(["spectral", "unary", "fourier"]))}
    assert_same(decide(layout(X), y, layout(X), **changes), decide(X, y, X, **changes))


# ------------------------------------------------------------------ determinism


def noisy(n_classes, n_rows=400, n_features=16):
    rng = np.random.default_rng(3)
    return rng.integers(0, 9, (n_rows, n_features)), rng.integers(0, n_classes, n_rows)


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_results_are_bit_identical_whatever_n_jobs(n_jobs):
    X, y = noisy(40)
    many_rows = np.tile(X, (50, 1))  # prediction is cut into tasks of 8,192 rows
    one = AdditiveSVC("chi2", random_state=0, n_jobs=1).fit(X, y)
    more = AdditiveSVC("chi2", random_state=0, n_jobs=n_jobs).fit(X, y)
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
    one, other = (AdditiveSVC(random_state=seed).fit(X, y).decision_function(X) for seed in (0, 1))
    assert not np.array_equal(one, other)
    np.testing.assert_allclose(one, other, atol=0.1)


def cut_into_slices(monkeypatch, seconds, X, y, **changes):
    monkeypatch.setattr(solver, "SLICE_SECONDS", seconds)
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
    assert sliced.history_ == whole.history_
    assert sliced.duality_gap_ == whole.duality_gap_


@pytest.fixture
def use_instruction_set():
    default = _core.instruction_set()
    yield _core.use_instruction_set
    _core.use_instruction_set(default)


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
    decisions = []
    for limit, precision in ((0.0, np.float32), (1.0, np.float64)):
        monkeypatch.setattr(estimator, "FLOAT32_TOL", limit)
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


# ------------------------------------------------------------------ shrinking and warm starts


@pytest.mark.parametrize("multi_class", MULTI_CLASS)
@pytest.mark.parametrize("loss", LOSSES)
def test_shrinking_does_not_change_the_optimum(monkeypatch, loss, multi_class):
    X, y = histograms(3, n_rows=150)
    model = svc(loss=loss, multi_class=multi_class, C=3.0, tol=1e-9)
    shrunk = model.fit(X, y).objective_, model.decision_function(X)
    assert min(sweep["active"] for sweep in model.history_[0]) < len(X)

    monkeypatch.setattr(solver, "_shrink_bounds", lambda _, lanes: solver._no_shrinking(lanes))
    del model._dual
    full = model.fit(X, y).objective_, model.decision_function(X)
    assert min(sweep["active"] for sweep in model.history_[0]) == len(X)
    assert shrunk[0] == pytest.approx(full[0], rel=1e-8)
    np.testing.assert_allclose(shrunk[1], full[1], atol=1e-3)


PATH = [0.0625, 0.125, 0.25, 0.5, 1.0, 2.0]
each_machine = pytest.mark.parametrize(
    ("n_classes", "multi_class"), [(2, "ovr"), (3, "ovr"), (20, "ovr"), (3, "crammer_singer")]
)


@each_machine
@pytest.mark.parametrize("loss", LOSSES)
def test_warm_start_at_the_optimum_ends_at_once_with_the_same_model(loss, n_classes, multi_class):
    X, y = histograms(n_classes)
    model = svc(loss=loss, multi_class=multi_class, tol=1e-8).fit(X, y)
    cold, decision = model.n_iter_, model.decision_function(X)
    model.fit(X, y)
    assert model.n_iter_ <= 3 < cold
    np.testing.assert_allclose(model.decision_function(X), decision, atol=1e-3)


@each_machine
@pytest.mark.parametrize("loss", LOSSES)
def test_warm_start_from_a_larger_c_reaches_the_optimum_of_the_smaller(
    loss, n_classes, multi_class
):
    X, y = histograms(n_classes)
    changes = {"loss": loss, "multi_class": multi_class}
    warm = svc(C=1.0, **changes).fit(X, y).set_params(C=0.1).fit(X, y)
    cold = svc(C=0.1, **changes).fit(X, y)
    assert warm.objective_ == pytest.approx(cold.objective_, rel=1e-9)
    np.testing.assert_allclose(warm.decision_function(X), cold.decision_function(X), atol=1e-4)


def test_warm_start_does_not_carry_over_to_another_multi_class_method():
    X, y = histograms(3)
    model = svc().fit(X, y).set_params(multi_class="crammer_singer")
    with pytest.warns(UserWarning, match="multi_class did: starting afresh"):
        model.fit(X, y)
    cold = svc(multi_class="crammer_singer").fit(X, y)
    assert model.objective_ == pytest.approx(cold.objective_, rel=1e-6)


def test_a_diverging_fit_says_so():
    X, y = load_digits(return_X_y=True)
    model = AdditiveSVC(
        lambda x, y: -np.abs(x - y), approximation="chebyshev", scaling="global", random_state=0
    )
    with (
        pytest.warns(UserWarning, match="not positive semi-definite"),
        pytest.warns(ConvergenceWarning, match="diverged"),
    ):
        model.fit(X[:300], y[:300])


@pytest.mark.parametrize("C", [1e-50, 1e-30, 1e30])
def test_extreme_values_of_c_are_solved_in_double_precision(C):
    X, y = histograms(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = AdditiveSVC("chi2", C=C, max_iter=50, random_state=0).fit(X, y)
    assert np.isfinite(model.duality_gap_)
    assert np.all(np.isfinite(model.decision_function(X)))


def test_shrunk_samples_come_back():
    """A large C, where the first guess of who rests at a bound is often wrong."""
    X, y = load_digits(return_X_y=True)
    model = AdditiveSVC("chi2", C=1e5, max_iter=3000, random_state=0).fit(X[:600], y[:600])
    assert model.duality_gap_ <= 1e-3


def test_warm_start_on_other_rows_says_that_it_starts_afresh():
    X, y = histograms(3)
    model = svc().fit(X, y)
    with pytest.warns(UserWarning, match="rows or classes changed.*starting afresh"):
        model.fit(X[:-1], y[:-1])
    fresh = svc().fit(X[:-1], y[:-1])
    np.testing.assert_array_equal(model.decision_function(X), fresh.decision_function(X))


def test_dual_variables_are_kept_only_for_a_warm_start():
    X, y = histograms(2)
    assert not hasattr(svc(warm_start=False).fit(X, y), "_dual")


@each_machine
@pytest.mark.parametrize("loss", LOSSES)
def test_path_over_c_equals_separate_fits(loss, n_classes, multi_class):
    X, y = histograms(n_classes)
    model = svc(loss=loss, multi_class=multi_class, tol=1e-9, warm_start=False)
    for C, along in zip(PATH, model.fit_path(X, y, PATH), strict=True):
        alone = model.set_params(C=C).fit(X, y)
        assert along.C == C
        assert along.objective_ == pytest.approx(alone.objective_, rel=1e-8)
        np.testing.assert_allclose(
            along.decision_function(X), alone.decision_function(X), atol=1e-3
        )


@pytest.mark.parametrize("multi_class", MULTI_CLASS)
def test_path_over_c_needs_fewer_sweeps_than_separate_fits(multi_class):
    X, y = (part[:500] for part in load_digits(return_X_y=True))
    model = AdditiveSVC("chi2", multi_class=multi_class, random_state=0)
    along = sum(m.n_iter_ for m in model.fit_path(X, y, PATH))
    alone = sum(model.set_params(C=C).fit(X, y).n_iter_ for C in PATH)
    assert along < alone


def test_path_takes_sample_weights():
    X, y = histograms(3)
    weight = np.arange(len(X)) % 3
    (along,) = svc().fit_path(X, y, [0.5], sample_weight=weight)
    alone = svc(C=0.5).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(along.decision_function(X), alone.decision_function(X))


def test_path_leaves_the_estimator_itself_unfitted():
    model = svc()
    model.fit_path(*histograms(2), [0.1, 1.0])
    assert not hasattr(model, "classes_")


# ------------------------------------------------------------------ hard data


def with_empty_rows(n_classes):
    X, y = histograms(n_classes)
    X[::4] = 0
    return X, y


def contradictory(n_classes):
    X, y = histograms(n_classes)
    return np.vstack([X, X]), np.concatenate([y, (y + 1) % n_classes])


def nothing_but_zeros(n_classes):
    X, y = histograms(n_classes)
    return 0 * X, y


@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("n_classes", "multi_class"), [(2, "ovr"), (3, "ovr"), (3, "crammer_singer")]
)
@pytest.mark.parametrize("data", [with_empty_rows, contradictory, nothing_but_zeros])
def test_hard_data_ends_with_a_gap_or_a_warning(
    data, n_classes, multi_class, loss, fit_intercept, C
):
    X, y = data(n_classes)
    model = AdditiveSVC("chi2", C=C, loss=loss, multi_class=multi_class, random_state=0)
    model.set_params(fit_intercept=fit_intercept, max_iter=200)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert {w.category for w in caught} <= {ConvergenceWarning}
    assert bool(caught) == (model.duality_gap_ > model.tol)
    assert np.isfinite([model.duality_gap_, model.objective_, model.violation_]).all()
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_an_empty_row_gets_the_intercept_alone(loss):
    X, y = with_empty_rows(2)
    model = svc(loss=loss).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X[:1]), model.intercept_, rtol=1e-14)


def test_copies_with_opposite_labels_cancel():
    X, y = histograms(2)
    model = svc(loss="squared_hinge").fit(np.vstack([X, X]), np.concatenate([y, 1 - y]))
    np.testing.assert_allclose(model.decision_function(X), 0, atol=1e-5)
