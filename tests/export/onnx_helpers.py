"""Data, and what an exported file decides with it."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.preprocessing import MinMaxScaler

from widemargin.export import export_onnx

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

KERNELS = {
    "rbf": {"gamma": 0.5},
    "poly": {"gamma": 0.1, "coef0": 0.5, "degree": 3},
    "sigmoid": {"gamma": 0.02, "coef0": -0.1},
    "laplacian": {"gamma": 0.2},
    "chi2": {"gamma": 0.5},
}


def data(name):
    """Training rows and other ones, in which some values lie outside the training range."""
    load = {"iris": load_iris, "cancer": load_breast_cancer}.get(name, load_digits)
    X, y = load(return_X_y=True)
    X, y = MinMaxScaler().fit_transform(X).astype(np.float32)[:600], y[:600]
    if name == "sparse":
        X = np.where(X > 0.8, X, np.float32(0))
    train = np.arange(len(X)) % 3 > 0
    return X[train], y[train], 1.2 * X[~train]


def decide(model, X, path):
    """Labels and scores of the exported model."""
    export_onnx(model, path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(["label", "scores"], {"X": X})


def assert_agrees(model, X, path, tolerance=3e-5):
    label, scores = decide(model, X, path)
    expected = model.decision_function(X)
    assert scores.shape == expected.shape
    assert np.abs(scores - expected).max() <= tolerance * np.abs(expected).max()
    np.testing.assert_array_equal(label, model.predict(X))
