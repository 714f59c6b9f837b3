"""Convergence, and the scores of a search, as lines."""

import numpy as np
import pytest

from widemargin import AdditiveSVC, KernelSVC
from widemargin.plots import (
    plot_convergence,
    plot_search,
)
from widemargin.selection import Candidate, Trial

from .helpers import X, Y, curves, drawn


@pytest.mark.parametrize(("small", "n_lines"), [(0, 3), (128, 1)])
def test_convergence_of_kernel_models_is_a_line_per_problem_or_group(small, n_lines, monkeypatch):
    monkeypatch.setattr("widemargin.kernel.problems.SMALL_CLASS", small)
    model = KernelSVC(gamma=1).fit(X, Y)
    axis = plot_convergence(model)
    assert drawn(axis.figure)
    *lines, tol = axis.lines
    assert len(lines) == n_lines
    for line, run in zip(lines, model.history_, strict=True):
        assert line.get_xdata()[-1] <= len(run)
        assert np.all(line.get_ydata() > 0)
        assert line.get_ydata()[-1] < 0.1 * line.get_ydata()[0]
    assert list(tol.get_ydata()) == [1e-3, 1e-3]
    assert axis.get_yscale() == "log"
    assert axis.get_ylim()[0] < 1e-3 < axis.get_ylim()[1]


def test_convergence_of_additive_models(three):
    axis = plot_convergence(three)
    line, _ = axis.lines
    assert len(line.get_xdata()) == len(three.history_[0])
    assert line.get_ydata()[-1] == pytest.approx(three.duality_gap_)


def test_a_gap_of_rounding_errors_does_not_flatten_the_others():
    class Model:
        tol, duality_gap_ = 1e-3, 1e-18
        history_ = ([{"dual": 1.0, "gap": gap} for gap in (1.0, 1e-2, 1e-18)],)

        def _by_gap(self):
            return True

    axis = plot_convergence(Model())
    assert 1e-7 < axis.get_ylim()[0] < 1e-5


def test_convergence_without_a_gap_is_that_of_the_gradient(three):
    model = AdditiveSVC("chi2", approximation="chebyshev", random_state=0).fit(X, Y)
    axis = plot_convergence(model)
    assert axis.get_ylabel() == "projected gradient"
    assert axis.lines[0].get_ydata()[-1] == pytest.approx(model.violation_)
    assert plot_convergence(three).get_ylabel() == "relative duality gap"


def test_convergence_of_an_early_model_is_nothing_to_plot():
    with pytest.raises(ValueError, match="no recorded steps to plot"):
        plot_convergence(KernelSVC(early=1).fit(X, Y))


def test_a_search_is_a_line_per_candidate():
    rbf, chi2 = (
        Candidate({"kernel": "rbf", "gamma": 0.1}, None),
        Candidate({"kernel": "chi2"}, None),
    )
    trials = [
        Trial(chi2, 10.0, 0.99, 0.02, 1.0), Trial(rbf, 1.0, 0.9, 0.1, 1.0),
        Trial(rbf, 100.0, 0.8, 0.1, 1.0), Trial(chi2, 1.0, 0.7, 0.0, 1.0),
    ]  # fmt: skip
    axis = plot_search(trials)
    figure = axis.figure
    assert drawn(figure)
    first, second = curves(axis)
    assert first.get_label() == "kernel chi2"
    assert second.get_label() == "kernel rbf, gamma 0.1"
    np.testing.assert_allclose(first.get_xydata(), [[1, 70], [10, 99]])
    np.testing.assert_allclose(second.get_xydata(), [[1, 90], [100, 80]])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "kernel chi2", "kernel rbf, gamma 0.1"]  # fmt: skip
    assert (axis.get_xscale(), axis.get_xlabel(), axis.get_ylabel()) == ("log", "C", "accuracy, %")
    band = axis.collections[0].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == (70, 100)  # no accuracy is above 100 %


def test_lines_of_one_colour_differ_in_style():
    candidates = [Candidate({"gamma": float(k)}, None) for k in range(12)]
    axis = plot_search([Trial(c, 1.0, 0.5, 0.1, 1.0) for c in candidates])
    looks = {(line.get_color(), line.get_linestyle()) for line in curves(axis)}
    assert len(looks) == 12
