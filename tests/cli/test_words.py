"""An option that a message names is one that can be typed: of this command, or after its own."""

import inspect
import pickle

import numpy as np
import pytest

from widemargin import AdditiveSVC, BlockStore, KernelSVC, read
from widemargin.cli.words import Terminal
from widemargin.errors import (
    CONVERGING,
    Message,
    Parameter,
    ParameterError,
    not_finite,
    scaling_advice,
)

from .helpers import PROGRAM, options_of, refused, run, unknown_options

COMMANDS = [*PROGRAM.commands]
LONG = {
    name: {word.removeprefix("--") for word in options_of(name) if word.startswith("--")}
    for name in COMMANDS
}
PARAMETERS = sorted(
    {
        name
        for function in (AdditiveSVC, KernelSVC, read, BlockStore.build)
        for name in inspect.signature(function).parameters
    }
    | {"folds", "power", "preset", "probability", "scale", "scoring", "drop", "na"}
)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("value", [[], [True], [2.0], [["a", "b"]], [False]])
def test_every_parameter_in_every_command(command, value):
    terminal = Terminal(command, LONG)
    said = [terminal.option(name, *value) for name in PARAMETERS]
    advice = [CONVERGING, not_finite(np.nan, 0, "a"), scaling_advice(sparse=True)]
    said += map(terminal.spelled, advice)
    for text in said:
        assert unknown_options([command], f"error: {text}") == []
        assert "--" in text or "=" in text


def test_an_error_is_spelled_where_it_is_shown():
    terminal = Terminal("train", LONG)
    error = ParameterError("C", -1, "must be above {low}; see {tol}.", low=0, tol=Parameter("tol"))
    assert (error.name, error.value) == ("C", -1)
    assert str(error) == "C=-1 must be above 0; see tol=."
    for same in (error, pickle.loads(pickle.dumps(error))):
        assert terminal.said(same) == "--C -1 must be above 0; see --tol."
    wrapped = ValueError(Message("{file}: {error}", file="{C}.csv", error=error))
    assert str(wrapped) == "{C}.csv: C=-1 must be above 0; see tol=."
    assert terminal.said(wrapped) == "{C}.csv: --C -1 must be above 0; see --tol."
    assert terminal.said(ValueError("plain {text}")) == "plain {text}"


def test_what_the_check_of_messages_finds():
    assert unknown_options(["tune"], "error: --kernel a, -t b and --C 1") == ["--kernel", "--C"]
    assert unknown_options(["tune"], "error: train --kernel a\nnot --kernel") == []
    assert unknown_options(["tune"], "warning: tune --kernel a") == ["--kernel"]
    assert unknown_options(["easy"], "error: a-b, 1 - 2, -1, x--tol") == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tune", "--kernels", "rbv"], "--kernels rbv: not one of "),
        (["tune", "--Cs", "-1"], "--Cs -1.0 is out of range"),
        (["tune", "-t", "precomputed", "--scale", "minmax"], "with --kernels precomputed."),
        (["tune", "-t", "rbf", "--gammas", "-1"], "--gammas -1.0 is out of range"),
        (["scale", "--method", "mean"], "--method mean: not one of none, "),
        (["easy", "--scoring", "neg_log_loss"], "that have them (train --probability)."),
    ],
)
def test_commands_whose_options_have_names_of_their_own(two, words, said):
    command, *options = words
    assert said in refused(command, two, *options)


def test_gaps_in_an_array_that_is_tuned():
    gap = np.where(np.arange(20) == 3, np.nan, np.arange(20.0))[:, None]
    np.savez("a.npz", X=gap, y=np.arange(20) % 2)
    said = run("tune", "a.npz", "-t", "rbf,chi2").stderr
    assert "kernel rbf is left out: Input X contains NaN at row 3" in said
    assert "with an additive kernel, such as --kernels intersection, and without --scale." in said
    said = run("tune", "a.npz", "-t", "chi2", "--Cs", "1", "--max-iter", "1", "-e", "1e-9").output
    assert "Increase --max-iter, decrease --Cs, or accept a larger --tol." in said
