"""The option -s of svm-train and of LIBLINEAR's train, and -h: which machine they name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from widemargin.cli.options import Machine, option
from widemargin.cli.words import UsageError

_LIBSVM_TASKS = {0: "classes", 1: "classes", 2: "one-class", 3: "numbers", 4: "numbers"}
_OF_NU = (1, 4)
_LIBLINEAR_LOSSES = {
    11: "squared_epsilon_insensitive",
    12: "squared_epsilon_insensitive",
    13: "epsilon_insensitive",
}


@dataclass(frozen=True)
class LibsvmOptions:
    """LIBSVM's -s and -h, LIBLINEAR's -s: accepted at supported values, otherwise refused."""

    svm_type: int | None = option("-s", "--svm-type", "LIBSVM's", hidden=True)
    shrinking: bool = option("--shrinking/--no-shrinking", "LIBSVM's -h", hidden=True, default=True)

    def __post_init__(self) -> None:
        if self.svm_type not in (None, *_LIBSVM_TASKS, *_LIBLINEAR_LOSSES):
            raise UsageError(
                f"-s {self.svm_type}: write one of LIBSVM's (0 C-SVC, 1 nu-SVC, 2 one-class SVM, "
                "3 epsilon-SVR, 4 nu-SVR) or LIBLINEAR's 11 to 13 (linear regression)."
            )
        if not self.shrinking:
            raise UsageError("-h 0: shrinking cannot be switched off. Leave -h out.")

    def applied(self, machine: Machine) -> Machine:
        """Return the options with the machine that -s names; -p is then LIBSVM's epsilon."""
        if self.svm_type is None:
            return machine
        task = _LIBSVM_TASKS.get(self.svm_type, "numbers")
        if machine.task not in (None, task):
            raise UsageError(f"-s {self.svm_type} is --task {task}, not {machine.task}.")
        if task == "numbers" and machine.epsilon is None:
            machine = replace(machine, power=None, epsilon=machine.power)
        machine = replace(machine, task=task)
        if self.svm_type in _OF_NU and machine.nu is None:
            machine = replace(machine, nu=0.5)
        if self.svm_type not in (2, *_OF_NU) and machine.nu is not None:
            raise UsageError(f"--nu cannot be combined with -s {self.svm_type}.")
        loss = _LIBLINEAR_LOSSES.get(self.svm_type)
        return machine if loss is None else _as_liblinear(machine, loss)


def _as_liblinear(machine: Machine, loss: str) -> Machine:
    """Return the options of linear regression with LIBLINEAR's C and defaults."""
    if machine.kernel not in (None, "linear"):
        raise UsageError(f"LIBLINEAR's -s is --kernel linear, not {machine.kernel}.")
    defaults: dict[str, Any] = {"epsilon": 0.1, "fit_intercept": False, "tol": 1e-3}
    left = {name: value for name, value in defaults.items() if getattr(machine, name) is None}
    return replace(machine, kernel="linear", loss=loss, as_liblinear=True, **left)
