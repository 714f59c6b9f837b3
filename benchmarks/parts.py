"""What parts that share no memory cost: sweeps to the same gap, by the number of parts.

Rounds are counted, not timed, so parts are swept here, one after the other.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.report import SEED, table, write
from widemargin import AdditiveSVC, BlockStore
from widemargin.additive.rounds import Shard, minimise_in_rounds
from widemargin.additive.solver import Stopping
from widemargin.dask import _cut
from widemargin.engine import Control

PARTS = (1, 2, 4, 8)
TOL = 1e-2
SETS = {
    "ijcnn1, 49,990 rows, 2 classes": data.ijcnn1_dense,
    "covtype, 100,000 rows, 2 classes": partial(data.covtype, 100_000),
    "usps, 7,291 rows, 10 classes": data.usps,
    "news20, tf-idf, 20 classes": data.news20_tfidf,
}


class ShardsHere:
    """Shards in this process, one after the other."""

    def __init__(self, shards: Sequence[Shard]):
        self._shards, self.states = shards, [shard.first_state for shard in shards]
        self._before = self.states

    def __len__(self) -> int:
        return len(self._shards)

    def each(self, function: Callable, *told: Any) -> list:
        pairs = zip(self._shards, self.states, strict=True)
        results = [function(shard, state, *told) for shard, state in pairs]
        self._before, self.states = self.states, [state for state, _ in results]
        return [result for _, result in results]

    def take_back(self) -> None:
        self.states = self._before


def rounds(store: BlockStore, n_shards: int) -> int:
    machine = AdditiveSVC(tol=TOL, random_state=SEED)
    training = machine._prepare_stored(store, None, None)
    _, shared = machine._shared_problem(training)
    targets = training.targets.coding.targets
    shards = ShardsHere(_cut(shared, targets, n_shards))
    n_outputs, stopping = targets.shape[1], Stopping(TOL, 1000)
    _, outcome = minimise_in_rounds(shards, shared, n_outputs, stopping, SEED, Control())
    assert outcome.converged
    return outcome.n_iter


def measure(name: str) -> list[str]:
    X, y, *_ = SETS[name]()
    order = np.random.default_rng(SEED).permutation(X.shape[0])
    chunks = [(X[rows], y[rows]) for rows in np.array_split(order, 16)]
    values = max(X.nnz if hasattr(X, "nnz") else X.size, 16) // 16
    with tempfile.TemporaryDirectory() as folder:
        store = BlockStore.build(folder, chunks, values_per_block=values)
        return [name, *(str(rounds(store, k)) for k in PARTS)]


def main() -> None:
    rows = [measure(name) for name in SETS]
    lines = [
        f"Sweeps of every part until the relative duality gap of the whole is {TOL:g}, default C.",
        "",
        *table(["data", *(f"{k} parts" if k > 1 else "1 part" for k in PARTS)], rows),
    ]
    write("parts", "Sweeps on parts of the rows", lines)


if __name__ == "__main__":
    main()
