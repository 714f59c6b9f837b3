"""Sets that are read once and kept as arrays."""

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks import data, prepared


def test_a_prepared_set_is_the_set(tmp_path, monkeypatch):
    path = prepared.keep("digits", tmp_path)
    monkeypatch.setenv("WIDEMARGIN_PREPARED", str(tmp_path))
    with monkeypatch.context() as without:
        without.setattr(data.digits, "__code__", (lambda: None).__code__)
        found = prepared.load("digits")
    for a, b in zip(found, data.digits(), strict=True):
        np.testing.assert_array_equal(a, b)
    monkeypatch.setattr(prepared, "made_by", lambda name: "another")
    with pytest.raises(ValueError, match=r"digits\.npz is from other code"):
        prepared.load("digits")
    assert prepared.keep("digits", tmp_path) == path


def test_a_prepared_set_may_be_sparse(tmp_path, monkeypatch):
    X = sp.csr_matrix([[0, 2.5], [1.5, 0]])
    monkeypatch.setattr(data, "digits", lambda: (X, [1, 2], X[:1], [1]))
    monkeypatch.setattr(prepared, "made_by", lambda name: "this")
    prepared.keep("digits", tmp_path)
    monkeypatch.setenv("WIDEMARGIN_PREPARED", str(tmp_path))
    found = prepared.load("digits")
    np.testing.assert_array_equal(found[0].toarray(), X.toarray())
    np.testing.assert_array_equal(found[2].toarray(), [[0, 2.5]])
