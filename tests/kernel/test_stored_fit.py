"""`KernelSVC` from a store: the fit of the same rows in memory, and never all of them at once."""

import multiprocessing
import pickle
from concurrent.futures import Executor, ProcessPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.base import clone

from widemargin import BlockStore, KernelSVC
from widemargin.kernel import lazy_rows, spread
from widemargin.kernel.exact import KernelRows
from widemargin.kernel.kernels import make_kernel
from widemargin.kernel.lazy_rows import LazyRows
from widemargin.stored import StoredMatrix

from .helpers import Elsewhere, points

pytestmark = pytest.mark.slow


def wide_points(n=2200, n_classes=2, layout=np.asarray):
    """With features that say nothing, mostly zero where rows are sparse."""
    X, y = points(n, n_classes)
    rng = np.random.default_rng(5)
    more = rng.normal(size=(n, 9)) * (rng.random((n, 9)) < (0.1 if layout is sp.csr_array else 1))
    return layout(np.hstack([X, more]).astype(np.float32)), y


def built(folder, X, y, *weight, **options):
    size = 300
    chunks = [tuple(a[k : k + size] for a in (X, y, *weight)) for k in range(0, X.shape[0], size)]
    return BlockStore.build(folder, chunks, keep="values", values_per_block=4000, **options)


def same_model(stored, whole):
    assert_array_equal(stored.support_, whole.support_)
    assert_array_equal(stored.model_.coef.values, whole.model_.coef.values)
    assert_array_equal(stored.intercept_, whole.intercept_)
    assert stored.duality_gap_ == whole.duality_gap_
    assert stored.gamma_ == whole.gamma_


@pytest.fixture(params=["some at once", "few at once"])
def memory(request, monkeypatch):
    """Clusters come to memory, or stay on disk but for what a tile needs."""
    if request.param == "few at once":
        monkeypatch.setattr(lazy_rows, "PREPARED", 1000)
        monkeypatch.setattr(lazy_rows, "FEW", 512)


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    "parameters",
    [
        {"early": 1},
        {"early": 1, "levels": 2, "class_weight": "balanced"},
        {"levels": 0},
        {"levels": 2, "C": 30.0},
        {"levels": 1, "tol": 1e-6},
        {"early": 1, "clustering": "kernel_kmeans"},
        {"early": 1, "kernel": "poly", "coef0": 1.0},
    ],
    ids=str,
)
def test_the_model_is_that_of_memory_to_the_last_bit(parameters, layout, tmp_path):
    X, y = wide_points(layout=layout)
    weight = np.random.default_rng(0).choice([0.5, 1.0, 2.0], len(y))
    store = built(tmp_path, X, y, weight)
    stored = KernelSVC(random_state=0, **parameters).fit(store)
    whole = KernelSVC(random_state=0, **parameters).fit(X, y, weight)
    same_model(stored, whole)
    np.testing.assert_allclose(stored.decision_function(X), whole.decision_function(X), rtol=1e-12)
    np.testing.assert_allclose(
        stored.decision_function(store), whole.decision_function(X), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("kernel", ["laplacian", "chi2"])
def test_kernels_that_are_functions(kernel, tmp_path):
    X, y = points(700)
    stored = KernelSVC(kernel, early=1, random_state=0).fit(built(tmp_path, X, y))
    same_model(stored, KernelSVC(kernel, early=1, random_state=0).fit(X, y))


def test_functions_of_the_user(tmp_path):
    X, y = points(300)
    store = built(tmp_path, X, y)
    model = KernelSVC(product, levels=1, random_state=0)
    same_model(model.fit(store), clone(model).fit(X, y))


def test_functions_of_the_user_get_numbers_that_do_not_overflow(tmp_path):
    X, y = points(200)
    X = np.round(200 * X)  # which a store keeps in a byte each
    store = built(tmp_path, X, y)
    assert store.matrix().dtype.itemsize < 8
    model = KernelSVC(lambda a, b: (a @ b.T) / 200**2, levels=0, random_state=0)
    same_model(model.fit(store), clone(model).fit(X, y))


def product(a, b):
    return (a @ b.T + 1) ** 2


def test_several_classes_and_threads(tmp_path):
    X, y = wide_points(n_classes=3)
    names = np.array(["one", "two", "three"])[y]
    settings = {"early": 1, "random_state": 0}
    stored = KernelSVC(n_jobs=2, **settings).fit(built(tmp_path, X, names))
    whole = KernelSVC(**settings).fit(X, names)
    same_model(stored, whole)
    assert stored.classes_.tolist() == ["one", "three", "two"]


def test_an_early_fit_reads_all_rows_a_block_or_a_cluster_at_a_time(tmp_path, monkeypatch):
    X, y = wide_points()
    store = built(tmp_path, X, y)
    taken, original = [], StoredMatrix.__getitem__

    def counted(matrix, which):
        rows = original(matrix, which)
        taken.append(rows.shape[0])
        return rows

    monkeypatch.setattr(StoredMatrix, "__getitem__", counted)
    monkeypatch.setattr(lazy_rows, "PREPARED", 1000)
    monkeypatch.setattr(lazy_rows, "FEW", 512)
    model = KernelSVC(early=2, random_state=0, sample_size=300).fit(store)
    largest = max(model.levels_[-1].sizes)
    assert largest < len(y) / 4
    assert max(taken) <= max(len(model.support_), largest, 512)
    assert {p.suffix for p in tmp_path.iterdir()} <= {".bin", ".json", ".lock"}  # nothing is left


def test_a_cluster_is_read_in_one_piece(tmp_path, monkeypatch):
    X, y = wide_points()
    matrix = built(tmp_path, X, y).matrix()
    kernel = make_kernel("rbf", 1.0, 0.0, 3, matrix)
    rows = LazyRows.on_disk(kernel, matrix)
    label = np.random.default_rng(0).integers(0, 6, len(y))
    data = KernelRows.of_data(kernel, rows, matrix, np.arange(len(y))).regrouped(label)
    for c in range(6):
        own = np.flatnonzero(label == c)
        places = data.rows.number[own]
        assert_array_equal(np.diff(places), 1)
        assert_array_equal(data[own].rows.data, kernel.prepare(X[own]).data)
        assert_array_equal(data.exact.rows[own].data, kernel.in_double().prepare(X[own]).data)


def test_a_checkpoint_goes_on_with_the_same_store_only(tmp_path):
    X, y = wide_points()
    folder = tmp_path / "checkpoint"
    settings = {"early": 1, "random_state": 0}
    store = built(tmp_path / "store", X, y)
    first = KernelSVC(checkpoint=folder, **settings).fit(store)
    parts = {p.name: p.stat().st_mtime_ns for p in folder.glob("*.part")}
    assert len(parts) > 2
    next(folder.glob("*.part")).unlink()
    same_model(KernelSVC(checkpoint=folder, **settings).fit(store), first)
    again = {p.name: p.stat().st_mtime_ns for p in folder.glob("*.part")}
    assert sum(again[name] != at for name, at in parts.items()) == 1
    other = built(tmp_path / "other", X + 1, y)
    with pytest.raises(ValueError, match="belongs to a fit with other data"):
        KernelSVC(checkpoint=folder, **settings).fit(other)


def test_names_and_a_path_of_C(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = points(600)
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    store = built(tmp_path, frame, y)
    models = KernelSVC(levels=0).fit_path(store, None, [1.0, 10.0])
    whole = KernelSVC(levels=0).fit_path(frame, y, [1.0, 10.0])
    for stored, other in zip(models, whole, strict=True):
        same_model(stored, other)
        assert stored.feature_names_in_.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("some", [[5, 1, 600], range(200, 500), []], ids=["some", "run", "none"])
def test_rows_on_disk_go_to_another_process_by_number(some, tmp_path):
    X, y = wide_points(700)
    matrix = built(tmp_path, X, y).matrix()
    rows = LazyRows.on_disk(make_kernel("rbf", 1.0, 0.0, 3, matrix), matrix)
    some = np.array(some, dtype=np.int64)
    there = pickle.loads(pickle.dumps(rows.chosen(some)))
    assert there.stored
    assert_array_equal(there.number, some)
    assert_array_equal(there[:].data, rows[some].data)
    assert_array_equal(there.taken().norms, rows[some].norms)


class Counted(Executor):
    """Processes, and the bytes that go to them and come from them."""

    def __init__(self, pool):
        self._pool, self.bytes, self.names = pool, 0, []

    def submit(self, function, *arguments):
        future = self._pool.submit(function, *arguments)
        self.bytes += len(pickle.dumps((function, arguments)))
        self.names.append(type(arguments[-1]).__name__)
        self.bytes += len(pickle.dumps(future.result()))
        return future


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    ("parameters", "n_classes"),
    [
        ({"early": 1}, 2),
        ({"levels": 1, "tol": 1e-2}, 2),
        ({"early": 1, "clustering": "kernel_kmeans"}, 2),
        ({"levels": 0, "multi_class": "ovo"}, 4),
    ],
    ids=str,
)
@pytest.mark.parametrize("most_rows", [2048], indirect=True)  # as in those processes
def test_other_processes_read_their_own_rows(
    parameters, n_classes, layout, processes, tmp_path, monkeypatch
):
    """Rows of 300 values; what travels is numbers of rows, dual variables, centres, labels."""
    monkeypatch.setattr(spread, "VALUES", 1)
    monkeypatch.setattr(spread, "ROWS_AT_ONCE", 1024)
    X, y = wide_points(2400, n_classes)
    X = layout(np.tile(X, (1, 25)))
    store = built(tmp_path, X, y)
    settings = {"random_state": 0, "gamma": 0.01, "sample_size": 40, **parameters}
    there = Elsewhere(**settings)
    there.pool = Counted(processes)
    same_model(there.fit(store), KernelSVC(**settings).fit(store))
    kinds = {"Task"} if parameters.get("levels") == 0 else {"AssignTask", "Task"}
    assert set(there.pool.names) == kinds
    assert there.pool.bytes < store.nbytes / 4
    assert not list(tmp_path.glob("grouped-*"))


def test_only_a_file_that_is_shared_has_a_name(tmp_path):
    X, y = wide_points(700)
    matrix = built(tmp_path, X, y).matrix()
    label = np.arange(700) % 3
    order = np.argsort(label, kind="stable")
    matrix.grouped(order, label)
    assert not list(tmp_path.glob("grouped-*"))
    grouped = matrix.grouped(order, label, shared=True)
    assert len(list(tmp_path.glob("grouped-*.tmp"))) == 1
    assert_array_equal(pickle.loads(pickle.dumps(grouped))[5:9], X[order][5:9])
    del grouped
    assert not list(tmp_path.glob("grouped-*"))


def test_a_worker_that_does_not_see_the_folder_says_so(tmp_path):
    X, y = wide_points(700)
    matrix = built(tmp_path / "store", X, y).matrix()
    (tmp_path / "store").rename(tmp_path / "elsewhere")
    with pytest.raises(FileNotFoundError, match="workers must see the folder") as caught:
        matrix[:3]
    assert caught.value.filename.startswith(str(tmp_path / "store"))


@pytest.mark.parametrize(
    ("parameters", "given", "said"),
    [
        ({"kernel": "precomputed"}, {}, "kernel='precomputed' takes a kernel matrix, not a store"),
        ({}, {"y": [0, 1]}, "y must be None if X is a store"),
        ({}, {"sample_weight": [1, 2]}, "sample_weight must be None if X is a store"),
    ],
    ids=str,
)
def test_what_a_store_does_not_take(parameters, given, said, tmp_path):
    store = built(tmp_path, *points(60))
    with pytest.raises(ValueError, match=said):
        KernelSVC(**parameters).fit(store, **given)


def test_values_that_a_kernel_does_not_take_are_named(tmp_path):
    X, y = wide_points(700)
    X = np.abs(X)
    X[650, 4] = -1
    with pytest.raises(ValueError, match="Negative values in data: row 650, column 4"):
        KernelSVC("chi2").fit(built(tmp_path, X, y))


def test_codes_are_refused(tmp_path):
    X, y = points(60)
    store = BlockStore.build(tmp_path, [(X, y)])
    with pytest.raises(ValueError, match=r"holds codes, .* keep='values'"):
        KernelSVC().fit(store)
