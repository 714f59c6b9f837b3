"""Few rows of many features: sweeps on the weights against sweeps on the kernel matrix of the rows.

The rows are histograms of the census transform in 31 windows of scenes (15 classes, 7,936 features,
four of five of them in use), the paper's case (ICD, section 3.4).  ``chosen`` is what a fit does by
itself.  CPU seconds of one thread, the matrix included; both objectives come from the same
certificate.
"""

from __future__ import annotations

import time
from unittest import mock

import numpy as np

from benchmarks.images import scene15
from benchmarks.report import SEED, one_thread, table, write
from widemargin import AdditiveSVC, papers
from widemargin.additive import machine

MODELS = {
    "papers.icd()": papers.icd,
    "AdditiveSVC()": AdditiveSVC,
    "AdditiveSVC('chi2', rank=4)": lambda **own: AdditiveSVC("chi2", rank=4, **own),
}


def fitted(make, X, y, choice) -> tuple[float, AdditiveSVC]:
    with mock.patch.object(machine, "is_cheaper", choice):
        started = time.process_time()
        model = make(random_state=SEED, n_jobs=1).fit(X, y)
    return time.process_time() - started, model


def compare(name: str, X, y, labels: np.ndarray) -> list[str]:
    keep = np.isin(y, labels)
    X, y = X[keep], y[keep]
    choices = []

    def chosen(*problem, rule=machine.is_cheaper):
        choices.append(rule(*problem))
        return choices[-1]

    fitted(MODELS[name], X, y, chosen)
    on_weights, a = fitted(MODELS[name], X, y, lambda *problem: False)
    on_matrix, b = fitted(MODELS[name], X, y, lambda *problem: True)
    return [
        name, str(len(y)), str(len(labels)), f"{on_weights:.2f}", f"{on_matrix:.2f}",
        "matrix" if choices[0] else "weights", f"{b.objective_ / a.objective_ - 1:.1e}",
        f"{a.duality_gap_:.1e}",
    ]  # fmt: skip


def main() -> None:
    one_thread()
    X, y, *_ = scene15()
    some, every = np.unique(y)[:2], np.unique(y)
    rows = [compare(name, X, y, labels) for name in MODELS for labels in (some, every)]
    columns = ["model", "rows", "classes", "on weights, s", "on the matrix, s", "chosen",
               "objective, matrix / weights - 1", "gap"]  # fmt: skip
    write("few_rows", "Few rows of many features", table(columns, rows))


if __name__ == "__main__":
    main()
