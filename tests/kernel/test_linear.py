"""kernel="linear", solved on the weights, against a QP solver and the same as a polynomial."""

import numpy as np
import pytest
import reference
from scipy import sparse as sp
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from kernel.helpers import each_instruction_set
from widemargin import KernelSVC, _core, export, load, save
from widemargin.kernel.linear import LinearProblem, LinearRows, solve_linear
from widemargin.kernel.problems import Variables

X, Y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
LAYOUTS = {
    "dense": lambda a: a,
    "single": lambda a: a.astype(np.float32).astype(np.float64).astype(np.float32),
    "sparse": sp.csr_array,
}

each_layout = pytest.mark.parametrize("layout", LAYOUTS)


def with_a_constant(data, **parameters):
    """The same on kernel values, to which a constant adds the penalised intercept."""
    rows = np.asarray(data.todense() if sp.issparse(data) else data, dtype=np.float64)
    K = rows @ rows.T
    constant = float(np.diag(K).mean())
    model = KernelSVC("precomputed", tol=1e-9, fit_intercept=False, **parameters)
    return model.fit(K + constant, Y), K + constant, constant


@each_layout
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("C", [0.01, 1.0, 300.0])
def test_the_optimum_is_that_on_kernel_values(layout, multi_class, C):
    data = LAYOUTS[layout](X)
    how = {"C": C, "multi_class": multi_class, "class_weight": {0: 2.0}}
    ours = KernelSVC("linear", tol=1e-9, **how).fit(data, Y)
    other, K, constant = with_a_constant(data, **how)
    assert ours.duality_gap_ <= 1e-9
    assert ours.objective_ == pytest.approx(other.objective_, rel=1e-7)
    assert ours.dual_objective_ == pytest.approx(other.dual_objective_, rel=1e-7)
    np.testing.assert_allclose(ours.decision_function(data), other.decision_function(K), atol=1e-4)
    intercept = constant * other.model_.coef.dense().sum(axis=0)
    np.testing.assert_allclose(ours.model_.intercept, intercept, atol=1e-4)


@each_instruction_set
@pytest.mark.parametrize("squared", [False, True])
def test_the_optimum_is_that_of_a_qp(squared, instructions):
    rng = np.random.default_rng(0)
    data, sign = rng.normal(size=(30, 5)), np.where(rng.random(30) < 0.5, 1.0, -1.0)
    c = rng.uniform(0.1, 2, size=30)
    upper, ridge = (np.full(30, np.inf), 0.5 / c) if squared else (c, np.zeros(30))
    variables = Variables(np.arange(30), sign, np.full(30, -1.0), upper)
    was = _core.instruction_set()
    _core.use_instruction_set(instructions)
    try:
        problem = LinearProblem(LinearRows(data, 0.7), variables, ridge)
        found = solve_linear(problem, np.zeros(30), 1e-10, 10**6, lambda gap: False)
    finally:
        _core.use_instruction_set(was)
    K = data @ data.T + 0.49
    expected = reference.one_vs_rest(K, sign[:, None], c, squared).objective
    assert found.dual == pytest.approx(expected, rel=1e-8)
    assert found.primal == pytest.approx(expected, rel=1e-8)
    w = np.append(data, np.full((30, 1), 0.7), axis=1).T @ (sign * found.alpha)
    np.testing.assert_allclose(found.weights, w, atol=1e-10)


@each_layout
def test_decisions_are_made_of_the_weights(layout):
    data = LAYOUTS[layout](X)
    model = KernelSVC("linear", decision_function_shape="ovo").fit(data, Y)
    weights = model.coef_.toarray() if layout == "sparse" else model.coef_
    assert sp.issparse(model.coef_) == (layout == "sparse")
    assert weights.shape == (3, X.shape[1])
    expected = data @ weights.T + model.intercept_
    np.testing.assert_allclose(model.decision_function(data), expected, atol=1e-9)
    ends = np.append(0, np.cumsum(model.n_support_))
    dual = model.dual_coef_.toarray() if layout == "sparse" else model.dual_coef_
    rows = LAYOUTS[layout](X)[model.support_]
    own = [slice(ends[k], ends[k + 1]) for k in range(3)]
    pair = dual[1, own[0]] @ rows[own[0]] + dual[0, own[2]] @ rows[own[2]]  # classes 0 and 2
    np.testing.assert_allclose(weights[1], pair, atol=1e-6)


def test_weights_cannot_be_written():
    with pytest.raises(ValueError, match="read-only"):
        KernelSVC("linear").fit(X, Y).coef_[0, 0] = 1
    with pytest.raises(AttributeError, match="only available when using a linear kernel"):
        _ = KernelSVC().fit(X, Y).coef_
    with pytest.raises(AttributeError, match=r"take X\[model.support_\]"):
        _ = KernelSVC("linear").fit(X, Y).support_vectors_


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_threads_change_no_bit(n_jobs):
    one = KernelSVC("linear", n_jobs=1).fit(X, Y)
    many = KernelSVC("linear", n_jobs=n_jobs).fit(X, Y)
    np.testing.assert_array_equal(one.coef_, many.coef_)


@each_layout
def test_a_file_brings_it_back(layout, tmp_path):
    data = LAYOUTS[layout](X)
    model = KernelSVC("linear").fit(data, Y)
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(again.decision_function(data), model.decision_function(data))
    np.testing.assert_array_equal(again.support_, model.support_)
    one, other = again.dual_coef_, model.dual_coef_
    assert type(one) is type(other)


def test_what_libsvms_format_cannot_say(tmp_path):
    with pytest.raises(ValueError, match="keeps weights, but LIBSVM's format needs support"):
        export.export_libsvm(KernelSVC("linear").fit(X, Y), tmp_path / "m")


def test_a_path_starts_from_the_last(tmp_path):
    cold = KernelSVC("linear", tol=1e-8, C=1.1).fit(X, Y)
    _, warm = KernelSVC("linear", tol=1e-8).fit_path(X, Y, [1.0, 1.1])
    assert warm.duality_gap_ <= 1e-8
    assert warm.n_iter_.sum() < cold.n_iter_.sum()


def test_a_limit_of_sweeps_is_told():
    with pytest.warns(ConvergenceWarning, match="relative duality gap"):
        model = KernelSVC("linear", max_iter=2, C=100.0, tol=1e-8).fit(X, Y)
    assert np.all(model.n_iter_ <= 2)
    assert model.fit_status_ == 1


@pytest.mark.parametrize("wrong", [{"early": 1}, {"levels": 2}, {"checkpoint": "x"}])
def test_what_is_of_clusters_is_refused(wrong):
    with pytest.raises(ValueError, match="is of clusters, which kernel='linear' does not make"):
        KernelSVC("linear", **wrong).fit(X, Y)


def test_rows_and_variables_are_checked():
    with pytest.raises(ValueError, match="a feature is out of range"):
        _core.LinearRows(np.array([0, 1]), np.array([3], dtype=np.int32), np.ones(1), 3)
    rows = _core.LinearRows(None, None, np.ones((2, 3)), 3)
    good = [np.arange(2), np.ones((5, 2)), np.zeros(2), np.zeros(4), np.arange(2)]
    for at, bad in [
        (0, np.array([0, 2])),
        (1, np.zeros((5, 2))),
        (2, np.zeros(3)),
        (3, np.zeros(3)),
    ]:
        with pytest.raises(ValueError, match=r"row|diagonal|alpha|weights"):
            _core.LinearVariables(rows, 0.0, *[*good[:at], bad, *good[at + 1 :]])
    core = _core.LinearVariables(rows, 0.0, *good[:4], np.array([0, 7]))
    for call, message in [
        ((2, 0, 0, 1), "order"),
        ((3, 0, 0, 1), "n_active"),
        ((1, 0, 0, 0), "seed"),
    ]:
        with pytest.raises(ValueError, match=message):
            core.sweep(*call)


class Listener:
    """A callback that hears every task, and asks to stop at the third epoch of a problem."""

    def __init__(self):
        self.heard = []

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        self.heard.append(context.task_name)
        return self.heard.count("epoch") >= 3


def test_callbacks_hear_of_epochs_and_may_stop_a_fit():
    listener = Listener()
    model = KernelSVC("linear", C=100.0, tol=1e-12).set_callbacks(listener)
    with pytest.warns(ConvergenceWarning, match="It was told to stop"):
        model.fit(X[Y < 2], Y[Y < 2])
    assert listener.heard[:3] == ["epoch"] * 3
    assert "problem 0" in listener.heard
    assert not model.converged_


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-160])
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_values_whose_squares_are_zero_are_refused(scale, layout):
    """They predicted at chance."""
    data = LAYOUTS[layout](np.abs(X[:60]).clip(1) * scale)
    with pytest.raises(ValueError, match="squares of such values are 0 in double precision"):
        KernelSVC("linear").fit(data, Y[:60])
