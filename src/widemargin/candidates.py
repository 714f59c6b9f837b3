"""The candidates of a search: machines with settings that suit some data."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler

from widemargin.additive import AdditiveSVC
from widemargin.additive.frames import is_frame
from widemargin.errors import IdentifierWarning
from widemargin.kernel import KernelSVC
from widemargin.kernel.moments import weighted_variance
from widemargin.scoring import Scorer
from widemargin.selection import Candidate, Sample, Trial
from widemargin.table_encoder import TableEncoder

MACHINES = ("additive", "kernel")
EARLY_FROM = 200_000  # from this many rows on, an RBF model is early
SCALE_ROWS = 5000
OF_EVEN_CLASSES = ("balanced_accuracy", "f1_macro", "recall_macro")  # scores
_ADDITIVE = ("linear", "chi2", "intersection")
_OTHER_WIDTHS = (0.25, 4.0)  # in units of gamma="scale"


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

    def kernels(self) -> Iterator[Candidate]:
        """Yield every machine at gamma="scale", with every class weight."""
        for weighted in self._class_weights():
            if "additive" in self._machines:
                for kernel in _ADDITIVE:
                    parameters = {**self._parameters, **weighted}
                    machine = AdditiveSVC(kernel, missing="learn", **parameters)
                    yield Candidate({"kernel": kernel, **weighted}, machine)
            if "kernel" in self._machines:
                yield self.rbf(self.scale, weighted)

    def _class_weights(self) -> list[dict[str, str]]:
        """Return class weights to try, where none are given and all classes count the same."""
        even = isinstance(self._scoring, str) and self._scoring in OF_EVEN_CLASSES
        free = self._parameters.get("class_weight") is None
        return [{}, {"class_weight": "balanced"}] if even and free else [{}]

    def rbf(self, gamma: float, weighted: dict[str, str]) -> Candidate:
        own = {"gamma": float(f"{gamma:.3g}"), **weighted}
        early = len(self._sample.y) >= EARLY_FROM
        machine = KernelSVC("rbf", early=early, **{**self._parameters, **own})
        return Candidate({"kernel": "rbf", **own}, machine, self._scaler())

    @cached_property
    def _has_gaps(self) -> bool:
        X = self._sample.X
        values = X.data if sp.issparse(X) else X
        return values.dtype.kind == "f" and bool(np.isnan(values).any())

    def _scaler(self):
        """Return the scaler or encoder of X for general kernels."""
        if is_frame(self._sample.X) or self._has_gaps:
            return TableEncoder()
        return MaxAbsScaler() if sp.issparse(self._sample.X) else MinMaxScaler()

    @cached_property
    def scale(self) -> float:
        """Return gamma="scale" of the scaled data, by some of the rows."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IdentifierWarning)  # the final fit warns
            X, _, weight = self._sample.drawn(SCALE_ROWS, self._parameters["random_state"])
            scaled = self._scaler().fit_transform(X)
        share = np.ones(scaled.shape[0]) if weight is None else weight
        variance = weighted_variance(scaled, share / share.sum())
        return 1 / (scaled.shape[1] * max(variance, 1e-12))

    def widths(self, candidate: Candidate) -> list[Candidate]:
        """Return the candidate and, of an RBF kernel, those of other widths."""
        if candidate.settings["kernel"] != "rbf":
            return [candidate]
        weighted = class_weight_of(candidate)
        return [candidate, *(self.rbf(w * self.scale, weighted) for w in _OTHER_WIDTHS)]


def kernel_of(trial: Trial) -> str:
    return trial.candidate.settings["kernel"]


def class_weight_of(candidate: Candidate) -> dict[str, str]:
    return {k: v for k, v in candidate.settings.items() if k == "class_weight"}


def is_rbf(trial: Trial) -> bool:
    return kernel_of(trial) == "rbf"


def machine_of(candidate: Candidate) -> str:
    return "kernel" if candidate.settings["kernel"] == "rbf" else "additive"
