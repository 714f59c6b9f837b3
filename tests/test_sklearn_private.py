"""Names that scikit-learn does not promise are in one file."""

import ast
from pathlib import Path

import widemargin

SOURCE = Path(widemargin.__file__).parent
ONE = SOURCE / "sklearn_private.py"


def private_imports(tree) -> set[str]:
    """Private names that are imported from scikit-learn."""
    return {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sklearn")
        for alias in node.names
        if alias.name.startswith("_") or "._" in (node.module or "")
    }


def private_attributes(tree) -> set[str]:
    """Names beginning with one underscore that are attributes, or are asked for as such."""
    own = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    texts = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return {name for name in own | texts if name.startswith("_") and name.isidentifier()}


def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def test_one_file_has_them():
    one = parsed(ONE)
    imported, attributes = private_imports(one), private_attributes(one)
    assert {"_safe_indexing", "_sigmoid_calibration"} <= imported
    assert {"_skl_callbacks", "_sklearn_output_config"} <= attributes
    for path in SOURCE.rglob("*.py"):
        if path != ONE:
            tree = parsed(path)
            found = private_imports(tree) | (private_attributes(tree) & attributes)
            assert not found, f"{path}: {found}"
