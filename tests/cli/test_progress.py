"""Progress tells what is known: gaps on a logarithmic scale, times of fixed numbers of tasks."""

import math
import signal
import sys
from contextlib import suppress

import numpy as np
import pytest

from widemargin import AdditiveSVC, KernelSVC, load, search, selection
from widemargin.calibration import uncalibrated
from widemargin.cli import choosing, progress
from widemargin.cli.progress import FitBar, Line, Part, SearchBar, TimeBar, clock, way
from widemargin.persistence import read_header
from widemargin.selection import cross_validated

from .helpers import DIGIT, DIGITS, files, run, run_json


class Paper:
    """A line that keeps what is shown on it."""

    def __init__(self):
        self.views = []

    def show(self, view):
        self.views.append(view)


class Watched(FitBar):
    """Notes how far each part is after every call."""

    def __init__(self, line):
        super().__init__(line)
        self.seen = []

    def on_fit_task_end(self, estimator, context):
        super().on_fit_task_end(estimator, context)
        self.seen.append((self._part.name, self._part.way, self._part.said(self._part.started + 1)))


# ------------------------------------------------------------------ gaps


def test_the_way_is_that_of_logarithms():
    assert [way(g, 1.0, 1e-4) for g in (1, 1e-2, 1e-4)] == pytest.approx([0, 0.5, 1])
    assert way(10.0, 100.0, 0.1) == pytest.approx(1 / 3)
    assert way(5.0, 1.0, 1e-3) == 0  # further than at the beginning
    assert way(math.nan, 1.0, 1e-3) == way(math.inf, 1.0, 1e-3) == 0
    assert way(0.0, 1.0, 1e-3) == 1


@pytest.mark.parametrize(
    ("machine", "names"),
    [
        (AdditiveSVC("chi2", tol=1e-5, random_state=0), ["AdditiveSVC"]),
        (AdditiveSVC("chi2", approximation="chebyshev", tol=1e-3), ["AdditiveSVC"]),
        (KernelSVC(tol=1e-6, C=100), ["KernelSVC, all rows"]),
        (KernelSVC(tol=1e-6, C=100, levels=1), ["KernelSVC, level 1", "KernelSVC, all rows"]),
    ],
)
def test_progress_of_a_fit_ascends_with_its_gap_to_the_end(machine, names, monkeypatch):
    monkeypatch.setattr("widemargin.kernel.problems.SMALL_CLASS", 0)  # a group is done at once
    paper = Paper()
    bar = Watched(paper)
    machine.set_callbacks(bar).fit(DIGITS, DIGIT)
    assert [view.name for view in paper.views[1:]] == names
    for name in names:
        own = [how_far for part, how_far, _ in bar.seen if part == name]
        assert own == sorted(own)
        assert own[-1] == 1
        assert len({round(x, 6) for x in own}) > 2
    assert any(f"to reach {machine.tol:g}" in said for *_, said in bar.seen)
    machine.set_callbacks()


def test_the_bar_is_far_from_its_end_while_the_gap_is_large():
    """Whatever the share of max_iter that is done: what stood at 67 % for a minute."""
    bar = Watched(Paper())
    machine = AdditiveSVC("chi2", C=1e4, tol=1e-4, max_iter=30, random_state=0)
    with pytest.warns(UserWarning, match="stopped after 30 sweeps"):
        machine.set_callbacks(bar).fit(DIGITS, DIGIT)
    *_, (_, how_far, said), _, _ = bar.seen  # the last epoch, before the ends
    gap = machine.history_[0][-1]["estimate"]
    first = machine.history_[0][0]["estimate"]
    assert how_far == pytest.approx(max(way(g["estimate"], first, 1e-4) for g in
                                        machine.history_[0]))  # fmt: skip
    assert how_far < 0.7
    assert f"gap {gap:.2g}, to reach 0.0001" in said
    assert "left" not in said


# ------------------------------------------------------------------ times


def test_a_time_left_is_told_of_a_fixed_number_of_tasks_only():
    part = Part("a", "cluster", 16, 1e-3, started=100.0)
    assert part.said(107) == "0 of 16 clusters, 7 s so far"
    for k in range(4):
        part.begin(k)
        part.tell(k, 0.5)
        part.end(k)
    assert part.said(108) == "4 of 16 clusters, about 24 s left"
    assert part.said(120) == "4 of 16 clusters, about 1:00 min left"  # and it does not stand still
    part.begin(4)
    part.tell(4, 0.25)
    assert part.said(108) == "4 of 16 clusters, gap 0.25, to reach 0.001, about 24 s left"
    alone = Part("b", "problem", 1, 1e-3, started=100.0)
    alone.begin(0)
    alone.tell(0, 0.125)
    assert alone.said(170) == "gap 0.12, to reach 0.001, 1:10 min so far"
    assert Part("c", "batch", 2, 1e-3, started=0.0).said(0.0) == "0 of 2 batches, 0 s so far"


def test_a_search_is_as_far_as_its_folds(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    bar = SearchBar(Paper(), 12)
    bar.begin("first", 0)
    for k in range(1, 4):
        now[0] = float(k)
        bar.fold()
    assert (bar.way, bar.said(3)) == (0.25, "3 of 12 folds, 3 s so far")
    bar.begin("second", 6)  # three folds were left out
    for k in range(4):
        now[0] = 3.0 + 10 * (k + 1)
        bar.fold()
    assert (bar.name, bar.way) == ("second", 10 / 12)
    assert bar.said(43) == "10 of 12 folds, about 20 s left"  # by the pace of the last ones


def test_times_in_words():
    assert [clock(s) for s in (0.2, 59.4, 60, 3599, 7260)] == [
        "0 s", "59 s", "1:00 min", "59:59 min", "2:01 h"]  # fmt: skip


def test_a_line_is_drawn_and_gone(monkeypatch, capsys):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    with Line() as line:
        line.show(Part("AdditiveSVC", "batch", 1, 1e-3))
    printed = capsys.readouterr()
    assert "AdditiveSVC" in printed.err
    assert printed.out == ""


# ------------------------------------------------------------------ Ctrl-C in a search

WORDS = ["-t", "chi2,intersection,rbf", "-c", "1,10", "-v", 3]


@pytest.fixture
def interrupted(monkeypatch):
    """Ctrl-C while the third candidate is tried."""
    seen = []

    def tried(candidate, *args, **more):
        seen.append(candidate)
        if len(seen) == 3:
            signal.raise_signal(signal.SIGINT)
        return cross_validated(candidate, *args, **more)

    for module in (selection, search):
        monkeypatch.setattr(module, "cross_validated", tried)
    return seen


def test_ctrl_c_in_a_search_keeps_the_table_and_the_best_model(iris, interrupted):
    result = run("tune", iris, "m", *WORDS, status=130)
    assert "kernel chi2: " in result.stderr
    assert "interrupted: kernel " in result.stderr
    assert "is the best so far" in result.stderr
    header, *rows = result.stdout.splitlines()
    assert header.startswith("machine")
    assert sum(row.startswith("kernel ") for row in rows) == 4
    assert "best so far: kernel" in rows[-1]
    assert load("m").kernel in ("chi2", "intersection")
    assert load("m").fit_record_.n_rows == 150


def test_ctrl_c_in_easy_keeps_the_best_model_too(iris, interrupted):
    result = run("easy", iris, iris, "--model", "m", status=130)
    assert "best of 2 " in result.stdout
    assert "accuracy" in result.stdout
    assert uncalibrated(load("m")).kernel in ("linear", "chi2")


@pytest.mark.parametrize("error", [None, ValueError("a buffer"), SystemError("a result")])
@pytest.mark.parametrize("command", ["tune", "easy"])
def test_ctrl_c_that_is_lost_on_its_way_is_remembered(iris, monkeypatch, command, error):
    """NumPy, or whatever else has the word when it comes, drops it or makes another error of it."""
    seen = []

    def tried(candidate, *args, **more):
        seen.append(candidate)
        if len(seen) == 3:
            with suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
            if error is not None:
                raise error
        return cross_validated(candidate, *args, **more)

    for module in (selection, search):
        monkeypatch.setattr(module, "cross_validated", tried)
    more = ["--model", "m"] if command == "easy" else ["m", *WORDS]
    result = run(command, iris, *more, status=130)
    assert len(seen) == 3
    assert "is the best so far" in result.stderr
    assert read_header("m").record.n_rows == 150


@pytest.mark.parametrize("command", ["tune", "easy"])
def test_ctrl_c_in_the_last_fit_keeps_it_as_far_as_it_came(iris, monkeypatch, command):
    for module, name in ((choosing, "fit_with_progress"), (search.Search, "rows_to_train")):
        own = getattr(module, name)

        def interrupted(*args, own=own, **more):
            signal.raise_signal(signal.SIGINT)
            return own(*args, **more)

        monkeypatch.setattr(module, name, interrupted)
    more = ["--model", "m"] if command == "easy" else ["m", *WORDS]
    result = run(command, iris, *more, status=130)
    assert "stopping; Ctrl-C again ends without a model" in result.stderr
    assert "trained on all 150 rows as far as it came: m" in result.stdout
    assert read_header("m").record.n_rows == 150


def test_json_says_that_a_search_was_interrupted(iris, interrupted):
    import json

    result = run("tune", iris, "m", *WORDS, "--json", status=130)
    found = json.loads(result.stdout)
    assert found["interrupted"] is True
    assert len(found["trials"]) == 4
    interrupted.clear()
    interrupted += [None] * 3
    assert "interrupted" not in run_json("tune", iris, "m", *WORDS)


def test_ctrl_c_before_anything_is_found_keeps_nothing(iris, monkeypatch):
    def interrupt(*args, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(choosing, "tune", interrupt)
    result = run("tune", iris, "m", *WORDS, status=130)
    assert (result.stdout, result.stderr) == ("", "interrupted.\n")
    assert files() == {"iris.txt"}


def test_ctrl_c_again_keeps_the_table(iris, interrupted, monkeypatch):
    def interrupt(*args, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(choosing, "fit_with_progress", interrupt)
    result = run("tune", iris, "m", *WORDS, status=130)
    assert result.stdout.startswith("machine")
    assert result.stderr.endswith("interrupted.\n")
    assert files() == {"iris.txt"}


def test_trials_are_told_as_they_end(iris):
    lines = run("tune", iris, "m", *WORDS).stderr.splitlines()
    assert [text.partition(":")[0] for text in lines] == [
        "kernel chi2", "kernel intersection", "kernel rbf"]  # fmt: skip
    assert all("at C 1, " in text and "at C 10; " in text for text in lines)


def test_nothing_is_drawn_where_nobody_looks(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    with progress.line(quiet=False) as line:
        line.show(Part("a", "batch", 1, np.nan))
    assert not isinstance(line, Line)


def test_the_time_of_a_search_that_ends_by_a_deadline(monkeypatch):
    monkeypatch.setattr(progress.time, "monotonic", lambda: 100.0)
    bar = TimeBar(Paper(), "comparing", 300.0)
    assert (bar.name, bar.way, bar.said(100.0)) == ("comparing", 0.0, "0 s of 5:00 min at most")
    monkeypatch.setattr(progress.time, "monotonic", lambda: 175.0)
    assert (bar.way, bar.said(175.0)) == (0.25, "1:15 min of 5:00 min at most")
    monkeypatch.setattr(progress.time, "monotonic", lambda: 900.0)
    assert bar.way == 1.0
