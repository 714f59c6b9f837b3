"""The options of train, tune and easy: machines and their comparison."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from widemargin.cli.options import option, output_option
from widemargin.cli.words import UsageError

machine_option = partial(option, panel="Machine")
general_option = partial(option, panel="Machine: general kernels only")
additive_option = partial(option, panel="Machine: additive kernels only")
folds_option = partial(option, panel="Cross-validation")


weight_option = partial(
    machine_option, "--weight", "LABEL=FACTOR of C (LIBSVM's -wLABEL FACTOR), or balanced"
)


@dataclass(frozen=True)
class Shared:
    """What one machine and all candidates of a search have in common."""

    tol: float | None = machine_option(
        "-e", "--tol", "Relative duality gap to stop at (default: 0.001; additive: 0.01)"
    )
    max_iter: int | None = machine_option("--max-iter", "Maximum number of sweeps or blocks")
    weight: list[str] | None = weight_option()
    multi_class: str | None = machine_option(
        "--multi-class", "ovr; ovo (general kernels); crammer_singer (additive)"
    )
    fit_intercept: bool | None = machine_option("--intercept/--no-intercept", "Fit an intercept")
    scale: str | None = option(
        "--scale", "none (default), minmax, maxabs or standard; kept in the model"
    )
    probability: bool = option(
        "--probability/--no-probability",
        "Fit probabilities (LIBSVM's -b 1): a sigmoid per pair of classes, coupled",
        default=False,
    )
    random_state: int | None = option("--seed", "Seed of all random choices", default=0)


@dataclass(frozen=True)
class Machine(Shared):
    """A kernel, a scaling, and parameters of a machine by their Python names."""

    preset: str | None = machine_option(
        "--preset",
        "Settings of a paper: icd, icd-counts (histograms unquantised), pmsvm, pmsvm-lut, "
        "dcsvm, dcsvm-early; other options change them",
    )
    task: str | None = machine_option(
        "--task",
        "classes, numbers (general kernels) or one-class (default: numbers if some labels are "
        "not whole, else classes)",
    )
    kernel: str | None = machine_option(
        "-t",
        "--kernel",
        "General: rbf, poly, sigmoid, laplacian, exp_chi2, libsvm_linear, precomputed; "
        "additive: intersection, chi2, hellinger, jensen_shannon, linear, power_mean, auto; "
        "or LIBSVM's 0 to 4 (default: rbf)",
    )
    C: float | None = machine_option("-c", "--C", "Cost of errors (default: 1)")
    epsilon: float | None = general_option(
        "--epsilon", "Errors of numbers that cost nothing (default: 0.1)"
    )
    nu: float | None = general_option(
        "-n", "--nu", "Share of rows outside of one class (default: 0.5)"
    )
    gamma: float | None = general_option(
        "-g",
        "--gamma",
        "rbf, poly, sigmoid, laplacian, exp_chi2 (default: 1 / (features * variance))",
    )
    degree: int | None = general_option("-d", "--degree", "poly (default: 3)")
    coef0: float | None = general_option("-r", "--coef0", "poly and sigmoid (default: 0)")
    power: float | None = additive_option("-p", "--power", "Exponent of power_mean, at most 0")
    minutes: float | None = machine_option(
        "--minutes", "Time limit; a fit that exceeds it stops early"
    )
    cache_size: float | None = general_option("-m", "--cache-size", "Megabytes for kernel rows")
    checkpoint: Path | None = general_option("--checkpoint", "Folder to resume a stopped fit from")
    early: str | None = general_option(
        "--early", "Early model: stop at the clusters of this level, or auto"
    )
    loss: str | None = additive_option("--loss", "squared_hinge or hinge")
    rank: int | None = additive_option("--rank", "Numbers per bin")

    def parameters(self) -> dict:
        others = ("preset", "task", "kernel", "scale", "probability", "minutes")
        limit = {} if self.minutes is None else {"max_seconds": 60 * self.minutes}
        return {k: v for k, v in vars(self).items() if k not in others} | limit


_LIBSVM_TASKS = {0: "classes", 2: "one-class", 3: "numbers"}
_LIBSVM_OTHERS = {1: "nu-SVC", 4: "nu-SVR"}


@dataclass(frozen=True)
class LibsvmOptions:
    """LIBSVM's -s and -h: accepted at supported values, otherwise refused."""

    svm_type: int | None = option("-s", "--svm-type", "LIBSVM's", hidden=True)
    shrinking: bool = option("--shrinking/--no-shrinking", "LIBSVM's -h", hidden=True, default=True)

    def __post_init__(self) -> None:
        if self.svm_type is not None and self.svm_type not in _LIBSVM_TASKS:
            asked = _LIBSVM_OTHERS.get(self.svm_type, "unknown to LIBSVM")
            raise UsageError(
                f"-s {self.svm_type} ({asked}): only -s 0 (C-SVC), 2 (one-class SVM) and 3 "
                "(epsilon-SVR) are supported."
            )
        if not self.shrinking:
            raise UsageError("-h 0: shrinking cannot be switched off. Leave -h out.")

    def applied(self, machine: Machine) -> Machine:
        """Return the options with the task that -s names; -p is then LIBSVM's epsilon."""
        if self.svm_type is None:
            return machine
        task = _LIBSVM_TASKS[self.svm_type]
        if machine.task not in (None, task):
            raise UsageError(f"-s {self.svm_type} is --task {task}, not {machine.task}.")
        if task == "numbers" and machine.epsilon is None:
            machine = replace(machine, power=None, epsilon=machine.power)
        return replace(machine, task=task)


# ------------------------------------------------------------------ comparisons of models


@dataclass(frozen=True)
class Validation:
    """Options of cross-validation."""

    folds: int | None = folds_option(
        "-v", "--folds", "Cross-validate and print the accuracy, write no model", min=2
    )
    scoring: str | None = folds_option("--scoring", "With --folds: another score, as in tune")

    def __post_init__(self) -> None:
        if self.scoring is not None and self.folds is None:
            raise UsageError("--scoring needs --folds.")


@dataclass(frozen=True)
class Search(Shared):
    """What `tune` tries, on which rows, with the parameters that all candidates share."""

    kernels: str = machine_option(
        "-t", "--kernels", "Kernels, separated by commas", default="rbf,chi2,intersection"
    )
    Cs: str = machine_option("-c", "--Cs", "Numbers, or low:high:count", default="0.1:1000:5")
    gammas: str | None = machine_option(
        "-g", "--gammas", "Numbers, or low:high:count (default: 1 / (features * variance))"
    )
    powers: str | None = machine_option("-p", "--powers", "Exponents of power_mean")
    scoring: str = option(
        "--scoring",
        "Score to maximise: accuracy, balanced_accuracy, roc_auc, f1, ...",
        default="accuracy",
    )
    folds: int = option("-v", "--folds", "Folds of cross-validation", min=2, default=5)
    rows: int | None = option("--rows", "Rows to search on (default: all)", min=10)
    plot: Path | None = output_option("--plot", "Draw the score against C")

    def common(self) -> dict:
        """Return the parameters that every machine shares."""
        names = ("tol", "max_iter", "weight", "multi_class", "fit_intercept", "random_state")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Wanted:
    """The options of `easy`."""

    scoring: str | None = option(
        "--scoring",
        "Score to maximise: accuracy, roc_auc, f1, ... (default: accuracy, or "
        "balanced_accuracy where a class is rare)",
    )
    weight: list[str] | None = weight_option()
    minutes: float = option(
        "--minutes",
        "Time limit of choice and training; a fit that exceeds it stops early",
        min=0.01,
        default=10.0,
    )
