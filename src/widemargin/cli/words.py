"""Messages in the words of the command line."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

from widemargin.cli.arguments import joined
from widemargin.wording import Words, words

_OPTIONS = {  # that are not called as in Python
    "class_weight": "weight",
    "fit_intercept": "intercept",
    "n_jobs": "jobs",
    "random_state": "seed",
}
_FUNCTIONS = {"export_onnx": "export --to onnx", "export_libsvm": "export --to libsvm"}
_NOTHING = object()


class Options(Words):
    """Parameters as options; features as the data at hand calls them (`call_features`).

    >>> words = Options()
    >>> words.option("max_bytes"), words.option("label", False), words.option("drop", ["id", "a b"])
    ('--max-bytes', '--label none', "--drop 'id,a b'")
    """

    imputing = "in the file"
    learning = ", or learn from them with an additive kernel, such as --kernel intersection"
    converging = "Increase --max-iter, decrease C, or accept a larger --tol."
    uncalibrated = "train it without --probability"

    def __init__(self) -> None:
        self.name: Callable[[int], str] = super().feature

    def option(self, name: str, value: Any = _NOTHING) -> str:
        name = _OPTIONS.get(name, name)
        said = f"--{name.replace('_', '-')}"
        if value is _NOTHING:
            return said
        if isinstance(value, bool) and name in ("early", "intercept", "probability"):
            return said if value else f"no {said}"
        if isinstance(value, (list, tuple)):
            value = joined(value)
        return f"{said} {shlex.quote('none' if value is False else str(value))}"

    def scaling(self, sparse: bool) -> str:
        return f"with --scale {'maxabs' if sparse else 'standard'}"

    def function(self, name: str) -> str:
        return _FUNCTIONS.get(name, name)

    def feature(self, number: int) -> str:
        return self.name(number)


def call_features(name: Callable[[int], str]) -> None:
    """From here on messages of this command call features by these names."""
    own = words()
    if isinstance(own, Options):
        own.name = name
