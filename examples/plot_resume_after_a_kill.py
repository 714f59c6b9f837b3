"""
Resume after a kill
===================

Long fits get killed by schedulers, power cuts and empty batteries. With ``checkpoint=`` every
solved cluster is kept in a folder. The same call then goes on from there and ends at the same
model. Here a fit runs in a second process and is killed without warning when half of its clusters
are solved.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification

from widemargin import KernelSVC

X, y = make_classification(
    20_000, n_features=12, n_informative=8, n_clusters_per_class=6, flip_y=0.1, random_state=0
)
settings = {"C": 30, "gamma": 0.1, "early": 1, "branching": 16, "random_state": 0, "n_jobs": 1}
PROGRAM = """
import sys, numpy as np
from widemargin import KernelSVC
folder = sys.argv[1]
data = np.load(folder + "/data.npz")
KernelSVC(checkpoint=folder + "/checkpoint", **eval(sys.argv[2])).fit(data["X"], data["y"])
"""

# %%
# For comparison, a fit that is not disturbed: an early model of 16 clusters.
start = time.perf_counter()
whole = KernelSVC(**settings).fit(X, y)
undisturbed = time.perf_counter() - start

# %%
# The fit that is killed. ``kill`` sends SIGKILL, which a program can neither see nor delay.
# ``solved`` holds the moments at which the parts of the checkpoint were written.
with tempfile.TemporaryDirectory() as folder:
    np.savez(f"{folder}/data.npz", X=X, y=y)
    checkpoint, solved = Path(folder) / "checkpoint", []
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, folder, repr(settings)])
    while process.poll() is None and len(solved) < 10:
        parts = len(list(checkpoint.glob("level*.part")))
        solved += [time.perf_counter()] * (parts - len(solved))
        time.sleep(0.002)
    process.kill()
    process.wait()
    start = time.perf_counter()
    model = KernelSVC(checkpoint=checkpoint, **settings).fit(X, y)
    rest = time.perf_counter() - start
print(f"{len(solved)} clusters were solved, undisturbed {undisturbed:.2f} s, resumed {rest:.2f} s")
assert np.array_equal(model.dual_coef_, whole.dual_coef_)  # the same, bit by bit

# %%
# Top, the fit that was not disturbed. Bottom, a dot for each cluster that was on disk before the
# kill, and the fit that went on: it solves only the missing clusters.
moments = np.array(solved) - solved[0]
killed = moments[-1]
figure, ax = plt.subplots(figsize=(10, 3), layout="constrained")
ax.broken_barh([(0, undisturbed)], (0.7, 0.6), color="#8a8f98")
ax.broken_barh([(0, killed)], (-0.3, 0.6), color="#c0392b", alpha=0.35)
ax.plot(moments, np.zeros(len(moments)), "o", color="#c0392b", ms=6)
ax.plot([killed], [0], "X", color="black", ms=14)
resumed = killed + 0.04 * undisturbed
ax.broken_barh([(resumed, rest)], (-0.3, 0.6), color="#1b5e9e")
ax.text(resumed + rest, 0, "  the same model, bit by bit", va="center")
ax.set_yticks([1, 0], ["undisturbed", "killed, resumed"])
ax.set(
    xlabel="seconds (waiting and starting left out)",
    xlim=(0, 1.5 * max(undisturbed, resumed + rest)),
)
plt.show()
