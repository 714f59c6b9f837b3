"""The command ``widemargin``: its commands and their arguments.

Only typer is imported here, so that help and completion answer at once.
"""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

try:
    import typer
    from typer.core import TyperGroup
except ImportError:  # pragma: no cover
    sys.exit("The command line needs typer: pip install widemargin[cli]")

from widemargin.cli import output
from widemargin.cli.image_options import Features, ImageData, ImageSource
from widemargin.cli.libsvm_options import LibsvmOptions
from widemargin.cli.options import (
    Data,
    Drawing,
    Json,
    Machine,
    Model,
    NewModel,
    Out,
    Output,
    Scaling,
    Search,
    Source,
    TableSource,
    ThreadedSource,
    TrainingSource,
    Validation,
    Wanted,
    grouped,
    max_bytes_option,
    option,
)
from widemargin.cli.output import exit_status_on_error
from widemargin.cli.words import UsageError, begin, read_config, with_long_options


class Program(TyperGroup):
    """The group of commands; records the command line for the model file."""

    def parse_args(self, ctx, args: list[str]) -> list[str]:
        output.command_line = shlex.join(["widemargin", *args])
        return super().parse_args(ctx, args)


app = typer.Typer(
    name="widemargin",
    cls=Program,
    help="Fast kernel support vector machines that certify their solutions.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from widemargin import __version__

        print(f"widemargin {__version__}")
        raise typer.Exit


@app.callback()
@grouped
def common(
    context: typer.Context,
    config: Path | None = option(
        "--config",
        "TOML file with defaults, a table per command (default: ./widemargin.toml, if any)",
        envvar="WIDEMARGIN_CONFIG",
    ),
    traceback: bool = option("--traceback", "Show where an error came from", default=False),
    version: bool = option(
        "--version",
        "Print the version and exit",
        callback=_print_version,
        is_eager=True,
        default=False,
    ),
) -> None:
    output.show_traceback = traceback
    commands = _options_of(context.command)
    begin(context.invoked_subcommand, commands)
    exit_status_on_error(_set_defaults)(context, config, commands)


def _options_of(group, before: str = "") -> dict[str, dict]:
    """Return the options of each command by their long names; a group's have its name before."""
    options: dict[str, dict] = {}
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            options |= _options_of(command, f"{name} ")
        else:
            words = ((word, option) for option in command.params for word in option.opts)
            options[before + name] = {
                word[2:]: option for word, option in words if word.startswith("--")
            }
    return options


def _set_defaults(context: typer.Context, config: Path | None, commands: dict) -> None:
    context.default_map = read_config(config, commands)


def command(function: Callable) -> Callable:
    """Register a command: its option groups become options, its errors an exit status."""
    return app.command()(exit_status_on_error(grouped(function)))


@command
def train(
    *,
    data: Data,
    model: NewModel = None,
    machine: Machine,
    validation: Validation,
    libsvm: LibsvmOptions,
    source: TrainingSource,
    memory_limit: str | None = option(
        "--memory-limit",
        "Train larger data from disk (2GB, 500MB, or a share of the free memory; default 50%); "
        "for general kernels, the limit of the whole training",
        panel="Data",
    ),
    output: Output,
) -> None:
    """Train a model on DATA (a file, or a folder made by store) and write it to MODEL."""
    from widemargin.cli import train as commands

    options = libsvm.applied(machine)
    commands.train(data, model, options, validation, source, output, memory_limit)


@command
def store(
    *,
    data: Data,
    folder: Annotated[Path, typer.Argument(help="Where to keep the blocks")],
    append: bool = option("--append", "Add rows to an existing store", default=False),
    keep: str | None = option("--keep", "codes (default; additive kernels) or values (the others)"),
    source: TrainingSource,
    output: Output,
) -> None:
    """Write DATA to FOLDER as blocks of rows, to train on data larger than memory.

    The same command continues an interrupted one.
    """
    from widemargin.cli import store as commands

    commands.store(data, folder, keep, source, output, append=append)


@command
def predict(
    *,
    data: Data,
    model: Model,
    out: Out = None,
    what: str = option(
        "--output", "labels, decision or contributions", panel="Output", default="labels"
    ),
    probability: bool = option(
        "--probability/--no-probability",
        "Labels and probabilities, as svm-predict -b 1 writes them",
        panel="Output",
        default=False,
    ),
    class_label: str | None = option("--class", "Class of the contributions", panel="Output"),
    source: ThreadedSource,
    output: Output,
) -> None:
    """Predict labels, decision values or per-feature contributions of DATA, a line per row."""
    from widemargin.cli import predict as commands

    if what not in ("labels", "decision", "contributions"):
        raise UsageError(f"--output {what}: not one of labels, decision, contributions.")
    if probability and what != "labels":
        raise UsageError(f"--probability cannot be combined with --output {what}.")
    what = "probability" if probability else what
    commands.predict(data, model, out, what, class_label, source, output)


@command
def evaluate(*, data: Data, model: Model, source: ThreadedSource, output: Json) -> None:
    """Compare predictions with the labels of DATA: accuracy, per class, confusion, time per row."""
    from widemargin.cli import predict as commands

    commands.evaluate_model(data, model, source, output.as_json)


@command
def tune(
    *, data: Data, model: NewModel = None, search: Search, source: TrainingSource, output: Output
) -> None:
    """Search over kernels, C and gamma or p by cross-validation; train the best on all of DATA."""
    from widemargin.cli import choosing

    choosing.tune_models(data, model, search, source, output)


@command
def easy(
    *,
    train: Annotated[Path, typer.Argument(help="Training data")],
    test: Annotated[Path | None, typer.Argument(help="Test data")] = None,
    model: Path | None = option("--model", "Where to write the model (default: TRAIN's name)"),
    wanted: Wanted,
    source: TrainingSource,
    output: Output,
) -> None:
    """Choose scaling, machine and parameters, train and report."""
    began = time.monotonic()
    if not (output.quiet or output.as_json):  # scikit-learn alone takes two seconds to import
        print(f"reading {train}", file=sys.stderr)
    from widemargin.cli import choosing

    choosing.easy(train, test, model, wanted, source, output, began)


@command
def scale(
    *,
    data: Data,
    out: Out = None,
    scaling: Scaling,
    source: TableSource,
) -> None:
    """Scale the features of DATA, as svm-scale does, and write svmlight text."""
    from widemargin.cli import scale as commands

    commands.scale(data, out, scaling, source)


@command
def info(*, model: Model, output: Json, max_bytes: int | None = max_bytes_option()) -> None:
    """Check a model file and print its contents."""
    from widemargin.cli import inspect as commands

    commands.info(model, output.as_json, max_bytes)


@command
def plot(
    *,
    model: Model,
    out: Annotated[
        Path | None, typer.Argument(help="Picture, .png, .svg or .pdf (default: MODEL's name)")
    ] = None,
    drawing: Drawing,
    source: Source,
) -> None:
    """Draw shape functions, feature importance, missed pairs of features, or convergence."""
    from widemargin.cli import inspect as commands

    commands.plot(model, out, drawing, source)


@command
def report(
    *,
    model: Model,
    data: Data,
    out: Path | None = option("-o", "--out", "Page to write (default: MODEL's name, .html)"),
    training: Path | None = option(
        "--training", "Training data of MODEL: draw bands of 20 refits (up to 3 classes)"
    ),
    source: ThreadedSource,
) -> None:
    """Write one page of HTML about MODEL, measured on DATA."""
    from widemargin.cli import inspect as commands

    commands.report(model, data, out, training, source)


@command
def export(
    *,
    model: Model,
    out: Annotated[Path, typer.Argument(help="Where to write")],
    to: str | None = option(
        "--to", "libsvm, onnx or shapes (default: by OUT's ending: .onnx, .json)"
    ),
    max_bytes: int | None = max_bytes_option(),
) -> None:
    """Write a model as ONNX, as LIBSVM text, or its shape functions as JSON."""
    from widemargin.cli import inspect as commands

    commands.export(model, out, to, max_bytes)


@command
def demo(
    out: Annotated[Path, typer.Argument(help="Picture to draw")] = Path("demo.png"),
) -> None:
    """Train on digits and on a larger problem, print a table, draw a picture."""
    from widemargin.demo import run

    run(out)


# ------------------------------------------------------------------ images

images = typer.Typer(
    help="Train, predict and evaluate models of photographs.", no_args_is_help=True
)
app.add_typer(images, name="images")


@images.callback()
def of_images(context: typer.Context) -> None:
    begin(f"images {context.invoked_subcommand}", _options_of(context.find_root().command))


def image_command(name: str) -> Callable:
    """Register a command of the group as `command` does."""
    return lambda function: images.command(name)(exit_status_on_error(grouped(function)))


@image_command("train")
def train_images(
    *,
    data: ImageData,
    model: NewModel = None,
    features: Features,
    machine: Machine,
    source: ImageSource,
    output: Output,
) -> None:
    """Count visual words of the images of DATA, train a machine on them, write both to MODEL.

    The default is ICD on 200 words (--preset icd-counts).
    """
    from widemargin.cli import images as commands

    commands.train(data, model, features, machine, source, output)


@image_command("predict")
def predict_images(
    *,
    data: ImageData,
    model: Model,
    out: Out = None,
    what: str = option("--output", "labels or decision", panel="Output", default="labels"),
    source: ImageSource,
    output: Output,
) -> None:
    """Predict labels or decision values of the images of DATA, a line with the name of each."""
    from widemargin.cli import images as commands

    if what not in ("labels", "decision"):
        raise UsageError(f"--output {what}: not one of labels, decision.")
    commands.predict(data, model, out, what, source, output)


@image_command("evaluate")
def evaluate_images(*, data: ImageData, model: Model, source: ImageSource, output: Output) -> None:
    """Compare predictions with the classes of the images of DATA."""
    from widemargin.cli import images as commands

    commands.evaluate(data, model, source, output)


@image_command("explain")
def explain_images(
    *,
    data: Annotated[Path, typer.Argument(help="One image, or a folder or archive of one")],
    model: Model,
    out: Annotated[
        Path | None, typer.Argument(help="Picture, .png, .svg or .pdf (default: DATA's name, .png)")
    ] = None,
    class_label: str | None = option("--class", "Class to explain (default: the predicted one)"),
    source: ImageSource,
    output: Output,
) -> None:
    """Draw over an image what spoke for its label, or against it."""
    from widemargin.cli import images as commands

    commands.explain(data, model, out, class_label, source, output)


@image_command("report")
def report_images(
    *,
    data: ImageData,
    model: Model,
    out: Annotated[
        Path | None, typer.Argument(help="Page to write (default: MODEL's name, .html)")
    ] = None,
    source: ImageSource,
    output: Output,
) -> None:
    """Write a page with scores, confusion, and heat maps of the worst mistakes."""
    from widemargin.cli import images as commands

    commands.report(data, model, out, source, output)


def main() -> None:
    output.open_standard_streams()
    try:
        exit_status_on_error(app)(args=with_long_options(sys.argv[1:]), prog_name="widemargin")
    except typer.Exit as ended:
        sys.exit(ended.exit_code)
