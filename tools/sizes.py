"""Sizes of src/widemargin: parameters, lines of functions and files, layouts kept by hand.

Usage: python tools/sizes.py   (prints the largest of each kind, and exits 1 when a bar is broken)

Lines are counted without docstrings, blank lines and lines of nothing but a comment left in.  The
constructors of estimators and the options of commands are parameters by design and not counted;
the core's functions are, from _core.pyi.  self and cls are no parameters.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[1] / "src" / "widemargin"
BARS = {"parameters": 8, "function": 60, "file": 400, "fmt: skip": 9}
KEPT_BY_HAND = "# fmt: " + "skip"
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Size(NamedTuple):
    size: int
    where: str


def functions(tree: ast.AST, inside: str = "") -> Iterator[tuple[str, Function]]:
    """Every function with its full name, methods and functions within functions too."""
    for node in ast.iter_child_nodes(tree):
        name = inside
        if isinstance(node, Function | ast.ClassDef):
            name = f"{inside}.{node.name}" if inside else node.name
        if isinstance(node, Function):
            yield name, node
        yield from functions(node, name)


def n_parameters(function: Function) -> int:
    a = function.args
    names = [p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg) if p]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def docstring_lines(node: ast.AST) -> int:
    """Lines of the docstrings of a node and of all within it."""
    total = 0
    for inner in ast.walk(node):
        if isinstance(inner, Function | ast.ClassDef | ast.Module) and ast.get_docstring(inner):
            text = inner.body[0]
            total += (text.end_lineno or text.lineno) - text.lineno + 1
    return total


def n_lines(function: Function) -> int:
    """From the first decorator or def to the end."""
    first = min([function.lineno, *(d.lineno for d in function.decorator_list)])
    return (function.end_lineno or first) - first + 1 - docstring_lines(function)


def is_estimator(tree: ast.Module, function: str) -> bool:
    """Whether this is the constructor of a class with tags, a fit, or parameters that it checks."""
    name, _, method = function.rpartition(".")
    return method == "__init__" and any(
        isinstance(part, Function) and part.name in ("fit", "__sklearn_tags__", "_check_params")
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name == name
        for part in node.body
    )


def measure(source: Path = SOURCE) -> dict[str, list[Size]]:
    """All sizes by kind, largest first."""
    sizes: dict[str, list[Size]] = {kind: [] for kind in BARS}
    skips = 0
    for path in sorted([*source.rglob("*.py"), *source.rglob("*.pyi")]):
        text, where = path.read_text(encoding="utf-8"), path.relative_to(source).as_posix()
        tree = ast.parse(text)
        skips += text.count(KEPT_BY_HAND)
        sizes["file"].append(Size(len(text.splitlines()) - docstring_lines(tree), where))
        for name, function in functions(tree):
            here = f"{where}: {name}"
            sizes["function"].append(Size(n_lines(function), here))
            if where != "cli/app.py" and not is_estimator(tree, name):
                sizes["parameters"].append(Size(n_parameters(function), here))
    sizes["fmt: skip"].append(Size(skips, "all of src"))
    return {kind: sorted(found, reverse=True) for kind, found in sizes.items()}


def broken(sizes: dict[str, list[Size]]) -> list[str]:
    """Every size above its bar, as a line each."""
    return [
        f"{kind}: {size} (at most {BARS[kind]}) in {where}"
        for kind, found in sizes.items()
        for size, where in found
        if size > BARS[kind]
    ]


def main() -> int:
    sizes = measure()
    for kind, bar in BARS.items():
        print(f"{kind} (at most {bar}):")
        print(*(f"  {size:4}  {where}" for size, where in sizes[kind][:5]), sep="\n")
    wrong = broken(sizes)
    print(f"\n{len(wrong)} above their bar", *wrong, sep="\n  ")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
