"""The manifest of a store: a JSON file, checked before use."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from widemargin.additive.block_files import Entry
from widemargin.additive.columns import Columns
from widemargin.additive.encoder import BINNINGS, MAX_BINS, SCALINGS
from widemargin.additive.kernels import KERNELS
from widemargin.budget import Budget
from widemargin.digest import digest
from widemargin.fields import Fields, strict_json
from widemargin.files import Folder

MANIFEST = "manifest.json"
SCHEMA = "widemargin block store 1"
_PER_FEATURE = 256  # approximate bytes of a fit: weights, sums, scale
_AT_LEAST = 1 << 30  # default limit: bytes, or times the size of the files
_TIMES_FILES = 64
_ROWS, _NUMBERS, _CODES = ("data", "index", "start"), "biuf", "u"
_LARGEST = {int: 2**63, float: float("inf")}
_KINDS: dict[str, type] = {"int": int, "float": float, "text": str, "bool": bool}


@dataclass(frozen=True)
class Manifest:
    """The state of a store, finished or not."""

    settings: dict[str, Any]  # of the bins, as in `AdditiveSVC`; or ``keep="values"``
    n_features: int = 0
    sparse: bool = False  # whether the raw data was
    classes: list = field(default_factory=list)  # in the order of their first row
    kind: str = "int"  # type of the labels, one of `_KINDS`
    names: list[str] | None = None  # of the features
    # Columns and their categories, in the order of their first row; columns with missing values.
    categories: list[tuple[int, list[str]]] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)  # how the data's file is read
    kernel: str = ""  # of ``kernel="auto"`` for this data
    compressed: bool = False  # all blocks of codes or none, so that a sweep can mix their rows
    encoder: Entry | None = None  # set after all raw blocks are written
    raw: list[Entry] = field(default_factory=list)  # to be coded
    blocks: list[Entry] = field(default_factory=list)  # of codes, or of values that are kept
    gathered: bool = False  # whether all raw blocks are written
    n_finished: int = 0  # blocks of the store; later blocks belong to an unfinished append

    @property
    def empty(self) -> bool:
        """Whether nothing is stored yet, so that the settings may change."""
        return not self.raw and not self.blocks

    @property
    def complete(self) -> bool:
        """Whether the store is finished and readable."""
        return self.n_finished > 0

    @property
    def holds_values(self) -> bool:
        """Whether the blocks hold raw values."""
        return self.settings.get("keep") == "values"

    @property
    def columns(self) -> Columns:
        """Columns of the data with sorted categories, independent of the order of rows."""
        categories = {column: tuple(sorted(names)) for column, names in self.categories}
        return Columns(self.n_features, categories, frozenset(self.missing))

    @property
    def label_array(self) -> np.ndarray:
        return np.array(self.classes, dtype=_KINDS[self.kind])

    @property
    def rows(self) -> list[int]:
        """Rows of each finished block."""
        return [entry.arrays["label"][1][0] for entry in self.blocks[: self.n_finished]]

    def with_(self, **changes) -> Self:
        return replace(self, **changes)

    def write(self, folder: Folder) -> None:
        content = {name: _plain(value) for name, value in vars(self).items()}
        content = {"schema": SCHEMA, "digest": _digest(content), **content}
        with folder.replacing(MANIFEST) as file:
            file.write(json.dumps(content).encode())

    @classmethod
    def read(cls, folder: Folder, max_bytes: int | None = None) -> Manifest:
        """Read and check a folder's manifest; ``max_bytes`` is that of `BlockStore`."""
        path = str(folder / MANIFEST)
        if not folder.has(MANIFEST):
            raise ValueError(f"{str(folder)!r} is not a store: it has no {MANIFEST}.")
        with Budget(max_bytes, repr(path)) as budget:
            content = strict_json(folder.read(MANIFEST, max_bytes), repr(path), budget)
            if content.pop("schema", None) != SCHEMA:
                raise ValueError(f"{path!r} is damaged or of another version: it lacks {SCHEMA!r}.")
            if content.pop("digest", None) != _digest(content):
                raise ValueError(f"{path!r} is damaged: its digest does not match its content.")
            manifest = _checked(Fields(content, path, "manifest"))
            manifest._check_size(folder, Budget(max_bytes, repr(path), manifest._most_bytes))
        return manifest

    def _check_size(self, folder: Folder, budget: Budget) -> None:
        """Compare the manifest with the files, before any memory is allocated."""
        for entry in self.raw[len(self.blocks) - self.n_finished :] + self.blocks:
            entry.check_size(folder)
            budget.check(entry.n_bytes, f"the block {entry.file} takes")
        budget.check(_PER_FEATURE * self.n_features, f"its {self.n_features} features take")

    @property
    def _most_bytes(self) -> int:
        """Return the default limit for a store of this size."""
        return max(_AT_LEAST, _TIMES_FILES * sum(entry.n_bytes for entry in self.blocks + self.raw))


def _plain(value):
    if isinstance(value, Entry):
        return value.content
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def _digest(content: dict) -> str:
    return digest(json.dumps(content, sort_keys=True))


# ---------------------------------------------------------------- what the fields may be


def _checked(content: Fields) -> Manifest:
    """Parse a manifest; check the type of each field and their consistency."""
    d, kind = content.integer("n_features"), content.text("kind", tuple(_KINDS))
    manifest = Manifest(
        _settings(content.inner("settings")),
        n_features=d,
        kind=kind,
        classes=_classes(content, _KINDS[kind]),
        names=content.texts("names") if content.has("names") else None,
        categories=_categories(content, d),
        missing=_columns(content, "missing", content.items("missing"), d),
        notes=_notes(content.inner("notes")),
        kernel=content.text("kernel", ("", *KERNELS)),
        n_finished=content.integer("n_finished"),
        sparse=content.flag("sparse"),
        compressed=content.flag("compressed"),
        gathered=content.flag("gathered"),
    )
    if manifest.names is not None and len(manifest.names) != d:
        raise content.fault("names", f"{d} texts")
    if manifest.holds_values and (manifest.categories or manifest.missing):
        raise content.fault("settings", "of codes, because of categories or missing values")
    if content.has("encoder"):
        manifest = manifest.with_(
            encoder=_encoder(content.inner("encoder"), manifest.columns.n_numbers)
        )
    return _with_blocks(manifest, content)


def _with_blocks(manifest: Manifest, content: Fields) -> Manifest:
    width = None if manifest.sparse else manifest.n_features
    raw = [_block(item, width, _NUMBERS) for item in content.inners("raw")]
    kinds, whole = _NUMBERS, True
    if not manifest.holds_values:
        width = None if manifest.compressed else manifest.columns.n_features
        kinds, whole = _CODES, manifest.encoder is not None and manifest.kernel != ""
    blocks = [_block(item, width, kinds) for item in content.inners("blocks")]
    if not manifest.n_finished <= len(blocks) or (blocks and not whole):
        raise content.fault("blocks", f"{manifest.n_finished} blocks or more, with bins and kernel")
    types = {tuple(e.arrays[n][0] for n in _ROWS if n in e.arrays) for e in blocks}
    if not manifest.holds_values and len(types) > 1:
        raise content.fault("blocks", "of codes of one type")
    if (blocks or raw) and not (manifest.classes and manifest.n_features):
        raise content.fault("classes", "those of the blocks")
    return manifest.with_(raw=raw, blocks=blocks)


def _block(content: Fields, width: int | None, kinds: str) -> Entry:
    """Check a block: labelled rows of one width, or compressed (None)."""
    entry = Entry.of(content)
    shapes = {name: shape for name, (_, shape) in entry.arrays.items()}
    n, stored = shapes.get("label", (0,))[0], shapes.get("data", ())[:1]
    expected = {"data": (n, width), "label": (n,)}
    if width is None:
        expected = {"data": stored, "index": stored, "start": (n + 1,), "label": (n,)}
    if "weight" in shapes:
        expected["weight"] = (n,)
    may_be = {"data": kinds, "index": "iu", "start": "iu", "label": ("<i4",), "weight": ("<f8",)}
    if n < 1 or shapes != expected:
        raise content.fault("arrays", "labelled rows in the layout of the store")
    for name, (kind, _) in entry.arrays.items():
        if kind not in may_be[name] and kind[1] not in may_be[name]:
            raise content.fault("arrays", f"rows with a valid type of {name}")
    return entry


def _encoder(content: Fields, n_features: int) -> Entry:
    entry = Entry.of(content)
    shapes = {name: shape for name, (_, shape) in entry.arrays.items()}
    n, width = shapes.get("thresholds", (0,))[0], shapes.get("shift")
    expected = {"shift": width, "factor": width, "thresholds": (n,), "representatives": (n + 1,)}
    doubles = all(kind == "<f8" for kind, _ in entry.arrays.values())
    if n < 1 or shapes != expected or width not in ((1,), (n_features,)) or not doubles:
        raise content.fault("arrays", "bins of the features")
    return entry


def _settings(content: Fields) -> dict[str, Any]:
    if content.has("keep"):
        return {"keep": content.text("keep", ("values",))}
    settings: dict[str, Any] = {"scaling": None, "n_bins": "auto"}
    if content.has("scaling"):
        settings["scaling"] = content.text("scaling", tuple(filter(None, SCALINGS)))
    if content.content.get("n_bins") != "auto":
        settings["n_bins"] = content.integer("n_bins", low=1, high=MAX_BINS)
    return {**settings, "binning": content.text("binning", BINNINGS)}


def _notes(content: Fields) -> dict[str, Any]:
    how: dict[str, Callable] = {
        "zero_based": content.flag,
        "label_name": content.text,
        "na": content.texts,
        "drop": content.texts,
    }
    return {name: take(name) for name, take in how.items() if content.has(name)}


def _classes(content: Fields, kind: type) -> list:
    labels = content.items("classes")
    if not all(type(label) is kind for label in labels) or len(set(labels)) < len(labels):
        raise content.fault("classes", f"distinct labels of type {kind.__name__}")
    if kind in (int, float) and not all(abs(label) < _LARGEST[kind] for label in labels):
        raise content.fault("classes", "finite numbers of 64 bits")
    return labels


def _categories(content: Fields, n_features: int) -> list[tuple[int, list[str]]]:
    items = content.items("categories")
    pairs = all(isinstance(item, list) and len(item) == 2 for item in items)
    if not pairs or not all(_are_names(names) for _, names in items):
        raise content.fault("categories", "pairs of a column and its distinct categories")
    _columns(content, "categories", [column for column, _ in items], n_features)
    return [(column, names) for column, names in items]


def _are_names(names: Any) -> bool:
    texts = isinstance(names, list) and all(isinstance(name, str) for name in names)
    return texts and len(set(names)) == len(names)


def _columns(content: Fields, name: str, columns: list, n_features: int) -> list[int]:
    """Parse column numbers in ascending order."""
    whole = all(type(column) is int and 0 <= column < n_features for column in columns)
    if not whole or columns != sorted(set(columns)):
        raise content.fault(name, f"columns from 0 to {n_features - 1} in ascending order")
    return columns
