"""Callbacks, logs and Ctrl-C."""

import logging
import os
import signal
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.exceptions import ConvergenceWarning

from .helpers import svc


class Recorder:
    """A callback that writes down every task, and can ask to stop after some epochs."""

    def __init__(self, stop_after=None):
        self.tasks, self.fitted, self.stop_after = [], [], stop_after

    def setup(self, estimator, context):
        self.tasks.append("setup")

    def teardown(self, estimator, context):
        self.tasks.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.tasks.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        self.tasks.append(f"end {context.task_name}")
        if fitted_estimator is not None:
            self.fitted.append((fitted_estimator, fitted_estimator.decision_function(X)))
        return context.task_name == "epoch" and context.task_id + 1 == self.stop_after


def test_callbacks_see_the_fit_its_batch_and_the_epochs(three):
    recorder = Recorder()
    model = svc().set_callbacks(recorder).fit(*three)
    epochs = ["begin epoch", "end epoch"] * model.n_iter_
    begin, end = ["setup", "begin fit", "begin batch 0"], ["end batch 0", "end fit", "teardown"]
    assert recorder.tasks == [*begin, *epochs, *end]


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_callbacks_see_every_batch_of_classes(n_jobs):
    rng = np.random.default_rng(0)
    X, y = rng.random((120, 8)), np.arange(120) % 40
    recorder = Recorder()
    model = svc(n_jobs=n_jobs).set_callbacks(recorder).fit(X, y)
    ended = [task for task in recorder.tasks if task.startswith("end batch")]
    assert sorted(ended) == ["end batch 0", "end batch 1", "end batch 2"]
    assert recorder.tasks.count("end epoch") == sum(len(batch) for batch in model.history_)


@pytest.mark.parametrize("multi_class", ["ovr", "crammer_singer"])
def test_a_callback_that_returns_true_stops_the_sweeps(three, multi_class):
    model = svc(multi_class=multi_class, tol=1e-9).set_callbacks(Recorder(stop_after=3))
    with pytest.warns(ConvergenceWarning, match=r"after 3 sweeps .* It was told to stop"):
        model.fit(*three)
    assert model.n_iter_ == 3
    assert model.duality_gap_ > 1e-9


@pytest.mark.parametrize("multi_class", ["ovr", "crammer_singer"])
@pytest.mark.parametrize("data", ["two", "three"])
def test_fitted_estimators_given_to_callbacks_do_not_change_later(request, data, multi_class):
    X, y = request.getfixturevalue(data)
    recorder = Recorder()
    svc(multi_class=multi_class, rank=4).set_callbacks(recorder).fit(X, y)
    assert len(recorder.fitted) > 2
    for fitted, decision in recorder.fitted:
        np.testing.assert_array_equal(fitted.decision_function(X), decision)


def test_progress_bar_runs(three, capsys):
    svc().set_callbacks(ProgressBar()).fit(*three)
    assert "AdditiveSVC - fit" in capsys.readouterr().out


def test_progress_bar_runs_along_a_path_over_c(three):
    models = svc().set_callbacks(ProgressBar()).fit_path(*three, [0.1, 1.0])
    assert [m.C for m in models] == [0.1, 1.0]


def test_scoring_monitor_scores_every_epoch(three):
    monitor = ScoringMonitor(scoring="accuracy")
    model = svc().set_callbacks(monitor).fit(*three)
    log = monitor.get_logs().data_as_pandas
    assert (log["task_name"] == "epoch").sum() == model.n_iter_
    assert log.loc[log["task_name"] == "fit", "accuracy"].item() == model.score(*three)


def test_verbose_1_logs_one_summary(three, caplog):
    with caplog.at_level(logging.INFO, logger="widemargin"):
        model = svc(verbose=1).fit(*three)
    (message,) = (r.getMessage() for r in caplog.records if r.name == "widemargin")
    assert message.startswith(f"{model.n_iter_} sweeps in ")
    assert f"relative duality gap {model.duality_gap_:.2g}" in message


def test_verbose_2_logs_every_sweep(three, caplog):
    with caplog.at_level(logging.INFO, logger="widemargin"):
        model = svc(verbose=2).fit(*three)
    assert sum("sweep done" in r.getMessage() for r in caplog.records) == model.n_iter_


def test_verbose_0_is_silent(three, caplog, capsys):
    with caplog.at_level(logging.DEBUG, logger="widemargin"):
        svc(verbose=0).fit(*three)
    assert caplog.records == []
    assert capsys.readouterr() == ("", "")


@contextmanager
def ctrl_c_after(seconds):
    """Sends SIGINT to this process; yields a list that then holds the time it was sent."""
    sent = []

    def interrupt():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(seconds, interrupt)
    timer.start()
    try:
        yield sent
    finally:
        timer.cancel()


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize(
    ("n_classes", "multi_class"), [(2, "ovr"), (40, "ovr"), (3, "crammer_singer")]
)
def test_ctrl_c_ends_a_fit_at_once(n_classes, multi_class, n_jobs):
    rng = np.random.default_rng(0)
    X, y = rng.random((5000, 30)), rng.integers(0, n_classes, 5000)
    endless = svc(loss="hinge", tol=1e-300, max_iter=10**9, rank=4, n_jobs=n_jobs)
    threads = threading.active_count()
    with ctrl_c_after(0.5) as sent, pytest.raises(KeyboardInterrupt):
        endless.set_params(multi_class=multi_class).fit(X, y)
    assert time.perf_counter() - sent[0] < 3.0
    while threading.active_count() > threads and time.perf_counter() - sent[0] < 3.0:
        time.sleep(0.01)
    assert threading.active_count() == threads  # no batch goes on unseen
