"""Points of two classes in clusters, a tenth of them with a wrong label."""

from benchopt import BaseDataset
from sklearn.datasets import make_classification


class Dataset(BaseDataset):
    name = "Simulated"
    requirements = ["pip::scikit-learn"]
    parameters = {"n_samples, n_features": [(1000, 10), (10_000, 20)]}
    test_parameters = {"n_samples, n_features": [(200, 5)]}

    def get_data(self):
        X, y = make_classification(
            n_samples=self.n_samples, n_features=self.n_features, n_informative=self.n_features,
            n_redundant=0, n_clusters_per_class=4, flip_y=0.1, random_state=0,
        )  # fmt: skip
        return {"X": X, "y": 2 * y - 1}
