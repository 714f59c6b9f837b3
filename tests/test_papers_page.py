"""docs/papers.md names things that exist: functions, files, tests, parameters and options."""

import ast
import importlib
import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest

from widemargin import AdditiveSVC, KernelSVC
from widemargin.additive import ApproximationError

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
NAMES = sorted(set(re.findall(r"`([^`]+)`", PAGE)))
MACHINES = (AdditiveSVC, KernelSVC)
TABLES = {path.stem for path in (ROOT / "benchmarks/experiments/tables").glob("*.toml")}
SPOKEN = {"widemargin.", "easy", *TABLES} | {field.name for field in fields(ApproximationError)}
ATTRIBUTES = ("history_",)


def defined_in(path: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.FunctionDef)}  # fmt: skip


def found(dotted: str) -> bool:
    """Whether a name within the package leads to something."""
    parts = dotted.split(".")
    for n in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(["widemargin", *parts[:n]]))
        except ModuleNotFoundError:
            continue
        for part in parts[n:]:
            if not hasattr(thing, part):
                return False
            thing = getattr(thing, part)
        return True
    return False


def exists(name: str) -> bool:
    if "::" in name:
        path, test = name.split("::")
        return test in defined_in(ROOT / path)
    if "/" in name:
        return (ROOT / name).is_file()
    if name.startswith("--"):
        return f'"{name}"' in "".join(
            p.read_text() for p in (ROOT / "src/widemargin/cli").glob("*options.py")
        )
    if "=" in name:
        parameter, value = name.split("=")
        has = [m for m in MACHINES if parameter in inspect.signature(m).parameters]
        value = ast.literal_eval(value)
        checked = [m(**{parameter: value}) for m in has]
        return any(_accepts(machine) for machine in checked)
    return name in SPOKEN or name in ATTRIBUTES or found(name)


def _accepts(machine) -> bool:
    try:
        machine._check_params()
    except (TypeError, ValueError):
        return False
    return True


def test_the_page_names_much():
    assert len(NAMES) > 80


@pytest.mark.parametrize("name", NAMES)
def test_what_the_page_names_exists(name):
    assert exists(name)


@pytest.mark.parametrize(
    "name",
    ["papers.sikma", "tests/additive/test_icd.py::test_nothing", "cpp/no.hpp", "--no-such-option",
     'binning="ceiling"', "no_parameter=1", "nothing"],
)  # fmt: skip
def test_what_does_not_exist_would_be_found_out(name):
    assert not exists(name)


def _numbers(word: str, text: str) -> set[int]:
    """Those after a word: "eq. 1, 3", "Tables 4 to 7", "Figure 1b"."""
    said: set[int] = set()
    for spoken in re.findall(rf"{word}s? ((?:\d+[a-z]?(?: to \d+)?(?:, )?)+)", text):
        for part in re.sub(r"(?<=\d)[a-z]", "", spoken).rstrip(", ").split(", "):
            first, *last = map(int, part.split(" to "))
            said |= set(range(first, (last or [first])[0] + 1))
    return said


PAPERS = {
    "ICD": range(1, 14),
    "PmSVM": range(1, 12),
    "PmSVM-LUT": range(4, 21),
    "DC-SVM": range(1, 12),
}


@pytest.mark.parametrize("paper", PAPERS)
def test_every_numbered_equation_is_on_the_page(paper):
    section = next(s for s in PAGE.split("\n## ") if s.startswith(f"{paper}:"))
    firsts = [line.split(" | ")[0] for line in section.splitlines()]
    said = set().union(*(_numbers(r"eq\.", first) for first in firsts))
    assert said >= set(PAPERS[paper]), sorted(set(PAPERS[paper]) - said)


NUMBERED = {  # tables and figures of each paper
    "ICD": (5, 1),
    "PmSVM": (3, 2),
    "LUT": (9, 4),
    "DC-SVM": (10, 8),
}


@pytest.mark.parametrize("paper", NUMBERED)
def test_every_table_and_figure_has_an_experiment_or_a_reason(paper):
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.splitlines()
            if line.startswith(f"| {paper}, ")]  # fmt: skip
    for word, count in zip(("Table", "Figure"), NUMBERED[paper], strict=True):
        said = set().union(*(_numbers(word, row[0]) for row in rows))
        assert said == set(range(1, count + 1)), word
    assert all(row[1] != "none" or row[2] for row in rows)


def test_every_experiment_is_on_the_page():
    section = next(s for s in PAGE.split("\n## ") if s.startswith("Tables and figures"))
    assert set(re.findall(r"`(\w+)`", section)) == TABLES
