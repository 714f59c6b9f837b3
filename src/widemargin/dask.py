"""The machines on Dask workers: the same parameters, and a client.

A fit consists of tasks (engine.py): clusters and problems of `KernelSVC`, batches of classes of
`AdditiveSVC`.  Here workers solve them; other workers repeat the tasks of a lost one.  The model is
the same.  A `BlockStore` of codes is fitted in shards of its rows; for one of values, workers read
the rows of their tasks.
"""

from __future__ import annotations

import time
from asyncio import CancelledError
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from itertools import pairwise
from operator import itemgetter
from typing import Any

import numpy as np
from dask.base import compute, is_dask_collection
from distributed import Client, default_client
from sklearn.base import clone
from sklearn.utils import check_random_state

import widemargin
from widemargin import BlockStore
from widemargin.additive.batches import BatchSolution, fit_record
from widemargin.additive.machine import TrainingSet
from widemargin.additive.problem import SharedProblem
from widemargin.additive.rounds import Shard, ShardState, Weights, minimise_in_rounds
from widemargin.additive.solver import Stopping
from widemargin.additive.store import StoredCodes
from widemargin.engine import RETRIES, ClusterExecutor, Control, bear_losses
from widemargin.validation import check_number

ROUNDS_KEPT = 10  # rounds between copies of the shards' states


class OnCluster:
    """A machine with a parameter ``client`` that accepts Dask collections."""

    _local_type: type
    _own_parameters: tuple[str, ...] = ("client",)

    def __init__(self, *args, client: Client | None = None, **parameters):
        super().__init__(*args, **parameters)
        self.client = client

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted([*cls._local_type._get_param_names(), *cls._own_parameters])  # type: ignore[attr-defined]

    def __sklearn_clone__(self):
        """A client is shared, not copied."""
        parameters = {name: getattr(self, name) for name in self._own_parameters}
        return self._with_parameters(type(self), **parameters)

    def to_local(self):
        """Return the fitted machine without the cluster, for `widemargin.save`."""
        local = self._with_parameters(self._local_type)
        given = self._get_param_names()
        vars(local).update({k: v for k, v in vars(self).items() if k not in given})
        return local

    def _with_parameters(self, kind: type, **more):
        given = self.get_params(deep=False)  # type: ignore[attr-defined]
        shared = {k: v for k, v in given.items() if k not in self._own_parameters}
        return kind(**clone(shared, safe=False), **more)

    def _executor(self) -> Executor:
        return ClusterExecutor(self.client or default_client())

    def fit(self, X, y=None, sample_weight=None):
        """Fit the model; Dask collections are first gathered here."""
        with _naming_the_scheduler(self.client or default_client()):
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


@contextmanager
def _naming_the_scheduler(client: Client) -> Iterator[None]:
    """Turn Dask's various errors for a lost scheduler into one ConnectionError."""
    try:
        yield
    except (Exception, CancelledError) as error:
        if client.status == "running":
            raise
        address = client._start_arg if isinstance(client._start_arg, str) else "the cluster"
        raise ConnectionError(
            f"The connection to Dask's scheduler ({address}) was lost, and with it the workers' "
            "results. Start a scheduler, and fit again with a new client."
        ) from error


def _row(X) -> np.ndarray:
    return np.zeros((1, X.shape[1]), dtype=X.dtype)


def _of_part(part: Any, model: Any, method: str) -> np.ndarray:
    return getattr(model, method)(part)


class KernelSVC(OnCluster, widemargin.KernelSVC):
    """`widemargin.KernelSVC` whose clusters and binary problems are solved by Dask's workers.

    Workers solve clusters (``early``, ``levels``) and pairs of classes; the last pass over one
    large problem runs in the caller.  The caller gathers all rows, as every cluster may need any of
    them, and sends them with the tasks.  From a `BlockStore` in a folder that all workers see,
    workers assign rows to clusters and read the rows themselves.

    Parameters
    ----------
    client : distributed.Client, default=None
        The cluster; by default the client made last.  All others are those of
        `widemargin.KernelSVC`.
    """

    _local_type = widemargin.KernelSVC


class AdditiveSVC(OnCluster, widemargin.AdditiveSVC):
    """`widemargin.AdditiveSVC` on Dask's workers, divided by rows or by classes.

    A `BlockStore` in a folder that all workers see is fitted in shards: every worker sweeps over
    its blocks, and the shards' weights are added in every round (additive/rounds.py).  Only weights
    travel, and once a few numbers per row.  Other data is gathered in the caller, and workers solve
    batches of 16 classes.

    Parameters
    ----------
    client : distributed.Client, default=None
        The cluster; by default the client made last.  All others are those of
        `widemargin.AdditiveSVC`.
    n_shards : int or None, default=None
        Shards of a store, at most one per block; None is one per worker.  More shards take more
        rounds.  The model depends on it, not on which workers there are.
    """

    _local_type = widemargin.AdditiveSVC
    _own_parameters = ("client", "n_shards")

    def __init__(self, *args, client: Client | None = None, n_shards: int | None = None, **others):
        super().__init__(*args, client=client, **others)
        self.n_shards = n_shards

    def _check_params(self) -> None:
        super()._check_params()
        if self.n_shards is not None:
            check_number("n_shards", self.n_shards, low=1, integer=True)

    def _solve(self, training: TrainingSet, start: Any) -> Any:
        if isinstance(training.X, BlockStore):
            return self._solve_in_rounds(training)
        return super()._solve(training, start)

    def _solve_in_rounds(self, training: TrainingSet) -> None:
        started = time.perf_counter()
        C, shared = self._shared_problem(training)
        if not shared.symmetric or shared.layout.simplex or self.warm_start:
            raise ValueError(
                "A store is fitted in shards, which needs a duality gap of each class on its own: "
                f"not approximation={self.approximation!r} with multi_class={self.multi_class!r} "
                f"and warm_start={self.warm_start}."
            )
        targets = training.targets.coding.targets
        client = self.client or default_client()
        shards = ShardsOnCluster(client, _cut(shared, targets, self._count_shards(client, shared)))
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        stopping = Stopping(self.tol, self.max_iter)
        n_outputs = targets.shape[1]
        weights, outcome = minimise_in_rounds(shards, shared, n_outputs, stopping, seed, Control())
        weights = weights.like(Weights.zeros(shared, n_outputs))
        fitted = self._fitted(training, shared, weights.cells, weights.bias.ravel())
        for name, value in fitted.items():
            setattr(self, name, value)
        solution = BatchSolution(weights.cells, weights.bias, np.zeros(0), outcome)
        self.fit_record_ = fit_record([solution], shared, time.perf_counter() - started)
        self.C_ = C
        self._report()

    def _count_shards(self, client: Client, shared: SharedProblem) -> int:
        wanted = self.n_shards or max(len(client.scheduler_info(n_workers=-1)["workers"]), 1)
        return min(int(wanted), len(shared.codes.cuts) - 1)


def _cut(shared: SharedProblem, targets: np.ndarray, n_shards: int) -> list[Shard]:
    """Cut the blocks into shards of consecutive blocks with similar numbers of rows."""
    codes = shared.codes
    assert isinstance(codes, StoredCodes)
    ends = [0, *_ends(codes.cuts, n_shards)]
    return [Shard(shared.of_rows(*codes.of_blocks(*pair)), targets) for pair in pairwise(ends)]


def _ends(cuts: np.ndarray, n_shards: int) -> list[int]:
    """Return the block that each shard ends before; every shard has a block.

    >>> _ends(np.array([0, 100, 110, 210]), 3), _ends(np.array([0, 10, 90, 95, 100]), 3)
    ([1, 2, 3], [2, 3, 4])
    """
    shard, n_blocks = np.arange(1, n_shards + 1), len(cuts) - 1
    ends = np.searchsorted(cuts, shard * cuts[-1] / n_shards)
    ends = np.maximum.accumulate(np.maximum(ends - shard, 0)) + shard
    return np.minimum(ends, n_blocks - n_shards + shard).tolist()


class ShardsOnCluster:
    """The shards of a fit and their states, on workers.

    A state is the result of a Dask task, so Dask can recompute it if its worker is lost.  From time
    to time states are copied here, and recomputation starts from the copies.
    """

    def __init__(self, client: Client, shards: Sequence[Shard]):
        bear_losses(client)
        self._client, self._rounds = client, 0
        self._shards = [self._submit(_kept, shard) for shard in shards]
        self._states = self._before = [self._submit(_first_state, shard) for shard in self._shards]

    def __len__(self) -> int:
        return len(self._shards)

    def each(self, function: Callable, *told: Any) -> list:
        """Run ``function(shard, state, *told)`` on every shard; keep states, return results."""
        self._before = self._states
        pairs = [
            self._submit(function, shard, state, *told)
            for shard, state in zip(self._shards, self._states, strict=True)
        ]
        self._states = [self._submit(itemgetter(0), pair) for pair in pairs]
        results = self._client.gather([self._submit(itemgetter(1), pair) for pair in pairs])
        self._rounds += 1
        if self._rounds % ROUNDS_KEPT == 0:
            self._states = [self._submit(_kept, s) for s in self._client.gather(self._states)]
        return results

    def take_back(self) -> None:
        """Restore the states before the last call of `each`."""
        self._states = self._before

    def _submit(self, function: Callable, *arguments: Any):
        return self._client.submit(function, *arguments, pure=False, retries=RETRIES)


def _kept(value: Any) -> Any:
    return value


def _first_state(shard: Shard) -> ShardState:
    return shard.first_state
