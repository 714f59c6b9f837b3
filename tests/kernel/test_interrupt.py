"""Callbacks, progress, and what an interrupt leaves."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.callback import ProgressBar
from sklearn.exceptions import ConvergenceWarning

from widemargin.kernel.backend import Host

from .helpers import Recorder, each_size, rbf2, svc

pytestmark = pytest.mark.slow

# ------------------------------------------------------------------ callbacks


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_callbacks_see_levels_clusters_and_epochs(n_jobs, two):
    recorder = Recorder()
    model = svc(levels=1, n_jobs=n_jobs, tol=1e-6).set_callbacks(recorder).fit(*two)
    tasks = [task[1:] for task in recorder.ended]
    n_clusters = model.levels_[0].n_clusters
    assert {t for t in tasks if len(t) == 1} == {("level 1",), ("level 0",)}
    clusters = {t for t in tasks if len(t) == 2 and t[0] == "level 1"}
    assert clusters == {("level 1", f"cluster {c}") for c in range(n_clusters)}
    for c in range(n_clusters):
        assert ("level 1", f"cluster {c}", "epoch") in tasks
    assert tasks.count(("level 0", "problem 0", "epoch")) == model.n_iter_
    assert tasks[-1] == ()


@each_size
def test_a_callback_does_not_change_the_model(two):
    silent = svc(levels=1).fit(*two)
    heard = svc(levels=1).set_callbacks(Recorder()).fit(*two)
    np.testing.assert_array_equal(heard.dual_coef_, silent.dual_coef_)


@each_size
def test_a_callback_that_returns_true_stops_the_fit_with_a_warning(two):
    recorder = Recorder(stop_at="level 0")
    with pytest.warns(ConvergenceWarning, match="relative duality gap"):
        model = svc(tol=1e-6).set_callbacks(recorder).fit(*two)
    assert sum(task[-1] == "epoch" for task in recorder.ended) == model.n_iter_ == 1
    assert model.duality_gap_ > 1e-6
    assert model.predict(two[0]).shape == (len(two[0]),)


@each_size
@pytest.mark.parametrize("changes", [{}, {"levels": 1}, {"early": 1, "n_jobs": 2}], ids=str)
def test_progress_bar_runs(changes, three, capsys):
    svc(**changes).set_callbacks(ProgressBar()).fit(*three)
    assert "KernelSVC - fit" in capsys.readouterr().out


# ------------------------------------------------------------------ interrupts


@each_size
def test_an_interrupt_raises_by_default(two):
    model = svc(levels=1, tol=1e-6).set_callbacks(Recorder(interrupt_at="level 0"))
    with pytest.raises(KeyboardInterrupt):
        model.fit(*two)
    assert not hasattr(model, "model_")


@pytest.mark.parametrize("levels", [0, 1])
def test_an_interrupt_before_any_level_is_done_always_raises(levels, two):
    model = svc(levels=levels, tol=1e-6, on_interrupt="keep")
    model.set_callbacks(Recorder(interrupt_at=f"level {levels}"))
    with pytest.raises(KeyboardInterrupt):
        model.fit(*two)


def interrupted(model, at, X, y):
    """The model that a fit keeps when it is interrupted, with warnings of its level and its gap."""
    model.set_params(on_interrupt="keep").set_callbacks(Recorder(interrupt_at=at))
    with (
        pytest.warns(ConvergenceWarning, match="KernelSVC stopped with a relative duality gap"),
        pytest.warns(ConvergenceWarning, match="Interrupted: the model is that of level 1, with"),
    ):
        return model.fit(X, y)


def test_an_interrupted_whole_problem_can_keep_the_last_level(three):
    X, y = three
    kept = interrupted(svc(levels=2, branching=2), "level 0", X, y)
    early = svc(levels=2, branching=2, tol=1e-2, early=1).fit(X, y)
    np.testing.assert_array_equal(kept.dual_coef_, early.dual_coef_)
    np.testing.assert_array_equal(kept.decision_function(X), early.decision_function(X))
    assert kept.model_.router.n_clusters == kept.levels_[-1].n_clusters
    assert kept.duality_gap_ == kept.levels_[-1].gap
    assert np.isnan(kept.objective_)
    assert kept.score(X, y) > 0.7


@each_size
def test_a_user_kernel_that_is_interrupted_in_the_second_problem_keeps_the_level(three):
    X, y = three
    kept = interrupted(svc(rbf2, levels=1, tol=1e-6), "problem 1", X, y)
    label, K = kept.model_.cluster, rbf2(X, X[kept.support_])
    routed = kept.model_.router.assign(kept.model_.kernel.prepare(X), Host(1))
    expected = [K[i, label == c] @ kept.dual_coef_.T[label == c] for i, c in enumerate(routed)]
    np.testing.assert_allclose(kept.decision_function(X), expected, atol=1e-9)


def test_a_level_that_is_kept_has_no_intercept_because_it_was_solved_without(two):
    X, y = two
    kept = interrupted(svc(levels=1, fit_intercept=True), "level 0", X, y)
    early = svc(levels=1, early=1, tol=1e-2).fit(X, y)
    assert kept.intercept_ == 0
    np.testing.assert_array_equal(kept.decision_function(X), early.decision_function(X))


ENDLESS = """
import sys, threading, time
import numpy as np
from widemargin import KernelSVC
rng = np.random.default_rng(0)
X, y = rng.random((20_000, 10)), rng.integers(0, 2, 20_000)
levels, n_jobs = int(sys.argv[1]), int(sys.argv[2])
model = KernelSVC(gamma=0.5, C=1e4, tol=1e-12, levels=levels, n_jobs=n_jobs, max_iter=10**9)
print("fitting", flush=True)
try:
    model.fit(X, y)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    while threading.active_count() > 1:  # no cluster may go on unseen
        time.sleep(0.01)
"""


@pytest.mark.parametrize(("levels", "n_jobs"), [(0, 1), (0, 2), (1, 2)])
def test_ctrl_c_ends_a_long_fit_at_once(levels, n_jobs):
    command = [sys.executable, "-c", ENDLESS, str(levels), str(n_jobs)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "fitting\n"
            time.sleep(1.0)
            assert process.poll() is None
            os.kill(process.pid, signal.SIGINT)
            sent = time.perf_counter()
            assert process.stdout.readline() == "interrupted\n"
            assert time.perf_counter() - sent < 20.0  # the fit itself has no end
            assert process.wait(timeout=20) == 0
        finally:
            process.kill()
