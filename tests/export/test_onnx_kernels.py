"""ONNX files of kernel models decide as the models do, however far apart rows are."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.datasets import load_svmlight_file

from widemargin import AdditiveSVC, KernelSVC

from .onnx_helpers import KERNELS, assert_agrees, data, decide

pytestmark = pytest.mark.filterwarnings("ignore:kernel=.sigmoid. is not positive semi-definite")


@pytest.mark.parametrize("name", ["cancer", "iris", "digits", "sparse"])
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_exact_kernel_models(kernel, multi_class, name, tmp_path):
    X, y, asked = data(name)
    given = sp.csr_array(X) if name == "sparse" and kernel in ("rbf", "poly", "sigmoid") else X
    model = KernelSVC(kernel, **KERNELS[kernel], multi_class=multi_class, fit_intercept=True)
    assert_agrees(model.fit(given, y), asked, tmp_path / "model.onnx")


@pytest.mark.parametrize("kernel", KERNELS)
def test_double_precision(kernel, tmp_path):
    X, y, asked = data("cancer")
    model = KernelSVC(kernel, **KERNELS[kernel], C=10, tol=1e-5).fit(X, y)
    assert_agrees(model, asked, tmp_path / "model.onnx", tolerance=1e-6)


@pytest.mark.parametrize("early_prediction", ["routed", "sum"])
@pytest.mark.parametrize("name", ["cancer", "sparse"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_early_kernel_models(kernel, name, early_prediction, tmp_path):
    X, y, asked = data(name)
    model = KernelSVC(
        kernel, **KERNELS[kernel], early=1, early_prediction=early_prediction, random_state=0
    ).fit(X, y)
    assert model.model_.router is not None
    assert_agrees(model, asked, tmp_path / "model.onnx")


@pytest.mark.filterwarnings("ignore:Feature")
@pytest.mark.parametrize("name", ["iris", "sparse"])
def test_rows_so_far_apart_that_squared_norms_cancel(name, tmp_path):
    X, y, _ = data(name)
    X = 1e12 * X
    model = KernelSVC(gamma=1.0).fit(X, y)
    assert model.model_.kernel.is_far(model.model_.vectors)
    assert model.model_.kernel.compressed == (name == "sparse")
    assert_agrees(model, X, tmp_path / "model.onnx")


@pytest.mark.filterwarnings("ignore:Feature")
def test_rows_for_which_single_precision_is_rough(tmp_path):
    """Predictions are off by little of the margin; sessions in another order of sums are not."""
    X, y, _ = data("iris")
    X = 100 * (X - X.mean(axis=0))
    model = KernelSVC(gamma=0.5).fit(X, y > 0)
    assert model.model_.kernel.dtype == np.float32
    _, scores = decide(model, X, tmp_path / "model.onnx")
    distance = cdist(X.astype(float), X[model.support_].astype(float), "sqeuclidean")
    expected = np.exp(-0.5 * distance) @ model.dual_coef_[0] + model.intercept_
    assert np.abs(scores - expected).max() < 1e-5


def test_a_centre_at_zero(tmp_path):
    X = np.array([[1.0], [-1.0], [1.0], [-1.0]], dtype=np.float32)
    model = KernelSVC("laplacian").fit(X, X[:, 0] > 0)
    assert not model.model_.kernel.centre.any()
    assert_agrees(model, X, tmp_path / "model.onnx")


@pytest.mark.parametrize("estimator", [AdditiveSVC(random_state=0), KernelSVC(gamma=1.0)])
def test_ijcnn1(estimator, data_folder, tmp_path):
    X, y = load_svmlight_file(data_folder / "ijcnn1.trn.bz2", dtype=np.float32)
    model = estimator.fit(X[:3000], y[:3000])
    assert_agrees(model, X[3000:6000].toarray(), tmp_path / "model.onnx")
