"""The import graph of src/widemargin: checked, and drawn into ARCHITECTURE.md.

Usage: python tools/import_graph.py           draw it anew and say what is wrong with it
       python tools/import_graph.py --check   only say, and whether the picture is out of date

An arrow is an import that runs when a module is imported: those for type checkers and those inside
functions are left out.  Arrows must not form a circle, must go down the layers below, and inside a
machine must go up its list in ARCHITECTURE.md: a file imports only files that stand before it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "widemargin"
PAGE = ROOT / "ARCHITECTURE.md"
BEGIN = "<!-- drawn by tools/import_graph.py -->"
END = "<!-- end of the drawing -->"
LISTED = ("additive", "kernel", "vision")  # folders whose files have an order
SHARED = "shared"  # the modules beside the folders that no layer names
LAYERS = [  # from above; groups of one layer do not import each other
    ["__main__"],
    ["cli"],
    ["demo"],
    ["auto", "vision"],
    ["choice"],
    ["search", "model_report", "dask"],
    ["candidates", "pace", "score_model"],
    ["selection", "report", "export", "pages", "persistence"],
    ["preparation"],
    ["plots"],
    ["pairs", "bands", "mistakes"],
    ["term_bins"],
    ["terms"],
    ["papers", "libsvm", "table_encoder", "sklearn"],
    ["__init__"],
    ["additive", "kernel", "data"],
    [SHARED],
    ["_core"],
]
RANK = {group: rank for rank, layer in enumerate(LAYERS) for group in layer}
Graph = dict[str, set[str]]


def module_name(path: Path) -> str:
    """additive/tables.py is additive.tables, a folder's __init__ the folder."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)


def read_graph() -> Graph:
    """Every module and the modules it imports."""
    paths = {module_name(path): path for path in sorted(SOURCE.rglob("*.py"))}
    known = {*paths, "_core"}
    graph: Graph = {name: set() for name in known}
    for name, path in paths.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        graph[name] = {m for node in run_at_import(tree) for m in imported(node, known)} - {name}
    return graph


def run_at_import(tree: ast.AST) -> Iterator[ast.AST]:
    """Nodes outside functions and outside ``if TYPE_CHECKING``."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from (inner for part in node.orelse for inner in run_at_import(part))
            continue
        yield node
        yield from run_at_import(node)


def imported(node: ast.AST, known: set[str]) -> Iterator[str]:
    """The modules of ours that an import statement names; a public name is the package's."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.level:
        raise ValueError(f"a relative import: {ast.unparse(node)}")
    elif isinstance(node, ast.ImportFrom) and node.module:
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    else:
        return
    for name in names:
        package, *parts = name.split(".")
        if package != "widemargin":
            continue
        while parts and ".".join(parts) not in known:
            parts.pop()
        yield ".".join(parts) or "__init__"


def group_of(module: str) -> str:
    group = module.split(".")[0]
    return group if group in RANK else SHARED


def grouped(graph: Graph) -> Graph:
    groups: Graph = {}
    for module, targets in graph.items():
        arrows = {group_of(target) for target in targets} - {group_of(module)}
        groups.setdefault(group_of(module), set()).update(arrows)
    return groups


def within(graph: Graph, machine: str) -> Graph:
    """The arrows between files of one machine, under their short names."""
    head = f"{machine}."
    return {
        module.removeprefix(head): {t.removeprefix(head) for t in targets if t.startswith(head)}
        for module, targets in graph.items()
        if module.startswith(head)
    }


def printed_order(machine: str, page: str) -> list[str]:
    """The files of a machine in the order in which ARCHITECTURE.md lists them."""
    listing = re.search(rf"^    src/widemargin/{machine}/\n((?:      .*\n)+)", page, re.MULTILINE)
    return re.findall(r"^      (\w+)\.py\b", listing[1], re.MULTILINE) if listing else []


def faults(graph: Graph, page: str) -> list[str]:
    """What is wrong with the arrows, a sentence each."""
    found = []
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found.append(f"imports in a circle: {' -> '.join(error.args[1])}")
    for module, targets in sorted(graph.items()):
        for target in sorted(targets):
            above, below = group_of(module), group_of(target)
            if above != below and RANK[above] >= RANK[below]:
                found.append(f"{module} imports {target}, which is not in a layer below")
    for machine in LISTED:
        files, order = within(graph, machine), printed_order(machine, page)
        if missing := sorted(set(files) - set(order)):
            found.append(f"ARCHITECTURE.md does not list {machine}: {', '.join(missing)}")
        if gone := sorted(set(order) - set(files)):
            found.append(
                f"ARCHITECTURE.md lists files that are gone from {machine}: {', '.join(gone)}"
            )
        place = {name: i for i, name in enumerate(order)}
        found += [
            f"{machine}/{name}.py imports {target}.py, which stands after it in ARCHITECTURE.md"
            for name, targets in files.items()
            for target in sorted(targets)
            if name in place and place.get(target, -1) > place[name]
        ]
    return found


def reduced(graph: Graph) -> Graph:
    """Without the arrows that a longer way implies."""
    reach: Graph = {}
    for node in TopologicalSorter(graph).static_order():
        reach[node] = set().union(*({t} | reach[t] for t in graph.get(node, ())))
    return {
        node: {t for t in targets if not any(t in reach[other] for other in targets - {t})}
        for node, targets in graph.items()
    }


def mermaid(graph: Graph, order: list[str]) -> list[str]:
    """One line per node: what it imports, nearest first."""
    lines = ["```mermaid", "graph TD"]
    place = {name: i for i, name in enumerate(order)}
    for node in order:
        if targets := graph.get(node):
            shown = " & ".join(label(t) for t in sorted(targets, key=place.__getitem__))
            lines.append(f"  {label(node)} --> {shown}")
    return [*lines, "```"]


def label(group: str) -> str:
    names = {"__init__": "names[import widemargin]", "__main__": "main[python -m widemargin]",
             "_core": "core[_core, C++]"}  # fmt: skip
    return names.get(group, group)


def drawing(graph: Graph, page: str) -> str:
    shared = sorted(m for m in graph if group_of(m) == SHARED)
    groups = [group for layer in LAYERS for group in layer]
    lines = [
        f"`shared` is {', '.join(shared)}. Arrows that a longer way implies are left out.",
        "",
        *mermaid(reduced(grouped(graph)), groups),
    ]
    for machine in LISTED:
        title = f"Inside `{machine}/`:"
        order = printed_order(machine, page)[::-1]
        lines += ["", title, "", *mermaid(reduced(within(graph, machine)), order)]
    return "\n".join(["", *lines, ""])


def redrawn(graph: Graph, page: str) -> str:
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{drawing(graph, page)}\n{END}{after}"


def main() -> int:
    graph, page = read_graph(), PAGE.read_text(encoding="utf-8")
    wrong = faults(graph, page)
    if not wrong and (new := redrawn(graph, page)) != page:
        if "--check" in sys.argv:
            wrong = ["the picture in ARCHITECTURE.md is out of date: python tools/import_graph.py"]
        else:
            PAGE.write_text(new, encoding="utf-8")
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
