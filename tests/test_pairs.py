"""Pairs that an additive model misses come first, and noise does not pass for one."""

import time

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from widemargin import AdditiveSVC, KernelSVC, TableEncoder, missed_pairs
from widemargin.pairs import PairsSummary
from widemargin.term_bins import TermBins, term_values
from widemargin.terms import MISSING, NEITHER, Term


def uniform(n, d, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (n, d))


def fit(X, y, **parameters):
    return AdditiveSVC(random_state=0, **parameters).fit(X, y)


def features(pair) -> set[int]:
    return {*pair.first.features, *pair.second.features}


def outstanding(pairs) -> list[set[int]]:
    return [features(pair) for pair in pairs if pair.stands_out]


# ------------------------------------------------------------------ what is there is found


def test_the_pair_of_a_product_comes_first_and_alone():
    X = uniform(2000, 6)
    y = X[:, 1] * X[:, 3] > 0
    pairs = missed_pairs(fit(X, y), X, y)
    assert outstanding(pairs) == [{1, 3}]
    assert 0.5 < pairs[0].strength <= 1
    assert all(abs(pair.strength) < 0.02 for pair in pairs[1:])
    strengths = [pair.strength for pair in pairs]
    assert strengths == sorted(strengths, reverse=True)


def test_the_effect_says_where_which_class_is_more_frequent():
    X = uniform(4000, 3)
    y = X[:, 0] * X[:, 2] > 0
    (pair, *_) = missed_pairs(fit(X, y), X, y)
    n_first, n_second, n_scores = pair.effect.shape
    assert (n_first, n_second, n_scores) == (8, 8, 1)
    assert tuple(map(len, pair.bins)) == (8, 8)
    assert pair.bins[0][0].startswith("up to -0.7")
    assert pair.effect[0, 0, 0] > 0.4  # both negative: the product is not
    assert pair.effect[-1, 0, 0] < -0.4
    counted = TermBins.of(X[:, 0], 8).number
    assert abs(pair.effect[counted, 0].mean()) < 0.05  # no column does it alone


def test_a_weak_interaction_beside_strong_terms():
    X = uniform(20_000, 6)
    z = 3 * X[:, 0] + 2 * np.sin(4 * X[:, 1]) + 4 * X[:, 2] ** 2 + 2 * X[:, 4] * X[:, 5]
    y = np.random.default_rng(1).random(len(z)) < 1 / (1 + np.exp(-z))
    pairs = missed_pairs(fit(X[:10_000], y[:10_000]), X[10_000:], y[10_000:])
    assert outstanding(pairs) == [{4, 5}]


def test_of_several_classes_any_may_have_the_interaction():
    X = uniform(3000, 5)
    y = (X[:, 1] * X[:, 3] > 0).astype(int) + 2 * (X[:, 0] > 0.5)
    pairs = missed_pairs(fit(X, y), X, y)
    assert outstanding(pairs) == [{1, 3}]
    assert pairs[0].effect.shape[2] == 4


def test_sparse_data():
    X = uniform(5000, 100) * (uniform(5000, 100, seed=1) > 0.5)
    y = (X[:, 7] != 0) ^ (X[:, 9] != 0)
    sparse = sp.csr_array(np.abs(X))
    pairs = missed_pairs(fit(sparse, y, kernel="chi2", tol=0.1), sparse, y)
    assert outstanding(pairs)[:1] == [{7, 9}]


def test_categories_are_one_column_and_keep_their_names():
    rng = np.random.default_rng(1)
    job, age = rng.integers(0, 3, 2000), rng.uniform(20, 60, 2000)
    X = pd.DataFrame({"job": np.array(list("abc"))[job], "age": age, "size": rng.random(2000)})
    y = np.where(job == 1, age > 40, age < 40)
    encoder = TableEncoder(scaling=None, sparse_output=False)
    model = make_pipeline(encoder, StandardScaler(), AdditiveSVC(random_state=0)).fit(X, y)
    pairs = missed_pairs(model, X, y)
    assert pairs[0].name == "job \N{MULTIPLICATION SIGN} age"
    assert pairs[0].stands_out
    assert not pairs[1].stands_out
    assert set(pairs[0].bins[0]) == {"a", "b", "c"}
    assert pairs[0].bins[1][0].startswith("up to 2")  # years, not deviations


def test_many_features_within_bounded_time():
    X = uniform(3000, 1500)
    y = (X[:, 100] * X[:, 1203] > 0) ^ (X[:, 3] > 0.9)
    model = fit(X, y, tol=0.5, max_iter=5, kernel="linear")
    started = time.perf_counter()
    pairs = missed_pairs(model, X, y)
    assert time.perf_counter() - started < 60  # of a million pairs; seconds where nothing else runs
    assert outstanding(pairs) == [{100, 1203}]


# ------------------------------------------------------------------ noise is noise


@pytest.mark.parametrize("seed", range(8))
def test_no_pair_stands_out_of_noise(seed):
    X = uniform(1000, 8, seed)
    y = np.random.default_rng(seed + 100).random(1000) < 0.3
    assert outstanding(missed_pairs(fit(X, y), X, y)) == []


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n_classes", [2, 3])
def test_no_pair_stands_out_of_additive_data(seed, n_classes):
    """Probabilities that saturate are no interaction, though their margins have one; nor is a
    class between two others."""
    X = uniform(8000, 5, seed)
    z = 4 * X[:, 0] + 3 * np.sin(4 * X[:, 1]) + 3 * np.abs(X[:, 2])
    z = z - z.mean() + np.random.default_rng(seed + 100).logistic(size=len(z))
    y = np.digitize(z, np.quantile(z, np.linspace(0, 1, n_classes + 1)[1:-1]))
    assert outstanding(missed_pairs(fit(X, y), X, y)) == []


def test_a_column_that_says_the_same_as_another_makes_no_pair():
    X = uniform(2000, 3)
    X[:, 2] = X[:, 0]
    y = X[:, 0] ** 2 > uniform(2000, 1, seed=1).ravel() ** 2
    assert outstanding(missed_pairs(fit(X, y), X, y)) == []


def test_the_answer_depends_on_the_seed_only():
    X = uniform(500, 4)
    y = X[:, 0] > uniform(500, 1, seed=1).ravel()
    model = fit(X, y)
    strengths = [
        [pair.strength for pair in missed_pairs(model, X, y, random_state=seed)]
        for seed in (1, 1, 2)
    ]
    assert strengths[0] == strengths[1] != strengths[2]


# ------------------------------------------------------------------ edges


def test_one_feature_has_no_pairs_and_two_have_one():
    X = uniform(200, 2)
    y = X[:, 0] > 0
    assert missed_pairs(fit(X[:, :1], y), X[:, :1], y) == []
    assert len(missed_pairs(fit(X, y), X, y)) == 1


def test_only_so_many_as_asked_for():
    X = uniform(200, 5)
    assert len(missed_pairs(fit(X, X[:, 0] > 0), X, X[:, 0] > 0, most=3)) == 3


def test_few_rows_and_other_machines_are_refused():
    X = uniform(39, 3)
    y = X[:, 0] > 0
    with pytest.raises(ValueError, match="40 rows or more, got 39"):
        missed_pairs(fit(X, y), X, y)
    with pytest.raises(ValueError, match="KernelSVC is not a sum over features"):
        missed_pairs(KernelSVC().fit(X, y), X, y)


# ------------------------------------------------------------------ bins


def test_bins_of_few_values_are_the_values_and_missing_has_its_own():
    bins = TermBins.of(np.array([3.0, np.nan, 1.0, 3.0]), 4)
    assert bins.labels == ("1", "3", MISSING)
    assert bins.number.tolist() == [1, 2, 0, 1]
    assert TermBins.of(np.full(3, np.nan), 4).labels == (MISSING,)


def test_bins_of_mostly_zeros():
    bins = TermBins.of(np.r_[np.zeros(90), np.arange(1.0, 11.0)], 4)
    assert bins.labels == ("up to 0", "above 0")
    assert np.bincount(bins.number).tolist() == [90, 10]


def test_bins_of_many_categories_are_the_most_frequent():
    bins = TermBins.of(np.array([*"abcdbbdd", MISSING, MISSING], dtype=object), 3)
    assert bins.labels == ("b", "d", NEITHER)
    assert bins.number.tolist() == [2, 0, 2, 1, 0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_array, pd.DataFrame])
def test_values_of_terms_in_any_container(form):
    X = form(np.array([[1.0, 0, 2], [0, 1, 3], [0, 0, 4]]))
    assert term_values(X, Term("x", 2, (2,))).tolist() == [2, 3, 4]


def test_dates_are_days():
    X = pd.DataFrame({"when": pd.to_datetime(["2026-11-18", None])})
    np.testing.assert_array_equal(term_values(X, Term("when", 0, (0,))), [20775, np.nan])


def test_values_of_columns_of_categories_and_of_missing_numbers():
    ages = pd.array([1, None, 3, 4], dtype="Int64")
    X = pd.DataFrame({"job": pd.Categorical([1, None, 2, 1]), "age": ages})
    assert term_values(X, Term("job", 0, (0,), ("1", "2", MISSING))).tolist() == [
        "1",
        MISSING,
        "2",
        "1",
    ]
    np.testing.assert_array_equal(term_values(X, Term("age", 1, (1,))), [1, np.nan, 3, 4])


def test_missing_categories_of_arrow_are_no_category():
    pa = pytest.importorskip("pyarrow")
    jobs = pa.array(["smith", None, "clerk", None, "smith"]).dictionary_encode()
    X = pa.table({"job": pa.chunked_array([jobs]), "age": [1.0, None, 3.0, 4.0, 5.0]})
    known = ["smith", MISSING, "clerk", MISSING, "smith"]
    assert term_values(X, Term("job", 0, (0,), ("clerk", "smith", MISSING))).tolist() == known
    assert term_values(X, Term("job", 0, (0,))).tolist() == known
    np.testing.assert_array_equal(term_values(X, Term("age", 1, (1,))), [1, np.nan, 3, 4, 5])


def test_pairs_of_frames_with_categories_and_missing_values():
    rng = np.random.default_rng(1)
    job, age = rng.choice(["a", "b", "c"], 2000), rng.uniform(20, 60, 2000)
    y = np.where(job == "b", age > 40, age < 40)
    age[::50] = np.nan
    X = pd.DataFrame({"job": pd.Categorical(job), "age": age, "size": rng.random(2000)})
    pairs = missed_pairs(AdditiveSVC(missing="learn", random_state=0).fit(X, y), X, y)
    assert pairs[0].name == "job \N{MULTIPLICATION SIGN} age"
    assert pairs[0].stands_out
    assert pairs[0].bins[1][-1] == MISSING


def test_few_rows_are_no_proof_that_nothing_is_missed():
    """Two columns of which only the product counts, on 60 rows and on 2,000."""
    X = np.random.default_rng(3).uniform(-1, 1, (2000, 3))
    y = X[:, 0] * X[:, 1] > 0
    model = AdditiveSVC(random_state=0).fit(X, y)
    few, many = (PairsSummary.of(missed_pairs(model, X[:n], y[:n])) for n in (60, 2000))
    assert "too few to tell" in few.verdict
    assert many.verdict.startswith("A sum over columns cannot see")
    assert many.rows[0][2] == "yes"
