"""
Data larger than memory
=======================

A :class:`~widemargin.BlockStore` holds the rows on disk, as codes of one byte per value. Rows
come from any generator, a chunk at a time, and the fit reads block after block. The model is
certified like any other.
"""

import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from widemargin import AdditiveSVC, BlockStore

# %%
# A stream of rows with waves in twenty columns. They are never all in memory at the same time.
rng = np.random.default_rng(0)
CHUNK, COLUMNS = 10_000, 20
phase, weight = rng.uniform(0, 6, COLUMNS), rng.normal(size=COLUMNS)


def rows(chunks):
    for _ in range(chunks):
        X = rng.random((CHUNK, COLUMNS), dtype=np.float32)
        yield X, (np.sin(6 * X + phase) @ weight + rng.normal(0, 1, CHUNK) > 0).astype(int)


X_test, y_test = next(rows(1))

# %%
# Five stores, the largest of 160,000 rows. Codes take a quarter of the bytes of single-precision
# numbers, and an eighth of those of double precision.
counts, seconds, scores, sizes = [1, 2, 4, 8, 16], [], [], []
with tempfile.TemporaryDirectory() as folder:
    for chunks in counts:
        store = BlockStore.build(Path(folder) / f"{chunks}.store", rows(chunks), n_jobs=2)
        start = time.perf_counter()
        model = AdditiveSVC("intersection", n_jobs=2, random_state=0).fit(store)
        seconds.append(time.perf_counter() - start)
        scores.append(100 * model.score(X_test, y_test))
        files = (Path(folder) / f"{chunks}.store").rglob("*")
        sizes.append(sum(file.stat().st_size for file in files if file.is_file()) / 1e6)
        print(f"{chunks * CHUNK:7} rows: gap {model.duality_gap_:.1e}, {sizes[-1]:.1f} MB on disk")

# %%
# Time and disk space grow with the rows. Memory does not, because blocks are read in turn.
n = np.array(counts) * CHUNK
figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
axes[0].plot(n, scores, "o-", color="#1b5e9e")
axes[0].set(ylabel="accuracy on new rows, %", title="more rows, slightly better models")
axes[1].plot(n, seconds, "o-", color="#2e8b57")
axes[1].set(ylabel="seconds to fit from disk", ylim=(0, None), title="in proportion to the rows")
axes[2].bar(
    np.arange(5) - 0.2, n * COLUMNS * 8 / 1e6, 0.4, color="#8a8f98", label="rows in float64"
)
axes[2].bar(np.arange(5) + 0.2, sizes, 0.4, color="#e08214", label="the store")
axes[2].set_xticks(range(5), [f"{count // 1000}k" for count in n])
axes[2].set(ylabel="MB", title="a byte for each value")
axes[2].legend(frameon=False)
for ax in axes:
    ax.set_xlabel("rows")
for ax in axes[:2]:
    ax.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:.0f}k")
plt.show()
