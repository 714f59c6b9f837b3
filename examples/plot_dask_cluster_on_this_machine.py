"""
A Dask cluster on this machine
==============================

A fit is a list of tasks: clusters of rows and pairs of classes. By default threads work on them;
with a Dask cluster its workers do, and the model has the same bits. Here a cluster of two workers
runs on this machine, and we draw which worker did which task.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from distributed import Client
from distributed.diagnostics.plugin import WorkerPlugin
from sklearn.datasets import make_blobs

import widemargin.dask
from widemargin import KernelSVC

X, y = make_blobs(24_000, n_features=10, centers=30, cluster_std=4.5, random_state=0)
y = y % 2


class Diary(WorkerPlugin):
    """Write down when each task began and ended."""

    def setup(self, worker):
        self.worker, self.began, worker.diary = worker, {}, []

    def transition(self, key, start, finish, **more):
        if finish == "executing":
            self.began[key] = time.time()
        elif start == "executing" and key in self.began:
            self.worker.diary.append((self.began[key], time.time()))


# %%
# Two workers, one thread each. An estimator of ``widemargin.dask`` takes the client.
settings = {"C": 4, "gamma": 0.05, "early": 2, "random_state": 0}
with Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as client:
    client.register_plugin(Diary())
    begin = time.time()
    model = widemargin.dask.KernelSVC(client=client, **settings).fit(X, y)
    end = time.time()
    diaries = client.run(lambda dask_worker: dask_worker.diary)
here = KernelSVC(**settings).fit(X, y)
assert np.array_equal(model.decision_function(X[:500]), here.decision_function(X[:500]))

# %%
# Each bar is a task. The rows were divided into clusters before the first task, and each cluster
# went to the next free worker.
figure, ax = plt.subplots(figsize=(10, 3), layout="constrained")
colours = plt.get_cmap("tab20").colors
for row, tasks in enumerate(diaries.values()):
    spans = [(start - begin, max(stop - start, 0.01)) for start, stop in tasks if start > begin]
    ax.broken_barh(spans, (row - 0.35, 0.7), facecolors=colours, edgecolor="white")
    ax.text(end - begin, row, f"  {len(spans)} tasks", va="center")
ax.set_yticks(range(len(diaries)), [f"worker {k + 1}" for k in range(len(diaries))])
ax.set(xlabel="seconds since fit was called", xlim=(0, 1.15 * (end - begin)))
plt.show()
