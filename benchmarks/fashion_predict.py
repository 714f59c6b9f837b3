"""Fashion-MNIST: predicting 10,000 images, against AdditiveChi2Sampler + LinearSVC."""

from __future__ import annotations

from benchmarks import data
from benchmarks.fashion_fit import additive, sampled
from benchmarks.report import alternate, one_thread, table, write


def main() -> None:
    one_thread()
    X, y, X_test, _ = data.fashion()
    U_test = X_test / 255.0
    ours = additive(4.0).fit(X, y)
    theirs = sampled(0.001).fit(X[:10_000] / 255.0, y[:10_000])  # its speed is that of any fit
    seconds = alternate(
        {"ours": lambda: ours.predict(X_test), "theirs": lambda: theirs.predict(U_test)}, repeats=5
    )
    rows = [
        [f"AdditiveSVC chi2 (rank {ours.rank_})", f"{1e3 * seconds['ours']:.1f}"],
        ["AdditiveChi2Sampler(2) + LinearSVC", f"{1e3 * seconds['theirs']:.0f}"],
    ]
    ratio = f"{seconds['theirs'] / seconds['ours']:.0f} times faster (bar: 10)."
    lines = [*table(["method", "10,000 images, ms"], rows), "", ratio]
    write("fashion_predict", "Fashion-MNIST: prediction", lines)


if __name__ == "__main__":
    main()
