"""Fewer visits at large C: what makes coordinate descent move less, counted in visits of samples.

A visit is one step along one coordinate; counts do not depend on the machine.  A certificate, in
double precision, counts as one and a half visits of every sample.  Three ways:

- plain: sweeps over the active samples, as LIBLINEAR's;
- again: samples that moved are visited up to three times more before the next sweep (ours);
- extrapolated: after five plain sweeps in one order, Anderson's extrapolation of the dual
  variables (Bertrand and Massias 2021, as in skglm), kept where the dual objective gains.

``python -m benchmarks.fewer_visits`` compares them in visits, and

- ``violation``: plain sweeps with such that begin with the samples that would move most, found by
  a pass over all samples that is not counted;
- ``seconds``: the first two in seconds of one core, with the default kernel, on whole sets (of
  covtype 100,000 rows).
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks import data
from benchmarks.report import SEED, alternate, table, write
from widemargin import AdditiveSVC
from widemargin.additive import solver
from widemargin.engine import Control

MOST_ROWS = 5_000
CS = (1.0, 10.0, 100.0)
CERTIFICATE = 1.5
DEPTH = 5  # sweeps that are extrapolated from
MAX_ITER = 1000
VISITS = f"Visits of each of at most {MOST_ROWS:,} samples until the default tolerance."
REPEATS = 3
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
BY_VIOLATION = ("covtype", "ijcnn1", "satimage", "shuttle")  # few columns


@dataclass
class Extrapolation:
    """Sweeps in groups of one order, and the step that each group makes possible."""

    problem: Any = None
    way: list[np.ndarray] = field(default_factory=list)
    n_sweeps: int = 0
    n_tried: int = 0
    n_kept: int = 0

    def sweep(self, plain: Callable, samples: solver.ActiveSamples, control: Control) -> np.ndarray:
        order = np.random.default_rng(self.n_sweeps // DEPTH)
        self.n_sweeps += 1
        account = plain(samples, order, control)
        problem: Any = samples._problem
        if self.problem is not problem:  # another batch of classes
            self.problem, self.way = problem, []
        self.way.append(problem.coef.astype(np.float64))
        if len(self.way) > DEPTH:
            self.step(problem, control)
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


def by_violation(plain: Callable, samples: solver.ActiveSamples, control: Control) -> np.ndarray:
    """A sweep that begins with the samples that would move most."""
    away = would_move(samples._problem)

    def ordered(rows: np.ndarray, seed: int) -> np.ndarray:
        return rows[np.argsort(-away[rows], kind="stable")]

    with mock.patch.object(solver._core, "shuffled", ordered):
        return plain(samples, np.random.default_rng(SEED), control)


def would_move(problem) -> np.ndarray:
    """How far a step along each coordinate would go, in the norm of its sample."""
    shared, n = problem.shared, problem.n_problems
    codes, left = shared.codes.toarray(), shared.tables.left.astype(np.float64)
    cells = problem.weights.reshape(*shared.tables.cell_shape, -1)[..., :n].astype(np.float64)
    decision = shared.bias_value * problem.bias[:n].astype(np.float64)
    decision = decision + sum(left[codes[:, j]] @ cells[j] for j in range(shared.codes.n_features))
    target, c, coef = problem.targets[shared.label], shared.c[:, None], problem.coef
    ridge = shared.loss.ridge(c)
    curvature = shared.diagonal[:, None] + ridge
    step = coef + (target - decision - ridge * coef) / curvature
    move = np.clip(step, *shared.loss.bounds(target, c)) - coef
    return (np.abs(move) * np.sqrt(curvature)).max(axis=1)


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
    other_sweeps = {"extrapolated": found.sweep, "by violation": by_violation}
    with ExitStack() as patches:
        if way != "again":
            patches.enter_context(
                mock.patch.object(solver.ActiveSamples, "visit_again", return_value=0)
            )
        if way in other_sweeps:
            sweep = other_sweeps[way]
            patches.enter_context(
                mock.patch.object(
                    solver.ActiveSamples,
                    "sweep",
                    lambda samples, rng, control: sweep(plain, samples, control),
                )
            )
        model.fit(X, y)
    return visits(model, X.shape[0]), found


def some_rows(name: str):
    X, y, *_ = SETS[name][0]()
    rows = np.random.default_rng(SEED).permutation(X.shape[0])[:MOST_ROWS]
    return X[rows], np.asarray(y)[rows]


def compare(name: str) -> list[list[str]]:
    X, y = some_rows(name)
    lines = []
    for loss in ("squared_hinge", "hinge"):
        for C in CS:
            model = AdditiveSVC(SETS[name][1], C=C, loss=loss, max_iter=MAX_ITER, random_state=SEED)
            plain, _ = fitted("plain", model, X, y)
            again, _ = fitted("again", model, X, y)
            far, found = fitted("extrapolated", model, X, y)
            ratio = f"{again / plain:.2f}"
            kept = f"{found.n_kept} of {found.n_tried}"
            numbers = (f"{plain:.1f}", f"{again:.1f}", ratio, f"{far:.1f}", kept)
            lines.append([name, loss, f"{C:g}", *numbers])
    return lines


def worst_first(name: str) -> list[list[str]]:
    X, y = some_rows(name)
    lines = []
    for loss in ("squared_hinge", "hinge"):
        for C in CS[:2]:
            model = AdditiveSVC(SETS[name][1], C=C, loss=loss, max_iter=MAX_ITER, random_state=SEED)
            found = [f"{fitted(way, model, X, y)[0]:.1f}" for way in ("plain", "by violation")]
            lines.append([name, loss, f"{C:g}", *found])
    return lines


def in_seconds(name: str) -> list[list[str]]:
    """Whole sets, one core, default kernel and tolerance, in turns."""
    X, y, *_ = data.covtype(100_000) if name == "covtype" else SETS[name][0]()
    lines = []
    for C in CS[:2]:
        model = AdditiveSVC(C=C, random_state=SEED, n_jobs=1)
        ways = {way: partial(fitted, way, model, X, y) for way in ("plain", "again")}
        plain, again = alternate(ways, REPEATS, time.process_time).values()
        lines.append([name, f"{C:g}", f"{plain:.3f}", f"{again:.3f}", f"{again / plain:.2f}"])
    return lines


def mean_ratio(lines: list[list[str]]) -> str:
    return f"{np.exp(np.mean([np.log(float(line[5])) for line in lines])):.2f}"


def in_visits() -> None:
    lines = {name: compare(name) for name in SETS}
    columns = ["data", "loss", "C", "plain", "again", "ratio", "extrapolated", "steps kept"]
    looked = [line for name in list(SETS)[:CHOSEN_ON] for line in lines[name]]
    others = [line for name in list(SETS)[CHOSEN_ON:] for line in lines[name]]
    text = [
        VISITS,
        "",
        *table(columns, [line for part in lines.values() for line in part]),
        "",
        f"Mean ratio (geometric) on sets the rule was chosen on: {mean_ratio(looked)}.",
        f"Mean ratio (geometric) on others: {mean_ratio(others)}.",
    ]
    write("fewer_visits", "Fewer visits at large C", text)


def main(part: str = "") -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    if part == "violation":
        rows = [line for name in BY_VIOLATION for line in worst_first(name)]
        text = [VISITS, "", *table(["data", "loss", "C", "plain", "by violation"], rows)]
        write("fewer_visits", "Sweeps that begin with the worst", text, part)
    elif part == "seconds":
        rows = [line for name in SETS for line in in_seconds(name)]
        text = [
            f"CPU seconds of a whole fit on one core, squared hinge, best of {REPEATS} in turns.",
            "",
            *table(["data", "C", "plain", "again", "ratio"], rows),
        ]
        write("fewer_visits", "Visits again, in seconds", text, part)
    else:
        in_visits()


if __name__ == "__main__":
    main(*sys.argv[1:])
