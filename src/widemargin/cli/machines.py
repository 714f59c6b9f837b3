"""From names and options to unfitted machines and scalers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from widemargin import AdditiveSVC, KernelSVC, PowerMean, papers
from widemargin.additive import kernels as additive_kernels
from widemargin.cli.arguments import UsageError, number_or_text
from widemargin.kernel import kernels as general_kernels
from widemargin.wording import words

ADDITIVE = (*additive_kernels.KERNELS, "power_mean", "auto")
# A name that both machines know is the additive kernel; KernelSVC's then has another one.
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
# What makes the machine, and the kernel that it has if none is named.
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
    """The general kernels that have a parameter."""
    traits = general_kernels.KERNELS
    return tuple(name for name, own in _GENERAL.items() if parameter in traits[own].parameters)


# Which kernels an option is for, unless it is for all; by the options' names in Python.
WITH_GAMMA = _with("gamma")
_KERNELS_OF = {
    "power": ("power_mean",),
    "loss": ADDITIVE,
    "approximation": ADDITIVE,
    "rank": ADDITIVE,
    "gamma": WITH_GAMMA,
    "degree": _with("degree"),
    "coef0": _with("coef0"),
    "levels": GENERAL,
    "early": GENERAL,
    "cache_size": GENERAL,
    "checkpoint": GENERAL,
}


def kernel_name(word: str) -> str:
    """A kernel by name (hyphens allowed) or by LIBSVM's number."""
    name = LIBSVM_KERNELS.get(word, word.replace("-", "_"))
    if name not in KERNELS:
        raise UsageError(
            f"{words().option('kernel', word)}: not one of {', '.join(KERNELS)}, nor LIBSVM's 0 to "
            "4 (libsvm_linear, poly, rbf, sigmoid, precomputed)."
        )
    return name


def chosen_kernel(word: str | None, preset: str | None) -> str:
    """The kernel that is named, or that of the preset, or rbf."""
    if preset is None:
        return kernel_name("rbf" if word is None else word)
    if preset not in PRESETS:
        raise UsageError(f"--preset {preset}: not one of {', '.join(PRESETS)}.")
    own = PRESETS[preset][1]
    kernel = own if word is None else kernel_name(word)
    family = ADDITIVE if own in ADDITIVE else GENERAL
    if kernel not in family:
        raise UsageError(f"--kernel {kernel}: --preset {preset} takes {', '.join(family)}.")
    return kernel


def make_estimator(kernel: str, options: dict[str, Any], preset: str | None = None):
    """An unfitted machine; options that it does not have are refused, None means its default.

    Weights of classes go by the labels' text until the data is known (`match_weights`).
    """
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if kernel not in _KERNELS_OF.get(name, KERNELS):
            option = words().option
            raise UsageError(f"{option(name)} has no meaning with {option('kernel', kernel)}.")
    if weights := given.pop("weight", None):
        given["class_weight"] = class_weights(weights)
    if "early" in given:
        given["early"] = _early(given["early"])
    try:
        machine = _make(kernel, given, preset)
        with warnings.catch_warnings():  # they come again when it is fitted
            warnings.simplefilter("ignore")
            machine._check_params()
    except (ValueError, TypeError) as error:
        raise UsageError(f"{words().option('kernel', kernel)}: {error}") from None
    return machine


def class_weights(words: list[str] | None) -> dict | str | None:
    """--weight as the parameter ``class_weight`` has it, by the labels' text."""
    if not words:
        return None
    return "balanced" if words == ["balanced"] else dict(map(_weight, words))


def _make(kernel: str, given: dict[str, Any], preset: str | None):
    own = None
    make: Callable = AdditiveSVC if kernel in ADDITIVE else KernelSVC
    if preset is not None:
        make, own = PRESETS[preset]
    if kernel in ADDITIVE:
        given["missing"] = "learn"
    if kernel != "power_mean":
        given["kernel"] = _GENERAL.get(kernel, kernel)
    elif "power" in given:
        given["kernel"] = PowerMean(given.pop("power"))
    elif own != kernel:
        raise UsageError("it needs --power, the exponent p (at most 0).")
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
        raise UsageError(f"--weight {pair}: write label=factor, a number from 0 on, or balanced.")
    return label, factor


def match_weights(machine, y) -> None:
    """Give weights that go by the labels' text to the labels of the data."""
    if not isinstance(machine.class_weight, dict):
        return
    labels = {str(label): label for label in sorted(set(y.tolist()))}
    matched = {}
    for text, weight in machine.class_weight.items():
        label = labels.get(text, number_or_text(text))
        if label not in labels.values():
            raise UsageError(f"--weight {text}={weight:g}: the data has no label {text}.")
        matched[label] = weight
    machine.set_params(class_weight=matched)


def make_scaler(name: str | None, kernel: str | None = None):
    """A scikit-learn scaler by its short name, or None."""
    if name in (None, "none"):
        return None
    option = words().option
    if kernel == "precomputed":
        raise UsageError(f"{option('scale', name)} has no meaning with {option('kernel', kernel)}.")
    if name not in SCALERS:
        raise UsageError(f"{option('scale', name)}: not one of none, {', '.join(SCALERS)}.")
    return SCALERS[name]()
