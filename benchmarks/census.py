"""A table as it is, with categories and gaps: AdditiveSVC against boosted trees on census-income.

Both get the same columns of the same data frame and their own defaults, and the pairs of features
that an additive model cannot see are what trees are ahead by.
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from benchmarks import data
from benchmarks.report import SEED, accuracy, one_thread, table, write
from widemargin import AdditiveSVC, read

COLUMNS = ["machine", "accuracy, %", "AUC", "fit, s", "predict, s"]


def census():
    """Frames and labels, 80 % to train on; the categories are those of the file."""
    found = read(data.folder() / "census-income.test.zip", label=-1, na=["?"])
    X, y = found.X.to_pandas(), found.y == "50000+."
    return found.columns, *train_test_split(X, y, test_size=0.2, random_state=SEED, stratify=y)


def row(name: str, model, X, X_test, y, y_test) -> list[str]:
    started = time.perf_counter()
    model.fit(X, y)
    fitted = time.perf_counter()
    scores = model.predict_proba(X_test)[:, 1] if hasattr(model, "predict_proba") else None
    scores = model.decision_function(X_test) if scores is None else scores
    seconds = time.perf_counter() - fitted
    auc = roc_auc_score(y_test, scores)
    return [name, accuracy(model, X_test, y_test), f"{auc:.4f}", f"{fitted - started:.1f}",
            f"{seconds:.2f}"]  # fmt: skip


def main() -> None:
    one_thread()
    columns, *parts = census()
    trees = {"categorical_features": "from_dtype", "random_state": SEED}
    ours = {"missing": "learn", "random_state": SEED}
    rows = [
        row("HistGradientBoostingClassifier", HistGradientBoostingClassifier(**trees), *parts),
        row(
            "the same without interactions",
            HistGradientBoostingClassifier(interaction_cst="no_interactions", **trees),
            *parts,
        ),
        *(row(f"AdditiveSVC(C={C:g})", AdditiveSVC(C=C, **ours), *parts) for C in (0.1, 1.0, 10.0)),
        row('AdditiveSVC("linear")', AdditiveSVC("linear", **ours), *parts),
    ]
    poor = 100 * float(np.mean(~parts[3]))
    lines = [
        f"census-income.test, {len(parts[0])} rows to train on and {len(parts[1])} to test on; "
        f"{columns}. {poor:.2f} % of the rows are of the larger class.",
        "",
        *table(COLUMNS, rows),
    ]
    write("census", "A table with categories and missing values", lines)


if __name__ == "__main__":
    main()
