"""Pack and unpack `TableEncoder`."""

from __future__ import annotations

import numpy as np

from widemargin.persistence.columns import pack_columns, unpack_columns
from widemargin.persistence.container import Arrays, Fields
from widemargin.persistence.parameters import pack_parameters, unpack_parameters
from widemargin.persistence.pipeline import OUTPUTS
from widemargin.sklearn_private import output_of
from widemargin.table_encoder import Ranges, TableEncoder

_DTYPES = ("float32", "float64")


def pack_encoder(encoder: TableEncoder) -> tuple[dict, dict[str, np.ndarray]]:
    header = {
        "parameters": pack_parameters(encoder),
        "columns": pack_columns(encoder.columns_),
        "is_date": [int(j) in encoder.dates_ for j in encoder.columns_.numbers],
        "dtype": encoder.dtype_.name,
        "sparse": encoder.sparse_input_,
        "output": output_of(encoder),
    }
    return header, encoder.ranges_._asdict()


def unpack_encoder(fields: Fields, arrays: Arrays, d: int) -> TableEncoder:
    encoder: TableEncoder = unpack_parameters(TableEncoder, fields.inner("parameters"), None)
    if (output := fields.text("output", OUTPUTS)) != "default":
        encoder.set_output(transform=output)
    columns = unpack_columns(fields, d)
    is_date = fields.items("is_date")
    if len(is_date) != columns.n_numbers or not all(type(flag) is bool for flag in is_date):
        raise fields.fault("is_date", f"true or false for each of {columns.n_numbers} columns")
    encoder.dates_ = tuple(columns.numbers[np.array(is_date, dtype=bool)].tolist())
    size = (columns.n_numbers,)
    found = {name: arrays.take(name, (np.float64,), size) for name in ("low", "high", "total")}
    n = arrays.take("n", (np.int64,), size)
    if np.any(found["low"] > found["high"]) or np.any(n < 0):
        raise arrays.fault("low", "is above high, or n below 0")
    arrays.budget.check(8 * columns.n_features, f"a row of its {columns.n_features} features takes")
    dtype = np.dtype(fields.text("dtype", _DTYPES))
    encoder._settle(columns, Ranges(**found, n=n), dtype, fields.flag("sparse"))
    return encoder
