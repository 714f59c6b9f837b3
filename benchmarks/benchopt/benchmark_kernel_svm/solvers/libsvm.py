"""LIBSVM itself, by the package of its authors."""

import numpy as np
from benchopt import BaseSolver
from libsvm.svm import svm_parameter, svm_problem
from libsvm.svmutil import svm_train


class Solver(BaseSolver):
    name = "LIBSVM"
    requirements = ["pip::libsvm-official"]
    sampling_strategy = "tolerance"

    def set_objective(self, X, y, C, gamma):
        self.n_samples, self.options = len(y), f"-q -c {C} -g {gamma} -m 6000"
        self.problem = svm_problem(y.astype(float), X)

    def run(self, tol):
        self.model = svm_train(self.problem, svm_parameter(f"{self.options} -e {min(tol, 1.0)}"))

    def get_result(self):
        support = np.array(self.model.get_sv_indices()) - 1
        coefficients = np.zeros(self.n_samples)
        coefficients[support] = np.array(self.model.get_sv_coef()).ravel()
        intercept = -self.model.rho[0]
        if self.model.get_labels()[0] < 0:  # the class of the first row is its first one
            coefficients, intercept = -coefficients, -intercept
        return {"coefficients": coefficients, "intercept": intercept}
