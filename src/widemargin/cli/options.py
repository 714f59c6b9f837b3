"""The options of the commands, grouped in dataclasses: every field is an option.

Heavy imports wait until an option is used, so that help and completion answer at once.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_origin, get_type_hints

import typer

from widemargin.cli.words import UsageError, names

if TYPE_CHECKING:
    from widemargin.data import Dataset


def grouped(command: Callable) -> Callable:
    """Replace a command's dataclass parameters by their fields, as typer needs them."""
    signature = inspect.signature(command, eval_str=True)
    given = signature.parameters.values()
    groups: dict[str, Any] = {p.name: p.annotation for p in given if is_dataclass(p.annotation)}
    options: list[Parameter] = []
    for parameter in given:
        options += _options(groups[parameter.name]) if parameter.name in groups else [parameter]

    @functools.wraps(command)
    def spread(**values):
        for name, group in groups.items():
            values[name] = group(**{o.name: values.pop(o.name) for o in _options(group)})
        command(**values)

    # Keyword only, because an option with a default may precede an argument without one.
    options = [option.replace(kind=Parameter.KEYWORD_ONLY) for option in options]
    spread.__signature__ = signature.replace(parameters=options)  # type: ignore[attr-defined]
    spread.__annotations__ = {option.name: option.annotation for option in options}
    return spread


def _options(group: type) -> list[Parameter]:
    """Return the fields with an option; other fields keep their default."""
    hints = get_type_hints(group, include_extras=True)
    return [
        Parameter(f.name, Parameter.KEYWORD_ONLY, default=f.default, annotation=hints[f.name])
        for f in fields(group)
        if get_origin(hints[f.name]) is Annotated
    ]


def option(*words: str, panel: str | None = None, **more):
    """Declare an option: its names and, last, its help."""
    *names, said = words
    return typer.Option(*names, help=said, rich_help_panel=panel, **more)


data_option, output_option = partial(option, panel="Data"), partial(option, panel="Output")


# ------------------------------------------------------------------ files


def _or_stdin(path: Path) -> Path:
    return Path("/dev/stdin") if str(path) == "-" else path


Data = Annotated[
    Path,
    typer.Argument(
        help="svmlight/LIBSVM text (also .gz, .bz2, .xz, .zst), "
        "CSV, TSV, Parquet, Arrow, .npz or .npy; - is the standard input",
        callback=_or_stdin,
    ),
]
Model = Annotated[Path, typer.Argument(help="A model file written by train, tune or easy")]
NewModel = Annotated[
    Path | None, typer.Argument(help="Where to write the model (default: DATA's name)")
]
Out = Annotated[Path | None, typer.Argument(help="Where to write (default: standard output)")]

# ------------------------------------------------------------------ reading data

MaxBytes = Annotated[
    int | None,
    data_option(
        "--max-bytes",
        "Memory limit for the contents of a file (default: by the free memory)",
        min=1,
    ),
]
MemoryLimit = Annotated[
    str | None,
    data_option(
        "--memory-limit",
        "Train larger data from disk (2GB, 500MB, or a share of the free memory; default 50%); "
        "for general kernels, the limit of the whole training",
    ),
]


@dataclass(frozen=True)
class Source:
    """How to read data, and with how many threads."""

    format: Annotated[
        str | None,
        data_option(
            "--format", "svmlight, csv, tsv, parquet, arrow, npz or npy (default: by the content)"
        ),
    ] = None
    label: Annotated[
        str | None,
        data_option("--label", "Label column of a table: name, position, or none"),
    ] = None
    split: Annotated[str | None, data_option("--split", ".npz: train reads X_train, y_train")] = (
        None
    )
    max_bytes: MaxBytes = None
    jobs: int | None = None

    def __post_init__(self) -> None:
        if self.format is not None:
            from widemargin.data.reading import FORMATS  # imports scikit-learn

            if self.format not in FORMATS:
                raise UsageError(f"--format {self.format}: not one of {', '.join(FORMATS)}.")
        if self.jobs == 0:
            raise UsageError("--jobs 0: write a positive number, or -1 for all.")

    def rule(self) -> dict[str, list[str]]:
        """Return what the options say about columns; a model file remembers it."""
        return {}

    def read(self, path: Path, **more) -> Dataset:
        from widemargin.data import read

        return read(path, **self.read_options, **more)

    @property
    def read_options(self) -> dict[str, Any]:
        """Return the arguments of `widemargin.read` and `stream`."""
        label = False if self.label == "none" else self.label
        options = {"format": self.format, "split": self.split, "n_jobs": self.jobs}
        return {**options, "label": label, "max_bytes": self.max_bytes}


@dataclass(frozen=True)
class ThreadedSource(Source):
    """A source with an option for the number of threads."""

    jobs: Annotated[int, option("-j", "--jobs", "Threads; -1 is all")] = -1


@dataclass(frozen=True)
class TableSource(Source):
    """A source of training data, with options for the columns of a table."""

    numeric: Annotated[
        str | None,
        data_option("--numeric", "Numeric columns of a table, separated by commas"),
    ] = None
    categorical: Annotated[
        str | None, data_option("--categorical", "Categorical columns of a table")
    ] = None
    drop: Annotated[str | None, data_option("--drop", "Columns of a table to leave out")] = None
    na: Annotated[str | None, data_option("--na", "Values that count as missing, such as '?'")] = (
        None
    )

    def rule(self) -> dict[str, list[str]]:
        given = {name: getattr(self, name) for name in ("numeric", "categorical", "drop", "na")}
        return {k: names(v, f"--{k}") for k, v in given.items() if v is not None}


@dataclass(frozen=True)
class TrainingSource(TableSource, ThreadedSource):
    """A `TableSource` with an option for the number of threads."""


# ------------------------------------------------------------------ what is printed

Json = Annotated[bool, output_option("--json", "Print the result as JSON")]


@dataclass(frozen=True)
class Output:
    """What a command prints beside its result."""

    quiet: Annotated[bool, output_option("-q", "--quiet", "Print no progress and no summary")] = (
        False
    )
    as_json: Json = False


# ------------------------------------------------------------------ plot and scale

PICTURES = ("shapes", "importance", "pairs", "convergence")


@dataclass(frozen=True)
class Drawing:
    """What to draw, and from which data."""

    what: Annotated[str | None, option("--what", "shapes, importance, pairs or convergence")] = None
    data: Annotated[
        Path | None, option("--data", "Data for importance, shapes and (required) pairs")
    ] = None
    features: Annotated[
        str | None, option("--features", "shapes: names or numbers, separated by commas")
    ] = None
    class_label: Annotated[str | None, option("--class", "shapes, pairs: of one class")] = None

    def __post_init__(self) -> None:
        if self.what not in (None, *PICTURES):
            raise UsageError(f"--what {self.what}: not one of {', '.join(PICTURES)}.")


@dataclass(frozen=True)
class Scaling:
    """Which factors to learn and where to save them, or where to restore them from."""

    method: Annotated[
        str | None, option("--method", "minmax, maxabs or standard (default: minmax)")
    ] = None
    lower: Annotated[
        float | None, option("-l", "--lower", "minmax: smallest value (default: -1)")
    ] = None
    upper: Annotated[
        float | None, option("-u", "--upper", "minmax: largest value (default: 1)")
    ] = None
    labels: Annotated[
        tuple[float, float] | None,
        option("-y", "--labels", "Scale labels to these bounds", metavar="LOW HIGH"),
    ] = None
    save: Annotated[
        Path | None,
        option("-s", "--save", "Write the factors (minmax of svmlight text: LIBSVM's range file)"),
    ] = None
    restore: Annotated[
        Path | None, option("-r", "--restore", "Use factors written by --save or svm-scale")
    ] = None
