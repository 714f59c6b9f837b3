"""What the ICD paper says of its method, held against the code."""

import numpy as np
import pytest
from sklearn.model_selection import train_test_split
from sklearn.svm import LinearSVC

from widemargin import PowerMean, papers


def unary(X, largest):
    """B(x) of eq. 4, for every feature: x ones, then zeros."""
    return (np.arange(largest) < X[:, :, None]).reshape(len(X), -1).astype(np.float64)


@pytest.fixture(scope="module")
def exact(three):
    """ICD on counts as they are, near its optimum, and the counts."""
    X, y = three
    return papers.icd(scaling=None, C=0.01, tol=1e-12).fit(X, y), X, y


def test_a_preset_gives_the_same_bits_every_time(digits):
    X, y = digits
    first, second = (papers.icd().fit(X, y).decision_function(X) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_sweeps_of_a_preset_are_plain(three):
    plain, ours = (papers.icd(**own).fit(*three) for own in ({}, {"visits": 4}))
    assert not any("again" in record for record in plain.history_[0])
    assert any(record.get("again") for record in ours.history_[0])
    assert ours.n_iter_ < plain.n_iter_


def test_liblinears_rule_is_a_choice(three):
    loose, tight = (papers.icd(stopping="violation", tol=tol).fit(*three) for tol in (0.5, 1e-3))
    assert loose.n_iter_ < tight.n_iter_
    for model in (loose, tight):
        assert model.converged_
        assert model.violation_ <= model.tol
    assert tight.duality_gap_ < loose.duality_gap_ < 1


def test_the_kernel_is_the_product_of_unary_codes(three):
    X = three[0][:40]
    B = unary(X, 16)
    np.testing.assert_array_equal(PowerMean(-np.inf).matrix(X), B @ B.T)


def test_the_kernel_matrix_of_one_feature_is_diagonal_in_differences():
    """Eq. 2 and 3: R'KR has the steps between sorted values, none of them negative."""
    x = np.sort(np.random.default_rng(0).exponential(size=30))
    R = np.eye(30) - np.eye(30, k=1)
    steps = R.T @ PowerMean(-np.inf).matrix(x[:, None]) @ R
    np.testing.assert_allclose(steps, np.diag(np.diff(x, prepend=0.0)), atol=1e-12)


@pytest.mark.parametrize("label", [0, 1, 2])
def test_the_table_is_the_sum_of_a_linear_machines_weights_on_unary_codes(exact, label):
    """Eq. 8 and 9: T_jk = w_j1 + ... + w_jk, for all k of all j, those never seen as well."""
    model, X, y = exact
    linear = LinearSVC(C=0.01, fit_intercept=False, tol=1e-10, max_iter=100_000)
    w = linear.fit(unary(X, 16), y == label).coef_.reshape(X.shape[1], 16)
    table = np.stack([model.model_.feature_function(j)[:, label] for j in range(X.shape[1])])
    assert table.shape == (64, 17)
    assert np.abs(table).max() > 0.01
    np.testing.assert_allclose(table[:, 1:], w.cumsum(axis=1), atol=1e-6)


def test_the_table_is_exact_at_counts_that_training_did_not_see():
    X = np.array([[1.0], [2.0], [5.0], [100.0]])
    model = papers.icd(scaling=None, C=1.0, tol=1e-9, warm_start=True).fit(X, [0, 0, 1, 1])
    unseen = np.array([[3.0], [30.0], [52.0], [53.0]])
    true = PowerMean(-np.inf).matrix(unseen, X) @ model._dual.coef
    np.testing.assert_allclose(model.decision_function(unseen), true[:, 0], rtol=1e-9)


def test_counts_above_those_of_training_have_the_last_entry(exact):
    model, X, _ = exact
    np.testing.assert_array_equal(
        model.decision_function(X[:5] + 100), model.decision_function(np.full((5, 64), 16))
    )


def test_the_table_of_a_feature_ends_at_its_largest_value(exact):
    """Footnote 1."""
    model, X, _ = exact
    np.testing.assert_array_equal(np.diff(model.model_.offset), X.max(axis=0) + 1)


@pytest.mark.parametrize("tol", [1e-2, 1e-10])
def test_history_says_when(tol, three):
    model = papers.icd(tol=tol).fit(*three)
    (run,) = model.history_
    seconds = [record["seconds"] for record in run]
    assert seconds[0] > 0
    assert np.diff(seconds).min(initial=0.0) >= 0
    assert seconds[-1] <= model.fit_record_.seconds


def test_convergence_is_linear(three):
    """Section 3.4: an error of eps takes O(log 1/eps) sweeps, so equal factors take like sweeps."""
    X, y = three
    sweeps = [papers.icd(scaling=None, tol=10.0**-k).fit(X, y).n_iter_ for k in (2, 5, 8, 11)]
    steps = np.diff(sweeps)
    assert steps.min() > 0
    assert steps.max() <= 2 * steps.min() + 10


def test_accuracy_does_not_fall_where_C_is_large(digits):
    """Section 4.2: "the accuracy increases with C and a large C value will not lead to a lower
    accuracy", over the paper's ten powers of ten."""
    X, X_test, y, y_test = train_test_split(*digits, random_state=0)
    models = papers.icd(scaling=None, tol=0.01).fit_path(X, y, 10.0 ** np.arange(-7, 4))
    scores = [model.score(X_test, y_test) for model in models]
    assert scores[0] < 0.7
    assert min(scores[4:]) >= 0.95  # from the default C = 0.001 on
    assert np.all(scores >= np.maximum.accumulate(scores) - 0.01)
