"""
ONNX: the model in another program
==================================

A model may have to predict elsewhere: in a web server, on a phone, in C#. ONNX is a file format
for this. ``export_onnx`` writes plain operators, which every ONNX runtime can run, also for
categories and missing values. Here a second process predicts, in which widemargin is not
imported.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import onnx
import pandas as pd

from widemargin import AdditiveSVC
from widemargin.export import export_onnx

rng = np.random.default_rng(0)
n = 3000
frame = pd.DataFrame(
    {
        "hour": rng.uniform(0, 24, n).astype(np.float32),
        "sky": rng.choice(["sun", "cloud", "rain"], n),
    }
)
busy = 3 * np.sin((frame["hour"] - 9) / 24 * 2 * np.pi) + frame["sky"].map(
    {"sun": 1.5, "cloud": 0.0, "rain": -2.0}
)
y = np.where(busy + rng.logistic(0, 0.5, n) > 0, "busy", "quiet")
model = AdditiveSVC("intersection", missing="learn", random_state=0).fit(frame, y)

# %%
# The other program: NumPy, onnxruntime, and a table.
PROGRAM = """
import sys, numpy as np, onnxruntime
folder = sys.argv[1]
session = onnxruntime.InferenceSession(folder + "/model.onnx")
hour = np.linspace(0, 24, 200, dtype=np.float32)[:, None]
answers = []
for sky in ("sun", "cloud", "rain"):
    table = {"hour": hour, "sky": np.full((200, 1), sky, dtype=object)}
    answers.append(session.run(["scores"], table)[0].ravel())
np.save(folder + "/answers.npy", answers)
assert "widemargin" not in sys.modules
"""
with tempfile.TemporaryDirectory() as folder:
    export_onnx(model, Path(folder) / "model.onnx")
    graph = onnx.load(Path(folder) / "model.onnx").graph
    subprocess.run([sys.executable, "-c", PROGRAM, folder], check=True)
    answers = np.load(Path(folder) / "answers.npy")
operators = pd.Series([node.op_type for node in graph.node]).value_counts()

# %%
# Left, the operators in the file. Right, the predictions of the other program as lines, and ours
# as points on them.
figure, (left, right) = plt.subplots(
    1, 2, figsize=(11, 4.5), layout="constrained", width_ratios=[2, 3]
)
left.barh(operators.index[::-1], operators.to_numpy()[::-1], color="#1b5e9e")
left.set(xlabel="nodes", title="operators in model.onnx")
hour = np.linspace(0, 24, 200, dtype=np.float32)
for sky, scores, colour in zip(
    ["sun", "cloud", "rain"], answers, ["#e08214", "#8a8f98", "#1b5e9e"], strict=True
):
    ours = model.decision_function(pd.DataFrame({"hour": hour, "sky": sky}))
    sign = 1 if np.allclose(scores, ours, atol=1e-4) else np.nan
    right.plot(hour, -scores, color=colour, lw=2, label=f"{sky}: ONNX")
    right.plot(hour[::12], -ours[::12] * sign, "o", color=colour, ms=5)
right.axhline(0, color="black", lw=0.8)
right.set(xlabel="hour of the day", ylabel="decision value for 'busy'", xticks=range(0, 25, 6))
right.legend(frameon=False)
plt.show()
