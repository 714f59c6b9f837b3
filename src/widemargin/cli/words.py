"""What is written on the command line, and how messages speak of it."""

from __future__ import annotations

import csv
import io
import re
import shlex
import tomllib
from collections.abc import Callable, Container, Iterable, Mapping
from pathlib import Path
from typing import Any

from widemargin.wording import UNSAID, Words, words

CONFIG = "widemargin.toml"


class UsageError(ValueError):
    """The command itself is wrong: exit status 2."""


# LIBSVM's switches, which alone would mean something else to a parser: -h is help.
LIBSVM_SWITCHES = {"-b": "probability", "-h": "shrinking"}


def with_long_options(words: list[str]) -> list[str]:
    """LIBSVM's ``-w1 5`` (weight 5 for label 1), ``-b 1`` and ``-h 0``, as a parser can take them.

    >>> with_long_options(["train", "-w1", "5", "-w-1", "2", "-b", "1", "-h", "0", "data"])
    ['train', '--weight', '1=5', '--weight', '-1=2', '--probability', '--no-shrinking', 'data']

    Words after ``--`` are no options.

    >>> with_long_options(["train", "--", "-b", "1"])
    ['train', '--', '-b', '1']
    """
    end = words.index("--") if "--" in words else len(words)
    out, rest = [], list(words[:end])
    while rest:
        word = rest.pop(0)
        label = re.fullmatch(r"-w([^=]+)", word)
        if label and rest and re.fullmatch(r"[0-9.eE+-]+", rest[0]):
            out += ["--weight", f"{label[1]}={rest.pop(0)}"]
        elif word in LIBSVM_SWITCHES and rest and rest[0] in ("0", "1"):
            out.append(f"--{'no-' * (rest.pop(0) == '0')}{LIBSVM_SWITCHES[word]}")
        else:
            out.append(word)
    return out + words[end:]


def names(words: str, option: str) -> list[str]:
    """Names with commas between them; one with a comma, or of nothing, is quoted as in CSV files.

    >>> names('id, "a,b", ""', "--drop")
    ['id', 'a,b', '']
    """
    found = next(csv.reader([words], skipinitialspace=True), [])
    if found.count("") > words.count('""') or not found:
        raise UsageError(f"{option} {words!r}: write names with commas between them.")
    return found


def joined(words: Iterable[str], between: str = ",") -> str:
    """What `names` takes apart.

    >>> joined(["age", "town, region"], ", ")
    'age, "town, region"'
    """
    return between.join(_quoted(word) for word in words)


def _quoted(word: str) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow([word])
    return line.getvalue()


def number_or_text(word: str) -> int | float | str:
    """A label as files have it: a number where it is one.

    >>> number_or_text("10"), number_or_text("1_0")
    (10, '1_0')
    """
    for kind in () if "_" in word else (int, float):  # Python's numbers may have them
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


def read_config(path: Path | None, commands: Mapping[str, Mapping[str, Any]]) -> dict[str, dict]:
    """Defaults of options from a TOML file, a table per command; unknown names are refused.

    Without a path, ``widemargin.toml`` in the current folder if it is there.  ``commands`` has the
    options of each command, by their long names.
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
        options = {word.lower(): option for word, option in commands[command].items()}
        for name, value in table.items():
            option = options.get(name.replace("_", "-").lower())
            if option is None:
                raise UsageError(f"{path}: {command} has no option {name!r}.")
            defaults[command][option.name] = _as_words(value, option)
    return defaults


def _as_words(value: Any, option: Any):
    """A value of TOML as the command line has it: a list is repeated, or has commas."""
    if option.multiple or option.nargs > 1:
        return [str(v) for v in value] if isinstance(value, list) else [str(value)]
    if isinstance(value, list):
        return joined(map(str, value))
    # Some versions of click cut a number off that is not whole, but none takes its text for one.
    return value if isinstance(value, bool) else str(value)


_OPTIONS = {  # that are not called as in Python
    "class_weight": "weight",
    "fit_intercept": "intercept",
    "n_jobs": "jobs",
    "random_state": "seed",
}
_ELSEWHERE = {  # in some commands
    "kernel": "kernels",
    "C": "Cs",
    "gamma": "gammas",
    "power": "powers",
    "scale": "method",
}
_FUNCTIONS = {"export_onnx": "export --to onnx", "export_libsvm": "export --to libsvm"}


class Options(Words):
    """Parameters as options; features as the data at hand calls them (`call_features`).

    An option of another command than the one that runs has that command before it, and what is no
    option of any is called as in Python.

    >>> train, tune = {"max-bytes", "label", "tol", "C", "drop"}, {"label", "Cs"}
    >>> words = Options("train", {"train": train, "tune": tune})
    >>> words.option("max_bytes"), words.option("label", False), words.option("drop", ["id", "a b"])
    ('--max-bytes', '--label none', "--drop 'id,a b'")
    >>> words = Options("tune", {"train": train, "tune": tune})
    >>> words.option("C", 1.0), words.option("tol"), words.option("missing", "learn")
    ('--Cs 1.0', 'train --tol', "missing='learn'")
    """

    imputing = "in the file"
    uncalibrated = "that of train --no-probability"

    def __init__(self, running: str | None, options: Mapping[str, Container[str]]) -> None:
        self.name: Callable[[int], str] = super().feature
        self.scaled = False
        self._running, self._options = running, options

    @property
    def additive(self) -> str:
        return self.option("kernel", "intersection")

    @property
    def learning(self) -> str:
        without = ", and without --scale" if self.scaled else ""
        return f", or learn from them with an additive kernel, such as {self.additive}{without}"

    @property
    def converging(self) -> str:
        most, cost, least = map(self.option, ("max_iter", "C", "tol"))
        return f"Increase {most}, decrease {cost}, or accept a larger {least}."

    def option(self, name: str, value: Any = UNSAID) -> str:
        own = _OPTIONS.get(name, name)
        said = self._spelled(own)
        if said is None:
            return super().option(name, value)
        if value is UNSAID:
            return said
        if isinstance(value, bool) and own in ("early", "intercept", "probability"):
            return said if value else f"no {said}"
        if isinstance(value, (list, tuple)):
            value = joined(value)
        return f"{said} {shlex.quote('none' if value is False else str(value))}"

    def _spelled(self, name: str) -> str | None:
        """As the command that runs has it, or else the first that has it."""
        word = name.replace("_", "-")
        for own in (word, _ELSEWHERE.get(name)):
            if own in self._options.get(self._running or "", ()):
                return f"--{own}"
        for command, options in self._options.items():
            if word in options:
                return f"{command} --{word}"
        return None

    def scaling(self, sparse: bool) -> str:
        return f"with {self.option('scale', 'maxabs' if sparse else 'standard')}"

    def function(self, name: str) -> str:
        return _FUNCTIONS.get(name, name)

    def feature(self, number: int) -> str:
        return self.name(number)


def know_scaling(scaler) -> None:
    """From here on messages of this command know that features are scaled, which takes no gaps."""
    own = words()
    if isinstance(own, Options) and scaler is not None:
        own.scaled = True


def call_features(name: Callable[[int], str]) -> None:
    """From here on messages of this command call features by these names."""
    own = words()
    if isinstance(own, Options):
        own.name = name
