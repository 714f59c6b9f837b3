"""ColumnTransformer in model files: what is stored, what is refused, and hostile headers."""

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from widemargin import AdditiveSVC, load, save
from widemargin.persistence import read_header

from .cases import table
from .damage import Parts, damaged

PARTS = ("steps", 0, "own", "parts")


def columns(*parts, **options):
    model = make_pipeline(ColumnTransformer(list(parts), **options), AdditiveSVC(random_state=0))
    return model.fit(table(), np.arange(60) % 2)


def test_a_loaded_model_takes_frames_in_any_order_and_new_categories(tmp_path):
    jobs = OneHotEncoder(handle_unknown="ignore")
    model = columns(("n", SimpleImputer(), ["age", "size"]), ("j", jobs, ["job"]))
    save(model, tmp_path / "m")
    loaded = load(tmp_path / "m")
    new = table().iloc[:5].assign(job="unknown")
    expected = model.decision_function(new)
    np.testing.assert_array_equal(loaded.decision_function(new), expected)
    turned = new[["size", "job", "count", "age"]]
    np.testing.assert_array_equal(loaded.decision_function(turned), expected)
    assert list(loaded[0].get_feature_names_out()) == list(model[0].get_feature_names_out())
    header = read_header(tmp_path / "m")
    assert header.kinds == ("ColumnTransformer", "AdditiveSVC")
    assert header.feature_names == ["age", "job", "count", "size"]


BY_NAME = make_column_selector("count|size")


@pytest.mark.parametrize("chosen", [slice(2, 4), [False, False, True, True], BY_NAME])
def test_columns_chosen_otherwise_are_kept_by_number_or_name(chosen, tmp_path):
    model = columns(("n", StandardScaler(), chosen))
    save(model, tmp_path / "m")
    loaded = load(tmp_path / "m")
    expected = model.decision_function(table())
    np.testing.assert_array_equal(loaded.decision_function(table()), expected)
    assert loaded[0].transformers_[0][2] in ([2, 3], ["count", "size"])


class Vector(FunctionTransformer):
    """Takes one column as a vector."""

    def __init__(self):
        super().__init__(lambda x: np.asarray(x)[:, None])


INNER = ColumnTransformer([("n", "passthrough", ["size"])])
REFUSED = {
    "function": (("f", FunctionTransformer(np.log1p), ["size"]), "not of FunctionTransformer"),
    "one column": (("v", Vector(), "size"), "one column as a vector"),
    "no columns": (("n", StandardScaler(), []), "no columns"),
    "rare categories": (("j", OneHotEncoder(min_frequency=2), ["job"]), "min_frequency=2"),
    "other numbers": (("j", OneHotEncoder(dtype=np.float32), ["job"]), "dtype="),
    "indicator": (("n", SimpleImputer(add_indicator=True), ["age"]), "add_indicator=True"),
    "nested": (("c", INNER, ["size"]), "not of ColumnTransformer"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_file_cannot_hold_is_refused(name, tmp_path):
    part, said = REFUSED[name]
    with pytest.raises((TypeError, ValueError), match=said):
        save(columns(part, ("more", "passthrough", ["count"])), tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_weights_are_refused(tmp_path):
    model = columns(("n", "passthrough", ["size"]), transformer_weights={"n": 2.0})
    with pytest.raises(TypeError, match="transformer_weights"):
        save(model, tmp_path / "m")


# ------------------------------------------------------------------ hostile headers

CATEGORIES = (*PARTS, 1, "own", "categories", 0, "values")
IMPUTER = (*PARTS, 0, "steps", 0)
HOSTILE = {
    "a category twice": (CATEGORIES, ["a", "a", ["nan"]], "ascending"),
    "out of order": (CATEGORIES, ["b", "a", ["nan"]], "ascending"),
    "missing first": (CATEGORIES, [["nan"], "a", "b"], "ascending"),
    "no categories": (CATEGORIES, [], "ascending"),
    "numbers among texts": (CATEGORIES, ["a", 1, ["nan"]], "texts"),
    "one less": (CATEGORIES, ["a", "b"], "same number of features"),
    "a list deep": (CATEGORIES, ["a", [["b"]], ["nan"]], "text, numbers or null"),
    "dates": ((*CATEGORIES[:-1], "dtype"), "datetime64[ns]", "one of"),
    "a column twice": ((*PARTS, 0, "columns"), ["age", "age", "more"], "each once"),
    "a column out of range": ((*PARTS, 0, "columns"), [0, 3, 5], "numbers below 5"),
    "a negative column": ((*PARTS, 0, "columns"), [0, 3, -1], "numbers below 5"),
    "an unknown column": ((*PARTS, 0, "columns"), ["age", "size", "x"], "names, or numbers"),
    "columns of another": ((*PARTS, 0, "columns"), ["age", "size", "job"], "the part knows"),
    "fewer columns": ((*PARTS, 0, "columns"), ["age"], "all of 5 columns"),
    "the rest of others": ((*PARTS, 2, "columns"), ["age"], "the part knows"),
    "two of a name": ((*PARTS, 1, "name"), "numbers", "different names"),
    "no parts": (PARTS, [], "all of 5 columns"),
    "a machine inside": ((*PARTS, 1, "kind"), "AdditiveSVC", "one of"),
    "a transformer inside": ((*PARTS, 1, "kind"), "ColumnTransformer", "one of"),
    "a pipeline in a pipeline": ((*IMPUTER, "kind"), "Pipeline", "one of"),
    "no steps": ((*PARTS, 0, "steps"), [], "different names"),
    "an output of code": ((*PARTS, 1, "own", "output"), "os.system", "one of"),
    "a strategy": ((*IMPUTER, "own", "strategy"), "exec", "one of"),
    "texts for numbers": (
        (*IMPUTER, "own", "statistics"),
        {"dtype": "object", "values": ["a", "b", "c"]},
        "numbers, as the data had",
    ),
    "a threshold": (("steps", 0, "own", "sparse_threshold"), 2.0, "from 0 to 1"),
    "a million threads": (("steps", 0, "own", "n_jobs"), 10**6, "1024"),
    "a remainder twice": (("steps", 0, "own", "remainder"), "drop", "left out"),
    "a great width": (("steps", 0, "n_features"), 10**8, "feature_names"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("columns")


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_headers(name, folder, tmp_path):
    where, value, said = HOSTILE[name]
    parts, _, _ = damaged("column transformer", folder)
    header = at = parts.copy().header
    for key in where[:-1]:
        at = at[key]
    at[where[-1]] = value
    path = tmp_path / "damaged.safetensors"
    path.write_bytes(Parts(header, parts.arrays).content())
    with pytest.raises(ValueError, match=said):
        load(path)


def test_without_names_a_great_width_takes_no_memory(folder, tmp_path):
    parts, _, _ = damaged("column transformer", folder)
    header = parts.copy().header
    header["steps"][0]["n_features"] = 10**8
    del header["steps"][0]["feature_names"]
    path = tmp_path / "damaged.safetensors"
    path.write_bytes(Parts(header, parts.arrays).content())
    with pytest.raises(ValueError, match="all of 100000000 columns"):
        load(path)
