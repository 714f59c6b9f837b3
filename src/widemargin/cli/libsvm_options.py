"""What svm-train asks and there is one answer to: honoured, or refused with a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from widemargin.cli.arguments import UsageError

_TYPES = {1: "nu-SVC", 2: "one-class SVM", 3: "epsilon-SVR", 4: "nu-SVR"}

SvmType = Annotated[
    int, typer.Option("-s", "--svm-type", help="LIBSVM's: 0, C-SVC, is the one that there is")
]
# Only LIBSVM's users look for these, by LIBSVM's names.
Nu = Annotated[float | None, typer.Option("-n", "--nu", hidden=True)]
Shrinking = Annotated[bool, typer.Option("--shrinking/--no-shrinking", hidden=True)]


@dataclass(frozen=True)
class LibsvmOptions:
    """LIBSVM's -s, -n and -h."""

    svm_type: SvmType = 0
    nu: Nu = None
    shrinking: Shrinking = True

    def __post_init__(self) -> None:
        if self.svm_type != 0:
            asked = _TYPES.get(self.svm_type, "no machine of LIBSVM's")
            raise UsageError(
                f"-s {self.svm_type} ({asked}): there is classification with C only, -s 0 (C-SVC)."
            )
        if self.nu is not None:
            raise UsageError("-n: there is no nu here. The cost of errors is -c.")
        if not self.shrinking:
            raise UsageError(
                "-h 0: variables at rest always leave the working set, and no stop is believed "
                "before all of them are checked again. Leave -h out, or write -h 1."
            )
