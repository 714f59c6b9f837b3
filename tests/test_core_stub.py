"""`_core.pyi` says what the compiled core is."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import widemargin
from widemargin import _core

STUB = ast.parse((Path(widemargin.__file__).parent / "_core.pyi").read_text())


def stub_functions():
    """Parameters of every function and method in the stub, by name."""
    found = {}
    for node in STUB.body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = parameters_of(node)
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for method in (part for base in [*bases_of(node), node] for part in base.body):
                if isinstance(method, ast.FunctionDef) and not method.decorator_list:
                    found[f"{node.name}.{method.name}"] = parameters_of(method)
    return found


def bases_of(node):
    """What the stub says once of several classes; the core has no such bases."""
    names = [base.id for base in node.bases]
    return [n for n in STUB.body if isinstance(n, ast.ClassDef) and n.name in names]


def parameters_of(node):
    others = (node.args.vararg, node.args.kwarg, *node.args.kwonlyargs, *node.args.defaults)
    assert not any(others)
    return [a.arg for a in node.args.args if a.arg != "self"]


def bound_functions():
    """Parameters of every bound function and method, from nanobind's signatures."""
    found = {}
    for name, thing in public(_core):
        if isinstance(thing, type):
            for method, function in members(thing).items():
                if not isinstance(function, property):
                    found[f"{name}.{method}"] = bound_parameters(function)
        elif callable(thing):
            found[name] = bound_parameters(thing)
    return found


def public(module):
    return [(name, thing) for name, thing in vars(module).items() if not name.startswith("_")]


def members(bound_class):
    """What was bound, without what every class has."""
    own = vars(bound_class).items()
    return {k: v for k, v in own if isinstance(v, property) or hasattr(v, "__nb_signature__")}


def bound_parameters(function):
    ((signature, *_),) = function.__nb_signature__  # no overloads
    signature = re.sub(r"widemargin\._core\.", "", signature).replace("numpy.", "")
    signature = re.sub(r"ndarray\[[^]]*\]", "ndarray", signature)
    (node,) = ast.parse(signature + ": ...").body
    return parameters_of(node)


def test_the_stub_names_every_function_with_its_parameters():
    assert stub_functions() == bound_functions()


def test_no_function_of_the_core_has_more_than_eight_parameters():
    most = max(bound_functions().items(), key=lambda item: len(item[1]))
    assert len(most[1]) <= 8, most


def test_the_stub_has_every_class_attribute_and_constant():
    classes = [n for n in STUB.body if isinstance(n, ast.ClassDef) and n.name[0] != "_"]
    declared = {n.name for n in classes}
    assert declared == {name for name, thing in public(_core) if isinstance(thing, type)}
    constants = {n.target.id for n in STUB.body if isinstance(n, ast.AnnAssign)}
    assert constants == {name for name, thing in public(_core) if isinstance(thing, int)}
    for node in classes:
        parts = [part for base in [*bases_of(node), node] for part in base.body]
        stubbed = {m.name for m in parts if isinstance(m, ast.FunctionDef)}
        stubbed |= {m.target.id for m in parts if isinstance(m, ast.AnnAssign)}
        assert stubbed == set(members(getattr(_core, node.name)))


@pytest.mark.parametrize("name", [name for name, thing in public(_core) if callable(thing)])
def test_everything_in_the_core_says_what_it_is(name):
    assert (inspect.getdoc(getattr(_core, name)) or "").strip()
