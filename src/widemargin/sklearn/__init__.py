"""scikit-learn's SVM classes, fitted by our machines: change an import, and nothing else.

>>> from widemargin.sklearn import SVC
>>> SVC(C=10)
SVC(C=10)
"""

from widemargin.sklearn.linear_svc import LinearSVC
from widemargin.sklearn.one_class import OneClassSVM
from widemargin.sklearn.patching import patch, unpatch
from widemargin.sklearn.svc import SVC
from widemargin.sklearn.svr import SVR

__all__ = ["SVC", "SVR", "LinearSVC", "OneClassSVM", "patch", "unpatch"]
