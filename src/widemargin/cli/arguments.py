"""From command-line words to estimators: LIBSVM's flags, names of kernels, defaults in a file."""

from __future__ import annotations

import re
import tomllib
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ADDITIVE = ("intersection", "chi2", "hellinger", "jensen_shannon", "linear", "power_mean")
GENERAL = ("rbf", "poly", "sigmoid", "laplacian", "exp_chi2", "precomputed")
KERNELS = ADDITIVE + GENERAL
LIBSVM_KERNELS = {"0": "linear", "1": "poly", "2": "rbf", "3": "sigmoid", "4": "precomputed"}
SCALINGS = ("none", "minmax", "maxabs", "standard")
CONFIG = "widemargin.toml"

# Which kernels an option is for, unless it is for all; by the options' names in Python.
WITH_GAMMA = tuple(kernel for kernel in GENERAL if kernel != "precomputed")
_KERNELS_OF = {
    "power": ("power_mean",),
    "loss": ADDITIVE,
    "approximation": ADDITIVE,
    "rank": ADDITIVE,
    "gamma": WITH_GAMMA,
    "degree": ("poly",),
    "coef0": ("poly", "sigmoid"),
    "levels": GENERAL,
    "early": GENERAL,
    "cache_size": GENERAL,
}


class UsageError(ValueError):
    """The command itself is wrong: exit status 2."""


def with_long_weights(words: list[str]) -> list[str]:
    """LIBSVM's ``-w1 5`` (weight 5 for label 1) as ``--weight 1=5``, which a parser can take.

    >>> with_long_weights(["train", "-w1", "5", "-w-1", "2", "data"])
    ['train', '--weight', '1=5', '--weight', '-1=2', 'data']
    """
    out, rest = [], list(words)
    while rest:
        word = rest.pop(0)
        label = re.fullmatch(r"-w([^=]+)", word)
        if label and rest and re.fullmatch(r"[0-9.eE+-]+", rest[0]):
            out += ["--weight", f"{label[1]}={rest.pop(0)}"]
        else:
            out.append(word)
    return out


def kernel_name(word: str) -> str:
    """A kernel by name (hyphens allowed) or by LIBSVM's number."""
    name = LIBSVM_KERNELS.get(word, word.replace("-", "_"))
    if name not in KERNELS:
        raise UsageError(
            f"--kernel {word}: not one of {', '.join(KERNELS)}, nor LIBSVM's 0 to 4 (linear, poly, "
            "rbf, sigmoid, precomputed)."
        )
    return name


def make_estimator(kernel: str, options: dict[str, Any]):
    """An unfitted machine; options that it does not have are refused, None means its default.

    Weights of classes go by the labels' text until the data is known (`match_weights`).
    """
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if kernel not in _KERNELS_OF.get(name, KERNELS):
            raise UsageError(f"--{name.replace('_', '-')} has no meaning with --kernel {kernel}.")
    weights = given.pop("weight", None)
    if weights:
        given["class_weight"] = (
            "balanced" if weights == ["balanced"] else dict(map(_weight, weights))
        )
    if "early" in given:
        given["early"] = _early(given["early"])
    try:
        machine = _make(kernel, given)
        with warnings.catch_warnings():  # they come again when it is fitted
            warnings.simplefilter("ignore")
            machine._check_params()
    except (ValueError, TypeError) as error:
        raise UsageError(f"--kernel {kernel}: {error}") from None
    return machine


def _make(kernel: str, given: dict[str, Any]):
    from widemargin import AdditiveSVC, KernelSVC, PowerMean

    if kernel == "power_mean":
        if "power" not in given:
            raise UsageError("it needs --power, the exponent p (at most 0).")
        return AdditiveSVC(PowerMean(given.pop("power")), **given)
    if kernel in ADDITIVE:
        return AdditiveSVC(kernel, **given)
    return KernelSVC("chi2" if kernel == "exp_chi2" else kernel, **given)


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


def number_or_text(word: str) -> int | float | str:
    """A label as files have it: a number where it is one."""
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word


def numbers(words: str, option: str) -> list[float]:
    """Numbers with commas between them, or a range ``low:high:count`` in even ratios.

    >>> numbers("0.1,1", "--Cs"), numbers("1:100:3", "--Cs")
    ([0.1, 1.0], [1.0, 10.0, 100.0])
    """
    try:
        if words.count(":") == 2:
            low, high, count = words.split(":")
            n, first, ratio = int(count), float(low), float(high) / float(low)
            if n < 1 or not 0 < ratio < float("inf"):
                raise ValueError
            powers = [first * ratio ** (k / max(n - 1, 1)) for k in range(n)]
            return [float(f"{power:.12g}") for power in powers]  # 0.01, not 0.009999999999999998
        return [float(word) for word in words.split(",")]
    except (ValueError, ArithmeticError):
        raise UsageError(
            f"{option} {words}: write numbers with commas, or low:high:count."
        ) from None


def make_scaler(name: str | None, kernel: str | None = None):
    """A scikit-learn scaler by its short name, or None."""
    if name in (None, "none"):
        return None
    if kernel == "precomputed":
        raise UsageError(f"--scale {name} has no meaning with --kernel precomputed.")
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

    scalers = {"minmax": MinMaxScaler, "maxabs": MaxAbsScaler, "standard": StandardScaler}
    if name not in scalers:
        raise UsageError(f"--scale {name}: not one of {', '.join(SCALINGS)}.")
    return scalers[name]()


def read_config(path: Path | None, commands: Mapping[str, Mapping[str, Any]]) -> dict[str, dict]:
    """Defaults of options from a TOML file, a table per command; unknown names are refused.

    Without a path, ``widemargin.toml`` in the current folder if it is there.  ``commands`` has the
    options of each command, by their long names in small letters.
    """
    if path is None:
        path = Path(CONFIG)
        if not path.exists():
            return {}
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not valid TOML ({error}).") from None
    defaults: dict[str, dict] = {}
    for command, table in content.items():
        if command not in commands or not isinstance(table, dict):
            raise UsageError(
                f"{path}: {command!r} is not a command. Write a table such as [train] for one of "
                f"{', '.join(sorted(commands))}."
            )
        defaults[command] = {}
        for name, value in table.items():
            option = commands[command].get(name.replace("_", "-").lower())
            if option is None:
                raise UsageError(f"{path}: {command} has no option {name!r}.")
            defaults[command][option.name] = _as_words(value, option.multiple)
    return defaults


def _as_words(value: Any, multiple: bool):
    """A value of TOML as the command line has it: a list is repeated, or has commas."""
    if multiple:
        return [str(v) for v in value] if isinstance(value, list) else [str(value)]
    return ",".join(map(str, value)) if isinstance(value, list) else value
