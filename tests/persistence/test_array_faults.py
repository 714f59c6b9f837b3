"""Every array of a model file, hostile or damaged; and the memory that loading takes."""

import json
import threading
import tracemalloc

import numpy as np
import pytest

from widemargin import AdditiveSVC, KernelSVC, load, save
from widemargin.persistence import parameters

from .cases import Case, fitted, rows
from .damage import Parts, damaged, each_kind, machines, outcome, refused, replaced, without_notes

# ------------------------------------------------------------------ arrays


def changed(parts: Parts, name: str, array: np.ndarray) -> bytes:
    return Parts(parts.header, parts.arrays | {name: np.ascontiguousarray(array)}).content()


@each_kind
def test_arrays_that_are_missing(kind, path, parts, X):
    for name in parts.arrays:
        fewer = {k: v for k, v in parts.arrays.items() if k != name}
        refused(path, Parts(parts.header, fewer).content(), X)
        renamed = fewer | {name[:-1]: parts.arrays[name]}
        refused(path, Parts(parts.header, renamed).content(), X)


@each_kind
def test_arrays_that_nobody_knows(kind, path, parts, X):
    for name in ("x", "0/x", "offsets", "router.x", "1/coef2", "../weights", ""):
        refused(path, changed(parts, name, np.zeros(2)), X, "unexpected arrays")


@each_kind
def test_arrays_that_belong_elsewhere(kind, path, parts, X):
    """Of the right name, but not for a model of this kind."""
    prefix = "1/" if "steps" in parts.header else ""
    for name in ("offset", "centre", "cluster", "router.centres", "tables.left", "router.members"):
        if prefix + name not in parts.arrays:
            refused(path, changed(parts, prefix + name, np.zeros(2)), X)


# float32 or float64 or, of counts, whole numbers: as it comes
EITHER = ("tables.right", "tables.left", "_")


@each_kind
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "i1", "i4", "i8", "u1", "u8", "?"])
def test_arrays_of_another_type(kind, dtype, path, parts, X):
    for name, array in parts.arrays.items():
        allowed = ("f4", "f8") if name.endswith(EITHER) else ()
        allowed = ("f4", "f8", "i8") if name.endswith("n_samples_seen_") else allowed
        if array.dtype != dtype and dtype not in allowed:
            with np.errstate(over="ignore"):
                refused(path, changed(parts, name, array.astype(dtype)), X, what=name)


SHAPES = {
    "one more": lambda a: np.concatenate([a, a[-1:]]),
    "one less": lambda a: a[:-1],
    "none": lambda a: a[:0],
    "another axis": lambda a: a[None],
    "a last axis": lambda a: a[..., None],
    "a wider last axis": lambda a: np.concatenate([a, a[..., -1:]], axis=-1),
    "a narrower last axis": lambda a: a[..., :-1],
    "flat": lambda a: a.ravel(),
    "turned": lambda a: a.T,
    "a number": lambda a: a.ravel()[0],
}


@each_kind
@pytest.mark.parametrize("change", SHAPES)
def test_arrays_of_another_shape(kind, change, path, parts, X):
    tested = 0
    for name, array in parts.arrays.items():
        other = np.asarray(SHAPES[change](array))
        if other.shape == array.shape or (name, change) == ("router.centres", "one more"):
            continue  # there can be any number of centres
        content = Parts(parts.header, parts.arrays | {name: other.copy(order="C")}).content()
        refused(path, content, X)
        tested += 1
    assert tested


@each_kind
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_arrays_with_numbers_that_are_none(kind, value, path, parts, X):
    for name, array in parts.arrays.items():
        if array.dtype.kind != "f":
            continue
        for at in {0, array.size // 2, array.size - 1}:
            if name.endswith("thresholds") and at == 0 and value == -np.inf:
                continue  # zero is a value: this is how the encoder says so
            other = array.copy()
            other.flat[at] = value
            refused(path, changed(parts, name, other), X, name)


INDICES = ("support", "cluster", "column", "index")
POINTERS = ("start", "offset")
ASCENDING = ("thresholds", "representatives", "vectors.index", "sample.index")


def _named(arrays, endings):
    return [n for n in arrays if n.endswith(endings)]


@each_kind
@pytest.mark.parametrize("value", [-1, -(2**31), 2**31 - 1, -(2**63), 2**63 - 1])
def test_indices_out_of_range(kind, value, path, parts, X):
    for name in _named(parts.arrays, INDICES):
        array = parts.arrays[name]
        top = np.iinfo(array.dtype).max
        if not -top - 1 <= value <= top or (name.endswith("support") and 0 <= value < 2**62):
            continue
        for at in (0, -1):
            other = array.copy()
            other[at] = value
            refused(path, changed(parts, name, other), X, name)


@each_kind
@pytest.mark.parametrize("value", [-1, 1, 10**6, 2**63 - 1, -(2**63)])
def test_pointers_that_do_not_ascend(kind, value, path, parts, X):
    for name in _named(parts.arrays, POINTERS):
        for at in range(len(parts.arrays[name])):
            other = parts.arrays[name].copy()
            other[at] = value
            monotone = other[0] == 0 and other[-1] == parts.arrays[name][-1]
            monotone = monotone and np.all(np.diff(other.astype(object)) >= 0)
            result = outcome(path, changed(parts, name, other), X)
            assert monotone or isinstance(result, ValueError)


@each_kind
def test_arrays_that_descend(kind, path, parts, X):
    for name in _named(parts.arrays, ASCENDING):
        array = parts.arrays[name]
        if len(np.unique(array)) > 1:
            refused(path, changed(parts, name, array[::-1]), X, name)
            other = array.copy()
            other[-1] = np.sort(array)[0] if name.endswith("thresholds") else -1
            refused(path, changed(parts, name, other), X, name)


EMPTY = ("coef", "support", "cluster", "data", "norms", "index", "value", "column")


@pytest.mark.parametrize("kind", ["rbf", "points", "compressed", "precomputed"])
def test_a_model_without_vectors(kind, path, parts, X):
    """Nothing is wrong with it; but a router has a centre at least."""
    for name, array in list(parts.arrays.items()):
        if not name.startswith("router") and name.endswith(EMPTY):
            parts.arrays[name] = array[:0]
        elif name == "vectors.start":
            parts.arrays[name] = np.zeros(1, dtype=np.int64)
    np.testing.assert_array_equal(outcome(path, parts.content(), X), np.zeros((3, 3)))
    if "router.centres" in parts.arrays:
        parts.arrays["router.centres"] = parts.arrays["router.centres"][:0]
        refused(path, parts.content(), X, "'router.centres' must not be empty")
    if "router.members" in parts.arrays:
        parts.arrays["router.members"] = parts.arrays["router.members"][:, :0]
        parts.arrays["router.constants"] = np.zeros(0)
        refused(path, parts.content(), X, "'router.members' must not be empty")


@pytest.mark.parametrize("n", [0, 2, 4])
def test_scales_of_other_widths(n, path, folder):
    parts, _, X = damaged("spectral", folder)
    arrays = parts.arrays | {"shift": np.zeros(n), "factor": np.ones(n)}
    refused(path, Parts(parts.header, arrays).content(), X, f"'shift' has {n} entries")


def test_bins_below_zero(path, folder):
    parts, _, X = damaged("direct", folder)
    t = parts.arrays["representatives"]
    below = np.append(0, np.linspace(-2, -1, len(t) - 1))
    refused(path, changed(parts, "representatives", below), X, "representatives")


@pytest.mark.parametrize("rank", [0, 5, 6, 7])
def test_ranks_that_the_core_has_no_loop_for(rank, path, folder):
    parts, _, X = damaged("spectral", folder)
    n_codes, n_features = len(parts.arrays["representatives"]), 2**26 if rank == 0 else 3
    header = parts.header | {"n_features": n_features}
    arrays = parts.arrays | {
        "table": np.zeros((n_codes, rank), dtype=np.float32),
        "weights": np.zeros((1, n_features, rank, 16), dtype=np.float32),
        "shift": np.zeros(1),
        "factor": np.ones(1),
    }
    refused(path, Parts(header, arrays).content(), X, "'table' cannot be used to predict")


@pytest.mark.parametrize("kind", ["unary", "scaled"])
def test_tables_that_are_not_of_logarithms(kind, path, parts, X):
    machines(parts.header)[0]["own"]["direct"] = True
    refused(path, parts.content(), X, "own.direct must be false")


def test_unary_tables_of_any_sizes(path, folder):
    """A feature without cells, or with all of them, is odd but within the array."""
    parts, _, X = damaged("unary", folder)
    n_cells = parts.arrays["weights"].shape[1]
    n_codes = len(parts.arrays["representatives"])
    for offset in ([0, 0, 0, n_cells], [0, n_cells, n_cells, n_cells], [0, 1, 1, n_cells]):
        result = outcome(path, changed(parts, "offset", np.array(offset)), X)
        assert (np.max(np.diff(offset)) > n_codes) == isinstance(result, ValueError)


@pytest.mark.parametrize("kind", ["spectral", "unary", "direct"])
def test_shares_that_cannot_be(kind, path, parts, X):
    start, code, share = (parts.arrays[f"shares.{name}"] for name in ("start", "code", "share"))
    first = code[start[0] : start[1]]
    assert len(first) > 1
    for other in (first[::-1], 0 * first, np.full_like(first, code.max())):
        changed_codes = np.concatenate([other, code[start[1] :]])
        refused(path, changed(parts, "shares.code", changed_codes), X, "'shares.code' must ascend")
    for other in (-share, 2 + share):
        refused(path, changed(parts, "shares.share", other), X, "'shares.share' must not be")


@pytest.mark.parametrize("kind", ["rbf", "pipeline"])
def test_norms_below_zero(kind, path, parts, X):
    name = next(n for n in parts.arrays if n.endswith("vectors.norms"))
    refused(path, changed(parts, name, -1 - parts.arrays[name]), X, name)


@pytest.mark.parametrize("name", ["0/scale_", "0/n_samples_seen_"])
@pytest.mark.parametrize("kind", ["pipeline", "scaled"])
def test_scales_of_zero_and_counts_below(kind, name, path, parts, X):
    value = 0 if name == "0/scale_" else -1
    refused(path, changed(parts, name, 0 * parts.arrays[name] + value), X, name)


@each_kind
def test_extreme_but_finite_numbers(kind, path, parts, X):
    """Decision values may overflow; nothing else may happen."""
    for name, array in parts.arrays.items():
        if array.dtype.kind == "f":
            top = np.finfo(array.dtype).max
            for value in (top, -top, np.finfo(array.dtype).smallest_subnormal, 0):
                outcome(path, changed(parts, name, np.full_like(array, value)), X)
                other = array.copy()
                other.flat[-1] = value
                outcome(path, changed(parts, name, other), X)


# ------------------------------------------------------------------ memory


def _peak(run) -> int:
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_of_a_large_model(path):
    X = rows(6, 200_000, seed=1)
    model = Case(AdditiveSVC("chi2", rank=4, max_iter=2), X, [0, 1, 2, 0, 1, 2]).fit()
    save(model, path)
    size = path.stat().st_size
    assert 50e6 < size < 65e6
    found = []
    assert size < _peak(lambda: found.append(load(path))) < 1.5 * size
    np.testing.assert_array_equal(found[0].decision_function(X), model.decision_function(X))


@each_kind
def test_memory_of_large_claims(kind, path, parts, X):
    """A few kilobytes that speak of billions."""
    peaks = {}
    for where, old in without_notes(parts.header):
        if type(old) is int:
            header = replaced(parts.header, where, 2**31 - 1)
            content = parts.content(json.dumps(header))
            peaks[where] = _peak(lambda content=content: outcome(path, content, X))
    assert max(peaks.values()) < 5e6, max(peaks, key=peaks.get)


@pytest.mark.parametrize("layout", ["precomputed", "compressed"])
def test_memory_of_many_features(layout, path, folder):
    """Layouts whose arrays say nothing of the number of features."""
    parts = damaged(layout, folder)[0].copy()
    parts.header["n_features"] = 2**31 - 1
    assert _peak(lambda: outcome(path, parts.content(), np.ones((2, 3)))) < 5e6


def test_memory_of_unequal_labels(path, folder):
    """NumPy gives every text the room of the longest."""
    parts = damaged("rbf", folder)[0].copy()
    values = sorted([*(f"{k:05d}" for k in range(20_000)), "x" * 1_000_000])
    parts.header["classes"] = {"dtype": "str", "values": values}
    content = parts.content()
    assert _peak(lambda: refused(path, content, None, "labels")) < 10 * len(content)


def test_labels_that_would_not_load_are_not_saved(path, monkeypatch):
    monkeypatch.setattr(parameters, "_MOST_CHARACTERS", 5)
    with pytest.raises(ValueError, match="labels are too long"):
        save(fitted("two texts")[0], path)
    assert not path.exists()


def test_threads_of_a_file_are_few(folder, path):
    parts = damaged("rbf", folder)[0].copy()
    parts.header["parameters"]["n_jobs"] = 1025
    refused(path, parts.content(), None, "n_jobs")
    parts.header["parameters"]["n_jobs"] = 8
    path.write_bytes(parts.content())
    before = threading.active_count()
    load(path).decision_function(rows(10, 3))
    assert threading.active_count() == before


# ------------------------------------------------------------------ coefficients of pairs


@pytest.fixture
def of_pairs(tmp_path):
    """The file of a model of four classes, taken apart."""
    X = rows()
    save(KernelSVC(gamma=1.0).fit(X, np.arange(len(X)) % 4), tmp_path / "model")
    return Parts.of(tmp_path / "model")


def test_vectors_that_are_not_sorted_by_class(of_pairs, path):
    owner = of_pairs.arrays["owner"]
    refused(path, changed(of_pairs, "owner", owner[::-1]), rows(), "must ascend")


def test_labels_without_arrays_take_no_memory(of_pairs, path):
    """Pairs of 600 classes, of which the file has not even the intercepts."""
    header = json.loads(json.dumps(of_pairs.header))
    header["classes"]["values"] = list(range(600))
    none = of_pairs.arrays | {"coef": np.empty((0, 599))}
    path.write_bytes(Parts(header, none).content())
    tracemalloc.start()
    with pytest.raises(ValueError, match="intercept"):
        load(path)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 20e6
