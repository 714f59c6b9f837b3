"""The options of scale."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

Method = Annotated[str | None, typer.Option(help="minmax, maxabs or standard (default: minmax)")]
Lower = Annotated[
    float | None, typer.Option("-l", "--lower", help="minmax: smallest value (default: -1)")
]
Upper = Annotated[
    float | None, typer.Option("-u", "--upper", help="minmax: largest value (default: 1)")
]
LabelBounds = Annotated[
    tuple[float, float] | None,
    typer.Option("-y", "--labels", metavar="LOW HIGH", help="Scale labels too, to these bounds"),
]
Save = Annotated[
    Path | None,
    typer.Option(
        "-s", "--save", help="Write the factors: of svmlight text by minmax LIBSVM's range file"
    ),
]
Restore = Annotated[
    Path | None, typer.Option("-r", "--restore", help="Use factors that --save or svm-scale wrote")
]


@dataclass(frozen=True)
class Scaling:
    """Factors to learn, and where to keep them; or where to find them."""

    method: Method = None
    lower: Lower = None
    upper: Upper = None
    labels: LabelBounds = None
    save: Save = None
    restore: Restore = None
