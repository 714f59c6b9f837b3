"""KernelSVC, which ends by its own duality gap."""

import numpy as np
from benchopt import BaseSolver

from widemargin import KernelSVC


class Solver(BaseSolver):
    name = "widemargin"
    requirements = ["pip::widemargin"]
    sampling_strategy = "tolerance"

    def set_objective(self, X, y, C, gamma):
        self.X, self.y, self.parameters_ = X, y, {"C": C, "gamma": gamma}

    def run(self, tol):
        how = {"tol": min(tol, 1.0), "random_state": 0, "max_iter": -1}
        self.model = KernelSVC(**how, **self.parameters_).fit(self.X, self.y)

    def get_result(self):
        coefficients = np.zeros(len(self.y))
        coefficients[self.model.support_] = self.model.dual_coef_[0]
        return {"coefficients": coefficients, "intercept": float(self.model.intercept_[0])}
