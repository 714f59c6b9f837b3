"""The command ``widemargin``: what can be asked, and of whom.

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
from widemargin.cli.arguments import UsageError, read_config, with_long_options
from widemargin.cli.drawing_options import Drawing
from widemargin.cli.groups import grouped
from widemargin.cli.libsvm_options import LibsvmOptions
from widemargin.cli.options import (
    SHAPE,
    Data,
    Json,
    Machine,
    MaxBytes,
    Model,
    NewModel,
    Output,
    Picture,
    Predictions,
    Probabilities,
    Scaled,
    Source,
    TableSource,
    ThreadedSource,
    TrainingSource,
)
from widemargin.cli.output import exit_status_on_error
from widemargin.cli.scaling_options import Scaling
from widemargin.cli.search_options import Search, Validation, Wanted
from widemargin.cli.store_options import Append, Folder, Keep, MemoryLimit


class Program(TyperGroup):
    """The commands, which know the words that they were called with."""

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
            word.removeprefix("--"): parameter
            for parameter in command.params
            for word in parameter.opts
            if word.startswith("--")
        }
        for name, command in context.command.commands.items()  # type: ignore[attr-defined]
    }
    output.running, output.options = context.invoked_subcommand, commands
    exit_status_on_error(_set_defaults)(context, config, commands)


def _set_defaults(context: typer.Context, config: Path | None, commands: dict) -> None:
    context.default_map = read_config(config, commands)


def command(function: Callable) -> Callable:
    """Make it a command, whose option groups are options and whose errors an exit status."""
    return app.command()(exit_status_on_error(grouped(function)))


@command
def train(
    *,
    data: Data,
    model: NewModel = None,
    machine: Machine,
    validation: Validation,
    asked: LibsvmOptions,
    source: TrainingSource,
    memory_limit: MemoryLimit = None,
    output: Output,
) -> None:
    """Train a model on DATA (a file, or a folder that store made) and write it to MODEL."""
    from widemargin.cli import training

    training.train(data, model, machine, validation, source, output, memory_limit)


@command
def store(
    *,
    data: Data,
    folder: Folder,
    append: Append = False,
    keep: Keep = None,
    source: TrainingSource,
    output: Output,
) -> None:
    """Put DATA in FOLDER as blocks of rows, to train on more than fits in memory.

    What was interrupted goes on when it is called again.
    """
    from widemargin.cli import storing

    storing.store(data, folder, keep, source, output, append=append)


@command
def predict(
    *,
    data: Data,
    model: Model,
    out: Predictions = None,
    what: Annotated[
        str,
        typer.Option("--output", help="labels, decision or contributions", rich_help_panel=SHAPE),
    ] = "labels",
    probability: Probabilities = False,
    class_label: Annotated[
        str | None, typer.Option("--class", help="Whose contributions", rich_help_panel=SHAPE)
    ] = None,
    source: ThreadedSource,
    output: Output,
) -> None:
    """Predict labels, decision values or per-feature contributions of DATA, a line per row."""
    from widemargin.cli import training

    if what not in ("labels", "decision", "contributions"):
        raise UsageError(f"--output {what}: not one of labels, decision, contributions.")
    if probability and what != "labels":
        raise UsageError(f"--probability has no meaning with --output {what}.")
    what = "probability" if probability else what
    training.predict(data, model, out, what, class_label, source, output)


@command
def evaluate(data: Data, model: Model, source: ThreadedSource, as_json: Json = False) -> None:
    """Compare predictions with the labels of DATA: accuracy, per class, confusion, time per row."""
    from widemargin.cli import training

    training.evaluate_model(data, model, source, as_json)


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
    model: Annotated[
        Path | None,
        typer.Option("--model", help="Where to write the model (default: TRAIN's name)"),
    ] = None,
    wanted: Wanted,
    source: TrainingSource,
    output: Output,
) -> None:
    """Scale, choose machine and parameters, train and report: all that most data needs."""
    began = time.monotonic()
    if not (output.quiet or output.as_json):  # scikit-learn alone takes two seconds to import
        print(f"reading {train}", file=sys.stderr)
    from widemargin.cli import choosing

    choosing.easy(train, test, model, wanted, source, output, began)


@command
def scale(
    *,
    data: Data,
    out: Scaled = None,
    scaling: Scaling,
    source: TableSource,
) -> None:
    """Scale the features of DATA, as svm-scale does."""
    from widemargin.cli import scaling as commands

    commands.scale(data, out, scaling, source)


@command
def info(model: Model, as_json: Json = False, max_bytes: MaxBytes = None) -> None:
    """Say what is in a model file, after checking it."""
    from widemargin.cli import inspecting

    inspecting.info(model, as_json, max_bytes)


@command
def plot(*, model: Model, out: Picture = None, drawing: Drawing, source: Source) -> None:
    """Draw shape functions, importance of features, pairs that are missed, or convergence."""
    from widemargin.cli import inspecting

    inspecting.plot(model, out, drawing, source)


@command
def report(
    *,
    model: Model,
    data: Data,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="Page to write (default: MODEL's name, .html)"),
    ] = None,
    training: Annotated[
        Path | None,
        typer.Option(
            help="Data that MODEL was trained on: shapes of up to 3 classes get a band of 20 refits"
        ),
    ] = None,
    source: ThreadedSource,
) -> None:
    """Write one page of HTML about MODEL, measured on DATA."""
    from widemargin.cli import reporting

    reporting.report(model, data, out, training, source)


@command
def export(
    model: Model,
    out: Annotated[Path, typer.Argument(help="Where to write")],
    to: Annotated[
        str | None,
        typer.Option(help="libsvm, onnx or shapes (default: by OUT's ending: .onnx, .json)"),
    ] = None,
    max_bytes: MaxBytes = None,
) -> None:
    """Write a model as ONNX, as LIBSVM text, or its shape functions as JSON."""
    from widemargin.cli import inspecting

    inspecting.export(model, out, to, max_bytes)


@command
def bench(
    out: Annotated[
        Path, typer.Option("-o", "--out", help="Folder of the page, which is index.html")
    ] = Path("bench"),
    quick: Annotated[
        bool, typer.Option("--quick", help="3 splits of each data set (2 minutes), not 20")
    ] = False,
) -> None:
    """Compare our machines with scikit-learn's on the data that comes with it: a table, a page.

    Ctrl-C keeps what is done.
    """
    from widemargin.cli import benching

    benching.bench(out, 3 if quick else 20)


@command
def demo(
    out: Annotated[Path, typer.Argument(help="Picture to draw")] = Path("demo.png"),
) -> None:
    """Train on digits and on a larger problem, print a table, draw a picture."""
    from widemargin.demo import run

    run(out)


def main() -> None:
    output.open_standard_streams()
    try:
        exit_status_on_error(app)(args=with_long_options(sys.argv[1:]), prog_name="widemargin")
    except typer.Exit as ended:
        sys.exit(ended.exit_code)
