"""The shape of the source: arrows between modules go one way, and the picture of them is true."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def tool(name: str):
    """A script of tools/ as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


graphs = tool("import_graph")
PAGE = graphs.PAGE.read_text(encoding="utf-8")


def test_arrows_go_one_way():
    assert graphs.faults(graphs.read_graph(), PAGE) == []


def test_the_picture_is_what_the_imports_say():
    assert graphs.redrawn(graphs.read_graph(), PAGE) == PAGE, "python tools/import_graph.py"


# ------------------------------------------------------------------ that it can fail


@pytest.mark.parametrize(
    ("module", "target", "said"),
    [
        ("engine", "additive.estimator", "engine imports additive.estimator, which is not in a"),
        ("additive.map", "kernel.rows", "not in a layer below"),
        ("persistence", "cli.app", "not in a layer below"),
        ("additive.kernels", "additive.model", "which stands after it"),
        ("validation", "__init__", "not in a layer below"),
    ],
)
def test_an_arrow_that_turns_is_named(module, target, said):
    graph = graphs.read_graph()
    graph[module] = graph[module] | {target}
    assert any(said in fault for fault in graphs.faults(graph, PAGE))


def test_a_circle_is_named():
    graph = {"engine": {"progress"}, "progress": {"engine"}}
    assert any("circle: engine -> progress" in f for f in graphs.faults(graph, ""))


def test_a_file_that_the_page_does_not_list_is_named():
    graph = graphs.read_graph() | {"kernel.new": set()}
    assert "ARCHITECTURE.md does not list kernel: new" in graphs.faults(graph, PAGE)
    del graph["kernel.new"], graph["kernel.rows"]
    assert any("gone from kernel: rows" in fault for fault in graphs.faults(graph, PAGE))


def test_what_counts_as_an_arrow():
    source = """
from typing import TYPE_CHECKING
import widemargin.engine
from widemargin import _core, AdditiveSVC
from widemargin.additive import kernels, AdditiveMap
if TYPE_CHECKING:
    from widemargin.cli import app
try:
    import numpy
except ImportError:
    from widemargin.files import replacing
def later():
    from widemargin import plots
class Lazy:
    from widemargin import progress
"""
    tree = graphs.ast.parse(source)
    known = set(graphs.read_graph())
    arrows = {m for node in graphs.run_at_import(tree) for m in graphs.imported(node, known)}
    assert arrows == {
        "engine", "_core", "__init__", "additive.kernels", "additive", "files", "progress",
    }  # fmt: skip


def test_arrows_that_a_longer_way_implies_are_left_out():
    graph = {"a": {"b", "c"}, "b": {"c"}, "c": set()}
    assert graphs.reduced(graph) == {"a": {"b"}, "b": {"c"}, "c": set()}
