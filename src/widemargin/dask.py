"""The machines on a cluster of Dask workers: the same parameters, and a client.

What a fit is made of are tasks already (engine.py): clusters and problems of `KernelSVC`, batches
of classes of `AdditiveSVC`.  Here workers solve them, and another worker those of one that is lost.
Nothing else differs, and neither does the model.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any

import numpy as np
from dask.base import compute, is_dask_collection
from distributed import Client, default_client
from sklearn.base import clone

import widemargin
from widemargin.engine import on_cluster


class OnCluster:
    """A machine with one more parameter, ``client``, that takes Dask's collections."""

    _local_type: type

    def __init__(self, *args, client: Client | None = None, **parameters):
        super().__init__(*args, **parameters)
        self.client = client

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted([*cls._local_type._get_param_names(), "client"])  # type: ignore[attr-defined]

    def __sklearn_clone__(self):
        """A client is shared, not copied."""
        return self._with_parameters(type(self), client=self.client)

    def to_local(self):
        """The same machine, fitted, without a cluster: `widemargin.save` takes it."""
        local = self._with_parameters(self._local_type)
        given = self._get_param_names()
        vars(local).update({k: v for k, v in vars(self).items() if k not in given})
        return local

    def _with_parameters(self, kind: type, **more):
        parameters = self.get_params(deep=False)  # type: ignore[attr-defined]
        del parameters["client"]
        return kind(**clone(parameters, safe=False), **more)

    def _executor(self) -> Executor:
        return on_cluster(self.client or default_client())

    def fit(self, X, y=None, sample_weight=None):
        """Fit the model; arguments may be Dask's, whose parts are then brought here first."""
        return super().fit(*compute(X, y, sample_weight))  # type: ignore[misc]

    def decision_function(self, X):
        """As without a cluster, but lazy where X is a Dask collection."""
        return self._lazily("decision_function", X)

    def predict(self, X):
        """As without a cluster, but lazy where X is a Dask collection."""
        return self._lazily("predict", X)

    def _lazily(self, method: str, X):
        local = self.to_local()
        if not is_dask_collection(X):
            return getattr(local, method)(X)
        is_frame = hasattr(X, "columns")
        rows = X if is_frame else X.rechunk({1: -1})
        example = getattr(local, method)(X._meta_nonempty if is_frame else _row(rows))[:0]
        if is_frame:
            return rows.map_partitions(_of_part, local, method, meta=example)
        if example.ndim == 1:
            return rows.map_blocks(_of_part, local, method, drop_axis=1, meta=example)
        widths = (rows.chunks[0], (example.shape[1],))
        return rows.map_blocks(_of_part, local, method, chunks=widths, meta=example)


def _row(X) -> np.ndarray:
    return np.zeros((1, X.shape[1]), dtype=X.dtype)


def _of_part(part: Any, model: Any, method: str) -> np.ndarray:
    return getattr(model, method)(part)


class KernelSVC(OnCluster, widemargin.KernelSVC):
    """`widemargin.KernelSVC` whose clusters and binary problems are solved by Dask's workers.

    Levels of clusters (``early``, ``levels``) and pairs of classes are shared out.  Rows are
    brought together where the fit was called, since every cluster may need any of them, and go to
    workers with their tasks; the last pass over one large problem stays here.

    Parameters
    ----------
    client : distributed.Client, default=None
        The cluster; by default the client made last.  All others are those of
        `widemargin.KernelSVC`.
    """

    _local_type = widemargin.KernelSVC


class AdditiveSVC(OnCluster, widemargin.AdditiveSVC):
    """`widemargin.AdditiveSVC` whose batches of 16 classes are solved by Dask's workers.

    Parameters
    ----------
    client : distributed.Client, default=None
        The cluster; by default the client made last.  All others are those of
        `widemargin.AdditiveSVC`.
    """

    _local_type = widemargin.AdditiveSVC
