"""`BlockStore`: training data on disk, in blocks that a fit reads one after another."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn, TypedDict, Unpack

import numpy as np

from widemargin.additive.block_files import Entry, announce, read_ahead, read_array, read_arrays
from widemargin.additive.codes import CodedRows, Codes
from widemargin.additive.columns import Columns
from widemargin.additive.encoder import Encoder
from widemargin.additive.manifest import Manifest
from widemargin.digest import digest
from widemargin.errors import Message, Parameter, ParameterError
from widemargin.files import Folder
from widemargin.stored import ArrayInFile, Store, StoredMatrix
from widemargin.validation import check_choice

VALUES_PER_BLOCK = 1 << 22
"""4 MB of dense codes, or 12 MB of compressed ones."""

KEPT = ("codes", "values")

Told = Callable[[str, int, int], None]
"""Progress callback: step, rows done, rows in total (0 if unknown)."""


class Bins(TypedDict, total=False):
    """Parameters of the encoding; "auto" by default."""

    scaling: str | None
    n_bins: int | str
    binning: str


class BlockStore(Store):
    """Rows, labels and weights in a folder, for data that does not fit in memory.

    `AdditiveSVC` fits and predicts a store of codes as it does arrays, `KernelSVC` one of values.
    Two processes may read it at the same time, one may write.

    Parameters
    ----------
    folder : path
        A finished store; `build` makes one.
    max_bytes : int, default=None
        Limit on the memory for its contents: blocks, and sums for each of its features.
        By default 1 GiB or 64 times the size of its files, whichever is more, and at most 80 % of
        the memory that is free.

    Attributes
    ----------
    folder : Path
    shape : tuple of (n_rows, n_features)
    classes : ndarray
        The labels, in the order of their first row.
    columns : Columns
        Which columns have categories or missing values.
    nbytes : int
        Size of all blocks on disk.
    settings : dict
        ``scaling``, ``n_bins`` and ``binning`` that it was built with, or ``keep="values"``.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_digits
    >>> from widemargin import AdditiveSVC, BlockStore
    >>> X, y = load_digits(return_X_y=True)
    >>> chunks = ((X[a : a + 500], y[a : a + 500]) for a in range(0, 1797, 500))
    >>> with TemporaryDirectory() as folder:
    ...     store = BlockStore.build(folder, chunks)
    ...     model = AdditiveSVC("chi2", random_state=0).fit(store)
    >>> store
    BlockStore(1797 x 64, 10 classes, 0.1 MB)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    def __init__(self, folder: str | os.PathLike, *, max_bytes: int | None = None):
        self.folder = Path(folder).absolute()  # for workers in other folders
        self._files = Folder(self.folder)
        self._manifest = Manifest.read(self._files, max_bytes)
        if not self._manifest.complete:
            raise ValueError(
                f"The store {str(folder)!r} is not finished. Build it again from the same data: "
                "finished blocks are kept."
            )
        self._entries = self._manifest.blocks[: self._manifest.n_finished]
        self._codes = None
        if not self._manifest.holds_values:
            self._codes = StoredCodes.of(self._files, self._manifest)

    @classmethod
    def build(
        cls,
        folder: str | os.PathLike,
        chunks: Iterable,
        *,
        keep: str = "codes",
        values_per_block: int = VALUES_PER_BLOCK,
        n_jobs: int | None = None,
        told: Told | None = None,
        **bins: Unpack[Bins],
    ) -> BlockStore:
        """Build a store from chunks of rows, or continue an interrupted build.

        Every chunk is read once and written as raw values to the folder.  For codes, ranges and
        bins are learned from the raw blocks, and each raw block is deleted once it is coded; so
        the folder also needs room for the raw values.  Memory holds one chunk and a few blocks.

        Parameters
        ----------
        folder : path
            Created if it does not exist.  An unfinished store of the same data and settings is
            continued: existing blocks are compared, not written again.
        chunks : iterable
            Pairs (X, y), triples (X, y, sample_weight), or chunks of `widemargin.stream`.  X is
            dense in all of them or sparse in all; sparse ones may grow wider.  Codes can represent
            categories of data frames, and missing values for ``AdditiveSVC(missing="learn")``.
        keep : {"codes", "values"}, default="codes"
            Contents of the store: codes for `AdditiveSVC`, or values for `KernelSVC`, in their
            original type.
        values_per_block : int
            Values per block.  A fit has up to a dozen blocks in memory: it works on four
            at a time, while the next four are read.
        n_jobs : int, default=None
            Threads, each with its own block; -1 is all cores.  The store does not depend on it.
        told : callable, default=None
            Called after every block with the step ("reading" or "coding"), the rows done so far
            and the total number of rows, or 0 if unknown.
        **bins
            ``scaling``, ``n_bins`` and ``binning`` of codes, as in `AdditiveSVC`, but for
            ``scaling="percentile"``, which needs all values at once.

        Returns
        -------
        BlockStore
        """
        from widemargin.additive.store_building import Steps, build

        check_choice("keep", keep, KEPT)
        settings: dict[str, Any] = dict.fromkeys(Bins.__annotations__, "auto")
        for name, value in bins.items():
            if name not in settings:
                raise TypeError(f"BlockStore.build() got an unexpected keyword argument {name!r}")
            if keep == "values":
                codes = Parameter("keep", "codes")
                raise ParameterError(name, value, "is for {codes} only.", codes=codes)
        settings = {"keep": keep} if keep == "values" else settings | dict(bins)
        build(Path(folder), chunks, settings, Steps(values_per_block, n_jobs, told))
        return cls(folder, max_bytes=sys.maxsize)  # the caller has the data, so no limit

    def append(
        self,
        chunks: Iterable,
        *,
        values_per_block: int = VALUES_PER_BLOCK,
        n_jobs: int | None = None,
        told: Told | None = None,
    ) -> BlockStore:
        """Append rows as new blocks; parameters are those of `build`.

        Scale and bins do not change: values outside the original range fall in the first or last
        bin, as at prediction; new categories, and missing values in columns that had none,
        contribute nothing, with a warning.  Labels may be new.  An interrupted append leaves the
        store unchanged; the same call continues it.
        """
        from widemargin.additive.store_building import Steps, append

        append(self.folder, chunks, Steps(values_per_block, n_jobs, told))
        return type(self)(self.folder, max_bytes=sys.maxsize)

    # ---------------------------------------------------------------- what is in it

    @property
    def shape(self) -> tuple[int, int]:
        return sum(self._manifest.rows), self._manifest.n_features

    @property
    def codes(self) -> StoredCodes:
        """Return rows of codes, for an additive machine."""
        if self._codes is None:
            message = Message(
                "The store {folder!r} holds values, for general kernels. Build one with {codes}.",
                folder=str(self.folder),
                codes=Parameter("keep", "codes"),
            )
            raise ValueError(message)
        return self._codes

    def matrix(self) -> StoredMatrix:
        """Return raw values by row, for a kernel machine; checks every block's checksum."""
        if self._codes is not None:
            message = Message(
                "The store {folder!r} holds codes, for additive kernels. Train with such a kernel "
                "({kernel}), or build one with {values}.",
                folder=str(self.folder),
                kernel=Parameter("kernel", "intersection", python="AdditiveSVC"),
                values=Parameter("keep", "values"),
            )
            raise ValueError(message)
        self.verify()
        cuts = np.cumsum([0, *self._manifest.rows])
        kinds = [entry.arrays["data"][0] for entry in self._entries]
        name = digest(*(entry.digest for entry in self._entries))
        blocks = [self._spans(entry) for entry in self._entries]
        dtype = np.result_type(*kinds)
        return StoredMatrix(self.folder, blocks, cuts, self.shape[1], dtype, name)

    def _spans(self, entry: Entry) -> dict[str, ArrayInFile]:
        """Return where the values of a block lie; check that row pointers stay within."""
        path = self.folder / entry.file
        if "start" in entry.arrays:
            start = read_array(self._files, entry, "start")
            end = entry.arrays["data"][1][0]
            if start[0] != 0 or start[-1] != end or np.any(start[1:] < start[:-1]):
                raise ValueError(
                    f"{str(path)!r} is damaged: its row pointers do not ascend to {end}."
                )
        return {
            name: ArrayInFile(path, entry.span(name)[0], *entry.arrays[name])
            for name in ("data", "index", "start")
            if name in entry.arrays
        }

    @property
    def classes(self) -> np.ndarray:
        return self._manifest.label_array

    @property
    def feature_names(self) -> list[str] | None:
        return self._manifest.names

    @property
    def columns(self) -> Columns:
        """Columns of the data with categories or missing values."""
        return self._manifest.columns

    @property
    def settings(self) -> dict[str, Any]:
        return dict(self._manifest.settings)

    @property
    def notes(self) -> dict[str, Any]:
        """Facts about the original file: ``zero_based``, ``label_name``, ``na``, ``drop``."""
        return dict(self._manifest.notes)

    @property
    def kernel(self) -> str:
        """Kernel of ``kernel="auto"`` for this data."""
        return self._manifest.kernel

    @property
    def sparse(self) -> bool:
        """Whether the raw data was sparse."""
        return self._manifest.sparse

    @property
    def encoder(self) -> Encoder:
        return self.codes.encoder

    @property
    def nbytes(self) -> int:
        return sum(entry.n_bytes for entry in self._entries)

    @property
    def n_values(self) -> int:
        """Number of stored codes: all, or the nonzero ones of compressed rows."""
        return sum(int(np.prod(entry.arrays["data"][1])) for entry in self._entries)

    def labels(self) -> np.ndarray:
        """Index of each row's class in ``classes``."""
        label = np.concatenate([read_array(self._files, entry, "label") for entry in self._entries])
        if label.min() < 0 or label.max() >= len(self.classes):
            raise ValueError(f"The store {str(self.folder)!r} is damaged: a label is not a class.")
        return label

    def weights(self) -> np.ndarray:
        """Sample weight of each row."""
        parts = [
            read_array(self._files, entry, "weight")
            if "weight" in entry.arrays
            else np.ones(entry.arrays["label"][1])
            for entry in self._entries
        ]
        weight = np.concatenate(parts)
        if not np.all((weight > 0) & np.isfinite(weight)):
            raise ValueError(
                f"The store {str(self.folder)!r} is damaged: a row has no positive weight."
            )
        return weight

    def verify(self) -> None:
        """Read all blocks and compare checksums, as a fit does when it first reads a block."""
        for entry in self._entries:
            read_arrays(self._files, entry, check=True)

    def __repr__(self) -> str:
        n, d = self.shape
        return f"BlockStore({n} x {d}, {len(self.classes)} classes, {self.nbytes / 1e6:.1f} MB)"

    def __array__(self, *args, **kwargs) -> NoReturn:
        raise TypeError("A BlockStore is not an array: only AdditiveSVC and KernelSVC can fit it.")

    def check_settings(self, asked: dict[str, Any]) -> None:
        """Refuse settings of an estimator that differ from the store's."""
        for name, value in asked.items():
            setting = self._manifest.settings[name]
            if value not in ("auto", setting):
                raise ParameterError(
                    name,
                    value,
                    ": the store {folder!r} was built with {built}. Build another one, or leave it "
                    "at 'auto'.",
                    folder=str(self.folder),
                    built=Parameter(name, setting),
                )


@dataclass(frozen=True)
class StoredCodes(CodedRows):
    """Reads the blocks of a store for a fit, loading the next ones ahead."""

    at_once = 4
    folder: Folder
    entries: list[Entry]
    encoder: Encoder
    n_rows: int
    n_features: int
    n_codes: int
    _checked: set[int] = field(default_factory=set, repr=False)

    @classmethod
    def of(cls, folder: Folder, manifest: Manifest) -> StoredCodes:
        assert manifest.encoder is not None
        encoder = read_encoder(folder, manifest.encoder)
        entries = manifest.blocks[: manifest.n_finished]
        size = (sum(manifest.rows), manifest.columns.n_features, encoder.n_codes)
        return cls(folder, entries, encoder, *size)

    @property
    def cuts(self) -> np.ndarray:
        return np.cumsum([0, *(entry.arrays["label"][1][0] for entry in self.entries)])

    def of_blocks(self, begin: int, end: int) -> tuple[slice, StoredCodes]:
        """Return the rows of consecutive blocks, and their codes."""
        rows = slice(*self.cuts[[begin, end]].tolist())
        size = {"entries": self.entries[begin:end], "n_rows": rows.stop - rows.start}
        return rows, replace(self, **size, _checked=set())

    def groups(self, groups: Sequence[Sequence[int]]) -> Iterator[Codes]:
        return read_ahead(self._load, groups)

    def _load(self, group: Sequence[int]) -> Codes:
        """Load blocks; check checksums on the first read, codes on every read."""
        codes = self._merged(group)
        try:
            assert codes.core is not None
        except (ValueError, TypeError) as error:
            files = ", ".join(str(self.folder / self.entries[k].file) for k in group)
            raise ValueError(f"One of these is damaged: {error} ({files}).") from None
        self._checked.update(group)
        return codes

    def _merged(self, group: Sequence[int]) -> Codes:
        """Load several blocks into one."""
        entries = [self.entries[number] for number in group]
        announce(self.folder, entries)
        room = {
            name: np.empty((_length(entries, name), *shape[1:]), kind)
            for name, (kind, shape) in entries[0].arrays.items()
            if name in ("data", "index")
        }
        starts, at = [np.zeros(1, np.int64)], 0
        for number, entry in zip(group, entries, strict=True):
            end = at + entry.arrays["data"][1][0]
            slots = {name: array[at:end] for name, array in room.items()}
            check = number not in self._checked
            arrays = read_arrays(self.folder, entry, check=check, room=slots)
            if "start" in arrays:
                starts.append(arrays["start"][1:] + at)
            at = end
        start = np.concatenate(starts) if "index" in room else None
        size = (_length(entries, "label"), self.n_features, self.n_codes)
        return Codes(room["data"], room.get("index"), start, *size)


def _length(entries: list[Entry], name: str) -> int:
    return sum(entry.arrays[name][1][0] for entry in entries)


def read_encoder(folder: Folder, entry: Entry) -> Encoder:
    """Read scale and bins; check their order, which encoding relies on."""
    encoder = Encoder(**read_arrays(folder, entry, check=True))
    finite = all(np.isfinite(a).all() for name, a in vars(encoder).items() if name != "thresholds")
    if not finite or not np.all(encoder.thresholds[1:] >= encoder.thresholds[:-1]):
        raise ValueError(f"{str(folder / entry.file)!r} is damaged: its bins are invalid.")
    return encoder
