"""Messages in the words of the command line."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Container, Mapping
from typing import Any

from widemargin.cli.arguments import joined
from widemargin.wording import UNSAID, Words, words

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
