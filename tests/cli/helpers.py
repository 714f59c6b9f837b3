"""The command line within this process, and small files for it."""

import io
import json
import re
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from PIL import Image
from sklearn.datasets import dump_svmlight_file, load_digits, load_iris
from sklearn.pipeline import Pipeline
from typer.main import get_command

from widemargin import load
from widemargin.cli.app import app
from widemargin.cli.words import LIBSVM_SWITCHES, with_long_options

DIGITS, DIGIT = (array[:500] for array in load_digits(return_X_y=True))
IRIS, SPECIES = load_iris(return_X_y=True)
SPARSE = sp.csr_array(IRIS)  # as text of it is read
PROGRAM = get_command(app)  # once: it takes longer than most commands
TWO, SIGN = IRIS[50:], np.where(SPECIES[50:] == 1, -1, 1)  # the two that are hard to tell apart


class Result(NamedTuple):
    stdout: str
    stderr: str

    @property
    def output(self) -> str:
        return self.stdout + self.stderr


def run(*words, status: int = 0) -> Result:
    """``widemargin WORDS``, which must end with this status."""
    arguments = with_long_options([str(word) for word in words])
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as stop:
        PROGRAM(arguments, prog_name="widemargin")
    result = Result(out.getvalue(), err.getvalue())
    assert unknown_options(arguments, result.stderr) == [], result.stderr
    assert stop.value.code == status, result.output
    return result


def options_of(command: str) -> set[str]:
    """As they are written, the short ones too."""
    own = PROGRAM.commands[command]
    known = [
        option for one in getattr(own, "commands", {"": own}).values() for option in one.params
    ]
    found = {word for option in known for word in (*option.opts, *option.secondary_opts)}
    return found | {word for word, long in LIBSVM_SWITCHES.items() if f"--{long}" in found}


def unknown_options(arguments: list[str], said: str) -> list[str]:
    """Options in errors and warnings that neither the command has nor one that is named with it."""
    running = next((word for word in arguments if word in PROGRAM.commands), None)
    told = re.findall(r"^(?:error|warning): (.*)", said, re.MULTILINE)
    named = re.findall(r"(?:(\w+) )?(?<![\w-])(--[a-zA-Z][\w-]*|-[a-zA-Z]\b)", "\n".join(told))
    return [
        option
        for before, option in named
        if option not in options_of(before if before in PROGRAM.commands else running)
    ]


def run_json(*words):
    """What ``widemargin WORDS --json`` prints, which must be strict JSON."""

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(run(*words, "--json").stdout, parse_constant=refuse)


def trained(*words):
    """The machine of a model that train wrote, and its scaler."""
    run("train", *words, "m", "-q")
    model = load("m")
    return (model[-1], model[0]) if isinstance(model, Pipeline) else (model, None)


def refused(*words, status: int = 2) -> str:
    """The one line with which a command is refused."""
    result = run(*words, status=status)
    assert result.stdout == ""
    *before, line = result.stderr.splitlines()
    assert all(said.startswith("reading ") and words[0] == "easy" for said in before)
    assert len(before) <= 1
    assert line.startswith("error: ")
    return line.removeprefix("error: ")


def write(name: str, X, y, *, zero_based: bool = False) -> Path:
    """A file of svmlight text, written by scikit-learn."""
    dump_svmlight_file(X, y, name, zero_based=zero_based)
    return Path(name)


def write_lines(name: str, *lines: str) -> Path:
    Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return Path(name)


def table(name: str, columns: dict, delimiter: str = ",") -> Path:
    """A file of named columns."""
    rows = zip(*columns.values(), strict=True)
    return write_lines(name, *(delimiter.join(map(str, row)) for row in [columns, *rows]))


def read_lines(name) -> list[str]:
    return Path(name).read_text(encoding="utf-8").splitlines()


def files() -> set[str]:
    """Everything in the current folder, hidden files too."""
    return {path.name for path in Path().iterdir()}


def decisions(data, model) -> np.ndarray:
    """What ``predict --output decision`` writes, less its header."""
    run("predict", data, model, "decisions.txt", "--output", "decision")
    return np.loadtxt("decisions.txt", skiprows=1)


def is_picture(name) -> bool:
    with Image.open(name) as image:
        image.load()
        return min(image.size) > 100 and len(set(image.convert("L").tobytes())) > 10
