"""Categories and missing values: each has a contribution of its own, in frames of all kinds."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from widemargin import AdditiveSVC, explain

KINDS = {
    "pandas": lambda frame: frame,
    "pandas categories": lambda frame: frame.astype({"job": "category"}),
    "pandas objects": lambda frame: frame.astype({"job": object, "age": object}),
    "pandas nullable": lambda frame: frame.convert_dtypes(),
    "polars": pl.from_pandas,
    "polars categories": lambda frame: pl.from_pandas(frame).with_columns(
        pl.col("job").cast(pl.Categorical)
    ),
    "arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "arrow dictionaries": lambda frame: pa.Table.from_pandas(
        frame.astype({"job": "category"}), preserve_index=False
    ),
}


def squared(x, y):
    """A kernel that does not vanish at zero."""
    return (1 + x * y) ** 2


KERNELS = ["intersection", "chi2", "linear", squared]


def people(n: int = 300, seed: int = 0, missing: float = 0.2, n_classes: int = 2):
    """Ages and jobs, of which some are missing, and pay, of which none is; and classes."""
    rng = np.random.default_rng(seed)
    job, age = rng.choice(["baker", "clerk", "smith"], n), rng.normal(40, 10, n)
    y = 0.05 * age + (job == "smith") + rng.normal(0, 0.3, n)
    frame = pd.DataFrame({"age": age, "job": job, "pay": rng.exponential(1.0, n)})
    frame.loc[rng.random(n) < missing, "job"] = None
    lost = rng.random(n) < missing
    frame.loc[lost, "age"] = np.nan
    y[lost] += 1  # missing is no age among others
    return frame, np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))


def svc(kernel="intersection", **parameters):
    return AdditiveSVC(kernel, **{"missing": "learn", "random_state": 0, **parameters})


def quietly(function, *arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments)


# ------------------------------------------------------------------ what a model is


@pytest.mark.parametrize("kind", KINDS)
def test_frames_of_all_kinds_are_the_same(kind):
    frame, y = people()
    expected = svc().fit(frame, y)
    X = KINDS[kind](frame)
    model = svc().fit(X, y)
    assert_array_equal(model.decision_function(frame), expected.decision_function(frame))
    assert_array_equal(expected.decision_function(X), expected.decision_function(frame))
    assert_array_equal(model.contributions(X), expected.contributions(frame))
    assert model.feature_names_in_.tolist() == ["age", "job", "pay"]
    assert model.n_features_in_ == 3


@given(
    kernel=st.sampled_from(KERNELS),
    approximation=st.sampled_from(["spectral", "pmsvm", "unary", "chebyshev"]),
    scaling=st.sampled_from(["auto", "global", "percentile", None]),
    n_classes=st.integers(2, 3),
    seed=st.integers(0, 50),
)
@settings(max_examples=30, deadline=None)
def test_columns_are_centred_terms_that_sum_to_the_decision_value(
    kernel, approximation, scaling, n_classes, seed
):
    frame, y = people(seed=seed, n_classes=n_classes)
    frame["age"] = frame["age"].abs()
    if approximation in ("pmsvm", "chebyshev"):  # which are defined on [0, 1]
        scaling = "auto"
    options = {"approximation": approximation, "scaling": scaling}
    model = quietly(svc(kernel, **options, max_iter=50).fit, frame, y)
    parts, decision = model.contributions(frame), model.decision_function(frame)
    size = max(1.0, np.abs(parts).max())
    assert parts.shape[:2] == (len(frame), 4)
    assert_allclose(parts.sum(axis=1), decision, atol=1e-5 * size)
    assert_allclose(parts[:, :-1].mean(axis=0), 0, atol=2e-6 * size)
    by_hand = np.abs(parts[:, :-1]).mean(axis=0).reshape(3, -1).mean(axis=1)
    assert_allclose(model.feature_importances_, by_hand, atol=2e-6 * size)
    explained = explain(model)
    assert [term.name for term in explained.terms] == ["age", "job", "pay"]
    assert_allclose(explained.contributions(frame), parts)
    label = model.classes_[-1]
    grid, values = model.shape_function("job", label)
    assert grid.tolist() == ["baker", "clerk", "smith", None]
    row = frame["job"].map({"baker": 0, "clerk": 1, "smith": 2}).fillna(3).astype(int)
    assert_allclose(model.contributions(frame, label)[:, 1], values[row], atol=1e-6 * size)
    grid, values = model.shape_function("age", label)
    assert np.isnan(grid[-1])
    lost = frame["age"].isna()
    own = model.contributions(frame, label)[lost, 0]
    assert_allclose(own, values[-1], atol=1e-6 * size)


def by_hand(frame: pd.DataFrame, low: float, top: float) -> np.ndarray:
    """Missing ages at the value that is absent, and an indicator for each of the others."""
    jobs = [frame["job"] == job for job in ("baker", "clerk", "smith")]
    marks = [frame["age"].isna(), *jobs, frame["job"].isna()]
    numbers = [frame["age"].fillna(low), frame["pay"]]
    return np.column_stack([*numbers, *(top * mark for mark in marks)])


@pytest.mark.parametrize("kernel", ["intersection", "chi2", "hellinger", "jensen_shannon"])
@pytest.mark.parametrize("scaling", ["minmax", "global"])
def test_a_missing_value_is_an_indicator_beside_an_absent_number(kernel, scaling):
    frame, y = people(n=120)  # so few values that each has a bin of its own
    absent = frame["age"].min() if scaling == "minmax" else 0.0
    top = frame["age"].max() if scaling == "global" else 1.0
    parameters = {"approximation": "unary", "scaling": scaling, "tol": 1e-9, "C": 3.0}
    model = svc(kernel, **parameters).fit(frame, y)
    X = by_hand(frame, absent, top)
    expected = svc(kernel, missing="error", **parameters).fit(X, y)
    assert_allclose(model.decision_function(frame), expected.decision_function(X), atol=1e-5)
    assert_allclose(model.contributions(frame)[:, -1], expected.contributions(X)[:, -1], atol=1e-5)


@pytest.mark.parametrize("kernel", KERNELS)
def test_missing_has_nothing_in_common_with_any_value(kernel):
    """k(missing, missing) > 0 = k(missing, anything else), zero among it."""
    X = np.array([[0.0], [1.0], [np.nan], [0.0], [1.0], [np.nan]])
    y = [0, 0, 1, 0, 0, 1]
    model = svc(kernel, fit_intercept=False, rank="auto").fit(X, y)
    seen = model.decision_function([[0.0], [1.0], [np.nan]])
    assert seen[2] > 0.5
    without = svc(kernel, fit_intercept=False, C_unit="raw", C=model.C_).fit(
        X[:4], [0, 1, 1, 0], sample_weight=[1, 1, 0, 1]
    )
    with_missing = svc(kernel, fit_intercept=False, C_unit="raw", C=model.C_).fit(
        X[:4], [0, 1, 1, 0]
    )
    values = [[0.0], [0.3], [1.0]]
    assert_allclose(
        without.decision_function(values), with_missing.decision_function(values), atol=1e-2
    )


@given(st.permutations(range(3)), st.integers(0, 20))
@settings(max_examples=10, deadline=None)
def test_names_and_order_of_categories_do_not_matter(order, seed):
    frame, y = people(seed=seed, n=150)
    frame = frame.astype({"job": pd.CategoricalDtype(["baker", "clerk", "smith"])})
    names = np.array(["x", "y", "z"])[list(order)]
    renamed = frame.assign(job=frame["job"].cat.rename_categories(names))
    shuffled = frame.assign(job=frame["job"].cat.reorder_categories(["smith", "baker", "clerk"]))
    model = svc(tol=1e-8).fit(frame, y)
    expected = model.decision_function(frame)
    assert_allclose(svc(tol=1e-8).fit(renamed, y).decision_function(renamed), expected, atol=1e-4)
    assert_array_equal(svc(tol=1e-8).fit(shuffled, y).decision_function(shuffled), expected)
    assert_array_equal(model.decision_function(shuffled), expected)


@pytest.mark.parametrize("kernel", ["intersection", "chi2"])
@pytest.mark.parametrize("seed", range(3))
def test_dense_and_sparse_data_with_missing_values_are_the_same(kernel, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, (200, 6)) * (rng.random((200, 6)) < 0.4).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 5] = np.where(np.isnan(X[:, 5]), 0.0, X[:, 5])
    y = (np.nansum(X[:, :3], axis=1) > 2).astype(int)
    dense, sparse = svc(kernel, tol=1e-6).fit(X, y), svc(kernel, tol=1e-6).fit(sp.csr_array(X), y)
    assert dense.columns_ == sparse.columns_
    assert sorted(dense.columns_.missing) == [0, 1, 2, 3, 4]
    for model in (dense, sparse):
        for data in (X, sp.csr_array(X), sp.csc_matrix(X)):
            assert_allclose(model.decision_function(data), dense.decision_function(X), atol=1e-3)
    assert_allclose(dense.decision_function(sp.csr_array(X)), dense.decision_function(X), atol=1e-6)


def test_rows_without_weight_teach_nothing():
    frame, y = people()
    weight = (frame["job"] != "smith").to_numpy() * 1.0
    weight[frame["age"].isna()] = 0
    kept = weight > 0
    model = svc(tol=1e-8).fit(frame, y, weight)
    expected = svc(tol=1e-8).fit(frame[kept], y[kept])
    assert quietly(model.decision_function, frame) == pytest.approx(
        quietly(expected.decision_function, frame), abs=1e-4
    )
    assert model.columns_.missing == expected.columns_.missing == {1}


def test_many_categories_are_compressed_and_few_are_not():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"number": rng.random(400), "city": np.arange(400) % 90})
    y = (X["number"] > 0.5).astype(int)
    model = svc(categorical_features=["city"]).fit(X, y)
    assert model.model_.n_features == 91
    few = X.assign(city=rng.choice(["a", "b"], 400))
    for data, fitted in ((X, model), (few, svc().fit(few, y))):
        codes, _ = fitted.model_.lookup.read(*fitted._parts(data))
        assert (codes.index is not None) == (data is X)
        assert (codes.toarray()[:, 1:] > 0).sum(axis=1).tolist() == [1] * 400


def test_all_columns_may_be_categories_and_all_values_of_one_missing():
    frame, y = people()
    model = svc().fit(frame[["job"]], y)
    assert model.score(frame[["job"]], y) > 0.6
    empty = frame.assign(pay=np.nan)
    model = svc().fit(empty, y)
    assert model.score(empty, y) > 0.8
    assert_allclose(model.contributions(empty)[:, 2], 0, atol=1e-6)


# ------------------------------------------------------------------ new data


def test_new_categories_contribute_nothing_and_are_counted_and_named():
    frame, y = people()
    model = svc().fit(frame, y)
    new = frame.head(4).assign(job=["pilot", "smith", "pilot", "nurse"])
    with pytest.warns(UserWarning, match=r"'job' in 3 rows, first 'pilot'\.$") as caught:
        decision = model.decision_function(new)
    assert len(caught) == 1
    known = model.decision_function(frame.head(4).assign(job="smith"))
    parts = quietly(model.contributions, new)
    own = model.model_.feature_function(model.columns_.features(1).categories[2])[-1, 0]
    assert_allclose(decision[[0, 2, 3]], known[[0, 2, 3]] - own, atol=1e-6)
    assert decision[1] == pytest.approx(known[1], abs=1e-6)
    assert_allclose(parts.sum(axis=1), decision, atol=1e-6)


def test_values_that_are_missing_for_the_first_time_contribute_nothing_and_are_named():
    frame, y = people()
    model = svc().fit(frame, y)
    new = frame.head(4).assign(pay=[None, 1.0, None, 1.0])
    with pytest.warns(UserWarning, match=r"contribute nothing: 'pay' in 2 rows\.$") as caught:
        parts = model.contributions(new)
    assert len(caught) == 1
    assert_allclose(parts[[0, 2], 2], -model.model_.centre[1, 0], atol=1e-6)


def test_a_model_without_missing_values_refuses_them_unless_it_learns():
    frame, y = people(missing=0.0)
    model = AdditiveSVC(random_state=0).fit(frame, y)
    for column, name in ((0, "age"), (1, "job")):
        new = frame.copy()
        new.iloc[7, column] = None
        with pytest.raises(ValueError, match=rf"NaN at row 7, column '{name}'.*missing=\"learn\""):
            model.predict(new)
        with pytest.raises(ValueError, match=rf"NaN at row 7, column '{name}'"):
            AdditiveSVC().fit(new, y)
    with pytest.raises(ValueError, match="infinity at row 3, column 'pay'") as error:
        svc().fit(frame.assign(pay=np.where(np.arange(len(y)) == 3, np.inf, 1.0)), y)
    assert "AdditiveSVC" not in str(error.value)


def test_columns_in_another_order_or_number_are_refused():
    frame, y = people()
    model = svc().fit(frame, y)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["job", "age", "pay"]])
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["age"]])
    with pytest.raises(ValueError, match="text or other objects in column 'pay'"):
        model.predict(frame.assign(pay="much"))


def test_numbers_and_text_of_a_category_are_the_same():
    rng = np.random.default_rng(0)
    code = rng.integers(1, 4, 200)
    X, y = pd.DataFrame({"code": code}), (code == 2).astype(int)
    model = svc(categorical_features=["code"]).fit(X, y)
    assert model.columns_.categories == {0: ("1", "2", "3")}
    assert model.score(X, y) == 1
    for other in (X.astype(float), X.astype(str), X.astype(str).astype("category"), code[:, None]):
        assert_array_equal(quietly(model.predict, other), model.predict(X))


# ------------------------------------------------------------------ in scikit-learn's world


def test_models_are_cloned_pickled_and_cross_validated():
    frame, y = people(n=600)
    model = svc(categorical_features=["job"]).fit(frame, y)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.decision_function(frame), model.decision_function(frame))
    refitted = clone(model).fit(pl.from_pandas(frame), y)
    assert_array_equal(refitted.decision_function(frame), model.decision_function(frame))
    for X in (frame, pl.from_pandas(frame)):
        assert cross_val_score(svc(), X, y, cv=3).mean() > 0.75
    exact = svc(tol=1e-6)
    path = exact.fit_path(frame, y, [0.1, 1.0])
    expected = exact.fit(frame, y).decision_function(frame)
    assert_allclose(path[1].decision_function(frame), expected, atol=1e-2)


def test_frames_that_scalers_put_out_are_in_the_data_s_units():
    frame, y = people()
    frame = frame[["age", "pay"]]
    scaler = StandardScaler().set_output(transform="pandas")
    model = make_pipeline(scaler, svc()).fit(frame, y)
    explained = explain(model)
    shape = explained.shape(explained.term("age"))
    assert shape.values[-1] == pytest.approx(frame["age"].max())
    lost = frame["age"].isna()
    assert_allclose(explained.contributions(frame)[lost, 0], shape.missing[0], atol=1e-6)


def test_the_true_shape_functions_are_those_of_numbers():
    frame, y = people()
    model = svc(warm_start=True, tol=1e-6, approximation="unary").fit(frame, y)
    assert len(model.approximation_error(frame)) == 2
    assert max(error.max for error in model.approximation_error(frame)) < 1e-3
    with pytest.raises(ValueError, match="column 'job' has categories and no grid"):
        model.approximation_error(frame, features=[1])
