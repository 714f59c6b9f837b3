"""Choose the kernel for kernel="auto".

A rule for wide data (``MANY`` features or more) without negative values; all other data gets the
intersection kernel, which bends most.  Derived from benchmarks/results/additive_defaults.md.

- Rows of equal norm, mostly zeros: tf-idf and other texts that were normalised for inner
  products.  "linear" is the most accurate there, and the fastest.
- Counts and histograms, mostly zeros: "chi2" is as accurate as the intersection, in a fraction of
  its time.  The same holds for images, whose columns are dense but take many values on one scale.
- Columns with two values, such as categories, are equal for every kernel, so the few other columns
  decide: the intersection.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from widemargin.additive.source import Values

MANY = 128  # features
MOSTLY_ZERO = 0.1  # largest share of nonzeros
HALF = 0.5  # least share of columns with three values or more in an image
SAME_LENGTH = 1e-3  # relative spread of row norms
SAMPLE = 1000  # rows to inspect


def choose_kernel(values: Values) -> str:
    """Return the name of the kernel for the data, from a sample of rows."""
    if values.n_features < MANY:
        return "intersection"
    rows = sp.csr_array(_some_rows(values))
    rows.data[np.isnan(rows.data)] = 0  # missing
    if rows.nnz and rows.data.min() < 0:
        return "intersection"
    if rows.nnz <= MOSTLY_ZERO * rows.shape[0] * rows.shape[1]:
        return "linear" if _have_one_length(rows) else "chi2"
    return "chi2" if _are_an_image(rows) else "intersection"


def _some_rows(values: Values):
    every = slice(None, None, max(1, values.n_rows // SAMPLE))
    return values.csr()[every] if values.sparse else values.data[every]


def _have_one_length(rows: sp.csr_array) -> bool:
    squared = rows.astype(np.float64).power(2).sum(axis=1)
    squared = squared[squared > 0]
    return len(squared) > 0 and squared.max() <= (1 + SAME_LENGTH) ** 2 * squared.min()


def _are_an_image(rows: sp.csr_array) -> bool:
    """Whether most columns have more than two values and similar maxima."""
    values = rows.toarray()
    top = values.max(axis=0)
    between = np.any((values > 0) & (values < top), axis=0)
    if between.mean() < HALF:
        return False
    top = top[between]
    return bool(np.mean(top >= top.max() / 2) >= HALF)
