"""`BlockStore`: training data on disk, as blocks that a fit reads one after the other."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
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
"""Who hears of progress: what is done, rows done so far, rows in all (0 where not known)."""


class Bins(TypedDict, total=False):
    """How values become codes; each is "auto" where it is not given."""

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
        The most memory that its contents may ask for: blocks, and sums for each of its features.
        By default 1 GiB or 64 times the size of its files, whichever is more, and at most 80 % of
        the memory that is free.

    Attributes
    ----------
    folder : Path
    shape : tuple of (n_rows, n_features)
    classes : ndarray
        The labels there are, in the order of their first row.
    columns : Columns
        Which columns have categories or missing values.
    nbytes : int
        Of all blocks on disk.
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
        self.folder = Path(folder).absolute()  # of a worker's own, too
        self._files = Folder(self.folder)
        self._manifest = Manifest.read(self._files, max_bytes)
        if not self._manifest.complete:
            raise ValueError(
                f"The store {str(folder)!r} is not finished. Build it again from the same data: "
                "what is there is kept."
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
        """Make a store of chunks of rows, or go on with one that was interrupted.

        Every chunk is read once and kept as raw values in the folder.  For codes, ranges and bins
        are learned from those, and each raw block is deleted when its codes are there; so the
        folder needs room for the raw values too, until the end.  Memory is needed for one chunk
        and a few blocks.

        Parameters
        ----------
        folder : path
            Created where it does not exist.  One that holds an unfinished store of the same data
            and settings is finished: blocks that are there are compared, not written again.
        chunks : iterable
            Of pairs (X, y), triples (X, y, sample_weight), or what `widemargin.stream` reads.  X
            is dense or sparse in all of them; sparse ones may grow wider.  Codes have a place for
            columns of categories, which data frames have, and for missing values, from which
            ``AdditiveSVC(missing="learn")`` learns.
        keep : {"codes", "values"}, default="codes"
            What the store is to hold: codes, for `AdditiveSVC`, or the values themselves, for
            `KernelSVC`, in the type that they have.
        values_per_block : int
            Values that a block holds.  A fit has up to a dozen blocks in memory: it works on four
            at a time, while the next four are read.
        n_jobs : int, default=None
            Threads, each with a block of its own; -1 is all cores.  The store is the same.
        told : callable, default=None
            Called after every block with what is done ("reading" or "coding"), the rows done so
            far and the rows in all, or 0 where that is not known.
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
        return cls(folder, max_bytes=sys.maxsize)  # whoever has the data knows its size

    def append(
        self,
        chunks: Iterable,
        *,
        values_per_block: int = VALUES_PER_BLOCK,
        n_jobs: int | None = None,
        told: Told | None = None,
    ) -> BlockStore:
        """The store with more rows, which are new blocks; parameters are those of `build`.

        Scale and bins stay as they are: values outside the range that the store was built from
        fall in the first or last bin, as they do at prediction; new categories, and missing values
        in columns that had none, contribute nothing, with a warning.  Labels may be new.  An append
        that is interrupted leaves the store as it was, and goes on when it is called again.
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
        """Rows of codes, for an additive machine."""
        if self._codes is None:
            message = Message(
                "The store {folder!r} holds values, for general kernels. Build one with {codes}.",
                folder=str(self.folder),
                codes=Parameter("keep", "codes"),
            )
            raise ValueError(message)
        return self._codes

    def matrix(self) -> StoredMatrix:
        """Raw values by row, for a kernel machine; every block is held against its checksum."""
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
        """Where the values of a block lie; row pointers stay within them."""
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
        """Which columns of the data have categories or missing values."""
        return self._manifest.columns

    @property
    def settings(self) -> dict[str, Any]:
        return dict(self._manifest.settings)

    @property
    def notes(self) -> dict[str, Any]:
        """Of the file that it was built from: ``zero_based``, ``label_name``, ``na``, ``drop``."""
        return dict(self._manifest.notes)

    @property
    def kernel(self) -> str:
        """The kernel that ``kernel="auto"`` is for this data."""
        return self._manifest.kernel

    @property
    def sparse(self) -> bool:
        """Whether the raw data was."""
        return self._manifest.sparse

    @property
    def encoder(self) -> Encoder:
        return self.codes.encoder

    @property
    def nbytes(self) -> int:
        return sum(entry.n_bytes for entry in self._entries)

    @property
    def n_values(self) -> int:
        """Codes that are stored: all, or where rows are compressed those other than 0."""
        return sum(int(np.prod(entry.arrays["data"][1])) for entry in self._entries)

    def labels(self) -> np.ndarray:
        """The number of each row's class in ``classes``."""
        label = np.concatenate([read_array(self._files, entry, "label") for entry in self._entries])
        if label.min() < 0 or label.max() >= len(self.classes):
            raise ValueError(f"The store {str(self.folder)!r} is damaged: a label is no class.")
        return label

    def weights(self) -> np.ndarray:
        """The sample weight of each row."""
        found = [
            read_array(self._files, entry, "weight")
            if "weight" in entry.arrays
            else np.ones(entry.arrays["label"][1])
            for entry in self._entries
        ]
        weight = np.concatenate(found)
        if not np.all((weight > 0) & np.isfinite(weight)):
            raise ValueError(
                f"The store {str(self.folder)!r} is damaged: a row has no positive weight."
            )
        return weight

    def verify(self) -> None:
        """Read all of it and compare checksums, as a fit does when it first reads a block."""
        for entry in self._entries:
            read_arrays(self._files, entry, check=True)

    def __repr__(self) -> str:
        n, d = self.shape
        return f"BlockStore({n} x {d}, {len(self.classes)} classes, {self.nbytes / 1e6:.1f} MB)"

    def __array__(self, *args, **kwargs) -> NoReturn:
        raise TypeError(
            "A BlockStore is no array: AdditiveSVC and KernelSVC fit it, other estimators do not."
        )

    def check_settings(self, asked: dict[str, Any]) -> None:
        """An estimator may ask for what the store has, or leave it to the store ("auto")."""
        for name, value in asked.items():
            own = self._manifest.settings[name]
            if value not in ("auto", own):
                raise ParameterError(
                    name,
                    value,
                    ": the store {folder!r} was built with {own}. Build another one, or leave it "
                    "at 'auto'.",
                    folder=str(self.folder),
                    own=Parameter(name, own),
                )


@dataclass(frozen=True)
class StoredCodes(CodedRows):
    """The blocks of a store as a fit reads them: the next ones while these are worked on."""

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

    @property
    def rows(self) -> list[slice]:
        cuts = self.cuts.tolist()
        return [slice(*pair) for pair in pairwise(cuts)]

    def of_blocks(self, begin: int, end: int) -> tuple[slice, StoredCodes]:
        """The rows of some blocks that follow each other, and their codes."""
        rows = slice(*self.cuts[[begin, end]].tolist())
        size = {"entries": self.entries[begin:end], "n_rows": rows.stop - rows.start}
        return rows, replace(self, **size, _checked=set())

    def groups(self, groups: Sequence[Sequence[int]]) -> Iterator[Codes]:
        return read_ahead(self._load, groups)

    def _load(self, group: Sequence[int]) -> Codes:
        """Blocks whose bytes have been checked: their sums once, their codes whenever read."""
        codes = self._merged(group)
        try:
            assert codes.core is not None
        except (ValueError, TypeError) as error:
            files = ", ".join(str(self.folder / self.entries[k].file) for k in group)
            raise ValueError(f"One of these is damaged: {error} ({files}).") from None
        self._checked.update(group)
        return codes

    def _merged(self, group: Sequence[int]) -> Codes:
        """Blocks as one: each is read to its place."""
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
            own = {name: array[at:end] for name, array in room.items()}
            check = number not in self._checked
            arrays = read_arrays(self.folder, entry, check=check, room=own)
            if "start" in arrays:
                starts.append(arrays["start"][1:] + at)
            at = end
        start = np.concatenate(starts) if "index" in room else None
        size = (_length(entries, "label"), self.n_features, self.n_codes)
        return Codes(room["data"], room.get("index"), start, *size)


def _length(entries: list[Entry], name: str) -> int:
    return sum(entry.arrays[name][1][0] for entry in entries)


def read_encoder(folder: Folder, entry: Entry) -> Encoder:
    """Scale and bins, in the order that encoding relies on."""
    encoder = Encoder(**read_arrays(folder, entry, check=True))
    finite = all(np.isfinite(a).all() for name, a in vars(encoder).items() if name != "thresholds")
    if not finite or not np.all(encoder.thresholds[1:] >= encoder.thresholds[:-1]):
        raise ValueError(f"{str(folder / entry.file)!r} is damaged: it holds no bins.")
    return encoder
