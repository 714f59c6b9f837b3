"""The papers' presets on real data: accuracy against what the papers print.

shuttle is scaled to [-1, 1] per feature first, as in the LIBSVM collection that ICD used.
"""

from __future__ import annotations

import time

from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from benchmarks import data
from benchmarks.report import SEED, one_thread, write
from widemargin import papers


def row(name, model, paper, bar, X, y, X_test, y_test) -> str:
    started = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - started
    return f"| {name} | {100 * model.score(X_test, y_test):.2f} | {paper} | {bar} | {seconds:.2f} |"


def main() -> None:
    one_thread()
    icd = papers.icd(random_state=SEED)
    scaled = make_pipeline(MinMaxScaler((-1, 1)), papers.icd(random_state=SEED))
    lines = [
        "| preset, data | accuracy, % | paper | bar | fit, s |",
        "|---|---|---|---|---|",
        row("icd, ijcnn1", icd, "94.82", "94.5", *data.ijcnn1()),
        row("icd, shuttle", scaled, "99.50", "99.4", *data.shuttle()),
    ]
    for p in (-1.0, -8.0):
        for make in (papers.pmsvm, papers.pmsvm_lut):
            model = make(p, random_state=SEED)
            lines.append(row(f"{make.__name__} p = {p:g}, usps", model, "-", "-", *data.usps()))
    write("icd_accuracy", "The papers' presets", lines)


if __name__ == "__main__":
    main()
