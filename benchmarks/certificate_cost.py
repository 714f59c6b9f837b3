"""What the certificate in double precision costs: the same fits with it and without, in turns.

Without, a kernel machine believes the gap of its float32 kernel values, and an additive one that of
its float32 weights; so it may also stop earlier.  Both are only to be had by patching.  Where the
certificate finds that single precision has hidden a gap, the kernel machine computes its gradient
in double precision and goes on: that is no cost of looking, and is counted beside it.

Seconds are those that the process computes, on all threads: how long the system takes to hand out
fresh memory differs from fit to fit by more than a certificate takes.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

from benchmarks import data
from benchmarks.report import SEED, table, write
from widemargin import AdditiveSVC, KernelSVC
from widemargin.additive import batches
from widemargin.kernel.certificate import Judge

REPEATS = 3
BAR = 5  # per cent


def uncertified(task: batches.BatchTask, control, weights=None) -> batches.BatchSolution:
    """`batches.solve_batch` as it would be if single precision could be believed."""
    if weights is None:
        weights = task.shared.tables.weights(task.targets.shape[1])
    problem = task.problem(weights)
    outcome = batches.minimise(problem, task.stopping, np.random.default_rng(task.seed), control)
    return batches.BatchSolution(weights, problem.bias, problem.coef, outcome)


def believing_single_precision() -> ExitStack:
    patches = ExitStack()
    patches.enter_context(mock.patch("widemargin.kernel.tasks.Judge", return_value=None))
    patches.enter_context(mock.patch("widemargin.additive.batches.solve_batch", uncertified))
    return patches


def computing(tasks: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The least seconds in user mode of each task, in turns after a warm-up."""
    best = dict.fromkeys(tasks, float("inf"))
    for turn in range(REPEATS + 1):
        for name, task in tasks.items():
            started = resource.getrusage(resource.RUSAGE_SELF).ru_utime
            task()
            if turn > 0:
                spent = resource.getrusage(resource.RUSAGE_SELF).ru_utime - started
                best[name] = min(best[name], spent)
    return best


def kernel(C: float, gamma: float) -> KernelSVC:
    return KernelSVC(C=C, gamma=gamma, fit_intercept=False, n_jobs=2, random_state=SEED)


def additive(name: str) -> AdditiveSVC:
    return AdditiveSVC(name, n_jobs=2, random_state=SEED)


FITS: dict[str, tuple[Callable, Any]] = {
    "covtype, 30,000 rows": (partial(data.covtype, 30_000), kernel(32.0, 32.0)),
    "ijcnn1": (data.ijcnn1_dense, kernel(32.0, 2.0)),
    "MNIST, round digits": (data.mnist_round, kernel(2.0, 0.02)),
    "Fashion-MNIST, chi2": (data.fashion, additive("chi2")),
    "Fashion-MNIST, intersection": (data.fashion, additive("intersection")),
}


def compare(name: str) -> list[str]:
    load, model = FITS[name]
    X, y, *_ = load()

    def without() -> None:
        with believing_single_precision():
            model.fit(X, y)

    seconds = computing({"with": partial(model.fit, X, y), "without": without})
    share = 100 * (1 - seconds["without"] / seconds["with"])
    with mock.patch.object(Judge, "refined", autospec=True, side_effect=Judge.refined) as refined:
        model.fit(X, y)
    figures = (f"{seconds['with']:.2f}", f"{seconds['without']:.2f}", f"{share:.1f}")
    return [name, *figures, str(refined.call_count)]


def main(names: list[str]) -> None:
    rows = [compare(name) for name in names or FITS]
    columns = [
        "fit",
        "seconds",
        "without a certificate",
        "share of the certificate, %",
        "gradients in double",
    ]
    lines = [
        f"Seconds of computing on two threads, best of {REPEATS} in turns. Bar: at most {BAR} %.",
        "",
        *table(columns, rows),
    ]
    write("certificate_cost", "The cost of a certificate in double precision", lines)


if __name__ == "__main__":
    main(sys.argv[1:])
