"""The shape of the source: arrows between modules go one way, and the picture of them is true."""

import importlib.util
import re
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


# ------------------------------------------------------------------ instruction sets

# A function of a standard header that is not inlined is kept once for the whole core: one with
# AVX-512 could be called on a machine without it.  These have none, or only those of C.
WITHOUT_TEMPLATES = {
    "cstddef", "cstdint", "cstdlib", "cstring", "ctime", "sched.h", "type_traits",
}  # fmt: skip


def includes(path: Path) -> set[str]:
    """Headers that a file of the core takes in, its own ones followed."""
    found = set(re.findall(r"#include <(.+)>", path.read_text(encoding="utf-8")))
    for own in re.findall(r'#include "(.+)"', path.read_text(encoding="utf-8")):
        found |= includes(ROOT / "cpp" / own)
    return found


@pytest.mark.parametrize("machine", ["additive", "kernel"])
def test_what_is_compiled_per_instruction_set_shares_no_functions(machine):
    assert includes(ROOT / "cpp" / machine / "loops.cpp") <= WITHOUT_TEMPLATES
    assert "vector" in includes(ROOT / "cpp" / "kernel" / "working_set.hpp")  # elsewhere they may


# ------------------------------------------------------------------ sizes

sizes = tool("sizes")


def test_sizes_stay_within_their_bars():
    assert sizes.broken(sizes.measure()) == []


@pytest.fixture
def measured(tmp_path):
    """Sizes of a package with one small module."""
    (tmp_path / "cli").mkdir()
    (tmp_path / "cli" / "app.py").write_text("def command(a, b, c, d, e, f, g, h, i, j): ...\n")
    (tmp_path / "_core.pyi").write_text("def sweep(a, b, c, /, d, *, e, f, g, h, i): ...\n")
    (tmp_path / "one.py").write_text(
        '''"""A docstring
of two lines."""

class Machine:
    """A third."""

    def __init__(self, a, b, c, d, e, f, g, h, i, j):
        pass

    def fit(self, X, y=None, *more, **most):
        """Not

        counted.
        """
        x = [1, 2]  # fmt: skip
        return x

def plain(self_, b):
    def within(c):
        return c
    return within
'''
    )
    return sizes.measure(tmp_path)


def test_parameters_are_counted_without_self_constructors_of_estimators_and_options(measured):
    counted = {where.rpartition(" ")[2]: size for size, where in measured["parameters"]}
    assert counted == {"sweep": 9, "Machine.fit": 4, "plain": 2, "plain.within": 1}


def test_lines_are_counted_without_docstrings(measured):
    lines = {where.rpartition(" ")[2]: size for size, where in measured["function"]}
    assert (lines["Machine.fit"], lines["plain"], lines["plain.within"]) == (3, 4, 2)
    assert dict(map(reversed, measured["file"]))["one.py"] == 21 - 2 - 1 - 4


def test_what_is_above_its_bar_is_named(measured):
    assert [size for size, _ in measured["fmt: skip"]] == [1]
    assert sizes.broken(measured) == ["parameters: 9 (at most 8) in _core.pyi: sweep"]
