"""The command demo: four machines on scikit-learn's digits and on a larger, nonlinear problem.

All use default settings; ours use all cores.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC, LinearSVC

from widemargin import AdditiveSVC, KernelSVC

ROWS = 20_000
MACHINES = {
    "LinearSVC": lambda: LinearSVC(),
    "SVC": lambda: SVC(),
    "AdditiveSVC": lambda: AdditiveSVC(n_jobs=-1, random_state=0),
    "KernelSVC": lambda: KernelSVC(n_jobs=-1, random_state=0),
}
COLOURS = {
    "LinearSVC": "#8c8c8c",
    "SVC": "#d1495b",
    "AdditiveSVC": "#edae49",
    "KernelSVC": "#00798c",
}
DIGIT, CLASS = 3, 1


class Run(NamedTuple):
    model: Any
    fit: float  # seconds
    predict: float
    accuracy: float  # on the test rows, in per cent


def run(out: Path) -> None:
    """Print a table of times and accuracies and draw a picture."""
    print("Default settings; AdditiveSVC and KernelSVC use all cores.\n")
    digits = _race("digits", load_digits(return_X_y=True), share=0.4)
    bent = _race("bent", bent_borders(ROWS), share=0.2)
    _draw(digits, bent, out)
    print(f"{out}: accuracy against time, and shape functions of AdditiveSVC")


def bent_borders(n_rows: int, n_classes: int = 4, gap: float = 0.5, seed: int = 0):
    """Generate rows labelled by the class with the largest score.

    A score is a sum of waves of features, plus a smaller sum of waves of pairs, which is not
    additive.  Rows whose two best scores differ by less than ``gap`` are left out.
    """
    rng = np.random.default_rng(seed)
    phase = rng.random((n_classes, 2 * n_classes))
    X = rng.random((3 * n_rows, 2 * n_classes))
    score = np.cos(2 * np.pi * (0.8 * X[:, None] - phase)).sum(axis=2)
    score += 0.5 * np.cos(2 * np.pi * (X[:, :n_classes] - X[:, n_classes:]))
    second, first = np.sort(score)[:, -2:].T
    clear = np.flatnonzero(first - second > gap)[:n_rows]
    return X[clear], score[clear].argmax(axis=1)


def _race(name: str, problem, share: float) -> dict[str, Run]:
    """Fit every machine once, after a small warm-up, and predict the test share."""
    X, y = problem
    X, X_test, y, y_test = train_test_split(X, y, test_size=share, random_state=0, stratify=y)
    size = f"{len(X):,} training rows, {len(X_test):,} test rows"
    print(f"{name}: {size}, {X.shape[1]} features, {y.max() + 1} classes")
    print(f"  {'':12}{'fit, s':>10}{'predict, s':>12}{'accuracy, %':>13}")
    runs = {}
    for machine, make in MACHINES.items():
        make().fit(X[:200], y[:200])
        started = time.perf_counter()
        model = make().fit(X, y)
        fitted = time.perf_counter()
        accuracy = 100 * np.mean(model.predict(X_test) == y_test)
        runs[machine] = Run(model, fitted - started, time.perf_counter() - fitted, accuracy)
        print(
            f"  {machine:12}{runs[machine].fit:10.3f}{runs[machine].predict:12.3f}{accuracy:13.1f}"
        )
    print()
    return runs


def _draw(digits: dict[str, Run], bent: dict[str, Run], out: Path) -> None:
    from matplotlib import rc_context

    from widemargin.plots import new_figure

    with rc_context({"font.size": 13, "axes.titlesize": 13}):  # README shows it at half its size
        figure, axes = new_figure(1, 3, (12, 4.2))
        race, waves, pixels = axes[0]
        _draw_race(race, digits, bent)
        _draw_shapes(waves, bent["AdditiveSVC"].model)
        reach = [np.ptp(g) for _, g in _shapes(digits["AdditiveSVC"].model, DIGIT)]
        image = pixels.imshow(np.reshape(reach, (8, 8)), cmap="magma")
        figure.colorbar(image, ax=pixels, shrink=0.85)
        pixels.set(xticks=[], yticks=[], title=f"digits: weight of each pixel in a {DIGIT}")
        figure.savefig(out)


def _draw_race(axis, digits: dict[str, Run], bent: dict[str, Run]) -> None:
    """Draw accuracy against time: filled dots for the larger problem, open ones for digits."""
    for machine, colour in COLOURS.items():
        for runs, face in ((bent, colour), (digits, "white")):
            seconds = runs[machine].fit + runs[machine].predict
            axis.plot(seconds, runs[machine].accuracy, "o", ms=9, mfc=face, mec=colour, mew=2)
    handles = [axis.plot([], [], "o", ms=8, color=c, label=m)[0] for m, c in COLOURS.items()]
    axis.legend(handles=handles, loc="lower right", frameon=False)
    axis.set(xscale="log", xlabel="seconds to fit and predict", ylabel="test accuracy, %")
    axis.set_title(f"filled: bent, {ROWS:,} rows; open: digits")
    axis.xaxis.set_major_formatter("{x:g}")
    axis.margins(0.12)
    axis.grid(alpha=0.25)


def _shapes(model: AdditiveSVC, label: int) -> list:
    return [model.shape_function(j, label) for j in range(model.n_features_in_)]


def _draw_shapes(axis, model: AdditiveSVC) -> None:
    """Draw the shapes of the three features that move one class's score most."""
    shapes = _shapes(model, CLASS)
    widest = sorted(range(len(shapes)), key=lambda j: -np.ptp(shapes[j][1]))[:3]
    for j, colour in zip(sorted(widest), ("#3c1a5b", "#8d5fb0", "#cba6e0"), strict=False):
        axis.plot(*shapes[j], color=colour, lw=2, label=f"feature {j}")
    axis.axhline(0, color="0.6", lw=0.6)
    axis.set(xlabel="value of the feature", ylabel="contribution to the score")
    axis.set_title(f"bent: shape functions of class {CLASS}")
    axis.legend(frameon=False, loc="lower left")
