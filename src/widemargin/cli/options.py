"""The options of the commands on data, grouped in dataclasses: every field is an option.

Heavy imports wait until an option is used, so that help and completion answer at once.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields, is_dataclass
from functools import partial
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

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
    for p in given:
        group = groups.get(p.name)
        options += _options(group) if group else [_declared(p.name, p.annotation, p.default)]

    @functools.wraps(command)
    def spread(**values):
        for name, group in groups.items():
            values[name] = group(**{o.name: values.pop(o.name) for o in _options(group)})
        command(**values)

    spread.__signature__ = signature.replace(parameters=options)  # type: ignore[attr-defined]
    spread.__annotations__ = {option.name: option.annotation for option in options}
    return spread


@functools.cache
def _options(group: type) -> list[Parameter]:
    """Return the fields that are options, the group's own before inherited ones."""
    hints = get_type_hints(group)
    options = [f for f in fields(group) if "option" in f.metadata]
    options.sort(key=lambda f: f.name not in group.__annotations__)
    return [_declared(f.name, hints[f.name], f) for f in options]


def _declared(name: str, annotation: Any, default: Any) -> Parameter:
    """Return a parameter for typer; the default of an option is a field that describes it."""
    if isinstance(default, Field):
        annotation = Annotated[annotation, default.metadata["option"]]
        default = default.default
    # Keyword only, because an option with a default may precede an argument without one.
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def option(*words: str, default: Any = None, panel: str | None = None, **more) -> Any:
    """Declare a field of a group, or a parameter of a command, as an option.

    ``words`` are its names and, last, its help.
    """
    *names, said = words
    declared = typer.Option(*names, help=said, rich_help_panel=panel, **more)
    return field(default=default, metadata={"option": declared})


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


max_bytes_option = partial(
    data_option,
    "--max-bytes",
    "Memory limit for the contents of a file (default: by the free memory)",
    min=1,
)


@dataclass(frozen=True)
class Source:
    """How to read data, and with how many threads."""

    format: str | None = data_option(
        "--format", "svmlight, csv, tsv, parquet, arrow, npz or npy (default: by the content)"
    )
    label: str | None = data_option("--label", "Label column of a table: name, position, or none")
    split: str | None = data_option("--split", ".npz: train reads X_train, y_train")
    max_bytes: int | None = max_bytes_option()
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

    jobs: int = option("-j", "--jobs", "Threads; -1 is all", default=-1)


@dataclass(frozen=True)
class TableSource(Source):
    """A source of training data, with options for the columns of a table."""

    numeric: str | None = data_option(
        "--numeric", "Numeric columns of a table, separated by commas"
    )
    categorical: str | None = data_option("--categorical", "Categorical columns of a table")
    drop: str | None = data_option("--drop", "Columns of a table to leave out")
    na: str | None = data_option("--na", "Values that count as missing, such as '?'")

    def rule(self) -> dict[str, list[str]]:
        given = {name: getattr(self, name) for name in ("numeric", "categorical", "drop", "na")}
        return {k: names(v, f"--{k}") for k, v in given.items() if v is not None}


@dataclass(frozen=True)
class TrainingSource(TableSource):
    """A `TableSource` with an option for the number of threads."""

    jobs: int | None = option("-j", "--jobs", "Threads; -1 is all")


# ------------------------------------------------------------------ what is printed


@dataclass(frozen=True)
class Json:
    """Whether to print the result as JSON."""

    as_json: bool = output_option("--json", "Print the result as JSON", default=False)


@dataclass(frozen=True)
class Output(Json):
    """What a command prints besides its result."""

    quiet: bool = output_option("-q", "--quiet", "Print no progress and no summary", default=False)


# ------------------------------------------------------------------ plot and scale

PICTURES = ("shapes", "importance", "pairs", "convergence")


@dataclass(frozen=True)
class Drawing:
    """What to draw, and from which data."""

    what: str | None = option("--what", "shapes, importance, pairs or convergence")
    data: Path | None = option("--data", "Data for importance, shapes and (required) pairs")
    features: str | None = option("--features", "shapes: names or numbers, separated by commas")
    class_label: str | None = option("--class", "shapes, pairs: of one class")

    def __post_init__(self) -> None:
        if self.what not in (None, *PICTURES):
            raise UsageError(f"--what {self.what}: not one of {', '.join(PICTURES)}.")


@dataclass(frozen=True)
class Scaling:
    """Which factors to learn and where to save them, or where to restore them from."""

    method: str | None = option("--method", "minmax, maxabs or standard (default: minmax)")
    lower: float | None = option("-l", "--lower", "minmax: smallest value (default: -1)")
    upper: float | None = option("-u", "--upper", "minmax: largest value (default: 1)")
    labels: tuple[float, float] | None = option(
        "-y", "--labels", "Scale labels to these bounds", metavar="LOW HIGH"
    )
    save: Path | None = option(
        "-s", "--save", "Write the factors (minmax of svmlight text: LIBSVM's range file)"
    )
    restore: Path | None = option("-r", "--restore", "Use factors written by --save or svm-scale")


# ------------------------------------------------------------------ machines and their comparison

machine_option = partial(option, panel="Machine")
general_option = partial(option, panel="Machine: general kernels only")
additive_option = partial(option, panel="Machine: additive kernels only")
folds_option = partial(option, panel="Cross-validation")


weight_option = partial(
    machine_option, "--weight", "LABEL=FACTOR of C (LIBSVM's -wLABEL FACTOR), or balanced"
)


@dataclass(frozen=True)
class Shared:
    """What one machine and all candidates of a search have in common."""

    tol: float | None = machine_option(
        "-e", "--tol", "Relative duality gap to stop at (default: 0.001; additive: 0.01)"
    )
    epsilon: float | None = machine_option(
        "--epsilon", "Errors of numbers up to this size have no loss (default: 0.1; additive: 0)"
    )
    max_iter: int | None = machine_option("--max-iter", "Maximum number of sweeps or blocks")
    weight: list[str] | None = weight_option()
    multi_class: str | None = machine_option(
        "--multi-class", "ovr; ovo (general kernels); crammer_singer (additive)"
    )
    fit_intercept: bool | None = machine_option("--intercept/--no-intercept", "Fit an intercept")
    scale: str | None = option(
        "--scale", "none (default), minmax, maxabs or standard; kept in the model"
    )
    probability: bool = option(
        "--probability/--no-probability",
        "Fit probabilities (LIBSVM's -b 1): a sigmoid per pair of classes, coupled",
        default=False,
    )
    random_state: int | None = option("--seed", "Seed of all random choices", default=0)


@dataclass(frozen=True)
class Machine(Shared):
    """A kernel, a scaling, and parameters of a machine by their Python names."""

    preset: str | None = machine_option(
        "--preset",
        "Settings of a paper: icd, icd-counts (histograms unquantised), pmsvm, pmsvm-lut, "
        "dcsvm, dcsvm-early; other options change them",
    )
    task: str | None = machine_option(
        "--task",
        "classes, numbers or one-class (general kernels) (default: numbers if some labels are "
        "not whole, else classes)",
    )
    kernel: str | None = machine_option(
        "-t",
        "--kernel",
        "General: rbf, poly, sigmoid, laplacian, exp_chi2, libsvm_linear, precomputed; "
        "additive: intersection, chi2, hellinger, jensen_shannon, linear, power_mean, auto; "
        "or LIBSVM's 0 to 4 (default: rbf)",
    )
    C: float | None = machine_option("-c", "--C", "Cost of errors (default: 1)")
    nu: float | None = general_option(
        "-n",
        "--nu",
        "Largest share of training rows outside one class (default: 0.5); of classes the least "
        "share of support vectors, instead of C; of numbers likewise, instead of epsilon",
    )
    gamma: float | None = general_option(
        "-g",
        "--gamma",
        "rbf, poly, sigmoid, laplacian, exp_chi2 (default: 1 / (features * variance))",
    )
    degree: int | None = general_option("-d", "--degree", "poly (default: 3)")
    coef0: float | None = general_option("-r", "--coef0", "poly and sigmoid (default: 0)")
    power: float | None = additive_option("-p", "--power", "Exponent of power_mean, at most 0")
    minutes: float | None = machine_option(
        "--minutes", "Time limit; a fit that exceeds it stops early"
    )
    cache_size: float | None = general_option("-m", "--cache-size", "Megabytes for kernel rows")
    checkpoint: Path | None = general_option("--checkpoint", "Folder to resume a stopped fit from")
    early: str | None = general_option(
        "--early", "Early model: stop at the clusters of this level, or auto"
    )
    loss: str | None = additive_option(
        "--loss",
        "squared_hinge or hinge; of numbers squared_epsilon_insensitive or epsilon_insensitive",
    )
    rank: int | None = additive_option("--rank", "Numbers per bin")
    as_liblinear: bool | None = None  # features and C as they are

    def parameters(self) -> dict:
        others = ("preset", "task", "kernel", "scale", "probability", "minutes")
        limit = {} if self.minutes is None else {"max_seconds": 60 * self.minutes}
        return {k: v for k, v in vars(self).items() if k not in others} | limit


# ------------------------------------------------------------------ comparisons of models


@dataclass(frozen=True)
class Validation:
    """Options of cross-validation."""

    folds: int | None = folds_option(
        "-v", "--folds", "Cross-validate and print the accuracy instead of writing a model", min=2
    )
    scoring: str | None = folds_option("--scoring", "With --folds: another score, as in tune")

    def __post_init__(self) -> None:
        if self.scoring is not None and self.folds is None:
            raise UsageError("--scoring needs --folds.")


@dataclass(frozen=True)
class Search(Shared):
    """What `tune` tries, on which rows, with the parameters that all candidates share."""

    kernels: str = machine_option(
        "-t", "--kernels", "Kernels, separated by commas", default="rbf,chi2,intersection"
    )
    Cs: str = machine_option("-c", "--Cs", "Numbers, or low:high:count", default="0.1:1000:5")
    gammas: str | None = machine_option(
        "-g", "--gammas", "Numbers, or low:high:count (default: 1 / (features * variance))"
    )
    powers: str | None = machine_option("-p", "--powers", "Exponents of power_mean")
    scoring: str | None = option(
        "--scoring",
        "Score to maximise: accuracy (default), balanced_accuracy, roc_auc, f1, ...; of numbers "
        "r2 (default), neg_mean_absolute_error, ...",
    )
    task: str | None = machine_option(
        "--task", "classes or numbers (default: numbers if some labels are not whole)"
    )
    folds: int = option("-v", "--folds", "Folds of cross-validation", min=2, default=5)
    rows: int | None = option("--rows", "Rows to search on (default: all)", min=10)
    plot: Path | None = output_option("--plot", "Draw the score against C")

    def common(self) -> dict:
        """Return the parameters that every machine shares."""
        names = ("tol", "max_iter", "weight", "multi_class", "fit_intercept", "random_state")
        return {name: getattr(self, name) for name in (*names, "epsilon")}


@dataclass(frozen=True)
class Wanted:
    """The options of `easy`."""

    scoring: str | None = option(
        "--scoring",
        "Score to maximise: accuracy, roc_auc, f1, ... (default: accuracy, or "
        "balanced_accuracy where a class is rare)",
    )
    weight: list[str] | None = weight_option()
    minutes: float = option(
        "--minutes",
        "Time limit of choice and training; a fit that exceeds it stops early",
        min=0.01,
        default=10.0,
    )
