"""What goes wrong is said in one line, with an exit status, and leaves nothing behind."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from widemargin import AdditiveSVC
from widemargin.cli import train

from .helpers import (
    files,
    refused,
    run,
    write_lines,
)

# ------------------------------------------------------------------ status 1: bad data


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("1 1:2 2:x", "line 3, column 9: 'x' is not a finite number"),
        ("1 1:2 1:3", "line 3, column 7: '1:3' repeats a feature index"),
        ("1 2:1 1:3", "line 3, column 7: '1:3' comes after a larger"),
        ("1 nonsense", "line 3, column 3: 'nonsense' is not a feature"),
        ("1 1:nan", "line 3, column 5: 'nan' is not a finite number"),
    ],
)
def test_a_malformed_line_is_named_by_line_and_column(line, place):
    write_lines("bad.txt", "1 1:1", "-1 1:2", line)
    for command in ("train", "tune", "easy", "scale"):
        message = refused(command, "bad.txt", status=1)
        assert message.startswith("bad.txt, ")
        assert place in message
    assert files() == {"bad.txt"}


def test_a_missing_label_of_a_table_is_named_by_row_and_column():
    write_lines("bad.csv", "age,label", "1,a", "2,", "3,a")
    message = refused("train", "bad.csv", status=1)
    assert "row 2, column 'label'" in message


def test_files_that_are_not_there(two):
    run("train", two, "m")
    for words in (
        ["train", "none"], ["tune", "none"], ["easy", "none"], ["easy", two, "none"],
        ["scale", "none"], ["scale", two, "-r", "none"], ["predict", "none", "m"],
        ["predict", two, "none"], ["evaluate", two, "none"], ["info", "none"], ["plot", "none"],
        ["plot", "m", "--data", "none"], ["export", "none", "x"],
    ):  # fmt: skip
        if words[:2] == ["plot", "m"]:
            run("train", two, "m", "-t", "chi2")
            words += ["--what", "importance"]
        message = refused(*words, status=1)
        assert "none" in message
        assert "o such file" in message or "There is no file" in message
    assert files() == {"two.txt", "m"}


def test_a_test_that_is_not_there_is_missed_before_training(two, monkeypatch):
    monkeypatch.setattr(train, "tune", None)
    refused("easy", two, "none", status=1)
    assert files() == {"two.txt"}


def damage(content: bytes, how: str) -> bytes:
    if how == "cut":
        return content[: len(content) // 2]
    if how == "text":
        return b"svm_type c_svc\n"
    if how == "empty":
        return b""
    return content.replace(b"KernelSVC", b"KernelSVD")


@pytest.mark.parametrize("how", ["cut", "text", "empty", "kind"])
def test_a_damaged_model_is_refused(two, how):
    run("train", two, "m")
    Path("bad").write_bytes(damage(Path("m").read_bytes(), how))
    commands = [["predict", two, "bad"], ["evaluate", two, "bad"], ["info", "bad"],
                ["plot", "bad"], ["export", "bad", "x"], ["scale", two, "-r", "bad"]]  # fmt: skip
    for words in commands:
        assert "bad" in refused(*words, status=1)
    assert files() == {"two.txt", "m", "bad"}


def test_one_class_is_too_few():
    write_lines("a.txt", "1 1:1", "1 1:2")
    assert "at least 2 classes" in refused("train", "a.txt", status=1)


def test_tuning_on_nothing_that_works_fails():
    write_lines("a.txt", "1 1:1", "1 1:2", "1 1:3")
    result = run("tune", "a.txt", "-t", "rbf,chi2", "-v", 2, status=1)
    assert result.stderr.count("is left out") == 2
    assert "error: No candidate could be trained" in result.stderr


def test_too_few_rows_to_compare_on_are_said_once():
    write_lines("a.txt", "1 1:1", "-1 1:2")
    said = "--folds 2 are too many: the largest class has 1 row."
    for words in (["train", "a.txt", "-v", 2], ["tune", "a.txt", "-v", 2]):
        assert refused(*words, status=1) == said
    result = run("easy", "a.txt", status=1)
    assert "is left out" not in result.stderr
    assert "error: Too few rows to choose by: the largest class has 1" in result.stderr


def test_folders_are_no_files(two):
    Path("folder").mkdir()
    run("train", two, "m")
    for words in (["train", "folder"], ["train", two, "folder"], ["info", "folder"],
                  ["predict", two, "m", "folder"]):  # fmt: skip
        assert "folder" in refused(*words, status=1)


@pytest.mark.parametrize("path", ["none/m", "/proc/m"])
def test_a_model_in_a_folder_that_cannot_be_written(two, path):
    for command in ("train", "tune"):
        assert refused(command, two, path, "-q", status=1).startswith(path)
    assert files() == {"two.txt"}


def test_a_folder_that_is_not_there_is_missed_before_the_data_is_read():
    assert refused("train", "no data", "none/m", status=1) == "none/m: No such file or directory."
    assert refused("easy", "no data", "--model", "none/m", status=1).startswith("none/m")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk(two):
    run("train", two, "m")
    before = files()
    for words in (["predict", two, "m", "/dev/full"], ["scale", two, "/dev/full"]):
        assert refused(*words, status=1) == "/dev/full: No space left on device."
    for words in (["train", two, "/dev/full"], ["export", "m", "/dev/full"],
                  ["plot", "m", "/dev/full"]):  # fmt: skip
        refused(*words, status=1)  # a device is not replaced by a file
    assert files() == before
    assert not Path("/dev/full").is_file()


def test_a_disk_that_fills_up_while_a_file_is_written_is_named_by_the_file(two, monkeypatch):
    run("train", two, "m")

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    for words in (["predict", two, "m", "out"], ["train", two, "out"], ["plot", "m", "out.png"]):
        assert refused(*words, status=1).endswith(f"{words[-1]}: No space left on device.")


@pytest.mark.parametrize("content", ["", "\n \n", "\ufeff"])
@pytest.mark.parametrize("words", [[], ["--label", "x"]])
def test_an_empty_file_is_said_to_be_empty(content, words):
    Path("a.csv").write_text(content, encoding="utf-8")
    assert refused("train", "a.csv", *words, status=1) == "a.csv: the file has no rows."


@pytest.mark.parametrize("content", ["", "\n\n", "# a comment\n"])
@pytest.mark.parametrize("words", [["predict"], ["predict", "--json"], ["evaluate"]])
def test_nothing_to_predict_is_said_to_be_empty(two, content, words):
    run("train", two, "m")
    Path("a.txt").write_text(content)
    Path("out").write_text("old")
    command, *options = words
    out = ["out"] if command == "predict" else []
    said = refused(command, "a.txt", "m", *out, *options, status=1)
    assert said.startswith("a.txt: the file has no rows")
    assert Path("out").read_text() == "old"


def test_errors_speak_of_options():
    write_lines("a.csv", "a,b,c", "1,2,3", "4,5,6")
    said = refused("train", "a.csv", status=1)
    assert "name one with --label, by name or position, or use --label none" in said
    write_lines("b.csv", "a,label", "1,", "4,x")
    assert "or read no labels with --label none" in refused("train", "b.csv", status=1)
    np.save("a.npy", np.eye(3))
    assert "--label 7 is not a column" in refused("train", "a.npy", "--label", "7", status=1)
    assert "--split train has no meaning" in refused("train", "a.csv", "--split", "train", status=1)


def test_errors_of_export_speak_of_options(iris):
    run("train", iris, "m", "--multi-class", "ovr")
    said = refused("export", "m", "out", status=1)
    assert "Fit with train --multi-class ovo, or export to ONNX." in said
    run("train", iris, "m", "-t", "laplacian")
    assert "--kernel laplacian is not one of LIBSVM's" in refused("export", "m", "out", status=1)


# ------------------------------------------------------------------ status 2, tracebacks, warnings


@pytest.mark.parametrize("words", [[], ["nothing"], ["train"], ["--traceback"], ["info"], ["-x"]])
def test_misuse(words):
    result = run(*words, status=2)
    assert "Usage: " in result.output


def test_tracebacks_are_shown_where_wanted():
    plain = run("train", "none", status=1).stderr
    assert "Traceback" not in plain
    long = run("--traceback", "train", "none", status=1).stderr
    assert "Traceback (most recent call last)" in long
    assert "FileNotFoundError" in long
    assert long.endswith(plain)
    assert run("train", "none", status=1).stderr == plain  # and not from then on


def test_mistakes_of_the_program_are_not_hidden(monkeypatch):
    def broken(*args):
        raise KeyError("a mistake")

    monkeypatch.setattr(train, "train", broken)
    with pytest.raises(KeyError, match="a mistake"):
        run("train", "a.txt")


def test_warnings_are_one_line_on_standard_error(two):
    with pytest.warns(ConvergenceWarning) as caught:
        load_and_refit(two)
    result = run("train", two, "m", "--max-iter", 1, "-e", 1e-9, "-t", "chi2")
    (line,) = result.stderr.splitlines()
    said = str(caught[0].message)
    for name, option in ((" max_iter,", " --max-iter,"), (" C,", " --C,"), (" tol.", " --tol.")):
        said = said.replace(name, option)
    assert line == f"warning: {said}"
    assert "model " in result.stdout


def load_and_refit(data) -> None:
    from widemargin import read

    found = read(data)
    AdditiveSVC("chi2", max_iter=1, tol=1e-9, random_state=0).fit(found.X, found.y)


def test_the_sigmoid_warns_once(two):
    assert run("train", two, "-t", "sigmoid", "-g", "1e-3").stderr.count("warning: ") == 1


def test_interruption(two, monkeypatch):
    def interrupt(*args, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(train, "save_model", interrupt)
    result = run("train", two, status=130)
    assert (result.stdout, result.stderr) == ("", "interrupted.\n")
    assert files() == {"two.txt"}
