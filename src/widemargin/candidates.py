"""The candidates of a search: machines with settings that suit some data.

A family is all settings of a candidate but gamma: the kernel, how columns are prepared for it, and
the class weight or the epsilon.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from widemargin.additive import AdditiveSVC, AdditiveSVR
from widemargin.additive.frames import is_frame
from widemargin.errors import IdentifierWarning
from widemargin.kernel import KernelSVC, KernelSVR
from widemargin.kernel.moments import weighted_variance
from widemargin.preparation import GradientScaler, NormalScaler
from widemargin.scoring import Scorer
from widemargin.selection import Candidate, Sample, Trial
from widemargin.table_encoder import TableEncoder

MACHINES = ("additive", "kernel")
EARLY_FROM = 200_000  # from this many rows on, an RBF model is early
SCALE_ROWS = 5000
MOST_WEIGHTED = 2000  # columns, of which weights are learned
OF_EVEN_CLASSES = ("balanced_accuracy", "f1_macro", "recall_macro")  # scores
_ADDITIVE = ("linear", "chi2", "intersection")
_EPSILONS = (0.1, 0.02)  # of KernelSVR, in units of the targets' spread

Family = dict[str, Any]


class Candidates:
    """Makes the candidates for some data."""

    def __init__(
        self,
        sample: Sample,
        scoring: str | Scorer,
        machines: Sequence[str],
        parameters: dict[str, Any],
    ):
        self._sample, self._scoring = sample, scoring
        self._machines, self._parameters = machines, parameters
        self._scalers, self._scales = dict[str, Any](), dict[str, float]()
        self._made = dict[tuple, Candidate]()

    # ------------------------------------------------------------------ families

    def kernels(self) -> Iterator[Family]:
        """Yield every kernel, its columns scaled to [0, 1], with every class weight."""
        for weighted in self._class_weights():
            if "additive" in self._machines:
                yield from ({"kernel": kernel, **weighted} for kernel in _ADDITIVE)
            if "kernel" in self._machines:
                epsilon = {"epsilon": _EPSILONS[0]} if self._sample.is_of_numbers else {}
                yield {"kernel": "rbf", **epsilon, **weighted}

    def variants(self, family: Family) -> list[Family]:
        """Return what an RBF kernel can have besides: other columns, another epsilon."""
        if family["kernel"] != "rbf":
            return []
        found = [{**family, "columns": how} for how in self._columns()]
        if "epsilon" in family:
            found += [{**family, "epsilon": epsilon} for epsilon in _EPSILONS[1:]]
        return found

    def _columns(self) -> list[str]:
        """Return how columns may be prepared, what helps most often first."""
        alone = ["normal scores", "standardised"][sp.issparse(self._drawn) :]
        if self._drawn.shape[1] > MOST_WEIGHTED:
            return alone
        return ["weighted", *(f"{how}, weighted" for how in alone), *alone]

    def _class_weights(self) -> list[dict[str, str]]:
        """Return class weights to try, where none are given and all classes count the same."""
        even = isinstance(self._scoring, str) and self._scoring in OF_EVEN_CLASSES
        free = self._parameters.get("class_weight") is None
        return [{}, {"class_weight": "balanced"}] if even and free else [{}]

    # ------------------------------------------------------------------ candidates

    def make(self, family: Family, width: float = 1.0) -> Candidate:
        """Return the candidate of a family; an RBF kernel has ``width`` times gamma="scale"."""
        key = (*family.items(), width)
        if key not in self._made:
            make = self._rbf if family["kernel"] == "rbf" else self._additive
            self._made[key] = make(family, width)
        return self._made[key]

    def _additive(self, family: Family, _: float) -> Candidate:
        cls = AdditiveSVR if self._sample.is_of_numbers else AdditiveSVC
        return Candidate(family, cls(missing="learn", **{**self._parameters, **family}))

    def _rbf(self, family: Family, width: float) -> Candidate:
        columns = family.get("columns", "")
        own: Family = {"kernel": "rbf", "gamma": _short(width * self.scale(columns))}
        own |= {k: v for k, v in family.items() if k not in ("kernel", "columns")}
        if "epsilon" in own:
            own["epsilon"] = _short(own["epsilon"] * self._spread)
        early = len(self._sample.y) >= EARLY_FROM
        cls = KernelSVR if self._sample.is_of_numbers else KernelSVC
        machine = cls(early=early, **{**self._parameters, **own})
        shown = own | ({"columns": columns} if columns else {})
        return Candidate(shown, machine, self._scaler(columns))

    def Cs(self, family: Family, factors: Sequence[float]) -> list[float]:
        """Return values of C; those of `KernelSVR` are in the targets' unit."""
        in_unit = family["kernel"] == "rbf" and self._sample.is_of_numbers
        return [_short(C * self._spread) if in_unit else C for C in factors]

    @cached_property
    def _spread(self) -> float:
        return float(np.std(self._sample.y)) or 1.0  # of constant targets

    def scale(self, columns: str) -> float:
        """Return gamma="scale" of columns before they are weighted, by some of the rows."""
        before = columns.removesuffix("weighted").rstrip(", ")
        if before not in self._scales:
            scaled = self._scaler(before).fit_transform(self._some.X) if before else self._drawn
            weight = self._some.weight
            share = np.ones(scaled.shape[0]) if weight is None else weight
            variance = weighted_variance(scaled, share / share.sum())
            self._scales[before] = 1 / (scaled.shape[1] * max(variance, 1e-12))
        return self._scales[before]

    @cached_property
    def _some(self) -> Sample:
        return self._sample.drawn(SCALE_ROWS, self._parameters["random_state"])

    @cached_property
    def _drawn(self):
        """Some of the rows as numbers in [0, 1]."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IdentifierWarning)  # the final fit warns
            return self._scaler("").fit_transform(self._some.X)

    def _scaler(self, columns: str):
        """Return what is done to the columns of X for an RBF kernel; the same object each time."""
        if columns not in self._scalers:
            steps: list = [] if columns and self._is_plain else [self._first_scaler()]
            if columns.startswith("standardised"):
                steps.append(StandardScaler(with_mean=self._is_plain))
            elif columns.startswith("normal"):
                steps.append(NormalScaler())
            if columns.endswith("weighted"):
                steps = steps or [self._first_scaler()]
                steps.append(GradientScaler(of_numbers=self._sample.is_of_numbers))
            self._scalers[columns] = steps[0] if len(steps) == 1 else make_pipeline(*steps)
        return self._scalers[columns]

    def _first_scaler(self):
        X = self._sample.X
        if is_frame(X) or self._has_gaps:
            return TableEncoder()
        return MaxAbsScaler() if sp.issparse(X) else MinMaxScaler()

    @cached_property
    def _is_plain(self) -> bool:
        """Whether X is a dense array without gaps."""
        X = self._sample.X
        return not (is_frame(X) or sp.issparse(X) or self._has_gaps)

    @cached_property
    def _has_gaps(self) -> bool:
        X = self._sample.X
        values = X.data if sp.issparse(X) else X
        return values.dtype.kind == "f" and bool(np.isnan(values).any())


def _short(number: float) -> float:
    """Return a number rounded to three digits."""
    return float(f"{number:.3g}")


def kernel_of(trial: Trial) -> str:
    return trial.candidate.settings["kernel"]


def is_rbf(trial: Trial) -> bool:
    return kernel_of(trial) == "rbf"


def machine_of(family: Family) -> str:
    return "kernel" if family["kernel"] == "rbf" else "additive"
