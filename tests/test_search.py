"""What a search tries, how its grids go on, and that it ends in time."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler

from widemargin import AdditiveSVC, KernelSVC, TableEncoder, pace, search
from widemargin.candidates import EARLY_FROM, is_rbf
from widemargin.pace import TYPICAL, Deadline, Pace
from widemargin.preparation import NormalScaler
from widemargin.progress import FitStopper
from widemargin.search import FEW, MOST_ROWS, ROWS, Search
from widemargin.selection import Candidate, Sample, Trial

DIGITS = load_digits()


def make(X, y, **more):
    return Search(Sample(X, np.asarray(y)), **more)


def all_of(own):
    for _ in own.trials():
        pass
    return own.found


def first(own):
    """The candidates of the first look."""
    return [own._candidates.make(family) for family in own._candidates.kernels()]


def points(n):
    rng = np.random.default_rng(0)
    return rng.random((n, 2)), np.arange(n) % 2


# ------------------------------------------------------------------ candidates


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_the_first_look_is_at_additive_kernels_and_rbf(layout):
    digits = DIGITS.data[:300]
    parameters = {"n_jobs": 2, "random_state": 5, "class_weight": "balanced"}
    own = make(layout(digits), DIGITS.target[:300], parameters=parameters)
    *additive, rbf = first(own)
    assert [c.settings["kernel"] for c in additive] == ["linear", "chi2", "intersection"]
    scaler = MinMaxScaler() if layout is np.asarray else MaxAbsScaler()
    scale = 1 / (64 * scaler.fit_transform(digits).var())
    assert rbf.settings == {"kernel": "rbf", "gamma": pytest.approx(scale, rel=1e-2)}
    for candidate in (*additive, rbf):
        found = candidate.estimator.get_params()
        assert {name: found[name] for name in parameters} == parameters
    assert rbf.estimator.gamma == rbf.settings["gamma"]
    assert rbf.estimator.early is False
    assert type(rbf.scaler) is type(scaler)
    assert all(candidate.scaler is None for candidate in additive)


@pytest.mark.parametrize(("machines", "n"), [(("additive",), 3), (("kernel",), 1)])
def test_one_machine_only(machines, n):
    assert len(first(make(*points(60), machines=machines))) == n


def test_every_machine_gets_the_data_that_it_takes():
    """Additive ones a frame, which they learn gaps and categories of; others what is made of it."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.random(200), "job": rng.choice(["x", "y"], 200)})
    for candidate in first(make(frame, frame["a"] > 0.5)):
        general = isinstance(candidate.estimator, KernelSVC)
        assert isinstance(candidate.scaler, TableEncoder) == general
        assert (candidate.scaler is None) != general


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_gaps_of_an_array_are_learned_or_filled_in(layout):
    X, y = load_iris(return_X_y=True)
    X[::7, 2] = np.nan
    trials = all_of(make(layout(X), y))
    assert {t.candidate.settings["kernel"] for t in trials} >= {"intersection", "rbf"}
    assert min(t.score for t in trials if t.C == 100) > 0.8


def test_early_models_of_many_rows():
    many = sp.csr_array((np.ones(3), ([0, 1, 2], [0, 1, 0])), shape=(EARLY_FROM, 2))
    own = make(many, np.arange(EARLY_FROM) % 2, machines=["kernel"])
    assert all(c.estimator.early for c in first(own))


def test_features_that_do_not_vary_have_a_gamma():
    own = make(np.ones((6, 2)), np.arange(6) % 2, machines=["kernel"])
    assert all(np.isfinite(c.estimator.gamma) for c in first(own))


def test_weights_of_rows_are_those_of_copies_to_gamma():
    X, y = points(60)
    weight = 1 + np.arange(60) % 3
    weighted = Search(Sample(X, y, weight.astype(float)))
    copied = make(X.repeat(weight, axis=0), y.repeat(weight))
    assert weighted._candidates.scale("") == pytest.approx(copied._candidates.scale(""))


def test_a_candidate_that_does_not_take_the_data_is_left_out(monkeypatch):
    def refusing(*_, **__):
        raise ValueError("no such data")

    monkeypatch.setattr(search, "cross_validated", refusing)
    with pytest.warns(UserWarning, match="is left out") as seen:
        assert all_of(make(*load_iris(return_X_y=True))) == []
    assert len(seen) == 4
    assert str(seen[0].message) == "kernel linear is left out: no such data"


def test_what_no_candidate_could_take_is_said_at_once():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"^Too few rows to choose by: .* has 2, but 3 are needed"):
        all_of(make(X[48:52], y[48:52]))


# ------------------------------------------------------------------ settings


def scored_by(score, seconds=0.0, spread=0.0, calls=None):
    """A stand-in for `cross_validated`: scores by settings, C and rows, and seconds of a fit."""

    def cross_validated(candidate, parts, Cs, *_):
        n = len(parts[0].sample.y)
        facts = {"folds": len(parts), "rows": n, "path": len(Cs)}
        if calls is not None:
            calls.extend((n, len(parts), candidate.settings["kernel"], C) for C in Cs)
        time = seconds(candidate, n) if callable(seconds) else seconds
        return [
            Trial(
                *(candidate, C, score(candidate.settings, C, n), spread),
                time * len(parts) * len(Cs),
                by_fold=tuple(score(candidate.settings, C, n) + (-1) ** k * spread
                              for k in range(len(parts))),
                **facts,
            )
            for C in Cs
        ]  # fmt: skip

    return cross_validated


@pytest.mark.parametrize(("width", "C"), [(1 / 64, 1.0), (0.3, 100.0), (1.0, 10.0), (40.0, 0.1)])
def test_the_best_gamma_and_c_are_found(monkeypatch, width, C):
    own = make(*points(60), machines=["kernel"])
    best = width * own._candidates.scale("")

    def score(settings, own_C, _):
        off = abs(np.log(settings["gamma"] / best)) + abs(np.log(own_C / C))
        return 0.9 - 0.01 * off - 0.05 * ("columns" in settings)

    monkeypatch.setattr(search, "cross_validated", scored_by(score, spread=0.002))
    all_of(own)
    chosen = own.choice()[0]
    assert chosen.candidate.settings["gamma"] == pytest.approx(best, rel=0.5)
    assert pytest.approx(1, rel=0.7) == chosen.C / C


def test_columns_are_prepared_where_that_is_better(monkeypatch):
    X, y = points(60)

    def score(settings, *_):
        return 0.95 if settings.get("columns") == "normal scores" else 0.9

    monkeypatch.setattr(search, "cross_validated", scored_by(score, spread=0.02))
    own = make(X, y, machines=["kernel"])
    seen = {t.candidate.settings.get("columns") for t in all_of(own)}
    assert seen >= {None, "standardised", "normal scores", "weighted"}
    assert own.choice()[0].candidate.settings["columns"] == "normal scores"
    fitted = own.choice()[0].candidate.fit(X, y, 1.0)
    assert isinstance(fitted[0], NormalScaler)


def test_what_the_rows_cannot_tell_is_not_refined(monkeypatch):
    """Without differences there is little to hope for."""
    calls = []
    monkeypatch.setattr(search, "cross_validated", scored_by(lambda *_: 0.9, calls=calls))
    own = make(*points(60), machines=["kernel"])
    assert len({t.candidate.name for t in all_of(own)}) < search.MOST_SETTINGS


def test_what_lost_by_far_on_few_rows_is_left_out(monkeypatch):
    good = {"linear": 0.8, "chi2": 0.9, "intersection": 0.91, "rbf": 0.85}
    own = make(*points(60))
    monkeypatch.setattr(search, "cross_validated", scored_by(lambda s, *_: good[s["kernel"]]))
    tried = {t.candidate.settings["kernel"] for t in all_of(own) if t.C == 100}
    assert tried == {"chi2", "intersection", "rbf"}
    good["rbf"] = 0.8
    again = make(*points(60))
    tried = {t.candidate.settings["kernel"] for t in all_of(again) if t.C == 100}
    assert tried == {"chi2", "intersection"}


# ------------------------------------------------------------------ rounds


def test_the_best_meet_on_more_rows_and_half_of_them_stay(monkeypatch):
    good, calls = {"linear": 0.88, "chi2": 0.895, "intersection": 0.9, "rbf": 0.89}, []

    def score(settings, C, n_rows):
        late = 0.05 * (n_rows > ROWS and settings["kernel"] == "rbf")
        return good[settings["kernel"]] + late - 0.001 * abs(np.log10(C))

    monkeypatch.setattr(search, "cross_validated", scored_by(score, calls=calls))
    own = make(*points(MOST_ROWS + 10))
    all_of(own)
    on = [rows for rows, *_ in calls]
    assert [on.count(rows) for rows in (2 * ROWS, MOST_ROWS)] == [12, 6 + 3]
    assert {kernel for rows, _, kernel, _ in calls if rows == 2 * ROWS} == good.keys()
    assert own.choice()[0].candidate.settings["kernel"] == "rbf"
    assert own.choice()[0].rows == MOST_ROWS


def test_who_is_first_by_chance_meets_the_others_in_other_folds(monkeypatch):
    """chi2 is first in the first folds, intersection in all others."""
    seen = []

    def score(settings, C, _):
        seen.append(1)
        if C != 1:
            return 0.5
        lucky = {"chi2": 0.9, "intersection": 0.895}
        other = {"chi2": 0.88, "intersection": 0.89}
        return (other if calls and calls[-1][1] == 5 else lucky).get(settings["kernel"], 0.85)

    calls = []
    monkeypatch.setattr(search, "cross_validated", scored_by(score, calls=calls))
    own = make(*points(60))
    all_of(own)
    assert [c for c in calls if c[1] == 5] == [(60, 5, "chi2", 1.0), (60, 5, "intersection", 1.0)]
    best = own.choice()[0]
    assert best.candidate.settings["kernel"] == "intersection"
    assert (best.folds, best.rows) == (8, 60)
    assert best.score == pytest.approx((3 * 0.895 + 5 * 0.89) / 8)


def test_the_better_half_stays_for_the_next_round(monkeypatch):
    calls = []
    score = lambda s, C, _: 0.9 - 0.001 * abs(np.log10(C) - 1.1)  # noqa: E731
    monkeypatch.setattr(search, "cross_validated", scored_by(score, calls=calls))
    all_of(make(*points(60)))
    assert sum(folds == 5 for _, folds, *_ in calls) == 12 + 6 + 3


def test_a_round_has_no_more_folds_than_a_class_has_rows(monkeypatch):
    calls = []
    monkeypatch.setattr(search, "cross_validated", scored_by(lambda *_: 0.9, calls=calls))
    X, y = points(60)
    y[:] = 0
    y[:4] = 1
    all_of(make(X, y))
    assert {folds for _, folds, *_ in calls} == {3, 4}


def test_of_two_that_are_tied_the_much_cheaper_one_is_chosen(monkeypatch):
    (rbf,) = first(make(*points(60), machines=["kernel"]))
    gamma = rbf.settings["gamma"]

    def score(settings, C, _):
        off = C != 1 or settings.get("gamma", gamma) != gamma or "columns" in settings
        return {"rbf": 0.9, "chi2": 0.895}.get(settings["kernel"], 0.5) - 0.1 * off

    for spread, chosen in [(0.04, "chi2"), (0.001, "rbf")]:
        own = make(*points(60), seconds=1e4)
        cross_validated = scored_by(score, lambda *_: 0.0, spread)

        def opposite(candidate, *more, cross_validated=cross_validated):
            """chi2 is ahead in the folds in which rbf is behind."""
            found = cross_validated(candidate, *more)
            if candidate.settings["kernel"] == "chi2":
                for t in found:
                    object.__setattr__(t, "by_fold", tuple(2 * t.score - s for s in t.by_fold))
            return found

        monkeypatch.setattr(search, "cross_validated", opposite)
        all_of(own)
        assert own.choice()[0].candidate.settings["kernel"] == chosen


# ------------------------------------------------------------------ time


@pytest.mark.parametrize(
    "machine",
    [AdditiveSVC(tol=1e-9, random_state=0), KernelSVC(tol=1e-9, C=1e4)],
    ids=["additive", "kernel"],
)
def test_a_deadline_ends_fits_which_keep_what_they_have(machine):
    X, y = DIGITS.data, DIGITS.target % 2
    machine.set_callbacks(Deadline(0.0))
    with pytest.warns(ConvergenceWarning, match="told to stop"):
        machine.fit(X, y)
    assert machine.n_iter_ <= 16
    assert machine.predict(X).shape == y.shape


def test_one_candidate_is_tried_whatever_the_time():
    trials = all_of(make(*load_iris(return_X_y=True), seconds=0.0))
    assert [(t.candidate.settings["kernel"], t.C) for t in trials] == [("linear", 1.0)]


class Clock:
    """A clock that goes on by what fits are said to take."""

    def __init__(self, monkeypatch, seconds):
        self.now = 0.0
        monkeypatch.setattr(pace.time, "monotonic", lambda: self.now)
        fit = scored_by(lambda s, *_: 0.9, seconds)

        def cross_validated(*args):
            found = fit(*args)
            self.now += found[0].seconds
            return found

        monkeypatch.setattr(search, "cross_validated", cross_validated)


def quadratic(candidate, n_rows):
    """Seconds of a fit: 0.01 on few rows."""
    return 0.01 * (n_rows / FEW) ** (2 if "gamma" in candidate.settings else 1)


@pytest.mark.parametrize("limit", [1.0, 5.0, 30.0, 1000.0])
@pytest.mark.parametrize("n", [500, 60_000])
def test_a_search_leaves_time_for_the_final_fit(monkeypatch, limit, n):
    clock = Clock(monkeypatch, quadratic)
    own = make(*points(n), seconds=limit)
    for _ in own._first_look():
        pass
    assert clock.now <= 0.2 * limit
    assert {t.candidate.settings["kernel"] for t in own.found} >= {"linear", "rbf"}
    clock = Clock(monkeypatch, quadratic)
    own = make(*points(n), seconds=limit)
    all_of(own)
    assert clock.now <= 0.8 * limit
    final = quadratic(own.choice()[0].candidate, n)
    assert clock.now + final <= limit or clock.now <= 0.36 * limit


def test_less_time_means_fewer_rows_and_what_was_not_tried_is_told(monkeypatch):
    rows = {}
    for limit in (1.0, 5.0, 1000.0):
        Clock(monkeypatch, quadratic)
        own = make(*points(60_000), seconds=limit)
        rows[limit] = max(t.rows for t in all_of(own))
        assert all(t > 0 and "rows" in name for name, t in own.untried.items())
        assert bool(own.untried) == (limit < 1000)
    assert FEW <= rows[1.0] < rows[5.0] < rows[1000.0] == MOST_ROWS


def test_trials_that_a_limit_cut_short_do_not_count():
    class Late(FitStopper):
        is_over = False

    late = Late()
    own = make(DIGITS.data, DIGITS.target, stoppers=[late])
    trials = own.trials()
    next(trials)
    late.is_over = True
    assert [t.unconverged for t in next(trials, [])] == []
    assert len(own.found) == 1
    assert list(trials) == []


def test_the_pace_of_kernels():
    times, rbf = Pace(), Candidate({"kernel": "rbf"}, None)
    assert times.seconds("rbf", 100) == 0
    times.note(Trial(rbf, 1.0, 0.9, 0.0, 6.0, folds=3, rows=1500, path=2))
    assert times.seconds("chi2", 1000) == TYPICAL["chi2"] / TYPICAL["rbf"]
    assert times.seconds("rbf", 1000) == 1.0
    assert times.seconds("rbf", 2000) == 4.0
    times.note(Trial(rbf, 1.0, 0.9, 0.0, 16.0, folds=4, rows=4000 * 4 // 3, path=1))
    assert times.seconds("rbf", 16_000) == pytest.approx(16.0)  # grew as the rows did


# ------------------------------------------------------------------ how many rows to train on


def after_a_look(monkeypatch, limit):
    """A search whose fits of two thirds of 1,000 rows took 0.01 s, and its RBF trial."""
    Clock(monkeypatch, quadratic)
    own = make(*points(100_000), seconds=limit)
    for _ in own._first_look():
        pass
    return own, next(t for t in own.choice() if is_rbf(t))


def test_all_rows_are_trained_on_where_there_is_time(monkeypatch):
    own, best = after_a_look(monkeypatch, 1e4)
    assert own.rows_to_train(best) == 100_000
    assert own.rows_to_train(best, 100_000) == 0


@pytest.mark.parametrize(("power", "rows"), [(1.2, 100_000), (2.0, 75_000)])
def test_the_final_fit_is_on_as_many_rows_as_there_is_time_for(monkeypatch, power, rows):
    """225 s at worst; a first fit of fewer rows tells more."""
    own, best = after_a_look(monkeypatch, 160.0)
    first = own.rows_to_train(best)
    seconds = 0.01 * (first / 667) ** power
    assert 160 / 3 * 0.5 < 0.01 * (first / 667) ** 2 < 160 / 3
    own.note_fit(best, first, seconds)
    second = own.rows_to_train(best, first)
    assert 0.8 * rows < second <= rows
    assert own.rows_to_train(best, second) == 0


def test_a_search_without_time_trains_on_few_rows(monkeypatch):
    own, best = after_a_look(monkeypatch, 0.2)
    assert own.rows_to_train(best) == FEW
