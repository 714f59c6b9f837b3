"""The options of the commands: what each is called, means, and goes together with.

Nothing heavy is imported before an option is used, so that help and completion answer at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from widemargin.cli.arguments import UsageError, names

if TYPE_CHECKING:
    from widemargin.data import Dataset

DATA, MACHINE, SHAPE = "Data", "Machine", "Output"


def machine_option(*names: str, help: str):
    return typer.Option(*names, help=help, rich_help_panel=MACHINE)


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
Model = Annotated[Path, typer.Argument(help="A model that train, tune or easy wrote")]
NewModel = Annotated[
    Path | None, typer.Argument(help="Where to write the model (default: DATA's name)")
]
Predictions = Annotated[
    Path | None, typer.Argument(help="Where to write (default: standard output)")
]
Scaled = Annotated[Path | None, typer.Argument(help="svmlight text (default: standard output)")]
Picture = Annotated[
    Path | None, typer.Argument(help="Picture, .png, .svg or .pdf (default: MODEL's name)")
]

# ------------------------------------------------------------------ how data are read

Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="svmlight, csv, tsv, parquet, arrow, npz or npy (default: by the content)",
        rich_help_panel=DATA,
    ),
]
Label = Annotated[
    str | None,
    typer.Option(
        "--label",
        help="Label column of a table, by name or position; none if there is none",
        rich_help_panel=DATA,
    ),
]
Split = Annotated[
    str | None,
    typer.Option("--split", help=".npz: train reads X_train, y_train", rich_help_panel=DATA),
]
MaxBytes = Annotated[
    int | None,
    typer.Option(
        "--max-bytes",
        min=1,
        help="The most memory that a file's contents may take (default: by the free memory)",
        rich_help_panel=DATA,
    ),
]
Numeric = Annotated[
    str | None,
    typer.Option(
        "--numeric",
        help="Columns of a table that are numbers, with commas between them",
        rich_help_panel=DATA,
    ),
]
Categorical = Annotated[
    str | None,
    typer.Option("--categorical", help="Likewise, categories", rich_help_panel=DATA),
]
Drop = Annotated[
    str | None, typer.Option("--drop", help="Likewise, to be left out", rich_help_panel=DATA)
]
Missing = Annotated[
    str | None,
    typer.Option(
        "--na", help="Values that count as missing, such as '?', likewise", rich_help_panel=DATA
    ),
]
Jobs = Annotated[int, typer.Option("-j", "--jobs", help="Threads; -1 is all")]


@dataclass(frozen=True)
class Source:
    """How to read data, and with how many threads."""

    format: Format = None
    label: Label = None
    split: Split = None
    max_bytes: MaxBytes = None
    jobs: int | None = None

    def __post_init__(self) -> None:
        if self.format is not None:
            from widemargin.data.reading import FORMATS  # and all of scikit-learn with it

            if self.format not in FORMATS:
                raise UsageError(f"--format {self.format}: not one of {', '.join(FORMATS)}.")
        if self.jobs == 0:
            raise UsageError("--jobs 0: write a positive number, or -1 for all.")

    def rule(self) -> dict[str, list[str]]:
        """What is said of the columns of a table; a model remembers its own."""
        return {}

    def read(self, path: Path, **more) -> Dataset:
        from widemargin.data import read

        options = {"format": self.format, "split": self.split, "n_jobs": self.jobs, **more}
        label = False if self.label == "none" else self.label
        return read(path, label=label, max_bytes=self.max_bytes, **options)


@dataclass(frozen=True)
class ThreadedSource(Source):
    """The same, where the number of threads can be chosen."""

    jobs: Jobs = -1


@dataclass(frozen=True)
class TableSource(Source):
    """Data to learn from, whose columns can be told what they are."""

    numeric: Numeric = None
    categorical: Categorical = None
    drop: Drop = None
    na: Missing = None

    def rule(self) -> dict[str, list[str]]:
        given = {name: getattr(self, name) for name in ("numeric", "categorical", "drop", "na")}
        return {k: names(v, f"--{k}") for k, v in given.items() if v is not None}


@dataclass(frozen=True)
class TrainingSource(TableSource, ThreadedSource):
    """Likewise, with threads."""


# ------------------------------------------------------------------ what is printed

Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print no progress and no summary")]
Json = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON", rich_help_panel=SHAPE)
]


@dataclass(frozen=True)
class Output:
    """What a command prints beside its result."""

    quiet: Quiet = False
    as_json: Json = False


# ------------------------------------------------------------------ machines

Preset = Annotated[
    str | None,
    machine_option(
        "--preset",
        help="As a paper says: icd, icd-counts (histograms as they are), pmsvm, pmsvm-lut, dcsvm, "
        "dcsvm-early; other options change it",
    ),
]
Kernel = Annotated[
    str | None,
    machine_option(
        "-t",
        "--kernel",
        help="rbf, poly, sigmoid, laplacian, exp_chi2, precomputed; intersection, chi2, "
        "hellinger, jensen_shannon, linear, power_mean, auto; or LIBSVM's 0 to 4 (default: rbf)",
    ),
]
Cost = Annotated[float | None, machine_option("-c", "--C", help="Cost of errors (default: 1)")]
Gamma = Annotated[
    float | None,
    machine_option(
        "-g",
        "--gamma",
        help="Of rbf, poly, sigmoid, laplacian, exp_chi2 (default: 1 / (features * variance))",
    ),
]
Degree = Annotated[int | None, machine_option("-d", "--degree", help="Of poly (default: 3)")]
Coef0 = Annotated[
    float | None, machine_option("-r", "--coef0", help="Of poly and sigmoid (default: 0)")
]
Power = Annotated[
    float | None, machine_option("-p", "--power", help="Exponent of power_mean, at most 0")
]
Tol = Annotated[
    float | None,
    machine_option(
        "-e", "--tol", help="Relative duality gap to stop at (default: 0.001; additive: 0.01)"
    ),
]
MaxIter = Annotated[int | None, machine_option("--max-iter", help="Sweeps or blocks at most")]
Weight = Annotated[
    list[str] | None,
    machine_option("--weight", help="label=factor of C, LIBSVM's -wLABEL FACTOR; or balanced"),
]
Cache = Annotated[
    float | None, machine_option("-m", "--cache-size", help="Megabytes for kernel rows")
]
Checkpoints = Annotated[
    Path | None,
    machine_option("--checkpoint", help="Folder for parts of a fit, from which it goes on"),
]
Early = Annotated[str | None, machine_option("--early", help="An early model: a level, or auto")]
Levels = Annotated[int | None, machine_option("--levels", help="Levels of division")]
MultiClass = Annotated[
    str | None,
    machine_option("--multi-class", help="ovr; ovo (general kernels); crammer_singer (additive)"),
]
Loss = Annotated[str | None, machine_option("--loss", help="Additive: squared_hinge or hinge")]
Rank = Annotated[int | None, machine_option("--rank", help="Additive: numbers per bin")]
Approximation = Annotated[
    str | None,
    machine_option(
        "--approximation",
        help="Additive: spectral, chebyshev, pmsvm, unary, fourier",
    ),
]
Intercept = Annotated[
    bool | None, machine_option("--intercept/--no-intercept", help="Fit an intercept")
]
Scale = Annotated[
    str | None,
    typer.Option("--scale", help="none (default), minmax, maxabs or standard; kept in the model"),
]
Probability = Annotated[
    bool,
    typer.Option(
        "--probability/--no-probability",
        help="Probabilities too (LIBSVM's -b 1): sigmoids of decision values, by cross-validation",
    ),
]
Probabilities = Annotated[
    bool,
    typer.Option(
        "--probability/--no-probability",
        help="Labels and probabilities, as svm-predict -b 1 writes them",
        rich_help_panel=SHAPE,
    ),
]
Seed = Annotated[int | None, typer.Option("--seed", help="Of all random choices")]


@dataclass(frozen=True)
class Machine:
    """A kernel, a scaling, and by their names in Python the parameters of a machine."""

    preset: Preset = None
    kernel: Kernel = None
    C: Cost = None
    gamma: Gamma = None
    degree: Degree = None
    coef0: Coef0 = None
    power: Power = None
    tol: Tol = None
    max_iter: MaxIter = None
    weight: Weight = None
    cache_size: Cache = None
    checkpoint: Checkpoints = None
    early: Early = None
    levels: Levels = None
    multi_class: MultiClass = None
    loss: Loss = None
    rank: Rank = None
    approximation: Approximation = None
    fit_intercept: Intercept = None
    scale: Scale = None
    probability: Probability = False
    random_state: Seed = 0

    def parameters(self) -> dict:
        others = ("preset", "kernel", "scale", "probability")
        return {k: v for k, v in vars(self).items() if k not in others}
