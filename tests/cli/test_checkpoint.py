"""train --checkpoint: parts of a fit on disk, and what is said of them."""

import signal
from pathlib import Path

import numpy as np
import pytest

from widemargin import load
from widemargin.cli.progress import Interrupt, stopping_on_ctrl_c

from .helpers import refused, run

WORDS = ["--preset", "dcsvm"]


def test_a_fit_leaves_its_parts_and_goes_on_from_them(iris):
    first = run("train", iris, "m", "--checkpoint", "parts", *WORDS)
    assert "going on" not in first.stderr
    assert Path("parts/fit.json").exists()
    again = run("train", iris, "n", "--checkpoint", "parts", *WORDS)
    assert again.stderr.startswith("continuing from parts: ")
    assert "clusters solved, 1 whole problem solved" in again.stderr
    np.testing.assert_array_equal(load("n").model_.coef.values, load("m").model_.coef.values)
    assert run("train", iris, "n", "--checkpoint", "parts", "-q", *WORDS).stderr == ""


def test_another_fit_is_refused_in_the_words_of_options(iris):
    run("train", iris, "m", "--checkpoint", "parts", *WORDS)
    said = run("train", iris, "m", "--checkpoint", "parts", "-c", 7, *WORDS, status=1).stderr
    assert "error: --checkpoint parts belongs to a fit with other parameters" in said
    Path("other").mkdir()
    Path("other/notes.txt").write_text("mine")
    said = refused("train", iris, "m", "--checkpoint", "other", status=1)
    assert said.startswith("--checkpoint other is a folder with other files in it")


def test_what_has_no_checkpoint_refuses_it(iris):
    said = refused("train", iris, "--checkpoint", "parts", "-t", "chi2")
    assert said == "--checkpoint cannot be combined with --kernel chi2."
    assert "with --folds" in refused("train", iris, "--checkpoint", "parts", "-v", 3)


def test_probabilities_leave_the_checkpoint_to_the_fit_itself(iris):
    run("train", iris, "m", "--checkpoint", "parts", "--probability", *WORDS)
    assert load("m").predict_proba([[5.0, 3.0, 1.0, 0.2]]).shape == (1, 3)


@pytest.mark.parametrize("kernel", ["rbf", "chi2"])
def test_a_fit_that_is_interrupted_leaves_a_model(iris, kernel, monkeypatch):
    """Ctrl-C itself is tested with processes."""
    monkeypatch.setattr(Interrupt, "on_fit_task_end", _interrupted)
    result = run("train", iris, "m", "-t", kernel, "-e", "1e-9", "--probability", status=130)
    last = result.stderr.splitlines()[-1]
    assert last == "interrupted: m is the model of the unfinished fit, without probabilities."
    assert load("m").duality_gap_ > 1e-9
    assert not hasattr(load("m"), "predict_proba")


@pytest.mark.parametrize(("kernel", "keep"), [("rbf", "values"), ("chi2", "codes")])
def test_so_does_one_from_disk(iris, kernel, keep, monkeypatch):
    run("store", iris, "s", "--keep", keep)
    monkeypatch.setattr(Interrupt, "on_fit_task_end", _interrupted)
    result = run("train", "s", "m", "-t", kernel, "-e", "1e-9", status=130)
    last = result.stderr.splitlines()[-1]
    assert last == "interrupted: m is the model of the unfinished fit."
    assert load("m").duality_gap_ > 1e-9


def _interrupted(self, estimator, context):
    self.asked = True
    return True


def test_the_first_ctrl_c_asks_and_the_second_ends(capsys):
    before = signal.getsignal(signal.SIGINT)
    with stopping_on_ctrl_c() as interrupt:
        assert not interrupt.asked
        signal.raise_signal(signal.SIGINT)
        assert interrupt.asked
        assert capsys.readouterr().err == "stopping; Ctrl-C again ends without a model\n"
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_an_end_without_a_model_says_what_the_folder_has(iris, monkeypatch):
    run("train", iris, "m", "--checkpoint", "parts", *WORDS)

    def end(self, estimator, context):
        raise KeyboardInterrupt

    monkeypatch.setattr(Interrupt, "on_fit_task_end", end)
    said = run("train", iris, "n", "--checkpoint", "parts", *WORDS, status=130).stderr
    *_, kept, last = said.splitlines()
    assert kept.startswith("parts has ")
    assert kept.endswith("1 whole problem solved: the same command continues from it")
    assert last == "interrupted."
    assert not Path("n").exists()
