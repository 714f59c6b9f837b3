"""Fewer visits at large C: what makes coordinate descent move less, counted in visits of samples.

A visit is one step along one coordinate; counts do not depend on the machine.  A certificate, in
double precision, counts as one and a half visits of every sample.  Three ways:

- plain: sweeps over the active samples, as LIBLINEAR's;
- again: samples that moved are visited up to three times more before the next sweep (ours);
- extrapolated: after five plain sweeps in one order, Anderson's extrapolation of the dual
  variables (Bertrand and Massias 2021, as in skglm), kept where the dual objective gains.

``python -m benchmarks.fewer_visits [NAME ...]``
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from unittest import mock

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks import data
from benchmarks.report import SEED, table, write
from widemargin import AdditiveSVC
from widemargin.additive import solver
from widemargin.engine import Control

MOST_ROWS = 5_000
CS = (1.0, 10.0, 100.0)
CERTIFICATE = 1.5
DEPTH = 5  # sweeps that are extrapolated from
MAX_ITER = 1000
SETS: dict[str, tuple[Callable, str]] = {
    "a9a": (data.a9a, "chi2"),
    "w8a": (data.w8a, "chi2"),
    "covtype": (partial(data.covtype, MOST_ROWS), "intersection"),
    "Fashion-MNIST": (data.fashion, "chi2"),
    "ijcnn1": (data.ijcnn1_dense, "intersection"),
    "news20, tf-idf": (data.news20_tfidf, "linear"),
    "usps": (data.usps, "intersection"),
    "satimage": (data.satimage, "intersection"),
    "letter": (data.letter, "intersection"),
    "shuttle": (data.shuttle, "intersection"),
}
CHOSEN_ON = 6  # the first of them, with others that are not here


@dataclass
class Extrapolation:
    """Sweeps in groups of one order, and the step that each group makes possible."""

    problem: object = None
    way: list[np.ndarray] = field(default_factory=list)
    n_sweeps: int = 0
    n_tried: int = 0
    n_kept: int = 0

    def sweep(self, plain: Callable, samples: solver.ActiveSamples, control: Control) -> np.ndarray:
        order = np.random.default_rng(self.n_sweeps // DEPTH)
        self.n_sweeps += 1
        account = plain(samples, order, control)
        if self.problem is not samples._problem:  # another batch of classes
            self.problem, self.way = samples._problem, []
        self.way.append(samples._problem.coef.astype(np.float64))
        if len(self.way) > DEPTH:
            self.step(samples._problem, control)
            self.way = []
        return account

    def step(self, problem, control: Control) -> None:
        """Of each problem by itself; those that do not gain are put back."""
        before = dual_objective(problem)
        old = [part.copy() for part in (problem.coef, problem.weights, problem.bias)]
        problem.weights[...], problem.bias[...] = 0, 0
        problem.start(extrapolated(np.stack(self.way)), control)
        worse = np.flatnonzero(~(dual_objective(problem) > before))
        for part, was in zip((problem.coef, problem.weights, problem.bias), old, strict=True):
            part[..., worse] = was[..., worse]
        self.n_tried += problem.n_problems
        self.n_kept += problem.n_problems - len(worse)


def extrapolated(way: np.ndarray) -> np.ndarray:
    """The combination of points, of weights that sum to 1, whose last steps cancel best."""
    steps, out = np.diff(way, axis=0), way[-1].copy()
    for k in range(out.shape[1]):
        gram = steps[:, :, k] @ steps[:, :, k].T
        if np.trace(gram) > 0:
            ridge = 1e-10 * np.trace(gram) / len(gram) * np.eye(len(gram))
            share = np.linalg.solve(gram + ridge, np.ones(len(gram)))
            out[:, k] = share @ way[1:, :, k] / share.sum()
    return out


def dual_objective(problem) -> np.ndarray:
    shared, n = problem.shared, problem.n_problems
    weights = problem.weights.reshape(-1, shared.layout.lanes)[:, :n].astype(np.float64)
    squared = (weights**2).sum(axis=0) + problem.bias[:n].astype(np.float64) ** 2
    coef, ridge = problem.coef.astype(np.float64), shared.loss.ridge(shared.c.astype(np.float64))
    linear = (problem.targets[shared.label] * coef).sum(axis=0)
    return linear - 0.5 * squared - 0.5 * (np.reshape(ridge, (-1, 1)) * coef**2).sum(axis=0)


def visits(model: AdditiveSVC, n_rows: int) -> float:
    """Per sample and batch of classes, certificates included."""
    total = 0.0
    for history in model.history_:
        for record in history:
            seen = record["active"] + record.get("again", 0)
            total += seen / n_rows + CERTIFICATE * ("measured" in record)
    return total / len(model.history_)


def fitted(way: str, model: AdditiveSVC, X, y) -> tuple[float, Extrapolation]:
    """Visits, and what became of extrapolations."""
    found, plain = Extrapolation(), solver.ActiveSamples.sweep
    with ExitStack() as patches:
        if way != "again":
            patches.enter_context(
                mock.patch.object(solver.ActiveSamples, "visit_again", return_value=0)
            )
        if way == "extrapolated":
            patches.enter_context(
                mock.patch.object(
                    solver.ActiveSamples,
                    "sweep",
                    lambda samples, rng, control: found.sweep(plain, samples, control),
                )
            )
        model.fit(X, y)
    return visits(model, X.shape[0]), found


def compare(name: str) -> list[list[str]]:
    load, kernel = SETS[name]
    X, y, *_ = load()
    rows = np.random.default_rng(SEED).permutation(X.shape[0])[:MOST_ROWS]
    X, y = X[rows], np.asarray(y)[rows]
    lines = []
    for loss in ("squared_hinge", "hinge"):
        for C in CS:
            model = AdditiveSVC(kernel, C=C, loss=loss, max_iter=MAX_ITER, random_state=SEED)
            plain, _ = fitted("plain", model, X, y)
            again, _ = fitted("again", model, X, y)
            far, found = fitted("extrapolated", model, X, y)
            ratio = f"{again / plain:.2f}"
            kept = f"{found.n_kept} of {found.n_tried}"
            numbers = (f"{plain:.1f}", f"{again:.1f}", ratio, f"{far:.1f}", kept)
            lines.append([name, loss, f"{C:g}", *numbers])
    return lines


def mean_ratio(lines: list[list[str]]) -> str:
    return f"{np.exp(np.mean([np.log(float(line[5])) for line in lines])):.2f}"


def main(names: list[str]) -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    chosen = names or list(SETS)
    lines = {name: compare(name) for name in chosen}
    columns = ["data", "loss", "C", "plain", "again", "ratio", "extrapolated", "steps kept"]
    looked = [x for name in chosen if name in list(SETS)[:CHOSEN_ON] for x in lines[name]]
    others = [x for name in chosen if name not in list(SETS)[:CHOSEN_ON] for x in lines[name]]
    means = [
        f"Mean ratio (geometric) {what}: {mean_ratio(part)}."
        for what, part in (("on sets the rule was chosen on", looked), ("on others", others))
        if part
    ]
    text = [
        f"Visits of each of at most {MOST_ROWS:,} samples until the default tolerance.",
        "",
        *table(columns, [line for part in lines.values() for line in part]),
        "",
        *means,
        "",
    ]
    write("fewer_visits", "Fewer visits at large C", text)


if __name__ == "__main__":
    main(sys.argv[1:])
