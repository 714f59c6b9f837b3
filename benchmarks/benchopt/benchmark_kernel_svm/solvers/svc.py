"""scikit-learn's SVC: its copy of LIBSVM."""

import numpy as np
from benchopt import BaseSolver
from sklearn.svm import SVC


class Solver(BaseSolver):
    name = "SVC"
    requirements = ["pip::scikit-learn"]
    sampling_strategy = "tolerance"

    def set_objective(self, X, y, C, gamma):
        self.X, self.y = X, y
        self.parameters_ = {"C": C, "gamma": gamma, "cache_size": 6000}

    def run(self, tol):
        self.model = SVC(tol=min(tol, 1.0), **self.parameters_).fit(self.X, self.y)

    def get_result(self):
        coefficients = np.zeros(len(self.y))
        coefficients[self.model.support_] = self.model.dual_coef_[0]
        return {"coefficients": coefficients, "intercept": float(self.model.intercept_[0])}
