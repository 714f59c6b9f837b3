"""Models of LIBSVM and LIBLINEAR predict here what they predict there."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.validation import check_is_fitted

from widemargin import KernelSVC, KernelSVR, NuSVC, NuSVR, OneClassSVM, load
from widemargin.export import export_libsvm
from widemargin.libsvm import LiblinearClassifier, LibsvmOneClass, LibsvmSVC, LibsvmSVR

svmutil = pytest.importorskip("libsvm.svmutil")
liblinear = pytest.importorskip("liblinear.liblinearutil")


def data(name):
    """Rows in [0, 1], half of them to train; labels whose order is not that of the file."""
    load_rows = {"iris": load_iris, "cancer": load_breast_cancer, "digits": load_digits}[name]
    X, y = load_rows(return_X_y=True)
    X, y = MinMaxScaler().fit_transform(X)[:600], y[:600]
    labels = np.array([3, -7, 11, 5, -2, 8, 0, 9, 4, 6])[y]
    order = np.random.default_rng(0).permutation(len(y))
    return sp.csr_matrix(X[order]), labels[order].astype(float)


def trained(name, words, path):
    X, y = data(name)
    model = svmutil.svm_train(y[::2], X[::2], f"-q {words}")
    svmutil.svm_save_model(str(path), model)
    return svmutil.svm_load_model(str(path)), load(path), X


def in_order_of_labels(model, columns):
    return columns[:, np.searchsorted(model.classes_, model.labels_)]


KERNELS = ("-t 0", "-t 1 -r 1 -d 2 -g 0.5", "-t 2 -g 0.3", "-t 3 -g 0.01 -r -0.5")


@pytest.mark.parametrize("words", KERNELS)
@pytest.mark.parametrize("name", ["iris", "cancer", "digits"])
def test_decision_values_and_labels_are_libsvm_s(name, words, tmp_path):
    theirs, ours, X = trained(name, words, tmp_path / "model")
    label, _, values = svmutil.svm_predict([], X, theirs, "-q")
    values = np.array(values)
    assert isinstance(ours, LibsvmSVC)
    assert np.abs(ours.pair_values(X) - values).max() <= 1e-10 * np.abs(values).max()
    np.testing.assert_array_equal(ours.predict(X), label)
    np.testing.assert_array_equal(ours.predict(X.toarray()), label)
    assert not hasattr(ours, "predict_proba")
    scores = ours.decision_function(X)
    if name == "cancer":
        assert scores.shape == (X.shape[0],)
        np.testing.assert_array_equal(ours.classes_[(scores > 0).astype(int)], label)
    else:
        votes = np.sort(np.rint(scores), axis=1)
        clear = votes[:, -1] > votes[:, -2]
        assert clear.mean() > 0.5
        best = ours.classes_[scores.argmax(axis=1)]
        np.testing.assert_array_equal(best[clear], np.array(label)[clear])


def test_of_equal_votes_the_first_label_of_the_file_wins(tmp_path):
    """Three values that vote in a circle: LIBSVM takes the first, a sum of values another."""
    head = "svm_type c_svc\nkernel_type linear\nnr_class 3\ntotal_sv 3\nrho 0 0 0\nlabel 5 9 7\n"
    vectors = "nr_sv 1 1 1\nSV\n1 -3 1:1\n0 8 2:1\n0 0 3:1\n"
    (tmp_path / "model").write_text(head + vectors)
    ours, x = load(tmp_path / "model"), sp.csr_matrix([[1.0, 1.0, 0.0]])
    np.testing.assert_array_equal(ours.pair_values(x), [[1, -3, 8]])
    theirs = svmutil.svm_load_model(str(tmp_path / "model"))
    label, _, values = svmutil.svm_predict([], x, theirs, "-q")
    assert values == [[1, -3, 8]]
    assert ours.predict(x) == label == [5]
    assert ours.classes_[ours.decision_function(x).argmax()] == 9


@pytest.mark.parametrize("name", ["cancer", "iris", "digits"])
def test_probabilities_are_libsvm_s(name, tmp_path):
    theirs, ours, X = trained(name, "-b 1 -g 0.5", tmp_path / "model")
    label, _, p = svmutil.svm_predict([], X, theirs, "-q -b 1")
    found = ours.predict_proba(X)
    np.testing.assert_allclose(in_order_of_labels(ours, found), p, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_array_equal(ours.classes_[found.argmax(axis=1)], label)


@pytest.mark.parametrize("words", KERNELS)
def test_rows_may_be_narrower_or_wider_than_the_model(words, tmp_path):
    theirs, ours, X = trained("iris", words, tmp_path / "model")
    wide = sp.csr_matrix(sp.hstack([X, X[:, :3]]))
    for rows in (wide, wide.toarray(), X[:, :2], X[:, :2].toarray()):
        _, _, values = svmutil.svm_predict([], sp.csr_matrix(rows), theirs, "-q")
        np.testing.assert_allclose(ours.pair_values(rows), values, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["cancer", "iris"])
def test_kernel_values_are_picked_by_the_numbers_of_support_vectors(name, tmp_path):
    X, y = data(name)
    K = (X @ X[::2].T).toarray()
    rows = np.column_stack([1 + np.arange(len(K)) // 2, K])
    problem = svmutil.svm_problem(y[::2], rows[::2].tolist(), isKernel=True)
    model = svmutil.svm_train(problem, svmutil.svm_parameter("-q -t 4 -b 1"))
    svmutil.svm_save_model(str(tmp_path / "model"), model)
    theirs, ours = svmutil.svm_load_model(str(tmp_path / "model")), load(tmp_path / "model")
    as_theirs = [dict(enumerate(row)) for row in rows.tolist()]
    label, _, values = svmutil.svm_predict([], as_theirs, theirs, "-q")
    _, _, p = svmutil.svm_predict([], as_theirs, theirs, "-q -b 1")
    rows[:, 0] = 7  # it may be anything
    for given in (rows, sp.csr_array(rows)):
        np.testing.assert_allclose(ours.pair_values(given), values, rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(ours.predict(given), label)
    np.testing.assert_allclose(in_order_of_labels(ours, ours.predict_proba(rows)), p, rtol=1e-6)


def test_nu_svc_is_a_classifier_too(tmp_path):
    _, ours, X = trained("iris", "-g 1", tmp_path / "model")
    text = (tmp_path / "model").read_text()
    (tmp_path / "nu").write_text(text.replace("c_svc", "nu_svc"))
    np.testing.assert_array_equal(load(tmp_path / "nu").predict(X), ours.predict(X))


def test_what_we_export_is_what_we_load(tmp_path):
    X, y = data("iris")
    model = KernelSVC(gamma=0.5, tol=1e-6).fit(X, y)
    export_libsvm(model, tmp_path / "model")
    ours = load(tmp_path / "model")
    np.testing.assert_allclose(ours.decision_function(X), model.decision_function(X), atol=1e-9)


def test_threads_do_not_change_the_result(tmp_path):
    _, ours, X = trained("iris", "-g 1", tmp_path / "model")
    one = ours.pair_values(X)
    np.testing.assert_array_equal(ours.set_params(n_jobs=2).pair_values(X), one)


@pytest.mark.parametrize("bias", ["-B -1", "-B 2.5"])
@pytest.mark.parametrize("solver", [0, 1, 2, 3, 4, 5, 6, 7])
@pytest.mark.parametrize("name", ["cancer", "iris"])
def test_liblinear_s_values_labels_and_probabilities(name, solver, bias, tmp_path):
    X, y = data(name)
    theirs = liblinear.train(y[::2], X[::2], f"-q -s {solver} {bias}")
    liblinear.save_model(str(tmp_path / "model"), theirs)
    ours = load(tmp_path / "model")
    assert isinstance(ours, LiblinearClassifier)
    label, _, values = liblinear.predict([], X, theirs, "-q")
    values = np.array(values)
    found = ours.values(X)[:, : values.shape[1]]  # of two classes LIBLINEAR shows one
    np.testing.assert_allclose(found, values[:, : found.shape[1]], rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(ours.predict(X), label)
    scores = ours.decision_function(X)
    best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
    np.testing.assert_array_equal(ours.classes_[best], label)
    assert hasattr(ours, "predict_proba") == (solver in (0, 6, 7))
    if hasattr(ours, "predict_proba"):
        _, _, p = liblinear.predict([], X, theirs, "-q -b 1")
        np.testing.assert_allclose(in_order_of_labels(ours, ours.predict_proba(X)), p, rtol=1e-6)


def test_they_predict_and_do_nothing_else(tmp_path):
    _, ours, X = trained("iris", "", tmp_path / "model")
    check_is_fitted(ours)
    with pytest.raises(NotFittedError):
        check_is_fitted(LibsvmSVC())
    with pytest.raises(NotImplementedError, match="trained elsewhere"):
        ours.fit(X, np.zeros(X.shape[0]))
    with pytest.raises(ValueError, match="kernel= is for models trained with a function"):
        load(tmp_path / "model", kernel=np.dot)


# ------------------------------------------------------------------ numbers and one class


@pytest.mark.parametrize("words", ["-s 3 -p 0.1", "-s 4 -n 0.4", "-s 3 -t 0", "-s 3 -t 1 -b 1"])
@pytest.mark.parametrize("name", ["iris", "sparse"])
def test_numbers_are_libsvm_s(name, words, tmp_path):
    X, _ = data(name)
    y = np.asarray(X @ np.arange(1.0, X.shape[1] + 1)).ravel()
    given = sp.csr_matrix(X)
    svmutil.svm_save_model(str(tmp_path / "model"), svmutil.svm_train(y, given, f"-q {words}"))
    theirs, ours = svmutil.svm_load_model(str(tmp_path / "model")), load(tmp_path / "model")
    assert isinstance(ours, LibsvmSVR)
    predicted, _, _ = svmutil.svm_predict([], given, theirs, "-q")
    np.testing.assert_allclose(ours.predict(X), predicted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["iris", "sparse"])
def test_one_class_is_libsvm_s(name, tmp_path):
    X, _ = data(name)
    given = sp.csr_matrix(X)
    model = svmutil.svm_train(np.zeros(X.shape[0]), given, "-q -s 2 -n 0.2")
    svmutil.svm_save_model(str(tmp_path / "model"), model)
    theirs, ours = svmutil.svm_load_model(str(tmp_path / "model")), load(tmp_path / "model")
    assert isinstance(ours, LibsvmOneClass)
    label, _, values = svmutil.svm_predict([], given, theirs, "-q")
    values = np.ravel(values)
    np.testing.assert_allclose(ours.decision_function(X), values, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(ours.predict(X), label)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
@pytest.mark.parametrize("name", ["iris", "sparse"])
def test_numbers_that_we_export_are_what_libsvm_and_we_load(name, kernel, tmp_path):
    X, _ = data(name)
    y = 100 + np.asarray(X @ np.arange(1.0, X.shape[1] + 1)).ravel()
    how = {"kernel": kernel, "gamma": 0.5, "nu": 0.2}
    for model in (KernelSVR(kernel, gamma=0.5, tol=1e-6), NuSVR(**how), OneClassSVM(**how)):
        model.fit(X, y)
        export_libsvm(model, tmp_path / "model")
        theirs = svmutil.svm_load_model(str(tmp_path / "model"))
        _, _, values = svmutil.svm_predict([], sp.csr_matrix(X), theirs, "-q")
        expected = model.decision_function(X) if hasattr(model, "offset_") else model.predict(X)
        np.testing.assert_allclose(np.ravel(values), expected, rtol=1e-5, atol=1e-5)
        again = load(tmp_path / "model").pair_values(X)[:, 0]
        np.testing.assert_allclose(again, expected, rtol=1e-6, atol=1e-6)


def test_classes_by_nu_that_we_export_are_what_libsvm_and_we_load(tmp_path):
    X, y = data("iris")
    model = NuSVC(nu=0.2, gamma=0.5, break_ties=False).fit(X, y)
    export_libsvm(model, tmp_path / "model")
    assert (tmp_path / "model").read_text().startswith("svm_type nu_svc")
    theirs = svmutil.svm_load_model(str(tmp_path / "model"))
    label, _, _ = svmutil.svm_predict([], sp.csr_matrix(X), theirs, "-q")
    np.testing.assert_array_equal(label, model.predict(X))
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X), label)


def test_several_targets_are_refused(tmp_path):
    X, y = data("iris")
    with pytest.raises(ValueError, match="one target, and the model 2"):
        export_libsvm(KernelSVR().fit(X, np.column_stack([y, -y])), tmp_path / "model")
