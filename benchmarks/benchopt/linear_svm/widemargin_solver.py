"""KernelSVC("linear") for benchopt's benchmark of linear SVMs without intercept."""

from benchopt import BaseSolver

from widemargin import KernelSVC


class Solver(BaseSolver):
    name = "widemargin"
    requirements = ["pip::widemargin"]
    sampling_strategy = "tolerance"
    support_sparse = True

    def set_objective(self, X, y, C):
        self.X, self.y, self.C = X, y, C

    @staticmethod
    def get_next(tol):
        return min(tol, 1.0) / 10  # a sweep goes far: smaller steps would look like no progress

    def run(self, tol):
        how = {"C": self.C, "tol": min(tol, 1.0), "max_iter": -1}
        self.model = KernelSVC("linear", fit_intercept=False, **how).fit(self.X, self.y)

    def get_result(self):
        return {"beta": self.model.coef_.ravel()}
