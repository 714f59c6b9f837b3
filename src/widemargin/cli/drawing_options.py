"""The options of plot."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from widemargin.cli.arguments import UsageError

PICTURES = ("shapes", "importance", "pairs", "convergence")
What = Annotated[
    str | None, typer.Option("--what", help="shapes, importance, pairs or convergence")
]
DrawnData = Annotated[
    Path | None, typer.Option("--data", help="Data to measure importance on, or to seek pairs in")
]
Features = Annotated[
    str | None, typer.Option("--features", help="shapes: names or numbers, with commas")
]
DrawnClass = Annotated[
    str | None, typer.Option("--class", help="shapes, pairs: of this class only")
]


@dataclass(frozen=True)
class Drawing:
    """What to draw, and of what."""

    what: What = None
    data: DrawnData = None
    features: Features = None
    class_label: DrawnClass = None

    def __post_init__(self) -> None:
        if self.what not in (None, *PICTURES):
            raise UsageError(f"--what {self.what}: not one of {', '.join(PICTURES)}.")
