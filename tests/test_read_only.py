"""No input is ever written: whatever reads it runs on arrays that cannot be, and leaves every byte.

Joblib hands large arrays to its workers as read-only memory maps, so a grid search is such a case.
"""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from widemargin import AdditiveMap, AdditiveSVC, KernelSVC, explain, read, save
from widemargin.data import write_svmlight
from widemargin.export import export_libsvm, export_onnx, export_shapes
from widemargin.report import evaluate
from widemargin.search import Search
from widemargin.selection import Candidate, Sample, tune

# ------------------------------------------------------------------ layouts


def numbers(seed=0, n=60, d=5):
    """Small whole numbers, so that every type holds them; half are zeros."""
    rng = np.random.default_rng(seed)
    return rng.integers(1, 9, (n, d)) * (rng.random((n, d)) < 0.5)


def in_pieces(X):
    """Triplets with every entry twice, or three times, from the last to the first."""
    row, column = np.nonzero(X)
    value = X[row, column].astype(float)
    parts = [(value / 2, row, column), (value / 4, row, column), (value / 4, row, column)]
    value, row, column = (np.concatenate(a)[::-1] for a in zip(*parts, strict=True))
    return sp.coo_array((value, (row, column)), shape=X.shape)


def compressed(X, index=np.int32, major="row"):
    """CSR or CSC as a program may put it together: unsorted, and with duplicates."""
    pieces = in_pieces(X)
    row, column = pieces.coords if major == "row" else pieces.coords[::-1]
    order = np.argsort(row, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=X.shape[major != "row"]))])
    kind = sp.csr_array if major == "row" else sp.csc_array
    made = kind(X.shape)
    made.data, made.indices, made.indptr = (
        pieces.data[order], column[order].astype(index), start.astype(index)
    )  # fmt: skip
    made.has_canonical_format = made.has_sorted_indices = False
    return made


LAYOUTS = {
    "rows": lambda X: X.astype(np.float64),
    "columns": lambda X: np.asfortranarray(X, dtype=np.float32),
    "strided": lambda X: np.repeat(np.repeat(X.astype(np.float64), 2, axis=0), 3, axis=1)[::2, ::3],
    "backwards": lambda X: X.astype(np.float32)[::-1, ::-1].copy()[::-1, ::-1],
    "int64": lambda X: X.astype(np.int64),
    "uint8": lambda X: X.astype(np.uint8),
    "big endian": lambda X: X.astype(">f8"),
    "CSR": lambda X: sp.csr_array(X.astype(np.float64)),
    "CSR, unsorted with duplicates": compressed,
    "CSR of int64 indices": lambda X: compressed(X, np.int64),
    "CSR in single precision": lambda X: compressed(X).astype(np.float32),
    "CSR matrix": lambda X: sp.csr_matrix(compressed(X)),
    "CSC, unsorted with duplicates": lambda X: compressed(X, major="column"),
    "CSC of int64 indices": lambda X: compressed(X, np.int64, "column"),
    "COO with duplicates": in_pieces,
}


def parts(X):
    """The arrays of a matrix by name."""
    if not sp.issparse(X):
        return {"values": X}
    if X.format == "coo":
        return {"data": X.data, "row": X.coords[0], "column": X.coords[1]}
    return {"data": X.data, "indices": X.indices, "indptr": X.indptr}


def contents(*inputs):
    """Every byte of some inputs, with type and shape."""
    arrays = [a for given in inputs for a in parts(given).values()]
    return [(a.dtype.str, a.shape, a.tobytes()) for a in arrays]


def locked(X):
    for array in parts(X).values():
        array.flags.writeable = False
    return X


def mapped(X, folder):
    """The same on memory maps that cannot be written."""

    def on_disk(name, array):
        np.save(folder / f"{name}.npy", array)  # keeps the order of columns
        return np.load(folder / f"{name}.npy", mmap_mode="r")

    arrays = {name: on_disk(name, array) for name, array in parts(X).items()}
    if not sp.issparse(X):
        return arrays["values"]
    X = X.copy()
    if X.format == "coo":
        X.data, X.coords = arrays["data"], (arrays["row"], arrays["column"])
        return X
    X.data, X.indices, X.indptr = arrays["data"], arrays["indices"], arrays["indptr"]
    return X


# ------------------------------------------------------------------ what reads


def use(model, X, y, weight):
    """All that every classifier has; without weights a fit sees the input itself."""
    model.fit(X, y, sample_weight=weight)
    model.fit(X, y)
    model.predict(X)
    model.decision_function(X)
    model.score(X, y, sample_weight=weight)
    evaluate(model, X, y)
    model.fit_path(X, y, [0.5, 1.0])
    return model


def additive(X, y, weight, folder):
    model = use(AdditiveSVC("chi2", warm_start=True, class_weight="balanced"), X, y, weight)
    model.contributions(X)
    model.approximation_error(X)
    explain(model).importances(X)
    export_shapes(model, folder / "shapes.json")
    export_onnx(model, folder / "additive.onnx")
    save(model, folder / "additive")


def additive_kinds(X, y, weight, folder):
    use(
        AdditiveSVC("intersection", multi_class="crammer_singer", scaling="percentile"),
        X,
        y,
        weight,
    )
    use(AdditiveSVC("linear", approximation="unary", binning="exact", scaling=None), X, y, weight)


def mapping(X, y, weight, folder):
    AdditiveMap("chi2").fit(X, y, sample_weight=weight).transform(X)
    AdditiveMap("intersection", scaling="minmax").fit_transform(X, y)


def inner(X, y, weight, folder):
    settings = {"multi_class": "ovo", "class_weight": {0: 2.0}, "warm_start": True}
    model = use(KernelSVC("rbf", levels=1, **settings), X, y, weight)
    export_libsvm(model, folder / "model.txt")
    export_onnx(model, folder / "kernel.onnx")
    save(model, folder / "kernel")


def inner_kinds(X, y, weight, folder):
    use(KernelSVC("poly", fit_intercept=True, record_levels=True), X, y, weight)
    use(KernelSVC("rbf", early=1, levels=1), X, y, weight)
    KernelSVC(checkpoint=folder / "fit").fit(X, y)


def function(X, y, weight, folder):
    use(KernelSVC(rbf_kernel, levels=1), X, y, weight)


def distances(X, y, weight, folder):
    if not sp.issparse(X):
        use(KernelSVC("laplacian"), X, y, weight)
        use(KernelSVC("chi2"), X, y, weight)


def given_matrix(X, y, weight, folder):
    if not sp.issparse(X):
        K = locked(X @ X.T)
        before = contents(K)
        save(use(KernelSVC("precomputed"), K, y, weight), folder / "precomputed")
        assert contents(K) == before


def choosing(X, y, weight, folder):
    if not sp.issparse(X) or X.format == "csr":  # rows are taken by number
        tune([Candidate({}, KernelSVC()), Candidate({}, AdditiveSVC())], X, y, [1.0], folds=2)
        assert next(Search(Sample(X, np.asarray(y)), seconds=0.0).trials())


def files(X, y, weight, folder):
    path = folder / "data.txt"
    write_svmlight(path, X if X.dtype.isnative else X.astype(float), y)  # as SciPy wants it
    before = path.read_bytes()
    read(path)
    assert path.read_bytes() == before


READERS = [additive, additive_kinds, mapping, inner, inner_kinds, function, distances,
           given_matrix, choosing, files]  # fmt: skip


def run(reader, X, folder):
    """One reader on an input, with labels and weights that cannot be written either."""
    y = locked(np.arange(X.shape[0]) % 3)
    weight = locked(np.where(np.arange(X.shape[0]) % 7 == 0, 0.0, 1.5))
    before = contents(X, y, weight)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message="warm_start=True, but the number of rows")
        reader(X, y, weight, folder)
    assert contents(X, y, weight) == before


each_reader = pytest.mark.parametrize("reader", READERS, ids=lambda f: f.__name__)


@pytest.mark.parametrize("layout", LAYOUTS)
@each_reader
def test_an_input_that_cannot_be_written_is_read(reader, layout, tmp_path):
    run(reader, locked(LAYOUTS[layout](numbers())), tmp_path)


SPARSE = [name for name in LAYOUTS if name.startswith("C")]


@pytest.mark.parametrize("layout", SPARSE)
@each_reader
def test_an_input_that_could_be_written_is_not(reader, layout, tmp_path):
    run(reader, LAYOUTS[layout](numbers()), tmp_path)


@pytest.mark.parametrize("layout", ["rows", "columns", *SPARSE])
@each_reader
def test_a_read_only_memory_map_is_read(reader, layout, tmp_path):
    run(reader, mapped(LAYOUTS[layout](numbers()), tmp_path), tmp_path)


def in_worker(X, folder):
    """What a worker of joblib does: the maps it gets are read-only."""
    assert not any(array.flags.writeable for array in parts(X).values())
    for reader in READERS:
        own = folder / reader.__name__
        own.mkdir()
        run(reader, X, own)


def test_workers_of_joblib_read_the_maps_they_get(tmp_path):
    chosen = ["rows", "columns", "CSR, unsorted with duplicates", "CSR of int64 indices",
              "CSC, unsorted with duplicates"]  # fmt: skip
    folders = [tmp_path / str(k) for k in range(len(chosen))]
    for folder in folders:
        folder.mkdir()
    matrices = [LAYOUTS[name](numbers(n=200)) for name in chosen]
    Parallel(n_jobs=2, max_nbytes=1)(
        delayed(in_worker)(X, folder) for X, folder in zip(matrices, folders, strict=True)
    )
