"""Options of data that is larger than memory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from widemargin.cli.options import DATA

MemoryLimit = Annotated[
    str | None,
    typer.Option(
        "--memory-limit",
        help="Larger data is trained from disk (2GB, 500MB, or a share of the free memory; default "
        "50%); of kernels that are not additive, what all of the training may take",
        rich_help_panel=DATA,
    ),
]
Keep = Annotated[
    str | None,
    typer.Option("--keep", help="codes, for additive kernels (default), or values, for others"),
]
Folder = Annotated[Path, typer.Argument(help="Where to keep the blocks")]
Append = Annotated[bool, typer.Option("--append", help="Add to a store that is there")]
