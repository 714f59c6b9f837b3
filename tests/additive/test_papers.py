"""The papers' settings, and their accuracy on real data."""

import bz2

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_svmlight_file
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from widemargin import PowerMean, papers
from widemargin.additive import resolve_kernel

from .helpers import svc

PRESETS = {"icd": papers.icd, "pmsvm": papers.pmsvm, "pmsvm_lut": papers.pmsvm_lut}

COMMON = {"C_unit": "raw", "fit_intercept": False, "multi_class": "ovr"}

OWN = {
    "icd": {
        "kernel": "intersection",
        "approximation": "unary",
        "scaling": "percentile",
        "n_bins": "auto",
        "C": 1e-3,
        "loss": "squared_hinge",
        "random_state": 0,
    },
    "pmsvm": {
        "kernel": PowerMean(-1.0),
        "approximation": "pmsvm",
        "scaling": "global",
        "C": 0.01,
        "loss": "squared_hinge",
        "tol": 0.1,
    },
    "pmsvm_lut": {
        "kernel": PowerMean(-1.0),
        "approximation": "chebyshev",
        "scaling": "global",
        "rank": 3,
        "n_bins": 1000,
        "binning": "floor",
        "C": 0.01,
        "loss": "hinge",
        "tol": 0.1,
    },
}


@pytest.mark.parametrize("name", PRESETS)
def test_preset_is_set_as_its_paper_says(name):
    params = PRESETS[name]().get_params()
    expected = {**COMMON, **OWN[name]}
    assert {key: params[key] for key in expected} == expected


@pytest.mark.parametrize("name", PRESETS)
def test_preset_learns_digits(name):
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
    # The hinge bounds each sample by C: the paper's .01 is for far more rows than these.
    C = {"C": 0.1} if name == "pmsvm_lut" else {}
    assert PRESETS[name](random_state=0, **C).fit(X, y).score(X_test, y_test) > 0.9


@pytest.mark.parametrize("name", PRESETS)
def test_preset_takes_changes(name):
    assert PRESETS[name](C=7.0, random_state=3).get_params()["C"] == 7.0


def test_icd_quantises_to_one_hundred_levels(digits):
    encoder = papers.icd().fit(*digits).model_.encoder
    np.testing.assert_array_equal(encoder.representatives, np.arange(101))


def test_pmsvm_nodes_are_the_papers():
    """At the nodes .01, .06 and .75 the polynomials in ln(t + .05) interpolate the kernel."""
    X = np.array([[0.0], [0.01], [0.06], [0.3], [0.75], [1.0]])
    model = papers.pmsvm(kernel="jensen_shannon").fit(X, [0, 1] * 3).model_
    t = model.lookup.encoder.representatives[1:]
    exact = resolve_kernel("jensen_shannon")(t[:, None], t)
    error = np.abs(model.tables.gram()[1:, 1:] - exact).max(axis=1)
    at_nodes = np.any(np.isclose(t[:, None], [0.01, 0.06, 0.75], atol=1e-6), axis=1)
    assert at_nodes.sum() == 3
    assert error[at_nodes].max() < 1e-5 < error[~at_nodes].min()


@pytest.mark.parametrize(("p", "degree"), [(-1.0, 2), (-8.0, 4)])
def test_pmsvm_lut_takes_p_and_the_degree(p, degree):
    model = papers.pmsvm_lut(p, degree)
    assert model.kernel == PowerMean(p)
    assert model.rank == degree + 1


def svmlight(path, n_features):
    with bz2.open(path) as file:
        return load_svmlight_file(file, n_features=n_features)


def test_icd_reaches_its_published_accuracy_on_ijcnn1(data_folder):
    X, y = svmlight(data_folder / "ijcnn1.trn.bz2", 22)
    model = papers.icd(random_state=0).fit(X, y)
    assert model.score(*svmlight(data_folder / "ijcnn1.tst.bz2", 22)) >= 0.945


def test_icd_reaches_its_published_accuracy_on_shuttle(data_folder):
    """The paper took shuttle from LIBSVM's collection, where each feature lies in [-1, 1]."""
    part = np.load(data_folder / "shuttle.npz")
    model = make_pipeline(MinMaxScaler((-1, 1)), papers.icd(random_state=0))
    model.fit(part["X_train"], part["y_train"])
    assert model.score(part["X_test"], part["y_test"]) >= 0.994


def test_spectral_tables_are_as_accurate_as_chebyshevs_on_usps(data_folder):
    part = np.load(data_folder / "usps.npz")
    accuracy = {
        tables: svc(approximation=tables, rank=3)
        .fit(part["X_train"], part["y_train"])
        .score(part["X_test"], part["y_test"])
        for tables in ("spectral", "chebyshev")
    }
    assert accuracy["spectral"] >= accuracy["chebyshev"] - 0.005
    assert accuracy["spectral"] > 0.9
