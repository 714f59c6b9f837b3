"""Export the shape functions of additive machines as JSON."""

from __future__ import annotations

import json
import os
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from widemargin.additive import AdditiveSVC, AdditiveSVR
from widemargin.files import text_output
from widemargin.multiclass import plain_labels
from widemargin.terms import Explanation, explain


def shape_functions(model: AdditiveSVC | AdditiveSVR | Pipeline, names=None) -> dict[str, Any]:
    """Return the shape functions of a fitted additive machine as JSON values.

    Parameters
    ----------
    model : AdditiveSVC, AdditiveSVR or Pipeline
        The values of a pipeline are in the units before its scalers.
    names : sequence of str, default=None
        Names of the features, if the model has none.

    Returns
    -------
    shapes : dict
        "widemargin" is the version and "classes" are all labels, none of a regressor.  "outputs"
        are the labels that have decision values: all of them, or the second of two; or the numbers
        of a regressor's targets.  "intercepts" are theirs, the mean decision values or predictions
        over the training data.  "features" are dicts with "index", "name" (None if
        not known), "grid" (values of the feature, ascending, or its categories), "values" (one
        list per output: what the feature adds at each value of the grid, centred) and "missing"
        (one number per output where a number is missing; None if the model has not learned that).
        A value between two of the grid belongs to the bin of one of them.  "terms" are dicts with
        "name", "features" (indices), "categories" (none of a column of numbers) and "importance"
        (None if the model does not know): the columns of the data.

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
    explained = explain(model, names)
    named = names is not None or hasattr(model, "feature_names_in_")
    features = []
    for j, name in enumerate(explained.feature_names):
        shape = explained.feature_shape(j)
        is_text = shape.values.dtype == object
        features.append(
            {
                "index": j,
                "name": name if named else None,
                "grid": shape.values.tolist() if is_text else _finite(shape.values),
                "values": _finite(shape.scores.T),
                "missing": None if shape.missing is None else _finite(shape.missing),
            }
        )
    labels = plain_labels(explained.labels)
    return {
        "widemargin": version("widemargin"),
        "classes": [] if explained.is_of_numbers else labels.tolist(),
        "outputs": labels[explained.machine.coding_.scored].tolist(),
        "intercepts": _finite(explained.intercept),
        "features": features,
        "terms": _terms(explained),
    }


def _terms(explained: Explanation) -> list[dict[str, Any]]:
    size = _finite(explained.importances())
    return [
        {
            "name": term.name,
            "features": list(term.features),
            "categories": list(term.categories),
            "importance": importance,
        }
        for term, importance in zip(explained.terms, size, strict=True)
    ]


def export_shapes(
    model: AdditiveSVC | AdditiveSVR | Pipeline, path: str | os.PathLike, names=None
) -> None:
    """Write the shape functions of a fitted additive machine as JSON.

    Parameters
    ----------
    model : AdditiveSVC, AdditiveSVR or Pipeline
    path : path
        Written whole or not at all; see `shape_functions` for what is in it.
    names : sequence of str, default=None
        Names of the features, if the model has none.

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
    ['widemargin', 'classes', 'outputs', 'intercepts', 'features', 'terms']
    """
    text = json.dumps(shape_functions(model, names), allow_nan=False)
    with text_output(path) as file:
        file.write(text)


def _finite(values: np.ndarray) -> list:
    if not np.all(np.isfinite(values)):
        raise ValueError("The model is not finite (its fit diverged): decrease C and fit again.")
    return values.tolist()
