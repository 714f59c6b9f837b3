"""One function per promise of the documents: each takes a fitted model and what it was fitted to.

A promise that is broken is an AssertionError whose text up to the first colon names the fault; the
numbers follow.  What other fits a check needs it makes of clones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hypothesis.strategies import SearchStrategy, one_of

from stress.checks.bits import concurrent, inputs, n_jobs, pickled, saved, single_rows
from stress.checks.certificate import certificate, convergence, decisions, gamma, optimum
from stress.checks.disasters import interrupted, killed, memory
from stress.checks.invariance import copies, labels, layout, order, path
from stress.checks.onnx import onnx
from stress.problems import Case, additive_cases, cases, chosen, kernel_cases


class Check(NamedTuple):
    """A promise, and the cases that it is made for."""

    function: Callable
    cases: SearchStrategy[Case]


EXACT = {"early": chosen(False)}
OVR = {"multi_class": chosen("ovr")}
COUNTED = {"weights": chosen("copies", "zeros")}
FORMULAS = chosen("rbf", "poly", "sigmoid", "laplacian", "chi2")
SCALED = chosen("rbf", "poly", "laplacian")
TAME = {"C": chosen(1.0, 0.01, 100.0), "scale": chosen(1.0), "rows": chosen(4, 8, 12, 16, 24)}
BATCHES = chosen(17, 40)  # of 16 classes: the threads' tasks
DIVIDED = {"levels": chosen(1, 2, 3), "branching": chosen(2, 3)}

CHECKS = {
    "certificate": Check(certificate, cases()),
    "optimum": Check(optimum, cases(**EXACT, **TAME, **OVR, weights=chosen(None))),
    "convergence": Check(convergence, cases()),
    "decisions": Check(decisions, cases(**EXACT, **OVR)),
    "gamma": Check(gamma, kernel_cases(kernel=SCALED, gamma=chosen("scale"))),
    "copies": Check(copies, cases(**EXACT, **COUNTED)),
    "order": Check(order, cases(**EXACT)),
    "labels": Check(labels, cases(**EXACT, class_weight=chosen(None))),
    "layout": Check(layout, cases(**EXACT)),
    "path": Check(path, cases(**EXACT)),
    "inputs": Check(inputs, cases()),
    "n_jobs": Check(n_jobs, one_of(cases(), additive_cases(classes=BATCHES))),
    "concurrent": Check(concurrent, cases()),
    "pickled": Check(pickled, cases()),
    "saved": Check(saved, cases()),
    "single_rows": Check(single_rows, cases(**EXACT, **OVR)),
    "onnx": Check(
        onnx,
        one_of(
            additive_cases(**OVR),
            kernel_cases(**EXACT, kernel=FORMULAS, **OVR),
        ),
    ),
    "killed": Check(killed, kernel_cases(**DIVIDED)),
    "interrupted": Check(interrupted, cases()),
    "memory": Check(memory, cases(**EXACT)),
}
