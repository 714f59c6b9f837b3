"""What a reader returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp


@dataclass(frozen=True)
class Dataset:
    """Rows, labels, and what the file says about them.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,), or None
        Numbers where every label is one, otherwise strings.
    feature_names : ndarray of str, or None
    qid : ndarray of int64, or None
        Query of each row (svmlight).
    zero_based : bool or None
        Whether the first feature of an svmlight file has the number 0.
    """

    X: np.ndarray | sp.csr_array
    y: np.ndarray | None
    feature_names: np.ndarray | None = None
    qid: np.ndarray | None = None
    zero_based: bool | None = None
