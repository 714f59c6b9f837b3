"""docs/papers.md names things that exist: functions, files, tests, parameters and options."""

import ast
import importlib
import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest

from widemargin import AdditiveSVC, KernelSVC
from widemargin.additive.tables import ApproximationError

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
NAMES = sorted(set(re.findall(r"`([^`]+)`", PAGE)))
MACHINES = (AdditiveSVC, KernelSVC)
SPOKEN = {"widemargin.", "easy"} | {field.name for field in fields(ApproximationError)}
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
        return f'"{name}"' in (ROOT / "src/widemargin/cli/options.py").read_text()
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


PAPERS = {
    "ICD": range(1, 14),
    "PmSVM": range(1, 12),
    "PmSVM-LUT": range(4, 21),
    "DC-SVM": range(1, 12),
}


@pytest.mark.parametrize("paper", PAPERS)
def test_every_numbered_equation_is_on_the_page(paper):
    section = next(s for s in PAGE.split("\n## ") if s.startswith(f"{paper}:"))
    said: set[int] = set()
    for line in section.splitlines():
        for spoken in re.findall(r"eq\. ((?:\d+(?: to \d+)?(?:, )?)+)", line.split(" | ")[0]):
            for part in spoken.rstrip(", ").split(", "):
                first, *last = map(int, part.split(" to "))
                said |= set(range(first, (last or [first])[0] + 1))
    assert said >= set(PAPERS[paper]), sorted(set(PAPERS[paper]) - said)
