"""info, plot and export."""

import json
import re
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from libsvm import svmutil

from widemargin import KernelSVC, load, save
from widemargin.export import shape_functions

from .helpers import (
    IRIS,
    SIGN,
    SPARSE,
    SPECIES,
    TWO,
    is_picture,
    run,
    run_json,
    table,
    write,
)


@pytest.mark.parametrize("kernel", ["rbf", "chi2", "auto"])
def test_info_says_what_was_trained(iris, kernel):
    words = ["-t", kernel, "-c", "2.5", "-w1", "3", "--scale", "maxabs"]
    found = run_json("train", iris, "m", *words)
    printed = run("info", "m").stdout
    machine = "KernelSVC" if kernel == "rbf" else "AdditiveSVC"
    assert f"{machine} after MaxAbsScaler" in printed
    assert "C=2.5, class_weight={1: 3.0}" in printed
    facts = dict(re.split(r"  +", line, maxsplit=1) for line in printed.splitlines())
    assert ("support vectors" in facts) == (kernel == "rbf")
    assert facts.get("kernel") == {"auto": "intersection", "chi2": "chi2"}.get(kernel)
    header = run_json("info", "m")
    scaler, svm = header["steps"]
    assert (scaler["kind"], svm["kind"]) == ("MaxAbsScaler", machine)
    assert svm["parameters"]["C"] == 2.5
    assert svm["classes"]["values"] == [0, 1, 2]
    assert svm["training"]["rows"] == 150
    assert svm["training"]["gap"] == found["duality_gap"]
    command = "widemargin train iris.txt m -t {} -c 2.5 --weight 1=3 --scale maxabs --json"
    assert header["notes"] == {"zero_based": False, "command": command.format(kernel)}
    assert facts["made by"] == command.format(kernel)
    shown = f"{facts['parameters']}, {facts['defaults']}"
    assert all(f"{name}=" in shown for name in load("m")[-1].get_params())


def test_info_shows_some_of_many_classes():
    write("a.txt", np.eye(12)[np.arange(24) % 12], np.arange(24) % 12)
    run("train", "a.txt", "m")
    assert "classes          0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more\n" in run("info", "m").stdout


def test_info_of_a_model_that_needs_its_function():
    save(KernelSVC(lambda A, B: A @ B.T).fit(TWO, SIGN), "m")
    printed = run("info", "m").stdout
    assert "KernelSVC" in printed
    assert "100" in printed


def test_info_of_factors(iris):
    run("scale", iris, "out", "-s", "factors")
    assert "range file of svm-scale" in run("info", "factors").stdout
    assert run_json("info", "factors")["features"] == 4
    run("scale", iris, "out", "-s", "factors", "--method", "standard")
    assert "StandardScaler" in run("info", "factors").stdout
    assert run_json("info", "factors")["kind"] == "StandardScaler"


def test_plot_draws_what_the_model_has(iris):
    run("train", iris, "rbf")
    run("train", iris, "chi2", "-t", "chi2")
    assert run("plot", "rbf").stdout == "rbf.png\n"
    assert run("plot", "chi2").stdout == "chi2.png\n"
    run("plot", "chi2", "some.png", "--features", "1, feature 2")
    run("plot", "chi2", "bars.png", "--what", "importance")
    half = write("half.txt", IRIS[::2], SPECIES[::2])
    run("plot", "chi2", "measured.png", "--what", "importance", "--data", half)
    run("plot", "chi2", "gaps.PNG", "--what", "convergence")
    pictures = ["rbf.png", "chi2.png", "some.png", "bars.png", "measured.png", "gaps.PNG"]
    assert all(map(is_picture, pictures))
    assert len({Path(picture).read_bytes() for picture in pictures}) == len(pictures)


def test_plot_draws_vectors_too(iris):
    run("train", iris, "m", "-t", "chi2", "--scale", "minmax")
    run("plot", "m", "m.svg", "--data", iris)
    assert b"</svg>" in Path("m.svg").read_bytes()
    run("plot", "m", "m.pdf")
    assert Path("m.pdf").read_bytes().startswith(b"%PDF")


def test_export_to_onnx(iris):
    run("train", iris, "m", "-t", "chi2")
    assert run("export", "m", "m.onnx").stdout == "m.onnx\n"
    session = onnxruntime.InferenceSession("m.onnx", providers=["CPUExecutionProvider"])
    _, scores = session.run(["label", "scores"], {"X": IRIS.astype(np.float32)})
    np.testing.assert_allclose(scores, load("m").decision_function(IRIS), atol=1e-5)


def test_export_to_libsvm(iris):
    run("train", iris, "m", "--multi-class", "ovo")
    run("export", "m", "out")
    labels, *_ = svmutil.svm_predict([], IRIS, svmutil.svm_load_model("out"), "-q")
    np.testing.assert_array_equal(labels, load("m").predict(SPARSE))


def test_export_of_shapes_knows_the_names_of_columns():
    table("a.csv", {"width": IRIS[:, 0], "length": IRIS[:, 2], "class": SPECIES})
    run("train", "a.csv", "m", "-t", "chi2")
    run("export", "m", "m.json")
    found = json.loads(Path("m.json").read_text())
    expected = shape_functions(load("m"))
    assert [f.pop("name") for f in found["features"]] == ["width", "length"]
    assert [f.pop("name") for f in expected["features"]] == ["width", "length"]
    assert [t.pop("name") for t in found["terms"]] == ["width", "length"]
    assert [t.pop("name") for t in expected["terms"]] == ["width", "length"]
    assert found == expected
    run("export", "m", "other", "--to", "shapes")
    assert Path("other").read_text() == Path("m.json").read_text()
