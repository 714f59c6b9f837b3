"""Files that are written whole or not at all, and folders in which no link is followed.

Everything that this package writes, it writes through a `Folder`: its own files (stores,
checkpoints) and what a caller names (models, tables, pages).
"""

from __future__ import annotations

import errno
import fcntl
import io
import os
import re
import secrets
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Self, TextIO

from widemargin.budget import Budget
from widemargin.errors import Message
from widemargin.warning import warn_user

CLAIM = "claim.lock"
_TEMPORARY = re.compile(r"\..*\.[0-9a-f]{16}\.tmp", re.DOTALL)
_SAFELY = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # not through links, and never waiting
_CANNOT_LOCK = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOLCK, errno.EOPNOTSUPP)


class Folder:
    """A folder that is opened once; its files are named relative to it.

    Whoever can write in the folder can plant links, pipes and devices in it.  None of them is read
    or written: where a file of ours belongs, each is an error that names it.

    Parameters
    ----------
    path : path
    make : bool
        Whether to create it where it does not exist.
    """

    def __init__(self, path: str | os.PathLike, *, make: bool = False):
        self.path, self._number, self._lock = Path(path), -1, -1
        if make:
            self.path.mkdir(parents=True, exist_ok=True)
        self._open()

    def _open(self) -> int:
        """The descriptor; a folder that came from another process is opened when it is used."""
        if self._number < 0:
            how = getattr(os, "O_PATH", os.O_RDONLY)  # no permission to list is needed
            self._number = os.open(self.path, how | os.O_DIRECTORY | os.O_CLOEXEC)
        return self._number

    def __reduce__(self):
        return _elsewhere, (self.path,)

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def __str__(self) -> str:
        return str(self.path)

    __fspath__ = __str__

    def names(self) -> set[str]:
        """All that is in it, but the lock and what writers that were killed have left behind."""
        return {name for name in self._all() if name != CLAIM and not name.endswith(".tmp")}

    def _all(self) -> list[str]:
        listed = os.open(".", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._open())
        try:
            return os.listdir(listed)
        finally:
            os.close(listed)

    def has(self, name: str) -> bool:
        """Whether there is such a file, or something else in its place."""
        return self._mode(name) is not None

    def size(self, name: str) -> int:
        """Of a plain file, in bytes."""
        with naming(self / name):
            found = os.stat(name, dir_fd=self._open(), follow_symlinks=False)
        self._refuse(name, found.st_mode)
        return found.st_size

    def _mode(self, name: str) -> int | None:
        try:
            return os.stat(name, dir_fd=self._open(), follow_symlinks=False).st_mode
        except FileNotFoundError:
            return None

    def open(self, name: str) -> io.BufferedReader:
        """A plain file to read."""
        return open(self._plain(name, os.O_RDONLY), "rb")

    def read(self, name: str, max_bytes: int | None = None) -> bytes:
        """All of a plain file, which may be as large as a `Budget` allows."""
        with Budget(max_bytes, repr(str(self / name))) as budget, self.open(name) as file:
            budget.check(os.fstat(file.fileno()).st_size, "its contents take")
            return file.read()

    def _plain(self, name: str, how: int) -> int:
        """The descriptor of a file that is no link, pipe or device."""
        try:
            with naming(self / name):
                number = os.open(name, how | _SAFELY, 0o666, dir_fd=self._open())
        except OSError:
            self._refuse(name, self._mode(name))
            raise
        try:
            self._refuse(name, os.fstat(number).st_mode)
        except OSError:
            os.close(number)
            raise
        return number

    def _refuse(self, name: str, mode: int | None) -> None:
        """Raise where something other than a plain file has the name of a file of ours."""
        if mode is None or stat.S_ISREG(mode):
            return
        kind = "a link" if stat.S_ISLNK(mode) else "a folder, a pipe or a device"
        number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EEXIST
        said = f"It is {kind}, not a plain file, and is neither followed nor replaced"
        raise OSError(number, said, str(self / name))

    @contextmanager
    def replacing(self, name: str, *, lasting: bool = True) -> Iterator[BinaryIO]:
        """A file to write, which takes the place of ``name`` when all went well.

        Whatever happens before that, a crash or a full disk included, leaves ``name`` as it was.
        The permissions of an older file are kept.  ``lasting`` waits until the disk has the bytes.
        """
        older = self._mode(name)
        self._refuse(name, older)
        temporary = f".{name[:40]}.{secrets.token_hex(8)}.tmp"  # names have at most 255 bytes
        folder, path = self._open(), self / name
        with naming(path, instead_of=temporary):
            number = os.open(
                temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | _SAFELY, 0o666, dir_fd=folder
            )
            try:
                with open(number, "wb") as file:
                    yield file
                    file.flush()
                    if lasting:
                        os.fsync(number)
                    if older is not None:
                        os.fchmod(number, stat.S_IMODE(older))
                os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                self.remove(temporary)
                raise

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError), naming(self / name):
            os.unlink(name, dir_fd=self._open())

    # ---------------------------------------------------------------- one writer at a time

    def claim(self, called: str, writer: str) -> None:
        """Lock the folder for one writer until `close`, in whatever process or thread.

        The lock is the system's, on a file that says whose the folder is.  It ends with the
        process, however that ends, so that a killed writer does not stand in its own way; what
        such a writer has left behind is removed.  NFS passes the lock on to its server, so writers
        on two machines see each other.  Where no lock can be had (a file system or a folder that
        refuses) the writer goes on with a warning.  ``called`` and ``writer`` are the words of
        messages.
        """
        try:
            self._lock = self._plain(CLAIM, os.O_RDWR | os.O_CREAT)
            if os.fstat(self._lock).st_nlink > 1:
                said = "It is another file too (a hard link), which is not written to; remove it"
                raise OSError(errno.EEXIST, said, str(self / CLAIM))
            self._take_lock(called, writer)
        except OSError as error:
            self._release()
            if error.errno not in _CANNOT_LOCK:
                raise
            said = (
                "{called} cannot be locked ({error}): make sure that no other {writer} uses it at "
                "the same time."
            )
            warn_user(Message(said, called=called, error=error, writer=writer))
            return
        for name in filter(_TEMPORARY.fullmatch, self._all()):
            self.remove(name)

    def _take_lock(self, called: str, writer: str) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            owner = os.read(self._lock, 1000).decode(errors="replace") or "another process"
            said = Message(
                "{called} is in use by {owner}. Wait until that {writer} ends, or give this one "
                "another folder.",
                called=called,
                owner=owner,
                writer=writer,
            )
            raise BlockingIOError(said) from None
        os.ftruncate(self._lock, 0)
        os.write(self._lock, f"process {os.getpid()} on {socket.gethostname()}".encode())

    def _release(self) -> None:
        if self._lock >= 0:
            lock, self._lock = self._lock, -1
            with suppress(OSError):  # at once, though a forked child may have the file open
                fcntl.flock(lock, fcntl.LOCK_UN)
            os.close(lock)

    def close(self) -> None:
        """Give up the lock and the descriptor; the folder may be used again."""
        self._release()
        if self._number >= 0:
            number, self._number = self._number, -1
            os.close(number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_lock"):
            self.close()


def _elsewhere(path: Path) -> Folder:
    """A folder in another process, which may not see it until it is used."""
    folder = Folder.__new__(Folder)
    folder.path, folder._number, folder._lock = path, -1, -1
    return folder


@contextmanager
def replacing(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """`Folder.replacing` of a path.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "notes.txt"
    ...     with replacing(path) as file:
    ...         _ = file.write(b"all of it")
    ...     path.read_text(), len(list(Path(folder).iterdir()))
    ('all of it', 1)
    """
    path = Path(path)
    with naming(path, instead_of=path.parent):
        folder = Folder(path.parent)
    with folder, folder.replacing(path.name) as file:
        yield file


def open_plain(path: Path) -> io.BufferedReader:
    """`Folder.open` of a path."""
    with Folder(path.parent) as folder:
        return folder.open(path.name)


@contextmanager
def checking(path: object) -> Iterator[None]:
    """What is found wrong with the contents of a file of ours is damage of that file."""
    try:
        yield
    except (ValueError, TypeError, IndexError) as error:
        said = " ".join(str(error).split()).rstrip(".")
        raise ValueError(f"{str(path)!r} is damaged: {said}.") from None


@contextmanager
def naming(path: str | os.PathLike, instead_of: str | os.PathLike | None = None) -> Iterator[None]:
    """Errors of the system that name no file, or only a temporary one, name this one."""
    try:
        yield
    except OSError as error:
        without = (None, Path(path).name, None if instead_of is None else os.fspath(instead_of))
        if error.errno is None or error.filename not in without:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


@contextmanager
def text_output(out: str | os.PathLike | TextIO, errors: str = "strict") -> Iterator[TextIO]:
    """A text file to write: an open one, a pipe or device as it is, a path replaced whole.

    ``errors`` says what becomes of characters that UTF-8 has not, as in `open`.
    """
    if not isinstance(out, (str, os.PathLike)):
        yield out
    elif _is_device(out):
        with naming(out), open(out, "w", encoding="utf-8", errors=errors) as file:
            yield file
    else:
        with replacing(out) as whole:
            text = io.TextIOWrapper(whole, "utf-8", errors, newline="\n")
            yield text
            text.detach()  # which flushes it


def _is_device(path: str | os.PathLike) -> bool:
    """Whether it is a pipe or a device, or leads to an open file (/dev/stdout)."""
    special = os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
    return special or os.path.abspath(path).startswith(("/dev/", "/proc/"))
