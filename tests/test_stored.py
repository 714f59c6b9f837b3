"""Rows on disk: the same as in memory, in any order, whatever blocks they lie in."""

import errno
import tempfile

import numpy as np
import pytest
import scipy.sparse as sp

from widemargin import AdditiveSVC, BlockStore

each_layout = pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])


def some_rows(n_rows=53, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, (n_rows, 6)) * (rng.random((n_rows, 6)) < 0.5)
    X[::11] = 0  # rows of which nothing is stored
    return X.astype(np.float32)


def stored(folder, X, values_per_block=25, keep="values"):
    y = np.arange(X.shape[0]) % 2
    chunks = [(X[k : k + 7], y[k : k + 7]) for k in range(0, X.shape[0], 7)]
    store = BlockStore.build(folder, chunks, keep=keep, values_per_block=values_per_block)
    assert len(store._entries) > 3
    return store


def full(X):
    return X.toarray() if sp.issparse(X) else X


@each_layout
@pytest.mark.parametrize(
    "which",
    [
        slice(None),
        slice(5, 30),
        slice(40, 3, -2),
        np.arange(52, -1, -1),
        np.array([3, 3, 50, 0, 11, 12]),
        np.array([17]),
        np.empty(0, dtype=np.int64),
    ],
    ids=["all", "slice", "backwards", "reversed", "repeated", "one", "none"],
)
def test_rows_are_those_of_memory(layout, which, tmp_path):
    X = layout(some_rows())
    matrix = stored(tmp_path, X).matrix()
    assert (matrix.shape, matrix.dtype, matrix.sparse) == (X.shape, X.dtype, sp.issparse(X))
    rows = matrix[which]
    assert rows.dtype == X.dtype
    assert sp.issparse(rows) == sp.issparse(X)
    np.testing.assert_array_equal(full(rows), full(X)[which])


@each_layout
def test_columns_have_their_ranges(layout, tmp_path):
    X = layout(some_rows() + 4)
    X = layout(full(X) * (np.arange(6) < 4))  # some columns are zero everywhere
    matrix = stored(tmp_path, X).matrix()
    np.testing.assert_array_equal(matrix.min(axis=0), full(X).min(axis=0))
    np.testing.assert_array_equal(matrix.max(axis=0), full(X).max(axis=0))


@each_layout
def test_rows_of_a_group_come_to_lie_beside_each_other(layout, tmp_path):
    X = layout(some_rows())
    matrix = stored(tmp_path, X).matrix()
    group = np.random.default_rng(1).integers(0, 5, len(matrix))
    before = {path.name for path in tmp_path.iterdir()}
    order = np.argsort(group, kind="stable")
    grouped = matrix.grouped(order, group)
    np.testing.assert_array_equal(full(grouped[:]), full(X)[order])
    some = np.array([50, 2, 2, 31])
    np.testing.assert_array_equal(full(grouped[some]), full(X)[order][some])
    assert {path.name for path in tmp_path.iterdir()} == before  # its file has no name


def test_values_keep_their_types_and_the_widest_is_read(tmp_path):
    X, y = some_rows().astype(np.int16), np.arange(53) % 2
    chunks = [(X[:30], y[:30]), (X[30:] / 3, y[30:])]
    store = BlockStore.build(tmp_path, chunks, keep="values", values_per_block=30 * 6)
    matrix = store.matrix()
    assert matrix.dtype == np.float64
    assert matrix[:3].dtype == matrix[25:35].dtype == np.float64
    np.testing.assert_array_equal(matrix[:], np.vstack([X[:30], X[30:] / 3]))
    assert store.nbytes < 53 * 6 * 8  # the first rows are still narrower


def test_the_name_of_the_values_is_their_content(tmp_path):
    names = [
        repr(stored(tmp_path / name, X).matrix())
        for name, X in (("a", some_rows()), ("b", some_rows()), ("c", some_rows(seed=1)))
    ]
    assert names[0] == names[1] != names[2]


def test_a_damaged_block_is_named(tmp_path):
    store = stored(tmp_path, some_rows())
    path = sorted(tmp_path.glob("raw-*.bin"))[2]
    content = bytearray(path.read_bytes())
    content[5] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"{path.name}' is damaged: its checksum"):
        store.matrix()


def test_a_full_disk_names_the_folder(tmp_path, monkeypatch):
    matrix = stored(tmp_path, some_rows()).matrix()

    def full_disk(**options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full_disk)
    with pytest.raises(OSError, match="No space left on device") as caught:
        matrix.grouped(np.arange(53), np.zeros(53, dtype=np.int64))
    assert caught.value.filename == str(tmp_path)


def test_a_store_holds_codes_or_values(tmp_path):
    codes = stored(tmp_path / "codes", some_rows(), keep="codes")
    values = stored(tmp_path / "values", some_rows())
    with pytest.raises(ValueError, match=r"\(AdditiveSVC\), or build one with keep='values'"):
        codes.matrix()
    with pytest.raises(ValueError, match=r"holds values, .* Build one with keep='codes'"):
        AdditiveSVC().fit(values)
    with pytest.raises(ValueError, match="keep="):
        stored(tmp_path / "both", some_rows(), keep="both")
    with pytest.raises(ValueError, match=r"n_bins=16 is for keep='codes' only"):
        BlockStore.build(tmp_path / "x", [], keep="values", n_bins=16)
    with pytest.raises(TypeError, match="unexpected keyword argument 'bins'"):
        BlockStore.build(tmp_path / "x", [], bins=16)
    assert not (tmp_path / "x").exists()
