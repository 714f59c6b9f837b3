"""Programs that users of `sklearn.svm` write find the same with our import."""

import copy
import pickle

import joblib
import numpy as np
import pytest
import sklearn.svm
from scipy import sparse as sp
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_multilabel_classification,
)
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, StackingClassifier
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.metrics.pairwise import chi2_kernel
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    cross_val_predict,
    cross_validate,
    learning_curve,
)
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import widemargin.sklearn

IRIS, WINE, CANCER, DIABETES = (
    load(return_X_y=True) for load in (load_iris, load_wine, load_breast_cancer, load_diabetes)
)
CANCER = StandardScaler().fit_transform(CANCER[0]), CANCER[1]  # else LIBSVM is not at the optimum
DIGITS = tuple(part[:300] for part in load_digits(return_X_y=True))
WEIGHT = np.random.default_rng(0).uniform(0, 3, 150)
CLOSE = 3e-3  # of the largest value


def searched(svm):
    pipe = make_pipeline(StandardScaler(), svm.SVC())
    grid = {"svc__C": [0.1, 1, 10], "svc__kernel": ["rbf", "linear"]}
    found = GridSearchCV(pipe, grid, cv=3).fit(*WINE)
    return found.best_params_["svc__C"], found.cv_results_["mean_test_score"]


def calibrated(svm):
    frozen = FrozenEstimator(svm.SVC().fit(IRIS[0][::2], IRIS[1][::2]))
    models = [CalibratedClassifierCV(svm.LinearSVC(), cv=3), CalibratedClassifierCV(frozen)]
    return [model.fit(*IRIS).predict_proba(IRIS[0]) for model in models]


def explained(svm):
    model, curve = svm.SVC().fit(*WINE), svm.SVR(C=100).fit(*DIABETES)
    return (
        permutation_importance(model, *WINE, n_repeats=2, random_state=0).importances,
        partial_dependence(curve, DIABETES[0], [0], grid_resolution=5)["average"],
    )


def copied(svm):
    model = svm.SVC(C=3, class_weight={0: 2}).fit(*IRIS)
    assert clone(model).get_params() == model.get_params()
    assert not hasattr(clone(model), "support_")
    others = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
    return [other.decision_function(IRIS[0]) for other in others]


def of_several_layouts(svm):
    X = sp.csc_matrix(DIGITS[0] / 16)
    model = svm.SVC(kernel="linear").fit(X, DIGITS[1])
    return model.coef_.toarray(), model.predict(X.tocsr()), model.predict(X.toarray()[:50] * 1.0)


def of_frames(svm):
    data = pytest.importorskip("pandas") and load_wine(as_frame=True)
    scaler = StandardScaler().set_output(transform="pandas")
    model = make_pipeline(scaler, svm.SVC()).fit(data.data, data.target.map(str))
    with pytest.raises(ValueError, match="feature names") as told:
        model[-1].predict(data.data[data.data.columns[::-1]])
    names = list(model[-1].feature_names_in_)
    return names, str(told.value), list(model.predict(data.data))


def of_weights(svm):
    pipe = make_pipeline(StandardScaler(), svm.SVC(class_weight="balanced"))
    return (
        pipe.fit(*IRIS, svc__sample_weight=WEIGHT).decision_function(IRIS[0]),
        svm.LinearSVC().fit(*IRIS, sample_weight=WEIGHT).decision_function(IRIS[0]),
        svm.SVR().fit(*IRIS, sample_weight=WEIGHT).predict(IRIS[0]),
        svm.OneClassSVM(nu=0.2).fit(IRIS[0], sample_weight=WEIGHT).decision_function(IRIS[0]),
    )


def cross_validated(svm):
    scores = cross_validate(svm.SVR(C=10), *DIABETES, scoring=["r2", "neg_max_error"])
    decisions = cross_val_predict(svm.SVC(), *IRIS, method="decision_function")
    return decisions, scores["test_r2"], learning_curve(svm.SVC(), *IRIS, cv=3, shuffle=True,
                                                        random_state=0)[2]  # fmt: skip


def of_many_labels(svm):
    X, Y = make_multilabel_classification(100, random_state=0)
    machines = MultiOutputClassifier(svm.SVC()), ClassifierChain(svm.SVC())
    return [model.fit(X, Y).predict(X) for model in machines]


def in_ensembles(svm):
    machines = (
        BaggingClassifier(svm.SVC(), n_estimators=3, random_state=0),
        AdaBoostClassifier(svm.SVC(kernel="linear"), n_estimators=2, random_state=0),
        StackingClassifier([("a", svm.SVC()), ("b", svm.LinearSVC())], cv=3),
        FixedThresholdClassifier(svm.SVC(), threshold=0.3),
    )
    return [model.fit(*CANCER).predict(CANCER[0]) for model in machines]


def selecting(svm):
    X = StandardScaler().fit_transform(WINE[0])
    chosen = RFE(svm.SVC(kernel="linear"), n_features_to_select=3).fit(X, WINE[1])
    return chosen.ranking_, SelectFromModel(svm.LinearSVC(C=0.01)).fit(*IRIS).get_support()


def of_a_matrix(svm):
    K = chi2_kernel(DIGITS[0], gamma=0.1)
    search = GridSearchCV(svm.SVC(kernel="precomputed"), {"C": [0.1, 1]}, cv=3)
    return search.fit(K, DIGITS[1]).predict(K), svm.SVC(kernel=chi2_kernel).fit(*DIGITS).n_support_


def in_processes(svm):
    fits = [joblib.delayed(svm.SVC(C=C).fit)(*IRIS) for C in (0.1, 10)]
    return [m.decision_function(IRIS[0]) for m in joblib.Parallel(n_jobs=2)(fits)]


PROGRAMS = [
    searched, calibrated, explained, copied, of_several_layouts, of_frames, of_weights,
    cross_validated, of_many_labels, in_ensembles, selecting, of_a_matrix, in_processes,
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_program_finds_the_same(program):
    same(program(widemargin.sklearn), program(sklearn.svm))


def same(ours, theirs) -> None:
    if isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            same(one, other)
    elif isinstance(theirs, np.ndarray) and theirs.dtype.kind == "f":
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, atol=CLOSE * abs(theirs).max(), rtol=0)
    else:
        np.testing.assert_array_equal(ours, theirs)


WRONG = {
    "C": lambda svm: svm.SVC(C=-1).fit(*IRIS),
    "kernel": lambda svm: svm.SVC(kernel="x").fit(*IRIS),
    "gamma": lambda svm: svm.SVC(gamma=-1).fit(*IRIS),
    "one class": lambda svm: svm.SVC().fit([[1], [2]], [0, 0]),
    "numbers as classes": lambda svm: svm.SVC().fit(DIABETES[0], DIABETES[1] / 7),
    "not fitted": lambda svm: svm.SVC().predict([[1]]),
    "columns": lambda svm: svm.SVC().fit(*IRIS).predict(IRIS[0][:, :2]),
    "NaN": lambda svm: svm.SVC().fit([[np.nan], [1]], [0, 1]),
    "coef_": lambda svm: svm.SVC().fit(*IRIS).coef_,
    "probabilities": lambda svm: svm.SVC().fit(*IRIS).predict_proba(IRIS[0]),
    "sparse": lambda svm: svm.SVC().fit(*IRIS).predict(sp.csr_array(IRIS[0])),
    "square": lambda svm: svm.SVC(kernel="precomputed").fit(*IRIS),
    "epsilon": lambda svm: svm.SVR(epsilon=-1).fit(*DIABETES),
    "nu": lambda svm: svm.OneClassSVM(nu=2).fit(IRIS[0]),
    "weights": lambda svm: svm.SVC().fit(*IRIS, sample_weight=np.ones(3)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_told_alike(wrong):
    told = []
    for svm in (widemargin.sklearn, sklearn.svm):
        with pytest.raises((ValueError, AttributeError)) as caught:
            WRONG[wrong](svm)
        told.append((caught.type, str(caught.value)))
    assert told[0] == told[1]
