"""Stores: the same fit from blocks on disk as from arrays in memory."""

import itertools
import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import SVC

from widemargin import AdditiveSVC, BlockStore

from .encoding import same
from .helpers import svc
from .problems import LOSSES, histograms

pytestmark = pytest.mark.slow

SMALL = 80  # values per block: many blocks of few rows


def chunks(X, y, *more, size=7):
    return [tuple(a[k : k + size] for a in (X, y, *more)) for k in range(0, X.shape[0], size)]


def built(folder, X, y, *more, **options):
    options = {"values_per_block": SMALL, **options}
    return BlockStore.build(folder / "store", iter(chunks(X, y, *more)), **options)


def noisy(n_classes=3, n_rows=120, layout=np.asarray):
    X, y = histograms(n_classes, n_rows)
    return layout(X * (np.random.default_rng(1).random(X.shape) < 0.7)), y


each_layout = pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])


@each_layout
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("n_classes", "multi_class"), [(2, "ovr"), (20, "ovr"), (3, "crammer_singer")]
)
def test_objective_and_certified_gap_are_those_of_arrays(
    n_classes, loss, multi_class, layout, tmp_path
):
    X, y = noisy(n_classes, layout=layout)
    weight = np.random.default_rng(0).choice([0.5, 1, 2], len(y))
    store = built(tmp_path, X, y, weight)
    assert len(store.codes.entries) > 4
    model = svc(loss=loss, multi_class=multi_class, C=0.1, tol=1e-5, max_iter=5000)
    stored, whole = model.fit(store), svc(**vars_of(model)).fit(X, y, weight)
    assert stored.duality_gap_ <= 1e-5
    assert stored.objective_ == pytest.approx(whole.objective_, rel=1e-5)
    assert pytest.approx(whole.C_) == stored.C_
    np.testing.assert_array_equal(stored.classes_, whole.classes_)
    np.testing.assert_allclose(stored.decision_function(X), whole.decision_function(X), atol=1e-2)
    np.testing.assert_array_equal(stored.decision_function(store), stored.decision_function(X))
    np.testing.assert_array_equal(stored.predict(store), stored.predict(X))


def vars_of(model):
    return {k: v for k, v in model.get_params().items() if k != "kernel"}


@settings(max_examples=20)
@given(
    size=st.integers(5, 200),
    per_block=st.integers(60, 900),
    sparse=st.booleans(),
    signed=st.booleans(),
    scaling=st.sampled_from(["auto", "global", "minmax"]),
    weighted=st.booleans(),
    seed=st.integers(0, 5),
)
def test_any_chunks_and_blocks_have_the_bins_codes_and_optimum_of_the_whole(
    tmp_path_factory, size, per_block, sparse, signed, scaling, weighted, seed
):
    X, y = histograms(3, 90, seed=seed)
    X[:, 0] -= 3 * (signed and scaling != "global")
    X = sp.csr_array(X) if sparse else X
    weight = np.random.default_rng(seed).integers(0, 3, len(y)) if weighted else np.ones(len(y))
    folder = tmp_path_factory.mktemp("store")
    parts = chunks(X, y, weight, size=size)
    store = BlockStore.build(folder, parts, scaling=scaling, values_per_block=per_block)
    kept = weight > 0
    np.testing.assert_array_equal(store.classes[store.labels()], y[kept])
    np.testing.assert_array_equal(store.weights(), weight[kept])
    options = {"scaling": scaling, "tol": 1e-4, "max_iter": 2000, "C": 0.1}
    stored, fitted = svc(**options).fit(store), svc(**options).fit(X, y, weight)
    same(store.encoder, fitted.model_.encoder)
    assert stored.objective_ == pytest.approx(fitted.objective_, rel=1e-4)
    assert stored.duality_gap_ <= 1e-4
    np.testing.assert_allclose(stored.model_.frequency, fitted.model_.frequency)
    for name in ("start", "code", "share"):
        ours, theirs = (getattr(m.model_.shares, name) for m in (stored, fitted))
        np.testing.assert_allclose(ours, theirs, rtol=1e-4)


def test_a_sweep_over_mixed_blocks_is_worth_one_over_all_rows(digits, tmp_path):
    """One block at a time takes ten times as many sweeps (see solver.py)."""
    X, y = digits
    y, options = y % 2, {"kernel": "intersection", "tol": 1e-3}
    store = built(tmp_path, X, y, values_per_block=1500)
    stored, whole = svc(**options).fit(store), svc(**options).fit(X, y)
    visits = [sum(r["active"] + r.get("again", 0) for r in m.history_[0]) for m in (stored, whole)]
    assert visits[0] <= visits[1] + 4 * len(X)


@pytest.mark.parametrize("approximation", ["spectral", "chebyshev", "unary", "fourier"])
def test_every_table_is_made_of_a_store(approximation, tmp_path):
    X, y = noisy()
    store = built(tmp_path, X, y)
    stored, whole = (svc(approximation=approximation, tol=1e-4).fit(*d) for d in ((store,), (X, y)))
    np.testing.assert_allclose(stored.decision_function(X), whole.decision_function(X), atol=1e-2)
    assert stored.rank_ == whole.rank_


def test_the_store_chooses_the_kernel_as_arrays_do(tmp_path):
    X = np.random.default_rng(0).random((80, 200)) * (
        np.random.default_rng(1).random((80, 200)) < 0.05
    )
    y = np.arange(80) % 2
    store = built(tmp_path, X, y, values_per_block=2000)
    assert AdditiveSVC(random_state=0).fit(store).kernel_ == "chi2"
    assert AdditiveSVC(random_state=0).fit(X, y).kernel_ == "chi2"


def test_blocks_have_one_layout_though_some_have_more_zeros(tmp_path):
    X, y = noisy(2, 120)
    X[60:] = 0
    X[60:, 0] = y[60:]
    store = built(tmp_path, X, y)
    assert {frozenset(e.arrays) for e in store.codes.entries} == {frozenset({"data", "label"})}
    assert svc(tol=1e-4).fit(store).objective_ == pytest.approx(
        svc(tol=1e-4).fit(X, y).objective_, rel=1e-4
    )


@pytest.mark.parametrize("class_weight", ["balanced", {1: 3.0}])
def test_weights_of_classes(class_weight, tmp_path):
    X, y = noisy()
    X, y = X[y * np.arange(len(y)) % 4 != 3], y[y * np.arange(len(y)) % 4 != 3]
    options = {"class_weight": class_weight, "tol": 1e-4}
    stored = svc(**options).fit(built(tmp_path, X, y))
    assert stored.objective_ == pytest.approx(svc(**options).fit(X, y).objective_, rel=1e-4)


def test_a_class_without_weight_is_refused(tmp_path):
    store = built(tmp_path, *noisy())
    with pytest.raises(ValueError, match="class_weight is 0 for a class"):
        svc(class_weight={1: 0}).fit(store)


@pytest.mark.parametrize(
    "labels",
    [["b", "a", "c"], np.array(["b", "a", "c"], dtype=object), [2.0, -1.0, 7.0], [3, 1, 2]],
    ids=["text", "objects", "floats", "integers"],
)
def test_labels_of_any_kind(labels, tmp_path):
    X, y = noisy()
    y = np.asarray(labels)[y]
    stored, whole = svc().fit(built(tmp_path, X, y)), svc().fit(X, y)
    np.testing.assert_array_equal(stored.classes_, whole.classes_)
    assert stored.score(X, y) == pytest.approx(whole.score(X, y), abs=0.05)


def test_numbers_that_are_no_classes_are_refused(tmp_path):
    X, y = noisy()
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        svc().fit(built(tmp_path, X, y + 0.5))


def test_boolean_labels(tmp_path):
    X, y = noisy(2)
    assert svc().fit(built(tmp_path, X, y == 1)).classes_.tolist() == [False, True]


def test_a_path_over_c_and_a_warm_start(tmp_path):
    X, y = noisy()
    store = built(tmp_path, X, y)
    models = svc(tol=1e-4).fit_path(store, None, [0.1, 1.0])
    expected = svc(tol=1e-4).fit_path(X, y, [0.1, 1.0])
    for model, other in zip(models, expected, strict=True):
        assert model.objective_ == pytest.approx(other.objective_, rel=1e-4)
    warm = svc(tol=1e-3, warm_start=True).fit(store)
    assert warm.fit(store).n_iter_ == 0


def test_results_depend_on_the_seed_and_not_on_threads(tmp_path):
    X, y = noisy(20, 200)
    store = built(tmp_path, X, y)
    one, two = (svc(n_jobs=n).fit(store) for n in (1, 2))
    np.testing.assert_array_equal(one.model_.weights, two.model_.weights)
    other = svc(random_state=1).fit(store)
    assert not np.array_equal(one.model_.weights, other.model_.weights)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_threads_change_no_byte_of_a_store(layout, tmp_path):
    X, y = noisy(layout=layout)
    one, three = (
        BlockStore.build(tmp_path / str(n), chunks(X, y), values_per_block=SMALL, n_jobs=n)
        for n in (1, 3)
    )
    contents = [
        {p.name: p.read_bytes() for p in store.folder.iterdir() if p.suffix != ".lock"}
        for store in (one, three)
    ]
    assert len(contents[0]) > 6
    assert contents[0] == contents[1]
    with pytest.raises(ValueError, match="n_jobs=0"):
        one.append(chunks(X, y), n_jobs=0)


def test_codes_travel_to_other_processes(tmp_path):
    codes = pickle.loads(pickle.dumps(built(tmp_path, *noisy()).codes))
    assert sum(block.n_rows for _, block in codes.blocks()) == 120


def test_names_of_columns(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = noisy()
    names = [f"column {j}" for j in range(X.shape[1])]
    frame = pandas.DataFrame(X, columns=names)
    store = BlockStore.build(tmp_path / "store", [(frame[:50], y[:50]), (frame[50:], y[50:])])
    model = svc().fit(store)
    assert model.feature_names_in_.tolist() == names
    assert np.mean(model.predict(frame) == y) > 0.5
    with pytest.raises(ValueError, match="row 0 has other columns"):
        store.append([(X, y)])


def test_sparse_chunks_may_grow_wider(tmp_path):
    X, y = noisy(layout=sp.csr_array)
    narrow = [(X[:40, :2], y[:40]), (X[40:], y[40:])]
    store = BlockStore.build(tmp_path / "store", narrow, values_per_block=SMALL)
    filled = X.toarray()
    filled[:40, 2:] = 0
    assert store.shape == X.shape
    assert svc(tol=1e-4).fit(store).objective_ == pytest.approx(
        svc(tol=1e-4).fit(sp.csr_array(filled), y).objective_, rel=1e-4
    )


# ------------------------------------------------------------------ append


def test_rows_that_are_appended_count_as_if_they_had_been_there(tmp_path):
    X, y = noisy()
    store = built(tmp_path, X[:80], y[:80])
    X[80:] = np.clip(X[80:], 0, X[:80].max(axis=0))
    longer = store.append(chunks(X[80:], y[80:]), values_per_block=SMALL)
    assert (store.shape, longer.shape) == ((80, 6), (120, 6))
    assert svc(tol=1e-4).fit(longer).objective_ == pytest.approx(
        svc(tol=1e-4).fit(X, y).objective_, rel=1e-3
    )
    assert {p.name for p in (tmp_path / "store").glob("raw*")} == set()


def test_appended_values_outside_the_range_fall_in_the_end_bins(tmp_path):
    X, y = noisy()
    store = built(tmp_path, X, y).append([(np.full((3, 6), 1e6), [0, 1, 7])])
    (_, last) = list(store.codes.blocks())[-1]
    np.testing.assert_array_equal(last.toarray(), store.encoder.n_codes - 1)
    assert store.classes.tolist() == [0, 1, 2, 7]
    assert svc().fit(store).classes_.tolist() == [0, 1, 2, 7]


def test_new_labels_are_sorted_among_the_old_ones(tmp_path):
    X, y = noisy(2)
    store = built(tmp_path, X, y + 5).append([(X, y + 1)])
    stored = svc().fit(store)
    whole = svc().fit(np.vstack([X, X]), np.concatenate([y + 5, y + 1]))
    np.testing.assert_array_equal(stored.classes_, whole.classes_)
    assert stored.objective_ == pytest.approx(whole.objective_, rel=0.05)


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"n_bins": 9}, "n_bins=9: the store .* was built with n_bins='auto'"),
        ({"scaling": None}, "scaling=None: the store .* was built with scaling='auto'"),
        ({"binning": "floor"}, "binning='floor': the store"),
        ({"approximation": "pmsvm"}, "binning='exact': the store"),
        ({"kernel": lambda x, y: np.minimum(x, y) + 1}, "not zero at zero"),
    ],
)
def test_what_the_codes_cannot_give_is_refused(change, said, tmp_path):
    store = built(tmp_path, *noisy())
    with pytest.raises(ValueError, match=said):
        svc(**change).fit(store)


def test_a_store_brings_its_own_labels_and_weights(tmp_path):
    X, y = noisy()
    store = built(tmp_path, X, y)
    with pytest.raises(ValueError, match="y must be None if X is a store"):
        svc().fit(store, y)
    with pytest.raises(ValueError, match="sample_weight must be None"):
        svc().fit(store, sample_weight=np.ones(len(y)))


def test_other_estimators_say_that_a_store_is_no_array(tmp_path):
    with pytest.raises(TypeError, match="A BlockStore is not an array"):
        SVC().fit(built(tmp_path, *noisy()), noisy()[1])


def test_a_model_with_other_bins_cannot_predict_a_store(tmp_path):
    X, y = noisy()
    store = built(tmp_path, X, y)
    with pytest.raises(ValueError, match="other bins than the model"):
        svc().fit(2 * X[:50], y[:50]).predict(store)


@pytest.mark.parametrize(
    ("parts", "error", "said"),
    [
        ([], ValueError, "no rows to store"),
        ([np.ones((2, 2))], TypeError, "A chunk is a pair"),
        ([(np.ones((2, 2)), None)], ValueError, "rows from 0 on have no labels"),
        ([(np.ones((2, 2)), [1])], ValueError, "has 2 rows and 1 labels"),
        ([(np.ones((2, 2)), [0, 1]), (np.ones((1, 3)), [1])], ValueError, "row 2 has 3 features"),
        ([(np.ones((2, 2)), [0, 1]), (sp.eye_array(2), [0, 1])], ValueError, "row 2 is sparse"),
        ([(np.ones((2, 2)), ["a", "b"]), (np.eye(2), [0, 1])], ValueError, "from row 2 on are int"),
        ([(np.ones((2, 2)), [0, np.nan])], ValueError, "labels are finite numbers"),
        ([(np.eye(2), [0, 1]), (np.array([[1, np.inf]]), [1])], ValueError, "row 2, column 1"),
        ([(np.array([["a", "b"]]), [1])], ValueError, "numeric|numbers"),
    ],
)
def test_chunks_that_are_no_data_are_refused_by_their_row(parts, error, said, tmp_path):
    with pytest.raises(error, match=said):
        BlockStore.build(tmp_path / "store", parts)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"scaling": "percentile"}, "scaling='percentile' needs all values at once"),
        ({"scaling": "wide"}, "scaling='wide' is not known"),
        ({"n_bins": 0}, "n_bins=0 is out of range"),
        ({"binning": "odd"}, "binning='odd' is not known"),
        ({"values_per_block": 0}, "values_per_block=0 is out of range"),
    ],
)
def test_settings_that_a_store_cannot_have(options, said, tmp_path):
    with pytest.raises(ValueError, match=said):
        built(tmp_path, *noisy(), **options)


# ------------------------------------------------------------------ size, memory, progress


@each_layout
def test_bytes_on_disk(layout, tmp_path):
    X = np.random.default_rng(0).random((400, 300))
    X *= (np.arange(300) % 7 == 0) | (layout is np.asarray)
    store = built(tmp_path, layout(X), np.arange(400) % 2, values_per_block=20_000)
    assert store.nbytes / store.n_values <= (6 if layout is sp.csr_array else 2)
    assert sum(p.stat().st_size for p in (tmp_path / "store").glob("block*")) == store.nbytes


def test_progress_is_told(tmp_path):
    heard = []
    built(tmp_path, *noisy(), told=lambda *step: heard.append(step))
    steps = [key for key, _ in itertools.groupby(step for step, *_ in heard)]
    assert steps == ["reading", "coding"]
    assert heard[-1] == ("coding", 120, 120)


MEMORY = """
import resource, sys
import numpy as np
from widemargin import AdditiveSVC, BlockStore

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

def chunks():
    rng = np.random.default_rng(0)
    for _ in range(60):
        y = rng.integers(0, 2, 1000)
        X = rng.integers(0, 200, (1000, 1500), dtype=np.uint8)
        yield X + 50 * y[:, None].astype(np.uint8), y

AdditiveSVC(random_state=0).fit(*next(chunks()))  # what the libraries take
before = peak()
store = BlockStore.build(sys.argv[1], chunks(), values_per_block=750_000)
model = AdditiveSVC("chi2", tol=0.3, random_state=0).fit(store)
model.predict(store)
print(store.nbytes / 2**20, peak() - before, model.duality_gap_)
"""


@pytest.mark.memory
def test_memory_is_that_of_some_blocks(tmp_path):
    """86 MB of codes in a process whose peak grows by less than half of that."""
    run = subprocess.run(
        [sys.executable, "-c", MEMORY, str(tmp_path / "store")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    size, grown, gap = map(float, run.stdout.split())
    assert size > 85
    assert grown < 43
    assert gap <= 0.3
