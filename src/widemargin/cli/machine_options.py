"""The options of train, tune and easy: machines and their comparison."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from widemargin.cli.options import option, output_option
from widemargin.cli.words import UsageError

machine_option = partial(option, panel="Machine")
general_option = partial(option, panel="Machine: general kernels only")
additive_option = partial(option, panel="Machine: additive kernels only")
folds_option = partial(option, panel="Cross-validation")

Tol = Annotated[
    float | None,
    machine_option(
        "-e", "--tol", "Relative duality gap to stop at (default: 0.001; additive: 0.01)"
    ),
]
MaxIter = Annotated[int | None, machine_option("--max-iter", "Maximum number of sweeps or blocks")]
Weight = Annotated[
    list[str] | None,
    machine_option("--weight", "LABEL=FACTOR of C (LIBSVM's -wLABEL FACTOR), or balanced"),
]
MultiClass = Annotated[
    str | None,
    machine_option("--multi-class", "ovr; ovo (general kernels); crammer_singer (additive)"),
]
Intercept = Annotated[bool | None, machine_option("--intercept/--no-intercept", "Fit an intercept")]
Scale = Annotated[
    str | None,
    option("--scale", "none (default), minmax, maxabs or standard; kept in the model"),
]
Probability = Annotated[
    bool,
    option(
        "--probability/--no-probability",
        "Fit probabilities (LIBSVM's -b 1): a sigmoid per pair of classes, coupled",
    ),
]
Seed = Annotated[int | None, option("--seed", "Seed of all random choices")]


@dataclass(frozen=True)
class Machine:
    """A kernel, a scaling, and parameters of a machine by their Python names."""

    preset: Annotated[
        str | None,
        machine_option(
            "--preset",
            "Settings of a paper: icd, icd-counts (histograms unquantised), pmsvm, pmsvm-lut, "
            "dcsvm, dcsvm-early; other options change them",
        ),
    ] = None
    kernel: Annotated[
        str | None,
        machine_option(
            "-t",
            "--kernel",
            "General: rbf, poly, sigmoid, laplacian, exp_chi2, libsvm_linear, precomputed; "
            "additive: intersection, chi2, hellinger, jensen_shannon, linear, power_mean, auto; "
            "or LIBSVM's 0 to 4 (default: rbf)",
        ),
    ] = None
    C: Annotated[float | None, machine_option("-c", "--C", "Cost of errors (default: 1)")] = None
    gamma: Annotated[
        float | None,
        general_option(
            "-g",
            "--gamma",
            "rbf, poly, sigmoid, laplacian, exp_chi2 (default: 1 / (features * variance))",
        ),
    ] = None
    degree: Annotated[int | None, general_option("-d", "--degree", "poly (default: 3)")] = None
    coef0: Annotated[
        float | None, general_option("-r", "--coef0", "poly and sigmoid (default: 0)")
    ] = None
    power: Annotated[
        float | None,
        additive_option("-p", "--power", "Exponent of power_mean, at most 0"),
    ] = None
    tol: Tol = None
    max_iter: MaxIter = None
    minutes: Annotated[
        float | None,
        machine_option("--minutes", "Time limit; a fit that exceeds it stops early"),
    ] = None
    weight: Weight = None
    cache_size: Annotated[
        float | None,
        general_option("-m", "--cache-size", "Megabytes for kernel rows"),
    ] = None
    checkpoint: Annotated[
        Path | None,
        general_option("--checkpoint", "Folder to resume a stopped fit from"),
    ] = None
    early: Annotated[
        str | None,
        general_option("--early", "Early model: stop at the clusters of this level, or auto"),
    ] = None
    multi_class: MultiClass = None
    loss: Annotated[str | None, additive_option("--loss", "squared_hinge or hinge")] = None
    rank: Annotated[int | None, additive_option("--rank", "Numbers per bin")] = None
    fit_intercept: Intercept = None
    scale: Scale = None
    probability: Probability = False
    random_state: Seed = 0

    def parameters(self) -> dict:
        others = ("preset", "kernel", "scale", "probability", "minutes")
        limit = {} if self.minutes is None else {"max_seconds": 60 * self.minutes}
        return {k: v for k, v in vars(self).items() if k not in others} | limit


_LIBSVM_TYPES = {1: "nu-SVC", 2: "one-class SVM", 3: "epsilon-SVR", 4: "nu-SVR"}


@dataclass(frozen=True)
class LibsvmOptions:
    """LIBSVM's -s, -n and -h: accepted at the one supported value, otherwise refused."""

    svm_type: Annotated[int, option("-s", "--svm-type", "LIBSVM's", hidden=True)] = 0
    nu: Annotated[float | None, option("-n", "--nu", "LIBSVM's", hidden=True)] = None
    shrinking: Annotated[bool, option("--shrinking/--no-shrinking", "LIBSVM's -h", hidden=True)] = (
        True
    )

    def __post_init__(self) -> None:
        if self.svm_type != 0:
            asked = _LIBSVM_TYPES.get(self.svm_type, "unknown to LIBSVM")
            raise UsageError(f"-s {self.svm_type} ({asked}): only -s 0 (C-SVC) is supported.")
        if self.nu is not None:
            raise UsageError("-n: nu is not supported. Set the cost of errors with -c.")
        if not self.shrinking:
            raise UsageError("-h 0: shrinking cannot be switched off. Leave -h out.")


# ------------------------------------------------------------------ comparisons of models


@dataclass(frozen=True)
class Validation:
    """Options of cross-validation."""

    folds: Annotated[
        int | None,
        folds_option(
            "-v", "--folds", "Cross-validate and print the accuracy, write no model", min=2
        ),
    ] = None
    scoring: Annotated[
        str | None,
        folds_option("--scoring", "With --folds: another score, as in tune"),
    ] = None

    def __post_init__(self) -> None:
        if self.scoring is not None and self.folds is None:
            raise UsageError("--scoring needs --folds.")


Scoring = Annotated[
    str,
    option("--scoring", "Score to maximise: accuracy, balanced_accuracy, roc_auc, f1, ..."),
]


@dataclass(frozen=True)
class Search:
    """What `tune` tries, on which rows, with the parameters that all candidates share."""

    kernels: Annotated[str, machine_option("-t", "--kernels", "Kernels, separated by commas")] = (
        "rbf,chi2,intersection"
    )
    Cs: Annotated[str, machine_option("-c", "--Cs", "Numbers, or low:high:count")] = "0.1:1000:5"
    gammas: Annotated[
        str | None,
        machine_option(
            "-g", "--gammas", "Numbers, or low:high:count (default: 1 / (features * variance))"
        ),
    ] = None
    powers: Annotated[str | None, machine_option("-p", "--powers", "Exponents of power_mean")] = (
        None
    )
    scale: Scale = None
    scoring: Scoring = "accuracy"
    folds: Annotated[int, option("-v", "--folds", "Folds of cross-validation", min=2)] = 5
    rows: Annotated[int | None, option("--rows", "Rows to search on (default: all)", min=10)] = None
    random_state: Seed = 0
    tol: Tol = None
    max_iter: MaxIter = None
    weight: Weight = None
    multi_class: MultiClass = None
    fit_intercept: Intercept = None
    probability: Probability = False
    plot: Annotated[Path | None, output_option("--plot", "Draw the score against C")] = None

    def common(self) -> dict:
        """Return the parameters that every machine shares."""
        names = ("tol", "max_iter", "weight", "multi_class", "fit_intercept", "random_state")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Wanted:
    """The options of `easy`."""

    scoring: Scoring = "accuracy"
    weight: Weight = None
    minutes: Annotated[
        float,
        option(
            "--minutes",
            "Time limit of choice and training; a fit that exceeds it stops early",
            min=0.01,
        ),
    ] = 10.0
