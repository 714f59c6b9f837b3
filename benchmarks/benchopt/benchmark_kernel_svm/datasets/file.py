"""A file of two classes that widemargin reads, such as LIBSVM's ijcnn1: -d "file[path=...]"."""

import numpy as np
from benchopt import BaseDataset

from widemargin import read


class Dataset(BaseDataset):
    name = "file"
    requirements = ["pip::widemargin"]
    parameters = {"path": [None], "n_rows": [None]}

    def skip(self):
        return self.path is None, "no path is given"

    def get_data(self):
        data = read(self.path)
        X = data.X.toarray() if hasattr(data.X, "toarray") else np.asarray(data.X)
        return {"X": X[: self.n_rows], "y": 2 * (data.y[: self.n_rows] == data.y.max()) - 1}
