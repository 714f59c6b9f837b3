"""Estimators may be fitted and used by many threads of a caller at once."""

import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from sklearn.datasets import make_classification

from widemargin import AdditiveSVC, AdditiveSVR, KernelSVC, KernelSVR, OneClassSVM, load, save

THREADS = 8
MAKES = [
    lambda: AdditiveSVC("chi2", random_state=0),
    lambda: AdditiveSVC("intersection", loss="hinge", n_jobs=2, random_state=0),
    lambda: AdditiveSVR(random_state=0),
    lambda: KernelSVC(C=4.0, random_state=0),
    lambda: KernelSVC(early=1, n_jobs=2, random_state=0),
    lambda: KernelSVC("linear", random_state=0),
    lambda: KernelSVR(random_state=0),
    lambda: OneClassSVM(nu=0.2, random_state=0),
]


@pytest.fixture(autouse=True)
def often():
    """Threads of a Python with a lock take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(400, 6, n_informative=5, n_redundant=0, n_classes=3, random_state=0)
    return X - X.min(axis=0), y


def outputs(model, X) -> np.ndarray:
    decide = getattr(model, "decision_function", model.predict)
    return np.concatenate([np.ravel(decide(X)), np.ravel(model.predict(X))])


def at_once(works: list) -> list:
    """The results of functions that begin at the same moment, one in each thread."""
    start = Barrier(len(works))

    def begin(work):
        start.wait()
        return work()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(begin, works))


def test_fits_of_all_machines_side_by_side(data):
    X, y = data
    alone = [outputs(make().fit(X, y), X) for make in MAKES]
    together = at_once([lambda make=make: outputs(make().fit(X, y), X) for make in MAKES])
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("make", MAKES)
def test_one_model_predicts_in_many_threads(make, data):
    X, y = data
    model = make().fit(X, y)
    pieces = [X[k::THREADS] for k in range(THREADS)]
    alone = [outputs(model, piece) for piece in pieces]
    together = at_once([lambda piece=piece: outputs(model, piece) for piece in pieces])
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)


def test_models_are_saved_and_loaded_side_by_side(data, tmp_path):
    X, y = data
    models = [make().fit(X, y) for make in MAKES]

    def again(k: int) -> np.ndarray:
        save(models[k], tmp_path / f"{k}.safetensors")
        return outputs(load(tmp_path / f"{k}.safetensors"), X)

    together = at_once([lambda k=k: again(k) for k in range(len(models))])
    for model, other in zip(models, together, strict=True):
        np.testing.assert_array_equal(outputs(model, X), other)
