"""Parse and spell the command line: LIBSVM's flags, lists, the config file, option names."""

from __future__ import annotations

import csv
import io
import re
import shlex
import tomllib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from widemargin.errors import Feature, Message, Parameter, message_of

CONFIG = "widemargin.toml"


class UsageError(ValueError):
    """The command line is wrong: exit status 2."""


# LIBSVM's switches, which take a value; -h without one is help.
LIBSVM_SWITCHES = {"-b": "probability", "-h": "shrinking"}


def with_long_options(words: list[str]) -> list[str]:
    """Replace LIBSVM's ``-w1 5`` (weight 5 for label 1), ``-b 1`` and ``-h 0`` with long options.

    >>> with_long_options(["train", "-w1", "5", "-w-1", "2", "-b", "1", "-h", "0", "data"])
    ['train', '--weight', '1=5', '--weight', '-1=2', '--probability', '--no-shrinking', 'data']

    Words after ``--`` are not options.

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
    """Parse names separated by commas, quoted as in CSV files if empty or with a comma.

    >>> names('id, "a,b", ""', "--drop")
    ['id', 'a,b', '']
    """
    fields = next(csv.reader([words], skipinitialspace=True), [])
    if fields.count("") > words.count('""') or not fields:
        raise UsageError(f"{option} {words!r}: write names separated by commas.")
    return fields


def joined(words: Iterable[str], between: str = ",") -> str:
    """Join names so that `names` can parse them.

    >>> joined(["age", "town, region"], ", ")
    'age, "town, region"'
    """
    return between.join(_quoted(word) for word in words)


def _quoted(word: str) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow([word])
    return line.getvalue()


def number_or_text(word: str) -> int | float | str:
    """Parse a label as a number if possible, else keep it as text.

    >>> number_or_text("10"), number_or_text("1_0")
    (10, '1_0')
    """
    for kind in () if "_" in word else (int, float):  # Python allows 1_0
        try:
            return kind(word)
        except ValueError:
            continue
    return word


def numbers(words: str, option: str) -> list[float]:
    """Parse numbers separated by commas, or a geometric range ``low:high:count``.

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
            f"{option} {words}: write numbers separated by commas, or low:high:count."
        ) from None


def read_config(path: Path | None, commands: Mapping[str, Mapping[str, Any]]) -> dict[str, dict]:
    """Read defaults of options from a TOML file, a table per command; refuse unknown names.

    Without a path, read ``widemargin.toml`` in the current folder if it exists.  ``commands``
    maps commands to the long names of their options.
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
    for command, table in _tables(content, commands):
        if command not in commands or not isinstance(table, dict):
            raise UsageError(
                f"{path}: {command!r} is not a command. Write a table such as [train] for one of "
                f"{', '.join(sorted(commands))}."
            )
        of_command = defaults
        for part in command.split():
            of_command = of_command.setdefault(part, {})
        options = {word.lower(): option for word, option in commands[command].items()}
        for name, value in table.items():
            option = options.get(name.replace("_", "-").lower())
            if option is None:
                raise UsageError(f"{path}: {command} has no option {name!r}.")
            of_command[option.name] = _as_words(value, option)
    return defaults


def _tables(content: dict[str, Any], commands: Mapping) -> Iterator[tuple[str, Any]]:
    """Yield commands and their tables; [images.train] is that of ``images train``."""
    groups = {command.partition(" ")[0] for command in commands if " " in command}
    for name, table in content.items():
        if name in groups and isinstance(table, dict):
            yield from ((f"{name} {inner}", options) for inner, options in table.items())
        else:
            yield name, table


def _as_words(value: Any, option: Any):
    """Convert a TOML value to command-line words; a list is repeated or joined by commas."""
    if option.multiple or option.nargs > 1:
        return [str(v) for v in value] if isinstance(value, list) else [str(value)]
    if isinstance(value, list):
        return joined(map(str, value))
    # Text, because some versions of click truncate fractions.
    return value if isinstance(value, bool) else str(value)


_OPTIONS = {  # whose names differ from Python's
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
_FLAGS = ("early", "intercept", "probability")


class Terminal:
    """How messages of the running command name parameters and features.

    Another command's option has that command before it; other parameters are as in Python.

    >>> train, tune = {"max-bytes", "label", "tol", "C", "drop"}, {"label", "Cs"}
    >>> spell = Terminal("train", {"train": train, "tune": tune})
    >>> spell.option("max_bytes"), spell.option("label", False), spell.option("drop", ["id", "a b"])
    ('--max-bytes', '--label none', "--drop 'id,a b'")
    >>> spell = Terminal("tune", {"train": train, "tune": tune})
    >>> spell.option("C", 1.0), spell.option("tol"), spell.option("binning", "log")
    ('--Cs 1.0', 'train --tol', "binning='log'")
    """

    def __init__(
        self, running: str | None = None, options: Mapping[str, Container[str]] | None = None
    ) -> None:
        self.feature: Callable[[int], str] = str
        self._running, self._options = running, options or {}

    def said(self, error: BaseException) -> str:
        """Return the message of an error or a warning, with the options' names."""
        return self.spelled(message_of(error))

    def spelled(self, text: str) -> str:
        return text.respelled(self._part) if isinstance(text, Message) else text

    def _part(self, part: Parameter | Feature) -> str:
        if isinstance(part, Feature):
            return self.feature(part.number)
        if (part.name, part.value) == ("missing", "learn"):
            additive = self.option("kernel", "intersection")
            alone = ", and without --scale" * (
                "scale" in self._options.get(self._running or "", ())
            )
            return f"an additive kernel, such as {additive}{alone}"
        return self.option(part.name, part.value)

    def option(self, name: str, value: Any = ...) -> str:
        """Spell a parameter, with or without a value."""
        word = _OPTIONS.get(name, name)
        flag = self._option(word)
        if flag is None:
            return str(Parameter(name, value))
        if value is ...:
            return flag
        if isinstance(value, bool) and word in _FLAGS:
            if value or word == "early":  # early is not a flag
                return flag if value else f"no {flag}"
            return flag.replace("--", "--no-")
        if isinstance(value, (list, tuple)):
            value = joined(value)
        return f"{flag} {shlex.quote('none' if value is False else str(value))}"

    def _option(self, name: str) -> str | None:
        """Spell it as the running command does, or else the first command that has it."""
        word = name.replace("_", "-")
        for candidate in (word, _ELSEWHERE.get(name)):
            if candidate in self._options.get(self._running or "", ()):
                return f"--{candidate}"
        for command, options in self._options.items():
            if word in options:
                return f"{command} --{word}"
        return None


terminal = Terminal()  # the running command's


def begin(running: str | None, options: Mapping[str, Container[str]]) -> None:
    """Set the command whose options messages name from now on."""
    global terminal
    terminal = Terminal(running, options)


def said(error: BaseException) -> str:
    return terminal.said(error)


def spelled(text: str) -> str:
    return terminal.spelled(text)


def option(name: str, value: Any = ...) -> str:
    return terminal.option(name, value)


def call_features(name: Callable[[int], str]) -> None:
    """Set the names of features in messages from now on."""
    terminal.feature = name
