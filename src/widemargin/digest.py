"""Names for data and parameters, by content."""

from __future__ import annotations

import functools
import hashlib
import types
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

_VALUES = (bool, int, float, complex, str, bytes, tuple, np.ndarray, np.generic, type(None))


def digest(*parts) -> str:
    """A name for arrays, sparse matrices and plain values, by content."""
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
        yield repr(part.tolist()).encode()
    elif isinstance(part, np.random.RandomState):
        yield repr(part.get_state()).encode()
    elif isinstance(part, functools.partial):
        yield digest(part.func, *part.args, *sorted(part.keywords.items())).encode()
    elif isinstance(part, tuple):
        yield digest(*part).encode()
    elif hasattr(part, "__code__"):
        held = [*(part.__defaults__ or ()), *(c.cell_contents for c in part.__closure__ or ())]
        # Of what may change while the function runs (lists, objects) only the type counts.
        named = [v if isinstance(v, _VALUES) or callable(v) else type(v) for v in held]
        yield digest(part.__code__, *named).encode()
    elif isinstance(part, types.CodeType):
        yield part.co_code
        yield digest(part.co_names, *part.co_consts).encode()
    else:
        yield repr(part).encode()
