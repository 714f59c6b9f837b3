"""`TableEncoder` in model files: what is stored, what is refused, and hostile headers."""

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from widemargin import AdditiveSVC, TableEncoder, load, save
from widemargin.persistence import read_header

from .cases import table
from .damage import Parts, damaged, refused, replaced

OWN = ("steps", 0, "own")


def test_it_is_saved_alone_and_before_a_machine(tmp_path):
    X = table()
    encoder = TableEncoder(["job", "count"]).fit(X)
    save(encoder, tmp_path / "e")
    again = load(tmp_path / "e")
    np.testing.assert_array_equal(again.transform(X), encoder.transform(X))
    assert again.get_params() == encoder.get_params()
    save(
        make_pipeline(encoder, AdditiveSVC(random_state=0)).fit(X, np.arange(60) % 2),
        tmp_path / "m",
    )
    header = read_header(tmp_path / "m")
    assert header.kinds == ("TableEncoder", "AdditiveSVC")
    assert (header.feature_names, header.categorical) == (list(X.columns), (1, 2))


@pytest.mark.parametrize(
    "part",
    [
        ColumnTransformer([("n", "passthrough", [0, 1])]),
        SimpleImputer(),
        OneHotEncoder(handle_unknown="ignore"),
    ],
    ids=lambda part: type(part).__name__,
)
def test_preparations_of_scikit_learn_are_refused_with_the_way_out(part, tmp_path):
    X = np.ones((6, 2))
    model = make_pipeline(part, AdditiveSVC(random_state=0)).fit(X, np.arange(6) % 2)
    for given in (model, model[0]):
        with pytest.raises(TypeError, match=f"{type(part).__name__}; fit a TableEncoder instead"):
            save(given, tmp_path / "m")


HOSTILE = {
    "a category twice": (("columns", "categories"), [[1, ["a", "a"]]], "different texts"),
    "numbers among texts": (("columns", "categories"), [[1, ["a", 1]]], "different texts"),
    "one category less": (
        ("columns", "categories"),
        [[1, ["a"]]],
        "as many features as the step before returns",
    ),
    "another column": (("columns", "categories"), [[9, ["a", "b"]]], "ascending below 5"),
    "a column of numbers more": (("columns", "categories"), [], "for each of 5 columns"),
    "a date less": (("is_date",), [False, False, False], "for each of 4 columns"),
    "dates that are numbers": (("is_date",), [0, 0, 0, 1], "true or false"),
    "an output of code": (("output",), "os.system", "one of"),
    "another type": (("dtype",), "object", "one of"),
    "a parameter too many": (("parameters", "code"), "os.system", "no parameter 'code'"),
    "a scaling": (("parameters", "scaling"), "exec", "scaling"),
    "columns of no kind": (("parameters", "date_features"), {"columns": [[]]}, "date_features"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_headers(name, folder, tmp_path):
    where, value, said = HOSTILE[name]
    parts, _, X = damaged("table", folder)
    header = replaced(parts.header, (*OWN, *where), value)
    refused(tmp_path / "damaged", Parts(header, parts.arrays).content(), X, said)


def test_a_great_width_takes_no_memory(folder, tmp_path):
    parts, _, X = damaged("table", folder)
    header = replaced(parts.header, ("steps", 0, "n_features"), 10**8)
    del header["steps"][0]["feature_names"]
    refused(tmp_path / "damaged", Parts(header, parts.arrays).content(), X, "is_date must be")
