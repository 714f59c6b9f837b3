"""ONNX files of pipelines, with labels of all types, of few rows, in plain operations."""

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from widemargin import AdditiveSVC, KernelSVC, TableEncoder
from widemargin.errors import UnseenWarning
from widemargin.export import export_onnx
from widemargin.preparation import GradientScaler

from .onnx_helpers import assert_agrees, data, decide, onnx

pytestmark = pytest.mark.filterwarnings("ignore:kernel=.sigmoid. is not positive semi-definite")


@pytest.mark.parametrize("model", [AdditiveSVC(random_state=0, scaling="minmax"), KernelSVC()])
@pytest.mark.parametrize(
    "scaler",
    [
        MinMaxScaler((-1, 2)),
        MinMaxScaler(clip=True),
        MaxAbsScaler(),
        MaxAbsScaler(clip=True),
        StandardScaler(),
        StandardScaler(with_mean=False),
        StandardScaler(with_std=False),
        GradientScaler(),
    ],
    ids=str,
)
def test_pipelines(scaler, model, tmp_path):
    X, y, asked = data("cancer")
    pipeline = make_pipeline(scaler, model).fit(3 * X - 1, y)
    assert_agrees(pipeline, 3 * asked - 1, tmp_path / "model.onnx")


@pytest.mark.parametrize("scaling", ["minmax", None])
def test_missing_values_of_an_array(scaling, tmp_path):
    X, y, asked = data("cancer")
    X[::5, 3], asked[::3, 3] = np.nan, np.nan
    pipeline = make_pipeline(TableEncoder(scaling=scaling), MinMaxScaler(), KernelSVC()).fit(X, y)
    assert_agrees(pipeline, asked, tmp_path / "model.onnx")
    asked[:, 7] = np.nan
    with pytest.warns(UnseenWarning):
        assert_agrees(pipeline, asked, tmp_path / "model.onnx")


def test_other_steps_are_refused(tmp_path):
    X, y, _ = data("iris")
    with pytest.raises(ValueError, match=r"with SimpleImputer cannot be exported.*a TableEncoder"):
        export_onnx(make_pipeline(SimpleImputer(), KernelSVC()).fit(X, y), tmp_path / "model.onnx")


def test_several_scalers(tmp_path):
    X, y, asked = data("digits")
    pipeline = make_pipeline(StandardScaler(), MinMaxScaler(), AdditiveSVC(random_state=0))
    assert_agrees(pipeline.fit(X, y), asked, tmp_path / "model.onnx")


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (np.array([-1.0, 1.0]), np.int64),
        (np.array([False, True]), np.int64),
        (np.array([3, 9], dtype=np.uint8), np.int64),
        (np.array(["no", "yes Ä"]), object),
        (np.array(["no", "yes"], dtype=object), object),
    ],
)
def test_labels(labels, expected, tmp_path):
    X, y, asked = data("cancer")
    model = AdditiveSVC(random_state=0).fit(X, labels[y])
    label, _ = decide(model, asked, tmp_path / "model.onnx")
    assert label.dtype == expected
    np.testing.assert_array_equal(label, model.predict(asked))


@pytest.mark.parametrize("estimator", [AdditiveSVC(random_state=0), KernelSVC("laplacian")])
@pytest.mark.parametrize("n", [0, 1])
def test_few_rows(n, estimator, tmp_path):
    X, y, asked = data("iris")
    model = estimator.fit(X, y)
    label, scores = decide(model, asked[:n], tmp_path / "model.onnx")
    assert label.shape == (n,)
    assert scores.shape == (n, 3)


def nodes(graph):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            yield from nodes(attribute.g)


@pytest.mark.parametrize("model", [AdditiveSVC(), KernelSVC("chi2", early=1)])
def test_plain_operations_of_a_fixed_version(model, tmp_path):
    X, y, _ = data("iris")
    export_onnx(model.fit(X, y), tmp_path / "model.onnx")
    proto = onnx.load(tmp_path / "model.onnx")
    assert [(o.domain, o.version) for o in proto.opset_import] == [("", 17)]
    assert {node.domain for node in nodes(proto.graph)} == {""}
    assert proto.producer_name == "widemargin"
