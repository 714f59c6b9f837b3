"""Single precision where it decides: bounds on its errors, labels, and the nearest centre."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from widemargin import KernelSVC
from widemargin.kernel import model as kernel_model
from widemargin.kernel.backend import Host
from widemargin.kernel.coefficients import Coefficients
from widemargin.kernel.kernels import make_kernel
from widemargin.kernel.model import KernelModel
from widemargin.kernel.partition import kernel_kmeans, partition
from widemargin.kernel.precision import ROUNDING, in_single
from widemargin.multiclass import Coding

ONE = Host(1)
KERNELS = ["rbf", "poly", "sigmoid", "laplacian", "chi2"]
INNER = KERNELS[:3]


def data(n, d, *, sparse, seed, scale=1.0):
    rng = np.random.default_rng(seed)
    X = scale * rng.random((n, d)) * (rng.random((n, d)) < 0.2 if sparse else 1.0)
    return sp.csr_array(X) if sparse else X


# ------------------------------------------------------------------ bounds


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(INNER),
    sparse=st.booleans(),
    d=st.integers(1, 90),
    scale=st.sampled_from([1e-20, 1e-3, 1.0, 30.0, 1e4]),
    gamma=st.sampled_from([1e-3, 0.3, 8.0, 200.0]),
    degree=st.integers(0, 7),
    n_outputs=st.sampled_from([1, 2, 7]),
    seed=st.integers(0, 99),
)
def test_no_product_is_further_off_than_its_bound(
    name, sparse, d, scale, gamma, degree, n_outputs, seed
):
    X = data(60, d, sparse=sparse, seed=seed, scale=scale)
    rng = np.random.default_rng(seed)
    coef = Coefficients(rng.normal(size=(40, n_outputs)) * 10.0 ** rng.integers(-3, 4, (40, 1)))
    double = make_kernel(name, gamma, 0.5, degree, X, np.float64)
    single = in_single(double)
    product, error = ONE.bounded_product(single, single.prepare(X), single.prepare(X[20:]), coef)
    exact = ONE.product(double, double.prepare(X), double.prepare(X[20:]), coef)
    right = np.isfinite(product) & np.isfinite(exact)
    assert np.all(np.abs(product - exact)[right] <= error[right])
    assert not np.any(np.isfinite(error[~right]) & np.isfinite(exact[~right]))


@pytest.mark.parametrize("name", ["rbf", "poly"])
def test_no_bound_is_finite_where_rounding_decides_all(name):
    """Distances that are nothing but rounding, and powers that overflow."""
    rng = np.random.default_rng(0)
    X = 1e-9 * rng.normal(size=(40, 147)) if name == "rbf" else 1e5 * rng.normal(size=(40, 3))
    gamma = 1e26 if name == "rbf" else 1.0
    double = make_kernel(name, gamma, 0.0, 6, X, np.float64)
    single = in_single(double)
    rows, coef = single.prepare(X), Coefficients(np.ones((40, 1)))
    product, error = ONE.bounded_product(single, rows, rows, coef)
    exact = ONE.product(double, double.prepare(X), double.prepare(X), coef)
    assert np.all(~(error < np.abs(product - exact)))
    assert not np.any(Coding("ovo", 2).are_certain(product, error))


def test_the_bound_is_no_larger_than_it_has_to_be_by_orders_of_magnitude():
    """Or nearly every row would be computed in double precision."""
    X = data(2000, 54, sparse=True, seed=0)
    single = in_single(make_kernel("rbf", 8.0, 0.0, 3, X))
    rows = single.prepare(X)
    coef = Coefficients(np.random.default_rng(0).choice([-1.0, 1.0], (2000, 1)))
    product, error = ONE.bounded_product(single, rows, rows, coef)
    assert np.mean(np.abs(product) > error) > 0.98


def test_pairs_are_bounded_by_the_vectors_that_take_part():
    X = data(90, 5, sparse=False, seed=0)
    single = in_single(make_kernel("rbf", 1.0, 0.0, 3, X, np.float64))
    owner = np.repeat([0, 1, 2], 30)
    values = np.random.default_rng(0).normal(size=(90, 2))
    values[owner == 2] = 0.0  # what is left of the pair 0, 1 and halves of the others
    rows = single.prepare(X)
    error = ONE.bounded_product(single, rows, rows, Coefficients(values, owner))[1]
    alone = Coefficients(values[:30], owner[:30])
    first = ONE.bounded_product(single, rows, rows[:30], alone)[1]
    np.testing.assert_allclose(error[:, 1], first[:, 1], rtol=1e-12)  # classes 0 and 2
    assert np.all(error[:, 0] > error[:, 1])


# ------------------------------------------------------------------ classes of uncertain outputs


@settings(max_examples=200, deadline=None)
@given(
    multi_class=st.sampled_from(["ovo", "ovr", "crammer_singer"]),
    n_classes=st.integers(2, 6),
    rounded=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_a_certain_class_is_that_of_all_outputs_within_the_errors(
    multi_class, n_classes, rounded, seed
):
    rng, coding = np.random.default_rng(seed), Coding(multi_class, n_classes)
    outputs = rng.normal(size=(40, coding.n_outputs))
    if rounded:  # ties, which sums decide
        outputs = np.round(outputs, 1)
    error = rng.choice([0.0, 0.01, 0.1, 0.5]) * rng.random(outputs.shape)
    certain = coding.are_certain(outputs, error)
    label = coding.classes(coding.scores(outputs))
    for _ in range(30):
        moved = outputs + error * rng.choice([-1.0, 0.0, 1.0], outputs.shape)
        other = coding.classes(coding.scores(moved))
        assert_array_equal(other[certain], label[certain])


@pytest.mark.parametrize(("multi_class", "n_classes"), [("ovo", 2), ("ovo", 5), ("ovr", 5)])
def test_outputs_without_errors_are_certain_and_without_bounds_are_not(multi_class, n_classes):
    coding = Coding(multi_class, n_classes)
    outputs = np.random.default_rng(0).normal(size=(50, coding.n_outputs))
    for error, certain in ((0.0, True), (np.inf, False), (np.nan, False)):
        assert np.all(coding.are_certain(outputs, np.full_like(outputs, error)) == certain)


# ------------------------------------------------------------------ labels


def fitted(kernel, n_classes, dtype, *, sparse=False, **parameters):
    """Whose noisy classes have rows near every border, and coefficients that cancel."""
    X = data(400, 6, sparse=sparse, seed=1)
    y = np.random.default_rng(2).integers(0, n_classes, 400)
    if kernel in ("rbf", "laplacian", "chi2"):
        parameters = {"gamma": 20.0, **parameters}
    how = {"C": 100.0, "tol": 0.05, "random_state": 0, **parameters}
    model = KernelSVC(kernel, **how).fit(X, y)
    own = model.model_
    vectors = own.vectors.in_double() if dtype is np.float64 else own.vectors.in_single()
    model.model_ = replace(own, kernel=replace(own.kernel, dtype=dtype), vectors=vectors)
    return model


def of_double(model, X):
    """Labels by nothing but double precision, a row's cluster included."""
    numbers = model.model_.in_double().decision(X, ONE, model.coding_.scores)
    return model.classes_[model.coding_.classes(numbers)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("kernel", KERNELS)
def test_labels_are_those_of_double_precision(kernel, n_classes, dtype):
    model = fitted(kernel, n_classes, dtype)
    new = data(3000, 6, sparse=False, seed=3)
    found = model.predict(new)
    assert_array_equal(found, of_double(model, new))
    scores = model.decision_function(new)
    assert_array_equal(found, model.classes_[model.coding_.classes(scores)])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("parameters", "sparse"),
    [
        ({"multi_class": "ovr"}, False),
        ({"gamma": 0.01, "C": 1e6}, False),
        ({"gamma": 2000.0}, False),
        ({"early": 1, "tol": 1e-3}, False),
        ({"early": 1, "early_prediction": "sum"}, False),
        ({"early": 1, "clustering": "kernel_kmeans"}, True),
        ({"gamma": 3.0}, True),
    ],
    ids=str,
)
def test_labels_of_other_models_are_those_of_double_precision(parameters, sparse):
    for dtype in (np.float32, np.float64):
        model = fitted("rbf", 3, dtype, sparse=sparse, **parameters)
        new = data(1500, 6, sparse=sparse, seed=4)
        found = model.predict(new)
        assert_array_equal(found, of_double(model, new))
        assert_array_equal(model.predict(new[:5]), found[:5])


def borderline(margin):
    """Two vectors and rows whose decision values are about +- margin, an order of magnitude each
    side; in single precision most of their signs are chance."""
    rng = np.random.default_rng(0)
    vectors = np.array([[0.0, 0.0], [1.0, 0.0]])
    across = rng.normal(size=2000)
    rows = np.stack([0.5 + margin * rng.normal(size=2000), across], axis=1)
    kernel = make_kernel("rbf", 1.0, 0.0, 3, vectors, np.float64)
    coef = Coefficients(np.array([[-1.0], [1.0]]))
    return KernelModel(kernel, kernel.prepare(vectors), coef, np.zeros(1)), rows


@pytest.mark.parametrize("margin", [1e-9, 1e-7, 1e-5])
def test_rows_on_the_border_have_the_sign_that_double_precision_gives(margin):
    model, rows = borderline(margin)
    coding = Coding("ovo", 2)
    expected = model.decision(rows, ONE)[:, 0] > 0
    assert_array_equal(model.classes(rows, coding, ONE), expected)
    single = replace(model, kernel=in_single(model.kernel), vectors=model.vectors.in_single())
    lifted = single.in_double().decision(rows, ONE)[:, 0] > 0
    assert_array_equal(single.classes(rows, coding, ONE), lifted)
    if margin < 1e-6:
        assert np.any((single.decision(rows, ONE)[:, 0] > 0) != lifted)  # or it proves nothing


def test_labels_do_not_depend_on_threads_or_company(monkeypatch):
    model, rows = borderline(1e-7)
    coding = Coding("ovo", 2)
    expected = model.classes(rows, coding, ONE)
    assert_array_equal(model.classes(rows, coding, Host(3)), expected)
    monkeypatch.setattr(kernel_model, "_AT_ONCE", 130)
    assert_array_equal(model.classes(rows, coding, ONE), expected)
    alone = [model.classes(rows[i : i + 1], coding, ONE)[0] for i in range(40)]
    assert_array_equal(alone, expected[:40])


def test_only_rows_near_the_border_are_computed_again(monkeypatch):
    model, rows = borderline(1e-3)
    asked = []

    class Counting(Host):
        def product(self, kernel, a, b, coef):
            asked.append(len(a))
            return super().product(kernel, a, b, coef)

    model.classes(rows, Coding("ovo", 2), Counting(1))
    assert sum(asked) < len(rows) / 20


def test_rows_that_overflow_single_precision_are_decided_in_double():
    X = data(60, 3, sparse=False, seed=0)
    model = KernelSVC("poly", degree=1, coef0=0.0, gamma=1.0).fit(X, X[:, 0] > X[:, 1])
    assert model.model_.kernel.dtype is np.float32
    huge = 1e60 * X
    assert_array_equal(model.predict(huge), of_double(model, huge))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("C", [1.0, 1000.0])
def test_decision_values_are_as_accurate_as_promised(kernel, C):
    """Within a thousandth of the margin, whatever the coefficients."""
    X = data(400, 6, sparse=False, seed=1)
    y = np.random.default_rng(2).integers(0, 2, 400)
    gamma = 0.1 if kernel in ("poly", "sigmoid") else 5.0
    model = KernelSVC(kernel, gamma=gamma, C=C, tol=0.01, random_state=0).fit(X, y)
    new = data(2000, 6, sparse=False, seed=3)
    exact = model.model_.in_double().decision(new, ONE)[:, 0]
    assert np.abs(model.decision_function(new) - exact).max() <= ROUNDING


# ------------------------------------------------------------------ nearest centres


class DoubleOnly:
    """A router of which single precision knows no errors."""

    def __init__(self, router):
        self.router = router

    def scores(self, rows, centres, *, double):
        return self.router.scores(rows, centres, double=True) if double else None


def in_grid(n, d, step, seed):
    """Rows on a grid, many of which are as near to one centre as to another."""
    rng = np.random.default_rng(seed)
    return step * rng.integers(0, 5, (n, d)).astype(np.float32)


@settings(max_examples=40, deadline=None)
@given(
    name=st.sampled_from(KERNELS),
    clustering=st.sampled_from(["kmeans", "kernel_kmeans", "plain_kernel_kmeans"]),
    grid=st.booleans(),
    gamma=st.sampled_from([0.05, 2.0, 60.0]),
    k=st.integers(2, 20),
    seed=st.integers(0, 99),
)
def test_training_rows_have_the_label_that_the_last_router_gives_in_double_precision(
    name, clustering, grid, gamma, k, seed
):
    X = in_grid(700, 3, 0.25, seed) if grid else data(700, 3, sparse=False, seed=seed) ** 4
    kernel = make_kernel(name, gamma, 0.5, 3, X)
    rows = kernel.training_rows(X, np.arange(len(X)))
    how = (60, np.random.default_rng(seed), ONE, clustering)
    router, label = partition(kernel, rows, k, np.arange(len(X)), *how)
    assert_array_equal(router.assign(rows, ONE), label)
    assert_array_equal(ONE.nearest(DoubleOnly(router), rows).label, label)
    assert_array_equal(router.assign(rows[100:103], ONE), label[100:103])


def test_labels_of_clusters_do_not_depend_on_threads():
    X = data(5000, 4, sparse=False, seed=0) ** 4
    kernel = make_kernel("rbf", 30.0, 0.0, 3, X)
    rows = kernel.prepare(X)
    found = []
    for n_threads in (1, 2, 3):
        with Host(n_threads) as host:
            how = (100, np.random.default_rng(0), host, "kernel_kmeans")
            found.append(partition(kernel, rows, 16, np.arange(5000), *how)[1])
    assert_array_equal(found[1], found[0])
    assert_array_equal(found[2], found[0])


def test_rows_of_other_clusters_are_compared_with_new_centres_only():
    X = data(3000, 4, sparse=False, seed=0)
    kernel = make_kernel("rbf", 3.0, 0.0, 3, X)
    rows = kernel.prepare(X)
    router = kernel_kmeans(kernel, rows[:200], 8, np.random.default_rng(0), ONE)
    first = ONE.nearest(router, rows)
    split = router.split(np.array([2]), rows, first.label, np.random.default_rng(1), ONE)
    place = np.array([0, 1, -1, 2, 3, 4, 5, 6])
    known = replace(first, label=place[first.label])
    again = ONE.nearest(split, rows, known, 7)
    assert_array_equal(again.label, split.assign(rows, ONE))
    assert np.any(again.label[known.label >= 0] >= 7)  # some have moved to a new centre


def test_plain_centres_are_means_after_a_split_too():
    X = data(300, 4, sparse=False, seed=0)
    kernel = make_kernel("rbf", 30.0, 0.0, 3, X, np.float64)
    rows = kernel.prepare(X)
    for plain in (True, False):
        router = kernel_kmeans(kernel, rows, 5, np.random.default_rng(0), ONE, plain=plain)
        label = router.assign(rows, ONE)
        split = router.split(np.array([1]), rows, label, np.random.default_rng(1), ONE)
        for one in (router, split):
            K = ONE.product(kernel, rows, rows, np.eye(300))
            norms = np.einsum("ic,ij,jc->c", one.members, K, one.members)
            np.testing.assert_allclose(one.constants, norms, rtol=1e-12)
            assert np.allclose(one.members.sum(axis=0), 1.0) == plain
            assert np.allclose(norms, 1.0) != plain


# ------------------------------------------------------------------ a few rows


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kernel", INNER)
def test_a_few_rows_of_a_small_model_are_decided_as_among_many(kernel, sparse):
    model = fitted(kernel, 4, np.float64, sparse=sparse, gamma=0.5)
    new = data(300, 6, sparse=sparse, seed=5)
    together = model.decision_function(new)
    for n in (1, 3, 64):
        np.testing.assert_allclose(model.decision_function(new[:n]), together[:n], rtol=1e-7)
        assert_array_equal(model.predict(new[:n]), model.predict(new)[:n])


def test_what_is_laid_out_for_a_few_rows_is_not_stored():
    model = fitted("rbf", 2, np.float32)
    before = pickle.dumps(model)
    model.predict(data(1, 6, sparse=False, seed=5))
    assert pickle.dumps(model) == before
