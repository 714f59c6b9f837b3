"""From options to machines: kernels by name, parameters, weights of classes, scalers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from widemargin import PowerMean, papers
from widemargin.additive import kernels as additive_kernels
from widemargin.cli.tasks import ADDITIVE_MACHINES, MACHINES, MACHINES_OF_NU
from widemargin.cli.words import UsageError, number_or_text, option, said
from widemargin.kernel import kernels as general_kernels

ADDITIVE = (*additive_kernels.KERNELS, "power_mean", "auto")
# A name that both machines have gets the prefix "exp_" for KernelSVC.
_OTHER_NAMES = {"chi2": "exp_chi2", "linear": "libsvm_linear"}
_GENERAL = {_OTHER_NAMES.get(k, k): k for k in general_kernels.KERNELS}
GENERAL = tuple(_GENERAL)
KERNELS = ADDITIVE + GENERAL
LIBSVM_KERNELS = {
    "0": "libsvm_linear",
    "1": "poly",
    "2": "rbf",
    "3": "sigmoid",
    "4": "precomputed",
}
# The function that makes the machine, and its default kernel.
PRESETS: dict[str, tuple[Callable, str]] = {
    "icd": (papers.icd, "intersection"),
    "icd-counts": (partial(papers.icd, scaling=None), "intersection"),
    "pmsvm": (papers.pmsvm, "power_mean"),
    "pmsvm-lut": (papers.pmsvm_lut, "power_mean"),
    "dcsvm": (papers.dcsvm, "rbf"),
    "dcsvm-early": (papers.dcsvm_early, "rbf"),
}
SCALERS = {"minmax": MinMaxScaler, "maxabs": MaxAbsScaler, "standard": StandardScaler}


def _with(parameter: str) -> tuple[str, ...]:
    """Return the general kernels that have a parameter."""
    traits = general_kernels.KERNELS
    return tuple(
        name for name, kernel in _GENERAL.items() if parameter in traits[kernel].parameters
    )


# Options that only some kernels have, by their Python names.
WITH_GAMMA = _with("gamma")
_KERNELS_OF = {
    "power": ("power_mean",),
    "loss": ADDITIVE,
    "rank": ADDITIVE,
    "gamma": WITH_GAMMA,
    "degree": _with("degree"),
    "coef0": _with("coef0"),
    "nu": GENERAL,
    "early": GENERAL,
    "cache_size": GENERAL,
    "checkpoint": GENERAL,
}


def kernel_name(word: str) -> str:
    """Return a kernel's name, given by name (hyphens allowed) or by LIBSVM's number."""
    name = LIBSVM_KERNELS.get(word, word.replace("-", "_"))
    if name not in KERNELS:
        raise UsageError(
            f"{option('kernel', word)}: not one of {', '.join(KERNELS)}, nor LIBSVM's 0 to "
            "4 (libsvm_linear, poly, rbf, sigmoid, precomputed)."
        )
    return name


def chosen_kernel(word: str | None, preset: str | None) -> str:
    """Return the named kernel, the preset's kernel, or rbf."""
    if preset is None:
        return kernel_name("rbf" if word is None else word)
    if preset not in PRESETS:
        raise UsageError(f"--preset {preset}: not one of {', '.join(PRESETS)}.")
    default = PRESETS[preset][1]
    kernel = default if word is None else kernel_name(word)
    family = ADDITIVE if default in ADDITIVE else GENERAL
    if kernel not in family:
        raise UsageError(f"--kernel {kernel}: --preset {preset} takes {', '.join(family)}.")
    return kernel


def make_estimator(
    kernel: str, options: dict[str, Any], preset: str | None = None, task: str = "classes"
):
    """Return an unfitted machine; None means its default, and unknown options are refused.

    Class weights have the labels' text as keys until the data is read (`match_weights`).
    """
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if kernel not in _KERNELS_OF.get(name, KERNELS):
            raise UsageError(f"{option(name)} cannot be combined with {option('kernel', kernel)}.")
    _check_task(kernel, given, preset, task)
    if weights := given.pop("weight", None):
        given["class_weight"] = class_weights(weights)
    if given.pop("as_liblinear", False):
        given |= {"scaling": None, "C_unit": "raw"}
    if "early" in given:
        given["early"] = _early(given["early"])
    try:
        machine = _make(kernel, given, preset, task)
        with warnings.catch_warnings():  # the fit repeats the warnings
            warnings.simplefilter("ignore")
            machine._check_params()
    except (ValueError, TypeError) as error:
        raise UsageError(f"{option('kernel', kernel)}: {said(error)}") from None
    return machine


def _check_task(kernel: str, given: dict[str, Any], preset: str | None, task: str) -> None:
    """Refuse options that the task's machine does not have."""
    if task != "classes" and preset is not None:
        raise UsageError(f"--preset {preset} cannot be combined with --task {task}.")
    if kernel in ADDITIVE and task not in ADDITIVE_MACHINES:
        what = option("kernel", kernel)
        raise UsageError(f"{what}: --task {task} takes {', '.join(GENERAL)}.")
    known = {*_machine(kernel, task, given)._get_param_names(), "power", "as_liblinear"}
    known |= {"weight"} if task == "classes" else set()
    for name in given:
        if name not in known:
            other = "--nu" if "nu" in given and name != "nu" else f"--task {task}"
            raise UsageError(f"{option(name)} cannot be combined with {other}.")


def _machine(kernel: str, task: str, given: dict[str, Any]):
    if kernel in ADDITIVE:
        return ADDITIVE_MACHINES[task]
    return (MACHINES_OF_NU if "nu" in given else MACHINES)[task]


def class_weights(words: list[str] | None) -> dict | str | None:
    """Return the parameter ``class_weight`` for --weight, with the labels' text as keys."""
    if not words:
        return None
    return "balanced" if words == ["balanced"] else dict(map(_weight, words))


def _make(kernel: str, given: dict[str, Any], preset: str | None, task: str):
    default = None
    make: Callable = _machine(kernel, task, given)
    if preset is not None:
        make, default = PRESETS[preset]
    if kernel in ADDITIVE:
        given["missing"] = "learn"
    if kernel != "power_mean":
        given["kernel"] = _GENERAL.get(kernel, kernel)
    elif "power" in given:
        given["kernel"] = PowerMean(given.pop("power"))
    elif default != kernel:
        raise UsageError("it needs --power, an exponent p of at most 0.")
    return make(**given)


def _early(word: str) -> bool | int:
    if word != "auto" and not word.isdigit():
        raise UsageError(f"--early {word}: write the number of a level, or auto.")
    return True if word == "auto" else int(word)


def _weight(pair: str) -> tuple[str, float]:
    label, _, weight = pair.rpartition("=")
    try:
        factor = float(weight)
    except ValueError:
        factor = -1.0
    if not (label and 0 <= factor < float("inf")):
        raise UsageError(f"--weight {pair}: write LABEL=FACTOR (at least 0) or balanced.")
    return label, factor


def match_weights(machine, y) -> None:
    """Replace the text keys of class weights with the labels of the data."""
    if not isinstance(getattr(machine, "class_weight", None), dict):
        return
    labels = {str(label): label for label in sorted(set(y.tolist()))}
    matched = {}
    for text, weight in machine.class_weight.items():
        label = labels.get(text, number_or_text(text))
        if label not in labels.values():
            raise UsageError(f"--weight {text}={weight:g}: no row has the label {text}.")
        matched[label] = weight
    machine.set_params(class_weight=matched)


def make_scaler(name: str | None, kernel: str | None = None):
    """Return a scikit-learn scaler by its short name, or None."""
    if name in (None, "none"):
        return None
    if kernel == "precomputed":
        raise UsageError(
            f"{option('scale', name)} cannot be combined with {option('kernel', kernel)}."
        )
    if name not in SCALERS:
        raise UsageError(f"{option('scale', name)}: not one of none, {', '.join(SCALERS)}.")
    return SCALERS[name]()
