"""`read_images`: a folder of class folders, an archive or a table, as a sequence of images."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple, overload

import numpy as np

from widemargin.engine import Threads, run_tasks
from widemargin.errors import Message, Parameter, message_of
from widemargin.files import open_plain
from widemargin.validation import check_choice, check_n_jobs, check_number
from widemargin.vision.archives import Entry, Listed, Source, Tree, archive_of
from widemargin.vision.pixels import MAX_PIXELS, ImageError, decode

ENDINGS = (".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")
TABLES = {".csv": ",", ".tsv": "\t"}
_HIDDEN = "__MACOSX"
_MOST_NAMED = 10
_SKIP = Parameter("on_error", "skip")
_LARGEST_TABLE = 1 << 28


class Fault(NamedTuple):
    """An image that was left out, and why."""

    name: str
    reason: str


class Images(Sequence):
    """Grey images of a folder, an archive or a table, decoded anew each time they are asked for.

    Attributes
    ----------
    names : list of str
        Paths within the folder or archive.
    labels : ndarray of str, or None
        Class folders, or the table's labels; None if an image has none.
    faults : tuple of Fault
        Images that were left out with ``on_error="skip"``.
    ignored : tuple of str
        Files that are not images by their names.
    """

    def __init__(self, source: Source, entries: list[Entry], labels: list, max_pixels: int):
        self._source, self._entries, self._max_pixels = source, entries, max_pixels
        self._labels = labels
        self.faults: tuple[Fault, ...] = ()
        self.ignored: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        return [entry.name for entry in self._entries]

    @property
    def labels(self) -> np.ndarray | None:
        return None if None in self._labels else np.array(self._labels, dtype=str)

    def __len__(self) -> int:
        return len(self._entries)

    @overload
    def __getitem__(self, k: int) -> np.ndarray: ...
    @overload
    def __getitem__(self, k: slice) -> Images: ...
    def __getitem__(self, k):
        if isinstance(k, slice):
            return self.subset(range(len(self))[k])
        entry = self._entries[k]
        try:
            if entry.fault is not None:
                raise ImageError(entry.fault)
            return decode(self._source.read(entry.key, self._largest_file), self._max_pixels)
        except (ImageError, OSError) as error:
            said = error.strerror if isinstance(error, OSError) else message_of(error)
            raise ImageError(
                Message("{name}: {said}.", name=repr(entry.name), said=said or str(error))
            ) from None

    @property
    def _largest_file(self) -> int:
        return 8 * self._max_pixels + (1 << 16)

    def subset(self, rows) -> Images:
        """Return the images of these numbers.

        Parameters
        ----------
        rows : sequence of int

        Returns
        -------
        images : Images
        """
        entries = [self._entries[k] for k in rows]
        return Images(self._source, entries, [self._labels[k] for k in rows], self._max_pixels)

    def fault(self, k: int) -> Fault | None:
        """Decode an image and return what is wrong with it, if anything."""
        try:
            self[k]
        except ImageError as error:
            return Fault(self._entries[k].name, message_of(error))
        return None


def read_images(
    path,
    *,
    inside: str | None = None,
    on_error: str = "raise",
    max_pixels: int = MAX_PIXELS,
    max_bytes: int | None = None,
    n_jobs: int | None = None,
) -> Images:
    """List the images of a folder, an archive or a table, and decode each once to check it.

    The folder directly below the path is an image's label.  Images are sorted by name.

    Parameters
    ----------
    path : path
        A folder of class folders; a tar (also compressed) or zip of one, which is read without
        unpacking; a .csv or .tsv with the columns ``path`` (within the table's folder) and,
        optionally, ``label``; or a single image.
    inside : str, default=None
        A folder of the folder or archive that is read instead of all of it.
    on_error : {"raise", "skip"}, default="raise"
        Whether an image that cannot be read is an error, which names all of them, or is left out
        and named in ``faults``.
    max_pixels : int, default=2**25
        Larger images are faults, without being decoded.
    max_bytes : int, default=None
        The most memory for a compressed tar, which is unpacked in memory.
    n_jobs : int, default=None
        Threads.

    Returns
    -------
    images : Images

    Raises
    ------
    ImageError
        If there are no images, or if one cannot be read with ``on_error="raise"``.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from PIL import Image
    >>> with TemporaryDirectory() as folder:
    ...     for name in ("cat/1.png", "dog/1.png", "dog/2.png"):
    ...         (Path(folder) / name).parent.mkdir(exist_ok=True)
    ...         Image.new("RGB", (30, 20), "red").save(Path(folder) / name)
    ...     images = read_images(folder)
    ...     images.names, images.labels.tolist(), images[0].shape
    (['cat/1.png', 'dog/1.png', 'dog/2.png'], ['cat', 'dog', 'dog'], (20, 30))
    """
    check_choice("on_error", on_error, ("raise", "skip"))
    check_number("max_pixels", max_pixels, low=1, integer=True)
    check_n_jobs(n_jobs)
    path = Path(path)
    source, labels = _source(path, inside, max_bytes)
    entries, ignored = _sorted_out(_below(source.entries(), inside), all_named=labels is not None)
    own = [labels[e.name] if labels is not None else _label(e.name, inside) for e in entries]
    found = Images(source, entries, own, max_pixels)
    good, faults = _checked(found, n_jobs)
    if faults and on_error == "raise":
        raise ImageError(_refusal(path, faults, len(entries)))
    if not good:
        raise ImageError(f"{str(path)!r} has no images{_tried(faults, inside)}.")
    found = found.subset(good) if faults else found
    found.faults, found.ignored = tuple(faults), tuple(ignored)
    return found


def _source(
    path: Path, inside: str | None, max_bytes: int | None
) -> tuple[Source, dict[str, str | None] | None]:
    """Return where the images are; for a table, also the label of each name."""
    if path.is_dir():
        if inside is not None and not (path / inside).is_dir():
            raise ImageError(f"{str(path)!r} has no folder {inside!r}.")
        return Tree(path), None
    if not path.exists():
        raise FileNotFoundError(f"There is no file or folder {str(path)!r}.")
    if path.suffix.lower() in TABLES:
        labels = _table(path)
        return Listed(path.parent, list(labels)), labels
    if path.suffix.lower() in ENDINGS:
        return Listed(path.parent, [path.name]), {path.name: None}
    if (archive := archive_of(path, max_bytes)) is not None:
        return archive, None
    raise ImageError(
        f"{str(path)!r} is none of a folder, a .tar, a .zip, a .csv or .tsv of paths, and an image."
    )


def _table(path: Path) -> dict[str, str | None]:
    """Return the names that a table has in its column "path", each with its label."""
    with open_plain(path) as file:
        text = file.read(_LARGEST_TABLE).decode("utf-8-sig")
    rows = csv.DictReader(text.splitlines(), delimiter=TABLES[path.suffix.lower()])
    if rows.fieldnames is None or "path" not in rows.fieldnames:
        raise ImageError(f"{str(path)!r} has no column 'path': name the columns in its first line.")
    found: dict[str, str | None] = {}
    for row in rows:
        name = row["path"] or ""
        if name in found:
            raise ImageError(f"{str(path)!r}, line {rows.line_num}: {name!r} occurs twice.")
        found[name] = row.get("label") or None
    return found


def _below(entries: Iterator[Entry], inside: str | None) -> list[Entry]:
    if inside is None:
        return list(entries)
    parts = PurePosixPath(inside).parts
    n = len(parts)
    return [e for e in entries if e.of_all or PurePosixPath(e.name).parts[:n] == parts]


def _sorted_out(entries: list[Entry], *, all_named: bool) -> tuple[list[Entry], list[str]]:
    """Return images and faults in the order of their names, and the names of other files."""
    images: dict[str, Entry] = {}
    ignored = []
    for entry in entries:
        if not (all_named or _is_image(entry)):
            ignored.append(entry.name)
        elif entry.name in images:
            images[entry.name] = Entry(entry.name, fault="its name occurs twice in the archive")
        else:
            images[entry.name] = entry
    return [images[name] for name in sorted(images)], sorted(ignored)


def _is_image(entry: Entry) -> bool:
    """Whether it is an image by its name; links to folders and damage count, to be named."""
    parts = PurePosixPath(entry.name).parts
    if any(part == _HIDDEN or (part[0] == "." and part[:2] != "..") for part in parts):
        return False
    if entry.of_all:
        return True
    unnamed = entry.fault is not None and "." not in entry.name.rpartition("/")[2]
    return unnamed or entry.name.lower().endswith(ENDINGS)


def _label(name: str, inside: str | None) -> str | None:
    """Return the class folder of an image."""
    parts = PurePosixPath(name).parts[len(PurePosixPath(inside or "").parts) :]
    return parts[0] if len(parts) > 1 else None


def _checked(images: Images, n_jobs: int | None) -> tuple[list[int], list[Fault]]:
    """Return the numbers of the images that can be decoded, and the others' faults."""
    found = run_tasks(lambda k, _: images.fault(k), range(len(images)), Threads(n_jobs))
    good = [k for k, fault in enumerate(found) if fault is None]
    return good, [fault for fault in found if fault is not None]


def _refusal(path: Path, faults: list[Fault], n: int) -> Message:
    named: dict[str, object] = {
        f"fault{k}": fault.reason for k, fault in enumerate(faults[:_MOST_NAMED])
    }
    lines = "".join(f"\n  {{{name}}}" for name in named)
    more = f"\n  and {len(faults) - len(named)} more" * (len(faults) > len(named))
    return Message(
        "{path}: {n_faults} of {n} images cannot be read; {skip} leaves them out." + lines + more,
        named | {"path": repr(str(path)), "n_faults": len(faults), "n": n, "skip": _SKIP},
    )


def _tried(faults: list[Fault], inside: str | None) -> str:
    where = f" in {inside!r}" if inside is not None else ""
    return where + (f" that can be read: {faults[0].reason.rstrip('.')}" if faults else "")
