"""What a fitted `KernelSVC` has by SVC's names, with SVC's order, signs and shapes."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse as sp
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from widemargin import KernelSVC, load, save

X, Y = load_iris(return_X_y=True)
X = StandardScaler().fit_transform(X)
SHUFFLED = np.random.default_rng(0).permutation(len(X))
X, Y = X[SHUFFLED], Y[SHUFFLED]
SET = {"gamma": 0.5, "C": 0.3}

each_problem = pytest.mark.parametrize("rows", [Y > 0, Y >= 0], ids=["two", "three"])


def dense(values):
    return values.toarray() if sp.issparse(values) else values


@each_problem
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_a_model_has_what_svc_has(rows, layout):
    """Its optimum is another one, for the penalised intercept: so values are compared by rows."""
    ours = KernelSVC(tol=1e-8, **SET).fit(layout(X[rows]), Y[rows])
    theirs = SVC(**SET).fit(layout(X[rows]), Y[rows])
    for name in ("n_support_", "classes_", "class_weight_", "shape_fit_"):
        assert np.shape(getattr(ours, name)) == np.shape(getattr(theirs, name))
    for name in ("intercept_", "dual_coef_", "n_iter_"):
        assert getattr(ours, name).shape[:1] == getattr(theirs, name).shape[:1]
    assert ours.shape_fit_ == theirs.shape_fit_
    assert ours.fit_status_ == theirs.fit_status_ == 0
    assert sp.issparse(ours.dual_coef_) == sp.issparse(theirs.dual_coef_)
    assert sp.issparse(ours.support_vectors_) == sp.issparse(theirs.support_vectors_)
    found, expected = (
        dict(zip(m.support_.tolist(), dense(m.dual_coef_).T, strict=True)) for m in (ours, theirs)
    )
    both = sorted(found.keys() & expected.keys())
    assert len(both) > 0.9 * len(expected)
    for row in both:
        np.testing.assert_array_equal(np.sign(found[row]) * np.sign(expected[row]) >= 0, True)
    np.testing.assert_allclose(dense(ours.support_vectors_), X[rows][ours.support_], atol=1e-14)
    label = Y[rows][ours.support_]
    assert np.all(np.diff(label) >= 0)
    np.testing.assert_array_equal(ours.n_support_, [np.sum(label == c) for c in ours.classes_])


@each_problem
def test_decisions_are_made_of_them(rows):
    model = KernelSVC(decision_function_shape="ovo", **SET).fit(X[rows], Y[rows])
    K = rbf_kernel(X, model.support_vectors_, gamma=0.5)
    values = model.decision_function(X)
    ends = np.append(0, np.cumsum(model.n_support_))
    own = [slice(a, b) for a, b in pairwise(ends)]
    if values.ndim == 1:
        np.testing.assert_allclose(values, K @ model.dual_coef_[0] + model.intercept_, atol=1e-5)
        return
    for k, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)]):  # as LIBSVM's FAQ says
        pair = K[:, own[i]] @ model.dual_coef_[j - 1, own[i]]
        pair += K[:, own[j]] @ model.dual_coef_[i, own[j]]
        np.testing.assert_allclose(values[:, k], pair + model.intercept_[k], atol=1e-5)


def test_a_tie_goes_to_the_larger_sum_or_to_the_first_class():
    labels = np.random.default_rng(0).integers(3, size=len(X))
    votes, sums = (KernelSVC(break_ties=ties, **SET).fit(X, labels) for ties in (False, True))
    rows = np.random.default_rng(1).normal(size=(2000, 4))
    scores = votes.decision_function(rows)
    np.testing.assert_array_equal(sums.predict(rows), scores.argmax(axis=1))
    np.testing.assert_array_equal(votes.predict(rows), np.rint(scores).argmax(axis=1))
    assert np.any(votes.predict(rows) != sums.predict(rows))


def test_class_weights_are_those_of_classes():
    balanced = KernelSVC(class_weight="balanced").fit(X[:80], Y[:80])
    np.testing.assert_allclose(balanced.class_weight_, 80 / (3 * np.bincount(Y[:80])))
    by_name = KernelSVC(class_weight={2: 5}).fit(X, Y, sample_weight=np.full(len(Y), 0.3))
    np.testing.assert_allclose(by_name.class_weight_, [1, 1, 5])


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_a_file_brings_them_back(layout, tmp_path):
    model = KernelSVC(class_weight={2: 2.5}, **SET).fit(layout(X), Y)
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    for name in ("support_", "n_support_", "n_iter_", "class_weight_", "shape_fit_", "intercept_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    for name in ("support_vectors_", "dual_coef_"):
        one, other = getattr(again, name), getattr(model, name)
        assert type(one) is type(other)
        np.testing.assert_array_equal(dense(one), dense(other))


def test_no_limit_of_blocks():
    assert KernelSVC(max_iter=-1).fit(X, Y).converged_
    with pytest.raises(ValueError, match="max_iter=0 is out of range"):
        KernelSVC(max_iter=0).fit(X, Y)


@pytest.mark.parametrize(
    ("parameter", "instead"),
    [("probability", "CalibratedSVC"), ("shrinking", "Leave it out")],
)
def test_a_parameter_of_svc_alone_says_what_to_write(parameter, instead):
    with pytest.raises(TypeError, match=f"no parameter '{parameter}'.*{instead}"):
        KernelSVC(**{parameter: True})
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'gama'"):
        KernelSVC(gama=1.0)


def test_an_infinite_c_is_refused_with_the_way_out():
    with pytest.raises(ValueError, match=r"C=inf has no solution.*C=1000000\.0"):
        KernelSVC(C=np.inf).fit(X, Y)


def test_no_rows_of_a_matrix_are_support_vectors():
    model = KernelSVC("precomputed").fit(X @ X.T, Y)
    assert model.support_vectors_.shape == (0, 0)
    assert len(model.support_) == model.n_support_.sum()
