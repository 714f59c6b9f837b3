"""A first look: additive and RBF kernels against a linear SVM, on the digits of scikit-learn."""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.svm import LinearSVC

from widemargin import AdditiveSVC, KernelSVC

DIGIT = 3
CONTESTANTS: dict[str, tuple[type, dict, list[float]]] = {
    "LinearSVC": (LinearSVC, {"dual": True, "tol": 0.1, "random_state": 0}, [0.0001, 0.001, 0.01]),
    "AdditiveSVC chi2": (AdditiveSVC, {"kernel": "chi2", "random_state": 0}, [0.3, 1, 3]),
    "AdditiveSVC intersection": (AdditiveSVC, {"random_state": 0}, [0.3, 1, 3]),
    "KernelSVC rbf": (KernelSVC, {"random_state": 0}, [1, 3, 10]),
}


def run(out: Path) -> None:
    """Print a table of times and accuracies and draw a picture."""
    X, y = load_digits(return_X_y=True)
    parts = train_test_split(X, y, test_size=0.4, random_state=0, stratify=y)
    print(f"digits: {len(parts[0])} training rows, {X.shape[1]} features, 10 classes\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        curves = _race(*parts)
    _draw(curves, AdditiveSVC("chi2", random_state=0).fit(parts[0], parts[2]), out)
    print(f"\n{out}: time against accuracy, and what the model learned about one digit")


def _race(X, X_test, y, y_test) -> dict[str, list[tuple[float, float]]]:
    """Milliseconds (best of 3) and test accuracy in percent, per contestant and C."""
    curves: dict[str, list[tuple[float, float]]] = {}
    print(f"{'model':26}{'C':>8}{'fit, ms':>10}{'test accuracy, %':>19}{'duality gap':>14}")
    for name, (make, settings, Cs) in CONTESTANTS.items():
        curves[name] = []
        for C in Cs:
            model = make(C=C, **settings)
            milliseconds = 1e3 * min(_seconds(model, X, y) for _ in range(3))
            accuracy = 100 * model.score(X_test, y_test)
            curves[name].append((milliseconds, accuracy))
            gap = getattr(model, "duality_gap_", None)
            shown = "-" if gap is None else f"{gap:.1e}"
            print(f"{name:26}{C:8g}{milliseconds:10.1f}{accuracy:19.2f}{shown:>14}")
    return curves


def _seconds(model, X, y) -> float:
    started = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - started


def _draw(curves, model: AdditiveSVC, out: Path) -> None:
    from widemargin.plots import new_figure

    shapes = [model.shape_function(j, DIGIT) for j in range(model.n_features_in_)]
    reach = np.array([np.ptp(values) for _, values in shapes])
    figure, axes = new_figure(1, 3, (12, 3.6))
    left, middle, right = axes[0]
    for name, points in curves.items():
        left.plot(*zip(*points, strict=True), "o-", label=name)
    left.set(xlabel="training time, ms", ylabel="test accuracy, %", title="three values of C each")
    left.legend()
    image = middle.imshow(reach.reshape(8, 8), cmap="magma")
    middle.set(xticks=[], yticks=[], title=f"how far each pixel moves the score of '{DIGIT}'")
    figure.colorbar(image, ax=middle, shrink=0.8)
    for j in np.argsort(-reach)[:4]:
        right.plot(*shapes[j], label=f"row {j // 8}, column {j % 8}")
    right.axhline(0, color="grey", linewidth=0.5)
    right.set(
        xlabel="ink in the pixel", ylabel="contribution", title=f"shape functions of '{DIGIT}'"
    )
    right.legend()
    figure.savefig(out)
