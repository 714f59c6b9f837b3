"""What is printed, and where."""

import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from widemargin import AdditiveSVC, KernelSVC, load, save
from widemargin.cli import output, predict, train
from widemargin.cli.app import app
from widemargin.cli.options import Output
from widemargin.cli.output import print_facts, print_json, print_table, shown
from widemargin.cli.progress import progress_on

from .helpers import (
    IRIS,
    SIGN,
    SPECIES,
    TWO,
    files,
    run,
    run_json,
    table,
    write,
    write_lines,
)

COMMANDS = [command.callback.__name__ for command in app.registered_commands]


# ------------------------------------------------------------------ JSON and tables


def test_numbers_that_json_does_not_have_become_null(two, capsys):
    print_json({"a": float("nan"), "b": [np.inf, 1.5, np.float32(2)], "c": np.arange(2), 3: None})
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": [None, 1.5, 2.0], "c": [0, 1],
                                                   "3": None}  # fmt: skip
    write("a.txt", TWO, SIGN)  # values of at least 0
    # A kernel that is not positive semi-definite has no duality gap.
    found = run_json("train", "a.txt", "-t", "sigmoid", "-g", 3, "-r", -5)
    assert found["duality_gap"] is None


def test_json_is_all_that_is_printed(two):
    commands = [["train", two, "m", "-t", "chi2"], ["train", two, "-v", 2],
                ["predict", two, "m", "out"], ["evaluate", two, "m"], ["info", "m"],
                ["tune", two, "-t", "chi2", "-c", "1"], ["easy", two, two],
                ["store", two, "blocks"]]  # fmt: skip
    for words in commands:
        result = run(*words, "--json")
        assert isinstance(json.loads(result.stdout), dict)
        assert all(line.startswith("warning: ") for line in result.stderr.splitlines())
    with_json = {words[0] for words in commands}
    assert with_json == {
        c.callback.__name__
        for c in app.registered_commands
        if "as_json" in c.callback.__annotations__
    }


def test_labels_in_other_alphabets():
    write_lines("a.txt", *(f"{'да' if s > 0 else 'нет'} 1:{x[2]}" for s, x in
                           zip(SIGN, TWO, strict=True)))  # fmt: skip
    run("train", "a.txt", "m")
    run("predict", "a.txt", "m", "out")
    assert set(Path("out").read_text(encoding="utf-8").split()) == {"да", "нет"}
    assert run_json("evaluate", "a.txt", "m")["classes"][0]["label"] == "да"


def test_facts_and_tables_line_up(capsys):
    print_facts({"a": 1, "long name": 0.123456})
    print_table(["name", "x"], [["a", 1], ["bcd", 1234.5678]], title="title")
    assert capsys.readouterr().out == (
        "a          1\nlong name  0.1235\ntitle\nname     x\na        1\nbcd   1235\n"
    )


def test_tables_on_a_terminal_are_framed_and_take_labels_as_they_are(capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_table(["label", "rows"], [["[red]", 3]])
    printed = capsys.readouterr().out
    assert "[red]" in printed
    assert "┃" in printed


@pytest.mark.parametrize(("quiet", "terminal"), [(True, True), (False, False), (False, True)])
def test_progress_is_for_terminals_and_not_for_the_quiet(monkeypatch, quiet, terminal):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    machine = KernelSVC()
    with progress_on(machine, quiet):
        assert bool(getattr(machine, "_skl_callbacks", None)) == (terminal and not quiet)
    assert not getattr(machine, "_skl_callbacks", None)


@pytest.mark.parametrize("words", [["train"], ["tune", "-t", "rbf", "-c", "1"]])
@pytest.mark.parametrize("quiet", [True, False])
def test_whoever_trains_shows_progress(monkeypatch, two, words, quiet):
    seen = []
    real = train.progress_on
    monkeypatch.setattr(
        train,
        "progress_on",
        lambda machine, q, *also: seen.append((machine, q)) or real(machine, q, *also),
    )
    run(*words, two, *["-q"] * quiet)
    ((machine, was_quiet),) = seen
    assert was_quiet == quiet
    assert machine.classes_.tolist() == [-1, 1]  # the very machine that was trained


def test_values_are_shown_with_four_digits():
    assert [shown(v) for v in (1, 1.0, 1 / 3, 1e-9, "x", np.float64(2.5))] == [
        "1", "1", "0.3333", "1e-09", "x", "2.5"]  # fmt: skip


def test_errors_of_the_system_name_the_file():
    assert output._message(FileNotFoundError(2, "No such file", "x.txt")) == "x.txt: No such file."
    assert output._message(OSError(5, "Input/output error")) == "file: Input/output error."
    assert output._message(OSError(28, "No space left")) == "standard output: No space left."
    assert output._message(MemoryError()) == "out of memory."


# ------------------------------------------------------------------ help


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_of_every_command(command, option):
    result = run(command, option)
    assert f"Usage: widemargin {command} " in result.stdout
    assert result.stderr == ""


def test_help_lists_the_commands():
    listed = re.findall(r"^│ (\w+) ", run("--help").stdout, flags=re.MULTILINE)
    assert [name for name in listed if name in COMMANDS] == COMMANDS
    assert len(COMMANDS) == 12


def test_there_is_a_version():
    from importlib.metadata import version

    assert run("--version").stdout == f"widemargin {version('widemargin')}\n"


def test_an_interrupted_write_leaves_the_old_model(two, monkeypatch):
    run("train", two, "m")
    before = Path("m").read_bytes()

    def interrupt(*args, **folders):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    run("train", two, "m", "-c", 5, status=130)
    assert Path("m").read_bytes() == before
    assert files() == {"two.txt", "m"}
    assert load("m").C == 1


def test_predictions_are_written_whole_or_not_at_all(two, monkeypatch):
    run("train", two, "m")
    Path("out").write_text("old")
    monkeypatch.setattr(predict, "cell", None)
    with pytest.raises(TypeError):
        predict.predict(Path(two), Path("m"), Path("out"), "labels", None, _source(), Output())
    assert Path("out").read_text() == "old"
    assert files() == {"two.txt", "m", "out"}


def _source():
    from widemargin.cli.options import Source

    return Source(jobs=1)


def test_rows_of_output_are_many_chunks(monkeypatch):
    write("a.txt", IRIS, SPECIES)
    run("train", "a.txt", "m")
    expected = run("predict", "a.txt", "m").stdout
    monkeypatch.setattr(predict, "_CHUNK", 7)
    assert run("predict", "a.txt", "m").stdout == expected


# ------------------------------------------------------------------ control characters


def test_names_from_files_do_not_command_the_terminal():
    """An escape sequence could clear it, or write what looks like a result."""
    clear = "\x1b[2J"
    frame = pd.DataFrame({f"{clear}age": [1.0, 2.0, 3.0, 4.0], "size": [4.0, 1.0, 3.0, 2.0]})
    model = AdditiveSVC(random_state=0).fit(frame, [f"{clear}no", "yes"] * 2)
    save(model, "m", notes={"command": f"{clear}train"})
    table("a.csv", {f"{clear}age": [1, 2], "other": [3, 4], "label": [f"{clear}no", "yes"]})
    missing = run("evaluate", "a.csv", "m", status=1).output
    dropped = ["train", "a.csv", "n", "-t", "linear", "--drop", f"{clear}age"]
    told = [run(*words).output for words in (["info", "m"], dropped, ["evaluate", "a.csv", "n"])]
    assert not any("\x1b" in text for text in [missing, *told])
    assert all(r"\x1b[2J" in text for text in told)


def test_the_header_of_contributions_is_one_line_with_a_cell_for_each_column():
    frame = pd.DataFrame({"a\tb\nc": TWO[:, 0], "d": TWO[:, 1]})
    model = AdditiveSVC(random_state=0).fit(frame, SIGN)
    save(model, "m")
    np.save("X.npy", TWO[:, :2])
    first = run("predict", "X.npy", "m", "--output", "contributions").stdout.splitlines()[0]
    assert first.split("\t") == [r"a\tb\nc", "d", "intercept"]
