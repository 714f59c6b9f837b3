"""ONNX files of additive models decide as the models do."""

import numpy as np
import pytest
import scipy.sparse as sp

from widemargin import AdditiveSVC, AdditiveSVR, PowerMean
from widemargin.export import export_onnx

from .onnx_helpers import assert_agrees, data, onnxruntime


@pytest.mark.parametrize("name", ["cancer", "iris", "digits", "sparse"])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"kernel": "chi2", "tol": 1e-5},
        {"approximation": "unary"},
        {"kernel": "chi2", "approximation": "unary", "scaling": "percentile"},
        {"kernel": "chi2", "approximation": "fourier"},
        {"kernel": PowerMean(-1), "approximation": "chebyshev", "tol": 0.1},
        {"kernel": PowerMean(-1), "approximation": "pmsvm", "tol": 0.1},
        {"kernel": PowerMean(-1), "approximation": "pmsvm", "tol": 0.1, "n_bins": 50},
        {"multi_class": "crammer_singer"},
        {"multi_class": "crammer_singer", "approximation": "unary"},
        {"kernel": lambda x, y: np.exp(-((x - y) ** 2)), "fit_intercept": False},
    ],
)
def test_additive_models(changes, name, tmp_path):
    X, y, asked = data(name)
    given = sp.csr_array(X) if name == "sparse" and not callable(changes.get("kernel")) else X
    model = AdditiveSVC(random_state=0, **changes).fit(given, y)
    assert hasattr(model.model_.lookup, "rank") == (
        changes.get("approximation") == "pmsvm" and "n_bins" not in changes
    )
    assert_agrees(model, asked - np.float32(0.1), tmp_path / "model.onnx")


@pytest.mark.parametrize("approximation", ["spectral", "unary"])
def test_more_classes_than_a_block_holds(approximation, tmp_path):
    X, y, asked = data("digits")
    y = 2 * y + (X.sum(axis=1) > np.median(X.sum(axis=1)))
    model = AdditiveSVC(approximation=approximation, random_state=0).fit(X, y)
    assert len(model.model_.weights) == 2
    assert_agrees(model, asked, tmp_path / "model.onnx")


@pytest.mark.parametrize("n_bins", [1, 2, 7, 8, 256])
def test_values_on_the_thresholds_get_the_very_same_codes(n_bins, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 1025, (300, 2)).astype(np.float32)
    X[0] = 1024  # halves of bins are whole numbers then
    model = AdditiveSVC(
        approximation="unary", scaling=None, binning="uniform", n_bins=n_bins, random_state=0
    ).fit(X, X[:, 0] + 200 * rng.normal(size=300) > 500)
    on = np.repeat(model.model_.encoder.thresholds.astype(np.float32)[:, None], 2, axis=1)
    above, below = np.nextafter(on, np.float32(np.inf)), np.nextafter(on, np.float32(-np.inf))
    assert np.all(model.decision_function(above) != model.decision_function(below))
    assert_agrees(model, np.vstack([on, above, below]), tmp_path / "model.onnx", 1e-6)


@pytest.mark.parametrize("approximation", ["spectral", "unary", "pmsvm"])
@pytest.mark.parametrize("n_outputs", [0, 1, 18])  # 0: one target that is no column
def test_predictions_of_numbers(approximation, n_outputs, tmp_path):
    X, y, asked = data("digits")
    y = 1000.0 * y if n_outputs == 0 else np.sin(np.outer(y, np.arange(1, n_outputs + 1)))
    model = AdditiveSVR(PowerMean(-1), approximation=approximation, tol=0.1, random_state=0).fit(
        X, y
    )
    export_onnx(model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    (found,) = session.run(["prediction"], {"X": asked})
    expected = model.predict(asked)
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= 3e-5 * np.abs(expected).max()
