"""From command-line words to estimators: LIBSVM's flags, names of kernels, defaults in a file."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

ADDITIVE = ("intersection", "chi2", "hellinger", "jensen_shannon", "linear", "power_mean")
GENERAL = ("rbf", "poly", "sigmoid", "laplacian", "exp_chi2", "precomputed")
KERNELS = ADDITIVE + GENERAL
LIBSVM_KERNELS = {"0": "linear", "1": "poly", "2": "rbf", "3": "sigmoid", "4": "precomputed"}
SCALINGS = ("none", "minmax", "maxabs", "standard")
CONFIG = "widemargin.toml"

# Which options each machine has, beyond those that both have; by their names in Python.
_ONLY_ADDITIVE = ("power", "loss", "approximation", "rank")
_ONLY_GENERAL = ("gamma", "degree", "coef0", "levels", "early", "cache_size")


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
    """An unfitted machine; options that it does not have are refused, None means its default."""
    given = {name: value for name, value in options.items() if value is not None}
    additive = kernel in ADDITIVE
    for name in _ONLY_GENERAL if additive else _ONLY_ADDITIVE:
        if name in given:
            raise UsageError(f"--{name.replace('_', '-')} has no meaning with --kernel {kernel}.")
    weights = given.pop("weight", None)
    if weights:
        given["class_weight"] = (
            "balanced" if weights == ["balanced"] else dict(map(_weight, weights))
        )
    if additive:
        from widemargin import AdditiveSVC

        return AdditiveSVC(_scalar_kernel(kernel, given.pop("power", None)), **given)
    from widemargin import KernelSVC

    if "early" in given:
        given["early"] = _early(given["early"])
    return KernelSVC("chi2" if kernel == "exp_chi2" else kernel, **given)


def _scalar_kernel(kernel: str, power: float | None):
    from widemargin import PowerMean

    if kernel == "power_mean":
        if power is None:
            raise UsageError("--kernel power_mean needs --power, the exponent p (at most 0).")
        return PowerMean(power)
    if power is not None:
        raise UsageError(f"--power has no meaning with --kernel {kernel}.")
    return kernel


def _early(word: str) -> bool | int:
    return int(word) if word.isdigit() else True


def _weight(pair: str) -> tuple[Any, float]:
    label, _, weight = pair.rpartition("=")
    try:
        return number_or_text(label), float(weight)
    except ValueError:
        raise UsageError(f"--weight {pair}: write label=number, or balanced.") from None


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
            return [first * ratio ** (k / max(n - 1, 1)) for k in range(n)]
        return [float(word) for word in words.split(",")]
    except (ValueError, ZeroDivisionError):
        raise UsageError(
            f"{option} {words}: write numbers with commas, or low:high:count."
        ) from None


def make_scaler(name: str | None):
    """A scikit-learn scaler by its short name, or None."""
    if name in (None, "none"):
        return None
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

    scalers = {"minmax": MinMaxScaler, "maxabs": MaxAbsScaler, "standard": StandardScaler}
    if name not in scalers:
        raise UsageError(f"--scale {name}: not one of {', '.join(SCALINGS)}.")
    return scalers[name]()


def read_config(path: Path | None, commands: dict[str, set[str]]) -> dict[str, dict]:
    """Defaults of options from a TOML file, a table per command; unknown names are refused.

    Without a path, ``widemargin.toml`` in the current folder if it is there.
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
        named = {name.replace("-", "_").lower(): value for name, value in table.items()}
        unknown = sorted(set(named) - commands[command])
        if unknown:
            raise UsageError(f"{path}: {command} has no option {unknown[0]!r}.")
        defaults[command] = named
    return defaults
