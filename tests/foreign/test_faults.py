"""Every byte of a foreign model is checked: counts, ends, numbers, kinds."""

import pytest

from widemargin import load
from widemargin.errors import TooLargeError

SVM = """\
svm_type c_svc
kernel_type polynomial
degree 3
gamma 0.5
coef0 1
nr_class 3
total_sv 4
rho 1 2 3
label 7 0 5
probA 1 1 1
probB 0 0 0
nr_sv 2 1 1
SV
1 0.5 1:2
1 0.5 2:2 4:1
-1 1 2:1 3:4
-.5 -1
"""
LINEAR = """\
solver_type L2R_LR
nr_class 2
label 1 -1
nr_feature 3
bias 1
w
0.5
1
-2
3
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model"


def refused(path, text) -> str:
    path.write_bytes(text.encode())
    with pytest.raises(ValueError) as error:
        load(path)
    said = str(error.value)
    assert str(path) in said
    assert "\n" not in said
    return said


def test_the_models_as_they_are(path):
    path.write_text(SVM)
    assert load(path).predict([[1.0, 2.0, 3.0]]).shape == (1,)
    path.write_text(SVM.replace("\n", "\r\n"))
    assert load(path).n_features_in_ == 4
    path.write_text(LINEAR)
    assert load(path).decision_function([[1.0, 1.0, 1.0]]) == [2.5]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("c_svc", "d_svc", "svm_type must be one of c_svc, nu_svc, epsilon_svr, nu_svr, one_class"),
        ("c_svc", "", "svm_type must be one word"),
        ("polynomial", "precomputed", "of a precomputed kernel every support vector must be 0:i"),
        ("polynomial", "wavelet", "kernel_type must be one of linear, polynomial"),
        ("degree 3", "degree 0", "degree must be whole numbers from 1"),
        ("degree 3", "degree 2.5", "degree must be whole numbers from 1"),
        ("degree 3\n", "", "degree must be 1 finite number, not 'nothing'"),
        ("gamma 0.5", "gamma 0", "gamma must be positive"),
        ("gamma 0.5", "gamma nan", "gamma must be 1 finite number"),
        ("gamma 0.5", "gamma 1_0", "gamma must be 1 finite number"),
        ("nr_class 3", "nr_class 1", "nr_class must be 2 or more"),
        ("nr_class 3", "nr_class 2147483647", "label must be 2147483647 finite numbers"),
        ("nr_class 3", "nr_class -3", "nr_class must be whole numbers from 0"),
        ("label 7 0 5", "label 7 0 7", "label must be different"),
        ("label 7 0 5", "label 7 0 1.5", "label must be whole numbers"),
        ("label 7 0 5", "label 7 0 1e99", "label must be whole numbers"),
        ("rho 1 2 3", "rho 1 2", "rho must be 3 finite numbers, not '1 2'"),
        ("rho 1 2 3", "rho 1 2 inf", "rho must be 3 finite numbers"),
        ("probA 1 1 1\n", "", "probA must be 3 finite numbers, not 'nothing'"),
        ("total_sv 4", "total_sv 5", "total_sv must be the sum of nr_sv, 4"),
        ("nr_sv 2 1 1", "nr_sv 2 1 -1", "nr_sv must be whole numbers from 0"),
        ("nr_sv 2 1 1", "nr_sv 2 2", "nr_sv must be 3 finite numbers"),
        ("-.5 -1\n", "", "3 support vectors, but its head says 4"),
        ("1 0.5 1:2", "1 1:2", "support vector 1 must begin with 2 finite coefficients"),
        ("1 0.5 1:2", "1 nan 1:2", "support vector 1 must begin with 2 finite coefficients"),
        ("2:2 4:1", "4:2 2:1", "must ascend"),
        ("2:2 4:1", "2:nan 4:1", "not a finite number"),
        ("2:2 4:1", "2:2 -4:1", "negative feature index"),
        ("2:2 4:1", "2:2 4", "without a value"),
        ("2:2 4:1", "2:2 4294967296:1", "its support vectors are damaged"),
        ("2:2 4:1", "qid:2 4:1", "1 of 4 rows have a qid"),
        ("SV\n", "", "a line begins with '1', which is not one of svm_type"),
        ("nr_class 3", "nr_class 3\nnr_class 3", "begins with 'nr_class'"),
        (SVM[60:], "", "the model ends before the line 'SV'"),
        ("2:2 4:1", "2:1e300 4:1", "Row 1 is too large"),
    ],
)
def test_libsvm_s_text(path, old, new, said):
    assert old in SVM
    assert said in refused(path, SVM.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("L2R_LR", "L2R_L2LOSS_SVR", "a model of L2R_L2LOSS_SVR; only classifiers are supported"),
        ("L2R_LR", "ONECLASS_SVM", "a model of ONECLASS_SVM"),
        ("L2R_LR", "L3R", "solver_type must be one of LIBLINEAR's classifiers"),
        ("nr_feature 3", "nr_feature 2147483647", "after w there must be 2147483648 x 1 finite"),
        ("nr_feature 3", "nr_feature 0", "nr_feature must be whole numbers from 1"),
        ("bias 1", "bias nan", "bias must be 1 finite number"),
        ("bias 1", "bias -1", "after w there must be 3 x 1 finite"),
        ("-2\n", "nan\n", "after w there must be 4 x 1 finite"),
        ("nr_class 2\nlabel 1 -1", "nr_class 3\nlabel 1 -1 2", "after w there must be 4 x 3"),
    ],
)
def test_liblinear_s_text(path, old, new, said):
    assert old in LINEAR
    assert said in refused(path, LINEAR.replace(old, new, 1))


@pytest.mark.parametrize("text", [SVM, LINEAR])
def test_every_truncation_is_refused(path, text):
    for end in range(len("solver_type "), len(text) - 2):
        path.write_text(text[:end])
        try:
            load(path)
        except ValueError:
            continue
        # What is cut off is the end of a number only.
        assert text[:end].count("\n") >= text.count("\n") - 1


def test_small_files_that_are_large(path):
    path.write_text(SVM)
    with pytest.raises(TooLargeError, match="max_bytes=100"):
        load(path, max_bytes=100)
    path.write_text(SVM.replace("4:1", "2000000000:1"))
    with pytest.raises(TooLargeError, match="a row of its 2000000000 features takes 16 GB"):
        load(path)


def test_four_hundred_classes_take_no_more_than_their_text(path):
    """A vector has coefficients against the other classes, not in every pair of them."""
    n = 400
    pairs, line = n * (n - 1) // 2, "0 " * (n - 1) + "1:1\n"
    head = f"svm_type c_svc\nkernel_type linear\nnr_class {n}\ntotal_sv {n}\nrho {'0 ' * pairs}\n"
    labels = f"label {' '.join(map(str, range(n)))}\nnr_sv {'1 ' * n}\n"
    path.write_text(f"{head}{labels}SV\n{line * n}")
    model = load(path, max_bytes=20_000_000)
    assert model.model_.coef.values.nbytes == 8 * n * (n - 1)


@pytest.mark.parametrize(
    "vector", ["0:0", "0:-1", "0:1.5", "0:2147483647", "0:1e300", "0:2 1:1", "1:2", ""]
)
def test_vectors_of_a_precomputed_kernel(path, vector):
    head = "svm_type c_svc\nkernel_type precomputed\nnr_class 2\ntotal_sv 2\nrho 0\n"
    text = head + "label 1 -1\nnr_sv 1 1\nSV\n1 0:1\n-1 {}\n"
    path.write_text(text.format("0:3"))
    assert load(path).n_features_in_ == 4
    assert "every support vector must be 0:i" in refused(path, text.format(vector))
