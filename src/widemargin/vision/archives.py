"""Where encoded images are: files of a folder, or members of a tar or zip that stays packed.

A source lists its plain files, with a reason for each entry that is not one, and reads any of them
from any thread.  Nothing is unpacked to disk and no link is followed.
"""

from __future__ import annotations

import io
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, NamedTuple, Protocol

from widemargin.budget import Budget
from widemargin.data.streams import DAMAGE, decompressed, naming_file, opened, whole
from widemargin.files import open_plain
from widemargin.vision.pixels import ImageError

_LINK = "it is a link, which is not followed"
_TARS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".tar.zst")


class Entry(NamedTuple):
    """A file by its name in the source; ``fault`` says why it cannot be read.

    ``of_all`` marks a fault of the archive itself.
    """

    name: str
    key: Any = None
    fault: str | None = None
    of_all: bool = False


class Source(Protocol):
    """A folder or an archive."""

    def entries(self) -> Iterator[Entry]: ...

    def read(self, key: Any, most: int) -> bytes:
        """Return the content of a file, of at most this many bytes."""
        ...


def archive_of(path: Path, max_bytes: int | None) -> Source | None:
    """Return the archive of this name; None if its ending is not that of one."""
    name = path.name.lower()
    if name.endswith(".zip"):
        return ZipArchive(path)
    return TarArchive(path, max_bytes) if name.endswith(_TARS) else None


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise ImageError(f"its file of {size} bytes is larger than any image that is read")


def _astray(name: str) -> str | None:
    """Return the fault of a member whose name leads out of the archive."""
    path = PurePosixPath(name)
    out = path.is_absolute() or ".." in path.parts or "\\" in name
    return "its name leads out of the archive" if out else None


# ------------------------------------------------------------------ folders


class Tree:
    """The plain files of a folder and its subfolders."""

    def __init__(self, path: Path):
        self._path = path

    def entries(self) -> Iterator[Entry]:
        return self._within("")

    def _within(self, folder: str) -> Iterator[Entry]:
        with os.scandir(self._path / folder) as found:
            inner = sorted(found, key=lambda entry: entry.name)
        for entry in inner:
            name = f"{folder}{entry.name}"
            if entry.is_symlink():
                yield Entry(name, fault=_LINK)
            elif entry.is_dir():
                yield from self._within(f"{name}/")
            else:
                plain = entry.is_file()
                yield Entry(name, name, None if plain else "it is a pipe or a device")

    def read(self, key: str, most: int) -> bytes:
        with open_plain(self._path / key) as file:
            _check_size(os.fstat(file.fileno()).st_size, most)
            return file.read(most)


class Listed(Tree):
    """Files that a table names by their paths in a folder."""

    def __init__(self, path: Path, names: list[str]):
        super().__init__(path)
        self._root, self._names = path.resolve(), names

    def entries(self) -> Iterator[Entry]:
        return (self._entry(name) for name in self._names)

    def _entry(self, name: str) -> Entry:
        path = self._path / name
        try:
            if not path.resolve().is_relative_to(self._root):
                return Entry(name, fault=f"its path leads out of {str(self._path)!r}")
            mode = path.lstat().st_mode
        except (OSError, ValueError) as error:
            return Entry(name, fault=getattr(error, "strerror", None) or str(error))
        if stat.S_ISLNK(mode):
            return Entry(name, fault=_LINK)
        return Entry(name, name, None if stat.S_ISREG(mode) else "it is not a plain file")


# ------------------------------------------------------------------ archives


class TarArchive:
    """The members of a tar; those of a compressed one are held in memory, unpacked."""

    def __init__(self, path: Path, max_bytes: int | None):
        self._path, self._name = path, repr(str(path))
        budget = Budget(max_bytes, self._name)
        with budget, naming_file(self._name, DAMAGE), opened(path) as file:
            plain = decompressed(file, budget)
            self._content = None if plain is file else whole(plain, budget).getvalue()

    def _open(self) -> BinaryIO:
        return open_plain(self._path) if self._content is None else io.BytesIO(self._content)

    def entries(self) -> Iterator[Entry]:
        begun, fault = False, "members after the last that is listed are lost"
        try:
            with self._open() as file, tarfile.open(fileobj=file, mode="r:") as archive:
                begun = True
                for member in archive:
                    if not member.isdir():
                        yield self._entry(member)
                file.seek(archive.offset)
                end = file.read(tarfile.BLOCKSIZE)  # tarfile ends in silence at a damaged header
        except (tarfile.TarError, OSError, ValueError, zlib.error) as error:
            if not begun:
                raise ImageError(f"{self._name}: it is not a tar archive ({error}).") from None
            end = b""
        if not end or end.strip(b"\0"):
            yield Entry(self._path.name, fault=f"the archive is damaged: {fault}", of_all=True)

    @staticmethod
    def _entry(member: tarfile.TarInfo) -> Entry:
        if member.issym() or member.islnk():
            fault: str | None = _LINK
        elif not member.isreg() or member.issparse():
            fault = "it is not a plain file"
        else:
            fault = _astray(member.name)
        return Entry(member.name, (member.offset_data, member.size), fault)

    def read(self, key: tuple[int, int], most: int) -> bytes:
        begin, size = key
        _check_size(size, most)
        with self._open() as file:
            file.seek(begin)
            return file.read(size)


class ZipArchive:
    """The members of a zip."""

    def __init__(self, path: Path):
        try:
            self._archive = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise ImageError(f"{str(path)!r}: it is not a zip archive ({error}).") from None
        self._path = path

    def __reduce__(self):
        return ZipArchive, (self._path,)

    def entries(self) -> Iterator[Entry]:
        for member in self._archive.infolist():
            if not member.is_dir():
                link = stat.S_ISLNK(member.external_attr >> 16)
                yield Entry(member.filename, member, _LINK if link else _astray(member.filename))

    def read(self, key: zipfile.ZipInfo, most: int) -> bytes:
        _check_size(key.file_size, most)
        try:
            with self._archive.open(key) as file:
                return file.read(most)
        except (zipfile.BadZipFile, RuntimeError, EOFError, ValueError, zlib.error) as error:
            raise ImageError(f"it is damaged in its archive ({error})") from None
