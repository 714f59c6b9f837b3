"""Models that earlier versions wrote: they load, and say what they said then."""

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from scipy import sparse as sp
from sklearn.pipeline import Pipeline

from widemargin import load, save
from widemargin.persistence import container, read_header

FOLDER = Path(__file__).parent / "golden"
FILES = sorted(FOLDER.glob("*.safetensors"))

each_file = pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)


def header_text(path: Path) -> dict:
    """The header with its numbers as they are written."""
    with safe_open(path, framework="np") as file:
        return json.loads(file.metadata()[container.KEY], parse_float=str, parse_int=str)


def expected(path: Path) -> dict:
    form, name = path.stem.split("-", 1)
    return json.loads((FOLDER / f"{form}.json").read_text())[name]


@each_file
def test_a_model_says_what_it_said(path):
    then, model = expected(path), load(path)
    for rows in (np.array(then["rows"]), sp.csr_array(then["rows"])):
        if sp.issparse(rows) and isinstance(model, Pipeline):
            continue  # scalers that centre take no sparse rows
        scores = model.decision_function(rows)
        np.testing.assert_allclose(scores, then["decision"], rtol=1e-6, atol=1e-6)
        np.testing.assert_array_equal(model.predict(rows), then["predict"])


@each_file
def test_a_model_can_be_written_again(path, tmp_path):
    first, then = load(path), np.array(expected(path)["rows"])
    save(first, tmp_path / "again.safetensors")
    second = load(tmp_path / "again.safetensors")
    np.testing.assert_array_equal(second.decision_function(then), first.decision_function(then))


@each_file
def test_the_header_is_written_again_to_the_letter(path, tmp_path):
    """All but the version that wrote it; the order of fields means nothing."""
    again, header = tmp_path / "again.safetensors", read_header(path)
    save(load(path), again, notes=header.notes)
    assert header_text(again) == header_text(path) | {"package": version("widemargin")}


@each_file
def test_the_header_can_be_read(path):
    header = read_header(path)
    assert path.stem.startswith(f"format{header.format}-")
    assert header.notes == {"data": "iris"}
    model = load(path)
    machine = model[-1] if isinstance(model, Pipeline) else model
    assert header.kinds[-1] == type(machine).__name__
    assert header.n_features == machine.n_features_in_
    assert header.classes == machine.classes_.tolist()
    assert header.record.n_rows == machine.fit_record_.n_rows
    assert header.record.gap == pytest.approx(machine.duality_gap_, nan_ok=True)


def test_loading_imports_no_reports_and_no_pictures():
    program = """
import sys
from widemargin import load
for path in sys.argv[1:]:
    load(path)
rim = {"model_report", "pages", "pairs", "plots", "easy", "papers", "cli", "export"}
names = [name.removeprefix("widemargin.").partition(".")[0] for name in sys.modules]
print(sorted({name for name in names if name in rim | {"matplotlib", "typer", "dask", "onnx"}}))
"""
    command = [sys.executable, "-c", program, *map(str, FILES)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_every_format_and_kind_is_here():
    for form in range(1, container.FORMAT + 1):
        kinds = {p.stem.split("-", 1)[1] for p in FILES if p.stem.startswith(f"format{form}-")}
        assert kinds == set(json.loads((FOLDER / f"format{form}.json").read_text()))
        assert {
            "additive-spectral", "additive-unary", "additive-direct", "kernel-rbf",
            "kernel-rbf-compressed", "kernel-early-points", "kernel-early-kernel",
            "pipeline-additive",
        } <= kinds  # fmt: skip


def test_the_kinds_are_what_their_names_say():
    def named(name):
        return load(FOLDER / f"format1-{name}.safetensors")

    assert named("additive-spectral").model_.offset is None
    assert named("additive-unary").model_.offset is not None
    assert hasattr(named("additive-direct").model_.lookup, "rank")
    assert named("additive-double").model_.weights.dtype == np.float64
    assert not named("kernel-rbf").model_.kernel.compressed
    assert named("kernel-rbf-compressed").model_.kernel.compressed
    assert type(named("kernel-early-points").model_.router).__name__ == "PointRouter"
    assert type(named("kernel-early-kernel").model_.router).__name__ == "KernelRouter"


def test_the_files_are_small():
    assert sum(p.stat().st_size for p in FOLDER.iterdir()) < 120_000
