"""Normal scores and weights of columns: what they are, and that files keep them."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import norm
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from widemargin import KernelSVC, KernelSVR, load, save
from widemargin.preparation import GradientScaler, NormalScaler

X, Y = load_iris(return_X_y=True)


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([NormalScaler(), GradientScaler()])
def test_sklearn(estimator, check):
    check(estimator)


# ------------------------------------------------------------------ normal scores


def test_skewed_values_become_normal():
    skewed = np.random.default_rng(0).lognormal(sigma=3, size=(20_000, 1))
    found = np.sort(NormalScaler().fit_transform(skewed).ravel())
    expected = norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    assert np.abs(found - expected)[200:-200].max() < 0.05


def test_equal_values_share_the_middle_of_their_ranks():
    column = np.repeat([0.0, 1.0, 5.0], [800, 150, 50])[:, None]
    found = NormalScaler().fit_transform(column)[[0, 900, 999], 0]
    np.testing.assert_allclose(found, norm.ppf([0.4, 0.875, 0.975]), atol=0.02)


def test_new_values_keep_their_order_and_do_not_go_beyond():
    scaler = NormalScaler().fit(X)
    new = np.linspace(-5, 15, 1000)[:, None].repeat(4, axis=1)
    found = scaler.transform(new)
    assert np.diff(found, axis=0).min() >= 0
    known = scaler.transform(X)
    np.testing.assert_array_equal(found[[0, -1]], [known.min(axis=0), known.max(axis=0)])


# ------------------------------------------------------------------ weights


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_columns_that_tell_nothing_lose_their_weight(layout):
    rows = np.random.default_rng(0).random((400, 6))
    label = (rows[:, 0] > 0.5) ^ (rows[:, 1] > 0.5)
    scaler = GradientScaler().fit(layout(rows), label)
    assert scaler.scale_[:2].min() > 4 * scaler.scale_[2:].max()
    weighted = scaler.transform(layout(rows))
    weighted = weighted.toarray() if sp.issparse(weighted) else weighted
    np.testing.assert_allclose(weighted, rows * scaler.scale_)
    assert weighted.var(axis=0).sum() == pytest.approx(rows.var(axis=0).sum())


def test_numbers_have_gradients_too():
    rows = np.random.default_rng(0).random((300, 4))
    scaler = GradientScaler(of_numbers=True).fit(rows, 1e6 * np.sin(5 * rows[:, 2]))
    assert scaler.scale_.argmax() == 2
    assert np.sort(scaler.scale_)[-1] > 5 * np.sort(scaler.scale_)[-2]


def test_a_plain_kernel_gains_by_weights():
    rng = np.random.default_rng(0)
    rows = rng.random((600, 30))
    label = (rows[:, 0] > 0.5) ^ (rows[:, 1] > 0.5)
    alone = KernelSVC(C=10).fit(rows[:300], label[:300])
    weighted = make_pipeline(GradientScaler(), KernelSVC(C=10)).fit(rows[:300], label[:300])
    assert weighted.score(rows[300:], label[300:]) > 0.2 + alone.score(rows[300:], label[300:])


@pytest.mark.parametrize("constant", ["columns", "targets"])
def test_where_there_is_nothing_to_learn_columns_stay_as_they_are(constant):
    rows = np.ones((20, 3)) if constant == "columns" else np.random.default_rng(0).random((20, 3))
    y = np.arange(20) % 2 if constant == "columns" else np.ones(20)
    scaler = GradientScaler(of_numbers=True).fit(rows, y)
    np.testing.assert_array_equal(scaler.scale_, 1)


# ------------------------------------------------------------------ files


@pytest.mark.parametrize("scaler", [NormalScaler(), GradientScaler()])
def test_files_keep_them(scaler, tmp_path):
    model = make_pipeline(scaler, KernelSVC(C=10)).fit(X, Y)
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    assert type(again[0]) is type(scaler)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    save(model[0], tmp_path / "s")
    np.testing.assert_array_equal(load(tmp_path / "s").transform(X), model[0].transform(X))


def test_a_file_says_what_targets_were(tmp_path):
    scaler = GradientScaler(of_numbers=True)
    save(make_pipeline(scaler, KernelSVR()).fit(X[:, :3], X[:, 3]), tmp_path / "m")
    assert load(tmp_path / "m")[0].of_numbers is True
