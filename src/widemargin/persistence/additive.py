"""Pack and unpack `AdditiveSVC`."""

from __future__ import annotations

import numpy as np

from widemargin import _core
from widemargin.additive.encoder import Encoder
from widemargin.additive.estimator import AdditiveSVC
from widemargin.additive.kernels import KERNELS, resolve_kernel
from widemargin.additive.lookup import BinnedLookup, PolynomialLookup
from widemargin.additive.model import ROUNDING, AdditiveModel, BinShares, code_type
from widemargin.additive.tables import Tables
from widemargin.persistence.container import Arrays, Fields
from widemargin.persistence.header import pack_columns, unpack_columns

_FLOATS = (np.float32, np.float64)
_LANES = (1, 16)


def pack_additive(estimator: AdditiveSVC) -> tuple[dict, dict[str, np.ndarray]]:
    model, tables = estimator.model_, estimator.model_.tables
    header: dict = {
        "direct": isinstance(model.lookup, PolynomialLookup),
        "symmetric": bool(tables.symmetric),
        "rank": int(estimator.rank_),
        "raw_C": float(estimator.C_),
    }
    if _chosen(estimator):
        header["kernel"] = estimator.kernel_
    if not estimator.columns_.are_features:
        header["columns"] = pack_columns(estimator.columns_)
    arrays = {
        "shift": model.encoder.shift,
        "factor": model.encoder.factor,
        "thresholds": model.encoder.thresholds,
        "representatives": model.encoder.representatives,
        "table": model.lookup.table,
        "weights": model.weights,
        "intercept": model.intercept,
        "tables.right": tables.right,
        "tables.diagonal": tables.diagonal,
        "frequency": model.frequency,
    }
    for name in ("start", "code", "share"):
        arrays[f"shares.{name}"] = getattr(model.shares, name)
    if model.offset is not None:
        arrays["offset"] = model.offset
    if tables.left is not None and tables.left is not tables.right:
        arrays["tables.left"] = tables.left
    return header, arrays


def _chosen(estimator: AdditiveSVC) -> bool:
    """Whether kernel="auto" chose the kernel."""
    return isinstance(estimator.kernel, str) and estimator.kernel == "auto"


def unpack_additive(estimator: AdditiveSVC, fields: Fields, arrays: Arrays) -> None:
    """Set the attributes of `AdditiveSVC.fit`."""
    columns = unpack_columns(fields, estimator.n_features_in_)
    encoder = _unpack_encoder(arrays, columns.n_numbers)
    named = _chosen(estimator)
    estimator.kernel_ = fields.text("kernel", tuple(KERNELS)) if named else estimator.kernel
    tables = _unpack_tables(estimator, fields, arrays, encoder)
    n_outputs = estimator.coding_.n_outputs
    model = _unpack_model(fields, arrays, encoder, tables, (columns.n_features, n_outputs))
    estimator.columns_, estimator.model_, estimator.intercept_ = columns, model, model.intercept
    estimator.rank_ = fields.integer("rank")
    if estimator.rank_ != tables.rank:
        raise fields.fault("rank", f"{tables.rank}, as the tables have it")
    estimator.C_ = fields.number("raw_C")


def _unpack_model(
    fields: Fields, arrays: Arrays, encoder: Encoder, tables: Tables, size: tuple[int, int]
) -> AdditiveModel:
    n_features, n_outputs = size
    table = arrays.take("table", _FLOATS, (encoder.n_codes, None))
    unary = tables.left is None
    shape = (None, None, None) if unary else (None, n_features, table.shape[1], None)
    weights = arrays.take("weights", table.dtype, shape)
    n_blocks, lanes = weights.shape[0], weights.shape[-1]
    if lanes not in _LANES or not (n_blocks - 1) * lanes < n_outputs <= n_blocks * lanes:
        raise arrays.fault("weights", f"has {n_blocks} x {lanes} lanes for {n_outputs} outputs")
    offset = None
    if unary:
        offset = arrays.pointers("offset", n_features, weights.shape[1])
    try:
        _core.Tables(None if unary else table, table, offset, lanes)
    except ValueError as error:
        raise arrays.fault("table", f"cannot be used to predict ({error})") from None
    return AdditiveModel(
        lookup=_unpack_lookup(fields, encoder, table, tables),
        tables=tables,
        frequency=arrays.take("frequency", np.float64, (encoder.n_codes,)),
        offset=offset,
        weights=weights,
        intercept=arrays.take("intercept", np.float64, (n_outputs,)),
        n_features=n_features,
        shares=_unpack_shares(arrays.inner("shares."), n_features, encoder.n_codes),
    )


def _unpack_shares(arrays: Arrays, n_features: int, n_codes: int) -> BinShares:
    code = arrays.indices("code", code_type(n_codes), None, n_codes)
    start = arrays.pointers("start", n_features, len(code))
    share = arrays.take("share", np.float32, (len(code),))
    first = np.zeros(len(code), dtype=bool)
    first[start[:-1][start[:-1] < len(code)]] = True
    if np.any(code == 0) or np.any(~first[1:] & (code[1:] <= code[:-1])):
        raise arrays.fault("code", "must ascend from 1 or more within each feature")
    shares = BinShares(start, code, share)
    if np.any(share < 0) or np.any(shares.present > 1 + ROUNDING):
        raise arrays.fault("share", "must not be negative, nor above 1 in any feature")
    return shares


def _unpack_lookup(
    fields: Fields, encoder: Encoder, table: np.ndarray, tables: Tables
) -> BinnedLookup:
    if not fields.flag("direct"):
        return BinnedLookup(encoder, table)
    # Asymmetric tables have polynomials of the values on the left.
    if tables.symmetric or tables.rank > table.shape[1]:
        raise fields.fault("direct", "false for this table")
    return PolynomialLookup(encoder, table, tables.rank)


def _unpack_encoder(arrays: Arrays, n_features: int) -> Encoder:
    shift = arrays.take("shift", np.float64, (None,))
    if len(shift) not in (1, n_features):
        raise arrays.fault("shift", f"has {len(shift)} entries for {n_features} features")
    factor = arrays.take("factor", np.float64, (len(shift),))
    t = arrays.take("representatives", np.float64, (None,))
    if len(t) < 2 or t[0] != 0 or np.any(t[2:] < t[1:-1]) or t[1] < 0:
        raise arrays.fault("representatives", "must be 0 and then ascend from 0 or more")
    thresholds = arrays.take("thresholds", np.float64, (len(t) - 1,), finite=False)
    ascending = not np.any(np.isnan(thresholds)) and not np.any(thresholds[1:] < thresholds[:-1])
    if not (ascending and np.all(np.isfinite(thresholds[1:])) and thresholds[0] < np.inf):
        raise arrays.fault("thresholds", "must be finite, after the first one, and ascend")
    return Encoder(shift, factor, thresholds, t)


def _unpack_tables(estimator, fields: Fields, arrays: Arrays, encoder: Encoder) -> Tables:
    inner, unary = arrays.inner("tables."), arrays.has("offset")
    t = encoder.representatives
    right = inner.take("right", _FLOATS, (len(t), len(t) if unary else None))
    symmetric = fields.flag("symmetric")
    left = right if symmetric else inner.take("left", _FLOATS, right.shape)
    return Tables(
        left=None if unary else left,
        right=right,
        diagonal=inner.take("diagonal", np.float64, (len(t),)),
        symmetric=symmetric,
        kernel=resolve_kernel(estimator.kernel_),
        representatives=t,
    )
