"""Bands around shapes, and how they are drawn."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from widemargin import AdditiveSVC, TableEncoder, explain
from widemargin.bands import shape_bands
from widemargin.plots import (
    plot_shape,
    plot_shapes,
)

from .helpers import curves, drawn


@pytest.fixture(scope="module")
def banded():
    """One column that decides, one that is noise, and a category; in odd units."""
    rng = np.random.default_rng(0)
    job = rng.integers(0, 2, 400)
    X = pd.DataFrame({"size": 1000 * rng.random(400), "noise": 5 + rng.random(400)})
    X["job"] = np.array(["a", "b"])[job]
    y = (X["size"] + 300 * job + rng.normal(0, 50, 400) > 600).to_numpy()
    names = list(X.columns)
    encoder = TableEncoder(scaling=None, sparse_output=False)
    model = make_pipeline(encoder, StandardScaler(), AdditiveSVC(random_state=0)).fit(X, y)
    return model, names, shape_bands(model, X, y, n_fits=12, names=names), X, y


def test_bands_hold_the_shape_and_are_narrower_than_what_matters(banded):
    model, names, bands, X, y = banded
    explained = explain(model, names)
    for name in ("size", "noise", "job"):
        shape = explained.shape(explained.term(name))
        low, high = bands.low[name], bands.high[name]
        assert low.shape == high.shape == shape.scores.shape
        assert np.all(low <= high)
        inside = (low <= shape.scores) & (shape.scores <= high)
        assert np.average(inside[:, 0], weights=shape.share) > 0.8
    reach = np.ptp(explained.shape(explained.term("size")).scores)
    assert np.mean(bands.high["size"] - bands.low["size"]) < 0.5 * reach
    assert bands.n_fits == 12
    again = shape_bands(model, X, y, n_fits=12, names=names)
    np.testing.assert_array_equal(again.low["size"], bands.low["size"])


def test_bands_are_drawn_around_curves_and_on_bars(banded):
    model, names, bands, *_ = banded
    bare, axis = (
        plot_shape(model, "size", names=names),
        plot_shape(model, "size", names=names, bands=bands),
    )
    assert len(axis.collections) == len(bare.collections) + 1
    reach = axis.collections[0].get_paths()[0].get_extents()
    line = curves(axis)[0].get_ydata()
    assert reach.y0 < line.min() + 0.2
    assert reach.y1 > line.max() - 0.2
    bars = plot_shape(model, "job", names=names, bands=bands)
    assert sum(type(c).__name__ == "LineCollection" for c in bars.collections) == 1
    flipped = plot_shape(model, "size", names=names, bands=bands, class_label=False)
    back = flipped.collections[0].get_paths()[0].get_extents()
    assert (back.y0, back.y1) == pytest.approx((-reach.y1, -reach.y0))
    assert drawn(plot_shapes(model, names=names, bands=bands))


def test_a_category_that_a_copy_has_not_seen_leaves_a_band():
    job = np.r_[np.zeros(100), np.ones(100), 2]
    table = pd.DataFrame({"job": np.array(["a", "b", "c"])[job.astype(int)]})
    model = AdditiveSVC(random_state=0).fit(table, job > 0)
    bands = shape_bands(model, table, job > 0, n_fits=5)
    assert np.all(np.isfinite(bands.low["job"]))
