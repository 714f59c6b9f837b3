"""max_bytes: what a model takes, beside its arrays too, is known before it predicts."""

import numpy as np
import pytest

from widemargin import load
from widemargin.errors import TooLargeError
from widemargin.persistence import read_header

from .damage import Parts, damaged


def wide(folder, kind: str, n_features: int) -> bytes:
    """A tiny model of a sparse kernel, whose file would be no larger for any number of features."""
    parts = damaged(kind, folder)[0].copy()
    return Parts(parts.header | {"n_features": n_features}, parts.arrays).content()


def refused(path, content: bytes, says: str, **options) -> None:
    path.write_bytes(content)
    with pytest.raises(TooLargeError) as caught:
        load(path, **options)
    message = str(caught.value)
    assert message.startswith(f"{str(path)!r}: {says}")
    assert "max_bytes=" in message
    assert "\n" not in message


def test_features_that_a_file_only_counts(path, folder):
    """Prediction has an array of that length: 8 GB, for a file of 5 kB."""
    content = wide(folder, "compressed", 2**31 - 1)
    assert len(content) < 6000
    refused(path, content, "a row of its 2147483647 features takes 17.2 GB")
    refused(path, wide(folder, "compressed", 10**6), "a row of its", max_bytes=10**6)
    path.write_bytes(wide(folder, "compressed", 10**6))
    assert load(path).n_features_in_ == 10**6


def test_committees(path, folder):
    parts = damaged("points", folder)[0].copy()
    assert parts.header["parameters"]["early_prediction"] == "bcm"
    for name in ("coef", "support", "cluster", "vectors.data", "vectors.norms"):
        parts.arrays[name] = np.concatenate([parts.arrays[name][:1]] * 8000)
    refused(path, parts.content(), "its committee takes 2.56 GB")
    for name in ("coef", "support", "cluster", "vectors.data", "vectors.norms"):
        parts.arrays[name] = parts.arrays[name][:100]
    path.write_bytes(parts.content())
    load(path)


def test_arrays_and_headers(path, folder):
    _, content, _ = damaged("rbf", folder)
    path.write_bytes(content)
    load(path, max_bytes=200_000)
    refused(path, content, "its header takes", max_bytes=1000)
    with pytest.raises(TooLargeError, match="its header takes"):
        read_header(path, max_bytes=1000)
    parts = damaged("rbf", folder)[0].copy()
    parts.arrays["more"] = np.zeros(10**5)
    refused(path, parts.content(), "its arrays take", max_bytes=200_000)


def test_the_default_grows_with_the_file(path, folder, monkeypatch):
    from widemargin.persistence import container

    monkeypatch.setattr(container, "_AT_LEAST", 10)
    monkeypatch.setattr(container, "_TIMES_FILE", 0.5)
    refused(path, damaged("rbf", folder)[1], "its header takes")
