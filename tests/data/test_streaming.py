"""`stream`: chunks that are together what `read` reads."""

import bz2
import io

import numpy as np
import pytest
import scipy.sparse as sp

from widemargin.data import read, reading, stream, svmlight, write_svmlight


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(reading, "_CHUNK_BYTES", 1000)
    monkeypatch.setattr(svmlight, "PART", 1 << 10)
    monkeypatch.setattr(svmlight, "_LEAST_PART", 1 << 10)


def table(n=300, d=7):
    rng = np.random.default_rng(0)
    return rng.random((n, d)) * (rng.random((n, d)) < 0.5), rng.integers(0, 3, n)


def together(chunks):
    """All chunks as one, as wide as the widest."""
    chunks = list(chunks)
    width = max(c.X.shape[1] for c in chunks)
    X = np.zeros((sum(c.X.shape[0] for c in chunks), width))
    at = 0
    for c in chunks:
        part = c.X.toarray() if sp.issparse(c.X) else c.X
        X[at : at + len(part), : part.shape[1]] = part
        at += len(part)
    y = None if chunks[0].y is None else np.concatenate([c.y for c in chunks])
    return len(chunks), X, y


def saved(kind, folder):
    X, y = table()
    path = folder / f"data.{kind}"
    if kind in ("svm", "svm.bz2", "zero.svm"):
        text = io.StringIO()
        write_svmlight(text, sp.csr_array(X), y, zero_based=kind == "zero.svm")
        content = text.getvalue().encode()
        path.write_bytes(bz2.compress(content) if kind.endswith("bz2") else content)
    elif kind == "csv":
        rows = [",".join(map(repr, [*row.tolist(), int(c)])) for row, c in zip(X, y, strict=True)]
        path.write_text("\n".join([",".join([*"abcdefg", "label"]), *rows]) + "\n")
    elif kind == "npy":
        np.save(path, np.column_stack([X, y]))
    elif kind == "fortran.npy":
        np.save(path, np.asfortranarray(np.column_stack([X, y])))
    elif kind == "sparse.npz":
        parts = sp.csr_array(X)
        np.savez(path, data=parts.data, indices=parts.indices, indptr=parts.indptr,
                 shape=parts.shape, y=y)  # fmt: skip
    else:
        save = np.savez_compressed if kind == "packed.npz" else np.savez
        save(path, X_train=X, y_train=y, X_test=X[:3], y_test=y[:3])
    return path


@pytest.mark.parametrize(
    ("kind", "most"),
    [
        ("svm", 1),
        ("svm.bz2", 1),
        ("zero.svm", 1),
        ("npy", 1),
        ("npz", 1),
        ("packed.npz", 1),
        ("csv", 1),
        ("sparse.npz", 1),
        ("fortran.npy", 0),
    ],
)
def test_chunks_are_what_is_read(kind, most, tmp_path):
    path = saved(kind, tmp_path)
    if kind == "csv":
        pytest.importorskip("pyarrow")
    options = {"label": 7} if kind.endswith("npy") else {}
    n, X, y = together(stream(path, **options))
    data = read(path, **options)
    expected = data.X.toarray() if sp.issparse(data.X) else data.X
    assert n > most
    np.testing.assert_array_equal(X, expected)
    np.testing.assert_array_equal(y, data.y)
    chunk = next(stream(path, **options))
    assert (chunk.zero_based, chunk.label_name) == (data.zero_based, data.label_name)


def test_the_test_half_of_a_file(tmp_path):
    path = saved("npz", tmp_path)
    assert together(stream(path, split="test"))[1].shape == (3, 7)


def test_what_a_model_knows_is_used(tmp_path):
    path = saved("npy", tmp_path)
    layout = read(path, label=7).layout
    _, X, y = together(stream(path, like=layout))
    assert X.shape == (300, 7)
    assert y is not None


def test_labels_that_are_text_are_read_as_a_whole(tmp_path):
    path = tmp_path / "data.svm"
    path.write_text("yes 1:2\nno 2:1\n" * 300)
    _, X, y = together(stream(path))
    assert X.shape == (600, 2)
    assert set(y) == {"yes", "no"}


def test_an_index_0_that_comes_late_is_refused(tmp_path):
    path = tmp_path / "data.svm"
    path.write_text("1 1:2 2:1\n" * 1000 + "1 0:3\n")
    with pytest.raises(ValueError, match="the feature index 0 occurs"):
        list(stream(path))


@pytest.mark.parametrize(
    ("kind", "options"),
    [("svm", {"label": "a"}), ("npy", {"split": "train"}), ("npz", {"na": ["?"]})],
)
def test_options_that_do_not_suit_the_format_are_refused(kind, options, tmp_path):
    with pytest.raises(ValueError, match="has no meaning for"):
        list(stream(saved(kind, tmp_path), **options))


def test_a_file_that_is_cut_short_is_refused(tmp_path):
    path = saved("npy", tmp_path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"data.npy: not a readable .* should have 100 bytes more"):
        list(stream(path))


def test_labels_and_rows_of_other_number_are_refused(tmp_path):
    np.savez(tmp_path / "data.npz", X=np.ones((200, 3)), y=np.zeros(150))
    with pytest.raises(ValueError, match="rows, but y has"):
        list(stream(tmp_path / "data.npz"))
