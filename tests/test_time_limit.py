"""``max_seconds``: a fit ends with the model that it has, the gap that is left and a warning."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from widemargin import AdditiveSVC, KernelSVC, progress

X, Y = make_classification(400, 10, n_informative=6, flip_y=0.2, random_state=0)

MACHINES = {
    "additive": AdditiveSVC(loss="hinge", C=100.0, tol=1e-15, random_state=0),
    "kernel": KernelSVC(C=1000.0, tol=1e-14),
    "pairs": KernelSVC(C=1000.0, tol=1e-14, multi_class="ovo"),
    "linear": KernelSVC("linear", C=1000.0, tol=1e-14),
}


@pytest.fixture
def clock(monkeypatch):
    """A clock that only moves when it is looked at: by a second."""

    class Clock:
        now = 0.0

        def monotonic(self):
            self.now += 1.0
            return self.now

        def __getattr__(self, name):
            return getattr(progress.time, name)

    clock = Clock()
    monkeypatch.setattr("time.monotonic", clock.monotonic)
    return clock


@pytest.mark.parametrize("name", MACHINES)
def test_a_fit_ends_with_the_model_it_has(name, clock):
    model = MACHINES[name]
    y = np.arange(len(Y)) % 3 if name == "pairs" else Y
    model = pickle.loads(pickle.dumps(model)).set_params(max_seconds=3)
    with pytest.warns(ConvergenceWarning, match=r"The time limit of 3 s is over\.") as told:
        model.fit(X, y)
    assert len([w for w in told if "time limit" in str(w.message)]) == 1
    assert not model.converged_
    assert model.duality_gap_ > model.tol
    assert f"{model.duality_gap_:.2g}" in str(told[0].message)  # one number everywhere
    assert model.predict(X).shape == (len(X),)
    assert "_deadline" not in vars(model)


@pytest.mark.parametrize("name", MACHINES)
def test_a_limit_that_is_not_reached_changes_nothing(name):
    model = MACHINES[name].set_params(tol=1e-3)
    one, other = model.fit(X, Y).decision_function(X), None
    other = model.set_params(max_seconds=1e6).fit(X, Y).decision_function(X)
    np.testing.assert_array_equal(one, other)


def test_every_model_of_a_path_has_its_own_limit(clock):
    with pytest.warns(ConvergenceWarning, match="time limit of 2 s"):
        path = KernelSVC(tol=1e-14, max_seconds=2).fit_path(X, Y, [500.0, 1000.0])
    assert [model.converged_ for model in path] == [False, False]
