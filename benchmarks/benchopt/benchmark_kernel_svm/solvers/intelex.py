"""scikit-learn-intelex: oneDAL's SVC."""

import numpy as np
from benchopt import BaseSolver
from sklearnex.svm import SVC


class Solver(BaseSolver):
    name = "intelex"
    requirements = ["pip::scikit-learn-intelex"]
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
