"""Model files that were changed anywhere: a model that works, or a ValueError.

    python fuzz/fuzz_model.py corpus

An input is not a file but a recipe: which of the golden files to start from, and what to change in
its header, its arrays and its bytes.  Most mutations of a file itself would end at safetensors'
first look at it; see README.md.
"""

import io
import json
import os
import struct
import sys
import warnings
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from widemargin.persistence import load, read_header
from widemargin.persistence.container import write_sealed

GOLDEN = Path(__file__).parents[1] / "tests" / "persistence" / "golden"
FILES = sorted(GOLDEN.glob("*.safetensors"))
MODELS = [(read_header(path).content, load_file(path)) for path in FILES]
EXPECTED = json.loads((GOLDEN / "format1.json").read_text())
ROWS = [np.array(EXPECTED[path.stem.split("-", 1)[1]]["rows"][:2]) for path in FILES]
DTYPES = ("f4", "f8", "i4", "i8", "u1", "u4", "f2", "?", "u8", "c8", "i1")
# A file in memory: nothing is left behind when libFuzzer ends the process.
PATH = f"/proc/self/fd/{os.memfd_create('model')}" if sys.platform == "linux" else "fuzzed.model"


def nodes(tree, where=()):
    """Every node of a header below its root: the way there and the value."""
    for key in tree if isinstance(tree, dict) else range(len(tree)):
        yield (*where, key), tree[key]
        if isinstance(tree[key], (dict, list)):
            yield from nodes(tree[key], (*where, key))


VALUES = [None, True, False, 0, 1, -1, 2, 255, 2**31 - 1, 2**53, 2**63, 10**30, 0.0, 0.5, -1.0,
          1e308, -1e308, 1e39, 5e-324, "", "x", "nan", "inf", "-inf", [], {}, [[]], [{}], [None],
          [0, 1], {"function": "f"}, {"power_mean": -1.0}, {"power_mean": 0}, {"weights": []},
          {"weights": [[0, 1.0]]}]  # fmt: skip
VALUES += {json.dumps(v): v for header, _ in MODELS for _, v in nodes(header)}.values()


class Recipe:
    """The bytes of an input, as choices."""

    def __init__(self, data: bytes):
        self.data, self.at = data, 0

    def __bool__(self) -> bool:
        return self.at < len(self.data)

    def take(self, n: int) -> bytes:
        self.at += n
        return self.data[self.at - n : self.at]

    def number(self, below: int) -> int:
        return int.from_bytes(self.take(1 if below <= 256 else 2), "little") % max(below, 1)


def TestOneInput(data: bytes) -> None:
    recipe = Recipe(data)
    base = recipe.number(len(MODELS))
    content = changed(recipe, *MODELS[base])
    with open(PATH, "wb") as file:
        file.write(content)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # changed numbers overflow
        try:
            model = load(PATH)
            scores = model.decision_function(ROWS[base])
            assert len(scores) == len(ROWS[base])
            assert model.predict(ROWS[base]).dtype == model.classes_.dtype
        except ValueError:
            pass


def sealed(text: str, arrays: dict) -> bytes:
    """A file of this header, with the digest that belongs to it."""
    file = io.BytesIO()
    write_sealed(file, text, arrays)
    return file.getvalue()


def changed(recipe: Recipe, header: dict, arrays: dict) -> bytes:
    """A file after some changes; those of its bytes come last."""
    header, arrays, edits = json.loads(json.dumps(header)), dict(arrays), []
    while recipe:
        what = recipe.number(4)
        if what == 0:
            change_header(recipe, header)
        elif what == 1 and arrays:
            change_arrays(recipe, arrays)
        else:
            edits.append((what, recipe.number(1 << 16), recipe.take(1 + recipe.number(8))))
    text = json.dumps(header)
    for what, at, new in edits:
        if what == 2:  # in the text of the header
            at = at % (len(text) + 1)
            text = text[:at] + new.decode("latin-1") + text[at + len(new) :]
    content = sealed(text, arrays)
    for what, at, new in edits:
        if what == 3:  # anywhere
            at = at % (len(content) + 1)
            content = content[:at] + new + content[at + len(new) * (at & 1) :]
    if len(edits) > 1 and edits[-1][0] == 3:  # with a length that fits again
        length = edits[-1][1] % (len(content) + 1)
        content = struct.pack("<Q", length) + content[8:]
    return content


def change_header(recipe: Recipe, header: dict) -> None:
    found = [where for where, _ in nodes(header)]
    if not found:
        return
    where = found[recipe.number(len(found))]
    at = header
    for key in where[:-1]:
        at = at[key]
    choice = recipe.number(len(VALUES) + 1)
    if choice == len(VALUES):
        del at[where[-1]]
    else:
        at[where[-1]] = json.loads(json.dumps(VALUES[choice]))


def change_arrays(recipe: Recipe, arrays: dict) -> None:
    names = list(arrays)
    name = names[recipe.number(len(names))]
    array, how = arrays.pop(name), recipe.number(8)
    if how == 1:  # under another name, or one that belongs to another model
        others = sorted({n for _, held in MODELS for n in held})
        arrays[others[recipe.number(len(others))]] = array
        return
    if how == 2:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            array = array.astype(DTYPES[recipe.number(len(DTYPES))])
    elif how == 3:
        array = array.reshape(-1)[: recipe.number(array.size + 1)]
    elif how == 4:
        array = np.concatenate([array, array[: recipe.number(3)]]) if array.ndim else array
    elif how == 5:
        array = array.T if recipe.number(2) else array[..., None]
    elif how >= 6 and array.size:  # the bits of one number, or a whole array of it
        bits = recipe.take(array.itemsize).ljust(array.itemsize, b"\xff")
        value = np.frombuffer(bits, dtype=array.dtype)[0]
        array = array.copy()
        at = recipe.number(array.size)
        array.reshape(-1)[at : None if how == 7 else at + 1] = value
    if how:  # 0: it is gone
        arrays[name] = np.ascontiguousarray(array).reshape(array.shape)


if __name__ == "__main__":
    import atheris  # pip install atheris
    from guidance import instrument

    import widemargin.persistence as package
    from widemargin.persistence import (
        additive,
        column_transformer,
        container,
        kernel,
        parameters,
        parts,
        pipeline,
        preparation,
        record,
    )

    parsers = (additive, column_transformer, container, kernel, parameters, parts, pipeline)
    instrument(package, *parsers, preparation, record)
    atheris.Setup(sys.argv, TestOneInput)
    atheris.Fuzz()
