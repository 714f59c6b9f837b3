"""Missing values in a store: the codes, bins and answers that they have in memory."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from widemargin import AdditiveSVC, BlockStore, KernelSVC
from widemargin.additive.columns import Columns
from widemargin.additive.learn import Settings, learn
from widemargin.errors import UnseenWarning
from widemargin.files import Folder

from .encoding import same
from .helpers import svc
from .problems import histograms

each_layout = pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])


def with_gaps(n_rows=120, share=0.15, columns=(1, 4), layout=np.asarray):
    """Some values of some columns missing, and more so in one class."""
    X, y = histograms(3, n_rows)
    rng = np.random.default_rng(1)
    X *= rng.random(X.shape) < 0.7
    for j in columns:
        X[rng.random(n_rows) < share * (1 + y), j] = np.nan
    return layout(X), y


def built(folder, X, y, *more, **options):
    parts = [tuple(a[k : k + 7] for a in (X, y, *more)) for k in range(0, X.shape[0], 7)]
    return BlockStore.build(folder / "store", iter(parts), **{"values_per_block": 80, **options})


def learned(X, y, scaling="auto"):
    """What a fit in memory makes of the data, with weights of 1."""
    columns = Columns.of(X, {})
    values, marks = columns.parts(X)
    settings = Settings("intersection", scaling=scaling)
    return learn(values, np.ones(len(y)), settings, marks)


@each_layout
@pytest.mark.parametrize("scaling", ["global", "minmax"])
def test_codes_and_bins_are_those_of_arrays_to_the_bit(layout, scaling, tmp_path):
    X, y = with_gaps(layout=layout)
    store, expected = built(tmp_path, X, y, scaling=scaling), learned(X, y, scaling)
    assert len(store.codes.entries) > 4
    assert store.columns == Columns(6, missing=frozenset({1, 4}))
    assert store.shape == (120, 6)
    same(store.encoder, expected.encoder)
    codes = np.vstack([block.toarray() for _, block in store.codes.blocks()])
    np.testing.assert_array_equal(codes, expected.codes.toarray())
    assert codes.shape == (120, 8)


@each_layout
def test_a_fit_learns_from_them_as_from_arrays(layout, tmp_path):
    X, y = with_gaps(layout=layout)
    weight = np.random.default_rng(0).choice([0.5, 1, 2], len(y))
    store = built(tmp_path, X, y, weight)
    options = {"missing": "learn", "tol": 1e-5, "max_iter": 5000, "C": 0.1}
    stored, whole = svc(**options).fit(store), svc(**options).fit(X, y, weight)
    assert stored.columns_ == whole.columns_
    assert stored.objective_ == pytest.approx(whole.objective_, rel=1e-5)
    np.testing.assert_array_equal(stored.decision_function(store), stored.decision_function(X))
    np.testing.assert_array_equal(whole.decision_function(store), whole.decision_function(X))
    np.testing.assert_array_equal(stored.predict(store), stored.predict(X))
    # What is missing tells the classes apart, and no imputed value would.
    filled = np.nan_to_num(X.toarray() if sp.issparse(X) else X)
    assert stored.score(X, y) > svc(C=0.1).fit(filled, y).score(filled, y)


def test_a_machine_that_was_not_told_to_learn_from_them_says_so(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = with_gaps()
    store = built(tmp_path, X, y)
    with pytest.raises(ValueError, match=r"first in column 1. Fit it with missing='learn'"):
        svc().fit(store)
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    named = BlockStore.build(tmp_path / "named", [(frame, y)])
    with pytest.raises(ValueError, match="first in column 'b'"):
        AdditiveSVC().fit(named)


def test_rows_without_weight_leave_no_gaps(tmp_path):
    X, y = with_gaps(columns=())
    X[5, 2], weight = np.nan, np.ones(len(y))
    weight[5] = 0
    store = built(tmp_path, X, y, weight)
    assert store.columns.are_features
    same(store.encoder, svc().fit(X[weight > 0], y[weight > 0]).model_.encoder)


def test_a_column_where_all_is_missing(tmp_path):
    X, y = with_gaps()
    X[:, 3] = np.nan
    store = built(tmp_path, X, y)
    stored, whole = (svc(missing="learn", tol=1e-4).fit(*d) for d in ((store,), (X, y)))
    same(store.encoder, whole.model_.encoder)
    assert stored.objective_ == pytest.approx(whole.objective_, rel=1e-4)


def test_an_appended_gap_is_learned_where_the_column_had_some_before(tmp_path):
    X, y = with_gaps(240)
    X[120:] = np.clip(X[120:], 0, np.nanmax(X[:120], axis=0))
    store = built(tmp_path, X[:120], y[:120])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        longer = store.append([(X[120:], y[120:])], values_per_block=80)
    model = svc(missing="learn").fit(longer)
    np.testing.assert_array_equal(model.decision_function(longer), model.decision_function(X))


def test_an_appended_gap_of_a_complete_column_contributes_nothing_with_a_warning(tmp_path):
    X, y = with_gaps(240)
    X[130, 3] = X[140, 0] = np.nan
    store = built(tmp_path, X[:120], y[:120])
    said = "had none when the store was built contribute nothing: 0; 3."
    with pytest.warns(UnseenWarning, match=said) as warned:
        longer = store.append([(X[120:], y[120:])], values_per_block=80)
    assert warned[0].filename == __file__
    assert longer.columns == store.columns
    model = svc(missing="learn").fit(longer)
    with pytest.warns(UnseenWarning, match="contribute nothing"):
        expected = model.decision_function(X)
    np.testing.assert_array_equal(model.decision_function(longer), expected)


def test_a_store_with_other_gaps_than_the_model_is_not_predicted(tmp_path):
    X, y = with_gaps()
    model = svc(missing="learn").fit(X, y)
    store = built(tmp_path, np.nan_to_num(X), y)
    with pytest.raises(ValueError, match="missing values in other columns, than"):
        model.predict(store)


@pytest.mark.parametrize(("keep", "bad"), [("values", "NaN"), ("codes", "infinity")])
def test_what_has_no_place_is_refused_by_its_own(keep, bad, tmp_path):
    X, y = with_gaps(columns=())
    X[30, 2] = np.nan if bad == "NaN" else -np.inf
    with pytest.raises(ValueError, match=f"contains {bad} at row 30, column 2") as error:
        built(tmp_path, X, y, keep=keep)
    assert ('AdditiveSVC(missing="learn")' in str(error.value)) == (bad == "NaN")


def test_infinity_is_found_behind_gaps(tmp_path):
    X, y = with_gaps()
    X[60, 5] = np.inf
    with pytest.raises(ValueError, match="contains infinity at row 60, column 5"):
        built(tmp_path, X, y)


def test_a_kernel_machine_asks_for_values_as_ever(tmp_path):
    with pytest.raises(ValueError, match="keep='values'"):
        KernelSVC().fit(built(tmp_path, *with_gaps()))


def test_a_build_that_was_killed_has_the_same_gaps(tmp_path):
    X, y = with_gaps()

    def stop(step, rows, of):
        if step == "coding":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        built(tmp_path, X, y, told=stop)
    expected = built(tmp_path / "other", X, y)
    store = built(tmp_path, X, y)
    assert store.columns == expected.columns
    for entry in expected.codes.entries:
        assert (store.folder / entry.file).read_bytes() == (
            expected.folder / entry.file
        ).read_bytes()


@pytest.mark.parametrize("name", ["missing", "categories", "kernel", "n_finished"])
def test_a_manifest_without_one_of_its_fields_is_refused(name, tmp_path):
    import json

    from widemargin.additive.manifest import MANIFEST, _digest

    store = built(tmp_path, *with_gaps(columns=()))
    path = store.folder / MANIFEST
    content = json.loads(path.read_text())
    del content[name], content["digest"]
    schema = content.pop("schema")
    path.write_text(json.dumps({"schema": schema, "digest": _digest(content), **content}))
    with pytest.raises(ValueError, match=rf"manifest\.{name} must be"):
        BlockStore(store.folder)


@pytest.mark.parametrize("missing", [[6], [-1], [4, 1], [1, 1], ["1"], [True], "14", {"1": 4}])
def test_a_manifest_that_names_no_column_is_refused(missing, tmp_path):
    from widemargin.additive.manifest import Manifest

    store = built(tmp_path, *with_gaps())
    folder = Folder(store.folder)
    Manifest.read(folder).with_(missing=missing).write(folder)
    with pytest.raises(ValueError, match=r"manifest\.missing must be"):
        BlockStore(store.folder)


def test_a_manifest_with_other_gaps_than_its_codes_is_refused(tmp_path):
    from widemargin.additive.manifest import Manifest

    store = built(tmp_path, *with_gaps())
    folder = Folder(store.folder)
    Manifest.read(folder).with_(missing=[1]).write(folder)
    with pytest.raises(ValueError, match=r"manifest.blocks\[0\].arrays must be labelled rows"):
        svc(missing="learn").fit(BlockStore(store.folder))


# ------------------------------------------------------------------ categories


def people(n_rows=200):
    """Two columns of categories, one of them text, and gaps in one of each kind."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n_rows)
    jobs = np.where(y == 1, rng.choice(["smith", "clerk"], n_rows), "baker").astype(object)
    jobs[rng.random(n_rows) < 0.2] = None
    frame = pandas.DataFrame(
        {
            "job": jobs,
            "age": np.where(rng.random(n_rows) < 0.2, np.nan, rng.random(n_rows) + y),
            "town": pandas.Categorical(rng.choice(["Ulm", "Bonn"], n_rows)),
            "pay": rng.random(n_rows),
        }
    )
    return frame, y


def built_of(folder, frame, y):
    parts = [(frame[k : k + 30], y[k : k + 30]) for k in range(0, len(y), 30)]
    return BlockStore.build(folder / "people", parts, values_per_block=150)


def test_categories_have_the_codes_that_they_have_in_memory(tmp_path):
    frame, y = people()
    store = built_of(tmp_path, frame, y)
    options = {"kernel": "intersection", "missing": "learn", "tol": 1e-5, "random_state": 0}
    stored, whole = AdditiveSVC(**options).fit(store), AdditiveSVC(**options).fit(frame, y)
    assert stored.columns_ == whole.columns_ == store.columns
    assert store.columns.categories == {0: ("baker", "clerk", "smith"), 2: ("Bonn", "Ulm")}
    same(store.encoder, whole.model_.encoder)
    np.testing.assert_array_equal(stored.model_.frequency, whole.model_.frequency)
    assert stored.objective_ == pytest.approx(whole.objective_, rel=1e-5)
    np.testing.assert_array_equal(stored.decision_function(store), stored.decision_function(frame))
    np.testing.assert_array_equal(whole.decision_function(store), whole.decision_function(frame))


def test_new_categories_of_an_append_contribute_nothing_with_a_warning(tmp_path):
    frame, y = people()
    store, more = built_of(tmp_path, frame, y), frame[:40].copy()
    more.loc[7, "job"] = "abbot"
    with pytest.warns(UnseenWarning, match=r"contribute nothing: 'job', first 'abbot'\."):
        longer = store.append([(more, y[:40])])
    assert longer.columns == store.columns
    model = AdditiveSVC(missing="learn", random_state=0).fit(longer)
    with pytest.warns(UnseenWarning, match="'job' in 1 row"):
        expected = model.decision_function(more)
    np.testing.assert_array_equal(model.decision_function(longer)[200:], expected)


def test_nothing_but_categories(tmp_path):
    frame, y = people()
    frame = frame[["job", "town"]]
    options = {"kernel": "intersection", "missing": "learn", "tol": 1e-4, "random_state": 0}
    store = built_of(tmp_path, frame, y)
    stored, whole = AdditiveSVC(**options).fit(store), AdditiveSVC(**options).fit(frame, y)
    assert stored.objective_ == pytest.approx(whole.objective_, rel=1e-4)
    np.testing.assert_array_equal(stored.decision_function(store), stored.decision_function(frame))


def test_a_column_keeps_its_kind(tmp_path):
    frame, y = people()
    late = [(frame[["age", "pay"]], y), (frame[["town", "pay"]].rename(columns={"town": "age"}), y)]
    said = "begins with row 200 has categories in column 0, where the rows before have numbers"
    with pytest.raises(ValueError, match=said):
        BlockStore.build(tmp_path / "s", late)


@pytest.mark.parametrize("wanted", [[0], None, ["job"]])
def test_an_estimator_with_other_columns_of_categories_is_refused(wanted, tmp_path):
    store = built_of(tmp_path, *people())
    with pytest.raises(ValueError, match=r"categorical_features=.*Leave it at 'from_dtype'"):
        AdditiveSVC(missing="learn", categorical_features=wanted).fit(store)


def test_categories_are_no_values(tmp_path):
    frame, y = people()
    with pytest.raises(ValueError, match="could not convert string"):
        BlockStore.build(tmp_path / "s", [(frame, y)], keep="values")


@pytest.mark.parametrize(
    "categories", [[[9, ["a"]]], [[0, ["a", "a"]]], [[0, [1]]], [[2, ["a"]], [0, ["a"]]], [[0]], 3]
)
def test_a_manifest_with_categories_that_cannot_be_is_refused(categories, tmp_path):
    from widemargin.additive.manifest import Manifest

    store = built_of(tmp_path, *people())
    folder = Folder(store.folder)
    Manifest.read(folder).with_(categories=categories).write(folder)
    with pytest.raises(ValueError, match=r"manifest\.categories must be"):
        BlockStore(store.folder)


def test_a_store_of_batches_of_another_program(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from widemargin import stream

    frame, y = people()
    table = pa.Table.from_pandas(frame.assign(label=y), preserve_index=False)
    store = BlockStore.build(tmp_path / "s", stream(table.to_reader(60)))
    expected = built_of(tmp_path, frame, y)
    assert store.columns == expected.columns
    options = {"missing": "learn", "random_state": 0}
    models = [AdditiveSVC(**options).fit(one) for one in (store, expected)]
    scores = [model.decision_function(frame) for model in models]
    np.testing.assert_allclose(*scores, atol=0.1)
    same(store.encoder, expected.encoder)
