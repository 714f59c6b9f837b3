"""Rows of one sweep on several cores: parts that descend side by side from the same weights.

What the parts of a round have found is added, by the step that gains most (an exact search along
the line, in every output), and then one goes on alone over a few rows: `cpp/additive/halves.hpp`.

``python -m benchmarks.halves`` counts visits of samples until the default tolerance, which do not
depend on the machine: of two halves as the core has them, and of more parts as they are simulated
here, one after the other.  ``python -m benchmarks.halves seconds [REPEATS]`` times whole fits on
one thread and on two, in turns.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from unittest import mock

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks import data
from benchmarks.fewer_visits import visits
from benchmarks.report import SEED, one_thread, table, write
from widemargin import AdditiveSVC, _core
from widemargin.additive import batches
from widemargin.additive.problem import BoxProblem, aligned_copy

ROWS = 128  # of a part in a round
ALONE_AT_ONCE = 512  # rows that the core sweeps one after the other
PARTS = ((2, 0), (2, 32), (4, 128), (16, 512))  # and rows alone after them
MOST_ROWS = 10_000  # where visits are counted
MAX_ITER = 300
SEEDS = (0, 1, 2)  # of sweeps


def copies():
    """20 rows, a thousand times each, with labels that contradict each other."""
    rng = np.random.default_rng(SEED)
    X = np.repeat(rng.uniform(size=(20, 5)), 1000, axis=0)
    return X, np.where(rng.uniform(size=len(X)) < 0.3 + 0.4 * (X[:, 0] > 0.5), 1, -1)


def one_feature():
    rng = np.random.default_rng(SEED)
    X = rng.uniform(size=(20_000, 1))
    return X, np.where(X[:, 0] + 0.2 * rng.normal(size=len(X)) > 0.5, 1, -1)


SETS: dict[str, Callable] = {
    "covtype, 2 classes": partial(data.covtype, 100_000),
    "ijcnn1, 2 classes": data.ijcnn1_dense,
    "a9a, 2 classes": data.a9a,
    "w8a, 2 classes": data.w8a,
    "usps, 10 classes": data.usps,
    "satimage, 6 classes": data.satimage,
    "copies of 20 rows, 2 classes": copies,
    "one feature, 2 classes": one_feature,
}
TIMED = [*list(SETS)[:4], "satimage, 6 classes"]
WAYS: dict[str, dict] = {
    "squared hinge, C = 1": {},
    "hinge, C = 1": {"loss": "hinge"},
    "squared hinge, C = 10": {"C": 10.0},
}


class Simulated:
    """A dual whose sweeps have rounds of some parts, all in one thread."""

    def __init__(self, problem: BoxProblem, core, coef: np.ndarray, n_parts: int, alone: int):
        self._problem, self._coef, self._n_parts, self._alone = problem, coef, n_parts, alone
        self._whole = self._dual(core, problem.weights, problem.bias)
        self._places = [
            (aligned_copy(problem.weights, coef.dtype), aligned_copy(problem.bias, coef.dtype))
            for _ in range(n_parts)
        ]
        self._parts = [self._dual(core, *place) for place in self._places]
        self.certify, self.accumulate = self._whole.certify, self._whole.accumulate

    def _dual(self, core, weights, bias):
        return _core.BoxDual(core, self._problem._padded, weights, self._coef, bias, 1)

    def sweep(self, order, begin, seconds, bounds, fate, account) -> int:
        at, side_by_side = begin, ROWS * self._n_parts
        while at < len(order):
            if self._n_parts > 1 and at + side_by_side + self._alone <= len(order):
                rows = order[at : at + side_by_side]
                self._round(rows, lambda dual, own: dual.sweep(own, 0, 1e9, bounds, fate, account))
                at += side_by_side
                end = at + self._alone
            else:
                end = min(at + ALONE_AT_ONCE, len(order))
            self._whole.sweep(order[at:end].copy(), 0, 1e9, bounds, fate, account)
            at = end
        return at

    def _round(self, rows: np.ndarray, sweep: Callable) -> None:
        problem, was = self._problem, self._coef[rows].astype(np.float64)
        moves = []
        places = zip(self._parts, self._places, np.split(rows, self._n_parts), strict=True)
        for dual, (weights, bias), own in places:
            weights[...], bias[...] = problem.weights, problem.bias
            sweep(dual, own.copy())
            moves.append((weights - problem.weights, bias - problem.bias))
        step = [sum(parts, start=np.zeros(())) for parts in zip(*moves, strict=True)]
        by = self._best(rows, was, step)
        problem.weights += by * step[0]
        problem.bias += by * step[1]
        found = self._coef[rows]
        self._coef[rows] = np.where(by == 1, found, was + by * (found - was))

    def _best(self, rows: np.ndarray, was: np.ndarray, step: list[np.ndarray]) -> np.ndarray:
        """How far to go, at most 1, so that the dual objective gains most."""
        problem, shared = self._problem, self._problem.shared
        ridge = shared.loss.ridge(shared.c[rows].astype(np.float64))
        ridge = np.reshape(ridge * np.ones(len(rows)), (-1, 1))
        move = self._coef[rows] - was
        linear = ((problem._padded[shared.label[rows]] - ridge * was) * move).sum(axis=0)
        square = (ridge * move**2).sum(axis=0)
        for now, change in ((problem.weights, step[0]), (problem.bias, step[1])):
            change = change.reshape(-1, len(linear)).astype(np.float64)
            linear -= (now.reshape(change.shape) * change).sum(axis=0)
            square += (change**2).sum(axis=0)
        return np.where(linear < square, linear / np.where(square > 0, square, 1.0), 1.0)


def simulated(n_parts: int, alone: int) -> type[BoxProblem]:
    class Problem(BoxProblem):
        def _dual(self, core, coef):
            return Simulated(self, core, coef, n_parts, alone)

    return Problem


def counted(changes: dict, X, y, kind: type[BoxProblem] = BoxProblem) -> float:
    """The mean over some orders of the rows: a sweep more or less is often a matter of luck."""
    found = []
    for seed in SEEDS:
        model = AdditiveSVC(max_iter=MAX_ITER, random_state=seed, **changes)
        with mock.patch.object(batches, "BoxProblem", kind):
            found.append(visits(model.fit(X, y), X.shape[0]))
    return float(np.mean(found))


def count(name: str) -> tuple[list[list[str]], list[list[float]]]:
    X, y, *_ = SETS[name]()
    rows = np.random.default_rng(SEED).permutation(X.shape[0])[:MOST_ROWS]
    X, y = X[rows], np.asarray(y)[rows]
    lines, ratios = [], []
    for way, changes in WAYS.items():
        one, found = counted(changes, X, y, simulated(1, 0)), [counted(changes, X, y)]
        found += [counted(changes, X, y, simulated(*parts)) for parts in PARTS]
        ratios.append([number / one for number in found])
        lines.append([name, way, f"{one:.1f}", *(f"{r:.2f}" for r in ratios[-1])])
        print("|".join(lines[-1]), flush=True)
    return lines, ratios


def in_visits() -> None:
    results = [count(name) for name in SETS]
    ratios = np.array([r for _, more in results for r in more])
    mean = np.exp(np.log(ratios).mean(axis=0))
    # On as many cores as parts, if nothing else took time; the core's halves have 512 rows or more.
    most = [(2 * 512 + 64) / (512 + 64), *((p * ROWS + g) / (ROWS + g) for p, g in PARTS)]
    ideal = [f"{m / ratio:.2f}" for m, ratio in zip(most, mean, strict=True)]
    columns = ["data", "", "one row after another", "core", *(f"{p} parts, {g}" for p, g in PARTS)]
    rows = [line for lines, _ in results for line in lines]
    text = [
        f"Visits of each of at most {MOST_ROWS:,} samples until the default tolerance,",
        "certificates included, one row after another; and as ratios to that: the core's two",
        f"halves, and parts of {ROWS} rows with so many rows alone after them (simulated).",
        f"Means of {len(SEEDS)} orders.",
        "",
        *table(columns, rows),
        "",
        "| geometric mean | core | " + " | ".join(columns[4:]) + " |",
        "|" + "---|" * (len(columns) - 2),
        "| visits | " + " | ".join(f"{m:.2f}" for m in mean) + " |",
        "| speed-up at best, a core for each | " + " | ".join(ideal) + " |",
    ]
    write("halves", "Rows of a sweep in parts, side by side", text)


def fit_seconds(model: AdditiveSVC, X, y) -> tuple[float, float, float]:
    """Of a fit, of its sweeps and certificates, and of all cores together."""
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(X, y)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return wall, model.fit_record_.seconds, cpu


def timed(name: str, changes: dict, repeats: int) -> list[str]:
    X, y, *_ = SETS[name]()
    models = {n: AdditiveSVC(random_state=SEED, n_jobs=n, **changes) for n in (1, 2)}
    taken: dict[int, list] = {n: [] for n in models}
    for turn in range(repeats + 1):
        for n in (1, 2) if turn % 2 else (2, 1):
            taken[n].append(fit_seconds(models[n], X, y))
    one, two = (np.min(taken[n][1:], axis=0) for n in (1, 2))  # the first is the warm-up
    same = np.array_equal(models[1].model_.weights, models[2].model_.weights)
    both = [f"{a:.3f}, {b:.3f}" for a, b in zip(one, two, strict=True)]
    ratios = [f"{a / b:.2f}" for a, b in zip(one[:2], two[:2], strict=True)]
    return [both[0], ratios[0], both[1], ratios[1], both[2], "yes" if same else "NO"]


def in_seconds(repeats: int) -> None:
    one_thread()
    rows = []
    for name in TIMED:
        for way in ("squared hinge, C = 1", "squared hinge, C = 10"):
            rows.append([name, way, *timed(name, WAYS[way], repeats)])
            print("|".join(rows[-1]), flush=True)
    columns = ["data", "", "fit, s", "speed-up", "sweeps and certificates, s", "speed-up"]
    columns += ["CPU, s", "same bits"]
    load = f"{os.getloadavg()[0]:.1f}"
    text = [
        f"On one thread and on two, the best of {repeats} in turns after a warm-up; covtype has",
        f"100,000 rows. Others worked on the machine (load {load} at the end). Bar: 1.4 times.",
        "",
        *table(columns, rows),
    ]
    write("halves", "Two halves of the rows on two threads", text, "seconds")


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    if sys.argv[1:2] == ["seconds"]:
        in_seconds(int(sys.argv[2]) if len(sys.argv) > 2 else 5)
    else:
        in_visits()
