"""What a store says of itself: a JSON file that is checked before anything in it is used."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from widemargin.additive.block_files import Entry
from widemargin.additive.columns import Columns
from widemargin.digest import digest
from widemargin.files import replacing

MANIFEST = "manifest.json"
SCHEMA = "widemargin block store 1"
_KINDS: dict[str, type] = {"int": int, "float": float, "text": str, "bool": bool}


@dataclass(frozen=True)
class Manifest:
    """A store, as far as it has come.

    Attributes
    ----------
    settings : dict
        ``scaling``, ``n_bins`` and ``binning``, as `AdditiveSVC` has them; or ``keep="values"``.
    n_features : int
    sparse : bool
        Whether the raw data was.
    classes : list
        Labels in the order of their first row.
    kind : {"int", "float", "text", "bool"}
        What they are.
    names : list of str or None
        Of the features.
    categories : list of [int, list of str]
        Columns of categories, and those of each in the order of their first row.
    missing : list of int
        Columns that have missing values in the data that the store was built from.
    notes : dict
        What else was known of the data: how svmlight text counts, and the label's column.
    kernel : str
        What ``kernel="auto"`` is for this data.
    compressed : bool
        Whether blocks of codes are: all of them, so that a sweep can mix their rows.
    encoder : Entry or None
        Once all raw blocks are there.
    raw, blocks : list of Entry
        Values that wait for their codes, and blocks of codes (or of the values that were kept).
    gathered : bool
        Whether all raw blocks are there.
    n_finished : int
        Blocks that make up the store; those after them belong to an append under way.
    """

    settings: dict[str, Any]
    n_features: int = 0
    sparse: bool = False
    classes: list = field(default_factory=list)
    kind: str = "int"
    names: list[str] | None = None
    categories: list[tuple[int, list[str]]] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)
    kernel: str = ""
    compressed: bool = False
    encoder: Entry | None = None
    raw: list[Entry] = field(default_factory=list)
    blocks: list[Entry] = field(default_factory=list)
    gathered: bool = False
    n_finished: int = 0

    @property
    def empty(self) -> bool:
        """Whether nothing was kept yet, so that it can be begun in another way."""
        return not self.raw and not self.blocks

    @property
    def complete(self) -> bool:
        """Whether there is a store to read."""
        return self.n_finished > 0

    @property
    def holds_values(self) -> bool:
        """Whether its blocks are of raw values."""
        return self.settings.get("keep") == "values"

    @property
    def columns(self) -> Columns:
        """What the columns of the data are in its codes, as in memory: the order of rows is none
        of categories."""
        categories = {column: tuple(sorted(names)) for column, names in self.categories}
        return Columns(self.n_features, categories, frozenset(self.missing))

    @property
    def label_array(self) -> np.ndarray:
        return np.array(self.classes, dtype=_KINDS[self.kind])

    @property
    def rows(self) -> list[int]:
        """Of each finished block."""
        return [entry.arrays["label"][1][0] for entry in self.blocks[: self.n_finished]]

    def with_(self, **changes) -> Self:
        return replace(self, **changes)

    def write(self, folder: Path) -> None:
        content = {name: _plain(value) for name, value in vars(self).items()}
        content = {"schema": SCHEMA, "digest": _digest(content), **content}
        with replacing(folder / MANIFEST) as temporary:
            temporary.write_text(json.dumps(content))

    @classmethod
    def read(cls, folder: Path) -> Self:
        path = folder / MANIFEST
        if not path.is_file():
            raise ValueError(f"{str(folder)!r} is no store: there is no {MANIFEST} in it.")
        try:
            content = json.loads(path.read_bytes())
            if not isinstance(content, dict) or content.pop("schema", None) != SCHEMA:
                raise ValueError(f"it is not a {SCHEMA!r}")
            if content.pop("digest", None) != _digest(content):
                raise ValueError("its digest is not that of its content")
            return cls(**_checked(content))
        except (ValueError, TypeError, RecursionError) as error:
            raise ValueError(f"{str(path)!r} is damaged or of another version: {error}.") from None


def _plain(value):
    if isinstance(value, Entry):
        return value.content
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def _digest(content: dict) -> str:
    return digest(json.dumps(content, sort_keys=True))


def _checked(content: dict) -> dict:
    """The fields by their types; the digest says that nobody has changed them since."""
    if set(content) != {f.name for f in fields(Manifest)}:
        raise ValueError("it does not have the fields of a store")
    entries = {name: [Entry.of(e) for e in content[name]] for name in ("raw", "blocks")}
    encoder = content["encoder"]
    found = {**content, **entries, "encoder": None if encoder is None else Entry.of(encoder)}
    whole = all(type(content[n]) is int and content[n] >= 0 for n in ("n_features", "n_finished"))
    if (
        not whole
        or content["kind"] not in _KINDS
        or not all(isinstance(content[name], dict) for name in ("settings", "notes"))
    ):
        raise ValueError("a field has a value that it cannot have")
    _check_columns("missing", content["missing"], content["n_features"])
    found["categories"] = _checked_categories(content)
    kind = _KINDS[content["kind"]]
    if not all(isinstance(label, kind) for label in content["classes"]):
        raise ValueError(f"a label is no {content['kind']}")
    if content["n_finished"] > len(entries["blocks"]):
        raise ValueError("it has fewer blocks than it says")
    if not all("label" in entry.arrays for entry in entries["blocks"] + entries["raw"]):
        raise ValueError("a block has no labels")
    return found


def _checked_categories(content: dict) -> list[tuple[int, list[str]]]:
    found = [(column, names) for column, names in content["categories"]]
    _check_columns("categories", [column for column, _ in found], content["n_features"])
    for _, names in found:
        texts = isinstance(names, list) and all(isinstance(name, str) for name in names)
        if not texts or len(set(names)) < len(names):
            raise ValueError("categories are no texts that can be told apart")
    return found


def _check_columns(field: str, columns: Any, n_features: int) -> None:
    if not isinstance(columns, list) or not all(type(column) is int for column in columns):
        raise ValueError(f"{field} is no list of columns")
    if columns != sorted(set(columns)) or not all(0 <= j < n_features for j in columns):
        raise ValueError(f"{field} names a column that there is not")
