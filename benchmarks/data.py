"""The data sets of the benchmarks, read from the folder in ``WIDEMARGIN_DATA``."""

from __future__ import annotations

import bz2
import os
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file


def folder() -> Path:
    path = os.environ.get("WIDEMARGIN_DATA")
    if not path:
        raise SystemExit("Set WIDEMARGIN_DATA to the folder with the data sets first.")
    return Path(path)


def _svmlight(name: str, n_features: int | None = None):
    with bz2.open(folder() / name) as file:
        X, y = load_svmlight_file(file, n_features=n_features)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # for LIBLINEAR
    return X, y


def svmlight_pair(train: str, test: str):
    X, y = _svmlight(train)
    X_test, y_test = _svmlight(test, X.shape[1])
    return X, y, X_test, y_test


def npz_pair(name: str):
    z = np.load(folder() / name)
    return z["X_train"], z["y_train"], z["X_test"], z["y_test"]


def fashion():
    return npz_pair("fashion_mnist.npz")


def news20():
    z = np.load(folder() / "news20_counts.npz")

    def part(p):
        parts = (z[f"{p}_data"], z[f"{p}_indices"], z[f"{p}_indptr"])
        return sp.csr_matrix(parts, shape=tuple(z[f"shape_{p}"])).astype(np.float64)

    return part("train"), z["y_train"], part("test"), z["y_test"]


def news20_tfidf():
    from sklearn.feature_extraction.text import TfidfTransformer

    X, y, X_test, y_test = news20()
    tfidf = TfidfTransformer(sublinear_tf=True).fit(X)
    return tfidf.transform(X), y, tfidf.transform(X_test), y_test


def sector():
    return svmlight_pair("sector.scale.bz2", "sector.t.scale.bz2")


def letter():
    return svmlight_pair("letter.scale.bz2", "letter.scale.t.bz2")


def ijcnn1():
    return svmlight_pair("ijcnn1.trn.bz2", "ijcnn1.tst.bz2")


def a9a():
    return svmlight_pair("a9a.bz2", "a9a.t.bz2")


def w8a():
    """Shuffled first: the file has its rows by class, and its last 47,530 are of one."""
    X, y = _svmlight("w8a.bz2")
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:40_000], order[40_000:]
    return X[train], y[train], X[test], y[test]


def shuttle():
    return npz_pair("shuttle.npz")


def shuttle_signed():
    """Scaled to [-1, 1] per feature, as in the LIBSVM collection that ICD used."""
    from sklearn.preprocessing import MinMaxScaler

    X, y, X_test, y_test = shuttle()
    scaler = MinMaxScaler((-1, 1)).fit(X)
    return scaler.transform(X), y, scaler.transform(X_test), y_test


def digits():
    """Ships with scikit-learn; the last 600 images are held back."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return X[:-600], y[:-600], X[-600:], y[-600:]


def usps():
    return npz_pair("usps.npz")


def satimage():
    z = np.load(folder() / "satimage.npz")
    X, y = z["X"], z["y"]
    return X[:4435], y[:4435], X[4435:], y[4435:]


def covtype(n_train: int | None = None, seed: int = 0):
    """Class 2 against the rest, features in [0, 1], a random 80/20 split (DC-SVM, Table 2)."""
    X, y, X_test, y_test = covtype_classes(n_train, seed)
    return X, np.where(y == 2, 1, -1), X_test, np.where(y_test == 2, 1, -1)


def covtype_classes(n_train: int | None = None, seed: int = 0):
    """The same rows with all seven classes."""
    z = np.load(folder() / "covtype.npz")
    X, y = z["X"].astype(np.float32), z["y"]
    low, high = X.min(axis=0), X.max(axis=0)
    X = (X - low) / np.maximum(high - low, 1)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    train, test = order[:464_810], order[464_810:]
    if n_train is not None:
        train = rng.choice(train, n_train, replace=False)
    return X[train], y[train], X[test], y[test]


def ijcnn1_dense():
    X, y, X_test, y_test = ijcnn1()
    return X.toarray().astype(np.float32), y, X_test.toarray().astype(np.float32), y_test


def mnist():
    """Ten digits, pixels in [0, 1]."""
    X, y, X_test, y_test = npz_pair("mnist.npz")
    X, X_test = ((Z.reshape(len(Z), -1) / 255).astype(np.float32) for Z in (X, X_test))
    return X, y, X_test, y_test


def _against_the_rest(digits):
    X, y, X_test, y_test = mnist()
    signs = [np.where(np.isin(labels, digits), 1, -1) for labels in (y, y_test)]
    return X, signs[0], X_test, signs[1]


def mnist_round():
    """Round digits (0, 3, 6, 8, 9) against the rest, pixels in [0, 1] (DC-SVM)."""
    return _against_the_rest([0, 3, 6, 8, 9])


def mnist_zero():
    """Digit 0 against the rest: one g_j per pixel."""
    return _against_the_rest([0])


def _csv(file):
    """The columns of a CSV file without a header."""
    from pyarrow import csv

    return csv.read_csv(file, csv.ReadOptions(autogenerate_column_names=True))


def _one_hot(columns):
    """Numbers in [0, 1] per column, every other column as one per value; sparse."""
    import pyarrow as pa

    parts = []
    for column in columns:
        if pa.types.is_string(column.type):
            codes = column.combine_chunks().dictionary_encode()
            parts.append(sp.eye(len(codes.dictionary), format="csr")[codes.indices.to_numpy()])
        else:
            values = column.to_numpy().astype(np.float64)
            scaled = (values - values.min()) / max(np.ptp(values), 1e-300)
            parts.append(sp.csr_matrix(scaled[:, None]))
    return sp.hstack(parts, format="csr")


def kddcup99():
    """The 10 % of the training rows that are at hand; normal against attack (DC-SVM, Table 2)."""
    import gzip

    import pyarrow as pa

    parts = []
    for name in ("kddcup99.kddcup.data_10_percent.gz", "kddcup99.corrected.gz"):
        with gzip.open(folder() / name) as file:
            parts.append(_csv(file))
    table = pa.concat_tables(parts, promote_options="permissive")
    *columns, label = table.columns
    X, n = _one_hot(columns), parts[0].num_rows
    y = np.where(label.to_numpy() == "normal.", 1, -1)
    return X[:n], y[:n], X[n:], y[n:]


def census():
    """The half of the census data that is at hand, 80 % of it to learn from (DC-SVM, Table 2)."""
    import io
    import zipfile

    with zipfile.ZipFile(folder() / "census-income.test.zip") as archive:
        file = io.BytesIO(archive.read(archive.namelist()[0]))
    *columns, label = _csv(file).columns
    del columns[24]  # the weight of the sample, not a feature
    X = _one_hot(columns)
    y = np.where([name.strip().startswith("50000+") for name in label.to_pylist()], 1, -1)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = np.split(order, [round(0.8 * len(y))])
    return X[train], y[train], X[test], y[test]


def sampled(parts, n_train: int, n_test: int, seed: int = 0):
    """At most so many rows to learn from and to test on, chosen at random."""
    X, y, X_test, y_test = parts
    rng = np.random.default_rng(seed)
    train = rng.permutation(X.shape[0])[:n_train]
    test = rng.permutation(X_test.shape[0])[:n_test]
    return X[train], y[train], X_test[test], y_test[test]


def held_out(X, y, share=0.2, seed=0):
    """A part of the training rows set aside to choose C, the same for every method.

    With a share of every class, unless one has a single row.
    """
    from sklearn.model_selection import train_test_split

    whole = np.unique(y, return_counts=True)[1].min() > 1
    return train_test_split(X, y, test_size=share, random_state=seed, stratify=y if whole else None)
