"""What people see of a model: columns of their data, in their data's units."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from widemargin import explain, load, plots
from widemargin.data import read

from .helpers import refused, run, table

COLUMNS = ["age", "job", "size"]
FEATURES = ["age", "size", "job=baker", "job=clerk", "job=smith"]


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    job, age = rng.choice(["baker", "clerk", "smith"], 300), rng.integers(18, 80, 300)
    size = rng.normal(170, 10, 300).round(1)
    rich = np.where((job == "smith") + (age > 45) + rng.normal(0, 0.2, 300) > 0.7, "yes", "no")
    return table("people.csv", {"age": age, "job": job, "size": size, "rich": rich})


@pytest.fixture(params=["none", "minmax", "maxabs", "standard"])
def model(request, people):
    run("train", people, "m", "--label", "rich", "-t", "intersection", "--scale", request.param)
    return "m"


def test_contributions_are_by_column_and_sum_to_the_decision_value(people, model):
    words = ["predict", people, model, "--label", "rich", "--output"]
    rows = list(csv.reader(io.StringIO(run(*words, "contributions").stdout), delimiter="\t"))
    assert rows[0] == [*COLUMNS, "intercept"]
    parts = np.array(rows[1:], dtype=float)
    decision = np.array(run(*words, "decision").stdout.split()[1:], dtype=float)
    np.testing.assert_allclose(parts.sum(axis=1), decision, atol=1e-5)
    np.testing.assert_allclose(parts[:, :3].mean(axis=0), 0, atol=1e-5)


def test_json_of_a_scaled_model_is_in_the_data_s_units(people, model):
    run("export", model, "m.json")
    shapes = json.loads(Path("m.json").read_text())
    scaled = hasattr(load(model), "steps")  # without a scaler, categories are not features
    assert [f["name"] for f in shapes["features"]] == (FEATURES if scaled else COLUMNS)
    assert [t["name"] for t in shapes["terms"]] == COLUMNS
    X = read(people, label="rich").X
    for feature in shapes["features"]:
        if feature["name"] in ("age", "size"):
            column = X[feature["name"]].to_numpy()
            assert feature["grid"][0] <= column.min() + 1e-9
            assert 0.99 * column.max() <= feature["grid"][-1] < 250  # years and centimetres


def test_plots_show_columns_in_the_data_s_units(people, model, monkeypatch):
    seen = {}

    def remember(name, real):
        def draw(*args, **more):
            seen[name] = real(*args, **more)
            return seen[name]

        return draw

    for name in ("plot_shapes", "plot_importance"):
        monkeypatch.setattr(plots, name, remember(name, getattr(plots, name)))
    run("plot", model, "a.png", "--features", "size,age,job=clerk,1")
    titles = [axis.get_title() for axis in seen["plot_shapes"].axes]
    assert titles == ["size", "age", "job", "job"]
    size, age = (axis.lines[1].get_xdata() for axis in seen["plot_shapes"].axes[:2])
    assert (age.min(), age.max()) == pytest.approx((18, 79), rel=0.02)
    assert 130 < size.min() < size.max() < 210
    run("plot", model, "a.png", "--what", "importance")
    axis = seen["plot_importance"]
    ranked = [term.name for term in explain(load(model)).ranked]
    assert [text.get_text() for text in axis.get_yticklabels()] == ranked[::-1]
    run("plot", model, "a.png", "--what", "importance", "--data", people, "--label", "rich")
    assert "no such feature; there are 3" in refused("plot", model, "--features", "work")
