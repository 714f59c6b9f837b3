"""Binary sparse data: time per sweep and stored value, against LIBLINEAR's linear solver.

Both run the same number of sweeps (a tolerance that neither reaches), and the difference between
a long and a short run removes everything that happens once.  Both shrink; samples that moved are
not visited again, which LIBLINEAR does not either.
"""

from __future__ import annotations

import warnings
from unittest import mock

from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from benchmarks import data
from benchmarks.report import SEED, alternate, one_thread, table, write
from widemargin import AdditiveSVC
from widemargin.additive.solver import ActiveSamples

SHORT, LONG = 5, 45


def compare(name, X, y) -> list[str]:
    def ours(sweeps):
        # 1e-4: the tightest tolerance that is still single precision.  On binary features every
        # kernel here is the linear one: the same problem, the same C.
        return AdditiveSVC(
            "chi2", C=1.0, C_unit="raw", tol=1e-4, max_iter=sweeps, random_state=SEED
        )

    def theirs(sweeps):
        return LinearSVC(C=1.0, dual=True, tol=1e-12, max_iter=sweeps, random_state=SEED)

    tasks = {
        f"{who} {n}": (lambda make=make, n=n: make(n).fit(X, y))
        for who, make in (("ours", ours), ("theirs", theirs))
        for n in (SHORT, LONG)
    }
    with mock.patch.object(ActiveSamples, "visit_again", return_value=0):
        seconds = alternate(tasks, repeats=5)
    sweeps = (LONG - SHORT) * X.nnz
    once = {who: seconds[f"{who} {LONG}"] - seconds[f"{who} {SHORT}"] for who in ("ours", "theirs")}
    per = {who: 1e9 * longer / sweeps for who, longer in once.items()}
    fitted = ours(LONG).fit(X, y)
    assert fitted.n_iter_ == LONG, "the long run must not converge"
    times = [f"{t:.2f}" for t in (per["ours"], per["theirs"], per["ours"] / per["theirs"])]
    return [name, f"{X.nnz:,}", str(fitted.rank_), *times]


def main() -> None:
    one_thread()
    warnings.simplefilter("ignore", ConvergenceWarning)
    lines = table(
        ["data", "stored values", "rank", "ours, ns", "LIBLINEAR, ns", "ratio (bar: at most 0.9)"],
        [compare("a9a", *data.a9a()[:2]), compare("w8a", *data.w8a()[:2])],
    )
    write("binary_epoch", "Binary sparse data: time per sweep and stored value", lines)


if __name__ == "__main__":
    main()
