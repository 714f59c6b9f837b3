"""One factor for all features, or each on its own?  What ``scaling="auto"`` chooses, and rightly?

Accuracies by 5-fold cross-validation (wine, breast cancer) or on the test rows (news20 counts).
"""

from __future__ import annotations

import warnings

from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score

from benchmarks import data
from benchmarks.report import SEED, write
from widemargin import AdditiveSVC

SCALINGS = ("global", "minmax", "auto")


def model(kernel, scaling):
    return AdditiveSVC(kernel, scaling=scaling, tol=0.01, random_state=SEED)


def row(name, scores) -> str:
    return f"| {name} | {' | '.join(f'{100 * a:.1f}' for a in scores)} |"


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    lines = [f"| data, kernel | {' | '.join(SCALINGS)} |", "|---" * (len(SCALINGS) + 1) + "|"]
    for name, load in (("wine", load_wine), ("breast cancer", load_breast_cancer)):
        X, y = load(return_X_y=True)
        scores = [cross_val_score(model("intersection", s), X, y, cv=5).mean() for s in SCALINGS]
        lines.append(row(f"{name}, intersection", scores))
    X, y, X_test, y_test = data.news20()
    for kernel in ("chi2", "hellinger"):
        scores = [model(kernel, s).fit(X, y).score(X_test, y_test) for s in SCALINGS]
        lines.append(row(f"news20 counts, {kernel}", scores))
    write("scaling", "Scaling: accuracy, %", lines)


if __name__ == "__main__":
    main()
