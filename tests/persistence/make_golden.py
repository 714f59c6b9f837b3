"""Makes the files in golden/: one small model of every kind, and what it says of fixed rows.

They stand for the models that users have on their disks.  Run it once per format, and never again
for a format that was released:

    python tests/persistence/make_golden.py
"""

import json
from pathlib import Path

import numpy as np
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from widemargin import AdditiveSVC, CalibratedSVC, KernelSVC, PowerMean, papers, save
from widemargin.persistence.container import FORMAT

FOLDER = Path(__file__).parent / "golden"
EARLY = {"early": 1, "branching": 2, "sample_size": 20, "random_state": 0}


def data():
    """Thirty irises, the names of their kinds, and a variant of which most values are zero."""
    iris = load_iris()
    X, y = iris.data[::5], iris.target_names[iris.target[::5]]
    wide = np.zeros((len(X), 12))
    wide[np.arange(len(X)), np.arange(len(X)) % 8] = X[:, 0] / 8
    wide[:, 8:10] = X[:, 2:] / 8
    return X, y, wide


def models() -> dict:
    """Unfitted models, and whether they are for the wide data."""
    return {
        "additive-spectral": (AdditiveSVC("chi2", n_bins=12, random_state=0), False),
        "additive-crammer-singer": (
            AdditiveSVC(PowerMean(-2), n_bins=12, multi_class="crammer_singer", random_state=0),
            False,
        ),
        "additive-unary": (papers.icd(n_bins=12, C=1.0, random_state=0), False),
        "additive-direct": (papers.pmsvm(-8, C=1.0, random_state=0), False),
        "additive-double": (AdditiveSVC(n_bins=12, rank=3, tol=1e-5, random_state=0), True),
        "kernel-rbf": (KernelSVC(gamma=0.2, C=0.5), False),
        "kernel-rbf-compressed": (KernelSVC(gamma=1.0, C=0.5), True),
        "kernel-poly-ovo": (
            KernelSVC("poly", gamma=0.1, degree=2, multi_class="ovo", tol=1e-5),
            False,
        ),
        "kernel-early-points": (KernelSVC(gamma=0.2, C=0.5, **EARLY), False),
        "kernel-early-kernel": (KernelSVC("poly", gamma=0.1, degree=2, tol=1e-5, **EARLY), False),
        "kernel-early-committee": (
            KernelSVC(gamma=0.5, early_prediction="bcm", tol=1e-5, **EARLY),
            False,
        ),
        "pipeline-additive": (
            make_pipeline(StandardScaler(), MinMaxScaler(), AdditiveSVC(n_bins=12, random_state=0)),
            False,
        ),
        "pipeline-kernel": (make_pipeline(MaxAbsScaler(), KernelSVC()), False),
        "calibrated": (CalibratedSVC(KernelSVC(gamma=0.2)), False),
    }


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    X, y, wide = data()
    expected = {}
    for name, (model, is_wide) in models().items():
        rows = wide if is_wide else X
        model.fit(rows, y)
        asked = np.round(rows[1::4] * 1.1, 3)  # rows that the model has not seen
        save(model, FOLDER / f"format{FORMAT}-{name}.safetensors", notes={"data": "iris"})
        expected[name] = {
            "rows": asked.tolist(),
            "decision": model.decision_function(asked).tolist(),
            "predict": model.predict(asked).tolist(),
        }
    text = json.dumps(expected, indent=None).replace(', "', ',\n "')
    (FOLDER / f"format{FORMAT}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
