"""`AdditiveSVC` as its shape functions, in JSON: what each feature adds to the decision."""

from __future__ import annotations

import json
import os
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from widemargin.additive import AdditiveSVC
from widemargin.export.labels import plain_labels
from widemargin.files import replacing
from widemargin.multiclass import Coding


def shape_functions(model: AdditiveSVC) -> dict[str, Any]:
    """The shape functions of a fitted `AdditiveSVC`, as what JSON knows.

    Parameters
    ----------
    model : AdditiveSVC

    Returns
    -------
    shapes : dict
        "widemargin" is the version and "classes" are all labels.  "outputs" are the labels that
        have decision values: all of them, or the second of two; "intercepts" are theirs.
        "features" are dicts with "index", "name" (None if not known), "grid" (values of the
        feature, ascending) and "values" (one list per output: what the feature adds at each
        value of the grid).  A value between two of the grid belongs to the bin of one of them; a
        value that counts as absent (below the grid, if the kernel vanishes at zero) adds nothing.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import AdditiveSVC
    >>> from widemargin.export import shape_functions
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> shapes = shape_functions(AdditiveSVC(random_state=0).fit(X, y))
    >>> [feature["name"] for feature in shapes["features"]]
    ['sepal length (cm)', 'sepal width (cm)', 'petal length (cm)', 'petal width (cm)']
    >>> shapes["outputs"], len(shapes["features"][0]["values"])
    ([0, 1, 2], 3)
    """
    if not isinstance(model, AdditiveSVC):
        raise ValueError(
            f"{type(model).__name__} is not a sum over features, so it has no shape functions: "
            "use an AdditiveSVC (of a Pipeline, its last step)."
        )
    check_is_fitted(model, "model_")
    fitted, labels = model.model_, plain_labels(model.classes_)
    coding, names = Coding.of(model), getattr(model, "feature_names_in_", None)

    def per_score(outputs: np.ndarray) -> list:
        return _finite((outputs @ coding.readout).T)

    features = [
        {
            "index": j,
            "name": None if names is None else str(names[j]),
            "grid": _finite(fitted.encoder.grid(j)[1:]),
            "values": per_score(fitted.feature_function(j)[1:]),
        }
        for j in range(fitted.n_features)
    ]
    return {
        "widemargin": version("widemargin"),
        "classes": labels.tolist(),
        "outputs": labels[coding.scored].tolist(),
        "intercepts": per_score(fitted.intercept),
        "features": features,
    }


def export_shapes(model: AdditiveSVC, path: str | os.PathLike) -> None:
    """Write the shape functions of a fitted `AdditiveSVC` as JSON.

    Parameters
    ----------
    model : AdditiveSVC
    path : path
        Written whole or not at all; see `shape_functions` for what is in it.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> from widemargin import AdditiveSVC
    >>> from widemargin.export import export_shapes
    >>> model = AdditiveSVC(random_state=0).fit([[0.0, 1.0], [2.0, 0.0]], ["no", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "shapes.json")
    ...     export_shapes(model, path)
    ...     list(json.loads(path.read_text()))
    ['widemargin', 'classes', 'outputs', 'intercepts', 'features']
    """
    text = json.dumps(shape_functions(model), allow_nan=False)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _finite(values: np.ndarray) -> list:
    if not np.all(np.isfinite(values)):
        raise ValueError("The model is not finite (its fit diverged): decrease C and fit again.")
    return values.tolist()
