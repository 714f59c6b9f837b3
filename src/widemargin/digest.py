"""Digests that identify data and parameters by content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp


def digest(*parts) -> str:
    """Return a digest of arrays, sparse matrices and plain values."""
    h = hashlib.blake2b(digest_size=16)
    for part in parts:
        for piece in _pieces(part):
            h.update(f"{len(piece)}:".encode())
            h.update(piece)
    return h.hexdigest()


def _pieces(part) -> Iterator[bytes | memoryview]:
    if sp.issparse(part):
        yield f"{type(part).__name__}{part.shape}".encode()
        for array in (part.data, part.indices, part.indptr):
            yield from _pieces(array)
    elif isinstance(part, np.ndarray) and part.dtype != object:
        yield f"{part.dtype.str}{part.shape}".encode()
        yield np.ascontiguousarray(part).reshape(-1).view(np.uint8).data
    elif isinstance(part, np.ndarray):
        yield f"{part.shape}".encode()
        for item in part.ravel().tolist():  # repr() of an array is abbreviated
            yield from _pieces(item)
    elif isinstance(part, np.random.RandomState):
        yield repr(part.get_state()).encode()
    elif isinstance(part, tuple):
        yield digest(*part).encode()
    elif callable(part):
        raise TypeError(f"{part!r} has no content to digest, only an address.")
    else:
        yield repr(part).encode()
