"""What `easy` tries, how its grids go on, and that it ends in time."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler

from widemargin import AdditiveSVC, KernelSVC, TableEncoder, easy, load, save
from widemargin.easy import CS, EARLY_FROM, MORE, ROWS, Deadline, Easy
from widemargin.selection import Trial

DIGITS = load_digits()


def all_of(search):
    return [trial for trials in search.trials() for trial in trials]


# ------------------------------------------------------------------ candidates


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_additive_kernels_and_three_widths_of_rbf_come_first(make):
    digits = DIGITS.data[:300]
    parameters = {"n_jobs": 2, "random_state": 5, "class_weight": "balanced"}
    search = Easy(make(digits), DIGITS.target[:300], parameters=parameters)
    candidates = list(search._first_candidates())
    additive, rbf = candidates[:3], candidates[3:]
    assert [c.settings["kernel"] for c in additive] == ["linear", "chi2", "intersection"]
    assert [c.settings["kernel"] for c in rbf] == ["rbf"] * 3
    scaler = MinMaxScaler() if make is np.asarray else MaxAbsScaler()
    scale = 1 / (64 * scaler.fit_transform(digits).var())
    gammas = [c.settings["gamma"] for c in rbf]
    assert gammas == pytest.approx([scale / 4, scale, scale * 4], rel=1e-2)
    for candidate in candidates:
        found = candidate.estimator.get_params()
        assert {name: found[name] for name in parameters} == parameters
    for candidate in rbf:
        assert candidate.estimator.gamma == candidate.settings["gamma"]
        assert candidate.estimator.early is False
        assert type(candidate.scaler) is type(scaler)
    assert all(candidate.scaler is None for candidate in additive)


def test_every_machine_gets_the_data_that_it_takes():
    """Additive ones a frame, which they learn gaps and categories of; others what is made of it."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.random(200), "job": rng.choice(["x", "y"], 200)})
    y = (frame["a"] > 0.5) ^ (frame["job"] == "x")
    frame.loc[::10, "a"] = np.nan
    search = Easy(frame, y.to_numpy())
    for candidate in search._first_candidates():
        general = isinstance(candidate.estimator, KernelSVC)
        assert isinstance(candidate.scaler, TableEncoder) == general
        assert (candidate.scaler is None) != general
    model = search.fit()
    assert [type(step) for _, step in model.steps] == [TableEncoder, KernelSVC]
    assert model.score(frame, y) > 0.9


@pytest.mark.filterwarnings("ignore:Different in every row. '__index_level_0__'")
@pytest.mark.parametrize("make", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_a_data_frame_is_taken_as_it_is(make, tmp_path):
    """By its rows' order, whatever their index says."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.random(300), "job": rng.choice(["x", "y", None], 300)})
    y = (frame["a"] > 0.5) ^ (frame["job"] == "x")
    frame.loc[::10, "a"] = np.nan
    order = rng.permutation(300)
    X, y = make(frame.iloc[order]), y.iloc[order]
    search = Easy(X, y)
    trials = all_of(search)
    assert len({t.candidate.name for t in trials}) >= 6
    model = search.fit()
    assert type(model[-1]) is KernelSVC  # no sum over columns has this
    assert model.score(X, y) > 0.9
    save(model, tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").predict(X), model.predict(X))


def test_gaps_of_an_array_are_learned_or_filled_in():
    X, y = load_iris(return_X_y=True)
    X[::7, 2] = np.nan
    for make in (np.asarray, sp.csr_array):
        trials = all_of(Easy(make(X), y))
        assert len({t.candidate.name for t in trials}) >= 6
        assert min(t.score for t in trials if t.C == 100) > 0.8


def test_early_models_of_many_rows():
    many = sp.csr_array((np.ones(3), ([0, 1, 2], [0, 1, 0])), shape=(EARLY_FROM, 2))
    candidates = list(Easy(many, np.zeros(EARLY_FROM))._first_candidates())
    assert all(c.estimator.early for c in candidates[3:])


def test_features_that_do_not_vary_have_a_gamma():
    candidates = list(Easy(np.ones((5, 2)), np.zeros(5))._first_candidates())
    assert np.isfinite([c.estimator.gamma for c in candidates[3:]]).all()


def test_a_candidate_that_does_not_take_the_data_is_left_out(monkeypatch):
    def refusing(candidates, *_, **__):
        raise ValueError("no such data")

    monkeypatch.setattr(easy, "tune", refusing)
    search = Easy(*load_iris(return_X_y=True))
    with pytest.warns(UserWarning, match="is left out") as seen:
        assert all_of(search) == []
    assert len(seen) == 6
    assert str(seen[0].message) == "kernel linear is left out: no such data"


def test_what_no_candidate_could_take_is_said_at_once():
    """Not once for each, nor as an index out of range."""
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"^Too few rows to choose by: .* has 2, but 3 are needed"):
        Easy(X[48:52], y[48:52]).fit()
    with pytest.raises(ValueError, match=r"^scoring='best': not one of accuracy"):
        Easy(X, y, "best").fit()
    with pytest.raises(ValueError, match=r"^scoring='f1': it is for two classes"):
        Easy(X, y, "f1").fit()


def test_no_model_where_every_candidate_was_left_out(monkeypatch):
    monkeypatch.setattr(Easy, "_compared", lambda *_, **__: [])
    with pytest.raises(ValueError, match=r"^No candidate could be trained on this data"):
        Easy(*load_iris(return_X_y=True)).fit()


# ------------------------------------------------------------------ where grids go on


def scored_by(score, seconds=0.0, spread=0.0):
    """A stand-in for `tune` where scores are a function of the settings, C and the rows."""

    def tune(candidates, X, y, Cs, folds=3, **_):
        (candidate,) = candidates
        rows = {"folds": folds, "rows": len(y), "path": len(Cs)}
        found = [
            Trial(candidate, C, score(candidate.settings, C, len(y)), spread, seconds, **rows)
            for C in Cs
        ]
        return sorted(found, key=lambda trial: -trial.score)

    return tune


def points(n):
    rng = np.random.default_rng(0)
    return rng.random((n, 2)), np.arange(n) % 2


@pytest.mark.parametrize("factor", [1e-9, 1 / 64, 0.25, 1.0, 16.0, 1e9])
def test_gamma_goes_on_until_the_best_is_inside(monkeypatch, factor):
    search = Easy(*points(60))
    best = factor * search._scale()

    def score(settings, C, _):
        return 1 - 0.01 * abs(np.log(settings["gamma"] / best)) if "gamma" in settings else 0.0

    monkeypatch.setattr(easy, "tune", scored_by(score))
    trials = search.choice(all_of(search))
    gammas = sorted({t.candidate.settings["gamma"] for t in trials if easy._is_rbf(t)})
    chosen = trials[0].candidate.settings["gamma"]
    if 1 / 100 < factor < 100:
        assert gammas[0] < chosen < gammas[-1]
        assert chosen == pytest.approx(best, rel=0.01)
    else:
        assert len(gammas) == 3 + easy._MOST_STEPS


@pytest.mark.parametrize(("spread", "goes_on"), [(0.02, True), (0.001, False)])
def test_grids_of_kernels_that_chance_may_have_put_behind_go_on(monkeypatch, spread, goes_on):
    search = Easy(*points(60))
    largest = 4.0 * search._scale()

    def score(settings, C, _):
        if "gamma" not in settings:
            return 0.9 if settings["kernel"] == "chi2" and C == 1.0 else 0.5
        wider = settings["gamma"] > 1.1 * largest
        return (0.95 if wider else 0.895) - 0.01 * abs(np.log10(settings["gamma"] / largest))

    monkeypatch.setattr(easy, "tune", scored_by(score, spread=spread))
    chosen = search.choice(all_of(search))[0]
    assert (chosen.candidate.settings["kernel"] == "rbf") == goes_on


def test_c_goes_on_upwards(monkeypatch):
    monkeypatch.setattr(easy, "tune", scored_by(lambda s, C, _: np.log10(C)))
    search = Easy(*points(60))
    assert search.choice(all_of(search))[0].C == easy._MOST_C


def test_the_best_of_each_kernel_meet_on_more_rows(monkeypatch):
    good = {"linear": 0.5, "chi2": 0.895, "intersection": 0.9, "rbf": 0.885}

    def score(settings, C, n_rows):
        late = 0.05 * (n_rows > ROWS and settings["kernel"] == "rbf")
        return good[settings["kernel"]] + late - 0.001 * abs(np.log10(C))

    monkeypatch.setattr(easy, "tune", scored_by(score))
    search = Easy(*points(MORE * ROWS + 10))
    trials = search.choice(all_of(search))
    last = [t for t in trials if t.rows == MORE * ROWS]
    assert sorted(t.candidate.settings["kernel"] for t in last) == ["chi2", "intersection", "rbf"]
    assert trials[0].candidate.settings["kernel"] == "rbf"
    assert all(t.C == 1.0 for t in last)


def test_there_is_no_time_for_more_rows(monkeypatch):
    monkeypatch.setattr(easy, "tune", scored_by(lambda *_: 0.5, seconds=40.0))
    search = Easy(*points(MORE * ROWS), seconds=600.0)
    assert {t.rows for t in all_of(search)} == {ROWS}


# ------------------------------------------------------------------ rounds


def recorded(monkeypatch, score):
    """A stand-in for `tune` where scores also depend on the seed of the folds, and its calls."""
    calls = []

    def tune(candidates, X, y, Cs, folds, random_state, **_):
        (candidate,) = candidates
        calls.extend((random_state, folds, candidate.settings["kernel"], C) for C in Cs)
        kernel = candidate.settings["kernel"]
        facts = {"folds": folds, "rows": len(y), "path": len(Cs)}
        return [Trial(candidate, C, score(kernel, C, random_state), 0.0, 0.0, **facts) for C in Cs]

    monkeypatch.setattr(easy, "tune", tune)
    return calls


def test_who_is_first_by_chance_meets_the_others_in_other_folds(monkeypatch):
    """chi2 is first in the first folds, intersection in all others."""

    def score(kernel, C, seed):
        if C != 1:
            return 0.5
        lucky = {"chi2": 0.9, "intersection": 0.895}
        return (lucky if seed == 0 else {"chi2": 0.88, "intersection": 0.89}).get(kernel, 0.5)

    calls = recorded(monkeypatch, score)
    search = Easy(*points(60))
    trials = search.choice(all_of(search))
    again = [call for call in calls if call[0]]
    assert again == [(1, 5, "chi2", 1.0), (1, 5, "intersection", 1.0)]
    assert trials[0].candidate.settings["kernel"] == "intersection"
    assert (trials[0].folds, trials[0].rows) == (8, 60)
    assert trials[0].score == pytest.approx((3 * 0.895 + 5 * 0.89) / 8)
    assert len({(t.candidate.name, t.C) for t in trials}) == len(trials)


def test_the_better_half_stays_for_the_next_round(monkeypatch):
    calls = recorded(monkeypatch, lambda kernel, C, seed: 0.9 - 0.001 * abs(np.log10(C) - 1.1))
    all_of(Easy(*points(60)))
    assert [sum(call[0] == seed for call in calls) for seed in (1, 2, 3, 4)] == [12, 6, 3, 0]


def test_a_round_has_no_more_folds_than_a_class_has_rows(monkeypatch):
    calls = recorded(monkeypatch, lambda *_: 0.9)
    X, y = points(60)
    y[:] = 0
    y[:4] = 1
    all_of(Easy(X, y))
    assert {folds for seed, folds, *_ in calls if seed} == {4}


def test_there_is_no_time_for_rounds(monkeypatch):
    monkeypatch.setattr(easy, "tune", scored_by(lambda *_: 0.5, seconds=40.0))
    assert {t.folds for t in all_of(Easy(*points(60), seconds=600.0))} == {3}


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
    trials = all_of(Easy(*load_iris(return_X_y=True), seconds=0.0))
    assert {t.candidate.settings["kernel"] for t in trials} == {"linear"}
    assert [t.C for t in sorted(trials, key=lambda t: t.C)] == list(CS)


@pytest.mark.parametrize(("seconds", "early"), [(1e4, False), (100.0, True)])
def test_an_exact_model_that_would_take_too_long_is_an_early_one(monkeypatch, seconds, early):
    """Of 12 fits on 2/3 of 5,000 rows in 12 seconds: on 100,000 rows 900 seconds."""
    monkeypatch.setattr(easy, "tune", scored_by(lambda s, *_: float("gamma" in s), seconds=12.0))
    search = Easy(*points(100_000), seconds=10.0)
    best = search.choice(all_of(search))[0]
    assert search.last(best, seconds).estimator.early is early
    assert best.candidate.estimator.early is False


@pytest.mark.parametrize("best", ["chi2", "rbf"])
def test_the_choice_is_trained_on_all_rows_and_has_no_callback_left(monkeypatch, best):
    monkeypatch.setattr(easy, "tune", scored_by(lambda s, C, _: (s["kernel"] == best) - 0.01 * C))
    model = Easy(DIGITS.data, DIGITS.target).fit()
    machine = model[-1] if best == "rbf" else model
    assert (machine.kernel, machine.C) == (best, min(CS))
    assert machine.fit_record_.n_rows == len(DIGITS.target)
    assert not getattr(machine, "_skl_callbacks", None)


def test_additive_models_are_exact_whatever_their_time(monkeypatch):
    monkeypatch.setattr(easy, "tune", scored_by(lambda s, *_: float("gamma" not in s), 12.0))
    search = Easy(*points(100_000))
    best = search.choice(all_of(search))[0]
    assert search.last(best, 0.0) is best.candidate
