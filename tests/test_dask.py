"""Fits on a cluster of real worker processes: the same models (test_kills.py has their deaths)."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.datasets import load_digits, make_blobs

import widemargin

pytest.importorskip("distributed")

import dask
import dask.array as da
import dask.dataframe as dd
import pandas as pd
from distributed import Client, Future, LocalCluster

from widemargin.dask import AdditiveSVC, KernelSVC, ShardsOnCluster
from widemargin.engine import RETRIES, ClusterExecutor

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster():
    """Two workers, which come back whenever they are killed.

    Some seconds after a worker was lost a LocalCluster gives up one that is not there; a worker
    that is killed twice within them is not there then.
    """
    own = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"}),
        LocalCluster(**own) as cluster,
    ):
        yield cluster


@pytest.fixture(scope="module")
def client(cluster):
    with Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:600], y[:600]


def blobs(n=4000):
    return make_blobs(n, n_features=8, centers=12, cluster_std=2.0, random_state=0)


def test_an_early_model_is_the_one_without_a_cluster(client):
    X, y = blobs()
    parameters = {"early": 1, "C": 4.0, "random_state": 0}
    ours = KernelSVC(client=client, **parameters).fit(X, y % 2)
    plain = widemargin.KernelSVC(**parameters).fit(X, y % 2)
    np.testing.assert_array_equal(ours.decision_function(X), plain.decision_function(X))
    assert ours.duality_gap_ == plain.duality_gap_


@pytest.mark.parametrize("parameters", [{"early": 1}, {"levels": 1, "tol": 1e-2}, {"levels": 0}])
def test_a_store_of_values_is_fitted_to_the_bits_of_arrays(client, parameters, tmp_path):
    X, y = blobs(1500)
    y = y if parameters == {"levels": 0} else y % 2  # pairs of classes
    chunks = [(X[k : k + 200], y[k : k + 200]) for k in range(0, len(y), 200)]
    options = {"keep": "values", "values_per_block": 2000}
    store = widemargin.BlockStore.build(tmp_path / "store", chunks, **options)
    ours = KernelSVC(client=client, C=4.0, random_state=0, **parameters).fit(store)
    plain = widemargin.KernelSVC(C=4.0, random_state=0, **parameters).fit(X, y)
    np.testing.assert_array_equal(ours.decision_function(X), plain.decision_function(X))
    np.testing.assert_array_equal(ours.predict(store), plain.predict(X))


def test_pairs_of_classes_are_solved_by_workers(client):
    X, y = blobs()
    ours = KernelSVC(client=client, C=4.0, random_state=0, levels=0).fit(X, y)
    plain = widemargin.KernelSVC(C=4.0, random_state=0, levels=0).fit(X, y)
    np.testing.assert_array_equal(ours.decision_function(X), plain.decision_function(X))


def test_batches_of_classes_are_solved_by_workers(client):
    X, y = make_blobs(2000, n_features=8, centers=20, random_state=0)
    ours = AdditiveSVC("chi2", client=client, random_state=0).fit(X, y)
    plain = widemargin.AdditiveSVC("chi2", random_state=0).fit(X, y)
    np.testing.assert_array_equal(ours.decision_function(X), plain.decision_function(X))


def test_joblib_says_where_tasks_run(client):
    X, y = blobs()
    plain = widemargin.KernelSVC(early=1, random_state=0).fit(X, y % 2)
    before = len(client.run(os.getpid))
    with parallel_config("dask"):
        there = widemargin.KernelSVC(early=1, random_state=0).fit(X, y % 2)
        assert not isinstance(there._executor(), widemargin.engine.Threads)
    assert before == 2
    np.testing.assert_array_equal(there.decision_function(X), plain.decision_function(X))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_collections_are_fitted_and_predicted_lazily(client, n_classes):
    X, y = make_blobs(300, n_features=4, centers=n_classes, random_state=1)
    lazy_X, lazy_y = da.from_array(X, chunks=(100, 2)), da.from_array(y, chunks=100)
    model = AdditiveSVC(client=client, random_state=0).fit(lazy_X, lazy_y)
    plain = widemargin.AdditiveSVC(random_state=0).fit(X, y)
    predicted, scores = model.predict(lazy_X), model.decision_function(lazy_X)
    assert isinstance(predicted, da.Array)
    np.testing.assert_array_equal(predicted.compute(), plain.predict(X))
    np.testing.assert_array_equal(scores.compute(), plain.decision_function(X))
    assert scores.shape == plain.decision_function(X).shape
    assert predicted.dtype == plain.predict(X).dtype


def test_data_frames_are_fitted_and_predicted_lazily(client):
    X, y = make_blobs(300, n_features=3, centers=2, random_state=1)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    lazy = dd.from_pandas(frame, npartitions=3)
    model = AdditiveSVC(client=client, random_state=0).fit(lazy, pd.Series(y, name="kind"))
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.label_name_ == "kind"
    np.testing.assert_array_equal(model.predict(lazy).compute(), model.predict(frame))


def test_clones_share_the_client_and_models_leave_it(client, digits, tmp_path):
    X, y = digits
    model = clone(AdditiveSVC("chi2", C=2.0, client=client, random_state=0))
    assert model.client is client
    assert model.C == 2.0
    model.fit(X, y)
    widemargin.save(model.to_local(), tmp_path / "model")
    again = widemargin.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert type(again) is widemargin.AdditiveSVC


def test_a_result_stays_one_when_its_worker_is_lost_just_then(client, monkeypatch):
    """Dask's own executor asks for the status after the result, and raised ValueError here."""
    bring = Future._result

    async def bring_and_lose(self, raiseit=True):
        result = await bring(self, raiseit)
        self._state.lose()
        return result

    monkeypatch.setattr(Future, "_result", bring_and_lose)
    assert ClusterExecutor(client).submit(sorted, "badc", reverse=True).result(60) == list("dcba")


def test_an_executor_hands_on_errors_and_withdraws_tasks(client):
    executor = ClusterExecutor(client)
    with pytest.raises(ZeroDivisionError):
        executor.submit(divmod, 1, 0).result(60)
    waiting = executor.submit(time.sleep, 60)
    assert waiting.cancel()
    with pytest.raises(CancelledError):
        waiting.result(60)
    assert executor.submit(divmod, 7, 2).result(30) == (3, 1)


@pytest.mark.parametrize("start", [ClusterExecutor, lambda client: ShardsOnCluster(client, [])])
def test_a_scheduler_is_told_to_bear_losses(client, start):
    """Of its own, it gives a task up when a fourth worker is lost."""

    def allowed(dask_scheduler, most=None):
        dask_scheduler.allowed_failures = most or dask_scheduler.allowed_failures
        return dask_scheduler.allowed_failures

    for before, after in [(3, RETRIES), (RETRIES + 5, RETRIES + 5)]:
        client.run_on_scheduler(allowed, most=before)
        start(client)
        assert client.run_on_scheduler(allowed) == after


def test_a_killed_worker_leaves_its_rows_on_disk_to_another(client, tmp_path, monkeypatch):
    """The store has a name that means something only here: workers began in another folder."""
    monkeypatch.chdir(tmp_path)
    X, y = blobs(12000)
    chunks = [(X[k : k + 1000], y[k : k + 1000]) for k in range(0, len(y), 1000)]
    store = widemargin.BlockStore.build("store", chunks, keep="values", values_per_block=8000)
    parameters = {"early": 2, "levels": 3, "C": 8.0, "random_state": 0}
    plain = widemargin.KernelSVC(**parameters).fit(store)
    victim = next(iter(client.run(os.getpid).values()))
    killer = threading.Timer(1.0, os.kill, (victim, signal.SIGKILL))
    killer.start()
    model = KernelSVC(client=client, **parameters).fit(store)
    killer.join()
    np.testing.assert_array_equal(model.dual_coef_, plain.dual_coef_)
    assert model.duality_gap_ == plain.duality_gap_
    assert not list((tmp_path / "store").glob("grouped-*"))
    client.wait_for_workers(2, timeout=60)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    X, y = load_digits(return_X_y=True)
    chunks = [(X[a : a + 200], y[a : a + 200]) for a in range(0, len(y), 200)]
    folder = tmp_path_factory.mktemp("digits")
    return widemargin.BlockStore.build(folder, chunks, values_per_block=200 * 64)


def test_a_store_is_fitted_in_shards(client, store, digits):
    X, y = digits
    whole = widemargin.AdditiveSVC("chi2", tol=0.05, random_state=0).fit(store)
    model = AdditiveSVC("chi2", tol=0.05, client=client, random_state=0).fit(store)
    assert model.converged_
    assert abs(model.objective_ / whole.objective_ - 1) < 0.05
    assert np.mean(model.predict(X) == whole.predict(X)) > 0.99
    assert model.to_local().score(X, y) > 0.95
    one = AdditiveSVC("chi2", tol=0.05, client=client, n_shards=1, random_state=0).fit(store)
    assert one.n_iter_ < model.n_iter_


def test_the_model_of_a_store_does_not_depend_on_the_workers(client, store, digits):
    X, _ = digits
    settings = {"tol": 0.05, "n_shards": 3, "random_state": 0}
    models = [AdditiveSVC("chi2", client=client, **settings).fit(store) for _ in range(2)]
    np.testing.assert_array_equal(*(m.decision_function(X) for m in models))


@pytest.mark.parametrize(
    "parameters",
    [{"approximation": "chebyshev"}, {"multi_class": "crammer_singer"}, {"warm_start": True}],
    ids=str,
)
def test_what_cannot_be_fitted_in_shards_is_refused(client, store, parameters):
    with pytest.raises(ValueError, match="fitted in shards"):
        AdditiveSVC("chi2", client=client, **parameters).fit(store)
    with pytest.raises(ValueError, match="n_shards=0"):
        AdditiveSVC("chi2", client=client, n_shards=0).fit(store)


def test_shards_resume_from_the_last_rounds_that_were_kept(client, tmp_path):
    """After 25 rounds and the loss of all workers, 5 are done again: 20 have been brought here."""
    from types import SimpleNamespace

    def descend(part, state, told):
        with open(part.journal, "a") as file:
            file.write(f"{state}\n")
        return state + told, state

    # Functions of a test travel by value.
    journals = [tmp_path / "0", tmp_path / "1"]
    shards = ShardsOnCluster(client, [SimpleNamespace(journal=j, first_state=0) for j in journals])
    for k in range(25):
        assert shards.each(descend, 1) == [k, k]
    for victim in client.run(os.getpid).values():
        os.kill(victim, signal.SIGKILL)
    for journal in journals:
        journal.unlink()
    assert shards.each(descend, 1) == [25, 25]
    for journal in journals:
        assert sorted(set(map(int, journal.read_text().split()))) == list(range(20, 26))


LATE = 60  # seconds that the loss of a scheduler may take to be told


@pytest.fixture
def lone_scheduler(tmp_path):
    """A scheduler and a worker in processes of their own, that nobody starts again."""
    where = tmp_path / "scheduler.json"
    own = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    module, more = [sys.executable, "-m"], ["--scheduler-file", where, "--no-dashboard"]
    command = [*module, "distributed.cli.dask_scheduler", *more, "--host", "127.0.0.1"]
    scheduler = subprocess.Popen([*command, "--port", "0"], **own)
    deadline = time.monotonic() + LATE
    while not where.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    command = [*module, "distributed.cli.dask_worker", *more, "--no-nanny", "--nthreads", "1"]
    worker = subprocess.Popen(command, **own)
    with Client(scheduler_file=where, set_as_default=False) as client:
        client.wait_for_workers(1, timeout=LATE)
        yield scheduler, client
    for process in (scheduler, worker):
        process.kill()
        process.wait()


@pytest.mark.parametrize("machine", ["rounds", "tasks"])
def test_a_scheduler_that_is_lost_is_an_error_soon(machine, lone_scheduler, store):
    scheduler, client = lone_scheduler
    killer = threading.Timer(1.0, scheduler.kill)
    killer.start()
    if machine == "rounds":
        model = AdditiveSVC("chi2", tol=1e-9, max_iter=10**6, n_shards=2, client=client)
        data = (store,)
    else:
        model, data = KernelSVC(early=1, levels=2, C=1e4, tol=1e-6, client=client), blobs(20_000)
    started = time.monotonic()
    with pytest.raises(ConnectionError, match=r"Dask's scheduler .* was lost"):
        model.fit(*data)
    assert time.monotonic() - started < LATE
    killer.join()
