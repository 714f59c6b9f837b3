"""Terms: columns of the data in its own units, centred, whose sum is the decision value."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from widemargin import AdditiveSVC, KernelSVC, TableEncoder, explain
from widemargin.terms import MISSING, Units

SCALERS = [None, MinMaxScaler((-1, 1)), MaxAbsScaler(), StandardScaler(),
           StandardScaler(with_mean=False), StandardScaler(with_std=False)]  # fmt: skip
JOBS = ("baker", "clerk", "smith")
NAMES = ["age", "job", "size"]


def people(n: int = 600, seed: int = 0, gaps: float = 0.0):
    """Ages, jobs and sizes, a share of the first two of which is missing."""
    rng = np.random.default_rng(seed)
    age, size = rng.integers(18, 80, n).astype(float), rng.normal(170, 10, n)
    job = rng.choice(JOBS, n, p=[0.5, 0.3, 0.2]).astype(object)
    y = (job == "smith") + (age > 45) + rng.normal(0, 0.3, n)
    age[rng.random(n) < gaps], job[rng.random(n) < gaps] = np.nan, None
    return pd.DataFrame({"age": age, "job": job, "size": size}), np.digitize(y, [0.5, 1.2])


def fitted(scaler, X, y, **parameters):
    """As the data is, or behind a scaler, which takes numbers."""
    machine = AdditiveSVC(**{"random_state": 0, "missing": "learn", **parameters})
    if scaler is None:
        return machine.fit(X, y)
    return make_pipeline(TableEncoder(scaling=None, sparse_output=False), scaler, machine).fit(X, y)


@given(
    st.sampled_from(SCALERS),
    st.sampled_from(["intersection", "chi2", "linear"]),
    st.sampled_from(["ovr", "crammer_singer"]),
    st.integers(2, 3),
    st.sampled_from([0.0, 0.2]),
    st.integers(0, 100),
)
@settings(max_examples=40, deadline=None)
def test_terms_are_centred_and_sum_to_the_decision_value(
    scaler, kernel, multi_class, n_classes, gaps, seed
):
    X, y = people(seed=seed, gaps=gaps)
    y = np.minimum(y, n_classes - 1)
    model = fitted(scaler, X, y, kernel=kernel, multi_class=multi_class)
    explained = explain(model)
    assert [term.name for term in explained.terms] == ["age", "job", "size"]
    parts = explained.contributions(X)
    decision = model.decision_function(X)
    np.testing.assert_allclose(parts.sum(axis=1), decision, atol=1e-5)
    np.testing.assert_allclose(parts[:, :-1].mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(parts[0, -1], decision.mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(explained.intercept, np.ravel(parts[0, -1]), atol=1e-9)
    by_hand = np.abs(parts[:, :-1]).mean(axis=0).reshape(3, -1).mean(axis=1)
    np.testing.assert_allclose(explained.importances(), by_hand, atol=1e-5)
    np.testing.assert_allclose(explained.importances(X), by_hand, atol=1e-6)
    # What a term adds at a value is the contribution of the rows that have it.
    shape = explained.shape(explained.term("job"))
    assert shape.values.tolist() == [*JOBS, *([MISSING] if gaps else [])]
    own = X["job"].fillna(MISSING)
    row_category = np.array([shape.values.tolist().index(job) for job in own])
    expected = shape.scores[row_category].reshape(parts[:, 1].shape)
    np.testing.assert_allclose(parts[:, 1], expected, atol=1e-6)
    np.testing.assert_allclose(
        shape.share, np.bincount(row_category, minlength=len(shape.values)) / len(X), atol=1e-6
    )
    missing = explained.shape(explained.term("age")).missing
    assert (missing is None) == (gaps == 0)
    if missing is not None:
        expected = np.broadcast_to(np.squeeze(missing), parts[X["age"].isna(), 0].shape)
        np.testing.assert_allclose(parts[X["age"].isna(), 0], expected, atol=1e-6)


@pytest.mark.parametrize("scaling", ["minmax", None])
def test_an_encoder_s_own_scaling_is_undone(scaling):
    X, y = people(gaps=0.1)
    model = make_pipeline(TableEncoder(scaling=scaling), AdditiveSVC(random_state=0)).fit(X, y)
    explained = explain(model)
    parts = explained.contributions(X)
    np.testing.assert_allclose(parts.sum(axis=1), model.decision_function(X), atol=1e-5)
    values = explained.shape(explained.term("size")).seen.values
    assert (values[0], values[-1]) == pytest.approx((X["size"].min(), X["size"].max()), rel=0.02)


@pytest.mark.parametrize("scaler", SCALERS)
def test_values_of_terms_are_in_the_data_s_units(scaler):
    X, y = people()
    explained = explain(fitted(scaler, X, y))
    for name, column in [("age", X["age"]), ("size", X["size"])]:
        values = explained.shape(explained.term(name)).seen.values
        assert (values[0], values[-1]) == pytest.approx((column.min(), column.max()), rel=0.02)
        assert np.all(np.diff(values) > 0)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("scaler", [None, MaxAbsScaler()])
def test_rows_without_names_in_any_layout(layout, scaler):
    X, y = people()
    rows = layout(X[["age", "size"]].to_numpy())
    machine = AdditiveSVC(random_state=0)
    model = (machine if scaler is None else make_pipeline(scaler, machine)).fit(rows, y)
    explained = explain(model, ["age", "size"])
    assert [term.name for term in explained.terms] == ["age", "size"]
    one = explained.contributions(rows, class_label=1)
    np.testing.assert_allclose(one, explained.contributions(rows)[..., 1])
    assert [t.name for t in explain(model).terms] == ["feature 0", "feature 1"]


@pytest.mark.parametrize("scaler", [None, MaxAbsScaler()])
def test_importance_of_a_column_is_not_that_of_its_features(scaler):
    """Two categories of opposite sign that say the same are one column with a small effect."""
    rng = np.random.default_rng(0)
    female, age = rng.integers(0, 2, 2000), rng.random(2000)
    X = pd.DataFrame({"sex": np.where(female, "Female", "Male"), "age": age})
    y = age + 0.25 * female + rng.normal(0, 0.1, 2000) > 0.6
    explained = explain(fitted(scaler, X, y, kernel="linear"))
    assert [term.name for term in explained.ranked] == ["age", "sex"]
    together = explained.contributions(X)[:, 0]
    assert explained.importances()[0] == pytest.approx(np.abs(together).mean(), abs=1e-6)


def test_names_of_features_are_not_read():
    """Columns that are called like categories are columns."""
    X = np.eye(2)[[0, 1, 0, 1, 1, 0]]
    model = AdditiveSVC(random_state=0).fit(X, X[:, 0] > 0)
    names = ["a=1", "a=2"]
    assert [term.name for term in explain(model, names).terms] == names


@pytest.mark.parametrize("scaler", [None, StandardScaler()])
def test_terms_by_name_and_by_column(scaler):
    explained = explain(fitted(scaler, *people()))
    job = explained.terms[1]
    assert job.features == ((1,) if scaler is None else (2, 3, 4))
    assert explained.term("job") is explained.term("job=clerk") is explained.term(1) is job
    with pytest.raises(ValueError, match="There is no term 'work' among 3"):
        explained.term("work")


def test_what_cannot_be_explained_is_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"KernelSVC is not a sum over features.*AdditiveSVC"):
        explain(make_pipeline(MinMaxScaler(), KernelSVC()).fit(X, y))
    with pytest.raises(ValueError, match="PCA cannot be converted back"):
        explain(make_pipeline(PCA(2), AdditiveSVC()).fit(X, y))
    frame = pd.DataFrame(X, columns=list("abcd"))  # four names, two features
    with pytest.raises(ValueError, match="PCA cannot be converted back"):
        explain(make_pipeline(PCA(2), AdditiveSVC()).fit(frame, y))
    with pytest.raises(NotFittedError):
        explain(AdditiveSVC())
    model = AdditiveSVC(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="names has 3 names, and the model has 4"):
        explain(model, ["a", "b", "c"])
    with pytest.raises(ValueError, match="names has 'a' twice"):
        explain(model, ["a", "b", "a", "c"])


# ------------------------------------------------------------------ units


@pytest.mark.parametrize("scaler", SCALERS[1:])
def test_units_undo_scalers(scaler):
    X, y = load_iris(return_X_y=True)
    steps = [("none", "passthrough"), ("scale", scaler), ("again", StandardScaler()),
             ("svm", AdditiveSVC(random_state=0))]  # fmt: skip
    pipeline = Pipeline(steps).fit(X, y)
    seen, units = pipeline[:-1].transform(X), Units.of(pipeline)
    for j in range(4):
        np.testing.assert_allclose(units.raw(j, seen[:, j]), X[:, j], atol=1e-12)
