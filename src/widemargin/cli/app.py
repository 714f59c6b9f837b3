"""The command ``widemargin``: what can be asked, and of whom.

Only typer is imported here, so that help and completion answer at once.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

try:
    import typer
except ImportError:  # pragma: no cover
    sys.exit("The command line needs typer: pip install widemargin[cli]")

from widemargin.cli import output
from widemargin.cli.arguments import numbers, read_config, with_long_weights
from widemargin.cli.output import reported

app = typer.Typer(
    name="widemargin",
    help="Kernel support vector machines at the speed and scale of linear ones.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
)

DATA, MACHINE, SHAPE = "Data", "Machine", "Output"
Data = Annotated[
    Path,
    typer.Argument(
        help="svmlight/LIBSVM text (also .gz, .bz2, .xz, .zst), "
        "CSV, TSV, Parquet, Arrow, .npz or .npy"
    ),
]
Model = Annotated[Path, typer.Argument(help="A model that train, tune or easy wrote")]
NewModel = Annotated[
    Path | None, typer.Argument(help="Where to write the model (default: DATA's name)")
]
Format = Annotated[
    str | None, typer.Option("--format", help="Overrule the detected format", rich_help_panel=DATA)
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
Jobs = Annotated[int, typer.Option("-j", "--jobs", help="Threads; -1 is all")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print no progress and no summary")]
Json = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON", rich_help_panel=SHAPE)
]
Scale = Annotated[
    str | None, typer.Option("--scale", help="none, minmax, maxabs or standard; kept in the model")
]


def _machine_option(*names: str, help: str):
    return typer.Option(*names, help=help, rich_help_panel=MACHINE)


Kernel = Annotated[
    str,
    _machine_option(
        "-t",
        "--kernel",
        help="rbf, poly, sigmoid, laplacian, exp_chi2, precomputed; intersection, chi2, "
        "hellinger, jensen_shannon, linear, power_mean; or LIBSVM's 0 to 4",
    ),
]
C = Annotated[float | None, _machine_option("-c", "--C", help="Cost of errors")]
Gamma = Annotated[
    float | None,
    _machine_option("-g", "--gamma", help="Of rbf, poly, sigmoid, laplacian, exp_chi2"),
]
Degree = Annotated[int | None, _machine_option("-d", "--degree", help="Of poly")]
Coef0 = Annotated[float | None, _machine_option("-r", "--coef0", help="Of poly and sigmoid")]
Power = Annotated[
    float | None, _machine_option("-p", "--power", help="Exponent of power_mean, at most 0")
]
Tol = Annotated[
    float | None, _machine_option("-e", "--tol", help="Relative duality gap to stop at")
]
MaxIter = Annotated[int | None, _machine_option("--max-iter", help="Sweeps or blocks at most")]
Weight = Annotated[
    list[str] | None,
    _machine_option("--weight", help="label=factor of C, LIBSVM's -wLABEL FACTOR; or balanced"),
]
Cache = Annotated[
    float | None, _machine_option("-m", "--cache-size", help="Megabytes for kernel rows")
]
Early = Annotated[str | None, _machine_option("--early", help="An early model: a level, or auto")]
Levels = Annotated[int | None, _machine_option("--levels", help="Levels of division")]
MultiClass = Annotated[
    str | None,
    _machine_option("--multi-class", help="ovr; ovo (general kernels); crammer_singer (additive)"),
]
Loss = Annotated[str | None, _machine_option("--loss", help="Additive: squared_hinge or hinge")]
Rank = Annotated[int | None, _machine_option("--rank", help="Additive: numbers per bin")]
Approximation = Annotated[
    str | None,
    _machine_option("--approximation", help="Additive: spectral, chebyshev, pmsvm, unary, fourier"),
]
Intercept = Annotated[
    bool | None,
    typer.Option("--intercept/--no-intercept", help="Fit an intercept", rich_help_panel=MACHINE),
]
Seed = Annotated[int | None, typer.Option("--seed", help="Of all random choices")]


def _print_version(wanted: bool) -> None:
    if wanted:
        from widemargin import __version__

        print(f"widemargin {__version__}")
        raise typer.Exit


@app.callback()
def common(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option(
            help="TOML file with defaults, a table per "
            "command (default: widemargin.toml if it is here)",
            envvar="WIDEMARGIN_CONFIG",
        ),
    ] = None,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="Show where an error came from")
    ] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version and exit",
            callback=_print_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    output.show_traceback = traceback
    commands = {
        name: {
            word.removeprefix("--").lower(): parameter
            for parameter in command.params
            for word in parameter.opts
            if word.startswith("--")
        }
        for name, command in context.command.commands.items()  # type: ignore[attr-defined]
    }
    reported(lambda: _set_defaults(context, config, commands))()


def _set_defaults(context: typer.Context, config: Path | None, commands: dict) -> None:
    context.default_map = read_config(config, commands)


@app.command()
@reported
def train(
    data: Data,
    model: NewModel = None,
    kernel: Kernel = "rbf",
    c: C = None,
    gamma: Gamma = None,
    degree: Degree = None,
    coef0: Coef0 = None,
    power: Power = None,
    tol: Tol = None,
    max_iter: MaxIter = None,
    weight: Weight = None,
    cache_size: Cache = None,
    early: Early = None,
    levels: Levels = None,
    multi_class: MultiClass = None,
    loss: Loss = None,
    rank: Rank = None,
    approximation: Approximation = None,
    intercept: Intercept = None,
    scale: Scale = None,
    folds: Annotated[
        int | None,
        typer.Option("-v", "--folds", min=2, help="Cross-validate instead and print the accuracy"),
    ] = None,
    seed: Seed = 0,
    format: Format = None,
    label: Label = None,
    split: Split = None,
    jobs: Jobs = -1,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train a model on DATA and write it to MODEL."""
    from widemargin.cli import datasets, training

    options = {
        "C": c,
        "gamma": gamma,
        "degree": degree,
        "coef0": coef0,
        "power": power,
        "tol": tol,
        "max_iter": max_iter,
        "weight": weight,
        "cache_size": cache_size,
        "early": early,
        "levels": levels,
        "multi_class": multi_class,
        "loss": loss,
        "rank": rank,
        "approximation": approximation,
        "fit_intercept": intercept,
        "random_state": seed,
    }
    source = datasets.Source(format, label, split, jobs)
    training.train(data, model, kernel, options, scale, folds, source, quiet, json)


@app.command()
@reported
def predict(
    data: Data,
    model: Model,
    out: Annotated[
        Path | None, typer.Argument(help="Where to write (default: standard output)")
    ] = None,
    what: Annotated[
        str,
        typer.Option("--output", help="labels, decision or contributions", rich_help_panel=SHAPE),
    ] = "labels",
    class_label: Annotated[
        str | None, typer.Option("--class", help="Whose contributions", rich_help_panel=SHAPE)
    ] = None,
    format: Format = None,
    label: Label = None,
    split: Split = None,
    jobs: Jobs = -1,
    json: Json = False,
) -> None:
    """Predict labels, decision values or per-feature contributions of DATA, a line per row."""
    from widemargin.cli import datasets, training
    from widemargin.cli.arguments import UsageError

    if what not in ("labels", "decision", "contributions"):
        raise UsageError(f"--output {what}: not one of labels, decision, contributions.")
    source = datasets.Source(format, label, split, jobs)
    training.predict(data, model, out, what, class_label, source, json)


@app.command()
@reported
def evaluate(
    data: Data,
    model: Model,
    format: Format = None,
    label: Label = None,
    split: Split = None,
    jobs: Jobs = -1,
    json: Json = False,
) -> None:
    """Compare predictions with the labels of DATA: accuracy, per class, confusion, time per row."""
    from widemargin.cli import datasets, training

    training.evaluate_model(data, model, datasets.Source(format, label, split, jobs), json)


@app.command()
@reported
def tune(
    data: Data,
    model: NewModel = None,
    kernels: Annotated[
        str,
        typer.Option("-t", "--kernels", help="With commas between them", rich_help_panel=MACHINE),
    ] = "rbf,chi2,intersection",
    cs: Annotated[
        str, typer.Option("-c", "--Cs", help="Numbers, or low:high:count", rich_help_panel=MACHINE)
    ] = "0.1:1000:5",
    gammas: Annotated[
        str | None,
        typer.Option(
            "-g",
            "--gammas",
            help="Likewise (default: 1 / (features * variance))",
            rich_help_panel=MACHINE,
        ),
    ] = None,
    powers: Annotated[
        str | None,
        typer.Option("-p", "--powers", help="Likewise, of power_mean", rich_help_panel=MACHINE),
    ] = None,
    tol: Tol = None,
    weight: Weight = None,
    multi_class: MultiClass = None,
    intercept: Intercept = None,
    scale: Scale = None,
    folds: Annotated[int, typer.Option("-v", "--folds", min=2, help="Of cross-validation")] = 5,
    rows: Annotated[
        int | None, typer.Option("--rows", min=10, help="Search on so many rows (default: all)")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw accuracy against C", rich_help_panel=SHAPE)
    ] = None,
    seed: Seed = 0,
    format: Format = None,
    label: Label = None,
    split: Split = None,
    jobs: Jobs = -1,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Search over kernels, C and gamma or p by cross-validation; train the best on all of DATA."""
    from widemargin.cli import choosing, datasets

    options = {
        "tol": tol,
        "weight": weight,
        "multi_class": multi_class,
        "fit_intercept": intercept,
        "random_state": seed,
    }
    choosing.tune_models(
        data,
        model,
        [word.strip() for word in kernels.split(",")],
        numbers(cs, "--Cs"),
        numbers(gammas, "--gammas") if gammas else None,
        numbers(powers, "--powers") if powers else None,
        options,
        scale,
        folds,
        rows,
        plot,
        datasets.Source(format, label, split, jobs),
        quiet,
        json,
    )


@app.command()
@reported
def easy(
    train: Annotated[Path, typer.Argument(help="Training data")],
    test: Annotated[Path | None, typer.Argument(help="Test data")] = None,
    model: Annotated[
        Path | None,
        typer.Option("--model", help="Where to write the model (default: TRAIN's name)"),
    ] = None,
    format: Format = None,
    label: Label = None,
    split: Split = None,
    jobs: Jobs = -1,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Scale, choose machine and parameters, train and report: all that most data needs."""
    from widemargin.cli import choosing, datasets

    source = datasets.Source(format, label, split, jobs)
    choosing.easy(train, test, model, source, quiet, json)


@app.command()
@reported
def scale(
    data: Data,
    out: Annotated[
        Path | None, typer.Argument(help="svmlight text (default: standard output)")
    ] = None,
    method: Annotated[
        str | None, typer.Option(help="minmax, maxabs or standard (default: minmax)")
    ] = None,
    lower: Annotated[
        float | None, typer.Option("-l", "--lower", help="minmax: smallest value (default: -1)")
    ] = None,
    upper: Annotated[
        float | None, typer.Option("-u", "--upper", help="minmax: largest value (default: 1)")
    ] = None,
    save: Annotated[Path | None, typer.Option("-s", "--save", help="Write the factors")] = None,
    restore: Annotated[
        Path | None, typer.Option("-r", "--restore", help="Use factors that --save wrote")
    ] = None,
    format: Format = None,
    label: Label = None,
    split: Split = None,
) -> None:
    """Scale the features of DATA, as svm-scale does."""
    from widemargin.cli import datasets, inspecting

    source = datasets.Source(format, label, split)
    inspecting.scale(data, out, method, lower, upper, save, restore, source)


@app.command()
@reported
def info(model: Model, json: Json = False) -> None:
    """Say what is in a model file, after checking it."""
    from widemargin.cli import inspecting

    inspecting.info(model, json)


@app.command()
@reported
def plot(
    model: Model,
    out: Annotated[
        Path | None, typer.Argument(help="Picture, .png, .svg or .pdf (default: MODEL's name)")
    ] = None,
    what: Annotated[str | None, typer.Option(help="shapes, importance or convergence")] = None,
    data: Annotated[Path | None, typer.Option(help="Data to measure importance on")] = None,
    features: Annotated[str | None, typer.Option(help="Names or numbers, with commas")] = None,
    format: Format = None,
    label: Label = None,
    split: Split = None,
) -> None:
    """Draw shape functions, importance of features, or convergence."""
    from widemargin.cli import datasets, inspecting
    from widemargin.cli.arguments import UsageError

    if what not in (None, "shapes", "importance", "convergence"):
        raise UsageError(f"--what {what}: not one of shapes, importance, convergence.")
    inspecting.plot(model, out, what, data, features, datasets.Source(format, label, split))


@app.command()
@reported
def export(
    model: Model,
    out: Annotated[Path, typer.Argument(help="Where to write")],
    to: Annotated[
        str | None,
        typer.Option(help="libsvm, onnx or shapes (default: by OUT's ending: .onnx, .json)"),
    ] = None,
) -> None:
    """Write a model as ONNX, as LIBSVM text, or its shape functions as JSON."""
    from widemargin.cli import inspecting

    inspecting.export(model, out, to)


@app.command()
@reported
def demo(
    out: Annotated[Path, typer.Argument(help="Picture to draw")] = Path("demo.png"),
) -> None:
    """Train on the digits that come with scikit-learn, print a table, draw a picture."""
    from widemargin.demo import run

    run(out)


def main() -> None:
    app(args=with_long_weights(sys.argv[1:]), prog_name="widemargin")
