"""A first look: additive and RBF kernels against a linear SVM, on the digits of scikit-learn.

Prints a table and draws demo.png.  Run it with ``make demo``.
"""

import time
import warnings

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.svm import LinearSVC

from widemargin import AdditiveSVC, KernelSVC

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=0, stratify=y)


def trained(model):
    """Seconds (best of 3) and test accuracy."""
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        model.fit(X_train, y_train)
        seconds.append(time.perf_counter() - started)
    return min(seconds), model.score(X_test, y_test)


contestants = {
    "LinearSVC": (LinearSVC, {"dual": True, "tol": 0.1, "random_state": 0}, [0.0001, 0.001, 0.01]),
    "AdditiveSVC chi2": (AdditiveSVC, {"kernel": "chi2", "random_state": 0}, [0.3, 1, 3]),
    "AdditiveSVC intersection": (AdditiveSVC, {"random_state": 0}, [0.3, 1, 3]),
    "KernelSVC rbf": (KernelSVC, {"random_state": 0}, [1, 3, 10]),
}
curves = {}
print(f"digits: {len(X_train)} training rows, {X.shape[1]} features, 10 classes\n")
print(f"{'model':26}{'C':>8}{'fit, ms':>10}{'test accuracy, %':>19}{'duality gap':>14}")
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    for name, (make, settings, Cs) in contestants.items():
        curves[name] = []
        for C in Cs:
            model = make(C=C, **settings)
            seconds, accuracy = trained(model)
            curves[name].append((1e3 * seconds, 100 * accuracy))
            gap = getattr(model, "duality_gap_", None)
            shown = "-" if gap is None else f"{gap:.1e}"
            print(f"{name:26}{C:8g}{1e3 * seconds:10.1f}{100 * accuracy:19.2f}{shown:>14}")

model = AdditiveSVC("chi2", random_state=0).fit(X_train, y_train)
digit = 3
shapes = [model.shape_function(j, digit) for j in range(X.shape[1])]
reach = np.array([np.ptp(values) for _, values in shapes])

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
for name, points in curves.items():
    left.plot(*zip(*points, strict=True), "o-", label=name)
left.set(xlabel="training time, ms", ylabel="test accuracy, %", title="three values of C each")
left.legend()
image = middle.imshow(reach.reshape(8, 8), cmap="magma")
middle.set(xticks=[], yticks=[], title=f"how far each pixel moves the score of '{digit}'")
figure.colorbar(image, ax=middle, shrink=0.8)
for j in np.argsort(-reach)[:4]:
    right.plot(*shapes[j], label=f"row {j // 8}, column {j % 8}")
right.axhline(0, color="grey", linewidth=0.5)
right.set(xlabel="ink in the pixel", ylabel="contribution", title=f"shape functions of '{digit}'")
right.legend()
figure.savefig("demo.png", dpi=110)
print("\ndemo.png: time against accuracy, and what the model learned about one digit")
