"""The SVM with an RBF kernel and a free intercept, judged from dual coefficients."""

import numpy as np
from benchopt import BaseObjective
from sklearn.metrics.pairwise import rbf_kernel

ROWS = 1000  # of the kernel matrix at a time


class Objective(BaseObjective):
    name = "SVM with an RBF kernel"
    min_benchopt_version = "1.5"
    requirements = ["pip::scikit-learn"]
    parameters = {"C": [1.0, 32.0], "gamma": ["scale"]}

    def set_data(self, X, y):
        self.X, self.y = np.ascontiguousarray(X, dtype=np.float64), np.where(y > 0, 1, -1)
        scale = 1 / (X.shape[1] * self.X.var())
        self.width = scale if self.gamma == "scale" else float(self.gamma)

    def get_objective(self):
        return {"X": self.X, "y": self.y, "C": self.C, "gamma": self.width}

    def get_one_result(self):
        return {"coefficients": np.zeros(len(self.y)), "intercept": 0.0}

    def evaluate_result(self, coefficients, intercept):
        """Primal and dual of coefficients y_i a_i of all rows; their distance bounds the error."""
        alpha = np.clip(coefficients * self.y, 0, self.C)
        used = np.flatnonzero(alpha)
        weights = (alpha * self.y)[used]
        scores = np.concatenate([
            rbf_kernel(self.X[begin : begin + ROWS], self.X[used], gamma=self.width) @ weights
            for begin in range(0, len(self.X), ROWS)
        ]) if len(used) else np.zeros(len(self.y))  # fmt: skip
        norm = weights @ scores[used]
        hinge = np.maximum(0, 1 - self.y * (scores + intercept))
        primal, dual = norm / 2 + self.C * hinge.sum(), alpha.sum() - norm / 2
        return {
            "value": primal,
            "dual": dual,
            "relative_gap": (primal - dual) / primal,
            "support_vectors": len(used),
        }
