"""What an ONNX file cannot say is refused."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer, StandardScaler

from widemargin import AdditiveSVC, KernelSVC
from widemargin.export import export_onnx, onnx_graph

from .onnx_helpers import data


def words(X, Z):
    return X @ Z.T


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (KernelSVC(words), "kernel='words'.*'rbf'"),
        (KernelSVC(early=1, early_prediction="bcm"), "early_prediction='bcm'.*'routed' or 'sum'"),
        (make_pipeline(PowerTransformer(), KernelSVC()), "PowerTransformer.*MinMaxScaler"),
        (make_pipeline(StandardScaler(), LogisticRegression()), "LogisticRegression.*AdditiveSVC"),
    ],
)
def test_refuses_what_plain_operations_cannot_say(model, message, tmp_path):
    X, y, _ = data("iris")
    path = tmp_path / "model.onnx"
    path.write_text("old")
    with pytest.raises(ValueError, match=message):
        export_onnx(model.fit(X, y), path)
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_refuses_precomputed_kernels(tmp_path):
    X, y, _ = data("iris")
    with pytest.raises(ValueError, match="kernel='precomputed'"):
        export_onnx(KernelSVC("precomputed").fit(X @ X.T, y), tmp_path / "model.onnx")


def test_refuses_labels_of_other_types(tmp_path):
    X, y, _ = data("iris")
    model = AdditiveSVC(random_state=0).fit(X, y)
    for classes in ([0.5, 1, 2], [1e300, 1e301, 1e302], [None, "a", "b"]):
        model.classes_ = np.array(classes)
        with pytest.raises(ValueError, match=r"neither whole numbers.*nor text"):
            export_onnx(model, tmp_path / "model.onnx")


def test_refuses_more_numbers_than_a_file_holds(monkeypatch, tmp_path):
    X, y, _ = data("sparse")
    model = KernelSVC().fit(sp.csr_array(X), y)
    monkeypatch.setattr(onnx_graph, "MOST_BYTES", 4 * X.shape[1] * len(model.support_) - 1)
    with pytest.raises(ValueError, match="2 GB at most"):
        export_onnx(model, tmp_path / "model.onnx")


def test_refuses_models_that_are_not_fitted(tmp_path):
    for model in (AdditiveSVC(), make_pipeline(StandardScaler(), KernelSVC())):
        with pytest.raises(NotFittedError):
            export_onnx(model, tmp_path / "model.onnx")


def test_says_what_to_install(monkeypatch, tmp_path):
    X, y, _ = data("iris")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install widemargin\[onnx\]"):
        export_onnx(AdditiveSVC().fit(X, y), tmp_path / "model.onnx")
